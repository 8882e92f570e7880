//! Schemes with single-use hints: the journal before every query, and what earlier processes leave
//! behind. See [`toy`](super::toy).

use super::toy::{self, Kind};
use super::world::*;
use crate::session::*;
use crate::state::{HintsOpened, SavedHints};
use privet_core::TableIdentity;
use privet_wire::PartDescription;
use std::collections::HashSet;

pub(super) const RECORD_LEN: u64 = 4;
pub(super) const RECORDS: u64 = 50;

pub(super) fn toy_peer(servers: usize, total: u64) -> Peer {
    toy_peer_of(Kind::default(), servers, total)
}

pub(super) fn toy_peer_of(kind: Kind, servers: usize, total: u64) -> Peer {
    toy::peer(RECORDS, RECORD_LEN, servers, total, kind)
}

pub(super) fn toy_world(servers: usize, total: u64) -> World {
    toy_world_of(vec![toy_peer(servers, total); servers])
}

pub(super) fn toy_world_of(peers: Vec<Peer>) -> World {
    let options = options(peers.len());
    let session = Session::with_parts(options, Duration::ZERO, toy::parts(1)).unwrap();
    World::with_session(peers, session)
}

/// Another session over the state that an earlier one left.
pub(super) fn after(world: World) -> World {
    let mut next = toy_world_of(world.peers);
    next.keeper.state = world.keeper.state;
    next
}

pub(super) fn expected(index: u64) -> Vec<u8> {
    let record = index * RECORD_LEN..(index + 1) * RECORD_LEN;
    record.map(|i| (i * 13 + i / 251 + 1) as u8).collect()
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
    let lost: Vec<_> = (0..3).map(|k| first.session.lookup(Target::index(k))).collect();
    first.fate = Box::new(|_, _| Fate::Lost);
    // Ends when everything is sent and nothing has come.
    while let Some(output) = first.poll() {
        first.carry_out(output);
    }
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
    first.falsify = Box::new(|_, mut responses| {
        if let Ok(Response::Answered(response)) = &mut responses[0] {
            response.answer = vec![0xee; response.answer.len()].into();
        }
        responses
    });
    first.get(Target::index(2)).unwrap_err();
    let bad = first.queries()[1].clone();
    first.falsify = Box::new(|_, responses| responses);
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
    let mut answers = 0;
    world.fate = Box::new(move |_, request| {
        answers += usize::from(matches!(request, Request::Answer(_)));
        if answers == 1 { Fate::Late(50) } else { Fate::Arrives }
    });
    let older = world.session.lookup(Target::index(5));
    let newer = world.session.lookup(Target::index(5));
    let other = world.session.lookup(Target::index(6));
    while world.completions.len() < 2 {
        assert!(world.step());
    }
    // Both later ones are settled. Neither is told: not the one that depends on the first, and not
    // the other either, because the difference would show.
    assert!(!world.outcomes.contains_key(&newer) && !world.outcomes.contains_key(&other));
    world.run();
    for (lookup, index) in [(older, 5), (newer, 5), (other, 6)] {
        assert_eq!(
            world.outcomes[&lookup].as_ref().unwrap().as_ref().unwrap().to_vec(),
            expected(index)
        );
    }
}

#[test]
fn a_session_that_ends_fails_the_lookups_that_wait_for_older_ones() {
    let mut world = toy_world(1, 20);
    world.run();
    let mut answers = 0;
    world.fate = Box::new(move |_, request| {
        answers += usize::from(matches!(request, Request::Answer(_)));
        if answers == 1 { Fate::Late(1000) } else { Fate::Arrives }
    });
    let lookups: Vec<_> = (0..3).map(|_| world.session.lookup(Target::index(5))).collect();
    while world.completions.len() < 2 {
        assert!(world.step());
        while let Some(output) = world.poll() {
            world.carry_out(output);
        }
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
    world.falsify = Box::new(|_, mut responses| {
        if let Ok(Response::Answered(response)) = &mut responses[0] {
            response.answer = Vec::new().into();
        }
        responses
    });
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
fn digests_that_do_not_belong_together_are_refused_before_anything_is_fetched() {
    let peer = toy_peer(1, 20);
    let mut other = peer.scheme().clone();
    other.hint = Some(PartDescription::new(RECORDS * RECORD_LEN, [7; 32]));
    let layout = described(&peer.layout);
    let identity = peer.identity();
    let mut liar = peer.clone();
    liar.description = describe(&[("table", identity, layout, other)]);
    let mut world = toy_world_of(vec![liar]);
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert_eq!(world.trace().iter().map(|sent| sent.1).collect::<Vec<_>>(), ["describe"]);
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
fn retries_to_either_server_repeat_the_committed_bytes() {
    for seed in 0..40 {
        let mut world = toy_world(2, 20);
        let mut dice = Dice(seed);
        world.fate = Box::new(move |_, _| match dice.roll(4) {
            0 => Fate::Lost,
            1 => Fate::Breaks,
            2 => Fate::Twice,
            _ => Fate::Arrives,
        });
        let lookups: Vec<_> =
            (0..10).map(|index| world.session.lookup(Target::index(index))).collect();
        world.run();
        for (index, lookup) in lookups.iter().enumerate() {
            let value = world.outcomes[lookup].as_ref().unwrap().as_ref().unwrap().to_vec();
            assert_eq!(value, expected(index as u64));
        }
        let committed: HashSet<_> =
            world.journal.iter().flat_map(|(_, queries)| queries.clone()).collect();
        let sent = world.sent.iter().filter_map(|(_, request)| match request {
            Request::Answer(request) => Some(request.query.to_vec()),
            _ => None,
        });
        assert_eq!(sent.collect::<HashSet<_>>(), committed);
        assert_eq!(committed.len(), 20);
    }
}

#[test]
fn servers_that_differ_get_no_query() {
    let honest = toy_peer(2, 20);
    let changes: [fn(&mut TableIdentity); 3] = [
        |identity| identity.epoch.0 += 1,
        |identity| identity.digest.0[0] ^= 1,
        |identity| identity.id.0[0] ^= 1,
    ];
    for change in changes {
        let mut world = toy_world_of(vec![honest.clone(), honest.clone().with_identity(change)]);
        world.run();
        assert_eq!(world.failed_with(), Blame::Integrity);
        assert_eq!(world.trace().iter().map(|sent| sent.1).collect::<Vec<_>>(), ["describe"; 2]);
    }
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
