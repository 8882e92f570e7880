//! The secret half, which signs.

use super::PublisherId;
use ed25519_dalek::SigningKey;
use ed25519_dalek::ed25519::signature::Signer as _;
use privet_core::{Result, SecretRng};
use zeroize::Zeroizing;

/// The secret key of a table's publisher. Overwritten with zeros when dropped.
pub struct PublisherKey(pub(super) SigningKey);

impl PublisherKey {
    /// A new key, from the operating system's entropy.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the operating system gives none.
    pub fn generate() -> Result<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        SecretRng::from_os()?.fill(secret.as_mut());
        Ok(Self::from_secret(&secret))
    }

    /// The key that these 32 secret bytes stand for (the private key of RFC 8032).
    pub(crate) fn from_secret(secret: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(secret))
    }

    /// The public half.
    pub fn id(&self) -> PublisherId {
        PublisherId(self.0.verifying_key().to_bytes())
    }

    pub(in crate::update_log) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}
