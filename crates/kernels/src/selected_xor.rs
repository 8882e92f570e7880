//! The XOR of selected records of a table, for several selections in one pass.
//!
//! This is the server's work in PIR from distributed point functions: a selection is one
//! pseudorandom bit for each record, and the answer is the XOR of the records whose bit is set.
//! About half of all bits are set, but every record is read and processed in the same way: time
//! does not depend on the bits.
//!
//! # The walk
//!
//! ```text
//! table = chunks   as many records as the caller produces selection bits for at a time; a chunk should
//!                  stay in the second-level cache while one group of selections after another goes over it
//! chunk = pieces   at most 16 KiB, which stay in the first-level cache while the selections of a group go
//!                  over them
//! ```
//!
//! Threads fetch one chunk after another. Each has its own sums, which are added up at the end.
//!
//! # Two ways to work on a piece
//!
//! *One by one* (`one_by_one`): the bits of one selection become masks of bytes, and every record
//! is XORed into the selection's sum under its mask. That takes two or three vector instructions
//! for each vector of the table and each selection. With a few selections, memory is the limit.
//!
//! *By eight* (`by_eight`): over the field of two elements, the sums of eight selections over eight
//! records are a product of matrices: 8 × 8 selection bits times 8 × 8 bits of one byte of each
//! record. Recent processors have an instruction for eight such products. The table's bits must be
//! transposed first. That costs a few instructions for each vector, but only once for all
//! selections. Measured on Zen 4, eight selections cost 1.5 readings of memory, and 64 cost three.
//! Over 2^25 records of 32 bytes, eight queries in one pass together run at 4.6 × read bandwidth;
//! with masks alone it was 2 to 3 ×.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dispatch::Kernels;
use crate::threads;

mod by_eight;
mod one_by_one;

pub(crate) use by_eight::{Ahead, BLOCK_RECORDS, EIGHT, byte_of};
pub(crate) use one_by_one::{Bits, GROUP_RECORDS};

/// Bytes of one line of sums.
pub(crate) const LINE: usize = 64;

/// Records whose bits are one word of a selection.
const WORD_RECORDS: usize = 128;

impl Kernels {
    /// `sums[k] ^=` the XOR of all records whose bit in selection `k` is set, for all `k`, in one
    /// pass over `records`, on up to `threads` threads.
    ///
    /// Record `r` is `records[r * record_len..(r + 1) * record_len]`. Records are taken in chunks
    /// of `chunk_records`; the last may be shorter. [A good
    /// number](Kernels::selected_xor_chunk_records) depends on their length. `select(chunk, k,
    /// bits)` writes the part of selection `k` for one chunk: bit `r % 128` of `bits[r / 128]` is
    /// for record `chunk * chunk_records + r`. `bits` has just as many words as the chunk needs,
    /// and may hold anything before. Bits beyond the last record are ignored. `select` is called
    /// once for each chunk and each `k`, from several threads and in no particular order, shortly
    /// before the chunk is read. So no whole selection is ever in memory.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0 or does not divide `records.len()`, if `chunk_records` is 0 or not a
    /// multiple of 128, or if a sum is not `record_len` bytes long.
    pub fn xor_selected(
        self,
        records: &[u8],
        record_len: usize,
        chunk_records: usize,
        select: impl Fn(usize, usize, &mut [u128]) + Sync,
        sums: &mut [&mut [u8]],
        threads: usize,
    ) {
        let by_eight = by_eight::pays(self, record_len, sums.len());
        let way = if by_eight { Way::ByEight } else { Way::OneByOne };
        self.xor_selected_in(way, records, record_len, chunk_records, select, sums, threads);
    }

    /// How many records of `record_len` bytes [`xor_selected`](Kernels::xor_selected) should take
    /// at a time: a power of two times 128, such that a chunk is between 256 and 512 KiB where
    /// record lengths allow that, at most 2¹⁴ records, and at least 128.
    pub fn selected_xor_chunk_records(record_len: usize) -> usize {
        const CHUNK_BYTES: usize = 512 << 10;
        // With short records, the selections should stay in the first-level cache.
        const MOST_RECORDS: usize = 1 << 14;
        let fitting = (CHUNK_BYTES / record_len.max(1)).clamp(WORD_RECORDS, MOST_RECORDS);
        1 << fitting.ilog2()
    }

    /// [`xor_selected`](Kernels::xor_selected) in a given way.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn xor_selected_in(
        self,
        way: Way,
        records: &[u8],
        record_len: usize,
        chunk_records: usize,
        select: impl Fn(usize, usize, &mut [u128]) + Sync,
        sums: &mut [&mut [u8]],
        threads: usize,
    ) {
        assert!(record_len > 0, "records have at least one byte");
        assert!(records.len().is_multiple_of(record_len), "a table has whole records");
        assert!(
            chunk_records > 0 && chunk_records.is_multiple_of(WORD_RECORDS),
            "chunks have whole words of selection bits"
        );
        for sum in sums.iter() {
            assert_eq!(sum.len(), record_len, "a sum is as long as a record");
        }
        if sums.is_empty() || records.is_empty() {
            return;
        }
        let shape = Shape {
            record_len,
            selections: sums.len(),
            chunk_records: chunk_records.min(records.len() / record_len),
        };
        let walk = Walk { records, record_len, chunk_records, threads };
        match way {
            Way::OneByOne => walk.run(select, sums, || one_by_one::Sums::new(self, shape)),
            Way::ByEight => walk.run(select, sums, || by_eight::Sums::new(self, shape)),
        }
    }
}

/// The way to process a piece; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    OneByOne,
    ByEight,
}

/// The shape of the work of one thread's sums.
#[derive(Clone, Copy)]
struct Shape {
    record_len: usize,
    selections: usize,
    /// The most records of a chunk.
    chunk_records: usize,
}

/// The sums of one thread, in the order that suits the kernels.
trait ThreadSums {
    /// Adds the selected records of one chunk. `select(k, bits)` writes the bits of selection `k`.
    fn take_chunk(&mut self, records: &[u8], select: impl Fn(usize, &mut [u128]));

    /// Adds each selection's sum to its place.
    fn add_to(&self, sums: &mut [&mut [u8]]);
}

/// The walk of all threads over the table.
struct Walk<'a> {
    records: &'a [u8],
    record_len: usize,
    chunk_records: usize,
    threads: usize,
}

impl Walk<'_> {
    fn run<S: ThreadSums>(
        &self,
        select: impl Fn(usize, usize, &mut [u128]) + Sync,
        sums: &mut [&mut [u8]],
        new_sums: impl Fn() -> S + Sync,
    ) {
        let chunk_bytes = self.chunk_records.saturating_mul(self.record_len);
        let chunks = self.records.len().div_ceil(chunk_bytes);
        let threads = self.threads.clamp(1, chunks);
        let next_chunk = AtomicUsize::new(0);
        let sums = Mutex::new(sums);
        threads::for_each(threads, vec![(); threads], |()| {
            let mut own = new_sums();
            loop {
                let chunk = next_chunk.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    break;
                }
                let start = chunk * chunk_bytes;
                let end = self.records.len().min(start.saturating_add(chunk_bytes));
                own.take_chunk(&self.records[start..end], |k, bits| select(chunk, k, bits));
            }
            // A panic of another thread makes the caller panic too, so it never sees wrong sums.
            own.add_to(&mut sums.lock().unwrap_or_else(PoisonError::into_inner));
        });
    }
}

/// Lines, zero at first. Each is one cache line, because stores that cross cache lines are slow.
struct CacheLines {
    bytes: Vec<u8>,
    start: usize,
}

impl CacheLines {
    fn zeroed(lines: usize) -> CacheLines {
        let bytes = vec![0; lines * LINE + LINE - 1];
        let start = bytes.as_ptr().addr().wrapping_neg() % LINE;
        CacheLines { bytes, start }
    }
}

impl Deref for CacheLines {
    type Target = [[u8; LINE]];

    fn deref(&self) -> &[[u8; LINE]] {
        self.bytes[self.start..].as_chunks().0
    }
}

impl DerefMut for CacheLines {
    fn deref_mut(&mut self) -> &mut [[u8; LINE]] {
        self.bytes[self.start..].as_chunks_mut().0
    }
}

fn xor(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}
