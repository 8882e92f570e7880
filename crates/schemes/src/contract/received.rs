//! What every scheme does with what it receives: announced parameters, and one answer of each
//! server.

use super::{Asked, Message, Role};
use privet_core::codec::Reader;
use privet_core::{Error, Result};

/// Parameters that are announced as one number of eight bytes, little-endian, from which `make`
/// makes them.
///
/// # Errors
/// As [`Parameters::decode`](super::Parameters::decode).
pub(crate) fn announced<P>(
    what: &'static str,
    bytes: &[u8],
    make: impl FnOnce(u64) -> Result<P>,
) -> Result<P> {
    let mut reader = Reader::new(what, bytes);
    let number = reader.u64()?;
    reader.finish()?;
    make(number).map_err(refused)
}

/// Announced parameters that were read, and cannot be used because of `error`.
pub(crate) fn refused(error: Error) -> Error {
    Error::peer_misbehaved("the server announced parameters that are refused").caused_by(error)
}

/// The answers of all servers of `scheme`.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it has more or fewer servers.
pub fn of_all<'a, A, const SERVERS: usize>(
    scheme: &str,
    answers: &'a [A],
) -> Result<&'a [A; SERVERS]> {
    answers.try_into().map_err(|_| {
        Error::api_misuse(format!(
            "{scheme} needs one answer of each of its servers ({SERVERS}), but {} were given",
            answers.len()
        ))
    })
}

/// A request for hints to the server of role `role`.
///
/// # Errors
/// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if another server is asked for
/// hints, or the request does not parse.
pub(crate) fn asked<S: Asked>(
    parameters: &S::Parameters,
    role: Role,
    request: &[u8],
) -> Result<S::Request> {
    if role != S::ASKED {
        return Err(Error::invalid_message(format!(
            "hints are computed by the server of role {}, not {}; a request tells that server what no other may learn, so check the order of the servers' addresses",
            S::ASKED.0,
            role.0
        )));
    }
    S::Request::decode(parameters, request)
}

pub(crate) fn nothing_to_ask() -> Error {
    Error::invalid_message("clients of this scheme do not ask a server for their hints")
}
