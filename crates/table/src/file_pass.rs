//! Reading a part of a file once, with several threads, and hashing it in the same pass.

use crate::positioned::read_exact_at;
use crate::shared_hasher::SharedHasher;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Bytes read and hashed at a time: enough to occupy all cores, few enough for a smooth progress
/// bar.
pub const STEP: usize = 16 << 20;

/// One pass over a part of a file, from its first byte to its last, that also hashes it.
pub struct Pass<'a, P> {
    file: &'a File,
    offset: u64,
    done: u64,
    total: u64,
    threads: NonZero<usize>,
    hasher: SharedHasher,
    progress: P,
}

impl<'a, P: FnMut(u64, u64)> Pass<'a, P> {
    /// A pass over `total` bytes from `offset` on. `progress` is called with the number of bytes
    /// done and the total.
    pub fn new(
        file: &'a File,
        offset: u64,
        total: u64,
        threads: NonZero<usize>,
        progress: P,
    ) -> Self {
        Self { file, offset, done: 0, total, threads, hasher: SharedHasher::new(threads), progress }
    }

    /// Reads the next bytes, as many as `step` has, and hashes them.
    pub fn read(&mut self, step: &mut [u8]) -> io::Result<()> {
        read_shared(self.file, self.offset + self.done, step, self.threads)?;
        self.hasher.update(step);
        self.done += step.len() as u64;
        (self.progress)(self.done, self.total);
        Ok(())
    }

    /// Reads the remaining bytes, and keeps none of them.
    pub fn read_all(&mut self) -> io::Result<()> {
        let left = |pass: &Self| usize::try_from(pass.total - pass.done).unwrap_or(usize::MAX);
        let mut buffer = vec![0; left(self).min(STEP)];
        while self.done < self.total {
            let len = left(self).min(STEP);
            self.read(&mut buffer[..len])?;
        }
        Ok(())
    }

    /// The BLAKE3 digest of all bytes read.
    pub fn digest(&self) -> [u8; 32] {
        self.hasher.digest()
    }
}

/// Reads `into` from byte `offset` on, in as many parts as there are threads, one after the other
/// in the file. One thread alone is too slow for a fast disk, and even for the system's own copy in
/// memory.
fn read_shared(
    file: &File,
    offset: u64,
    into: &mut [u8],
    threads: NonZero<usize>,
) -> io::Result<()> {
    /// A thread does not pay for fewer bytes.
    const LEAST: usize = 1 << 20;
    let part_len = into.len().div_ceil(threads.get()).max(LEAST);
    let parts = Mutex::new((offset..).step_by(part_len).zip(into.chunks_mut(part_len)));
    let drain = || -> io::Result<()> {
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((offset, part)) = next else { return Ok(()) };
            read_exact_at(file, offset, part)?;
        }
    };
    thread::scope(|scope| {
        // As many threads as the system gives.
        let others: Vec<_> = (1..threads.get())
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, drain).ok())
            .collect();
        let mut read = drain();
        for other in others {
            let outcome = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read = read.and(outcome);
        }
        read
    })
}
