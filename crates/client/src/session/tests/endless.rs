//! Hints that never run out, with two servers, one of which computes the first hints: a used-up
//! generation is condensed into the next, and not before all its queries are answered.

use super::reserved::*;
use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::*;
use crate::state::NextGeneration;
use privet_schemes::contract::ReservationId;
use std::collections::HashSet;

const ENDLESS: Kind = Kind {
    flow: Flow::Asked,
    endless: true,
    chained: false,
    verifies: false,
    flaw: toy::Flaw::None,
};
const CHAINED: Kind = Kind { chained: true, ..ENDLESS };
/// Its hints run out.
const CHAINED_STREAMED: Kind = Kind { flow: Flow::Streamed, endless: false, ..CHAINED };

const TOTAL: u64 = 3;

fn endless_world() -> World {
    toy::world(&toy_peer_of(ENDLESS, 2, TOTAL))
}

/// A world in which all queries of the first generation but the last are answered. The response to
/// that one is not an answer.
fn used_up_but_for_an_answer() -> World {
    let mut world = endless_world();
    for index in 1..TOTAL {
        world.found(Target::index(index));
    }
    spoil(&mut world);
    assert_eq!(world.get(Target::index(7)).unwrap_err().blame(), Blame::InvalidMessage);
    world
}

/// From now on, no answer is one.
fn spoil(world: &mut World) {
    world.change_answers(|_, answer| answer.clear());
}

/// The hints that were used, in the order of their first query. No two different queries use the
/// same hint.
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
        let lookups = world.look_up(0..5);
        while world.condensed == 0 {
            assert!(world.journal.len() as u64 <= TOTAL);
            assert!(world.step());
            assert!(world.condensed == 0 || world.completions.len() as u64 == TOTAL);
        }
        world.run();
        for (index, lookup) in (0..).zip(lookups) {
            let value = world.value(lookup);
            assert_eq!(value, expected(index));
        }
    }
}

#[test]
fn what_was_not_answered_is_sent_again_byte_for_byte_before_the_generation_is_left() {
    let mut world = used_up_but_for_an_answer();
    world.true_responses();
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
    let lookups = world.look_up(0..3);
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

    world.true_responses();
    assert_eq!(world.found(Target::index(1)), expected(1), "they answer again");
}

#[test]
fn a_server_that_is_silent_for_one_lookup_costs_that_lookup_and_no_later_one() {
    for (silent, kind) in [(0, CHAINED), (1, CHAINED), (0, CHAINED_STREAMED)] {
        let mut world = toy::world(&toy_peer_of(kind, 2, 20));
        assert_eq!(world.found(Target::index(1)), expected(1));
        world.change_answers(move |role, answer| {
            if role == silent {
                answer.clear();
            }
        });
        assert_eq!(world.get(Target::index(2)).unwrap_err().blame(), Blame::InvalidMessage);
        let lost = [0, 1].map(|server| world.queries_to(server).last().unwrap().clone());
        world.true_responses();
        let before = world.queries_to(0).len();
        for index in [3, 2, 4] {
            assert_eq!(world.found(Target::index(index)), expected(index));
        }
        for (server, lost) in lost.into_iter().enumerate() {
            let sent = &world.queries_to(server)[before..];
            assert_eq!((&sent[0], sent.len()), (&lost, 4), "the same bytes, once, and first");
        }
        assert!(kept(&mut world).unfinished.is_empty());
        assert_eq!(hints_used(&world).len(), 5);
        assert_eq!(records_held(&mut world), 0);
    }
}

#[test]
fn lookups_that_wait_while_an_answer_is_missing_are_found_once_it_was_asked_for_again() {
    let mut world = toy::world(&toy_peer_of(CHAINED, 2, 40));
    world.run();
    let mut answers = 0;
    world.change_answers(move |_, answer| {
        answers += 1;
        if answers == 1 {
            answer.clear();
        }
    });
    // More than may be under way at once.
    let lookups = world.look_up(0..20);
    world.run();
    let failed = lookups.iter().filter(|lookup| world.outcomes[lookup].is_err()).count();
    // Eight were under way together, and one more began after the first was answered and before
    // that answer was read.
    assert_eq!(failed, 9);
    for (index, lookup) in (0..).zip(&lookups).skip(9) {
        let value = world.value(*lookup);
        assert_eq!(value, expected(index));
    }
    assert_eq!(world.queries_to(0).len(), 21);
    assert_eq!(hints_used(&world).len(), 20);
    assert_eq!(
        records_held(&mut world),
        0,
        "also of lookups that failed for want of an older answer"
    );
}

#[test]
fn servers_that_stay_silent_are_asked_again_once_for_each_lookup() {
    let mut world = toy::world(&toy_peer_of(CHAINED, 2, 40));
    world.run();
    spoil(&mut world);
    for lookups in 1..5 {
        world.get(Target::index(lookups)).unwrap_err();
        let sent = world.queries_to(0);
        assert_eq!(hints_used(&world).len() as u64, lookups);
        assert_eq!(sent.len() as u64, lookups * (lookups + 1) / 2, "all the earlier ones and it");
    }
    world.true_responses();
    assert_eq!(world.found(Target::index(7)), expected(7));
}

#[test]
fn what_earlier_processes_looked_up_is_not_held() {
    let mut world = toy::world(&toy_peer_of(CHAINED, 2, 20));
    world.found(Target::index(1));
    spoil(&mut world);
    world.get(Target::index(2)).unwrap_err();
    // It is settled, but its record waits for an earlier one.
    let mut answers = 0;
    world.change_answers(move |_, answer| {
        answers += 1;
        if answers <= 2 {
            answer.clear();
        }
    });
    world.get(Target::index(3)).unwrap_err();
    assert_eq!(kept(&mut world).unfinished.len(), 1);

    let mut next = after(world);
    next.fates[1] = Fate::Late(1000);
    while next.queries_to(1).is_empty() {
        assert!(next.step());
    }
    assert_eq!(records_held(&mut next), 0, "of the lookup that was over");
    next.run();
    assert!(kept(&mut next).unfinished.is_empty());
    assert_eq!(records_held(&mut next), 0, "nor of those that the answer resolved");
    assert_eq!(next.found(Target::index(4)), expected(4));
}

/// How many records the hints have that were not taken; this takes them.
fn records_held(world: &mut World) -> usize {
    let Phase::Open(open) = &mut world.session.phase else { panic!("not open") };
    let hints = open.hinted().unwrap();
    let ids = (0..hints.supply().used).map(ReservationId);
    ids.filter(|id| hints.take_record(*id).is_some()).count()
}

#[test]
fn a_process_that_finds_hints_used_up_condenses_them_whatever_lies_beside_them() {
    // The state of a process that ended after it stored the next generation and before it switched
    // to it; and a preparation that would use all hints once more.
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
        let hints = world.keeper.hints.as_mut().unwrap();
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
        match world.poll() {
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
