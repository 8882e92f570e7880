use std::sync::Mutex;

use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::subset_sums::{BLOCK_BYTES, subset_sums, subset_sums_in};
use privet_kernels::Kernels;

/// By the definition: the XOR over all subsets, found by counting down through them.
fn sums_by_definition(coefficients: &[u8], entry_len: usize) -> Vec<u8> {
    let entries = coefficients.len() / entry_len;
    let mut points = vec![0; coefficients.len()];
    for point in 0..entries {
        let mut subset = point;
        loop {
            for i in 0..entry_len {
                points[point * entry_len + i] ^= coefficients[subset * entry_len + i];
            }
            if subset == 0 {
                break;
            }
            subset = (subset - 1) & point;
        }
    }
    points
}

/// Runs all arms with the coefficients given by `fill`, in memory at an odd address and at the
/// start of a line.
fn check(block_bytes: usize, coefficients: &[u8], entry_len: usize, threads: usize) {
    let expected = sums_by_definition(coefficients, entry_len);
    for kernels in all_kernels() {
        for misalignment in [0, 1] {
            let mut memory = vec![0; coefficients.len() + 130];
            let start = memory.as_ptr().addr().wrapping_neg() % 64 + misalignment;
            let points = &mut memory[start..][..coefficients.len()];
            let heard = Mutex::new(Vec::new());
            let filled = Mutex::new(0);
            subset_sums_in(
                kernels,
                block_bytes,
                points,
                entry_len,
                threads,
                &|first, piece| {
                    let first = first as usize * entry_len;
                    assert!((piece.len() / entry_len).is_power_of_two());
                    assert!(first.is_multiple_of(piece.len()));
                    piece.copy_from_slice(&coefficients[first..][..piece.len()]);
                    *filled.lock().unwrap() += piece.len();
                },
                &|share| heard.lock().unwrap().push(share),
            );
            let what = (kernels.arm(), coefficients.len() / entry_len, entry_len, block_bytes);
            assert!(*points == expected, "{what:?}, {misalignment} bytes off");
            assert_eq!(*filled.lock().unwrap(), coefficients.len());
            let heard = heard.into_inner().unwrap();
            assert!(heard.is_sorted() && heard[0] > 0.0, "{heard:?}");
            assert_eq!(heard.last(), Some(&1.0));
            let outside = memory[..start].iter().chain(&memory[start + coefficients.len()..]);
            assert!(outside.copied().all(|byte| byte == 0), "{what:?}");
        }
    }
}

/// Entries on both sides of a word, of both vectors and of a line, with halves that become whole
/// lines early, late or never; from one entry to several pieces of a block.
#[test]
fn one_block_is_summed_by_definition() {
    let mut numbers = Numbers(1);
    for entry_len in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 48, 63, 64, 65, 100, 1024] {
        for variables in 0..=9 {
            let coefficients = numbers.bytes(entry_len << variables);
            check(BLOCK_BYTES, &coefficients, entry_len, 1);
        }
    }
}

/// Blocks of few bytes, so that there are tiles with 1 to 11 variables, one and two passes over
/// tiles, and columns that are not whole lines; and entries longer than a block.
#[test]
fn tiles_are_summed_by_definition() {
    let mut numbers = Numbers(2);
    for (entry_len, most_variables) in
        [(1, 12), (2, 12), (3, 11), (32, 10), (33, 9), (100, 8), (1024, 7), (5000, 4)]
    {
        for variables in 0..=most_variables {
            let coefficients = numbers.bytes(entry_len << variables);
            for block_bytes in [1, 64, 200, 4096] {
                check(block_bytes, &coefficients, entry_len, 1 + variables % 3);
            }
        }
    }
}

/// Blocks and tiles of the sizes that callers get, against the portable arm, which the tests above
/// check.
#[test]
fn many_blocks_are_summed_alike() {
    let mut numbers = Numbers(3);
    for (entry_len, variables) in [(1, 22), (3, 19), (100, 14), (1 << 20, 3), (600_001, 2)] {
        let coefficients = numbers.bytes(entry_len << variables);
        let mut results = all_kernels().into_iter().map(|kernels| {
            let mut points = coefficients.clone();
            subset_sums(kernels, &mut points, entry_len, 2, &|_, _| (), &|_| ());
            points
        });
        let expected = results.next().expect("the portable arm is always there");
        let mut halves = coefficients.clone();
        for variable in 0..variables {
            let half = entry_len << variable;
            for at in 0..halves.len() {
                if (at / half) % 2 == 1 {
                    halves[at] ^= halves[at - half];
                }
            }
        }
        assert!(expected == halves, "{entry_len}");
        assert!(results.all(|points| points == expected), "{entry_len}");
    }
}

#[test]
#[should_panic(expected = "at least one byte")]
fn entries_without_bytes_panic() {
    subset_sums(Kernels::detect(), &mut [0; 4], 0, 1, &|_, _| (), &|_| ());
}

#[test]
fn other_numbers_of_entries_panic() {
    for (len, entry_len) in [(0, 1), (3, 1), (6, 2), (9, 2), (8, 3)] {
        let caught = std::panic::catch_unwind(|| {
            let mut points = vec![0; len];
            subset_sums(Kernels::detect(), &mut points, entry_len, 1, &|_, _| (), &|_| ());
        });
        let message = caught.expect_err("refused");
        let message = message.downcast_ref::<&str>().expect("a message");
        assert!(message.contains("power of two"), "{len} bytes of {entry_len}: {message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sums_of_any_shape(
        entry_len in 1usize..150,
        variables in 0usize..8,
        block_bytes in 1usize..3000,
        threads in 0usize..4,
        seed: u64,
    ) {
        check(block_bytes, &Numbers(seed).bytes(entry_len << variables), entry_len, threads);
    }
}
