//! Uniform numbers from a seed. Client and server compute the same ones.
//!
//! A stream of 32-bit words is AES-128 in counter mode (see [`privet_kernels::keystream`]) under a
//! key that BLAKE3 derives from the seed: the first 16 bytes that its key-derivation mode gives for
//! the stream's purpose. Stream `s` begins with block `s·2^32` and is never that long, so streams
//! of one key do not meet.
//!
//! A number below `b` takes the next word `w`. If `w·b mod 2^32` is less than `2^32 mod b`, it
//! takes the word after that, and so on. The number is `⌊w·b / 2^32⌋`. This is exactly uniform
//! (Lemire: *Fast Random Integer Generation in an Interval*, 2019). For the bounds here, at most
//! 2^16, a word is passed over with probability below 2^-16.

use privet_core::Secret;
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// The most words that are computed at a time.
const BATCH_WORDS: usize = 1 << 13;
const BLOCK_WORDS: usize = 4;

/// A secret from which both sides draw the same numbers, or from which a client draws the same
/// numbers again after a restart. 32 uniform bytes.
pub(crate) type Seed = Secret<[u8; 32]>;

/// The purpose of the numbers from a seed.
pub(crate) enum Purpose {
    /// A client's permutations, a stream for each partition.
    Permutations,
    /// The random numbers of one lookup.
    Lookup,
    /// Permutations of partitions that are added to a table later, a stream for each.
    LaterPermutations,
}

/// The streams of one seed and purpose.
pub(crate) struct Streams {
    key: Secret<[u8; 16]>,
    kernels: Kernels,
}

impl Streams {
    pub(crate) fn new(seed: &Seed, purpose: Purpose, kernels: Kernels) -> Self {
        let context = match purpose {
            Purpose::Permutations => "privet 2026-11 singlepass permutations",
            Purpose::Lookup => "privet 2026-11 singlepass lookup",
            Purpose::LaterPermutations => "privet 2026-11 singlepass later permutations",
        };
        let derived = Zeroizing::new(blake3::derive_key(context, seed.expose()));
        let mut key = [0; 16];
        key.copy_from_slice(&derived[..16]);
        Self { key: Secret::new(key), kernels }
    }

    /// Stream `number`, of which about `words` words will be drawn.
    pub(crate) fn stream(&self, number: u32, words: usize) -> Draws<'_> {
        let batch = words.next_multiple_of(BLOCK_WORDS).clamp(BLOCK_WORDS, BATCH_WORDS);
        let words = Zeroizing::new(vec![0; batch]);
        Draws { streams: self, next_block: u64::from(number) << 32, used: batch, words }
    }
}

/// One stream.
pub(crate) struct Draws<'a> {
    streams: &'a Streams,
    next_block: u64,
    words: Zeroizing<Vec<u32>>,
    used: usize,
}

impl Draws<'_> {
    /// A uniform number below `bound`, which is between 1 and 2^16.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u16 {
        let mut product = u64::from(self.word()) * u64::from(bound);
        if (product as u32) < bound {
            let excess = bound.wrapping_neg() % bound;
            while (product as u32) < excess {
                product = u64::from(self.word()) * u64::from(bound);
            }
        }
        (product >> 32) as u16
    }

    #[inline]
    fn word(&mut self) -> u32 {
        if self.used == self.words.len() {
            self.refill();
        }
        let word = self.words[self.used];
        self.used += 1;
        word
    }

    #[cold]
    fn refill(&mut self) {
        let Streams { key, kernels } = self.streams;
        kernels.aes128_ctr_words(key.expose(), self.next_block, &mut self.words);
        self.next_block += (self.words.len() / BLOCK_WORDS) as u64;
        self.used = 0;
    }
}
