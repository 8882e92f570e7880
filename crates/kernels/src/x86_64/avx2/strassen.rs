//! Products of sums of parts, for [`byte_matrix::strassen`](crate::byte_matrix).

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::strassen::avx2::*;

use super::{load, store};
use crate::byte_matrix::{PANEL_ROWS, WideGroup};

/// See [`crate::portable::strassen::multiply_wide`]; the prepared form is half-words in pairs.
/// Processes a quarter of a panel at a time: 2 halves × 2 vectors of 8 rows for each of two vectors
/// are 8 sums in registers.
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn multiply_wide(
    wide: &[WideGroup],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
) {
    assert_eq!(prepared.len(), wide.len() * sums.len());
    if wide.is_empty() {
        return;
    }
    for (sums, prepared) in sums.iter_mut().zip(prepared.chunks_exact(wide.len())) {
        for (quarter, sums) in sums.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            multiply_quarter(wide, prepared, quarter, sums);
        }
    }
}

/// A pair of products of half-words fits 32 bits (see the bound at the end of the driver); the
/// additions are modulo 2³².
#[inline]
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
fn multiply_quarter(
    wide: &[WideGroup],
    prepared: &[[u32; 4]],
    quarter: usize,
    sums: &mut [u32; 16],
) {
    // The two halves of a group have separate sums, which gives more independent chains.
    let mut low = [[_mm256_setzero_si256(); 2]; 2];
    let mut high = low;
    for (group, words) in wide.iter().zip(prepared) {
        for (half, rows) in group.0.iter().enumerate() {
            let low_digits = _mm256_set1_epi32(words[half] as i32);
            let high_digits = _mm256_set1_epi32(words[2 + half] as i32);
            for v in 0..2 {
                let rows = load(&rows.as_chunks::<16>().0[2 * quarter + v]);
                low[half][v] = _mm256_add_epi32(low[half][v], _mm256_madd_epi16(rows, low_digits));
                high[half][v] =
                    _mm256_add_epi32(high[half][v], _mm256_madd_epi16(rows, high_digits));
            }
        }
    }
    for (v, words) in sums.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let low = _mm256_add_epi32(low[0][v], low[1][v]);
        let high = _mm256_add_epi32(high[0][v], high[1][v]);
        let sum = _mm256_add_epi32(low, _mm256_slli_epi32::<16>(high));
        store(words, _mm256_add_epi32(load(words), sum));
    }
}
