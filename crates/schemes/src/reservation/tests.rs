//! A toy scheme with single-use hints goes through the contract, to show that the interface fits
//! such schemes: the client's hints are secret, each is good for one query, and they survive
//! crashes before, at and after the sync.

use super::*;
use crate::SchemeId;
use crate::contract::{HintedClient, Message, Parameters, Record, Scheme, SchemeOf, Supply};
use privet_core::{
    Blame, Epoch, RecordIndex, SecretRng, TableDelta, TableDigest, TableId, TableIdentity,
    TableShape,
};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// One byte per record; the "hint" is the number of a one-time mask that the server knows too. It
/// is not private, but has the form of a real scheme.
struct Masks {
    used: Vec<bool>,
    /// Open and settled reservations: the mask, and the record once it is known.
    reservations: Vec<(u8, Option<u8>)>,
}

impl Masks {
    fn new(masks: u8) -> Self {
        Self { used: vec![false; masks.into()], reservations: Vec::new() }
    }
}

struct Nothing;
impl Parameters for Nothing {
    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }
    fn decode(_: &TableIdentity, _: &[u8]) -> Result<Self> {
        Ok(Nothing)
    }
}

struct MaskedIndex([u8; 2]);
impl Message<Nothing> for MaskedIndex {
    fn encoded_len(_: &Nothing) -> usize {
        2
    }
    fn encode(&self) -> Vec<u8> {
        self.0.to_vec()
    }
    fn decode(_: &Nothing, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a masked index", bytes);
        let message = Self(reader.array()?);
        reader.finish()?;
        Ok(message)
    }
}

impl Scheme for Masks {
    const ID: SchemeId = SchemeId::SimplePir;
    type Parameters = Nothing;
    type Query = MaskedIndex;
    type Answer = MaskedIndex;

    fn servers(_parameters: &Nothing) -> usize {
        1
    }
}

impl SchemeOf for Masks {
    type Scheme = Masks;
}

impl HintedClient for Masks {
    fn load(_: Nothing, generation: Zeroizing<Vec<u8>>, _: Kernels) -> Result<Self> {
        match &generation[..] {
            [masks] => Ok(Self::new(*masks)),
            _ => Err(Error::corrupted("no generation of masks")),
        }
    }

    fn parameters(&self) -> &Nothing {
        &Nothing
    }

    fn reserve(&self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Reserved<MaskedIndex>> {
        let free: Vec<usize> = (0..self.used.len()).filter(|hint| !self.used[*hint]).collect();
        if free.is_empty() {
            return Err(Error::exhausted("no hint is left; prepare the next generation"));
        }
        let hint = free[rng.below(free.len() as u64) as usize] as u8;
        let query = MaskedIndex([hint, index.expose() as u8 ^ hint]);
        let id = ReservationId(self.reservations.len() as u64);
        Ok(Reserved { id, change: Zeroizing::new(vec![hint]), queries: vec![query] })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match change {
            [hint] if !self.used[usize::from(*hint)] => {
                self.used[usize::from(*hint)] = true;
                self.reservations.push((*hint, None));
                Ok(())
            }
            [id, record] => {
                self.reservations[usize::from(*id)].1 = Some(*record);
                Ok(())
            }
            _ => Err(Error::corrupted("a hint was used twice")),
        }
    }

    fn settle(&self, id: ReservationId, answers: &[MaskedIndex]) -> Result<Zeroizing<Vec<u8>>> {
        let (mask, _) = self.reservations[id.0 as usize];
        Ok(Zeroizing::new(vec![id.0 as u8, answers[0].0[1] ^ mask]))
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.reservations[id.0 as usize].1.map(|record| Ok(Zeroizing::new(vec![record])))
    }

    fn open(&self) -> Vec<ReservationId> {
        let open = self.reservations.iter().enumerate().filter(|(_, (_, record))| record.is_none());
        open.map(|(id, _)| ReservationId(id as u64)).collect()
    }

    fn supply(&self) -> Supply {
        Supply { used: self.reservations.len() as u64, total: self.used.len() as u64 }
    }

    fn follows(&self, _after: TableShape) -> bool {
        false
    }

    fn delta_change(&self, _delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        Err(Error::api_misuse("masks follow no table"))
    }
}

/// A journal in memory that fails its sync when told to.
#[derive(Default)]
struct Memory {
    durable: Vec<Zeroizing<Vec<u8>>>,
    syncs: usize,
    broken: bool,
}

impl Journal for Memory {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        if self.broken {
            return Err(Error::unavailable("the disk is full"));
        }
        self.syncs += 1;
        for JournalEntry { change, record } in entries {
            assert_eq!(decode_record(record)?.change(), *change);
            self.durable.push(Zeroizing::new(record.to_vec()));
        }
        Ok(())
    }
}

impl JournalReader for Memory {
    fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        Ok(self.durable.clone())
    }
}

fn index(of: u64) -> RecordIndex {
    RecordIndex::new(of, TableShape::new(256, 1).unwrap()).unwrap()
}

fn reserve(client: &Masks, of: u64) -> Result<Reservation> {
    let mut rng = SecretRng::from_os()?;
    Ok(Reservation::new(client.reserve(&index(of), &mut rng)?.encoded(MaskedIndex::encode)))
}

fn answer(query: &[u8]) -> MaskedIndex {
    MaskedIndex([query[0], query[1]])
}

#[test]
fn a_hinted_client_goes_through_reserve_commit_send_settle() {
    let mut client = Masks::new(3);
    let mut journal = Memory::default();
    let mut changes = Vec::new();
    for wanted in [7, 7, 200] {
        let reservation = reserve(&client, wanted).unwrap();
        let id = reservation.id();
        let lookup = reservation.commit(&mut journal).unwrap();
        let stored = StoredRecord::read_all(&mut journal).unwrap().pop().unwrap();
        let change = Zeroizing::new(stored.change().to_vec());
        client.apply(&change).unwrap();
        assert_eq!(
            stored.sendable().queries(),
            lookup.sendable.queries(),
            "what a crash would re-send is what was sent"
        );
        assert_eq!(lookup.pending.into_inner::<ReservationId>().unwrap(), id);
        assert_eq!(client.open(), [id]);
        let settled = client.settle(id, &[answer(&lookup.sendable.queries()[0])]).unwrap();
        client.apply(&settled).unwrap();
        assert_eq!(*client.take_record(id).unwrap().unwrap(), [wanted as u8]);
        changes.extend([change, settled]);
    }
    assert_eq!(reserve(&client, 1).err().unwrap().blame(), Blame::Exhausted);

    let mut replayed = Masks::new(3);
    changes.iter().for_each(|change| replayed.apply(change).unwrap());
    assert_eq!(replayed.used, client.used, "the state after a crash is the changes replayed");
    assert_eq!(replayed.reservations, client.reservations);
}

#[test]
fn nothing_becomes_sendable_when_the_sync_fails() {
    let client = Masks::new(3);
    let mut journal = Memory { broken: true, ..Memory::default() };
    let failure = reserve(&client, 1).unwrap().commit(&mut journal);
    assert_eq!(failure.err().unwrap().blame(), Blame::Unavailable);
}

#[test]
fn a_receipt_serves_its_own_record_only() {
    let client = Masks::new(3);
    let mut journal = Memory::default();
    let first = reserve(&client, 1).unwrap();
    let second = reserve(&client, 2).unwrap();
    let receipt = Receipt::append(&mut journal, first.record()).unwrap();
    assert_eq!(second.commit_with(receipt).err().unwrap().blame(), Blame::ApiMisuse);
    let receipt = Receipt::append(&mut journal, first.record()).unwrap();
    assert!(first.commit_with(receipt).is_ok());
}

#[test]
fn records_that_come_together_are_synced_once_and_get_a_receipt_each() {
    let mut client = Masks::new(3);
    let mut journal = Memory::default();
    let reservations = [1, 2, 3].map(|wanted| {
        let reservation = reserve(&client, wanted).unwrap();
        client.apply(&reservation.record().change).unwrap();
        reservation
    });
    let records = || reservations.iter().map(Reservation::record);
    let receipts = Receipt::append_all(&mut journal, records()).unwrap();
    assert_eq!((receipts.len(), journal.syncs, journal.durable.len()), (3, 1, 3));
    assert!(Receipt::append_all(&mut journal, []).unwrap().is_empty());
    assert_eq!(journal.syncs, 1, "there was nothing to sync");
    journal.broken = true;
    assert!(Receipt::append_all(&mut journal, records()).is_err());
    let [first, second, third] = reservations;
    let mut receipts = receipts.into_iter();
    let mut next = || receipts.next().unwrap();
    assert!(first.commit_with(next()).is_ok());
    assert!(third.commit_with(next()).is_err(), "that was the second's");
    assert!(second.commit_with(next()).is_err(), "that was the third's");
}

#[test]
fn a_damaged_journal_record_is_refused_at_every_length() {
    let record = encode_record(b"change", &[b"query".to_vec(), Vec::new()]);
    let read = |bytes: &[u8]| {
        let durable = vec![Zeroizing::new(bytes.to_vec())];
        StoredRecord::read_all(&mut Memory { durable, ..Memory::default() })
    };
    assert_eq!(read(&record).unwrap()[0].change(), b"change");
    for len in 0..record.len() {
        let error = read(&record[..len]).err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted, "cut to {len} bytes");
    }
    assert!(read(&[&record[..], &[0]].concat()).is_err());
}

#[test]
fn a_record_on_its_way_to_a_journal_prints_nothing_of_itself() {
    let queries = vec![b"query".to_vec()];
    let reserved = Reserved::new(ReservationId(0), b"change".to_vec().into(), queries);
    assert_eq!(format!("{:?}", Reservation::new(reserved).record()), "JournalRecord(..)");
}

/// One of the programs in `impossible.md`.
struct Program {
    must_fail: bool,
    lines: Vec<String>,
}

fn programs(page: &str) -> Vec<Program> {
    let mut programs = Vec::new();
    let mut open: Option<Program> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => {
                let must_fail = kind.starts_with("compile_fail,E");
                assert!(must_fail || kind == "rust", "a block of kind {kind}");
                open = Some(Program { must_fail, lines: Vec::new() });
            }
            (Some(_), Some(_)) => programs.extend(open.take()),
            (None, Some(program)) => program.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    assert!(open.is_none());
    programs
}

/// A program may fail to compile because a name in it is wrong. So each has a twin that compiles,
/// and the two differ only in their last line.
#[test]
fn every_program_that_must_not_compile_has_a_twin_that_does() {
    let pages = [
        (include_str!("impossible.md"), 7),
        (include_str!("../../../client/src/session/query/impossible.md"), 2),
    ];
    for (page, pairs) in pages {
        let programs = programs(page);
        assert_eq!(programs.len(), 2 * pairs);
        for pair in programs.chunks(2) {
            let [twin, impossible] = pair else { panic!() };
            assert_eq!((twin.must_fail, impossible.must_fail), (false, true));
            let (last, before) = twin.lines.split_last().unwrap();
            let (impossible_last, impossible_before) = impossible.lines.split_last().unwrap();
            assert_eq!(before, impossible_before);
            assert_ne!(last, impossible_last);
            assert!(before.len() > 1, "what is tried stands in a context that compiles");
        }
    }
}

/// Stable compilers do not compare the error codes of programs that must not compile. So the fields
/// that those programs use are named here: with another name, the programs would fail for another
/// reason.
#[test]
fn the_fields_that_programs_try_are_there() {
    fn fields(reservation: &Reservation, receipt: &Receipt, stored: &StoredRecord) -> usize {
        let Reservation { id: _, record, queries } = reservation;
        let JournalRecord { change: _, encoded } = record;
        let Receipt { record } = receipt;
        let StoredRecord { change, sendable: Sendable(sent) } = stored;
        encoded.len() + queries.len() + record.as_bytes().len() + change.len() + sent.len()
    }
    let record = JournalRecord {
        change: Arc::new(Zeroizing::new(Vec::new())),
        encoded: Arc::new(Zeroizing::new(vec![0; 2])),
    };
    let queries = Zeroizing::new(vec![vec![1]]);
    let reservation = Reservation { id: ReservationId(0), record, queries };
    let receipt = Receipt { record: blake3::hash(b"") };
    let sendable = Sendable::stateless(vec![vec![2]]);
    let stored = StoredRecord { change: Zeroizing::new(vec![0; 3]), sendable };
    assert_eq!(fields(&reservation, &receipt, &stored), 2 + 1 + 32 + 3 + 1);
}

#[test]
fn identities_are_printable_and_the_index_is_not() {
    let shape = TableShape::new(256, 1).unwrap();
    let identity = TableIdentity {
        id: TableId([1; 16]),
        epoch: Epoch(3),
        digest: TableDigest([2; 32]),
        shape,
    };
    assert!(format!("{identity:?}").contains("0101"));
    assert_eq!(format!("{:?}", index(77)), "RecordIndex(..)");
}
