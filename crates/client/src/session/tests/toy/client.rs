//! The client of a toy: its preparation, its hints and their journal's changes.

use super::*;
use crate::session::preparation::Pace;
use crate::session::shared::as_announced;
use crate::session::timetable::Measuring;
use privet_core::{RecordIndex, SecretRng, TableDelta};
use privet_kernels::Kernels;
use privet_schemes::contract::{Record, ReservationId, Reserved, Supply};
use privet_schemes::offline::StreamConsumer;
use privet_schemes::registry::{
    self, ErasedClient, ErasedHints, ErasedPreparation, Recovered, Rehearsal,
};
use privet_schemes::reservation::{Journal, JournalEntry, Pending, Prepared, Reservation};
use std::cell::RefCell;
use zeroize::Zeroizing;

/// A session's parts, with toys for clients, and small strides for small tables.
pub(in super::super) fn parts(seed: u64) -> Parts {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Parts {
        queries_first: |_| false,
        plan_in: |plan, table| plan_in(plan, table).map_or_else(|| as_announced(plan, table), Ok),
        start_client: registry::client,
        start_hinted,
        start_preparation,
        pace: Pace {
            shortest_piece: 64,
            stride: 96,
            checkpoint_interval: 300,
            checkpoint_every: Duration::from_secs(1),
            shortest_step: 1,
        },
        measuring: Measuring::brief(),
        rng: SecretRng::from_fixed_seed(bytes),
    }
}

thread_local! {
    static COINS: RefCell<Option<SecretRng>> = const { RefCell::new(None) };
}

/// From here on, everything that this thread prepares uses these coins, so that a simulation can be
/// repeated.
pub(in super::super) fn fix_coins(seed: u64) {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    COINS.set(Some(SecretRng::from_fixed_seed(bytes)));
}

fn start_preparation(
    plan: &SchemePlan,
    identity: &TableIdentity,
    records_digest: [u8; 32],
    checkpoint: Option<&[u8]>,
    _: Kernels,
) -> Result<Box<dyn ErasedPreparation>> {
    let (mut nonce, mut secret) = ([0; NONCE_LEN], [0; SECRET_LEN]);
    let mut from_os = SecretRng::from_os()?;
    COINS.with_borrow_mut(|fixed| {
        let rng = fixed.as_mut().unwrap_or(&mut from_os);
        rng.fill(&mut nonce);
        rng.fill(&mut secret);
    });
    let mut bytes = Vec::new();
    if let Some(checkpoint) = checkpoint {
        let (kept_nonce, rest) = checkpoint.split_at(NONCE_LEN);
        nonce.copy_from_slice(kept_nonce);
        secret.copy_from_slice(&rest[..SECRET_LEN]);
        bytes.extend(&rest[SECRET_LEN..]);
    }
    let (shape, finished) = (identity.shape, false);
    let flow = flow_of(plan);
    let len = plan.offline.len();
    Ok(Box::new(ToyPreparation {
        flow,
        nonce,
        secret,
        bytes,
        shape,
        len,
        records_digest,
        finished,
    }))
}

struct ToyPreparation {
    flow: Flow,
    nonce: [u8; NONCE_LEN],
    secret: [u8; SECRET_LEN],
    bytes: Vec<u8>,
    shape: TableShape,
    len: u64,
    records_digest: [u8; 32],
    finished: bool,
}

impl StreamConsumer for ToyPreparation {
    fn next_offset(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        if offset != self.next_offset() || offset + chunk.len() as u64 > self.len {
            return Err(Error::peer_misbehaved("not the next bytes"));
        }
        if self.flow == Flow::Asked {
            assert_eq!((offset as usize % REPLY_LEN, chunk.len()), (0, REPLY_LEN), "whole replies");
            let mut part = chunk.to_vec();
            xor(&mut part, &reply_pad(&self.secret, offset / REPLY_LEN as u64));
            self.bytes.extend(part);
        } else {
            self.bytes.extend(chunk);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.next_offset() != self.len {
            return Err(Error::peer_misbehaved("bytes are missing"));
        }
        if self.flow != Flow::Asked && *blake3::hash(&self.bytes).as_bytes() != self.records_digest
        {
            return Err(Error::integrity("the wrong bytes"));
        }
        self.finished = true;
        Ok(())
    }
}

impl ErasedPreparation for ToyPreparation {
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        let kept = &self.bytes[..self.checkpoint_offset() as usize];
        Zeroizing::new([&self.nonce[..], &self.secret, kept].concat())
    }

    fn checkpoint_offset(&self) -> u64 {
        let group = if self.flow == Flow::Asked { REPLY_LEN as u64 } else { GROUP_LEN };
        self.next_offset() - self.next_offset() % group
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        assert!(self.finished);
        let mut table = self.bytes[..self.shape.bytes() as usize].to_vec();
        if self.flow == Flow::Backwards {
            table.reverse();
        }
        Ok(generation(&self.nonce, &fold(&table, self.shape.record_len() as usize), 0))
    }

    fn request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        let asks = self.flow == Flow::Asked && self.next_offset() < self.len;
        let number = self.next_offset() / REPLY_LEN as u64;
        asks.then(|| Zeroizing::new([&self.secret[..], &number.to_le_bytes()].concat()))
    }
}

fn generation(nonce: &[u8], table: &[u8], first: u64) -> Zeroizing<Vec<u8>> {
    Zeroizing::new([nonce, table, &first.to_le_bytes()].concat())
}

fn start_hinted(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    _: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    let (nonce, rest) = generation.split_at(NONCE_LEN);
    let (table, first) = rest.split_at(32);
    Ok(Box::new(Toy {
        total: number(&plan.parameters[..8]),
        flaw: FLAWS[plan.parameters[8] as usize],
        endless: plan.parameters[10] == 1,
        chained: plan.parameters[11] == 1,
        verifies: plan.parameters[12] == 1,
        liar: None,
        first: number(first),
        plan,
        nonce: nonce.to_vec(),
        identity: *identity,
        table: table.to_vec(),
        reservations: Vec::new(),
    }))
}

struct Toy {
    plan: SchemePlan,
    nonce: Vec<u8>,
    identity: TableIdentity,
    table: Vec<u8>,
    total: u64,
    flaw: Flaw,
    endless: bool,
    chained: bool,
    verifies: bool,
    /// The server whose answer was wrong.
    liar: Option<u8>,
    /// The number of this generation's first hint.
    first: u64,
    reservations: Vec<ToyReservation>,
}

struct ToyReservation {
    index: u64,
    hint: u64,
    record: Option<Vec<u8>>,
    taken: bool,
}

/// A journal that keeps nothing.
pub(in crate::session::tests) struct Nowhere;

impl Journal for Nowhere {
    fn append_and_sync(&mut self, _: &[JournalEntry<'_>]) -> Result<()> {
        Ok(())
    }
}

impl Toy {
    fn id_in(&self, answer: &[u8]) -> ReservationId {
        ReservationId(number(&answer[..8]).wrapping_sub(self.first))
    }
}

impl ErasedClient for Toy {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, _: &mut SecretRng) -> Result<Prepared> {
        let id = self.reservations.len() as u64;
        if let Some(error) = self.ended() {
            return Err(error);
        }
        if id == self.total {
            return Err(Error::exhausted("no hint is left"));
        }
        if self.verifies() && !self.open().is_empty() {
            panic!("a query is made while one is not settled");
        }
        let index = index.expose();
        if self.flaw == Flaw::LeaksZero && index == 0 {
            return Err(Error::api_misuse("nothing to look up"));
        }
        let hint = if self.flaw == Flaw::ReusesHints && id % 3 == 2 { id - 1 } else { id };
        let hint = self.first + hint;
        let masked = index ^ mask(&self.nonce, hint);
        let numbers = [self.first + id, hint, masked].map(u64::to_le_bytes).concat();
        let queries = (0..self.plan.servers as u8)
            .map(|role| {
                let end = vec![0; 3 * usize::from(role)];
                [&self.nonce[..], &numbers, &[role], &end].concat()
            })
            .collect();
        let change = [&[0][..], &[id, hint, index].map(u64::to_le_bytes).concat()].concat();
        self.apply(&change)?;
        let reserved = Reserved::new(ReservationId(id), change.into(), queries);
        let reservation = Reservation::new(reserved);
        if self.flaw == Flaw::SendsAtOnce {
            return reservation.commit(&mut Nowhere).map(Prepared::Ready);
        }
        Ok(Prepared::Reserved(reservation))
    }

    fn recover(&mut self, _: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        // If answers are verified, their reservation number is not believed: only one reservation
        // can be open.
        let id = if self.verifies { self.open()[0] } else { self.id_in(answers[0]) };
        self.settle(id, answers)
    }

    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        Some(self)
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        Some(Box::new(NothingToDo))
    }
}

/// A toy's lookups take no time.
struct NothingToDo;

impl Rehearsal for NothingToDo {
    fn prepare(&mut self, _: &RecordIndex, _: &mut SecretRng) -> Result<()> {
        Ok(())
    }

    fn recover(&mut self, _: &[&[u8]]) -> Result<()> {
        Ok(())
    }
}

/// `id (16) ‖ epoch (8) ‖ digest (32) ‖ records (8) ‖ their length (8)`
fn identity_bytes(identity: &TableIdentity) -> Vec<u8> {
    let TableIdentity { id, epoch, digest, shape } = identity;
    let shape = [shape.records(), shape.record_len()].map(u64::to_le_bytes).concat();
    [&id.0[..], &epoch.0.to_le_bytes(), &digest.0, &shape].concat()
}

fn identity_from(bytes: &[u8]) -> TableIdentity {
    TableIdentity {
        id: TableId(bytes[..16].try_into().unwrap()),
        epoch: Epoch(number(&bytes[16..24])),
        digest: TableDigest(bytes[24..56].try_into().unwrap()),
        shape: TableShape::new(number(&bytes[56..64]), number(&bytes[64..72])).unwrap(),
    }
}

impl ErasedHints for Toy {
    fn apply(&mut self, change: &[u8]) -> Result<()> {
        let no = || Error::corrupted("no such change");
        match change[0] {
            0 if number(&change[1..9]) == self.reservations.len() as u64 => {
                let (hint, index) = (number(&change[9..17]), number(&change[17..25]));
                self.reservations.push(ToyReservation { index, hint, record: None, taken: false });
                Ok(())
            }
            1 => {
                let reservation =
                    self.reservations.get_mut(number(&change[1..9]) as usize).ok_or_else(no)?;
                if reservation.record.is_some() {
                    return Err(no());
                }
                reservation.record = Some(change[9..].to_vec());
                Ok(())
            }
            2 => {
                let reservation =
                    self.reservations.get_mut(number(&change[1..9]) as usize).ok_or_else(no)?;
                (reservation.record, reservation.taken) = (Some(Vec::new()), true);
                self.liar = Some(change[9]);
                Ok(())
            }
            3 => {
                let (identity, folded) = change[1..].split_at(72);
                (self.identity, self.table) = (identity_from(identity), folded.to_vec());
                self.plan = plan_in(&self.plan, &self.identity).ok_or_else(no)?;
                Ok(())
            }
            _ => Err(no()),
        }
    }

    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered> {
        let mut answers = answers.to_vec();
        if self.verifies {
            let hint = self.reservations[id.0 as usize].hint;
            let mut wrong = Vec::new();
            for (role, answer) in (0..).zip(&mut answers) {
                let (rest, found) = answer.split_at(answer.len() - TAG_LEN);
                if found != tag(&self.nonce, hint, role, &self.table, rest) {
                    wrong.push(role);
                }
                *answer = rest;
            }
            if let [liar, ..] = wrong[..] {
                let change = [&[2][..], &id.0.to_le_bytes(), &[liar]].concat();
                self.apply(&change)?;
                let record = Some(Err(lied(liar)));
                return Ok(Recovered::Settled { id, change: change.into(), record });
            }
        }
        let belongs = |answer: &&[u8]| self.id_in(answer) == id;
        let reservation =
            self.reservations.get(id.0 as usize).filter(|_| answers.iter().all(belongs));
        let reservation =
            reservation.ok_or_else(|| Error::peer_misbehaved("an answer to something else"))?;
        let mut record = vec![0; answers[0].len() - 8];
        for (role, answer) in answers.iter().enumerate() {
            xor(&mut record, &answer[8..]);
            let pad =
                pad_from(&self.nonce, reservation.hint, role as u8, &self.table, record.len());
            xor(&mut record, &pad);
        }
        let change = [&[1][..], &id.0.to_le_bytes(), &record].concat();
        self.apply(&change)?;
        let record = self.take_record(id);
        Ok(Recovered::Settled { id, change: change.into(), record })
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        let (older, rest) = self.reservations.split_at_mut(id.0 as usize);
        let this = &mut rest[0];
        let matters = |older: &ToyReservation| self.chained || older.index == this.index;
        if this.taken || older.iter().any(|older| matters(older) && older.record.is_none()) {
            return None;
        }
        this.taken = this.record.is_some();
        this.record.clone().map(|record| Ok(Zeroizing::new(record)))
    }

    fn open(&self) -> Vec<ReservationId> {
        let open = self.reservations.iter().enumerate();
        open.filter(|(_, reservation)| reservation.record.is_none())
            .map(|(id, _)| ReservationId(id as u64))
            .collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.reservations.len() as u64, total: self.total }
    }

    fn waits_for_all_answers(&self) -> bool {
        self.chained
    }

    fn search_len(&self) -> u64 {
        1
    }

    fn is_endless(&self) -> bool {
        self.endless
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        if !self.endless || self.supply().left() > 0 || !self.open().is_empty() {
            return Err(Error::api_misuse("it is not time to condense"));
        }
        let overlap = u64::from(self.flaw == Flaw::CondensesTooMuch);
        Ok(generation(&self.nonce, &self.table, self.first + self.total - overlap))
    }

    fn verifies(&self) -> bool {
        self.verifies && self.flaw != Flaw::HidesThatItVerifies
    }

    fn ended(&self) -> Option<Error> {
        self.liar.filter(|_| self.flaw != Flaw::GoesOnAfterItsEnd).map(lied)
    }

    fn table(&self) -> TableIdentity {
        self.identity
    }

    fn follows(&self, after: TableShape) -> bool {
        after.records() <= MOST_RECORDS
    }

    fn apply_deltas(
        &mut self,
        before: &TableIdentity,
        after: &TableIdentity,
        deltas: &[TableDelta],
    ) -> Result<Zeroizing<Vec<u8>>> {
        if *before != self.identity || !self.open().is_empty() {
            return Err(Error::api_misuse(
                "a toy follows from where it stands, when it is at rest",
            ));
        }
        assert!(deltas.iter().all(|delta| *delta == deltas[0]), "servers here tell the same");
        let mut folded = self.table.clone();
        for (index, difference) in
            deltas[0].edits().iter().filter(|_| self.flaw != Flaw::OverlooksEdits)
        {
            fold_in(&mut folded, *index, difference);
        }
        let change = [&[3][..], &identity_bytes(after), &folded].concat();
        self.apply(&change)?;
        Ok(change.into())
    }

    fn disagree(&mut self) -> Result<Zeroizing<Vec<u8>>> {
        Err(Error::api_misuse("toys are not told of edits"))
    }
}
