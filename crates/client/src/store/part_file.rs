//! One downloaded part in one file. Pieces of it can be read without the rest.
//!
//! ```text
//! header   104 bytes   magic "privetpt" ‖ version u32 ‖ chunk_len u32 ‖ kind, its name padded with zeros, 8 ‖
//!                      len u64 ‖ table id 16 ‖ epoch that it was fetched for u64 ‖ BLAKE3 of the whole part 32 ‖ checksum of all that 16
//! chunk    chunk_len bytes (the last one: what is left) ‖ its checksum 16
//! chunk    …
//! ```
//!
//! Numbers are little-endian. A header's checksum is the first half of a BLAKE3 hash. A chunk's
//! checksum is the first half of a BLAKE3 hash that is keyed with the header and begins with the
//! chunk's number. So a chunk at the wrong place fails, and so does one from another file.
//!
//! **While it grows** the file is called `*.partial` and only gets longer, a whole chunk at a time.
//! A crash leaves a prefix: written chunks, then perhaps a torn one, and after a power failure
//! perhaps pages that were never written. Opening it again checks chunk after chunk and cuts the
//! file at the first that fails: no torn chunk is trusted, and at most the tail is fetched again.
//!
//! **Complete** is a matter of the name: once the digest over all bytes is right, the file is
//! synced and renamed. A reader checks the whole file when it opens it. If only the lookup that
//! reads there found the damage, fetching the part again would show the server where that lookup
//! read. The reader checks each chunk once more when it reads it, because files can be damaged
//! later: 32 rows of a hint cost the checksums of three chunks.

use super::files::{self, StoredFile, half};
use crate::disk::Folder;
use crate::state::{PartKey, incomplete, out_of_order};
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableId};
use privet_schemes::offline::{Download, HintSource, StreamConsumer};
use privet_wire::PartKind;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"privetpt";
const VERSION: u32 = 1;
const CHECKSUM_LEN: usize = 16;
const HEADER_LEN: usize = 104;

/// Bytes per chunk. Small enough that reading a few rows checks few other bytes; large enough that
/// checksums add only a quarter of a thousandth.
pub(crate) const CHUNK_LEN: u32 = 64 << 10;

/// Privet writes no larger chunks: this bounds what is allocated on the word of a header.
const MAX_CHUNK_LEN: u32 = 1 << 20;

/// The contents of a header, and how its chunks are checked.
#[derive(Clone, PartialEq, Eq)]
struct Header {
    kind: [u8; 8],
    chunk_len: u32,
    len: u64,
    table: TableId,
    epoch: Epoch,
    digest: [u8; 32],
}

impl Header {
    fn of(part: &PartKey, chunk_len: u32) -> Self {
        let PartKey { table, len, digest, .. } = *part;
        let kind = padded(part.kind);
        Self { kind, chunk_len, len, table: table.id, epoch: table.epoch, digest }
    }

    /// Whether this is a file of `part`, whichever version of the table it was fetched for: equal
    /// length and digest mean equal bytes.
    fn is_of(&self, part: &PartKey) -> bool {
        let (table, kind) = (part.table.id, padded(part.kind));
        (self.table, self.kind, self.len, self.digest) == (table, kind, part.len, part.digest)
    }

    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.chunk_len.to_le_bytes());
        bytes.extend(self.kind);
        bytes.extend(self.len.to_le_bytes());
        bytes.extend(self.table.0);
        bytes.extend(self.epoch.0.to_le_bytes());
        bytes.extend(self.digest);
        let checksum = half(blake3::hash(&bytes));
        bytes.extend(checksum);
        let mut header = [0; HEADER_LEN];
        header.copy_from_slice(&bytes);
        header
    }

    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self> {
        let (fields, checksum) = bytes.split_at(HEADER_LEN - CHECKSUM_LEN);
        let mut reader = Reader::new("the header", fields);
        files::format_version(&mut reader, MAGIC, VERSION..=VERSION)?;
        if half(blake3::hash(fields)) != checksum {
            return Err(Error::corrupted("its header is damaged"));
        }
        let chunk_len = reader.u32()?;
        if chunk_len == 0 || chunk_len > MAX_CHUNK_LEN {
            return Err(Error::corrupted("its header makes no sense"));
        }
        let header = Self {
            chunk_len,
            kind: reader.array()?,
            len: reader.u64()?,
            table: TableId(reader.array()?),
            epoch: Epoch(reader.u64()?),
            digest: reader.array()?,
        };
        reader.finish()?;
        Ok(header)
    }

    /// Reads and checks the header of `file`, and checks that it belongs to `part`.
    fn read(file: &StoredFile, part: &PartKey) -> Result<Self> {
        let header = Self::read_any(file)?;
        if !header.is_of(part) {
            return Err(Error::corrupted("it holds another part than its name says"));
        }
        Ok(header)
    }

    /// Reads and checks the header of `file`, whichever part it belongs to.
    fn read_any(file: &StoredFile) -> Result<Self> {
        let mut bytes = [0; HEADER_LEN];
        let size = file.len()?;
        if size < HEADER_LEN as u64 {
            return Err(Error::corrupted(format!("it ends after {size} bytes, within its header")));
        }
        file.read_at(0, &mut bytes)?;
        Self::decode(&bytes)
    }

    fn chunks(&self) -> u64 {
        self.len.div_ceil(u64::from(self.chunk_len))
    }

    /// Where a chunk begins in the file.
    fn position(&self, chunk: u64) -> u64 {
        HEADER_LEN as u64 + chunk * (u64::from(self.chunk_len) + CHECKSUM_LEN as u64)
    }

    /// Bytes of the part in a chunk.
    fn data_len(&self, chunk: u64) -> usize {
        let start = chunk * u64::from(self.chunk_len);
        (self.len.saturating_sub(start)).min(u64::from(self.chunk_len)) as usize
    }

    fn file_len(&self) -> Option<u64> {
        let checksums = self.chunks().checked_mul(CHECKSUM_LEN as u64)?;
        self.len.checked_add(checksums)?.checked_add(HEADER_LEN as u64)
    }

    fn chunk_key(&self) -> [u8; 32] {
        blake3::derive_key("privet 2026-11 chunks of a stored part", &self.encode())
    }
}

/// A kind's name as it is written in a header.
fn padded(kind: PartKind) -> [u8; 8] {
    let mut padded = [0; 8];
    kind.name().bytes().zip(&mut padded).for_each(|(byte, slot)| *slot = byte);
    padded
}

fn chunk_checksum(key: &[u8; 32], chunk: u64, data: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&chunk.to_le_bytes());
    hasher.update(data);
    half(hasher.finalize())
}

/// A complete part. Any number of processes may read it at once.
pub(crate) struct CompletePart {
    file: StoredFile,
    header: Header,
    key: [u8; 32],
}

impl CompletePart {
    fn new(file: StoredFile, header: Header) -> Self {
        let key = header.chunk_key();
        Self { file, header, key }
    }

    /// Opens the complete file called `name`; `None` if there is none. Reads all of it and checks
    /// every chunk, so that the result does not depend on what will be looked up. The duration of
    /// later reads does not depend on it either, as long as the system keeps the file in memory.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged or not a file of
    /// `part`.
    pub(crate) fn open(folder: &dyn Folder, name: &str, part: &PartKey) -> Result<Option<Self>> {
        let Some(file) = files::open_to_read(folder, name)? else { return Ok(None) };
        let header = Header::read(&file, part).map_err(|error| file.blame(error))?;
        let size = file.len()?;
        if Some(size) != header.file_len() {
            let what = format!("it has {size} bytes, which is not the size of a complete file");
            return Err(file.damaged(&what));
        }
        let opened = Self::new(file, header);
        opened.check_chunks(|_| ())?;
        Ok(Some(opened))
    }

    /// Reads the complete file called `name`, whichever part it is, and checks every byte of it and
    /// the digest over all. Leaves the file where it is.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if anything is damaged.
    pub(crate) fn verify(folder: &dyn Folder, name: &str) -> Result<()> {
        let missing = || files::blame(&folder.path(name), Error::corrupted("it is missing"));
        let file = files::open_to_read(folder, name)?.ok_or_else(missing)?;
        let header = Header::read_any(&file).map_err(|error| file.blame(error))?;
        if Some(file.len()?) != header.file_len() {
            return Err(file.damaged("its size is not that of a complete file"));
        }
        let (part, mut hasher) = (Self::new(file, header), blake3::Hasher::new());
        part.check_chunks(|data| {
            hasher.update(data);
        })?;
        if *hasher.finalize().as_bytes() != part.header.digest {
            return Err(part.file.damaged("the digest over all of it does not match"));
        }
        Ok(())
    }

    /// Reads and checks every chunk, and hands it to `take`.
    fn check_chunks(&self, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut buffer = Vec::new();
        for chunk in 0..self.header.chunks() {
            let data = self.checked_chunk(chunk, &mut buffer)?;
            take(data.ok_or_else(|| self.file.damaged("it is damaged"))?);
        }
        Ok(())
    }

    /// Reads chunk `chunk` into `buffer`; `None` if its checksum is wrong.
    fn checked_chunk<'b>(&self, chunk: u64, buffer: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>> {
        let data_len = self.header.data_len(chunk);
        buffer.resize(data_len + CHECKSUM_LEN, 0);
        self.file.read_at(self.header.position(chunk), buffer)?;
        let (data, checksum) = buffer.split_at(data_len);
        Ok((chunk_checksum(&self.key, chunk, data) == checksum).then_some(data))
    }

    /// Reads chunk `chunk` into `buffer` and checks it. If the checksum is wrong, the file keeps
    /// its name. The next session finds the damage when it opens the file, whichever chunk was read
    /// here, so nothing follows from this lookup.
    fn read_chunk<'b>(&self, chunk: u64, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        self.checked_chunk(chunk, buffer)?.ok_or_else(|| {
            let what = "it was damaged after it was opened; it will be fetched again next time";
            self.file.damaged(what)
        })
    }
}

impl HintSource for CompletePart {
    fn len(&self) -> u64 {
        self.header.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.header.len);
        if end.is_none() {
            return Err(self.file.damaged("it is shorter than its parameters prescribe"));
        }
        let chunk_len = u64::from(self.header.chunk_len);
        let mut buffer = Vec::new();
        let (mut chunk, mut within) = (offset / chunk_len, (offset % chunk_len) as usize);
        let mut rest = out;
        while !rest.is_empty() {
            let data = self.read_chunk(chunk, &mut buffer)?;
            let count = rest.len().min(data.len() - within);
            let (head, tail) = rest.split_at_mut(count);
            head.copy_from_slice(&data[within..within + count]);
            rest = tail;
            (chunk, within) = (chunk + 1, 0);
        }
        Ok(())
    }
}

/// A part that is still growing. Its holder also holds the table's lock.
pub(crate) struct GrowingPart {
    folder: Arc<dyn Folder>,
    name: String,
    file: StoredFile,
    header: Header,
    key: [u8; 32],
    /// Chunks in the file.
    written: u64,
    /// Bytes that do not yet fill a chunk.
    tail: Vec<u8>,
}

impl GrowingPart {
    /// Opens the growing file called `name`, or begins one. Returns a download that has absorbed
    /// the file's bytes, and the number of bytes that were dropped because they could not be
    /// trusted.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be read or
    /// written.
    pub(crate) fn open(
        folder: Arc<dyn Folder>,
        name: &str,
        part: &PartKey,
        chunk_len: u32,
    ) -> Result<(Self, Download, u64)> {
        let file = files::open_or_create(&*folder, name)?;
        let found = file.len()?;
        let fresh = Header::of(part, chunk_len);
        // A file that ends within its header, or has another chunk length, holds nothing worth
        // keeping.
        let header = Header::read(&file, part).ok().filter(|header| header.chunk_len == chunk_len);
        let is_fresh = header.is_none();
        let header = header.unwrap_or(fresh);
        let key = header.chunk_key();
        let (name, tail) = (name.to_owned(), Vec::new());
        let mut growing = Self { folder, name, file, header, key, written: 0, tail };
        let mut download = Download::new(part.len, part.digest);
        if is_fresh {
            growing.file.set_len(0)?;
            growing.file.write_at(0, &growing.header.encode())?;
            return Ok((growing, download, found));
        }
        growing.absorb_written(found, &mut download)?;
        let kept = growing.header.position(growing.written).min(found);
        let kept = if growing.written == growing.header.chunks() { growing.end() } else { kept };
        growing.file.set_len(kept)?;
        Ok((growing, download, found - kept))
    }

    /// Replays chunks into `download`, up to the first whose checksum is wrong.
    fn absorb_written(&mut self, found: u64, download: &mut Download) -> Result<()> {
        let mut buffer = Vec::new();
        while self.written < self.header.chunks() {
            let (start, data_len) =
                (self.header.position(self.written), self.header.data_len(self.written));
            if start + (data_len + CHECKSUM_LEN) as u64 > found {
                break;
            }
            buffer.resize(data_len + CHECKSUM_LEN, 0);
            self.file.read_at(start, &mut buffer)?;
            let (data, checksum) = buffer.split_at(data_len);
            if chunk_checksum(&self.key, self.written, data) != checksum {
                break;
            }
            download.absorb(download.next_offset(), data)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Bytes of the part that were taken so far, in the file or in the tail.
    fn taken(&self) -> u64 {
        let in_file = self.written * u64::from(self.header.chunk_len);
        in_file.min(self.header.len) + self.tail.len() as u64
    }

    /// Where the next byte of the file goes.
    fn end(&self) -> u64 {
        if self.written == self.header.chunks() {
            self.header.len + self.written * CHECKSUM_LEN as u64 + HEADER_LEN as u64
        } else {
            self.header.position(self.written)
        }
    }

    /// Takes the next bytes, and writes those that fill chunks.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be written.
    pub(crate) fn append(&mut self, offset: u64, mut bytes: &[u8]) -> Result<()> {
        if offset != self.taken() || bytes.len() as u64 > self.header.len - self.taken() {
            return Err(out_of_order(offset, self.taken()));
        }
        while !bytes.is_empty() {
            let due = self.header.data_len(self.written);
            let (now, later) = bytes.split_at(bytes.len().min(due - self.tail.len()));
            self.tail.extend_from_slice(now);
            bytes = later;
            if self.tail.len() == due {
                let checksum = chunk_checksum(&self.key, self.written, &self.tail);
                self.tail.extend(checksum);
                self.file.write_at(self.end(), &self.tail)?;
                self.written += 1;
                self.tail.clear();
            }
        }
        Ok(())
    }

    /// Syncs the file and gives it its final name `name`. Durable on return.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if bytes are missing,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the disk fails.
    pub(crate) fn complete(self, name: &str) -> Result<CompletePart> {
        if self.taken() != self.header.len {
            return Err(incomplete(self.taken(), self.header.len));
        }
        self.file.sync()?;
        files::rename(&*self.folder, &self.name, name)?;
        Ok(CompletePart::new(self.file.renamed(self.folder.path(name)), self.header))
    }
}
