//! Schemes of two servers that agree: each server gets one query for each lookup, and the outcome
//! of one query neither delays nor changes the other. (The module [`agreement`](super::agreement)
//! is about servers that do not agree.)

use super::world::*;
use crate::session::*;
use privet_core::SecretRng;
use privet_kernels::Kernels;
use privet_schemes::{SchemeId, registry};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const KEYS: usize = 20;
const LOOKUPS: usize = 12;

pub(super) fn peer() -> Peer {
    Peer::keyed_by(SchemeId::Dpf, KEYS)
}

pub(super) fn world() -> World {
    World::of(&peer())
}

/// Hands in lookups of hits and misses.
fn look_up(world: &mut World) -> Vec<LookupId> {
    (0..LOOKUPS).map(|k| world.session.lookup(Target::key(pair(2 * k).0))).collect()
}

/// Checks all outcomes, and that each server got as many different queries as there were lookups: a
/// repeat has the same bytes and goes to the same server.
fn check_all(world: &World, lookups: &[LookupId]) {
    assert!(world.failure.is_none(), "{:?}", world.failure);
    for (k, lookup) in lookups.iter().enumerate() {
        let value = world.outcomes[lookup].as_ref().unwrap().as_ref().map(|value| value.to_vec());
        assert_eq!(value, (2 * k < KEYS).then(|| pair(2 * k).1), "lookup {k}");
    }
    let different =
        [0, 1].map(|server| world.queries_to(server).into_iter().collect::<HashSet<_>>());
    assert!(different.iter().all(|queries| queries.len() == lookups.len()));
    assert!(different[0].is_disjoint(&different[1]), "no query goes to both servers");
}

/// The kinds and lengths of all requests to one server.
fn to(world: &World, server: usize) -> Vec<(&'static str, usize)> {
    let sent = world.trace().into_iter().filter(|sent| sent.0 == server);
    sent.map(|(_, kind, len)| (kind, len)).collect()
}

fn kinds_to(world: &World, server: usize) -> Vec<&'static str> {
    to(world, server).into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn a_lookup_is_one_query_to_each_server_in_its_role() {
    let mut world = world();
    let lookups = look_up(&mut world);
    world.run();
    check_all(&world, &lookups);
    let answers = vec!["answer"; LOOKUPS];
    assert_eq!(kinds_to(&world, 0), [&["describe", "fetch"][..], &answers].concat());
    assert_eq!(kinds_to(&world, 1), [&["describe"][..], &answers].concat());
    for (server, request) in &world.sent {
        if let Request::Answer(request) = request {
            assert_eq!(usize::from(request.role.0), *server);
        }
    }
}

#[test]
fn each_message_in_turn_is_lost_broken_turned_away_late_or_repeated() {
    let run = |fault: Option<(usize, Fate)>| {
        let mut world = world();
        world.fate = Box::new(move |k, _| match fault {
            Some((at, fate)) if k == at => fate,
            _ => Fate::Arrives,
        });
        let lookups = look_up(&mut world);
        world.run();
        check_all(&world, &lookups);
        world
    };
    let undisturbed = run(None);
    let messages = undisturbed.sent.len();
    assert_eq!(messages, 3 + 2 * LOOKUPS);
    for at in 0..messages {
        for fate in [Fate::Lost, Fate::Breaks, Fate::TurnedAway, Fate::Late(200_000), Fate::Twice] {
            let disturbed = run(Some((at, fate)));
            let repeated = disturbed.sent.len() - messages;
            let expected = if fate == Fate::Twice { 0..=0 } else { 1..=2 };
            assert!(expected.contains(&repeated), "{fate:?} at {at}: {repeated} more messages");
            let other = 1 - undisturbed.sent[at].0;
            assert_eq!(
                to(&disturbed, other),
                to(&undisturbed, other),
                "{fate:?} at {at}: the other server sees nothing of it"
            );
        }
    }
}

#[test]
fn a_slow_server_holds_up_its_lookups_and_nothing_else() {
    for slow in [0, 1] {
        let mut world = world();
        world.run();
        world.fates[slow] = Fate::Late(20_000);
        let before = world.now;
        let lookups = look_up(&mut world);
        world.carry_out_all();
        let under_way = options(2).in_flight;
        assert_eq!([0, 1].map(|server| world.queries_to(server).len()), [under_way; 2]);
        world.run();
        check_all(&world, &lookups);
        assert!(world.now - before >= Duration::from_secs(40), "two rounds of twenty seconds");
        assert_eq!([0, 1].map(|server| world.queries_to(server).len()), [LOOKUPS; 2], "no retry");
    }
}

#[test]
fn a_server_restarted_while_the_other_is_fine_loses_no_lookup() {
    for (restarted, fate) in
        [(0, Fate::Breaks), (1, Fate::Breaks), (0, Fate::Lost), (1, Fate::TurnedAway)]
    {
        let mut world = world();
        world.run();
        world.fates[restarted] = fate;
        let lookups = look_up(&mut world);
        let until = world.now + Duration::from_secs(90);
        while world.now < until {
            assert!(world.step(), "somebody is waited for");
        }
        assert!(world.outcomes.is_empty(), "no lookup is over with one answer");
        let other = 1 - restarted;
        assert_eq!(world.queries_to(other).len(), options(2).in_flight);
        world.fates[restarted] = Fate::Arrives;
        world.run();
        check_all(&world, &lookups);
        assert_eq!(world.queries_to(other).len(), LOOKUPS, "nothing was sent again to the other");
        let described =
            kinds_to(&world, restarted).iter().filter(|kind| **kind == "describe").count();
        match fate {
            Fate::TurnedAway => assert_eq!(described, 1, "a busy server is not in doubt"),
            _ => assert!(described > 1, "it was asked again before it got another query"),
        }
    }
}

#[test]
fn a_server_that_stays_away_costs_the_lookups_but_not_the_session() {
    for (away, name) in [(0, "the first server"), (1, "the second server")] {
        let mut world = World::with(&peer(), |options| options.patience = Patience::default());
        world.run();
        world.fates[away] = Fate::Lost;
        let error = world.get(Target::key(pair(1).0)).unwrap_err();
        assert_eq!(error.blame(), Blame::Unavailable);
        assert!(error.message().starts_with(name), "{error}");
        assert_eq!(world.queries_to(1 - away).len(), 1);
        assert!(world.failure.is_none());

        world.fates[away] = Fate::Arrives;
        assert_eq!(world.found(Target::key(pair(2).0)), pair(2).1, "it is back");
    }
}

#[test]
fn a_server_that_was_never_there_ends_the_session_before_anything_is_asked() {
    for away in [0, 1] {
        let mut world = World::with(&peer(), |options| options.patience = Patience::default());
        world.fates[away] = Fate::Breaks;
        let lookups = look_up(&mut world);
        world.run();
        assert_eq!(world.failed_with(), Blame::Unavailable);
        assert!(lookups.iter().all(|lookup| world.outcomes[lookup].is_err()));
        assert_eq!(kinds_to(&world, 1 - away), ["describe"]);
    }
}

/// The server, the kind and the length of each request.
type Traffic = Vec<(usize, &'static str, usize)>;

/// Outcomes and traffic of twenty lookups by index, while server `liar` does `lie` to its answers.
fn lied_to(liar: u8, lie: fn(&mut Vec<u8>)) -> (Vec<Result<Vec<u8>>>, Traffic) {
    let mut world = World::of(&Peer::indexed_by(SchemeId::Dpf, 50, 8, 1));
    world.change_answers(move |role, answer| {
        if role == liar {
            lie(answer);
        }
    });
    let outcomes = (0..20).map(|index| world.get(Target::index(index)));
    let outcomes = outcomes.map(|outcome| outcome.map(|value| value.unwrap().to_vec()));
    (outcomes.collect(), world.trace())
}

/// The scheme does not notice: a record is only as good as the worse of its two answers. But
/// nothing that a server sees depends on it.
#[test]
fn a_wrong_answer_of_one_server_spoils_the_record_and_changes_nothing_that_is_sent() {
    let (truth, reference) = lied_to(0, |_| ());
    let truth: Vec<_> = truth.into_iter().map(Result::unwrap).collect();
    for liar in [0, 1] {
        let (wrong, trace) = lied_to(liar, |answer| answer[3] ^= 0x41);
        for (wrong, truth) in wrong.into_iter().zip(&truth) {
            let mut expected = truth.clone();
            expected[3] ^= 0x41;
            assert_eq!(wrong.unwrap(), expected);
        }
        assert_eq!(trace, reference);

        let (none, trace) = lied_to(liar, |answer| answer.truncate(7));
        let name = ["the first server: ", "the second server: "][usize::from(liar)];
        for outcome in none {
            let error = outcome.unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage);
            assert!(error.message().starts_with(name), "{error}");
        }
        assert_eq!(trace, reference);
    }
}

#[test]
fn a_refusal_of_one_server_costs_one_lookup() {
    for refuser in [0, 1] {
        let mut world = world();
        let mut refusals = 1;
        world.falsify = Box::new(move |request, responses| match request {
            Request::Answer(request) if request.role.0 == refuser && refusals > 0 => {
                refusals -= 1;
                vec![Err(Error::invalid_message("the query is malformed"))]
            }
            _ => responses,
        });
        assert_eq!(world.get(Target::key(pair(1).0)).unwrap_err().blame(), Blame::InvalidMessage);
        assert_eq!(world.found(Target::key(pair(1).0)), pair(1).1, "the session goes on");
        assert_eq!([0, 1].map(|server| world.queries_to(server).len()), [2; 2]);
    }
}

#[test]
fn what_is_no_response_is_told_with_the_servers_name() {
    for (wrong, name) in [(0, "the first server"), (1, "the second server")] {
        let mut world = world();
        world.falsify = Box::new(move |request, responses| match request {
            Request::Answer(request) if request.role.0 == wrong => vec![Ok(Response::End)],
            _ => responses,
        });
        let error = world.get(Target::key(pair(1).0)).unwrap_err();
        assert_eq!(error.blame(), Blame::PeerMisbehaved);
        let said = format!("the response of {name} does not belong to the request");
        assert_eq!(error.message(), said);
    }
    let mut world = world();
    world.falsify = Box::new(|request, responses| match request {
        Request::Fetch(_) => vec![Ok(Response::End)],
        _ => responses,
    });
    world.run();
    assert_eq!(
        world.failure.unwrap().message(),
        "the first server ended a download before its end"
    );
}

/// In DPF-PIR, the sum of the two answers is the record.
#[test]
fn answers_that_are_kept_are_erased_when_they_are_dropped() {
    fn is_erased<T: zeroize::ZeroizeOnDrop>(_: &T) {}
    let mut lookups = Lookups::default();
    lookups.add(Target::index(0));
    let fetch = lookups.begin_next(1).unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    let mut client = {
        let peer = peer();
        let plan = peer.scheme().plan.clone();
        registry::client(plan, &peer.identity(), Arc::new(Vec::new()), Kernels::detect()).unwrap()
    };
    let index = privet_core::RecordIndex::new(0, peer().identity().shape).unwrap();
    let privet_schemes::reservation::Prepared::Ready(prepared) =
        client.prepare(&index, &mut rng).unwrap()
    else {
        panic!("DPF-PIR asks at once")
    };
    lookups.mark_asked(fetch, prepared.pending, 2);
    for server in [0, 1] {
        lookups.server_answered(fetch, server, Ok(vec![server as u8].into()));
    }
    let (.., answers) = lookups.next_answered().unwrap();
    let answers = answers.unwrap();
    assert_eq!(answers.iter().map(|answer| answer[0]).collect::<Vec<_>>(), [0, 1]);
    answers.iter().for_each(is_erased);
}
