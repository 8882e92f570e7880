//! Hints that never run out, by two servers of which one is asked for the first of them: a used-up generation is condensed into the next, and not before all its queries are answered.

use super::reserved::*;
use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::*;
use crate::state::NextGeneration;
use std::collections::HashSet;

const ENDLESS: Kind = Kind { flow: Flow::Asked, endless: true, flaw: toy::Flaw::None };
const TOTAL: u64 = 3;

fn endless_world() -> World {
    toy_world_of(vec![toy_peer_of(ENDLESS, 2, TOTAL); 2])
}

/// A world in which everything but the last query of the first generation is answered, and that one with something that is no answer.
fn used_up_but_for_an_answer() -> World {
    let mut world = endless_world();
    for index in 1..TOTAL {
        world.found(Target::index(index));
    }
    world.falsify = Box::new(spoil);
    assert_eq!(world.get(Target::index(7)).unwrap_err().blame(), Blame::InvalidMessage);
    world
}

fn spoil(_: &Request, mut responses: Vec<Result<Response>>) -> Vec<Result<Response>> {
    if let Ok(Response::Answered(response)) = &mut responses[0] {
        response.answer = Vec::new().into();
    }
    responses
}

fn true_responses(world: &mut World) {
    world.falsify = Box::new(|_, responses| responses);
}

/// The hints that were used, in the order of their first query. No two different queries are from one.
fn hints_used(world: &World) -> Vec<(Vec<u8>, u64)> {
    let mut seen = HashSet::new();
    let queries = world.queries_to(0).into_iter().filter(|query| seen.insert(query.clone()));
    let hints: Vec<_> = queries.map(|query| toy::hint_of(&query)).collect();
    assert_eq!(hints.iter().collect::<HashSet<_>>().len(), hints.len(), "a hint served twice");
    hints
}

#[test]
fn generation_follows_generation_and_nobody_is_asked_for_any() {
    let mut world = endless_world();
    world.run();
    let prepared = world.sent.len();
    for k in 0..7 * TOTAL + 1 {
        assert_eq!(world.found(Target::index(k * 7 % RECORDS)), expected(k * 7 % RECORDS));
    }
    assert_eq!(world.condensed, 7);
    assert!(world.trace()[prepared..].iter().all(|sent| sent.1 == "answer"));
    assert_eq!(hints_used(&world).len() as u64, 7 * TOTAL + 1);
    let ready = world.events.iter().filter(|event| *event == "Ready").count();
    assert_eq!(ready, 1);
    let lens = world.peers[0].scheme().plan.query_lens.clone();
    for server in [0, 1] {
        assert!(world.queries_to(server).iter().all(|query| query.len() == lens[server]));
    }
    assert_ne!(lens[0], lens[1]);
}

#[test]
fn nothing_is_condensed_before_the_last_answer() {
    for late in [0, 1] {
        let mut world = endless_world();
        world.run();
        world.fates[late] = Fate::Late(1000);
        let lookups: Vec<_> = (0..5).map(|k| world.session.lookup(Target::index(k))).collect();
        while world.condensed == 0 {
            assert!(world.journal.len() as u64 <= TOTAL);
            assert!(world.step());
            assert!(world.condensed == 0 || world.completions.len() as u64 == TOTAL);
        }
        world.run();
        for (index, lookup) in (0..).zip(lookups) {
            let value = world.outcomes[&lookup].as_ref().unwrap().as_ref().unwrap().to_vec();
            assert_eq!(value, expected(index));
        }
    }
}

#[test]
fn what_was_not_answered_is_sent_again_byte_for_byte_before_the_generation_is_left() {
    let mut world = used_up_but_for_an_answer();
    true_responses(&mut world);
    let before = [0, 1].map(|server| world.queries_to(server));
    assert_eq!(world.found(Target::index(8)), expected(8));
    assert_eq!(world.condensed, 1);
    for server in [0, 1] {
        let sent = world.queries_to(server);
        assert_eq!(sent[..before[server].len()], before[server]);
        let [again, new] = &sent[before[server].len()..] else { panic!("two more queries") };
        assert_eq!(Some(again), before[server].last());
        assert_ne!(again, new);
    }
    assert_eq!(hints_used(&world).len() as u64, TOTAL + 1);
}

#[test]
fn servers_that_never_answer_cost_lookups_but_no_hint() {
    let mut world = used_up_but_for_an_answer();
    let used = hints_used(&world).len();
    let lookups: Vec<_> = (0..3).map(|k| world.session.lookup(Target::index(k))).collect();
    world.run();
    for lookup in &lookups {
        let error = world.outcomes[lookup].as_ref().unwrap_err();
        assert_eq!(error.blame(), Blame::Unavailable);
        assert!(error.message().contains("sent again"), "{error}");
    }
    let once = world.queries_to(0).len();
    assert_eq!(once as u64, TOTAL + 1, "sent again once for all lookups that wait");
    world.get(Target::index(1)).unwrap_err();
    assert_eq!(world.queries_to(0).len(), once + 1, "and once more for the next");
    assert_eq!((hints_used(&world).len(), world.condensed), (used, 0));

    true_responses(&mut world);
    assert_eq!(world.found(Target::index(1)), expected(1), "they answer again");
}

#[test]
fn a_process_that_finds_hints_used_up_condenses_them_whatever_lies_beside_them() {
    // As a process leaves them that ended between storing the next generation and switching to it; and something that would use all hints once more.
    for answered in [true, false] {
        let mut world = match answered {
            false => used_up_but_for_an_answer(),
            true => {
                let mut world = endless_world();
                (0..TOTAL).for_each(|index| drop(world.found(Target::index(index))));
                world
            }
        };
        let first = kept(&mut world).generation.unwrap();
        let hints = world.hints.as_mut().unwrap();
        hints.preparation().unwrap().save_generation(&first).unwrap();
        let sent = world.queries_to(0);

        let mut next = after(world);
        assert_eq!(kept_after_opening(&mut next), NextGeneration::Ready);
        assert_eq!(next.found(Target::index(8)), expected(8));
        assert_eq!((next.condensed, kept(&mut next).next), (1, NextGeneration::None));
        let [again @ .., new] = &next.queries_to(0)[..] else { panic!("nothing was sent") };
        assert_eq!(again, if answered { &[][..] } else { &sent[sent.len() - 1..] });
        assert_eq!(toy::hint_of(new).1, TOTAL, "the hint after all that were used");
        assert_eq!(toy::hint_of(new).0, toy::hint_of(&sent[0]).0, "of the same line");
        assert!(next.trace().iter().all(|sent| sent.1 != "prepare"));
    }
}

fn kept_after_opening(world: &mut World) -> NextGeneration {
    world.run();
    kept(world).next
}

#[test]
fn a_generation_that_cannot_be_kept_ends_the_session_and_not_the_hints() {
    let mut world = endless_world();
    (0..TOTAL).for_each(|index| drop(world.found(Target::index(index))));
    let lookup = world.session.lookup(Target::index(5));
    loop {
        match world.session.poll(world.now) {
            Some(Output::Persist(Persist::CondenseHints { .. })) => break,
            Some(output) => world.carry_out(output),
            None => assert!(world.step()),
        }
    }
    world.session.handle_storage_failure(Error::unavailable("the disk is full"));
    world.run();
    assert_eq!(world.outcomes[&lookup].as_ref().unwrap_err().blame(), Blame::Unavailable);
    assert_eq!(world.queries_to(0).len() as u64, TOTAL);

    let mut next = after(world);
    assert_eq!(next.found(Target::index(5)), expected(5));
}
