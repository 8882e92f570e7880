//! Products of tiles with vectors.
//!
//! AVX2 has a byte multiplication too (`vpmaddubsw`), but it saturates its 16-bit sums and so gives
//! wrong results for large bytes. Widening the bytes and multiplying half-words (`vpmaddwd`) is
//! exact: 255 · 2¹⁵ · 2 is far below 2³¹.

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::byte_matrix::avx2::tile_rows;

use super::{load, store};
use crate::byte_matrix::{GROUP_BYTES, PANEL_ROWS};
use crate::x86_64::prefetch_second_level;

/// The number of groups that fit into half of a first-level cache. A chunk is read twice.
const CACHED_GROUPS: usize = 64;

/// The signed half-words of the words of one vector for the four columns of a group, paired as the
/// widened bytes will be: low halves of columns 0 and 2, of columns 1 and 3, then the high halves.
///
/// A word is low + 2¹⁶ · high modulo 2³² with low in −2¹⁵..2¹⁵: half of 2¹⁶ is added before the
/// high half is taken, which corrects for a low half that reads as negative.
pub(crate) fn prepare_group(words: [u32; 4]) -> [u32; 4] {
    let [a, b, c, d] = words.map(|word| word & 0xffff);
    let [e, f, g, h] = words.map(|word| word.wrapping_add(0x8000) >> 16);
    [a | c << 16, b | d << 16, e | g << 16, f | h << 16]
}

/// See [`crate::portable::byte_matrix::multiply_chunk`].
///
/// Vectors come in pairs, which share the widening of the bytes. Prefetches the cache lines that
/// will be needed next, two of each group while it processes either half of this chunk for the only
/// vector. Of several vectors, each pair processes four quarters; among all these passes, four at
/// even distances prefetch one line of each group.
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn multiply_chunk(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
    ahead: usize,
) {
    assert_eq!(prepared.len(), chunk.len() * sums.len());
    let mut prepared = prepared.chunks(chunk.len().max(1));
    let mut next = || prepared.next().unwrap_or_default();
    if let [only] = sums {
        // A single vector comes with a chunk of any length, and `ahead` is meant for one pass over
        // it. Here it is cut to the size of the cache, and the next piece is prefetched during both
        // passes.
        let ahead = CACHED_GROUPS * GROUP_BYTES;
        let pieces = chunk.chunks(CACHED_GROUPS).zip(next().chunks(CACHED_GROUPS));
        for (chunk, prepared) in pieces {
            multiply_halves::<2>(chunk, prepared, only, ahead);
        }
        return;
    }
    let pairs = sums.len() / 2;
    for (pair, sums) in sums.chunks_mut(2).enumerate() {
        let [one, other] = sums else {
            sums.iter_mut().for_each(|last| multiply_halves::<0>(chunk, next(), last, 0));
            return;
        };
        let prepared = [next(), next()];
        let sums = one.as_chunks_mut().0.iter_mut().zip(other.as_chunks_mut().0);
        for (quarter, (one, other)) in sums.enumerate() {
            let (line, rest) = ((4 * pair + quarter) / pairs, (4 * pair + quarter) % pairs);
            if rest == 0 {
                let ahead = ahead + 64 * line;
                multiply_quarter::<1>(chunk, quarter, prepared, [one, other], ahead);
            } else {
                multiply_quarter::<0>(chunk, quarter, prepared, [one, other], 0);
            }
        }
    }
}

/// Two vectors and 16 rows: 2 × 2 vectors of 8 rows × 2 half-words are 8 sums, as many as 16
/// registers allow besides the operands.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn multiply_quarter<const LINES_AHEAD: usize>(
    chunk: &[[u8; GROUP_BYTES]],
    quarter: usize,
    prepared: [&[[u32; 4]]; 2],
    sums: [&mut [u32; PANEL_ROWS / 4]; 2],
    ahead: usize,
) {
    let mut sum = [[[_mm256_setzero_si256(); 2]; 2]; 2];
    let low_bytes = _mm256_set1_epi16(0x00ff);
    for ((group, one), other) in chunk.iter().zip(prepared[0]).zip(prepared[1]) {
        if LINES_AHEAD > 0 {
            prefetch_second_level(group, ahead);
        }
        let [first, second] = &group.as_chunks::<64>().0[quarter].as_chunks::<32>().0 else {
            unreachable!("64 bytes are two vectors");
        };
        let bytes = [load(first), load(second)];
        let columns_02 =
            [_mm256_and_si256(bytes[0], low_bytes), _mm256_and_si256(bytes[1], low_bytes)];
        let columns_13 = [_mm256_srli_epi16::<8>(bytes[0]), _mm256_srli_epi16::<8>(bytes[1])];
        for (k, words) in [one, other].into_iter().enumerate() {
            for digit in 0..2 {
                let of_02 = _mm256_set1_epi32(words[2 * digit] as i32);
                let of_13 = _mm256_set1_epi32(words[2 * digit + 1] as i32);
                for v in 0..2 {
                    let products = _mm256_add_epi32(
                        _mm256_madd_epi16(columns_02[v], of_02),
                        _mm256_madd_epi16(columns_13[v], of_13),
                    );
                    sum[k][v][digit] = _mm256_add_epi32(sum[k][v][digit], products);
                }
            }
        }
    }
    for (sums, sum) in sums.into_iter().zip(sum) {
        add_digits(sums, &sum);
    }
}

/// One vector and all 64 rows, half of them at a time.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn multiply_halves<const LINES_AHEAD: usize>(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [u32; PANEL_ROWS],
    ahead: usize,
) {
    let (top, bottom) = sums.split_at_mut(PANEL_ROWS / 2);
    multiply_half::<0, LINES_AHEAD>(chunk, prepared, top, ahead);
    multiply_half::<1, LINES_AHEAD>(chunk, prepared, bottom, ahead + 64 * LINES_AHEAD);
}

/// One vector and the upper (0) or lower (1) 32 rows: 4 vectors of 8 rows × 2 half-words are 8
/// sums, as many as 16 registers allow besides the operands.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn multiply_half<const HALF: usize, const LINES_AHEAD: usize>(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [u32],
    ahead: usize,
) {
    let mut sum = [[_mm256_setzero_si256(); 2]; 4];
    let low_bytes = _mm256_set1_epi16(0x00ff);
    for (group, words) in chunk.iter().zip(prepared) {
        for line in 0..LINES_AHEAD {
            prefetch_second_level(group, ahead + line * 64);
        }
        let low_02 = _mm256_set1_epi32(words[0] as i32);
        let low_13 = _mm256_set1_epi32(words[1] as i32);
        let high_02 = _mm256_set1_epi32(words[2] as i32);
        let high_13 = _mm256_set1_epi32(words[3] as i32);
        let bytes = group.as_chunks::<32>().0;
        for v in 0..4 {
            let bytes = load(&bytes[4 * HALF + v]);
            let columns_02 = _mm256_and_si256(bytes, low_bytes);
            let columns_13 = _mm256_srli_epi16::<8>(bytes);
            let low = _mm256_add_epi32(
                _mm256_madd_epi16(columns_02, low_02),
                _mm256_madd_epi16(columns_13, low_13),
            );
            let high = _mm256_add_epi32(
                _mm256_madd_epi16(columns_02, high_02),
                _mm256_madd_epi16(columns_13, high_13),
            );
            sum[v][0] = _mm256_add_epi32(sum[v][0], low);
            sum[v][1] = _mm256_add_epi32(sum[v][1], high);
        }
    }
    add_digits(sums, &sum);
}

/// Adds the sums of low and of high half-words of 8 rows each.
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn add_digits(sums: &mut [u32], digits: &[[__m256i; 2]]) {
    for (sums, [low, high]) in sums.as_chunks_mut::<8>().0.iter_mut().zip(digits) {
        let sum = _mm256_add_epi32(*low, _mm256_slli_epi32::<16>(*high));
        store(sums, _mm256_add_epi32(load(sums), sum));
    }
}

/// At least `multiplications` half-word products by the kernel itself, on a chunk that stays in the
/// first-level cache; returns their number.
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn multiply_accumulate(multiplications: u64) -> u64 {
    let chunk = [[3u8; GROUP_BYTES]; CACHED_GROUPS];
    let prepared = [[5u32; 4]; CACHED_GROUPS];
    let mut sums = [0; PANEL_ROWS];
    let per_round = (CACHED_GROUPS * GROUP_BYTES * 2) as u64;
    let rounds = multiplications.div_ceil(per_round);
    for _ in 0..rounds {
        let (chunk, prepared) = std::hint::black_box((&chunk, &prepared));
        multiply_halves::<0>(chunk, prepared, &mut sums, 0);
    }
    std::hint::black_box(sums);
    rounds * per_round
}
