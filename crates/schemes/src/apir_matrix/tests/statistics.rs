//! Tests that what one server sees looks like uniform bits. Each test must also catch a client with
//! a planted leak.
//!
//! There are two tables. In one of eight rows, a view is one byte, and all of its values are
//! counted. In one of 500 rows, single bits are counted, and the parity of all. Thresholds are in
//! standard deviations. An honest client exceeds that of a chi-square with 255 degrees of freedom
//! with probability of about 10^-9, and there are some 200 of them. It exceeds that of a sum of
//! coins with probability below 10^-10 (Hoeffding), and there are some 50 000. With other seeds,
//! all tests of honest clients would pass except with probability below 10^-5. The seeds are fixed,
//! so a test that passes always passes.
//!
//! **Power.** The leaks that are detected nearly always; the last column is `make nightly`:
//!
//! | what | views | from | nightly |
//! |---|---|---|---|
//! | views of the table of eight rows that are always the same | 20000 | 0.8 % of them | 0.2 % |
//! | bias of one bit, of the XOR of two that are compared, or of the parity | 2000 | 11.2 percentage points | 3.5 |

use super::*;
use crate::test_statistics::{
    assert_documented, coins, count_bits, deviation_of_coins, difference, excess, rng_for,
    size_of_bias, size_of_leak,
};

const THRESHOLD: f64 = 7.0;

/// Views of each index.
fn queries() -> usize {
    coins(20_000)
}

fn long_queries() -> usize {
    coins(2_000)
}

/// What may be wrong with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leak {
    Nothing,
    /// No randomness: the first server gets zeros, the second the wanted row.
    Plain,
    /// The first query always has an even number of bits set, the second therefore an odd one.
    EvenParity,
    /// The flipped bit is always set afterwards.
    FlippedToOne,
    /// The flipped bit is set three times of four before.
    Biased,
    /// The random bytes are used twice.
    HalfTheCoins,
    /// The last byte is left out.
    LastByteUnmasked,
}

use Leak::*;

/// The two queries, computed with branches, and with a leak.
fn encoded_pair(world: &World, leak: Leak, index: u64, rng: &mut SecretRng) -> [Vec<u8>; 2] {
    let parameters = world.parameters();
    let row = (index / parameters.row_records()) as usize;
    let mut bits = vec![0; parameters.query_len() as usize];
    rng.fill(&mut bits);
    *bits.last_mut().unwrap() &= ApirMatrixQuery::bits_of_last_byte(parameters);
    let wanted = 1 << (row % 8);
    match leak {
        Nothing => {}
        Plain => bits.fill(0),
        EvenParity => {
            let ones: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
            bits[0] ^= ones as u8 & 1;
        }
        FlippedToOne => bits[row / 8] &= !wanted,
        Biased => {
            let mut coin = [0];
            rng.fill(&mut coin);
            bits[row / 8] |= if coin[0] & 1 == 1 { wanted } else { 0 };
        }
        HalfTheCoins => {
            let half = bits.len() / 2;
            bits.copy_within(..half, half);
        }
        LastByteUnmasked => *bits.last_mut().unwrap() = 0,
    }
    let mut flipped = bits.clone();
    flipped[row / 8] ^= wanted;
    [bits, flipped]
}

/// What both servers see of many queries for one index.
fn views(
    index: u64,
    count: usize,
    mut make: impl FnMut(u64, &mut SecretRng) -> [Vec<u8>; 2],
) -> [Vec<Vec<u8>>; 2] {
    let mut rng = rng_for(index);
    let pairs: Vec<_> = (0..count).map(|_| make(index, &mut rng)).collect();
    [0, 1].map(|server: usize| pairs.iter().map(|pair| pair[server].clone()).collect())
}

/// Eight rows: a view is a byte.
fn short_world() -> World {
    let world = World::in_rows(32, 1, 4);
    assert_eq!(world.parameters().rows(), 8);
    world
}

/// 500 rows, and four bits to spare.
fn long_world() -> World {
    let world = World::in_rows(1_000, 1, 2);
    assert_eq!(world.parameters().rows(), 500);
    world
}

fn counts(views: &[Vec<u8>]) -> Vec<u64> {
    let mut counts = vec![0; 256];
    views.iter().for_each(|view| counts[usize::from(view[0])] += 1);
    counts
}

/// How far the counts of all values of a byte are from equal.
fn values(views: &[Vec<u8>]) -> f64 {
    excess(&counts(views), &[views.len() as f64 / 256.0; 256])
}

/// The same for the sum of one view and the next: successive queries are independent.
fn successive(views: &[Vec<u8>]) -> f64 {
    let sums: Vec<_> = views.array_windows().map(|[one, next]| xor(one, next)).collect();
    values(&sums)
}

fn bits(view: &[u8]) -> impl Iterator<Item = bool> {
    (0..500).map(|row| view[row / 8] >> (row % 8) & 1 == 1)
}

fn deviation_of<I: Iterator<Item = bool>>(rows: impl ExactSizeIterator<Item = I>) -> f64 {
    let coins = rows.len();
    deviation_of_coins(&count_bits(rows), coins)
}

/// How often each bit is set.
fn frequencies(views: &[Vec<u8>]) -> f64 {
    deviation_of(views.iter().map(|view| bits(view)))
}

/// How often each bit differs from those one, eight and 250 places further.
fn apart(views: &[Vec<u8>]) -> f64 {
    let distances = [1, 8, 248, 250].map(|distance| {
        let pairs = views.iter().map(|view| bits(view).zip(bits(view).skip(distance)));
        deviation_of(pairs.map(|pairs| pairs.map(|(one, other)| one ^ other)))
    });
    distances.into_iter().fold(0.0, f64::max)
}

/// How often the number of bits set is odd.
fn parity(views: &[Vec<u8>]) -> f64 {
    deviation_of(
        views.iter().map(|view| std::iter::once(bits(view).filter(|bit| *bit).count() % 2 == 1)),
    )
}

type Detector = fn(&[Vec<u8>]) -> f64;

const OF_SHORT: [(&str, Detector); 2] = [("values", values), ("successive", successive)];
const OF_LONG: [(&str, Detector); 3] =
    [("frequencies", frequencies), ("apart", apart), ("parity", parity)];

#[test]
fn one_server_sees_coins_whatever_the_index() {
    let world = short_world();
    let first = views(0, queries(), |index, rng| world.queries(index, rng));
    for index in 0..32 {
        let both = views(index, queries(), |index, rng| world.queries(index, rng));
        for (server, views) in both.iter().enumerate() {
            for (name, detector) in OF_SHORT {
                let found = detector(views);
                assert!(found < THRESHOLD, "{name} of record {index} at {server}: {found}");
            }
            if index > 0 {
                let found = difference(&counts(&first[server]), &counts(views));
                assert!(found < THRESHOLD, "record {index} against record 0 at {server}: {found}");
            }
        }
    }
    let world = long_world();
    for index in [0, 1, 14, 16, 499, 500, 983, 984, 999] {
        let both = views(index, long_queries(), |index, rng| world.queries(index, rng));
        for (server, views) in both.iter().enumerate() {
            for (name, detector) in OF_LONG {
                let found = detector(views);
                assert!(found < THRESHOLD, "{name} of record {index} at {server}: {found}");
            }
        }
    }
}

#[test]
fn the_two_queries_differ_in_the_wanted_row_alone() {
    let world = long_world();
    let mut rng = SecretRng::from_os().unwrap();
    for index in 0..1_000 {
        let [one, other] = world.queries(index, &mut rng);
        assert_eq!(xor(&one, &other), world.query_of_row(index / 2));
    }
}

#[test]
fn the_generator_in_which_leaks_are_planted_is_otherwise_right() {
    let world = long_world();
    let honest = |index| views(index, 2, |index, rng| world.queries(index, rng));
    for index in 0..1_000 {
        let planted = views(index, 2, |index, rng| encoded_pair(&world, Nothing, index, rng));
        assert!(planted == honest(index), "record {index}");
    }
}

#[test]
fn every_planted_leak_is_caught() {
    let short = short_world();
    let of_short =
        |leak, index| views(index, queries(), |index, rng| encoded_pair(&short, leak, index, rng));
    // At both servers ...
    for leak in [Plain, EvenParity, FlippedToOne, Biased, LastByteUnmasked] {
        for index in [0, 13, 31] {
            for (server, views) in of_short(leak, index).iter().enumerate() {
                let found = values(views);
                assert!(found > 3.0 * THRESHOLD, "{leak:?} of record {index} at {server}: {found}");
            }
        }
    }
    // ... and what they want: to tell one index from another.
    for leak in [FlippedToOne, Biased] {
        let (ones, others) = (of_short(leak, 0), of_short(leak, 31));
        for (ones, others) in ones.iter().zip(&others) {
            let found = difference(&counts(ones), &counts(others));
            assert!(found > 3.0 * THRESHOLD, "{leak:?}: {found}");
        }
    }
    let long = long_world();
    let planted: [(Leak, Detector); 6] = [
        (Plain, frequencies),
        (EvenParity, parity),
        (FlippedToOne, frequencies),
        (Biased, frequencies),
        (HalfTheCoins, apart),
        (LastByteUnmasked, frequencies),
    ];
    for (leak, detector) in planted {
        for index in [0, 501, 999] {
            let both =
                views(index, long_queries(), |index, rng| encoded_pair(&long, leak, index, rng));
            for (server, views) in both.iter().enumerate() {
                let found = detector(views);
                assert!(found > 3.0 * THRESHOLD, "{leak:?} of record {index} at {server}: {found}");
            }
        }
    }
}

/// The table above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    assert_documented(|coins| size_of_leak(coins, 256.0), 20_000.0, (0.8, 0.2));
    assert_documented(|coins| size_of_bias(coins, THRESHOLD), 2_000.0, (11.2, 3.5));
}
