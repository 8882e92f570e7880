//! BLAKE3 over much data, by several threads where the system gives them.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;

/// A hasher whose work is shared by threads of its own: no more than it was told, and by the
/// calling thread alone where the system refuses them.
pub struct SharedHasher {
    hasher: blake3::Hasher,
    pool: Option<ThreadPool>,
}

impl SharedHasher {
    /// By so many threads.
    pub fn new(threads: NonZero<usize>) -> Self {
        let pool = match threads.get() {
            1 => None,
            // Without them it only takes longer.
            count => ThreadPoolBuilder::new().num_threads(count).build().ok(),
        };
        Self { hasher: blake3::Hasher::new(), pool }
    }

    /// One thread for each core.
    pub fn on_all_cores() -> Self {
        Self::new(std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))
    }

    /// Goes on with `bytes`: the more at a time, the better they are shared.
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

    /// The digest of all so far.
    pub fn digest(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}
