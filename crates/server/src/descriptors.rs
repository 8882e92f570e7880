//! Open files, whose number the system limits for a process.

use crate::seldom::Seldom;
use privet_core::Result;
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;

/// Files that are open beside clients' connections: tables, their logs, the cache, the runtime's
/// own, connections to the metrics, and a reserve.
const BESIDE_CONNECTIONS: usize = 128;

/// Raises this process's limit of open files as far as the system allows, and as `connections`
/// and `tables` need.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if that is not enough: with fewer, new
/// clients would wait without an answer.
#[cfg(unix)]
pub(crate) fn ensure(connections: usize, tables: usize) -> Result<()> {
    use privet_core::Error;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = (connections + BESIDE_CONNECTIONS + 8 * tables) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = maximum.map_or(needed, |maximum| needed.min(maximum));
    let done = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    if done.is_ok() && raised >= needed {
        return Ok(());
    }
    let allowed = current.max(done.is_ok().then_some(raised)).unwrap_or(raised);
    Err(Error::api_misuse(format!(
        "{connections} connections need {needed} open files, and the system allows this process \
         {allowed}: allow more (`ulimit -n {needed}`, or LimitNOFILE= of its systemd unit), or \
         fewer connections"
    )))
}

#[cfg(not(unix))]
pub(crate) fn ensure(_connections: usize, _tables: usize) -> Result<()> {
    Ok(())
}

/// A file that is open for nothing. Without it, a server whose process has no more files could not
/// even turn clients away: they would wait in the system's queue, and accepting would fail again
/// and again.
pub(crate) struct Spare {
    file: Option<std::fs::File>,
    warned: Seldom,
}

impl Spare {
    pub(crate) fn new() -> Self {
        Self { file: Self::open(), warned: Seldom::new() }
    }

    fn open() -> Option<std::fs::File> {
        // Any file will do. Its own program is one that surely is there.
        std::env::current_exe().and_then(std::fs::File::open).ok()
    }

    /// Turns the next client away that waits at `listener`, after accepting failed with `error`.
    pub(crate) async fn refuse_one(&mut self, listener: &TcpListener, error: &io::Error) {
        if self.warned.is_due() {
            tracing::warn!(%error, "cannot accept connections; clients are turned away");
        }
        if self.file.take().is_some() {
            let refused = tokio::time::timeout(Duration::from_millis(10), listener.accept()).await;
            drop(refused);
        } else {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.file = Self::open();
    }
}
