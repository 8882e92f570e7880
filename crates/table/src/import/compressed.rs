//! Compressed input: recognised by its first bytes, decompressed as it is read.
//!
//! gzip files of several members and zstd files of several frames are read to their end. Zeros
//! after the last member of a gzip file are padding, as tapes and some writers leave it. A decoder
//! needs little memory, and refuses zstd frames that would need more than 128 MiB. What is
//! recognised and not read is refused with a word on how to make rows of it.

use super::cannot_read;
use super::unreadable::{Unreadable, unread};
use flate2::bufread::GzDecoder;
use privet_core::{Error, Result};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Chain, Cursor, Read, Seek as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// This many bytes are enough to recognise everything here: the name of the first file of an
/// archive, and what that file says that it is.
const LONGEST_MAGIC: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of data that begins with these bytes; `None` if it is not compressed.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is of a kind that is not read.
    fn of(first: &[u8]) -> Result<Option<Self>> {
        match first {
            [0x1f, 0x8b, ..] => Ok(Some(Compression::Gzip)),
            // A frame, or a skippable frame, with which some writers begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Ok(Some(Compression::Zstd))
            }
            _ => match unread_kind(first) {
                Some((what, instead)) => Err(Error::api_misuse(unread(what, instead))),
                None => Ok(None),
            },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// What data with this beginning is, if it is of a kind that is not read, and what to do.
fn unread_kind(first: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_workbook = |first: &[u8]| {
        let has = |name: &[u8]| first.windows(name.len()).any(|part| part == name);
        has(b"[Content_Types].xml") || has(b"_rels/") || has(b"xl/") || has(b"opendocument")
    };
    match first {
        [b'P', b'K', 3, 4, ..] if is_workbook(first) => {
            Some(("a spreadsheet's workbook", "save the sheet as CSV UTF-8"))
        }
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => {
            Some(("an old spreadsheet's workbook", "save the sheet as CSV UTF-8"))
        }
        [b'P', b'K', 3 | 5, 4 | 6, ..] => {
            Some(("a ZIP archive", "unpack it first (unzip), and name the files in it"))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            Some(("compressed with xz", "unpack it first (xz -dk)"))
        }
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y', ..] => {
            Some(("compressed with bzip2", "unpack it first (bzip2 -dk)"))
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(("compressed with lz4", "unpack it first (lz4 -dk)")),
        [0x1f, 0x9d, ..] => Some(("compressed with compress", "unpack it first (uncompress)")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => {
            Some(("a 7z archive", "unpack it first (7z x), and name the files in it"))
        }
        _ if first.starts_with(b"SQLite format 3\0") => {
            Some(("a SQLite database", "write the table as CSV first (sqlite3 -header -csv)"))
        }
        _ if first.starts_with(b"ARROW1\0\0") => {
            Some(("an Arrow or Feather file", "write it as Parquet"))
        }
        [b'O', b'b', b'j', 1, ..] => Some(("an Avro file", "write it as Parquet")),
        [b'O', b'R', b'C', 0x08..=0x0a, ..] => Some(("an ORC file", "write it as Parquet")),
        _ => None,
    }
}

/// Whether a file is compressed. Nothing of it may have been read before.
pub(super) fn is_compressed(file: &mut File) -> Result<bool> {
    let first = first_bytes(file, LONGEST_MAGIC).map_err(cannot_read)?;
    file.rewind().map_err(cannot_read)?;
    Ok(Compression::of(&first)?.is_some())
}

/// What `input` holds, decompressed if it is compressed.
pub(super) fn decompressed<R: Read>(mut input: R) -> Result<Decompressed<R>> {
    let first = first_bytes(&mut input, LONGEST_MAGIC).map_err(cannot_read)?;
    let compression = Compression::of(&first)?;
    let failed = Arc::new(AtomicBool::new(false));
    let whole = Watched { input: Cursor::new(first).chain(input), failed: Arc::clone(&failed) };
    let decoder = match compression {
        None => Decoder::None(whole),
        Some(Compression::Gzip) => Decoder::Gzip(Members::new(whole)),
        Some(Compression::Zstd) => {
            Decoder::Zstd(Box::new(zstd::Decoder::new(whole).map_err(cannot_read)?))
        }
    };
    Ok(Decompressed { decoder, compression, failed })
}

/// The first `most` bytes of an input, or all bytes of a shorter one.
pub(super) fn first_bytes(input: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(most);
    input.by_ref().take(most as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// Notes whether reading the input failed. If it did not, an error of the decoder is about the
/// data.
struct Watched<R> {
    input: Chain<Cursor<Vec<u8>>, R>,
    failed: Arc<AtomicBool>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer);
        self.failed.store(read.is_err(), Ordering::Relaxed);
        read
    }
}

enum Decoder<R: Read> {
    None(Watched<R>),
    Gzip(Members<Watched<R>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Watched<R>>>>),
}

/// The members of a gzip file, one after the other.
struct Members<R> {
    /// The member that is read, and what follows it; `None` after the last.
    member: Option<GzDecoder<BufReader<R>>>,
}

impl<R: Read> Members<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(BufReader::new(input))) }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.member.take() else { break };
            let mut rest = member.into_inner();
            loop {
                let available = rest.fill_buf()?;
                let zeros = available.iter().take_while(|byte| **byte == 0).count();
                match available.get(zeros) {
                    Some(_) => {
                        rest.consume(zeros);
                        self.member = Some(GzDecoder::new(rest));
                        break;
                    }
                    None if available.is_empty() => break,
                    None => rest.consume(zeros),
                }
            }
        }
        Ok(0)
    }
}

pub(super) struct Decompressed<R: Read> {
    decoder: Decoder<R>,
    compression: Option<Compression>,
    failed: Arc<AtomicBool>,
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.decoder {
            Decoder::None(input) => input.read(buffer),
            Decoder::Gzip(members) => members.read(buffer),
            Decoder::Zstd(decoder) => decoder.read(buffer),
        };
        let Some(compression) = self.compression else { return read };
        read.map_err(|cause| match self.failed.load(Ordering::Relaxed) {
            true => cause,
            false => Unreadable::error(damaged(compression.name(), &cause)),
        })
    }
}

/// What is wrong with compressed data.
fn damaged(name: &str, cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::UnexpectedEof => format!(
            "it is compressed with {name}, and ends too early: it was cut off; copy or write it again"
        ),
        _ => format!(
            "it is compressed with {name}, and cannot be decompressed ({cause}): it is damaged; copy or write it again"
        ),
    }
}
