//! The five invariants at the head of the session.

use super::world::*;
use crate::session::shared::StartClient;
use crate::session::timetable::Measuring;
use crate::session::*;
use privet_core::TableIdentity;
use privet_kernels::Kernels;
use privet_schemes::offline::HintSource;
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use std::collections::HashSet;
use std::sync::Arc;

const KEYS: usize = 40;

#[test]
fn every_key_is_found_and_misses_are_misses() {
    let mut world = World::new(Peer::keyed(KEYS));
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
    for (records, len) in [(1, 1), (7, 3), (50, 17)] {
        let mut world = World::new(Peer::indexed(records, len, 1));
        for index in 0..records {
            let expected: Vec<u8> =
                (index * len..(index + 1) * len).map(|i| (i * 13 + i / 251 + 1) as u8).collect();
            assert_eq!(world.found(Target::index(index)), expected);
        }
        let error = world.get(Target::index(records)).unwrap_err();
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert_eq!(world.get(Target::key(b"key")).unwrap_err().blame(), Blame::ApiMisuse);
    }
}

#[test]
fn lookups_handed_in_early_and_together_keep_their_identity() {
    let mut world = World::new(Peer::keyed(KEYS));
    let lookups: Vec<_> = (0..KEYS).map(|k| world.session.lookup(Target::key(pair(k).0))).collect();
    world.run();
    for (k, lookup) in lookups.iter().enumerate() {
        assert_eq!(world.outcomes[lookup].as_ref().unwrap().as_ref().unwrap().to_vec(), pair(k).1);
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

/// The whole traffic of a session that looks up `target` twice: requests, order, lengths.
fn trace_of(peer: &Peer, target: &Target) -> Vec<(usize, &'static str, usize)> {
    let mut world = World::new(peer.clone());
    let _ = world.get(target.clone());
    let _ = world.get(target.clone());
    world.trace()
}

#[test]
fn traffic_is_the_same_for_every_index() {
    let peer = Peer::indexed(37, 5, 1);
    let reference = trace_of(&peer, &Target::index(0));
    assert_eq!(
        reference.iter().filter(|sent| sent.1 == "answer").count(),
        2,
        "a repeat is a query too"
    );
    for index in 1..37 {
        assert_eq!(trace_of(&peer, &Target::index(index)), reference, "index {index}");
    }
}

#[test]
fn traffic_is_the_same_for_hits_misses_and_keys_in_the_stash() {
    let peer = Peer::keyed(20);
    let reference = trace_of(&peer, &Target::key(pair(0).0));
    for k in 0..30 {
        assert_eq!(trace_of(&peer, &Target::key(pair(k).0)), reference, "key {k}");
    }
}

#[test]
fn equal_keys_cost_a_query_each() {
    let mut world = World::new(Peer::keyed(20));
    world.run();
    let before = world.sent.len();
    for _ in 0..5 {
        world.session.lookup(Target::key(pair(3).0));
    }
    world.run();
    assert_eq!(world.sent.len() - before, 5);
}

#[test]
fn no_two_queries_are_equal_between_or_within_clients() {
    let peer = Peer::keyed(20);
    let mut seen = HashSet::new();
    for _ in 0..8 {
        let mut world = World::new(peer.clone());
        for _ in 0..4 {
            world.found(Target::key(pair(5).0));
        }
        for query in world.queries() {
            assert!(seen.insert(query), "a query was sent twice");
        }
    }
    assert_eq!(seen.len(), 32);
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
    let traffic = |start: StartClient| {
        let parts = Parts {
            start_client: start,
            measuring: Measuring::brief(),
            ..Parts::of_the_registry().unwrap()
        };
        let session = Session::with_parts(options(1), Duration::ZERO, parts).unwrap();
        let mut world = World::with_session(vec![peer.clone()], session);
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
    let peer = Peer::keyed(20);
    let traffic = |len_change: Option<usize>| {
        let mut world = World::new(peer.clone());
        world.falsify = Box::new(move |_, mut responses| {
            if let (Some(change), Ok(Response::Answered(response))) =
                (len_change, &mut responses[0])
            {
                response.answer = vec![0xee; response.answer.len() - change].into();
            }
            responses
        });
        let outcomes: Vec<_> = (0..6).map(|k| world.get(Target::key(pair(k).0))).collect();
        (outcomes, world.trace())
    };
    let (good, good_trace) = traffic(None);
    let (short, short_trace) = traffic(Some(1));
    let (wrong, wrong_trace) = traffic(Some(0));
    assert!(good.iter().all(Result::is_ok));
    assert!(
        short.iter().all(|outcome| outcome.as_ref().unwrap_err().blame() == Blame::InvalidMessage)
    );
    assert!(wrong.iter().zip(&good).any(|(wrong, good)| wrong.as_ref().ok() != good.as_ref().ok()));
    assert_eq!(good_trace, short_trace);
    assert_eq!(good_trace, wrong_trace);
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
    let mut world = World::new(Peer::keyed(20));
    world.found(Target::key(pair(1).0));
    let (identity, digest) = (world.peers[0].identity(), world.peers[0].scheme().parameter_digest);
    let expected = (identity.id, identity.epoch, digest);
    let named = world.sent.iter().filter_map(|(_, request)| match request {
        Request::Describe(_) | Request::Prepare(_) => None,
        Request::Fetch(request) => Some((request.table, request.epoch, request.parameter_digest)),
        Request::Answer(request) => Some((request.table, request.epoch, request.parameter_digest)),
    });
    let named: Vec<_> = named.collect();
    assert_eq!(named, [expected; 3], "layout, hint, one query");
}

#[test]
fn secrets_do_not_print() {
    assert_eq!(
        format!("{:?} {:?}", Target::key(b"openssl"), Target::index(77)),
        "Key(..) Index(..)"
    );
}
