//! The five invariants at the head of the session, for schemes of each kind: without state, of one
//! server and of two; with single-use hints; and with hints that come beside the first queries.

use super::toy::{self, Kind};
use super::world::*;
use crate::session::preparation::Pace;
use crate::session::shared::StartClient;
use crate::session::*;
use privet_core::TableIdentity;
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::offline::HintSource;
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use std::collections::HashSet;
use std::sync::Arc;

const KEYS: usize = 40;

const RECORDS: u64 = 40;
/// A table with so many records that two queries are never equal by chance.
const MANY_RECORDS: u64 = 2000;
const RECORD_LEN: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scheme {
    Toy,
    By(SchemeId),
}

const SCHEMES: [Scheme; 4] = [
    Scheme::By(SchemeId::SimplePir),
    Scheme::By(SchemeId::Dpf),
    Scheme::Toy,
    Scheme::By(SchemeId::DummySubsets),
];

impl Scheme {
    fn peer(self, records: u64) -> Peer {
        match self {
            Scheme::Toy => toy::peer(records, RECORD_LEN, 1, 30, Kind::default()),
            Scheme::By(scheme) => Peer::indexed_by(scheme, records, RECORD_LEN, 1),
        }
    }

    fn world(self, records: u64) -> World {
        let peer = self.peer(records);
        let servers = peer.scheme().plan.servers;
        let mut parts = toy::parts(7);
        if self != Scheme::Toy {
            let pace = Pace { shortest_piece: 64, ..parts.pace };
            parts = Parts { pace, ..super::world::parts() };
        }
        World::with_parts(vec![peer; servers], options(servers), parts)
    }
}

#[test]
fn every_key_is_found_and_misses_are_misses() {
    let mut world = World::of(&Peer::keyed(KEYS));
    for k in 0..KEYS {
        let (key, value) = pair(k);
        assert_eq!(world.found(Target::key(key)), value, "key {k}");
    }
    for k in KEYS..KEYS + 20 {
        assert!(world.get(Target::key(pair(k).0)).unwrap().is_none());
    }
    assert!(world.get(Target::key(b"")).unwrap().is_none());
    assert!(world.failure.is_none());
}

#[test]
fn every_record_is_found_by_index_at_any_shape() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::Download] {
        for (records, len) in [(1, 1), (7, 3), (200, 17)] {
            let mut world = World::of(&Peer::indexed_by(scheme, records, len, 1));
            for index in 0..records {
                assert_eq!(world.found(Target::index(index)), record(index, len), "{scheme}");
            }
            for wrong in [Target::index(records), Target::key(b"key")] {
                assert_eq!(world.get(wrong).unwrap_err().blame(), Blame::ApiMisuse, "{scheme}");
            }
        }
    }
}

#[test]
fn no_more_lookups_are_under_way_than_allowed() {
    let mut limited = options(1);
    limited.in_flight = 3;
    let mut world = World::with_options(vec![Peer::keyed(KEYS)], limited);
    world.run();
    let before = world.sent.len();
    for k in 0..10 {
        world.session.lookup(Target::key(pair(k).0));
    }
    let mut transmitted = 0;
    while let Some(output) = world.poll() {
        transmitted += usize::from(matches!(output, Output::Errand(Errand::Send { .. })));
    }
    assert_eq!(
        (before, transmitted),
        (3, 3),
        "describe, layout and hint before; then three of ten queries"
    );
}

type Traffic = Vec<(usize, &'static str, usize)>;

/// Enough lookups to look up each index, and to reach the next generation of hints.
const LOOKUPS: u64 = 340;

/// The outcomes of `lookups` one after another, and the traffic.
fn history(
    scheme: Scheme,
    lookups: u64,
    targets: impl Fn(u64) -> u64,
    disturb: impl FnOnce(&mut World),
) -> (Vec<Result<Vec<u8>>>, Traffic) {
    let mut world = scheme.world(RECORDS);
    world.run();
    disturb(&mut world);
    let outcomes = (0..lookups).map(|k| {
        let value = world.get(Target::index(targets(k) % RECORDS));
        value.map(|value| value.unwrap().to_vec())
    });
    (outcomes.collect(), world.trace())
}

#[test]
fn traffic_depends_on_the_number_of_lookups_alone() {
    for scheme in SCHEMES {
        let (_, reference) = history(scheme, LOOKUPS, |_| 0, |_| ());
        let count = |what| reference.iter().filter(|sent| sent.1 == what).count();
        let servers = scheme.peer(RECORDS).scheme().plan.servers;
        assert_eq!(count("answer"), servers * LOOKUPS as usize, "repeats are queries too");
        let has_hints = matches!(scheme, Scheme::Toy | Scheme::By(SchemeId::DummySubsets));
        assert_eq!(count("fetch") > 6, has_hints, "{scheme:?}: the next generation was streamed");
        let sequences: [fn(u64) -> u64; 4] =
            [|k| k, |k| RECORDS - 1 - k % RECORDS, |k| k % 2, |k| k * k * 7 + k / 5];
        for targets in sequences {
            let (outcomes, trace) = history(scheme, LOOKUPS, targets, |_| ());
            assert_eq!(trace, reference, "{scheme:?}");
            for (k, outcome) in outcomes.into_iter().enumerate() {
                let index = targets(k as u64) % RECORDS;
                let expected = record(index, RECORD_LEN);
                assert_eq!(outcome.unwrap(), expected, "{scheme:?}: lookup {k}");
            }
        }
    }
}

#[test]
fn each_of_several_equal_lookups_is_a_query_of_its_own_also_of_several_clients() {
    for scheme in SCHEMES {
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let mut world = scheme.world(MANY_RECORDS);
            let lookups = world.look_up([5; 20]);
            world.run();
            for lookup in lookups {
                assert_eq!(world.value(lookup), record(5, RECORD_LEN), "{scheme:?}");
            }
            assert_eq!(world.queries_to(0).len(), 20, "{scheme:?}");
            for query in world.queries() {
                assert!(seen.insert(query), "{scheme:?}: a query was sent twice");
            }
        }
    }
}

/// A hint that cannot be read.
struct Unreadable(u64);

impl HintSource for Unreadable {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
        Err(Error::corrupted("the disk is failing"))
    }
}

fn with_unreadable_hint(
    plan: SchemePlan,
    identity: &TableIdentity,
    hint: Arc<dyn HintSource>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    registry::client(plan, identity, Arc::new(Unreadable(hint.len())), kernels)
}

#[test]
fn a_failed_recover_changes_nothing_that_is_sent() {
    let peer = Peer::keyed(20);
    let traffic = |start_client: StartClient| {
        let parts = Parts { start_client, ..parts() };
        let mut world = World::with_parts(vec![peer.clone()], options(1), parts);
        let outcomes: Vec<_> = (0..6).map(|k| world.get(Target::key(pair(k).0)).is_ok()).collect();
        (outcomes, world.trace())
    };
    let (good, good_trace) = traffic(registry::client);
    let (bad, bad_trace) = traffic(with_unreadable_hint);
    assert_eq!(good, [true; 6]);
    assert_eq!(bad, [false; 6]);
    assert_eq!(good_trace, bad_trace);
}

#[test]
fn a_useless_answer_changes_nothing_that_is_sent() {
    for scheme in SCHEMES {
        let (good, reference) = history(scheme, 20, |k| k % 3, |_| ());
        assert!(good.iter().all(Result::is_ok));
        let answer_len = scheme.peer(RECORDS).scheme().plan.answer_len;
        for useless in [vec![0xee; answer_len], vec![0xee; answer_len - 1], Vec::new()] {
            let is_short = useless.len() < answer_len;
            let (bad, trace) = history(
                scheme,
                20,
                |k| k % 3,
                |world| world.change_answers(move |_, answer| answer.clone_from(&useless)),
            );
            // On so small a table two wrong answers may cancel, if the hint that the first
            // completed serves the second: then a record is right by chance.
            let pairs = bad.iter().zip(&good);
            let right = pairs.filter(|(bad, good)| bad.as_ref().ok() == good.as_ref().ok()).count();
            assert!(right < 5, "{scheme:?}: {right} records of {} are right", good.len());
            assert!(!is_short || bad.iter().all(Result::is_err), "{scheme:?}");
            assert_eq!(trace, reference, "{scheme:?}");
        }
    }
}

#[test]
fn queries_go_out_before_records_are_read() {
    let mut limited = options(1);
    limited.in_flight = 1;
    let mut world = World::with_options(vec![Peer::keyed(20)], limited);
    world.run();
    let first = world.session.lookup(Target::key(pair(0).0));
    let second = world.session.lookup(Target::key(pair(1).0));
    let Some(Output::Errand(Errand::Send { exchange, request, .. })) = world.poll() else {
        panic!("no query")
    };
    assert!(world.poll().is_none(), "the second waits for its turn");
    let response = world.peers[0].respond(&request).remove(0).unwrap();
    world.session.handle_message(exchange, response, world.now);
    assert!(
        matches!(world.poll(), Some(Output::Errand(Errand::Send { .. }))),
        "the second query first"
    );
    let Some(Output::Errand(Errand::Reply { lookup, outcome: Ok(Some(_)) })) = world.poll() else {
        panic!("no record")
    };
    assert_eq!(lookup, first);
    assert!(second > first);
}

#[test]
fn every_message_names_table_version_and_parameters() {
    for scheme in SCHEMES.into_iter().chain([Scheme::By(SchemeId::SinglePass)]) {
        let mut world = scheme.world(RECORDS);
        for k in 0..20 {
            assert_eq!(world.found(Target::index(k)), record(k, RECORD_LEN), "{scheme:?}");
        }
        let (identity, digest) =
            (world.peers[0].identity(), world.peers[0].scheme().parameter_digest);
        for (_, request) in &world.sent {
            let named = match request {
                Request::Describe(_) => continue,
                Request::Prepare(asked) => (asked.table, asked.epoch, asked.parameter_digest),
                Request::Fetch(fetch) => (fetch.table, fetch.epoch, fetch.parameter_digest),
                Request::Answer(answer) => (answer.table, answer.epoch, answer.parameter_digest),
            };
            assert_eq!(named, (identity.id, identity.epoch, digest), "{scheme:?}");
        }
    }
}

#[test]
fn a_server_that_returns_with_another_story_gets_no_further_query_and_streams_nothing() {
    let changes: [fn(&mut TableIdentity); 3] = [
        |identity| identity.epoch.0 += 1,
        |identity| identity.digest.0[0] ^= 1,
        |identity| identity.id.0[0] ^= 1,
    ];
    for (scheme, change) in
        SCHEMES.into_iter().flat_map(|scheme| changes.map(|change| (scheme, change)))
    {
        let mut world = scheme.world(RECORDS);
        world.found(Target::index(0));
        world.peers[0] = scheme.peer(RECORDS).with_identity(change);
        world.fates[0] = Fate::Breaks;
        let lookup = world.look_up([1])[0];
        let before = world.queries_to(0).len();
        while world.queries_to(0).len() == before {
            assert!(world.step());
        }
        world.fates[0] = Fate::Arrives;
        let before = world.sent.len();
        world.run();
        assert_eq!(world.kinds()[before..], ["describe"], "{scheme:?}");
        assert_eq!(world.outcomes[&lookup].as_ref().unwrap_err().blame(), Blame::Integrity);
        assert_eq!(world.failed_with(), Blame::Integrity);
        let again = world.get(Target::index(1)).unwrap_err();
        assert_eq!(again.blame(), Blame::Integrity, "the session is over");
        assert_eq!(world.sent.len(), before + 1);
    }
}

#[test]
fn secrets_do_not_print() {
    assert_eq!(
        format!("{:?} {:?}", Target::key(b"openssl"), Target::index(77)),
        "Key(..) Index(..)"
    );
}
