//! Finds the hints that hold a record, and the other contents of a hint. The work is the same for
//! all of them: the wanted lane of a block decides only what a permutation moves.

use std::arch::x86_64::*;

use super::super::load;
use super::{
    SecretCipher, VECTOR_PARTITIONS, consecutive_hints, consecutive_partitions, each_block,
};
use crate::subset_hints::{OFFSET_TAG, OFFSETS_PER_BLOCK, SELECT_TAG, SELECTS_PER_BLOCK};

/// Blocks of a vector.
const BLOCKS: usize = 4;
/// The number of vectors that are computed at a time.
const VECTORS: usize = 8;

/// See [`Kernels::subset_offset_matches`](crate::Kernels::subset_offset_matches).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn offset_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    first_word: u32,
    matches: &mut [u64],
) {
    /// Words of matches that a batch of vectors, of 32 hints each, gives.
    const WORDS: usize = VECTORS * BLOCKS * OFFSETS_PER_BLOCK / u64::BITS as usize;
    let cipher = SecretCipher::new(key);
    let first = u64::BITS / OFFSETS_PER_BLOCK as u32 * first_word;
    let mut input = _mm512_add_epi32(each_block(first, partition, OFFSET_TAG), consecutive_hints());
    let offset = _mm512_set1_epi16(offset as i16);
    let mask = _mm512_set1_epi16(mask as i16);
    let (batches, rest) = matches.as_chunks_mut::<WORDS>();
    for batch in batches {
        *batch = match_batch(&cipher, &mut input, offset, mask);
    }
    if !rest.is_empty() {
        let batch = match_batch(&cipher, &mut input, offset, mask);
        rest.copy_from_slice(&batch[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn match_batch(
    cipher: &SecretCipher,
    input: &mut __m512i,
    offset: __m512i,
    mask: __m512i,
) -> [u64; VECTORS / 2] {
    let step = each_block(BLOCKS as u32, 0, 0);
    let mut blocks = [_mm512_setzero_si512(); VECTORS];
    for block in &mut blocks {
        *block = *input;
        *input = _mm512_add_epi32(*input, step);
    }
    cipher.encrypt(&mut blocks);
    let mut matches = [0; VECTORS / 2];
    for (word, [low, high]) in matches.iter_mut().zip(blocks.as_chunks::<2>().0) {
        let low = _mm512_cmpeq_epi16_mask(_mm512_and_si512(*low, mask), offset);
        let high = _mm512_cmpeq_epi16_mask(_mm512_and_si512(*high, mask), offset);
        *word = u64::from(low) | u64::from(high) << 32;
    }
    matches
}

/// See [`Kernels::subset_group_matches`](crate::Kernels::subset_group_matches).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn group_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    groups: &[u32],
    matches: &mut [u8],
) {
    let matching = GroupMatching::new(key, partition, offset, mask);
    let (group_batches, group_rest) = groups.as_chunks::<GROUPS>();
    let (match_batches, match_rest) = matches.as_chunks_mut::<GROUPS>();
    for (groups, matches) in group_batches.iter().zip(match_batches) {
        matching.batch(groups, matches);
    }
    if !group_rest.is_empty() {
        let mut padded = [0; GROUPS];
        padded[..group_rest.len()].copy_from_slice(group_rest);
        let mut matches = [0; GROUPS];
        matching.batch(&padded, &mut matches);
        match_rest.copy_from_slice(&matches[..match_rest.len()]);
    }
}

/// Groups of hints, one block each, that are matched in one step.
const GROUPS: usize = VECTORS * BLOCKS;

/// The values that hints are compared with. Besides the cipher every instruction counts here, and
/// there are three for a vector.
struct GroupMatching {
    /// The offset, in each half-word, is added to its last round key, so that matches come out as
    /// zero.
    cipher: SecretCipher,
    /// The input without the group.
    rest_of_input: __m512i,
    /// The bits of a half-word that make an offset.
    mask: __m512i,
}

impl GroupMatching {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn new(key: &[u8; 16], partition: u32, offset: u16, mask: u16) -> GroupMatching {
        let mut cipher = SecretCipher::new(key);
        let last = &mut cipher.0.keys[10];
        *last = _mm512_xor_si512(*last, _mm512_set1_epi16(offset as i16));
        let rest_of_input = each_block(0, partition, OFFSET_TAG);
        GroupMatching { cipher, rest_of_input, mask: _mm512_set1_epi16(mask as i16) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn batch(&self, groups: &[u32; GROUPS], matches: &mut [u8; GROUPS]) {
        /// Groups of one load.
        const LOADED: usize = 16;
        const FIRST_WORDS: __mmask16 = 0x1111;
        // Lane 4 i + n of a vector takes the i-th of four groups.
        let spread = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
        let mut blocks = [self.rest_of_input; VECTORS];
        for (i, block) in blocks.iter_mut().enumerate() {
            let groups = load(&groups.as_chunks::<LOADED>().0[BLOCKS * i / LOADED]);
            let first_group = _mm512_set1_epi32((BLOCKS * i % LOADED) as i32);
            let places = _mm512_add_epi32(spread, first_group);
            *block = _mm512_mask_permutexvar_epi32(*block, FIRST_WORDS, places, groups);
        }
        self.cipher.encrypt(&mut blocks);
        for (matches, block) in matches.as_chunks_mut::<BLOCKS>().0.iter_mut().zip(blocks) {
            *matches = _mm512_testn_epi16_mask(block, self.mask).to_le_bytes();
        }
    }
}

/// See [`Kernels::subset_selects_at`](crate::Kernels::subset_selects_at).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn selects_at(key: &[u8; 16], partition: u32, ids: &[u32], out: &mut [u32]) {
    const BATCH: usize = VECTORS * BLOCKS;
    let cipher = SecretCipher::new(key);
    for (ids, out) in ids.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        let mut padded = [0; BATCH];
        padded[..ids.len()].copy_from_slice(ids);
        let selects = selects_of_batch(&cipher, partition, &padded);
        out.copy_from_slice(&selects.as_flattened()[..out.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
fn selects_of_batch(
    cipher: &SecretCipher,
    partition: u32,
    ids: &[u32; VECTORS * BLOCKS],
) -> [[u32; BLOCKS]; VECTORS] {
    let rest_of_input = each_block(0, partition, SELECT_TAG);
    // Lane 4 i + n of a vector takes the i-th id.
    let spread = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    const FIRST_WORDS: __mmask16 = 0x1111;
    let mut blocks = [_mm512_setzero_si512(); VECTORS];
    let mut wanted = [_mm512_setzero_si512(); VECTORS];
    let ids = ids.as_chunks::<BLOCKS>().0;
    for ((block, wanted), ids) in blocks.iter_mut().zip(&mut wanted).zip(ids) {
        // SAFETY: four words are 16 bytes, and the load needs no alignment.
        let ids = _mm512_castsi128_si512(unsafe { _mm_loadu_si128(ids.as_ptr().cast()) });
        let quotients = _mm512_srli_epi32::<{ SELECTS_PER_BLOCK.ilog2() }>(ids);
        let quotients = _mm512_maskz_permutexvar_epi32(FIRST_WORDS, spread, quotients);
        *block = _mm512_add_epi32(rest_of_input, quotients);
        let lane = _mm512_and_si512(ids, _mm512_set1_epi32(SELECTS_PER_BLOCK as i32 - 1));
        let block_start = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
        *wanted = _mm512_add_epi32(lane, block_start);
    }
    cipher.encrypt(&mut blocks);
    let mut selects = [[0; BLOCKS]; VECTORS];
    for ((selects, block), wanted) in selects.iter_mut().zip(blocks).zip(wanted) {
        let first = _mm512_castsi512_si128(_mm512_permutexvar_epi32(wanted, block));
        // SAFETY: four words are 16 bytes, and the store needs no alignment.
        unsafe { _mm_storeu_si128(selects.as_mut_ptr().cast(), first) };
    }
    selects
}

/// See [`Kernels::subset_rebuild`](crate::Kernels::subset_rebuild).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
pub(crate) fn rebuild(
    key: &[u8; 16],
    id: u32,
    mask: u16,
    selects: &mut [u32],
    offsets: &mut [u16],
) {
    let mut rebuilding = Rebuilding::new(key, id, mask);
    let (select_batches, select_rest) = selects.as_chunks_mut();
    let (offset_batches, offset_rest) = offsets.as_chunks_mut();
    for (selects, offsets) in select_batches.iter_mut().zip(offset_batches) {
        rebuilding.next(selects, offsets);
    }
    if !select_rest.is_empty() {
        let mut selects = [0; REBUILT];
        let mut offsets = [0; REBUILT];
        rebuilding.next(&mut selects, &mut offsets);
        select_rest.copy_from_slice(&selects[..select_rest.len()]);
        offset_rest.copy_from_slice(&offsets[..offset_rest.len()]);
    }
}

/// The number of partitions of a hint that are rebuilt in one step: half of the vectors are for
/// select values, half for offsets.
const REBUILT: usize = VECTORS / 2 * BLOCKS;

struct Rebuilding {
    cipher: SecretCipher,
    select_input: __m512i,
    offset_input: __m512i,
    /// The places of the wanted words in two vectors.
    select_places: __m512i,
    /// The places of the wanted half-words in two vectors.
    offset_places: __m512i,
    mask: __m128i,
}

impl Rebuilding {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn new(key: &[u8; 16], id: u32, mask: u16) -> Rebuilding {
        let input = |quotient, tag| {
            _mm512_add_epi32(each_block(quotient, 0, tag), consecutive_partitions())
        };
        let (select_id, select_lane) =
            (id / SELECTS_PER_BLOCK as u32, id % SELECTS_PER_BLOCK as u32);
        let (offset_id, offset_lane) =
            (id / OFFSETS_PER_BLOCK as u32, id % OFFSETS_PER_BLOCK as u32);
        // Two vectors are eight blocks, of four words or eight half-words each.
        let eight = |scale: i64| {
            let step = |i: i64| i * scale;
            [step(0), step(1), step(2), step(3), step(4), step(5), step(6), step(7)]
        };
        let words = eight(4).map(|start| start as i32);
        let half_words = eight(8);
        let select_places = _mm512_add_epi32(
            _mm512_set_epi32(
                0, 0, 0, 0, 0, 0, 0, 0, words[7], words[6], words[5], words[4], words[3], words[2],
                words[1], words[0],
            ),
            _mm512_set1_epi32(select_lane as i32),
        );
        let packed = |from: usize| {
            half_words[from]
                | half_words[from + 1] << 16
                | half_words[from + 2] << 32
                | half_words[from + 3] << 48
        };
        let offset_places = _mm512_add_epi16(
            _mm512_set_epi64(0, 0, 0, 0, 0, 0, packed(4), packed(0)),
            _mm512_set1_epi16(offset_lane as i16),
        );
        Rebuilding {
            cipher: SecretCipher::new(key),
            select_input: input(select_id, SELECT_TAG),
            offset_input: input(offset_id, OFFSET_TAG),
            select_places,
            offset_places,
            mask: _mm_set1_epi16(mask as i16),
        }
    }

    /// The next partitions of the hint.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,vaes,aes,popcnt")]
    fn next(&mut self, selects: &mut [u32; REBUILT], offsets: &mut [u16; REBUILT]) {
        let step = each_block(0, VECTOR_PARTITIONS, 0);
        let mut blocks = [_mm512_setzero_si512(); VECTORS];
        let (select_blocks, offset_blocks) = blocks.split_at_mut(VECTORS / 2);
        for (select, offset) in select_blocks.iter_mut().zip(offset_blocks) {
            (*select, *offset) = (self.select_input, self.offset_input);
            self.select_input = _mm512_add_epi32(self.select_input, step);
            self.offset_input = _mm512_add_epi32(self.offset_input, step);
        }
        self.cipher.encrypt(&mut blocks);
        let pairs = blocks.as_chunks::<2>().0;
        let (select_pairs, offset_pairs) = pairs.split_at(VECTORS / 4);
        for (selects, [a, b]) in selects.as_chunks_mut::<8>().0.iter_mut().zip(select_pairs) {
            let wanted = _mm512_permutex2var_epi32(*a, self.select_places, *b);
            // SAFETY: eight words are 32 bytes, and the store needs no alignment.
            unsafe {
                let wanted = _mm512_castsi512_si256(wanted);
                _mm256_storeu_si256(selects.as_mut_ptr().cast(), wanted);
            }
        }
        for (offsets, [a, b]) in offsets.as_chunks_mut::<8>().0.iter_mut().zip(offset_pairs) {
            let wanted = _mm512_permutex2var_epi16(*a, self.offset_places, *b);
            let wanted = _mm_and_si128(_mm512_castsi512_si128(wanted), self.mask);
            // SAFETY: eight half-words are 16 bytes, and the store needs no alignment.
            unsafe { _mm_storeu_si128(offsets.as_mut_ptr().cast(), wanted) };
        }
    }
}
