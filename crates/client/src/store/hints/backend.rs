//! What lies between the database and the file: failures are told from damage, and nothing is written after the first of either.

use super::folder::Medium;
use crate::store::files;
use privet_core::{Error, Result};
use redb::StorageBackend;
use std::cell::Cell;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// A database's file. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    medium: Arc<dyn Medium>,
    state: Arc<BackendState>,
}

#[derive(Debug, Default)]
struct BackendState {
    /// The first thing that the file system refused, until somebody asks for it.
    failure: Mutex<Option<io::Error>>,
    closed: AtomicBool,
}

impl Backend {
    pub(crate) fn new(medium: Arc<dyn Medium>) -> Self {
        Self { medium, state: Arc::default() }
    }

    /// Refuses all writes from now on.
    pub(crate) fn close_to_writes(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
    }

    fn take_failure(&self) -> Option<io::Error> {
        self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Runs an operation of the file system and remembers its failure; the caller, a database, gets one without details.
    fn noted<T>(&self, run: impl FnOnce(&dyn Medium) -> io::Result<T>) -> io::Result<T> {
        run(&*self.medium).map_err(|error| {
            let kind = error.kind();
            // The end of the file comes early if the file is damaged.
            if kind != io::ErrorKind::UnexpectedEof {
                let mut failure = self.state.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                self.close_to_writes();
            }
            kind.into()
        })
    }

    fn written<T>(&self, run: impl FnOnce(&dyn Medium) -> io::Result<T>) -> io::Result<T> {
        if self.state.closed.load(Ordering::SeqCst) {
            return Err(io::Error::other("an earlier write failed"));
        }
        self.noted(run)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.noted(|medium| medium.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.noted(|medium| medium.read_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.written(|medium| medium.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.written(|medium| medium.sync())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.written(|medium| medium.write_at(offset, bytes))
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs database code on the file at `path`. It may panic on a damaged file; that is damage as well, and says nothing on standard error.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file system refused something,
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) for everything else.
pub(crate) fn caught<T>(
    backend: &Backend,
    path: &Path,
    run: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let outer = QUIET.replace(true);
    // Nothing is used again after a panic: the file is closed to writes, and its owner poisoned.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(outer);
    let why = match outcome {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            // A panic's message may quote what it was about.
            drop(panic);
            "its structure makes no sense".to_owned()
        }
    };
    backend.close_to_writes();
    Err(match backend.take_failure() {
        Some(error) => files::failed(path, "use", error),
        None => files::blame(path, Error::corrupted(format!("it is damaged ({why})"))),
    })
}
