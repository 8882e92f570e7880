//! Schemes with single-use hints: the journal before every query, and what earlier processes leave
//! behind. See [`toy`](super::toy).

use super::toy::{self, Kind};
use super::world::*;
use crate::session::*;
use crate::state::{HintsOpened, SavedHints};

pub(super) const RECORD_LEN: u64 = 4;
pub(super) const RECORDS: u64 = 50;

pub(super) fn toy_peer_of(kind: Kind, servers: usize, total: u64) -> Peer {
    toy::peer(RECORDS, RECORD_LEN, servers, total, kind)
}

pub(super) fn toy_world(servers: usize, total: u64) -> World {
    toy::world(&toy_peer_of(Kind::default(), servers, total))
}

/// Another session over the state that an earlier one left.
pub(super) fn after(world: World) -> World {
    let mut next = toy::world(&world.peers[0]);
    next.keeper.state = world.keeper.state;
    next
}

pub(super) fn expected(index: u64) -> Vec<u8> {
    record(index, RECORD_LEN)
}

/// Delays the first answer from now on.
fn first_answer_late(world: &mut World, milliseconds: u64) {
    let mut answers = 0;
    world.fate = Box::new(move |_, request| {
        answers += usize::from(matches!(request, Request::Answer(_)));
        if answers == 1 { Fate::Late(milliseconds) } else { Fate::Arrives }
    });
}

pub(super) fn kept(world: &mut World) -> SavedHints {
    world.keeper.hints.as_mut().unwrap().load().unwrap()
}

#[test]
fn no_query_is_sent_before_its_record_is_durable() {
    for servers in [1, 2] {
        let mut world = toy_world(servers, 20);
        for index in [7, 7, 9] {
            assert_eq!(world.found(Target::index(index)), expected(index));
        }
        assert_eq!(world.journal.len(), 3);
        // Each lookup is settled in turn, after its own record and before the next.
        assert_eq!(
            world.completions.iter().map(|(after, _)| *after).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        for (sent_before, queries) in &world.journal {
            let after: Vec<_> = world.sent[*sent_before..].iter().take(servers).collect();
            for (server, query) in queries.iter().enumerate() {
                let Request::Answer(request) = &after[server].1 else { panic!("not a query") };
                assert_eq!(
                    (after[server].0, request.role, &request.query[..]),
                    (server, privet_schemes::contract::Role(server as u8), &query[..])
                );
                let earlier = &world.sent[..*sent_before];
                assert!(!earlier.iter().any(|(_, request)| matches!(request, Request::Answer(request) if request.query == query[..])));
            }
        }
    }
}

#[test]
fn a_record_that_may_not_be_durable_is_never_sent_nor_is_any_after_it() {
    let mut world = toy_world(2, 20);
    world.found(Target::index(1));
    world.journal_breaks = true;
    let before = world.sent.len();
    for _ in 0..2 {
        assert_eq!(world.get(Target::index(7)).unwrap_err().blame(), Blame::Unavailable);
        world.journal_breaks = false;
    }
    assert_eq!(world.sent.len(), before);

    let mut next = after(world);
    assert_eq!(next.found(Target::index(7)), expected(7), "another session opens the store again");
}

#[test]
fn unfinished_queries_are_sent_again_byte_for_byte_and_first() {
    let mut first = toy_world(2, 20);
    first.run();
    let lost = first.look_up(0..3);
    first.fate = Box::new(|_, _| Fate::Lost);
    // Ends when everything is sent and nothing has come.
    first.carry_out_all();
    let sent: Vec<_> = first.queries();
    assert_eq!((lost.len(), sent.len()), (3, 6));
    assert_eq!(kept(&mut first).unfinished.len(), 3);

    let mut second = after(first);
    second.session.lookup(Target::index(9));
    second.run();
    assert_eq!(second.queries()[..6], sent, "the same bytes, oldest first, before the new one");
    assert_eq!(second.queries().len(), 8);
    assert_eq!(second.outcomes.len(), 1, "nobody hears of the old ones");
    assert!(kept(&mut second).unfinished.is_empty());

    let mut third = after(second);
    third.found(Target::index(9));
    assert_eq!(third.queries().len(), 2, "once is enough");
}

#[test]
fn an_answer_that_is_none_leaves_its_query_to_the_next_session() {
    let mut first = toy_world(1, 20);
    first.found(Target::index(1));
    first.change_answers(|_, answer| answer.fill(0xee));
    first.get(Target::index(2)).unwrap_err();
    let bad = first.queries()[1].clone();
    first.true_responses();
    assert_eq!(first.found(Target::index(3)), expected(3));
    assert_eq!(first.queries().iter().filter(|query| **query == bad).count(), 1);
    // It depends on the missing answer, which will not come in this session.
    let error = first.get(Target::index(2)).unwrap_err();
    assert_eq!(error.blame(), Blame::Selective);
    assert!(error.message().contains("earlier query"), "{error}");
    assert!(error.message().contains("Do not look the same up again"), "{error}");

    let mut second = after(first);
    assert_eq!(second.found(Target::index(2)), expected(2));
    assert_eq!(second.queries()[0], bad);
}

#[test]
fn records_are_told_in_the_order_of_their_queries_whatever_order_answers_come_in() {
    let mut world = toy_world(1, 20);
    world.run();
    first_answer_late(&mut world, 50);
    let [older, newer, other] = world.look_up([5, 5, 6])[..] else { panic!("three") };
    while world.completions.len() < 2 {
        assert!(world.step());
    }
    // Both later ones are settled. Neither is told: not the one that depends on the first, and not
    // the other either, because the difference would show.
    assert!(!world.outcomes.contains_key(&newer) && !world.outcomes.contains_key(&other));
    world.run();
    for (lookup, index) in [(older, 5), (newer, 5), (other, 6)] {
        assert_eq!(world.value(lookup), expected(index));
    }
}

#[test]
fn a_session_that_ends_fails_the_lookups_that_wait_for_older_ones() {
    let mut world = toy_world(1, 20);
    world.run();
    first_answer_late(&mut world, 1000);
    let lookups = world.look_up([5; 3]);
    while world.completions.len() < 2 {
        assert!(world.step());
        world.carry_out_all();
    }
    world.session.fail(Error::integrity("another table"));
    world.run();
    let blames: Vec<_> =
        lookups.iter().map(|lookup| world.outcomes[lookup].as_ref().unwrap_err().blame()).collect();
    // Whether they had to wait may depend on their record.
    assert_eq!(blames, [Blame::Integrity, Blame::Selective, Blame::Selective]);
    let message = world.outcomes[&lookups[2]].as_ref().unwrap_err().message().to_owned();
    assert!(message.contains("Do not look the same up again"), "{message}");
}

#[test]
fn too_many_unanswered_queries_are_an_error_until_some_are_answered() {
    let mut world = toy_world(1, 4000);
    world.run();
    world.change_answers(|_, answer| answer.clear());
    for index in 0..256 {
        assert_eq!(
            world.get(Target::index(index % 50)).unwrap_err().blame(),
            Blame::InvalidMessage
        );
    }
    let error = world.get(Target::index(0)).unwrap_err();
    assert_eq!(error.blame(), Blame::Unavailable);
    assert_eq!(world.queries().len(), 256);

    let mut next = after(world);
    assert_eq!(next.found(Target::index(0)), expected(0));
    assert_eq!(next.queries().len(), 257, "all of them, and the new one");
    assert!(kept(&mut next).unfinished.is_empty());
}

#[test]
fn no_more_than_sixteen_are_sent_again_at_once() {
    let mut world = toy_world(1, 4000);
    world.run();
    world.falsify = Box::new(|request, responses| {
        if matches!(request, Request::Answer(_)) { vec![Ok(Response::End)] } else { responses }
    });
    for index in 0..40 {
        world.get(Target::index(index)).unwrap_err();
    }
    let mut next = after(world);
    next.fate = Box::new(|_, request| match request {
        Request::Answer(_) => Fate::Lost,
        _ => Fate::Arrives,
    });
    for _ in 0..4 {
        assert!(next.step());
    }
    assert_eq!(next.queries().len(), 16);
}

#[test]
fn stored_hints_that_do_not_fit_their_journal_are_refused() {
    let mut first = toy_world(1, 20);
    first.found(Target::index(0));
    let mut second = after(first);
    loop {
        match second.poll() {
            Some(Output::OpenHints { key, .. }) => {
                let HintsOpened::Have { mut hints, .. } =
                    second.keeper.state.open_hints(&key, false).unwrap()
                else {
                    panic!("memory is never busy")
                };
                let mut saved = hints.load().unwrap();
                saved.changes.pop();
                second.session.handle_hints(saved, second.now);
                break;
            }
            Some(output) => second.carry_out(output),
            None => assert!(second.step()),
        }
    }
    second.run();
    assert_eq!(second.failed_with(), Blame::Corrupted);
    assert!(second.queries().is_empty());
}

#[test]
fn a_lookup_fails_only_after_both_servers_had_their_query() {
    let mut world = toy_world(2, 20);
    world.found(Target::index(1));
    world.falsify = Box::new(|request, mut responses| {
        if let (Request::Answer(request), Ok(Response::Answered(answer))) =
            (request, &mut responses[0])
            && request.role.0 == 0
        {
            answer.epoch.0 += 1;
        }
        responses
    });
    let before = world.sent.len();
    assert_eq!(world.get(Target::index(2)).unwrap_err().blame(), Blame::PeerMisbehaved);
    assert_eq!(
        world.trace()[before..].iter().map(|sent| (sent.0, sent.1)).collect::<Vec<_>>(),
        [(0, "answer"), (1, "answer")]
    );
}
