//! Copies records from scattered places of a table, or XORs others onto them. A server with
//! sublinear work spends most of its time here.
//!
//! About √n records are read for a query, each from another place, so each costs the time of a
//! random read from memory. If a processor learns of a read only from its load instruction, it has
//! only a few reads in flight. If it gets the addresses in advance, it has as many in flight as its
//! caches can handle. The table should lie in huge pages ([`HugeBuffer`](crate::HugeBuffer)).
//! Otherwise each read also misses in the address translation.

use crate::dispatch::Kernels;
use crate::dispatch::on_x86_64;

/// A position beyond the end of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("position {position} lies outside a table of {records} records")]
pub struct PositionOutOfRange {
    /// The offending position.
    pub position: u64,
    /// The number of records in the table.
    pub records: u64,
}

impl Kernels {
    /// Copies the records at `positions` (in records; repeats are copied again), one after the
    /// other, into `out`, which it overwrites. The table is `records.len() / record_len` records of
    /// `record_len` bytes. Records are prefetched some positions ahead, so that many reads are in
    /// flight at a time.
    ///
    /// Addresses follow the positions, which the server is meant to know.
    ///
    /// # Errors
    ///
    /// [`PositionOutOfRange`] for the first position outside the table; `out` is then unchanged.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0 or `out.len()` is not one record for each position.
    pub fn gather_records(
        self,
        records: &[u8],
        record_len: usize,
        positions: &[u64],
        out: &mut [u8],
    ) -> Result<(), PositionOutOfRange> {
        assert!(record_len > 0, "records have at least one byte");
        assert_eq!(
            Some(out.len()),
            positions.len().checked_mul(record_len),
            "there is room for one record for each position"
        );
        check_positions(records, record_len, positions)?;
        on_x86_64!(self, gather::records(records, record_len, positions, out));
        Ok(())
    }

    /// XORs `others`, one record for each position, onto the records at `positions` (in records;
    /// repeats take in several). Prefetches as [`gather_records`](Kernels::gather_records).
    ///
    /// Addresses follow the positions.
    ///
    /// # Panics
    ///
    /// If `record_len` is 0, `others.len()` is not one record for each position, or a position is
    /// outside the table.
    pub fn scatter_xor(
        self,
        records: &mut [u8],
        record_len: usize,
        positions: &[u32],
        others: &[u8],
    ) {
        assert!(record_len > 0, "records have at least one byte");
        assert_eq!(
            Some(others.len()),
            positions.len().checked_mul(record_len),
            "there is one record for each position"
        );
        on_x86_64!(self, gather::scatter_xor(records, record_len, positions, others));
    }
}

/// Checks that all positions lie in the table.
pub(crate) fn check_positions(
    table: &[u8],
    record_len: usize,
    positions: &[u64],
) -> Result<(), PositionOutOfRange> {
    let records = (table.len() / record_len) as u64;
    match positions.iter().find(|&&position| position >= records) {
        Some(&position) => Err(PositionOutOfRange { position, records }),
        None => Ok(()),
    }
}
