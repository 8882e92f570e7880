//! Cutoffs: four hints at a time, 32 partitions in a step.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::{SecretCipher, consecutive_partitions, each_block};
use crate::subset_hints::{
    Bracket, SELECT_TAG, SELECTS_PER_BLOCK, Window, look_in_windows, narrow,
};
use crate::x86_64::avx512::{load_words, store_words};

/// Select values in a vector.
const LANES: usize = 16;
/// Vectors of blocks that are turned into vectors of select values together.
const SQUARE: usize = 4;
/// The number of squares that are computed at a time.
const SQUARES: usize = 2;
/// The number of vectors of blocks that are computed at a time.
const VECTORS: usize = SQUARE * SQUARES;
/// Partitions of one step.
const STEP: u32 = (SQUARES * LANES) as u32;

/// See [`Kernels::subset_cutoffs`](crate::Kernels::subset_cutoffs).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn cutoffs(key: &[u8; 16], first_id: u32, partitions: u32, rank: u32, out: &mut [u32]) {
    let cipher = SecretCipher::new(key);
    let mut kept = [(); SELECTS_PER_BLOCK].map(|()| Zeroizing::new(Vec::new()));
    for (quad, out) in out.as_chunks_mut::<SELECTS_PER_BLOCK>().0.iter_mut().enumerate() {
        let quotient = first_id / SELECTS_PER_BLOCK as u32 + quad as u32;
        *out = look_in_windows(partitions, rank, |window| {
            look_in_window(&cipher, quotient, partitions, rank, window, &mut kept)
        });
    }
}

/// The cutoffs of four hints that share blocks, `None` for those that lie outside the window, and
/// for hints with too many values inside it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn look_in_window(
    cipher: &SecretCipher,
    quotient: u32,
    partitions: u32,
    rank: u32,
    window: &Window,
    kept: &mut [Zeroizing<Vec<u32>>; SELECTS_PER_BLOCK],
) -> [Option<u32>; SELECTS_PER_BLOCK] {
    for kept in kept.iter_mut() {
        // A whole vector is stored after the last kept value.
        if kept.len() < window.capacity + LANES {
            **kept = vec![0; window.capacity + LANES];
        }
    }
    let mut sieve = Sieve {
        low: _mm512_set1_epi32(window.low as i32),
        width: _mm512_set1_epi32((window.high - window.low) as i32),
        capacity: window.capacity,
        kept: kept.each_mut().map(|kept| &mut kept[..window.capacity + LANES]),
        len: [0; SELECTS_PER_BLOCK],
        below: [0; SELECTS_PER_BLOCK],
    };
    let every_fourth = _mm512_mullo_epi32(consecutive_partitions(), _mm512_set1_epi32(4));
    let mut input = _mm512_add_epi32(each_block(quotient, 0, SELECT_TAG), every_fourth);
    for _ in 0..partitions / STEP {
        let squares = select_values(cipher, &mut input);
        for square in squares {
            sieve.take(square, u16::MAX);
        }
    }
    let rest = partitions % STEP;
    if rest > 0 {
        let squares = select_values(cipher, &mut input);
        for (i, square) in squares.into_iter().enumerate() {
            let present = (rest as usize).saturating_sub(LANES * i).min(LANES);
            sieve.take(square, ((1u32 << present) - 1) as u16);
        }
    }
    let (len, below) = (sieve.len, sieve.below);
    std::array::from_fn(|i| {
        let rank = (rank as usize).checked_sub(below[i])?;
        if rank >= len[i] || len[i] >= window.capacity {
            return None;
        }
        let bracket = Bracket { low: window.low, high: window.high, below: 0, up_to: len[i] };
        Some(order_statistic(&mut kept[i], rank, bracket))
    })
}

/// The select values of four hints in the next 32 partitions: for each 16 partitions four vectors,
/// one for each hint, with the partitions in order.
///
/// Lane `i` of vector `m` of blocks is for partition `4 i + m`, so that after the transposition,
/// lane `4 i + m` is for that partition.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn select_values(
    cipher: &SecretCipher,
    input: &mut __m512i,
) -> [[__m512i; SELECTS_PER_BLOCK]; SQUARES] {
    let next = each_block(0, 1, 0);
    let next_square = each_block(0, (LANES - SQUARE) as u32, 0);
    let mut blocks = [_mm512_setzero_si512(); VECTORS];
    for square in blocks.as_chunks_mut::<SQUARE>().0 {
        for block in square {
            *block = *input;
            *input = _mm512_add_epi32(*input, next);
        }
        *input = _mm512_add_epi32(*input, next_square);
    }
    cipher.encrypt(&mut blocks);
    let mut squares = [[_mm512_setzero_si512(); SELECTS_PER_BLOCK]; SQUARES];
    for (values, blocks) in squares.iter_mut().zip(blocks.as_chunks::<SQUARE>().0) {
        *values = transpose(blocks);
    }
    squares
}

/// Transposes the four squares of 4 × 4 words that stand side by side in four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn transpose([a, b, c, d]: &[__m512i; SQUARE]) -> [__m512i; SELECTS_PER_BLOCK] {
    let ab_low = _mm512_unpacklo_epi32(*a, *b);
    let ab_high = _mm512_unpackhi_epi32(*a, *b);
    let cd_low = _mm512_unpacklo_epi32(*c, *d);
    let cd_high = _mm512_unpackhi_epi32(*c, *d);
    [
        _mm512_unpacklo_epi64(ab_low, cd_low),
        _mm512_unpackhi_epi64(ab_low, cd_low),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Counts the values below a window and keeps those inside it, for four hints.
struct Sieve<'a> {
    low: __m512i,
    width: __m512i,
    capacity: usize,
    // Each has `capacity + LANES` words, and the first `len` hold values.
    kept: [&'a mut [u32]; SELECTS_PER_BLOCK],
    len: [usize; SELECTS_PER_BLOCK],
    below: [usize; SELECTS_PER_BLOCK],
}

impl Sieve<'_> {
    /// Takes the values in the lanes of `present`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn take(&mut self, values: [__m512i; SELECTS_PER_BLOCK], present: __mmask16) {
        for (i, values) in values.into_iter().enumerate() {
            let below = _mm512_mask_cmplt_epu32_mask(present, values, self.low);
            let distance = _mm512_sub_epi32(values, self.low);
            let inside = _mm512_mask_cmple_epu32_mask(present, distance, self.width);
            self.below[i] += below.count_ones() as usize;
            // Compressing straight to memory is microcoded on Zen 4.
            let inside_first = _mm512_maskz_compress_epi32(inside, values);
            debug_assert!(self.len[i] + LANES <= self.kept[i].len());
            // SAFETY: `len` is at most `capacity`, and the slice has room for one vector after it.
            unsafe {
                let end = self.kept[i].as_mut_ptr().add(self.len[i]);
                _mm512_storeu_si512(end.cast(), inside_first);
            }
            self.len[i] = (self.len[i] + inside.count_ones() as usize).min(self.capacity);
        }
    }
}

/// The value `c` of rank `rank` among the first `bracket.up_to` of `values`, which all lie in the
/// bracket, such that exactly `rank` of them are below it; 0 if there is none. After the values
/// there is room for a vector, which is overwritten.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn order_statistic(values: &mut [u32], rank: usize, bracket: Bracket) -> u32 {
    // These add nothing to any count of smaller values.
    values[bracket.up_to..bracket.up_to + LANES].fill(u32::MAX);
    let (values, _) = values[..bracket.up_to.next_multiple_of(LANES)].as_chunks::<LANES>();
    let bracket = narrow(bracket, rank, LANES, |pivot| count_below(values, pivot));
    if bracket.low == bracket.high {
        return if bracket.below == rank { bracket.low } else { 0 };
    }
    let count = bracket.up_to - bracket.below;
    let few = gather_between(values, bracket.low, bracket.high, count);
    let vector = load_words(&few);
    let mut smaller = _mm512_setzero_si512();
    for value in few {
        let above = _mm512_cmpgt_epu32_mask(vector, _mm512_set1_epi32(value as i32));
        smaller = _mm512_mask_add_epi32(smaller, above, smaller, _mm512_set1_epi32(1));
    }
    // If values are equal, none of them has as many smaller ones as the second of them would need.
    let wanted = _mm512_set1_epi32((rank - bracket.below) as i32);
    let hit = _mm512_cmpeq_epi32_mask(smaller, wanted) & ((1u32 << count) - 1) as u16;
    few.get(hit.trailing_zeros() as usize).copied().unwrap_or(0)
}

/// How many values are below `pivot`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn count_below(values: &[[u32; LANES]], pivot: u32) -> usize {
    let pivot = _mm512_set1_epi32(pivot as i32);
    let mut count = 0;
    for values in values {
        count += _mm512_cmplt_epu32_mask(load_words(values), pivot).count_ones();
    }
    count as usize
}

/// The `count <= 16` values in `low..=high`, and after them other words, which are not less than
/// any value.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn gather_between(values: &[[u32; LANES]], low: u32, high: u32, count: usize) -> [u32; LANES] {
    let low_vector = _mm512_set1_epi32(low as i32);
    let width = _mm512_set1_epi32((high - low) as i32);
    let mut few = [u32::MAX; 2 * LANES];
    let mut len = 0;
    for values in values {
        let values = load_words(values);
        let distance = _mm512_sub_epi32(values, low_vector);
        let inside = _mm512_cmple_epu32_mask(distance, width);
        let place = few[len..].first_chunk_mut().expect("at most 16 before");
        store_words(place, _mm512_maskz_compress_epi32(inside, values));
        // The padding may count as inside, but comes last.
        len = (len + inside.count_ones() as usize).min(count);
    }
    few[count..].fill(u32::MAX);
    *few.first_chunk().expect("longer")
}
