//! Records as symbols of the field, and the truth table of the polynomial that has them as coefficients.
//!
//! **A record as symbols.** A record is cut into chunks of 16 bytes, the last of what is left. A chunk of c bytes is a little-endian number, written in base q with the fewest digits that do for all of them, the
//! lowest first; the digits of all chunks in a row, packed, are the record's entry.
//!
//! **The truth table.** A polynomial of degree 1 in a variable is `c₀ + z·c₁`, with polynomials c₀ and c₁ in the others. Seen from its highest variable, the truth table is q blocks: the first is that of c₀, and each
//! following one is that before it plus the truth table of c₁. So both are computed, where the first two blocks are, and the others follow by addition; and each of the two, smaller polynomials is treated
//! likewise. The words come up in ascending order, as the records do, and whatever lies in cache is finished before the next is begun: only blocks larger than the cache are read and written again, less and less of them (2/q of the
//! bytes for each variable down).

use super::ManyServersParameters;
use super::field::{Field, PackedSums};
use crate::contract::Record;
use privet_core::{Error, Result, TableView};
use zeroize::Zeroizing;

/// Bytes that are one number.
const CHUNK: usize = 16;

/// How many bytes of each block are added up at a time, so that they stay in the processor's first-level cache.
const TILE: usize = 1 << 9;

/// Progress is told of after work of so many bytes at once.
const NOTEWORTHY: usize = 1 << 20;

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

    /// The record that has these symbols: those of an entry, all of them below q.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if no record has: an answer was wrong.
    pub(super) fn read(&self, symbols: &[u8]) -> Result<Record> {
        let mut record = Zeroizing::new(vec![0; self.record_len]);
        let (symbols, padding) = symbols.split_at(self.symbols());
        let mut left = symbols;
        let mut valid = padding.iter().all(|symbol| *symbol == 0);
        for chunk in record.chunks_mut(CHUNK) {
            let (these, others) = left.split_at(self.digits[chunk.len()]);
            let number = these.iter().rev().try_fold(0u128, |number, digit| {
                number.checked_mul(self.field.order().into())?.checked_add((*digit).into())
            });
            let number = number.filter(|number| *number <= largest(chunk.len()));
            valid &= number.is_some();
            chunk.copy_from_slice(&number.unwrap_or(0).to_le_bytes()[..chunk.len()]);
            left = others;
        }
        if !valid {
            return Err(Error::peer_misbehaved(
                "the servers' answers together are no record: one of them answered wrongly, or they do not all hold the same table. Which of them it was cannot be known; ask other servers",
            ));
        }
        Ok(record)
    }
}

/// Computes the truth table of the polynomial whose coefficients are the records of `table`, into `points`, which it overwrites: the entry of point z stands at `Σ_j z_j · q^j` times
/// [`entry_len`](ManyServersParameters::entry_len). `progress` hears of the share done, from 0 to 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape, or `points` is not of [`points_bytes`](ManyServersParameters::points_bytes).
pub fn encode(
    parameters: &ManyServersParameters,
    table: TableView<'_>,
    points: &mut [u8],
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let records = table.bytes_for(parameters.shape())?;
    if points.len() as u64 != parameters.points_bytes() {
        return Err(Error::api_misuse(format!(
            "the points take {} bytes, room was given for {}",
            parameters.points_bytes(),
            points.len()
        )));
    }
    let encoding = Encoding::new(parameters);
    let mut expansion = Expansion {
        records: records.chunks_exact(encoding.record_len),
        order: parameters.field() as usize,
        entry_len: parameters.entry_len(),
        encoding,
        sums: PackedSums::new(parameters.packing()),
        total: points.len(),
        done: 0,
        progress,
    };
    expansion.expand(points, parameters.variables(), parameters.degree());
    progress(1.0);
    Ok(())
}

/// A truth table in the making.
struct Expansion<'a> {
    /// Those whose words have not come up yet.
    records: std::slice::ChunksExact<'a, u8>,
    encoding: Encoding,
    order: usize,
    entry_len: usize,
    sums: PackedSums,
    /// The work in bytes, which is as long as the table, and how much of it is done. A block that is filled is work of its length, one that is added up of what the first two blocks in it were not.
    total: usize,
    done: usize,
    progress: &'a (dyn Fn(f64) + Sync),
}

impl Expansion<'_> {
    /// Fills `block` with the truth table of the polynomial in so many variables whose coefficients are the next records, one for each word of so much weight.
    fn expand(&mut self, block: &mut [u8], variables: u32, weight: u32) {
        if weight > variables || self.records.len() == 0 {
            block.fill(0);
            self.report(block.len());
            return;
        }
        if weight == 0 {
            // Constant: one record, and no variable to depend on.
            if let Some(record) = self.records.next() {
                let (first, others) = block.split_at_mut(self.entry_len);
                self.encoding.write(record, first);
                others.chunks_exact_mut(first.len()).for_each(|entry| entry.copy_from_slice(first));
            }
            self.report(block.len());
            return;
        }
        let len = block.len() / self.order;
        let (without, others) = block.split_at_mut(len);
        self.expand(without, variables - 1, weight);
        self.expand(&mut others[..len], variables - 1, weight - 1);
        self.add_up(without, others);
    }

    /// `without` is the block c₀, and the first of `others` c₁. Makes `others` c₀ + c₁, c₀ + 2·c₁, and so on.
    fn add_up(&mut self, without: &[u8], others: &mut [u8]) {
        let (mut sums, mut addends) = ([0; TILE], [0; TILE]);
        for start in (0..without.len()).step_by(TILE) {
            let len = TILE.min(without.len() - start);
            let (sums, addends) = (&mut sums[..len], &mut addends[..len]);
            sums.copy_from_slice(&without[start..][..len]);
            addends.copy_from_slice(&others[start..][..len]);
            for other in others.chunks_exact_mut(without.len()) {
                self.sums.add(sums, addends);
                other[start..][..len].copy_from_slice(sums);
            }
        }
        self.report(others.len() - without.len());
    }

    fn report(&mut self, work: usize) {
        self.done += work;
        if work >= NOTEWORTHY {
            (self.progress)(self.done as f64 / self.total as f64);
        }
    }
}
