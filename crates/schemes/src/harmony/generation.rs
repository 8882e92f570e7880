//! A generation of hints: the key of the permutation and the hints' values, as they lie on disk and
//! in memory.

use super::HarmonyParameters;
use crate::stored_hints::{blank, fresh_key, read};
use privet_core::{Result, Secret, SecretRng};
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// `version (u32) ‖ key (32) ‖ hints`
const KEY: std::ops::Range<usize> = 4..36;

/// The secret key of the permutation, and for each segment a hint: the XOR of the records that lie
/// in its cells.
///
/// Hints are used in the form in which they are written down, because they are large: after a read
/// from disk, no second copy is needed.
pub(super) struct Generation {
    bytes: Zeroizing<Vec<u8>>,
    record_len: usize,
}

impl Generation {
    /// A fresh key, and hints that hold nothing yet.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(super) fn fresh(parameters: &HarmonyParameters, rng: &mut SecretRng) -> Result<Self> {
        Self::with_key(parameters, &fresh_key(rng))
    }

    pub(super) fn with_key(parameters: &HarmonyParameters, key: &[u8; 32]) -> Result<Self> {
        let mut bytes = blank(VERSION, encoded_len(parameters))?;
        bytes[KEY].copy_from_slice(key);
        Ok(Self { bytes, record_len: parameters.record_len() })
    }

    pub(super) fn key(&self) -> Secret<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&self.bytes[KEY]);
        Secret::new(*key)
    }

    /// The hint of a segment.
    pub(super) fn hint_mut(&mut self, segment: u32) -> &mut [u8] {
        let start = KEY.end + segment as usize * self.record_len;
        &mut self.bytes[start..start + self.record_len]
    }

    /// All hints, one after the other.
    pub(super) fn hints_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[KEY.end..]
    }

    #[cfg(test)]
    pub(super) fn hint(&self, segment: u32) -> &[u8] {
        let start = KEY.end + segment as usize * self.record_len;
        &self.bytes[start..start + self.record_len]
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not one for `parameters`.
    pub(super) fn decode(
        parameters: &HarmonyParameters,
        bytes: Zeroizing<Vec<u8>>,
    ) -> Result<Self> {
        read(VERSION, encoded_len(parameters), &bytes)?;
        Ok(Self { bytes, record_len: parameters.record_len() })
    }
}

fn encoded_len(parameters: &HarmonyParameters) -> u64 {
    KEY.end as u64 + u64::from(parameters.segments()) * parameters.shape().record_len()
}
