//! What a client sent, for as long as it is needed.
//!
//! Queries and requests for hints may hold a client's key, of schemes in which one server may know it and another must not. So none of them lies in the server's memory longer
//! than it takes to answer, whatever the scheme.

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
