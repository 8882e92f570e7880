//! What makes the trees of one lookup unlike all others: a number drawn for it, and the AES keys
//! that follow.

use crate::{PublicSeed, SecretRng, TableId};
use privet_kernels::TreeKeys;
use privet_kernels::taint::declassify;

/// Drawn anew for each lookup, and the same in both keys. Public: it hides nothing, it only takes
/// care that no work done against one lookup counts against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// Draws 16 bytes from `rng`.
    pub fn draw(rng: &mut SecretRng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        // Drawn like what is secret, and sent as it is.
        Self(declassify(bytes))
    }

    /// The one that a key brought.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The AES keys under which the trees of the lookup grow: both halves of a seed derived from
    /// the table's id and the nonce after it. Public, but chosen by nobody, and known to nobody
    /// before the lookup is made.
    pub fn tree_keys(&self, table: &TableId) -> TreeKeys {
        let mut material = [0; 32];
        material[..16].copy_from_slice(&table.0);
        material[16..].copy_from_slice(&self.0);
        let seed = PublicSeed::derive("privet 2026-11 dpf tree", &material);
        let (keys, _) = seed.as_bytes().as_chunks();
        TreeKeys::new(keys[0], keys[1])
    }
}
