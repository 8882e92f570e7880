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
use crate::disk::Folder;
use crate::store::files::{self, StoredFile, half};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
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

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) kind: Kind,
    pub(crate) lineage: Lineage,
    /// The number of the generation that this is, or will become.
    pub(crate) number: u64,
    pub(crate) order: u64,
    pub(crate) offset: u64,
    pub(crate) version: Version,
}

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) label: Label,
    pub(crate) len: u64,
    pub(crate) digest: [u8; 32],
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        let Label { kind, lineage, number, order, offset, version } = self.label;
        bytes.extend((kind as u32).to_le_bytes());
        bytes.extend(lineage);
        for field in [number, order, offset] {
            bytes.extend(field.to_le_bytes());
        }
        version.put(&mut bytes);
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
        let label = Label {
            kind,
            lineage: reader.array()?,
            number: reader.u64()?,
            order: reader.u64()?,
            offset: reader.u64()?,
            version: Version::read(&mut reader)?,
        };
        let header = Self { label, len: reader.u64()?, digest: reader.array()? };
        reader.finish()?;
        Ok(header)
    }

    /// Whether this is the file that the caller looks for.
    pub(crate) fn is(&self, kind: Kind, lineage: &Lineage, number: u64) -> bool {
        (self.label.kind, self.label.lineage, self.label.number) == (kind, *lineage, number)
    }
}

/// Reads a header, without the contents.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged or the file has another
/// size than it says.
pub(crate) fn read_header(file: &StoredFile) -> Result<Header> {
    let size = file.len()?;
    if size < HEADER_LEN as u64 {
        return Err(file.damaged(&format!("it ends after {size} bytes, within its header")));
    }
    let mut bytes = [0; HEADER_LEN];
    file.read_at(0, &mut bytes)?;
    let header = Header::decode(&bytes).map_err(|error| file.blame(error))?;
    if header.len.checked_add(HEADER_LEN as u64) != Some(size) {
        let what = format!("it has {size} bytes, which is not what its header says");
        return Err(file.damaged(&what));
    }
    Ok(header)
}

/// Reads header and contents.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if anything is damaged.
pub(crate) fn read(file: &StoredFile) -> Result<(Header, Zeroizing<Vec<u8>>)> {
    let header = read_header(file)?;
    let contents = file.read_part(HEADER_LEN as u64, header.len)?;
    if *blake3::hash(&contents).as_bytes() != header.digest {
        return Err(file.damaged("its contents are damaged"));
    }
    Ok((header, contents))
}

/// Replaces the contents of `file`, and syncs it. Overwrites the old contents instead of only
/// cutting them off.
pub(crate) fn write(file: &StoredFile, label: Label, contents: &[u8]) -> Result<()> {
    let (len, digest) = (contents.len() as u64, *blake3::hash(contents).as_bytes());
    let end = HEADER_LEN as u64 + len;
    file.write_at(0, &Header { label, len, digest }.encode())?;
    file.write_at(HEADER_LEN as u64, contents)?;
    file.zero(end, file.len()?)?;
    file.set_len(end)?;
    file.sync()
}

/// Overwrites a file with zeros, syncs it, and removes it; does nothing if there is none. The zeros
/// are no guarantee on a file system that does not write in place, nor on most flash memory.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be overwritten. Even then
/// the file is removed, if that is possible.
pub(crate) fn erase(folder: &dyn Folder, name: &str) -> Result<()> {
    let Some(file) = files::open(folder, name)? else { return Ok(()) };
    let zeroed = file.len().and_then(|len| file.zero(0, len)).and_then(|()| file.sync());
    files::remove_if_there(folder, name)?;
    zeroed
}
