//! Lookups of a generation, overlapping, repeated and in any order.

use super::*;
#[cfg(test)]
use crate::planted::set_queries_per_generation;

pub fn any_table_any_sequence<S: Hinted>() {
    let tables = prop_oneof![
        (1u64..=5_000, 1u64..=300, Just(None)),
        (1u64..=20, 1u64..=20, Just(None)),
        (1u64..=3_000, 1u64..=40, S::cuts().prop_map(Some)),
    ];
    let look_up = |(records, record_len, cut), sequence, seed| {
        let shape = TableShape::new(records, record_len).unwrap();
        let mut world = World::<S>::with(S::parameters(shape, cut));
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut client = world.client();
        let count = client.supply().total.min(40);
        for index in world.indices(sequence, count) {
            let record = world.get(&mut client, index);
            world.assert_right(record, index);
        }
        S::check(&world, &client);
    };
    for once_failed in [(1, 1, Some(2)), (991, 3, Some(2)), (3, 73, None)] {
        look_up(once_failed, Sequence::Random, 0);
    }
    let config = ProptestConfig::with_cases(80);
    proptest!(config, |(table in tables, sequence in sequences(), seed: u8)| {
        look_up(table, sequence, seed);
    });
}

/// Every query of a generation finds its record, whatever the client asks for. Then no queries are
/// left. Hints that never run out are written down then, and not before.
pub fn a_generation_serves_its_queries_and_then_says_so<S: Hinted>() {
    for (records, sequence) in Sequence::ALL
        .map(|sequence| (900, sequence))
        .into_iter()
        .chain([1, 2, 7, 12].map(|records| (records, Sequence::Random)))
    {
        let mut world = World::<S>::new(records, 3);
        let mut client = world.client();
        let refused = |client: &S::Client| {
            assert_eq!(client.condense().unwrap_err().blame(), Blame::ApiMisuse);
        };
        for round in 0..3 {
            let total = client.supply().total;
            assert!(total > 0);
            for (used, index) in (0..).zip(world.indices(sequence, total)) {
                assert_eq!(client.supply().used, used);
                if used < 5 || used + 5 > total {
                    refused(&client);
                }
                let reserved = world.reserve(&mut client, index).unwrap();
                if used + 1 == total {
                    refused(&client);
                }
                let record = world.tell(&mut client, &reserved).unwrap();
                world.assert_right(record, index);
            }
            assert_eq!(client.supply().left(), 0);
            let index = world.index(0);
            let more = client.reserve(&index, &mut world.rng);
            assert_eq!(more.err().unwrap().blame(), Blame::Exhausted);
            if !S::Client::ENDLESS {
                break;
            }
            let condensed = client.condense().unwrap();
            assert!(condensed == client.condense().unwrap());
            client = world.load(&condensed);
            assert_eq!((client.supply().used, client.open().len()), (0, 0), "round {round}");
            S::check(&world, &client);
        }
    }
}

/// Lookups overlap, and their answers come in any order. Sometimes the client is killed, and starts
/// again from its generation and its journal, which may lack the last answers. Or its state is
/// written down as the next generation. Every record that can be known is returned once, and is
/// right.
#[cfg(test)]
pub fn answers_in_any_order_and_replayed_changes<S: Hinted>() {
    let steps = prop::collection::vec(0u8..8, 70);
    let config = ProptestConfig::with_cases(40);
    let cut = prop::sample::select(&[2u64, 4, 8][..]);
    proptest!(config, |(seed: u8, few: bool, cut in cut, steps in steps)| {
        set_queries_per_generation(S::Client::ENDLESS.then_some(20));
        let mut world = World::<S>::cut(200, 4, cut);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut generation = world.generation();
        let mut client = world.load(&generation);
        assert_eq!(client.waits_for_all_answers(), S::TELLS_IN_ORDER);
        let mut journal: Vec<Bytes> = Vec::new();
        let mut wanted: std::collections::BTreeMap<ReservationId, u64> = Default::default();
        let mut open: Vec<Reserved<QueryOf<S::Server>>> = Vec::new();
        let mut settled_last = None;
        for step in steps.into_iter().map(Some).chain([None]) {
            match step {
                Some(0..=3) if client.supply().left() > 0 => {
                    let index = if few { 40 + world.rng.below(3) } else { world.rng.below(200) };
                    let reserved = world.reserve(&mut client, index).unwrap();
                    journal.push(reserved.change.clone());
                    wanted.insert(reserved.id, index);
                    open.push(reserved);
                    settled_last = None;
                }
                Some(4..=6) if !open.is_empty() => {
                    let at = world.rng.below(open.len() as u64) as usize;
                    let reserved = open.swap_remove(at);
                    journal.push(world.settle(&mut client, &reserved));
                    settled_last = Some(reserved);
                }
                Some(7) => {
                    let mut again = world.load(&generation);
                    let lost = settled_last.take().filter(|_| world.rng.below(2) == 0);
                    if lost.is_some() {
                        journal.pop();
                    }
                    journal.iter().for_each(|change| again.apply(change).unwrap());
                    assert!(lost.is_some() || whole::<S>(&again) == whole::<S>(&client));
                    open.extend(lost);
                    client = again;
                }
                None => for reserved in open.drain(..) {
                    // A lookup without an answer returns no record, even if the record is known
                    // from elsewhere.
                    assert!(client.take_record(reserved.id).is_none());
                    world.settle(&mut client, &reserved);
                },
                _ => {}
            }
            let mut ids: Vec<ReservationId> = open.iter().map(|reserved| reserved.id).collect();
            ids.sort_unstable();
            prop_assert_eq!(client.open(), ids.clone());
            if S::TELLS_IN_ORDER && let Some(first) = ids.first() {
                let told = |id: &ReservationId| client.take_record(*id).is_some();
                prop_assert!(!wanted.range(first..).map(|(id, _)| id).any(told));
            }
            let used_up = client.supply().left() == 0;
            if open.is_empty() && (step.is_none() || used_up) {
                for (id, index) in std::mem::take(&mut wanted) {
                    let record = client.take_record(id).unwrap();
                    world.assert_right(record, index);
                    prop_assert!(client.take_record(id).is_none(), "told twice");
                }
                S::check(&world, &client);
                if S::Client::ENDLESS && used_up {
                    generation = client.condense().unwrap();
                    client = world.load(&generation);
                    (journal, settled_last) = (Vec::new(), None);
                }
            }
        }
        set_queries_per_generation(None);
    });
}

pub fn what_is_sent_does_not_depend_on_what_was_answered<S: Hinted>() {
    let mut world = World::<S>::new(700, 2);
    let generation = world.generation();
    let (mut answered, mut silent) = (world.load(&generation), world.load(&generation));
    let [mut rng, mut same_rng] = [6; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]));
    let count = 200.min(silent.supply().total) as usize;
    for (number, index) in [5, 5, 5, 600, 5, 601, 5, 5].into_iter().cycle().take(count).enumerate()
    {
        let index = world.index(index);
        let one = answered.reserve(&index, &mut rng).unwrap();
        let other = silent.reserve(&index, &mut same_rng).unwrap();
        assert!(encoded(&one.queries) == encoded(&other.queries), "query {number}");
        assert_eq!(one.change, other.change);
        answered.apply(&one.change).unwrap();
        silent.apply(&other.change).unwrap();
        world.settle(&mut answered, &one);
    }
    assert_eq!((answered.open().len(), silent.open().len()), (0, count));
}

pub fn answers_that_fit_no_lookup_are_refused<S: Hinted>() {
    let mut world = World::<S>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let answers = || world.answers(&reserved.queries);
    let misuse = |result: Result<Bytes>| {
        assert_eq!(result.err().unwrap().blame(), Blame::ApiMisuse);
    };
    misuse(client.settle(reserved.id, &[]));
    misuse(client.settle(reserved.id, &answers()[1..]));
    misuse(client.settle(reserved.id, &answers().into_iter().chain(answers()).collect::<Vec<_>>()));
    misuse(client.settle(ReservationId(1), &answers()));
    for id in [0, 1] {
        assert!(client.take_record(ReservationId(id)).is_none());
    }
    let record = world.tell(&mut client, &reserved).unwrap();
    world.assert_right(record, 5);
    misuse(client.settle(reserved.id, &answers()));
    assert!(client.take_record(reserved.id).is_none(), "once");
}

/// A wrong answer ends a client that verifies, and so do updates that differ. Nothing ends another.
pub fn clients_that_verify_end_and_no_others<S: Hinted>() {
    let mut world = World::<S>::new(500, 3);
    let check = |client: S::Client| {
        let ended = client.ended().map(|error| error.blame());
        assert_eq!(ended, client.verifies().then_some(Blame::Integrity));
    };
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let mut answers = world.answers(&reserved.queries);
    let mut wrong = answers[0].encode();
    wrong[0] ^= 1;
    answers[0] = AnswerOf::<S::Server>::decode(&world.parameters, &wrong).unwrap();
    let change = client.settle(reserved.id, &answers).unwrap();
    client.apply(&change).unwrap();
    check(client);

    let mut client = world.client();
    client.disagreement().into_iter().for_each(|change| client.apply(&change).unwrap());
    check(client);
}

pub fn the_same_coins_make_the_same_queries_of_one_length<S: Hinted>() {
    let mut world = World::<S>::new(700, 2);
    let client = world.client();
    let next = |index: u64| {
        let [mut rng, mut again] = [3; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]));
        let index = world.index(index);
        let one = client.reserve(&index, &mut rng).unwrap();
        let other = client.reserve(&index, &mut again).unwrap();
        assert!(encoded(&one.queries) == encoded(&other.queries) && one.change == other.change);
        let lens = (0..).map(Role).zip(&one.queries).map(|(role, query)| {
            let len = query.encode_query().len();
            assert_eq!(len, QueryOf::<S::Server>::query_len(&world.parameters, role));
            len
        });
        lens.collect::<Vec<_>>()
    };
    let expected = next(0);
    assert!((0..700).all(|index| next(index) == expected));
}
