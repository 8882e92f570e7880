use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::Numbers;
use crate::swap_or_not::{MAX_BITS, phases};
use crate::{Kernels, SwapOrNot};

/// All kernels of this machine, also as on one without vector AES.
fn all_kernels() -> Vec<Kernels> {
    let all = super::all_kernels().into_iter();
    all.flat_map(|kernels| [kernels.without_vector_aes(), kernels]).collect()
}

/// The permutation as the module's documentation defines it, round by round and with lists of
/// numbers instead of linear algebra.
struct Model {
    cipher: Aes128,
    round_keys: Vec<u32>,
}

impl Model {
    fn new(key: &[u8; 32], bits: u32) -> Model {
        let words = 5 * phases(bits);
        let cipher = Aes128::new_from_slice(&key[16..]).expect("16 bytes");
        let word = |i: u32| {
            let block = encrypt(&cipher, [i / 4, 0, 0, 0]);
            (block >> (32 * (i % 4))) as u32
        };
        let below = |word: u32| (u64::from(word) % (1 << bits)) as u32;
        let round_keys = (0..words).map(word).map(below).collect();
        Model { cipher: Aes128::new_from_slice(&key[..16]).expect("16 bytes"), round_keys }
    }

    fn permute(&self, mut value: u32) -> u32 {
        for round in 0..self.round_keys.len() {
            value = self.round(round, value);
        }
        value
    }

    fn unpermute(&self, mut value: u32) -> u32 {
        for round in (0..self.round_keys.len()).rev() {
            value = self.round(round, value);
        }
        value
    }

    fn round(&self, round: usize, value: u32) -> u32 {
        let (phase, j) = (round / 5, round % 5);
        let round_key = self.round_keys[round];
        if round_key == 0 {
            return value;
        }
        let mut coset = vec![value];
        for key in &self.round_keys[5 * phase..5 * phase + 5] {
            let shifted: Vec<u32> = coset.iter().map(|x| x ^ key).collect();
            coset.extend(shifted);
        }
        coset.sort_unstable();
        coset.dedup();
        let smaller_members = coset.iter().filter(|&&y| y < y ^ round_key);
        let pair = value.min(value ^ round_key);
        let number = smaller_members.take_while(|&&y| y != pair).count();
        let coins = encrypt(&self.cipher, [coset[0], phase as u32, 0, 0]);
        if coins >> (16 * j + number) & 1 == 1 { value ^ round_key } else { value }
    }
}

fn encrypt(cipher: &Aes128, words: [u32; 4]) -> u128 {
    let [a, b, c, d] = words.map(u128::from);
    let mut block = Array((a | b << 32 | c << 64 | d << 96).to_le_bytes());
    cipher.encrypt_block(&mut block);
    u128::from_le_bytes(block.0)
}

fn key(numbers: &mut Numbers) -> [u8; 32] {
    std::array::from_fn(|_| numbers.next() as u8)
}

/// A permutation with these round keys, and the model of it.
fn with_round_keys(seed: u64, bits: u32, round_keys: Vec<u32>) -> (SwapOrNot, Model) {
    let coin_key: [u8; 16] = std::array::from_fn(|i| seed.wrapping_mul(i as u64 + 3) as u8);
    let permutation = SwapOrNot::with_round_keys(&coin_key, bits, &round_keys);
    (permutation, Model { cipher: Aes128::new(&Array(coin_key)), round_keys })
}

/// Compares all points of a domain in both directions.
fn check_domain(permutation: &SwapOrNot, model: &Model) {
    let all: Vec<u32> = (0..1 << permutation.bits()).collect();
    let expected: Vec<u32> = all.iter().map(|&value| model.permute(value)).collect();
    for (&value, &image) in all.iter().zip(&expected) {
        assert_eq!(model.unpermute(image), value, "the model's inverse");
    }
    let mut sorted = expected.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, all, "the model is a permutation");
    for kernels in all_kernels() {
        let mut values = all.clone();
        kernels.permute(permutation, &mut values);
        assert_eq!(values, expected, "{}: {} bits", kernels.arm(), permutation.bits());
        kernels.unpermute(permutation, &mut values);
        assert_eq!(values, all, "{}: {} bits, backward", kernels.arm(), permutation.bits());
    }
}

#[test]
fn all_points_of_small_domains_are_those_of_the_definition() {
    let mut numbers = Numbers(1);
    for bits in 1..=8 {
        let key = key(&mut numbers);
        check_domain(&SwapOrNot::new(&key, bits), &Model::new(&key, bits));
    }
}

/// Every combination of dependent, equal and zero round keys within a phase, in the smallest
/// domains in which it occurs.
#[test]
fn dependent_round_keys_still_permute() {
    for bits in 1..=2 {
        let keys = 1u32 << bits;
        let round_keys = (0..keys.pow(5)).flat_map(|n| (0..5).map(move |j| n / keys.pow(j) % keys));
        let (permutation, model) = with_round_keys(2, bits, round_keys.collect());
        check_domain(&permutation, &model);
    }
    let combinations: [[u32; 5]; 12] = [
        [0, 0, 0, 0, 0],
        [0x155, 0, 0, 0, 0],
        [0, 0, 0, 0, 0x155],
        [7, 7, 7, 7, 7],
        [1, 2, 3, 1, 2],
        [1, 2, 4, 8, 15],
        [31, 16, 8, 4, 2],
        [0x100, 0x80, 0x180, 0x1, 0x101],
        [0x1ff, 0x1fe, 1, 0x0ff, 0x100],
        [0x111, 0x122, 0x033, 0x144, 0x055],
        [3, 5, 6, 9, 10],
        [0x1f0, 0x0f0, 0x070, 0x030, 0x1f0],
    ];
    for (seed, round_keys) in (0..).zip(combinations) {
        // One phase alone, so that no later one hides a mistake, and several.
        for phases in [1, 4] {
            let (permutation, model) = with_round_keys(seed, 9, round_keys.repeat(phases));
            check_domain(&permutation, &model);
        }
    }
}

/// Buffers are one word off any alignment that a vector may have, and the memory around them must
/// not change.
fn check_slice(seed: u64, bits: u32, len: usize) {
    let mut numbers = Numbers(seed);
    let key = key(&mut numbers);
    let permutation = SwapOrNot::new(&key, bits);
    let before: Vec<u32> = (0..len + 2).map(|_| numbers.next() as u32 >> (32 - bits)).collect();
    let portable = all_kernels()[0];
    let mut expected = before.clone();
    portable.permute(&permutation, &mut expected[1..=len]);
    let model = Model::new(&key, bits);
    for i in [1, len / 2, len] {
        if (1..=len).contains(&i) {
            assert_eq!(expected[i], model.permute(before[i]), "{bits} bits");
        }
    }
    for kernels in all_kernels() {
        let mut values = before.clone();
        kernels.permute(&permutation, &mut values[1..=len]);
        assert!(values == expected, "{}: {len} values of {bits} bits", kernels.arm());
        kernels.unpermute(&permutation, &mut values[1..=len]);
        assert!(values == before, "{}: {len} values of {bits} bits, backward", kernels.arm());
    }
}

/// A vector has 8 or 16 values, a batch 32, or eight pairs of vectors.
#[test]
fn slices_of_any_length_are_permuted() {
    for len in (0..=70).chain([95, 96, 97, 127, 128, 129, 191, 192, 255, 256, 257, 600]) {
        check_slice(len as u64, 20, len);
    }
}

#[test]
fn domains_of_any_size_are_permuted() {
    for bits in 1..=MAX_BITS {
        check_slice(u64::from(bits), bits, 80);
    }
}

/// Computed a second time in Python, with another implementation of AES, from the module's
/// documentation.
#[test]
fn known_answers() {
    let key = std::array::from_fn(|i| i as u8);
    let cases: [(u32, [u32; 4], [u32; 4]); 4] = [
        (3, [0, 1, 2, 3], [3, 6, 5, 2]),
        (10, [0, 441, 882, 299], [307, 32, 393, 795]),
        (25, [0, 3635641, 7271282, 10906923], [28229628, 4748850, 17158350, 4285841]),
        (
            32,
            [0, 2654435769, 1013904242, 3668340011],
            [1840887942, 3189038901, 3129215730, 684612533],
        ),
    ];
    for (bits, values, images) in cases {
        let permutation = SwapOrNot::new(&key, bits);
        for kernels in all_kernels() {
            let mut found = values;
            kernels.permute(&permutation, &mut found);
            assert_eq!(found, images, "{}: {bits} bits", kernels.arm());
        }
    }
}

/// The numbers of phases, with integers alone. The bound of the module's documentation with
/// `Q = C/2`, times 2^64 and to the fourth power, is at most 1 exactly if
/// `2^(6 k + 268) · 3^(r + 4) ≤ (r + 4)^4 · 2^(2 (r + 4))`.
#[test]
fn phases_are_the_fewest_that_the_bound_allows() {
    let is_enough = |bits: u32, rounds: u32| {
        let mut left = Natural::power_of_two(6 * bits + 268);
        let mut right = Natural::power_of_two(2 * (rounds + 4));
        (0..rounds + 4).for_each(|_| left.multiply(3));
        (0..4).for_each(|_| right.multiply(rounds + 4));
        left.is_at_most(&right)
    };
    for bits in 1..=MAX_BITS {
        assert!(is_enough(bits, 5 * phases(bits)), "{bits} bits");
        assert!(!is_enough(bits, 5 * (phases(bits) - 1)), "{bits} bits");
    }
}

/// A natural number, as words from the lowest on, without leading zeros.
struct Natural(Vec<u32>);

impl Natural {
    fn power_of_two(exponent: u32) -> Natural {
        let mut words = vec![0; exponent as usize / 32];
        words.push(1 << (exponent % 32));
        Natural(words)
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn is_at_most(&self, other: &Natural) -> bool {
        let order = self.0.len().cmp(&other.0.len());
        order.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_le()
    }
}

#[test]
fn values_outside_the_domain_panic_and_change_nothing() {
    let permutation = SwapOrNot::new(&[1; 32], 10);
    for kernels in all_kernels() {
        for mut values in [vec![1, 1 << 10], vec![1 << 31; 1]] {
            let before = values.clone();
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                kernels.unpermute(&permutation, &mut values);
            }));
            assert!(caught.is_err(), "{}", kernels.arm());
            assert_eq!(values, before, "{}", kernels.arm());
        }
    }
}

#[test]
#[should_panic(expected = "2 to 2^32 numbers")]
fn a_domain_of_one_number_panics() {
    SwapOrNot::new(&[1; 32], 0);
}

#[test]
#[should_panic(expected = "2 to 2^32 numbers")]
fn a_domain_of_too_many_numbers_panics() {
    SwapOrNot::new(&[1; 32], 33);
}

#[test]
#[should_panic(expected = "below 2^10")]
fn a_value_outside_the_domain_panics() {
    Kernels::detect().permute(&SwapOrNot::new(&[1; 32], 10), &mut [3, 1 << 10]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn round_keys_of_any_kind(seed: u64, bits in 1u32..=7, zeros in 0u32..32) {
        let mut numbers = Numbers(seed);
        // Few bits make dependent keys likely; some are 0 besides.
        let mut round_key = |j: u32| if zeros >> (j % 5) & 1 == 1 { 0 } else {
            numbers.next() as u32 >> (32 - bits)
        };
        let (permutation, model) = with_round_keys(seed, bits, (0..30).map(&mut round_key).collect());
        check_domain(&permutation, &model);
    }

    #[test]
    fn any_number_of_values(seed: u64, bits in 1u32..=32, len in 0usize..300) {
        check_slice(seed, bits, len);
    }
}
