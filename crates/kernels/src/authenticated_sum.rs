//! The XOR of selected records, with a tag, for several selections in one pass.
//!
//! This is the server's work in authenticated PIR from distributed point functions (Colombo,
//! Nikitin, Corrigan-Gibbs, Wu and Ford, "Authenticated private information retrieval", USENIX
//! Security 2023). Each record `x` comes with the last node and the leaf of a tree
//! ([`ggm_tree`](crate::ggm_tree)):
//!
//! ```text
//! value = Σ t_x · record_x    t_x: the node's control bit, so this is the XOR of the records it selects
//! tag   = Σ b_x · record_x    b_x: the leaf, as an element of a field
//! ```
//!
//! # The field
//!
//! A record is cut into *elements* of 16 bytes, the last one padded with zeros, and value and tag
//! are computed for each element on its own. An element is a polynomial over the field of two
//! elements, modulo `x^128 + x^7 + x^2 + x + 1`: bit `i` of the sixteen bytes, read as a
//! little-endian number, is the coefficient of `x^i`. (That is the polynomial of GCM, without GCM's
//! reversal of bits.)
//!
//! There are three reasons for this field instead of a prime field. A sum is an XOR, and the two
//! parties' leaves and control bits are XOR shares. A control bit is an element, 0 or 1, without a
//! sign that depends on the party. And every string of 16 bytes is an element, so records need no
//! check and no packing.
//!
//! # How it is computed
//!
//! A product of two elements has 255 bits before reduction, and reduction is linear. So whole
//! products are added up, and only their sum is reduced. Each element then takes four carry-less
//! multiplications of 64 bits by 64 bits, for which processors have an instruction.
//!
//! ```text
//! table = chunks   as many records as the caller produces nodes and leaves for at a time: these stay in the
//!                  first-level cache, and the chunk in the second-level cache while one selection after
//!                  another goes over it
//! ```
//!
//! Threads fetch one chunk after another. Each has its own sums, which are added up at the end.
//! Time and addresses depend only on the lengths.

use crate::dispatch::on_arm;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use zeroize::{Zeroize, Zeroizing};

use crate::dispatch::Kernels;
use crate::threads;

/// Bytes of one element of the field.
pub const ELEMENT_BYTES: usize = 16;

/// How many elements are processed together: those of a line of 64 bytes.
pub(crate) const LANES: usize = 4;

/// How many elements a record of `record_len` bytes is cut into.
pub fn elements(record_len: usize) -> usize {
    record_len.div_ceil(ELEMENT_BYTES)
}

/// Sums of products in four places, before reduction. A product is `low + middle · x^64 + high ·
/// x^128`.
///
/// If records have three elements or more, each place has one of four neighbouring elements.
/// Several shorter records may lie side by side: with `e` elements, place `i` belongs to element `i
/// % e`.
#[derive(Clone, Copy, Default, Zeroize)]
#[repr(align(64))]
pub(crate) struct Lanes {
    pub(crate) values: [u128; LANES],
    pub(crate) lows: [u128; LANES],
    pub(crate) middles: [u128; LANES],
    pub(crate) highs: [u128; LANES],
}

impl Kernels {
    /// Adds value and tag for all `k` to `sums[k]`, in one pass over `records`, on up to `threads`
    /// threads.
    ///
    /// Record `r` is `records[r * record_len..(r + 1) * record_len]`. A sum is the value's
    /// [`elements`], then the tag's. Records are taken in chunks of `chunk_records`; the last may
    /// be shorter. [A good number](Kernels::authenticated_sums_chunk_records) depends on their
    /// length. `expand(chunk, k, nodes, leaves)` writes selection `k` for one chunk: for each
    /// record a leaf and a node, whose lowest bit alone counts. Both slices are as long as the
    /// chunk, and may hold anything before. It is called once for each chunk and each `k`, from
    /// several threads and in no particular order.
    ///
    /// Each thread holds some four times the length of a record for each `k`.
    ///
    /// # Panics
    ///
    /// If `record_len` or `chunk_records` is 0, `records` is not whole records, or a sum does not
    /// have twice as many elements as a record.
    pub fn authenticated_sums(
        self,
        records: &[u8],
        record_len: usize,
        chunk_records: usize,
        expand: impl Fn(usize, usize, &mut [u128], &mut [u128]) + Sync,
        sums: &mut [&mut [u128]],
        threads: usize,
    ) {
        assert!(record_len > 0, "records have at least one byte");
        assert!(records.len().is_multiple_of(record_len), "a table has whole records");
        assert!(chunk_records > 0, "chunks have at least one record");
        for sum in sums.iter() {
            let len = 2 * elements(record_len);
            assert_eq!(sum.len(), len, "a sum has a value and a tag for each element");
        }
        if sums.is_empty() || records.is_empty() {
            return;
        }
        let chunk_records = chunk_records.min(records.len() / record_len);
        let chunk_bytes = chunk_records * record_len;
        let chunks = records.len().div_ceil(chunk_bytes);
        let threads = threads.clamp(1, chunks);
        let next_chunk = AtomicUsize::new(0);
        let sums = Mutex::new(sums);
        threads::for_each(threads, vec![(); threads], |()| {
            let selections = sums.lock().unwrap_or_else(PoisonError::into_inner).len();
            let mut own = vec![lanes(record_len); selections];
            let (mut nodes, mut leaves) = (vec![0; chunk_records], vec![0; chunk_records]);
            loop {
                let chunk = next_chunk.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    break;
                }
                let start = chunk * chunk_bytes;
                let records = &records[start..records.len().min(start + chunk_bytes)];
                let count = records.len() / record_len;
                let (nodes, leaves) = (&mut nodes[..count], &mut leaves[..count]);
                for (k, own) in own.iter_mut().enumerate() {
                    expand(chunk, k, nodes, leaves);
                    on_arm!(
                        self,
                        authenticated_sum::accumulate(nodes, leaves, records, record_len, own)
                    );
                }
            }
            // A panic of another thread makes the caller panic too, so it never sees wrong sums.
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            for (own, sum) in own.iter().zip(sums.iter_mut()) {
                add_reduced(own, record_len, sum);
            }
        });
    }

    /// How many records of `record_len` bytes [`authenticated_sums`](Kernels::authenticated_sums)
    /// should take at a time: a power of two, such that a chunk is between 128 and 256 KiB where
    /// record lengths allow that, at most 2¹⁰ records, and at least 16.
    pub fn authenticated_sums_chunk_records(record_len: usize) -> usize {
        const CHUNK_BYTES: usize = 256 << 10;
        // Nodes and leaves of so many fill the first-level cache.
        const MOST_RECORDS: usize = 1 << 10;
        // Sums are loaded and stored once for so many records, so that this costs little.
        const FEWEST_RECORDS: usize = 16;
        let fitting = (CHUNK_BYTES / record_len.max(1)).clamp(FEWEST_RECORDS, MOST_RECORDS);
        1 << fitting.ilog2()
    }

    /// The tag that belongs to a value: `tag[i]` becomes `factor` times element `i` of `value`.
    ///
    /// # Panics
    ///
    /// If `value` is empty, or `tag` does not have as many elements.
    pub fn tag(self, factor: u128, value: &[u8], tag: &mut [u128]) {
        assert!(!value.is_empty(), "values have at least one byte");
        assert_eq!(tag.len(), elements(value.len()), "a tag has as many elements as its value");
        // Treats the value as a table of one record, which is not selected and whose leaf is the
        // factor.
        let mut sums = lanes(value.len());
        on_arm!(
            self,
            authenticated_sum::accumulate(&[0], &[factor], value, value.len(), &mut sums)
        );
        let mut sum = Zeroizing::new(vec![0; 2 * tag.len()]);
        add_reduced(&sums, value.len(), &mut sum);
        tag.copy_from_slice(&sum[tag.len()..]);
    }
}

/// Sums of records of `record_len` bytes, all of them zero. Erased when dropped.
fn lanes(record_len: usize) -> Zeroizing<Vec<Lanes>> {
    Zeroizing::new(vec![Lanes::default(); elements(record_len).div_ceil(LANES)])
}

/// Reduces the sums, and adds them to the elements of value and tag.
fn add_reduced(lanes: &[Lanes], record_len: usize, sum: &mut [u128]) {
    let elements = elements(record_len);
    let (values, tags) = sum.split_at_mut(elements);
    for (group, lanes) in lanes.iter().enumerate() {
        for lane in 0..LANES {
            let element = match elements {
                1 | 2 => lane % elements,
                _ => group * LANES + lane,
            };
            if element < elements {
                values[element] ^= lanes.values[lane];
                tags[element] ^= reduced(lanes.lows[lane], lanes.middles[lane], lanes.highs[lane]);
            }
        }
    }
}

/// The remainder of `low + middle · x^64 + high · x^128` modulo `x^128 + x^7 + x^2 + x + 1`.
fn reduced(low: u128, middle: u128, high: u128) -> u128 {
    let (low, high) = (low ^ middle << 64, high ^ middle >> 64);
    // x^128 equals x^7 + x^2 + x + 1. This moves up to seven bits beyond the end again.
    let beyond = high >> 127 ^ high >> 126 ^ high >> 121;
    let folded = high ^ beyond;
    low ^ folded ^ folded << 1 ^ folded << 2 ^ folded << 7
}
