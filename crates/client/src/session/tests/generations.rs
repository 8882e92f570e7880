//! Schemes with single-use hints: how generations are prepared, in the foreground and beside
//! lookups, and how they follow one another.

use super::reserved::*;
use super::toy;
use super::world::*;
use crate::session::*;
use crate::state::NextGeneration;
use privet_wire::PartKind;
use std::collections::HashSet;

type Lie = fn(&Request, Vec<Result<Response>>) -> Vec<Result<Response>>;

/// The stretches of the table that were fetched, with the number of queries sent before each.
fn stretches(world: &World) -> Vec<(usize, u64, u64)> {
    let mut queries = 0;
    let mut stretches = Vec::new();
    for (_, request) in &world.sent {
        match request {
            Request::Answer(_) => queries += 1,
            Request::Fetch(request) if request.part == PartKind::Table => {
                stretches.push((queries, request.offset, request.len));
            }
            _ => {}
        }
    }
    stretches
}

#[test]
fn every_record_is_found_generation_after_generation() {
    let mut world = toy_world(1, 8);
    for k in 0..60 {
        assert_eq!(world.found(Target::index(k * 7 % RECORDS)), expected(k * 7 % RECORDS));
    }
    let hints: HashSet<_> =
        world.journal.iter().map(|(_, queries)| toy::hint_of(&queries[0])).collect();
    assert_eq!(hints.len(), 60);
    let generations: HashSet<_> = hints.iter().map(|(generation, _)| generation).collect();
    assert_eq!(generations.len(), 8, "60 queries, 8 to a generation");
    let ready = world.events.iter().filter(|event| *event == "Ready").count();
    assert_eq!(ready, 1);
}

#[test]
fn the_next_generation_is_streamed_after_queries_by_their_number_alone() {
    let traffic = |index: &dyn Fn(u64) -> u64| {
        let mut world = toy_world(1, 40);
        for k in 0..40 {
            world.found(Target::index(index(k)));
        }
        (world.trace(), stretches(&world))
    };
    let (trace, stretches) = traffic(&|_| 0);
    // 200 bytes, in pieces of 64: four of them, each after the query at which it is due, 5 queries
    // apart from the tenth.
    assert_eq!(stretches[..3], [(0, 0, 96), (0, 96, 96), (0, 192, 8)], "the first generation");
    assert_eq!(stretches[3..], [(10, 0, 64), (15, 64, 64), (20, 128, 64), (25, 192, 8)]);
    for other in [&(|k| k) as &dyn Fn(u64) -> u64, &|k| 49 - k, &|k| k % 2] {
        assert_eq!(traffic(other), (trace.clone(), stretches.clone()));
    }
}

#[test]
fn a_lookup_is_sent_before_the_stretch_that_goes_with_it() {
    let mut world = toy_world(1, 4);
    world.run();
    let before = world.sent.len();
    world.look_up(0..2);
    world.run();
    assert_eq!(world.kinds()[before..][..2], ["answer", "fetch"]);
}

#[test]
fn hints_that_run_out_while_the_next_cannot_be_prepared_are_an_error_and_no_query() {
    let mut world = toy_world(1, 8);
    world.found(Target::index(0));
    // The table is no longer available.
    world.fate = Box::new(|_, request| match request {
        Request::Fetch(_) => Fate::Breaks,
        _ => Fate::Arrives,
    });
    for index in 1..8 {
        assert_eq!(world.found(Target::index(index)), expected(index), "no query waits for it");
    }
    let before = world.queries().len();
    let error = world.get(Target::index(0)).unwrap_err();
    assert_eq!(error.blame(), Blame::Exhausted);
    assert!(error.message().contains("preparing the next ones has just failed"), "{error}");
    assert_eq!(world.queries().len(), before);
    assert!(world.failure.is_none());

    let mut next = after(world);
    assert_eq!(next.found(Target::index(3)), expected(3), "prepared before the first lookup");
    assert_eq!(stretches(&next)[0].0, 0);
}

#[test]
fn lookups_that_find_no_hint_wait_for_the_next_ones_whatever_is_looked_up() {
    let traffic = |index: &dyn Fn(u64) -> u64| {
        let mut world = toy_world(1, 8);
        world.found(Target::index(index(0)));
        // Nothing is prepared in the background.
        world.fate = Box::new(|_, request| match request {
            Request::Fetch(_) => Fate::Breaks,
            _ => Fate::Arrives,
        });
        for k in 1..8 {
            world.found(Target::index(index(k)));
        }
        world.fate = Box::new(|_, _| Fate::Arrives);
        for k in 8..20 {
            assert_eq!(world.found(Target::index(index(k))), expected(index(k)));
        }
        world.trace()
    };
    let trace = traffic(&|k| k);
    assert_eq!(traffic(&|_| 0), trace);
    assert_eq!(traffic(&|k| 19 - k), trace);
}

#[test]
fn a_failing_background_fetch_delays_no_lookup_and_is_made_up_for() {
    let mut world = toy_world(1, 40);
    world.found(Target::index(0));
    let mut fetches = 0;
    world.fate = Box::new(move |_, request| match request {
        Request::Fetch(_) => {
            fetches += 1;
            [Fate::Lost, Fate::Breaks, Fate::TurnedAway, Fate::Cut(0)][fetches % 4]
        }
        _ => Fate::Arrives,
    });
    for k in 1..30 {
        let lookup = world.session.lookup(Target::index(k));
        let start = world.now;
        loop {
            world.carry_out_all();
            if world.outcomes.contains_key(&lookup) {
                break;
            }
            assert!(world.step());
        }
        assert!(world.outcomes[&lookup].is_ok());
        assert!(world.now - start <= Duration::from_millis(2), "lookup {k}");
    }
    let described = world.kinds().iter().filter(|kind| **kind == "describe").count();
    assert_eq!(described, 1, "no query is held up by asking what is served");
    world.fate = Box::new(|_, _| Fate::Arrives);
    for k in 30..45 {
        assert_eq!(world.found(Target::index(k)), expected(k), "over the end of the generation");
    }
}

#[test]
fn a_failed_background_fetch_is_tried_again_without_waiting_for_a_lookup() {
    for fate in [Fate::Lost, Fate::Breaks, Fate::TurnedAway, Fate::Cut(0)] {
        let mut world = toy_world(1, 40);
        (0..9).for_each(|k| drop(world.found(Target::index(k))));
        let mut fetches = 0;
        world.fate = Box::new(move |_, request| {
            fetches += usize::from(matches!(request, Request::Fetch(_)));
            if fetches == 1 { fate } else { Fate::Arrives }
        });
        world.found(Target::index(9));
        assert_eq!(stretches(&world)[3..], [(10, 0, 64), (10, 0, 64)], "{fate:?}");
        assert_eq!(kept(&mut world).next, NextGeneration::Partial { offset: 48 });
    }
}

#[test]
fn a_refused_background_fetch_waits_for_the_next_lookup() {
    let mut world = toy_world(1, 40);
    world.falsify = Box::new(|request, responses| match request {
        Request::Fetch(request) if request.part == PartKind::Table && request.len == 64 => {
            vec![Err(Error::invalid_message("no"))]
        }
        _ => responses,
    });
    (0..12).for_each(|k| drop(world.found(Target::index(k))));
    assert_eq!(stretches(&world)[3..], [(10, 0, 64), (11, 0, 64), (12, 0, 64)]);
    assert!(world.session.is_at_rest());
    let described = world.kinds().iter().filter(|kind| **kind == "describe").count();
    assert_eq!(described, 1);
}

#[test]
fn a_worker_that_fails_costs_no_lookup_and_is_tried_again() {
    let mut world = toy_world(1, 40);
    (0..9).for_each(|k| drop(world.found(Target::index(k))));
    let lookup = world.session.lookup(Target::index(9));
    world.carry_out_all();
    let full = Error::unavailable("the disk is full");
    world.session.handle_preparation(PreparationEvent::Failed(full), world.now);
    world.run();
    assert!(world.outcomes[&lookup].is_ok());
    assert_eq!(world.abandoned.len(), 1, "what was being fetched is of no use");
    assert!(world.events.iter().any(|event| event.contains("the disk is full")));
    let before = stretches(&world).len();
    for k in 10..40 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    assert!(stretches(&world).len() > before, "the next piece that is due begins anew");
    assert_eq!(
        world.found(Target::index(0)),
        expected(0),
        "so the next generation is there in time"
    );
}

#[test]
fn short_lived_sessions_prepare_the_next_generation_by_the_share() {
    let mut world = toy_world(1, 40);
    for k in 0..100 {
        assert_eq!(world.found(Target::index(k % RECORDS)), expected(k % RECORDS), "session {k}");
        assert!(world.session.is_at_rest());
        if k > 0 {
            let streamed: u64 = stretches(&world).iter().map(|(_, _, len)| len).sum();
            assert!(streamed <= 128, "session {k} streamed {streamed} bytes");
        }
        world = after(world);
    }
}

#[test]
fn a_stream_that_broke_off_goes_on_at_the_last_checkpoint() {
    let mut first = toy_world(1, 20);
    let mut fetches = 0;
    first.fate = Box::new(move |_, request| match request {
        Request::Fetch(request) if request.part == PartKind::Table => {
            fetches += 1;
            if fetches == 3 { Fate::Lost } else { Fate::Arrives }
        }
        _ => Fate::Arrives,
    });
    let mut parts = toy::parts(1);
    parts.pace.checkpoint_interval = 1;
    first.session = Session::with_parts(options(1), Duration::ZERO, parts).unwrap();
    while stretches(&first).len() < 3 {
        assert!(first.step());
    }
    // 192 bytes arrived, and 48 of them are a group.
    assert_eq!(kept(&mut first).next, NextGeneration::Partial { offset: 192 });

    let mut second = after(first);
    assert_eq!(second.found(Target::index(0)), expected(0));
    assert_eq!(stretches(&second), [(0, 192, 8)]);
}

#[test]
fn a_table_with_the_wrong_digest_is_the_servers_fault_and_leaves_no_checkpoint() {
    let lie: Lie = |_, mut responses| {
        if let Ok(Response::Chunk(chunk)) = &mut responses[0]
            && chunk.offset == 96
        {
            chunk.data = vec![7; chunk.data.len()].into();
        }
        responses
    };
    // In the foreground.
    let mut world = toy_world(1, 20);
    world.falsify = Box::new(lie);
    let error = world.get(Target::index(0)).unwrap_err();
    assert_eq!((error.blame(), world.failed_with()), (Blame::Integrity, Blame::Integrity));
    assert_eq!(kept(&mut world).next, NextGeneration::None);
    assert!(world.queries().is_empty());

    // In the background.
    let lie_later: Lie = |_, mut responses| {
        if let Ok(Response::Chunk(chunk)) = &mut responses[0] {
            chunk.data = vec![7; chunk.data.len()].into();
        }
        responses
    };
    let mut world = toy_world(1, 8);
    world.found(Target::index(0));
    world.falsify = Box::new(lie_later);
    let outcomes: Vec<_> = (0..7).map(|k| world.get(Target::index(k))).collect();
    assert!(outcomes.iter().any(Result::is_err));
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert_eq!(kept(&mut world).next, NextGeneration::None);
}

#[test]
fn a_server_that_sends_other_stretches_than_asked_for_is_at_fault() {
    let lies: [fn(&mut FetchChunk); 3] = [
        |chunk| chunk.offset += 1,
        |chunk| chunk.offset = u64::MAX,
        |chunk| chunk.data = vec![0; chunk.data.len() + 1].into(),
    ];
    for lie in lies {
        let mut world = toy_world(1, 20);
        world.falsify = Box::new(move |request, mut responses| {
            if let (true, Ok(Response::Chunk(chunk))) =
                (is_for(PartKind::Table, request), &mut responses[0])
            {
                lie(chunk);
            }
            responses
        });
        world.run();
        assert_eq!(world.failed_with(), Blame::PeerMisbehaved);
    }
}
