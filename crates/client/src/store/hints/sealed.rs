//! One generation of hints, or a checkpoint of one, in one file.
//!
//! ```text
//! header   216 bytes   magic "privethf" ‖ version u32 ‖ kind u32 ‖ lineage 16 ‖ number of the generation u64 ‖ order u64 ‖ offset u64 ‖
//!                      the table's version that it is prepared for 104 ‖ len u64 ‖ BLAKE3 of the contents 32 ‖ checksum of all that 16
//! contents len bytes
//! ```
//!
//! `order` and `offset` are those of a checkpoint: the larger order is the later one, and its
//! stream goes on at the offset. Such a file is read as a whole or not at all.

use super::anchor::Lineage;
use super::version::Version;
use crate::disk::{Folder, Medium};
use crate::store::files::{self, half};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::path::Path;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"privethf";
const VERSION: u32 = 2;
const CHECKSUM_LEN: usize = 16;
pub(crate) const HEADER_LEN: usize = 8 + 4 + 4 + 16 + 3 * 8 + Version::LEN + 8 + 32 + CHECKSUM_LEN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Generation = 1,
    Checkpoint = 2,
}

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) lineage: Lineage,
    /// The number of the generation that this is, or will become.
    pub(crate) number: u64,
    pub(crate) order: u64,
    pub(crate) offset: u64,
    pub(crate) version: Version,
    pub(crate) len: u64,
    pub(crate) digest: [u8; 32],
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.kind as u32).to_le_bytes());
        bytes.extend(self.lineage);
        for field in [self.number, self.order, self.offset] {
            bytes.extend(field.to_le_bytes());
        }
        self.version.put(&mut bytes);
        bytes.extend(self.len.to_le_bytes());
        bytes.extend(self.digest);
        let checksum = half(blake3::hash(&bytes));
        bytes.extend(checksum);
        bytes
    }

    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self> {
        let (fields, checksum) = bytes.split_at(HEADER_LEN - CHECKSUM_LEN);
        if half(blake3::hash(fields)) != checksum {
            return Err(Error::corrupted("its header is damaged"));
        }
        let mut reader = Reader::new("the header", fields);
        files::format_version(&mut reader, MAGIC, VERSION..=VERSION)?;
        let kind = match reader.u32()? {
            1 => Kind::Generation,
            2 => Kind::Checkpoint,
            _ => return Err(Error::corrupted("its header makes no sense")),
        };
        let header = Self {
            kind,
            lineage: reader.array()?,
            number: reader.u64()?,
            order: reader.u64()?,
            offset: reader.u64()?,
            version: Version::read(&mut reader)?,
            len: reader.u64()?,
            digest: reader.array()?,
        };
        reader.finish()?;
        Ok(header)
    }

    /// Whether this is the file that the caller looks for.
    pub(crate) fn is(&self, kind: Kind, lineage: &Lineage, number: u64) -> bool {
        self.kind == kind && self.lineage == *lineage && self.number == number
    }
}

/// Reads a header, without the contents.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged or the file has another
/// size than it says.
pub(crate) fn read_header(medium: &dyn Medium, path: &Path) -> Result<Header> {
    let size = medium.len().map_err(|error| files::failed(path, "look at", error))?;
    if size < HEADER_LEN as u64 {
        let error = Error::corrupted(format!("it ends after {size} bytes, within its header"));
        return Err(files::blame(path, error));
    }
    let mut bytes = [0; HEADER_LEN];
    medium.read_at(0, &mut bytes).map_err(|error| files::failed(path, "read", error))?;
    let header = Header::decode(&bytes).map_err(|error| files::blame(path, error))?;
    if header.len.checked_add(HEADER_LEN as u64) != Some(size) {
        let error =
            Error::corrupted(format!("it has {size} bytes, which is not what its header says"));
        return Err(files::blame(path, error));
    }
    Ok(header)
}

/// Reads header and contents.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if anything is damaged.
pub(crate) fn read(medium: &dyn Medium, path: &Path) -> Result<(Header, Zeroizing<Vec<u8>>)> {
    let header = read_header(medium, path)?;
    let contents = read_part(medium, path, HEADER_LEN as u64, header.len)?;
    if *blake3::hash(&contents).as_bytes() != header.digest {
        return Err(files::blame(path, Error::corrupted("its contents are damaged")));
    }
    Ok((header, contents))
}

/// Reads `len` bytes from `start` on. The caller has checked that the file has that many: `len`
/// must not be a mere claim.
pub(crate) fn read_part(
    medium: &dyn Medium,
    path: &Path,
    start: u64,
    len: u64,
) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    if bytes.try_reserve_exact(len as usize).is_err() {
        return Err(Error::unavailable(format!(
            "there is no memory for the {len} bytes of {}",
            path.display()
        )));
    }
    bytes.resize(len as usize, 0);
    medium.read_at(start, &mut bytes).map_err(|error| files::failed(path, "read", error))?;
    Ok(bytes)
}

/// What to write in the header.
#[derive(Clone, Copy)]
pub(crate) struct Label {
    pub(crate) kind: Kind,
    pub(crate) lineage: Lineage,
    pub(crate) number: u64,
    pub(crate) order: u64,
    pub(crate) offset: u64,
    pub(crate) version: Version,
}

/// Replaces the contents of `medium`, and syncs it. Overwrites the old contents instead of only
/// cutting them off.
pub(crate) fn write(
    medium: &dyn Medium,
    path: &Path,
    label: Label,
    contents: &[u8],
) -> Result<Header> {
    let Label { kind, lineage, number, order, offset, version } = label;
    let (len, digest) = (contents.len() as u64, *blake3::hash(contents).as_bytes());
    let header = Header { kind, lineage, number, order, offset, version, len, digest };
    let end = HEADER_LEN as u64 + header.len;
    let written = || {
        medium.write_at(0, &header.encode())?;
        medium.write_at(HEADER_LEN as u64, contents)?;
        let old = medium.len()?;
        zero(medium, end, old)?;
        medium.set_len(end)?;
        medium.sync()
    };
    written().map_err(|error| files::failed(path, "write", error))?;
    Ok(header)
}

/// Overwrites the bytes from `start` to `end` with zeros.
pub(crate) fn zero(medium: &dyn Medium, start: u64, end: u64) -> std::io::Result<()> {
    const STEP: u64 = 1 << 20;
    let zeros = vec![0; end.saturating_sub(start).min(STEP) as usize];
    let mut at = start;
    while at < end {
        let count = (end - at).min(STEP);
        medium.write_at(at, &zeros[..count as usize])?;
        at += count;
    }
    Ok(())
}

/// Overwrites a file with zeros, syncs it, and removes it; does nothing if there is none. The zeros
/// are no guarantee on a file system that does not write in place, nor on most flash memory.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be overwritten. Even then
/// the file is removed, if that is possible.
pub(crate) fn erase(folder: &dyn Folder, name: &str) -> Result<()> {
    let path = folder.path(name);
    let opened = folder.open(name).map_err(|error| files::failed(&path, "open", error))?;
    let Some(medium) = opened else { return Ok(()) };
    let zeroed = medium.len().and_then(|len| zero(&*medium, 0, len)).and_then(|()| medium.sync());
    folder.remove(name).map_err(|error| files::failed(&path, "remove", error))?;
    zeroed.map_err(|error| files::failed(&path, "overwrite", error))
}
