//! Reserve → commit → send: types enforce this order.
//!
//! A scheme with single-use hints must never use one for two different queries, not even after a
//! crash. So the client first *reserves* a query: it chooses the hint, and fixes every byte that it
//! will send. The query becomes a [`Sendable`] only after a journal has written and synced this:
//!
//! ```text
//! reserve ──► Reservation ── commit(journal) ──────────────────────► Sendable ──► transport
//!                  │                                                  ▲   ▲
//!                  └─ record() ─► JournalRecord ─► journal ─► Receipt ┘   │
//!                                                     │                   │
//!                                       after a crash └─► StoredRecord ───┘
//! ```
//!
//! The lower way has the same two steps, for a session that does no I/O itself. After a crash there
//! are two cases. If the journal holds nothing of the reservation, then nothing of it was sent.
//! Otherwise it holds the whole record with the same bytes, and the client sends them again: a
//! repetition of the same message reveals nothing.
//!
//! # What the types prove
//!
//! No safe program outside this crate can read a query of a scheme with single-use hints before a
//! [`Journal`] has taken it and said that it is durable:
//!
//! - [`Reserved::queries`](crate::contract::Reserved) is private, so a scheme's client gives its
//!   queries only to a [`Reservation`].
//! - A [`Reservation`] and its [`JournalRecord`] show no query.
//! - Only [`Receipt::append`] and [`Receipt::append_all`] make a [`Receipt`]: a journal took the
//!   record's bytes and returned `Ok`. It is good only for that record.
//! - Only [`StoredRecord::read_all`] makes a [`StoredRecord`], from what a [`JournalReader`]
//!   returns.
//! - A [`Sendable`] comes only from a committed reservation, from a stored record, or from a client
//!   whose queries need no journal. Bytes cannot be turned into one.
//!
//! The file `reservation/impossible.md` has two programs for each of these points: one that breaks
//! it and does not compile, and its twin that does.
//!
//! # What is trusted
//!
//! **Implementations of [`Journal`] and [`JournalReader`] are trusted.** The compiler cannot see a
//! disk. A journal that returns `Ok` without keeping the bytes breaks the promise. So does a reader
//! that returns bytes which no journal kept. To judge whether a program can use a hint twice, read
//! its implementations of these two traits. (Privet has one for a state directory and one for
//! memory in the crate `privet-client`. The crate `privet-table` has one that passes records to a
//! store of the caller.)
//!
//! Types cannot enforce some other things. Hints must be loaded with *all* changes that their
//! journal holds, and never in two places at once; the store must ensure both. Code that holds the
//! bytes of a generation of hints can compute queries itself. And code that has a [`Sendable`] can
//! read its bytes and send them in any way.
//!
//! Queries of stateless schemes become [`Sendable`] without a reservation; see [`Prepared`].

use crate::contract::{Record, ReservationId, Reserved};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::any::Any;
use std::sync::Arc;
use zeroize::Zeroizing;

#[cfg(doctest)]
#[doc = include_str!("reservation/impossible.md")]
mod impossible {}

/// What a client prepared for one lookup.
pub enum Prepared {
    /// A query of a stateless scheme: may be sent at once.
    Ready(Lookup),
    /// A query of a scheme with single-use hints: must be committed first.
    Reserved(Reservation),
    /// The record itself: the client holds the whole table, and nothing is ever sent.
    Known(Record),
}

/// A query that may be sent, and what is needed to read its answers.
pub struct Lookup {
    /// One query for each server.
    pub sendable: Sendable,
    /// What the recovery of the record needs. Secret.
    pub pending: Pending,
}

/// What a client keeps between query and answer, with its type erased. Only the client that made it
/// can use it.
pub struct Pending(Box<dyn Any + Send>);

impl Pending {
    pub(crate) fn new<T: Any + Send>(value: T) -> Self {
        Self(Box::new(value))
    }

    pub(crate) fn into_inner<T: Any>(self) -> Result<T> {
        let value = self.0.downcast::<T>();
        value.map(|value| *value).map_err(|_| {
            Error::api_misuse("a pending lookup was handed to a client of another scheme")
        })
    }
}

/// Queries that may go over the wire, one for each server, already encoded. A repetition must send
/// the same bytes, so there is no way to change them. Erased when dropped: in a scheme with several
/// servers, all queries together show which record is wanted.
pub struct Sendable(Zeroizing<Vec<Vec<u8>>>);

impl Sendable {
    /// For stateless schemes, whose queries are safe to send, lose and forget.
    pub(crate) fn stateless(queries: Vec<Vec<u8>>) -> Self {
        Self(Zeroizing::new(queries))
    }

    /// The query for each server, in order.
    pub fn queries(&self) -> &[Vec<u8>] {
        &self.0
    }
}

/// A durable place to which records are appended.
///
/// **Implementations are trusted**: see the [module](self). An implementation promises that records
/// which it took survive a crash, and are read back unchanged or not at all.
pub trait Journal {
    /// Appends `entries`, in this order, and returns when all of them would survive a crash.
    ///
    /// # Errors
    /// If an entry may not have reached the disk. The caller must then assume of none of them that
    /// it is there, nor that it is absent.
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()>;
}

/// The bytes of one reservation that a [`Journal`] keeps. Both fields are secret.
#[derive(Clone, Copy)]
pub struct JournalEntry<'a> {
    /// The state change alone, for a journal that keeps a log of changes.
    pub change: &'a [u8],
    /// The whole record: the state change and the queries.
    pub record: &'a [u8],
}

/// Reads records back after a crash.
///
/// **Implementations are trusted**: see the [module](self). An implementation promises that it
/// returns only records that were appended to a [`Journal`], unchanged.
pub trait JournalReader {
    /// The [records](JournalEntry::record) that were appended and are still needed, oldest first.
    ///
    /// # Errors
    /// If they cannot be read, or have changed.
    fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>>;
}

/// What must be written down before a [`Reservation`] may be sent: the state change and the
/// queries. It shows neither; only a [`Journal`] sees the bytes. Clones share them, and they are
/// erased when the last clone is dropped.
#[derive(Clone)]
pub struct JournalRecord {
    change: Arc<Zeroizing<Vec<u8>>>,
    /// Change and queries.
    encoded: Arc<Zeroizing<Vec<u8>>>,
}

impl JournalRecord {
    /// How many bytes a journal will get: change and queries. Public, because the lengths of both
    /// are public.
    pub fn record_len(&self) -> usize {
        self.encoded.len()
    }

    fn entry(&self) -> JournalEntry<'_> {
        JournalEntry { change: &self.change, record: &self.encoded }
    }

    /// Only for a record that a journal has taken.
    fn receipt(&self) -> Receipt {
        Receipt { record: blake3::hash(&self.encoded) }
    }
}

impl std::fmt::Debug for JournalRecord {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JournalRecord(..)")
    }
}

/// Proof that one particular record is durable. Only [`Receipt::append`] and
/// [`Receipt::append_all`] make it.
pub struct Receipt {
    record: blake3::Hash,
}

impl Receipt {
    /// Appends `record` to `journal`, syncs, and certifies it.
    ///
    /// # Errors
    /// The journal's.
    pub fn append(journal: &mut impl Journal, record: &JournalRecord) -> Result<Self> {
        journal.append_and_sync(&[record.entry()])?;
        Ok(record.receipt())
    }

    /// The same for several records at once, which the journal may sync together. Returns a receipt
    /// for each, in their order. Without records, the journal is not called.
    ///
    /// # Errors
    /// The journal's. Then there is no receipt for any of them.
    pub fn append_all<'a>(
        journal: &mut impl Journal,
        records: impl IntoIterator<Item = &'a JournalRecord>,
    ) -> Result<Vec<Self>> {
        let records: Vec<_> = records.into_iter().collect();
        let entries: Vec<_> = records.iter().map(|record| record.entry()).collect();
        if !entries.is_empty() {
            journal.append_and_sync(&entries)?;
        }
        Ok(records.into_iter().map(JournalRecord::receipt).collect())
    }
}

/// A record that comes out of a journal: its queries were sent, or were about to be. Only
/// [`StoredRecord::read_all`] makes it.
pub struct StoredRecord {
    change: Zeroizing<Vec<u8>>,
    sendable: Sendable,
}

impl StoredRecord {
    /// Everything that `journal` holds, in its order.
    ///
    /// # Errors
    /// The journal's; [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it returns something
    /// that is not a whole record.
    pub fn read_all(journal: &mut impl JournalReader) -> Result<Vec<Self>> {
        let records = journal.records()?;
        let stored = records.iter().map(|record| {
            decode_record(record).map_err(|error| {
                Error::corrupted("the journal holds a record that does not parse").caused_by(error)
            })
        });
        stored.collect()
    }

    /// The state change that belongs to the queries.
    pub fn change(&self) -> &[u8] {
        &self.change
    }

    /// The same queries that were sent, or were about to be.
    pub fn sendable(&self) -> &Sendable {
        &self.sendable
    }

    /// The same, to keep.
    pub fn into_sendable(self) -> Sendable {
        self.sendable
    }
}

/// A chosen hint and the bytes that will be sent for it. They are not yet durable, so they cannot
/// be sent yet.
pub struct Reservation {
    id: ReservationId,
    record: JournalRecord,
    queries: Zeroizing<Vec<Vec<u8>>>,
}

impl Reservation {
    /// A reservation of queries that are encoded already.
    pub fn new(reserved: Reserved<Vec<u8>>) -> Self {
        let Reserved { id, change, queries } = reserved;
        let queries = Zeroizing::new(queries);
        let encoded = Arc::new(encode_record(&change, &queries));
        Self { id, record: JournalRecord { change: Arc::new(change), encoded }, queries }
    }

    /// The number of this reservation in its generation.
    pub fn id(&self) -> ReservationId {
        self.id
    }

    /// What has to be durable before the queries are sent, for [`Receipt::append`].
    pub fn record(&self) -> &JournalRecord {
        &self.record
    }

    /// Writes and syncs the record. Only then can the queries be sent.
    ///
    /// # Errors
    /// The journal's. The reservation is used up in this case too, because it is not known whether
    /// its record reached the disk.
    pub fn commit(self, journal: &mut impl Journal) -> Result<Lookup> {
        let receipt = Receipt::append(journal, &self.record)?;
        self.commit_with(receipt)
    }

    /// The same for a session that leaves writing to its driver and gets a receipt back.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the receipt is for another record.
    pub fn commit_with(self, receipt: Receipt) -> Result<Lookup> {
        if receipt.record != blake3::hash(&self.record.encoded) {
            return Err(Error::api_misuse(
                "a reservation can only be committed with the receipt for its own record",
            ));
        }
        Ok(Lookup { sendable: Sendable(self.queries), pending: Pending::new(self.id) })
    }
}

/// `change length (u32) ‖ change ‖ number of queries (u32) ‖ for each: length (u32) ‖ bytes`
fn encode_record(change: &[u8], queries: &[Vec<u8>]) -> Zeroizing<Vec<u8>> {
    // Reserves room for everything at once: a vector that grows would leave copies behind.
    let len = 8 + change.len() + queries.iter().map(|query| 4 + query.len()).sum::<usize>();
    let mut record = Zeroizing::new(Vec::with_capacity(len));
    put(&mut record, change);
    record.extend((queries.len() as u32).to_le_bytes());
    queries.iter().for_each(|query| put(&mut record, query));
    record
}

fn put(record: &mut Vec<u8>, bytes: &[u8]) {
    record.extend((bytes.len() as u32).to_le_bytes());
    record.extend(bytes);
}

fn decode_record(record: &[u8]) -> Result<StoredRecord> {
    let mut reader = Reader::new("a journal record", record);
    let len = reader.u32()? as usize;
    let change = Zeroizing::new(reader.bytes(len)?.to_vec());
    let count = reader.u32()?;
    let mut queries = Zeroizing::new(Vec::new());
    for _ in 0..count {
        let len = reader.u32()? as usize;
        queries.push(reader.bytes(len)?.to_vec());
    }
    reader.finish()?;
    Ok(StoredRecord { change, sendable: Sendable(queries) })
}

#[cfg(test)]
mod tests;
