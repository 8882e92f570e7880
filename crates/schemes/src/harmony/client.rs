//! The client: finds the segment of the record, asks for what lies in its cells, with something
//! else in the record's place, and moves all of it to other segments.
//!
//! The [module](super) proves that queries reveal nothing. Everything that a query depends on is
//! complete with the reservation. Answers bring only the *values* of hints.
//!
//! # The order of answers
//!
//! A record that a query reads moves to another segment, and its bytes are XORed onto the hint of
//! that one. That segment may have been used by a later query already; then the later one's record
//! needs these bytes. So the client takes answers [in order](crate::in_order).
//!
//! Where a record moves follows from its own query and the steps made before. So the reservation
//! finds out, and its change says it. Then an answer is no more than XORs, as many late in a
//! generation as early: the time for reading it need not grow. And a client that applies its
//! journal again permutes nothing.

use super::change::{HarmonyChange, HarmonyReservation, NOWHERE};
use super::generation::Generation;
use super::history::History;
use super::{Harmony, HarmonyAnswer, HarmonyParameters, HarmonyQuery};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::in_order::{OpenLookups, encode_answers, encode_edits};
use crate::planted;
use privet_core::hints::{impossible, xor};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use privet_kernels::taint::admit;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _, ConstantTimeLess as _};
use zeroize::Zeroizing;

/// Edits that are followed at once: many, and few enough to stay in the first-level cache.
const EDITS: usize = 1 << 11;

/// A client with one generation of hints.
pub struct HarmonyClient {
    parameters: HarmonyParameters,
    /// The hints, up to the last reservation before those that are open.
    pub(super) generation: Generation,
    /// All reservations.
    pub(super) history: History,
    lookups: OpenLookups<OpenLookup>,
}

/// A lookup whose record is not known yet.
struct OpenLookup {
    cell: u32,
    /// Where the contents of its segment move.
    segments: Zeroizing<Vec<u32>>,
}

impl HarmonyClient {
    /// The contents of the segment of `cell`, in which the record `wanted` is, with the wanted
    /// record replaced: what a query asks for.
    ///
    /// `drawn` is one of all contents of unused segments, drawn uniformly: a record below `N`, or
    /// empty number `drawn - N` of those that are left, where those in the segment come first. One
    /// that is in the segment leaves it as it is, with the wanted record in it. Another one takes
    /// the wanted record's place. The [module](super) says why it must be one of *all* contents.
    ///
    /// No branch and no address depends on a secret.
    fn asked(&self, cell: u32, wanted: u32, contents: &[u32], drawn: u64) -> Vec<u32> {
        let replacement = self.replacement(contents, drawn);
        let records = self.parameters.records();
        let replaced =
            u32::conditional_select(&records, &replacement.record, replacement.is_record);
        let in_place = u32::conditional_select(&replaced, &wanted, replacement.is_in_segment);
        let place = self.history.place_of(cell);
        let asked = (0..).zip(contents).map(|(at, content): (u32, &u32)| {
            u32::conditional_select(content, &in_place, at.ct_eq(&place))
        });
        asked.collect()
    }

    fn replacement(&self, contents: &[u32], drawn: u64) -> Replacement {
        let records = self.parameters.records();
        let is_record = drawn.ct_lt(&u64::from(records));
        let record = drawn as u32;
        let (mut is_there, mut empties) = (Choice::from(0), 0u64);
        for content in contents {
            is_there |= content.ct_eq(&record);
            empties += u64::from(content.ct_eq(&records).unwrap_u8());
        }
        let is_empty_of_these = drawn.wrapping_sub(records.into()).ct_lt(&empties);
        let is_in_segment = (is_record & is_there) | (!is_record & is_empty_of_these);
        Replacement { record, is_record, is_in_segment }
    }

    /// Contents of unused segments: of as many as there are cells in these.
    pub(super) fn contents_left(&self) -> u64 {
        let used = u64::from(self.history.steps()) << self.parameters.segment_log2();
        self.parameters.cells() - used
    }

    fn draw(&self, wanted: u32, contents: &[u32], rng: &mut SecretRng) -> u64 {
        let left = self.contents_left();
        let drawn = rng.below(left);
        let is_in_segment = |drawn| self.replacement(contents, drawn).is_in_segment.into();
        planted::contents_drawn(drawn, left, wanted, &self.parameters, is_in_segment, rng)
    }

    /// The next reservation, for which `draw` draws.
    pub(super) fn reserve_with(
        &self,
        index: &RecordIndex,
        draw: impl FnOnce(u32, &[u32]) -> u64,
    ) -> Result<Reserved<HarmonyQuery>> {
        let (id, total) = (self.history.steps().into(), self.parameters.lookups());
        if id >= u64::from(total) {
            return Err(Error::exhausted(format!(
                "this generation of hints has served all of its {total} queries, and no query is sent without a fresh hint"
            )));
        }
        let wanted = index.expose() as u32;
        let mut cells = Zeroizing::new([wanted]);
        self.history.locate(cells.as_mut());
        let [cell] = *cells;
        let contents = self.history.contents(cell, wanted);
        let drawn = draw(wanted, &contents);
        let mut values = self.asked(cell, wanted, &contents, drawn);
        planted::order_of_values(&mut values, self.history.place_of(cell));
        let segments = self.history.destinations(cell, &contents);
        Ok(Reserved {
            id: ReservationId(id),
            change: HarmonyReservation { id, cell, contents, segments }.encode(),
            queries: vec![HarmonyQuery { values, value_bits: self.parameters.value_bits() }],
        })
    }
}

/// What may take the wanted record's place.
struct Replacement {
    record: u32,
    /// Whether it is that record, or an empty.
    is_record: Choice,
    is_in_segment: Choice,
}

impl HintedClient for HarmonyClient {
    fn load(
        parameters: HarmonyParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::decode(&parameters, generation)?;
        let history = History::new(&parameters, &generation.key(), kernels);
        Ok(Self { parameters, generation, history, lookups: OpenLookups::default() })
    }

    fn parameters(&self) -> &HarmonyParameters {
        &self.parameters
    }

    fn reserve(&self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Reserved<HarmonyQuery>> {
        self.reserve_with(index, |wanted, contents| self.draw(wanted, contents, rng))
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        let parameters = &self.parameters;
        let (values, record_len) = (parameters.answer_len(), parameters.shape().record_len());
        let lookup = |reader: &mut _| HarmonyReservation::read(reader, parameters);
        match HarmonyChange::decode(change, values, record_len, lookup)? {
            HarmonyChange::Lookup(lookup) => self.look_up(lookup),
            HarmonyChange::Answers { id, values } => {
                let mut lookups = std::mem::take(&mut self.lookups);
                let taken = lookups.answer(id, values, |lookup, at| self.take_in(lookup, at));
                self.lookups = lookups;
                taken
            }
            HarmonyChange::Edits(delta) => {
                self.parameters = self.parameters.grown_by(&delta)?;
                self.edit(&delta)
            }
        }
    }

    fn settle(&self, id: ReservationId, answers: &[HarmonyAnswer]) -> Result<Zeroizing<Vec<u8>>> {
        let [answer] = of_all("harmony", answers)?;
        self.lookups.waiting_for(id.0)?;
        if answer.records.len() != self.parameters.answer_len() {
            return Err(Error::api_misuse("an answer was given that is of another table"));
        }
        Ok(encode_answers(id.0, answer.records.len(), answer.records.iter().copied()))
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.lookups.take_record(id)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.lookups.open()
    }

    fn waits_for_all_answers(&self) -> bool {
        true
    }

    fn supply(&self) -> Supply {
        Supply { used: self.history.steps().into(), total: self.parameters.lookups().into() }
    }

    /// Values permuted for a lookup, in 16ths. If a share `f` of all segments is used, a walk takes
    /// `1 / (1 - f)` of them. There are `T` walks to the contents of a segment, and one on from
    /// each of these that is a record.
    fn search_len(&self) -> u64 {
        let [all, left] = [self.parameters.cells(), self.contents_left()].map(u128::from);
        let records = u128::from(self.parameters.records());
        let walks = 16 * u128::from(self.parameters.segment_records()) * (left + records);
        // At most `32 · T · C` in all, far below 2^64.
        u64::try_from((walks * all).div_ceil(left * left)).unwrap_or(u64::MAX)
    }

    fn follows(&self, after: TableShape) -> bool {
        self.parameters.grown(after).is_ok()
    }

    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        self.parameters.grown_by(delta)?;
        self.lookups.check_settled()?;
        Ok(encode_edits(delta))
    }
}

/// State changes.
impl HarmonyClient {
    /// Uses the segment that a query asks for.
    fn look_up(&mut self, lookup: HarmonyReservation) -> Result<()> {
        let HarmonyReservation { id, cell, contents, segments } = lookup;
        if id != u64::from(self.history.steps()) || self.supply().left() == 0 {
            return Err(impossible("a change is missing or comes twice"));
        }
        let wanted = contents[admit(self.history.place_of(cell)) as usize];
        if !self.history.use_segment(cell, wanted) {
            return Err(impossible("a segment was used twice"));
        }
        self.lookups.reserve(id, OpenLookup { cell, segments });
        Ok(())
    }

    /// Recovers the record, and moves all records of its segment to the hints of others.
    fn take_in(&mut self, OpenLookup { cell, segments }: &OpenLookup, records: &[u8]) -> Record {
        let record_len = self.parameters.record_len();
        let hint = self.generation.hint_mut(self.history.segment_of(*cell));
        // The hint is used up, and nothing is XORed onto it any more.
        let mut wanted = Zeroizing::new(hint.to_vec());
        hint.fill(0);
        let wanted_place = self.history.place_of(*cell) as usize;
        let moves = || {
            let records = records.chunks_exact(record_len).enumerate();
            let all =
                records.zip(segments.iter()).map(|((at, record), segment)| (at, record, *segment));
            all.filter(|(at, _, segment)| *at != wanted_place && *segment != NOWHERE)
        };
        moves().for_each(|(_, record, _)| xor(&mut wanted, record));
        moves().for_each(|(_, record, segment)| xor(self.generation.hint_mut(segment), record));
        xor(self.generation.hint_mut(segments[wanted_place]), &wanted);
        wanted
    }

    /// Brings the hints up to date with a table in which some records have changed.
    fn edit(&mut self, delta: &TableDelta) -> Result<()> {
        self.lookups.check_journal()?;
        let mut cells = Zeroizing::new(Vec::with_capacity(EDITS));
        for edits in delta.edits().chunks(EDITS) {
            cells.clear();
            cells.extend(edits.iter().map(|(index, _)| *index as u32));
            self.history.locate(&mut cells);
            for (cell, (_, difference)) in cells.iter().zip(edits) {
                xor(self.generation.hint_mut(self.history.segment_of(*cell)), difference);
            }
        }
        Ok(())
    }
}

impl SchemeOf for HarmonyClient {
    type Scheme = Harmony;
}
