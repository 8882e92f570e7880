//! Fields that several messages share.

use privet_core::{Error, Result};
use privet_schemes::contract::Role;

/// A field that has exactly `N` bytes.
pub(crate) fn array<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        Error::invalid_message(format!("{what} must have {N} bytes, not {}", bytes.len()))
    })
}

/// The role that the number names.
pub(crate) fn role(number: u32) -> Result<Role> {
    let role = u8::try_from(number).map_err(|_| {
        Error::invalid_message(format!("there is no role {number}: roles are below 256"))
    })?;
    Ok(Role(role))
}

/// Text from a peer, safe to print: bounded, and without control characters for a terminal.
pub(crate) fn printable(text: &str, max_len: usize) -> String {
    text.chars()
        .take(max_len)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}
