//! What is wrong with bytes that could be read and mean nothing.

use std::error::Error as StdError;
use std::fmt;
use std::io;

/// Says what is wrong with an input whose bytes could be read. It travels as the cause of an
/// [`io::Error`], so that whoever reads can tell it from a disk that fails.
#[derive(Debug)]
pub(super) struct Unreadable(String);

impl Unreadable {
    pub(super) fn error(what: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self(what.into()))
    }

    /// What is wrong with the input, if that is why reading failed.
    pub(super) fn of(error: &io::Error) -> Option<String> {
        Some(error.get_ref()?.downcast_ref::<Self>()?.to_string())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StdError for Unreadable {}

/// The message for an input of a kind that is not read.
pub(super) fn unread(what: &str, instead: &str) -> String {
    format!("this is {what}, which is not read; {instead}")
}
