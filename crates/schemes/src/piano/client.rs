//! The client: chooses a hint that contains the record, asks for the others of that hint, and puts
//! a backup in its place (§2.4 of the paper).
//!
//! # Why queries reveal nothing
//!
//! A server sees a row of uniform offsets, whatever the client asks for ([`HintTable`] says why
//! that holds for any sequence of queries). In the single-parity form, the place of the wanted
//! record's chunk holds the offset of a pair, which is used once and is independent of every hint.
//! In the other form that place is left out, and the server cannot see which place it is.
//!
//! # What may run out
//!
//! Every chunk has a number of spares for each window, and each lookup of a record in it uses one.
//! The records of a window are all different ([`Lookups`]) and the table is shuffled. So a chunk's
//! spares are used up only with the probability that [`PianoParameters`] says, **unless records are
//! chosen by where they lie**. The order is public, so an attacker who chooses a client's lookups
//! can make it fail. So can the maker of the table, who decides where keys lie: see the
//! [module](super). The client then sends a cover, which looks like any other query and takes the
//! same work to make. It exchanges no hint, which saves half a microsecond. That difference
//! disappears in the fixed time that a session gives to every query.

use super::generation::{Layout, Offsets, key};
use super::lookups::{Failure, Lookups};
use super::{AnswerForm, PianoAnswer, PianoParameters, PianoQuery, PianoScheme};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::planted;
use privet_core::hints::partitions::check_grown;
use privet_core::hints::table::HintForm;
use privet_core::hints::{Exchange, HintTable, Ledger, LiveHint, StateChange, impossible, xor};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use privet_kernels::taint::{admit, conceal, declassify};
use std::marker::PhantomData;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _, ConstantTimeLess as _};
use zeroize::{Zeroize as _, Zeroizing};

/// A client with the hints of one window.
pub struct PianoClient<F> {
    pub(super) parameters: PianoParameters,
    kernels: Kernels,
    pub(super) layout: Layout,
    /// One row for each primary hint. Its bytes are the whole generation, backups and pairs
    /// included.
    pub(super) table: HintTable,
    pub(super) ledger: Ledger,
    pub(super) lookups: Lookups,
    offsets: Offsets,
    /// For each chunk, the number of used spares.
    pub(super) spares_used: Zeroizing<Vec<u32>>,
    form: PhantomData<F>,
}

/// The successor in a change that has none because no hint contains the record, …
const NO_HINT: u32 = u32::MAX;
/// … or because its chunk has no spares left.
const NO_SPARES: u32 = u32::MAX - 1;

impl<F: AnswerForm> HintedClient for PianoClient<F> {
    fn load(
        parameters: PianoParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let layout = Layout::of::<F>(&parameters);
        layout.check(&generation)?;
        let form = HintForm {
            partitions: *parameters.cut(),
            key: Secret::new(*key(&generation)),
            selects: false,
            security: parameters.expected_hints(),
        };
        let whole = |id| Some(LiveHint { id, cutoff: 0, above: false, extra: None });
        let hints = (0..parameters.primaries()).map(whole);
        let mut table = HintTable::new(form, hints, generation, layout.hints(), kernels)?;
        table.search_at_least(parameters.searched_groups(0));
        let shape = parameters.shape();
        let lookups =
            Lookups::new(shape.records(), parameters.record_len(), parameters.window(), kernels)?;
        Ok(Self {
            kernels,
            layout,
            table,
            ledger: Ledger::default(),
            lookups,
            offsets: Offsets::new(&parameters, kernels)?,
            spares_used: Zeroizing::new(vec![0; parameters.chunks() as usize]),
            parameters,
            form: PhantomData,
        })
    }

    fn parameters(&self) -> &PianoParameters {
        &self.parameters
    }

    fn reserve(&self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Reserved<PianoQuery<F>>> {
        let id = self.ledger.reservations();
        if id >= self.parameters.window() {
            return Err(Error::exhausted(format!(
                "this window of hints has served all of its {} queries, and no query is sent without a fresh hint",
                self.parameters.window()
            )));
        }
        let wanted = self.parameters.permutation().position(index);
        let before = self.lookups.find(wanted);
        let filler = self.lookups.filler(rng);
        let asked = if before.is_some() { filler } else { wanted };

        let (chunk, _) = self.parameters.cut().place(asked);
        // The record that the query asks for is new in this window, unless there are fewer records
        // than queries.
        let found = if self.parameters.repeats() {
            self.table.find(asked)
        } else {
            self.table.find_fresh(asked)
        };
        let row = found.choose(rng);
        let spare = self.next_spare(chunk);
        let (hint, has_hint) = self.table.hint_for(row, asked);
        // Always makes both a cover and a query, with placeholders for missing parts: making only
        // one of them would take another time.
        let cover = self.cover(rng);
        let any_spare = chunk * self.parameters.spares();
        let query = self.query_through(hint, asked, spare.unwrap_or(any_spare));
        let (hint, successor, query) = match (has_hint, spare) {
            (true, Some(spare)) => (Some(hint.id), spare, query),
            (false, _) => (None, NO_HINT, cover),
            (_, None) => (None, NO_SPARES, cover),
        };
        let note = before.unwrap_or(id);
        let exchange = Exchange { id, hint, successor, index: asked, real_half: false, note };
        Ok(Reserved {
            id: ReservationId(id),
            change: StateChange::Exchange(exchange).encode(),
            queries: vec![query],
        })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match StateChange::decode(
            change,
            self.parameters.record_len(),
            self.parameters.record_len(),
        )? {
            StateChange::Exchange(exchange) => self.exchange(&exchange),
            StateChange::Answer { id, values } => self.answer(id, values),
            StateChange::Delta(delta) => self.patch(&delta),
        }
    }

    fn settle(&self, id: ReservationId, answers: &[PianoAnswer<F>]) -> Result<Zeroizing<Vec<u8>>> {
        let [answer] = of_all("Piano", answers)?;
        let spare = self.ledger.unanswered(id.0)? as usize;
        let record_len = self.parameters.record_len();
        // The answer to a cover is not used, but it is recorded like any other.
        let values = match self.lookups.position(id.0) {
            None => Zeroizing::new(vec![0; record_len]),
            Some(_) if F::REPLACES_THE_WANTED => {
                let mut sum = Zeroizing::new(answer.parities.clone());
                xor(&mut sum, &self.table.bytes()[self.layout.pair(spare)]);
                sum
            }
            Some(position) => {
                let (chunk, _) = self.parameters.cut().place(position);
                let start = chunk as usize * record_len;
                Zeroizing::new(answer.parities[start..start + record_len].to_vec())
            }
        };
        Ok(StateChange::Answer { id: id.0, values }.encode())
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        if self.ledger.unanswered(id.0).is_ok() {
            return None;
        }
        self.lookups.take(id.0)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.ledger.open().map(ReservationId).collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.ledger.reservations(), total: self.parameters.window() }
    }

    /// The hints that are searched, and the records of this window.
    fn search_len(&self) -> u64 {
        let id = self.ledger.reservations();
        8 * self.parameters.searched_groups(id) as u64 + id
    }

    /// Records of a table with another number of records lie in another order. These hints do not
    /// fit it.
    fn follows(&self, after: TableShape) -> bool {
        after == self.parameters.shape()
    }

    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        self.check_shape(delta)?;
        self.ledger.check_settled("hints cannot follow an update")?;
        Ok(StateChange::Delta(delta.clone()).encode())
    }
}

/// Queries.
impl<F: AnswerForm> PianoClient<F> {
    /// The number, over all chunks, of the spare that a query about `chunk` uses.
    pub(super) fn next_spare(&self, chunk: u32) -> Option<u32> {
        // An address that depends on the record, in a list of a number for each chunk.
        let used = conceal(*self.spares_used.get(admit(chunk) as usize)?);
        // This is also a branch. Whether spares are left reveals something only with probability
        // 2^-40, or if records are chosen by where they lie.
        admit(used < self.parameters.spares()).then_some(chunk * self.parameters.spares() + used)
    }

    /// The query for `position` through `hint`, which contains it, and the pair `spare` of its
    /// chunk.
    pub(super) fn query_through(&self, hint: LiveHint, position: u64, spare: u32) -> PianoQuery<F> {
        let mut offsets = self.contents(hint, position);
        let (chunk, _) = self.parameters.cut().place(position);
        if F::REPLACES_THE_WANTED {
            let of_pair = self.pair_offset(chunk, spare);
            for (place, offset) in (0u32..).zip(offsets.iter_mut()) {
                offset.conditional_assign(&of_pair, place.ct_eq(&chunk));
            }
            planted::replacement(self.parameters.cut(), position, &mut offsets, || {
                self.pair_offset(chunk, chunk * self.parameters.spares())
            });
        } else {
            // The last place takes the offset that is dropped. No branch shows from where on
            // offsets move up.
            for place in 0..offsets.len() - 1 {
                // Places from the chunk's on move.
                let moves = !(place as u32).ct_lt(&chunk);
                let next = offsets[place + 1];
                offsets[place].conditional_assign(&next, moves);
            }
            offsets.pop();
        }
        PianoQuery::new(&self.parameters, std::mem::take(&mut offsets))
    }

    /// What a hint contains, if it contains `position`: an offset for each chunk.
    pub(super) fn contents(&self, hint: LiveHint, position: u64) -> Zeroizing<Vec<u16>> {
        let chunks = self.parameters.chunks() as usize;
        let mut selects = Zeroizing::new(vec![0; chunks]);
        let mut offsets = Zeroizing::new(vec![0; chunks]);
        let (key, records) = (self.table.key(), self.parameters.chunk_records());
        self.kernels.subset_rebuild(key, hint.id, records, &mut selects, &mut offsets);
        // A hint without an extra record already has the wanted record in its place.
        let (chunk, offset) = self.parameters.cut().place(hint.extra.unwrap_or(position));
        for (place, at) in (0u32..).zip(offsets.iter_mut()) {
            at.conditional_assign(&(offset as u16), place.ct_eq(&chunk));
        }
        offsets
    }

    /// The offset of a pair of `chunk`.
    pub(super) fn pair_offset(&self, chunk: u32, spare: u32) -> u16 {
        // Secret addresses, in the list of a chunk's numbers. They point to offsets of unused
        // pairs.
        let (chunk, spare) = (admit(chunk), admit(spare));
        let key = Zeroizing::new(admit(*self.table.key()));
        let within = spare - chunk * self.parameters.spares();
        let group = within / 8 * 8;
        let first = self.parameters.first_pair(chunk) + group;
        let offsets = self.offsets.of(&key, first, chunk, 8);
        conceal(offsets[(within - group) as usize])
    }

    /// A query that only looks like one: uniform offsets.
    pub(super) fn cover(&self, rng: &mut SecretRng) -> PianoQuery<F> {
        let mut words = Zeroizing::new(vec![0; PianoQuery::<F>::count(&self.parameters)]);
        rng.fill_words(&mut words);
        // The number of records is a power of two, so masking the bits gives uniform offsets.
        let mask = planted::cover_mask(self.parameters.chunk_records() - 1);
        let offsets = words.iter().map(|word| (word & mask) as u16).collect();
        PianoQuery::new(&self.parameters, offsets)
    }
}

/// State changes.
impl<F: AnswerForm> PianoClient<F> {
    /// Takes a hint out of use and puts a backup in its place.
    fn exchange(&mut self, exchange: &Exchange) -> Result<()> {
        let Exchange { id, hint, successor, index: position, note: wanted, .. } = *exchange;
        if id != self.ledger.reservations() || id >= self.parameters.window() {
            return Err(impossible("a change is missing or comes twice"));
        }
        let is_there = (position < self.parameters.shape().records()) & (wanted <= id);
        if declassify(!is_there) {
            return Err(impossible("a record is not there"));
        }
        let (chunk, _) = self.parameters.cut().place(position);
        let searched = self.parameters.searched_groups(id + 1);
        let Some(hint) = hint else {
            let failure = match successor {
                NO_HINT => Failure::NoHint,
                NO_SPARES => Failure::NoSpares,
                _ => return Err(impossible("a backup is used for nothing")),
            };
            self.ledger.reserve(None, None, 0, &mut self.table);
            self.table.search_at_least(searched);
            self.lookups.reserve(Err(failure), wanted);
            return Ok(());
        };
        if declassify(self.next_spare(chunk) != Some(successor)) {
            return Err(impossible("a backup is not the next of its chunk"));
        }
        let row = self.table.row_of(hint).ok_or_else(|| impossible("a hint was used twice"))?;
        // Secret addresses: the backup's, and below its chunk's.
        let backup = self.layout.backup(admit(successor) as usize);
        let parity = &mut self.table.bytes_mut()[backup];
        let rest = Zeroizing::new(parity.to_vec());
        parity.zeroize();
        self.ledger.reserve(Some(row), Some(rest), u64::from(successor), &mut self.table);
        let id = self.parameters.primaries() + successor;
        let extra = Some(planted::record_of_successor(position));
        let successor = LiveHint { id, cutoff: 0, above: false, extra };
        self.table.exchange(row, successor, searched)?;
        self.spares_used[admit(chunk) as usize] += 1;
        self.lookups.reserve(Ok(exchange.index), wanted);
        Ok(())
    }

    /// Takes in the sum of the other records of the hint that a reservation used. Keeps every
    /// record that is known now.
    fn answer(&mut self, id: u64, sum: Zeroizing<Vec<u8>>) -> Result<()> {
        let spare = self.ledger.unanswered(id).map(|spare| spare as usize);
        let resolved = self.ledger.answer(id, sum, None, &mut self.table)?;
        if let (Ok(spare), true) = (spare, F::REPLACES_THE_WANTED)
            && self.lookups.position(id).is_some()
        {
            self.table.bytes_mut()[self.layout.pair(spare)].zeroize();
        }
        for id in resolved {
            if let Some(Ok(record)) = self.ledger.take_record(id) {
                self.lookups.resolve(id, &record);
            }
        }
        Ok(())
    }
}

impl<F: AnswerForm> SchemeOf for PianoClient<F> {
    type Scheme = PianoScheme<F>;
}

/// Edits of the table, which are public: nothing here needs to take the same time.
impl<F: AnswerForm> PianoClient<F> {
    fn check_shape(&self, delta: &TableDelta) -> Result<()> {
        let shape = self.parameters.shape();
        delta.check_before(shape)?;
        check_grown(shape, delta.shape_after(), shape.records())
    }

    fn patch(&mut self, delta: &TableDelta) -> Result<()> {
        self.ledger.check_settled("hints cannot follow an update").map_err(|error| {
            Error::corrupted("the journal of used hints holds an update at an impossible place")
                .caused_by(error)
        })?;
        self.check_shape(delta)?;
        for (index, difference) in delta.edits() {
            let index = RecordIndex::new(*index, self.parameters.shape())?;
            let position = self.parameters.permutation().position(&index);
            self.table.patch(position, difference);
            self.patch_backups(position, difference);
            if F::REPLACES_THE_WANTED {
                self.patch_pairs(position, difference);
            }
            self.lookups.patch(position, difference);
        }
        Ok(())
    }

    /// Patches the backups in reserve that contain the record. A backup that is in use is in the
    /// table of hints.
    fn patch_backups(&mut self, position: u64, difference: &[u8]) {
        let (chunk, offset) = self.parameters.cut().place(position);
        let (first, spares) = (self.parameters.primaries(), self.parameters.spares());
        let backups = self.parameters.backups() as usize;
        let mut marks = Zeroizing::new(vec![0; backups.div_ceil(64)]);
        let (key, records) = (self.table.key(), self.parameters.chunk_records());
        // Primaries fill whole words.
        self.kernels.subset_offset_matches(key, chunk, offset, records, first / 64, &mut marks);
        for (word, mut mark) in marks.iter().copied().enumerate() {
            while mark != 0 {
                let backup = word * 64 + mark.trailing_zeros() as usize;
                mark &= mark - 1;
                if backup >= backups {
                    break;
                }
                let (of_chunk, spare) =
                    (backup / spares as usize, (backup % spares as usize) as u32);
                if of_chunk != chunk as usize && spare >= self.spares_used[of_chunk] {
                    xor(&mut self.table.bytes_mut()[self.layout.backup(backup)], difference);
                }
            }
        }
    }

    /// Patches the pairs in reserve whose record this is.
    fn patch_pairs(&mut self, position: u64, difference: &[u8]) {
        let (chunk, offset) = self.parameters.cut().place(position);
        let spares = self.parameters.spares();
        let first = self.parameters.first_pair(chunk);
        let offsets = self.offsets.of(self.table.key(), first, chunk, spares);
        for spare in self.spares_used[chunk as usize]..spares {
            if u32::from(offsets[spare as usize]) == offset {
                let pair = (chunk * spares + spare) as usize;
                xor(&mut self.table.bytes_mut()[self.layout.pair(pair)], difference);
            }
        }
    }
}
