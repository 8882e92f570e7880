//! Reads and writes at a position in a file, by several threads at once.

use std::fs::File;
use std::io;

/// Reads all of `into`, from byte `offset` of the file on.
///
/// # Errors
/// The system's error; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends before.
pub fn read_exact_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, into, offset);
    #[cfg(not(unix))]
    return at(file, offset, |mut file| io::Read::read_exact(&mut file, into));
}

/// Writes all of `bytes`, from byte `offset` of the file on.
///
/// # Errors
/// The system's error.
pub fn write_all_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(not(unix))]
    return at(file, offset, |mut file| io::Write::write_all(&mut file, bytes));
}

/// On systems where a file has only one position for reading and writing, threads take turns.
#[cfg(not(unix))]
fn at(mut file: &File, offset: u64, work: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    use std::sync::{Mutex, PoisonError};
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    io::Seek::seek(&mut file, io::SeekFrom::Start(offset))?;
    work(file)
}
