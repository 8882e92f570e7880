//! Tiles and their products with vectors: 64 table bytes by 64 digit bytes per instruction.

use std::arch::x86_64::*;

use super::{load, load_words, store_words};
use crate::byte_matrix::{GROUP_BYTES, GROUP_COLUMNS, PANEL_ROWS};
use crate::portable::byte_matrix::tile_panel;
use crate::x86_64::{prefetch, prefetch_second_level};

/// How far ahead of the loads each column is prefetched while tiling, in bytes.
const TILE_AHEAD: usize = 512;

/// See [`crate::portable::byte_matrix::tile_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn tile_rows(
    columns: &[&[u8]],
    first_row: usize,
    panels: &mut [u8],
    stride: usize,
    offset: usize,
) {
    let aligned = panels.as_ptr().addr().is_multiple_of(64)
        && stride.is_multiple_of(64)
        && offset.is_multiple_of(64);
    assert!(aligned, "tiles lie on cache lines");
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
            tile_group(columns, row, group);
        }
    }
    // Non-temporal stores are weakly ordered; the next user of the matrix must see them.
    _mm_sfence();
}

/// Interleaves rows `row..row + 64` of four columns. `group` is aligned to 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn tile_group(columns: &[&[u8]; 4], row: usize, group: &mut [u8; GROUP_BYTES]) {
    let mut column = [_mm512_setzero_si512(); 4];
    for c in 0..4 {
        let bytes = columns[c][row..].first_chunk().expect("the caller checked the length");
        prefetch(bytes, TILE_AHEAD);
        column[c] = load(bytes);
    }
    let [a, b, c, d] = column;
    // Unpacking works within lanes of 128 bits; lane i holds rows 16 i .. 16 i + 15. So lane i of
    // `quarter[j]` has the rows 16 i + 4 j .. 16 i + 4 j + 3, with all four columns side by side.
    let (ab_low, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
    let quarter = [
        _mm512_unpacklo_epi16(ab_low, cd_low),
        _mm512_unpackhi_epi16(ab_low, cd_low),
        _mm512_unpacklo_epi16(ab_high, cd_high),
        _mm512_unpackhi_epi16(ab_high, cd_high),
    ];
    // A transposition of 4 x 4 lanes brings the rows into order: vector i gets lane i of each
    // quarter.
    let even_01 = _mm512_shuffle_i64x2::<0b10_00_10_00>(quarter[0], quarter[1]);
    let odd_01 = _mm512_shuffle_i64x2::<0b11_01_11_01>(quarter[0], quarter[1]);
    let even_23 = _mm512_shuffle_i64x2::<0b10_00_10_00>(quarter[2], quarter[3]);
    let odd_23 = _mm512_shuffle_i64x2::<0b11_01_11_01>(quarter[2], quarter[3]);
    let vectors = [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(even_01, even_23),
        _mm512_shuffle_i64x2::<0b10_00_10_00>(odd_01, odd_23),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(even_01, even_23),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(odd_01, odd_23),
    ];
    for (bytes, vector) in group.as_chunks_mut::<64>().0.iter_mut().zip(vectors) {
        // SAFETY: the array has 64 bytes and is aligned to 64 as `tile_rows` checked. The store
        // goes around the caches, because a table is larger than they are; `tile_rows` ends with a
        // fence.
        unsafe { _mm512_stream_si512(bytes.as_mut_ptr().cast(), vector) };
    }
}

/// The balanced digits in base 256 of the words of one vector for the four columns of a group: word
/// `l` of the result holds digit `l` of the four words, column 0 in the lowest byte.
///
/// A word w is d₀ + 2⁸ d₁ + 2¹⁶ d₂ + 2²⁴ d₃ modulo 2³² with all digits in −128..128. Adding 0x80 to
/// every byte carries exactly if a digit would exceed 127. Flipping the top bits subtracts it
/// again.
pub(crate) fn prepare_group(words: [u32; 4]) -> [u32; 4] {
    let [a, b, c, d] = words.map(|word| word.wrapping_add(0x8080_8080) ^ 0x8080_8080);
    // Transposes 4 x 4 bytes: first pairs of bytes between neighbours, then pairs of half-words.
    let (low, high) = (0x00ff_00ff, 0xff00_ff00);
    let (ab_even, ab_odd) = ((a & low) | ((b & low) << 8), ((a & high) >> 8) | (b & high));
    let (cd_even, cd_odd) = ((c & low) | ((d & low) << 8), ((c & high) >> 8) | (d & high));
    [
        (ab_even & 0xffff) | (cd_even << 16),
        (ab_odd & 0xffff) | (cd_odd << 16),
        (ab_even >> 16) | (cd_even & 0xffff_0000),
        (ab_odd >> 16) | (cd_odd & 0xffff_0000),
    ]
}

/// See [`crate::portable::byte_matrix::multiply_chunk`].
///
/// Prefetches the four cache lines of a group that will be needed next while it processes the
/// vectors of this chunk: all by the only vector, two each by the first two, or one each by the
/// first four.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn multiply_chunk(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
    ahead: usize,
) {
    assert_eq!(prepared.len(), chunk.len() * sums.len());
    let vectors = sums.len();
    let prepared = prepared.chunks(chunk.len().max(1));
    for (k, (sums, prepared)) in sums.iter_mut().zip(prepared).enumerate() {
        match (vectors, k) {
            (1, _) => multiply_one::<4>(chunk, prepared, sums, ahead),
            (2..4, 0..2) => multiply_one::<2>(chunk, prepared, sums, ahead + k * 128),
            (4.., 0..4) => multiply_one::<1>(chunk, prepared, sums, ahead + k * 64),
            _ => multiply_one::<0>(chunk, prepared, sums, 0),
        }
    }
}

/// One vector: 4 vectors of 16 rows × 4 digits are 16 sums in registers, enough independent chains
/// to keep the multipliers busy.
///
/// A sum of four products of an unsigned and a signed byte fits 32 bits; `vpdpbusd` adds it modulo
/// 2³².
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn multiply_one<const LINES_AHEAD: usize>(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [u32; PANEL_ROWS],
    ahead: usize,
) {
    let mut sum = [[_mm512_setzero_si512(); 4]; 4];
    for (group, digits) in chunk.iter().zip(prepared) {
        for line in 0..LINES_AHEAD {
            if LINES_AHEAD == 4 {
                prefetch(group, ahead + line * 64);
            } else {
                prefetch_second_level(group, ahead + line * 64);
            }
        }
        let digits = [
            _mm512_set1_epi32(digits[0] as i32),
            _mm512_set1_epi32(digits[1] as i32),
            _mm512_set1_epi32(digits[2] as i32),
            _mm512_set1_epi32(digits[3] as i32),
        ];
        let bytes = group.as_chunks::<64>().0;
        for v in 0..4 {
            let bytes = load(&bytes[v]);
            for d in 0..4 {
                sum[v][d] = _mm512_dpbusd_epi32(sum[v][d], bytes, digits[d]);
            }
        }
    }
    for (sums, [d0, d1, d2, d3]) in sums.as_chunks_mut::<16>().0.iter_mut().zip(sum) {
        let low = _mm512_add_epi32(d0, _mm512_slli_epi32::<8>(d1));
        let high = _mm512_add_epi32(d2, _mm512_slli_epi32::<8>(d3));
        let sum = _mm512_add_epi32(low, _mm512_slli_epi32::<16>(high));
        store_words(sums, _mm512_add_epi32(load_words(sums), sum));
    }
}

/// At least `multiplications` byte products added up without touching anything beyond the
/// first-level cache; returns their number.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn multiply_accumulate(multiplications: u64) -> u64 {
    let group = std::hint::black_box([3u8; GROUP_BYTES]);
    let digits = std::hint::black_box([[5u32; 16]; 4]);
    let per_round = 4 * GROUP_BYTES as u64;
    let rounds = multiplications.div_ceil(per_round);
    let mut sum = [[_mm512_setzero_si512(); 4]; 4];
    for _ in 0..rounds {
        for (sum, bytes) in sum.iter_mut().zip(group.as_chunks::<64>().0) {
            for (sum, digits) in sum.iter_mut().zip(&digits) {
                *sum = _mm512_dpbusd_epi32(*sum, load(bytes), load_words(digits));
            }
        }
    }
    std::hint::black_box(sum);
    rounds * per_round
}
