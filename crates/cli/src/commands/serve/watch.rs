//! Watching the files of served tables, and having the server follow them.

use super::followed::FollowedTable;
use privet_core::{Error, Result};
use privet_server::TableUpdates;
use std::time::Duration;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

/// Watches the tables until what is returned is dropped: looks whether their files have changed once in each `interval`, if that is longer than nothing, and into them whatever they look
/// like at each SIGHUP. Failures are the server's to log: what it serves stays as it is, and the next change or signal is the next try.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system does not tell of signals.
pub(super) fn start(
    tables: Vec<FollowedTable>,
    updates: TableUpdates,
    interval: Duration,
) -> Result<JoinSet<()>> {
    let mut watching = JoinSet::new();
    let told = hangups(&mut watching)?;
    for table in tables {
        watching.spawn(watch(table, updates.clone(), interval, told.clone()));
    }
    Ok(watching)
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
    loop {
        let at_once = tokio::select! {
            changed = told.changed() => match changed {
                Ok(()) => true,
                // No signals any more: the process is ending.
                Err(_) => return,
            },
            () = tick(&mut ticks) => false,
        };
        let looked = tokio::task::spawn_blocking(move || {
            let changed = table.has_changed();
            let look = at_once || changed || once_more;
            let found = if look { table.look() } else { Ok(None) };
            (table, changed, found)
        });
        let Ok((back, changed, found)) = looked.await else { return };
        table = back;
        once_more = changed;
        match found {
            Ok(None) => {}
            Ok(Some(next)) => {
                // A failure is logged where it happens.
                if updates.update(&table.name, next).await.is_ok() {
                    table.taken();
                }
            }
            Err(error) => updates.failed(&table.name, &error),
        }
    }
}

fn ticks(interval: Duration) -> Interval {
    let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
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
