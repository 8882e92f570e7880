//! Every record is XORed into the sum of each selection under a mask made from its bit. The method
//! depends on the length of a record:
//!
//! - *Narrow* records, of at most 64 bytes: 64 of them, a group, fill as many lines of 64 bytes as
//!   a record has bytes. Byte `n` of a group belongs to record `n / record_len`, which is a fixed
//!   pattern for each line. This pattern, applied to the 64 bits of the group, gives the line's
//!   mask. Every line of the group has its own sum, so that all sums together are 64 records wide.
//!   They are added up at the end. An arm may leave some of them zero.
//! - *Wide* records: one mask for all bytes of a record, and a sum as long as a record. If a record
//!   does not fill the last line, this line is moved back until it ends with the record. It has its
//!   own sum; only the bytes that no other line covered count.
//!
//! With a single selection, memory is the only limit. On Zen 4, a loop that reads from front to
//! back gets up to 33 GB/s without prefetches, and 25 GB/s with them. In any other order it gets 24
//! GB/s with prefetches from front to back, and 12 GB/s otherwise. As a share of read bandwidth,
//! one query runs at 0.95; an earlier form with software prefetches ran at 0.4.

use super::{CacheLines, LINE, Shape, ThreadSums, WORD_RECORDS, xor};
use crate::dispatch::Kernels;
use crate::dispatch::on_arm;

/// Narrow records of one group: as many as a line has bytes, so that every group begins with a
/// line.
pub(crate) const GROUP_RECORDS: usize = 64;

/// Bytes of one piece of a chunk: half of a first-level cache.
const PIECE_BYTES: usize = 16 << 10;

/// A piece of narrow records has a multiple of so many. Otherwise the arms would have to process
/// remainders.
const BATCH_RECORDS: usize = 256;

/// A piece of wide records has a multiple of these.
const BATCH_ROWS: usize = 8;

/// A piece takes at most this many bytes of each wide record, so that it has room for a batch ...
const SPAN_BYTES: usize = PIECE_BYTES / BATCH_ROWS;
/// ... unless a single selection streams them. Then only its sum must stay in the cache.
const STREAM_SPAN_BYTES: usize = PIECE_BYTES;

/// Selections whose bits lie in memory at a time: at least this many ...
const SELECTIONS_AT_A_TIME: usize = 8;
/// ... and more while they have no more than this many bytes.
const SELECTION_BYTES: usize = 32 << 10;

/// The sums of one thread.
pub(super) struct Sums {
    kernels: Kernels,
    shape: Shape,
    /// Lines of one selection.
    lines: usize,
    /// The record to which each byte of a group of narrow records belongs. Empty for wide ones.
    pattern: Vec<[u8; LINE]>,
    /// The lines of each selection.
    sums: CacheLines,
    /// Bits of one chunk, for as many selections as are processed at a time.
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
        let sums = CacheLines::zeroed(lines * shape.selections);
        Sums { kernels, shape, lines, pattern, sums, bits }
    }
}

impl ThreadSums for Sums {
    fn take_chunk(&mut self, records: &[u8], select: impl Fn(usize, &mut [u128])) {
        let record_len = self.shape.record_len;
        let words = (records.len() / record_len).div_ceil(WORD_RECORDS);
        let at_a_time = self.bits.len() / self.shape.chunk_records.div_ceil(WORD_RECORDS);
        for (i, sums) in self.sums.chunks_mut(self.lines * at_a_time).enumerate() {
            let selections = sums.len() / self.lines;
            let bits = &mut self.bits[..words * selections];
            for (k, bits) in bits.chunks_exact_mut(words).enumerate() {
                select(i * at_a_time + k, bits);
            }
            let bits = Bits { all: bits, words, first_record: 0 };
            if record_len <= LINE {
                narrow_chunk(self.kernels, records, &self.pattern, bits, sums);
            } else {
                wide_chunk(self.kernels, records, record_len, bits, sums);
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

/// The bits of several selections, from some record on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'a> {
    /// The bits of a chunk, one selection after the other.
    all: &'a [u128],
    /// Words of each.
    words: usize,
    /// The first record, counted from the beginning of the chunk.
    first_record: usize,
}

impl<'a> Bits<'a> {
    fn starting_at(self, first_record: usize) -> Bits<'a> {
        Bits { first_record, ..self }
    }

    /// How many selections.
    pub(crate) fn selections(self) -> usize {
        self.all.len() / self.words
    }

    /// Words of selection `k`, the first of which begins with the first record or one before it.
    pub(crate) fn words(self, k: usize) -> &'a [u128] {
        &self.all[k * self.words..(k + 1) * self.words][self.first_record / WORD_RECORDS..]
    }

    /// Bits of selection `k`, as many as the word has from the first record on.
    pub(crate) fn word(self, k: usize) -> u128 {
        self.words(k)[0] >> (self.first_record % WORD_RECORDS)
    }
}

fn narrow_chunk(
    kernels: Kernels,
    records: &[u8],
    pattern: &[[u8; LINE]],
    bits: Bits,
    sums: &mut [[u8; LINE]],
) {
    let batch_bytes = BATCH_RECORDS * pattern.len();
    let batches = (PIECE_BYTES / batch_bytes).max(1);
    for (piece, records) in records.chunks(batches * batch_bytes).enumerate() {
        let bits = bits.starting_at(piece * batches * BATCH_RECORDS);
        on_arm!(kernels, selected_xor::one_by_one::narrow(records, pattern, bits, sums));
    }
}

fn wide_chunk(
    kernels: Kernels,
    records: &[u8],
    record_len: usize,
    bits: Bits,
    sums: &mut [[u8; LINE]],
) {
    let most = if bits.selections() == 1 { STREAM_SPAN_BYTES } else { SPAN_BYTES };
    let spans = record_len.div_ceil(most);
    let span = record_len.div_ceil(spans).next_multiple_of(LINE);
    // The number is a power of two, so that no piece needs bits from two words.
    let piece_records = 1 << (PIECE_BYTES / span).clamp(BATCH_ROWS, WORD_RECORDS).ilog2();
    for (piece, records) in records.chunks(piece_records * record_len).enumerate() {
        let bits = bits.starting_at(piece * piece_records);
        for start in (0..record_len).step_by(span) {
            let columns = start..record_len.min(start + span);
            on_arm!(
                kernels,
                selected_xor::one_by_one::wide(records, record_len, columns, bits, sums)
            );
        }
    }
}
