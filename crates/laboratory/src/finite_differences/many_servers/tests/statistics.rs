//! Tests that what one server sees is uniform points. Each test must also catch a client with a
//! planted mistake.
//!
//! A view is all that a server has: the point of its query. For a fixed index, this point is a
//! bijection of the random origin; that is tested exactly, for all origins. A chi-square over all
//! points tests that the origins are uniform and fresh.
//!
//! **False alarms.** The seeds are fixed, so a test that passes always passes. With other seeds, a
//! chi-square with 80 degrees of freedom exceeds the threshold with a probability below 10^-7, one
//! with 124 with a probability below 10^-8, and fewer than 200 are computed.
//!
//! **Power.** A point that is repeated in 2.6 % of lookups is detected nearly always in the field
//! of three elements, and in 1.8 % in that of five; in `make nightly` 0.7 % and 0.5 %.

use super::*;
use privet_schemes::test_statistics::{
    assert_documented, coins, difference, excess, rng_for, size_of_leak,
};

/// Queries for each point there is.
const QUERIES_PER_POINT: usize = 60;

const THRESHOLD: f64 = 7.5;

/// A planted mistake must exceed the threshold at least that many times.
const CLEARLY: f64 = 3.0;

/// What may be wrong with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    Nothing,
    /// Coordinates are drawn from all elements but the last.
    RangeTooSmall,
    /// Coordinates are two random bits modulo the order of the field.
    FoldedBits,
    /// The lowest coordinate is not drawn.
    OneNotDrawn,
    /// The origin is always the same.
    NoCoins,
    /// Every other lookup has the origin of that before it.
    CoinsTwice,
    /// A coordinate that should wrap around stays at the last element.
    NotReduced,
}

use Mistake::*;

/// The client of the module's documentation, with a mistake.
struct Planted {
    mistake: Mistake,
    last: Vec<u64>,
    lookups: u64,
}

impl Planted {
    fn queries(&mut self, world: &World, of: u64, rng: &mut SecretRng) -> Vec<u64> {
        let parameters = world.parameters();
        let (field, variables) = (u64::from(parameters.field()), parameters.variables());
        let word = parameters.words().word(of);
        let mut origin: Vec<u64> = (0..variables)
            .map(|variable| match self.mistake {
                RangeTooSmall => rng.below(field - 1),
                FoldedBits => rng.below(4) % field,
                OneNotDrawn if variable == 0 => 0,
                _ => rng.below(field),
            })
            .collect();
        self.lookups += 1;
        match self.mistake {
            NoCoins => origin.fill(1),
            CoinsTwice if self.lookups.is_multiple_of(2) => origin.clone_from(&self.last),
            _ => {}
        }
        self.last.clone_from(&origin);
        let coordinate = |server: u64, variable: u32| {
            let sum = origin[variable as usize] + server * (word >> variable & 1);
            match self.mistake {
                NotReduced => sum.min(field - 1),
                _ => sum % field,
            }
        };
        let point = |server| {
            let coordinates = (0..variables).rev().map(|variable| coordinate(server, variable));
            coordinates.fold(0, |number, coordinate| number * field + coordinate)
        };
        (0..parameters.servers().into()).map(point).collect()
    }
}

/// All points are few, and so are the records.
fn worlds() -> [World; 2] {
    [full(1, setting(3, 3, 4, 2)), full(1, setting(4, 5, 3, 2))]
}

/// The points that each server sees, one after the other.
fn views(world: &World, mut queries: impl FnMut() -> Vec<u64>) -> Vec<Vec<u64>> {
    let lookups = coins(QUERIES_PER_POINT * world.parameters().points() as usize);
    let mut views = vec![Vec::new(); world.parameters().servers() as usize];
    for _ in 0..lookups {
        for (view, point) in views.iter_mut().zip(queries()) {
            view.push(point);
        }
    }
    views
}

fn honest_queries(world: &World, of: u64, rng: &mut SecretRng) -> Vec<u64> {
    let (queries, _) = world.lookup(of, rng);
    queries.iter().map(|bytes| u64::from_le_bytes(bytes[..].try_into().unwrap())).collect()
}

fn honest(world: &World, of: u64) -> Vec<Vec<u64>> {
    let mut rng = rng_for(of);
    views(world, || honest_queries(world, of, &mut rng))
}

fn mistaken(world: &World, mistake: Mistake, of: u64) -> Vec<Vec<u64>> {
    let (mut rng, mut client) = (rng_for(of), Planted { mistake, last: Vec::new(), lookups: 0 });
    views(world, || client.queries(world, of, &mut rng))
}

fn count(world: &World, points: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut counts = vec![0; world.parameters().points() as usize];
    points.for_each(|point| counts[point as usize] += 1);
    counts
}

/// How far the points are from being uniform, in standard deviations.
fn uniform(world: &World, view: &[u64]) -> f64 {
    let expected = view.len() as f64 / world.parameters().points() as f64;
    excess(
        &count(world, view.iter().copied()),
        &vec![expected; world.parameters().points() as usize],
    )
}

/// How far the differences between one point and the next are from being uniform.
fn successive(world: &World, view: &[u64]) -> f64 {
    let field = u64::from(world.parameters().field());
    let strides = (0..world.parameters().variables()).map(|variable| field.pow(variable));
    let strides: Vec<u64> = strides.collect();
    let differences = view.array_windows().map(|[one, next]| {
        let coordinate =
            |stride: &u64| (next / stride % field + field - one / stride % field) % field * stride;
        strides.iter().map(coordinate).sum()
    });
    let differences: Vec<u64> = differences.collect();
    uniform(world, &differences)
}

#[test]
fn for_a_fixed_index_each_servers_point_is_a_bijection_of_the_coins() {
    for world in worlds() {
        let (field, variables) = (world.parameters().field(), world.parameters().variables());
        for of in 0..world.records() {
            let word = world.parameters().words().word(of);
            let mut counts = vec![
                vec![0u64; world.parameters().points() as usize];
                world.parameters().servers() as usize
            ];
            for origin in super::lookups::origins(field, variables) {
                for (counts, query) in counts.iter_mut().zip(world.client.points(word, &origin)) {
                    counts[*query.point as usize] += 1;
                }
            }
            assert!(counts.iter().flatten().all(|count| *count == 1), "record {of}");
        }
    }
}

#[test]
fn each_server_sees_uniform_points_whatever_the_index() {
    for world in worlds() {
        let first = honest(&world, 0);
        for of in 0..world.records() {
            for (server, view) in honest(&world, of).iter().enumerate() {
                let found = [uniform(&world, view), successive(&world, view)];
                assert!(found.iter().all(|found| *found < THRESHOLD), "record {of}: {found:?}");
                let [one, other] =
                    [&first[server], view].map(|view| count(&world, view.iter().copied()));
                let found = if of == 0 { 0.0 } else { difference(&one, &other) };
                assert!(found < THRESHOLD, "record {of} against record 0: {found}");
            }
        }
    }
}

#[test]
fn the_client_in_which_mistakes_are_planted_is_otherwise_right() {
    for world in worlds() {
        for of in 0..world.records() {
            let (mut one, mut other) = (rng_for(of), rng_for(of));
            let mut planted = Planted { mistake: Nothing, last: Vec::new(), lookups: 0 };
            for _ in 0..50 {
                let planted = planted.queries(&world, of, &mut one);
                assert_eq!(planted, honest_queries(&world, of, &mut other));
            }
        }
    }
}

#[test]
fn every_planted_mistake_is_caught() {
    for world in worlds() {
        for mistake in [RangeTooSmall, FoldedBits, OneNotDrawn, NoCoins] {
            // Two bits are not enough for five elements, and too many for three.
            for of in 0..world.records() {
                for view in mistaken(&world, mistake, of) {
                    let found = uniform(&world, &view);
                    assert!(found > CLEARLY * THRESHOLD, "{mistake:?} of record {of}: {found}");
                }
            }
        }
        for view in mistaken(&world, CoinsTwice, 1) {
            assert!(successive(&world, &view) > CLEARLY * THRESHOLD);
            assert!(uniform(&world, &view) < CLEARLY * THRESHOLD, "this alone would show it");
        }
        // Nothing is added for server 0.
        for view in &mistaken(&world, NotReduced, 1)[1..] {
            assert!(uniform(&world, view) > CLEARLY * THRESHOLD);
        }
    }
}

#[test]
fn mistakes_tell_indices_apart() {
    for world in worlds() {
        for mistake in [RangeTooSmall, FoldedBits, OneNotDrawn, NotReduced] {
            let (ones, others) = (mistaken(&world, mistake, 0), mistaken(&world, mistake, 2));
            for (one, other) in ones.iter().zip(&others).skip(1) {
                let [one, other] = [one, other].map(|view| count(&world, view.iter().copied()));
                let found = difference(&one, &other);
                assert!(found > CLEARLY * THRESHOLD, "{mistake:?}: {found}");
            }
        }
    }
}

/// The sizes in the text above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    for (points, percents) in [(81.0, (2.6, 0.7)), (125.0, (1.8, 0.5))] {
        let lookups = QUERIES_PER_POINT as f64 * points;
        assert_documented(|coins| size_of_leak(coins, points), lookups, percents);
    }
}
