//! Mistakes that tests plant in the code that clients run.
//!
//! A statistical test is worth as much as it catches. So the leaks are not invented in the test:
//! the test plants them where queries are made, and must notice them in what a server sees. The
//! code there calls one function of this module for each mistake. Unless it is planted, the
//! function changes nothing. [`PLANTED_LEAKS`] says in which builds it can be: in all others,
//! [`planted`] is the constant `None`, and nothing is left of these calls.
//!
//! [`privet_core::planted`] has the mistakes of the hint table.

use crate::harmony::HarmonyParameters;
use crate::singlepass::permutations::{Coins, HintPlace};
use privet_core::SecretRng;
use privet_core::hints::{HintTable, Partitions};
use privet_core::planted::{self, PLANTED_LEAKS};
use std::cell::{Cell, RefCell};

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
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
    static GENERATION: Cell<Option<u64>> = const { Cell::new(None) };
    static BEFORE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static LAST_EXCHANGE: RefCell<(u16, Vec<u16>)> = const { RefCell::new((0, Vec::new())) };
    static PERMUTED: Cell<u64> = const { Cell::new(0) };
}

/// While this exists, a mistake is planted in this thread.
#[must_use]
#[derive(Debug)]
pub struct Planted {
    _of_core: Option<planted::Planted>,
}

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
        BEFORE.take();
    }
}

/// Plants a mistake, or none. Panics where none can be planted.
pub fn plant(flaw: Option<Flaw>) -> Planted {
    if !PLANTED_LEAKS {
        panic!("a test that plants a mistake needs the feature `testing`");
    }
    PLANTED.set(flaw);
    BEFORE.take();
    let of_core = match flaw {
        Some(Flaw::Hints(flaw)) => Some(planted::plant(flaw)),
        _ => None,
    };
    Planted { _of_core: of_core }
}

/// For tests of what happens between two generations: each generation serves `queries`, until
/// this is called with `None`.
pub fn set_queries_per_generation(queries: Option<u64>) {
    GENERATION.set(queries);
}

/// How many values Harmony has permuted in this thread.
pub fn values_permuted() -> u64 {
    PERMUTED.get()
}

/// The mistake that is planted.
#[inline]
fn planted() -> Option<Flaw> {
    if PLANTED_LEAKS { PLANTED.get() } else { None }
}

#[inline]
fn is(flaw: Flaw) -> bool {
    planted() == Some(flaw)
}

/// If `flaw` is planted, every second piece of `drawn` repeats the one before.
#[inline]
fn repeat(flaw: Flaw, drawn: &mut [u8]) {
    if is(flaw) {
        BEFORE.with_borrow_mut(|before| {
            if before.is_empty() {
                before.extend_from_slice(drawn);
            } else {
                drawn.copy_from_slice(before);
                before.clear();
            }
        });
    }
}

/// [`Flaw::KeyOfTheGenerationBefore`].
#[inline]
pub(crate) fn key(drawn: &mut [u8]) {
    repeat(Flaw::KeyOfTheGenerationBefore, drawn);
}

/// [`set_queries_per_generation`].
#[inline]
pub(crate) fn queries_per_generation(queries: u64) -> u64 {
    if PLANTED_LEAKS { GENERATION.get().unwrap_or(queries) } else { queries }
}

/// [`Flaw::SuccessorOfTheNeighbour`].
#[inline]
pub(crate) fn record_of_successor(index: u64) -> u64 {
    index ^ u64::from(is(Flaw::SuccessorOfTheNeighbour))
}

/// [`Flaw::RealHalfHasAName`].
#[inline]
pub(crate) fn real_half(drawn: bool) -> bool {
    drawn && !is(Flaw::RealHalfHasAName)
}

/// [`Flaw::WantedOffsetShown`] in dummy subsets: another partition of the hint is left out.
#[inline]
pub(crate) fn left_out(real: &[bool], wanted: u32) -> u32 {
    if !is(Flaw::WantedOffsetShown) {
        return wanted;
    }
    (0..).zip(real).find(|(k, real)| **real && *k != wanted).map_or(wanted, |(k, _)| k)
}

/// [`Flaw::WithinTheTable`] in dummy subsets.
#[inline]
pub(crate) fn real_offsets(cut: &Partitions, offsets: &mut [u16]) {
    if is(Flaw::WithinTheTable) {
        let all = (0..).zip(offsets);
        all.for_each(|(partition, offset)| *offset %= filled(cut, partition));
    }
}

/// [`Flaw::DummyAvoidsTheRecord`] in dummy subsets: `kept` are the offsets of either half in turn.
#[inline]
pub(crate) fn dummy_offsets(cut: &Partitions, index: u64, real: &[bool], kept: &mut [u16]) {
    if is(Flaw::DummyAvoidsTheRecord) {
        let (partition, offset) = cut.place(index);
        let rank = real[..partition as usize].iter().filter(|real| !**real).count();
        kept[rank] ^= u16::from(u32::from(kept[rank]) == offset);
    }
}

/// [`Flaw::CoverUnlikeAQuery`] in dummy subsets: partition `k` stays where it is.
#[inline]
pub(crate) fn changes_places_with(k: usize, drawn: usize) -> usize {
    if is(Flaw::CoverUnlikeAQuery) { k } else { drawn }
}

/// [`Flaw::PairsPassedOver`]: the id from which the pair after `successor` is sought.
#[inline]
pub(crate) fn id_after(successor: u32, index: u64) -> u32 {
    successor + 1 + u32::from(is(Flaw::PairsPassedOver) && index % 2 == 1)
}

/// [`Flaw::IdsLeftOut`].
#[inline]
pub(crate) fn first_id(next: u32, table: &HintTable) -> u32 {
    if !is(Flaw::IdsLeftOut) {
        return next;
    }
    let hints = (0..table.len()).filter_map(|row| table.hint(row));
    next + hints.filter(|hint| hint.extra.is_some()).count() as u32
}

/// How many records partition `number` has, which must be at least one: the offsets that
/// [`Flaw::WithinTheTable`] leaves.
fn filled(cut: &Partitions, number: usize) -> u16 {
    let records = u64::from(cut.records());
    let left = cut.shape().records().saturating_sub(number as u64 * records);
    left.clamp(1, records) as u16
}

/// [`Flaw::CoverUnlikeAQuery`] in Piano.
#[inline]
pub(crate) fn cover_mask(mask: u32) -> u32 {
    mask >> u32::from(is(Flaw::CoverUnlikeAQuery))
}

/// Piano's mistakes in the offset that replaces the wanted one.
#[inline]
pub(crate) fn replacement(
    cut: &Partitions,
    position: u64,
    offsets: &mut [u16],
    first_pair: impl FnOnce() -> u16,
) {
    let Some(flaw) = planted() else { return };
    let (chunk, wanted) = cut.place(position);
    let (place, wanted) = (&mut offsets[chunk as usize], wanted as u16);
    match flaw {
        Flaw::WantedOffsetShown => *place = wanted,
        Flaw::DummyAvoidsTheRecord => *place ^= u16::from(*place == wanted),
        Flaw::FirstPairAlways => *place = first_pair(),
        Flaw::WithinTheTable => *place %= filled(cut, chunk as usize),
        _ => {}
    }
}

/// Harmony's mistakes in what takes the place of the record `wanted`: `drawn`, of `left` contents.
#[inline]
pub(crate) fn contents_drawn(
    drawn: u64,
    left: u64,
    wanted: u32,
    parameters: &HarmonyParameters,
    is_in_segment: impl Fn(u64) -> bool,
    rng: &mut SecretRng,
) -> u64 {
    let Some(flaw) = planted() else { return drawn };
    if flaw == Flaw::ReplacementDrawnFromAllCells {
        // As if used segments still held something.
        return rng.below(parameters.cells()).min(left - 1);
    }
    let is_wrong = |drawn: u64| match flaw {
        Flaw::ReplacementAsPublished => drawn != u64::from(wanted) && is_in_segment(drawn),
        Flaw::ReplacementFromOutside => is_in_segment(drawn),
        Flaw::ReplacementIsARecord => drawn >= parameters.records().into(),
        _ => false,
    };
    let mut drawn = drawn;
    while is_wrong(drawn) {
        drawn = rng.below(left);
    }
    drawn
}

/// [`Flaw::WantedPlaceFirst`].
#[inline]
pub(crate) fn order_of_values(values: &mut [u32], place: u32) {
    if is(Flaw::WantedPlaceFirst) {
        values.swap(0, place as usize);
    }
}

/// [`Flaw::NothingMoves`]: the segment that moved to where an empty was.
#[inline]
pub(crate) fn moved(segment: Option<&u32>) -> Option<&u32> {
    segment.filter(|_| !is(Flaw::NothingMoves))
}

/// For [`values_permuted`].
#[inline]
pub(crate) fn count_permuted(values: &[u32]) {
    if PLANTED_LEAKS {
        PERMUTED.set(PERMUTED.get() + values.len() as u64);
    }
}

/// [`Flaw::SeedOfTheLookupBefore`].
#[inline]
pub(crate) fn seed(drawn: &mut [u8]) {
    repeat(Flaw::SeedOfTheLookupBefore, drawn);
}

/// SinglePass's mistakes in the random numbers of the lookup of a record at `place`.
#[inline]
pub(crate) fn coins(coins: &mut Coins, place: HintPlace) {
    match planted() {
        Some(Flaw::PartnersAlike) => {
            let first = coins.partners[0];
            coins.partners.fill(first);
        }
        Some(Flaw::NeverItsOwnPartner(records)) => {
            let own = coins.partners.iter_mut().filter(|partner| **partner == place.hint);
            own.for_each(|partner| *partner = (*partner + 1) % records);
        }
        Some(Flaw::DecoyWithin { partition, records }) if place.partition == partition => {
            coins.decoy %= records;
        }
        _ => {}
    }
}

/// SinglePass's mistakes in what is `shown` in the place of the wanted record. `offsets` are those
/// of all partitions.
#[inline]
pub(crate) fn decoy(shown: &mut [u16], place: HintPlace, offsets: &[u16]) {
    let Some(flaw) = planted() else { return };
    let records = offsets.len() / shown.len();
    let partition = place.partition as usize;
    let wanted = offsets[partition * records + usize::from(place.hint)];
    match flaw {
        Flaw::WantedOffsetShown => shown[partition] = wanted,
        Flaw::DummyAvoidsTheRecord if shown[partition] == wanted => {
            shown[partition] = (wanted + 1) % records as u16;
        }
        _ => {}
    }
}

/// [`Flaw::NotShuffled`], and for [`Flaw::LastExchangeLost`].
#[inline]
pub(crate) fn partners(hint: u16, partners: &mut [u16]) {
    if is(Flaw::NotShuffled) {
        partners.fill(hint);
    }
    if is(Flaw::LastExchangeLost) {
        LAST_EXCHANGE.set((hint, partners.to_vec()));
    }
}

/// [`Flaw::LastExchangeLost`], in the encoded permutations of `records` numbers each.
#[inline]
pub(crate) fn encoded_permutations(records: usize, bytes: &mut [u8]) {
    if is(Flaw::LastExchangeLost) {
        LAST_EXCHANGE.with_borrow(|(hint, partners)| {
            for (row, partner) in bytes.as_chunks_mut::<2>().0.chunks_mut(records).zip(partners) {
                row.swap(usize::from(*hint), usize::from(*partner));
            }
        });
    }
}

/// [`Flaw::LaterPartitionsAlike`]: the stream of a partition that is new, as `first` was.
#[inline]
pub(crate) fn later_partition(partition: u32, first: u32) -> u32 {
    if is(Flaw::LaterPartitionsAlike) { first } else { partition }
}
