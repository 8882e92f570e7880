//! Points follow edits, as with two servers. The module [`update`](crate::finite_differences) there
//! says why they are copied, and when they are computed anew.
//!
//! A changed monomial adds to each point the change of its coefficient times the product of its
//! variables' values. This is not zero at ((q−1)/q)^D of all points. That is many more than with
//! two servers: a few edits together already need as many additions as there are points.

use super::ManyServersParameters;
use super::encoding::Encoding;
use super::field::Field;
use crate::finite_differences::points::room_for;
use crate::finite_differences::points_server::Way;
use privet_core::{Result, TableChanges};
use privet_kernels::memory::HugeBuffer;
use privet_schemes::sharing::share;

/// Bytes that are copied and patched at a time, unless an entry is longer: a part of a second-level
/// cache.
const BLOCK: usize = 128 << 10;

/// Computing a point takes longer than copying it. This is the number of patches that fit into the
/// difference: measured between 0.5 and 0.8 over the field of three elements.
const PATCHES_PER_POINT: f64 = 0.5;

pub(super) fn cheaper_way(parameters: &ManyServersParameters, changes: usize) -> Way {
    let field = f64::from(parameters.field());
    let touched = ((field - 1.0) / field).powi(parameters.degree() as i32);
    match changes as f64 * touched < PATCHES_PER_POINT {
        true => Way::Patched,
        false => Way::Computed,
    }
}

/// The patch that changes of the table make for the points.
pub(super) struct Patch<'a> {
    parameters: &'a ManyServersParameters,
    order: usize,
    monomials: Vec<Monomial>,
    /// The sum of any two bytes, symbol by symbol.
    sums: Vec<[u8; 256]>,
}

/// A monomial whose coefficient has changed.
struct Monomial {
    word: u64,
    /// The difference, as an entry, times 1, times 2, and so on.
    multiples: Vec<Vec<u8>>,
}

impl<'a> Patch<'a> {
    pub(super) fn new(parameters: &'a ManyServersParameters, changes: &TableChanges) -> Self {
        let (field, encoding) = (parameters.packing(), Encoding::new(parameters));
        let sums = Self::combinations(field, |one, other| (one + other) % field.order());
        let differences = Self::combinations(field, |one, other| field.difference(one, other));
        let entry = |record: &[u8]| {
            let mut entry = vec![0; parameters.entry_len()];
            encoding.write(record, &mut entry);
            entry
        };
        let monomials = changes.records().map(|(index, before, after)| {
            let mut multiples = vec![entry(after)];
            combine(&differences, &mut multiples[0], &entry(before));
            for times in 1..field.order() as usize - 1 {
                let mut next = multiples[times - 1].clone();
                combine(&sums, &mut next, &multiples[0]);
                multiples.push(next);
            }
            Monomial { word: parameters.words().word(index), multiples }
        });
        let (monomials, order) = (monomials.collect(), field.order() as usize);
        Self { parameters, order, monomials, sums }
    }

    /// The result for any two bytes, symbol by symbol. (For bytes that hold no symbols it means
    /// nothing.)
    fn combinations(field: Field, of: impl Fn(u32, u32) -> u32) -> Vec<[u8; 256]> {
        let (symbols, count) = (field.unpacked(), field.per_byte());
        let combined = |one: usize, other: usize| {
            let pairs = symbols[one][..count].iter().zip(&symbols[other][..count]);
            let combined = pairs.map(|(one, other)| of((*one).into(), (*other).into()));
            combined.rev().fold(0, |number, symbol| number * field.order() + symbol) as u8
        };
        (0..256).map(|other| std::array::from_fn(|one| combined(one, other))).collect()
    }

    /// A patched copy.
    pub(super) fn copied(&self, before: &[u8], threads: usize) -> Result<HugeBuffer<u8>> {
        let mut after = room_for(before.len() as u64)?;
        let entry_len = self.parameters.entry_len();
        let variables =
            (BLOCK / entry_len).max(1).ilog(self.order).min(self.parameters.variables());
        let len = entry_len * self.order.pow(variables);
        let blocks = before.chunks(len).zip(after.chunks_mut(len));
        share(threads, (0usize..).zip(blocks), || {
            |(number, (before, after)): (usize, (&[u8], &mut [u8]))| {
                after.copy_from_slice(before);
                for monomial in &self.monomials {
                    let factor = self.product(monomial.word >> variables, number);
                    let within = monomial.word & ((1 << variables) - 1);
                    self.add(monomial, within, factor, after);
                }
                Ok(())
            }
        })?;
        Ok(after)
    }

    /// The product of the variables of `word`, whose values are the digits of `point`.
    fn product(&self, mut word: u64, mut point: usize) -> usize {
        let mut product = 1;
        while word != 0 && product != 0 {
            if word & 1 == 1 {
                product = product * (point % self.order) % self.order;
            }
            point /= self.order;
            word >>= 1;
        }
        product
    }

    /// Adds `factor` times the monomial to all points of `block`. The monomial's variables within
    /// the block are those of `word`.
    fn add(&self, monomial: &Monomial, word: u64, factor: usize, block: &mut [u8]) {
        if factor == 0 {
            return;
        }
        let entry_len = self.parameters.entry_len();
        let Some(highest) = word.checked_ilog2() else {
            // No variable is left that it depends on.
            let multiple = &monomial.multiples[factor - 1];
            block.chunks_exact_mut(entry_len).for_each(|it| combine(&self.sums, it, multiple));
            return;
        };
        // The blocks for the values of the word's highest variable, repeated for the variables
        // above it.
        let len = entry_len * self.order.pow(highest);
        for values in block.chunks_exact_mut(len * self.order) {
            for (value, block) in values.chunks_exact_mut(len).enumerate() {
                self.add(monomial, word & !(1 << highest), factor * value % self.order, block);
            }
        }
    }
}

/// Combines each byte with another one.
fn combine(table: &[[u8; 256]], into: &mut [u8], with: &[u8]) {
    for (byte, with) in into.iter_mut().zip(with) {
        *byte = table[usize::from(*with)][usize::from(*byte)];
    }
}
