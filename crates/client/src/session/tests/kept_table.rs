//! A scheme whose client keeps the whole table: once the table is there, no lookup sends anything,
//! whatever its target and its outcome.

use super::world::*;
use crate::session::timetable::Measuring;
use crate::session::*;
use crate::state::{MemoryState, Opened, State};
use privet_core::{Reason, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::offline::{HintSource, StreamConsumer as _};
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_wire::{PartDescription, PartKind, SchemeDescription};
use std::sync::Arc;

const KEYS: usize = 400;

fn peer() -> Peer {
    Peer::keyed_by(SchemeId::Download, KEYS)
}

/// A world whose session has the table.
fn ready() -> World {
    let mut world = World::new(peer());
    world.run();
    assert!(world.session.is_at_rest());
    world
}

fn kinds(world: &World) -> Vec<&'static str> {
    world.trace().iter().map(|sent| sent.1).collect()
}

#[test]
fn the_table_is_fetched_once_and_lookups_send_nothing() {
    let mut world = ready();
    assert_eq!(kinds(&world), ["describe", "fetch", "fetch"], "layout and table");
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
fn any_record_of_any_shape_is_the_tables() {
    for (records, len) in [(1, 1), (7, 3), (50, 17)] {
        let mut world = World::new(Peer::indexed_by(SchemeId::Download, records, len, 1));
        for index in 0..records {
            let expected: Vec<u8> =
                (index * len..(index + 1) * len).map(|i| (i * 13 + i / 251 + 1) as u8).collect();
            assert_eq!(world.found(Target::index(index)), expected);
        }
        assert_eq!(world.get(Target::index(records)).unwrap_err().blame(), Blame::ApiMisuse);
        assert_eq!(world.sent.len(), 3);
    }
}

#[test]
fn lookups_that_came_early_are_told_in_order_and_all_at_once() {
    let mut limited = options(1);
    limited.in_flight = 1;
    let mut world = World::with_options(vec![peer()], limited);
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

#[test]
fn a_stored_table_is_not_fetched_and_a_partly_stored_one_only_to_its_end() {
    let first = ready();
    let mut second = World::new(peer());
    second.keeper.state = first.keeper.state;
    assert_eq!(second.found(Target::key(pair(5).0)), pair(5).1);
    assert_eq!(kinds(&second), ["describe"]);

    let mut third = World::new(peer());
    third.fate = Box::new(|_, request| match request {
        Request::Fetch(request) if request.part == PartKind::Table => Fate::Cut(1),
        _ => Fate::Arrives,
    });
    // The session ends in the middle of the table.
    while kinds(&third).iter().filter(|kind| **kind == "fetch").count() < 3 {
        assert!(third.step());
    }
    let mut fourth = World::new(peer());
    fourth.keeper.state = third.keeper.state;
    assert_eq!(fourth.found(Target::key(pair(5).0)), pair(5).1);
    let fetched: Vec<_> =
        fourth.sent.iter().filter(|(_, request)| matches!(request, Request::Fetch(_))).collect();
    let [(_, Request::Fetch(rest))] = fetched[..] else { panic!("one fetch") };
    assert_eq!((rest.part, rest.offset, rest.len), (PartKind::Table, 5000, 0));
}

#[test]
fn a_download_goes_on_over_any_mixture_of_faults() {
    for seed in 0..60 {
        let mut world = World::new(peer());
        let mut dice = Dice(seed);
        world.fate = Box::new(move |_, _| match dice.roll(10) {
            0 => Fate::Lost,
            1 => Fate::Breaks,
            2 => Fate::TurnedAway,
            3 => Fate::Late(dice.roll(100_000)),
            4 => Fate::Cut(dice.roll(3) as usize),
            5 => Fate::Twice,
            _ => Fate::Arrives,
        });
        for k in 0..5 {
            assert_eq!(world.found(Target::key(pair(k).0)), pair(k).1);
        }
        assert!(world.failure.is_none() && world.queries().is_empty());
    }
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
    let parts = Parts {
        start_client: with_damaged_table,
        measuring: Measuring::brief(),
        ..Parts::of_the_registry().unwrap()
    };
    let session = Session::with_parts(options(1), Duration::ZERO, parts).unwrap();
    let mut world = World::with_session(vec![peer()], session);
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
    let honest = peer();
    let SchemeDescription { plan, .. } = honest.scheme().clone();
    let wrong = PartDescription::new(honest.records.len() as u64, [7; 32]);
    let scheme = SchemeDescription::new(plan, &honest.identity(), Some(wrong)).unwrap();
    let mut liar = honest.clone();
    let layout = described(&honest.layout);
    liar.description = describe(&[("table", honest.identity(), layout, scheme)]);
    let another_digest = honest.with_identity(|identity| identity.digest.0[0] ^= 1);
    for peer in [liar, another_digest] {
        let mut world = World::new(peer);
        world.run();
        assert_eq!(world.failed_with(), Blame::Integrity);
        assert_eq!(kinds(&world), ["describe"]);
    }
}

#[test]
fn a_table_of_other_bytes_than_announced_is_not_kept() {
    let mut world = World::new(peer());
    world.falsify = Box::new(|request, mut responses| {
        if let (Request::Fetch(request), Ok(Response::Chunk(chunk))) = (request, &mut responses[0])
            && request.part == PartKind::Table
        {
            chunk.data = vec![7; chunk.data.len()].into();
        }
        responses
    });
    let error = world.get(Target::key(pair(1).0)).unwrap_err();
    assert_eq!((error.blame(), world.failed_with()), (Blame::Integrity, Blame::Integrity));
    assert!(error.message().starts_with("the table: "), "{error}");
    let chosen = world.session.table().unwrap();
    let part = chosen.part(PartKind::Table, chosen.scheme.hint.unwrap());
    let Opened::Have { part: PartState::Partial(download), .. } =
        world.keeper.state.open(&part).unwrap()
    else {
        panic!("it was kept")
    };
    assert_eq!(download.next_offset(), 0);
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
        let limited = |max_download| {
            let limited = SessionOptions { max_download, ..options(plan.servers) };
            let mut world = World::with_options(vec![peer.clone(); plan.servers], limited);
            world.run();
            world
        };
        let mut allowed = limited(needed);
        allowed.found(Target::index(5));
        let mut refused = limited(needed - 1);
        assert!(kinds(&refused).iter().all(|kind| *kind == "describe"), "nothing was fetched");
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
    let limited = SessionOptions { max_download: 2 * received, ..options(2) };
    let mut world = World::with_options(vec![peer; 2], limited);
    world.run();
    assert_eq!(world.failed_with(), Blame::ApiMisuse);
    assert!(world.failure.as_ref().unwrap().message().contains("must be kept"));
    assert_eq!(world.reason(), Some(Reason::TooMuchToDownload));
    assert!(kinds(&world).iter().all(|kind| *kind == "describe"));
}

/// A compared stream is received from each server.
#[test]
fn streams_that_are_compared_count_for_every_server() {
    let peer = Peer::indexed_by(SchemeId::TapirMerkle, 4096, 20, 1);
    let once = peer.scheme().plan.offline.len() + peer.layout.len() as u64;
    let limited = SessionOptions { max_download: 2 * once, ..options(2) };
    let mut world = World::with_options(vec![peer.clone(); 2], limited);
    world.found(Target::index(3));
    let limited = SessionOptions { max_download: once, compare_streams: true, ..options(2) };
    let mut world = World::with_options(vec![peer; 2], limited);
    world.run();
    assert_eq!(world.failed_with(), Blame::ApiMisuse);
}
