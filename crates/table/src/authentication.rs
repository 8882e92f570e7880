//! Authenticated tables: every record comes with the proof that it belongs to the table.
//!
//! A client that asks one server gets whatever that server answers. In an *authenticated* table
//! each record is followed by its path in a Merkle tree over all records (Merkle, *A digital
//! signature based on a conventional encryption function*, CRYPTO '87). A client that knows the
//! tree's root first checks that the path leads there, and only then uses the record:
//!
//! ```text
//! served record = record ‖ sibling of its leaf ‖ sibling of the node above ‖ … ‖ a child of the root
//! ```
//!
//! The tree is that of [`merkle`](privet_core::commit::merkle): a leaf is a hash of the record's
//! number and the record, and leaves beyond the last record are zeros. A path has 32 bytes for each
//! level, ⌈log₂ n⌉ levels for n records. Schemes need not know of it: their records are just a
//! little longer.
//!
//! The Merkle root is a part of the [`TableLayout`](crate::TableLayout). People copy, pin and
//! compare the [`TableRoot`] instead, a digest of the *whole* layout and of the table's shape. The
//! key map and the stash are part of the layout. A server that could choose them could give a key
//! any value without changing a record.

use privet_core::commit::merkle::{MerkleHasher, Node, ZERO, depth};
use privet_core::quantities::from_hexadecimal;
use privet_core::{Error, Reason, Result, TableShape};
use privet_kernels::Kernels;
use std::str::FromStr;

/// Bytes of a node of the tree.
const NODE_LEN: usize = size_of::<Node>();

/// The digest that fixes an authenticated table for its clients: its shape, how keys map to
/// records, and every record.
///
/// ```text
/// root = BLAKE3-derive-key("privet table root v1", records (u64) ‖ record_len (u64) ‖ layout digest)
/// ```
///
/// Numbers are little-endian. A client can compute the root from a server's description, before it
/// asks for anything else.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableRoot(pub [u8; 32]);

impl TableRoot {
    /// The root of a table of shape `shape` whose encoded layout has this
    /// [digest](crate::digest::layout_digest).
    pub fn of(shape: TableShape, layout_digest: [u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("privet table root v1");
        hasher.update(&shape.records().to_le_bytes());
        hasher.update(&shape.record_len().to_le_bytes());
        hasher.update(&layout_digest);
        Self(*hasher.finalize().as_bytes())
    }
}

privet_core::shown_in_hexadecimal!(TableRoot);

impl FromStr for TableRoot {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        from_hexadecimal(text).map(Self).ok_or_else(|| {
            Error::api_misuse("a root has 64 hexadecimal digits").because(Reason::NotARoot)
        })
    }
}

/// The client's side: verifies records by the Merkle root of the tree over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authentication(pub Node);

impl Authentication {
    /// The record in `served`, the bytes that a server sent as record number `index` of a table of
    /// shape `shape`, with the record's path.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `served` is not as long as the
    ///   table's records, or these have no room for a path.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if this is not that record.
    pub fn verified<'s>(
        &self,
        shape: TableShape,
        index: u64,
        served: &'s [u8],
    ) -> Result<&'s [u8]> {
        let due = shape.record_len();
        let record_len = record_len_within(shape)?;
        if served.len() as u64 != due {
            return Err(Error::api_misuse(format!(
                "a record of this table has {due} bytes with its path, not {}",
                served.len()
            )));
        }
        let (record, path) = served.split_at(record_len as usize);
        let hasher = hasher();
        let (siblings, _) = path.as_chunks::<NODE_LEN>();
        if hasher.root_of_path(index, hasher.leaf(index, record), siblings) == self.0 {
            return Ok(record);
        }
        Err(Error::integrity(
            "the received bytes are not the record of the table that was asked for: they do not belong to the root. The table is damaged, or the server does not tell the truth",
        ))
    }
}

/// The length in bytes of the path that follows each of `records` records.
pub fn path_len(records: u64) -> u64 {
    u64::from(depth(records)) * NODE_LEN as u64
}

/// The shape of the records alone, in an authenticated table of shape `shape`.
///
/// # Errors
/// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if its records have no room for a
/// path.
pub fn shape_within(shape: TableShape) -> Result<TableShape> {
    let record_len = record_len_within(shape)?;
    TableShape::new(shape.records(), record_len)
        .map_err(|error| Error::invalid_message(error.message()))
}

/// The shape of an authenticated table whose records alone have the shape `within`.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a table cannot be that large.
pub fn shape_with_paths(within: TableShape) -> Result<TableShape> {
    let path_len = path_len(within.records());
    TableShape::new(within.records(), within.record_len() + path_len).map_err(|error| {
        error.within(format!("with a path of {path_len} bytes behind each record"))
    })
}

fn record_len_within(shape: TableShape) -> Result<u64> {
    let path_len = path_len(shape.records());
    let record_len = shape.record_len().checked_sub(path_len).filter(|len| *len > 0);
    record_len.ok_or_else(|| {
        Error::invalid_message(format!(
            "records of {} bytes have no room for a path of {path_len} bytes",
            shape.record_len()
        ))
    })
}

/// The builder's side: a table's whole tree, 64 bytes for each record. The records need not be in
/// memory.
pub struct MerkleTree {
    /// The nodes that have a record below them, from the leaves to the root.
    levels: Vec<Vec<Node>>,
}

impl MerkleTree {
    /// The tree over `records` records, at least one. `write` puts record number `i` into its
    /// second argument, in place of its old contents. The records are asked for in order, each
    /// once.
    pub fn over(records: u64, mut write: impl FnMut(u64, &mut Vec<u8>)) -> Self {
        let hasher = hasher();
        let mut record = Vec::new();
        let mut leaves = Vec::with_capacity(records as usize);
        for index in 0..records {
            write(index, &mut record);
            leaves.push(hasher.leaf(index, &record));
        }
        let mut levels = vec![leaves];
        for height in 0..depth(records) as usize {
            let below = &levels[height];
            let mut above = vec![ZERO; below.len().div_ceil(2)];
            hasher.parents(below, &mut above);
            levels.push(above);
        }
        Self { levels }
    }

    /// What clients need to verify records.
    pub fn authentication(&self) -> Authentication {
        // The last level is only the root.
        Authentication(self.levels[self.levels.len() - 1][0])
    }

    /// Appends the path of record `index`, which must be a record of the tree.
    pub fn append_path(&self, index: u64, served: &mut Vec<u8>) {
        let below_root = &self.levels[..self.levels.len() - 1];
        for (height, level) in below_root.iter().enumerate() {
            let sibling = level.get((index >> height ^ 1) as usize).unwrap_or(&ZERO);
            served.extend_from_slice(sibling);
        }
    }
}

fn hasher() -> MerkleHasher {
    MerkleHasher::new(Kernels::detect())
}

#[cfg(test)]
mod tests;
