//! Watching the files of served tables, and having the server follow them.

use crate::FollowedTable;
use privet_core::{Blame, Error, Result};
use privet_server::TableUpdates;
use std::time::Duration;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// After so long, what failed for want of something is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// Tables that are being watched. Dropping it ends that; what is served stays.
#[must_use = "dropping it ends the watching"]
pub struct Watching {
    _tasks: JoinSet<()>,
}

impl Watching {
    /// Watches the tables. Looks whether their files have changed once in each `interval`, if that
    /// is longer than nothing, and into them whatever they look like when `hangups` says so.
    ///
    /// Failures are the server's to log: what it serves stays as it is, and the next change or
    /// signal is the next try; or the next minute, if something was only missing.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
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

/// SIGHUP, by which the one who runs a process tells it to look into its files.
pub struct Hangups {
    hearing: JoinSet<()>,
    told: Receiver<()>,
}

impl Hangups {
    /// Has no SIGHUP end the process from now on. Whoever begins to watch later hears of one that
    /// came before. Where there are no such signals, as [`ignored`](Self::ignored).
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if the system does not tell of signals.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn heard() -> Result<Self> {
        #[cfg(unix)]
        return heard_on_unix();
        #[cfg(not(unix))]
        Ok(Self::ignored())
    }

    /// Leaves SIGHUP to what it does otherwise. Nothing is heard.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn ignored() -> Self {
        let (tell, told) = channel(());
        let mut hearing = JoinSet::new();
        // Whoever watches takes the other end's going away for the end of the process.
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
    let mut ticks = (!interval.is_zero()).then(|| ticks(interval));
    // A change may be noticed while it is being made, and the rest of it leave length and time as
    // they are.
    let mut once_more = false;
    let mut retry = None;
    loop {
        let at_once = tokio::select! {
            changed = told.changed() => match changed {
                Ok(()) => true,
                // No signals any more: the process is ending.
                Err(_) => return,
            },
            () = tick(&mut ticks) => false,
            () = at(retry) => true,
        };
        let name = table.name().to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            let changed = table.has_changed();
            let look = at_once || changed || once_more;
            let found = if look { table.look() } else { Ok(None) };
            (table, look, changed, found)
        });
        let Ok((back, looked, changed, found)) = looked.await else {
            let error = "reading the table's files has failed in a way that is this program's \
            fault: they are no longer watched, so start the server again after an update";
            updates.failed(&name, &Error::unavailable(error));
            return;
        };
        table = back;
        once_more = changed;
        if !looked {
            continue;
        }
        let outcome = match found {
            Ok(None) => Ok(()),
            // A failure is logged where it happens.
            Ok(Some(next)) => updates.update(&name, next).await.map(|_| table.taken()),
            Err(error) => {
                updates.failed(&name, &error);
                Err(error)
            }
        };
        // Memory, open files, a file that is being copied: nothing of the table's own changes when
        // it is there.
        let missing = outcome.is_err_and(|error| error.blame() == Blame::Unavailable);
        retry = missing.then(|| Instant::now() + RETRY);
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn ticks(interval: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn tick(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
fn heard_on_unix() -> Result<Hangups> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup()).map_err(|source| {
        Error::unavailable("the system does not tell of signals").caused_by(source)
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

    /// What the server's metrics say.
    async fn metrics(server: &RunningServer) -> String {
        let mut stream = TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    async fn serves_epoch(server: &RunningServer, epoch: u64) {
        let line = format!("privet_table_epoch{{table=\"t\"}} {epoch}");
        let until = async {
            while !metrics(server).await.lines().any(|other| other == line) {
                tokio::task::yield_now().await;
            }
        };
        let minute = Duration::from_secs(60);
        tokio::time::timeout(minute, until).await.expect("the update is served");
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
