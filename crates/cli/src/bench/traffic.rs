//! Bytes that cross the wire: the real messages in their envelope, with the five bytes that gRPC puts before each. HTTP/2 and TLS add some more.

use privet_core::TableIdentity;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::prost::Message;
use privet_wire::{AnswerRequest, AnswerResponse, FetchChunk, FetchRequest, PartKind, proto};

/// Bytes of each kind of message, for one server.
pub(super) struct Traffic {
    pub(super) fetch_request: u64,
    pub(super) fetch_response: u64,
    pub(super) query: u64,
    pub(super) answer: u64,
}

/// The messages of a scheme on a table.
pub(super) fn of(plan: &SchemePlan, identity: &TableIdentity) -> Traffic {
    let (table, epoch, parameter_digest) = (identity.id, identity.epoch, plan.digest(identity));
    let (mut fetch_request, mut fetch_response) = (0, 0);
    let received = match plan.offline {
        OfflinePhase::Download { len } => Some((PartKind::Hint, len)),
        OfflinePhase::StreamTable { len } | OfflinePhase::KeepTable { len } => {
            Some((PartKind::Table, len))
        }
        _ => None,
    };
    if let Some((part, len)) = received {
        let request = FetchRequest { table, epoch, parameter_digest, part, offset: 0, len: 0 };
        fetch_request = framed(&proto::FetchRequest::from(request));
        let full = vec![0; FETCH_CHUNK_LEN];
        fetch_response = (0..len)
            .step_by(FETCH_CHUNK_LEN)
            .map(|offset| {
                let data =
                    full[..(len - offset).min(FETCH_CHUNK_LEN as u64) as usize].to_vec().into();
                framed(&proto::FetchChunk::from(FetchChunk { offset, data }))
            })
            .sum();
    }
    // A scheme of which nothing has to be asked sends nothing.
    let (query, answer) = match plan.longest_query() {
        0 => (0, 0),
        query_len => lookup(identity, parameter_digest, query_len, plan.answer_len),
    };
    Traffic { fetch_request, fetch_response, query, answer }
}

/// Bytes of one query and of its answer, given those of what they carry.
pub(super) fn lookup(
    identity: &TableIdentity,
    parameter_digest: [u8; 32],
    query_len: usize,
    answer_len: usize,
) -> (u64, u64) {
    let (table, epoch) = (identity.id, identity.epoch);
    let query = vec![0; query_len].into();
    let query = AnswerRequest { table, epoch, parameter_digest, role: Role(0), query };
    let answer = vec![0; answer_len].into();
    let answer = AnswerResponse { table, epoch, parameter_digest, answer };
    (framed(&proto::AnswerRequest::from(query)), framed(&proto::AnswerResponse::from(answer)))
}

fn framed(message: &impl Message) -> u64 {
    const GRPC_PREFIX: u64 = 5;
    GRPC_PREFIX + message.encoded_len() as u64
}
