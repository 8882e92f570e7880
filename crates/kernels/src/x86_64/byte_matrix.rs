//! Tiles of a byte matrix.

use std::arch::x86_64::*;

use super::prefetch;
use super::vectors::{Avx2, Avx512, Vectors, entries};
use crate::byte_matrix::{GROUP_BYTES, GROUP_COLUMNS, PANEL_ROWS};
use crate::portable::byte_matrix::tile_panel;

/// How far ahead of the loads each column is prefetched while tiling, in bytes.
const TILE_AHEAD: usize = 512;

entries! {
    fn tile_rows(
        columns: &[&[u8]],
        first_row: usize,
        panels: &mut [u8],
        stride: usize,
        offset: usize,
    );
}

/// What tiling needs besides the operations that all kernels share.
pub(crate) trait Tiles: Vectors {
    /// The first blocks of 16 bytes of all four vectors, then the second ones, and so on.
    fn in_order(self, quarters: [Self::Vector; 4]) -> [Self::Vector; 4];

    /// Stores a vector around the caches, because a table is larger than they are. Such stores are
    /// weakly ordered, until a fence.
    ///
    /// # Panics
    ///
    /// If the bytes are not a vector, or not aligned like one.
    fn stream(self, vector: Self::Vector, to: &mut [u8]);
}

/// See [`crate::portable::byte_matrix::tile_rows`].
#[inline(always)]
fn tile_rows<A: Tiles>(
    arm: A,
    columns: &[&[u8]],
    first_row: usize,
    panels: &mut [u8],
    stride: usize,
    offset: usize,
) {
    let rows = columns.first().map_or(0, |column| column.len());
    for (p, panel) in panels.chunks_exact_mut(stride).enumerate() {
        let row = first_row + p * PANEL_ROWS;
        let tiles = &mut panel[offset..];
        if rows < row + PANEL_ROWS {
            tile_panel(columns, row, tiles);
            continue;
        }
        let groups = tiles.as_chunks_mut::<GROUP_BYTES>().0;
        for (group, columns) in groups.iter_mut().zip(columns.as_chunks::<GROUP_COLUMNS>().0) {
            for (i, tiles) in group.chunks_exact_mut(4 * A::BYTES).enumerate() {
                tile(arm, columns, row + i * A::BYTES, tiles);
            }
        }
    }
    // SAFETY: all processors for x86-64 have it. The next user of the matrix must see the tiles.
    unsafe { _mm_sfence() };
}

/// Interleaves as many rows of four columns as a vector has bytes, from `row` on.
#[inline(always)]
fn tile<A: Tiles>(arm: A, columns: &[&[u8]; GROUP_COLUMNS], row: usize, tiles: &mut [u8]) {
    let mut column = [arm.zero(); GROUP_COLUMNS];
    for c in 0..GROUP_COLUMNS {
        let bytes = &columns[c][row..];
        prefetch(bytes.as_ptr(), TILE_AHEAD);
        column[c] = arm.load(bytes);
    }
    let [a, b, c, d] = column;
    // Zipping works within blocks of 16 bytes; block i holds rows 16 i .. 16 i + 15. So block i of
    // quarter j has the rows 16 i + 4 j .. 16 i + 4 j + 3, with all four columns side by side.
    let (ab_low, ab_high) = (arm.zip_low_u8(a, b), arm.zip_high_u8(a, b));
    let (cd_low, cd_high) = (arm.zip_low_u8(c, d), arm.zip_high_u8(c, d));
    let quarters = [
        arm.zip_low_u16(ab_low, cd_low),
        arm.zip_high_u16(ab_low, cd_low),
        arm.zip_low_u16(ab_high, cd_high),
        arm.zip_high_u16(ab_high, cd_high),
    ];
    for (bytes, vector) in tiles.chunks_exact_mut(A::BYTES).zip(arm.in_order(quarters)) {
        arm.stream(vector, bytes);
    }
}

impl Tiles for Avx2 {
    #[inline(always)]
    fn in_order(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe {
            [
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x20>(c, d),
                _mm256_permute2x128_si256::<0x31>(a, b),
                _mm256_permute2x128_si256::<0x31>(c, d),
            ]
        }
    }

    #[inline(always)]
    fn stream(self, vector: __m256i, to: &mut [u8]) {
        assert!(to.as_ptr().cast::<__m256i>().is_aligned() && to.len() == Self::BYTES);
        // SAFETY: as above; the slice is a vector's bytes, and aligned.
        unsafe { _mm256_stream_si256(to.as_mut_ptr().cast(), vector) }
    }
}

impl Tiles for Avx512 {
    #[inline(always)]
    fn in_order(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        unsafe {
            let even_ab = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
            let odd_ab = _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
            let even_cd = _mm512_shuffle_i64x2::<0b10_00_10_00>(c, d);
            let odd_cd = _mm512_shuffle_i64x2::<0b11_01_11_01>(c, d);
            [
                _mm512_shuffle_i64x2::<0b10_00_10_00>(even_ab, even_cd),
                _mm512_shuffle_i64x2::<0b10_00_10_00>(odd_ab, odd_cd),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(even_ab, even_cd),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(odd_ab, odd_cd),
            ]
        }
    }

    #[inline(always)]
    fn stream(self, vector: __m512i, to: &mut [u8]) {
        assert!(to.as_ptr().cast::<__m512i>().is_aligned() && to.len() == Self::BYTES);
        // SAFETY: as above; the slice is a vector's bytes, and aligned.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), vector) }
    }
}
