//! Two sources of bits that must never be confused, hence two types without any relation.
//!
//! [`SecretRng`] draws everything an adversary must not guess: LWE secrets and errors, keys, permutations, coins.
//! [`PublicSeed`] expands into values that both sides compute alike: the LWE matrix, the hash functions of a key map.
//! A published prototype re-keyed one global generator with its public seed and then drew secrets from it; here that
//! program does not compile.

use crate::{Error, Result};
use chacha20::ChaCha20Rng;
use privet_kernels::taint::declassify;
use rand_core::{SeedableRng, TryRng};
use zeroize::Zeroizing;

/// A cryptographic generator for secrets: ChaCha20 under a key from the operating system. Erased when dropped.
pub struct SecretRng(ChaCha20Rng);

impl SecretRng {
    /// A generator keyed with 32 bytes from the operating system.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the operating system gives no entropy.
    pub fn from_os() -> Result<Self> {
        let mut key = Zeroizing::new([0u8; 32]);
        getrandom::fill(key.as_mut()).map_err(|error| {
            Error::unavailable(
                "the operating system gave no entropy; no secret can be drawn without it",
            )
            .caused_by(error.to_string())
        })?;
        Ok(Self(ChaCha20Rng::from_seed(*key)))
    }

    /// A generator whose output anyone can repeat: for known-answer tests only.
    #[cfg(feature = "known-answers")]
    pub fn from_fixed_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// Uniform bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let Ok(()) = self.0.try_fill_bytes(out);
    }

    /// Uniform 32-bit words.
    pub fn fill_words(&mut self, out: &mut [u32]) {
        for word in out {
            *word = self.next_u32();
        }
    }

    /// A uniform 32-bit word.
    pub fn next_u32(&mut self) -> u32 {
        let Ok(word) = self.0.try_next_u32();
        word
    }

    /// A uniform 64-bit word.
    pub fn next_u64(&mut self) -> u64 {
        let Ok(word) = self.0.try_next_u64();
        word
    }

    /// A uniform number in `[0, bound)`: the top 64 bits of a 128-bit product, so that the bias is below `bound`·2^-128.
    /// Takes the same time for every result.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bound may be secret; that there is one is not.
        assert!(declassify(bound > 0), "no number lies below zero");
        // u·bound / 2^128 for a uniform 128-bit u, from the partial products of its two 64-bit halves.
        let low = u128::from(self.next_u64()) * u128::from(bound);
        let high = u128::from(self.next_u64()) * u128::from(bound) + (low >> 64);
        (high >> 64) as u64
    }
}

/// A seed that everyone may know. Expands into sub-seeds by name, never into secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicSeed([u8; 32]);

impl PublicSeed {
    /// A seed announced by someone else.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The seed named `purpose` that belongs to `material`: BLAKE3 in its key-derivation mode. Nobody can choose the
    /// seed, only the material, so nobody can plant a matrix with a trapdoor. `purpose` is a constant of the program.
    pub fn derive(purpose: &'static str, material: &[u8]) -> Self {
        Self(blake3::derive_key(purpose, material))
    }

    /// The seed's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// An AES-128 key: the seed's first half. (The second half is left for a nonce.)
    pub fn aes_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&self.0[..16]);
        key
    }
}
