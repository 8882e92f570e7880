//! Hashes in lanes against the `blake3` crate.

use super::{Numbers as Random, all_kernels};
use crate::hash_lanes::MAX_INPUT_LEN;
use crate::{Kernels, Numbers};
use proptest::prelude::*;

/// Around the edges of words, of blocks and of the chunk, with and without a number.
const LENS: [usize; 22] =
    [0, 1, 3, 4, 7, 8, 31, 32, 55, 56, 57, 63, 64, 65, 119, 120, 121, 127, 128, 129, 1015, 1016];

fn check_plain(kernels: Kernels, len: usize, count: usize, seed: u64) {
    let mut random = Random(seed);
    let key: [u8; 32] = random.bytes(32).try_into().unwrap();
    let misaligned = 1 + random.below(7);
    let bytes = random.bytes(misaligned + len * count);
    let inputs = &bytes[misaligned..];
    let expected: Vec<[u8; 32]> = (0..count)
        .map(|i| *blake3::keyed_hash(&key, &inputs[i * len..][..len]).as_bytes())
        .collect();
    let mut outputs = vec![[7; 32]; count + 2];
    kernels.blake3_keyed_many(&key, inputs, len, &mut outputs[1..=count]);
    let arm = kernels.arm();
    assert_eq!(outputs[1..=count], expected, "{arm}: {count} inputs of {len} bytes");
    assert_eq!((outputs[0], outputs[count + 1]), ([7; 32], [7; 32]), "{arm}: wrote outside");
}

fn check_numbered(kernels: Kernels, len: usize, count: usize, seed: u64) {
    let mut random = Random(seed);
    let key: [u8; 32] = random.bytes(32).try_into().unwrap();
    let misaligned = 1 + random.below(7);
    let bytes = random.bytes(misaligned + len * count);
    let records = &bytes[misaligned..];
    let first = random.next().min(u64::MAX - count as u64);
    let consecutive: Vec<u64> = (0..count as u64).map(|i| first + i).collect();
    let any: Vec<u64> = (0..count).map(|_| random.next()).collect();
    for (numbers, given) in [(&consecutive, Numbers::From(first)), (&any, Numbers::Each(&any[..]))]
    {
        let hash = |i: usize| {
            let mut input = numbers[i].to_le_bytes().to_vec();
            input.extend(&records[i * len..][..len]);
            *blake3::keyed_hash(&key, &input).as_bytes()
        };
        let expected: Vec<[u8; 32]> = (0..count).map(hash).collect();
        let mut outputs = vec![[7; 32]; count + 2];
        kernels.blake3_keyed_numbered(&key, given, records, len, &mut outputs[1..=count]);
        let arm = kernels.arm();
        assert_eq!(
            outputs[1..=count],
            expected,
            "{arm}: {count} records of {len} bytes, {given:?}"
        );
        assert_eq!((outputs[0], outputs[count + 1]), ([7; 32], [7; 32]), "{arm}: wrote outside");
    }
}

/// Groups are of 8 and 16 lanes, so up to more than twice that.
#[test]
fn every_arm_hashes_like_blake3() {
    for kernels in all_kernels() {
        for len in LENS {
            for count in 0..=40 {
                check_numbered(kernels, len, count, (len * 41 + count) as u64);
                check_plain(kernels, len, count, (len * 41 + count) as u64);
            }
        }
        for len in [1017, 1023, 1024] {
            for count in [0, 1, 8, 9, 16, 17, 33] {
                check_plain(kernels, len, count, (len * 41 + count) as u64);
            }
        }
    }
}

/// From the reference implementation's `test_vectors.json`: inputs are 0, 1, …, 250, 0, 1, ….
#[test]
fn known_answers() {
    let key = b"whats the Elvish word for friend";
    let known = [
        (0, "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"),
        (1, "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b"),
        (1023, "c951ecdf03288d0fcc96ee3413563d8a6d3589547f2c2fb36d9786470f1b9d6e"),
        (1024, "75c46f6f3d9eb4f55ecaaee480db732e6c2105546f1e675003687c31719c7ba4"),
    ];
    for kernels in all_kernels() {
        for (len, hex) in known {
            let input: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut hash = [[0; 32]];
            kernels.blake3_keyed_many(key, &input, len, &mut hash);
            let found: String = hash[0].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hex, "{}: {len} bytes", kernels.arm());
        }
    }
}

#[test]
#[should_panic(expected = "one chunk")]
fn longer_inputs_panic() {
    let input = [0; MAX_INPUT_LEN + 1];
    Kernels::detect().blake3_keyed_many(&[0; 32], &input, input.len(), &mut [[0; 32]]);
}

#[test]
#[should_panic(expected = "one chunk")]
fn records_too_long_with_their_numbers_panic() {
    let input = [0; MAX_INPUT_LEN - 7];
    let numbers = Numbers::From(0);
    Kernels::detect().blake3_keyed_numbered(&[0; 32], numbers, &input, input.len(), &mut [[0; 32]]);
}

#[test]
#[should_panic(expected = "for each output")]
fn missing_inputs_panic() {
    Kernels::detect().blake3_keyed_many(&[0; 32], &[0; 64], 32, &mut [[0; 32]; 3]);
}

#[test]
#[should_panic(expected = "a number each")]
fn missing_numbers_panic() {
    let numbers = Numbers::Each(&[1]);
    Kernels::detect().blake3_keyed_numbered(&[0; 32], numbers, &[0; 64], 32, &mut [[0; 32]; 2]);
}

#[test]
#[should_panic(expected = "below 2^64")]
fn numbers_that_do_not_end_panic() {
    let numbers = Numbers::From(u64::MAX);
    Kernels::detect().blake3_keyed_numbered(&[0; 32], numbers, &[0; 64], 32, &mut [[0; 32]; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_length_and_number(len in 0..=MAX_INPUT_LEN - 8, count in 0usize..70, seed: u64) {
        for kernels in all_kernels() {
            check_numbered(kernels, len, count, seed);
            check_plain(kernels, len, count, seed);
        }
    }
}
