//! Compressed input: recognised by its first bytes, decompressed as it is read.
//!
//! gzip files of several members and zstd files of several frames are read to their end. A decoder
//! needs little memory, and refuses zstd frames that would need more than 128 MiB.

use super::cannot_read;
use flate2::read::MultiGzDecoder;
use privet_core::{Error, Result};
use std::cell::Cell;
use std::error::Error as StdError;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _};
use std::rc::Rc;

/// This many bytes are enough to recognise every known compression.
const LONGEST_MAGIC: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of data that begins with these bytes; `None` if it is not compressed.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is compressed in a way that cannot
    /// be read.
    fn of(first: &[u8]) -> Result<Option<Self>> {
        let unpack = |what: &str| {
            Err(Error::api_misuse(format!("this is {what}, which is not read; unpack it first")))
        };
        match first {
            [0x1f, 0x8b, ..] => Ok(Some(Compression::Gzip)),
            // A frame, or a skippable frame, with which some writers begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Ok(Some(Compression::Zstd))
            }
            [b'P', b'K', 3, 4, ..] => unpack("a ZIP archive, or a spreadsheet"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => unpack("compressed with xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y'] => {
                unpack("compressed with bzip2")
            }
            _ => Ok(None),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// Whether a file is compressed. Nothing of it may have been read before.
pub(super) fn is_compressed(file: &mut File) -> Result<bool> {
    let first = first_bytes(file).map_err(cannot_read)?;
    file.rewind().map_err(cannot_read)?;
    Ok(Compression::of(&first)?.is_some())
}

/// What `input` holds, decompressed if it is compressed.
pub(super) fn decompressed(mut input: impl Read + 'static) -> Result<Box<dyn Read>> {
    let first = first_bytes(&mut input).map_err(cannot_read)?;
    let compression = Compression::of(&first)?;
    let whole = Cursor::new(first).chain(input);
    let Some(compression) = compression else { return Ok(Box::new(whole)) };
    let failed = Rc::new(Cell::new(false));
    let watched = Watched { input: whole, failed: Rc::clone(&failed) };
    let decoder: Box<dyn Read> = match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(watched)),
        Compression::Zstd => Box::new(zstd::Decoder::new(watched).map_err(cannot_read)?),
    };
    Ok(Box::new(Decompressed { decoder, compression, failed }))
}

/// The first `LONGEST_MAGIC` bytes of an input, or all bytes of a shorter one.
fn first_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(LONGEST_MAGIC);
    input.by_ref().take(LONGEST_MAGIC as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// Notes whether reading the input failed. If it did not, an error of the decoder is about the
/// data.
struct Watched<R> {
    input: R,
    failed: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer);
        self.failed.set(read.is_err());
        read
    }
}

struct Decompressed {
    decoder: Box<dyn Read>,
    compression: Compression,
    failed: Rc<Cell<bool>>,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|cause| match self.failed.get() {
            true => cause,
            false => io::Error::new(
                io::ErrorKind::InvalidData,
                Damage { compression: self.compression, cause },
            ),
        })
    }
}

/// What is wrong with compressed data.
#[derive(Debug)]
struct Damage {
    compression: Compression,
    cause: io::Error,
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.compression.name();
        match self.cause.kind() {
            io::ErrorKind::UnexpectedEof => write!(
                formatter,
                "it is compressed with {name}, and ends too early: it was cut off; copy or write it again"
            ),
            _ => write!(
                formatter,
                "it is compressed with {name}, and cannot be decompressed ({}): it is damaged; copy or write it again",
                self.cause
            ),
        }
    }
}

impl StdError for Damage {}

/// What is wrong with compressed data, if that is why reading failed.
pub(super) fn damage(error: &io::Error) -> Option<String> {
    Some(error.get_ref()?.downcast_ref::<Damage>()?.to_string())
}
