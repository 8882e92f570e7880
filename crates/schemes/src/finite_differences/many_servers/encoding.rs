//! Records as symbols of the field.
//!
//! A record is cut into chunks of 16 bytes, the last of what is left. A chunk of c bytes is a
//! little-endian number, written in base q with the fewest digits that do for all of them, the
//! lowest first; the digits of all chunks in a row, packed, are the record's entry.

pub(super) mod planes;
pub(super) mod truth_table;

pub use truth_table::{encode, write_points};

use super::ManyServersParameters;
use super::field::Field;
use zeroize::Zeroizing;

/// Bytes that are one number.
const CHUNK: usize = 16;

/// How many chunks a piece has for each symbol in a byte: some kilobytes in all.
const PIECE: usize = 16;

/// Size of a record's symbols, packed, in bytes. `None` beyond 64 bits.
pub(super) fn entry_len(field: Field, record_len: u64) -> Option<u64> {
    let (chunks, rest) = (record_len / CHUNK as u64, (record_len % CHUNK as u64) as usize);
    let symbols = chunks.checked_mul(digits(field, CHUNK) as u64)?;
    let symbols = symbols.checked_add(digits(field, rest) as u64)?;
    Some(symbols.div_ceil(field.per_byte() as u64))
}

/// How many digits a number of so many bytes has, at most.
fn digits(field: Field, bytes: usize) -> usize {
    let (mut largest, mut digits) = (largest(bytes), 0);
    while largest > 0 {
        largest /= u128::from(field.order());
        digits += 1;
    }
    digits
}

/// The largest number of so many bytes, up to 16.
fn largest(bytes: usize) -> u128 {
    match bytes {
        0 => 0,
        _ => u128::MAX >> (8 * (CHUNK - bytes)),
    }
}

/// Turns records into entries, and back.
pub(super) struct Encoding {
    field: Field,
    record_len: usize,
    /// Digits of a chunk of so many bytes.
    digits: [usize; CHUNK + 1],
}

impl Encoding {
    pub(super) fn new(parameters: &ManyServersParameters) -> Self {
        let (field, record_len) = (parameters.packing(), parameters.shape().record_len() as usize);
        Self { field, record_len, digits: std::array::from_fn(|bytes| digits(field, bytes)) }
    }

    /// How many symbols a record has.
    pub(super) fn symbols(&self) -> usize {
        self.record_len / CHUNK * self.digits[CHUNK] + self.digits[self.record_len % CHUNK]
    }

    /// The record's entry.
    pub(super) fn write(&self, record: &[u8], entry: &mut [u8]) {
        let mut symbols = Zeroizing::new(Vec::with_capacity(self.symbols()));
        for chunk in record.chunks(CHUNK) {
            let mut bytes = [0; CHUNK];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let mut number = u128::from_le_bytes(bytes);
            for _ in 0..self.digits[chunk.len()] {
                symbols.push((number % u128::from(self.field.order())) as u8);
                number /= u128::from(self.field.order());
            }
        }
        self.field.pack(&symbols, entry);
    }

    /// Records and entries can be read in pieces that begin with a chunk and, in the entry, with a
    /// byte: how many bytes of either a piece has.
    pub(super) fn piece(&self) -> (usize, usize) {
        // As many chunks as a byte has symbols end with a byte.
        (PIECE * CHUNK * self.field.per_byte(), PIECE * self.digits[CHUNK])
    }

    /// The record, or the piece of it, that has these symbols. Those of a wrong answer may be no
    /// record's: a number too large for its chunk, or more digits than there are. They give some
    /// record all the same, each number modulo what its chunk can hold, because an error would show
    /// by what the client does next, and whether there is one can depend on the record that was
    /// asked for.
    pub(super) fn read(&self, symbols: &[u8], record: &mut [u8]) {
        let mut left = symbols;
        for chunk in record.chunks_mut(CHUNK) {
            let (these, others) = left.split_at(self.digits[chunk.len()]);
            let number = these.iter().rev().fold(0u128, |number, digit| {
                number.wrapping_mul(self.field.order().into()).wrapping_add((*digit).into())
            });
            chunk.copy_from_slice(&number.to_le_bytes()[..chunk.len()]);
            left = others;
        }
    }
}
