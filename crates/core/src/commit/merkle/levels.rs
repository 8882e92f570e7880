//! Which nodes a tree has, and some of its levels side by side in memory.

use super::{MerkleHasher, Node, ZERO};
use std::ops::{Range, RangeInclusive};

/// How many leaves are hashed before the level above them, if leaves are not kept.
const LEAVES_AT_ONCE: usize = 512;

/// The levels above the leaves of a tree over `leaves` leaves: the logarithm, rounded up. 0 for one
/// leaf, which is its own root.
pub fn depth(leaves: u64) -> u32 {
    u64::BITS - leaves.saturating_sub(1).leading_zeros()
}

/// How many nodes at height `height` (leaves are at height 0) have a leaf below them. All others of
/// that height are [`ZERO`].
pub fn width(leaves: u64, height: u32) -> u64 {
    match leaves {
        0 => 0,
        _ => ((leaves - 1) >> height.min(63)) + 1,
    }
}

/// The places of the nodes of some consecutive heights of a tree, the lowest height first.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    leaves: usize,
    lowest: u32,
    /// The start of each height from the lowest on, and the end of the last.
    starts: Vec<usize>,
}

impl Levels {
    /// The given heights of a tree over `leaves` leaves; perhaps none.
    pub(super) fn new(leaves: usize, heights: RangeInclusive<u32>) -> Self {
        let lowest = *heights.start();
        let mut starts = vec![0];
        let mut end = 0;
        for height in heights {
            end += width(leaves as u64, height) as usize;
            starts.push(end);
        }
        Self { leaves, lowest, starts }
    }

    /// Nodes in all.
    pub(super) fn nodes(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The nodes of one height, which must be one of these heights.
    pub(super) fn at(&self, height: u32) -> Range<usize> {
        let level = (height - self.lowest) as usize;
        self.starts[level]..self.starts[level + 1]
    }

    /// A node, or [`ZERO`] if there is nothing below it.
    pub(super) fn node(&self, nodes: &[Node], height: u32, position: usize) -> Node {
        nodes[self.at(height)].get(position).copied().unwrap_or(ZERO)
    }

    /// Computes the nodes from the records. The first record has number `first_index` in the table.
    pub(super) fn fill(
        &self,
        hasher: &MerkleHasher,
        first_index: u64,
        records: &[u8],
        record_len: usize,
        nodes: &mut [Node],
    ) {
        let heights = self.lowest..self.lowest + self.starts.len() as u32 - 1;
        for height in heights {
            let level = self.at(height);
            let (below, nodes) = nodes.split_at_mut(level.start);
            let level = &mut nodes[..level.len()];
            match height {
                0 => hasher.leaves(first_index, records, record_len, level),
                1 if self.lowest == 1 => {
                    self.fill_above_leaves(hasher, first_index, records, record_len, level);
                }
                _ => hasher.parents(&below[self.at(height - 1)], level),
            }
        }
    }

    /// Height 1 without keeping height 0.
    fn fill_above_leaves(
        &self,
        hasher: &MerkleHasher,
        first_index: u64,
        records: &[u8],
        record_len: usize,
        level: &mut [Node],
    ) {
        let mut leaves = [ZERO; LEAVES_AT_ONCE];
        let mut first = 0;
        for parents in level.chunks_mut(LEAVES_AT_ONCE / 2) {
            let count = LEAVES_AT_ONCE.min(self.leaves - first);
            let records = &records[first * record_len..][..count * record_len];
            hasher.leaves(first_index + first as u64, records, record_len, &mut leaves[..count]);
            hasher.parents(&leaves[..count], parents);
            first += count;
        }
    }
}
