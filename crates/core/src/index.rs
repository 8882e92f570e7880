//! The secret that a server must never learn: which record is wanted.

use crate::{Error, Result, TableShape};
use privet_kernels::taint::declassify;
use std::fmt;
use zeroize::Zeroize;

/// The number of a record, below the number of records of the table that it was made for. A secret:
/// it prints as `RecordIndex(..)` and is erased when dropped.
pub struct RecordIndex(u64);

impl RecordIndex {
    /// Checks that `index` lies in a table of shape `shape`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it does not. The message names the table's
    /// size, not the index.
    pub fn new(index: u64, shape: TableShape) -> Result<Self> {
        // No other index ever gets into a query.
        if declassify(index < shape.records()) {
            Ok(Self(index))
        } else {
            Err(Error::api_misuse(format!(
                "there is no record with that index: the table has {} records, numbered from 0",
                shape.records()
            )))
        }
    }

    /// Reads the secret. Nothing that a server can observe may depend on it: no branch, no address,
    /// no length.
    pub fn expose(&self) -> u64 {
        self.0
    }

    /// Quotient and remainder of the index by a public number. Both secret. Takes the same time for
    /// every index.
    ///
    /// # Panics
    /// If `divisor` is zero.
    pub fn divide(&self, divisor: u64) -> (u64, u64) {
        divide_secret(self.0, divisor)
    }
}

/// Quotient and remainder of a secret number by a public one. Takes the same time for every number,
/// which the processor's division does not.
///
/// # Panics
/// If `divisor` is zero.
pub fn divide_secret(number: u64, divisor: u64) -> (u64, u64) {
    assert!(divisor > 0, "nothing can be divided by zero");
    let (mut quotient, mut remainder) = (0u64, 0u128);
    // Long division, a bit at a time. The remainder stays below twice the divisor, which may need
    // more than 64 bits.
    for bit in (0..64).rev() {
        remainder = remainder << 1 | u128::from(number >> bit & 1);
        let (less, borrowed) = remainder.overflowing_sub(u128::from(divisor));
        let keeps = u128::from(borrowed).wrapping_neg();
        remainder = (remainder & keeps) | (less & !keeps);
        quotient = quotient << 1 | u64::from(!borrowed);
    }
    (quotient, remainder as u64)
}

impl fmt::Debug for RecordIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RecordIndex(..)")
    }
}

impl Drop for RecordIndex {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_is_division(index in any::<u64>(), divisor in 1u64.., small in 1u64..100) {
            for divisor in [divisor, small, 1, u64::MAX] {
                let expected = (index / divisor, index % divisor);
                prop_assert_eq!(RecordIndex(index).divide(divisor), expected);
            }
        }
    }
}
