//! Reads the data behind answers and downloads again, at a bounded rate, and checks that it is
//! unchanged.
//!
//! Memory and disks lose bits, and an operator may copy another file over a served one. Clients
//! notice that in what they fetch, which has an announced digest, and in schemes that verify
//! answers. In all other schemes neither client nor server can recognise a wrong answer. So a
//! running server checks:
//!
//! | what | against |
//! |---|---|
//! | the memory that answers come from, of every version | its digest right after it was made |
//! | points in a mapped file | the digest that the file was made with |
//! | layout and hint; the records, if clients fetch them first | the announced digest |
//! | the epochs of the update log, in their files | their digest when they were verified |
//! | commitments that clients fetch with epochs | their digest when they were made |
//!
//! Each second, and with each piece that is sent, the server also checks that these files were not
//! written to or cut short. The update log is exempt: it grows in place.
//!
//! Two things are not checked: the table's file if answers come from a copy in memory (the next
//! start checks it), and the memory that the program itself computes with.
//!
//! Passes read everything once, one pass after the other,
//! [`scrub_rate`](crate::ServerConfig::scrub_rate) bytes a second, on one thread, while the server
//! answers. A pass begins [`scrub_interval`](crate::ServerConfig::scrub_interval) after the
//! beginning of the last one, or at its end if that is later. Damage ends the service of its
//! [table](crate::hosted::Condition); other tables go on. A check that fails for another reason
//! ends nothing: it is logged and counted, and the next pass tries again.

use crate::EpochSource;
use crate::ServerConfig;
use crate::hosted::{Condition, EpochReading, HostedTables, ReadProgress, Version};
use crate::observe::Metrics;
use crate::seldom::Seldom;
use crate::vital::Vital;
use privet_core::{Blame, Error, Result};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Bytes read at a time.
const STEP: usize = 1 << 20;

/// How often to check whether files were changed.
const LOOK: Duration = Duration::from_secs(1);

/// Begins to check, until `stop`.
pub(crate) fn start(
    config: &ServerConfig,
    tables: Arc<HostedTables>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    vital: &Vital,
) {
    let scrub = Scrub { tables, metrics, rate: config.scrub_rate, interval: config.scrub_interval };
    let scrub = Arc::new(scrub);
    let watching = Arc::clone(&scrub);
    let stopped = stop.clone();
    vital.spawn("checks files for changes", async move {
        stopped.run_until_cancelled(watching.watch()).await;
    });
    if scrub.rate > 0 {
        vital.spawn("reads tables again", async move {
            stop.run_until_cancelled(scrub.run()).await;
        });
    }
}

struct Scrub {
    tables: Arc<HostedTables>,
    metrics: Arc<Metrics>,
    rate: u64,
    interval: Duration,
}

/// The epochs of a table that clients fetch, and their commitments, through weak references.
struct Log {
    condition: Arc<Condition>,
    epochs: Vec<Weak<dyn EpochSource>>,
}

/// The result of a pass over a version.
enum ScrubOutcome {
    Whole(u64),
    /// The version is not served any more.
    Gone,
}

impl Scrub {
    /// The served versions, through weak references.
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

    /// Reports that a table could not be checked.
    fn failed(&self, table: &str, epoch: Option<u64>, error: &Error, what: &str) {
        self.metrics.scrub_failed(table);
        let error = error.message();
        tracing::warn!(table, epoch, error, "{what} cannot be checked");
    }

    /// Checks the files from time to time.
    async fn watch(&self) {
        let logged = Seldom::new();
        loop {
            sleep(LOOK).await;
            let versions = self.versions();
            // A file may be on a slow or remote disk.
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
                    if logged.is_due() {
                        let error = ended_unexpectedly(error);
                        let error = error.message();
                        tracing::warn!(error, "files cannot be checked for changes");
                    }
                }
                // The server is stopping.
                Err(_) => return,
            }
        }
    }

    /// Runs pass after pass.
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

    /// Takes the digests of what all versions answer from, before the first version is read at the
    /// rate: the sooner they are taken, the less can be damaged before.
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
            Ok(ScrubOutcome::Gone) => {}
            Ok(ScrubOutcome::Whole(bytes)) => {
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

    /// Reads all of an epoch, at the rate, while clients may fetch it.
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
    async fn read(&self, version: &Weak<Version>) -> Result<ScrubOutcome> {
        let Some(held) = version.upgrade() else { return Ok(ScrubOutcome::Gone) };
        let checked = spawn_blocking(move || held.checked()).await;
        let checked = checked.map_err(ended_unexpectedly)?;
        let mut bytes = 0;
        for checked in checked {
            let mut reading = ReadProgress::new(checked);
            loop {
                // Held only for a step: a version that is retired meanwhile is then freed.
                let Some(held) = version.upgrade().filter(|held| !held.condition.has_ended())
                else {
                    return Ok(ScrubOutcome::Gone);
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
        Ok(ScrubOutcome::Whole(bytes))
    }

    /// Has `read` read the next bytes, on a thread that may wait for a disk. Returns how many they
    /// were, not before the time for those bytes has passed.
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
