//! Results on disk, a line of JSON for each run. What was measured is not measured again, also
//! after the command was interrupted.

use super::run::Run;
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// The results that there are, and where more go.
pub(super) struct Store {
    path: PathBuf,
    /// Results of another machine or version do not count.
    machine: String,
    reports: BTreeMap<String, StoredReport>,
}

/// A line.
#[derive(Serialize, Deserialize)]
struct StoredLine {
    run: String,
    machine: String,
    version: String,
    report: Box<RawValue>,
}

/// What `privet bench --json` prints, as far as it is used here.
#[derive(Clone, Deserialize)]
pub(super) struct StoredReport {
    pub(super) offline: Offline,
    pub(super) online: Online,
    pub(super) edits: Option<StoredEdits>,
    pub(super) client_state_bytes: u64,
    pub(super) server_extra_bytes: u64,
    pub(super) yardsticks: Yardsticks,
    pub(super) ratios: Ratios,
}

#[derive(Clone, Deserialize)]
pub(super) struct Offline {
    pub(super) server_s: f64,
    pub(super) prepare_s: Option<f64>,
    pub(super) client_s: f64,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Clone, Deserialize)]
pub(super) struct Online {
    pub(super) client_query_us: f64,
    pub(super) client_recover_us: f64,
    pub(super) servers: Vec<StoredServer>,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Clone, Deserialize)]
pub(super) struct StoredServer {
    pub(super) answer_us: f64,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Clone, Deserialize)]
pub(super) struct StoredEdits {
    pub(super) records: u64,
    pub(super) server_update_ms: f64,
    pub(super) client_update_ms: f64,
}

#[derive(Clone, Deserialize)]
pub(super) struct Yardsticks {
    pub(super) read_gbps: f64,
    pub(super) aes_blocks_per_s: f64,
}

#[derive(Clone, Deserialize)]
pub(super) struct Ratios {
    pub(super) answer_to_read: Option<f64>,
    pub(super) answer_to_random_reads: Option<f64>,
}

/// What a run printed, as it is and as it is read.
pub(super) struct StoredRun {
    text: Box<RawValue>,
    pub(super) report: StoredReport,
}

impl StoredRun {
    /// Reads what a run printed.
    ///
    /// # Errors
    /// If it is not the report of a run, in words.
    pub(super) fn read(printed: &[u8]) -> Result<Self, String> {
        let text: Box<RawValue> =
            serde_json::from_slice(printed).map_err(|error| error.to_string())?;
        let report = serde_json::from_str(text.get()).map_err(|error| error.to_string())?;
        Ok(Self { text, report })
    }
}

impl Store {
    /// Opens the results in a folder. It is made if it is not there.
    ///
    /// # Errors
    /// If the folder cannot be made or read.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("runs.jsonl");
        let failed = |error: std::io::Error| {
            Error::unavailable(format!("cannot use {}: {error}", path.display()))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(failed)?,
        };
        let machine = machine();
        // A line that was cut off is measured again.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<StoredLine>(line).ok());
        let own = lines.filter(|line| line.machine == machine && line.version == version());
        let reports = own.filter_map(|line| {
            let report = serde_json::from_str(line.report.get()).ok()?;
            Some((line.run, report))
        });
        Ok(Self { reports: reports.collect(), machine, path })
    }

    /// What the run gave, if it was made.
    pub(super) fn report(&self, run: &Run) -> Option<&StoredReport> {
        self.reports.get(&run.name())
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&mut self, run: &Run, measured: StoredRun) -> Result<()> {
        let line = StoredLine {
            run: run.name(),
            machine: self.machine.clone(),
            version: version().to_owned(),
            report: measured.text,
        };
        let written = serde_json::to_string(&line).map_err(std::io::Error::from);
        written.and_then(|line| self.append(&line)).map_err(|error| {
            Error::unavailable(format!("cannot write {}: {error}", self.path.display()))
        })?;
        self.reports.insert(line.run, measured.report);
        Ok(())
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        let mut file: File = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// The machine in words.
    pub(super) fn machine(&self) -> &str {
        &self.machine
    }
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// This machine in words: its processor, its cores, its memory.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let family = field("cpu family").zip(field("model"));
    let family = family.map(|(family, model)| format!(" (family {family}, model {model})"));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = privet_host::memory::total().map_or(0, |bytes| bytes.div_ceil(1 << 30));
    let kernels = Kernels::detect().arm();
    format!(
        "{model}{}, {cores} cores, {memory} GiB of memory, {kernels} kernels",
        family.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"{"scheme":"dpf","offline":{"server_s":0.5,"client_s":0,"up_bytes":0,"down_bytes":0},"online":{"client_query_us":10,"journal_us":0,"client_recover_us":1,"servers":[{"role":0,"answer_us":100,"up_bytes":400,"down_bytes":90}],"up_bytes":800,"down_bytes":180},"client_state_bytes":0,"server_extra_bytes":0,"yardsticks":{"read_gbps":15,"random_reads_per_s":1e7,"aes_blocks_per_s":1e9},"ratios":{"answer_to_read":1.1}}"#;

    #[test]
    fn results_are_there_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("made");
        let (kept, torn) = (Run::new("dpf", 1024, 32, &[]), Run::new("dpf", 4096, 32, &[]));
        let mut store = Store::open(&folder).unwrap();
        for run in [&kept, &torn] {
            assert!(store.report(run).is_none());
            store.keep(run, StoredRun::read(PRINTED.as_bytes()).unwrap()).unwrap();
            assert!(store.report(run).is_some());
        }
        let path = folder.join("runs.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 10]).unwrap();
        let store = Store::open(&folder).unwrap();
        assert_eq!(store.report(&kept).unwrap().online.up_bytes, 800);
        assert!(store.report(&torn).is_none());
        // What another machine measured does not count.
        std::fs::write(&path, text.replace("cores", "kernels")).unwrap();
        assert!(Store::open(&folder).unwrap().report(&kept).is_none());
        assert!(StoredRun::read(b"{}").is_err());
    }
}
