//! The publisher, who signs a table's epochs.
//!
//! A publisher is an Ed25519 key pair. People copy, pin and compare the [`PublisherId`], the public
//! half. The secret half stays in one file with its owner, who alone can read it. A key that is to
//! be a publisher later has a [`NextKeyDigest`] until then.

use ed25519_dalek::{Signature, VerifyingKey};
use privet_core::quantities::from_hexadecimal;
use privet_core::{Error, Reason, Result};
use std::str::FromStr;

// Clients sign nothing.
#[cfg(any(test, feature = "files"))]
mod key;
#[cfg(feature = "files")]
mod key_file;

#[cfg(any(test, feature = "files"))]
pub use key::PublisherKey;
#[cfg(feature = "files")]
pub(crate) use key_file::PREFIX as SECRET_KEY_PREFIX;

/// The public key of a table's publisher: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublisherId(pub [u8; 32]);

impl PublisherId {
    /// Whether this publisher made `signature` over `message`. Weak keys, and signatures that have
    /// more than one form, count as wrong (strict verification).
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
    }

    /// The name of this key while it waits to become a publisher.
    pub fn as_next_key(&self) -> NextKeyDigest {
        NextKeyDigest(blake3::derive_key("privet next publisher key v1", &self.0))
    }
}

/// The digest of a public key that will sign a table's succession, and then be its publisher: 64
/// hexadecimal digits. Until then nobody needs the key itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextKeyDigest(pub [u8; 32]);

privet_core::shown_in_hexadecimal!(PublisherId, NextKeyDigest);

impl FromStr for PublisherId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        from_hexadecimal(text).map(Self).ok_or_else(|| {
            Error::api_misuse("a publisher is named by 64 hexadecimal digits")
                .because(Reason::NotAPublisher)
        })
    }
}

impl FromStr for NextKeyDigest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        from_hexadecimal(text).map(Self).ok_or_else(|| {
            Error::api_misuse("a next key is named by its digest, 64 hexadecimal digits")
        })
    }
}
