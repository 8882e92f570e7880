//! Points follow edits.
//!
//! A record is the coefficient of one monomial, the product of the variables in its word. So an
//! edit changes the points that are supersets of the word, all by the same value: the XOR of the
//! record before and after. That is one point in 2^D, but these points are spread over the whole
//! memory. Several edits together soon touch every cache line more often than computing all points
//! anew. The server estimates from the touched lines which way is cheaper.
//!
//! The old server goes on answering, so its points are copied. They are copied block by block, and
//! each block is patched while it is in the cache.

use super::points_server::Way;
use super::{FiniteDifferencesParameters, points};
use privet_core::hints::xor;
use privet_core::{Result, TableChanges};
use privet_kernels::memory::HugeBuffer;
use privet_schemes::sharing::share;

/// Bytes that are copied and patched at a time, unless a unit is longer: a part of a second-level
/// cache.
const BLOCK: usize = 256 << 10;

/// Computing a unit takes longer than copying it. This is the number of patches that fit into the
/// difference: measured 7 for records of one byte, and 10 for records of 32 bytes.
const PATCHES_PER_UNIT: u64 = 6;

/// Counts for each monomial the units in which it is not zero: the supersets of its word.
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

/// The patch that changes of the table make for the points. A unit is the points that differ only
/// in the lowest variables: those of one cache line, or a single point.
pub(super) struct Patch<'a> {
    parameters: &'a FiniteDifferencesParameters,
    unit_len: usize,
    /// The variables that number the units: m less those within a unit.
    variables: u32,
    monomials: Vec<Monomial>,
}

/// A monomial whose coefficient has changed.
struct Monomial {
    /// Its variables beyond those within a unit.
    high: u64,
    /// The value that it adds to each unit in which it is not zero.
    unit: Vec<u8>,
}

impl<'a> Patch<'a> {
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records must be single bits and one
    /// is not.
    pub(super) fn new(
        parameters: &'a FiniteDifferencesParameters,
        changes: &TableChanges,
    ) -> Result<Self> {
        let low = parameters.variables_in_line().min(parameters.variables());
        let unit_len = (parameters.points_bytes() >> (parameters.variables() - low)) as usize;
        let monomials = changes.records().map(|(index, before, after)| {
            parameters.check_single_bits(after)?;
            let mut difference = before.to_vec();
            xor(&mut difference, after);
            let word = parameters.words().word(index);
            let within = word & ((1 << low) - 1);
            let mut unit = vec![0; unit_len];
            // If there are fewer than eight points, the other bits repeat them.
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
    pub(super) fn copied(&self, before: &[u8], threads: usize) -> Result<HugeBuffer<u8>> {
        let mut after = points::room_for(self.parameters.stored_bytes())?;
        let variables = (BLOCK / self.unit_len).max(1).ilog2().min(self.variables);
        let len = self.unit_len << variables;
        let used = self.parameters.points_bytes() as usize;
        let blocks = before[..used].chunks(len).zip(after[..used].chunks_mut(len));
        share(threads, (0u64..).zip(blocks), || {
            |(number, (before, after)): (u64, (&[u8], &mut [u8]))| {
                after.copy_from_slice(before);
                // A monomial is not zero in this block if its variables beyond the block are all in
                // the block's number.
                let here = self.monomials.iter().filter(|it| it.high >> variables & !number == 0);
                here.for_each(|monomial| monomial.add_to(after, (1 << variables) - 1));
                Ok(())
            }
        })?;
        Ok(after)
    }
}

impl Monomial {
    /// Adds the monomial to the units of a block that are supersets of its word. The block's last
    /// unit has number `last`.
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
