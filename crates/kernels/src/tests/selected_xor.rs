use std::collections::HashSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::Kernels;
use crate::selected_xor::Way;

/// Bit `record` of selection `k`. The words also have bits for records that do not exist.
fn is_selected(selections: &[Vec<u128>], k: usize, record: usize) -> bool {
    selections[k][record / 128] >> (record % 128) & 1 == 1
}

fn random_selections(numbers: &mut Numbers, selections: usize, records: usize) -> Vec<Vec<u128>> {
    let mut word = || u128::from(numbers.next()) << 64 | u128::from(numbers.next());
    (0..selections).map(|_| (0..records.div_ceil(128)).map(|_| word()).collect()).collect()
}

/// Both ways, whichever of them this arm would choose.
fn check(
    kernels: Kernels,
    table: &[u8],
    record_len: usize,
    chunk_records: usize,
    selections: &[Vec<u128>],
    threads: usize,
) {
    for way in [Way::OneByOne, Way::ByEight] {
        check_way(way, kernels, table, record_len, chunk_records, selections, threads);
    }
}

/// Compares the sums with those added up record by record. The table and the sums begin at odd
/// addresses, and sums are not zero before. The test also checks that `select` is called as
/// documented.
fn check_way(
    way: Way,
    kernels: Kernels,
    table: &[u8],
    record_len: usize,
    chunk_records: usize,
    selections: &[Vec<u128>],
    threads: usize,
) {
    let records = table.len() / record_len;
    let shifted: Vec<u8> = std::iter::once(9).chain(table.iter().copied()).collect();
    let before: Vec<u8> = (0..record_len + 2).map(|i| i as u8).collect();
    let mut sums = vec![before.clone(); selections.len()];
    let mut inner: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[1..=record_len]).collect();
    let asked = Mutex::new(HashSet::new());
    let select = |chunk: usize, k: usize, bits: &mut [u128]| {
        assert!(asked.lock().unwrap().insert((chunk, k)), "asked twice for {chunk}, {k}");
        let left = records - chunk * chunk_records;
        assert_eq!(bits.len(), left.min(chunk_records).div_ceil(128), "words of chunk {chunk}");
        let first = chunk * chunk_records / 128;
        bits.copy_from_slice(&selections[k][first..first + bits.len()]);
    };
    let table = &shifted[1..];
    kernels.xor_selected_in(way, table, record_len, chunk_records, select, &mut inner, threads);

    let arm = kernels.arm();
    let shape =
        format!("{arm}, {way:?}: {records} x {record_len}, chunks of {chunk_records}, {threads}");
    let calls = records.div_ceil(chunk_records) * selections.len();
    assert_eq!(asked.into_inner().unwrap().len(), calls, "{shape}: calls");
    for (k, sum) in sums.iter().enumerate() {
        let mut expected = before.clone();
        for (r, record) in table.chunks(record_len).enumerate() {
            if is_selected(selections, k, r) {
                expected[1..].iter_mut().zip(record).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        assert!(*sum == expected, "{shape}: selection {k} of {}", selections.len());
    }
}

/// All narrow lengths, with different common divisors with 64. Wide lengths around whole lines, and
/// around 2, 16 and 32 KiB, from which on records are processed in another way. Numbers of records
/// around the words of selections, the groups of 32 (AVX2) and 64, and the pieces of 8 and of 256
/// records.
#[test]
fn sums_are_exact_for_any_record_length_and_number() {
    let mut numbers = Numbers(1);
    let wide = [65, 66, 95, 96, 97, 127, 128, 129, 191, 200, 1000];
    let wider = [2047, 2048, 2049, 2100, 4096, 4097, 6200, 16_383, 16_500, 33_000];
    for record_len in (1..=64).chain(wide).chain(wider) {
        for records in [1, 7, 8, 9, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 400, 1025] {
            if records * record_len > 1 << 20 {
                continue;
            }
            let table = numbers.bytes(records * record_len);
            let selections = 1 + numbers.below(3);
            let selections = random_selections(&mut numbers, selections, records);
            for kernels in all_kernels() {
                check(kernels, &table, record_len, 128, &selections, 1);
                check(kernels, &table, record_len, 512, &selections, 2);
            }
        }
    }
}

/// Selections are taken eight at a time if they have many bits, and a piece of narrow records is 16
/// KiB.
#[test]
fn any_number_of_selections_on_any_number_of_threads() {
    let mut numbers = Numbers(2);
    for (record_len, records) in [(1, 70_001), (3, 20_000), (32, 2_000), (77, 700), (3000, 30)] {
        let table = numbers.bytes(records * record_len);
        for selections in [0, 1, 2, 7, 8, 9, 17] {
            let selections = random_selections(&mut numbers, selections, records);
            let chunk_records = Kernels::selected_xor_chunk_records(record_len);
            for kernels in all_kernels() {
                for threads in 0..=3 {
                    check(kernels, &table, record_len, chunk_records, &selections, threads);
                    check(kernels, &table, record_len, 1280, &selections, threads);
                }
            }
        }
    }
}

#[test]
fn bits_in_words_of_zeros_and_ones_select_nothing_and_everything() {
    let mut numbers = Numbers(3);
    for record_len in [1, 13, 32, 100] {
        let table = numbers.bytes(301 * record_len);
        let selections = vec![vec![0; 3], vec![u128::MAX; 3], vec![1; 3], vec![1 << 127; 3]];
        for kernels in all_kernels() {
            check(kernels, &table, record_len, 256, &selections, 2);
        }
    }
}

#[test]
fn a_table_without_records_adds_nothing_and_asks_nothing() {
    for kernels in all_kernels() {
        check(kernels, &[], 5, 128, &[vec![], vec![]], 3);
    }
}

#[test]
fn chunks_fit_the_second_level_cache() {
    for (record_len, records) in
        [(0, 1 << 14), (1, 1 << 14), (32, 1 << 14), (33, 1 << 13), (64, 1 << 13), (1000, 512)]
    {
        assert_eq!(Kernels::selected_xor_chunk_records(record_len), records, "{record_len}");
    }
    for record_len in [4096, 4097, 1 << 30, usize::MAX] {
        assert_eq!(Kernels::selected_xor_chunk_records(record_len), 128, "{record_len}");
    }
}

/// A call with a table of `records` bytes, and with the given lengths.
fn call(records: usize, record_len: usize, chunk_records: usize, sum: usize) {
    let sum = &mut vec![0; sum][..];
    let select = |_: usize, _: usize, bits: &mut [u128]| bits.fill(0);
    let table = vec![0; records];
    Kernels::detect().xor_selected(&table, record_len, chunk_records, select, &mut [sum], 1);
}

#[test]
#[should_panic(expected = "at least one byte")]
fn records_of_no_bytes_panic() {
    call(12, 0, 128, 0);
}

#[test]
#[should_panic(expected = "whole records")]
fn a_broken_record_panics() {
    call(13, 4, 128, 4);
}

#[test]
#[should_panic(expected = "whole words")]
fn chunks_that_are_not_whole_words_panic() {
    call(12, 4, 100, 4);
}

#[test]
#[should_panic(expected = "as long as a record")]
fn a_sum_of_the_wrong_length_panics() {
    call(12, 4, 128, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sums_are_exact_on_any_shape(
        record_len in 1usize..300,
        records in 0usize..1500,
        chunk_words in 1usize..12,
        selections in 0usize..12,
        threads in 1usize..4,
        seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let table = numbers.bytes(records * record_len);
        let selections = random_selections(&mut numbers, selections, records);
        for kernels in all_kernels() {
            check(kernels, &table, record_len, 128 * chunk_words, &selections, threads);
        }
    }
}
