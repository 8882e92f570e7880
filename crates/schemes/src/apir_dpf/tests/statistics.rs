//! Tests that what one server sees looks like uniform bits, and is independent of the secret. Each
//! test must also catch a client with a planted leak.
//!
//! A view is everything that a server has: its key, and all that it can compute from it, which is
//! its whole tree. All of that must look random, whatever the index, and so must its XOR with α.
//! Each detector below returns a deviation in standard deviations, and none may exceed
//! [`THRESHOLD`].
//!
//! **False alarms.** All detectors return the largest deviation among many sums of [`queries`] (or
//! twice as many) fair coins. By Hoeffding's inequality one sum exceeds the threshold with
//! probability below 1.3e-12, and there are fewer than 500 000 of them: with other seeds, all
//! honest tests would pass except with probability below 10^-6. The seeds are fixed, so a test that
//! passes always passes.
//!
//! **Power.** A bit with a bias of 13.6 percentage points, set in 64 of 100 views, is detected
//! nearly always; in `make nightly`, one of 4.3 points. The trees are those of DPF-PIR, whose tests
//! are more thorough.

use super::*;
use crate::conformance::point_functions::{
    self, DEPTH, View, count_bits_of_words, difference, frequencies, words_apart,
};
use crate::test_statistics::{assert_documented, coins, deviation_of_coins, rng_for, size_of_bias};
use privet_core::dpf::Evaluation;
use std::collections::HashSet;

/// A tree of depth 3 without its last leaf.
const RECORDS: u64 = 7;

/// Views of each index.
fn queries() -> usize {
    coins(1_500)
}

const THRESHOLD: f64 = 7.5;

/// A planted leak must exceed the threshold at least that many times.
const CLEARLY: f64 = 3.0;

/// With the control bits of all nodes but the root, and the leaves; the secret is α.
fn view(world: &World, bytes: &[u8], alpha: u128) -> View {
    let mut view = View::of(bytes, alpha);
    let query = world.query(bytes);
    let tree = Evaluation::new(Kernels::detect(), world.parameters().table(), &query.key);
    for level in 1..DEPTH as u32 {
        let nodes = tree.nodes(tree.root(), level, 1 << level);
        view.controls.extend((0..1 << level).map(|place| nodes.node(place).value() & 1 == 1));
    }
    let [mut nodes, mut leaves] = [[0; RECORDS as usize]; 2];
    tree.ends(tree.root(), &mut nodes, &mut leaves);
    view.controls.extend(nodes.map(|node| node & 1 == 1));
    view.leaves.extend(leaves);
    view
}

/// What may be wrong with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leak {
    Nothing,
    /// All lookups have the same α: a server that learns it once can always use it.
    FixedAlpha,
    /// α follows from the nonce, which both servers have.
    AlphaFromTheNonce,
    /// α is the root of party 0.
    AlphaFromTheRoot,
    /// The final word is α, not masked.
    AlphaUnmasked,
    /// Every query starts from the same seeds.
    FixedRoots,
    /// Both trees grow from one seed.
    OneRootForBoth,
    /// Control bits are corrected without the bits that mask the correction, so the correction
    /// tells the direction of the path.
    PathInTheControls,
    /// The same only at the last level, where the control bits are the shares of the selection.
    PathInTheLastControls,
    /// The correction makes the children on the path equal, not those off it.
    WrongChildCorrected,
}

use Leak::*;

/// A client's keys and its α, with a leak.
fn encoded_pair(
    world: &World,
    leak: Leak,
    index: u64,
    rng: &mut SecretRng,
) -> ([Vec<u8>; 2], u128) {
    let mut coins = [[0; 16]; 4];
    rng.fill(coins.as_flattened_mut());
    match leak {
        FixedAlpha => coins[0] = [0x5a; 16],
        AlphaFromTheNonce => coins[0] = coins[1].map(|byte| byte ^ 0x77),
        AlphaFromTheRoot => coins[0] = coins[2],
        FixedRoots => coins[2..].fill([0x5a; 16]),
        OneRootForBoth => coins[3] = coins[2],
        _ => {}
    }
    let [alpha, coins @ ..] = coins;
    let alpha = u128::from_le_bytes(alpha);
    let keys = point_functions::encoded_pair(
        world.parameters().table(),
        coins,
        index,
        |level| {
            let path = [level.turn as u128 ^ 1, level.turn as u128];
            match leak {
                WrongChildCorrected => level.seed = level.differs[level.turn] & !1,
                PathInTheControls => level.controls = path,
                PathInTheLastControls if level.number == DEPTH - 1 => level.controls = path,
                _ => {}
            }
            true
        },
        |ends| if leak == AlphaUnmasked { alpha } else { ends ^ alpha },
    );
    (keys, alpha)
}

fn world() -> World {
    World::new(RECORDS, 1)
}

fn honest_pair(world: &World, index: u64, rng: &mut SecretRng) -> ([Vec<u8>; 2], u128) {
    let (keys, pending) = world.lookup(index, rng);
    (keys.try_into().unwrap(), *pending.alpha.expose())
}

/// What both servers see of many queries for one index.
fn views(
    world: &World,
    index: u64,
    make: impl Fn(u64, &mut SecretRng) -> ([Vec<u8>; 2], u128),
) -> [Vec<View>; 2] {
    point_functions::views(queries(), index, make, |bytes, alpha| view(world, bytes, alpha))
}

fn honest(world: &World, index: u64) -> [Vec<View>; 2] {
    views(world, index, |index, rng| honest_pair(world, index, rng))
}

fn leaky(world: &World, leak: Leak, index: u64) -> [Vec<View>; 2] {
    views(world, index, |index, rng| encoded_pair(world, leak, index, rng))
}

/// How often each bit of a word differs from the same bit of α, and how often α's own bits are set.
fn words_and_alpha(views: &[View]) -> f64 {
    let apart = |view: &View| {
        let alpha = view.secret;
        let words: Vec<u128> = view.words().chain([0]).collect();
        words.into_iter().map(move |word| word ^ alpha)
    };
    deviation_of_coins(&count_bits_of_words(views.iter().map(apart)), views.len())
}

type Detector = fn(&[View]) -> f64;

const DETECTORS: [(&str, Detector); 3] = [
    ("frequencies", frequencies),
    ("words of one view", words_apart),
    ("words and the secret", words_and_alpha),
];

#[test]
fn one_server_sees_coins_whatever_the_index_and_the_secret() {
    let world = world();
    let first = honest(&world, 0);
    for index in 0..RECORDS {
        let both = honest(&world, index);
        for (server, views) in both.iter().enumerate() {
            for (name, detector) in DETECTORS {
                let found = detector(views);
                assert!(found < THRESHOLD, "{name} of record {index}: {found}");
            }
            let found = if index == 0 { 0.0 } else { difference(&first[server], views) };
            assert!(found < THRESHOLD, "record {index} against record 0: {found}");
            let alphas: HashSet<u128> = views.iter().map(|view| view.secret).collect();
            assert_eq!(alphas.len(), queries(), "a secret occurred twice");
        }
    }
}

#[test]
fn the_generator_in_which_leaks_are_planted_is_otherwise_right() {
    let world = world();
    for index in 0..RECORDS {
        let planted = encoded_pair(&world, Nothing, index, &mut rng_for(index));
        assert!(planted == honest_pair(&world, index, &mut rng_for(index)), "record {index}");
    }
}

#[test]
fn every_planted_leak_is_caught_at_both_servers() {
    let world = world();
    let planted: [(Leak, Detector); 8] = [
        (FixedAlpha, words_and_alpha),
        (AlphaFromTheNonce, words_and_alpha),
        (AlphaUnmasked, words_and_alpha),
        (FixedRoots, frequencies),
        (OneRootForBoth, frequencies),
        (PathInTheControls, frequencies),
        (PathInTheLastControls, frequencies),
        (WrongChildCorrected, frequencies),
    ];
    for (leak, detector) in planted {
        for index in [0, 3, 6] {
            for views in leaky(&world, leak, index) {
                let found = detector(&views);
                assert!(found > CLEARLY * THRESHOLD, "{leak:?} at record {index}: {found}");
            }
        }
    }
    // Only server 0 has its root.
    let [views, _] = leaky(&world, AlphaFromTheRoot, 3);
    assert!(words_and_alpha(&views) > CLEARLY * THRESHOLD);
}

#[test]
fn leaks_tell_indices_apart() {
    let world = world();
    // What a server wants to tell apart: neighbours, and records in other halves of the table.
    for (leak, one, other) in [(PathInTheLastControls, 2, 3), (PathInTheControls, 1, 5)] {
        let (ones, others) = (leaky(&world, leak, one), leaky(&world, leak, other));
        for (ones, others) in ones.iter().zip(&others) {
            let found = difference(ones, others);
            assert!(found > 2.0 * THRESHOLD, "{leak:?} between {one} and {other}: {found}");
        }
    }
}

/// The sizes in the text above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    assert_documented(|coins| size_of_bias(coins, THRESHOLD), 1_500.0, (13.6, 4.3));
}
