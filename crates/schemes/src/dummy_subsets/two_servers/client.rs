//! The client: as in the single-server form, but the replacement of a used hint comes with the
//! answer (Algorithms 2 and 3).
//!
//! The successor of a used hint comes from the pair of the next id. It is the half that does not
//! select the record's partition, with the record as its extra. The key and the pair's cutoff,
//! which the client has, say which half that is. The offline server sends the parities of both
//! halves, and cannot tell which one the client uses.

use super::generation::Layout;
use super::messages::{Replenishment, TwoServersQuery};
use super::{DummySubsetsAnswer, DummySubsetsParameters, DummySubsetsTwo};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::dummy_subsets::query::{cover, hint_form, query_through, successor_is_above};
use crate::planted;
use privet_core::hints::{Exchange, HintTable, Ledger, LiveHint, StateChange, impossible};
use privet_core::{Error, Reason, RecordIndex, Result, Secret, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use privet_kernels::taint::declassify;
use zeroize::Zeroizing;

/// The fewest and the most queries that a generation serves.
const FEWEST_QUERIES: u64 = 64;
const MOST_QUERIES: u64 = 1 << 16;
/// Bytes that a lookup adds to the journal, besides two records.
const JOURNALLED: u64 = 128;
/// The number of ids whose cutoffs are computed at a time.
const CUTOFF_BLOCK: u32 = 8;

/// A client whose hints never run out.
pub struct DummySubsetsTwoClient {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    pub(super) table: HintTable,
    /// The pair that will take the next used hint's place: its id, …
    next_id: u32,
    /// … and the cutoffs of its block of ids.
    cutoffs: Zeroizing<[u32; CUTOFF_BLOCK as usize]>,
    /// Queries that this generation serves.
    pub(super) queries: u64,
    pub(super) ledger: Ledger,
}

impl DummySubsetsTwoClient {
    /// The number of queries of a generation. After them the client writes its state down anew.
    /// They are as many as make a journal of about twice the state.
    pub(super) fn queries_per_generation(parameters: &DummySubsetsParameters) -> u64 {
        let journalled = 2 * parameters.shape().record_len() + JOURNALLED;
        let queries = 2 * Layout::new(parameters).len() / journalled;
        planted::queries_per_generation(queries.clamp(FEWEST_QUERIES, MOST_QUERIES))
    }

    /// The next pair: its id and cutoff.
    fn next_pair(&self) -> Option<(u32, u32)> {
        let cutoff = self.cutoffs[(self.next_id % CUTOFF_BLOCK) as usize];
        (self.next_id < u32::MAX - CUTOFF_BLOCK).then_some((self.next_id, cutoff))
    }

    /// Goes on to the first valid pair from `id` on.
    fn advance_to(&mut self, id: u32) {
        self.next_id = id;
        loop {
            if self.next_id.is_multiple_of(CUTOFF_BLOCK) {
                self.compute_cutoffs();
            }
            match self.next_pair() {
                Some((_, 0)) => self.next_id += 1,
                _ => return,
            }
        }
    }

    fn compute_cutoffs(&mut self) {
        let partitions = self.parameters.partitions();
        let first = self.next_id / CUTOFF_BLOCK * CUTOFF_BLOCK;
        let cutoffs = self.cutoffs.as_mut_slice();
        self.kernels.subset_cutoffs(self.table.key(), first, partitions, partitions / 2, cutoffs);
    }

    /// How many groups of hints a search looks at: all that were ever begun, until there might be a
    /// live hint in each. Used hints leave gaps. If the choice of used hints were as good as
    /// random, the live ones would be spread over 2.72 times as many groups as they fill (the sum
    /// of 1/k for k up to 8). But repeated lookups of one record use young hints up, and leave more
    /// gaps. The search time must not show.
    fn search_len(&self) -> usize {
        self.next_id.div_ceil(8).min(self.parameters.singles()) as usize
    }

    /// Takes a hint out of use and puts half of the next pair in its place.
    fn exchange(&mut self, exchange: &Exchange) -> Result<()> {
        let Exchange { id, hint, successor, index, real_half, note } = *exchange;
        if id != self.ledger.reservations() {
            return Err(impossible("a change is missing or comes twice"));
        }
        let next = self.next_pair().map(|(id, cutoff)| (id, u64::from(cutoff)));
        if declassify(next != Some((successor, note))) {
            return Err(impossible("a pair is not the next one"));
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
        let cutoff = note as u32;
        let above = successor_is_above(&self.table, successor, cutoff, index, self.kernels);
        let note = u64::from(real_half) | u64::from(above) << 1;
        self.ledger.reserve(row, None, note, &mut self.table);
        self.advance_to(planted::id_after(successor, index));
        // A cover takes no hint out of use. So its pair does not come into use either.
        if let Some(row) = row {
            let extra = Some(planted::record_of_successor(index));
            let successor = LiveHint { id: successor, cutoff, above, extra };
            self.table.exchange(row, successor, self.search_len())?;
        }
        self.table.search_at_least(self.search_len());
        Ok(())
    }
}

impl HintedClient for DummySubsetsTwoClient {
    const ENDLESS: bool = true;

    fn load(
        parameters: DummySubsetsParameters,
        mut generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let layout = Layout::new(&parameters);
        let (key, next_id) = layout.check(&generation)?;
        let hints = layout.split_off_hints(&mut generation);
        if layout.hints(&hints).flatten().any(|hint| hint.id >= next_id) {
            return Err(Error::corrupted("the stored hints have ids that are yet to come"));
        }
        let form = hint_form(&parameters, key);
        let table =
            HintTable::new(form, layout.hints(&hints), generation, layout.parities, kernels)?;
        let cutoffs = Zeroizing::new([0; CUTOFF_BLOCK as usize]);
        let ledger = Ledger::default();
        let queries = Self::queries_per_generation(&parameters);
        let mut client = Self { parameters, kernels, table, next_id, cutoffs, queries, ledger };
        client.compute_cutoffs();
        client.advance_to(next_id);
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
    ) -> Result<Reserved<TwoServersQuery>> {
        let id = self.ledger.reservations();
        if id == self.queries {
            return Err(Error::exhausted(format!(
                "this generation of hints has served its {} queries; it goes on once it is written down anew",
                self.queries
            )));
        }
        let Some((successor, cutoff)) = self.next_pair() else {
            return Err(Error::exhausted(
                "a key serves four billion queries, and all of them were made; erase these hints, and new ones are prepared under a fresh key",
            )
            .because(Reason::HintsUnusable));
        };
        let index = index.expose();
        let real_half = planted::real_half(rng.below(2) == 1);
        let row = self.table.find(index).choose(rng);
        let query =
            row.and_then(|row| query_through(&self.table, row, index, real_half, self.kernels));
        let hint = row.and_then(|row| self.table.hint(row)).map(|hint| hint.id);
        let exchange = Exchange { id, hint, successor, index, real_half, note: u64::from(cutoff) };
        let key = Secret::new(*self.table.key());
        Ok(Reserved {
            id: ReservationId(id),
            change: StateChange::Exchange(exchange).encode(),
            queries: vec![
                TwoServersQuery::Replenish(Replenishment { key, id: successor, cutoff }),
                TwoServersQuery::Subsets(
                    query.unwrap_or_else(|| cover(self.parameters.cut(), rng)),
                ),
            ],
        })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        let record_len = self.parameters.cut().record_len();
        match StateChange::decode(change, record_len, 2 * record_len)? {
            StateChange::Exchange(exchange) => self.exchange(&exchange),
            StateChange::Answer { id, values } => {
                let (sum, rest) = values.split_at(record_len);
                let (sum, rest) = (Zeroizing::new(sum.to_vec()), Zeroizing::new(rest.to_vec()));
                self.ledger.answer(id, sum, Some(rest), &mut self.table).map(drop)
            }
            StateChange::Delta(delta) => {
                self.ledger.check_settled("the table cannot be edited")?;
                self.parameters = self.parameters.grown_by(&delta)?;
                self.table.grow(delta.shape_after())?;
                for (index, difference) in delta.edits() {
                    self.table.patch(*index, difference);
                }
                Ok(())
            }
        }
    }

    fn settle(
        &self,
        id: ReservationId,
        answers: &[DummySubsetsAnswer],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let [replenished, answer] = of_all("dummy subsets on two servers", answers)?;
        let note = self.ledger.unanswered(id.0)?;
        let (sum, rest) = (answer.half(note & 1 == 1), replenished.half(note >> 1 == 1));
        let values = Zeroizing::new([sum.as_slice(), rest.as_slice()].concat());
        Ok(StateChange::Answer { id: id.0, values }.encode())
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.ledger.take_record(id.0)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.ledger.open().map(ReservationId).collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.ledger.reservations(), total: self.queries }
    }

    fn search_len(&self) -> u64 {
        Self::search_len(self) as u64
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        if self.supply().left() > 0 {
            return Err(Error::api_misuse(
                "a generation of hints is written down anew only when it is used up",
            ));
        }
        self.ledger.check_settled("hints cannot be written down anew")?;
        let first_id = planted::first_id(self.next_id, &self.table);
        Layout::new(&self.parameters).encode(&self.table, first_id)
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

impl SchemeOf for DummySubsetsTwoClient {
    type Scheme = DummySubsetsTwo;
}
