//! The messages between a Privet client and a Privet server: the protobuf envelope, and its
//! validation.
//!
//! | module | what it holds |
//! |---|---|
//! | [`proto`] | the messages (and, with the feature `grpc`, the stubs) generated from `proto/privet/v1/privet.proto` |
//! | [`describe`] | what a server serves: [`ServerDescription`], its tables and their schemes |
//! | [`messages`] | requests and responses: [`FetchRequest`], [`FetchChunk`], [`PrepareRequest`], [`PrepareResponse`], [`AnswerRequest`], [`AnswerResponse`] |
//! | [`updates`] | the epochs of a table's update log, as clients fetch them in a row |
//! | [`limits`] | how long a message may be, computed from the parameters |
//! | [`frames`] | messages in gRPC-Web frames, for browsers |
//! | [`status`] | which blame becomes which gRPC status, and back |
//!
//! A message arrives as a type of [`proto`], which can hold anything. `TryFrom` turns it into a
//! type of [`describe`] or [`messages`], and that conversion is all of the validation: a value of
//! those types is valid, and there is no other way to make one from outside bytes. `From` goes the
//! other way and cannot fail.
//!
//! The crate does no I/O. Without its default feature `grpc` it knows nothing of gRPC but status
//! numbers, and builds for browsers.

mod counted;
pub mod describe;
mod fields;
pub mod frames;
pub mod limits;
pub mod messages;
pub mod status;
pub mod updates;

/// The messages as they are on the wire, generated from `proto/privet/v1/privet.proto`, which
/// documents them. Nothing in them has been checked.
#[allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all)]
pub mod proto {
    include!("proto/privet.v1.rs");
}

pub use describe::{
    DescribeRequest, PartDescription, SchemeDescription, ServerDescription, TableDescription,
    UpdatesDescription,
};
pub use messages::{
    AnswerRequest, AnswerResponse, FetchChunk, FetchRequest, PartKind, PrepareRequest,
    PrepareResponse,
};
/// The protobuf implementation whose [`Message`](prost::Message) trait encodes and decodes the
/// types of [`proto`].
pub use prost;
pub use status::{StatusCode, WireStatus};

/// The protocol version that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

#[cfg(test)]
mod tests;
