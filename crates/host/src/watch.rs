//! Watching the files of served tables, and having the server follow them.

use crate::FollowedTable;
use privet_core::{Blame, Error, Result};
use privet_server::{Next, TableUpdates};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// When to try again after something was missing.
const RETRY: Duration = Duration::from_secs(60);

/// Tables that are being watched. Dropping this ends the watching; the server goes on.
#[must_use = "dropping it ends the watching"]
pub struct Watching {
    _tasks: JoinSet<()>,
}

impl Watching {
    /// Watches the tables. Checks once in each `interval`, unless it is zero, whether their files
    /// have changed, and reads them if so. When `hangups` says so, it reads them even if they seem
    /// unchanged.
    ///
    /// The server logs failures, and goes on with the version that it serves. The next change or
    /// signal causes another try. If something was only missing, another try follows after a
    /// minute.
    ///
    /// # Panics
    /// If called outside a Tokio runtime.
    pub fn start(
        tables: Vec<FollowedTable>,
        updates: TableUpdates,
        interval: Duration,
        hangups: Hangups,
    ) -> Self {
        let Hangups { hearing: mut tasks, told } = hangups;
        for table in tables {
            tasks.spawn(watch(table, updates.clone(), interval, told.clone()));
        }
        Self { _tasks: tasks }
    }
}

/// SIGHUP: an operator sends it to make a process read its files.
pub struct Hangups {
    hearing: JoinSet<()>,
    told: Receiver<()>,
}

impl Hangups {
    /// From now on SIGHUP does not end the process. A later watcher also gets a signal that came
    /// before it. On systems without such signals, as [`ignored`](Self::ignored).
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if the system does not deliver signals.
    ///
    /// # Panics
    /// If called outside a Tokio runtime.
    pub fn heard() -> Result<Self> {
        #[cfg(unix)]
        return heard_on_unix();
        #[cfg(not(unix))]
        Ok(Self::ignored())
    }

    /// Does not change what SIGHUP does; no signal arrives here.
    ///
    /// # Panics
    /// If called outside a Tokio runtime.
    pub fn ignored() -> Self {
        let (tell, told) = channel(());
        let mut hearing = JoinSet::new();
        // When the other end is dropped, watchers treat that as the end of the process.
        hearing.spawn(async move { tell.closed().await });
        Self { hearing, told }
    }
}

async fn watch(
    mut table: FollowedTable,
    updates: TableUpdates,
    interval: Duration,
    mut told: Receiver<()>,
) {
    // Without an interval nobody listens to the ticks, but there have to be some.
    let period = interval.max(Duration::from_millis(1));
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A change may be noticed before it is finished, and the rest of it may leave length and time
    // as they are.
    let mut once_more = false;
    let mut retry = None;
    // What the last look failed with.
    let mut failed = None;
    let _guard = updates.guard();
    loop {
        let at_once = tokio::select! {
            changed = told.changed() => match changed {
                Ok(()) => true,
                // No more signals: the process is ending.
                Err(_) => return,
            },
            _ = ticks.tick(), if !interval.is_zero() => false,
            () = sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => true,
        };
        let name = table.name().to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            let changed = table.has_changed();
            let look = at_once || changed || once_more;
            let found = if look { look_at(&mut table) } else { Ok(None) };
            (table, look, changed, found)
        });
        let (back, looked, changed, found) = match looked.await {
            Ok(looked) => looked,
            // The guard tells the server.
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => return,
        };
        table = back;
        once_more = changed;
        if !looked {
            continue;
        }
        let outcome = match found {
            Ok(None) => Ok(()),
            // Failures are logged where they happen.
            Ok(Some(next)) => updates.update(&name, next).await.map(|_| table.taken()),
            Err(error) => {
                let message = Some(error.message().to_owned());
                // A second look at one change says nothing new.
                if at_once || changed || message != failed {
                    updates.failed(&name, &error);
                }
                failed = message;
                Err(error)
            }
        };
        // Memory, open files, or a file that is still being copied: when these become available,
        // nothing changes in the table's own files.
        let missing = outcome.is_err_and(|error| error.blame() == Blame::Unavailable);
        retry = missing.then(|| Instant::now() + RETRY);
    }
}

/// As [`FollowedTable::look`]. A panic is a bug, and must not end the watching: then it fails as
/// anything else that can be wrong with the files.
fn look_at(table: &mut FollowedTable) -> Result<Option<Next>> {
    let looked = catch_unwind(AssertUnwindSafe(|| table.look()));
    looked.unwrap_or_else(|_| {
        table.distrust();
        Err(Error::internal(
            "reading the table's files has failed because of a bug in this program",
        ))
    })
}

#[cfg(unix)]
fn heard_on_unix() -> Result<Hangups> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup()).map_err(|source| {
        Error::unavailable("the system does not deliver signals").caused_by(source)
    })?;
    let (tell, told) = channel(());
    let mut hearing = JoinSet::new();
    hearing.spawn(async move {
        while hangups.recv().await.is_some() {
            tell.send_replace(());
        }
    });
    Ok(Hangups { hearing, told })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed::tests::Owner;
    use privet_server::{RunningServer, Server, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    /// The server's metrics.
    async fn metrics(server: &RunningServer) -> String {
        let mut stream = TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    async fn serves_epoch(server: &RunningServer, epoch: u64) {
        shows(server, &format!("privet_table_epoch{{table=\"t\"}} {epoch}")).await;
    }

    async fn shows(server: &RunningServer, line: &str) {
        let until = async {
            while !metrics(server).await.lines().any(|other| other == line) {
                tokio::task::yield_now().await;
            }
        };
        let minute = Duration::from_secs(60);
        tokio::time::timeout(minute, until).await.expect(line);
    }

    /// A server of the owner's table, which is followed with a panic planted in a place.
    async fn followed_with_a_panic_in(
        place: &'static str,
        owner: &Owner,
    ) -> (RunningServer, Watching) {
        let (table, mut followed) = owner.serve().unwrap();
        followed.planted = Some(place);
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        config.metrics_listen = Some(([127, 0, 0, 1], 0).into());
        let server = Server::start(config, vec![table]).await.unwrap();
        let (updates, interval) = (server.table_updates(), Duration::from_millis(10));
        let watching = Watching::start(vec![followed], updates, interval, Hangups::ignored());
        (server, watching)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_while_the_files_are_read_is_a_failed_update_and_no_end_of_the_watching() {
        let mut owner = Owner::new();
        let (server, _watching) = followed_with_a_panic_in("look", &owner).await;
        owner.update(&[3, 7], false);
        shows(&server, "privet_updates_failed_total{table=\"t\"} 1").await;
        owner.update(&[3, 7], false);
        serves_epoch(&server, 2).await;
        server.shutdown();
        server.wait().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_whose_table_is_no_longer_watched_ends_with_an_error() {
        let owner = Owner::new();
        let (server, _watching) = followed_with_a_panic_in("has_changed", &owner).await;
        let ended = tokio::time::timeout(Duration::from_secs(60), server.wait()).await;
        let error = ended.expect("the server ends").unwrap_err().to_string();
        assert!(error.contains("the server that follows updates has failed"), "{error}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn updates_are_served_by_themselves_without_any_signal() {
        let mut owner = Owner::new();
        let (table, followed) = owner.serve().unwrap();
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        config.metrics_listen = Some(([127, 0, 0, 1], 0).into());
        let server = Server::start(config, vec![table]).await.unwrap();
        serves_epoch(&server, 0).await;
        let (updates, interval) = (server.table_updates(), Duration::from_millis(10));
        let watching = Watching::start(vec![followed], updates, interval, Hangups::ignored());
        for epoch in [1, 2] {
            owner.update(&[3, 7], false);
            serves_epoch(&server, epoch).await;
        }
        drop(watching);
        server.shutdown();
        server.wait().await.unwrap();
    }
}
