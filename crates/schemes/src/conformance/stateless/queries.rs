//! Queries: the random numbers that they are made from, and what a server sees of them.

use super::*;

/// Encoded queries for a record of the [wide](Stateless::wide) table.
fn wide_queries<S: Stateless>(
    (shape, client): &(TableShape, S::Client),
    of: u64,
    rng: &mut SecretRng,
) -> Vec<Vec<u8>> {
    let index = RecordIndex::new(of, *shape).unwrap();
    let (queries, _) = client.query(&index, rng).unwrap();
    queries.iter().map(QueryMessage::encode_query).collect()
}

pub fn no_two_queries_are_alike_and_lengths_never_depend_on_the_index<S: Stateless>() {
    let wide = S::wide();
    let records = wide.0.records();
    let mut rng = SecretRng::from_os().unwrap();
    let lens = |queries: &[Vec<u8>]| queries.iter().map(Vec::len).collect::<Vec<_>>();
    let expected = lens(&wide_queries::<S>(&wide, 0, &mut rng));
    let mut seen = HashSet::new();
    for of in (0..records).step_by(records.div_ceil(1_000) as usize).chain([records - 1]) {
        for _ in 0..2 {
            let queries = wide_queries::<S>(&wide, of, &mut rng);
            assert_eq!(lens(&queries), expected, "record {of}");
            for query in queries {
                assert!(seen.insert(query), "a query for record {of} was sent before");
            }
        }
    }
}

/// The draws are the same for every index, and nothing else goes into a query.
pub fn making_a_query_draws_as_much_for_every_index<S: Stateless>() {
    let wide = S::wide();
    let next = |of: u64| {
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        let queries = wide_queries::<S>(&wide, of, &mut rng);
        let again = wide_queries::<S>(&wide, of, &mut SecretRng::from_fixed_seed([3; 32]));
        assert!(queries == again, "the same coins make the same queries");
        rng.next_u64()
    };
    let expected = next(0);
    let records = wide.0.records();
    let some = (0..records).step_by(records.div_ceil(1_000) as usize);
    assert!(some.chain([records - 1]).all(|of| next(of) == expected));

    let world = World::<S>::of(&S::kinds()[0]);
    if let Some(bytes) = S::random_bytes(world.parameters()) {
        let [mut rng, mut untouched] = [4; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]));
        world.lookup(3, &mut rng);
        untouched.fill(&mut vec![0; bytes]);
        assert_eq!(rng.next_u64(), untouched.next_u64());
    }
}

/// A server's views of two records differ in each bit only by chance. A bit that reveals the record
/// in one query of four is detected.
///
/// A count of 2,000 bits differs from another by more than seven deviations with a probability
/// below 10^-11, and some 50,000 bits are compared.
pub fn one_server_sees_the_same_whatever_the_index<S: Stateless>() {
    const THRESHOLD: f64 = 7.0;
    let wide = S::wide();
    let queries = coins(2_000);
    let counts = |of: u64, leaks: bool| {
        let mut rng = rng_for(of);
        let mut counts: Vec<Vec<u64>> = Vec::new();
        for number in 0..queries {
            let mut of_lookup = wide_queries::<S>(&wide, of, &mut rng);
            counts.resize_with(of_lookup.len(), Vec::new);
            for (query, counts) in of_lookup.iter_mut().zip(&mut counts) {
                if leaks && number % 4 == 0 {
                    query[0] = query[0] & !2 | (of as u8 & 1) << 1;
                }
                counts.resize(8 * query.len(), 0);
                let bits = (0..).zip(&mut *counts);
                bits.for_each(|(bit, count)| *count += u64::from(query[bit / 8] >> (bit % 8) & 1));
            }
        }
        counts
    };
    let furthest = |one: &[u64], other: &[u64]| {
        let deviations = one.iter().zip(other).map(|(one, other)| {
            let share = (one + other) as f64 / (2 * queries) as f64;
            let deviation = (2.0 * queries as f64 * share * (1.0 - share)).sqrt();
            one.abs_diff(*other) as f64 / deviation.max(1.0)
        });
        deviations.fold(0.0, f64::max)
    };
    let last = (wide.0.records() - 1) | 1;
    let last = if last < wide.0.records() { last } else { last - 2 };
    let (first, honest, leaky) = (counts(0, false), counts(last, false), counts(last, true));
    for ((first, honest), leaky) in first.iter().zip(&honest).zip(&leaky) {
        let found = furthest(first, honest);
        assert!(found < THRESHOLD, "{found} deviations between two records");
        let found = furthest(first, leaky);
        assert!(found > THRESHOLD, "a leak in every fourth query is {found} deviations");
    }
}
