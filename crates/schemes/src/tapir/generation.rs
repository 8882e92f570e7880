//! The encoding of a generation: that of SinglePass, and the verifier of answers.

use super::{Form, TapirParameters};
use crate::singlepass::draws::Seed;
use crate::singlepass::generation::Generation;
use crate::stored_hints::check_version;
use privet_core::codec::Reader;
use privet_core::commit::VectorCommitment;
use privet_core::{Error, Result, Secret};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// The parts of a generation.
pub(super) struct Parts<'a> {
    /// The seed for the permutations of partitions that are added to the table later. Nobody else
    /// knows it.
    pub(super) later: Seed,
    /// The generation of SinglePass, encoded.
    pub(super) pass: &'a [u8],
    /// The verifier, encoded.
    pub(super) verifier: &'a [u8],
}

/// `version (u32) ‖ seed of later permutations (32) ‖ verifier ‖ generation of SinglePass`. The
/// verifier's length follows from the parameters.
pub(super) fn encode(later: &Seed, verifier: &[u8], pass: &[u8]) -> Zeroizing<Vec<u8>> {
    // Reserves room for everything at once: a vector that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(36 + verifier.len() + pass.len()));
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(later.expose());
    bytes.extend_from_slice(verifier);
    bytes.extend_from_slice(pass);
    bytes
}

/// The encoding of a first generation: its permutations follow from `seed`.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(super) fn encode_first<F: Form>(
    parameters: &TapirParameters<F>,
    seed: &Seed,
    hints: &[u8],
    verifier: &[u8],
    kernels: Kernels,
) -> Result<Zeroizing<Vec<u8>>> {
    let pass = Generation::encode_first(parameters.pass(), seed, hints, kernels)?;
    // The seed itself would do, because streams for later permutations have a key of their own. But
    // nothing needs the first permutations again, so it is not kept.
    let later = Zeroizing::new(blake3::derive_key(
        "privet 2026-11 tapir seed of later permutations",
        seed.expose(),
    ));
    Ok(encode(&Secret::new(*later), verifier, &pass))
}

/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not a generation for `parameters`.
pub(super) fn decode<'a, F: Form>(
    parameters: &TapirParameters<F>,
    bytes: &'a [u8],
) -> Result<Parts<'a>> {
    let read = |error: Error| Error::corrupted("the stored hints cannot be read").caused_by(error);
    let mut reader = Reader::new("stored hints", bytes);
    let version = reader.u32().map_err(read)?;
    check_version("the stored hints have", VERSION, version)?;
    let later = Secret::new(reader.array().map_err(read)?);
    let verifier = parameters.commitment().verifier_len() as usize;
    let verifier = reader.bytes(verifier).map_err(read)?;
    let pass = reader.bytes(reader.remaining()).map_err(read)?;
    Ok(Parts { later, pass, verifier })
}
