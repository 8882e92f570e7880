//! Tests that what one server sees looks like uniform bits. Each test must also catch a client with
//! a planted leak.
//!
//! A view is everything that a server has: its key, and all that it can compute from it, which is
//! its whole tree. All of that must look random, whatever the index. Each detector below returns a
//! deviation in standard deviations, and none may exceed [`THRESHOLD`].
//!
//! **False alarms.** All detectors except one return the largest deviation among many sums of
//! [`queries`] (or twice as many) fair coins. By Hoeffding's inequality one sum exceeds the
//! threshold with probability below 1.3e-12, and there are fewer than 600 000 of them altogether.
//! The pooled one returns the deviation of a chi-square with some 1 800 degrees of freedom. This
//! exceeds the threshold with probability below 10^-9 (Laurent and Massart), and is computed fewer
//! than 50 times. With other seeds, all honest tests would pass except with probability below
//! 10^-6. The seeds are fixed, so a test that passes always passes.
//!
//! **Power.** The leaks that are detected nearly always; the last column is `make nightly`:
//!
//! | bias | seen by | from | nightly |
//! |---|---|---|---|
//! | of one bit, or of the XOR of two that are compared | the detectors of single sums | 13.6 percentage points: set in 64 of 100 views | 4.3 |
//! | of one bit between two indices | [`difference`] | 19.2 percentage points between the two | 6.1 |
//! | of many bits, each of them too small for that | [`pooled`] | 3 points in each of the 127 seed bits of one level's correction, 0.8 in all bits at once | a third of that |
//!
//! Fainter leaks need more views. The proof says that there are none; these tests do not. They find
//! mistakes, which are not faint.

use super::*;
use crate::conformance::point_functions::{
    self, DEPTH, View, difference, frequencies, words_apart,
};
use crate::test_statistics::{
    assert_documented, coins, count_bits, deviation_of_coins, rng_for, size_of_bias,
};
use privet_core::dpf::Evaluation;
use std::collections::HashSet;

/// Eight leaves, of which the last is incomplete: a tree of depth 3.
const RECORDS: u64 = 1_000;
const LEAVES: usize = 8;

/// Views of each index.
fn queries() -> usize {
    coins(1_500)
}

/// The first record, the last, one in the middle with its neighbours, and neighbours on two sides
/// of a leaf's edge.
const INDICES: [u64; 7] = [0, 999, 499, 500, 501, 127, 128];

const THRESHOLD: f64 = 7.5;

/// A planted leak must exceed the threshold at least that many times.
const CLEARLY: f64 = 3.0;

/// With the control bits of all nodes but the root, and the selection bits.
fn view(world: &World, bytes: &[u8]) -> View {
    let mut view = View::of(bytes, 0);
    let query = world.query(bytes);
    let tree = Evaluation::new(Kernels::detect(), world.parameters().table(), &query.key);
    for level in 1..=DEPTH as u32 {
        let nodes = tree.nodes(tree.root(), level, 1 << level);
        view.controls.extend((0..1 << level).map(|place| nodes.node(place).value() & 1 == 1));
    }
    view.leaves = vec![0; LEAVES];
    tree.leaves(tree.root(), &mut view.leaves);
    view
}

fn nonce(view: &View) -> u128 {
    view.key[DEPTH + 2]
}

/// What may be wrong with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leak {
    Nothing,
    /// All queries have the same nonce.
    FixedNonce,
    /// The nonce is the root of party 0: party 1 has both keys.
    NonceFromTheRoot,
    /// Every query starts from the same seeds.
    FixedRoots,
    /// There are 256 pairs of roots.
    FewRoots,
    /// The second root follows from the first: a server with one key has both.
    RootFromTheOther,
    /// Both trees grow from one seed.
    OneRootForBoth,
    /// The root tells the index's parity, in two bits that are fair coins each.
    ParityInTheRoot,
    /// Control bits are corrected without the bits that mask the correction, so the correction
    /// tells the direction of the path.
    PathInTheControls,
    /// The same only for right children.
    PathInTheRightControls,
    /// The correction makes the children on the path equal, not those off it.
    WrongChildCorrected,
    /// Each bit of the second level's correction seed is set in 17 of 32 queries where the path
    /// goes right, and in 15 of 32 where it goes left.
    PathInManyBits,
    /// All levels take the correction seed of the first.
    SeedOfTheFirstLevel,
    /// Nodes are never taken down the path: every level is computed from the roots.
    RootsAtEveryLevel,
    /// The final word is only the point.
    PointUnmasked,
    /// The final word shows the point's bit unmasked.
    PointBitSet,
}

use Leak::*;

/// A client's keys, with a leak.
fn encoded_pair(world: &World, leak: Leak, index: u64, rng: &mut SecretRng) -> [Vec<u8>; 2] {
    let (mut nonce, mut coins) = ([0; 16], [0; 32]);
    rng.fill(&mut nonce);
    rng.fill(&mut coins);
    match leak {
        FixedNonce => nonce = [0x5a; 16],
        NonceFromTheRoot => nonce.copy_from_slice(&coins[..16]),
        FixedRoots => coins = [0x5a; 32],
        FewRoots => SecretRng::from_fixed_seed([coins[0]; 32]).fill(&mut coins),
        RootFromTheOther => {
            let first = *coins.first_chunk::<16>().unwrap();
            coins[16..].iter_mut().zip(first).for_each(|(other, one)| *other = one ^ 0x77);
        }
        OneRootForBoth => coins.copy_within(..16, 16),
        ParityInTheRoot => {
            for root in [0, 16] {
                coins[root] = coins[root] & !4 | (coins[root] & 2) << 1;
                coins[root] ^= (index as u8 & 1) << 2;
            }
        }
        _ => {}
    }
    let [one, other] = *coins.as_chunks::<16>().0 else { unreachable!("two roots") };
    let point = 1 << (index % 128);
    point_functions::encoded_pair(
        world.parameters().table(),
        [nonce, one, other],
        index / 128,
        |level| {
            let path = [level.turn as u128 ^ 1, level.turn as u128];
            match leak {
                PathInManyBits if level.number == 1 => {
                    let mut few = [[0; 16]; 4];
                    rng.fill(few.as_flattened_mut());
                    // Ones in one of 16 places.
                    let few = few.map(u128::from_le_bytes).iter().fold(!1, |a, b| a & b);
                    level.seed = if level.turn == 1 { level.seed | few } else { level.seed & !few };
                }
                WrongChildCorrected => level.seed = level.differs[level.turn] & !1,
                SeedOfTheFirstLevel if level.number > 0 => level.seed = level.seeds[0] & !1,
                PathInTheControls => level.controls = path,
                PathInTheRightControls => level.controls[1] = path[1],
                _ => {}
            }
            leak != RootsAtEveryLevel
        },
        |ends| match leak {
            PointUnmasked => point,
            PointBitSet => ends | point,
            _ => ends ^ point,
        },
    )
}

fn world() -> World {
    World::new(RECORDS, 1)
}

/// What both servers see of many queries for one index.
fn views(
    world: &World,
    index: u64,
    make: impl Fn(u64, &mut SecretRng) -> [Vec<u8>; 2],
) -> [Vec<View>; 2] {
    let make = |index, rng: &mut SecretRng| (make(index, rng), 0);
    point_functions::views(queries(), index, make, |bytes, _| view(world, bytes))
}

fn honest(world: &World, index: u64) -> [Vec<View>; 2] {
    views(world, index, |index, rng| world.queries(index, rng))
}

fn leaky(world: &World, leak: Leak, index: u64) -> [Vec<View>; 2] {
    views(world, index, |index, rng| encoded_pair(world, leak, index, rng))
}

/// A chi-square over how often all bits are set, less its mean, in its standard deviations.
fn pooled(views: &[View]) -> f64 {
    let counts = count_bits(views.iter().map(View::bits));
    let (coins, bits) = (views.len() as f64, counts.len() as f64);
    let chi_square: f64 =
        counts.iter().map(|count| (2.0 * f64::from(*count) - coins).powi(2) / coins).sum();
    (chi_square - bits) / (2.0 * bits).sqrt()
}

/// How often each bit differs from the one after it.
fn adjacent(views: &[View]) -> f64 {
    let pairs = views.iter().map(|view| view.bits().zip(view.bits().skip(1)).map(|(a, b)| a ^ b));
    deviation_of_coins(&count_bits(pairs), views.len())
}

/// How often each bit is the same in one query and the next.
fn successive(views: &[View]) -> f64 {
    let pairs = views.array_windows::<2>();
    let pairs = pairs.map(|[one, next]| one.bits().zip(next.bits()).map(|(a, b)| a ^ b));
    deviation_of_coins(&count_bits(pairs), views.len() - 1)
}

/// Words of a key that an earlier one contained already.
fn repeated_words(views: &[View]) -> usize {
    let mut seen = HashSet::new();
    views.iter().flat_map(|view| &view.key).filter(|word| !seen.insert(**word)).count()
}

/// How often the roots of the two servers differ in each bit but the lowest. No server sees that.
/// But a server that can guess the other's root knows the index.
fn roots_apart(views: &[Vec<View>; 2]) -> f64 {
    let roots = views[0].iter().zip(&views[1]);
    let differ = roots.map(|(one, other)| {
        let differs = one.key[0] ^ other.key[0];
        (1..128).map(move |bit| differs >> bit & 1 == 1)
    });
    deviation_of_coins(&count_bits(differ), views[0].len())
}

#[test]
fn one_server_sees_coins_whatever_the_index() {
    let world = world();
    let mut first: Option<[Vec<View>; 2]> = None;
    for index in INDICES {
        let both = honest(&world, index);
        assert!(roots_apart(&both) < THRESHOLD, "{index}: {}", roots_apart(&both));
        for views in &both {
            for (name, detector) in DETECTORS {
                let found = detector(views);
                assert!(found < THRESHOLD, "{name} of record {index}: {found}");
            }
            assert_eq!(repeated_words(views), 0);
        }
        let nonces = both.each_ref().map(|views| views.iter().map(nonce));
        let [ones, others] = nonces;
        assert!(ones.eq(others), "the servers' nonces differ at record {index}");
        match &first {
            None => first = Some(both),
            Some(first) => {
                for (server, views) in both.iter().enumerate() {
                    let found = difference(&first[server], views);
                    assert!(found < THRESHOLD, "record {index} against record 0: {found}");
                }
            }
        }
    }
}

type Detector = fn(&[View]) -> f64;

const DETECTORS: [(&str, Detector); 5] = [
    ("frequencies", frequencies),
    ("all frequencies together", pooled),
    ("adjacent bits", adjacent),
    ("words of one key", words_apart),
    ("successive queries", successive),
];

#[test]
fn the_generator_in_which_leaks_are_planted_is_otherwise_right() {
    let world = world();
    for index in (0..RECORDS).step_by(7) {
        let planted = encoded_pair(&world, Nothing, index, &mut rng_for(index));
        assert!(planted == world.queries(index, &mut rng_for(index)), "record {index}");
    }
}

#[test]
fn every_planted_leak_is_caught_at_both_servers() {
    let world = world();
    let planted: [(Leak, Detector); 10] = [
        (FixedNonce, frequencies),
        (FixedRoots, frequencies),
        (OneRootForBoth, frequencies),
        (ParityInTheRoot, adjacent),
        (PathInTheControls, frequencies),
        (PathInTheRightControls, frequencies),
        (WrongChildCorrected, frequencies),
        (SeedOfTheFirstLevel, words_apart),
        (PointUnmasked, frequencies),
        (PointBitSet, frequencies),
    ];
    for (leak, detector) in planted {
        for index in [0, 501, 999] {
            for views in leaky(&world, leak, index) {
                let found = detector(&views);
                assert!(found > CLEARLY * THRESHOLD, "{leak:?} at record {index}: {found}");
            }
        }
    }
    // Levels that are all computed from the roots have equal seeds where the path goes the same way
    // twice: in leaf 0, always.
    for views in leaky(&world, RootsAtEveryLevel, 0) {
        assert!(words_apart(&views) > CLEARLY * THRESHOLD);
    }
    assert!(roots_apart(&leaky(&world, RootFromTheOther, 500)) > CLEARLY * THRESHOLD);
    // Server 1 sees the other's root as nonce, and cannot tell it from random bits. Server 0 can,
    // for both keys.
    let [views, _] = leaky(&world, NonceFromTheRoot, 500);
    assert!(words_apart(&views) > CLEARLY * THRESHOLD);
    for leak in [FixedNonce, FixedRoots, FewRoots] {
        for views in leaky(&world, leak, 500) {
            assert!(repeated_words(&views) >= queries() - 256, "{leak:?}");
        }
    }
}

#[test]
fn many_small_biases_are_caught_that_no_bit_shows() {
    let world = world();
    // At the second level, the path goes left for the first of these and right for the others.
    for index in [0, 501, 999] {
        for views in leaky(&world, PathInManyBits, index) {
            let found = pooled(&views);
            // Some 12 are expected: see the table above.
            assert!(found > 1.3 * THRESHOLD, "record {index}: {found}");
            assert!(
                frequencies(&views) < THRESHOLD,
                "one bit alone shows it, so this proves nothing"
            );
        }
    }
}

#[test]
fn leaks_tell_indices_apart() {
    let world = world();
    // What a server wants to tell apart: neighbours in one leaf, and records in leaves with another
    // path.
    for (leak, one, other) in [(PointBitSet, 500, 501), (PathInTheControls, 127, 128)] {
        let (ones, others) = (leaky(&world, leak, one), leaky(&world, leak, other));
        for (ones, others) in ones.iter().zip(&others) {
            let found = difference(ones, others);
            assert!(found > 2.0 * THRESHOLD, "{leak:?} between {one} and {other}: {found}");
        }
    }
    // Queries that start from the same roots are alike.
    for views in leaky(&world, FixedRoots, 500) {
        assert!(successive(&views) > CLEARLY * THRESHOLD);
    }
}

/// The sizes in the text above. The bits of two indices are one sum of twice as many coins, which
/// shows half of their difference.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    assert_documented(|coins| size_of_bias(coins, THRESHOLD), 1_500.0, (13.6, 4.3));
    let between = |coins: f64| 2.0 * size_of_bias(2.0 * coins, THRESHOLD);
    assert_documented(between, 1_500.0, (19.2, 6.1));
}
