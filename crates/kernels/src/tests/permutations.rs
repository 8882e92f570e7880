use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::Kernels;
use crate::permutations::MAX_PERMUTATION_LEN;

fn check_sums(seed: u64, record_len: usize, records: usize, len: usize) {
    let mut numbers = Numbers(seed);
    // One byte off any alignment, and the end of the partition is the end of its allocation.
    let partition = numbers.bytes(1 + records * record_len);
    let partition = &partition[1..];
    let permutation: Vec<u16> = (0..len).map(|_| numbers.below(records) as u16).collect();
    let before = numbers.bytes(len * record_len + 2);
    let mut expected = before.clone();
    for (x, &number) in permutation.iter().enumerate() {
        for i in 0..record_len {
            expected[1 + x * record_len + i] ^= partition[usize::from(number) * record_len + i];
        }
    }
    for kernels in all_kernels() {
        let mut found = before.clone();
        let inner = 1..found.len() - 1;
        let sums = &mut found[inner];
        kernels.xor_accumulate_permuted(partition, record_len, &permutation, sums);
        assert!(found == expected, "{}: {len} of {records} x {record_len}", kernels.arm());
    }
}

/// Records of 8, 16, 32 and 64 bytes have their own loops; others go in pieces of 64 bytes, words
/// and bytes.
#[test]
fn permuted_records_of_any_length_are_added() {
    for record_len in (1..=130).chain([191, 192, 193, 511, 512, 513, 600, 4099]) {
        check_sums(record_len as u64, record_len, 20, 40);
    }
}

#[test]
fn permuted_partitions_of_any_size_are_added() {
    for record_len in [1, 8, 16, 32, 64, 20] {
        for len in (0..=20).chain([31, 32, 33]) {
            check_sums(len as u64, record_len, 1 + len, len);
        }
        check_sums(7, record_len, MAX_PERMUTATION_LEN, 1000);
    }
}

#[test]
fn numbers_of_no_record_panic() {
    for kernels in all_kernels() {
        for record_len in [1, 8, 20] {
            let caught = std::panic::catch_unwind(|| {
                let mut sums = vec![0; 2 * record_len];
                let partition = vec![0; 2 * record_len];
                kernels.xor_accumulate_permuted(&partition, record_len, &[1, 2], &mut sums);
            });
            assert!(caught.is_err(), "{}: {record_len}", kernels.arm());
        }
    }
}

#[test]
#[should_panic(expected = "one record for each element")]
fn sums_of_another_length_panic() {
    Kernels::detect().xor_accumulate_permuted(&[0; 20], 10, &[1, 0], &mut [0; 10]);
}

#[test]
#[should_panic(expected = "whole records")]
fn partitions_of_broken_records_panic() {
    Kernels::detect().xor_accumulate_permuted(&[0; 25], 10, &[1, 0], &mut [0; 20]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sums_on_any_shape(
        record_len in 1usize..300,
        records in 1usize..100,
        len in 0usize..100,
        seed: u64,
    ) {
        check_sums(seed, record_len, records, len);
    }
}
