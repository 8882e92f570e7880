//! Pseudorandom subsets of a table, from a short secret key: the client's loops of sublinear
//! private lookup with *dummy subsets* (Ren, Mughees and Sun, CCS 2024).
//!
//! A table is cut into `p` *partitions* of `s` records each, `s` a power of two. A *hint* is a
//! number, its id `j`, and what follows from it under a secret key: for every partition `k` a
//! *select value* `v(j, k)` of 32 bits and an *offset* `r(j, k)` in `[0, s)`. With a *cutoff* `c`
//! chosen such that exactly the wanted number of the `p` select values lie below it, the hint
//! stands for the records at offset `r(j, k)` of those partitions `k` where `v(j, k) < c`: a random
//! subset. Only its id, its cutoff and its *parity*, the XOR of its records, need to be stored.
//!
//! # The pseudorandom function
//!
//! AES-128 of blocks of four little-endian words, under the client's key:
//!
//! | | block | value |
//! |---|---|---|
//! | `v(j, k)` | `j / 4`, `k`, 1, 0 | little-endian word `j % 4` |
//! | `r(j, k)` | `j / 8`, `k`, 2, 0 | little-endian half-word `j % 8`, its lowest log₂ `s` bits |
//!
//! Neighbouring hints share blocks of the same partition; neighbouring partitions of the same hint
//! do not. The reason is that both long loops go over hints. One prepares them: a block yields four
//! select values or eight offsets, and all are needed. The other finds the hints that hold a given
//! record: it needs the offset of every hint in *one* partition, and so costs one block for eight
//! hints. Rebuilding one subset still costs only two blocks for each partition. Eight hints that
//! share a block of offsets, `8 g..8 g + 8`, are a *group* of hints and `g` its number. In
//! functions that use only offsets, a group may have any number of 32 bits, and so a hint any id
//! below 2³⁵. `s` is a power of two and at most 2¹⁶, so the lowest bits are uniform without any
//! correction.
//!
//! # Preparing hints
//!
//! Parities are made from a group of eight partitions, which stays in the second-level cache. The
//! parities of eight hints are in registers. While their records are fetched, the places of the
//! next eight hints are computed. Measured on one core of Zen 4 for 2^24 records of 32 bytes:
//! cutoffs 0.7 s, parities 1.7 s. A first experiment took 2.7 s for the parities alone.
//!
//! # Secrets
//!
//! Unlike those of [`keystream`](crate::keystream), **keys are secret here**: expanded keys are
//! erased from memory after use (by the `aes` crate's `zeroize` feature in the portable arm).
//! Registers, values that the compiler spilled from them, and the computed places of records are
//! not erased. The searches over hints ([`subset_offset_matches`](Kernels::subset_offset_matches),
//! [`subset_group_matches`](Kernels::subset_group_matches),
//! [`subset_selects_at`](Kernels::subset_selects_at), [`subset_rebuild`](Kernels::subset_rebuild))
//! run while a query is prepared, so no branch and no address in them depends on key, id, partition
//! or offset. The software fallback of the `aes` crate, for processors without AES instructions, is
//! also constant-time. Cutoffs and parities are prepared before any query, from all hints and all
//! records. Their addresses do depend on the subsets, so an attacker who shares the caches with the
//! client may learn about the subsets.

// Only the vector arms need it.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod order_statistic;
mod partition_group;

#[cfg(target_arch = "x86_64")]
pub(crate) use order_statistic::{Bracket, Window, narrow};
pub use partition_group::PartitionGroup;

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::taint::declassify;

/// The most records of a partition: offsets are 16 bits.
pub const MAX_RECORDS_PER_PARTITION: usize = 1 << 16;

/// The longest record in bytes: 16 MiB.
pub const MAX_RECORD_LEN: usize = 16 << 20;

/// How many hints share a block for their offsets in one partition. Ranges of hints begin and end
/// at multiples of it.
pub(crate) const OFFSETS_PER_BLOCK: usize = 8;

/// How many hints share a block for their select values in one partition.
pub(crate) const SELECTS_PER_BLOCK: usize = 4;

/// The third word of a block: the purpose of the block.
pub(crate) const SELECT_TAG: u32 = 1;
/// As [`SELECT_TAG`].
pub(crate) const OFFSET_TAG: u32 = 2;

/// Which parities hints have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One, of the partitions that the hint selects.
    Single,
    /// Two: of the partitions that it selects, and of the others.
    Pairs,
    /// One, of all partitions.
    All,
}

/// The hints whose parities are made, in octets.
pub(crate) struct Hints<'a> {
    pub(crate) first_id: u32,
    /// The cutoffs of each octet, or none if no hint selects.
    pub(crate) cutoffs: &'a [[u32; OFFSETS_PER_BLOCK]],
}

impl<'a> Hints<'a> {
    fn new(first_id: u32, cutoffs: &'a [u32]) -> Self {
        check_ids(first_id, cutoffs.len());
        Self { first_id, cutoffs: cutoffs.as_chunks().0 }
    }
}

impl Kernels {
    /// The cutoffs of the hints `first_id..first_id + out.len()`: for each the number `c` such that
    /// exactly `rank` of its select values in the partitions `0..partitions` are below `c`, which
    /// is the value of that rank, counted from 0. If the values of ranks `rank - 1` and `rank` are
    /// equal, there is no such number. The cutoff is then 0, which selects nothing: the hint is
    /// invalid.
    ///
    /// # Panics
    ///
    /// If `rank` is not in `1..partitions`, `partitions` is 2³¹ or more, `first_id` or `out.len()`
    /// is not a multiple of 8, or an id is 2³² or more.
    pub fn subset_cutoffs(
        self,
        key: &[u8; 16],
        first_id: u32,
        partitions: u32,
        rank: u32,
        out: &mut [u32],
    ) {
        assert!(partitions < 1 << 31, "a table has fewer than 2^31 partitions");
        assert!(0 < rank && rank < partitions, "the rank of a cutoff is in 1..partitions");
        check_ids(first_id, out.len());
        on_arm!(self, subset_hints::cutoffs(key, first_id, partitions, rank, out));
    }

    /// Adds the partitions of `group`, which are those of the table from `first_partition` on, to
    /// the parities of the hints from `first_id` on. There is one hint for each of `cutoffs`. Its
    /// parity `parities[j]`, of the length of a record, is XORed with record `r(j, k)` of each
    /// partition `k` where `v(j, k) < cutoffs[j]`.
    ///
    /// # Panics
    ///
    /// If `parities.len()` is not `cutoffs.len()` records, `first_id` or `cutoffs.len()` is not a
    /// multiple of 8, or an id or the number of a partition is 2³² or more.
    pub fn subset_accumulate_single(
        self,
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        assert_eq!(
            Some(parities.len()),
            cutoffs.len().checked_mul(group.record_len()),
            "a parity is one record for each hint"
        );
        let hints = Hints::new(first_id, cutoffs);
        self.accumulate(Kind::Single, key, &hints, first_partition, group, parities);
    }

    /// As [`subset_accumulate_single`](Kernels::subset_accumulate_single), but with two parities
    /// for each hint, one after the other: record `r(j, k)` of each partition `k` goes to the first
    /// where `v(j, k) < cutoffs[j]` and to the second elsewhere.
    ///
    /// # Panics
    ///
    /// If `parities.len()` is not `2 * cutoffs.len()` records, and as `subset_accumulate_single`.
    pub fn subset_accumulate_pairs(
        self,
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        assert_eq!(
            Some(parities.len()),
            cutoffs.len().checked_mul(2 * group.record_len()),
            "a pair of parities is two records for each hint"
        );
        let hints = Hints::new(first_id, cutoffs);
        self.accumulate(Kind::Pairs, key, &hints, first_partition, group, parities);
    }

    /// As [`subset_accumulate_single`](Kernels::subset_accumulate_single), but every hint takes its
    /// record of every partition: no select values and no cutoffs. There are as many hints as
    /// records in `parities`.
    ///
    /// # Panics
    ///
    /// If `parities.len()` is not a multiple of 8 records, `first_id` is not a multiple of 8, or an
    /// id or the number of a partition is 2³² or more.
    pub fn subset_accumulate_all(
        self,
        key: &[u8; 16],
        first_id: u32,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        let hints = parities.len() / group.record_len();
        assert!(
            parities.len().is_multiple_of(group.record_len()),
            "a parity is one record for each hint"
        );
        check_ids(first_id, hints);
        let hints = Hints { first_id, cutoffs: &[] };
        self.accumulate(Kind::All, key, &hints, first_partition, group, parities);
    }

    fn accumulate(
        self,
        kind: Kind,
        key: &[u8; 16],
        hints: &Hints<'_>,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        assert!(
            u64::from(first_partition) + group.len() as u64 <= 1 << 32,
            "partition numbers are below 2^32"
        );
        on_arm!(self, subset_hints::accumulate(kind, key, hints, first_partition, group, parities));
    }

    /// Which hints from `64 * first_word` on, `64 * matches.len()` of them, have the given offset
    /// in the given partition. Bit `b` of `matches[w]` becomes 1 if `r(64 * (first_word + w) + b,
    /// partition) == offset`, else 0. Takes one block for eight hints. The work is the same for
    /// every key, partition, offset and result.
    ///
    /// # Panics
    ///
    /// If `records_per_partition` is not a power of two up to 2¹⁶, `offset` is not below it, or an
    /// id is 2³² or more.
    pub fn subset_offset_matches(
        self,
        key: &[u8; 16],
        partition: u32,
        offset: u32,
        records_per_partition: u32,
        first_word: u32,
        matches: &mut [u64],
    ) {
        let mask = offset_mask(records_per_partition);
        let is_inside = declassify(offset < records_per_partition);
        assert!(is_inside, "an offset lies within its partition");
        let end = first_word as usize + matches.len();
        assert!(end <= 1 << 26, "hint ids are below 2^32");
        let offset = offset as u16;
        on_arm!(
            self,
            subset_hints::offset_matches(key, partition, offset, mask, first_word, matches)
        );
    }

    /// Which hints of some groups of eight have the given offset in the given partition: bit `b` of
    /// `matches[i]` becomes 1 if `r(8 * groups[i] + b, partition) == offset`, else 0. A group may
    /// have any number of 32 bits and may occur repeatedly. Takes one block for each group. The
    /// work is the same for every key, partition, offset, list of groups and result.
    ///
    /// # Panics
    ///
    /// If `groups` and `matches` differ in length, `records_per_partition` is not a power of two up
    /// to 2¹⁶, or `offset` is not below it.
    pub fn subset_group_matches(
        self,
        key: &[u8; 16],
        partition: u32,
        offset: u32,
        records_per_partition: u32,
        groups: &[u32],
        matches: &mut [u8],
    ) {
        let mask = offset_mask(records_per_partition);
        let is_inside = declassify(offset < records_per_partition);
        assert!(is_inside, "an offset lies within its partition");
        assert_eq!(groups.len(), matches.len(), "eight bits for each group of hints");
        on_arm!(
            self,
            subset_hints::group_matches(key, partition, offset as u16, mask, groups, matches)
        );
    }

    /// Which of `words` equal `wanted`: bit `b` of `matches[w]` becomes 1 if `words[64 * w + b]`
    /// equals `wanted`, and 0 otherwise. The work is the same for all words. For hints that hold a
    /// record besides their pseudorandom ones.
    ///
    /// # Panics
    ///
    /// If `matches` does not have one word for every 64 of `words`, rounded up.
    pub fn subset_equal_words(self, words: &[u32], wanted: u32, matches: &mut [u64]) {
        assert_eq!(matches.len(), words.len().div_ceil(64), "one bit for each word");
        on_arm!(self, subset_hints::equal_words(words, wanted, matches));
    }

    /// As [`subset_equal_words`](Kernels::subset_equal_words), for half-words.
    ///
    /// # Panics
    ///
    /// If `matches` does not have one word for every 64 of `words`, rounded up.
    pub fn subset_equal_halfwords(self, words: &[u16], wanted: u16, matches: &mut [u64]) {
        assert_eq!(matches.len(), words.len().div_ceil(64), "one bit for each half-word");
        on_arm!(self, subset_hints::equal_halfwords(words, wanted, matches));
    }

    /// The select values of scattered hints in one partition: `out[i] = v(ids[i], partition)`, at
    /// one block each.
    ///
    /// # Panics
    ///
    /// If `ids` and `out` differ in length.
    pub fn subset_selects_at(self, key: &[u8; 16], partition: u32, ids: &[u32], out: &mut [u32]) {
        assert_eq!(ids.len(), out.len(), "one select value for each hint");
        on_arm!(self, subset_hints::selects_at(key, partition, ids, out));
    }

    /// One hint in the partitions from 0 on: `selects[k] = v(id, k)` and `offsets[k] = r(id, k)`.
    ///
    /// # Panics
    ///
    /// If `selects` and `offsets` differ in length or have 2³¹ elements or more, or
    /// `records_per_partition` is not a power of two up to 2¹⁶.
    pub fn subset_rebuild(
        self,
        key: &[u8; 16],
        id: u32,
        records_per_partition: u32,
        selects: &mut [u32],
        offsets: &mut [u16],
    ) {
        let mask = offset_mask(records_per_partition);
        assert_eq!(selects.len(), offsets.len(), "a select value and an offset for each partition");
        assert!(selects.len() < 1 << 31, "a table has fewer than 2^31 partitions");
        on_arm!(self, subset_hints::rebuild(key, id, mask, selects, offsets));
    }
}

fn check_ids(first_id: u32, count: usize) {
    assert!(
        (first_id as usize).is_multiple_of(OFFSETS_PER_BLOCK)
            && count.is_multiple_of(OFFSETS_PER_BLOCK),
        "hints are handled eight at a time"
    );
    assert!(u64::from(first_id) + count as u64 <= 1 << 32, "hint ids are below 2^32");
}

/// The bits of a half-word that make an offset.
fn offset_mask(records_per_partition: u32) -> u16 {
    assert!(
        records_per_partition.is_power_of_two()
            && records_per_partition as usize <= MAX_RECORDS_PER_PARTITION,
        "a partition has a power of two of records, at most 2^16"
    );
    (records_per_partition - 1) as u16
}
