//! Separates the trees of one lookup from all others: a random number for the lookup, and the AES
//! keys that follow from it.

use crate::{PublicSeed, SecretRng, TableId};
use privet_kernels::TreeKeys;
use privet_kernels::taint::declassify;

/// A number that is drawn for each lookup, and is the same in both of its keys. It is public: it
/// hides nothing. It only ensures that work against one lookup does not help against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// Draws 16 bytes from `rng`.
    pub fn draw(rng: &mut SecretRng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        // Drawn from the secret generator, but sent in the clear.
        Self(declassify(bytes))
    }

    /// The nonce of a received key.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The AES keys under which the trees of the lookup grow: both halves of a seed derived from
    /// the table's id and the nonce after it. They are public, but nobody chooses them, and nobody
    /// knows them before the lookup is made.
    pub fn tree_keys(&self, table: &TableId) -> TreeKeys {
        let mut material = [0; 32];
        material[..16].copy_from_slice(&table.0);
        material[16..].copy_from_slice(&self.0);
        let seed = PublicSeed::derive("privet 2026-11 dpf tree", &material);
        let (keys, _) = seed.as_bytes().as_chunks();
        TreeKeys::new(keys[0], keys[1])
    }
}
