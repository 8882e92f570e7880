//! A scheme whose client keeps the whole table: once the table is there, no lookup sends anything,
//! whatever its target and its outcome.

use super::world::*;
use crate::session::*;
use crate::state::{MemoryState, State};
use privet_core::{Reason, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::offline::HintSource;
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_wire::{PartDescription, PartKind};
use std::sync::Arc;

const KEYS: usize = 400;

fn peer() -> Peer {
    Peer::keyed_by(SchemeId::Download, KEYS)
}

/// A world whose session has the table.
fn ready() -> World {
    let mut world = World::of(&peer());
    world.run();
    assert!(world.session.is_at_rest());
    world
}

#[test]
fn the_table_is_fetched_once_and_lookups_send_nothing() {
    let mut world = ready();
    assert_eq!(world.kinds(), ["describe", "fetch", "fetch"], "layout and table");
    let (len, events) = (world.peers[0].records.len(), &world.events);
    assert!(len > 5000, "it comes in more than one chunk");
    let whole = format!("Part {{ part: Table, done: {len}, total: {len}, fetched: true }}");
    assert!(events.contains(&whole), "{events:?}");

    // Hits, one of them in the stash, then misses, then all of it again.
    for k in (0..KEYS + 20).chain(0..KEYS + 20) {
        let (key, value) = pair(k);
        let found = world.get(Target::key(key)).unwrap();
        assert_eq!(found.map(|value| value.to_vec()), (k < KEYS).then_some(value), "key {k}");
    }
    assert!(world.get(Target::key(b"")).unwrap().is_none());
    assert_eq!(world.get(Target::index(0)).unwrap_err().blame(), Blame::ApiMisuse);
    assert_eq!(world.sent.len(), 3);
    assert!(world.session.is_at_rest() && world.session.next_timeout().is_none());
}

#[test]
fn lookups_that_came_early_are_told_in_order_and_all_at_once() {
    let mut world = World::with(&peer(), |options| options.in_flight = 1);
    let lookups: Vec<_> =
        (0..100).map(|k| world.session.lookup(Target::key(pair(k % 60).0))).collect();
    while !matches!(&world.session.phase, Phase::Open(open) if open.is_ready()) {
        match world.poll() {
            Some(output) => world.carry_out(output),
            None => assert!(world.step()),
        }
    }
    let mut told = Vec::new();
    // None of them waits for another: nothing is ever under way.
    while let Some(output) = world.poll() {
        match output {
            Output::Errand(Errand::Reply { lookup, outcome: Ok(Some(value)) }) => {
                assert_eq!(value.to_vec(), pair(told.len() % 60).1);
                told.push(lookup);
            }
            Output::Errand(Errand::Tell(_)) => {}
            _ => panic!("a lookup that needs nobody asks for something"),
        }
    }
    assert_eq!(told, lookups);
    assert!(world.session.is_at_rest() && world.session.has_no_lookups());
}

#[test]
fn a_server_that_is_gone_is_not_missed() {
    let mut world = ready();
    world.fate = Box::new(|_, _| Fate::Breaks);
    for k in 0..30 {
        assert_eq!(world.found(Target::key(pair(k).0)), pair(k).1);
    }
    assert_eq!(world.sent.len(), 3);
}

/// A table whose storage fails in its second half.
struct Damaged(Arc<dyn HintSource>);

impl HintSource for Damaged {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset >= self.len() / 2 {
            return Err(Error::corrupted("the disk is failing"));
        }
        self.0.read_at(offset, out)
    }
}

fn with_damaged_table(
    plan: SchemePlan,
    identity: &TableIdentity,
    table: Arc<dyn HintSource>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    registry::client(plan, identity, Arc::new(Damaged(table)), kernels)
}

#[test]
fn a_lookup_whose_record_cannot_be_read_fails_alone_and_silently() {
    let parts = Parts { start_client: with_damaged_table, ..parts() };
    let mut world = World::with_parts(vec![peer()], options(1), parts);
    let outcomes: Vec<_> = (0..KEYS).map(|k| world.get(Target::key(pair(k).0))).collect();
    let failed = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    let blames: Vec<_> = failed.map(Error::blame).collect();
    assert!((100..300).contains(&blames.len()), "{} failed", blames.len());
    assert!(blames.iter().all(|blame| *blame == Blame::Corrupted));
    for (k, outcome) in outcomes.iter().enumerate() {
        let found = outcome.as_ref().map(|value| value.as_ref().unwrap().to_vec());
        assert!(found.is_err() || found.is_ok_and(|found| found == pair(k).1), "key {k}");
    }
    assert_eq!(world.sent.len(), 3, "nothing is asked and nothing fetched again in this session");
    assert!(world.failure.is_none());
}

#[test]
fn digests_that_do_not_come_to_the_tables_are_refused_before_anything_is_fetched() {
    let streamed = Peer::indexed_by(SchemeId::DummySubsets, 50, 4, 1);
    for peer in [
        peer().with_hint_digest([7; 32]),
        streamed.with_hint_digest([7; 32]),
        peer().with_identity(|identity| identity.digest.0[0] ^= 1),
    ] {
        let mut world = World::of(&peer);
        world.run();
        assert_eq!(world.failed_with(), Blame::Integrity);
        assert_eq!(world.kinds(), ["describe"]);
    }
}

#[test]
fn what_is_too_long_for_memory_is_not_taken_into_it() {
    let chosen = ready().session.table().unwrap().clone();
    let announced = PartDescription::new((1 << 30) + 1, [0; 32]);
    let part = chosen.part(PartKind::Table, announced);
    let error = MemoryState::default().open(&part).err().unwrap();
    assert_eq!(error.blame(), Blame::ApiMisuse, "trying again would not help");
    assert!(error.message().contains("state directory"), "{error}");
}

/// Every kind of offline phase: the sizes to receive and to keep are known before anything is
/// received.
#[test]
fn what_is_received_and_kept_is_no_more_than_is_allowed() {
    assert_eq!(options(1).max_download, 4 << 30);
    let schemes = [
        SchemeId::SimplePir,
        SchemeId::Download,
        SchemeId::Dpf,
        SchemeId::DummySubsets,
        SchemeId::DummySubsetsTwo,
        SchemeId::Piano,
        SchemeId::SinglePass,
        SchemeId::TapirMerkle,
    ];
    for scheme in schemes {
        let peer = Peer::indexed_by(scheme, 4096, 20, 1);
        let plan = peer.scheme().plan.clone();
        let streamed = plan.offline.len() + peer.layout.len() as u64;
        let kept = plan.hints_len(&peer.identity());
        let needed = streamed.max(kept);
        assert!(needed >= peer.layout.len() as u64);
        let limited = |most| {
            let mut world = World::with(&peer, |options| options.max_download = most);
            world.run();
            world
        };
        let mut allowed = limited(needed);
        allowed.found(Target::index(5));
        let mut refused = limited(needed - 1);
        assert!(refused.asked_nothing(), "nothing was fetched");
        assert_eq!(refused.failed_with(), Blame::ApiMisuse);
        assert!(refused.keeper.state.pins("server 0").unwrap().is_empty());
        let message = refused.failure.as_ref().unwrap().message();
        assert!(message.contains(&format!("{needed} bytes")), "{scheme}: {message}");
        assert_eq!(refused.reason(), Some(Reason::TooMuchToDownload), "{message}");
    }
}

/// Hints can be larger than what is received for them: SinglePass keeps two bytes for each record.
#[test]
fn hints_larger_than_is_allowed_are_refused_however_little_is_received() {
    let peer = Peer::indexed_by(SchemeId::SinglePass, 4096, 1, 1);
    let plan = peer.scheme().plan.clone();
    let received = plan.offline.len() + peer.layout.len() as u64;
    assert!(plan.hints_len(&peer.identity()) > 2 * received);
    let mut world = World::with(&peer, |options| options.max_download = 2 * received);
    world.run();
    assert_eq!(world.failed_with(), Blame::ApiMisuse);
    assert!(world.failure.as_ref().unwrap().message().contains("must be kept"));
    assert_eq!(world.reason(), Some(Reason::TooMuchToDownload));
    assert!(world.asked_nothing());
}

/// A compared stream is received from each server.
#[test]
fn streams_that_are_compared_count_for_every_server() {
    let peer = Peer::indexed_by(SchemeId::TapirMerkle, 4096, 20, 1);
    let once = peer.scheme().plan.offline.len() + peer.layout.len() as u64;
    World::with(&peer, |options| options.max_download = 2 * once).found(Target::index(3));
    let mut world = World::with(&peer, |options| {
        (options.max_download, options.compare_streams) = (once, true);
    });
    world.run();
    assert_eq!(world.failed_with(), Blame::ApiMisuse);
}
