//! What a conductor does besides its session, one thing at a time, with a client of toys that meets
//! a fault only if a test says so.

use super::super::toy::{self, Kind};
use super::super::world::{self, Peer, options};
use super::desk::SimulatedDesk;
use super::disk::{Disk, DiskFlaw};
use super::shelf::Shelf;
use super::slow::Passing;
use crate::conductor::keeper::Keeper;
use crate::conductor::{Conductor, Errand, Progress};
use crate::exchange::Delivery;
use crate::session::*;
use privet_core::Reason;
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use std::collections::{HashMap, VecDeque};

const BUSY_PATIENCE: Duration = Duration::from_secs(1);

struct Shell {
    conductor: Conductor<SimulatedDesk>,
    peer: Peer,
    disk: Disk,
    shelf: Shelf,
    passing: Passing,
    on_its_way: VecDeque<(ExchangeId, Delivery)>,
    /// How many queries each request carried, and how many journal records had been written before.
    queries: Vec<(usize, usize)>,
    ready: Option<Result<()>>,
    replies: HashMap<LookupId, Result<Option<Value>>>,
    finished: Vec<Result<()>>,
    waits_told: usize,
}

impl Shell {
    fn new() -> Self {
        Self::of(toy::peer(24, 20, 1, 40, Kind::default()), toy::parts(1))
    }

    fn of(peer: Peer, parts: Parts) -> Self {
        let passing = Passing::default();
        let disk = Disk::new(1, DiskFlaw::None, passing.clone());
        let shelf = Shelf::new(disk.clone(), passing.clone());
        let mut options = options(1);
        options.clock = passing.clock(Duration::from_nanos(1), Duration::ZERO);
        let session = Session::with_parts(options, Duration::ZERO, parts).unwrap();
        let desk = SimulatedDesk::new(passing.clone());
        let addresses = vec!["server 0".to_owned()];
        let keeper = Keeper::new(Box::new(shelf.clone()), addresses, desk, Kernels::detect());
        Self {
            conductor: Conductor::of(session, keeper, BUSY_PATIENCE),
            peer,
            disk,
            shelf,
            passing,
            on_its_way: VecDeque::new(),
            queries: Vec::new(),
            ready: None,
            replies: HashMap::new(),
            finished: Vec::new(),
            waits_told: 0,
        }
    }

    /// Runs until nothing is left to wait for.
    fn run(&mut self) {
        self.run_until(|_| false);
    }

    /// The same, or until it is `done`.
    fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..10_000 {
            if done(self) {
                return;
            }
            match self.conductor.poll(self.passing.now()) {
                Some(Errand::Wait { until }) => self.passing.until(until),
                Some(errand) => self.carry_out(errand),
                None if self.goes_on() => {}
                None => return,
            }
        }
        panic!("it never comes to rest");
    }

    /// Lets the next event happen, if there is one.
    fn goes_on(&mut self) -> bool {
        let now = self.passing.now();
        if let Some((exchange, delivery)) = self.on_its_way.pop_front() {
            self.conductor.handle_delivery(exchange, delivery, now);
        } else if let Some(since) = self.conductor.desk().next_step() {
            self.conductor.desk().work(since);
        } else if let Some(wake) = self.conductor.wake_at() {
            self.passing.until(wake);
            self.conductor.handle_timeout(self.passing.now());
        } else {
            return false;
        }
        true
    }

    fn carry_out(&mut self, errand: Errand) {
        match errand {
            Errand::Send { exchange, request, .. } => {
                if let Request::Answer(query) = &request {
                    let query_len = self.peer.scheme().plan.query_lens[0];
                    let count = query.query.len() / query_len;
                    self.queries.push((count, self.disk.kept().written.len()));
                }
                let responses = self.peer.respond(&request).into_iter();
                let sized = |response: Result<Response>| response.map(|response| (response, 1));
                self.on_its_way.extend(responses.map(|response| (exchange, sized(response))));
            }
            Errand::Reply { lookup, outcome } => {
                assert!(self.replies.insert(lookup, outcome).is_none(), "one outcome");
            }
            Errand::Ready(outcome) => {
                assert!(self.ready.replace(outcome.map(drop)).is_none(), "said once");
            }
            Errand::Finished { outcome, .. } => self.finished.push(outcome),
            Errand::Tell(Progress::Waiting { .. }) => self.waits_told += 1,
            _ => {}
        }
    }

    fn look_up(&mut self, indices: std::ops::Range<u64>) -> Vec<LookupId> {
        indices.map(|index| self.conductor.lookup(Target::index(index))).collect()
    }
}

/// Five lookups that are handed in together cost one commit, and none of their queries leaves
/// before it. A later lookup is committed later.
#[test]
fn lookups_that_are_handed_in_together_are_committed_together() {
    let mut shell = Shell::new();
    shell.run();
    assert!(shell.ready.take().is_some_and(|ready| ready.is_ok()));
    let lookups = shell.look_up(0..5);
    shell.run();
    assert_eq!(shell.queries, [(1, 5); 5]);
    assert!(lookups.iter().all(|lookup| shell.replies[lookup].is_ok()));
    let later = shell.look_up(7..8);
    shell.run();
    assert_eq!(shell.queries[5..], [(1, 6)]);
    assert!(shell.replies[&later[0]].is_ok());
    let at = |stats: &crate::conductor::Stats| (stats.lookups, stats.lookup.down);
    assert_eq!(at(shell.conductor.stats()), (6, 6));
}

/// Queries that one sync covers leave in as few requests as the server takes, and each lookup gets
/// its own answer.
#[test]
fn queries_that_one_sync_covers_leave_in_one_request() {
    let mut shell = Shell::new();
    shell.peer.description.max_queries = 3;
    shell.run();
    let lookups = shell.look_up(0..5);
    shell.run();
    assert_eq!(shell.queries, [(3, 5), (2, 5)]);
    for (lookup, record) in lookups.iter().zip(shell.peer.records.chunks(20)) {
        assert_eq!(shell.replies[lookup].as_ref().unwrap().as_ref().unwrap().to_vec(), record);
    }
}

/// The queries of a lookup leave in one request, whether its key is there or not, and those of the
/// next lookup in another. If they cannot go together, they leave one after the other.
#[test]
fn the_queries_of_a_lookup_leave_in_one_request() {
    for (max_queries, requests) in [(16, [2; 3].to_vec()), (1, [1; 6].to_vec())] {
        let peer = Peer::keyed_as(KeyMapKind::Cuckoo, SchemeId::SimplePirPacked, 40);
        let mut shell = Shell::of(peer, world::parts());
        shell.peer.description.max_queries = max_queries;
        shell.run();
        let keys = ["key-5", "key-7", "nobody"];
        let lookups = keys.map(|key| shell.conductor.lookup(Target::key(key)));
        shell.run();
        let counts: Vec<_> = shell.queries.iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, requests);
        let found = lookups.map(|lookup| shell.replies[&lookup].as_ref().unwrap().is_some());
        assert_eq!(found, [true, true, false]);
    }
}

/// The sync of a lookup's record makes durable what the lookup before it settled. What the last
/// one settled becomes durable without a lookup.
#[test]
fn lookups_one_after_another_cost_a_sync_each_and_their_end_one_more() {
    let mut shell = Shell::new();
    shell.run();
    let before = shell.disk.kept().syncs;
    for index in 0..5 {
        let lookup = shell.look_up(index..index + 1)[0];
        shell.run_until(|shell| shell.replies.contains_key(&lookup));
        assert!(shell.replies[&lookup].is_ok());
        assert_eq!(shell.disk.kept().syncs - before, index + 1);
    }
    assert!(!shell.disk.kept().everything_is_synced());
    shell.run();
    assert_eq!(shell.disk.kept().syncs - before, 6);
    assert!(shell.disk.kept().everything_is_synced());
}

/// Records that go to the disk together are all kept, or none counts.
#[test]
fn a_commit_that_fails_fails_all_of_its_lookups() {
    let mut shell = Shell::new();
    shell.run();
    shell.disk.kept().steps_left = Some(0);
    let lookups = shell.look_up(0..5);
    shell.run();
    assert_eq!(shell.disk.kept().written.len(), 5, "all of them were to be written");
    assert!(shell.queries.is_empty());
    for lookup in lookups {
        let error = shell.replies[&lookup].as_ref().unwrap_err();
        assert_eq!(error.message(), "the power is gone");
    }
    // Nothing is asked after that.
    let lookup = shell.look_up(9..10)[0];
    shell.run();
    assert!(shell.replies[&lookup].is_err() && shell.queries.is_empty());
}

#[test]
fn what_another_process_has_is_waited_for_as_long_as_it_gets_on() {
    let mut shell = Shell::new();
    let patiently = 3 * BUSY_PATIENCE;
    shell.shelf.held().parts_busy_until = patiently;
    shell.run();
    assert!(shell.ready.take().is_some_and(|ready| ready.is_ok()));
    assert!(shell.passing.now() >= patiently && shell.waits_told >= 60, "{}", shell.waits_told);
    // Hints are held, and this client sees nothing of what the other process does with them.
    let mut shell = Shell::new();
    shell.shelf.held().hints_busy_until = patiently;
    shell.run();
    let error = shell.ready.take().expect("it is said").unwrap_err();
    assert!(error.message().contains("using the hints for this table for 1 s"), "{error}");
    assert_eq!(error.reason(), Some(Reason::UsedByAnotherProcess), "{error}");
    assert!((BUSY_PATIENCE..patiently).contains(&shell.passing.now()) && shell.waits_told == 1);
    let mut shell = Shell::new();
    shell.shelf.held().hints_busy_until = BUSY_PATIENCE / 2;
    shell.run();
    assert!(shell.ready.take().is_some_and(|ready| ready.is_ok()));
}

/// Each caller of `finish` is told once: that everything is kept, or that something may not be.
#[test]
fn the_end_is_told_when_everything_is_kept() {
    let mut shell = Shell::new();
    shell.look_up(0..3);
    let tickets = [shell.conductor.finish(), shell.conductor.finish()];
    assert_ne!(tickets[0], tickets[1]);
    shell.run();
    assert!(matches!(shell.finished[..], [Ok(()), Ok(())]) && shell.replies.len() == 3);
    assert!(shell.disk.kept().open_queries().is_empty());
    assert!(shell.disk.kept().everything_is_synced());
    // A record, an answer, and then a power failure.
    shell.disk.kept().steps_left = Some(2);
    shell.look_up(3..4);
    shell.conductor.finish();
    shell.run();
    let error = shell.finished.pop().expect("it is told").unwrap_err();
    assert!(error.message().contains("may not have been kept"), "{error}");
}
