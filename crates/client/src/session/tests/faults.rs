//! Whatever the network does, every lookup has the right outcome, and a retry repeats the same
//! bytes.

use super::world::*;
use crate::session::*;
use std::collections::HashSet;
use std::time::Duration;

const LOOKUPS: usize = 12;

/// Looks up hits and misses under `fate`, and checks all outcomes, and that there are as many
/// different queries as lookups.
fn survives(peer: &Peer, fate: impl FnMut(usize, &Request) -> Fate + 'static) -> World {
    let mut world = World::of(peer);
    world.fate = Box::new(fate);
    let lookups: Vec<_> =
        (0..LOOKUPS).map(|k| world.session.lookup(Target::key(pair(2 * k).0))).collect();
    world.run();
    assert!(world.failure.is_none(), "{:?}", world.failure);
    for (k, lookup) in lookups.iter().enumerate() {
        let value = world.outcomes[lookup].as_ref().unwrap().as_ref().map(|value| value.to_vec());
        assert_eq!(value, (2 * k < 20).then(|| pair(2 * k).1), "lookup {k}");
    }
    let different: HashSet<_> = world.queries().into_iter().collect();
    assert_eq!(different.len(), LOOKUPS, "a retry repeats a query, byte for byte");
    world
}

#[test]
fn each_message_in_turn_is_lost_broken_turned_away_late_or_repeated() {
    let peer = Peer::keyed(20);
    let messages = survives(&peer, |_, _| Fate::Arrives).sent.len();
    assert_eq!(messages, 3 + LOOKUPS);
    for at in 0..messages {
        // 200 s is beyond every timeout: the response comes long after the retry's.
        for fate in [
            Fate::Lost,
            Fate::Breaks,
            Fate::TurnedAway,
            Fate::Late(200_000),
            Fate::Cut(1),
            Fate::Twice,
        ] {
            let world = survives(&peer, move |k, _| if k == at { fate } else { Fate::Arrives });
            let repeated = world.sent.len() - messages;
            let expected = match fate {
                Fate::Twice => 0..=0,
                // If a part came in one chunk, nothing is left of it; a longer part is fetched from
                // there on.
                Fate::Cut(_) => 0..=2,
                // The request again. Before it, a description, unless the request is one or the
                // server was only busy. A late message delays only itself.
                _ => 1..=2,
            };
            assert!(expected.contains(&repeated), "{fate:?} at {at}: {repeated} more messages");
        }
    }
}

#[test]
fn a_restarted_server_that_tells_the_same_story_loses_no_lookup() {
    let peer = Peer::keyed(20);
    // From the sixth message on, the server is away for thirty messages.
    let world =
        survives(&peer, |k, _| if (6..36).contains(&k) { Fate::Breaks } else { Fate::Arrives });
    let described = world.kinds().iter().filter(|kind| **kind == "describe").count();
    assert!(described > 1, "it was asked again before it got another query");
    assert!(world.events.iter().any(|event| event.starts_with("Retrying")));
}

#[test]
fn a_refusal_stands_if_the_server_tells_the_same_story() {
    let mut world = World::of(&Peer::keyed(20));
    world.found(Target::key(pair(0).0));
    let mut refusals = 1;
    world.falsify = Box::new(move |request, responses| {
        if matches!(request, Request::Answer(_)) && refusals > 0 {
            refusals -= 1;
            return vec![Err(Error::invalid_message("the query is malformed"))];
        }
        responses
    });
    assert_eq!(world.get(Target::key(pair(1).0)).unwrap_err().blame(), Blame::InvalidMessage);
    assert_eq!(world.found(Target::key(pair(1).0)), pair(1).1, "the session goes on");
}

#[test]
fn a_server_that_was_never_there_is_given_up_soon() {
    let mut world = World::with(&Peer::keyed(20), |options| options.patience = Patience::default());
    world.fate = Box::new(|_, _| Fate::Breaks);
    let lookup = world.session.lookup(Target::key(b"key"));
    world.run();
    assert_eq!(world.failed_with(), Blame::Unavailable);
    assert_eq!(world.outcomes[&lookup].as_ref().unwrap_err().blame(), Blame::Unavailable);
    let patience = Patience::default();
    assert!(world.now >= patience.first_contact);
    assert!(world.now <= patience.first_contact + patience.longest_pause);
}

#[test]
fn a_server_that_stays_away_costs_the_lookups_but_not_the_session() {
    for fate in [Fate::Breaks, Fate::Lost, Fate::TurnedAway] {
        let peer = Peer::keyed(20);
        let mut world = World::with(&peer, |options| options.patience = Patience::default());
        world.found(Target::key(pair(0).0));
        let start = world.now;
        world.fate = Box::new(move |_, _| fate);
        let error = world.get(Target::key(pair(1).0)).unwrap_err();
        assert!(matches!(error.blame(), Blame::Unavailable | Blame::Exhausted));
        assert!(world.now - start >= Patience::default().give_up_after);
        assert!(world.now - start <= Duration::from_secs(140));
        assert!(world.failure.is_none());

        world.fate = Box::new(|_, _| Fate::Arrives);
        assert_eq!(world.found(Target::key(pair(2).0)), pair(2).1, "it is back");
    }
}

#[test]
fn pauses_grow_and_are_bounded() {
    let mut world = World::of(&Peer::keyed(20));
    world.fate = Box::new(|_, _| Fate::Breaks);
    let mut times = Vec::new();
    while world.now < Duration::from_secs(100) {
        let before = world.sent.len();
        world.step();
        if world.sent.len() > before {
            times.push(world.now);
        }
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let Patience { first_pause, longest_pause, .. } = Patience::default();
    assert!(pauses.iter().all(|pause| *pause >= first_pause / 2));
    assert!(pauses.iter().all(|pause| *pause <= longest_pause + Duration::from_millis(2)));
    assert!(pauses.iter().any(|pause| *pause > longest_pause / 2));
    assert!(times.len() < 60, "{} attempts in 100 s", times.len());
}

#[test]
fn a_server_in_doubt_gets_no_new_query_before_it_has_described_itself() {
    let mut world = World::of(&Peer::keyed(20));
    world.run();
    world.session.lookup(Target::key(pair(0).0));
    let Some(Output::Errand(Errand::Send { exchange, .. })) = world.poll() else {
        panic!("no query")
    };
    world.session.handle_failure(exchange, Error::unavailable("the connection broke"), world.now);
    world.session.lookup(Target::key(pair(1).0));
    let before = world.sent.len();
    world.run();
    let sent = world.kinds().split_off(before);
    assert_eq!(sent, ["describe", "answer", "answer"]);
    assert!(world.outcomes.values().all(Result::is_ok) && world.outcomes.len() == 2);
}

#[test]
fn a_busy_server_in_doubt_gets_no_query_either_before_it_has_described_itself() {
    let mut world = World::of(&Peer::keyed(20));
    world.run();
    let lookups = [0, 1].map(|k| world.session.lookup(Target::key(pair(k).0)));
    let mut exchanges = Vec::new();
    while let Some(output) = world.poll() {
        if let Output::Errand(Errand::Send { exchange, .. }) = output {
            exchanges.push(exchange);
        }
    }
    // The first will be tried again soon. Then the second finds the connection broken, and the
    // server stays away for a while.
    world.session.handle_failure(exchanges[0], Error::exhausted("the server is busy"), world.now);
    world.session.handle_failure(exchanges[1], Error::unavailable("it broke"), world.now);
    let before = world.sent.len();
    world.fate = Box::new(move |k, _| if k < before + 4 { Fate::Breaks } else { Fate::Arrives });
    world.run();
    let sent = world.kinds().split_off(before);
    assert_eq!(sent[..5], ["describe"; 5]);
    assert_eq!(sent[5..], ["answer"; 2]);
    assert!(lookups.iter().all(|lookup| world.outcomes[lookup].is_ok()));
}
