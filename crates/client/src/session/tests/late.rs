//! Hints that come beside the first queries. SimplePIR's clients read their hint only to recover a
//! record, so they stand for all schemes whose clients can ask first.

use super::world::*;
use crate::session::*;
use privet_wire::PartKind;

fn world(peer: Peer) -> World {
    let parts = Parts { queries_first: |_| true, ..parts() };
    World::with_parts(vec![peer], options(1), parts)
}

/// The same, in which the fate of the hint is this.
fn with_fate(peer: Peer, fate: Fate) -> World {
    let mut world = world(peer);
    world.fate = Box::new(move |_, request| match is_for(PartKind::Hint, request) {
        true => fate,
        false => Fate::Arrives,
    });
    world
}

/// How many bytes of the hint have come.
fn received(world: &World) -> usize {
    let progress = world.events.iter().filter(|event| event.contains("part: Hint"));
    progress.filter(|event| event.contains("fetched: true")).count()
}

#[test]
fn the_first_queries_leave_before_anything_of_the_hint_has_come() {
    let mut world = world(Peer::keyed(60));
    let lookups: Vec<_> = (0..3).map(|k| world.session.lookup(Target::key(&pair(k).0))).collect();
    while world.queries().len() < 3 {
        assert!(world.step());
        assert_eq!(received(&world), 0, "{:?}", world.kinds());
    }
    assert_eq!(world.kinds(), ["describe", "fetch", "fetch", "answer", "answer", "answer"]);
    assert!(world.outcomes.is_empty());
    world.run();
    assert!(received(&world) > 3, "the hint comes in several chunks");
    for (k, lookup) in lookups.iter().enumerate() {
        assert_eq!(world.value(*lookup), pair(k).1);
    }
    // Nothing follows from the hint's coming.
    assert_eq!(world.kinds().len(), 6);
}

#[test]
fn answers_that_came_first_wait_for_the_hint() {
    let mut world = with_fate(Peer::keyed(60), Fate::Late(500));
    let lookup = world.session.lookup(Target::key(&pair(5).0));
    while world.now < Duration::from_millis(400) {
        assert!(world.step());
        assert!(world.outcomes.is_empty());
    }
    assert!(!world.session.is_at_rest());
    world.run();
    assert_eq!(world.value(lookup), pair(5).1);
    assert!(world.session.is_at_rest());
}

#[test]
fn whoever_ends_early_waits_for_the_hint_too() {
    let mut world = with_fate(Peer::indexed(40, 10, 1), Fate::Late(500));
    while world.now < Duration::from_millis(400) {
        assert!(world.step());
    }
    // Otherwise the next process would fetch it again.
    assert!(world.session.table().is_some() && !world.session.is_at_rest());
    world.run();
    assert!(world.session.is_at_rest());
}

#[test]
fn a_hint_that_came_late_is_kept() {
    let peer = Peer::keyed(60);
    let mut first = world(peer.clone());
    first.found(Target::key(&pair(1).0));
    let mut second = world(peer);
    std::mem::swap(&mut second.keeper, &mut first.keeper);
    assert_eq!(second.found(Target::key(&pair(2).0)), pair(2).1);
    assert_eq!(second.kinds(), ["describe", "answer"]);
}

#[test]
fn a_wrong_hint_ends_the_session_and_says_nothing_about_what_was_wanted() {
    let traces = [0, 3, 7, 90].map(|k| {
        let mut world = world(Peer::keyed(60));
        world.falsify = Box::new(|request, mut responses| {
            if is_for(PartKind::Hint, request)
                && let Some(Ok(Response::Chunk(chunk))) = responses.get_mut(2)
            {
                let mut data = chunk.data.to_vec();
                data[100] ^= 1;
                chunk.data = data.into();
            }
            responses
        });
        let error = world.get(Target::key(&pair(k).0)).unwrap_err();
        assert_eq!(error.blame(), Blame::Integrity);
        assert_eq!(world.failed_with(), Blame::Integrity);
        world.trace()
    });
    assert!(traces.iter().all(|trace| *trace == traces[0]));
}

#[test]
fn lookups_fail_if_the_hint_does_not_come_and_the_next_one_asks_again() {
    let mut world = with_fate(Peer::keyed(60), Fate::Lost);
    let error = world.get(Target::key(&pair(5).0)).unwrap_err();
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(world.failure.is_none());
    world.fate = Box::new(|_, _| Fate::Arrives);
    assert_eq!(world.found(Target::key(&pair(5).0)), pair(5).1);
    // A query of its own: the first one was for a client that is gone.
    let queries = world.queries();
    assert_eq!(queries.len(), 2);
    assert_ne!(queries[0], queries[1]);
}

#[test]
fn a_hint_that_cannot_be_kept_ends_the_session() {
    let mut world = world(Peer::keyed(60));
    let lookup = world.session.lookup(Target::key(&pair(5).0));
    while world.queries().is_empty() {
        assert!(world.step());
    }
    world.session.handle_storage_failure(Error::unavailable("the disk is full"));
    world.run();
    assert!(world.outcomes.remove(&lookup).unwrap().is_err());
    assert_eq!(world.failed_with(), Blame::Unavailable);
}

#[test]
fn by_other_schemes_nothing_is_asked_before_the_hint_has_come() {
    let mut world = World::of(&Peer::keyed(60));
    world.found(Target::key(&pair(5).0));
    assert_eq!(world.kinds(), ["describe", "fetch", "fetch", "answer"]);
    let mut world = World::of(&Peer::keyed(60));
    world.session.lookup(Target::key(&pair(5).0));
    while world.queries().is_empty() {
        assert!(world.step());
    }
    assert!(received(&world) > 3);
}
