//! BLAKE3 over much data, by several threads where the system gives them.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;

/// A hasher that shares its work among threads of its own: at most as many as given. If the system
/// refuses threads, the calling thread does all of it.
pub struct SharedHasher {
    hasher: blake3::Hasher,
    pool: Option<ThreadPool>,
}

impl SharedHasher {
    /// A hasher with `threads` threads.
    pub fn new(threads: NonZero<usize>) -> Self {
        let pool = match threads.get() {
            1 => None,
            // Without threads it only takes longer.
            count => ThreadPoolBuilder::new().num_threads(count).build().ok(),
        };
        Self { hasher: blake3::Hasher::new(), pool }
    }

    /// A hasher with one thread for each core.
    pub fn on_all_cores() -> Self {
        Self::new(std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))
    }

    /// Hashes `bytes` next. The more bytes at a time, the better the threads share them.
    pub fn update(&mut self, bytes: &[u8]) {
        let Self { hasher, pool } = self;
        match pool {
            Some(pool) => pool.install(|| {
                hasher.update_rayon(bytes);
            }),
            None => {
                hasher.update(bytes);
            }
        }
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}
