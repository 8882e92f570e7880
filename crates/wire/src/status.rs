//! Which [`Blame`] becomes which gRPC status.
//!
//! A status is a number and a sentence. One function chooses the number for a blame, one reads it
//! back, and the first seven blames come back unchanged:
//!
//! | blame | status |
//! |---|---|
//! | `ApiMisuse` | 5, `NOT_FOUND`: there is no such table, part or role |
//! | `InvalidMessage` | 3, `INVALID_ARGUMENT` |
//! | `PeerMisbehaved` | 9, `FAILED_PRECONDITION`: an old epoch, other parameters |
//! | `Integrity` | 10, `ABORTED` |
//! | `Exhausted` | 8, `RESOURCE_EXHAUSTED` |
//! | `Corrupted` | 15, `DATA_LOSS` |
//! | `Unavailable` | 14, `UNAVAILABLE` |
//! | `Internal` | 14 as well: for a client it is the same as a server that is away |
//!
//! The other numbers come from gRPC itself, or from a program that is not a Privet server;
//! [`WireStatus::blame`] says how they are read. Only an error's message is sent, never its cause:
//! a cause may name files of the server.

use crate::fields::printable;
use privet_core::{Blame, Error, Reason};

/// A status message is cut off after this many characters, on both sides.
pub const MAX_STATUS_MESSAGE_LEN: usize = 1024;

/// The number of a gRPC status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are gRPC's: https://grpc.io/docs/guides/status-codes/
#[repr(u8)]
pub enum StatusCode {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl StatusCode {
    const ALL: [StatusCode; 17] = [
        StatusCode::Ok,
        StatusCode::Cancelled,
        StatusCode::Unknown,
        StatusCode::InvalidArgument,
        StatusCode::DeadlineExceeded,
        StatusCode::NotFound,
        StatusCode::AlreadyExists,
        StatusCode::PermissionDenied,
        StatusCode::ResourceExhausted,
        StatusCode::FailedPrecondition,
        StatusCode::Aborted,
        StatusCode::OutOfRange,
        StatusCode::Unimplemented,
        StatusCode::Internal,
        StatusCode::Unavailable,
        StatusCode::DataLoss,
        StatusCode::Unauthenticated,
    ];

    /// The number on the wire, 0 to 16.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The status with that number; numbers that gRPC does not define count as
    /// [`StatusCode::Unknown`].
    pub fn from_number(number: i32) -> Self {
        usize::try_from(number)
            .ok()
            .and_then(|number| Self::ALL.get(number))
            .copied()
            .unwrap_or(StatusCode::Unknown)
    }

    /// gRPC's name for it.
    pub fn name(self) -> &'static str {
        match self {
            StatusCode::Ok => "OK",
            StatusCode::Cancelled => "CANCELLED",
            StatusCode::Unknown => "UNKNOWN",
            StatusCode::InvalidArgument => "INVALID_ARGUMENT",
            StatusCode::DeadlineExceeded => "DEADLINE_EXCEEDED",
            StatusCode::NotFound => "NOT_FOUND",
            StatusCode::AlreadyExists => "ALREADY_EXISTS",
            StatusCode::PermissionDenied => "PERMISSION_DENIED",
            StatusCode::ResourceExhausted => "RESOURCE_EXHAUSTED",
            StatusCode::FailedPrecondition => "FAILED_PRECONDITION",
            StatusCode::Aborted => "ABORTED",
            StatusCode::OutOfRange => "OUT_OF_RANGE",
            StatusCode::Unimplemented => "UNIMPLEMENTED",
            StatusCode::Internal => "INTERNAL",
            StatusCode::Unavailable => "UNAVAILABLE",
            StatusCode::DataLoss => "DATA_LOSS",
            StatusCode::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// An error as it is sent over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireStatus {
    /// What kind of error.
    pub code: StatusCode,
    /// What happened and what to do: at most [`MAX_STATUS_MESSAGE_LEN`] characters, none of them a
    /// control character.
    pub message: String,
}

impl WireStatus {
    /// A status as it was received.
    pub fn new(code: StatusCode, message: &str) -> Self {
        Self { code, message: printable(message, MAX_STATUS_MESSAGE_LEN) }
    }

    /// The blame that this status stands for.
    pub fn blame(&self) -> Blame {
        blame_of(self.code)
    }
}

/// The status number for a blame.
pub fn code_for(blame: Blame) -> StatusCode {
    match blame {
        Blame::ApiMisuse => StatusCode::NotFound,
        Blame::InvalidMessage => StatusCode::InvalidArgument,
        Blame::PeerMisbehaved => StatusCode::FailedPrecondition,
        Blame::Integrity => StatusCode::Aborted,
        Blame::Exhausted => StatusCode::ResourceExhausted,
        Blame::Corrupted => StatusCode::DataLoss,
        Blame::Unavailable | Blame::Internal => StatusCode::Unavailable,
        _ => StatusCode::Unknown,
    }
}

/// The blame for a status number, from any sender.
pub fn blame_of(code: StatusCode) -> Blame {
    match code {
        StatusCode::NotFound => Blame::ApiMisuse,
        StatusCode::InvalidArgument => Blame::InvalidMessage,
        StatusCode::FailedPrecondition => Blame::PeerMisbehaved,
        StatusCode::Aborted => Blame::Integrity,
        StatusCode::ResourceExhausted => Blame::Exhausted,
        StatusCode::DataLoss => Blame::Corrupted,
        StatusCode::Unavailable => Blame::Unavailable,
        // From gRPC itself. A message beyond a size limit:
        StatusCode::OutOfRange => Blame::InvalidMessage,
        // The other side stopped in the middle:
        StatusCode::Cancelled | StatusCode::DeadlineExceeded => Blame::Unavailable,
        // A Privet server refuses nobody so. A gateway in front of it does:
        StatusCode::PermissionDenied | StatusCode::Unauthenticated => Blame::PeerMisbehaved,
        // Not a Privet server, or not of this version:
        StatusCode::Ok
        | StatusCode::Unknown
        | StatusCode::AlreadyExists
        | StatusCode::Unimplemented
        | StatusCode::Internal => Blame::PeerMisbehaved,
    }
}

impl From<&Error> for WireStatus {
    fn from(error: &Error) -> Self {
        Self::new(code_for(error.blame()), error.message())
    }
}

impl From<WireStatus> for Error {
    /// The error for the receiver of a status. Its message is the sender's, or the status' name if
    /// the sender gave none. If the receiver is refused, the error says who can change that.
    fn from(status: WireStatus) -> Self {
        let message =
            if status.message.is_empty() { status.code.name().to_owned() } else { status.message };
        let blame = blame_of(status.code);
        match status.code {
            StatusCode::PermissionDenied | StatusCode::Unauthenticated => {
                Error::new(blame, format!(
                    "something in front of the server does not let this client in ({message}); ask whoever runs it to admit the client"
                ))
                .because(Reason::NotAdmitted)
            }
            _ => Error::new(blame, message),
        }
    }
}

#[cfg(feature = "grpc")]
impl From<WireStatus> for tonic::Status {
    fn from(status: WireStatus) -> Self {
        tonic::Status::new(tonic::Code::from_i32(status.code.number()), status.message)
    }
}

#[cfg(feature = "grpc")]
impl From<&tonic::Status> for WireStatus {
    fn from(status: &tonic::Status) -> Self {
        Self::new(StatusCode::from_number(status.code() as i32), status.message())
    }
}
