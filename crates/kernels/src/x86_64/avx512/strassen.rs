//! Products of sums of parts, for [`byte_matrix::strassen`](crate::byte_matrix).

use std::arch::x86_64::*;

pub(crate) use crate::x86_64::strassen::avx512::*;

use super::{load, store};
use crate::byte_matrix::{PANEL_ROWS, WideGroup};

/// See [`crate::portable::strassen::multiply_wide`]; the prepared form is that of AVX2, half-words
/// in pairs. Processes two vectors at a time: 2 × 2 halves × 64 rows are 16 sums in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
pub(crate) fn multiply_wide(
    wide: &[WideGroup],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
) {
    assert_eq!(prepared.len(), wide.len() * sums.len());
    if wide.is_empty() {
        return;
    }
    let (pairs, rest) = sums.as_chunks_mut::<2>();
    let mut prepared = prepared.chunks_exact(wide.len());
    let mut next = || prepared.next().expect("there are as many as vectors");
    for sums in pairs {
        multiply_vectors::<2>(wide, [next(), next()], sums);
    }
    if let [sums] = rest {
        multiply_vectors::<1>(wide, [next()], std::array::from_mut(sums));
    }
}

/// A pair of products of half-words fits 32 bits (see the bound at the end of the driver);
/// `vpdpwssd` adds it modulo 2³².
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes")]
fn multiply_vectors<const VECTORS: usize>(
    wide: &[WideGroup],
    prepared: [&[[u32; 4]]; VECTORS],
    sums: &mut [[u32; PANEL_ROWS]; VECTORS],
) {
    let mut low = [[_mm512_setzero_si512(); 4]; VECTORS];
    let mut high = low;
    let prepared = prepared.map(|prepared| &prepared[..wide.len()]);
    for (g, group) in wide.iter().enumerate() {
        for (half, rows) in group.0.iter().enumerate() {
            let rows: [__m512i; 4] = std::array::from_fn(|v| load(&rows.as_chunks::<32>().0[v]));
            for k in 0..VECTORS {
                let low_digits = _mm512_set1_epi32(prepared[k][g][half] as i32);
                let high_digits = _mm512_set1_epi32(prepared[k][g][2 + half] as i32);
                for v in 0..4 {
                    low[k][v] = add_products(low[k][v], rows[v], low_digits);
                    high[k][v] = add_products(high[k][v], rows[v], high_digits);
                }
            }
        }
    }
    for ((sums, low), high) in sums.iter_mut().zip(low).zip(high) {
        for ((words, low), high) in sums.as_chunks_mut::<16>().0.iter_mut().zip(low).zip(high) {
            let sum = _mm512_add_epi32(low, _mm512_slli_epi32::<16>(high));
            store(words, _mm512_add_epi32(load(words), sum));
        }
    }
}

/// `sums` + `rows` · `digits`, in pairs of half-words: `vpdpwssd`, written in assembly because the
/// compiler tends to turn the intrinsic into two instructions, a multiplication and an addition. It
/// does so for a shorter latency, which sixteen independent sums hide anyway, and loses a third of
/// the speed.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_products(mut sums: __m512i, rows: __m512i, digits: __m512i) -> __m512i {
    // SAFETY: the instruction belongs to the features of this function, reads and writes the named
    // registers and nothing else.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {sums}, {rows}, {digits}",
            sums = inout(zmm_reg) sums,
            rows = in(zmm_reg) rows,
            digits = in(zmm_reg) digits,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
