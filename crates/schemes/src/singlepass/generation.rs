//! A generation: the permutations and the hints that belong to them; and its encoding.

use super::SinglePassParameters;
use super::draws::Seed;
use super::permutations::{Permutations, draw_all, encode_row};
use crate::stored_hints::{blank, read};
use privet_core::Result;
use privet_kernels::Kernels;
use zeroize::Zeroizing;

const VERSION: u32 = 1;
const HEADER: usize = 4;

/// Permutations and hints that fit each other. Hint `m` is the XOR of one record of each partition:
/// the one that the partition's permutation has at `m`.
pub(crate) struct Generation {
    pub(crate) permutations: Permutations,
    /// `M` records.
    pub(crate) hints: Zeroizing<Vec<u8>>,
}

impl Generation {
    /// The encoding of a first generation: its permutations follow from the seed, and the server
    /// sent its hints.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn encode_first(
        parameters: &SinglePassParameters,
        seed: &Seed,
        hints: &[u8],
        kernels: Kernels,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = blank(VERSION, encoded_len(parameters))?;
        let (permutations, after) = parts(parameters, &mut bytes);
        let row_bytes = 2 * parameters.partition_records() as usize;
        draw_all(parameters, seed, kernels, |partition, row| {
            encode_row(row, &mut permutations[partition * row_bytes..][..row_bytes]);
        });
        after.copy_from_slice(hints);
        Ok(bytes)
    }

    /// `version (u32) ‖ for each partition its permutation (u16 each) ‖ hints`
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn encode(&self, parameters: &SinglePassParameters) -> Result<Zeroizing<Vec<u8>>> {
        let mut bytes = blank(VERSION, encoded_len(parameters))?;
        let (permutations, hints) = parts(parameters, &mut bytes);
        self.permutations.encode(permutations);
        hints.copy_from_slice(&self.hints);
        Ok(bytes)
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not one for `parameters`,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn decode(parameters: &SinglePassParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = read(VERSION, encoded_len(parameters), bytes)?;
        let permutations = reader.bytes(2 * parameters.padded_records() as usize)?;
        let permutations = Permutations::decode(parameters, permutations)?;
        let hints = Zeroizing::new(reader.bytes(parameters.hint_bytes() as usize)?.to_vec());
        Ok(Self { permutations, hints })
    }
}

fn encoded_len(parameters: &SinglePassParameters) -> u64 {
    HEADER as u64 + parameters.state_bytes()
}

/// The parts of an encoding for the permutations and for the hints.
fn parts<'a>(
    parameters: &SinglePassParameters,
    bytes: &'a mut [u8],
) -> (&'a mut [u8], &'a mut [u8]) {
    bytes[HEADER..].split_at_mut(2 * parameters.padded_records() as usize)
}
