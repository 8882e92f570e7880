//! One selection after another goes over a piece, with masks made from its bits. How depends on the length of
//! a record:
//!
//! - *Narrow* records, of at most 64 bytes: 64 of them fill as many lines of 64 bytes as a record has
//!   bytes, whatever that number is. Byte `n` of such a group belongs to record `n / record_len`, which for
//!   each line is a fixed pattern; applied to the 64 bits of the group, it gives the line's mask. Every
//!   line of the group has a sum of its own, 64 records wide altogether, and these are added up at the
//!   end.
//! - *Wide* records: one mask for all bytes of a record, and a sum as long as a record. A last line that
//!   a record does not fill is moved back until it ends with the record, and has a sum of its own, of
//!   which only what no other line covered counts.

use std::ops::Range;

use super::{LINE, Shape, ThreadSums, WORD_RECORDS, xor};
use crate::dispatch::Kernels;

/// Narrow records of one group: as many as a line has bytes, so that every group begins alike.
pub(crate) const GROUP_RECORDS: usize = 64;

/// Bytes of one piece of a chunk: half of a first-level cache.
const PIECE_BYTES: usize = 16 << 10;

/// Narrow records that the vector arms take at a time; a piece has a multiple of them.
const BATCH_RECORDS: usize = 256;

/// Wide records likewise.
const BATCH_ROWS: usize = 8;

/// Of wide records a piece takes at most this many bytes each, so that it has room for a batch ...
const SPAN_BYTES: usize = PIECE_BYTES / BATCH_ROWS;
/// ... unless a single selection streams them, for which only its sum should stay in the cache.
const STREAM_SPAN_BYTES: usize = PIECE_BYTES;

/// Selections whose bits lie in memory at a time: at least this many ...
const SELECTIONS_AT_A_TIME: usize = 8;
/// ... and more while they have no more than this many bytes.
const SELECTION_BYTES: usize = 32 << 10;

/// How far ahead of its loads a single selection prefetches, in bytes: no less than the arms take at a time,
/// because that is not read from front to back.
const STREAM_AHEAD: usize = 8192;

/// The sums of one thread.
pub(super) struct Sums {
    kernels: Kernels,
    shape: Shape,
    /// Lines of one selection.
    lines: usize,
    /// Of a group of narrow records: the record to which each byte belongs. Empty for wide ones.
    pattern: Vec<[u8; LINE]>,
    /// The lines of each selection.
    sums: Vec<[u8; LINE]>,
    /// Bits of one chunk, for as many selections as are worked on at a time.
    bits: Vec<u128>,
}

impl Sums {
    pub(super) fn new(kernels: Kernels, shape: Shape) -> Sums {
        let mut pattern = Vec::new();
        let mut lines = shape.record_len.div_ceil(LINE);
        if shape.record_len <= LINE {
            lines = shape.record_len;
            pattern = vec![[0; LINE]; lines];
            for (byte, record) in pattern.as_flattened_mut().iter_mut().enumerate() {
                *record = (byte / shape.record_len) as u8;
            }
        }
        let words = shape.chunk_records.div_ceil(WORD_RECORDS);
        let at_a_time = (SELECTION_BYTES / size_of::<u128>() / words).max(SELECTIONS_AT_A_TIME);
        let bits = vec![0; words * at_a_time.min(shape.selections)];
        Sums {
            kernels,
            shape,
            lines,
            pattern,
            sums: vec![[0; LINE]; lines * shape.selections],
            bits,
        }
    }
}

impl ThreadSums for Sums {
    fn take_chunk(&mut self, records: &[u8], select: impl Fn(usize, &mut [u128])) {
        let words = (records.len() / self.shape.record_len).div_ceil(WORD_RECORDS);
        let at_a_time = self.bits.len() / self.shape.chunk_records.div_ceil(WORD_RECORDS);
        for (i, sums) in self.sums.chunks_mut(self.lines * at_a_time).enumerate() {
            let selections = sums.len() / self.lines;
            let bits = &mut self.bits[..words * selections];
            for (k, bits) in bits.chunks_exact_mut(words).enumerate() {
                select(i * at_a_time + k, bits);
            }
            let group = Group { words, bits, lines: self.lines, sums };
            if self.shape.record_len <= LINE {
                narrow_chunk(self.kernels, records, &self.pattern, group);
            } else {
                wide_chunk(self.kernels, records, self.shape.record_len, group);
            }
        }
    }

    fn add_to(&self, sums: &mut [&mut [u8]]) {
        let record_len = self.shape.record_len;
        for (sum, lines) in sums.iter_mut().zip(self.sums.chunks_exact(self.lines)) {
            let bytes = lines.as_flattened();
            if record_len <= LINE {
                bytes.chunks_exact(record_len).for_each(|bytes| xor(sum, bytes));
            } else {
                // The last line ends with the record, even where that overlaps the one before.
                let (whole, rest) = sum.split_at_mut(record_len / LINE * LINE);
                xor(whole, &bytes[..whole.len()]);
                xor(rest, &bytes[bytes.len() - rest.len()..]);
            }
        }
    }
}

/// The selections that go over a chunk, one after the other.
struct Group<'a> {
    words: usize,
    /// `words` of each.
    bits: &'a [u128],
    lines: usize,
    /// `lines` of each.
    sums: &'a mut [[u8; LINE]],
}

impl Group<'_> {
    /// Calls `add` for each selection, with its bits and lines and with what it should prefetch when the next
    /// piece is so many bytes away.
    fn each(
        &mut self,
        next_piece: usize,
        mut add: impl FnMut(&[u128], &mut [[u8; LINE]], Prefetch),
    ) {
        let of_each =
            self.bits.chunks_exact(self.words).zip(self.sums.chunks_exact_mut(self.lines));
        let selections = of_each.len();
        for (k, (bits, sums)) in of_each.enumerate() {
            let prefetch = match (selections, k) {
                (1, _) => { static C: std::sync::LazyLock<(u8, usize)> = std::sync::LazyLock::new(|| (std::env::var("LV").map_or(1, |v| v.parse().unwrap()), std::env::var("AH").map_or(8192, |v| v.parse().unwrap()))); match C.0 { 0 => Prefetch::Nothing, 2 => Prefetch::NextPiece(C.1), _ => Prefetch::Stream(C.1) } }
                (_, 0) => Prefetch::NextPiece(next_piece),
                _ => Prefetch::Nothing,
            };
            add(bits, sums, prefetch);
        }
    }
}

fn narrow_chunk(kernels: Kernels, records: &[u8], pattern: &[[u8; LINE]], mut group: Group) {
    let batch_bytes = BATCH_RECORDS * pattern.len();
    let batches = (PIECE_BYTES / batch_bytes).max(1);
    let piece_words = batches * BATCH_RECORDS / WORD_RECORDS;
    for (piece, records) in records.chunks(batches * batch_bytes).enumerate() {
        let start = piece * piece_words;
        let end = group.words.min(start + piece_words);
        group.each(records.len(), |bits, sums, prefetch| {
            kernels.xor_narrow(records, pattern, &bits[start..end], sums, prefetch);
        });
    }
}

fn wide_chunk(kernels: Kernels, records: &[u8], record_len: usize, mut group: Group) {
    let single = group.sums.len() == group.lines;
    let spans = record_len.div_ceil(if single { STREAM_SPAN_BYTES } else { SPAN_BYTES });
    let span = record_len.div_ceil(spans).next_multiple_of(LINE);
    // A power of two, so that no piece needs bits from two words.
    let piece_records = 1 << (PIECE_BYTES / span).clamp(BATCH_ROWS, WORD_RECORDS).ilog2();
    for (piece, records) in records.chunks(piece_records * record_len).enumerate() {
        let first = piece * piece_records;
        let (word, shift) = (first / WORD_RECORDS, first % WORD_RECORDS);
        for start in (0..record_len).step_by(span) {
            let columns: Range<usize> = start..record_len.min(start + span);
            // The next columns of these records, or the same ones, which are all, of the next records.
            let next_piece = if spans > 1 { span } else { records.len() };
            group.each(next_piece, |bits, sums, prefetch| {
                let bits = bits[word] >> shift;
                kernels.xor_wide(records, record_len, columns.clone(), bits, sums, prefetch);
            });
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
