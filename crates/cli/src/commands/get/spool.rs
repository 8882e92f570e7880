//! A queue between threads that takes what is put in, however slowly it is taken out.
//!
//! It holds some MiB in memory and the rest in a temporary file, which shrinks to nothing whenever
//! all of it was read. The file has no name (on Unix), is for its owner alone, and is gone when the
//! process ends. It lies where temporary files lie: in `$TMPDIR`, or else in `/tmp`. What stands in
//! it is encrypted with a key that only this process has. So nobody can read it in the blocks of
//! the disk that it had.

use privet_core::Result;
use privet_core::randomness::SecretRng;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes wait in memory before further ones go to the file.
pub(super) const IN_MEMORY: usize = 8 << 20;

/// Pieces of bytes, taken out in the order in which they were put in.
pub(super) struct Spool {
    held: Mutex<SpoolContents>,
    changed: Condvar,
    in_memory: usize,
}

#[derive(Default)]
struct SpoolContents {
    memory: VecDeque<Vec<u8>>,
    memory_len: usize,
    /// Its pieces come after those in memory.
    file: Option<SpillFile>,
    is_over: bool,
    is_forgotten: bool,
}

impl Spool {
    /// A queue that holds up to `in_memory` bytes in memory.
    pub(super) fn new(in_memory: usize) -> Self {
        Self { held: Mutex::default(), changed: Condvar::new(), in_memory }
    }

    /// Puts a piece in. Waits for a disk, but never for whoever takes pieces out.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be written. Then
    /// nothing may be put in any more.
    pub(super) fn put(&self, piece: Vec<u8>) -> Result<()> {
        let mut held = self.lock();
        if held.is_forgotten {
            return Ok(());
        }
        let fits = held.memory_len + piece.len() <= self.in_memory;
        if fits && held.file.as_ref().is_none_or(SpillFile::is_empty) {
            held.memory_len += piece.len();
            held.memory.push_back(piece);
        } else {
            let file = match &mut held.file {
                Some(file) => file,
                none => none.insert(SpillFile::new()?),
            };
            file.put(&piece).map_err(unkept)?;
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Says that nothing more will be put in.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_one();
    }

    /// Drops what is inside, and everything that will be put in.
    pub(super) fn forget(&self) {
        *self.lock() = SpoolContents { is_forgotten: true, ..SpoolContents::default() };
    }

    /// Takes the next piece out, and waits for it. `None`: it was the last.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be read.
    pub(super) fn take(&self) -> Result<Option<Vec<u8>>> {
        let mut held = self.lock();
        loop {
            if let Some(piece) = held.memory.pop_front() {
                held.memory_len -= piece.len();
                return Ok(Some(piece));
            }
            if let Some(file) = held.file.as_mut().filter(|file| !file.is_empty()) {
                return file.take().map(Some).map_err(unkept);
            }
            if held.is_over {
                return Ok(None);
            }
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether everything that was put in was taken out.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let held = self.lock();
        held.memory.is_empty() && held.file.as_ref().is_none_or(SpillFile::is_empty)
    }

    fn lock(&self) -> MutexGuard<'_, SpoolContents> {
        // A panic between two changes leaves a queue that is short of a piece, and no more.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unkept(error: std::io::Error) -> privet_core::Error {
    privet_core::Error::unavailable(
        "what was found is lost in part: its reader is slow, and the temporary file in which the rest waited failed; give temporary files more room, or another place (TMPDIR)",
    )
    .caused_by(error)
}

/// Pieces in a file, each behind its length.
struct SpillFile {
    file: File,
    /// Two copies of one stream of pseudorandom bytes. What is written is added to the next bytes
    /// of the first, what is read to those of the second. No byte of the stream is used for two.
    hiding: blake3::OutputReader,
    showing: blake3::OutputReader,
    written: u64,
    read: u64,
}

impl SpillFile {
    fn new() -> Result<Self> {
        let mut key = [0; 32];
        SecretRng::from_os()?.fill(&mut key);
        let stream = blake3::Hasher::new_keyed(&key).finalize_xof();
        let file = tempfile::tempfile().map_err(unkept)?;
        // It has no name, but Linux shows it among the open files of this process.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .map_err(unkept)?;
        Ok(Self { file, hiding: stream.clone(), showing: stream, written: 0, read: 0 })
    }

    fn is_empty(&self) -> bool {
        self.read == self.written
    }

    fn put(&mut self, piece: &[u8]) -> std::io::Result<()> {
        let mut bytes = (piece.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(piece);
        add(&mut self.hiding, &mut bytes);
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn take(&mut self) -> std::io::Result<Vec<u8>> {
        self.file.seek(SeekFrom::Start(self.read))?;
        let mut len = [0; 8];
        self.read_next(&mut len)?;
        let mut piece = vec![0; usize::try_from(u64::from_le_bytes(len)).unwrap_or_default()];
        self.read_next(&mut piece)?;
        if self.is_empty() {
            self.file.set_len(0)?;
            (self.read, self.written) = (0, 0);
        }
        Ok(piece)
    }

    fn read_next(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact(bytes)?;
        self.read += bytes.len() as u64;
        add(&mut self.showing, bytes);
        Ok(())
    }
}

/// Adds the next bytes of `stream` to `bytes`, bit by bit.
fn add(stream: &mut blake3::OutputReader, bytes: &mut [u8]) {
    let mut pad = [0; 4096];
    for bytes in bytes.chunks_mut(pad.len()) {
        let pad = &mut pad[..bytes.len()];
        stream.fill(pad);
        bytes.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= *pad);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes in the file, if there is one.
    fn on_disk(spool: &Spool) -> Vec<u8> {
        let mut held = spool.lock();
        let mut bytes = Vec::new();
        if let Some(file) = &mut held.file {
            file.file.rewind().unwrap();
            file.file.read_to_end(&mut bytes).unwrap();
        }
        bytes
    }

    proptest! {
        #[test]
        fn pieces_come_out_in_their_order_wherever_they_waited(
            steps in proptest::collection::vec(proptest::option::of(0..40usize), 0..100),
        ) {
            let spool = Spool::new(64);
            let mut inside = VecDeque::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(len) => {
                        let piece = vec![number as u8; len];
                        spool.put(piece.clone()).unwrap();
                        inside.push_back(piece);
                    }
                    None if inside.is_empty() => {}
                    None => prop_assert_eq!(spool.take().unwrap(), inside.pop_front()),
                }
            }
            spool.end();
            for piece in inside {
                prop_assert_eq!(spool.take().unwrap(), Some(piece));
            }
            prop_assert_eq!(spool.take().unwrap(), None);
            prop_assert_eq!(on_disk(&spool), b"");
        }
    }

    #[test]
    fn nothing_can_be_read_on_the_disk_and_nothing_is_hidden_twice_alike() {
        let spool = Spool::new(0);
        let piece = vec![b'v'; 10_000];
        for _ in 0..2 {
            spool.put(piece.clone()).unwrap();
            spool.put(piece.clone()).unwrap();
            let disk = on_disk(&spool);
            assert_eq!(disk.len(), 2 * (8 + 10_000));
            assert!(disk.windows(4).all(|bytes| bytes != b"vvvv"));
            let (first, second) = disk.split_at(disk.len() / 2);
            assert!(first.iter().zip(second).filter(|(one, other)| one == other).count() < 200);
            assert_eq!(spool.take().unwrap().unwrap(), piece);
            assert_eq!(spool.take().unwrap().unwrap(), piece);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_alone_and_has_no_name() {
        use std::os::unix::fs::MetadataExt as _;
        let file = SpillFile::new().unwrap().file.metadata().unwrap();
        assert_eq!((file.mode() & 0o777, file.nlink()), (0o600, 0));
    }

    #[test]
    fn a_file_that_fails_is_told() {
        let spool = Spool::new(0);
        spool.put(b"one".to_vec()).unwrap();
        // As a full disk would have it.
        let read_only = File::open(std::env::current_exe().unwrap()).unwrap();
        spool.lock().file.as_mut().unwrap().file = read_only;
        let error = spool.put(b"two".to_vec()).unwrap_err();
        assert!(error.message().contains("temporary files"), "{error}");
    }
}
