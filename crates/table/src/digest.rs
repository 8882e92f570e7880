//! How a table's digest is computed.
//!
//! A table is more than its records: without its layout (the key map, above all) nobody can read
//! them. Clients pin one digest that covers both. A client that has only the layout checks the
//! layout's part and trusts the rest; a client that has the whole table checks all of it.
//!
//! ```text
//! layout digest  = BLAKE3(encoded layout)
//! records digest = BLAKE3(all records, one after the other)
//! table digest   = BLAKE3-derive-key("privet table digest v1",
//!                      records (u64) ‖ record_len (u64) ‖ layout digest ‖ records digest)
//! ```
//!
//! Numbers are little-endian.

use privet_core::{TableDigest, TableShape};

/// The digests of a table's two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestParts {
    /// The BLAKE3 digest of the encoded [`TableLayout`](crate::TableLayout).
    pub layout: [u8; 32],
    /// The BLAKE3 digest of all records.
    pub records: [u8; 32],
}

impl DigestParts {
    /// The table's digest, as the [module](self) defines it.
    pub fn combine(&self, shape: TableShape) -> TableDigest {
        let mut hasher = blake3::Hasher::new_derive_key("privet table digest v1");
        hasher.update(&shape.records().to_le_bytes());
        hasher.update(&shape.record_len().to_le_bytes());
        hasher.update(&self.layout);
        hasher.update(&self.records);
        TableDigest(*hasher.finalize().as_bytes())
    }
}

/// The digest of an encoded layout, for a client that has downloaded one.
pub fn layout_digest(encoded: &[u8]) -> [u8; 32] {
    *blake3::hash(encoded).as_bytes()
}
