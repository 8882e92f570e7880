//! The client: shows one server the hint that contains the record, without the record itself; shows
//! the other server the offsets that are shuffled in for it; and shuffles (Figure 5 of the TAPIR
//! paper, without the commitments).
//!
//! # Why queries reveal nothing
//!
//! *Server 0* sees `σ_q(r_q)` for each partition `q`, with fresh uniform `r_q`: uniform offsets,
//! whatever the permutations are at that time. So it may know their first state.
//!
//! *Server 1* sees `σ_q(m)` for the hint `m` that contains the record, and a uniform offset in
//! place of the record's. If it knows nothing of the permutations, these are uniform offsets: `m`
//! is the place of the record in one permutation, and the permutations are independent. It must
//! know nothing of them afterwards either, although it has seen the numbers at one place in all
//! partitions except one. In these partitions, each such number changes places with a uniformly
//! chosen one. Then it is at a uniform place; the rest was uniform and still is. In the wanted
//! record's own partition nothing was shown, so nothing is exchanged. (Lemma A.1.1 shows that an
//! attacker's advantage in telling two records apart is 0. What remains is to tell the pseudorandom
//! numbers from random ones.)
//!
//! The exchange is complete with the reservation. Answers bring only the *values* of hints. So what
//! the client sends does not depend on any answer, nor on whether there was one.
//!
//! # The order of answers
//!
//! A hint's value belongs to the permutations at one moment. So the client takes answers
//! [in order](crate::in_order).

use super::change::{SinglePassChange, SinglePassReservation, decode, encode_values};
use super::draws::Seed;
use super::generation::Generation;
use super::messages::{SinglePassAnswer, SinglePassQuery};
use super::permutations::{Coins, HintPlace, Permutations};
use super::{SinglePass, SinglePassParameters};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::in_order::{OpenLookups, encode_edits};
use crate::planted;
use privet_core::hints::{impossible, xor};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A client with one generation of hints.
pub struct SinglePassClient {
    parameters: SinglePassParameters,
    kernels: Kernels,
    /// The permutations after the last reservation, and the hints after the last reservation before
    /// those that are open.
    pub(super) generation: Generation,
    reservations: u64,
    lookups: OpenLookups<OpenLookup>,
}

/// A lookup whose record is not known yet.
struct OpenLookup {
    place: HintPlace,
    seed: Seed,
}

impl SinglePassClient {
    /// The random numbers of a lookup. They do not depend on the record's `place`: only a mistake
    /// that tests plant needs it.
    fn coins(&self, seed: &Seed, place: HintPlace) -> Coins {
        let mut coins = Coins::from_seed(&self.parameters, seed, self.kernels);
        planted::coins(&mut coins, place);
        coins
    }

    /// The change that the records from both servers bring: [`settle`](HintedClient::settle).
    pub(crate) fn settle_records(
        &self,
        id: ReservationId,
        [fresh, used]: [&[u8]; 2],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let lookup = self.lookups.waiting_for(id.0)?;
        let (record_len, answer_len) = (self.parameters.record_len(), self.parameters.answer_len());
        if fresh.len() != answer_len || used.len() != answer_len {
            return Err(Error::api_misuse("answers were given that are of another table"));
        }
        let mut others = sum(used, record_len);
        let decoy = lookup.place.partition as usize * record_len;
        xor(&mut others, &used[decoy..decoy + record_len]);
        Ok(encode_values(id.0, &others, fresh, used))
    }

    /// The queries of the last reservation, as long as it is not settled.
    pub(crate) fn shown(&self, id: ReservationId) -> Option<[SinglePassQuery; 2]> {
        let lookup = self.lookups.unanswered(id.0).filter(|_| id.0 + 1 == self.reservations)?;
        let coins = self.coins(&lookup.seed, lookup.place);
        Some(self.generation.permutations.shown(lookup.place, &coins))
    }

    /// The memory that [`follow_grown`](Self::follow_grown) needs: permutations of the new
    /// partitions, drawn from `seed`.
    pub(crate) fn later_permutations(
        &self,
        after: &SinglePassParameters,
        seed: &Seed,
    ) -> Result<Option<Permutations>> {
        self.lookups.check_journal()?;
        self.generation.permutations.grown(after.partitions(), seed, self.kernels)
    }

    /// Follows an update of the table that may add partitions.
    pub(crate) fn follow_grown(
        &mut self,
        after: SinglePassParameters,
        permutations: Option<Permutations>,
        delta: &TableDelta,
    ) -> Result<()> {
        if let Some(permutations) = permutations {
            self.generation.permutations = permutations;
        }
        self.parameters = after;
        self.follow(delta)
    }

    /// The permutations and hints as they are now, encoded as a generation.
    pub(crate) fn encoded(&self) -> Result<Zeroizing<Vec<u8>>> {
        self.generation.encode(&self.parameters)
    }
}

impl HintedClient for SinglePassClient {
    const ENDLESS: bool = true;

    fn load(
        parameters: SinglePassParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::decode(&parameters, &generation)?;
        Ok(Self {
            parameters,
            kernels,
            generation,
            reservations: 0,
            lookups: OpenLookups::default(),
        })
    }

    fn parameters(&self) -> &SinglePassParameters {
        &self.parameters
    }

    fn reserve(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Reserved<SinglePassQuery>> {
        let total = self.supply().total;
        if self.reservations >= total {
            return Err(Error::exhausted(format!(
                "this generation of hints has served all of its {total} queries; it must be written down as the next one first"
            )));
        }
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill(seed.as_mut());
        planted::seed(seed.as_mut());
        let seed = Secret::new(*seed);
        // A second handle on the same secret, for the change.
        let index = RecordIndex::new(index.expose(), self.parameters.shape())?;
        let permutations = &self.generation.permutations;
        let place = permutations.place_of(&index);
        let queries = permutations.show(place, &self.coins(&seed, place));
        let id = self.reservations;
        Ok(Reserved {
            id: ReservationId(id),
            change: SinglePassReservation { id, index, seed }.encode(),
            queries: queries.into(),
        })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match decode(&self.parameters, change)? {
            SinglePassChange::Lookup(lookup) => self.look_up(lookup),
            SinglePassChange::Answers { id, values } => {
                let mut lookups = std::mem::take(&mut self.lookups);
                let taken = lookups.answer(id, values, |lookup, at| self.take_in(lookup, at));
                self.lookups = lookups;
                taken
            }
            SinglePassChange::Edits(delta) => {
                self.parameters = self.grown_by(&delta)?;
                self.follow(&delta)
            }
        }
    }

    fn settle(
        &self,
        id: ReservationId,
        answers: &[SinglePassAnswer],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let [fresh, used] = of_all("SinglePass", answers)?;
        self.settle_records(id, [&fresh.records, &used.records])
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
        Supply { used: self.reservations, total: self.parameters.queries_per_generation() }
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        if self.supply().left() > 0 || !self.lookups.are_settled() {
            return Err(Error::api_misuse(
                "a generation of hints is written down as the next one before it is used up and all its queries are answered",
            ));
        }
        self.encoded()
    }

    fn follows(&self, after: TableShape) -> bool {
        self.parameters.grown(after).is_ok()
    }

    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        self.grown_by(delta)?;
        self.lookups.check_settled()?;
        Ok(encode_edits(delta))
    }
}

/// State changes.
impl SinglePassClient {
    /// Shuffles in the numbers that a query shows.
    fn look_up(&mut self, lookup: SinglePassReservation) -> Result<()> {
        let SinglePassReservation { id, index, seed } = lookup;
        if id != self.reservations || self.supply().left() == 0 {
            return Err(impossible("a change is missing or comes twice"));
        }
        let place = self.generation.permutations.place_of(&index);
        let mut partners = self.coins(&seed, place).partners_of(place);
        planted::partners(place.hint, &mut partners);
        self.generation.permutations.exchange(place.hint, &partners);
        self.lookups.reserve(id, OpenLookup { place, seed });
        self.reservations += 1;
        Ok(())
    }

    /// Recovers the record, and changes the values of the hints that changed places.
    fn take_in(&mut self, lookup: &OpenLookup, values: &[u8]) -> Record {
        let partners = self.coins(&lookup.seed, lookup.place).partners_of(lookup.place);
        let record_len = self.parameters.record_len();
        let (others, differences) = values.split_at(record_len);
        let hints = &mut self.generation.hints;
        let range = |hint: u16| {
            let start = usize::from(hint) * record_len;
            start..start + record_len
        };
        let used = range(lookup.place.hint);
        let mut record = Zeroizing::new(others.to_vec());
        xor(&mut record, &hints[used.clone()]);
        // If the used hint stays in its place, both XORs are of the same hint, and cancel.
        xor(&mut hints[used], &sum(differences, record_len));
        let each = differences.chunks_exact(record_len).zip(partners.iter());
        each.for_each(|(difference, partner)| xor(&mut hints[range(*partner)], difference));
        record
    }

    fn grown_by(&self, delta: &TableDelta) -> Result<SinglePassParameters> {
        delta.check_before(self.parameters.shape())?;
        self.parameters.grown(delta.shape_after())
    }

    /// Brings the hints up to date with a table in which some records have changed.
    fn follow(&mut self, delta: &TableDelta) -> Result<()> {
        self.lookups.check_journal()?;
        let record_len = self.parameters.record_len();
        for (index, difference) in delta.edits() {
            let index = RecordIndex::new(*index, self.parameters.shape())?;
            let hint = self.generation.permutations.place_of(&index).hint;
            let start = usize::from(hint) * record_len;
            xor(&mut self.generation.hints[start..start + record_len], difference);
        }
        Ok(())
    }
}

/// The XOR of several records. XORs many short records at a time, because one long row of bytes
/// takes less time than many short ones.
fn sum(records: &[u8], record_len: usize) -> Zeroizing<Vec<u8>> {
    let mut sums = Zeroizing::new(vec![0; record_len * (1024 / record_len).max(1)]);
    records.chunks(sums.len()).for_each(|several| xor(&mut sums, several));
    let (first, others) = sums.split_at_mut(record_len);
    others.chunks_exact(record_len).for_each(|other| xor(first, other));
    Zeroizing::new(first.to_vec())
}

impl SchemeOf for SinglePassClient {
    type Scheme = SinglePass;
}
