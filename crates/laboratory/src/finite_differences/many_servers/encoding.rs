//! Records as symbols of the field.
//!
//! A record is cut into chunks of 16 bytes; the last one may be shorter. A chunk of c bytes is a
//! little-endian number. It is written in base q, the lowest digit first, with the fewest digits
//! that are enough for all chunks of c bytes. The digits of all chunks in a row, packed, are the
//! record's entry.

pub(super) mod planes;
pub(super) mod truth_table;

pub use truth_table::{encode, write_points};

use super::ManyServersParameters;
use super::field::Field;
use zeroize::Zeroizing;

/// Bytes that are one number.
const CHUNK: usize = 16;

/// How many chunks a piece has for each symbol of a byte. A piece has some kilobytes.
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

    /// The lengths of a piece, in bytes of the record and of the entry. A piece begins with a chunk
    /// in the record and with a byte in the entry, so that pieces can be read one by one.
    pub(super) fn piece(&self) -> (usize, usize) {
        // If there are as many chunks as a byte has symbols, their digits end with a byte.
        (PIECE * CHUNK * self.field.per_byte(), PIECE * self.digits[CHUNK])
    }

    /// The record, or the piece of it, that has these symbols. The symbols of a wrong answer may
    /// not be those of any record: a number may be too large for its chunk, or symbols beyond the
    /// record's last one may not be zero. They still give some record, each number modulo the size
    /// of its chunk. An error would show in what the client does next, and whether there is one can
    /// depend on the wanted record.
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
