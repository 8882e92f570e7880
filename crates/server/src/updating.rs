//! Replacing a table's version while it is served.
//!
//! A thread of its own makes the next version ready, while the server answers requests about the
//! present ones. Then it becomes current between two requests. If it cannot be made, the earlier
//! version is still served, and the failure is logged and counted.
//!
//! The earlier version stays for a [grace period](ServerConfig::grace): clients that have just
//! heard of it, or are preparing hints from it, can finish. Each version holds its own memory. So
//! at most [`MAX_EARLIER`](privet_wire::limits::MAX_EARLIER) stay, and no more than
//! [`max_version_memory`](ServerConfig::max_version_memory) allows; and one version is made at a
//! time. The one that is made counts as well, so earlier ones give way *before* it is made. Without
//! a setting, a server so holds two versions of a table at most.
//!
//! A *successor*, which is another table, takes the place of the one that it continues in the same
//! way. It is made as at a start, from its own file alone.

use crate::hosted::{HostedTables, Maker, Version, VersionMemory};
use crate::observe::Metrics;
use crate::updates::{Next, NextVersion};
use crate::vital::{Vital, VitalGuard};
use crate::{ReadyTable, ServerConfig};
use privet_core::{Error, Reason, Result, TableShape};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// How long the next version waits until answers and hints that are computed from a retired one are
/// ready. Then it is made anyway, and there may be three versions in memory for a moment.
const LEAVING: Duration = Duration::from_secs(10);

/// Replaces versions of a server's tables. Any thread may hold it.
#[derive(Clone)]
pub struct TableUpdates(Arc<Updating>);

struct Updating {
    tables: Arc<HostedTables>,
    maker: Arc<Maker>,
    metrics: Arc<Metrics>,
    grace: Duration,
    keep_hints_after: Duration,
    memory: VersionMemory,
    stop: CancellationToken,
    vital: Vital,
    /// The turn to make a version.
    turn: Mutex<()>,
}

impl TableUpdates {
    pub(crate) fn new(
        tables: Arc<HostedTables>,
        maker: Arc<Maker>,
        metrics: Arc<Metrics>,
        config: &ServerConfig,
        stop: CancellationToken,
        vital: Vital,
    ) -> Self {
        let updating = Updating {
            tables,
            maker,
            metrics,
            grace: config.grace,
            keep_hints_after: config.keep_hints_after,
            memory: match config.max_version_memory {
                _ if config.grace.is_zero() => VersionMemory::Bytes(0),
                Some(bytes) => VersionMemory::Bytes(bytes),
                None => VersionMemory::AsMuchAgain,
            },
            stop,
            vital,
            turn: Mutex::new(()),
        };
        Self(Arc::new(updating))
    }

    /// Makes the table's next version, or its successor, ready while the server answers, and then
    /// makes it current. Returns after that.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if no table of that name is served, or
    /// `next` does not follow its current version or cannot be served under its scheme;
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if another publisher signed it;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not have its digest;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory, or
    /// the server is stopping. After an error the earlier version is still served, and the failure
    /// has been logged and counted.
    pub async fn update(&self, name: &str, next: impl Into<Next>) -> Result<ReadyTable> {
        let updated = self.make_and_switch(name, next.into()).await;
        if let Err(error) = &updated {
            self.failed(name, error);
        }
        updated
    }

    /// Logs and counts that an update of a table could not even be read: its current version is
    /// still served.
    pub fn failed(&self, name: &str, error: &Error) {
        self.0.metrics.update_failed(name);
        tracing::error!(
            table = name,
            error = %error.message(),
            reason = error.reason().map(Reason::name),
            "the table could not be updated; the earlier version is still served"
        );
    }

    /// Watches whoever updates tables, and holds this guard meanwhile: if a panic drops it,
    /// `/healthz` says so, and the server ends with an error. Otherwise the versions that it serves
    /// would grow old, and nobody would notice.
    pub fn guard(&self) -> VitalGuard {
        self.0.vital.guard("follows updates")
    }

    /// Retires all earlier versions of a table now, before their grace periods end. Requests under
    /// way about them are finished.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if no table of that name is served.
    pub fn retire_earlier(&self, name: &str) -> Result<()> {
        self.0.retire(name, |_| true)
    }

    /// Puts the hints of the current versions into the cache, if they are not there: the server
    /// stops. Returns when they are written.
    pub(crate) async fn keep_hints(&self) {
        let (now, maker) = (self.0.tables.now(), Arc::clone(&self.0.maker));
        let keeping = move || now.all_current().for_each(|version| maker.keep(version));
        // It logs what goes wrong.
        let _ = tokio::task::spawn_blocking(keeping).await;
    }

    async fn make_and_switch(&self, name: &str, next: Next) -> Result<ReadyTable> {
        let Updating { tables, maker, metrics, memory, stop, turn, .. } = &*self.0;
        let _turn = turn.lock().await;
        if stop.is_cancelled() {
            return Err(Error::unavailable("the server is stopping"));
        }
        let started = Instant::now();
        let before = Arc::clone(tables.now().current(name)?);
        if before.condition.has_ended() {
            return Err(Error::integrity(
                "damage was found in the table, and a later version could be made from it: start the \
                 server again",
            ));
        }
        let (epochs, records_changed) = match &next {
            Next::Version(NextVersion { steps, .. }) => {
                (steps.len(), steps.iter().map(|step| step.changes.len()).sum())
            }
            Next::Successor(_) => (0, 0usize),
        };
        if let Some(shape) = next.shape() {
            self.0.make_room(name, shape).await?;
        }
        let made = {
            let maker = Arc::clone(maker);
            let making = move || match next {
                Next::Version(next) => maker.next(&before, next),
                Next::Successor(table) => maker.succeed(&before, *table),
            };
            tokio::task::spawn_blocking(making).await
        };
        let made = made.map_err(|error| {
            Error::internal("making the next version ended unexpectedly; this is a bug")
                .caused_by(error)
        })??;
        let ready = made.ready.clone();
        let before = tables.switch(made, *memory)?;
        let identity = ready.description.identity;
        let scheme = ready.description.schemes.first().map(|scheme| scheme.plan.scheme.name());
        let seconds = started.elapsed().as_secs_f64();
        let epoch = identity.epoch.0;
        if identity.id == before.identity.id {
            metrics.updated(&ready);
            tracing::info!(
                table = name,
                epoch,
                epochs,
                records_changed,
                scheme,
                seconds,
                "table updated"
            );
        } else {
            metrics.succeeded(&before.description, &ready);
            tracing::info!(
                table = name,
                id = %identity.id,
                succeeds = %before.identity.id,
                epoch,
                scheme,
                seconds,
                "table succeeded by another"
            );
        }
        self.0.retire(name, |_| false)?;
        self.later(self.0.keep_hints_after, tables.now().current(name)?, Later::keep_hints);
        if !self.0.grace.is_zero() {
            self.later(self.0.grace, &before, Later::retire);
        }
        // This may drop the last reference to a version, and freeing it takes long.
        let _ = tokio::task::spawn_blocking(move || drop(before)).await;
        Ok(ready)
    }

    /// Does `what` about `version` after a while, unless the server stops before.
    fn later(&self, wait: Duration, version: &Arc<Version>, what: fn(Later)) {
        let (updating, stop) = (Arc::downgrade(&self.0), self.0.stop.clone());
        let later =
            Later { updating, version: Arc::downgrade(version), name: version.name.clone() };
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            tokio::time::sleep(wait).await;
            what(later);
        }));
    }
}

#[cfg(test)]
impl TableUpdates {
    pub(crate) fn tables(&self) -> Arc<HostedTables> {
        Arc::clone(&self.0.tables)
    }
}

impl Updating {
    /// Retires earlier versions for which there is no room beside the next one, of shape `shape`,
    /// and waits for a while until their memory is free.
    async fn make_room(&self, name: &str, shape: TableShape) -> Result<()> {
        let (tables, table, memory) = (Arc::clone(&self.tables), name.to_owned(), self.memory);
        // This frees versions, which takes long.
        let making = move || tables.make_room(&table, shape, memory);
        let left = tokio::task::spawn_blocking(making).await.map_err(|error| {
            Error::internal("making room for the next version ended unexpectedly; this is a bug")
                .caused_by(error)
        })??;
        self.metrics.versions(name, left);
        let until = Instant::now() + LEAVING;
        while self.tables.is_leaving() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    fn retire(&self, name: &str, retired: impl Fn(&Arc<Version>) -> bool) -> Result<()> {
        let left = self.tables.retire(name, retired)?;
        self.metrics.versions(name, left);
        Ok(())
    }
}

/// A version, for what is done about it in a while. It may be gone by then.
struct Later {
    updating: Weak<Updating>,
    version: Weak<Version>,
    name: String,
}

impl Later {
    /// Its grace period is over.
    fn retire(self) {
        // It may be gone already, because too many versions came after it.
        let (Some(updating), Some(version)) = (self.updating.upgrade(), self.version.upgrade())
        else {
            return;
        };
        let name = self.name;
        tokio::task::spawn_blocking(move || {
            let epoch = version.identity.epoch.0;
            if updating.retire(&name, |other| Arc::ptr_eq(other, &version)).is_ok() {
                tracing::info!(table = name, epoch, "version retired");
            }
        });
    }

    /// It became current a while ago: keeps its hint for the next start, unless another version has
    /// come since. So a table that changes all the time is not written all the time.
    fn keep_hints(self) {
        let Some(updating) = self.updating.upgrade() else { return };
        let now = updating.tables.now();
        let Ok(current) = now.current(&self.name) else { return };
        if std::ptr::eq(Arc::as_ptr(current), self.version.as_ptr()) {
            let (maker, version) = (Arc::clone(&updating.maker), Arc::clone(current));
            tokio::task::spawn_blocking(move || maker.keep(&version));
        }
    }
}
