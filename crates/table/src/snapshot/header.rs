//! The header of a snapshot file: its fields, and their encoding as the [parent module](super) lays
//! it out.

use super::PAGE;
use super::mark;
use crate::digest::DigestParts;
use privet_core::codec::Reader;
use privet_core::{Error, Reason, Result, TableDigest, TableId, TableIdentity, TableShape};
use std::ops::Range;

pub(crate) const MAGIC: [u8; 8] = *b"\x89PRVT\r\n\x1a";
/// The version of a file without a log of updates.
const VERSION: u32 = 1;
/// The version of a file to which a log of updates belongs. Programs that do not know of marks
/// refuse it.
const VERSION_WITH_LOG: u32 = 2;
const FIXED_LEN: usize = 180;
pub(super) const CHECKSUM_LEN: usize = 32;

/// The longest header; all column names must fit into it.
const MAX_HEADER_LEN: u32 = 1 << 20;

/// The length of a string in a header fits into two bytes.
pub(super) const MAX_STRING_LEN: usize = u16::MAX as usize;

/// What the values of a table are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueForm {
    /// Compact JSON objects of all columns but the key, in the order of the input.
    JsonRest,
    /// Compact JSON objects of these columns, in this order.
    JsonColumns(Vec<String>),
    /// The bytes of this column.
    Raw(String),
}

impl ValueForm {
    fn code(&self) -> u8 {
        match self {
            ValueForm::JsonRest => 0,
            ValueForm::JsonColumns(_) => 1,
            ValueForm::Raw(_) => 2,
        }
    }

    /// The columns that it names.
    pub fn columns(&self) -> &[String] {
        match self {
            ValueForm::JsonRest => &[],
            ValueForm::JsonColumns(columns) => columns,
            ValueForm::Raw(column) => std::slice::from_ref(column),
        }
    }
}

/// The fields of a snapshot file's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The table's id, version, contents and shape.
    pub identity: TableIdentity,
    /// The digests from which the table's digest is made.
    pub parts: DigestParts,
    /// The column that keys came from, for a table by key; for a table of ranges, that of their
    /// first points.
    pub key_column: Option<String>,
    /// The column that the last points of ranges came from, if that is another.
    pub until_column: Option<String>,
    /// What the values are.
    pub value_form: ValueForm,
    /// The program that wrote the file, with its version.
    pub created_by: String,
    /// Whether a log of updates belongs to the file: then the file has a
    /// [`Mark`](super::Mark) of how far the log reaches.
    pub has_log: bool,
}

impl SnapshotHeader {
    /// The header's encoded length in bytes.
    pub(super) fn encoded_len(&self) -> usize {
        let strings: usize = self.strings().map(|string| 2 + string.len()).sum();
        FIXED_LEN + strings + CHECKSUM_LEN
    }

    fn strings(&self) -> impl Iterator<Item = &String> {
        let keys = self.key_column.iter().chain(&self.until_column);
        std::iter::once(&self.created_by).chain(keys).chain(self.value_form.columns())
    }

    /// Checks that the encoding can hold all fields.
    pub(super) fn check_encodable(&self) -> Result<()> {
        if let Some(long) = self.strings().find(|string| string.len() > MAX_STRING_LEN) {
            return Err(Error::api_misuse(format!(
                "a column name of {} bytes is too long: the limit is {MAX_STRING_LEN}",
                long.len()
            )));
        }
        let columns = self.value_form.columns().len();
        if columns > usize::from(u16::MAX) || self.encoded_len() > MAX_HEADER_LEN as usize {
            return Err(Error::api_misuse(format!(
                "{columns} value columns are too many: their names do not fit into a header of {MAX_HEADER_LEN} bytes"
            )));
        }
        Ok(())
    }

    /// The header as bytes, for a layout section of `layout_len` bytes.
    pub(super) fn encode(&self, layout_len: u64) -> Vec<u8> {
        let header_len = self.encoded_len();
        let TableIdentity { id, epoch, digest, shape } = self.identity;
        let mut out = Vec::with_capacity(header_len);
        out.extend_from_slice(&MAGIC);
        let version = if self.has_log { VERSION_WITH_LOG } else { VERSION };
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&(header_len as u32).to_le_bytes());
        out.extend_from_slice(&id.0);
        let before = header_len as u64 + layout_len;
        let offsets = [header_len as u64, layout_len, records_offset(before, self.has_log)];
        for number in [epoch.0, shape.records(), shape.record_len()].into_iter().chain(offsets) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for digest in [self.parts.layout, self.parts.records, digest.0] {
            out.extend_from_slice(&digest);
        }
        out.push(self.value_form.code());
        out.push(self.key_column.iter().chain(&self.until_column).count() as u8);
        out.extend_from_slice(&(self.value_form.columns().len() as u16).to_le_bytes());
        for string in self.strings() {
            out.extend_from_slice(&(string.len() as u16).to_le_bytes());
            out.extend_from_slice(string.as_bytes());
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }
}

/// Where records begin if everything before them, but the marks, takes `before` bytes.
pub(super) fn records_offset(before: u64, has_log: bool) -> u64 {
    before.next_multiple_of(PAGE) + if has_log { mark::BYTES } else { 0 }
}

/// A header, and the positions of the sections that it names; both sections lie within the file.
pub(super) struct ParsedHeader {
    pub(super) header: SnapshotHeader,
    pub(super) layout: Range<usize>,
    pub(super) records: Range<usize>,
    /// The header's checksum, to which marks are tied.
    pub(super) checksum: [u8; CHECKSUM_LEN],
}

impl ParsedHeader {
    /// Reads the header at the start of `file`, which is a whole file.
    pub(super) fn parse(file: &[u8]) -> Result<Self> {
        if !file.starts_with(&MAGIC) {
            return Err(if file.is_empty() || MAGIC.starts_with(file) {
                damaged("it ends within its first bytes")
            } else {
                Error::api_misuse("this is no Privet table file; build one")
                    .because(Reason::NoTableFile)
            });
        }
        let mut reader = Reader::new("the header", &file[MAGIC.len()..]);
        let (version, header_len) = (reader.u32().map_err(cut)?, reader.u32().map_err(cut)?);
        if version != VERSION && version != VERSION_WITH_LOG {
            return Err(Error::api_misuse(format!(
                "this table file has version {version}, and this program reads versions \
                 {VERSION} and {VERSION_WITH_LOG}; build it again, or use the program that wrote it"
            )));
        }
        let least = (FIXED_LEN + CHECKSUM_LEN) as u32;
        if header_len < least || header_len > MAX_HEADER_LEN {
            return Err(damaged("its header has an impossible length"));
        }
        let Some(header_bytes) = file.get(..header_len as usize) else {
            return Err(damaged("it ends within its header"));
        };
        let (fields, read) = header_bytes.split_at(header_bytes.len() - CHECKSUM_LEN);
        let checksum = *blake3::hash(fields).as_bytes();
        if checksum != read {
            return Err(damaged("the checksum of its header does not match"));
        }
        Self::from_fields(fields, checksum, version == VERSION_WITH_LOG, file.len() as u64)
    }

    /// Reads fields whose checksum is right: if they are wrong, the writer was faulty.
    fn from_fields(
        fields: &[u8],
        checksum: [u8; CHECKSUM_LEN],
        has_log: bool,
        file_len: u64,
    ) -> Result<Self> {
        let header_len = (fields.len() + CHECKSUM_LEN) as u64;
        let mut reader = Reader::new("the header", &fields[16..]);
        let read = &mut reader;
        let id = TableId(read.array().map_err(cut)?);
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = read.u64().map_err(cut)?;
        }
        let [epoch, records, record_len, layout_offset, layout_len, records_offset] = numbers;
        let shape = TableShape::new(records, record_len).map_err(cut)?;
        let parts =
            DigestParts { layout: read.array().map_err(cut)?, records: read.array().map_err(cut)? };
        let digest = TableDigest(read.array().map_err(cut)?);
        if parts.combine(shape) != digest {
            return Err(damaged("its digests contradict each other"));
        }
        let (form, keys, columns) =
            (read.u8().map_err(cut)?, read.u8().map_err(cut)?, read.u16().map_err(cut)?);
        let created_by = read_string(read)?;
        let (key_column, until_column) = match keys {
            0 => (None, None),
            1 => (Some(read_string(read)?), None),
            2 => (Some(read_string(read)?), Some(read_string(read)?)),
            _ => return Err(damaged("its header is inconsistent")),
        };
        let mut names = (0..columns).map(|_| read_string(read)).collect::<Result<Vec<_>>>()?;
        let value_form = match (form, names.len()) {
            (0, 0) => ValueForm::JsonRest,
            (1, _) => ValueForm::JsonColumns(names),
            (2, 1) => ValueForm::Raw(names.remove(0)),
            _ => return Err(damaged("its header is inconsistent")),
        };
        reader.finish().map_err(cut)?;

        let layout_end = layout_offset.checked_add(layout_len);
        let fits = layout_offset == header_len
            && layout_end.is_some_and(|end| {
                end <= file_len && self::records_offset(end, has_log) == records_offset
            });
        let expected_len = records_offset.checked_add(shape.bytes());
        if !fits || expected_len != Some(file_len) {
            return Err(damaged(&match expected_len {
                Some(expected) => format!("it should have {expected} bytes and has {file_len}"),
                None => "its header is inconsistent".to_owned(),
            }));
        }
        let identity = TableIdentity { id, epoch: privet_core::Epoch(epoch), digest, shape };
        Ok(Self {
            header: SnapshotHeader {
                identity,
                parts,
                key_column,
                until_column,
                value_form,
                created_by,
                has_log,
            },
            layout: layout_offset as usize..(layout_offset + layout_len) as usize,
            records: records_offset as usize..file_len as usize,
            checksum,
        })
    }
}

fn read_string(reader: &mut Reader<'_>) -> Result<String> {
    let len = reader.u16().map_err(cut)?;
    let bytes = reader.bytes(len.into()).map_err(cut)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| damaged("a name in its header is not UTF-8"))
}

fn cut(error: Error) -> Error {
    damaged(error.message())
}

/// The error for a file that differs from what was written.
pub(super) fn damaged(how: &str) -> Error {
    Error::corrupted(format!(
        "the table file is damaged or incomplete: {how}; build it again, or copy it again from where it is whole"
    ))
}
