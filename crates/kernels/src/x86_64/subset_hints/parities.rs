//! Parities: what the arms have in common.

use super::super::vectors::{Vectors, entries};
use crate::subset_hints::{Hints, Kind, OFFSETS_PER_BLOCK, PartitionGroup};

/// Hints that share a block of offsets.
pub(crate) const HINTS: usize = OFFSETS_PER_BLOCK;
/// Partitions in which hints' places are computed at a time.
pub(crate) const TILE: usize = 32;

/// As [`Kind::Single`].
pub(crate) const SINGLE: u8 = Kind::Single as u8;
/// As [`Kind::Pairs`].
pub(crate) const PAIRS: u8 = Kind::Pairs as u8;
/// As [`Kind::All`].
pub(crate) const ALL: u8 = Kind::All as u8;

entries! {
    fn accumulate(
        kind: Kind,
        key: &[u8; 16],
        hints: &Hints<'_>,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    );
}

/// How an arm adds partitions to parities.
pub(crate) trait Parities: Vectors {
    fn accumulate<const KIND: u8>(
        self,
        key: &[u8; 16],
        hints: &Hints<'_>,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    );
}

/// See [`crate::portable::subset_hints::accumulate`].
#[inline(always)]
fn accumulate<A: Parities>(
    arm: A,
    kind: Kind,
    key: &[u8; 16],
    hints: &Hints<'_>,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    match kind {
        Kind::Single => arm.accumulate::<SINGLE>(key, hints, first_partition, group, parities),
        Kind::Pairs => arm.accumulate::<PAIRS>(key, hints, first_partition, group, parities),
        Kind::All => arm.accumulate::<ALL>(key, hints, first_partition, group, parities),
    }
}
