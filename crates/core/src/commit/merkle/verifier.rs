//! The client's side: computes the cap while the table streams past, then checks answers against
//! it.
//!
//! A check takes the same steps, whatever was asked for and whatever is wrong. Only the choice of
//! the nodes of the cap that it reads follows the offsets, and no server sees that.

use super::{Levels, Merkle, MerkleHasher, Node, ZERO};
use crate::codec::Reader;
use crate::commit::{Gathering, Opened, Rejected, VectorCommitment as _, Vectors, Verifier};
use crate::{Error, Result};
use privet_kernels::Kernels;

/// Records checked at a time.
const AT_ONCE: usize = 128;

/// Bytes of a node of the cap in an update, with its place.
const CHANGE_LEN: usize = 8 + size_of::<Node>();

/// Computes the cap.
pub struct MerkleGathering {
    merkle: Merkle,
    hasher: MerkleHasher,
    levels: Levels,
    /// The tree of one vector.
    tree: Vec<Node>,
    /// The cap of the vectors so far.
    cap: Vec<Node>,
    absorbed: u32,
}

impl MerkleGathering {
    pub(super) fn new(merkle: Merkle, kernels: Kernels) -> Result<Self> {
        let levels = merkle.levels_to_cap();
        let mut tree = new_vec(levels.nodes() as u64)?;
        tree.resize(levels.nodes(), ZERO);
        let cap = new_vec(merkle.cap_nodes())?;
        Ok(Self { merkle, hasher: MerkleHasher::new(kernels), levels, tree, cap, absorbed: 0 })
    }

    pub(super) fn resume(merkle: Merkle, bytes: &[u8], kernels: Kernels) -> Result<Self> {
        let mut gathering = Self::new(merkle, kernels)?;
        let mut reader = Reader::new("an unfinished cap", bytes);
        gathering.absorbed = reader.u32().map_err(damaged)?;
        if gathering.absorbed > merkle.vectors.count() {
            return Err(Error::corrupted("an unfinished cap has more vectors than the table"));
        }
        let nodes = gathering.absorbed as usize * merkle.cap_width() as usize;
        let nodes = reader.bytes(nodes * size_of::<Node>()).map_err(damaged)?;
        gathering.cap.extend(nodes.as_chunks().0);
        reader.finish().map_err(damaged)?;
        Ok(gathering)
    }
}

impl Gathering for MerkleGathering {
    type Verifier = MerkleVerifier;

    /// # Panics
    /// If it is not the next vector, or does not have a vector's length.
    fn absorb(&mut self, number: u32, records: &[u8]) {
        let vectors = self.merkle.vectors;
        assert!(number == self.absorbed && number < vectors.count(), "vectors come in order");
        assert_eq!(records.len() as u64, vectors.vector_bytes(), "vectors come whole");
        let first_index = self.merkle.first_index(number);
        self.levels.fill(&self.hasher, first_index, records, vectors.record_len(), &mut self.tree);
        self.cap.extend_from_slice(&self.tree[self.levels.at(self.merkle.cap_height())]);
        self.absorbed += 1;
    }

    /// `vectors so far (u32) ‖ their nodes of the cap`
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.absorbed.to_le_bytes());
        out.extend_from_slice(self.cap.as_flattened());
    }

    fn finish(self, announcement: &[u8]) -> Result<MerkleVerifier> {
        if !announcement.is_empty() {
            return Err(Error::peer_misbehaved(
                "a server announced commitments, which are computed from the table",
            ));
        }
        if self.absorbed < self.merkle.vectors.count() {
            return Err(Error::api_misuse("the table has not streamed past entirely"));
        }
        Ok(MerkleVerifier { merkle: self.merkle, hasher: self.hasher, cap: self.cap })
    }
}

/// Holds the cap.
pub struct MerkleVerifier {
    merkle: Merkle,
    hasher: MerkleHasher,
    /// The nodes of the cap, for each vector in turn.
    pub(super) cap: Vec<Node>,
}

impl MerkleVerifier {
    pub(super) fn read(merkle: Merkle, bytes: &[u8], kernels: Kernels) -> Result<Self> {
        if bytes.len() as u64 != merkle.verifier_len() {
            return Err(Error::corrupted(format!(
                "the hashes of a table are {} bytes, not {}",
                merkle.verifier_len(),
                bytes.len()
            )));
        }
        let mut cap = new_vec(merkle.cap_nodes())?;
        cap.extend_from_slice(bytes.as_chunks().0);
        Ok(Self { merkle, hasher: MerkleHasher::new(kernels), cap })
    }

    /// Whether anything in an answer does not belong to the cap. Checks all of the answer, even
    /// after an error.
    fn is_wrong(&self, answer: Opened<'_>) -> bool {
        let Opened { offsets, records, proof } = answer;
        let (vectors, height) = (self.merkle.vectors, self.merkle.cap_height());
        let (record_len, vector_len) = (vectors.record_len(), vectors.vector_len());
        if offsets.len() != vectors.count() as usize
            || Some(records.len()) != offsets.len().checked_mul(record_len)
            || proof.len() != self.merkle.proof_len()
        {
            return true;
        }
        let path_len = height as usize * size_of::<Node>();
        let mut difference = 0;
        for (group, offsets) in offsets.chunks(AT_ONCE).enumerate() {
            let (first, count) = (group * AT_ONCE, offsets.len());
            let (mut positions, mut indices) = ([0; AT_ONCE], [0; AT_ONCE]);
            for (i, &offset) in offsets.iter().enumerate() {
                positions[i] = u64::from(offset);
                indices[i] = self.merkle.first_index((first + i) as u32) + u64::from(offset);
                difference |= u8::from(u32::from(offset) >= vector_len);
            }
            let mut nodes = [ZERO; AT_ONCE];
            let nodes = &mut nodes[..count];
            let records = &records[first * record_len..][..count * record_len];
            self.hasher.leaves_at(&indices[..count], records, record_len, nodes);
            let paths = &proof[first * path_len..][..count * path_len];
            self.hasher.climb(&positions[..count], nodes, paths);
            let width = self.merkle.cap_width() as usize;
            let caps = self.cap[first * width..].chunks_exact(width);
            for ((node, &offset), cap) in nodes.iter().zip(offsets).zip(caps) {
                let expected = cap.get(usize::from(offset) >> height).unwrap_or(&ZERO);
                let bytes = node.iter().zip(expected);
                difference |= bytes.fold(0, |sum, (found, expected)| sum | (found ^ expected));
            }
        }
        difference != 0
    }
}

impl Verifier for MerkleVerifier {
    fn verify(&self, answers: [Opened<'_>; 2]) -> std::result::Result<(), Rejected> {
        let servers = answers.map(|answer| self.is_wrong(answer));
        if servers == [false; 2] { Ok(()) } else { Err(Rejected { servers }) }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.cap.as_flattened());
    }

    fn update(&mut self, after: Vectors, commitments: &[u8]) -> Result<()> {
        let grown = self.merkle.grown(after)?;
        let changes = read_changes(&self.merkle, &grown, commitments)?;
        let added = grown.cap_nodes() as usize - self.cap.len();
        self.cap.try_reserve_exact(added).map_err(|error| no_memory().caused_by(error))?;
        self.cap.resize(grown.cap_nodes() as usize, ZERO);
        let width = grown.cap_width() as usize;
        for change in changes {
            self.cap[change.vector as usize * width + change.position as usize] = change.node;
        }
        self.merkle = grown;
        Ok(())
    }
}

/// The change of one node of the cap in an update.
struct CapChange {
    vector: u32,
    position: u32,
    node: Node,
}

/// Writes a [`CapChange`].
pub(super) fn write_cap_node(out: &mut Vec<u8>, vector: u32, position: u32, node: &Node) {
    out.extend(vector.to_le_bytes());
    out.extend(position.to_le_bytes());
    out.extend(node);
}

/// Reads the changes of an update. Checks that they are nodes of the cap, in order, each at most
/// once, and that they include every node of the new vectors.
fn read_changes<'a>(
    before: &Merkle,
    after: &Merkle,
    bytes: &'a [u8],
) -> Result<impl Iterator<Item = CapChange> + 'a> {
    let refused = |what: &str| {
        Error::peer_misbehaved(format!(
            "an update of the table's hashes that both servers sent {what}"
        ))
    };
    let (changes, rest) = bytes.as_chunks::<CHANGE_LEN>();
    if !rest.is_empty() {
        return Err(refused("does not have the length of one"));
    }
    let read = |bytes: &[u8; CHANGE_LEN]| {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut node = ZERO;
        node.copy_from_slice(&bytes[8..]);
        CapChange { vector: word(0), position: word(4), node }
    };
    let places = || changes.iter().map(read).map(|change| (change.vector, change.position));
    if !places().is_sorted_by(|a, b| a < b) {
        return Err(refused("is not in order"));
    }
    let (count, width) = (after.vectors.count(), after.cap_width());
    if places().any(|(vector, position)| vector >= count || position >= width) {
        return Err(refused("is about hashes that the table does not have"));
    }
    let old = before.vectors.count();
    let new = places().filter(|&(vector, _)| vector >= old).count() as u64;
    if new != after.cap_nodes() - before.cap_nodes() {
        return Err(refused("lacks hashes of new records"));
    }
    Ok(changes.iter().map(read))
}

/// An empty list with room for nodes.
fn new_vec(nodes: u64) -> Result<Vec<Node>> {
    let mut list = Vec::new();
    let nodes = usize::try_from(nodes).map_err(|_| no_memory())?;
    list.try_reserve_exact(nodes).map_err(|error| no_memory().caused_by(error))?;
    Ok(list)
}

fn no_memory() -> Error {
    Error::unavailable("no memory for the hashes of a table")
}

/// The error for our own bytes that cannot be read.
fn damaged(error: Error) -> Error {
    Error::corrupted("the stored hashes of a table cannot be read back").caused_by(error)
}
