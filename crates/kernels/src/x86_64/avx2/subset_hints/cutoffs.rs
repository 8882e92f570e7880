//! Cutoffs: four hints at a time, eight partitions in a step.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::{SecretCipher, input};
use crate::subset_hints::{
    Bracket, SELECT_TAG, SELECTS_PER_BLOCK, Window, look_in_windows, narrow,
};
use crate::x86_64::avx2::{load_words, store_words};

/// Select values in a vector, and partitions of one step.
const LANES: usize = 8;

/// See [`Kernels::subset_cutoffs`](crate::Kernels::subset_cutoffs).
#[target_feature(enable = "avx2,aes,popcnt")]
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
#[target_feature(enable = "avx2,aes,popcnt")]
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
        low: _mm256_set1_epi32(window.low as i32),
        width: _mm256_set1_epi32((window.high - window.low) as i32),
        capacity: window.capacity,
        kept: kept.each_mut().map(|kept| &mut kept[..window.capacity + LANES]),
        len: [0; SELECTS_PER_BLOCK],
        below: [0; SELECTS_PER_BLOCK],
    };
    let steps = partitions / LANES as u32;
    for step in 0..steps {
        let first = step * LANES as u32;
        sieve.take(select_values(cipher, quotient, first), u8::MAX);
    }
    let rest = partitions % LANES as u32;
    if rest > 0 {
        let present = (1 << rest) - 1;
        sieve.take(select_values(cipher, quotient, steps * LANES as u32), present);
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

/// The select values of four hints in eight partitions: one vector for each hint.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn select_values(
    cipher: &SecretCipher,
    quotient: u32,
    first_partition: u32,
) -> [__m256i; SELECTS_PER_BLOCK] {
    let mut blocks = [_mm_setzero_si128(); LANES];
    for (k, block) in blocks.iter_mut().enumerate() {
        *block = input(quotient, first_partition + k as u32, SELECT_TAG);
    }
    cipher.encrypt(&mut blocks);
    // The first four partitions in the lower halves, the others in the upper halves: two squares of
    // 4 × 4 words, which are transposed side by side.
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| _mm256_set_m128i(blocks[i + 4], blocks[i]));
    let ab_low = _mm256_unpacklo_epi32(a, b);
    let ab_high = _mm256_unpackhi_epi32(a, b);
    let cd_low = _mm256_unpacklo_epi32(c, d);
    let cd_high = _mm256_unpackhi_epi32(c, d);
    [
        _mm256_unpacklo_epi64(ab_low, cd_low),
        _mm256_unpackhi_epi64(ab_low, cd_low),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Counts the values below a window and keeps those inside it, for four hints.
struct Sieve<'a> {
    low: __m256i,
    width: __m256i,
    capacity: usize,
    // Each has `capacity + LANES` words, and the first `len` hold values.
    kept: [&'a mut [u32]; SELECTS_PER_BLOCK],
    len: [usize; SELECTS_PER_BLOCK],
    below: [usize; SELECTS_PER_BLOCK],
}

impl Sieve<'_> {
    /// Takes the values in the lanes of `present`.
    #[inline]
    #[target_feature(enable = "avx2,aes,popcnt")]
    fn take(&mut self, values: [__m256i; SELECTS_PER_BLOCK], present: u8) {
        for (i, values) in values.into_iter().enumerate() {
            let below = !up_to(self.low, values) & present;
            let distance = _mm256_sub_epi32(values, self.low);
            let inside = up_to(distance, self.width) & present;
            self.below[i] += below.count_ones() as usize;
            let place = self.kept[i][self.len[i]..].first_chunk_mut();
            let place = place.expect("behind `capacity` there is room for a vector");
            store_words(place, compress(values, inside));
            self.len[i] = (self.len[i] + inside.count_ones() as usize).min(self.capacity);
        }
    }
}

/// The lanes where `a <= b`, unsigned.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn up_to(a: __m256i, b: __m256i) -> u8 {
    lanes(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), b))
}

/// The lanes whose highest bit is set.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn lanes(mask: __m256i) -> u8 {
    _mm256_movemask_ps(_mm256_castsi256_ps(mask)) as u8
}

/// The values in the lanes of `wanted` first, and arbitrary others after them.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn compress(values: __m256i, wanted: u8) -> __m256i {
    let order = &COMPRESSED[usize::from(wanted)];
    // SAFETY: the array has 8 bytes, and the load needs no alignment.
    let order = _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(order.as_ptr().cast()) });
    _mm256_permutevar8x32_epi32(values, order)
}

/// For each set of lanes, these in order, and then lane 0.
static COMPRESSED: [[u8; LANES]; 256] = {
    let mut orders = [[0; LANES]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut len) = (0, 0);
        while lane < LANES {
            if set >> lane & 1 == 1 {
                orders[set][len] = lane as u8;
                len += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    orders
};

/// The value `c` of rank `rank` among the first `bracket.up_to` of `values`, which all lie in the
/// bracket, such that exactly `rank` of them are below it; 0 if there is none. After the values
/// there is room for a vector, which is overwritten.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
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
    let mut smaller = _mm256_setzero_si256();
    for value in few {
        let above = above(vector, value);
        smaller = _mm256_sub_epi32(smaller, above);
    }
    // If values are equal, none of them has as many smaller ones as the second of them would need.
    let wanted = _mm256_set1_epi32((rank - bracket.below) as i32);
    let hit = u32::from(lanes(_mm256_cmpeq_epi32(smaller, wanted))) & ((1 << count) - 1);
    few.get(hit.trailing_zeros() as usize).copied().unwrap_or(0)
}

/// All bits in the lanes where the value is above `limit`, unsigned: AVX2 has only a signed
/// comparison, so the highest bits are flipped.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn above(values: __m256i, limit: u32) -> __m256i {
    let flip = _mm256_set1_epi32(i32::MIN);
    let limit = _mm256_set1_epi32((limit ^ 1 << 31) as i32);
    _mm256_cmpgt_epi32(_mm256_xor_si256(values, flip), limit)
}

/// How many values are below `pivot`, which is not 0.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn count_below(values: &[[u32; LANES]], pivot: u32) -> usize {
    let mut not_below = _mm256_setzero_si256();
    for values in values {
        not_below = _mm256_sub_epi32(not_below, above(load_words(values), pivot - 1));
    }
    let mut counts = [0; LANES];
    store_words(&mut counts, not_below);
    LANES * values.len() - counts.into_iter().sum::<u32>() as usize
}

/// The `count <= 8` values in `low..=high`, and after them other words, which are not less than any
/// value.
#[inline]
#[target_feature(enable = "avx2,aes,popcnt")]
fn gather_between(values: &[[u32; LANES]], low: u32, high: u32, count: usize) -> [u32; LANES] {
    let low_vector = _mm256_set1_epi32(low as i32);
    let width = _mm256_set1_epi32((high - low) as i32);
    let mut few = [u32::MAX; 2 * LANES];
    let mut len = 0;
    for values in values {
        let values = load_words(values);
        let inside = up_to(_mm256_sub_epi32(values, low_vector), width);
        let place = few[len..].first_chunk_mut().expect("at most 8 before");
        store_words(place, compress(values, inside));
        // The padding may count as inside, but comes last.
        len = (len + inside.count_ones() as usize).min(count);
    }
    few[count..].fill(u32::MAX);
    *few.first_chunk().expect("longer")
}
