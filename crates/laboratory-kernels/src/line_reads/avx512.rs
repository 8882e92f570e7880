//! Parts of scattered lines. One permutation puts the bytes of a line into order. Bits take one
//! permutation of bytes, one of the bits within bytes, and one extraction for each word that has
//! any bits.
//!
//! Queries go through the steps together, so that the lines in flight at a time do not all belong
//! to one pattern.

use std::arch::x86_64::*;

use super::ahead::Ahead;
use super::{
    LINE, LINE_BITS, LineBits, LineBytes, LineClass, LineQuery, LineReads, class_of, line_of,
};

#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &[u8; LINE]) -> __m512i {
    // SAFETY: the array is as long as a vector, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(line: &mut [u8; LINE], vector: __m512i) {
    // SAFETY: as above, for the store.
    unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), vector) }
}

/// The first bytes of a vector, as many as `bytes` holds, at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_up_to(bytes: &mut [u8], vector: __m512i) {
    assert!(bytes.len() <= LINE);
    let mask = if bytes.is_empty() { 0 } else { u64::MAX >> (LINE - bytes.len()) };
    // SAFETY: the mask selects the slice's own bytes, and a masked store touches nothing else.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, vector) }
}

/// See [`super::portable::bytes`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512vbmi,vaes,aes")]
pub(crate) fn bytes(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBytes>,
    queries: &mut [LineQuery<'_>],
) {
    if let [query] = queries {
        // The whole state of a single query is in registers.
        return take_bytes(lines, reads, [ByteWalk::new(query)]);
    }
    let mut walks = Vec::with_capacity(queries.len());
    for query in queries {
        walks.push(ByteWalk::new(query));
    }
    take_bytes(lines, reads, walks);
}

/// The walk of one query through the steps.
struct ByteWalk<'a> {
    first_line: u64,
    flip: __m512i,
    out: &'a mut [u8],
}

impl<'a> ByteWalk<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512vbmi,vaes,aes")]
    fn new(query: &'a mut LineQuery<'_>) -> ByteWalk<'a> {
        let flip = _mm512_set1_epi8((query.first % LINE as u64) as i8);
        ByteWalk { first_line: query.first / LINE as u64, flip, out: query.out }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx512vbmi,vaes,aes")]
fn take_bytes<'a>(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBytes>,
    mut walks: impl AsMut<[ByteWalk<'a>]>,
) {
    let walks = walks.as_mut();
    let ahead = Ahead::new(lines, reads.steps(), walks.len());
    for walk in walks.iter() {
        ahead.begin(walk.first_line);
    }
    let mut at = 0;
    for (i, &step) in reads.steps().iter().enumerate() {
        let class = &reads.classes()[class_of(step)];
        let order = load(class.order());
        for walk in walks.iter_mut() {
            ahead.at_step(i, walk.first_line);
            let line = load(&lines[line_of(step, walk.first_line)]);
            let taken = _mm512_permutexvar_epi8(_mm512_xor_si512(order, walk.flip), line);
            let rest = &mut walk.out[at..];
            match rest.first_chunk_mut::<LINE>() {
                // The next steps overwrite the surplus bytes.
                Some(rest) => store(rest, taken),
                None => store_up_to(&mut rest[..class.count()], taken),
            }
        }
        at += class.count();
    }
}

/// See [`super::portable::bits`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi2,popcnt")]
pub(crate) fn bits(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBits>,
    queries: &mut [LineQuery<'_>],
) {
    if let [query] = queries {
        return take_bits(lines, reads, [BitWalk::new(query)]);
    }
    let mut walks = Vec::with_capacity(queries.len());
    for query in queries {
        walks.push(BitWalk::new(query));
    }
    take_bits(lines, reads, walks);
}

/// The same for bits.
struct BitWalk<'a> {
    first_line: u64,
    byte_order: __m512i,
    bit_order: __m512i,
    answer: BitStream<'a>,
}

impl<'a> BitWalk<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi2,popcnt")]
    fn new(query: &'a mut LineQuery<'_>) -> BitWalk<'a> {
        let identity: [u8; LINE] = std::array::from_fn(|byte| byte as u8);
        let byte_flip = _mm512_set1_epi8((query.first / 8 % LINE as u64) as i8);
        BitWalk {
            first_line: query.first / LINE_BITS as u64,
            byte_order: _mm512_xor_si512(load(&identity), byte_flip),
            bit_order: _mm512_set1_epi64(bit_flip(query.first % 8)),
            answer: BitStream { out: query.out, at: 0, word: 0, filled: 0 },
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni,bmi2,popcnt")]
fn take_bits<'a>(
    lines: &[[u8; LINE]],
    reads: &LineReads<LineBits>,
    mut walks: impl AsMut<[BitWalk<'a>]>,
) {
    let walks = walks.as_mut();
    let ahead = Ahead::new(lines, reads.steps(), walks.len());
    for walk in walks.iter() {
        ahead.begin(walk.first_line);
    }
    for (i, &step) in reads.steps().iter().enumerate() {
        let masks = reads.classes()[class_of(step)].words();
        for walk in walks.iter_mut() {
            ahead.at_step(i, walk.first_line);
            let line = load(&lines[line_of(step, walk.first_line)]);
            let line = _mm512_permutexvar_epi8(walk.byte_order, line);
            let line = _mm512_gf2p8affine_epi64_epi8::<0>(line, walk.bit_order);
            let mut bytes = [0; LINE];
            store(&mut bytes, line);
            for (word, &mask) in bytes.as_chunks::<8>().0.iter().zip(masks) {
                if mask != 0 {
                    let taken = _pext_u64(u64::from_le_bytes(*word), mask);
                    walk.answer.append(taken, mask.count_ones());
                }
            }
        }
    }
    for walk in walks {
        walk.answer.finish();
    }
}

/// The 8 × 8 matrix that brings bit `i ^ flip` of a byte to bit `i`. Its row for bit `i` is byte `7
/// − i`.
fn bit_flip(flip: u64) -> i64 {
    (0..8)
        .map(|i: u64| 1 << (8 * (7 - i) + (i ^ flip)))
        .fold(0, |matrix, entry: i64| matrix | entry)
}

/// Collects bits into bytes.
struct BitStream<'a> {
    out: &'a mut [u8],
    /// Bytes written.
    at: usize,
    /// Bits not written yet, fewer than 64.
    word: u64,
    filled: u32,
}

impl BitStream<'_> {
    /// Appends `count` bits, 1 to 64. The other bits of `bits` are zero.
    #[inline(always)]
    fn append(&mut self, bits: u64, count: u32) {
        self.word |= bits << self.filled;
        let filled = self.filled + count;
        if filled >= 64 {
            self.out[self.at..self.at + 8].copy_from_slice(&self.word.to_le_bytes());
            self.at += 8;
            // Shifts in two steps, because all 64 bits may have been written.
            self.word = bits >> 1 >> (63 - self.filled);
        }
        self.filled = filled % 64;
    }

    /// Writes the remaining bits.
    fn finish(&mut self) {
        let rest = &mut self.out[self.at..];
        rest.copy_from_slice(&self.word.to_le_bytes()[..rest.len()]);
    }
}
