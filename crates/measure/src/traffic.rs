//! Bytes that cross the wire: the real messages in their envelope, with the five bytes that gRPC
//! puts before each. HTTP/2 and TLS add some more.

use privet_core::TableIdentity;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::prost::Message;
use privet_wire::{
    AnswerRequest, AnswerResponse, FetchChunk, FetchRequest, PartKind, PrepareRequest,
    PrepareResponse, proto,
};
use std::ops::Range;

/// Bytes of each kind of message.
pub struct Traffic {
    /// Sent before the first query, summed over all servers.
    pub offline_up: u64,
    /// As `offline_up`, received.
    pub offline_down: u64,
    /// A query and its answer, for each server that is queried.
    pub lookups: Vec<LookupBytes>,
}

/// Bytes of one query and of its answer.
#[derive(Clone, Copy)]
pub struct LookupBytes {
    /// Of the query.
    pub query: u64,
    /// Of its answer.
    pub answer: u64,
}

/// The messages of a scheme on a table.
pub fn of(plan: &SchemePlan, identity: &TableIdentity) -> Traffic {
    let parameter_digest = plan.digest(identity);
    let (offline_up, offline_down) = match plan.offline {
        OfflinePhase::Download { len } => {
            fetched(identity, parameter_digest, PartKind::Hint, 0..len, 0)
        }
        OfflinePhase::StreamTable { len }
        | OfflinePhase::StreamArranged { len }
        | OfflinePhase::KeepTable { len } => streamed(plan, identity, len),
        OfflinePhase::Ask { role, requests, request_len, reply_len } => {
            let (request, reply) =
                prepared(identity, parameter_digest, role, request_len, reply_len);
            (requests * request, requests * reply)
        }
        _ => (0, 0),
    };
    // A scheme whose queries are empty sends no messages.
    let asks = plan.longest_query() > 0;
    let lookups =
        plan.query_lens.iter().zip(0..).filter(|_| asks).map(|(len, role)| {
            lookup(identity, parameter_digest, Role(role), *len, plan.answer_len)
        });
    Traffic { offline_up, offline_down, lookups: lookups.collect() }
}

/// Bytes that a client keeps between lookups: what it downloaded, or its hints.
pub fn kept(plan: &SchemePlan, identity: &TableIdentity) -> u64 {
    match plan.offline {
        OfflinePhase::Download { len } | OfflinePhase::KeepTable { len } => len,
        _ => plan.hints_len(identity),
    }
}

/// Bytes of the requests for the table, and of the chunks that carry it. Each server sends an equal
/// share.
fn streamed(plan: &SchemePlan, identity: &TableIdentity, len: u64) -> (u64, u64) {
    let parameter_digest = plan.digest(identity);
    let servers = plan.servers as u64;
    // Whoever keeps the table asks for all that there is.
    let keeps = matches!(plan.offline, OfflinePhase::KeepTable { .. });
    let asked = |share: Range<u64>| if keeps { 0 } else { share.end - share.start };
    (0..servers)
        .map(|server| server * len / servers..(server + 1) * len / servers)
        .map(|share| {
            fetched(identity, parameter_digest, PartKind::Table, share.clone(), asked(share))
        })
        .fold((0, 0), |(up, down), (more_up, more_down)| (up + more_up, down + more_down))
}

/// Bytes of the request for `range` of a part, which names `len`, and of the chunks that carry it.
fn fetched(
    identity: &TableIdentity,
    parameter_digest: [u8; 32],
    part: PartKind,
    range: Range<u64>,
    len: u64,
) -> (u64, u64) {
    let (table, epoch) = (identity.id, identity.epoch);
    let request = FetchRequest { table, epoch, parameter_digest, part, offset: range.start, len };
    let full = FetchChunk { offset: 0, data: vec![0; FETCH_CHUNK_LEN].into() }.data;
    let chunk = |offset: u64| {
        let chunk_len = (range.end - offset).min(FETCH_CHUNK_LEN as u64) as usize;
        let data = full.slice(..chunk_len);
        framed(&proto::FetchChunk::from(FetchChunk { offset, data }))
    };
    (
        framed(&proto::FetchRequest::from(request)),
        range.clone().step_by(FETCH_CHUNK_LEN).map(chunk).sum(),
    )
}

/// Bytes of one request for hints and of its reply.
fn prepared(
    identity: &TableIdentity,
    parameter_digest: [u8; 32],
    role: Role,
    request_len: usize,
    reply_len: usize,
) -> (u64, u64) {
    let (table, epoch) = (identity.id, identity.epoch);
    let request = vec![0; request_len].into();
    let request = PrepareRequest { table, epoch, parameter_digest, role, request };
    let reply = vec![0; reply_len].into();
    let reply = PrepareResponse { table, epoch, parameter_digest, reply };
    (framed(&proto::PrepareRequest::from(request)), framed(&proto::PrepareResponse::from(reply)))
}

/// Bytes of one query message to a server in this role, and of its answer, given the lengths of
/// their payloads.
pub(crate) fn lookup(
    identity: &TableIdentity,
    parameter_digest: [u8; 32],
    role: Role,
    query_len: usize,
    answer_len: usize,
) -> LookupBytes {
    let (table, epoch) = (identity.id, identity.epoch);
    let query = vec![0; query_len].into();
    let query = AnswerRequest { table, epoch, parameter_digest, role, query };
    let answer = vec![0; answer_len].into();
    let answer = AnswerResponse { table, epoch, parameter_digest, answer };
    LookupBytes {
        query: framed(&proto::AnswerRequest::from(query)),
        answer: framed(&proto::AnswerResponse::from(answer)),
    }
}

fn framed(message: &impl Message) -> u64 {
    const GRPC_PREFIX: u64 = 5;
    GRPC_PREFIX + message.encoded_len() as u64
}
