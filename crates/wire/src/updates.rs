//! The epochs of a table's update log as clients fetch them:
//! [`PartKind::Updates`](crate::PartKind::Updates), in a row, each with its length.
//!
//! ```text
//! for each epoch, in order:
//!     length u32 ‖ the epoch, as its publisher signed it
//!     length u32 ‖ what clients that verify answers must know of the commitments to the table after it; empty for all others
//! ```
//!
//! The update log (`privet_table::update_log`) decides what an epoch means, and whether it follows;
//! this module only separates them.

use crate::limits::MAX_EPOCH_LEN;
use bytes::Bytes;
use privet_core::{Error, Result};

const LENGTH: usize = 4;

/// One fetched epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedEpoch {
    /// The epoch, not checked in any way.
    pub epoch: Bytes,
    /// Its part of the commitments, not checked in any way.
    pub commitments: Bytes,
}

/// Bytes that [`encode`] makes of an epoch of `epoch` bytes and `commitments` bytes of commitments.
pub const fn encoded_len(epoch: usize, commitments: usize) -> usize {
    2 * LENGTH + epoch + commitments
}

/// Appends an epoch to the bytes to send.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if either has more than [`MAX_EPOCH_LEN`]
/// bytes.
pub fn encode(epoch: &[u8], commitments: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
    for part in [epoch, commitments] {
        let len = u32::try_from(part.len()).ok().filter(|len| *len as usize <= MAX_EPOCH_LEN);
        let len = len.ok_or_else(|| {
            Error::api_misuse(format!(
                "an epoch of {} bytes is too long to be sent; the limit is {MAX_EPOCH_LEN}",
                part.len()
            ))
        })?;
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(part);
    }
    Ok(())
}

/// Separates epochs as their bytes arrive, in pieces of any size.
#[derive(Default)]
pub struct EpochReader {
    waiting: Vec<u8>,
}

impl EpochReader {
    /// Takes the next bytes, and returns the epochs that are complete now. Keeps no more than one
    /// epoch and the bytes that came with its end.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if a length above
    /// [`MAX_EPOCH_LEN`] bytes is announced.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<FetchedEpoch>> {
        self.waiting.extend_from_slice(bytes);
        let (mut complete, mut at) = (Vec::new(), 0);
        while let Some((epoch, behind)) = piece(&self.waiting, at)?
            && let Some((commitments, behind)) = piece(&self.waiting, behind)?
        {
            let copied = Bytes::copy_from_slice;
            complete.push(FetchedEpoch { epoch: copied(epoch), commitments: copied(commitments) });
            at = behind;
        }
        self.waiting.drain(..at);
        Ok(complete)
    }

    /// Whether no incomplete epoch is left.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The piece that begins at `at`, and where the next begins; `None` if not all of it is there.
fn piece(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>> {
    let Some((len, rest)) = bytes.get(at..).and_then(<[u8]>::split_first_chunk::<LENGTH>) else {
        return Ok(None);
    };
    let len = u32::from_le_bytes(*len) as usize;
    if len > MAX_EPOCH_LEN {
        return Err(Error::invalid_message(format!(
            "the server announces an epoch of {len} bytes; the limit is {MAX_EPOCH_LEN}"
        )));
    }
    Ok(rest.get(..len).map(|piece| (piece, at + LENGTH + len)))
}
