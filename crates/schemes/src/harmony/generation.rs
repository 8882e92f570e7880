//! A generation of hints: the key of the permutation and the hints' values, as they lie on disk and
//! in memory.

use super::HarmonyParameters;
use crate::planted;
use privet_core::codec::Reader;
use privet_core::{Error, Result, Secret, SecretRng};
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
        let mut key = Zeroizing::new([0; 32]);
        rng.fill(key.as_mut());
        planted::key(key.as_mut());
        Self::with_key(parameters, &key)
    }

    pub(super) fn with_key(parameters: &HarmonyParameters, key: &[u8; 32]) -> Result<Self> {
        let len = encoded_len(parameters);
        let mut bytes = Zeroizing::new(Vec::new());
        bytes.try_reserve_exact(len).map_err(|error| {
            Error::unavailable(format!("no memory for {len} bytes of hints")).caused_by(error)
        })?;
        bytes.resize(len, 0);
        bytes[..KEY.start].copy_from_slice(&VERSION.to_le_bytes());
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
        let len = encoded_len(parameters);
        if bytes.len() != len {
            return Err(Error::corrupted(format!(
                "the stored hints have {} bytes; for this table they would have {len}",
                bytes.len()
            )));
        }
        let mut reader = Reader::new("stored hints", &bytes);
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::corrupted(format!(
                "the stored hints have format {version}; this version reads format {VERSION}"
            )));
        }
        Ok(Self { bytes, record_len: parameters.record_len() })
    }
}

fn encoded_len(parameters: &HarmonyParameters) -> usize {
    KEY.end + parameters.segments() as usize * parameters.record_len()
}
