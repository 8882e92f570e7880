//! Carry-less products by VPCLMULQDQ, four at a time: of four neighbouring elements of a record, or
//! of several short records side by side.
//!
//! The records that come next in memory will be processed next, after a phase that computes only
//! AES. They are prefetched meanwhile, from front to back, because this order is fastest.

use std::arch::x86_64::*;

use super::{load, store};
use crate::authenticated_sum::{ELEMENT_BYTES, LANES, Lanes, elements};
use crate::x86_64::prefetch_second_level;

/// Bytes of a vector.
const VECTOR: usize = LANES * ELEMENT_BYTES;

/// See [`crate::portable::authenticated_sum::accumulate`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
pub(crate) fn accumulate(
    nodes: &[u128],
    leaves: &[u128],
    records: &[u8],
    record_len: usize,
    sums: &mut [Lanes],
) {
    match elements(record_len) {
        1 => side_by_side::<4>(nodes, leaves, records, record_len, &mut sums[0]),
        2 => side_by_side::<2>(nodes, leaves, records, record_len, &mut sums[0]),
        _ => {
            for (column, lanes) in sums.iter_mut().enumerate() {
                let start = column * VECTOR;
                let columns = start..record_len.min(start + VECTOR);
                let mut sums = FourLaneSums::load(lanes);
                let ahead = records.len() + column * nodes.len() * VECTOR;
                let from = records.as_ptr();
                let records = records.chunks_exact(record_len);
                for (i, ((record, node), leaf)) in records.zip(nodes).zip(leaves).enumerate() {
                    prefetch_second_level(from, ahead + i * VECTOR);
                    let elements = load_up_to(&record[columns.clone()]);
                    sums.add(each_for::<1>(&[*node]), each_for::<1>(&[*leaf]), elements);
                }
                sums.store(lanes);
            }
        }
    }
}

/// Processes `RECORDS` records together: 4 of one element, or 2 of two elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn side_by_side<const RECORDS: usize>(
    nodes: &[u128],
    leaves: &[u128],
    records: &[u8],
    record_len: usize,
    lanes: &mut Lanes,
) {
    let mut sums = FourLaneSums::load(lanes);
    let ahead = records.len();
    let (nodes, last_nodes) = nodes.as_chunks::<RECORDS>();
    let (leaves, last_leaves) = leaves.as_chunks::<RECORDS>();
    let (records, last_records) = records.split_at(nodes.len() * RECORDS * record_len);
    let records = records.chunks_exact(RECORDS * record_len);
    for ((records, nodes), leaves) in records.zip(nodes).zip(leaves) {
        prefetch_second_level(records.as_ptr(), ahead);
        let elements = load_records::<RECORDS>(records, record_len);
        sums.add(each_for(nodes), each_for(leaves), elements);
    }
    if !last_nodes.is_empty() {
        // Pads with records of zeros, which add nothing.
        let (mut nodes, mut leaves, mut records) = ([0; RECORDS], [0; RECORDS], [0; VECTOR]);
        nodes[..last_nodes.len()].copy_from_slice(last_nodes);
        leaves[..last_leaves.len()].copy_from_slice(last_leaves);
        records[..last_records.len()].copy_from_slice(last_records);
        let elements = load_records::<RECORDS>(&records[..RECORDS * record_len], record_len);
        sums.add(each_for(&nodes), each_for(&leaves), elements);
    }
    sums.store(lanes);
}

/// The sums of four lanes.
struct FourLaneSums {
    values: __m512i,
    lows: __m512i,
    middles: __m512i,
    highs: __m512i,
}

impl FourLaneSums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
    fn load(from: &Lanes) -> FourLaneSums {
        FourLaneSums {
            values: load(&from.values),
            lows: load(&from.lows),
            middles: load(&from.middles),
            highs: load(&from.highs),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
    fn store(&self, to: &mut Lanes) {
        store(&mut to.values, self.values);
        store(&mut to.lows, self.lows);
        store(&mut to.middles, self.middles);
        store(&mut to.highs, self.highs);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
    fn add(&mut self, nodes: __m512i, leaves: __m512i, elements: __m512i) {
        // `a ^ b ^ c` as the truth table of a ternary operation.
        const XOR: i32 = 0b1001_0110;
        // A mask with the control bit in both halves of a node's place.
        let both = _mm512_shuffle_epi32::<0b01_00_01_00>(nodes);
        let selected = _mm512_test_epi64_mask(both, _mm512_set1_epi64(1));
        self.values = _mm512_mask_xor_epi64(self.values, selected, self.values, elements);
        let low = _mm512_clmulepi64_epi128::<0x00>(leaves, elements);
        let one = _mm512_clmulepi64_epi128::<0x01>(leaves, elements);
        let other = _mm512_clmulepi64_epi128::<0x10>(leaves, elements);
        let high = _mm512_clmulepi64_epi128::<0x11>(leaves, elements);
        self.lows = _mm512_xor_si512(self.lows, low);
        self.middles = _mm512_ternarylogic_epi64::<XOR>(self.middles, one, other);
        self.highs = _mm512_xor_si512(self.highs, high);
    }
}

/// Each record's number, in all of the record's lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn each_for<const RECORDS: usize>(numbers: &[u128; RECORDS]) -> __m512i {
    const { assert!(matches!(RECORDS, 1 | 2 | 4)) };
    let from = numbers.as_ptr();
    // SAFETY: the array has 16 bytes for each record, and the loads need no alignment.
    unsafe {
        match RECORDS {
            1 => _mm512_broadcast_i32x4(_mm_loadu_si128(from.cast())),
            2 => {
                let pair = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
                _mm512_shuffle_i64x2::<0b01_01_00_00>(pair, pair)
            }
            _ => _mm512_loadu_si512(from.cast()),
        }
    }
}

/// `RECORDS` records, each padded with zeros to whole elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn load_records<const RECORDS: usize>(records: &[u8], record_len: usize) -> __m512i {
    if records.len() == VECTOR {
        return load_up_to(records);
    }
    let record = |i: usize| &records[i * record_len..][..record_len];
    match RECORDS {
        2 => {
            let first = _mm512_castsi256_si512(load_up_to_half(record(0)));
            _mm512_inserti64x4::<1>(first, load_up_to_half(record(1)))
        }
        _ => {
            let first = _mm512_castsi128_si512(load_up_to_quarter(record(0)));
            let two = _mm512_inserti32x4::<1>(first, load_up_to_quarter(record(1)));
            let three = _mm512_inserti32x4::<2>(two, load_up_to_quarter(record(2)));
            _mm512_inserti32x4::<3>(three, load_up_to_quarter(record(3)))
        }
    }
}

/// At most 64 bytes, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn load_up_to(bytes: &[u8]) -> __m512i {
    // SAFETY: the mask selects the slice's own bytes, and a masked load touches nothing else.
    unsafe { _mm512_maskz_loadu_epi8(mask_of::<64>(bytes), bytes.as_ptr().cast()) }
}

/// At most 32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn load_up_to_half(bytes: &[u8]) -> __m256i {
    // SAFETY: as above.
    unsafe { _mm256_maskz_loadu_epi8(mask_of::<32>(bytes) as __mmask32, bytes.as_ptr().cast()) }
}

/// At most 16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq")]
fn load_up_to_quarter(bytes: &[u8]) -> __m128i {
    // SAFETY: as above.
    unsafe { _mm_maskz_loadu_epi8(mask_of::<16>(bytes) as __mmask16, bytes.as_ptr().cast()) }
}

/// A mask of as many bits as there are bytes: at least one and at most `MOST`.
#[inline(always)]
fn mask_of<const MOST: usize>(bytes: &[u8]) -> __mmask64 {
    assert!((1..=MOST).contains(&bytes.len()));
    u64::MAX >> (64 - bytes.len())
}
