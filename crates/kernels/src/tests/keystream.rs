use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::Kernels;

/// The keystream, block by block, as the module's documentation defines it.
fn keystream(key: &[u8; 16], first_block: u64, words: usize) -> Vec<u32> {
    let cipher = Aes128::new(&Array(*key));
    let block = |i: u64| {
        let mut block = [0; 16];
        block[..8].copy_from_slice(&first_block.wrapping_add(i).to_le_bytes());
        let mut block = Array(block);
        cipher.encrypt_block(&mut block);
        block.0
    };
    let bytes: Vec<u8> = (0..words.div_ceil(4) as u64).flat_map(block).collect();
    let to_word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    bytes.as_chunks::<4>().0.iter().map(to_word).take(words).collect()
}

/// `matrix · vector` for a row-major matrix, in 64-bit arithmetic.
fn product(matrix: &[u32], vector: &[u32], rows: usize) -> Vec<u32> {
    let row = |j: usize| {
        let words = &matrix[j * vector.len()..(j + 1) * vector.len()];
        let term = |(&a, &b): (&u32, &u32)| u64::from(a) * u64::from(b) % (1 << 32);
        (words.iter().zip(vector).map(term).sum::<u64>() % (1 << 32)) as u32
    };
    (0..rows).map(row).collect()
}

fn hex(text: &str) -> [u8; 16] {
    let digits = u128::from_str_radix(text, 16).expect("hexadecimal");
    digits.to_be_bytes()
}

/// Answers of NIST's AESAVS (variable key and variable text, AES-128). Counter block 128 is the
/// text 80 00 .. 00, and 2⁶⁴ − 1 is eight bytes ff and eight bytes 00.
#[test]
fn known_answers() {
    let zero = "00000000000000000000000000000000";
    for (key, block, answer) in [
        (zero, 0, "66e94bd4ef8a2c3b884cfa59ca342b2e"),
        (zero, 128, "3ad78e726c1ec02b7ebfe92b23d9ec34"),
        (zero, u64::MAX, "f807c3e7985fe0f5a50e2cdb25c5109e"),
        ("80000000000000000000000000000000", 0, "0edd33d3c621e546455bd8ba1418bec8"),
        ("ffffffffffffffffffffffffffffffff", 0, "a1f6258c877d5fcd8964484538bfc92c"),
    ] {
        for kernels in all_kernels() {
            let mut words = [0; 4];
            kernels.aes128_ctr_words(&hex(key), block, &mut words);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(bytes, hex(answer), "{}: {key} {block}", kernels.arm());
        }
    }
}

/// The batches are 32 blocks (AVX-512 and portable) and 8 (AVX2).
#[test]
fn any_length_from_any_block() {
    let mut numbers = Numbers(1);
    for len in [0, 1, 3, 4, 5, 31, 32, 33, 63, 64, 127, 128, 129, 255, 256, 257, 1000] {
        for first_block in [0, 1, 77, u64::from(u32::MAX), u64::MAX - 3] {
            let key = numbers.bytes(16).try_into().expect("16 bytes");
            let expected = keystream(&key, first_block, len);
            for kernels in all_kernels() {
                let mut words = vec![0xdead_beef; len + 2];
                kernels.aes128_ctr_words(&key, first_block, &mut words[1..=len]);
                assert!(words[1..=len] == expected, "{}: {len} words", kernels.arm());
                assert_eq!((words[0], words[len + 1]), (0xdead_beef, 0xdead_beef));
            }
        }
    }
}

fn check_keystream_times_vector(
    kernels: Kernels,
    key: &[u8; 16],
    first_row: u64,
    vector: &[u32],
    rows: usize,
) {
    let first_block = first_row.wrapping_mul(vector.len() as u64 / 4);
    let matrix = keystream(key, first_block, rows * vector.len());
    let expected = product(&matrix, vector, rows);
    let mut out = vec![0xdead_beef; rows];
    kernels.keystream_times_vector(key, first_row, vector, &mut out);
    assert!(out == expected, "{}: {rows} x {}", kernels.arm(), vector.len());
    let mut out = vec![0xdead_beef; rows];
    kernels.words_times_vector(&matrix, vector, &mut out);
    assert!(out == expected, "{}: {rows} x {}, stored", kernels.arm(), vector.len());
}

/// Rows go eight at a time and columns 16 (AVX-512), or through a buffer of 1024 words (AVX2) or
/// 512 (portable).
#[test]
fn keystream_products_equal_products_with_the_expanded_matrix() {
    let mut numbers = Numbers(2);
    for rows in [0, 1, 2, 7, 8, 9, 16, 17, 40] {
        for width in [0, 4, 8, 12, 16, 20, 60, 64, 68, 508, 512, 516, 1020, 1024, 1028, 2052] {
            let key = numbers.bytes(16).try_into().expect("16 bytes");
            let vector = numbers.words(width);
            for kernels in all_kernels() {
                for first_row in [0, 5, u64::MAX - 2] {
                    check_keystream_times_vector(kernels, &key, first_row, &vector, rows);
                }
            }
        }
    }
}

#[test]
fn word_products_take_any_width() {
    let mut numbers = Numbers(3);
    for width in 0..200 {
        for rows in [0, 1, 3] {
            let (matrix, vector) = (numbers.words(rows * width + 1), numbers.words(width + 1));
            let (matrix, vector) = (&matrix[1..], &vector[1..]);
            for kernels in all_kernels() {
                let mut out = vec![0xdead_beef; rows];
                kernels.words_times_vector(matrix, vector, &mut out);
                assert_eq!(out, product(matrix, vector, rows), "{}: {width}", kernels.arm());
            }
        }
    }
}

#[test]
#[should_panic(expected = "whole blocks")]
fn a_width_that_is_not_whole_blocks_panics() {
    Kernels::detect().keystream_times_vector(&[0; 16], 0, &[1; 6], &mut [0; 2]);
}

#[test]
#[should_panic(expected = "one row for each")]
fn a_matrix_of_the_wrong_size_panics() {
    Kernels::detect().words_times_vector(&[0; 7], &[1; 4], &mut [0; 2]);
}

/// Compares with the products of the expanded, transposed matrix, added to what was there before.
fn check_vectors_times_keystream(
    kernels: Kernels,
    width: usize,
    rows: usize,
    vectors: usize,
    threads: usize,
    seed: u64,
) {
    let mut numbers = Numbers(seed);
    let key = numbers.bytes(16).try_into().expect("16 bytes");
    let first_row = [0, 5, u64::MAX - 2, numbers.next()][numbers.below(4)];
    let first_block = first_row.wrapping_mul(width as u64 / 4);
    let matrix = keystream(&key, first_block, rows * width);
    let column = |c: usize| (0..rows).map(move |r| r * width + c);
    let transposed: Vec<u32> = (0..width).flat_map(column).map(|place| matrix[place]).collect();
    let vectors: Vec<Vec<u32>> = (0..vectors).map(|_| numbers.words(rows + 1)).collect();
    let vectors: Vec<&[u32]> = vectors.iter().map(|vector| &vector[1..]).collect();
    let before = numbers.words(width + 2);
    let mut out = vec![before.clone(); vectors.len()];
    let mut inner: Vec<&mut [u32]> = out.iter_mut().map(|out| &mut out[1..=width]).collect();
    kernels.vectors_times_keystream(&key, first_row, width, &vectors, &mut inner, threads);
    for (k, out) in out.iter().enumerate() {
        let mut expected = before.clone();
        for (word, sum) in expected[1..].iter_mut().zip(product(&transposed, vectors[k], width)) {
            *word = word.wrapping_add(sum);
        }
        let shape = format!("{rows} x {width}, vector {k} of {}", vectors.len());
        assert!(*out == expected, "{}: {shape}, {threads} threads", kernels.arm());
    }
}

/// Rows go eight at a time (four with AVX2), columns 16 (8 with AVX2), and 64 to each thread.
#[test]
fn products_with_many_vectors_equal_those_with_the_expanded_matrix() {
    for (i, rows) in [0, 1, 3, 4, 5, 7, 8, 9, 16, 17, 40, 100].into_iter().enumerate() {
        for width in [0, 4, 8, 12, 16, 20, 60, 64, 68, 124, 128, 132, 1024] {
            for vectors in [0, 1, 2, 3, 4, 5, 9] {
                for kernels in all_kernels() {
                    let threads = i % 4;
                    let seed = (rows * width) as u64;
                    check_vectors_times_keystream(kernels, width, rows, vectors, threads, seed);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "whole blocks")]
fn a_matrix_whose_rows_are_not_whole_blocks_panics() {
    let (vectors, mut out) = ([1; 4], [0; 6]);
    let out = &mut [&mut out[..]];
    Kernels::detect().vectors_times_keystream(&[0; 16], 0, 6, &[&vectors], out, 1);
}

#[test]
#[should_panic(expected = "the same length")]
fn vectors_of_different_lengths_panic() {
    let (vectors, mut out) = ([1; 4], [0; 8]);
    let (first, second) = out.split_at_mut(4);
    let vectors = [&vectors[..], &vectors[1..]];
    Kernels::detect().vectors_times_keystream(&[0; 16], 0, 4, &vectors, &mut [first, second], 1);
}

#[test]
#[should_panic(expected = "one output for each")]
fn a_vector_without_an_output_panics() {
    Kernels::detect().vectors_times_keystream(&[0; 16], 0, 4, &[&[1; 4]], &mut [], 1);
}

#[test]
#[should_panic(expected = "one word for each column")]
fn an_output_of_the_wrong_length_panics() {
    let mut out = [0; 8];
    let out = &mut [&mut out[..]];
    Kernels::detect().vectors_times_keystream(&[0; 16], 0, 4, &[&[1; 4]], out, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn keystream_products_on_any_shape(
        rows in 0usize..40,
        blocks in 0usize..80,
        first_row: u64,
        seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let key = numbers.bytes(16).try_into().expect("16 bytes");
        let vector = numbers.words(4 * blocks);
        for kernels in all_kernels() {
            check_keystream_times_vector(kernels, &key, first_row, &vector, rows);
        }
    }

    #[test]
    fn products_with_many_vectors_on_any_shape(
        rows in 0usize..60,
        blocks in 0usize..80,
        vectors in 0usize..10,
        threads in 1usize..4,
        seed: u64,
    ) {
        for kernels in all_kernels() {
            check_vectors_times_keystream(kernels, 4 * blocks, rows, vectors, threads, seed);
        }
    }
}
