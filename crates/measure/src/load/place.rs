//! The directory in which the clients keep what they keep. It goes when they do, also at
//! Ctrl-C.

use privet_core::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A temporary directory. Dropping it removes it.
pub(super) struct StateDirectories(PathBuf);

impl StateDirectories {
    /// Makes the directory. From here on, a signal to end removes it and calls `ends` with 128 +
    /// its number: the exit code, as shells have it. `runtime` waits for signals.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no room for it, or the
    /// system delivers no signals.
    pub(super) fn new(runtime: &Runtime, ends: fn(i32)) -> Result<Self> {
        // Signals first: one that comes while the directory is made must not leave it behind.
        let ended = {
            let _context = runtime.enter();
            signals::listen().map_err(|error| {
                Error::unavailable("the system delivers no signals").caused_by(error)
            })?
        };
        let directory = tempfile::Builder::new().prefix("privet-load-").tempdir();
        let directory = directory.map_err(|error| {
            Error::unavailable("there is no room for temporary files").caused_by(error)
        })?;
        let place = Self(directory.keep());
        let directory = place.0.clone();
        runtime.spawn(async move {
            let code = ended.await;
            remove(&directory);
            ends(code);
        });
        Ok(place)
    }

    /// The state directory of the clients numbered so.
    pub(super) fn state(&self, number: usize) -> PathBuf {
        self.0.join(number.to_string())
    }

    /// Removes the directory. Clients may still write in it.
    pub(super) fn remove(&self) {
        remove(&self.0);
    }
}

impl Drop for StateDirectories {
    fn drop(&mut self) {
        self.remove();
    }
}

fn remove(directory: &Path) {
    /// A client that makes a file meanwhile can make this fail as often as it makes one.
    const ATTEMPTS: usize = 100;
    for _ in 0..ATTEMPTS {
        if std::fs::remove_dir_all(directory).is_ok() || !directory.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(unix)]
mod signals {
    use std::io;
    use tokio::signal::unix::{SignalKind, signal};

    /// Ends with an exit code when a signal to end comes, from now on.
    pub(super) fn listen() -> io::Result<impl Future<Output = i32>> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            let number = tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
            };
            128 + number.as_raw_value()
        })
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;

    /// Ends with an exit code at Ctrl-C.
    pub(super) fn listen() -> io::Result<impl Future<Output = i32>> {
        Ok(async {
            // Without signals nothing comes, and the command ends at its end.
            match tokio::signal::ctrl_c().await {
                Ok(()) => 130,
                Err(_) => std::future::pending().await,
            }
        })
    }
}
