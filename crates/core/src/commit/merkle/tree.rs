//! One tree over a whole table, all of it in memory.

use super::levels::{Levels, depth};
use super::{MerkleHasher, Node};
use crate::{Error, Result};
use privet_kernels::HugeBuffer;

/// One tree over all records of a table, with all its nodes: about 64 bytes for each record.
pub struct Tree {
    leaves: u64,
    levels: Levels,
    nodes: HugeBuffer<u8>,
}

impl Tree {
    /// The tree over `records`, `record_len` bytes each. A table has at least one.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if `records` is not one or more whole records;
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    pub fn new(hasher: &MerkleHasher, records: &[u8], record_len: usize) -> Result<Self> {
        let count = records.len().checked_div(record_len).unwrap_or(0);
        if count == 0 || count * record_len != records.len() {
            return Err(Error::api_misuse("a tree is made over one or more whole records"));
        }
        let leaves = count as u64;
        let levels = Levels::new(count, 0..=depth(leaves));
        let mut nodes = new_nodes(levels.nodes())?;
        levels.fill(hasher, 0, records, record_len, nodes.as_chunks_mut().0);
        Ok(Self { leaves, levels, nodes })
    }

    /// Levels above the leaves, and so the length of a path.
    pub fn depth(&self) -> u32 {
        depth(self.leaves)
    }

    /// The node above all records.
    pub fn root(&self) -> Node {
        self.levels.node(self.nodes.as_chunks().0, self.depth(), 0)
    }

    /// The siblings on the way from record number `index` to the root, the leaf's own first, for
    /// [`MerkleHasher::root_of_path`].
    ///
    /// # Panics
    /// If there is no such record.
    pub fn path(&self, index: u64) -> impl Iterator<Item = Node> + '_ {
        assert!(index < self.leaves, "a path begins at a record of the table");
        let nodes = self.nodes.as_chunks().0;
        (0..self.depth())
            .map(move |height| self.levels.node(nodes, height, (index >> height ^ 1) as usize))
    }
}

/// Memory for nodes.
pub(super) fn new_nodes(count: usize) -> Result<HugeBuffer<u8>> {
    HugeBuffer::new_zeroed(count.saturating_mul(size_of::<Node>()))
        .map_err(|error| Error::unavailable("no memory for the hash tree").caused_by(error))
}
