//! The one thing a server must never learn: which record is wanted.

use crate::{Error, Result, TableShape};
use std::fmt;
use zeroize::Zeroize;

/// The number of a record, in `[0, records)` of the table it was made for. A secret: it prints as `RecordIndex(..)`
/// and is erased when dropped.
pub struct RecordIndex(u64);

impl RecordIndex {
    /// Checks that `index` lies in a table of shape `shape`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it does not. The message names the table's size, not the index.
    pub fn new(index: u64, shape: TableShape) -> Result<Self> {
        if index < shape.records() {
            Ok(Self(index))
        } else {
            Err(Error::api_misuse(format!(
                "there is no record with that index: the table has {} records, numbered from 0",
                shape.records()
            )))
        }
    }

    /// Reads the secret. Nothing that a server can observe may branch on it, be indexed by it or be as long as it says.
    pub fn expose(&self) -> u64 {
        self.0
    }
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
