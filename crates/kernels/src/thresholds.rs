//! Counts thresholds: sampling by inversion, for secret numbers.
//!
//! A sample of a distribution over 0, 1, 2, … is drawn by comparing a uniform number, its *place*,
//! with the distribution's tails, P(X ≥ 1), P(X ≥ 2), …. The number of tails above it is the
//! sample. One more uniform bit is a sign, for a distribution that is symmetric.
//!
//! # How
//!
//! The portable arm compares every place with every threshold, by subtraction. The other arms
//! search: seven comparisons in a binary tree of 127 thresholds. Each comparison is with another
//! threshold for each place, so the thresholds' bytes lie in registers, and a shuffle of bytes
//! fetches them: the positions are secret, but no address is. A vector has one byte of as many
//! places as it has bytes, and a comparison goes through the sixteen bytes of the numbers.
//!
//! On one core of a Zen 3, with 110 thresholds, a place takes 2.8 ns with AVX2. A comparison with
//! every threshold took 23 ns with the same instructions.
//!
//! # Secrets
//!
//! Places and samples are secret, thresholds are public. There is no branch and no address that
//! depends on a place.

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;

/// A uniform number of 126 bits and a sign, in sixteen bytes in little-endian order. The lowest bit
/// is the sign, and bit 64 is not used. All other bits are the number.
pub type Place = [u8; 16];

/// The most thresholds: the nodes of a tree of seven levels.
pub const MOST_THRESHOLDS: usize = 127;

/// Thresholds in the forms in which arms compare with them. Made once, mostly by the compiler.
#[derive(Debug)]
pub struct Thresholds {
    count: usize,
    /// In two halves of 63 bits, the higher first. The highest bit of the difference of two halves
    /// shows which one was smaller.
    halves: [[u64; 2]; MOST_THRESHOLDS],
    /// For each byte of a number, the lowest first: that byte of all thresholds, in the form of
    /// places, as signed comparisons need it (see [`SIGN`]). Node 1 is the root of the tree, and
    /// the children of node `n` are `2n` for larger places and `2n + 1` for smaller ones.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    nodes: [[u8; 128]; 16],
}

/// Flipped in all bytes that are compared as signed numbers.
pub(crate) const SIGN: u8 = 0x80;

/// The bits of a place that are its number.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) const NUMBER: u128 = !(1 << 64 | 1);

impl Thresholds {
    /// From numbers of 126 bits, the largest first.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST_THRESHOLDS`], one has more bits, or they are not in order.
    pub const fn new(thresholds: &[u128]) -> Thresholds {
        let count = thresholds.len();
        assert!(count <= MOST_THRESHOLDS, "a tree has room for 127 thresholds");
        let mut halves = [[0; 2]; MOST_THRESHOLDS];
        let mut k = 0;
        while k < count {
            assert!(thresholds[k] >> 126 == 0, "thresholds have 126 bits");
            assert!(k == 0 || thresholds[k] <= thresholds[k - 1], "the largest comes first");
            halves[k] = [(thresholds[k] >> 63) as u64, thresholds[k] as u64 & (u64::MAX >> 1)];
            k += 1;
        }
        // What is missing is 0, which is above no place.
        let mut nodes = [[SIGN; 128]; 16];
        let mut node = 1;
        while node < 128 {
            let level = (node as u32).ilog2();
            // The nodes of a level are the odd multiples of a power of two.
            let nth = (2 * (node - (1 << level)) + 1) << (6 - level);
            let [high, low] = halves[nth - 1];
            let bytes = ((high as u128) << 65 | (low as u128) << 1).to_le_bytes();
            let mut byte = 0;
            while byte < 16 {
                nodes[byte][node] = bytes[byte] ^ SIGN;
                byte += 1;
            }
            node += 1;
        }
        Thresholds { count, halves, nodes }
    }

    /// The halves of each threshold.
    pub(crate) fn halves(&self) -> &[[u64; 2]] {
        &self.halves[..self.count]
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn nodes(&self) -> &[[u8; 128]; 16] {
        &self.nodes
    }
}

impl Kernels {
    /// `samples[i]` becomes the number of `thresholds` above `places[i]`, negative if the place's
    /// sign is 1.
    ///
    /// # Panics
    ///
    /// If `places` and `samples` do not have the same length.
    pub fn count_thresholds_above(
        self,
        thresholds: &Thresholds,
        places: &[Place],
        samples: &mut [i8],
    ) {
        assert_eq!(places.len(), samples.len(), "one sample for each place");
        on_arm!(self, thresholds::count_above(thresholds, places, samples));
    }
}
