//! A toy scheme with single-use hints runs through the contract, to show that the seam fits the kind of scheme it was drawn for: a client whose
//! hints are secret, each good for one query, surviving crashes before, at and after the sync.

use super::*;
use crate::SchemeId;
use crate::contract::{HintedClient, Message, Parameters, Scheme, SchemeOf};
use privet_core::{
    Blame, Epoch, RecordIndex, SecretRng, TableDigest, TableId, TableIdentity, TableShape,
};

/// One byte per record; the "hint" is the number of a one-time mask that the server knows too. Private towards nobody, but shaped like the real thing.
struct Masks {
    used: Vec<bool>,
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
    const SERVERS: usize = 1;
    type Parameters = Nothing;
    type Query = MaskedIndex;
    type Answer = MaskedIndex;
}

impl SchemeOf for Masks {
    type Scheme = Masks;
}

impl HintedClient for Masks {
    type Pending = u8;

    fn reserve(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Reserved<MaskedIndex, u8>> {
        let free: Vec<usize> = (0..self.used.len()).filter(|hint| !self.used[*hint]).collect();
        if free.is_empty() {
            return Err(Error::exhausted("no hint is left; prepare the next generation"));
        }
        let hint = free[rng.below(free.len() as u64) as usize] as u8;
        let query = MaskedIndex([hint, index.expose() as u8 ^ hint]);
        Ok(Reserved { change: vec![hint], queries: vec![query], pending: hint })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match change {
            [] => Ok(()),
            [hint] if !self.used[usize::from(*hint)] => {
                self.used[usize::from(*hint)] = true;
                Ok(())
            }
            _ => Err(Error::corrupted("a hint was used twice")),
        }
    }

    fn recover(
        &self,
        pending: u8,
        answers: &[MaskedIndex],
    ) -> Result<(crate::contract::Record, Vec<u8>)> {
        Ok((zeroize::Zeroizing::new(vec![answers[0].0[1] ^ pending]), Vec::new()))
    }
}

/// A journal in memory that fails its sync when told to.
#[derive(Default)]
struct Memory {
    durable: Vec<Vec<u8>>,
    broken: bool,
}

impl Journal for Memory {
    fn append_and_sync(&mut self, record: &[u8]) -> Result<()> {
        if self.broken {
            return Err(Error::unavailable("the disk is full"));
        }
        self.durable.push(record.to_vec());
        Ok(())
    }
}

fn index(of: u64) -> RecordIndex {
    RecordIndex::new(of, TableShape::new(256, 1).unwrap()).unwrap()
}

fn reserve(client: &Masks, of: u64) -> Result<Reservation> {
    let mut rng = SecretRng::from_os()?;
    Ok(Reservation::new(client.reserve(&index(of), &mut rng)?, MaskedIndex::encode))
}

fn answer(query: &[u8]) -> MaskedIndex {
    MaskedIndex([query[0], query[1]])
}

#[test]
fn a_hinted_client_goes_through_reserve_commit_send_recover() {
    let mut client = Masks { used: vec![false; 3] };
    let mut journal = Memory::default();
    for wanted in [7, 7, 200] {
        let reservation = reserve(&client, wanted).unwrap();
        let lookup = reservation.commit(&mut journal).unwrap();
        let (change, again) = Sendable::from_journal(journal.durable.last().unwrap()).unwrap();
        client.apply(&change).unwrap();
        assert_eq!(
            again.queries(),
            lookup.sendable.queries(),
            "what a crash would re-send is what was sent"
        );
        let pending = lookup.pending.into_inner::<u8>().unwrap();
        let (record, _) =
            client.recover(pending, &[answer(&lookup.sendable.queries()[0])]).unwrap();
        assert_eq!(*record, [wanted as u8]);
    }
    assert_eq!(reserve(&client, 1).err().unwrap().blame(), Blame::Exhausted);

    let mut replayed = Masks { used: vec![false; 3] };
    for record in &journal.durable {
        replayed.apply(&Sendable::from_journal(record).unwrap().0).unwrap();
    }
    assert_eq!(replayed.used, client.used, "the state after a crash is the journal replayed");
}

#[test]
fn nothing_becomes_sendable_when_the_sync_fails() {
    let client = Masks { used: vec![false; 3] };
    let mut journal = Memory { broken: true, ..Memory::default() };
    let failure = reserve(&client, 1).unwrap().commit(&mut journal);
    assert_eq!(failure.err().unwrap().blame(), Blame::Unavailable);
}

#[test]
fn a_receipt_serves_its_own_record_only() {
    let client = Masks { used: vec![false; 3] };
    let mut journal = Memory::default();
    let first = reserve(&client, 1).unwrap();
    let second = reserve(&client, 2).unwrap();
    let receipt = Receipt::append(&mut journal, first.record()).unwrap();
    assert_eq!(second.commit_with(receipt).err().unwrap().blame(), Blame::ApiMisuse);
    let receipt = Receipt::append(&mut journal, first.record()).unwrap();
    assert!(first.commit_with(receipt).is_ok());
}

#[test]
fn a_damaged_journal_record_is_refused_at_every_length() {
    let record = encode_record(b"change", &[b"query".to_vec(), Vec::new()]);
    assert!(Sendable::from_journal(&record).is_ok());
    for len in 0..record.len() {
        let error = Sendable::from_journal(&record[..len]).err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted, "cut to {len} bytes");
    }
    let longer = [&record[..], &[0]].concat();
    assert!(Sendable::from_journal(&longer).is_err());
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
