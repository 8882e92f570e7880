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

fn toy_world_of(kind: Kind, total: u64) -> World {
    toy::world(&toy::serve(peer(SchemeId::SimplePir), 2, total, kind))
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
fn both_fetches_go_out_before_anything_comes_back() {
    for mut world in [World::of(&peer(SchemeId::Dpf)), toy_world_of(Kind::default(), 30)] {
        world.run();
        let before = world.sent.len();
        for k in 0..20 {
            world.session.lookup(key(k).0);
        }
        world.carry_out_all();
        let queries = world.sent[before..]
            .iter()
            .filter(|(_, request)| matches!(request, Request::Answer(_)));
        let sent: Vec<_> = queries.map(|(server, _)| *server).collect();
        assert_eq!(sent, [0, 1].repeat(options(2).in_flight), "all that may be under way");
        world.run();
        assert_eq!(world.outcomes.len(), 20);
    }
}

#[test]
fn a_lookup_of_which_either_fetch_fails_has_failed() {
    let in_parts = super::parts::served_in_parts(SchemeId::SimplePir);
    for (peer, fetches) in [(peer(SchemeId::SimplePir), 2), (in_parts, super::parts::PARTS)] {
        for spoilt in 0..fetches {
            let mut world = World::of(&peer);
            let mut answers = 0;
            world.change_answers(move |_, answer| {
                if answers % fetches == spoilt {
                    answer.clear();
                }
                answers += 1;
            });
            // Of keys in the stash, with one part and with several, and of missing ones.
            for k in 0..KEYS + 5 {
                let error = world.get(key(k).0).unwrap_err();
                assert_eq!(error.blame(), Blame::InvalidMessage, "key {k}");
            }
            assert_eq!(world.queries_to(0).len(), fetches * (KEYS + 5));
        }
    }
}

#[test]
fn a_session_that_ends_fails_each_lookup_once() {
    let mut world = World::of(&peer(SchemeId::SimplePir));
    world.run();
    let lookups: Vec<_> = (0..12).map(|k| world.session.lookup(key(k).0)).collect();
    world.carry_out_all();
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

/// With single-use hints, the second query may have to wait until answers are read. So a driver
/// does not hold the first one back for it.
#[test]
fn queries_wait_for_others_of_their_lookup_only_where_none_waits_for_answers() {
    let first_asks_more = |mut world: World| {
        world.run();
        world.session.lookup(Target::key(pair(5).0));
        loop {
            let output = world.poll().expect("a query leaves");
            let is_query =
                matches!(output, Output::Errand(Errand::Send { request: Request::Answer(_), .. }));
            world.carry_out(output);
            if is_query {
                return world.session.asks_more();
            }
        }
    };
    assert!(first_asks_more(World::of(&peer(SchemeId::SimplePirPacked))));
    assert!(!first_asks_more(toy_world_of(Kind::default(), 40)));
}
