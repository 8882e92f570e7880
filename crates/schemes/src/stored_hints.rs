//! What the hints of all schemes have in common: how a generation and a checkpoint of it begin
//! where they are stored, and how much of a client's memory they may take.

use crate::planted;
use privet_core::codec::Reader;
use privet_core::{Error, Result, SecretRng, TableShape};
use zeroize::Zeroizing;

/// A client holds its hints in memory: at most 4 GiB (1 GiB where addresses have 32 bits), whatever
/// a server announces, …
pub(crate) const MAX_STATE_BYTES: u64 =
    if cfg!(target_pointer_width = "32") { 1 << 30 } else { 1 << 32 };
/// … and at most four times the table, if that is more than 64 MiB: beyond that, a client should
/// keep the table itself.
const MAX_STATE_TO_TABLE: u64 = 4;
const SMALL_STATE_BYTES: u64 = 1 << 26;

/// Checks that `what` does not take too much of a client's memory: `state` bytes.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if it does.
pub(crate) fn check_state(what: &str, shape: TableShape, state: u64) -> Result<()> {
    let limit = shape.bytes().saturating_mul(MAX_STATE_TO_TABLE).max(SMALL_STATE_BYTES);
    let limit = limit.min(MAX_STATE_BYTES);
    if state <= limit {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "{what} on {shape} would take {state} bytes of a client's memory for hints; the limit for such a table is {limit}"
    )))
}

/// The key of a new generation.
pub(crate) fn fresh_key<const N: usize>(rng: &mut SecretRng) -> Zeroizing<[u8; N]> {
    let mut key = Zeroizing::new([0; N]);
    rng.fill(key.as_mut());
    planted::key(key.as_mut());
    key
}

/// A generation of `len` bytes that has only the version yet, and zeros behind it.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(crate) fn blank(version: u32, len: u64) -> Result<Zeroizing<Vec<u8>>> {
    let no_memory = || Error::unavailable(format!("no memory for {len} bytes of hints"));
    let room = usize::try_from(len).map_err(|_| no_memory())?;
    // Reserves room for everything at once: a vector that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::new());
    bytes.try_reserve_exact(room).map_err(|error| no_memory().caused_by(error))?;
    bytes.extend(version.to_le_bytes());
    bytes.resize(room, 0);
    Ok(bytes)
}

/// What follows the version in a generation of `len` bytes.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it has another length or version.
pub(crate) fn read(version: u32, len: u64, bytes: &[u8]) -> Result<Reader<'_>> {
    if bytes.len() as u64 != len {
        return Err(Error::corrupted(format!(
            "the stored hints have {} bytes; for this table they would have {len}",
            bytes.len()
        )));
    }
    let mut reader = Reader::new("stored hints", bytes);
    check_version("the stored hints have", version, reader.u32()?)?;
    Ok(reader)
}

/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if another version was `found`.
pub(crate) fn check_version(what: &str, version: u32, found: u32) -> Result<()> {
    if found == version {
        return Ok(());
    }
    Err(Error::corrupted(format!("{what} format {found}; this version reads format {version}")))
}

/// A checkpoint that does not parse.
pub(crate) fn unreadable(error: Error) -> Error {
    Error::corrupted("the checkpoint of unfinished hints cannot be read").caused_by(error)
}

/// The rest of a checkpoint, which is a generation so far.
pub(crate) fn rest(reader: &mut Reader<'_>) -> Result<Zeroizing<Vec<u8>>> {
    Ok(Zeroizing::new(reader.bytes(reader.remaining()).map_err(unreadable)?.to_vec()))
}

/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) unless the generation is finished.
pub(crate) fn check_finished(is_finished: bool) -> Result<()> {
    if is_finished {
        return Ok(());
    }
    Err(Error::api_misuse("a generation of hints is asked for before it is finished"))
}
