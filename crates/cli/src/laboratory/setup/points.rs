//! `privet setup points`: computes once what servers of finite differences answer from, and writes
//! it to a file.

use super::arguments::SetupPoints;
use crate::commands::inspect::verify;
use crate::commands::serve::kernels;
use crate::display::{self, Page};
use crate::laboratory::points_file::{PointsFile, PointsPlan, PointsWriter};
use privet_core::{Error, Result};
use privet_host::memory;
use privet_laboratory::stored_setup::{SetupStore, setup_bytes, write_setup};
use privet_measure::watch::Amount;
use privet_schemes::registry::{self, ServerOptions};
use privet_table::publish::output;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::UpdateLog;
use serde::Serialize;
use std::num::NonZero;
use std::time::Instant;

/// Computes the points of a table and writes them. An existing file is kept unless it may be
/// replaced.
pub(super) fn run(arguments: &SetupPoints) -> Result<()> {
    let output = &arguments.output;
    let needed = "servers that answer from it could not start again without it";
    let existing = output::for_own_kind(output, arguments.force, needed, PointsFile::is_one)?;
    let start = Instant::now();
    let tuning = arguments.options.read(Some(arguments.scheme))?;
    let snapshot = Snapshot::open(&arguments.table)?;
    check_not_updated(&snapshot)?;
    let identity = snapshot.identity();
    let plan = registry::plan(arguments.scheme, &identity, &tuning)?;
    let points_len = setup_bytes(&plan, &identity)?;
    let memory = memory_for(points_len, arguments.memory)?;
    // The file is created before the long work, so that a path that cannot be written fails at
    // once.
    let writer = PointsWriter::create(
        output,
        existing,
        PointsPlan {
            identity,
            scheme: plan.scheme.name().to_owned(),
            parameters: plan.parameters.clone(),
            points_len,
            table_file: arguments.table.clone(),
        },
    )?;
    // Points of damaged records would be bound to a digest that does not match those records.
    verify(&snapshot, "checking the table")?;

    let threads = threads(arguments.threads);
    let options = ServerOptions { kernels: kernels(arguments.kernel)?, threads: threads.get() };
    {
        let bar = display::share_progress(&format!("computing {}", output.display()));
        let report = |share: f64| bar.set_position((share * 1000.0) as u64);
        write_setup(&plan, snapshot.view(), options, memory, &Store(&writer), &report)?;
    }
    let read = display::watch("reading it again for its checksum", Amount::Bytes(points_len));
    let (_, file_bytes) = writer.finish(threads, |done, _| read(done))?;
    drop(read);
    let report = PointsReport {
        file: output.display().to_string(),
        scheme: plan.scheme.name(),
        servers: plan.servers,
        parameters: plan.words(&identity).unwrap_or_default(),
        table_id: identity.id.to_string(),
        epoch: identity.epoch.0,
        digest: identity.digest.to_string(),
        points_bytes: points_len,
        file_bytes,
        seconds: start.elapsed().as_secs_f64(),
    };
    display::report(arguments.json, &report, || report.page())
}

/// Refuses a table with updates in its log. A server would refuse points of the table file alone.
fn check_not_updated(snapshot: &Snapshot) -> Result<()> {
    let log = UpdateLog::of(snapshot)?;
    match log.is_some_and(|log| log.current() != snapshot.identity()) {
        true => Err(Error::api_misuse(
            "the table has updates in its log: make them part of the table file first (`privet update --compact`)",
        )
        .within(snapshot.path().display())),
        false => Ok(()),
    }
}

/// The chosen number of threads, or one for each core.
pub(crate) fn threads(chosen: Option<u16>) -> NonZero<usize> {
    let chosen = chosen.and_then(|threads| NonZero::new(usize::from(threads)));
    chosen.or(std::thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
}

/// With less memory, system calls take most of the time. With much less, the work never ends.
const LEAST_MEMORY: u64 = 1 << 20;

/// The chosen number of bytes. The default is half of the available memory, or the length of the
/// points if the system does not tell.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is too little.
fn memory_for(points_len: u64, chosen: Option<u64>) -> Result<u64> {
    match chosen {
        Some(bytes) if bytes < LEAST_MEMORY => Err(Error::api_misuse(format!(
            "--memory is in bytes, and {bytes} are too few: at least {LEAST_MEMORY}; 2^33 is 8 GiB"
        ))),
        Some(bytes) => Ok(bytes),
        None => Ok(memory::available().map_or(points_len, |bytes| bytes / 2).max(LEAST_MEMORY)),
    }
}

/// The unfinished file, in the form that schemes write to.
struct Store<'a>(&'a PointsWriter);

impl SetupStore for Store<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, bytes)
    }
}

#[derive(Serialize)]
struct PointsReport {
    file: String,
    scheme: &'static str,
    servers: usize,
    parameters: String,
    table_id: String,
    epoch: u64,
    digest: String,
    points_bytes: u64,
    file_bytes: u64,
    seconds: f64,
}

impl PointsReport {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{} computed in {:.1} s", self.file, self.seconds));
        page.entry("for", format!("{}, {} servers", self.scheme, self.servers));
        page.entry("parameters", &self.parameters);
        page.entry("file size", display::bytes(self.file_bytes));
        page.entry("of table", format!("{}, epoch {}", self.table_id, self.epoch));
        page.entry("its digest", &self.digest);
        page.line(
            "All servers of the table may have a copy of this file (`privet serve TABLE --points FILE`). It holds the table's contents: who may not read the table may not read it. Whoever can write it\n\
             can make answers wrong.",
        );
        page
    }
}
