//! Mistakes that tests plant in the code that clients run: see [`privet_core::hints::planted`],
//! which holds those of the hint table. Compiled only for this crate's own tests.
//!
//! Each mistake is a line or two beside the correct line, under `#[cfg(test)]`.

use privet_core::hints::{Partitions, planted};
use std::cell::{Cell, RefCell};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// One of the hint table.
    Hints(planted::Flaw),
    /// Dummy subsets: the real half of a query is always half 0.
    RealHalfHasAName,
    /// The wanted record is read in its own partition: nothing else takes its place.
    WantedOffsetShown,
    /// The record that is read in the place of the wanted record is never that record itself.
    DummyAvoidsTheRecord,
    /// The replacement of a used hint contains the wanted record's neighbour, not the record.
    SuccessorOfTheNeighbour,
    /// A cover is drawn in a simpler way than a query.
    CoverUnlikeAQuery,
    /// No query names a record beyond the table's end: with dummy subsets in the real half, with
    /// Piano in the place of the wanted record.
    WithinTheTable,
    /// Every second generation of hints has the key of the one before.
    KeyOfTheGenerationBefore,
    /// Dummy subsets on two servers: the next generation leaves out as many ids as there are hints
    /// in use that replaced others.
    IdsLeftOut,
    /// Dummy subsets on two servers: after a record with an odd number, a pair is skipped.
    PairsPassedOver,
    /// Harmony: nothing of the wanted record's segment but that record takes its place, which is
    /// the published rule.
    ReplacementAsPublished,
    /// Harmony: nothing of the wanted record's segment takes its place, not even that record.
    ReplacementFromOutside,
    /// Harmony: a record always takes the wanted record's place, never an empty.
    ReplacementIsARecord,
    /// Harmony: an empty takes the wanted record's place as often as if no segment were used.
    ReplacementDrawnFromAllCells,
    /// Harmony: what takes the wanted record's place comes first.
    WantedPlaceFirst,
    /// Harmony: what was in a used segment lies nowhere afterwards.
    NothingMoves,
    /// Piano: every query about a chunk uses its first pair.
    FirstPairAlways,
    /// SinglePass: the used hint changes places with the same hint in all partitions.
    PartnersAlike,
    /// SinglePass: the used hint, one of this many, never stays in its place.
    NeverItsOwnPartner(u16),
    /// SinglePass: the decoy for a record of the last partition never lies beyond the table.
    DecoyWithin {
        /// The last partition.
        partition: u32,
        /// Its records.
        records: u16,
    },
    /// SinglePass: nothing is shuffled in.
    NotShuffled,
    /// SinglePass: every second lookup draws from the seed of the one before.
    SeedOfTheLookupBefore,
    /// SinglePass: the next generation does not get what the last lookup of this one shuffled in.
    LastExchangeLost,
    /// TAPIR: all partitions that a table gets later have the same permutation.
    LaterPartitionsAlike,
}

thread_local! {
    static PLANTED: Cell<Option<Flaw>> = const { Cell::new(None) };
    static BEFORE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static GENERATION: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While this exists, a mistake is planted in this thread.
#[must_use]
pub(crate) struct Planted {
    _of_hints: Option<planted::Planted>,
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
        BEFORE.take();
    }
}

/// Plants a mistake, or none.
pub(crate) fn plant(flaw: Option<Flaw>) -> Planted {
    PLANTED.set(flaw);
    BEFORE.take();
    let of_hints = match flaw {
        Some(Flaw::Hints(flaw)) => Some(planted::plant(flaw)),
        _ => None,
    };
    Planted { _of_hints: of_hints }
}

/// Whether a mistake is planted.
pub(crate) fn is(flaw: Flaw) -> bool {
    PLANTED.get() == Some(flaw)
}

/// The mistake that is planted.
pub(crate) fn planted() -> Option<Flaw> {
    PLANTED.get()
}

/// If `flaw` is planted, every second piece of `drawn` repeats the one before.
pub(crate) fn repeat(flaw: Flaw, drawn: &mut [u8]) {
    if !is(flaw) {
        return;
    }
    BEFORE.with_borrow_mut(|before| {
        if before.is_empty() {
            before.extend_from_slice(drawn);
        } else {
            drawn.copy_from_slice(before);
            before.clear();
        }
    });
}

/// [`Flaw::WantedOffsetShown`] in dummy subsets: another partition of the hint is left out.
pub(crate) fn another_left_out(real: &[bool], wanted: usize) -> usize {
    let another = (0..real.len()).find(|k| real[*k] && *k != wanted);
    another.filter(|_| is(Flaw::WantedOffsetShown)).unwrap_or(wanted)
}

/// [`Flaw::WithinTheTable`] in dummy subsets.
pub(crate) fn keep_within_the_table(cut: &Partitions, offsets: &mut [u16]) {
    if is(Flaw::WithinTheTable) {
        let all = (0..).zip(offsets);
        all.for_each(|(partition, offset)| *offset %= filled(cut, partition));
    }
}

/// [`Flaw::DummyAvoidsTheRecord`] in dummy subsets: `kept` are the offsets of either half in turn.
pub(crate) fn keep_off_the_record(cut: &Partitions, index: u64, real: &[bool], kept: &mut [u16]) {
    let (partition, offset) = cut.place(index);
    let rank = real[..partition as usize].iter().filter(|real| !**real).count();
    if is(Flaw::DummyAvoidsTheRecord) && u32::from(kept[rank]) == offset {
        kept[rank] ^= 1;
    }
}

/// How many records partition `number` has, which must be at least one: the offsets that
/// [`Flaw::WithinTheTable`] leaves.
pub(crate) fn filled(cut: &Partitions, number: usize) -> u16 {
    let records = u64::from(cut.records());
    let left = cut.shape().records().saturating_sub(number as u64 * records);
    left.clamp(1, records) as u16
}

/// [`Flaw::WantedPlaceFirst`] in Harmony.
pub(crate) fn wanted_first(mut values: Vec<u32>, place: u32) -> Vec<u32> {
    if is(Flaw::WantedPlaceFirst) {
        values.swap(0, place as usize);
    }
    values
}

/// For tests of what happens between two generations: each generation serves `queries`, until
/// this is called with `None`. Production code reads this number where it computes how many queries
/// a generation serves.
pub(crate) fn set_queries_per_generation(queries: Option<u64>) {
    GENERATION.set(queries);
}

/// See [`set_queries_per_generation`].
pub(crate) fn queries_per_generation() -> Option<u64> {
    GENERATION.get()
}
