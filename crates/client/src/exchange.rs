//! Exchanges between a client and one server: their messages, how long these may be, and what
//! carries them.
//!
//! A [`Transport`] carries bytes and knows nothing of what is in them; [`exchange`] does the rest.
//! A program that has no futures, such as a page, sends a [`Call`] in its own way and has a
//! [`Reader`] read what comes in return.

use crate::session::{Request, Response, erased_at_last};
use privet_core::{Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_wire::limits::{
    DESCRIBE_RESPONSE_LIMIT, FETCH_CHUNK_LIMIT, answer_response_limit, prepare_response_limit,
    queries_together,
};
use privet_wire::prost::Message;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{ServerDescription, proto};
use std::time::Duration;
use zeroize::Zeroizing;

/// gRPC puts five bytes before every message.
const FRAME_LEN: u64 = 5;

/// A server is told to take at most the session's patience plus this.
const DEADLINE_GRACE: Duration = Duration::from_secs(1);

/// A way to one server. It decides nothing: the session decides when to try again, and what to
/// believe.
pub trait Transport: Send + Sync + 'static {
    /// What comes in return to a call.
    type Messages: Messages;

    /// The server's address, as errors name it.
    fn address(&self) -> &str;

    /// Sends a request. Whoever drops the future, or the messages, waits for them no longer.
    ///
    /// # Errors
    /// Why there is no response: for people, with the blame by which the session decides.
    fn call(&self, call: Call) -> impl Future<Output = Result<Self::Messages>> + Send;
}

/// The messages of a response.
pub trait Messages: Send {
    /// The next message; `None`: the server has sent all of them, and a status that says so.
    ///
    /// # Errors
    /// Why no more come.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>>> + Send;
}

/// A request as it crosses the wire.
pub struct Call {
    /// The method, as gRPC has it in the path of a URL.
    pub path: &'static str,
    /// The message, in protobuf.
    pub message: Bytes,
    /// The longest message that may come in return, in bytes. Longer ones are to be refused before
    /// they are received.
    pub limit: usize,
    /// How long the server may take, which it is told. `None`: as long as it goes on.
    pub deadline: Option<Duration>,
}

impl Call {
    /// The path of a request for a description.
    pub const DESCRIBE: &str = "/privet.v1.Privet/Describe";

    /// Sends `request`, for whose response the session waits with `patience`. The transport may
    /// enforce the deadline, and knows less of what it means than the session does. So the deadline
    /// is the later of the two.
    pub fn new(request: Request, limit: usize, patience: Duration) -> Self {
        let deadline = Some(patience + DEADLINE_GRACE);
        let (path, message, deadline) = match request {
            Request::Describe(request) => {
                (Self::DESCRIBE, encoded(proto::DescribeRequest::from(request)), deadline)
            }
            Request::Fetch(request) => {
                ("/privet.v1.Privet/Fetch", encoded(proto::FetchRequest::from(request)), None)
            }
            Request::Prepare(request) => (
                "/privet.v1.Privet/Prepare",
                encoded(proto::PrepareRequest::from(request)),
                deadline,
            ),
            Request::Answer(query) => {
                ("/privet.v1.Privet/Answer", encoded(proto::AnswerRequest::from(query)), deadline)
            }
        };
        Self { path, message, limit, deadline }
    }
}

fn encoded(message: impl Message) -> Bytes {
    erased_at_last(Zeroizing::new(message.encode_to_vec()))
}

/// The outcome of an exchange: a response, or a piece of one, with its size on the wire; or why
/// there is none.
pub type Delivery = Result<(Response, u64)>;

/// Whether more may come of the exchange after `delivery`.
pub fn goes_on(delivery: &Delivery) -> bool {
    matches!(delivery, Ok((Response::Chunk(_), _)))
}

/// Reads the messages that come in return to one request.
pub struct Reader {
    method: fn(Bytes) -> Result<Response>,
    is_download: bool,
    /// The only message, until it is known that no other comes.
    only: Option<(Response, u64)>,
}

impl Reader {
    /// A reader of what comes in return to `request`.
    pub fn of(request: &Request) -> Self {
        let method: fn(Bytes) -> Result<Response> = match request {
            Request::Describe(_) => {
                |bytes| ServerDescription::decode(&bytes).map(Response::Described)
            }
            Request::Fetch(_) => {
                |bytes| decoded::<proto::FetchChunk>(bytes)?.try_into().map(Response::Chunk)
            }
            Request::Prepare(_) => {
                |bytes| decoded::<proto::PrepareResponse>(bytes)?.try_into().map(Response::Prepared)
            }
            Request::Answer(_) => {
                |bytes| decoded::<proto::AnswerResponse>(bytes)?.try_into().map(Response::Answered)
            }
        };
        Self { method, is_download: matches!(request, Request::Fetch(_)), only: None }
    }

    /// Reads the next message. Returns what is to be handed in; `None`: nothing yet.
    pub fn message(&mut self, message: Bytes) -> Option<Delivery> {
        let len = message.len() as u64 + FRAME_LEN;
        match (self.method)(message) {
            Ok(chunk) if self.is_download => Some(Ok((chunk, len))),
            Ok(_) if self.only.is_some() => {
                Some(Err(Error::peer_misbehaved("one request was answered twice")))
            }
            Ok(response) => {
                self.only = Some((response, len));
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns what is to be handed in when no more messages come.
    pub fn end(&mut self) -> Delivery {
        match self.is_download {
            true => Ok((Response::End, 0)),
            false => self.only.take().ok_or_else(|| {
                Error::peer_misbehaved("a request was answered by a status alone, and no message")
            }),
        }
    }
}

fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M> {
    M::decode(bytes).map_err(|error| {
        Error::invalid_message("a message is not as the protocol prescribes").caused_by(error)
    })
}

/// Sends `request` over `transport` and passes each response to `deliver`, in order, until all have
/// come or `deliver` wants no more. Messages longer than `limit` are refused.
pub async fn exchange<F>(
    transport: &impl Transport,
    request: Request,
    limit: usize,
    patience: Duration,
    mut deliver: impl FnMut(Delivery) -> F,
) where
    F: Future<Output = bool>,
{
    let mut reader = Reader::of(&request);
    let mut messages = match transport.call(Call::new(request, limit, patience)).await {
        Ok(messages) => messages,
        Err(error) => {
            deliver(Err(error)).await;
            return;
        }
    };
    loop {
        let read = match messages.next().await {
            Ok(Some(message)) => reader.message(message),
            Ok(None) => Some(reader.end()),
            Err(error) => {
                deliver(Err(error)).await;
                return;
            }
        };
        let Some(delivery) = read else { continue };
        let last = !goes_on(&delivery);
        let named = delivery.map_err(|error| error.within(transport.address()));
        if !deliver(named).await || last {
            return;
        }
    }
}

/// The longest messages that a scheme's servers may send, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseLimits {
    /// Answers to the queries of a request.
    answer: usize,
    /// Replies to requests for hints. 0: the scheme has none.
    reply: usize,
    /// The most queries that a request may carry, if the server takes them.
    pub(crate) queries: usize,
}

impl ResponseLimits {
    /// The limits that `plan` prescribes.
    pub(crate) fn of(plan: &SchemePlan) -> Self {
        let reply = match plan.offline {
            OfflinePhase::Ask { reply_len, .. } => prepare_response_limit(reply_len),
            _ => 0,
        };
        let queries = queries_together(plan.longest_query(), plan.answer_len);
        Self { answer: answer_response_limit(queries * plan.answer_len), reply, queries }
    }

    /// The longest message that may come in return to `request`.
    pub(crate) fn for_response_to(&self, request: &Request) -> usize {
        match request {
            Request::Describe(_) => DESCRIBE_RESPONSE_LIMIT,
            Request::Fetch(_) => FETCH_CHUNK_LIMIT,
            Request::Prepare(_) => self.reply,
            Request::Answer(_) => self.answer,
        }
    }
}

/// The size of a request on the wire, in bytes.
pub(crate) fn request_len(request: &Request) -> u64 {
    let message = match request {
        Request::Describe(request) => proto::DescribeRequest::from(*request).encoded_len(),
        Request::Fetch(request) => proto::FetchRequest::from(*request).encoded_len(),
        Request::Prepare(request) => proto::PrepareRequest::from(request.clone()).encoded_len(),
        Request::Answer(request) => proto::AnswerRequest::from(request.clone()).encoded_len(),
    };
    message as u64 + FRAME_LEN
}

/// The size of a message on the wire, in bytes.
pub(crate) fn message_len(message: &impl Message) -> u64 {
    message.encoded_len() as u64 + FRAME_LEN
}
