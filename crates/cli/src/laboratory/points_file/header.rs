//! The header of a points file: its fields, and their encoding as the [parent module](super) lays
//! it out.

use super::PAGE;
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Reason, Result, TableDigest, TableId, TableIdentity, TableShape};
use privet_table::FileKind;

const MAGIC: [u8; 8] = FileKind::POINTS_MAGIC;
const VERSION: u32 = 1;
const FIXED_LEN: usize = 136;
const CHECKSUM_LEN: usize = 32;

/// The longest name of a scheme, in bytes.
pub(crate) const MAX_SCHEME_LEN: usize = 64;

/// The longest encoded parameters of a scheme, in bytes.
pub(crate) const MAX_PARAMETERS_LEN: usize = 4096;

const MAX_PROGRAM_LEN: usize = 64;

const MAX_HEADER_LEN: usize =
    FIXED_LEN + 3 * 2 + MAX_SCHEME_LEN + MAX_PARAMETERS_LEN + MAX_PROGRAM_LEN + CHECKSUM_LEN;

/// Points begin at this offset at the latest, so reading this much of a file is enough for its
/// header.
pub(super) const MOST_BEFORE_POINTS: u64 = points_offset(MAX_HEADER_LEN);

/// The fields of a points file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointsHeader {
    /// The table, in its version, that they were computed from.
    pub(crate) identity: TableIdentity,
    /// The name of the scheme that answers from them: 1 to [`MAX_SCHEME_LEN`] bytes.
    pub(crate) scheme: String,
    /// The scheme's parameters in their canonical encoding, at most [`MAX_PARAMETERS_LEN`] bytes.
    pub(crate) parameters: Vec<u8>,
    /// How many bytes of points there are, at least 1.
    pub(crate) points_len: u64,
    /// The BLAKE3 digest of all points.
    pub(crate) digest: [u8; 32],
    /// The program that wrote the file, with its version.
    pub(crate) created_by: String,
}

impl PointsHeader {
    /// Checks that the encoding can hold all fields.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers.
    pub(super) fn check_encodable(&self) -> Result<()> {
        let lengths = [
            ("the scheme's name", self.scheme.len(), 1..=MAX_SCHEME_LEN),
            ("the scheme's parameters", self.parameters.len(), 0..=MAX_PARAMETERS_LEN),
            ("the program's name", self.created_by.len(), 0..=MAX_PROGRAM_LEN),
        ];
        for (what, len, allowed) in lengths {
            if !allowed.contains(&len) {
                return Err(Error::api_misuse(format!(
                    "{what} would have {len} bytes in a points file, and {} to {} fit",
                    allowed.start(),
                    allowed.end()
                )));
            }
        }
        if self.points_len == 0 || self.points_len.checked_add(MOST_BEFORE_POINTS).is_none() {
            return Err(Error::api_misuse(format!(
                "a file cannot hold {} bytes of points",
                self.points_len
            )));
        }
        Ok(())
    }

    /// Where the points begin.
    pub(super) fn points_offset(&self) -> u64 {
        points_offset(self.encoded_len())
    }

    fn encoded_len(&self) -> usize {
        let strings: usize = self.strings().iter().map(|string| 2 + string.len()).sum();
        FIXED_LEN + strings + CHECKSUM_LEN
    }

    fn strings(&self) -> [&[u8]; 3] {
        [self.scheme.as_bytes(), &self.parameters, self.created_by.as_bytes()]
    }

    /// All bytes before the points.
    pub(super) fn encode(&self) -> Vec<u8> {
        let header_len = self.encoded_len();
        let offset = points_offset(header_len);
        let TableIdentity { id, epoch, digest, shape } = self.identity;
        let mut out = Vec::with_capacity(offset as usize);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(header_len as u32).to_le_bytes());
        out.extend_from_slice(&id.0);
        for number in [epoch.0, shape.records(), shape.record_len()] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&digest.0);
        for number in [offset, self.points_len] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.digest);
        for string in self.strings() {
            out.extend_from_slice(&(string.len() as u16).to_le_bytes());
            out.extend_from_slice(string);
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out.resize(offset as usize, 0);
        out
    }
}

const fn points_offset(header_len: usize) -> u64 {
    (header_len as u64).next_multiple_of(PAGE)
}

/// Reads a header from the `beginning` of a file of `file_len` bytes. The beginning must have at
/// least [`MOST_BEFORE_POINTS`] bytes, or be the whole file. Returns the header and the position of
/// the points, and checks that from there to the end the file has as many bytes as the header says.
pub(super) fn parse(beginning: &[u8], file_len: u64) -> Result<(PointsHeader, u64)> {
    if !beginning.starts_with(&MAGIC) {
        return Err(if beginning.is_empty() || MAGIC.starts_with(beginning) {
            damaged("it ends within its first bytes")
        } else {
            Error::api_misuse("this is no file of points; compute those of the table")
                .because(Reason::PointsNeeded)
        });
    }
    let mut reader = Reader::new("the header", &beginning[MAGIC.len()..]);
    let version = reader.u32().map_err(cut)?;
    // Check this before the other fields: they have other places in other versions.
    if version != VERSION {
        return Err(Error::api_misuse(format!(
            "this file of points has version {version}, and this program reads version {VERSION}; use the program that wrote it, or compute them again"
        ))
        .because(Reason::PointsNeeded));
    }
    let header_len = reader.u32().map_err(cut)? as usize;
    if !(FIXED_LEN + CHECKSUM_LEN..=MAX_HEADER_LEN).contains(&header_len) {
        return Err(damaged("its header has an impossible length"));
    }
    let Some((header_bytes, after)) = beginning.split_at_checked(header_len) else {
        return Err(damaged("it ends within its header"));
    };
    let (fields, checksum) = header_bytes.split_at(header_len - CHECKSUM_LEN);
    if blake3::hash(fields).as_bytes() != checksum {
        return Err(damaged("the checksum of its header does not match"));
    }
    let header = from_fields(fields)?;
    let offset = points_offset(header_len);
    match offset.checked_add(header.points_len) {
        Some(len) if len == file_len => {}
        Some(len) => {
            return Err(damaged(&format!("it should have {len} bytes and has {file_len}")));
        }
        None => return Err(inconsistent()),
    }
    // The file is longer than that, and so is its beginning.
    let padding = after.get(..offset as usize - header_len).unwrap_or_default();
    if padding.iter().any(|byte| *byte != 0) {
        return Err(damaged("there is something between its header and its points"));
    }
    Ok((header, offset))
}

fn from_fields(fields: &[u8]) -> Result<PointsHeader> {
    let mut reader = Reader::new("the header", &fields[MAGIC.len() + 8..]);
    let read = &mut reader;
    let id = TableId(read.array().map_err(cut)?);
    let epoch = Epoch(read.u64().map_err(cut)?);
    let (records, record_len) = (read.u64().map_err(cut)?, read.u64().map_err(cut)?);
    let shape = TableShape::new(records, record_len).map_err(cut)?;
    let digest = TableDigest(read.array().map_err(cut)?);
    let (offset, points_len) = (read.u64().map_err(cut)?, read.u64().map_err(cut)?);
    let header = PointsHeader {
        identity: TableIdentity { id, epoch, digest, shape },
        points_len,
        digest: read.array().map_err(cut)?,
        scheme: read_text(read)?,
        parameters: read_string(read)?.to_vec(),
        created_by: read_text(read)?,
    };
    reader.finish().map_err(cut)?;
    // This program never writes such a header.
    if header.check_encodable().is_err() || offset != header.points_offset() {
        return Err(inconsistent());
    }
    Ok(header)
}

fn read_string<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = reader.u16().map_err(cut)?;
    reader.bytes(len.into()).map_err(cut)
}

fn read_text(reader: &mut Reader<'_>) -> Result<String> {
    let bytes = read_string(reader)?.to_vec();
    let text =
        String::from_utf8(bytes).map_err(|_| damaged("a name in its header is not UTF-8"))?;
    // Names are printed, and Privet writes none with control characters.
    match text.contains(char::is_control) {
        true => Err(damaged("a name in its header has control characters")),
        false => Ok(text),
    }
}

fn inconsistent() -> Error {
    damaged("its header is inconsistent")
}

fn cut(error: Error) -> Error {
    damaged(error.message())
}

/// The error for a file that differs from what was written.
pub(super) fn damaged(how: &str) -> Error {
    Error::corrupted(format!(
        "the file of points is damaged or incomplete: {how}; copy it again from where it is whole, or compute it again"
    ))
    .because(Reason::PointsNeeded)
}
