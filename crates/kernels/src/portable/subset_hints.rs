//! Pseudorandom subsets through the `aes` crate, which uses the processor's AES instructions where
//! it finds them and erases its round keys.

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};

use crate::subset_hints::{
    Hints, Kind, OFFSET_TAG, OFFSETS_PER_BLOCK, PartitionGroup, SELECT_TAG, SELECTS_PER_BLOCK,
};

/// Blocks encrypted in one call of the cipher.
const BATCH: usize = 32;

/// The input block for the values of hint group `quotient` in `partition`.
fn input(quotient: u32, partition: u32, tag: u32) -> Block {
    let mut block = Array([0; 16]);
    block[..4].copy_from_slice(&quotient.to_le_bytes());
    block[4..8].copy_from_slice(&partition.to_le_bytes());
    block[8..12].copy_from_slice(&tag.to_le_bytes());
    block
}

fn select_input(id: u32, partition: u32) -> Block {
    input(id / SELECTS_PER_BLOCK as u32, partition, SELECT_TAG)
}

fn offset_input(id: u32, partition: u32) -> Block {
    input(id / OFFSETS_PER_BLOCK as u32, partition, OFFSET_TAG)
}

fn selects(block: &Block) -> [u32; SELECTS_PER_BLOCK] {
    std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|b| block[4 * i + b])))
}

fn offsets(block: &Block, mask: u16) -> [u16; OFFSETS_PER_BLOCK] {
    std::array::from_fn(|i| u16::from_le_bytes([block[2 * i], block[2 * i + 1]]) & mask)
}

/// Encrypts the blocks that `input` makes of each number below `count`, and passes on each with its
/// number.
fn for_each_block(
    cipher: &Aes128,
    count: usize,
    input: impl Fn(usize) -> Block,
    mut then: impl FnMut(usize, &Block),
) {
    for first in (0..count).step_by(BATCH) {
        let mut blocks = [Array([0; 16]); BATCH];
        let blocks = &mut blocks[..BATCH.min(count - first)];
        for (i, block) in blocks.iter_mut().enumerate() {
            *block = input(first + i);
        }
        cipher.encrypt_blocks(blocks);
        for (i, block) in blocks.iter().enumerate() {
            then(first + i, block);
        }
    }
}

/// See [`Kernels::subset_cutoffs`](crate::Kernels::subset_cutoffs).
pub(crate) fn cutoffs(key: &[u8; 16], first_id: u32, partitions: u32, rank: u32, out: &mut [u32]) {
    let cipher = Aes128::new(&Array(*key));
    let mut values = [(); SELECTS_PER_BLOCK].map(|()| vec![0; partitions as usize]);
    for (quad, out) in out.as_chunks_mut::<SELECTS_PER_BLOCK>().0.iter_mut().enumerate() {
        let id = first_id + (SELECTS_PER_BLOCK * quad) as u32;
        let input = |k: usize| select_input(id, k as u32);
        for_each_block(&cipher, partitions as usize, input, |k, block| {
            for (values, select) in values.iter_mut().zip(selects(block)) {
                values[k] = select;
            }
        });
        for (cutoff, values) in out.iter_mut().zip(&mut values) {
            *cutoff = order_statistic(values, rank as usize);
        }
    }
}

/// The value `c` of rank `rank`, such that exactly `rank` of the values are below it; 0 if there is
/// none. Reorders the values. The rank is at least 1 and less than the number of values.
pub(crate) fn order_statistic(values: &mut [u32], rank: usize) -> u32 {
    let (below, &mut cutoff, _) = values.select_nth_unstable(rank);
    if below.contains(&cutoff) { 0 } else { cutoff }
}

/// Adds the partitions of `group` to the parities of hints. See
/// [`Kernels::subset_accumulate_single`](crate::Kernels::subset_accumulate_single) and the methods
/// after it.
pub(crate) fn accumulate(
    kind: Kind,
    key: &[u8; 16],
    hints: &Hints<'_>,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    if kind == Kind::All {
        return accumulate_all(key, hints.first_id, first_partition, group, parities);
    }
    let record_len = group.record_len();
    for_each_record(key, hints, first_partition, group, |j, k, offset, selected| {
        let (place, start) = match (kind, selected) {
            (Kind::Pairs, selected) => (2 * j + usize::from(!selected), offset * record_len),
            (_, true) => (j, offset * record_len),
            (_, false) => (j, group.zero_record()),
        };
        let record = &group.partition(k)[start..start + record_len];
        xor_into(&mut parities[place * record_len..(place + 1) * record_len], record);
    });
}

fn accumulate_all(
    key: &[u8; 16],
    first_id: u32,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let cipher = Aes128::new(&Array(*key));
    let record_len = group.record_len();
    let mask = (group.records_per_partition() - 1) as u16;
    let octets = parities.chunks_exact_mut(OFFSETS_PER_BLOCK * record_len);
    for (octet, parities) in octets.enumerate() {
        let id = first_id + (OFFSETS_PER_BLOCK * octet) as u32;
        let input = |k: usize| offset_input(id, first_partition + k as u32);
        for_each_block(&cipher, group.len(), input, |k, block| {
            let parities = parities.chunks_exact_mut(record_len);
            for (parity, offset) in parities.zip(offsets(block, mask)) {
                let start = usize::from(offset) * record_len;
                xor_into(parity, &group.partition(k)[start..start + record_len]);
            }
        });
    }
}

fn xor_into(sum: &mut [u8], record: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(record) {
        *sum ^= byte;
    }
}

/// Calls `take` with the place of each hint among those with cutoffs, the place of each partition
/// in the group, the offset there, and whether the hint selects it.
fn for_each_record(
    key: &[u8; 16],
    hints: &Hints<'_>,
    first_partition: u32,
    group: &PartitionGroup,
    mut take: impl FnMut(usize, usize, usize, bool),
) {
    let cipher = Aes128::new(&Array(*key));
    let mask = (group.records_per_partition() - 1) as u16;
    for (octet, cutoffs) in hints.cutoffs.iter().enumerate() {
        let first = OFFSETS_PER_BLOCK * octet;
        let id = hints.first_id + first as u32;
        for k in 0..group.len() {
            let partition = first_partition + k as u32;
            let low = select_input(id, partition);
            let high = select_input(id + SELECTS_PER_BLOCK as u32, partition);
            let mut blocks = [low, high, offset_input(id, partition)];
            cipher.encrypt_blocks(&mut blocks);
            let [low, high, last] = &blocks;
            let selects = selects(low).into_iter().chain(selects(high));
            let hints = selects.zip(cutoffs).zip(offsets(last, mask)).enumerate();
            for (i, ((select, &cutoff), offset)) in hints {
                take(first + i, k, usize::from(offset), select < cutoff);
            }
        }
    }
}

/// See [`Kernels::subset_offset_matches`](crate::Kernels::subset_offset_matches).
pub(crate) fn offset_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    first_word: u32,
    matches: &mut [u64],
) {
    const BLOCKS: usize = u64::BITS as usize / OFFSETS_PER_BLOCK;
    let cipher = Aes128::new(&Array(*key));
    matches.fill(0);
    let first = BLOCKS as u32 * first_word;
    let input = |i: usize| input(first + i as u32, partition, OFFSET_TAG);
    for_each_block(&cipher, BLOCKS * matches.len(), input, |i, block| {
        for (b, candidate) in offsets(block, mask).into_iter().enumerate() {
            let place = OFFSETS_PER_BLOCK * (i % BLOCKS) + b;
            matches[i / BLOCKS] |= u64::from(candidate == offset) << place;
        }
    });
}

/// See [`Kernels::subset_group_matches`](crate::Kernels::subset_group_matches).
pub(crate) fn group_matches(
    key: &[u8; 16],
    partition: u32,
    offset: u16,
    mask: u16,
    groups: &[u32],
    matches: &mut [u8],
) {
    let cipher = Aes128::new(&Array(*key));
    let input = |i: usize| input(groups[i], partition, OFFSET_TAG);
    for_each_block(&cipher, groups.len(), input, |i, block| {
        let candidates = offsets(block, mask).into_iter().enumerate();
        matches[i] = candidates.fold(0, |bits, (b, found)| bits | u8::from(found == offset) << b);
    });
}

/// See [`Kernels::subset_equal_words`](crate::Kernels::subset_equal_words).
pub(crate) fn equal_words(words: &[u32], wanted: u32, matches: &mut [u64]) {
    equal(words, wanted, matches);
}

/// See [`Kernels::subset_equal_halfwords`](crate::Kernels::subset_equal_halfwords).
pub(crate) fn equal_halfwords(words: &[u16], wanted: u16, matches: &mut [u64]) {
    equal(words, wanted, matches);
}

fn equal<Word: Copy + Eq>(words: &[Word], wanted: Word, matches: &mut [u64]) {
    for (words, matches) in words.chunks(64).zip(matches) {
        let bits = words.iter().enumerate();
        *matches = bits.fold(0, |bits, (b, word)| bits | u64::from(*word == wanted) << b);
    }
}

/// See [`Kernels::subset_selects_at`](crate::Kernels::subset_selects_at).
pub(crate) fn selects_at(key: &[u8; 16], partition: u32, ids: &[u32], out: &mut [u32]) {
    let cipher = Aes128::new(&Array(*key));
    let input = |i: usize| select_input(ids[i], partition);
    for_each_block(&cipher, ids.len(), input, |i, block| {
        let selects = selects(block);
        out[i] = select_lane(&selects, ids[i]);
    });
}

/// See [`Kernels::subset_rebuild`](crate::Kernels::subset_rebuild).
pub(crate) fn rebuild(
    key: &[u8; 16],
    id: u32,
    mask: u16,
    selects_out: &mut [u32],
    offsets_out: &mut [u16],
) {
    let cipher = Aes128::new(&Array(*key));
    let input = |k: usize| select_input(id, k as u32);
    for_each_block(&cipher, selects_out.len(), input, |k, block| {
        selects_out[k] = select_lane(&selects(block), id);
    });
    let input = |k: usize| offset_input(id, k as u32);
    for_each_block(&cipher, offsets_out.len(), input, |k, block| {
        let offsets = offsets(block, mask).map(u32::from);
        offsets_out[k] = select_lane(&offsets, id) as u16;
    });
}

/// Element `id % N`, read without an address that depends on the id.
fn select_lane<const N: usize>(lanes: &[u32; N], id: u32) -> u32 {
    let wanted = id % N as u32;
    let lane = |(i, &lane): (usize, &u32)| lane & 0u32.wrapping_sub(u32::from(i as u32 == wanted));
    lanes.iter().enumerate().map(lane).fold(0, |a, b| a | b)
}
