//! Keys that may lie in one of two records: both records are fetched for every key, and nothing
//! shows which of them held it.

use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::*;
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use std::collections::HashSet;

const KEYS: usize = 60;

fn peer(scheme: SchemeId) -> Peer {
    Peer::keyed_as(KeyMapKind::Cuckoo, scheme, KEYS)
}

fn world_of(peer: &Peer) -> World {
    let servers = peer.scheme().plan.servers;
    World::with_options(vec![peer.clone(); servers], options(servers))
}

fn toy_world_of(kind: Kind, total: u64) -> World {
    let servers = 2;
    let peer = toy::serve(peer(SchemeId::SimplePir), servers, total, kind);
    let session = Session::with_parts(options(servers), Duration::ZERO, toy::parts(1)).unwrap();
    World::with_session(vec![peer; servers], session)
}

/// A key that is in the table, or not; and its value.
fn key(k: usize) -> (Target, Option<Vec<u8>>) {
    let (key, value) = pair(k);
    (Target::key(key), (k < KEYS).then_some(value))
}

fn get(world: &mut World, k: usize) -> Option<Vec<u8>> {
    world.get(key(k).0).unwrap().map(|value| value.to_vec())
}

#[test]
fn every_key_is_found_in_either_and_costs_the_same_as_one_that_is_nowhere() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets, SchemeId::Download] {
        let peer = peer(scheme);
        let servers = peer.scheme().plan.servers;
        let each = if scheme == SchemeId::Download { 0 } else { 2 };
        let mut reference = None;
        for k in 0..KEYS + 20 {
            let mut world = world_of(&peer);
            world.run();
            let before = world.sent.len();
            assert_eq!(get(&mut world, k), key(k).1, "{scheme}: key {k}");
            let traffic = world.trace()[before..].to_vec();
            let answers = traffic.iter().filter(|sent| sent.1 == "answer").count();
            assert_eq!(answers, each * servers);
            assert_eq!(*reference.get_or_insert(traffic.clone()), traffic, "{scheme}: key {k}");
        }
    }
}

#[test]
fn both_fetches_go_out_before_anything_comes_back() {
    for mut world in [world_of(&peer(SchemeId::Dpf)), toy_world_of(Kind::default(), 30)] {
        world.run();
        let before = world.sent.len();
        for k in 0..20 {
            world.session.lookup(key(k).0);
        }
        while let Some(output) = world.poll() {
            world.carry_out(output);
        }
        let queries = world.sent[before..]
            .iter()
            .filter(|(_, request)| matches!(request, Request::Answer(_)));
        let sent: Vec<_> = queries.map(|(server, _)| *server).collect();
        assert_eq!(sent, [0, 1].repeat(options(2).in_flight), "all that may be under way");
        world.run();
        assert_eq!(world.outcomes.len(), 20);
    }
    let mut one_at_a_time = options(2);
    one_at_a_time.in_flight = 1;
    let mut world = World::with_options(vec![peer(SchemeId::Dpf); 2], one_at_a_time);
    world.run();
    for k in 0..3 {
        world.session.lookup(key(k).0);
    }
    while let Some(output) = world.poll() {
        world.carry_out(output);
    }
    assert_eq!([0, 1].map(|server| world.queries_to(server).len()), [2, 2], "of one lookup");
}

#[test]
fn a_lookup_of_which_either_fetch_fails_has_failed() {
    for spoilt in [0, 1] {
        let mut world = world_of(&peer(SchemeId::SimplePir));
        world.run();
        let mut answers = 0;
        world.falsify = Box::new(move |request, mut responses| {
            if let (Request::Answer(_), Ok(Response::Answered(response))) =
                (request, &mut responses[0])
            {
                if answers % 2 == spoilt {
                    response.answer = Vec::new().into();
                }
                answers += 1;
            }
            responses
        });
        for k in 0..KEYS + 5 {
            let error = world.get(key(k).0).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage, "key {k}");
        }
        assert_eq!(world.queries_to(0).len(), 2 * (KEYS + 5));
    }
}

#[test]
fn a_session_that_ends_fails_each_lookup_once() {
    let mut world = world_of(&peer(SchemeId::SimplePir));
    world.run();
    let lookups: Vec<_> = (0..12).map(|k| world.session.lookup(key(k).0)).collect();
    while let Some(output) = world.poll() {
        world.carry_out(output);
    }
    world.session.fail(Error::integrity("another table"));
    world.run();
    assert_eq!(world.outcomes.len(), lookups.len());
    assert!(lookups.iter().all(|lookup| world.outcomes[lookup].is_err()));
}

/// A generation has an odd number of queries, so that sometimes a key's two fetches belong to
/// different generations.
#[test]
fn single_use_hints_serve_each_fetch_across_generations() {
    for endless in [false, true] {
        let kind = Kind { flow: Flow::Asked, endless, ..Kind::default() };
        let mut world = toy_world_of(kind, 15);
        for k in 0..KEYS + 10 {
            assert_eq!(get(&mut world, k), key(k).1, "endless: {endless}, key {k}");
        }
        let hints: HashSet<_> =
            world.queries_to(0).iter().map(|query| toy::hint_of(query)).collect();
        assert_eq!((hints.len(), world.journal.len()), (2 * (KEYS + 10), 2 * (KEYS + 10)));
    }
}
