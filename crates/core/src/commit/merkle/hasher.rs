//! How leaves and inner nodes are hashed.

use super::{Node, ZERO};
use blake3::Hasher;
use privet_kernels::hash_lanes::MAX_INPUT_LEN;
use privet_kernels::{Kernels, Numbers};
use subtle::{Choice, ConditionallySelectable};

/// Bytes of a leaf's input before its record.
const INDEX_LEN: usize = 8;

/// The longest record that is hashed side by side with others.
pub(super) const SHORT_RECORD_LEN: usize = MAX_INPUT_LEN - INDEX_LEN;

/// The number of paths that are hashed together: enough to fill the lanes, and few enough for the
/// stack and the first-level cache.
const PATHS: usize = 128;

/// Hashes leaves and inner nodes, many at a time.
///
/// * A *leaf* is keyed BLAKE3 of `index (u64, little-endian) ‖ record` under the key
///   `derive_key("privet 2026-11 merkle leaf", "")`, where the index is the number of the record in
///   the whole table. So no record can replace another, in any tree.
/// * An *inner node* is keyed BLAKE3 of `left ‖ right` under the key `derive_key("privet 2026-11
///   merkle node", "")`.
///
/// The two keys are public constants. They separate leaves and inner nodes: with different keys,
/// the hash is two unrelated functions, so nobody can present an inner node as a leaf. A byte in
/// front of the input would do the same, but the input of an inner node would then have 65 bytes,
/// and take twice the work.
#[derive(Clone, Copy, Debug)]
pub struct MerkleHasher {
    kernels: Kernels,
    leaf_key: [u8; 32],
    node_key: [u8; 32],
}

impl MerkleHasher {
    /// A hasher that uses `kernels`.
    pub fn new(kernels: Kernels) -> Self {
        Self {
            kernels,
            leaf_key: blake3::derive_key("privet 2026-11 merkle leaf", &[]),
            node_key: blake3::derive_key("privet 2026-11 merkle node", &[]),
        }
    }

    /// The leaf of record number `index` of the table.
    pub fn leaf(&self, index: u64, record: &[u8]) -> Node {
        let mut hasher = Hasher::new_keyed(&self.leaf_key);
        *hasher.update(&index.to_le_bytes()).update(record).finalize().as_bytes()
    }

    /// The leaves of consecutive records of the table. The first record has number `first_index`.
    ///
    /// # Panics
    /// If `records` is not one record of `record_len` bytes for each node of `out`.
    pub fn leaves(&self, first_index: u64, records: &[u8], record_len: usize, out: &mut [Node]) {
        self.hash_leaves(Numbers::From(first_index), records, record_len, out, |i| {
            first_index + i as u64
        });
    }

    /// The leaves of any records of the table, which have the numbers `indices`.
    ///
    /// # Panics
    /// If `records` is not one record of `record_len` bytes for each node of `out`, or there are
    /// not as many `indices`.
    pub fn leaves_at(&self, indices: &[u64], records: &[u8], record_len: usize, out: &mut [Node]) {
        assert_eq!(indices.len(), out.len(), "an index for each leaf");
        self.hash_leaves(Numbers::Each(indices), records, record_len, out, |i| indices[i]);
    }

    fn hash_leaves(
        &self,
        numbers: Numbers<'_>,
        records: &[u8],
        record_len: usize,
        out: &mut [Node],
        index: impl Fn(usize) -> u64,
    ) {
        if record_len <= SHORT_RECORD_LEN {
            return self.kernels.blake3_keyed_numbered(
                &self.leaf_key,
                numbers,
                records,
                record_len,
                out,
            );
        }
        let bytes = out.len().checked_mul(record_len);
        assert_eq!(Some(records.len()), bytes, "a record for each leaf");
        for (i, (record, leaf)) in records.chunks_exact(record_len).zip(out).enumerate() {
            *leaf = self.leaf(index(i), record);
        }
    }

    /// The node above `left` and `right`.
    pub fn parent(&self, left: &Node, right: &Node) -> Node {
        *Hasher::new_keyed(&self.node_key).update(left).update(right).finalize().as_bytes()
    }

    /// The nodes above `children`, one for every two. If the number of children is odd, the last
    /// node's right child is [`ZERO`].
    ///
    /// # Panics
    /// If `out` does not have half as many nodes as `children`, rounded up.
    pub fn parents(&self, children: &[Node], out: &mut [Node]) {
        assert_eq!(children.len().div_ceil(2), out.len(), "half as many parents as children");
        let (pairs, rest) = children.as_chunks::<2>();
        let (whole, last) = out.split_at_mut(pairs.len());
        self.kernels.blake3_keyed_many(
            &self.node_key,
            children[..2 * pairs.len()].as_flattened(),
            64,
            whole,
        );
        if let ([left], [last]) = (rest, last) {
            *last = self.parent(left, &ZERO);
        }
    }

    /// The node above a leaf, as many levels higher as there are `siblings`: the root if all are
    /// given. The siblings begin with the leaf's own and go up. `position` is the leaf's place in
    /// its tree.
    ///
    /// Takes the same steps for every position.
    pub fn root_of_path(&self, position: u64, leaf: Node, siblings: &[Node]) -> Node {
        let mut nodes = [leaf];
        self.climb(&[position], &mut nodes, siblings.as_flattened());
        nodes[0]
    }

    /// The same for many leaves: each of `nodes` is replaced by the node above it. `paths` holds
    /// the siblings of all leaves, path after path, of equal length.
    ///
    /// # Panics
    /// If there are not as many positions as nodes, or `paths` does not have paths of equal length
    /// for them.
    pub fn climb(&self, positions: &[u64], nodes: &mut [Node], paths: &[u8]) {
        assert_eq!(positions.len(), nodes.len(), "a position for each node");
        let (siblings, rest) = paths.as_chunks::<32>();
        let height = siblings.len().checked_div(nodes.len()).unwrap_or(0);
        assert!(rest.is_empty() && height * nodes.len() == siblings.len(), "paths of equal length");
        if height == 0 {
            return;
        }
        let groups = positions.chunks(PATHS).zip(nodes.chunks_mut(PATHS));
        for ((positions, nodes), siblings) in groups.zip(siblings.chunks(PATHS * height)) {
            let mut pairs = [[ZERO; 2]; PATHS];
            let pairs = &mut pairs[..nodes.len()];
            for level in 0..height {
                for (path, pair) in pairs.iter_mut().enumerate() {
                    let is_right = Choice::from((positions[path] >> level.min(63) & 1) as u8);
                    *pair = ordered(&nodes[path], &siblings[path * height + level], is_right);
                }
                self.parents(pairs.as_flattened(), nodes);
            }
        }
    }
}

/// `node` and `sibling`, in the other order if `node` is the right one. There is no branch: on a
/// client, the order shows which record was asked for.
fn ordered(node: &Node, sibling: &Node, node_is_right: Choice) -> [Node; 2] {
    let mut pair = [ZERO; 2];
    let words = node.as_chunks::<8>().0.iter().zip(sibling.as_chunks::<8>().0);
    for (word, (node, sibling)) in words.enumerate() {
        let (node, sibling) = (u64::from_le_bytes(*node), u64::from_le_bytes(*sibling));
        let left = u64::conditional_select(&node, &sibling, node_is_right);
        let right = node ^ sibling ^ left;
        pair[0][8 * word..][..8].copy_from_slice(&left.to_le_bytes());
        pair[1][8 * word..][..8].copy_from_slice(&right.to_le_bytes());
    }
    pair
}
