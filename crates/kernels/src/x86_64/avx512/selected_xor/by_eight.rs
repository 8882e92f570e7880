//! Products of bit matrices with `gf2p8affineqb`, which also transposes them.

use std::arch::x86_64::*;

use crate::selected_xor::{Ahead, BLOCK_RECORDS, EIGHT, LINE};
use crate::x86_64::avx512::{load, store};
use crate::x86_64::prefetch_second_level;

/// If these bytes are multiplied by a matrix of bits, in each word, the result is the transposed
/// matrix, with rows or columns reversed. With this constant, bit `i` of byte `j` of the result is
/// bit `7 - j` of byte `7 - i` ...
const TRANSPOSING: i64 = 0x0102_0408_1020_4080;
/// ... and with this one, it is bit `j` of byte `7 - i`.
const TRANSPOSING_BYTES: i64 = TRANSPOSING.swap_bytes();

/// See [`crate::portable::selected_xor::by_eight::interleave`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn interleave(bits: &[u128], transposed: bool, out: &mut [u64]) {
    const WORDS: usize = LINE / size_of::<u128>();
    let words = bits.len() / EIGHT;
    let transposing = _mm512_set1_epi64(TRANSPOSING_BYTES);
    for (i, out) in out.chunks_mut(LINE).enumerate() {
        let mut selections = [_mm512_setzero_si512(); EIGHT];
        for k in 0..EIGHT {
            let rest = &bits[k * words + i * WORDS..(k + 1) * words];
            selections[k] = load_up_to(&rest[..rest.len().min(WORDS)]);
            if transposed {
                selections[k] = _mm512_gf2p8affine_epi64_epi8::<0>(transposing, selections[k]);
            }
        }
        let vectors = transpose_bytes(selections);
        // Vector t has words 2 t and 2 t + 1 of 16 words each.
        let out = &mut out.as_chunks_mut::<2>().0;
        for (t, out) in out.iter_mut().take(EIGHT).enumerate() {
            store_pair(out, _mm512_extracti32x4_epi32::<0>(vectors[t]));
        }
        for (t, out) in out.iter_mut().skip(EIGHT).take(EIGHT).enumerate() {
            store_pair(out, _mm512_extracti32x4_epi32::<1>(vectors[t]));
        }
        for (t, out) in out.iter_mut().skip(2 * EIGHT).take(EIGHT).enumerate() {
            store_pair(out, _mm512_extracti32x4_epi32::<2>(vectors[t]));
        }
        for (t, out) in out.iter_mut().skip(3 * EIGHT).enumerate() {
            store_pair(out, _mm512_extracti32x4_epi32::<3>(vectors[t]));
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn store_pair(words: &mut [u64; 2], vector: __m128i) {
    // SAFETY: the array has 16 bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), vector) }
}

/// Up to four words, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn load_up_to(words: &[u128]) -> __m512i {
    assert!(words.len() <= 4);
    let mask = ((1u32 << (2 * words.len())) - 1) as __mmask8;
    // SAFETY: the mask selects the slice's own words, and a masked load touches nothing else.
    unsafe { _mm512_maskz_loadu_epi64(mask, words.as_ptr().cast()) }
}

/// Transposes 8 × 8 bytes: byte `k` of word `w` of vector `t` is byte
/// [`byte_of`](crate::selected_xor::byte_of)`(t, w)` of vector `k`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn transpose_bytes(v: [__m512i; EIGHT]) -> [__m512i; EIGHT] {
    // Unpacking interleaves within lanes of 16 bytes: pairs of bytes, then quarters, then eights.
    let low_01 = _mm512_unpacklo_epi8(v[0], v[1]);
    let high_01 = _mm512_unpackhi_epi8(v[0], v[1]);
    let low_23 = _mm512_unpacklo_epi8(v[2], v[3]);
    let high_23 = _mm512_unpackhi_epi8(v[2], v[3]);
    let low_45 = _mm512_unpacklo_epi8(v[4], v[5]);
    let high_45 = _mm512_unpackhi_epi8(v[4], v[5]);
    let low_67 = _mm512_unpacklo_epi8(v[6], v[7]);
    let high_67 = _mm512_unpackhi_epi8(v[6], v[7]);
    let first_0123 = _mm512_unpacklo_epi16(low_01, low_23);
    let second_0123 = _mm512_unpackhi_epi16(low_01, low_23);
    let third_0123 = _mm512_unpacklo_epi16(high_01, high_23);
    let fourth_0123 = _mm512_unpackhi_epi16(high_01, high_23);
    let first_4567 = _mm512_unpacklo_epi16(low_45, low_67);
    let second_4567 = _mm512_unpackhi_epi16(low_45, low_67);
    let third_4567 = _mm512_unpacklo_epi16(high_45, high_67);
    let fourth_4567 = _mm512_unpackhi_epi16(high_45, high_67);
    [
        _mm512_unpacklo_epi32(first_0123, first_4567),
        _mm512_unpackhi_epi32(first_0123, first_4567),
        _mm512_unpacklo_epi32(second_0123, second_4567),
        _mm512_unpackhi_epi32(second_0123, second_4567),
        _mm512_unpacklo_epi32(third_0123, third_4567),
        _mm512_unpackhi_epi32(third_0123, third_4567),
        _mm512_unpacklo_epi32(fourth_0123, fourth_4567),
        _mm512_unpackhi_epi32(fourth_0123, fourth_4567),
    ]
}

/// Prefetches while the `n`-th line is staged.
#[inline(always)]
fn prefetch_line(records: &[u8], ahead: Ahead, n: usize) {
    prefetch_second_level(records.as_ptr(), ahead.start.wrapping_add(n.wrapping_mul(ahead.step)));
}

/// See [`crate::portable::selected_xor::by_eight::stage_short`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn stage_short(
    records: &[u8],
    tile_bytes: usize,
    order: &[u8; LINE],
    out: &mut [[u8; LINE]],
    ahead: Ahead,
) {
    let order = load(order);
    let transposing = _mm512_set1_epi64(TRANSPOSING);
    for (tile, line) in out.iter_mut().enumerate() {
        let bytes =
            records[tile * tile_bytes..].first_chunk::<LINE>().expect("the caller left room");
        prefetch_line(records, ahead, tile);
        let matrices = _mm512_permutexvar_epi8(order, load(bytes));
        store(line, _mm512_gf2p8affine_epi64_epi8::<0>(transposing, matrices));
    }
}

/// See [`crate::portable::selected_xor::by_eight::stage_blocks`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn stage_blocks(
    records: &[u8],
    record_len: usize,
    groups: usize,
    order: &[u8; LINE],
    out: &mut [[u8; LINE]],
    ahead: Ahead,
) {
    let order = load(order);
    let tiles = out.as_chunks_mut::<EIGHT>().0;
    for (block, tiles) in tiles.chunks_exact_mut(EIGHT / groups).enumerate() {
        for (j, lines) in tiles.iter_mut().enumerate() {
            let first = block * BLOCK_RECORDS + groups * j;
            let mut slots = [_mm512_setzero_si512(); EIGHT];
            for s in 0..EIGHT {
                prefetch_line(records, ahead, (block * EIGHT / groups + j) * EIGHT + s);
                let records = &records[(first + EIGHT * s) * record_len..];
                let bytes = records.first_chunk::<LINE>().expect("the caller left room");
                slots[s] = _mm512_permutexvar_epi8(order, load(bytes));
            }
            store_matrices(lines, slots);
        }
    }
}

/// See [`crate::portable::selected_xor::by_eight::stage_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn stage_rows(
    records: &[u8],
    record_len: usize,
    column: usize,
    out: &mut [[u8; LINE]],
    ahead: Ahead,
) {
    for (tile, lines) in out.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
        let mut slots = [_mm512_setzero_si512(); EIGHT];
        for s in 0..EIGHT {
            prefetch_line(records, ahead, tile * EIGHT + s);
            let records = &records[(EIGHT * tile + s) * record_len + column..];
            let bytes = records.first_chunk::<LINE>().expect("the caller left room");
            slots[EIGHT - 1 - s] = load(bytes);
        }
        store_matrices(lines, slots);
    }
}

/// The matrices of eight slots.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn store_matrices(lines: &mut [[u8; LINE]; EIGHT], slots: [__m512i; EIGHT]) {
    let transposing = _mm512_set1_epi64(TRANSPOSING);
    for (line, bytes) in lines.iter_mut().zip(transpose_bytes(slots)) {
        store(line, _mm512_gf2p8affine_epi64_epi8::<0>(transposing, bytes));
    }
}

/// See [`crate::portable::selected_xor::by_eight::multiply`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
pub(crate) fn multiply(
    matrices: &[[u8; LINE]],
    words: &[u64],
    groups: usize,
    group_of_word: &[u64; EIGHT],
    sums: &mut [[u8; LINE]],
) {
    if let Ok(sums) = <&mut [_; EIGHT]>::try_from(&mut *sums) {
        multiply_lines::<EIGHT>(matrices, words, groups, group_of_word, sums);
    } else if let Ok(sums) = <&mut [_; 1]>::try_from(sums) {
        multiply_lines::<1>(matrices, words, groups, group_of_word, sums);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni,vaes,aes")]
fn multiply_lines<const LINES: usize>(
    matrices: &[[u8; LINE]],
    words: &[u64],
    groups: usize,
    group_of_word: &[u64; EIGHT],
    sums: &mut [[u8; LINE]; LINES],
) {
    let group_of_word = load(group_of_word);
    let mut sum = [_mm512_setzero_si512(); LINES];
    for i in 0..LINES {
        sum[i] = load(&sums[i]);
    }
    for (tile, lines) in matrices.as_chunks::<LINES>().0.iter().enumerate() {
        let words = words[tile * groups..].first_chunk::<EIGHT>().expect("the caller left room");
        let selections = _mm512_permutexvar_epi64(group_of_word, load(words));
        for i in 0..LINES {
            let product = _mm512_gf2p8affine_epi64_epi8::<0>(selections, load(&lines[i]));
            sum[i] = _mm512_xor_si512(sum[i], product);
        }
    }
    for i in 0..LINES {
        store(&mut sums[i], sum[i]);
    }
}
