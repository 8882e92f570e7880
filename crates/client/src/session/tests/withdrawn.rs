//! Lookups that nobody wants any more: what waits for its turn never begins, what has begun takes
//! its course, and servers see the same whatever was wanted.

use super::world::*;
use crate::session::*;
use privet_schemes::SchemeId;
use std::collections::HashSet;

const RECORDS: u64 = 200;
const MANY: u64 = 60;
const SCHEMES: [SchemeId; 4] =
    [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets, SchemeId::Download];

fn world(scheme: SchemeId) -> World {
    let mut world = World::of(&Peer::indexed_by(scheme, RECORDS, 12, 1));
    world.run();
    world
}

fn answers(world: &World) -> usize {
    world.queries().len()
}

/// Hands in many lookups, lets some events happen, and withdraws all of them. Then one more.
/// Returns the world and how many were withdrawn.
fn interrupted(scheme: SchemeId, events: usize, wanted: fn(u64) -> u64) -> (World, usize) {
    let mut world = world(scheme);
    let lookups: HashSet<_> = world.look_up((0..MANY).map(wanted)).into_iter().collect();
    for _ in 0..events {
        world.step();
    }
    let withdrawn = world.session.withdraw(&lookups);
    assert!(withdrawn.iter().all(|lookup| lookups.contains(lookup)));
    assert!(withdrawn.iter().all(|lookup| !world.outcomes.contains_key(lookup)));
    assert_eq!(world.found(Target::index(wanted(MANY))).len(), 12);
    // That one lookup was asked, and what had begun. (Download asks nothing at all.)
    let asks = if scheme == SchemeId::Download { 0 } else { world.peers.len() };
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
            assert!(withdrawn >= MANY as usize - 16 || scheme == SchemeId::Download);
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
            assert!(seen.iter().all(|one| *one == seen[0]), "{scheme} after {events}");
        }
    }
}

#[test]
fn others_lookups_stay() {
    let mut world = world(SchemeId::SimplePir);
    let mine: HashSet<_> = world.look_up(0..40).into_iter().collect();
    let others = world.look_up(0..40);
    world.step();
    let withdrawn = world.session.withdraw(&mine).len();
    assert!((24..40).contains(&withdrawn));
    world.run();
    assert!(others.iter().all(|lookup| world.outcomes.contains_key(lookup)));
    assert_eq!(answers(&world), 80 - withdrawn);
    assert!(world.session.withdraw(&mine).is_empty() && world.session.is_at_rest());
}
