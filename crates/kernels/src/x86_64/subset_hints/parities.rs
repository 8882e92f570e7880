//! Parities: what the arms have in common.

use super::super::vectors::{Vectors, entries};
use crate::subset_hints::{OFFSETS_PER_BLOCK, PartitionGroup};

/// Hints that share a block of offsets.
pub(crate) const HINTS: usize = OFFSETS_PER_BLOCK;
/// Partitions in which hints' places are computed at a time.
pub(crate) const TILE: usize = 32;

/// The kind of parities where each hint has one parity, of the partitions that it selects.
pub(crate) const SINGLE: u8 = 0;
/// The kind of parities where each hint has two: of the partitions that it selects, and of the
/// others.
pub(crate) const PAIRS: u8 = 1;
/// The kind of parities where each hint has one parity, of all partitions.
pub(crate) const ALL: u8 = 2;

entries! {
    fn accumulate_single(
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    );
    fn accumulate_pairs(
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    );
    fn accumulate_all(
        key: &[u8; 16],
        first_id: u32,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    );
}

/// The hints whose parities are made, in octets.
pub(crate) struct Hints<'a> {
    pub(crate) first_id: u32,
    /// The cutoffs of each octet, or none if no hint selects.
    pub(crate) cutoffs: &'a [[u32; HINTS]],
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

/// See [`Kernels::subset_accumulate_single`](crate::Kernels::subset_accumulate_single).
#[inline(always)]
fn accumulate_single<A: Parities>(
    arm: A,
    key: &[u8; 16],
    first_id: u32,
    cutoffs: &[u32],
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let hints = Hints { first_id, cutoffs: cutoffs.as_chunks().0 };
    arm.accumulate::<SINGLE>(key, &hints, first_partition, group, parities);
}

/// See [`Kernels::subset_accumulate_pairs`](crate::Kernels::subset_accumulate_pairs).
#[inline(always)]
fn accumulate_pairs<A: Parities>(
    arm: A,
    key: &[u8; 16],
    first_id: u32,
    cutoffs: &[u32],
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let hints = Hints { first_id, cutoffs: cutoffs.as_chunks().0 };
    arm.accumulate::<PAIRS>(key, &hints, first_partition, group, parities);
}

/// See [`Kernels::subset_accumulate_all`](crate::Kernels::subset_accumulate_all).
#[inline(always)]
fn accumulate_all<A: Parities>(
    arm: A,
    key: &[u8; 16],
    first_id: u32,
    first_partition: u32,
    group: &PartitionGroup,
    parities: &mut [u8],
) {
    let hints = Hints { first_id, cutoffs: &[] };
    arm.accumulate::<ALL>(key, &hints, first_partition, group, parities);
}
