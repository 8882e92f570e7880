//! Products of bit matrices in plain Rust, bit by bit. Only the AVX-512 arm works in this way;
//! others use it only in tests.

use crate::selected_xor::{Ahead, BLOCK_RECORDS, EIGHT, LINE, byte_of};

/// The bits of eight selections, which lie one after the other in `bits`: byte `k` of `out[r]` is
/// for row group `r` in selection `k`.
///
/// Bit `s` of that is for record `8 r + s`. If `transposed`, a row group is every eighth record of
/// 64, backwards: of `out[8 b + g]` it is for record `64 b + 8 (7 - s) + g`.
pub(crate) fn interleave(bits: &[u128], transposed: bool, out: &mut [u64]) {
    let selections: Vec<&[u128]> = bits.chunks_exact(bits.len() / EIGHT).collect();
    for (r, word) in out.iter_mut().enumerate() {
        let record = |s: usize| match transposed {
            true => r / EIGHT * BLOCK_RECORDS + (EIGHT - 1 - s) * EIGHT + r % EIGHT,
            false => r * EIGHT + s,
        };
        let bit = |words: &[u128], record: usize| (words[record / 128] >> (record % 128)) as u8 & 1;
        let byte =
            |k: usize| (0..EIGHT).fold(0, |byte, s| byte | bit(selections[k], record(s)) << s);
        *word = u64::from_le_bytes(std::array::from_fn(byte));
    }
}

/// The matrices of tiles of one line each, `tile_bytes` apart: byte `n` of a line, before it is
/// transposed by words, is byte `order[n]` of the tile.
pub(crate) fn stage_short(
    records: &[u8],
    tile_bytes: usize,
    order: &[u8; LINE],
    out: &mut [[u8; LINE]],
    _ahead: Ahead,
) {
    for (tile, line) in out.iter_mut().enumerate() {
        let bytes = order.map(|place| records[tile * tile_bytes + usize::from(place)]);
        for (out, word) in line.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
            *out = transpose(*word);
        }
    }
}

/// The matrices of blocks of 64 records. A slot has `groups` neighbouring records, and a block as
/// many tiles as make eight records of them. Byte `p` of slot `s` of tile `j` is byte `order[p]`
/// from record `8 s + groups · j` on.
pub(crate) fn stage_blocks(
    records: &[u8],
    record_len: usize,
    groups: usize,
    order: &[u8; LINE],
    out: &mut [[u8; LINE]],
    _ahead: Ahead,
) {
    let tiles = out.as_chunks_mut::<EIGHT>().0;
    for (block, tiles) in tiles.chunks_exact_mut(EIGHT / groups).enumerate() {
        for (j, lines) in tiles.iter_mut().enumerate() {
            stage_slots(lines, |s, p| {
                let record = block * BLOCK_RECORDS + EIGHT * s + groups * j;
                records[record * record_len + usize::from(order[p])]
            });
        }
    }
}

/// The matrices of 64 columns from `column` on, of eight records for each tile: byte `p` of slot
/// `s` is column `p` of them in record `7 - s`.
pub(crate) fn stage_rows(
    records: &[u8],
    record_len: usize,
    column: usize,
    out: &mut [[u8; LINE]],
    _ahead: Ahead,
) {
    for (tile, lines) in out.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
        stage_slots(lines, |s, p| {
            records[(EIGHT * tile + EIGHT - 1 - s) * record_len + column + p]
        });
    }
}

/// The matrices of eight slots of which `slot(s, p)` is byte `p` of slot `s`.
fn stage_slots(lines: &mut [[u8; LINE]; EIGHT], slot: impl Fn(usize, usize) -> u8) {
    for (t, line) in lines.iter_mut().enumerate() {
        for (w, matrix) in line.as_chunks_mut::<EIGHT>().0.iter_mut().enumerate() {
            *matrix = transpose(std::array::from_fn(|s| slot(s, byte_of(t, w))));
        }
    }
}

/// Bit `i` of byte `j` is bit `7 - j` of byte `7 - i`.
fn transpose(bytes: [u8; EIGHT]) -> [u8; EIGHT] {
    std::array::from_fn(|j| (0..EIGHT).fold(0, |byte, i| byte | (bytes[7 - i] >> (7 - j) & 1) << i))
}

/// Adds the products of the matrices of each tile, as many lines as there are `sums`, with bytes of
/// selections: word `w` of a line with those in `words[groups · tile + group_of_word[w]]`.
///
/// Bit `i` of a product is the parity of the bits that a byte has in common with byte `7 - i` of
/// the matrix.
pub(crate) fn multiply(
    matrices: &[[u8; LINE]],
    words: &[u64],
    groups: usize,
    group_of_word: &[u64; EIGHT],
    sums: &mut [[u8; LINE]],
) {
    for (tile, lines) in matrices.chunks_exact(sums.len()).enumerate() {
        for (line, sums) in lines.iter().zip(sums.iter_mut()) {
            let matrices = line.as_chunks::<EIGHT>().0;
            for (w, (matrix, sums)) in
                matrices.iter().zip(sums.as_chunks_mut::<EIGHT>().0).enumerate()
            {
                let selections = words[groups * tile + group_of_word[w] as usize].to_le_bytes();
                for (sum, x) in sums.iter_mut().zip(selections) {
                    *sum ^= product(x, matrix);
                }
            }
        }
    }
}

fn product(x: u8, matrix: &[u8; EIGHT]) -> u8 {
    (0..EIGHT).fold(0, |byte, i| byte | ((matrix[7 - i] & x).count_ones() as u8 & 1) << i)
}
