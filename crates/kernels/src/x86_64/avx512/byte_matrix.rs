//! Products of tiles with vectors: 64 table bytes by 64 digit bytes per instruction.

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::byte_matrix::avx512::tile_rows;

use super::{load, store};
use crate::byte_matrix::{GROUP_BYTES, PANEL_ROWS};
use crate::x86_64::{prefetch, prefetch_second_level};

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
        store(sums, _mm512_add_epi32(load(sums), sum));
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
                *sum = _mm512_dpbusd_epi32(*sum, load(bytes), load(digits));
            }
        }
    }
    std::hint::black_box(sum);
    rounds * per_round
}
