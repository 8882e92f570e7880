//! How the store's files encode a version of a table.

use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};

/// Bytes of an encoded identity: table id 16 ‖ epoch u64 ‖ table digest 32 ‖ records u64 ‖ bytes of
/// a record u64.
pub(crate) const IDENTITY_LEN: usize = 16 + 8 + 32 + 8 + 8;

pub(crate) fn put_identity(bytes: &mut Vec<u8>, table: &TableIdentity) {
    bytes.extend(table.id.0);
    bytes.extend(table.epoch.0.to_le_bytes());
    bytes.extend(table.digest.0);
    bytes.extend(table.shape.records().to_le_bytes());
    bytes.extend(table.shape.record_len().to_le_bytes());
}

/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if no such table is possible; otherwise as
/// [`Reader`] says.
pub(crate) fn read_identity(reader: &mut Reader<'_>) -> Result<TableIdentity> {
    let (id, epoch) = (TableId(reader.array()?), Epoch(reader.u64()?));
    let digest = TableDigest(reader.array()?);
    let shape = TableShape::new(reader.u64()?, reader.u64()?);
    let shape = shape.map_err(|_| Error::corrupted("it names a table that cannot exist"))?;
    Ok(TableIdentity { id, epoch, digest, shape })
}
