//! The server: reads the points around a query's point, and packs the encrypted sums of them.

use super::{CompressedAnswer, CompressedParameters, CompressedQuery};
use crate::contract::{Answerer as _, Role};
use crate::finite_differences::FiniteDifferencesServer;
use privet_core::ring::{BlockOut, Folding, PackingFactors};
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use std::ops::Range;

/// A server of the plain scheme that compresses its answers. It works on one thread.
pub struct CompressedServer {
    parameters: CompressedParameters,
    plain: FiniteDifferencesServer,
    factors: PackingFactors,
    folding: Folding,
    kernels: Kernels,
    /// For each e₁, the columns that are summed up, each with the place of its value in the plain
    /// answer: 16 bytes for each value.
    sums: Vec<Vec<(usize, usize)>>,
}

impl CompressedServer {
    /// Compresses the answers of `plain`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if that server has other parameters.
    pub fn new(
        parameters: CompressedParameters,
        plain: FiniteDifferencesServer,
        kernels: Kernels,
    ) -> Result<Self> {
        use crate::contract::Parameters as _;
        let (of_plain, expected) = (plain.parameters(), parameters.plain());
        if (of_plain.shape(), of_plain.encode()) != (expected.shape(), expected.encode()) {
            return Err(Error::api_misuse("the points are those of another polynomial"));
        }
        let ball = expected.ball();
        let place = |(column, difference)| (column, ball.rank(difference) as usize);
        let sums = parameters.lows().map(|low| parameters.differences(low).map(place).collect());
        let sums = sums.collect();
        let factors = PackingFactors::new(kernels, parameters.form(), &parameters.public(kernels));
        let folding = Folding::new(parameters.form());
        Ok(Self { parameters, plain, factors, folding, kernels, sums })
    }

    /// The server whose answers are compressed.
    pub fn plain(&self) -> &FiniteDifferencesServer {
        &self.plain
    }

    /// The answer to a query.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory: some
    /// 64 MiB, and 64 bytes for each column. [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if
    /// a block cannot be packed. That depends on the table and the point, and happens to no table
    /// that was not made for it.
    pub fn answer(&self, query: &CompressedQuery) -> Result<CompressedAnswer> {
        let Self { parameters, factors, kernels, .. } = self;
        let form = parameters.form();
        let (degree, symbols) = (form.degree(), parameters.answer_symbols() as usize);
        let plain = self.plain.answer(Role(0), std::slice::from_ref(&query.point));
        let values = &plain[0].entries[..];
        let mut sums = self.table_sums(values, query);
        let mut masks = vec![0; parameters.blocks() as usize * degree];
        let mut digits = Vec::with_capacity(4 * masks.len());
        let (mut scratch, mut fold) = (factors.scratch()?, vec![0; degree]);
        let mut matrix = vec![0; degree * degree.min(symbols)];
        for (block, mask) in masks.chunks_mut(degree).enumerate() {
            let sums = &mut sums[block * degree..];
            let rows = sums.len().min(degree);
            let matrix = &mut matrix[..rows * degree];
            let mut out = BlockOut { matrix: &mut *matrix, fold: &mut fold, mask };
            let read = |from: usize, count: usize, bytes: &mut Vec<u8>| {
                let first = block * degree + from;
                self.rows(values, first..first + count, bytes);
            };
            factors.pack(*kernels, rows, read, &mut scratch, &mut out)?;
            digits.extend(fold.iter().flat_map(|digit| digit.to_le_bytes()));
            add_packed(&mut sums[..rows], matrix, &query.keys.packing, form.key_bits()[0]);
        }
        let digits = self.folding.digits(*kernels, &digits);
        let block_rows = (0..symbols).step_by(degree).map(|first| degree.min(symbols - first));
        let symbols = self.folding.symbols(*kernels, &digits, &query.keys, &sums, block_rows);
        Ok(CompressedAnswer { form, masks, symbols })
    }

    /// The sums of the query's words, as fractions of 2^32: a word counts in a row if the value's
    /// bit is 1.
    fn table_sums(&self, values: &[u8], query: &CompressedQuery) -> Vec<u32> {
        let record_bits = self.parameters.record_bits() as usize;
        let mut sums = vec![0u32; self.parameters.answer_symbols() as usize];
        for (sums, of_low) in sums.chunks_exact_mut(record_bits).zip(&self.sums) {
            for (column, place) in of_low {
                let word = query.words[*column] << (32 - query.query_bits);
                for (bit, sum) in sums.iter_mut().enumerate() {
                    let is_set = u32::from(value_bit(values, place * record_bits + bit));
                    *sum = sum.wrapping_add(word & is_set.wrapping_neg());
                }
            }
        }
        sums
    }

    /// Some rows of the matrix, column by column, a byte for each bit.
    fn rows(&self, values: &[u8], rows: Range<usize>, bytes: &mut Vec<u8>) {
        let record_bits = self.parameters.record_bits() as usize;
        bytes.clear();
        bytes.resize(rows.len() * self.parameters.query_words() as usize, 0);
        for low in rows.start / record_bits..rows.end.div_ceil(record_bits) {
            let first = low * record_bits;
            let here = rows.start.max(first)..rows.end.min(first + record_bits);
            for (column, place) in &self.sums[low] {
                let into = &mut bytes[column * rows.len()..][..rows.len()];
                for row in here.clone() {
                    into[row - rows.start] = value_bit(values, place * record_bits + row - first);
                }
            }
        }
    }
}

/// A bit of a plain answer, whose values are whole bytes or single bits.
fn value_bit(values: &[u8], place: usize) -> u8 {
    values[place / 8] >> (place % 8) & 1
}

/// Adds the product of a block's packing matrix with the packing key, which has `key_bits` bits.
fn add_packed(sums: &mut [u32], matrix: &[u32], key: &[u64], key_bits: u32) {
    let mut products = vec![0u64; sums.len()];
    for (column, word) in matrix.chunks_exact(sums.len()).zip(key) {
        for (product, entry) in products.iter_mut().zip(column) {
            *product = product.wrapping_add(u64::from(*entry).wrapping_mul(*word));
        }
    }
    for (sum, product) in sums.iter_mut().zip(products) {
        *sum = sum.wrapping_add((product << (64 - key_bits) >> 32) as u32);
    }
}
