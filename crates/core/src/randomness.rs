//! Two sources of bits that must never be confused. So they are two unrelated types.
//!
//! [`SecretRng`] draws everything that an attacker must not guess: LWE secrets and errors, keys,
//! permutations, random choices. [`PublicSeed`] expands into values that both sides compute: the
//! LWE matrix, the hash functions of a key map. A published prototype gave its public seed to one
//! global generator as a key, and then drew secrets from it. Here such a program does not compile.

use crate::{Error, Result, planted};
use chacha20::ChaCha20Rng;
use privet_kernels::taint::declassify;
use rand_core::{SeedableRng, TryRng};
use zeroize::Zeroizing;

/// A cryptographic generator for secrets: ChaCha20 under a key from the operating system. Erased
/// when dropped.
///
/// An attacker who reads its memory can compute its future output, and all output since its last
/// new key. And a process can be *cloned*: a virtual machine that is saved and started twice, a
/// container that is restored twice, a fork. Each clone would go on with the same output. So each
/// piece of work, such as a lookup, is done [apart](Self::apart).
pub struct SecretRng {
    generator: ChaCha20Rng,
    /// Gives bytes that no clone of this process gets. Tests replace it.
    system: FromSystem,
}

/// Overwrites 32 bytes, which are zero, with fresh ones.
type FromSystem = fn(&mut [u8; 32]) -> Result<()>;

/// Linux gives other bytes to each process, also after a fork and in containers that share a
/// kernel. Where a whole virtual machine was cloned, it does so once the hypervisor has told it
/// (VMGENID), and otherwise after up to a minute.
fn from_system(bytes: &mut [u8; 32]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        Error::unavailable(
            "the operating system gave no entropy; no secret can be drawn without it",
        )
        .caused_by(error.to_string())
    })
}

impl SecretRng {
    /// A generator keyed with 32 bytes from the operating system.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if the operating system gives no entropy.
    pub fn from_os() -> Result<Self> {
        let mut key = Zeroizing::new([0u8; 32]);
        from_system(&mut key)?;
        Ok(Self::with_key(&key, from_system))
    }

    fn with_key(key: &[u8; 32], system: FromSystem) -> Self {
        Self { generator: ChaCha20Rng::from_seed(*key), system }
    }

    /// A generator whose output anyone can repeat, only for known-answer tests. It takes nothing
    /// from the system.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn from_fixed_seed(seed: [u8; 32]) -> Self {
        Self::with_key(&seed, |_| Ok(()))
    }

    /// Does one piece of work with coins of its own. It takes a new key before, so that no clone of
    /// the process draws the same coins, and another one after, so that nobody can compute the
    /// coins from its memory.
    ///
    /// # Errors
    /// The error of `work`; [`Blame::Unavailable`](crate::Blame::Unavailable) if the system gives
    /// no entropy before or after. Then the result is dropped, and must not be sent.
    pub fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.rekey()?;
        let done = work(self);
        self.rekey()?;
        done
    }

    /// Replaces its key by 32 bytes of its own output, XORed with 32 fresh bytes of the system. The
    /// new key is uniform if either is, so a bad system source makes nothing worse.
    ///
    /// Erases the old key, and all output that it computed in advance under it. Earlier output
    /// cannot be computed from the new state (fast key erasure), whether or not the system gave
    /// anything.
    fn rekey(&mut self) -> Result<()> {
        if planted::key_stays() {
            return Ok(());
        }
        let (mut key, mut fresh) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
        self.fill(key.as_mut());
        let given = (self.system)(&mut fresh);
        key.iter_mut().zip(fresh.iter()).for_each(|(byte, fresh)| *byte ^= fresh);
        // The generator that this replaces erases itself: key, counter and buffer.
        self.generator = ChaCha20Rng::from_seed(*key);
        given
    }

    /// The same generator with another source of fresh bytes, so that tests see what happens if
    /// the system gives none, or gives them to clones as well.
    #[cfg(any(test, feature = "planted-leaks"))]
    #[must_use]
    pub fn asking(self, system: fn(&mut [u8; 32]) -> Result<()>) -> Self {
        Self { system, ..self }
    }

    /// What an attacker who reads this generator's memory can make: a generator with the same key,
    /// at any word of its output.
    #[cfg(any(test, feature = "known-answers"))]
    pub fn wound_to(&self, word: u64) -> Self {
        let mut wound = Self::with_key(&self.generator.get_seed(), self.system);
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
    use crate::Blame;

    fn words(rng: &mut SecretRng, count: usize) -> Vec<u32> {
        let mut words = vec![0; count];
        rng.fill_words(&mut words);
        words
    }

    fn drawn_apart(rng: &mut SecretRng) -> Vec<u32> {
        rng.apart(|rng| Ok(words(rng, 100))).unwrap()
    }

    fn nothing(_: &mut [u8; 32]) -> Result<()> {
        Ok(())
    }

    fn fails(bytes: &mut [u8; 32]) -> Result<()> {
        // Something was written anyway.
        bytes[..3].fill(1);
        Err(Error::unavailable("no entropy"))
    }

    /// Whether an attacker who reads the memory of `rng` after some work can compute the coins.
    fn tells_its_past(mut rng: SecretRng) -> bool {
        let mut given = Vec::new();
        let _ = rng.apart(|rng| {
            given = words(rng, 100);
            Ok(())
        });
        let computed = words(&mut rng.wound_to(0), 10_000);
        computed.windows(4).any(|some| given.windows(4).any(|used| used == some))
    }

    #[test]
    fn what_was_given_before_a_new_key_cannot_be_computed_after_it() {
        let rng = || SecretRng::from_fixed_seed([7; 32]);
        assert!(!tells_its_past(rng().asking(from_system)));
        assert!(!tells_its_past(rng().asking(nothing)), "not even if the system gives nothing");
        let _planted = planted::plant(planted::Flaw::KeyStays);
        assert!(tells_its_past(rng()), "the leak that is planted is found");
    }

    #[test]
    fn clones_draw_different_coins_unless_the_system_gives_them_the_same_bytes() {
        let clones =
            |system| [7; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]).asking(system));
        let [mut one, mut other] = clones(from_system);
        for _ in 0..3 {
            assert_ne!(drawn_apart(&mut one), drawn_apart(&mut other));
        }
        let [mut one, mut other] = clones(nothing);
        assert_eq!(drawn_apart(&mut one), drawn_apart(&mut other), "the planted leak is found");
    }

    /// Of the old key and the system's bytes, each counts.
    #[test]
    fn a_new_key_is_output_that_nobody_else_gets_and_the_systems_bytes() {
        let next = |seed: u8, system: FromSystem| {
            let mut rng = SecretRng::from_fixed_seed([seed; 32]).asking(system);
            rng.rekey().unwrap();
            words(&mut rng, 40)
        };
        let ones: FromSystem = |bytes| {
            bytes.fill(0xff);
            Ok(())
        };
        for (system, mask) in [(nothing as FromSystem, 0), (ones, 0xff)] {
            let mut key = [0; 32];
            SecretRng::from_fixed_seed([7; 32]).fill(&mut key);
            let mut of_that_key = SecretRng::from_fixed_seed(key.map(|byte| byte ^ mask));
            assert_eq!(next(7, system), words(&mut of_that_key, 40));
            assert_ne!(next(7, system), next(8, system));
        }
    }

    /// Nothing comes of the work, whether the failure is before or after it, and the old coins are
    /// gone.
    #[test]
    fn without_entropy_there_is_no_result() {
        let mut rng = SecretRng::from_fixed_seed([7; 32]).asking(fails);
        let before = rng.wound_to(0);
        let failed = rng.apart(|_| -> Result<()> { unreachable!("the work does not begin") });
        assert_eq!(failed.unwrap_err().blame(), Blame::Unavailable);
        assert_ne!(words(&mut rng, 40), words(&mut before.wound_to(0), 40));

        let mut rng = SecretRng::from_fixed_seed([7; 32]);
        let failed = rng.apart(|rng| {
            rng.system = fails;
            Ok(words(rng, 40))
        });
        assert_eq!(failed.unwrap_err().blame(), Blame::Unavailable);
    }
}
