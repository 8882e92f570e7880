//! Servers that delay a client: they say nothing, or send a byte now and then, or fail again and
//! again, or answer others first. Every wait ends, whatever causes it.

use super::living::Living;
use super::world::*;
use crate::session::*;
use privet_core::Reason;
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use privet_wire::PartKind;

/// How long a server that gets nothing done can hold a session if a response may take `one`: that
/// time, the same again in new attempts, and a little for the network.
fn longest(one: Duration) -> Duration {
    let Patience { give_up_after, longest_pause, describe, .. } = Patience::default();
    2 * one.max(give_up_after) + 2 * longest_pause + describe
}

/// A world with a user's default patience.
fn world(peer: &Peer) -> World {
    World::with(peer, |options| options.patience = Patience::default())
}

/// Responses to fetches of `part`, one byte each, as long as the session waits for them.
fn bytes_of(part: PartKind) -> Falsify {
    Box::new(move |request, responses| {
        if !is_for(part, request) {
            return responses;
        }
        let Some(Ok(Response::Chunk(first))) = responses.into_iter().next() else {
            return Vec::new();
        };
        let single = |at: usize| {
            let offset = first.offset + at as u64;
            Ok(Response::Chunk(FetchChunk { offset, data: first.data.slice(at..at + 1) }))
        };
        (0..first.data.len().min(60)).map(single).collect()
    })
}

/// Runs until the session fails, which must happen in time; returns the message.
fn fails_in_time(world: &mut World, within: Duration) -> String {
    let lookup = world.session.lookup(Target::index(0));
    while world.failure.is_none() {
        let goes_on = world.step();
        assert!(goes_on || world.failure.is_some(), "it waits for nothing, and is not over");
        assert!(world.now <= within, "still waiting after {:?}", world.now);
    }
    while let Some(output) = world.session.poll(world.now) {
        world.carry_out(output);
    }
    assert_eq!(world.failed_with(), Blame::Unavailable);
    assert_eq!(world.outcomes[&lookup].as_ref().unwrap_err().blame(), Blame::Unavailable);
    world.failure.as_ref().unwrap().message().to_owned()
}

/// A table in its first version and in a later one.
fn updated() -> (Peer, Peer) {
    let mut living = Living::new(SchemeId::Dpf, KeyMapKind::Cuckoo, 60);
    let before = living.peer(0, &[], 0);
    let edits: Vec<_> =
        (0..10).map(|k| (format!("key-{k}").into_bytes(), Some(b"new".to_vec()))).collect();
    let version = living.update(&edits);
    let after = living.peer(version, &[], 0);
    (before, after)
}

/// A client that has pinned the first version, at servers that have the later one.
fn behind((before, after): (Peer, Peer)) -> World {
    let mut first = world(&before);
    first.run();
    World::with(&after, |options| {
        options.patience = Patience::default();
        know_pins(options, &mut *first.keeper.state);
    })
}

/// Every part that is fetched, each with a scheme that fetches it.
fn parts() -> Vec<(Peer, PartKind)> {
    vec![
        (Peer::keyed(20), PartKind::Layout),
        (Peer::indexed(1000, 20, 1), PartKind::Hint),
        (Peer::indexed_by(SchemeId::Download, 1000, 20, 1), PartKind::Table),
        (Peer::indexed_by(SchemeId::DummySubsets, 1000, 20, 1), PartKind::Table),
        (Peer::indexed_by(SchemeId::Piano, 1000, 20, 1), PartKind::Hint),
        (updated().1, PartKind::Updates),
    ]
}

#[test]
fn a_byte_now_and_then_does_not_keep_a_client() {
    for (peer, part) in parts() {
        for pause in [1, 1000, 20_000] {
            let mut world = match part {
                PartKind::Updates => behind(updated()),
                _ => world(&peer),
            };
            world.falsify = bytes_of(part);
            world.fate = Box::new(move |_, request| match is_for(part, request) {
                true => Fate::Drips(pause),
                false => Fate::Arrives,
            });
            let said = fails_in_time(&mut world, Duration::from_secs(125));
            assert!(said.contains("the server") || said.contains("the first server"), "{said}");
            let slow = [Some(Reason::TooSlow), Some(Reason::NoAnswerInTime)];
            assert!(slow.contains(&world.reason()), "{part}: {said}");
            assert!(said.contains(&part.to_string()), "{part}: {said}");
        }
    }
}

/// Each attempt brings one byte, and then the connection breaks: formally, this is progress.
#[test]
fn a_byte_with_each_attempt_does_not_keep_a_client() {
    // A small part would be complete before any server is given up.
    let large = |part: &PartKind| !matches!(part, PartKind::Updates | PartKind::Layout);
    for (peer, part) in parts().into_iter().filter(|(_, part)| large(part)) {
        let mut world = world(&peer);
        let mut drip = bytes_of(part);
        world.falsify = Box::new(move |request, responses| {
            let mut responses = drip(request, responses);
            if is_for(part, request) {
                responses.truncate(1);
                responses.push(Err(Error::unavailable("the connection broke")));
            }
            responses
        });
        fails_in_time(&mut world, Duration::from_secs(125));
    }
}

#[test]
fn a_download_at_the_least_rate_is_waited_for() {
    let peer = Peer::indexed(24, 20, 1);
    let len = peer.hint.len() as u64;
    // On any allowed line a hint of these tests would be there at once.
    let patience = Patience { least_rate: len / 600, ..Patience::default() };
    let mut world = World::with(&peer, |options| options.patience = patience);
    world.fate = Box::new(move |_, request| match is_for(PartKind::Hint, request) {
        // In chunks of 5000 bytes.
        true => Fate::Drips(5000 * 1000 * 500 / len),
        false => Fate::Arrives,
    });
    world.found(Target::index(3));
    assert!(world.now > Duration::from_secs(300), "it took its time: {:?}", world.now);
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_every_phase() {
    type Kind = fn(&Request) -> bool;
    let kinds: [(Kind, SchemeId); 4] = [
        (|request| matches!(request, Request::Describe(_)), SchemeId::SimplePir),
        (|request| matches!(request, Request::Fetch(_)), SchemeId::SimplePir),
        (|request| matches!(request, Request::Fetch(_)), SchemeId::DummySubsets),
        (|request| matches!(request, Request::Prepare(_)), SchemeId::SinglePass),
    ];
    for (kind, scheme) in kinds {
        for fate in [Fate::Lost, Fate::Breaks, Fate::TurnedAway] {
            let mut world = world(&Peer::indexed_by(scheme, 24, 20, 1));
            world.fate =
                Box::new(move |_, request| if kind(request) { fate } else { Fate::Arrives });
            world.session.lookup(Target::index(0));
            while world.failure.is_none() {
                let goes_on = world.step();
                assert!(goes_on || world.failure.is_some());
                let one = match scheme {
                    SchemeId::SinglePass => Patience::default().reply,
                    _ => Patience::default().answer,
                };
                assert!(world.now <= longest(one), "{scheme} {fate:?}: {:?}", world.now);
            }
            let blames = [Blame::Unavailable, Blame::Exhausted];
            assert!(blames.contains(&world.failed_with()), "{:?}", world.failure);
        }
    }
}

/// A server that stops in the middle of a long list costs one wait, not one for every few lookups.
#[test]
fn a_server_that_stops_in_the_middle_ends_all_lookups_together() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::SinglePass, SchemeId::Piano] {
        for fate in [Fate::Lost, Fate::Breaks, Fate::TurnedAway] {
            for dead in [0, 1] {
                let peer = Peer::indexed_by(scheme, 24, 20, 1);
                let servers = peer.scheme().plan.servers;
                let mut world = world(&peer);
                world.found(Target::index(1));
                let lookups = world.look_up((0..100).map(|k| k % 24));
                let mut answers = 0;
                let start = world.now;
                world.fate = Box::new(move |_, request| {
                    let counts = matches!(request, Request::Answer(_));
                    answers += usize::from(counts);
                    if answers > 10 * servers { fate } else { Fate::Arrives }
                });
                if dead == 1 {
                    if servers == 1 {
                        continue;
                    }
                    world.fate = Box::new(|_, _| Fate::Arrives);
                    world.fates[1] = fate;
                }
                world.run();
                assert!(lookups.iter().all(|lookup| world.outcomes.contains_key(lookup)));
                let found = lookups.iter().filter(|lookup| world.outcomes[lookup].is_ok()).count();
                assert_eq!(found, if dead == 1 { 0 } else { 10 }, "{scheme} {fate:?}");
                let one = Patience::default().answer;
                assert!(world.now - start <= longest(one), "{scheme} {fate:?}: {:?}", world.now);
                assert!(world.failure.is_none(), "the session goes on");
                let given_up = world.events.iter().filter(|event| event.starts_with("GivenUp"));
                let dead = if dead == 1 { 1 } else { servers };
                assert_eq!(given_up.count(), dead, "{scheme} {fate:?}");

                // The next lookup tries again, and briefly.
                let start = world.now;
                world.get(Target::index(2)).unwrap_err();
                assert!(world.now - start <= Duration::from_secs(75), "{:?}", world.now - start);
                world.fate = Box::new(|_, _| Fate::Arrives);
                world.fates = vec![Fate::Arrives; servers];
                // The next session gets the answer that single-use hints lack.
                if let SchemeId::SimplePir | SchemeId::Dpf = scheme {
                    world.found(Target::index(2));
                }
            }
        }
    }
}

/// Answers to all other lookups do not keep an unanswered one open.
#[test]
fn one_lookup_that_is_never_answered_ends_though_all_others_are() {
    let peer = Peer::indexed_by(SchemeId::Dpf, 24, 20, 1);
    let mut world = world(&peer);
    world.run();
    let starved = world.session.lookup(Target::index(0));
    let mut query: Option<Vec<u8>> = None;
    world.fate = Box::new(move |_, request| {
        let Request::Answer(answer) = request else { return Fate::Arrives };
        let first = query.get_or_insert_with(|| answer.query.to_vec());
        if *first == answer.query.to_vec() { Fate::Lost } else { Fate::Late(10_000) }
    });
    let start = world.now;
    while !world.outcomes.contains_key(&starved) {
        if world.session.has_no_lookups() || world.outcomes.len().is_multiple_of(7) {
            world.session.lookup(Target::index(5));
        }
        let goes_on = world.step();
        assert!(goes_on || world.outcomes.contains_key(&starved));
        assert!(world.now - start <= Duration::from_secs(240), "{:?}", world.now - start);
    }
    assert_eq!(world.outcomes[&starved].as_ref().unwrap_err().blame(), Blame::Unavailable);
    assert!(world.outcomes.values().any(Result::is_ok));
    assert!(!world.events.iter().any(|event| event.starts_with("GivenUp")));
}

/// A server may say everything twice, but not more than is allowed.
#[test]
fn what_comes_for_nothing_counts_as_well() {
    for (scheme, part) in
        [(SchemeId::SimplePir, PartKind::Hint), (SchemeId::DummySubsets, PartKind::Table)]
    {
        let peer = Peer::indexed_by(scheme, 24, 20, 1);
        let hints = peer.scheme().plan.hints_len(&peer.identity());
        let parts = (peer.hint.len() + peer.records.len() + peer.layout.len()) as u64;
        let limit = 10 * parts.max(hints);
        let flood = |times: u64| {
            let mut world = World::with(&peer, |options| options.max_download = limit);
            world.falsify = Box::new(move |request, mut responses| {
                let chunk = match (&responses[..], is_for(part, request)) {
                    ([Ok(Response::Chunk(chunk)), ..], true) => chunk.clone(),
                    _ => return responses,
                };
                let count = times * limit / chunk.data.len() as u64;
                let again = (0..count).map(|_| Ok(Response::Chunk(chunk.clone())));
                responses.splice(1..1, again);
                responses
            });
            world.run();
            world
        };
        let limited = flood(2);
        assert_eq!(limited.failed_with(), Blame::Exhausted, "{scheme}");
        assert_eq!(limited.reason(), Some(Reason::TooMuchToDownload));
        assert!(flood(0).failure.is_none());
    }
}

#[test]
fn a_session_can_be_stopped_from_outside() {
    let mut world = world(&Peer::indexed(24, 20, 1));
    world.fate = Box::new(|_, request| match request {
        Request::Answer(_) => Fate::Lost,
        _ => Fate::Arrives,
    });
    let lookups = world.look_up(0..20);
    while world.queries().is_empty() {
        assert!(world.step());
    }
    world.session.stop(Error::unavailable("the time is over"));
    world.run();
    assert_eq!(world.failed_with(), Blame::Unavailable);
    for lookup in lookups {
        let error = world.outcomes[&lookup].as_ref().unwrap_err();
        assert_eq!(error.message(), "the time is over");
    }
}
