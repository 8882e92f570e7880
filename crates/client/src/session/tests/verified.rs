//! Schemes that verify answers, with two servers, one of which may lie: one query after the other,
//! and the first wrong answer is an end that every later process finds. See [`toy`](super::toy).

use super::reserved::*;
use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::*;
use privet_core::{Reason, SecretRng, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::offline::HintSource;
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_table::key_map::KeyMapKind;
use privet_wire::PartKind;
use std::sync::Arc;

const VERIFYING: Kind = Kind {
    flow: Flow::Streamed,
    endless: true,
    chained: false,
    verifies: true,
    flaw: toy::Flaw::None,
};
const TOTAL: u64 = 6;
/// Number of the reservation, record, tag.
const ANSWER_BITS: usize = 8 * (8 + RECORD_LEN as usize + 16);

fn world() -> World {
    toy::world(&toy_peer_of(VERIFYING, 2, TOTAL))
}

/// The next `answers` to queries in role `liar` have one bit flipped.
fn lie(world: &mut World, liar: u8, bit: usize, mut answers: usize) {
    world.change_answers(move |role, answer| {
        if role == liar && answers > 0 {
            answers -= 1;
            answer[bit / 8] ^= 1 << (bit % 8);
        }
    });
}

fn shorten(world: &mut World, liar: u8) {
    world.change_answers(move |role, answer| {
        if role == liar {
            answer.pop();
        }
    });
}

/// How many queries went to the first server.
fn asked(world: &World) -> usize {
    world.queries_to(0).len()
}

/// Checks that a session over the state that `world` left asks nothing, and says why.
fn check_that_it_stays_so(world: World, why: &str) -> World {
    let mut next = after(world);
    let lookup = next.session.lookup(Target::index(3));
    next.run();
    assert_eq!(next.failed_with(), Blame::Integrity);
    for error in [next.failure.as_ref().unwrap(), next.outcomes[&lookup].as_ref().unwrap_err()] {
        assert!(error.message().contains(why), "{error}");
        assert_eq!(error.reason(), Some(Reason::HintsEnded), "{error}");
    }
    assert!(next.asked_nothing(), "{:?}", next.trace());
    next
}

#[test]
fn each_query_waits_for_the_one_before_to_be_settled() {
    let mut world = world();
    let lookups = world.look_up((0..14).map(|k| k * 3));
    world.run();
    for (index, lookup) in (0..).step_by(3).zip(&lookups) {
        let value = world.value(*lookup);
        assert_eq!(value, expected(index));
    }
    let settled: Vec<_> = world.completions.iter().map(|(records, _)| *records).collect();
    assert_eq!(settled, (1..=14).collect::<Vec<_>>(), "each after its own record, before the next");
    assert_eq!(world.condensed, 2);
}

#[test]
fn the_next_query_goes_out_before_the_record_is_looked_at() {
    let mut world = world();
    world.run();
    world.look_up(0..3);
    // How many queries each server had received when a value was told.
    let mut told = Vec::new();
    loop {
        while let Some(output) = world.poll() {
            if let Output::Errand(Errand::Reply { outcome: Ok(Some(_)), .. }) = output {
                told.push(asked(&world));
            }
            world.carry_out(output);
        }
        if !world.step() {
            break;
        }
    }
    assert_eq!(told, [2, 3, 3]);
}

#[test]
fn both_records_of_a_key_are_fetched_one_after_the_other_whichever_holds_it() {
    let mut reference = None;
    for k in 0..40 {
        let peer = Peer::keyed_as(KeyMapKind::Cuckoo, SchemeId::SimplePir, 30);
        let peer = toy::serve(peer, 2, TOTAL, VERIFYING);
        let mut world = toy::world(&peer);
        world.run();
        let before = world.sent.len();
        let (key, value) = pair(k);
        let found = world.get(Target::key(key)).unwrap().map(|value| value.to_vec());
        assert_eq!(found, (k < 30).then_some(value));
        let settled: Vec<_> = world.completions.iter().map(|(records, _)| *records).collect();
        assert_eq!(settled, [1, 2]);
        let traffic = world.trace()[before..].to_vec();
        assert_eq!(traffic.len(), 4);
        assert_eq!(*reference.get_or_insert(traffic.clone()), traffic, "key {k}");
    }
}

#[test]
fn any_wrong_bit_of_any_answer_ends_the_hints_for_good() {
    for liar in [0, 1] {
        for bit in (0..ANSWER_BITS).step_by(if liar == 0 { 1 } else { 5 }) {
            let mut world = world();
            assert_eq!(world.found(Target::index(1)), expected(1));
            lie(&mut world, liar, bit, 1);
            let lookups = world.look_up(0..4);
            world.run();
            let why = format!("the answer of server {liar}");
            for lookup in &lookups {
                let error = world.outcomes[lookup].as_ref().unwrap_err();
                assert_eq!(error.blame(), Blame::Integrity, "bit {bit}");
                assert!(error.message().contains(&why), "{error}");
            }
            let [(kept, before)] = &world.ends[..] else { panic!("{:?}", world.ends) };
            assert!(kept.contains(&why), "{kept}");
            assert_eq!(*before, 0, "nobody was told before it was kept");
            assert_eq!((asked(&world), world.failed_with()), (2, Blame::Integrity));

            // Neither this session nor later ones ask anything.
            assert_eq!(world.get(Target::index(5)).unwrap_err().blame(), Blame::Integrity);
            assert_eq!(asked(&world), 2);
            let next = check_that_it_stays_so(world, &why);
            check_that_it_stays_so(next, &why);
        }
    }
}

#[test]
fn a_wrong_answer_for_one_of_two_records_ends_it_the_same_whichever_was_wanted() {
    for k in 0..40 {
        for wrong in [1, 2] {
            let peer = Peer::keyed_as(KeyMapKind::Cuckoo, SchemeId::SimplePir, 30);
            let mut world = toy::world(&toy::serve(peer, 2, TOTAL, VERIFYING));
            world.run();
            let mut number = 0;
            world.change_answers(move |role, answer| {
                number += usize::from(role == 1);
                answer[9] ^= 0x20 * u8::from((role, number) == (1, wrong));
            });
            assert_eq!(world.get(Target::key(pair(k).0)).unwrap_err().blame(), Blame::Integrity);
            assert_eq!(asked(&world), wrong);
        }
    }
}

#[test]
fn the_wrong_answer_to_an_earlier_processes_query_ends_them_as_well() {
    let mut world = world();
    world.found(Target::index(1));
    shorten(&mut world, 0);
    world.get(Target::index(2)).unwrap_err();
    let mut next = after(world);
    lie(&mut next, 0, 3, 1);
    next.run();
    assert_eq!((next.failed_with(), next.ends.len(), asked(&next)), (Blame::Integrity, 1, 1));
    check_that_it_stays_so(next, "the answer of server 0");
}

#[test]
fn an_end_that_cannot_be_kept_is_told_with_what_to_do() {
    let mut world = world();
    world.found(Target::index(1));
    lie(&mut world, 1, 0, 1);
    world.end_breaks = true;
    let error = world.get(Target::index(2)).unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity);
    assert!(error.message().contains("the disk is full"), "{error}");
    assert!(error.message().contains("could not be written down"), "{error}");
    assert_eq!(world.get(Target::index(2)).unwrap_err().blame(), Blame::Integrity);
    // A later process knows of a query without an answer, and sends that one.
    let sent = world.queries_to(0);
    let mut next = after(world);
    assert_eq!(next.found(Target::index(2)), expected(2));
    assert_eq!(next.queries_to(0)[0], sent[1]);
}

#[test]
fn what_is_no_answer_fails_its_lookup_and_is_sent_again_before_the_next() {
    for silent in [0, 1] {
        let mut world = world();
        world.found(Target::index(1));
        shorten(&mut world, silent);
        assert_eq!(world.get(Target::index(2)).unwrap_err().blame(), Blame::InvalidMessage);
        assert_eq!(kept(&mut world).unfinished.len(), 1);
        // It is sent once more with the next lookup, alone; while it has no answer, nothing else is
        // sent.
        let before = [0, 1].map(|server| world.queries_to(server));
        let error = world.get(Target::index(3)).unwrap_err();
        assert_eq!(error.blame(), Blame::Unavailable);
        assert!(error.message().contains("sent again"), "{error}");
        for server in [0, 1] {
            let sent = world.queries_to(server);
            assert_eq!(sent[before[server].len()..], before[server][1..], "byte for byte");
        }
        world.true_responses();
        assert_eq!(world.found(Target::index(3)), expected(3));
        for server in [0, 1] {
            let sent = world.queries_to(server);
            assert_eq!((sent.len(), &sent[3]), (5, &sent[1]));
        }
        assert!(kept(&mut world).unfinished.is_empty());
        let lost = {
            shorten(&mut world, silent);
            world.get(Target::index(2)).unwrap_err();
            world.queries_to(0).last().unwrap().clone()
        };
        let mut next = after(world);
        assert_eq!(next.found(Target::index(4)), expected(4));
        assert_eq!((&next.queries_to(0)[0], asked(&next)), (&lost, 2));
    }
}

/// Every kind of message, from either server.
#[test]
fn no_lie_of_any_kind_brings_a_wrong_value() {
    type Lie = fn(&mut Response);
    let lies: [(&str, Lie); 4] = [
        ("described", |response| {
            if let Response::Described(description) = response {
                description.tables[0].identity.digest.0[7] ^= 4;
            }
        }),
        ("layout or stream", |response| {
            if let Response::Chunk(chunk) = response {
                let mut data = chunk.data.to_vec();
                data[0] ^= 1;
                chunk.data = data.into();
            }
        }),
        ("answer", |response| {
            if let Response::Answered(response) = response {
                let mut answer = response.answer.to_vec();
                answer[9] ^= 1;
                response.answer = answer.into();
            }
        }),
        ("another's answer", |response| {
            if let Response::Answered(response) = response {
                response.answer = vec![0; response.answer.len()].into();
            }
        }),
    ];
    for (what, lie) in lies {
        for liar in [0, 1] {
            let mut world = world();
            let mut described = 0;
            world.falsify = Box::new(move |request, mut responses| {
                let by = match request {
                    Request::Answer(request) => usize::from(request.role.0),
                    // The first half comes from the first.
                    Request::Fetch(request) if request.part == PartKind::Table => {
                        usize::from(request.offset >= RECORDS * RECORD_LEN / 2)
                    }
                    Request::Describe(_) => {
                        described += 1;
                        described - 1
                    }
                    _ => 0,
                };
                if by == liar {
                    responses.iter_mut().flatten().for_each(lie);
                }
                responses
            });
            let error = world.get(Target::index(7)).unwrap_err();
            assert_eq!(error.blame(), Blame::Integrity, "{what}, server {liar}: {error}");
            assert_eq!(world.failed_with(), Blame::Integrity);
            assert_eq!(asked(&world), usize::from(what.contains("answer")), "{what}");
        }
    }
}

/// A scheme without state whose answers fail verification: the session is over, and no other lookup
/// is asked.
#[test]
fn a_wrong_answer_ends_the_session_of_a_scheme_without_state() {
    fn start(
        plan: SchemePlan,
        identity: &TableIdentity,
        hint: Arc<dyn HintSource>,
        kernels: Kernels,
    ) -> Result<Box<dyn ErasedClient>> {
        Ok(Box::new(Suspicious(registry::client(plan, identity, hint, kernels)?)))
    }
    let peer = Peer::indexed_by(SchemeId::Dpf, 40, 4, 1);
    let options = SessionOptions { in_flight: 2, ..options(2) };
    let parts = Parts { start_client: start, ..parts() };
    let mut world = World::with_parts(vec![peer; 2], options, parts);
    let lookups = world.look_up(0..6);
    world.run();
    for lookup in lookups {
        let error = world.outcomes[&lookup].as_ref().unwrap_err();
        assert_eq!(error.blame(), Blame::Integrity);
        assert!(error.message().contains("Nothing more was asked"), "{error}");
    }
    assert_eq!(world.failed_with(), Blame::Integrity);
    // The two that were under way, and one that began after the first was answered and before that
    // answer was read.
    assert!(asked(&world) <= 4, "{}", asked(&world));
}

/// Believes no answer.
struct Suspicious(Box<dyn ErasedClient>);

impl ErasedClient for Suspicious {
    fn plan(&self) -> &SchemePlan {
        self.0.plan()
    }

    fn prepare(
        &mut self,
        index: &privet_core::RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<privet_schemes::reservation::Prepared> {
        self.0.prepare(index, rng)
    }

    fn recover(
        &mut self,
        _: privet_schemes::reservation::Pending,
        _: &[&[u8]],
    ) -> Result<privet_schemes::registry::Recovered> {
        Err(Error::integrity("the answers contradict each other"))
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn privet_schemes::registry::Rehearsal>> {
        self.0.into_rehearsal()
    }
}
