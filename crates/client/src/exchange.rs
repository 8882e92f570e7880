//! The messages between a client and one server, over any transport: how long they are, and how
//! long they may be.

use crate::session::{Request, Response};
use privet_core::Result;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_wire::limits::{answer_response_limit, prepare_response_limit, queries_together};
use privet_wire::prost::Message;
use privet_wire::proto;

/// gRPC puts five bytes before every message.
pub(crate) const FRAME_LEN: u64 = 5;

/// The outcome of an exchange: a response, or a piece of one, with its size on the wire; or why
/// there is none.
pub type Delivery = Result<(Response, u64)>;

/// Whether more may come of the exchange after `delivery`.
pub fn goes_on(delivery: &Delivery) -> bool {
    matches!(delivery, Ok((Response::Chunk(_), _)))
}

/// The longest messages that a scheme's servers may send, in bytes. Longer ones are refused before
/// they are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Answers to the queries of a request.
    pub answer: usize,
    /// Replies to requests for hints. 0: the scheme has none.
    pub reply: usize,
    /// The most queries that a request may carry, if the server takes them.
    pub queries: usize,
}

impl ResponseLimits {
    /// The limits that `plan` prescribes.
    pub fn of(plan: &SchemePlan) -> Self {
        let reply = match plan.offline {
            OfflinePhase::Ask { reply_len, .. } => prepare_response_limit(reply_len),
            _ => 0,
        };
        let queries = queries_together(plan.longest_query(), plan.answer_len);
        Self { answer: answer_response_limit(queries * plan.answer_len), reply, queries }
    }
}

/// The size of a request on the wire, in bytes.
pub fn request_len(request: &Request) -> u64 {
    let message = match request {
        Request::Describe(request) => proto::DescribeRequest::from(*request).encoded_len(),
        Request::Fetch(request) => proto::FetchRequest::from(*request).encoded_len(),
        Request::Prepare(request) => proto::PrepareRequest::from(request.clone()).encoded_len(),
        Request::Answer(request) => proto::AnswerRequest::from(request.clone()).encoded_len(),
    };
    message as u64 + FRAME_LEN
}

/// A message with its size on the wire, in bytes.
pub fn measured<M: Message>(message: M) -> (M, u64) {
    let len = message.encoded_len() as u64 + FRAME_LEN;
    (message, len)
}
