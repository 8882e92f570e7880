//! The five invariants at the head of the session, for schemes with single-use hints: a toy, and
//! dummy subsets.

use super::toy::{self, Kind};
use super::world::*;
use crate::session::preparation::Pace;
use crate::session::timetable::Measuring;
use crate::session::*;
use privet_schemes::SchemeId;
use std::collections::HashSet;

const RECORDS: u64 = 40;
/// A table with so many records that two queries are never equal by chance.
const MANY_RECORDS: u64 = 2000;
const RECORD_LEN: u64 = 12;

#[derive(Clone, Copy, Debug)]
enum Scheme {
    Toy,
    DummySubsets,
}

const SCHEMES: [Scheme; 2] = [Scheme::Toy, Scheme::DummySubsets];

impl Scheme {
    fn peer(self) -> Peer {
        self.peer_of(RECORDS)
    }

    fn peer_of(self, records: u64) -> Peer {
        match self {
            Scheme::Toy => toy::peer(records, RECORD_LEN, 1, 30, Kind::default()),
            Scheme::DummySubsets => {
                Peer::indexed_by(SchemeId::DummySubsets, records, RECORD_LEN, 1)
            }
        }
    }

    fn world(self, peer: Peer) -> World {
        let mut parts = toy::parts(7);
        if let Scheme::DummySubsets = self {
            let pace = Pace { shortest_piece: 64, shortest_step: 1, ..parts.pace };
            parts = Parts {
                pace,
                rng: parts.rng,
                measuring: Measuring::brief(),
                ..Parts::of_the_registry().unwrap()
            };
        }
        let session = Session::with_parts(options(1), Duration::ZERO, parts).unwrap();
        World::with_session(vec![peer], session)
    }
}

/// Enough lookups to reach the next generation of either scheme.
const LOOKUPS: u64 = 340;

type Traffic = Vec<(usize, &'static str, usize)>;

/// The outcomes of `lookups` one after another, and the traffic.
fn history(
    scheme: Scheme,
    lookups: u64,
    targets: impl Fn(u64) -> u64,
    disturb: impl FnOnce(&mut World),
) -> (Vec<Result<Vec<u8>>>, Traffic) {
    let mut world = scheme.world(scheme.peer());
    world.run();
    disturb(&mut world);
    let outcomes = (0..lookups).map(|k| {
        let value = world.get(Target::index(targets(k) % RECORDS));
        value.map(|value| value.unwrap().to_vec())
    });
    (outcomes.collect(), world.trace())
}

fn expected(index: u64) -> Vec<u8> {
    let record = index * RECORD_LEN..(index + 1) * RECORD_LEN;
    record.map(|i| (i * 13 + i / 251 + 1) as u8).collect()
}

#[test]
fn traffic_depends_on_the_number_of_lookups_alone() {
    for scheme in SCHEMES {
        let (_, reference) = history(scheme, LOOKUPS, |_| 0, |_| ());
        let streamed = reference.iter().filter(|sent| sent.1 == "fetch").count();
        assert!(streamed > 6, "{scheme:?}: the next generation was streamed");
        let sequences: [fn(u64) -> u64; 4] =
            [|k| k, |k| RECORDS - 1 - k % RECORDS, |k| k % 2, |k| k * k * 7 + k / 5];
        for targets in sequences {
            let (outcomes, trace) = history(scheme, LOOKUPS, targets, |_| ());
            assert_eq!(trace, reference, "{scheme:?}");
            for (k, outcome) in outcomes.into_iter().enumerate() {
                let index = targets(k as u64) % RECORDS;
                assert_eq!(outcome.unwrap(), expected(index), "{scheme:?}: lookup {k}");
            }
        }
    }
}

#[test]
fn traffic_after_useless_answers_equals_traffic_after_good_ones() {
    for scheme in SCHEMES {
        let (good, reference) = history(scheme, 20, |k| k % 3, |_| ());
        assert!(good.iter().all(Result::is_ok));
        let answer_len = scheme.peer().scheme().plan.answer_len;
        let useless = [vec![0xee; answer_len], vec![0xee; answer_len - 1], Vec::new()];
        for answer in useless {
            let (bad, trace) = history(
                scheme,
                20,
                |k| k % 3,
                |world| {
                    world.falsify = Box::new(move |_, mut responses| {
                        if let Ok(Response::Answered(response)) = &mut responses[0] {
                            response.answer = answer.clone().into();
                        }
                        responses
                    });
                },
            );
            // On so small a table two wrong answers may cancel, if the hint that the first
            // completed serves the second: then a record is right by chance.
            let pairs = bad.iter().zip(&good);
            let right = pairs.filter(|(bad, good)| bad.as_ref().ok() == good.as_ref().ok()).count();
            assert!(right < 5, "{scheme:?}: {right} records of {} are right", good.len());
            assert_eq!(trace, reference, "{scheme:?}");
        }
    }
}

#[test]
fn each_of_several_equal_lookups_is_a_query_of_its_own() {
    for scheme in SCHEMES {
        let mut world = scheme.world(scheme.peer_of(MANY_RECORDS));
        world.run();
        let lookups: Vec<_> = (0..20).map(|_| world.session.lookup(Target::index(5))).collect();
        world.run();
        for lookup in lookups {
            let value = world.outcomes[&lookup].as_ref().unwrap().as_ref().unwrap().to_vec();
            assert_eq!(value, expected(5), "{scheme:?}");
        }
        let different: HashSet<_> = world.queries().into_iter().collect();
        assert_eq!((world.queries().len(), different.len()), (20, 20), "{scheme:?}");
    }
}

#[test]
fn retries_repeat_the_journaled_bytes() {
    for scheme in SCHEMES {
        for seed in 0..20 {
            let mut world = scheme.world(scheme.peer_of(MANY_RECORDS));
            let mut dice = Dice(seed);
            world.fate = Box::new(move |_, _| match dice.roll(5) {
                0 => Fate::Lost,
                1 => Fate::Breaks,
                2 => Fate::Twice,
                3 => Fate::Late(dice.roll(100_000)),
                _ => Fate::Arrives,
            });
            let lookups: Vec<_> =
                (0..10).map(|k| world.session.lookup(Target::index(k % 4))).collect();
            world.run();
            for (k, lookup) in lookups.iter().enumerate() {
                let value = world.outcomes[lookup].as_ref().unwrap().as_ref().unwrap().to_vec();
                assert_eq!(value, expected(k as u64 % 4), "{scheme:?}");
            }
            let different: HashSet<_> = world.queries().into_iter().collect();
            assert_eq!(different.len(), 10, "{scheme:?}: a retry repeats a query, byte for byte");
        }
    }
}

#[test]
fn every_message_names_table_version_and_parameters() {
    for scheme in SCHEMES {
        let mut world = scheme.world(scheme.peer());
        for k in 0..20 {
            assert_eq!(world.found(Target::index(k)), expected(k));
        }
        let (identity, digest) =
            (world.peers[0].identity(), world.peers[0].scheme().parameter_digest);
        for (_, request) in &world.sent {
            let named = match request {
                Request::Describe(_) => continue,
                Request::Prepare(asked) => (asked.table, asked.epoch, asked.parameter_digest),
                Request::Fetch(fetch) => (fetch.table, fetch.epoch, fetch.parameter_digest),
                Request::Answer(answer) => (answer.table, answer.epoch, answer.parameter_digest),
            };
            assert_eq!(named, (identity.id, identity.epoch, digest));
        }
    }
}

#[test]
fn a_server_that_returns_with_another_story_gets_no_further_query_and_streams_nothing() {
    for scheme in SCHEMES {
        let mut world = scheme.world(scheme.peer());
        world.found(Target::index(0));
        world.peers[0] = scheme.peer().with_identity(|identity| identity.epoch.0 += 1);
        let broken_at = world.sent.len();
        world.fate =
            Box::new(move |k, _| if k == broken_at { Fate::Breaks } else { Fate::Arrives });
        assert_eq!(world.get(Target::index(1)).unwrap_err().blame(), Blame::Integrity);
        assert_eq!(world.failed_with(), Blame::Integrity);
        let after: Vec<_> = world.trace()[broken_at + 1..].iter().map(|sent| sent.1).collect();
        assert_eq!(after, ["describe"], "{scheme:?}");
    }
}
