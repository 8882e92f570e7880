//! Points follow edits.
//!
//! A record is the coefficient of one monomial, the product of the variables in its word. So an edit changes the points that are supersets of the word, all by the same: the XOR of the record before and after. That is one
//! point in 2^D, but they lie all over the place, and several edits together soon touch every cache line more often than computing all points anew would. What takes less is estimated from the
//! lines that are touched.
//!
//! The server before goes on answering, so its points are copied. They are copied block by block, and each block is patched while it is in the cache.

use super::encoding::sharing::share;
use super::{FiniteDifferencesParameters, FiniteDifferencesServer, encoding, points};
use crate::contract::{Answerer as _, Parameters as _, Succession};
use privet_core::hints::xor;
use privet_core::{Error, Result, TableChanges, TableShape, TableView};
use privet_kernels::memory::HugeBuffer;

/// Bytes that are copied and patched at a time, unless a unit is longer: a part of a second-level cache.
const BLOCK: usize = 256 << 10;

/// How many times a unit can be patched in the time that computing it takes longer than copying it: 7 measured for records of one byte, 10 for those of 32.
const PATCHES_PER_UNIT: u64 = 6;

/// How the points of the next version come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Copied and patched.
    Patched,
    /// Computed from all records.
    Computed,
}

impl Succession for FiniteDifferencesServer {
    /// Not of points in a file: those of the next version are computed into a file of their own, if that is where they should be.
    fn successor(
        &self,
        parameters: FiniteDifferencesParameters,
        table: TableView<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        let server = self.successor_by(None, parameters, table, changes, threads)?;
        Ok(server.map(|server| (server, Vec::new())))
    }
}

impl FiniteDifferencesServer {
    /// `way`: the cheaper one, unless it is said.
    pub(super) fn successor_by(
        &self,
        way: Option<Way>,
        parameters: FiniteDifferencesParameters,
        table: TableView<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<Self>> {
        let records = table.bytes_for(parameters.shape())?;
        check_ends(changes, self.parameters().shape(), parameters.shape())?;
        let Some(before) = self.points.in_memory() else { return Ok(None) };
        if parameters.encode() != self.parameters().encode() {
            // Another polynomial, because the table has outgrown this one.
            return Ok(None);
        }
        let after = match way.unwrap_or_else(|| cheaper_way(&parameters, changes)) {
            Way::Patched => Patch::new(&parameters, changes)?.copied(before, threads)?,
            Way::Computed => {
                encoding::encode(&parameters, records, self.kernels, threads, &|_| {})?
            }
        };
        Self::new(parameters, after.into(), self.kernels).map(Some)
    }
}

/// Checks that changes lead from a table of one shape to one of another.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they do not.
pub(super) fn check_ends(
    changes: &TableChanges,
    before: TableShape,
    after: TableShape,
) -> Result<()> {
    match (changes.shape(), changes.shape_after()) == (before, after) {
        true => Ok(()),
        false => Err(Error::api_misuse("the changes are between tables of other shapes")),
    }
}

/// Of each monomial, the units in which it is not zero are counted: the supersets of its word.
pub(super) fn cheaper_way(parameters: &FiniteDifferencesParameters, changes: &TableChanges) -> Way {
    let low = parameters.variables_in_line().min(parameters.variables());
    let variables = parameters.variables() - low;
    let patches = changes.records().map(|(index, ..)| {
        let high = parameters.words().word(index) >> low;
        1u64 << (variables - high.count_ones())
    });
    match patches.fold(0, u64::saturating_add) >> variables < PATCHES_PER_UNIT {
        true => Way::Patched,
        false => Way::Computed,
    }
}

/// What changes make of points. A unit is the points that differ in the lowest variables alone: those of a cache line, or one.
struct Patch<'a> {
    parameters: &'a FiniteDifferencesParameters,
    unit_len: usize,
    /// Variables of all units, m less those within one.
    variables: u32,
    monomials: Vec<Monomial>,
}

/// A monomial whose coefficient has changed.
struct Monomial {
    /// Its variables beyond those of a unit.
    high: u64,
    /// What it adds to each unit in which it is not zero.
    unit: Vec<u8>,
}

impl<'a> Patch<'a> {
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records should be single bits and one is not.
    fn new(parameters: &'a FiniteDifferencesParameters, changes: &TableChanges) -> Result<Self> {
        let low = parameters.variables_in_line().min(parameters.variables());
        let unit_len = (parameters.points_bytes() >> (parameters.variables() - low)) as usize;
        let monomials = changes.records().map(|(index, before, after)| {
            parameters.check_single_bits(after)?;
            let mut difference = before.to_vec();
            xor(&mut difference, after);
            let word = parameters.words().word(index);
            let within = word & ((1 << low) - 1);
            let mut unit = vec![0; unit_len];
            // Where there are fewer than eight, the bits beyond repeat them.
            let points = match parameters.one_bit() {
                true => 8 * unit_len,
                false => unit_len / difference.len(),
            };
            for point in (0..points as u64).filter(|point| point & within == within) {
                match parameters.one_bit() {
                    true => unit[point as usize / 8] |= (difference[0] & 1) << (point % 8),
                    false => {
                        unit[point as usize * difference.len()..][..difference.len()]
                            .copy_from_slice(&difference);
                    }
                }
            }
            Ok(Monomial { high: word >> low, unit })
        });
        Ok(Self {
            unit_len,
            variables: parameters.variables() - low,
            monomials: monomials.collect::<Result<_>>()?,
            parameters,
        })
    }

    /// A patched copy.
    fn copied(&self, before: &[u8], threads: usize) -> Result<HugeBuffer<u8>> {
        let mut after = points::room_for(self.parameters.stored_bytes())?;
        let variables = (BLOCK / self.unit_len).max(1).ilog2().min(self.variables);
        let len = self.unit_len << variables;
        let used = self.parameters.points_bytes() as usize;
        let blocks = before[..used].chunks(len).zip(after[..used].chunks_mut(len));
        share(threads, (0u64..).zip(blocks), || {
            |(number, (before, after)): (u64, (&[u8], &mut [u8]))| {
                after.copy_from_slice(before);
                // Not zero here are those whose variables beyond the block are among those of its number.
                let here = self.monomials.iter().filter(|it| it.high >> variables & !number == 0);
                here.for_each(|monomial| monomial.add_to(after, (1 << variables) - 1));
                Ok(())
            }
        })?;
        Ok(after)
    }
}

impl Monomial {
    /// Adds it to a block of units, the last of which is number `last`, of all those whose words are supersets.
    fn add_to(&self, block: &mut [u8], last: u64) {
        let word = self.high & last;
        let mut unit = word;
        loop {
            xor(&mut block[unit as usize * self.unit.len()..][..self.unit.len()], &self.unit);
            if unit == last {
                break;
            }
            unit = (unit + 1) | word;
        }
    }
}
