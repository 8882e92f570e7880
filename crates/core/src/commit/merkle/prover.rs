//! The server's side: opens records, and follows edits.

use super::tree::new_nodes;
use super::verifier::write_cap_node;
use super::{Levels, Merkle, MerkleHasher, Node, ZERO, hasher};
use crate::commit::{Changed, Prover, VectorCommitment as _, Vectors};
use crate::{Error, Result};
use privet_kernels::{HugeBuffer, Kernels};

/// Vectors opened, or nodes recomputed, at a time.
const AT_ONCE: usize = 128;

/// The trees of all vectors, without the leaves and without the nodes that a client has.
pub struct MerkleProver {
    merkle: Merkle,
    kernels: Kernels,
    hasher: MerkleHasher,
    levels: Levels,
    /// The nodes of `levels`, for each vector in turn.
    pub(super) nodes: HugeBuffer<u8>,
}

impl MerkleProver {
    pub(super) fn new(merkle: Merkle, table: &[u8], kernels: Kernels) -> Result<Self> {
        check_table(merkle.vectors, table)?;
        let levels = merkle.kept_levels();
        let mut nodes = new_nodes(merkle.vectors.count() as usize * levels.nodes())?;
        let hasher = MerkleHasher::new(kernels);
        if levels.nodes() > 0 {
            let trees = nodes.as_chunks_mut().0.chunks_exact_mut(levels.nodes());
            for (vector, tree) in (0..merkle.vectors.count()).zip(trees) {
                let records = merkle.records(table, vector);
                let first_index = merkle.first_index(vector);
                levels.fill(&hasher, first_index, records, merkle.vectors.record_len(), tree);
            }
        }
        Ok(Self { merkle, kernels, hasher, levels, nodes })
    }

    /// The leaves of records at any places.
    fn leaves(&self, table: &[u8], indices: &[u64], out: &mut [Node]) {
        let len = self.merkle.vectors.record_len();
        // Short records are collected and hashed side by side.
        if len > hasher::SHORT_RECORD_LEN {
            for (leaf, &index) in out.iter_mut().zip(indices) {
                let record = &table[index as usize * len..][..len];
                *leaf = self.hasher.leaf(index, record);
            }
            return;
        }
        let mut records = vec![0; indices.len() * len];
        self.gather(table, len, indices, &mut records);
        self.hasher.leaves_at(indices, &records, len, out);
    }

    fn gather(&self, from: &[u8], len: usize, positions: &[u64], out: &mut [u8]) {
        let gathered = self.kernels.gather_records(from, len, positions, out);
        gathered.expect("positions are computed from offsets below a vector's length");
    }

    /// The nodes at `height` in the given places, computed from their children.
    fn compute(&self, table: &[u8], height: u32, places: &[NodePosition], out: &mut [Node]) {
        let vector_len = self.merkle.vectors.vector_len();
        if height == 0 {
            let indices: Vec<u64> = places.iter().map(|place| place.index(vector_len)).collect();
            return self.leaves(table, &indices, out);
        }
        let pair = |place: &NodePosition| {
            [0, 1].map(|side| NodePosition { position: 2 * place.position + side, ..*place })
        };
        let children: Vec<NodePosition> = places.iter().flat_map(pair).collect();
        let mut nodes = vec![ZERO; children.len()];
        if height == 1 {
            // A right child may lie beyond the end. Then its leaf is computed from another record
            // first, and replaced later.
            let inside = |place: &NodePosition| NodePosition {
                position: place.position.min(vector_len - 1),
                ..*place
            };
            let indices: Vec<u64> =
                children.iter().map(|place| inside(place).index(vector_len)).collect();
            self.leaves(table, &indices, &mut nodes);
            for (node, _) in
                nodes.iter_mut().zip(&children).filter(|(_, place)| place.position >= vector_len)
            {
                *node = ZERO;
            }
        } else {
            for (node, place) in nodes.iter_mut().zip(&children) {
                let tree = self.tree(place.vector);
                *node = self.levels.node(tree, height - 1, place.position as usize);
            }
        }
        self.hasher.parents(&nodes, out);
    }

    fn tree(&self, vector: u32) -> &[Node] {
        let len = self.levels.nodes();
        &self.nodes.as_chunks().0[vector as usize * len..][..len]
    }

    /// Recomputes the nodes above the given leaves, and appends those of the cap to `changes`.
    /// `places` are in order, without repetitions.
    fn follow_edits(&mut self, table: &[u8], mut places: Vec<NodePosition>, changes: &mut Vec<u8>) {
        let cap_height = self.merkle.cap_height();
        for height in cap_height.min(1)..=cap_height {
            if height > 0 {
                places.iter_mut().for_each(|place| place.position >>= 1);
                places.dedup();
            }
            for places in places.chunks(AT_ONCE) {
                let mut nodes = [ZERO; AT_ONCE];
                self.compute(table, height, places, &mut nodes[..places.len()]);
                for (place, node) in places.iter().zip(&nodes) {
                    if height == cap_height {
                        write_cap_node(changes, place.vector, place.position, node);
                    } else {
                        let tree = place.vector as usize * self.levels.nodes();
                        let start = tree + self.levels.at(height).start;
                        self.nodes.as_chunks_mut().0[start + place.position as usize] = *node;
                    }
                }
            }
        }
    }

    /// Makes the trees of the vectors from `first` on, and appends their caps to `changes`.
    fn append_vectors(&mut self, table: &[u8], first: u32, changes: &mut Vec<u8>) {
        let levels = self.merkle.levels_to_cap();
        let mut tree = vec![ZERO; levels.nodes()];
        for vector in first..self.merkle.vectors.count() {
            let records = self.merkle.records(table, vector);
            let (first_index, len) =
                (self.merkle.first_index(vector), self.merkle.vectors.record_len());
            levels.fill(&self.hasher, first_index, records, len, &mut tree);
            for (position, node) in (0..).zip(&tree[levels.at(self.merkle.cap_height())]) {
                write_cap_node(changes, vector, position, node);
            }
            let kept = self.levels.nodes();
            self.nodes.as_chunks_mut().0[vector as usize * kept..][..kept]
                .copy_from_slice(&tree[..kept]);
        }
    }
}

impl Prover for MerkleProver {
    fn announcement(&self) -> Vec<u8> {
        Vec::new()
    }

    /// # Panics
    /// If lengths or offsets are not as prescribed. The code that parses queries has checked them.
    fn open(&self, _: u8, table: &[u8], offsets: &[u16], _: &[u8], proof: &mut [u8]) {
        let (vectors, height) = (self.merkle.vectors, self.merkle.cap_height() as usize);
        let (vector_len, kept) = (vectors.vector_len(), self.levels.nodes() as u64);
        assert_eq!(offsets.len(), vectors.count() as usize, "an offset for each vector");
        assert!(offsets.iter().all(|&offset| u32::from(offset) < vector_len), "offsets in vectors");
        assert_eq!(proof.len(), self.merkle.proof_len(), "a proof of the prescribed length");
        if height == 0 {
            return;
        }
        let paths = proof.as_chunks_mut::<32>().0.chunks_mut(AT_ONCE * height);
        let groups = (0..).step_by(AT_ONCE).zip(offsets.chunks(AT_ONCE));
        for ((first, offsets), paths) in groups.zip(paths) {
            if kept > 0 {
                // If a sibling is not kept, another node is copied here first, and replaced below.
                let positions = (first..).zip(offsets).flat_map(|(vector, &offset)| {
                    (0..height as u32).map(move |height| {
                        let level = self.levels.at(height.max(1));
                        let sibling = usize::from(offset) >> height ^ 1;
                        vector * kept + (level.start + sibling.min(level.len() - 1)) as u64
                    })
                });
                let positions: Vec<u64> = positions.collect();
                self.gather(&self.nodes, 32, &positions, paths.as_flattened_mut());
            }
            let inside = |offset: u16| u32::from(offset ^ 1).min(vector_len - 1);
            let indices: Vec<u64> = (first..)
                .zip(offsets)
                .map(|(vector, &offset)| vector * u64::from(vector_len) + u64::from(inside(offset)))
                .collect();
            let mut leaves = [ZERO; AT_ONCE];
            self.leaves(table, &indices, &mut leaves[..offsets.len()]);
            for ((path, leaf), &offset) in paths.chunks_mut(height).zip(leaves).zip(offsets) {
                path[0] = leaf;
                for (height, sibling) in (0..).zip(path) {
                    let end = super::width(vector_len.into(), height);
                    if u64::from(offset >> height ^ 1) >= end {
                        *sibling = ZERO;
                    }
                }
            }
        }
    }

    fn copied(&self) -> Result<Self> {
        let Self { merkle, kernels, hasher, levels, nodes } = self;
        let mut copy = new_nodes(nodes.len() / size_of::<Node>())?;
        copy.copy_from_slice(nodes);
        let levels = levels.clone();
        Ok(Self { merkle: *merkle, kernels: *kernels, hasher: *hasher, levels, nodes: copy })
    }

    /// The nodes of the cap above every record of `changed`, and all those of new vectors, in
    /// order, each as `vector (u32) ‖ position in the cap (u32) ‖ node`.
    fn update(&mut self, after: Vectors, table: &[u8], changed: &[Changed<'_>]) -> Result<Vec<u8>> {
        let before = self.merkle.vectors;
        let grown = self.merkle.grown(after)?;
        check_table(after, table)?;
        if changed.iter().any(|changed| changed.index >= after.shape().records()) {
            return Err(Error::api_misuse("a record beyond the table's end cannot have changed"));
        }
        if after.count() > before.count() {
            let mut nodes = new_nodes(after.count() as usize * self.levels.nodes())?;
            nodes[..self.nodes.len()].copy_from_slice(&self.nodes);
            self.nodes = nodes;
        }
        self.merkle = grown;

        let places =
            changed.iter().map(|changed| NodePosition::of(changed.index, after.vector_len()));
        let mut places: Vec<NodePosition> =
            places.filter(|place| place.vector < before.count()).collect();
        places.sort_unstable();
        places.dedup();
        let mut changes = Vec::new();
        self.follow_edits(table, places, &mut changes);
        self.append_vectors(table, before.count(), &mut changes);
        Ok(changes)
    }

    fn resident_bytes(&self) -> u64 {
        self.nodes.len() as u64
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.nodes]
    }
}

/// A node of some height.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NodePosition {
    vector: u32,
    position: u32,
}

impl NodePosition {
    /// The leaf of a record.
    fn of(index: u64, vector_len: u32) -> Self {
        let vector_len = u64::from(vector_len);
        Self { vector: (index / vector_len) as u32, position: (index % vector_len) as u32 }
    }

    /// The number of the record whose leaf this is.
    fn index(self, vector_len: u32) -> u64 {
        u64::from(self.vector) * u64::from(vector_len) + u64::from(self.position)
    }
}

fn check_table(vectors: Vectors, table: &[u8]) -> Result<()> {
    if table.len() as u64 == vectors.padded_bytes() {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "{} vectors of {} bytes are committed to, not {} bytes",
        vectors.count(),
        vectors.vector_bytes(),
        table.len()
    )))
}
