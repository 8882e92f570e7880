//! Carry-less products by PCLMULQDQ, element by element: the sums of one element of all records
//! stay in registers.

use std::arch::x86_64::*;

use crate::authenticated_sum::{ELEMENT_BYTES, LANES, Lanes, elements};

/// See [`crate::portable::authenticated_sum::accumulate`].
#[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
pub(crate) fn accumulate(
    nodes: &[u128],
    leaves: &[u128],
    records: &[u8],
    record_len: usize,
    sums: &mut [Lanes],
) {
    for place in 0..elements(record_len) {
        let (lanes, lane) = (&mut sums[place / LANES], place % LANES);
        let mut sums = OneLaneSums::load(lanes, lane);
        let records = records.chunks_exact(record_len);
        for ((record, node), leaf) in records.zip(nodes).zip(leaves) {
            sums.add(load(node), load(leaf), load(&element(record, place)));
        }
        sums.store(lanes, lane);
    }
}

/// The sums of one lane.
struct OneLaneSums {
    value: __m128i,
    low: __m128i,
    middle: __m128i,
    high: __m128i,
}

impl OneLaneSums {
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn load(from: &Lanes, lane: usize) -> OneLaneSums {
        OneLaneSums {
            value: load(&from.values[lane]),
            low: load(&from.lows[lane]),
            middle: load(&from.middles[lane]),
            high: load(&from.highs[lane]),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn store(&self, to: &mut Lanes, lane: usize) {
        store(&mut to.values[lane], self.value);
        store(&mut to.lows[lane], self.low);
        store(&mut to.middles[lane], self.middle);
        store(&mut to.highs[lane], self.high);
    }

    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    fn add(&mut self, node: __m128i, leaf: __m128i, element: __m128i) {
        // Spreads the control bit to all bits of a mask.
        let selected = _mm_slli_epi32::<31>(_mm_shuffle_epi32::<0>(node));
        let selected = _mm_srai_epi32::<31>(selected);
        self.value = _mm_xor_si128(self.value, _mm_and_si128(selected, element));
        self.low = _mm_xor_si128(self.low, _mm_clmulepi64_si128::<0x00>(leaf, element));
        self.middle = _mm_xor_si128(self.middle, _mm_clmulepi64_si128::<0x01>(leaf, element));
        self.middle = _mm_xor_si128(self.middle, _mm_clmulepi64_si128::<0x10>(leaf, element));
        self.high = _mm_xor_si128(self.high, _mm_clmulepi64_si128::<0x11>(leaf, element));
    }
}

/// The element at `place` of a record, padded with zeros if it is the last.
#[inline(always)]
fn element(record: &[u8], place: usize) -> u128 {
    let bytes = &record[place * ELEMENT_BYTES..];
    if let Some(whole) = bytes.first_chunk::<ELEMENT_BYTES>() {
        return u128::from_le_bytes(*whole);
    }
    if let Some(last) = record.last_chunk::<ELEMENT_BYTES>() {
        return u128::from_le_bytes(*last) >> (8 * (ELEMENT_BYTES - bytes.len()));
    }
    let mut padded = [0; ELEMENT_BYTES];
    padded[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(padded)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(number: &u128) -> __m128i {
    // SAFETY: the number has 16 bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(number).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(number: &mut u128, vector: __m128i) {
    // SAFETY: the number has 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(std::ptr::from_mut(number).cast(), vector) }
}
