use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::Kernels;
use crate::authenticated_sum::{ELEMENT_BYTES, elements};

/// Multiplies bit by bit: the definition, with the modulus written out.
fn times(one: u128, other: u128) -> u128 {
    let modulus = 1 << 7 | 1 << 2 | 1 << 1 | 1;
    (0..128).rev().fold(0, |sum: u128, bit| {
        let doubled = sum << 1 ^ if sum >> 127 == 1 { modulus } else { 0 };
        doubled ^ if other >> bit & 1 == 1 { one } else { 0 }
    })
}

/// The elements of a record, the last padded with zeros.
fn cut(record: &[u8]) -> Vec<u128> {
    let mut padded = record.to_vec();
    padded.resize(elements(record.len()) * ELEMENT_BYTES, 0);
    padded.as_chunks::<ELEMENT_BYTES>().0.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect()
}

fn number(numbers: &mut Numbers) -> u128 {
    u128::from_le_bytes(numbers.bytes(16).try_into().expect("16 bytes"))
}

/// Values and tags of `selections` selections, by the definition.
fn oracle(records: &[u8], record_len: usize, selections: &[Vec<(u128, u128)>]) -> Vec<Vec<u128>> {
    let of_one = |selection: &Vec<(u128, u128)>| {
        let count = elements(record_len);
        let mut sum = vec![0; 2 * count];
        for (record, (node, leaf)) in records.chunks(record_len).zip(selection) {
            for (i, element) in cut(record).into_iter().enumerate() {
                sum[i] ^= if node % 2 == 1 { element } else { 0 };
                sum[count + i] ^= times(*leaf, element);
            }
        }
        sum
    };
    selections.iter().map(of_one).collect()
}

struct Case {
    record_len: usize,
    records: usize,
    selections: usize,
    chunk_records: usize,
}

fn check(case: &Case, seed: u64) {
    let Case { record_len, records, selections, chunk_records } = *case;
    let mut numbers = Numbers(seed);
    // One byte off any alignment.
    let table = numbers.bytes(1 + records * record_len);
    let table = &table[1..];
    let selection = |_| -> Vec<(u128, u128)> {
        (0..records).map(|_| (number(&mut numbers), number(&mut numbers))).collect()
    };
    let selections: Vec<_> = (0..selections).map(selection).collect();
    let expand = |chunk: usize, k: usize, nodes: &mut [u128], leaves: &mut [u128]| {
        let rows = &selections[k][chunk * chunk_records..];
        assert_eq!(nodes.len(), rows.len().min(chunk_records));
        for ((node, leaf), row) in nodes.iter_mut().zip(leaves).zip(rows) {
            (*node, *leaf) = *row;
        }
    };
    // The results are added to the present contents.
    let expected: Vec<Vec<u128>> = oracle(table, record_len, &selections)
        .into_iter()
        .map(|sum| sum.into_iter().map(|element| element ^ 5).collect())
        .collect();
    for kernels in all_kernels() {
        for threads in [1, 3] {
            let mut sums = vec![vec![5; 2 * elements(record_len)]; selections.len()];
            let mut out: Vec<&mut [u128]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            kernels.authenticated_sums(table, record_len, chunk_records, expand, &mut out, threads);
            assert!(
                sums == expected,
                "{}: {records} records of {record_len}, {threads} threads",
                kernels.arm()
            );
        }
    }
}

/// Lengths around one element, two, one vector, and several; numbers of records that fill vectors
/// or do not.
#[test]
fn values_and_tags_are_those_of_the_definition() {
    let lens = [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 100, 128, 129, 200, 300];
    for record_len in lens {
        for records in [1, 2, 3, 4, 5, 7, 8, 9, 33] {
            check(&Case { record_len, records, selections: 1, chunk_records: 64 }, records as u64);
        }
        check(&Case { record_len, records: 50, selections: 3, chunk_records: 7 }, 1);
    }
}

/// Polynomials whose products are known, including some that are reduced.
#[test]
fn known_products() {
    let x = |power: u32| 1u128 << power;
    for (one, other, product) in [
        (0, u128::MAX, 0),
        (1, u128::MAX, u128::MAX),
        (x(1), x(126), x(127)),
        (x(1), x(127), 0x87),
        (x(64), x(64), 0x87),
        // x^254 = x^133 + x^128 + x^127 + x^126, and x^133 = x^12 + x^7 + x^6 + x^5.
        (x(127), x(127), x(127) | x(126) | x(12) | x(6) | x(5) | x(2) | x(1) | 1),
    ] {
        assert_eq!(times(one, other), product);
        for kernels in all_kernels() {
            let mut tag = [7];
            kernels.tag(one, &other.to_le_bytes(), &mut tag);
            assert_eq!(tag, [product], "{}", kernels.arm());
        }
    }
}

/// It is a field: every element except 0 to the power 2^128 − 1 is 1, so there are no zero
/// divisors.
#[test]
fn fermats_theorem_holds() {
    let mut numbers = Numbers(2);
    for kernels in all_kernels() {
        let product = |one: u128, other: u128| {
            let mut tag = [0];
            kernels.tag(one, &other.to_le_bytes(), &mut tag);
            tag[0]
        };
        for element in [1, 2, 3, u128::MAX, number(&mut numbers), number(&mut numbers)] {
            // The product of all squares: element^(1 + 2 + 4 + ... + 2^127).
            let (mut square, mut all) = (element, 1);
            for _ in 0..128 {
                all = product(all, square);
                square = product(square, square);
            }
            assert_eq!(all, 1);
            assert_eq!(square, element);
        }
    }
}

#[test]
fn a_tag_is_the_factor_times_each_element() {
    let mut numbers = Numbers(3);
    for len in [1, 15, 16, 17, 32, 40, 64, 65, 1000] {
        let value = numbers.bytes(len);
        let factor = number(&mut numbers);
        let expected: Vec<u128> = cut(&value).into_iter().map(|e| times(factor, e)).collect();
        for kernels in all_kernels() {
            let mut tag = vec![9; elements(len)];
            kernels.tag(factor, &value, &mut tag);
            assert_eq!(tag, expected, "{}: {len} bytes", kernels.arm());
        }
    }
}

#[test]
fn chunks_are_powers_of_two_within_their_bounds() {
    for (record_len, records) in
        [(1, 1024), (32, 1024), (256, 1024), (257, 512), (4096, 64), (1 << 14, 16), (1 << 24, 16)]
    {
        assert_eq!(Kernels::authenticated_sums_chunk_records(record_len), records);
    }
}

#[test]
fn nothing_to_do_is_done() {
    let kernels = Kernels::detect();
    let never = |_: usize, _: usize, _: &mut [u128], _: &mut [u128]| unreachable!("no records");
    kernels.authenticated_sums(&[], 5, 16, never, &mut [&mut [1, 2]], 2);
    kernels.authenticated_sums(&[1; 10], 5, 16, never, &mut [], 2);
}

#[test]
#[should_panic(expected = "whole records")]
fn a_part_of_a_record_panics() {
    let expand = |_: usize, _: usize, _: &mut [u128], _: &mut [u128]| {};
    Kernels::detect().authenticated_sums(&[0; 11], 5, 16, expand, &mut [&mut [0; 2]], 1);
}

#[test]
#[should_panic(expected = "a value and a tag for each element")]
fn a_sum_of_another_length_panics() {
    let expand = |_: usize, _: usize, _: &mut [u128], _: &mut [u128]| {};
    Kernels::detect().authenticated_sums(&[0; 34], 17, 16, expand, &mut [&mut [0; 2]], 1);
}

#[test]
#[should_panic(expected = "as many elements as its value")]
fn a_tag_of_another_length_panics() {
    Kernels::detect().tag(1, &[0; 17], &mut [0; 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_table(
        record_len in 1usize..150,
        records in 1usize..80,
        selections in 1usize..4,
        chunk_records in 1usize..40,
        seed: u64,
    ) {
        check(&Case { record_len, records, selections, chunk_records }, seed);
    }
}
