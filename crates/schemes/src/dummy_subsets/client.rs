//! The client: chooses a hint that contains the record, asks for the rest of it hidden among dummies, and puts a fresh hint in its place (Algorithms 2 and 5).
//!
//! # Why queries teach nothing
//!
//! A server sees a balanced split of the partitions and uniform offsets (see [`messages`](super::messages)). That this is all it sees, for any sequence of queries,
//! rests on the set of live hints having the same distribution before every query: `M` independent samples, each `p/2 + 1` random partitions with a random
//! record in each. A query takes one hint out, chosen *uniformly among those that contain the record*, and puts one back that is sampled *given that it
//! contains the record*: half of a backup pair, the one that does not select the record's partition, with the record as its extra. Given how many hints contain the
//! record, those are independent samples of the hints that do, and stay so when one is exchanged for a fresh one; the others are untouched. (The paper takes
//! the first that contains the record and puts the new one exactly in its place; with a uniform choice the place is of no consequence.)
//!
//! All this is for indices that do not depend on what the server did before. Whether a *record* can be told may depend on hints whose answers were withheld: see
//! `SECURITY.md`.
//!
//! The exchange is complete with the reservation. What the answer brings is the *parity* of the new hint, its value, not its choice. So hints whose value is
//! still unknown, because a query is under way or its answer never came, take part in the choice like all others, and the record
//! looked up through one of them is known once both answers are there. Leaving such hints out would make a client that waits for an answer behave differently
//! from one that has it.

use super::change::{Change, Exchange};
use super::generation::Generation;
use super::messages::{DummySubsetsAnswer, DummySubsetsQuery};
use super::search::{Candidates, places};
use super::{DummySubsets, DummySubsetsParameters};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use std::collections::{BTreeMap, HashMap};
use zeroize::{Zeroize as _, Zeroizing};

/// Records that nobody took are kept for this many reservations.
const RECORDS_KEPT: usize = 1024;

/// A client with one generation of hints.
pub struct DummySubsetsClient {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    pub(super) generation: Generation,
    /// Which hints may be chosen: bit `b` of word `w` for hint `64 w + b`. Single hints that are valid and not used, and pairs that have taken a used hint's
    /// place and are not used themselves.
    live: Vec<u64>,
    /// For each pair that is no longer in reserve: the record that its hint contains beside its half, …
    extras: Zeroizing<Vec<u64>>,
    /// … 32 bits of that, to search in (see [`fingerprint`](Self::fingerprint)), …
    fingerprints: Zeroizing<Vec<u32>>,
    /// … and whether its half is the one of the partitions *not* below the cutoff.
    above: Vec<bool>,
    /// Valid pairs, used or not: the queries that this generation serves.
    total: u64,
    reservations: u64,
    pub(super) open: BTreeMap<u64, Open>,
    /// Hints whose parity waits for the answer of a reservation.
    pub(super) waiting: HashMap<u32, u64>,
    records: BTreeMap<u64, Result<Record>>,
}

/// A reservation whose record is not known yet.
pub(super) struct Open {
    /// The hint that was used. `None`: no hint contained the record, and a cover was sent.
    hint: Option<u32>,
    /// The pair that took its place.
    pair: u32,
    /// Which half of the query was the real one.
    real_half: bool,
    /// What the real half came to, once it was answered.
    sum: Option<Zeroizing<Vec<u8>>>,
}

impl DummySubsetsClient {
    fn key(&self) -> Secret<[u8; 16]> {
        Secret::new(self.generation.key())
    }

    /// 32 bits of a record's index: all of it in tables of up to 2^32 records. In larger ones the upper bits are folded in under the secret key, so that no choice of
    /// records makes fingerprints collide more often than chance does.
    fn fingerprint(&self, index: u64) -> u32 {
        let key = self.key();
        let salt = u32::from_le_bytes([
            key.expose()[0],
            key.expose()[1],
            key.expose()[2],
            key.expose()[3],
        ]) | 1;
        index as u32 ^ ((index >> 32) as u32).wrapping_mul(salt)
    }

    fn singles(&self) -> u32 {
        self.parameters.singles()
    }

    /// The next pair in reserve.
    fn next_pair(&self) -> Option<u32> {
        let first = self.extras.len();
        let cutoffs = &self.generation.cutoffs[self.singles() as usize + first..];
        cutoffs.iter().position(|cutoff| *cutoff != 0).map(|skipped| (first + skipped) as u32)
    }

    fn is_live(&self, hint: u32) -> bool {
        self.live.get(hint as usize / 64).is_some_and(|word| word >> (hint % 64) & 1 == 1)
    }

    fn set_live(&mut self, hint: u32, live: bool) {
        let (word, bit) = (&mut self.live[hint as usize / 64], 1 << (hint % 64));
        *word = if live { *word | bit } else { *word & !bit };
    }

    /// The record that a hint contains beside those its cutoff selects, and whether it selects those not below the cutoff.
    pub(super) fn successor(&self, hint: u32) -> Option<(u64, bool)> {
        let pair = hint.checked_sub(self.singles())? as usize;
        Some((*self.extras.get(pair)?, *self.above.get(pair)?))
    }

    /// Where the parity of a hint lies.
    pub(super) fn parity_range(&self, hint: u32) -> std::ops::Range<usize> {
        let place = match hint.checked_sub(self.singles()) {
            None => hint as usize,
            Some(pair) => {
                let above = usize::from(self.above[pair as usize]);
                self.singles() as usize + 2 * pair as usize + above
            }
        };
        let len = self.parameters.record_len();
        place * len..(place + 1) * len
    }

    /// The hints that contain record `index`, in a fixed number of places; see [`search`](super::search).
    pub(super) fn find(&self, index: u64) -> Found {
        let (partition, offset) = self.parameters.place(index);
        let (key, singles) = (self.key(), self.singles() as usize);
        let key = key.expose();
        let words = (singles + self.extras.len()).div_ceil(64);

        let mut offset_marks = Zeroizing::new(vec![0; words]);
        let records = self.parameters.partition_records();
        self.kernels.subset_offset_matches(key, partition, offset, records, &mut offset_marks);
        let mut extra_marks = Zeroizing::new(vec![0; words]);
        let fingerprint = self.fingerprint(index);
        self.kernels.subset_equal_words(
            &self.fingerprints,
            fingerprint,
            &mut extra_marks[singles / 64..],
        );
        let mut marks = Zeroizing::new(vec![0; words]);
        for (word, mark) in marks.iter_mut().enumerate() {
            *mark = (offset_marks[word] | extra_marks[word]) & self.live[word];
        }

        let hints = words * 64;
        let expected = hints as f64 / f64::from(records);
        let candidates =
            Candidates::of(&marks, places(expected, hints, self.parameters.hint_security()));
        let mut selects = Zeroizing::new(vec![0; candidates.ids.len()]);
        self.kernels.subset_selects_at(key, partition, &candidates.ids, &mut selects);
        let looked_at = candidates.ids.iter().zip(candidates.taken.iter()).zip(selects.iter());
        let contains = looked_at.map(|((id, taken), select)| {
            let below = *select < self.generation.cutoffs[*id as usize];
            let (extra, above) = self.successor(*id).unwrap_or((u64::MAX, false));
            let offset_fits = offset_marks[*id as usize / 64] >> (id % 64) & 1 == 1;
            taken & ((extra == index) | (offset_fits & (below != above)))
        });
        let contains = Zeroizing::new(contains.collect());
        Found { work: candidates.steps, ids: candidates.ids, contains }
    }

    /// The query for `index` through `hint`, which contains it.
    pub(super) fn query_through(
        &self,
        hint: u32,
        index: u64,
        real_half: bool,
    ) -> DummySubsetsQuery {
        let partitions = self.parameters.partitions() as usize;
        let mut selects = Zeroizing::new(vec![0; partitions]);
        let mut offsets = Zeroizing::new(vec![0; partitions]);
        let records = self.parameters.partition_records();
        self.kernels.subset_rebuild(self.key().expose(), hint, records, &mut selects, &mut offsets);
        let cutoff = self.generation.cutoffs[hint as usize];
        let (extra, above) = self.successor(hint).unwrap_or((index, false));
        let mut real = Zeroizing::new(vec![false; partitions]);
        real.iter_mut().zip(selects.iter()).for_each(|(real, select)| {
            *real = (*select < cutoff) != above;
        });
        let (extra_partition, extra_offset) = self.parameters.place(extra);
        real[extra_partition as usize] = true;
        offsets[extra_partition as usize] = extra_offset as u16;
        real[self.parameters.place(index).0 as usize] = false;

        let mut kept = vec![0; partitions / 2 + 1];
        let mut filled = 0;
        for (real, offset) in real.iter().zip(offsets.iter()) {
            // Written always and kept if it is real, so that no branch depends on it.
            kept[filled] = *offset;
            filled += usize::from(*real);
        }
        kept.truncate(partitions / 2);
        self.query(&real, real_half, kept)
    }

    /// A query that is good for nothing but to be sent: a uniform split and uniform offsets, as every query's look.
    pub(super) fn cover(&self, rng: &mut SecretRng) -> DummySubsetsQuery {
        let partitions = self.parameters.partitions() as usize;
        let mut real: Vec<bool> = (0..partitions).map(|k| k < partitions / 2).collect();
        for k in (1..partitions).rev() {
            real.swap(k, rng.below(k as u64 + 1) as usize);
        }
        let records = u64::from(self.parameters.partition_records());
        let offsets = (0..partitions / 2).map(|_| rng.below(records) as u16).collect();
        self.query(&real, false, offsets)
    }

    fn query(&self, real: &[bool], real_half: bool, offsets: Vec<u16>) -> DummySubsetsQuery {
        let halves = real.chunks(8).map(|real| {
            let bits = real.iter().enumerate();
            bits.fold(0, |byte, (bit, real)| byte | (u8::from(*real == real_half) << bit))
        });
        let offset_bits = self.parameters.offset_bits();
        DummySubsetsQuery { halves: halves.collect(), offsets, offset_bits }
    }
}

#[cfg(test)]
impl DummySubsetsClient {
    /// What a live hint contains: for each partition, the offset of its record there, if any.
    pub(super) fn contents(&self, hint: u32) -> Option<Vec<Option<u16>>> {
        let partitions = self.parameters.partitions() as usize;
        let (mut selects, mut offsets) = (vec![0; partitions], vec![0; partitions]);
        let records = self.parameters.partition_records();
        self.kernels.subset_rebuild(self.key().expose(), hint, records, &mut selects, &mut offsets);
        let cutoff = self.generation.cutoffs[hint as usize];
        let above = self.successor(hint).is_some_and(|(_, above)| above);
        let picks = selects.iter().zip(&offsets);
        let mut contents: Vec<Option<u16>> =
            picks.map(|(v, offset)| ((*v < cutoff) != above).then_some(*offset)).collect();
        if let Some((extra, _)) = self.successor(hint) {
            let (partition, offset) = self.parameters.place(extra);
            contents[partition as usize] = Some(offset as u16);
        }
        self.is_live(hint).then_some(contents)
    }

    /// What all live hints contain.
    pub(super) fn all_contents(&self) -> Vec<Vec<Option<u16>>> {
        let begun = self.singles() + self.extras.len() as u32;
        (0..begun).filter_map(|hint| self.contents(hint)).collect()
    }

    /// Takes the successor of the last used hint out of use, as no client must.
    pub(super) fn forget_last_successor(&mut self) {
        self.set_live(self.singles() + self.extras.len() as u32 - 1, false);
    }
}

/// Hint ids, and which of them contain the wanted record.
pub(super) struct Found {
    ids: Zeroizing<Vec<u32>>,
    contains: Zeroizing<Vec<bool>>,
    /// How many steps the search took.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) work: usize,
}

impl Found {
    /// One of the hints that contain the record, each with the same probability.
    pub(super) fn choose(&self, rng: &mut SecretRng) -> Option<u32> {
        let count = self.contains.iter().map(|contains| u64::from(*contains)).sum::<u64>();
        let chosen = rng.below(count.max(1));
        let (mut passed, mut id) = (0, 0);
        for (candidate, contains) in self.ids.iter().zip(self.contains.iter()) {
            let take = *contains & (passed == chosen);
            id = if take { *candidate } else { id };
            passed += u64::from(*contains);
        }
        (count > 0).then_some(id)
    }
}

impl HintedClient for DummySubsetsClient {
    fn load(
        parameters: DummySubsetsParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::decode(&parameters, generation)?;
        let (singles, pairs) = generation.cutoffs.split_at(parameters.singles() as usize);
        let mut live = vec![0; generation.cutoffs.len() / 64];
        for (hint, cutoff) in singles.iter().enumerate() {
            live[hint / 64] |= u64::from(*cutoff != 0) << (hint % 64);
        }
        let total = pairs.iter().filter(|cutoff| **cutoff != 0).count() as u64;
        // Room for all at once: growing would leave copies behind.
        let room = pairs.len();
        Ok(Self {
            parameters,
            kernels,
            live,
            extras: Zeroizing::new(Vec::with_capacity(room)),
            fingerprints: Zeroizing::new(Vec::with_capacity(room)),
            above: Vec::with_capacity(room),
            total,
            generation,
            reservations: 0,
            open: BTreeMap::new(),
            waiting: HashMap::new(),
            records: BTreeMap::new(),
        })
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
        let real_half = rng.below(2) == 1;
        let hint = self.find(index).choose(rng);
        let query = match hint {
            Some(hint) => self.query_through(hint, index, real_half),
            None => self.cover(rng),
        };
        let id = self.reservations;
        let exchange = Exchange { id, hint, pair, index, real_half };
        Ok(Reserved {
            id: ReservationId(id),
            change: Change::Exchange(exchange).encode(),
            queries: vec![query],
        })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match Change::decode(change, self.parameters.record_len())? {
            Change::Exchange(exchange) => self.exchange(&exchange),
            Change::Answer { id, sum } => self.answer(id, sum),
        }
    }

    fn settle(
        &self,
        id: ReservationId,
        answers: &[DummySubsetsAnswer],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let [answer] = answers else {
            return Err(Error::api_misuse(format!(
                "dummy subsets has one server here, {} answers were given",
                answers.len()
            )));
        };
        let open = self.open.get(&id.0).filter(|open| open.sum.is_none()).ok_or_else(|| {
            Error::api_misuse("an answer was given for a lookup that does not wait for one")
        })?;
        let len = self.parameters.record_len();
        let start = usize::from(open.real_half) * len;
        let sum = Zeroizing::new(answer.sums[start..start + len].to_vec());
        Ok(Change::Answer { id: id.0, sum }.encode())
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.records.remove(&id.0)
    }

    fn open(&self) -> Vec<ReservationId> {
        let unanswered = self.open.iter().filter(|(_, open)| open.sum.is_none());
        unanswered.map(|(id, _)| ReservationId(*id)).collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.reservations, total: self.total }
    }
}

/// State changes.
impl DummySubsetsClient {
    /// Takes a hint out of use and puts half of a pair in its place.
    fn exchange(&mut self, exchange: &Exchange) -> Result<()> {
        let Exchange { id, hint, pair, index, real_half } = *exchange;
        let impossible = |what| {
            Error::corrupted(format!("the journal of used hints does not fit the hints: {what}"))
        };
        if id != self.reservations {
            return Err(impossible("a change is missing or comes twice"));
        }
        if self.next_pair() != Some(pair) {
            return Err(impossible("a pair is not the next in reserve"));
        }
        if index >= self.parameters.shape().records() {
            return Err(impossible("a record lies beyond the table"));
        }
        if hint.is_some_and(|hint| !self.is_live(hint)) {
            return Err(impossible("a hint was used twice"));
        }
        let successor = self.singles() + pair;
        let (partition, _) = self.parameters.place(index);
        let mut select = [0];
        self.kernels.subset_selects_at(self.key().expose(), partition, &[successor], &mut select);
        // The half that does not select the record's partition.
        let above = select[0] < self.generation.cutoffs[successor as usize];
        // Pairs between are invalid, and stay out of use.
        let count = pair as usize + 1;
        self.extras.resize(count, u64::MAX);
        self.fingerprints.resize(count, u32::MAX);
        self.above.resize(count, false);
        self.extras[pair as usize] = index;
        self.fingerprints[pair as usize] = self.fingerprint(index);
        self.above[pair as usize] = above;
        // A cover takes no hint out of use, so its pair does not come into use either: it is merely used up.
        if let Some(hint) = hint {
            self.set_live(hint, false);
            self.set_live(successor, true);
            self.waiting.insert(successor, id);
        }
        self.open.insert(id, Open { hint, pair, real_half, sum: None });
        self.reservations += 1;
        Ok(())
    }

    /// Takes in what the real half of a query came to, and whatever can be told now.
    fn answer(&mut self, id: u64, sum: Zeroizing<Vec<u8>>) -> Result<()> {
        let open = self.open.get_mut(&id).filter(|open| open.sum.is_none()).ok_or_else(|| {
            Error::corrupted("the journal of used hints answers a lookup that is not open")
        })?;
        open.sum = Some(sum);
        let mut next = Some(id);
        while let Some(id) = next {
            next = self.resolve(id);
        }
        Ok(())
    }

    /// Tells the record of an answered reservation, if the hint it used has its parity, and completes the hint that took its place. Returns the reservation that
    /// used *that* hint and waits for it, if it is answered.
    fn resolve(&mut self, id: u64) -> Option<u64> {
        let open = self.open.get(&id)?;
        let sum = open.sum.as_ref()?;
        let (hint, pair) = (open.hint, open.pair);
        let Some(hint) = hint else {
            self.open.remove(&id);
            self.keep_record(id, Err(Error::exhausted(
                "no hint contains the record, which happens with a probability below e^-40; the query that was sent was a cover. Try again after other lookups, or with fresh hints",
            )));
            return None;
        };
        if self.waiting.contains_key(&hint) {
            return None;
        }
        let used = self.parity_range(hint);
        let mut record = sum.clone();
        xor(&mut record, &self.generation.parities()[used.clone()]);
        self.generation.parities_mut()[used].zeroize();
        let successor = self.singles() + pair;
        let range = self.parity_range(successor);
        xor(&mut self.generation.parities_mut()[range], &record);
        self.waiting.remove(&successor);
        self.open.remove(&id);
        self.keep_record(id, Ok(record));
        let waits = |open: &Open| open.hint == Some(successor) && open.sum.is_some();
        self.open.iter().find(|(_, open)| waits(open)).map(|(id, _)| *id)
    }

    fn keep_record(&mut self, id: u64, record: Result<Record>) {
        self.records.insert(id, record);
        if self.records.len() > RECORDS_KEPT {
            self.records.pop_first();
        }
    }
}

fn xor(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}

impl SchemeOf for DummySubsetsClient {
    type Scheme = DummySubsets;
}

impl crate::contract::Updatable for DummySubsetsClient {
    fn delta_change(&self, _delta: &privet_core::TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        Err(Error::api_misuse("not there yet"))
    }
}
