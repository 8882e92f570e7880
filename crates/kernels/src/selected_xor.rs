//! The XOR of selected records of a table, for several selections in one pass.
//!
//! This is the server's work in PIR from distributed point functions: a selection is one bit for each
//! record, pseudorandom, and the answer is the XOR of the records whose bit is set. Half of all records
//! are, but every record is read and worked on in the same way: time does not depend on the bits.
//!
//! # The walk
//!
//! ```text
//! table = chunks   as many records as the caller wants to produce selection bits for at a time; it should
//!                  stay in the second-level cache while one group of selections after another goes over it
//! chunk = pieces   at most 16 KiB, so that it stays in the first-level cache while the selections of a
//!                  group go over it, one by one
//! ```
//!
//! Bits are turned into masks of bytes, and a record is XORed into a sum under its mask. How depends on its
//! length:
//!
//! - *Narrow* records, of at most 64 bytes: 64 of them fill as many vectors of 64 bytes as a record has
//!   bytes, whatever that number is. Byte `n` of such a group belongs to record `n / record_len`, which for
//!   each vector is a fixed pattern; applied to the 64 bits of the group, it gives the vector's mask. Every
//!   vector of the group has a sum of its own, 64 records wide altogether, and these are added up at the
//!   end.
//! - *Wide* records: one mask for all bytes of a record, and a sum as long as a record. A last vector that
//!   a record does not fill is moved back until it ends with the record, and has a sum of its own, of
//!   which only what no other vector covered counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dispatch::Kernels;
use crate::threads;

/// Bytes of one line of sums, and the longest narrow record.
pub(crate) const LINE: usize = 64;

/// Narrow records of one group: as many as a line has bytes, so that every group begins alike.
pub(crate) const GROUP_RECORDS: usize = 64;

/// Bytes of one piece of a chunk: half of a first-level cache.
const PIECE_BYTES: usize = 16 << 10;

/// A piece of narrow records has a multiple of this number, so that the kernel can keep a sum in a register
/// over several groups.
const PIECE_RECORDS: usize = 256;

/// Of wide records a piece takes at most this many bytes each, so that at least 8 records share the
/// loading and storing of sums.
const SPAN_BYTES: usize = 2 << 10;

/// Selections whose bits lie in memory at a time: at least this many ...
const SELECTIONS_AT_A_TIME: usize = 8;
/// ... and more while they have no more than this many bytes.
const SELECTION_BYTES: usize = 32 << 10;

/// How far ahead of its loads a single selection prefetches, in bytes.
const STREAM_AHEAD: usize = 4096;

/// Bits of one word of a selection.
const WORD_RECORDS: usize = 128;

impl Kernels {
    /// `sums[k] ^=` the XOR of all records whose bit in selection `k` is set, for all `k`, in one pass over
    /// `records`, on up to `threads` threads.
    ///
    /// Record `r` is `records[r * record_len..(r + 1) * record_len]`. Records are taken in chunks of
    /// `chunk_records`, of which the last may be shorter; [a good number](Kernels::selected_xor_chunk_records)
    /// depends on their length. `select(chunk, k, bits)` writes the part of selection `k` for one chunk:
    /// bit `r % 128` of `bits[r / 128]` is for record `chunk * chunk_records + r`. It finds zeros or bits of
    /// earlier calls in `bits`, which has just as many words as the chunk needs; bits beyond the last record
    /// are ignored. It is called once for each chunk and each `k`, from several threads and in no
    /// particular order, shortly before the chunk is read, so that no selection ever lies in memory whole.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0 or does not divide `records.len()`, if `chunk_records` is 0 or not a multiple of
    /// 128, or if a sum is not `record_len` bytes long.
    pub fn xor_selected(
        self,
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
        let selections = sums.len();
        if selections == 0 || records.is_empty() {
            return;
        }
        let chunk_bytes = chunk_records.saturating_mul(record_len);
        let chunks = records.len().div_ceil(chunk_bytes);
        let threads = threads.clamp(1, chunks);
        let layout = Layout::new(record_len);

        let next_chunk = AtomicUsize::new(0);
        let sums = Mutex::new(sums);
        threads::for_each(threads, vec![(); threads], |()| {
            let most_records = chunk_records.min(records.len() / record_len);
            let mut walk = Walk::new(self, &layout, selections, most_records);
            loop {
                let chunk = next_chunk.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks {
                    break;
                }
                let start = chunk * chunk_bytes;
                let end = records.len().min(start.saturating_add(chunk_bytes));
                walk.take_chunk(&records[start..end], |k, bits| select(chunk, k, bits));
            }
            // Should another thread panic, so will the caller, who then sees no sums.
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            walk.add_to(&mut sums);
        });
    }

    /// How many records of `record_len` bytes [`xor_selected`](Kernels::xor_selected) should take at a time:
    /// a power of two times 128, such that a chunk is between 256 and 512 KiB where record lengths allow
    /// that, at most 2¹⁷ records, and at least 128.
    pub fn selected_xor_chunk_records(record_len: usize) -> usize {
        const CHUNK_BYTES: usize = 512 << 10;
        const MOST_RECORDS: usize = 1 << 17;
        let fitting = (CHUNK_BYTES / record_len.max(1)).clamp(WORD_RECORDS, MOST_RECORDS);
        1 << fitting.ilog2()
    }
}

/// How records of one length lie in lines of sums.
struct Layout {
    record_len: usize,
    /// Lines of sums of one selection.
    lines: usize,
    /// Of a group of narrow records: the record to which each byte belongs. Empty for wide ones.
    pattern: Vec<[u8; LINE]>,
}

impl Layout {
    fn new(record_len: usize) -> Layout {
        if record_len > LINE {
            return Layout { record_len, lines: record_len.div_ceil(LINE), pattern: Vec::new() };
        }
        let mut pattern = vec![[0; LINE]; record_len];
        for (byte, record) in pattern.as_flattened_mut().iter_mut().enumerate() {
            *record = (byte / record_len) as u8;
        }
        Layout { record_len, lines: record_len, pattern }
    }

    /// Records of one piece, and bytes of each of them.
    fn piece(&self) -> (usize, usize) {
        if self.record_len <= LINE {
            let records = (PIECE_BYTES / PIECE_RECORDS / self.record_len).max(1) * PIECE_RECORDS;
            return (records, self.record_len);
        }
        let spans = self.record_len.div_ceil(SPAN_BYTES);
        let span = self.record_len.div_ceil(spans).next_multiple_of(LINE);
        // A power of two, so that no piece needs bits from two words.
        (1 << (PIECE_BYTES / span).clamp(8, WORD_RECORDS).ilog2(), span)
    }

    /// Adds one selection's lines up into `sum`.
    fn fold(&self, lines: &[[u8; LINE]], sum: &mut [u8]) {
        let bytes = lines.as_flattened();
        if self.record_len <= LINE {
            for bytes in bytes.chunks_exact(self.record_len) {
                xor(sum, bytes);
            }
            return;
        }
        // The last line ends with the record, even where that overlaps the one before.
        let (whole, rest) = sum.split_at_mut(self.record_len / LINE * LINE);
        xor(whole, &bytes[..whole.len()]);
        xor(rest, &bytes[bytes.len() - rest.len()..]);
    }
}

fn xor(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// One thread's way over its chunks.
struct Walk<'a> {
    kernels: Kernels,
    layout: &'a Layout,
    selections: usize,
    /// The lines of each selection.
    sums: Vec<[u8; LINE]>,
    /// Bits of one chunk, for a group of selections.
    bits: Vec<u128>,
    group: usize,
}

impl<'a> Walk<'a> {
    /// For chunks of at most `chunk_records`.
    fn new(
        kernels: Kernels,
        layout: &'a Layout,
        selections: usize,
        chunk_records: usize,
    ) -> Walk<'a> {
        let words = chunk_records.div_ceil(WORD_RECORDS);
        let group = (SELECTION_BYTES / size_of::<u128>() / words).max(SELECTIONS_AT_A_TIME);
        let group = group.min(selections);
        Walk {
            kernels,
            layout,
            selections,
            sums: vec![[0; LINE]; layout.lines * selections],
            bits: vec![0; words * group],
            group,
        }
    }

    /// Adds up the selected records of one chunk, with `select(k, bits)` for the selections.
    fn take_chunk(&mut self, records: &[u8], select: impl Fn(usize, &mut [u128])) {
        let words = (records.len() / self.layout.record_len).div_ceil(WORD_RECORDS);
        for first in (0..self.selections).step_by(self.group) {
            let group = self.group.min(self.selections - first);
            let bits = &mut self.bits[..words * group];
            for (k, bits) in (first..).zip(bits.chunks_exact_mut(words)) {
                select(k, bits);
            }
            let lines = self.layout.lines;
            let sums = &mut self.sums[first * lines..(first + group) * lines];
            if self.layout.record_len <= LINE {
                narrow_chunk(self.kernels, self.layout, records, bits, sums);
            } else {
                wide_chunk(self.kernels, self.layout, records, bits, sums);
            }
        }
    }

    fn add_to(&self, sums: &mut [&mut [u8]]) {
        for (sum, lines) in sums.iter_mut().zip(self.sums.chunks_exact(self.layout.lines)) {
            self.layout.fold(lines, sum);
        }
    }
}

/// A chunk of narrow records, for selections whose bits and sums lie one after the other.
fn narrow_chunk(
    kernels: Kernels,
    layout: &Layout,
    records: &[u8],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
) {
    let selections = sums.len() / layout.lines;
    let words = bits.len() / selections;
    let (piece_records, record_len) = layout.piece();
    let piece_words = piece_records / WORD_RECORDS;
    for (piece, records) in records.chunks(piece_records * record_len).enumerate() {
        let start = piece * piece_words;
        let end = words.min(start + piece_words);
        let of_each = bits.chunks_exact(words).zip(sums.chunks_exact_mut(layout.lines));
        for (k, (bits, sums)) in of_each.enumerate() {
            let prefetch = Prefetch::by(k, selections, records.len());
            kernels.xor_narrow(records, &layout.pattern, &bits[start..end], sums, prefetch);
        }
    }
}

/// A chunk of wide records, likewise.
fn wide_chunk(
    kernels: Kernels,
    layout: &Layout,
    records: &[u8],
    bits: &[u128],
    sums: &mut [[u8; LINE]],
) {
    let selections = sums.len() / layout.lines;
    let words = bits.len() / selections;
    let record_len = layout.record_len;
    let (piece_records, span) = layout.piece();
    for (piece, records) in records.chunks(piece_records * record_len).enumerate() {
        let first = piece * piece_records;
        let (word, shift) = (first / WORD_RECORDS, first % WORD_RECORDS);
        for start in (0..record_len).step_by(span) {
            let columns = start..record_len.min(start + span);
            // The same columns of the next records, or the next columns of these.
            let ahead = if span < record_len { span } else { records.len() };
            let of_each = bits.chunks_exact(words).zip(sums.chunks_exact_mut(layout.lines));
            for (k, (bits, sums)) in of_each.enumerate() {
                let prefetch = Prefetch::by(k, selections, ahead);
                let bits = bits[word] >> shift;
                kernels.xor_wide(records, record_len, columns.clone(), bits, sums, prefetch);
            }
        }
    }
}

/// What one selection's way over a piece asks for on behalf of what comes next: memory so many bytes ahead of
/// each load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// The only selection: into the first-level cache, a little ahead.
    Stream(usize),
    /// The first of several: the whole next piece, into the second-level cache.
    NextPiece(usize),
    /// The others find everything in the caches.
    Nothing,
}

impl Prefetch {
    /// For one of several selections, when the next piece begins `next_piece` bytes after this one.
    fn by(selection: usize, selections: usize, next_piece: usize) -> Prefetch {
        match (selections, selection) {
            (1, _) => Prefetch::Stream(STREAM_AHEAD),
            (_, 0) => Prefetch::NextPiece(next_piece),
            _ => Prefetch::Nothing,
        }
    }
}
