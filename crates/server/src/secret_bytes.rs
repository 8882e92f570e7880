//! A client's message, for as long as the server needs it.
//!
//! Queries and requests for hints may hold a client's key, in schemes in which one server may know
//! it and another must not. So the server erases its own copy of each as soon as it has served or
//! refused it, whatever the scheme. This covers the bytes of a message from when it has been read.
//!
//! It does not erase all traces. On its way here a message went through buffers of TLS, HTTP/2 and
//! gRPC, which hold pieces of it too and are freed without erasing. Bytes that do not parse as a
//! message are not erased either. Nor does anything keep memory out of a swap file or a core dump.
//! Erasing shortens how long a key stays in memory and in how many places. It does not prove that
//! an attacker who sees the server's memory later finds no key.

use bytes::{Bytes, BytesMut};
use std::ops::Deref;
use zeroize::Zeroize;

/// Bytes that are erased when they are dropped.
pub(crate) struct SecretBytes(Bytes);

impl SecretBytes {
    /// Takes these bytes, which should have no other owner: otherwise they stay when this one is
    /// dropped.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Deref for SecretBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        drop(erased(std::mem::take(&mut self.0)));
    }
}

/// The bytes, overwritten, if they have no other owner.
fn erased(bytes: Bytes) -> Option<BytesMut> {
    let mut bytes = bytes.try_into_mut().ok()?;
    bytes.zeroize();
    Some(bytes)
}

#[cfg(test)]
mod tests;
