//! Fetching public parts, asking for hints, and asking queries.
//!
//! Every message about a table carries the table's id, its epoch and the parameter digest of one of
//! its schemes. The receiver checks whether these are served, and whether a query or request has
//! the length that the parameters prescribe: it knows the table, and this crate does not.

mod exchange;

use crate::fields::{array, role};
use crate::limits::FETCH_CHUNK_LEN;
use crate::proto;
use bytes::Bytes;
use exchange::exchange;
use privet_core::{Epoch, Error, Result, TableId};
use privet_schemes::contract::Role;
use std::fmt;

/// A public part of a table. All parts are the same for every client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartKind {
    /// How keys and values lie in records.
    Layout,
    /// What a server computed from the table for the clients of a scheme; they receive it before
    /// the first query.
    Hint,
    /// The records themselves, in their natural order. Some clients receive them first, to make
    /// hints from them or to keep them.
    Table,
    /// The epochs from one version to a later one that is served: see [`updates`](crate::updates).
    Updates,
    /// The successions that lead to the table.
    Lineage,
}

impl PartKind {
    /// A name for people and metrics.
    pub fn name(self) -> &'static str {
        match self {
            PartKind::Layout => "layout",
            PartKind::Hint => "hint",
            PartKind::Table => "table",
            PartKind::Updates => "updates",
            PartKind::Lineage => "lineage",
        }
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Asks for a public part, or a stretch of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// The table.
    pub table: TableId,
    /// Its version; for updates, the version that they begin with.
    pub epoch: Epoch,
    /// The parameter digest of the scheme whose hint is requested; for the other parts, of any
    /// scheme of the table. For updates, in the version that they lead to.
    pub parameter_digest: [u8; 32],
    /// The part.
    pub part: PartKind,
    /// The first requested byte, counted from the beginning of the part.
    pub offset: u64,
    /// The most bytes; fewer come if the part ends before. 0: all up to its end.
    pub len: u64,
}

/// A piece of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchChunk {
    /// Where in the part `data` begins.
    pub offset: u64,
    /// Between 1 and [`FETCH_CHUNK_LEN`] bytes. (A stream of empty chunks would never end.)
    pub data: Bytes,
}

/// Asks a query, or several of one client.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerRequest {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub epoch: Epoch,
    /// The parameter digest of the scheme that the query belongs to.
    pub parameter_digest: [u8; 32],
    /// Which of the scheme's servers the receiver is asked to be.
    pub role: Role,
    /// The query in the scheme's own encoding; or several of the same length, one after the other,
    /// at most [`queries_together`](crate::limits::queries_together).
    pub query: Bytes,
}

/// The answers to the queries of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerResponse {
    /// As in the request.
    pub table: TableId,
    /// As in the request.
    pub epoch: Epoch,
    /// As in the request.
    pub parameter_digest: [u8; 32],
    /// The answer in the scheme's own encoding; or several of the same length, in the order of the
    /// queries.
    pub answer: Bytes,
}

/// Asks for hints that one server computes for one client.
#[derive(Clone, PartialEq, Eq)]
pub struct PrepareRequest {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub epoch: Epoch,
    /// The parameter digest of the scheme that the hints are for.
    pub parameter_digest: [u8; 32],
    /// Which of the scheme's servers the receiver is asked to be.
    pub role: Role,
    /// The request in the scheme's own encoding. Secret: no other server may learn it.
    pub request: Bytes,
}

/// The reply to a request for hints.
#[derive(Clone, PartialEq, Eq)]
pub struct PrepareResponse {
    /// As in the request.
    pub table: TableId,
    /// As in the request.
    pub epoch: Epoch,
    /// As in the request.
    pub parameter_digest: [u8; 32],
    /// The reply in the scheme's own encoding.
    pub reply: Bytes,
}

exchange!(AnswerRequest { query } => AnswerResponse { answer });
exchange!(PrepareRequest { request } => PrepareResponse { reply });

impl TryFrom<proto::FetchRequest> for FetchRequest {
    type Error = Error;

    fn try_from(message: proto::FetchRequest) -> Result<Self> {
        let part = match message.part() {
            proto::Part::Layout => PartKind::Layout,
            proto::Part::Hint => PartKind::Hint,
            proto::Part::Table => PartKind::Table,
            proto::Part::Updates => PartKind::Updates,
            proto::Part::Lineage => PartKind::Lineage,
            proto::Part::Unspecified => {
                return Err(Error::invalid_message(format!(
                    "there is no part numbered {} to fetch; known are 1 (layout), 2 (hint), 3 (table), 4 (updates) and 5 (lineage)",
                    message.part
                )));
            }
        };
        Ok(Self {
            table: TableId(array("the table id", &message.table_id)?),
            epoch: Epoch(message.epoch),
            parameter_digest: array("the parameter digest", &message.parameter_digest)?,
            part,
            offset: message.offset,
            len: message.len,
        })
    }
}

impl From<FetchRequest> for proto::FetchRequest {
    fn from(request: FetchRequest) -> Self {
        let part = match request.part {
            PartKind::Layout => proto::Part::Layout,
            PartKind::Hint => proto::Part::Hint,
            PartKind::Table => proto::Part::Table,
            PartKind::Updates => proto::Part::Updates,
            PartKind::Lineage => proto::Part::Lineage,
        };
        Self {
            table_id: request.table.0.to_vec(),
            epoch: request.epoch.0,
            parameter_digest: request.parameter_digest.to_vec(),
            part: part.into(),
            offset: request.offset,
            len: request.len,
        }
    }
}

impl TryFrom<proto::FetchChunk> for FetchChunk {
    type Error = Error;

    fn try_from(message: proto::FetchChunk) -> Result<Self> {
        if message.data.is_empty() || message.data.len() > FETCH_CHUNK_LEN {
            return Err(Error::invalid_message(format!(
                "a chunk has between 1 and {FETCH_CHUNK_LEN} bytes, not {}",
                message.data.len()
            )));
        }
        if message.offset.checked_add(message.data.len() as u64).is_none() {
            return Err(Error::invalid_message("a chunk begins at an offset that is too large"));
        }
        Ok(Self { offset: message.offset, data: message.data })
    }
}

impl From<FetchChunk> for proto::FetchChunk {
    fn from(chunk: FetchChunk) -> Self {
        Self { offset: chunk.offset, data: chunk.data }
    }
}
