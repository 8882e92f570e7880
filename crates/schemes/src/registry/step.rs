//! A step between versions of the table, in the journal of hints: it says which change of hints
//! belongs to which edits.

use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableDigest, TableIdentity, TableShape};
use zeroize::Zeroizing;

/// The first byte of a step. No scheme's changes begin with it: they are numbered from 1 on.
const STEP: u8 = 0xff;
/// Bytes of a step, in front of the scheme's change.
const STEP_LEN: usize = 1 + 40 + 48;

/// Checks that hints which belong to version `standing` can follow edits from the version `before`
/// to the version `after`.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the edits begin elsewhere or lead to no
/// later version of the table.
pub(super) fn check(
    standing: &TableIdentity,
    before: &TableIdentity,
    after: &TableIdentity,
) -> Result<()> {
    if before != standing {
        return Err(Error::api_misuse(format!(
            "edits of epoch {} of a table were given to hints for its epoch {}, or for another table; edits that are applied twice or out of order would make the hints wrong",
            before.epoch.0, standing.epoch.0
        )));
    }
    if after.id != before.id || after.epoch <= before.epoch {
        return Err(Error::api_misuse(format!(
            "edits lead from epoch {} of a table to a later one of the same table, not to epoch {}",
            before.epoch.0, after.epoch.0
        )));
    }
    Ok(())
}

/// The journal's record of a checked step: `255 ‖ epoch before (u64) ‖ digest before (32) ‖ epoch
/// after (u64) ‖ digest after (32) ‖ records after (u64) ‖ change`
pub(super) fn encode(
    before: &TableIdentity,
    after: &TableIdentity,
    change: &[u8],
) -> Zeroizing<Vec<u8>> {
    // Reserves room for everything at once: a vector that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(STEP_LEN + change.len()));
    bytes.push(STEP);
    for version in [before, after] {
        bytes.extend(version.epoch.0.to_le_bytes());
        bytes.extend(version.digest.0);
    }
    bytes.extend(after.shape.records().to_le_bytes());
    bytes.extend_from_slice(change);
    bytes
}

/// The version to which a journal's record leads, and the scheme's change. `None`: the record is
/// only a change of the scheme.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse, or the step does not
/// begin at the version of the hints.
pub(super) fn decode<'a>(
    standing: &TableIdentity,
    bytes: &'a [u8],
) -> Result<Option<(TableIdentity, &'a [u8])>> {
    let corrupted = |error| {
        Error::corrupted("the journal of hints holds edits that do not belong where they are")
            .caused_by(error)
    };
    match bytes.first() {
        Some(&STEP) => read(standing, bytes).map(Some).map_err(corrupted),
        _ => Ok(None),
    }
}

fn read<'a>(standing: &TableIdentity, bytes: &'a [u8]) -> Result<(TableIdentity, &'a [u8])> {
    let mut reader = Reader::new("a change of hints", bytes);
    reader.u8()?;
    let mut version = |shape| -> Result<TableIdentity> {
        let (epoch, digest) = (Epoch(reader.u64()?), TableDigest(reader.array()?));
        Ok(TableIdentity { epoch, digest, shape, ..*standing })
    };
    let (before, mut after) = (version(standing.shape)?, version(standing.shape)?);
    after.shape = TableShape::new(reader.u64()?, standing.shape.record_len())?;
    check(standing, &before, &after)?;
    Ok((after, reader.bytes(reader.remaining())?))
}
