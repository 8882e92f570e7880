use std::sync::Mutex;

use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::{Arm, Kernels, TiledBytes};

/// Around a panel's 64 rows, a vector's 16, and the half panels of AVX2.
const ROWS: [usize; 14] = [1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200];
/// Around a group's 4 columns, the 16 that are tiled at a time, and a chunk's 256.
const COLUMNS: [usize; 14] = [1, 3, 4, 5, 7, 15, 16, 17, 64, 127, 129, 255, 256, 257];

/// `table · query`, column by column, in 64-bit arithmetic.
fn product(table: &[u8], rows: usize, query: &[u32]) -> Vec<u32> {
    let mut sums = vec![0u64; rows];
    for (column, &word) in table.chunks(rows).zip(query) {
        for (sum, &byte) in sums.iter_mut().zip(column) {
            *sum = (*sum + u64::from(byte) * u64::from(word)) % (1 << 32);
        }
    }
    sums.into_iter().map(|sum| sum as u32).collect()
}

/// Tiles `table`, multiplies, and compares with [`product`]. Tables, queries and answers are taken
/// out of the middle of something larger, so that their addresses are odd (or as odd as words can
/// be).
fn check_multiply(
    kernels: Kernels,
    table: &[u8],
    rows: usize,
    queries: &[Vec<u32>],
    threads: usize,
) {
    let shifted: Vec<u8> = std::iter::once(9).chain(table.iter().copied()).collect();
    let matrix =
        TiledBytes::from_columns_with(kernels, &shifted[1..], rows, threads).expect("fits");
    let queries: Vec<Vec<u32>> =
        queries.iter().map(|query| std::iter::once(&7).chain(query).copied().collect()).collect();
    let queries: Vec<&[u32]> = queries.iter().map(|query| &query[1..]).collect();
    let mut answers = vec![vec![0xdead_beef; rows + 2]; queries.len()];
    let mut inner: Vec<&mut [u32]> =
        answers.iter_mut().map(|answer| &mut answer[1..=rows]).collect();
    kernels.multiply(&matrix, &queries, &mut inner, threads);
    for (k, (answer, query)) in answers.iter().zip(&queries).enumerate() {
        let arm = kernels.arm();
        let columns = query.len();
        assert!(
            answer[1..=rows] == product(table, rows, query),
            "{arm}: {rows} x {columns}, query {k} of {}, {threads} threads",
            queries.len()
        );
        assert_eq!(
            (answer[0], answer[rows + 1]),
            (0xdead_beef, 0xdead_beef),
            "{arm}: wrote outside"
        );
    }
}

#[test]
fn products_are_exact_at_the_edges_of_tiles() {
    let mut numbers = Numbers(1);
    for rows in ROWS {
        for columns in COLUMNS {
            let table = numbers.bytes(rows * columns);
            let width = 1 + numbers.below(9);
            let queries: Vec<_> = (0..width).map(|_| numbers.words(columns)).collect();
            let threads = 1 + numbers.below(3);
            for kernels in all_kernels() {
                check_multiply(kernels, &table, rows, &queries, threads);
                check_multiply(kernels, &table, rows, &queries[..1], threads);
            }
        }
    }
}

#[test]
fn any_number_of_queries_in_one_pass() {
    let mut numbers = Numbers(2);
    let (rows, columns) = (130, 600);
    let table = numbers.bytes(rows * columns);
    for width in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17] {
        let queries: Vec<_> = (0..width).map(|_| numbers.words(columns)).collect();
        for kernels in all_kernels() {
            for threads in 1..=3 {
                check_multiply(kernels, &table, rows, &queries, threads);
            }
        }
    }
}

/// A block of prepared columns is 65 536 columns for one query and fewer for more; 17 panels are
/// more than one thread takes at a time.
#[test]
fn products_are_exact_across_blocks_of_columns_and_batches_of_panels() {
    let mut numbers = Numbers(3);
    for (rows, columns, width) in [(2, 65_600, 1), (66, 4100, 17), (17 * 64 + 1, 20, 2)] {
        let table = numbers.bytes(rows * columns);
        let queries: Vec<_> = (0..width).map(|_| numbers.words(columns)).collect();
        for kernels in all_kernels() {
            check_multiply(kernels, &table, rows, &queries, 2);
        }
    }
}

/// All bytes 255 and all words equal: the largest possible sums. A saturating or too narrow
/// accumulator gets them wrong.
#[test]
fn extreme_bytes_and_words_neither_saturate_nor_overflow() {
    let (rows, columns) = (65, 1030);
    for byte in [0, 1, 127, 128, 255] {
        let table = vec![byte; rows * columns];
        let words =
            [0, 1, 0x7f7f_7f7f, 0x7fff_ffff, 0x8000_0000, 0x8080_8080, 0xffff_ffff, 0x7f80_7f80];
        let queries: Vec<_> = words.map(|word| vec![word; columns]).into();
        for kernels in all_kernels() {
            check_multiply(kernels, &table, rows, &queries, 1);
            for query in &queries {
                check_multiply(kernels, &table, rows, std::slice::from_ref(query), 1);
            }
        }
    }
}

#[test]
fn empty_shapes_give_empty_or_zero_answers() {
    for kernels in all_kernels() {
        let no_columns = TiledBytes::zeroed(70, 0).expect("fits");
        let mut answer = vec![5; 70];
        kernels.multiply(&no_columns, &[&[]], &mut [&mut answer], 2);
        assert!(answer.iter().all(|&word| word == 0));
        let mut out = vec![5; 70 * 3];
        kernels
            .multiply_matrix(&no_columns, 3, |_, _, _| {}, &mut out, 2, |_| {})
            .expect("little memory");
        assert!(out.iter().all(|&word| word == 0));

        let no_rows = TiledBytes::from_columns(&[], 0, 1).expect("fits");
        kernels.multiply(&no_rows, &[&[]], &mut [&mut []], 2);
        kernels.multiply(&no_columns, &[], &mut [], 2);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(TiledBytes::zeroed(usize::MAX, 1).is_err());
    assert!(TiledBytes::zeroed(1, usize::MAX).is_err());
    assert!(TiledBytes::zeroed(usize::MAX / 2, 2).is_err());
    assert!(TiledBytes::zeroed(usize::MAX / 2, usize::MAX / 2).is_err());
}

#[test]
fn a_short_last_column_is_filled_with_zeros() {
    let mut numbers = Numbers(4);
    for kernels in all_kernels() {
        for len in [1, 99, 100, 101, 399, 400, 401, 1599, 1650, 1700] {
            let table = numbers.bytes(len);
            let matrix = TiledBytes::from_columns_with(kernels, &table, 100, 2).expect("fits");
            assert_eq!((matrix.rows(), matrix.columns()), (100, len.div_ceil(100)));
            let mut padded = table.clone();
            padded.resize(matrix.columns() * 100, 0);
            assert!(natural_order(&matrix) == padded);
        }
    }
}

/// The matrix, read back in natural order.
fn natural_order(matrix: &TiledBytes) -> Vec<u8> {
    let mut bytes = vec![0; matrix.rows() * matrix.columns()];
    for (c, column) in bytes.chunks_mut(matrix.rows()).enumerate() {
        matrix.read_bytes(c, 0, column);
    }
    bytes
}

#[test]
fn filling_in_any_pieces_gives_the_same_matrix() {
    let mut numbers = Numbers(5);
    for kernels in all_kernels() {
        for rows in [1, 63, 64, 65, 130, 321] {
            let columns = 100;
            let table = numbers.bytes(rows * columns);
            let mut matrix = TiledBytes::zeroed(rows, columns).expect("fits");
            let mut first = 0;
            while first < columns {
                let end = columns.min(first + numbers.below(40));
                let threads = 1 + numbers.below(3);
                matrix.fill_columns_with(kernels, first, &table[first * rows..end * rows], threads);
                first = end;
            }
            assert!(natural_order(&matrix) == table, "{}: {rows} rows", kernels.arm());
        }
    }
}

#[test]
fn bytes_are_patched_in_place_and_read_back() {
    let mut numbers = Numbers(6);
    let (rows, columns) = (150, 37);
    let mut table = numbers.bytes(rows * columns);
    let mut matrix = TiledBytes::from_columns(&table, rows, 1).expect("fits");
    for _ in 0..200 {
        let (column, row) = (numbers.below(columns), numbers.below(rows + 1));
        let len = numbers.below(rows - row + 1);
        let bytes = numbers.bytes(len);
        matrix.set_bytes(column, row, &bytes);
        table[column * rows + row..][..len].copy_from_slice(&bytes);
    }
    assert!(natural_order(&matrix) == table);
    let query = numbers.words(columns);
    let mut answer = vec![0; rows];
    Kernels::detect().multiply(&matrix, &[&query], &mut [&mut answer], 1);
    assert!(answer == product(&table, rows, &query));
}

/// Runs `multiply_matrix` and compares with one [`product`] for each column of the public matrix.
fn check_multiply_matrix(
    kernels: Kernels,
    rows: usize,
    columns: usize,
    width: usize,
    threads: usize,
) {
    let mut numbers = Numbers((rows + columns + width) as u64);
    let table = numbers.bytes(rows * columns);
    let a = numbers.words(columns * width);
    let matrix = TiledBytes::from_columns_with(kernels, &table, rows, 1).expect("fits");
    let filled = Mutex::new(vec![0; columns]);
    let heard = Mutex::new(Vec::new());
    let mut out = vec![0xdead_beef; rows * width];
    kernels
        .multiply_matrix(
            &matrix,
            width,
            |first, n, words| {
                words.copy_from_slice(&a[first * width..(first + n) * width]);
                filled.lock().expect("whole")[first..first + n].iter_mut().for_each(|n| *n += 1);
            },
            &mut out,
            threads,
            |part| heard.lock().expect("whole").push(part),
        )
        .expect("little memory");
    for k in 0..width {
        let column: Vec<u32> = a.iter().copied().skip(k).step_by(width).collect();
        let expected = product(&table, rows, &column);
        let got: Vec<u32> = out.iter().copied().skip(k).step_by(width).collect();
        let arm = kernels.arm();
        assert!(got == expected, "{arm}: {rows} x {columns} x {width}, vector {k}");
    }
    assert!(filled.lock().expect("whole").iter().all(|&n| n == 1), "each row is filled once");
    let heard = heard.into_inner().expect("whole");
    assert!(heard.iter().all(|part| (0.0..=1.0).contains(part)) && heard.last() == Some(&1.0));
}

#[test]
fn matrix_products_are_exact_at_the_edges_of_tiles() {
    for kernels in all_kernels() {
        for (rows, columns) in
            [(1, 1), (3, 5), (63, 255), (64, 256), (65, 257), (128, 130), (129, 127), (200, 40)]
        {
            for width in [1, 2, 3, 4, 63, 64, 65] {
                check_multiply_matrix(kernels, rows, columns, width, 1 + width % 3);
            }
        }
    }
}

/// Blocks of the public matrix have 2048 rows, filled 128 at a time, in tiles of 64 vectors.
#[test]
fn matrix_products_are_exact_across_blocks() {
    for kernels in all_kernels() {
        for (columns, width) in [(2047, 2), (2049, 130), (4100, 5)] {
            check_multiply_matrix(kernels, 67, columns, width, 2);
        }
    }
}

#[test]
#[should_panic(expected = "one word for each column")]
fn a_query_of_the_wrong_length_panics() {
    let matrix = TiledBytes::zeroed(10, 10).expect("fits");
    Kernels::detect().multiply(&matrix, &[&[0; 9]], &mut [&mut [0; 10]], 1);
}

#[test]
#[should_panic(expected = "one word for each row")]
fn an_answer_of_the_wrong_length_panics() {
    let matrix = TiledBytes::zeroed(10, 10).expect("fits");
    Kernels::detect().multiply(&matrix, &[&[0; 10]], &mut [&mut [0; 11]], 1);
}

#[test]
#[should_panic(expected = "do not fit")]
fn too_many_columns_panic() {
    TiledBytes::zeroed(10, 10).expect("fits").fill_columns(9, &[0; 11], 1);
}

#[test]
#[should_panic(expected = "lie outside")]
fn bytes_outside_the_matrix_panic() {
    TiledBytes::zeroed(10, 10).expect("fits").set_bytes(3, 9, &[0; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_arms_agree_on_any_shape(
        rows in 1usize..300,
        columns in 1usize..300,
        width in 1usize..12,
        threads in 0usize..4,
        seed: u64,
    ) {
        let mut numbers = Numbers(seed);
        let table = numbers.bytes(rows * columns);
        let queries: Vec<_> = (0..width).map(|_| numbers.words(columns)).collect();
        for kernels in all_kernels() {
            check_multiply(kernels, &table, rows, &queries, threads);
        }
    }
}

/// The weighted sum of the prepared digits gives the words back. Their types ensure their ranges.
#[test]
fn digits_make_up_their_words() {
    let mut numbers = Numbers(7);
    for kernels in all_kernels() {
        for _ in 0..1000 {
            let words: [u32; 4] = numbers.words(4).try_into().expect("four");
            let prepared = kernels.prepare_group(words);
            let back: [u32; 4] = std::array::from_fn(|c| match kernels.arm() {
                Arm::Portable => prepared[c],
                Arm::Avx2 => {
                    let half = |l: usize| (prepared[2 * l + c % 2] >> (16 * (c / 2))) as i16;
                    (half(0) as u32).wrapping_add((half(1) as u32) << 16)
                }
                Arm::Avx512 => (0..4).fold(0, |word, d| {
                    let digit = (prepared[d] >> (8 * c)) as i8;
                    u32::wrapping_add(word, (digit as u32) << (8 * d))
                }),
            });
            assert_eq!(back, words, "{}", kernels.arm());
        }
    }
}

#[test]
fn copied_rows_are_those_of_the_table() {
    for (rows, columns) in [(1, 1), (63, 5), (64, 16), (65, 17), (200, 7)] {
        let table: Vec<u8> = (0..rows * columns).map(|place| (place * 37 % 251) as u8).collect();
        let matrix = TiledBytes::from_columns(&table, rows, 1).unwrap();
        let copy = matrix.copied().unwrap();
        assert_eq!(copy.as_bytes(), matrix.as_bytes());
        for (first, count) in [
            (0, 1),
            (0, rows.min(64)),
            (rows / 64 * 64, rows % 64),
            (rows - 1, 1),
            // Across panels.
            (0, rows),
            (rows / 3, rows / 2),
            (rows / 2, rows.div_ceil(2)),
        ] {
            for wanted in [0, 1, columns / 2, columns] {
                let mut out = vec![0; count * wanted];
                copy.copy_rows(first, count, wanted, &mut out);
                let expected =
                    table.chunks(rows).take(wanted).flat_map(|column| &column[first..][..count]);
                assert!(out.iter().eq(expected), "{count} rows from {first} of {rows}");
            }
        }
    }
}
