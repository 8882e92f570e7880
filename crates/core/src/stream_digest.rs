//! A BLAKE3 digest over a stream that may be interrupted: its state can be written down and read
//! back.
//!
//! BLAKE3 is a tree, so the digest of a prefix is a short list of chaining values, one for each
//! complete subtree to the left, and the bytes since the last of them. The `blake3` crate exposes
//! subtrees for such uses; the tests compare the outcome with [`blake3::hash`].

use crate::codec::Reader;
use crate::{Error, Result};
use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

/// Bytes of a subtree, which is hashed in one piece.
const SUBTREE_LEN: usize = 1 << 16;

/// The digest of everything absorbed so far.
#[derive(Clone, Default)]
pub(crate) struct StreamDigest {
    /// Complete subtrees of [`SUBTREE_LEN`] bytes so far.
    subtrees: u64,
    /// The chaining values of the largest complete trees over them, from the left.
    trees: Vec<ChainingValue>,
    /// The bytes after the last absorbed subtree. At most one whole subtree: the last one is kept,
    /// because the right edge of the tree is finished differently.
    tail: Vec<u8>,
}

impl StreamDigest {
    pub(crate) fn absorb(&mut self, mut bytes: &[u8]) {
        while self.tail.len() + bytes.len() > SUBTREE_LEN {
            let (head, rest) = bytes.split_at(SUBTREE_LEN - self.tail.len());
            bytes = rest;
            let subtree = if self.tail.is_empty() {
                self.subtree(head)
            } else {
                self.tail.extend_from_slice(head);
                self.subtree(&self.tail)
            };
            self.tail.clear();
            self.push(subtree);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// The chaining value of the subtree that comes next.
    fn subtree(&self, bytes: &[u8]) -> ChainingValue {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(self.subtrees * SUBTREE_LEN as u64);
        hasher.update(bytes).finalize_non_root()
    }

    /// Adds a complete subtree. More bytes will follow, so no tree that it completes is the root.
    fn push(&mut self, mut subtree: ChainingValue) {
        self.subtrees += 1;
        for _ in 0..self.subtrees.trailing_zeros() {
            if let Some(left) = self.trees.pop() {
                subtree = merge_subtrees_non_root(&left, &subtree, Mode::Hash);
            }
        }
        self.trees.push(subtree);
    }

    pub(crate) fn finalize(&self) -> [u8; 32] {
        let Some((root_left, middle)) = self.trees.split_first() else {
            return *blake3::hash(&self.tail).as_bytes();
        };
        let right = middle.iter().rev().fold(self.subtree(&self.tail), |right, left| {
            merge_subtrees_non_root(left, &right, Mode::Hash)
        });
        *merge_subtrees_root(root_left, &right, Mode::Hash).as_bytes()
    }

    /// `subtrees (u64) ‖ trees, 32 bytes each: as many as `subtrees` has ones ‖ tail length (u32) ‖
    /// tail`
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.subtrees.to_le_bytes());
        self.trees.iter().for_each(|tree| out.extend(tree));
        out.extend((self.tail.len() as u32).to_le_bytes());
        out.extend(&self.tail);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let subtrees = reader.u64()?;
        let trees =
            (0..subtrees.count_ones()).map(|_| reader.array()).collect::<Result<Vec<_>>>()?;
        let len = reader.u32()? as usize;
        let tail = reader.bytes(len)?.to_vec();
        let digest = Self { subtrees, trees, tail };
        if len > SUBTREE_LEN || (len == 0 && subtrees > 0) || digest.absorbed().is_none() {
            return Err(Error::invalid_message("an unfinished digest holds impossible values"));
        }
        Ok(digest)
    }

    /// How many bytes were absorbed. `None` if 64 bits are too few for the number.
    pub(crate) fn absorbed(&self) -> Option<u64> {
        self.subtrees.checked_mul(SUBTREE_LEN as u64)?.checked_add(self.tail.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_in_pieces_with_interruptions_is_that_of_the_whole() {
        let bytes: Vec<u8> = (0..SUBTREE_LEN * 9 + 700).map(|i| (i * 7 + i / 251) as u8).collect();
        let lens = [0, 1, 1023, 1024, 1025, SUBTREE_LEN - 1, SUBTREE_LEN, SUBTREE_LEN + 1];
        let long =
            (2..=9).flat_map(|n| [n * SUBTREE_LEN - 1, n * SUBTREE_LEN, n * SUBTREE_LEN + 1]);
        for len in lens.into_iter().chain(long) {
            for piece in [777, SUBTREE_LEN, 100_000, 1 << 20] {
                let mut digest = StreamDigest::default();
                for chunk in bytes[..len].chunks(piece) {
                    digest.absorb(chunk);
                    let mut state = Vec::new();
                    digest.encode(&mut state);
                    let mut reader = Reader::new("a digest", &state);
                    digest = StreamDigest::decode(&mut reader).unwrap();
                    reader.finish().unwrap();
                }
                assert_eq!(
                    digest.finalize(),
                    *blake3::hash(&bytes[..len]).as_bytes(),
                    "{len} {piece}"
                );
            }
        }
    }
}
