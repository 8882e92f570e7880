//! Lookups that nobody wants any more: what waits for its turn never begins, what has begun takes
//! its course, and servers see the same whatever was wanted.

use super::world::*;
use crate::session::*;
use privet_schemes::SchemeId;
use std::collections::HashSet;

const RECORDS: u64 = 200;
const MANY: u64 = 60;
const SCHEMES: [(SchemeId, usize); 4] = [
    (SchemeId::SimplePir, 1),
    (SchemeId::Dpf, 2),
    (SchemeId::DummySubsets, 1),
    (SchemeId::Download, 1),
];

fn world(scheme: SchemeId, servers: usize) -> World {
    let peers = (0..servers).map(|_| Peer::indexed_by(scheme, RECORDS, 12, 1)).collect();
    let mut world = World::with_options(peers, options(servers));
    world.run();
    world
}

fn answers(world: &World) -> usize {
    world.trace().iter().filter(|(_, kind, _)| *kind == "answer").count()
}

/// Hands in many lookups, lets some events happen, and withdraws all of them. Then one more.
/// Returns the world and how many were withdrawn.
fn interrupted(
    (scheme, servers): (SchemeId, usize),
    events: usize,
    wanted: fn(u64) -> u64,
) -> (World, usize) {
    let mut world = world(scheme, servers);
    let lookups: HashSet<_> =
        (0..MANY).map(|k| world.session.lookup(Target::index(wanted(k)))).collect();
    for _ in 0..events {
        world.step();
    }
    let withdrawn = world.session.withdraw(&lookups);
    assert!(withdrawn.iter().all(|lookup| lookups.contains(lookup)));
    assert!(withdrawn.iter().all(|lookup| !world.outcomes.contains_key(lookup)));
    assert_eq!(world.found(Target::index(wanted(MANY))).len(), 12);
    // That one lookup was asked, and what had begun. (Download asks nothing at all.)
    let asks = if scheme == SchemeId::Download { 0 } else { servers };
    assert_eq!(answers(&world), (MANY as usize - withdrawn.len() + 1) * asks, "{scheme}");
    // What had begun has its outcome, and what was withdrawn has none.
    world.run();
    let open = lookups.iter().filter(|lookup| !world.outcomes.contains_key(lookup));
    assert_eq!(open.copied().collect::<HashSet<_>>(), withdrawn.iter().copied().collect());
    assert!(world.outcomes.values().all(|outcome| matches!(outcome, Ok(Some(_)))));
    assert!(world.session.is_at_rest() || scheme == SchemeId::DummySubsets);
    (world, withdrawn.len())
}

#[test]
fn the_next_lookup_comes_before_what_is_withdrawn_and_after_what_has_begun() {
    for scheme in SCHEMES {
        // Nothing has begun before the first event.
        assert_eq!(interrupted(scheme, 0, |k| k).1, MANY as usize);
        for events in [1, 2, 5] {
            let withdrawn = interrupted(scheme, events, |k| k).1;
            assert!(withdrawn < MANY as usize, "some have begun");
            assert!(withdrawn >= MANY as usize - 16 || scheme.0 == SchemeId::Download);
        }
    }
}

#[test]
fn servers_see_the_same_whatever_was_wanted() {
    for scheme in SCHEMES {
        for events in [0, 1, 4, 9] {
            let seen = [|k| k, |_| 7, |k| RECORDS - 1 - k].map(|wanted: fn(u64) -> u64| {
                let (world, withdrawn) = interrupted(scheme, events, wanted);
                (world.trace(), withdrawn, world.now, world.journal.len())
            });
            assert!(seen.iter().all(|one| *one == seen[0]), "{scheme:?} after {events}");
        }
    }
}

#[test]
fn others_lookups_stay() {
    let mut world = world(SchemeId::SimplePir, 1);
    let mine: HashSet<_> = (0..40).map(|k| world.session.lookup(Target::index(k))).collect();
    let others: Vec<_> = (0..40).map(|k| world.session.lookup(Target::index(k))).collect();
    world.step();
    let withdrawn = world.session.withdraw(&mine).len();
    assert!((24..40).contains(&withdrawn));
    world.run();
    assert!(others.iter().all(|lookup| world.outcomes.contains_key(lookup)));
    assert_eq!(answers(&world), 80 - withdrawn);
    assert!(world.session.withdraw(&mine).is_empty() && world.session.is_at_rest());
}
