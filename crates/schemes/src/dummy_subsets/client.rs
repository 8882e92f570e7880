//! The client: chooses a hint that contains the record, asks for the rest of it hidden among
//! dummies, and puts a fresh hint in its place (Algorithms 2 and 5).
//!
//! [`privet_core::hints::table`] says why queries reveal nothing. The fresh hint is one half of a
//! backup pair: the half that does not select the record's partition, with the record as its extra.
//! It is distributed like a hint sampled given that it contains the record. The parities of both
//! halves come from the offline phase.
//!
//! Whether the client learns a *record* may depend on hints whose answers a server withheld: see
//! `docs/security/wrong-answers.md`.

use super::generation::Generation;
use super::messages::{DummySubsetsAnswer, DummySubsetsQuery};
use super::query::{cover, hint_form, query_through, successor_is_above};
use super::{DummySubsets, DummySubsetsParameters};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::planted;
use privet_core::hints::{Exchange, HintTable, Ledger, LiveHint, StateChange, impossible, xor};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use privet_kernels::taint::declassify;
use subtle::{Choice, ConditionallySelectable as _};
use zeroize::Zeroizing;

/// A client with one generation of hints.
pub struct DummySubsetsClient {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    /// The single hints, in the rows of their ids, and the hints that replaced them. Its bytes hold
    /// the pairs' parities as well.
    pub(super) table: HintTable,
    /// The pairs' cutoffs; 0 for those that are invalid.
    pairs: Zeroizing<Vec<u32>>,
    /// Where in the table's bytes the pairs' parities begin: two records for each.
    pair_parities: usize,
    /// Pairs that are no longer in reserve, including invalid ones.
    used_pairs: u32,
    /// Valid pairs, used or not: the queries that this generation serves.
    total: u64,
    pub(super) ledger: Ledger,
}

impl DummySubsetsClient {
    /// The next pair in reserve.
    fn next_pair(&self) -> Option<u32> {
        let rest = self.pairs.get(self.used_pairs as usize..)?;
        let skipped = rest.iter().position(|cutoff| *cutoff != 0)?;
        Some(self.used_pairs + skipped as u32)
    }

    /// The parity of one half of a pair.
    fn half_range(&self, pair: u32, above: bool) -> std::ops::Range<usize> {
        let len = self.parameters.cut().record_len();
        let start = self.pair_parities + (2 * pair as usize + usize::from(above)) * len;
        start..start + len
    }

    /// How many groups of hints a search looks at: those of the single hints and of the pairs used
    /// so far, live or not.
    fn search_len(&self) -> usize {
        (self.parameters.singles() + self.used_pairs).div_ceil(8) as usize
    }

    /// Takes a hint out of use and puts half of a pair in its place.
    fn exchange(&mut self, exchange: &Exchange) -> Result<()> {
        let Exchange { id, hint, successor: pair, index, real_half, .. } = *exchange;
        if id != self.ledger.reservations() {
            return Err(impossible("a change is missing or comes twice"));
        }
        if self.next_pair() != Some(pair) {
            return Err(impossible("a pair is not the next in reserve"));
        }
        if declassify(index >= self.parameters.shape().records()) {
            return Err(impossible("a record lies beyond the table"));
        }
        let row = match hint {
            None => None,
            Some(hint) => {
                Some(self.table.row_of(hint).ok_or_else(|| impossible("a hint was used twice"))?)
            }
        };
        // The pairs in between are invalid, and stay out of use.
        self.used_pairs = pair + 1;
        let cutoff = self.pairs[pair as usize];
        let successor = self.parameters.singles() + pair;
        let above = successor_is_above(&self.table, successor, cutoff, index, self.kernels);
        // Reads both halves, so that no address shows which of them is used.
        let [below, beyond] = [false, true].map(|above| self.half_range(pair, above));
        let mut rest = Zeroizing::new(self.table.bytes()[below].to_vec());
        let is_beyond = Choice::from(u8::from(above));
        for (byte, other) in rest.iter_mut().zip(&self.table.bytes()[beyond]) {
            byte.conditional_assign(other, is_beyond);
        }
        self.ledger.reserve(row, Some(rest), u64::from(real_half), &mut self.table);
        // A cover takes no hint out of use. So its pair does not come into use either; it only
        // counts as used.
        if let Some(row) = row {
            let extra = Some(planted::record_of_successor(index));
            let successor = LiveHint { id: successor, cutoff, above, extra };
            self.table.exchange(row, successor, self.search_len())?;
        }
        self.table.search_at_least(self.search_len());
        Ok(())
    }

    /// Follows edits, in the live hints and the pairs in reserve.
    fn patch(&mut self, delta: &TableDelta) -> Result<()> {
        self.ledger.check_settled("the table cannot be edited")?;
        self.parameters = self.parameters.grown_by(delta)?;
        self.table.grow(delta.shape_after())?;
        // Only pairs in reserve: earlier pairs and singles are in use.
        let first_word = (self.parameters.singles() + self.used_pairs) / 64;
        let ids = self.parameters.singles() + self.parameters.pairs();
        let mut marks = vec![0; (ids / 64 - first_word) as usize];
        for (index, difference) in delta.edits() {
            self.table.patch(*index, difference);
            let (partition, offset) = self.parameters.cut().place(*index);
            let records = self.parameters.partition_records();
            let key = self.table.key();
            self.kernels
                .subset_offset_matches(key, partition, offset, records, first_word, &mut marks);
            let pairs = marked(&marks)
                .map(|id| 64 * first_word + id - self.parameters.singles())
                .filter(|pair| *pair >= self.used_pairs);
            for pair in pairs.collect::<Vec<u32>>() {
                let id = self.parameters.singles() + pair;
                let cutoff = self.pairs[pair as usize];
                // The half that selects the partition: the other half would take a hint's place.
                let above = !successor_is_above(&self.table, id, cutoff, *index, self.kernels);
                let half = self.half_range(pair, above);
                xor(&mut self.table.bytes_mut()[half], difference);
            }
        }
        Ok(())
    }
}

/// The positions of ones. Most words are zero.
fn marked(words: &[u64]) -> impl Iterator<Item = u32> {
    (0..).zip(words).filter(|(_, word)| **word != 0).flat_map(|(number, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| number * 64 + bit)
    })
}

impl HintedClient for DummySubsetsClient {
    fn load(
        parameters: DummySubsetsParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::decode(&parameters, generation)?;
        let form = hint_form(&parameters, generation.key());
        let Generation { cutoffs, bytes, parities } = generation;
        let (singles, pairs) = cutoffs.split_at(parameters.singles() as usize);
        let hints = singles.iter().zip(0..parameters.singles()).map(|(cutoff, id)| {
            // A cutoff of 0 belongs to a hint that is invalid.
            let hint = LiveHint { id, cutoff: *cutoff, above: false, extra: None };
            (*cutoff != 0).then_some(hint)
        });
        let pairs = Zeroizing::new(pairs.to_vec());
        let pair_parities =
            parities + parameters.singles() as usize * parameters.cut().record_len();
        let table = HintTable::new(form, hints, bytes, parities, kernels)?;
        let total = pairs.iter().filter(|cutoff| **cutoff != 0).count() as u64;
        let mut client = Self {
            parameters,
            kernels,
            table,
            pairs,
            pair_parities,
            used_pairs: 0,
            total,
            ledger: Ledger::default(),
        };
        client.table.search_at_least(client.search_len());
        Ok(client)
    }

    fn parameters(&self) -> &DummySubsetsParameters {
        &self.parameters
    }

    fn reserve(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Reserved<DummySubsetsQuery>> {
        let Some(pair) = self.next_pair() else {
            return Err(Error::exhausted(format!(
                "this generation of hints has served all of its {} queries, and no query is sent without a fresh hint",
                self.total
            )));
        };
        let index = index.expose();
        let real_half = planted::real_half(rng.below(2) == 1);
        let row = self.table.find(index).choose(rng);
        let query =
            row.and_then(|row| query_through(&self.table, row, index, real_half, self.kernels));
        let id = self.ledger.reservations();
        let hint = row.and_then(|row| self.table.hint(row)).map(|hint| hint.id);
        let exchange = Exchange { id, hint, successor: pair, index, real_half, note: 0 };
        Ok(Reserved {
            id: ReservationId(id),
            change: StateChange::Exchange(exchange).encode(),
            queries: vec![query.unwrap_or_else(|| cover(self.parameters.cut(), rng))],
        })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        let record_len = self.parameters.cut().record_len();
        match StateChange::decode(change, record_len, record_len)? {
            StateChange::Exchange(exchange) => self.exchange(&exchange),
            StateChange::Answer { id, values } => {
                self.ledger.answer(id, values, None, &mut self.table).map(drop)
            }
            StateChange::Delta(delta) => self.patch(&delta),
        }
    }

    fn settle(
        &self,
        id: ReservationId,
        answers: &[DummySubsetsAnswer],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let [answer] = of_all("dummy subsets", answers)?;
        let real_half = self.ledger.unanswered(id.0)?;
        let values = answer.half(real_half == 1);
        Ok(StateChange::Answer { id: id.0, values }.encode())
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.ledger.take_record(id.0)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.ledger.open().map(ReservationId).collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.ledger.reservations(), total: self.total }
    }

    fn search_len(&self) -> u64 {
        Self::search_len(self) as u64
    }

    fn follows(&self, after: TableShape) -> bool {
        self.parameters.grown(after).is_ok()
    }

    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        self.ledger.check_settled("the table cannot be edited")?;
        self.parameters.grown_by(delta)?;
        Ok(StateChange::Delta(delta.clone()).encode())
    }
}

impl SchemeOf for DummySubsetsClient {
    type Scheme = DummySubsets;
}
