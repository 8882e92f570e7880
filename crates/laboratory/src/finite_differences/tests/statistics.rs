//! What one server sees is uniform, whatever the index; and the test detects a client whose points
//! are not.
//!
//! **Power.** A point that is the same in 0.3 % of lookups is detected nearly always; in `make
//! nightly`, in 0.1 %.

use super::*;
use privet_schemes::test_statistics::{assert_documented, coins, size_of_leak};

const VARIABLES: u32 = 8;
/// So many samples that a point which is never drawn adds 400 to the sum.
fn samples() -> usize {
    coins(256 * 400)
}

/// The sum of squared deviations from a uniform distribution over all points, each in units of its
/// variance.
fn chi_squared(mut point: impl FnMut() -> u64) -> f64 {
    let mut counts = vec![0u64; 1 << VARIABLES];
    for _ in 0..samples() {
        counts[point() as usize] += 1;
    }
    let expected = samples() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

/// 255 degrees of freedom: the mean is 255, the deviation 22.6. Beyond eight of them, by chance,
/// once in more than 10^11 runs.
const LIMIT: f64 = 255.0 + 8.0 * 22.6;

#[test]
fn each_server_sees_uniform_points() {
    let shape = identity(56, 1).shape;
    let parameters =
        FiniteDifferencesParameters::with(shape, false, exactly(VARIABLES, 3)).unwrap();
    let client = FiniteDifferencesClient::new(parameters);
    let mut rng = SecretRng::from_os().unwrap();
    for of in [0, 1, 30, 55] {
        for server in 0..2 {
            let seen = chi_squared(|| {
                let index = RecordIndex::new(of, shape).unwrap();
                *client.query(&index, &mut rng).unwrap().0[server].point
            });
            assert!(seen < LIMIT, "server {server}, record {of}: {seen}");
        }
    }
}

#[test]
fn the_two_points_differ_by_the_word_and_nothing_else() {
    let world = World::new(300, 1);
    let mut rng = SecretRng::from_os().unwrap();
    for of in 0..300 {
        let (queries, _) = world.client.query(&world.index(of), &mut rng).unwrap();
        let parameters = world.parameters();
        assert_eq!(*queries[0].point ^ *queries[1].point, parameters.words().word(of));
    }
}

#[test]
fn points_that_avoid_anything_are_noticed() {
    let mut rng = SecretRng::from_os().unwrap();
    let word = 0b1011;
    // One variable never changes; one point is never drawn; one bit is set in 55 of 100.
    let stuck = chi_squared(|| rng.below(128) ^ word);
    let never_zero = chi_squared(|| 1 + rng.below(255));
    let biased = chi_squared(|| {
        let coin = u64::from(rng.below(100) < 55);
        (rng.below(128) << 1 | coin) ^ word
    });
    for seen in [stuck, never_zero, biased] {
        assert!(seen > LIMIT, "{seen}");
    }
}

/// The sizes in the text above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    assert_documented(|coins| size_of_leak(coins, 256.0), 256.0 * 400.0, (0.3, 0.1));
}
