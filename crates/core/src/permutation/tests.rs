//! A permutation for every size; one that looks random; and the very one that another program
//! computes.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::TableShape;

fn seed(number: u64) -> PublicSeed {
    PublicSeed::derive("privet test permutation", &number.to_le_bytes())
}

fn index(number: u64, domain: u64) -> RecordIndex {
    RecordIndex::new(number, TableShape::new(domain, 1).unwrap()).unwrap()
}

fn check_bijection(domain: u64) {
    let permutation = Permutation::new(domain, &seed(domain));
    let tabulated = permutation.tabulate();
    let mut taken = vec![false; domain as usize];
    for number in 0..domain {
        let position = permutation.position(&index(number, domain));
        assert!(!std::mem::replace(&mut taken[position as usize], true), "{domain}: twice");
        assert_eq!(permutation.index_at(position), number, "{domain}");
        assert_eq!(tabulated.position_of(number), position, "{domain}");
    }
}

#[test]
fn it_is_a_permutation_of_any_number_of_records() {
    (1..=300).for_each(check_bijection);
    // Around squares, and where rows and columns differ.
    [1023, 1024, 1025, 1055, 1056, 1057, 4096, 5000].into_iter().for_each(check_bijection);
}

#[test]
fn the_largest_domains_work_too() {
    for domain in [(1 << 32) - 1, 1 << 32, (1 << 40) + 1, MAX_DOMAIN] {
        let permutation = Permutation::new(domain, &seed(1));
        for number in [0, 1, domain / 3, domain - 1] {
            let position = permutation.position(&index(number, domain));
            assert!(position < domain);
            assert_eq!(permutation.index_at(position), number);
        }
    }
}

/// How far counts lie from being equal, in standard deviations of the chi-square distribution.
fn excess(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi_square: f64 =
        counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn every_order_of_four_is_as_frequent_over_seeds_as_every_other() {
    // A Feistel network over 2 × 2 reaches all 24 orders only through the additions of both halves.
    let mut counts = [0; 24];
    for number in 0..24_000 {
        let permutation = Permutation::new(4, &seed(number));
        let order: Vec<u64> = (0..4).map(|k| permutation.position(&index(k, 4))).collect();
        let rank = (0..4).fold(0, |rank, k| {
            let smaller = order[k + 1..].iter().filter(|later| **later < order[k]).count();
            rank * (4 - k) + smaller
        });
        counts[rank] += 1;
    }
    assert!(excess(&counts).abs() < 6.0, "{counts:?}");
}

#[test]
fn neighbours_and_regular_choices_spread_evenly() {
    let domain = 100_000;
    let permutation = Permutation::new(domain, &seed(5));
    let parts = 50;
    let choices: [fn(u64) -> u64; 4] =
        [|k| k, |k| 5 * k, |k| 317 * k % 100_000, |k| 99_999 - 7919 * k % 100_000];
    for choice in choices {
        let mut counts = vec![0; parts];
        let mut differences = vec![0; parts];
        let mut last = 0;
        for k in 0..20_000 {
            let position = permutation.position(&index(choice(k), domain));
            counts[(position * parts as u64 / domain) as usize] += 1;
            let difference = (position + domain - last) % domain;
            differences[(difference * parts as u64 / domain) as usize] += 1;
            last = position;
        }
        // Drawn without replacement, counts are somewhat more even than by chance.
        assert!(excess(&counts) < 6.0, "{}", excess(&counts));
        assert!(excess(&differences) < 6.0, "{}", excess(&differences));
    }
    // The identity would fail that.
    let mut counts = vec![0; parts];
    (0..20_000).for_each(|k: u64| counts[(k * parts as u64 / domain) as usize] += 1);
    assert!(excess(&counts) > 60.0);
}

#[test]
fn the_walks_suffice_and_are_not_far_too_many() {
    // A square has no number outside.
    assert_eq!(Permutation::new(1 << 24, &seed(0)).walks, 1);
    // One number outside can be walked through once.
    assert_eq!(Permutation::new(3, &seed(0)).walks, 2);
    for domain in [5, 1000, 1057, 100_000, (1 << 24) + 1, (1 << 28) + 12_345] {
        let permutation = Permutation::new(domain, &seed(0));
        let all = permutation.rows * permutation.columns;
        let outside = all - domain;
        assert!(outside < permutation.rows, "fewer than a row");
        let left = (outside as f64 / all as f64).powi(permutation.walks as i32);
        assert!(left.log2() <= -64.0 || permutation.walks == outside + 1, "{domain}");
        assert!(permutation.walks <= 22, "{domain}");
    }
}

#[test]
fn what_walks_too_rarely_is_walked_to_the_end() {
    // With a single walk, many positions lie outside at first; the rest of the way is gone all the
    // same.
    let domain = 1057;
    let mut permutation = Permutation::new(domain, &seed(domain));
    let whole: Vec<u64> = (0..domain).map(|k| permutation.position(&index(k, domain))).collect();
    permutation.walks = 1;
    let walked: Vec<u64> = (0..domain).map(|k| permutation.position(&index(k, domain))).collect();
    assert_eq!(whole, walked);
}

/// Computed by a program that shares no code with this one, the `Permutation` of
/// `vectors/generate_piano.py`: domain, the byte of which the seed consists, numbers and their
/// positions.
#[test]
fn known_answers() {
    type Pairs = &'static [(u64, u64)];
    #[rustfmt::skip]
    let known: &[(u64, u8, Pairs)] = &[
        (1, 1, &[(0, 0)]),
        (2, 2, &[(0, 1), (1, 0)]),
        (3, 3, &[(0, 1), (1, 2), (2, 0)]),
        (7, 7, &[(0, 4), (1, 6), (2, 3), (3, 5), (6, 2)]),
        (10, 10, &[(0, 5), (1, 4), (2, 1), (3, 7), (9, 0)]),
        (1000, 247, &[(0, 646), (1, 513), (2, 238), (3, 464), (999, 591)]),
        (100003, 105, &[(0, 86730), (1, 46147), (2, 68260), (3, 78028), (100002, 92313)]),
        (16777216, 125, &[(0, 10259585), (1, 16218678), (2, 4149065), (3, 724680), (16777215, 2895440)]),
        (1099511627783, 120, &[(0, 807620026084), (1, 353856649620), (2, 470151983138), (3, 308184174623), (1099511627782, 75148529284)]),
    ];
    for (domain, seed, pairs) in known {
        let permutation = Permutation::new(*domain, &PublicSeed::from_bytes([*seed; 32]));
        for (number, position) in *pairs {
            assert_eq!(permutation.position(&index(*number, *domain)), *position, "{domain}");
        }
    }
}
