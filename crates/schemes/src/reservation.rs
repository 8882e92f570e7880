//! Reserve → commit → send, by types.
//!
//! A scheme with single-use hints must never use one for two different queries, not even after a crash. So a query is first *reserved*: the
//! hint is chosen and every byte that will be sent is fixed. A [`Reservation`] has no way to those bytes except into a journal. Only when the
//! journal has written and synced the record does it turn into a [`Sendable`], the one thing that a transport accepts:
//!
//! ```text
//! reserve ──► Reservation ──commit(journal)──► Sendable ──► transport
//!                  │                ▲
//!                  └─ record() ─► written, synced ─► Receipt      (the same two steps for a session that does no I/O itself)
//! ```
//!
//! After a crash the journal holds either nothing of the reservation, and then nothing of it was sent, or the whole record with the
//! very bytes, which are sent again: a repeat of the same message teaches nothing.
//!
//! Queries of stateless schemes become [`Sendable`] without a reservation; see [`Prepared`].

use crate::contract::{Record, ReservationId, Reserved};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::any::Any;
use zeroize::Zeroizing;

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
    /// What recovering needs. Secret.
    pub pending: Pending,
}

/// What a client keeps between query and answer, with its type erased. Only the client that made it can use it.
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

/// Queries that may go over the wire, one for each server, already encoded. Sending one again must send the same bytes, so there is no way to
/// change them. Erased when dropped: of a scheme with several servers, all of them together say what is wanted.
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

    /// Reads a journal record back after a crash: the very queries that were, or were about to be, sent, and the state change that belongs to them.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `record` is not a whole record.
    pub fn from_journal(record: &[u8]) -> Result<(Zeroizing<Vec<u8>>, Sendable)> {
        decode_record(record).map_err(|error| {
            Error::corrupted("the journal holds a record that does not parse").caused_by(error)
        })
    }
}

/// A journal: somewhere durable that records are appended to.
pub trait Journal {
    /// Appends `record` and returns once it would survive a crash.
    ///
    /// # Errors
    /// If it may not have reached the disk. The record must then not be assumed to be there, nor to be absent.
    fn append_and_sync(&mut self, record: &[u8]) -> Result<()>;
}

/// Proof that one particular record is durable. Made by [`Receipt::append`] only.
pub struct Receipt {
    record: blake3::Hash,
}

impl Receipt {
    /// Appends `record` to `journal`, syncs, and certifies it.
    pub fn append(journal: &mut impl Journal, record: &[u8]) -> Result<Self> {
        journal.append_and_sync(record)?;
        Ok(Self { record: blake3::hash(record) })
    }
}

/// A chosen hint and the bytes that will be sent for it, not yet durable, hence not yet sendable.
pub struct Reservation {
    id: ReservationId,
    record: Zeroizing<Vec<u8>>,
    queries: Zeroizing<Vec<Vec<u8>>>,
}

impl Reservation {
    /// Erases what a hinted client reserved; `encode` turns a query into bytes.
    pub fn new<Query>(reserved: Reserved<Query>, encode: impl Fn(&Query) -> Vec<u8>) -> Self {
        let queries: Zeroizing<Vec<Vec<u8>>> =
            Zeroizing::new(reserved.queries.iter().map(encode).collect());
        let record = encode_record(&reserved.change, &queries);
        Self { id: reserved.id, record, queries }
    }

    /// Which of its generation's reservations this is.
    pub fn id(&self) -> ReservationId {
        self.id
    }

    /// The journal record: the state change and the queries. For a journal, and for nothing else.
    pub fn record(&self) -> &[u8] {
        &self.record
    }

    /// Writes and syncs the journal record; only then are the queries sendable.
    ///
    /// # Errors
    /// The journal's. The reservation is spent all the same: whether its record reached the disk is not known.
    pub fn commit(self, journal: &mut impl Journal) -> Result<Lookup> {
        let receipt = Receipt::append(journal, &self.record)?;
        self.commit_with(receipt)
    }

    /// The same for a session that leaves writing to its driver and gets a receipt back.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the receipt is for another record.
    pub fn commit_with(self, receipt: Receipt) -> Result<Lookup> {
        if receipt.record != blake3::hash(&self.record) {
            return Err(Error::api_misuse(
                "a reservation can only be committed with the receipt for its own record",
            ));
        }
        Ok(Lookup { sendable: Sendable(self.queries), pending: Pending::new(self.id) })
    }
}

/// `change length (u32) ‖ change ‖ number of queries (u32) ‖ for each: length (u32) ‖ bytes`
fn encode_record(change: &[u8], queries: &[Vec<u8>]) -> Zeroizing<Vec<u8>> {
    // Room for all of it at once: growing would leave copies behind.
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

fn decode_record(record: &[u8]) -> Result<(Zeroizing<Vec<u8>>, Sendable)> {
    let mut reader = Reader::new("a journal record", record);
    let len = reader.u32()? as usize;
    let change = Zeroizing::new(reader.bytes(len)?.to_vec());
    let count = reader.u32()?;
    let mut queries = Vec::new();
    for _ in 0..count {
        let len = reader.u32()? as usize;
        queries.push(reader.bytes(len)?.to_vec());
    }
    reader.finish()?;
    Ok((change, Sendable(Zeroizing::new(queries))))
}

#[cfg(test)]
mod tests;
