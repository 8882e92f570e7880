//! Watching the files of served tables, and having the server follow them.

use super::followed::FollowedTable;
use privet_core::{Blame, Error, Result};
use privet_server::TableUpdates;
use std::time::Duration;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// After so long, what failed for want of something is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// Watches the tables until what is returned is dropped: looks whether their files have changed once in each `interval`, if that is longer than nothing, and into them whatever they look
/// like at each SIGHUP. Failures are the server's to log: what it serves stays as it is, and the next change or signal is the next try; or the next minute, if something was only missing.
pub(super) fn start(
    hangups: Hangups,
    tables: Vec<FollowedTable>,
    updates: TableUpdates,
    interval: Duration,
) -> JoinSet<()> {
    let Hangups { mut hearing, told } = hangups;
    for table in tables {
        hearing.spawn(watch(table, updates.clone(), interval, told.clone()));
    }
    hearing
}

/// Hears of each SIGHUP, from when it was made.
pub(super) struct Hangups {
    hearing: JoinSet<()>,
    told: Receiver<()>,
}

/// Has no SIGHUP end the process from now on. Whoever begins to watch later hears of one that came before.
///
/// # Errors
/// [`Blame::Unavailable`] if the system does not tell of signals.
pub(super) fn hear_hangups() -> Result<Hangups> {
    let mut hearing = JoinSet::new();
    let told = hangups(&mut hearing)?;
    Ok(Hangups { hearing, told })
}

async fn watch(
    mut table: FollowedTable,
    updates: TableUpdates,
    interval: Duration,
    mut told: Receiver<()>,
) {
    let mut ticks = (!interval.is_zero()).then(|| ticks(interval));
    // A change may be noticed while it is being made, and the rest of it leave length and time as they are.
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
        let name = table.name.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let changed = table.has_changed();
            let look = at_once || changed || once_more;
            let found = if look { table.look() } else { Ok(None) };
            (table, look, changed, found)
        });
        let Ok((back, looked, changed, found)) = looked.await else {
            let error = "reading the table's files has failed in a way that is this program's fault: they are no longer watched, so start the server again after an update";
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
        // Memory, open files, a file that is being copied: nothing of the table's own changes when it is there.
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

/// Hears of each SIGHUP.
#[cfg(unix)]
fn hangups(watching: &mut JoinSet<()>) -> Result<Receiver<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup()).map_err(|source| {
        Error::unavailable("the system does not tell of signals").caused_by(source)
    })?;
    let (tell, told) = channel(());
    watching.spawn(async move {
        while hangups.recv().await.is_some() {
            tell.send_replace(());
        }
    });
    Ok(told)
}

/// Hears of nothing, where there are no such signals.
#[cfg(not(unix))]
fn hangups(watching: &mut JoinSet<()>) -> Result<Receiver<()>> {
    let (tell, told) = channel(());
    watching.spawn(async move { tell.closed().await });
    Ok(told)
}
