//! Fields that several messages have.

use privet_core::{Error, Result};

/// A field that has exactly `N` bytes.
pub(crate) fn array<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        Error::invalid_message(format!("{what} must have {N} bytes, not {}", bytes.len()))
    })
}

/// Text from a peer that a program may print: bounded, and without characters that would steer a terminal.
pub(crate) fn printable(text: &str, max_len: usize) -> String {
    text.chars()
        .take(max_len)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}
