//! What a client sent, for as long as it is needed.
//!
//! Queries and requests for hints may hold a client's key, of schemes in which one server may know
//! it and another must not. So the server's own copy of each is erased as soon as it has served or
//! was refused, whatever the scheme: the bytes of a message, from when it has been read.
//!
//! That is less than all traces. On its way here a message went through buffers of TLS, HTTP/2 and
//! gRPC, which hold pieces of it too and are freed as they are; so is one that is no message at
//! all. Nor does anything keep memory out of a swap file or a core dump. Erasing shortens how long
//! a key lies about and in how many places; it does not prove that a server whose memory is seen
//! later knows none.

use bytes::{Bytes, BytesMut};
use std::ops::Deref;
use zeroize::Zeroize;

/// Bytes that are erased when they are dropped.
pub(crate) struct SecretBytes(Bytes);

impl SecretBytes {
    /// These bytes, which should have no other owner: otherwise they stay when this one goes.
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

/// The bytes with nothing left of them, if they have no other owner.
fn erased(bytes: Bytes) -> Option<BytesMut> {
    let mut bytes = bytes.try_into_mut().ok()?;
    bytes.zeroize();
    Some(bytes)
}

#[cfg(test)]
mod tests;
