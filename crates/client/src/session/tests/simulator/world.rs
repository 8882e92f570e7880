//! One run: its processes, the network between them and the servers, and the checks.

use super::super::toy::{self, Flow, Kind};
use super::super::world::{self as simple, Dice, Peer, know_pins, options};
use super::desk::SimulatedDesk;
use super::disk::Disk;
use super::history;
use super::scenario::{Check, Driver, Report, Scenario, Scheme};
use super::shelf::Shelf;
use super::slow::{self, Passing};
use super::stateless::{self, Ledger};
use crate::conductor::keeper::Keeper;
use crate::conductor::{Conductor, Errand, FinishId, Progress};
use crate::session::planted::plant;
use crate::session::*;
use crate::state::{MemoryState, State};
use privet_core::Blame;
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_wire::PartKind;
use std::collections::{BTreeMap, HashMap};
use tempfile::TempDir;

mod checks;
mod network;

pub(super) const RECORDS: u64 = 24;
const RECORD_LEN: u64 = 20;
const PROCESSES: u64 = 7;
/// The steps of a coarse clock, in milliseconds.
const COARSE_STEP: u64 = 5;
const COARSE: Duration = Duration::from_millis(COARSE_STEP);
/// How long another process may hold what this one wants without progress.
const BUSY_PATIENCE: Duration = Duration::from_millis(1000);
/// A process that takes more never comes to rest. Some hundreds are usual.
const MOST_STEPS: u64 = 10_000;

/// Runs the world of `seed`.
pub(super) fn simulate(seed: u64, scenario: Scenario) -> Check<Report> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(1));
    let servers = match scenario.scheme {
        Scheme::Toy if scenario.verifies => 2,
        Scheme::Toy if scenario.flow == Flow::Streamed => 1 + dice.roll(4) as usize / 3,
        Scheme::Toy => 1 + dice.roll(2) as usize,
        Scheme::Dpf => 2,
        Scheme::DummySubsets | Scheme::LateHint | Scheme::Download => 1,
    };
    let total = 2 + dice.roll(14);
    let kind = Kind {
        flow: scenario.flow,
        endless: scenario.endless,
        chained: scenario.endless && seed.is_multiple_of(2),
        verifies: scenario.verifies,
        flaw: scenario.client,
    };
    let versions = match scenario.scheme {
        _ if !scenario.changes => Vec::new(),
        Scheme::DummySubsets => history::dummy_subsets(),
        _ => history::toys(servers, total, kind),
    };
    let by = |scheme| Peer::indexed_by(scheme, RECORDS, RECORD_LEN, 1);
    let mut peer = match scenario.scheme {
        _ if scenario.changes => history::peer(&versions, 0, 0),
        Scheme::Toy => toy::peer(RECORDS, RECORD_LEN, servers, total, kind),
        Scheme::DummySubsets => by(SchemeId::DummySubsets),
        Scheme::Dpf => by(SchemeId::Dpf),
        Scheme::LateHint => by(SchemeId::SimplePir),
        Scheme::Download => by(SchemeId::Download),
    };
    if scenario.scheme == Scheme::Download {
        // So that the table can break off after any record.
        peer.chunk_len = RECORD_LEN as usize;
    }
    let _planted = plant(scenario.timetable);
    let passing = Passing::default();
    let disk = Disk::new(seed, scenario.disk, passing.clone());
    let mut world = World {
        peer,
        end_was_told: false,
        servers,
        liar: scenario.lies.then_some(seed as usize % servers),
        lie_dice: Dice(seed ^ 0x11e5),
        shelf: Shelf::new(disk.clone(), passing.clone()),
        disk,
        passing,
        busy_dice: Dice(seed ^ 0xb057),
        versions,
        version: 0,
        oldest: 0,
        change_dice: Dice(seed ^ 0xc4a6),
        files: scenario.damages.then(|| tempfile::tempdir().unwrap()),
        damage_dice: Dice(seed ^ 0xda3a),
        target_dice: Dice(seed ^ 0x7a26),
        asked: 0,
        now: Duration::ZERO,
        process: 0,
        dice,
        faults: true,
        away_until: vec![Duration::ZERO; servers],
        by_hint: HashMap::new(),
        by_reservation: HashMap::new(),
        requests: HashMap::new(),
        ledger: Ledger::default(),
        report: Report::default(),
        scenario,
    };
    if world.scenario.scheme == Scheme::DummySubsets {
        world.faults = false;
        // A generation serves 160 queries.
        let lookups = 20 + world.dice.roll(150);
        world.live(lookups)?;
    }
    for process in 1..=PROCESSES {
        (world.process, world.faults) = (process, true);
        let lookups = world.dice.roll(12);
        world.live(lookups)?;
    }
    (world.process, world.faults) = (PROCESSES + 1, false);
    world.live(6)?;
    let kept = world.disk.kept();
    world.report.switches = kept.switches;
    world.report.condensed = kept.condensed;
    (world.report.followed, world.report.left_behind) = (kept.followed, kept.restarted);
    world.report.ended = u64::from(kept.has_ended());
    world.report.checkpoints_resumed = kept.resumed;
    drop(kept);
    world.report.waited = world.shelf.held().waited;
    world.report.repeated = world.ledger.repeated;
    Ok(world.report)
}

struct World {
    scenario: Scenario,
    /// The present state of every server.
    peer: Peer,
    /// Each version of a table that changes, …
    versions: Vec<Peer>,
    /// … the one that it is in, and the oldest that is still served.
    version: usize,
    oldest: usize,
    /// Whether the user was told that an answer failed verification.
    end_was_told: bool,
    passing: Passing,
    servers: usize,
    /// The server that gives wrong answers.
    liar: Option<usize>,
    disk: Disk,
    shelf: Shelf,
    /// Where parts are kept if they can be damaged.
    files: Option<TempDir>,
    /// Decide when the table changes, lies, when other processes hold stored state, what is damaged
    /// and when, and targets if the scenario does not. Separate dice, so that one of these leaves
    /// all other random choices the same.
    change_dice: Dice,
    lie_dice: Dice,
    busy_dice: Dice,
    damage_dice: Dice,
    target_dice: Dice,
    /// Lookups so far.
    asked: u64,
    now: Duration,
    process: u64,
    dice: Dice,
    faults: bool,
    /// Until when each server is away.
    away_until: Vec<Duration>,
    /// What was sent to each role with each hint, and for each reservation.
    by_hint: HashMap<(u8, Vec<u8>, u64), Vec<u8>>,
    by_reservation: HashMap<(u8, Vec<u8>, Vec<u8>), Vec<u8>>,
    /// What each process asked for, by its number, the number of generations so far, and the number
    /// of the reply.
    requests: HashMap<(u64, u64, Vec<u8>), Vec<u8>>,
    /// What was sent by a scheme without state.
    ledger: Ledger,
    report: Report,
}

/// Something that will happen in a process.
enum Coming {
    Response(ExchangeId, Result<Response>),
    /// The worker does its next step.
    Work,
    /// The user wants something.
    Lookup,
    /// A byte of the stored table is flipped.
    Damage,
    /// The table changes.
    Change,
    /// No version but the latest is served any more.
    Retire,
}

struct Process {
    conductor: Conductor<SimulatedDesk>,
    coming: BTreeMap<(Duration, u64), Coming>,
    count: u64,
    /// The target of each open lookup, and the oldest version that was served when it began.
    wanted: HashMap<LookupId, (u64, usize)>,
    to_come: u64,
    /// The user has asked to be told when everything is over, …
    finishes: Option<FinishId>,
    /// … and was.
    has_finished: bool,
}

impl Process {
    fn will(&mut self, when: Duration, what: Coming) {
        self.coming.insert((when, self.count), what);
        self.count += 1;
    }
}

/// A state directory whose chunks are so short that a small table has several.
fn kept_in(directory: &TempDir) -> Box<dyn State> {
    let store = crate::store::Store::open(directory.path()).unwrap();
    Box::new(store.with_chunk_len(2 * RECORD_LEN as u32))
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

impl World {
    /// The life of one process that makes so many lookups.
    fn live(&mut self, lookups: u64) -> Check {
        let steps_left = (self.faults && self.dice.roll(3) > 0).then(|| self.dice.roll(60));
        self.disk.restart(steps_left);
        let damage = self.files.is_some().then(|| self.damage_dice.roll(3));
        if let Some(directory) = &self.files {
            // The locks of the earlier process end with it.
            let mut held = self.shelf.held();
            held.state = Box::new(MemoryState::default());
            held.state = kept_in(directory);
        }
        if damage == Some(0) {
            self.damage();
        }
        if !self.versions.is_empty() && self.change_dice.roll(3) == 0 {
            self.change();
        }
        let mut options = options(self.servers);
        know_pins(&mut options, &mut *self.shelf.held().state);
        options.patience.description = milliseconds(100);
        options.clock = match self.scenario.driver {
            Driver::HasACoarseClock => self.passing.clock(COARSE, Duration::from_micros(20)),
            _ => self.passing.clock(Duration::from_nanos(1), Duration::ZERO),
        };
        options.compare_streams = self.scenario.compare && self.servers > 1;
        options.in_flight = 1 + self.dice.roll(4) as usize;
        options.patience.describe = milliseconds(300);
        options.patience.chunk = milliseconds(300);
        options.patience.answer = milliseconds(500);
        options.patience.first_contact = milliseconds(3000);
        options.patience.give_up_after = milliseconds(3000);
        let seed = self.dice.roll(1 << 30);
        toy::fix_coins(seed);
        let mut parts = toy::parts(seed);
        if self.scenario.scheme != Scheme::Toy {
            let start_client = stateless::start_client(self.scenario.stateless_client);
            let Parts { pace, rng, .. } = parts;
            parts = Parts { pace, rng, start_client, ..simple::parts() };
            if self.scenario.scheme == Scheme::LateHint {
                parts.queries_first = |_| true;
            }
        }
        if self.scenario.driver == Driver::HasACoarseClock {
            parts.measuring.looks = 1 << 24;
        }
        let parts = slow::slowed(parts, self.scenario.costs, &self.passing);
        self.ledger.begin_process();
        let session = Session::with_parts(options, self.shown(), parts).unwrap();
        let addresses = (0..self.servers).map(|server| format!("server {server}")).collect();
        let desk = SimulatedDesk::new(self.passing.clone());
        let shelf = Box::new(self.shelf.clone());
        let keeper = Keeper::new(shelf, addresses, desk, Kernels::detect());
        let busy = self.faults && self.busy_dice.roll(4) == 0;
        let [parts, hints] = [1500, 2500].map(|longest| match busy {
            true => self.now + milliseconds(self.busy_dice.roll(longest)),
            false => Duration::ZERO,
        });
        let mut held = self.shelf.held();
        (held.parts_busy_until, held.hints_busy_until) = (parts, hints);
        drop(held);
        let mut process = Process {
            conductor: Conductor::of(session, keeper, BUSY_PATIENCE),
            coming: BTreeMap::new(),
            count: 0,
            wanted: HashMap::new(),
            to_come: 0,
            finishes: None,
            has_finished: false,
        };
        if !self.versions.is_empty() {
            let span = if self.faults { 900 } else { 25_000 };
            for _ in 0..self.change_dice.roll(3) {
                let later = milliseconds(self.change_dice.roll(span));
                process.will(self.now + later, Coming::Change);
            }
        }
        if damage == Some(1) {
            let later = milliseconds(self.damage_dice.roll(800));
            process.will(self.now + later, Coming::Damage);
        }
        for k in 0..lookups {
            // Without faults, lookups come one after another, so that none comes before the next
            // hints are ready.
            let later = if self.faults { self.dice.roll(800) } else { 5000 * (k + 1) };
            process.will(self.now + milliseconds(later), Coming::Lookup);
            process.to_come += 1;
        }
        for _ in 0..MOST_STEPS {
            if !self.step(&mut process)? {
                // When a slot ends must not depend on what was computed in it.
                let busy_until = process.conductor.session.busy_until();
                self.now = self.now.max(busy_until.unwrap_or_default());
                self.passing.until(self.now);
                return match self.scenario.scheme {
                    Scheme::Dpf | Scheme::LateHint => self.ledger.check(self.servers),
                    _ => Ok(()),
                };
            }
        }
        Err("a process never comes to rest".to_owned())
    }

    /// Lets the next thing happen. False: the process is over.
    fn step(&mut self, process: &mut Process) -> Check<bool> {
        if process.to_come == 0 && process.finishes.is_none() {
            process.finishes = Some(process.conductor.finish());
        }
        loop {
            let errand = process.conductor.poll(self.told());
            self.let_compute();
            self.note_what_was_written();
            if self.disk.kept().is_cut_off {
                self.report.cut_off += 1;
                return Ok(false);
            }
            self.plan_work(process);
            match errand {
                None | Some(Errand::Wait { .. }) => break,
                Some(errand) => self.carry_out(process, errand)?,
            }
            if self.disk.kept().is_cut_off {
                self.report.cut_off += 1;
                return Ok(false);
            }
        }
        if process.has_finished {
            let open = process.wanted.len();
            return if open == 0 {
                Ok(false)
            } else {
                Err(format!("{open} lookups have no outcome"))
            };
        }
        let coming = process.coming.keys().next().map(|(time, _)| *time);
        let timeout = process.conductor.wake_at();
        let Some(next) = [coming, timeout].into_iter().flatten().min() else {
            return Err("a session that is not at rest waits for nothing".to_owned());
        };
        self.now = self.now.max(next);
        self.passing.until(self.now);
        if coming != Some(next) {
            process.conductor.handle_timeout(self.told());
            return Ok(true);
        }
        let Some((_, coming)) = process.coming.pop_first() else { return Ok(true) };
        if !self.disk.step() {
            self.report.cut_off += 1;
            return Ok(false);
        }
        match coming {
            Coming::Response(exchange, response) => {
                let delivery = response.map(|response| (response, 0));
                process.conductor.handle_delivery(exchange, delivery, self.told());
            }
            Coming::Work => {
                process.conductor.desk().work(next);
                if self.disk.kept().is_cut_off {
                    self.report.cut_off += 1;
                    return Ok(false);
                }
            }
            Coming::Damage => self.damage(),
            Coming::Change => {
                self.change();
                let later = milliseconds(self.change_dice.roll(600));
                process.will(next + later, Coming::Retire);
            }
            Coming::Retire => self.serve(self.version, self.version),
            Coming::Lookup => {
                let index = match self.scenario.targets {
                    Some(targets) => targets(self.asked) % RECORDS,
                    None => self.target_dice.roll(RECORDS),
                };
                self.asked += 1;
                self.ledger.asked();
                process.to_come -= 1;
                let lookup = process.conductor.lookup(Target::index(index));
                process.wanted.insert(lookup, (index, self.oldest));
            }
        }
        Ok(true)
    }

    /// Lets the time pass that the client's computation took.
    fn let_compute(&mut self) {
        self.now = self.passing.now();
    }

    /// What the driver's clock shows.
    fn shown(&self) -> Duration {
        match self.scenario.driver {
            Driver::HasACoarseClock => {
                milliseconds(self.now.as_millis() as u64 / COARSE_STEP * COARSE_STEP)
            }
            _ => self.now,
        }
    }

    /// What time the driver says that it is.
    fn told(&self) -> Duration {
        match self.scenario.driver {
            Driver::LooksTooEarly => self.now.saturating_sub(milliseconds(3)),
            _ => self.shown(),
        }
    }

    /// The table changes to its next version. The earlier one may be served as well.
    fn change(&mut self) {
        if self.version + 1 < self.versions.len() {
            let oldest = match self.change_dice.roll(3) {
                0 => self.version + 1,
                _ => self.oldest.max(self.version.saturating_sub(1)),
            };
            self.serve(self.version + 1, oldest);
        }
    }

    fn serve(&mut self, version: usize, oldest: usize) {
        (self.version, self.oldest) = (version, oldest);
        self.peer = history::peer(&self.versions, version, oldest);
    }

    /// Flips a byte of the stored table, if there is one, without anybody's notice.
    fn damage(&mut self) {
        let Some(directory) = &self.files else { return };
        let tables = directory.path().join("tables");
        let folder = tables.join(self.peer.identity().id.to_string());
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let path = entries.map(|entry| entry.unwrap().path()).find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("table-") && name.ends_with(".part")
        });
        let Some(path) = path else { return };
        let mut bytes = std::fs::read(&path).unwrap();
        let at = self.damage_dice.roll(bytes.len() as u64) as usize;
        bytes[at] ^= 0x10;
        std::fs::write(path, bytes).unwrap();
        self.shelf.held().complete.remove(&PartKind::Table);
        self.report.damaged += 1;
    }

    /// The worker does its next step a while after it has come to it, independently of what the
    /// session computes.
    fn plan_work(&mut self, process: &mut Process) {
        if let Some(since) = process.conductor.desk().next_step() {
            let when = since + milliseconds(self.dice.roll(20));
            process.will(when, Coming::Work);
        }
    }

    fn note_what_was_written(&mut self) {
        let process = self.process;
        let written = std::mem::take(&mut self.disk.kept().written);
        self.report.together += u64::from(written.len() > 1);
        let noted = written.into_iter().map(|(when, len)| (when, process, 0, "journal", len));
        self.report.trace.extend(noted);
    }

    fn carry_out(&mut self, process: &mut Process, errand: Errand) -> Check {
        match errand {
            Errand::Send { exchange, server, request, .. } => {
                self.transmit(process, exchange, server, request)
            }
            Errand::Abandon(_) | Errand::Wait { .. } | Errand::Refreshed { .. } => Ok(()),
            Errand::Reply { lookup, outcome } => self.told_outcome(process, lookup, outcome),
            Errand::Ready(Ok(_)) => Ok(()),
            Errand::Ready(Err(error)) if self.is_the_end(&error) => self.end_is_told(),
            Errand::Ready(Err(error))
                if self.faults
                    && matches!(error.blame(), Blame::Unavailable | Blame::Exhausted) =>
            {
                Ok(())
            }
            Errand::Ready(Err(error)) if self.is_amid_a_change(&error) => Ok(()),
            Errand::Ready(Err(error)) => Err(format!("a session failed: {error}")),
            Errand::Finished { ticket, outcome } => {
                if process.finishes != Some(ticket) || process.has_finished {
                    return Err("nobody asked for the end that was told".to_owned());
                }
                process.has_finished = true;
                outcome.map_err(|error| format!("not everything was kept: {error}"))
            }
            Errand::Tell(Progress::NextGeneration { .. }) => {
                self.report.streamed_in_background += 1;
                Ok(())
            }
            Errand::Tell(Progress::Notice(notice)) if notice.contains("cannot be prepared") => {
                Err(format!("hints are not prepared: {notice}"))
            }
            Errand::Tell(_) => Ok(()),
        }
    }
}
