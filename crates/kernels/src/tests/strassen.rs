//! The product in parts against the plain product, which `byte_matrix` checks against the oracle.

use super::{Numbers, all_kernels};
use crate::{Kernels, TiledBytes};

/// Multiplies `table` both ways with the same arm and compares.
fn check_parts(
    kernels: Kernels,
    table: &[u8],
    rows: usize,
    a: &[u32],
    width: usize,
    threads: usize,
) {
    let matrix = TiledBytes::from_columns(table, rows, 1).expect("fits");
    let fill = |first: usize, n: usize, words: &mut [u32]| {
        words.copy_from_slice(&a[first * width..(first + n) * width]);
    };
    let mut plain = vec![0; rows * width];
    kernels.multiply_matrix(&matrix, width, fill, &mut plain, 1, |_| ()).expect("little memory");
    let mut parts = vec![0xdead_beef; rows * width];
    kernels
        .multiply_matrix_in_parts(&matrix, width, &fill, &mut parts, threads, &|_| ())
        .expect("little memory");
    let (arm, columns) = (kernels.arm(), matrix.columns());
    assert!(plain == parts, "{arm}: {rows} x {columns} x {width}");
}

/// Strips of no, one and several panels, the last one short; parts of no, one and several groups
/// and chunks; odd and even part widths.
#[test]
fn products_in_parts_are_exact_at_the_edges() {
    for kernels in all_kernels() {
        for rows in [1, 63, 64, 65, 448, 512, 513, 700] {
            for columns in [1, 4, 5, 33, 130, 1029, 1100] {
                let width = 8 * (1 + (rows + columns) % 4);
                let mut numbers = Numbers((rows * columns) as u64);
                let (table, a) = (numbers.bytes(rows * columns), numbers.words(columns * width));
                check_parts(kernels, &table, rows, &a, width, 1 + rows % 3);
            }
        }
    }
}

/// Blocks of the public matrix have 32 768 rows.
#[test]
fn products_in_parts_are_exact_across_blocks() {
    for kernels in all_kernels() {
        let (rows, columns, width) = (70, 32_768 + 5, 8);
        let mut numbers = Numbers(5);
        let (table, a) = (numbers.bytes(rows * columns), numbers.words(columns * width));
        check_parts(kernels, &table, rows, &a, width, 2);
    }
}

/// Sums of eight bytes of 255, and differences, against the largest half-words.
#[test]
fn extreme_sums_neither_saturate_nor_overflow() {
    for kernels in all_kernels() {
        for word in [0x7fff_7fff, 0x8000_8000, 0x7fff_8000, 0xffff_ffff] {
            let (rows, columns, width) = (600, 1100, 16);
            let mut table = vec![255; rows * columns];
            check_parts(kernels, &table, rows, &vec![word; columns * width], width, 1);
            table.iter_mut().step_by(3).for_each(|byte| *byte = 0);
            check_parts(kernels, &table, rows, &vec![word; columns * width], width, 1);
        }
    }
}

/// The public function chooses parts by itself if the size makes them pay.
#[test]
fn a_large_product_goes_in_parts_and_is_exact() {
    let (rows, columns, width) = (4096, 4096, 256);
    let mut numbers = Numbers(9);
    let (table, a) = (numbers.bytes(rows * columns), numbers.words(columns * width));
    let matrix = TiledBytes::from_columns(&table, rows, 2).expect("fits");
    assert!(crate::byte_matrix::goes_in_parts(&matrix, width));
    let kernels = Kernels::detect();
    let mut out = vec![0; rows * width];
    let fill = |first: usize, n: usize, words: &mut [u32]| {
        words.copy_from_slice(&a[first * width..(first + n) * width]);
    };
    kernels.multiply_matrix(&matrix, width, fill, &mut out, 2, |_| ()).expect("little memory");
    for k in [0, 1, 100, 255] {
        let query: Vec<u32> = a.iter().copied().skip(k).step_by(width).collect();
        let mut answer = vec![0; rows];
        kernels.multiply(&matrix, &[&query], &mut [&mut answer], 1);
        assert!(out.iter().skip(k).step_by(width).eq(&answer), "vector {k}");
    }
}
