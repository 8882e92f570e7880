//! From a row to the root: what servers compute once for all rows, and clients for the one they
//! receive.

use super::ApirMatrixParameters;
use privet_core::commit::merkle::{MerkleHasher, Node, ZERO};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// Bytes of a node.
pub(super) const NODE_LEN: usize = size_of::<Node>();

/// The tree over a table in rows.
pub(super) struct RowTree {
    hasher: MerkleHasher,
    record_len: usize,
    row_records_log2: u32,
}

impl RowTree {
    pub(super) fn new(parameters: &ApirMatrixParameters, kernels: Kernels) -> Self {
        Self {
            hasher: MerkleHasher::new(kernels),
            record_len: parameters.shape().record_len() as usize,
            row_records_log2: parameters.row_records_log2(),
        }
    }

    /// The nodes of consecutive rows, computed from the records of each. The first row is
    /// `first_row`. Takes several rows together, because many hashes at a time are faster than one
    /// after the other.
    pub(super) fn row_nodes<'a>(
        &self,
        first_row: u64,
        rows: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Zeroizing<Vec<Node>> {
        let row_records = 1 << self.row_records_log2;
        let mut nodes = Zeroizing::new(vec![ZERO; rows.len() * row_records]);
        for ((row, records), leaves) in
            (first_row..).zip(rows).zip(nodes.chunks_exact_mut(row_records))
        {
            self.hasher.leaves(row << self.row_records_log2, records, self.record_len, leaves);
        }
        for _ in 0..self.row_records_log2 {
            nodes = Zeroizing::new(self.parents(&nodes));
        }
        nodes
    }

    /// The nodes of the level above.
    pub(super) fn parents(&self, nodes: &[Node]) -> Vec<Node> {
        let mut parents = vec![ZERO; nodes.len().div_ceil(2)];
        self.hasher.parents(nodes, &mut parents);
        parents
    }

    /// The root to which a row of some number leads: its records, and behind them its path. Takes
    /// the same steps for every number.
    pub(super) fn root(&self, row: u64, bytes: &[u8]) -> Node {
        let (records, path) = bytes.split_at(self.record_len << self.row_records_log2);
        let nodes = self.row_nodes(row, [records].into_iter());
        self.hasher.root_of_path(row, nodes[0], path.as_chunks().0)
    }
}
