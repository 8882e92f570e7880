//! Loops that show what one core of this machine can do at most.
//!
//! A benchmark reports a scheme's speed together with the limit of the machine: how fast it can
//! read memory in order or at random, make AES blocks, or multiply bytes. Each loop returns a value
//! that depends on all its work, so that no compiler can leave any of it out.

use crate::dispatch::on_arm;
use std::hint::black_box;

use crate::dispatch::Kernels;
use crate::gather::{PositionOutOfRange, check_positions};

impl Kernels {
    /// The sum modulo 2⁶⁴ of the 64-bit little-endian words of `bytes` (the last padded with
    /// zeros): one sequential reading, with every byte loaded.
    pub fn read_sum(self, bytes: &[u8]) -> u64 {
        on_arm!(self, yardstick::read_sum(bytes))
    }

    /// XORs the records at `positions` (in records; repeats count) into `out`, which it overwrites.
    /// The table is `table.len() / record_len` records of `record_len` bytes. Records are
    /// prefetched some positions ahead, so that many reads are in flight at a time.
    ///
    /// # Errors
    ///
    /// [`PositionOutOfRange`] for the first position outside the table; `out` is then unchanged.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0 or `out.len()` is not `record_len`.
    pub fn gather_xor(
        self,
        table: &[u8],
        record_len: usize,
        positions: &[u64],
        out: &mut [u8],
    ) -> Result<(), PositionOutOfRange> {
        assert!(record_len > 0, "records have at least one byte");
        assert_eq!(out.len(), record_len, "the sum is as long as a record");
        check_positions(table, record_len, positions)?;
        on_arm!(self, yardstick::gather_xor(table, record_len, positions, out));
        Ok(())
    }

    /// Encrypts the counter blocks `0..blocks` with AES-128 under the key of zeros, in registers,
    /// and returns the XOR of the results. The counter block is that of
    /// [`keystream`](crate::keystream).
    pub fn aes_blocks(self, blocks: u64) -> [u8; 16] {
        black_box(on_arm!(self, yardstick::aes_blocks(&[0; 16], black_box(blocks))))
    }

    /// Multiplies bytes by signed digits and adds up, in registers and the first-level cache. It
    /// uses the means of [`multiply`](Kernels::multiply) on this arm: with AVX-512 the bare
    /// instruction, otherwise the inner loop. Makes at least `multiplications` byte-sized
    /// multiply-accumulates, and returns how many it made. The AVX2 arm multiplies half-words, and
    /// counts each as one.
    ///
    /// On the AVX-512 arm [`multiply`](Kernels::multiply) needs four of them for each byte of the
    /// matrix and each query, on the AVX2 arm two, on the portable arm one.
    pub fn multiply_accumulate_peak(self, multiplications: u64) -> u64 {
        black_box(on_arm!(self, yardstick::multiply_accumulate(black_box(multiplications))))
    }
}
