//! Two sources of bits that must never be confused. So they are two unrelated types.
//!
//! [`SecretRng`] draws everything that an attacker must not guess: LWE secrets and errors, keys,
//! permutations, random choices. [`PublicSeed`] expands into values that both sides compute: the
//! LWE matrix, the hash functions of a key map. A published prototype gave its public seed to one
//! global generator as a key, and then drew secrets from it. Here such a program does not compile.

use crate::{Error, Result};
use chacha20::ChaCha20Rng;
use privet_kernels::taint::declassify;
use rand_core::{SeedableRng, TryRng};
use zeroize::Zeroizing;

/// A cryptographic generator for secrets: ChaCha20 under a key from the operating system. Erased
/// when dropped.
///
/// An attacker who reads its memory can compute its future output, and all output since its last
/// [`rekey`](Self::rekey). So code that keeps a generator for long gives it a new key after each
/// piece of work, such as a lookup.
pub struct SecretRng {
    generator: ChaCha20Rng,
    /// A leak that tests plant.
    #[cfg(any(test, feature = "planted-leaks"))]
    keeps_its_key: bool,
}

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
        Ok(Self::with_key(&key))
    }

    fn with_key(key: &[u8; 32]) -> Self {
        Self {
            generator: ChaCha20Rng::from_seed(*key),
            #[cfg(any(test, feature = "planted-leaks"))]
            keeps_its_key: false,
        }
    }

    /// A generator whose output anyone can repeat, only for known-answer tests.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn from_fixed_seed(seed: [u8; 32]) -> Self {
        Self::with_key(&seed)
    }

    /// Replaces its key by 32 bytes of its own output. Erases the old key, and all output that it
    /// computed in advance under it. Earlier output cannot be computed from the new state (fast key
    /// erasure).
    pub fn rekey(&mut self) {
        #[cfg(any(test, feature = "planted-leaks"))]
        if self.keeps_its_key {
            return;
        }
        let mut key = Zeroizing::new([0; 32]);
        self.fill(key.as_mut());
        // The generator that this replaces erases itself: key, counter and buffer.
        self.generator = ChaCha20Rng::from_seed(*key);
    }

    /// A generator that never takes a new key, so that tests see the leak.
    #[cfg(any(test, feature = "planted-leaks"))]
    #[must_use]
    pub fn keeping_its_key(mut self) -> Self {
        self.keeps_its_key = true;
        self
    }

    /// What an attacker who reads this generator's memory can make: a generator with the same key,
    /// at any word of its output.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn wound_to(&self, word: u64) -> Self {
        let mut wound = Self::with_key(&self.generator.get_seed());
        wound.generator.set_stream(self.generator.get_stream());
        wound.generator.set_word_pos(word.into());
        wound
    }

    /// Uniform bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let Ok(()) = self.generator.try_fill_bytes(out);
    }

    /// Uniform 32-bit words.
    pub fn fill_words(&mut self, out: &mut [u32]) {
        for word in out {
            *word = self.next_u32();
        }
    }

    /// A uniform 32-bit word.
    pub fn next_u32(&mut self) -> u32 {
        let Ok(word) = self.generator.try_next_u32();
        word
    }

    /// A uniform 64-bit word.
    pub fn next_u64(&mut self) -> u64 {
        let Ok(word) = self.generator.try_next_u64();
        word
    }

    /// A uniform number in `[0, bound)`: the top 64 bits of a 128-bit product, so that the bias is
    /// below `bound`·2^-128. Takes the same time for every result.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bound may be secret, but not the fact that it is above zero.
        assert!(declassify(bound > 0), "no number lies below zero");
        // u·bound / 2^128 for a uniform 128-bit u, from the partial products of its two 64-bit
        // halves.
        let low = u128::from(self.next_u64()) * u128::from(bound);
        let high = u128::from(self.next_u64()) * u128::from(bound) + (low >> 64);
        (high >> 64) as u64
    }
}

/// A seed that everyone may know. Expands into other seeds by name, never into secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicSeed([u8; 32]);

impl PublicSeed {
    /// A seed announced by someone else.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The seed named `purpose` that belongs to `material`: BLAKE3 in its key-derivation mode.
    /// Nobody can choose the seed, only the material, so nobody can plant a matrix with a trapdoor.
    /// `purpose` is a constant of the program.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rng: &mut SecretRng, count: usize) -> Vec<u32> {
        let mut words = vec![0; count];
        rng.fill_words(&mut words);
        words
    }

    #[test]
    fn what_was_given_before_a_new_key_cannot_be_computed_after_it() {
        const USED: usize = 100;
        let computes = |mut rng: SecretRng| {
            let given = words(&mut rng, USED);
            rng.rekey();
            let computed = words(&mut rng.wound_to(0), 10_000);
            computed.windows(4).any(|some| given.windows(4).any(|used| used == some))
        };
        let rng = || SecretRng::from_fixed_seed([7; 32]);
        assert!(!computes(rng()));
        assert!(computes(rng().keeping_its_key()), "the leak that is planted is found");
    }

    #[test]
    fn a_new_key_is_output_that_nobody_else_gets() {
        let mut rng = SecretRng::from_fixed_seed([7; 32]);
        let mut key = [0; 32];
        rng.wound_to(0).fill(&mut key);
        rng.rekey();
        let mut of_that_key = SecretRng::from_fixed_seed(key);
        assert_eq!(words(&mut rng, 40), words(&mut of_that_key, 40));
    }
}
