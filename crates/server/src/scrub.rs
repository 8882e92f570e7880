//! Reading again, at a bounded rate, what is answered from and what clients fetch: is it still what
//! it was?
//!
//! Memory and disks lose bits, and somebody copies another file over one that is served. Clients
//! notice that for what they fetch, which has an announced digest, and for schemes that verify
//! answers. Of all other answers nobody can tell a wrong one from a right one. So a running server
//! checks:
//!
//! | what | against |
//! |---|---|
//! | the memory that answers come from, of every version | its digest right after it was made |
//! | points in a mapped file | the digest that the file was made with |
//! | layout and hint; the records, if clients fetch them first | the digest that is announced |
//! | the epochs of the update log, where they lie | their digest when they were verified |
//! | commitments that clients fetch with epochs | their digest when they were made |
//!
//! That nobody has written to one of these files, or cut it short, is looked at each second, and
//! with each piece that is sent; not of the update log, which grows where it is.
//!
//! Not checked are the table's file where answers come from a copy in memory (the next start does),
//! and what the program itself computes with.
//!
//! One pass after the other reads everything once, [`scrub_rate`](crate::ServerConfig::scrub_rate)
//! bytes a second, on one thread, beside serving. Each begins
//! [`scrub_interval`](crate::ServerConfig::scrub_interval) after the one before did, or when that
//! is over. What is damaged ends the service of its [table](crate::hosted::Condition); other tables
//! go on. A check that cannot be done ends nothing: it is logged and counted, and tried again in
//! the next pass.

use crate::EpochSource;
use crate::ServerConfig;
use crate::hosted::{Condition, EpochReading, HostedTables, Reading, Version};
use crate::observe::Metrics;
use privet_core::{Blame, Error, Result};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Bytes read at a time.
const STEP: usize = 1 << 20;

/// How often it is asked whether files were changed.
const LOOK: Duration = Duration::from_secs(1);

/// Begins to check, until `stop`.
pub(crate) fn start(
    config: &ServerConfig,
    tables: Arc<HostedTables>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    let scrub = Scrub { tables, metrics, rate: config.scrub_rate, interval: config.scrub_interval };
    let scrub = Arc::new(scrub);
    let watching = Arc::clone(&scrub);
    tokio::spawn(stop.clone().run_until_cancelled_owned(async move { watching.watch().await }));
    if scrub.rate > 0 {
        tokio::spawn(stop.run_until_cancelled_owned(async move { scrub.run().await }));
    }
}

struct Scrub {
    tables: Arc<HostedTables>,
    metrics: Arc<Metrics>,
    rate: u64,
    interval: Duration,
}

/// The epochs of a table that clients fetch, and their commitments, none of them kept alive.
struct Log {
    condition: Arc<Condition>,
    epochs: Vec<Weak<dyn EpochSource>>,
}

/// What a pass did to a version.
enum Outcome {
    Whole(u64),
    /// It is not served any more.
    Gone,
}

impl Scrub {
    /// The versions that are served, none of them kept alive.
    fn versions(&self) -> Vec<Weak<Version>> {
        self.tables.now().versions().map(Arc::downgrade).collect()
    }

    /// The update logs of all tables that have one.
    fn logs(&self) -> Vec<Log> {
        let now = self.tables.now();
        let feeds = now.feeds().map(|(condition, feed)| Log {
            condition: Arc::clone(condition),
            epochs: feed.sources().map(|source| Arc::downgrade(&source)).collect(),
        });
        feeds.collect()
    }

    /// Says that a table could not be checked.
    fn failed(&self, table: &str, epoch: Option<u64>, error: &Error, what: &str) {
        self.metrics.scrub_failed(table);
        let error = error.message();
        tracing::warn!(table, epoch, error, "{what} cannot be checked");
    }

    /// Looks at the files from time to time.
    async fn watch(&self) {
        loop {
            sleep(LOOK).await;
            let versions = self.versions();
            // A file may be far away.
            let looked = spawn_blocking(move || {
                for version in versions.iter().filter_map(Weak::upgrade) {
                    if !version.condition.has_ended() {
                        let _ = version.condition.or_end(version.check_files());
                    }
                }
            });
            match looked.await {
                Ok(()) => {}
                Err(error) if error.is_panic() => {
                    let error = ended_unexpectedly(error);
                    let error = error.message();
                    tracing::warn!(error, "whether files were changed is not looked at any more");
                    return;
                }
                // The server is stopping.
                Err(_) => return,
            }
        }
    }

    /// Pass after pass.
    async fn run(&self) {
        self.take_digests().await;
        loop {
            let began = Instant::now();
            for version in self.versions() {
                self.pass(version).await;
            }
            for log in self.logs() {
                self.pass_over(log).await;
            }
            sleep_until(began + self.interval).await;
        }
    }

    /// Has the digests taken of what all versions answer from, before the first of them is read at
    /// the rate: the sooner, the less can happen before.
    async fn take_digests(&self) {
        for version in self.versions().into_iter().filter_map(|version| version.upgrade()) {
            let (table, epoch) = (version.name.clone(), version.identity.epoch.0);
            let taken = spawn_blocking(move || version.held_digests().len()).await;
            if let Err(error) = taken {
                let error = ended_unexpectedly(error);
                self.failed(&table, Some(epoch), &error, "the memory of the table");
            }
        }
    }

    async fn pass(&self, version: Weak<Version>) {
        let began = Instant::now();
        let outcome = self.read(&version).await;
        let Some(version) = version.upgrade() else { return };
        let (table, epoch) = (&version.name, version.identity.epoch.0);
        match outcome {
            Ok(Outcome::Gone) => {}
            Ok(Outcome::Whole(bytes)) => {
                self.metrics.scrubbed(table);
                let seconds = began.elapsed().as_secs_f64();
                tracing::info!(table, epoch, bytes, seconds, "table checked: it is whole");
            }
            Err(error) if error.blame() == Blame::Corrupted => version.condition.end(&error),
            Err(error) => self.failed(table, Some(epoch), &error, "the table"),
        }
    }

    async fn pass_over(&self, log: Log) {
        let condition = &log.condition;
        for epoch in log.epochs {
            if condition.has_ended() {
                return;
            }
            match self.read_epoch(&epoch).await {
                Ok(()) => {}
                Err(error) if error.blame() == Blame::Corrupted => condition.end(&error),
                Err(error) => {
                    self.failed(condition.table(), None, &error, "the update log");
                    return;
                }
            }
        }
    }

    /// Reads all of an epoch, at the rate, for as long as clients may fetch it.
    async fn read_epoch(&self, epoch: &Weak<dyn EpochSource>) -> Result<()> {
        let mut reading = EpochReading::new();
        while let Some(held) = epoch.upgrade() {
            let step = self.step(reading, move |reading| reading.read_on(&*held, STEP));
            let (read, back) = step.await?;
            reading = back;
            if read == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Reads all of a version, at the rate.
    async fn read(&self, version: &Weak<Version>) -> Result<Outcome> {
        let Some(held) = version.upgrade() else { return Ok(Outcome::Gone) };
        let checked = spawn_blocking(move || held.checked()).await;
        let checked = checked.map_err(ended_unexpectedly)?;
        let mut bytes = 0;
        for checked in checked {
            let mut reading = Reading::new(checked);
            loop {
                // Held for a step: a version that is retired meanwhile is freed then.
                let Some(held) = version.upgrade().filter(|held| !held.condition.has_ended())
                else {
                    return Ok(Outcome::Gone);
                };
                let step = self.step(reading, move |reading| held.read_on(reading, STEP));
                let (read, back) = step.await?;
                reading = back;
                if read == 0 {
                    break;
                }
                bytes += read;
            }
        }
        Ok(Outcome::Whole(bytes))
    }

    /// Has `read` read the next bytes, where it may wait for a disk. Returns how many those were
    /// when as much time has passed as so many may take.
    async fn step<R: Send + 'static>(
        &self,
        mut reading: R,
        read: impl FnOnce(&mut R) -> Result<u64> + Send + 'static,
    ) -> Result<(u64, R)> {
        let began = Instant::now();
        let step = spawn_blocking(move || (read(&mut reading), reading));
        let (read, reading) = step.await.map_err(ended_unexpectedly)?;
        let read = read?;
        self.metrics.scrubbed_bytes(read);
        let due = Duration::from_secs_f64(read as f64 / self.rate as f64);
        sleep_until(began + due).await;
        Ok((read, reading))
    }
}

fn ended_unexpectedly(error: JoinError) -> Error {
    Error::internal("the check ended unexpectedly; this is a bug").caused_by(error)
}

#[cfg(test)]
pub(crate) mod tests;
