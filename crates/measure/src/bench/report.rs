//! What comes of a measurement: one JSON object, documented in `docs/bench.md` and stable, or the
//! same for people.

use crate::page::{Page, seconds};
use crate::traffic::LookupBytes;
use crate::yardsticks::Yardsticks;
use privet_core::TableShape;
use privet_core::quantities::{bytes, count};
use privet_schemes::registry::Work;
use serde::Serialize;

/// What comes of a measurement. `docs/bench.md` explains the fields.
#[derive(Serialize)]
pub struct BenchReport {
    pub(super) scheme: &'static str,
    pub(super) records: u64,
    pub(super) record_len: u64,
    pub(super) queries: u64,
    pub(super) batch: u64,
    pub(super) threads: usize,
    /// Always true: a run in which one record differs ends with an error and prints no report.
    pub(super) verified: bool,
    #[serde(flatten)]
    pub(super) measured: Run,
    pub(super) kernel: String,
    pub(super) yardsticks: Yardsticks,
    pub(super) ratios: Ratios,
}

/// What is measured of a scheme, before the yardsticks are taken: its memory is free by then.
#[derive(Serialize)]
pub(crate) struct Run {
    pub(crate) offline: Offline,
    pub(crate) online: Online,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edit_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edits: Option<EditsInPlace>,
    pub(crate) client_state_bytes: u64,
    pub(super) server_extra_bytes: u64,
    /// For the printed page only: it follows from scheme and shape.
    #[serde(skip)]
    pub(super) work: Work,
}

/// One batch of edits, for schemes whose servers follow edits in place.
#[derive(Serialize)]
pub(super) struct EditsInPlace {
    pub(super) records: u64,
    pub(super) server_update_ms: f64,
    pub(super) client_update_ms: f64,
}

#[derive(Default, Serialize)]
pub(crate) struct Offline {
    /// Present if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reference_string_s: Option<f64>,
    pub(crate) server_s: f64,
    /// Present for schemes in which a server computes hints for a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prepare_s: Option<f64>,
    pub(crate) client_s: f64,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Default, Serialize)]
pub(crate) struct Online {
    pub(crate) client_query_us: f64,
    pub(super) journal_us: f64,
    pub(crate) client_recover_us: f64,
    pub(crate) servers: Vec<ServerTime>,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Serialize)]
pub(crate) struct ServerTime {
    pub(super) role: u8,
    pub(crate) answer_us: f64,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_random_reads: Option<f64>,
}

impl ServerTime {
    /// The ratio is filled in later, once the yardsticks are known.
    pub(super) fn new(role: u8, answer_us: f64, bytes: LookupBytes) -> Self {
        let LookupBytes { query, answer } = bytes;
        Self { role, answer_us, up_bytes: query, down_bytes: answer, to_random_reads: None }
    }
}

impl Run {
    /// Compares each server's time with the yardstick of single reads, if it makes any.
    pub(super) fn compare_reads(&mut self, yardsticks: &Yardsticks) {
        if let Work::Records { records: reads, .. } | Work::Lines { lines: reads, .. } = self.work {
            let least_us = reads as f64 / yardsticks.random_reads_per_s * 1e6;
            for server in &mut self.online.servers {
                server.to_random_reads = Some(server.answer_us / least_us);
            }
        }
    }
}

/// How many times longer a step takes than the yardstick of its kind predicts, with one thread and
/// one query in a pass. Only the ratios that limit the scheme are present.
#[derive(Default, Serialize)]
pub(super) struct Ratios {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_to_read: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_to_random_reads: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query_to_aes: Option<f64>,
}

impl Ratios {
    pub(super) fn new(measured: &Run, shape: TableShape, yardsticks: &Yardsticks) -> Self {
        let online = &measured.online;
        let answers = online.servers.iter().map(|server| server.answer_us);
        let mut ratios = Self::default();
        match measured.work {
            Work::Nothing | Work::Points => {}
            Work::WholeTable => {
                let least_us = shape.bytes() as f64 / yardsticks.read_gbps / 1e3;
                ratios.answer_to_read = Some(answers.fold(0.0, f64::max) / least_us);
            }
            Work::Lines { .. } => ratios.answer_to_random_reads = Some(single_reads(online)),
            Work::Records { aes_blocks, .. } => {
                ratios.answer_to_random_reads = Some(single_reads(online));
                let aes_us = aes_blocks as f64 / yardsticks.aes_blocks_per_s * 1e6;
                ratios.query_to_aes = (aes_blocks > 0).then_some(online.client_query_us / aes_us);
            }
        }
        ratios
    }
}

/// The highest ratio of a server's time to that of the same number of single reads.
fn single_reads(online: &Online) -> f64 {
    online.servers.iter().filter_map(|server| server.to_random_reads).fold(0.0, f64::max)
}

impl BenchReport {
    /// Says it all to people.
    pub fn put_on(&self, page: &mut impl Page) {
        let Run { offline, online, work, .. } = &self.measured;
        let us = |microseconds: f64| seconds(microseconds / 1e6);
        let pair = |up: u64, down: u64| format!("{}, {}", bytes(up), bytes(down));
        let table = self.records as f64 * self.record_len as f64;
        page.line(format!(
            "{} on {} records of {} ({}), {} queries in batches of {}, {} server thread(s), {} kernels; every record verified",
            self.scheme,
            count(self.records),
            bytes(self.record_len),
            bytes(table as u64),
            self.queries,
            self.batch,
            self.threads,
            self.kernel
        ));
        page.line("offline, once");
        if let Some(reference_string_s) = offline.reference_string_s {
            page.entry("reference string", seconds(reference_string_s));
        }
        page.entry("server", seconds(offline.server_s));
        if let Some(prepare_s) = offline.prepare_s {
            page.entry("server, for a client", seconds(prepare_s));
        }
        page.entry("client", seconds(offline.client_s));
        page.entry("sent, received", pair(offline.up_bytes, offline.down_bytes));
        page.line("online, median per query");
        let query = us(online.client_query_us);
        page.entry(
            "client query",
            match (*work, self.ratios.query_to_aes) {
                (Work::Records { aes_blocks, .. }, Some(ratio)) => {
                    format!("{query}: {} AES blocks, {ratio:.2} x AES", count(aes_blocks))
                }
                _ => query,
            },
        );
        if online.journal_us > 0.0 {
            page.entry("journal", us(online.journal_us));
        }
        for server in &online.servers {
            let answer = us(server.answer_us);
            page.entry(
                &format!("server {} answer", server.role),
                match (*work, server.to_random_reads) {
                    (Work::Records { records, .. }, Some(ratio)) => {
                        let records = count(records);
                        format!("{answer}: {records} records, {ratio:.2} x random reads")
                    }
                    (Work::Lines { lines, .. }, Some(ratio)) => {
                        let lines = count(lines);
                        format!("{answer}: {lines} cache lines, {ratio:.2} x random reads")
                    }
                    (Work::Points, _) => answer,
                    _ => {
                        let rate = table / server.answer_us / 1e3;
                        let share = rate / self.yardsticks.read_gbps;
                        format!("{answer}: {rate:.1} GB/s, {share:.2} x read")
                    }
                },
            );
        }
        page.entry("client recover", us(online.client_recover_us));
        page.entry("sent, received", pair(online.up_bytes, online.down_bytes));
        if let Some(edit_us) = self.measured.edit_us {
            page.line("when a record of the table changes, median");
            page.entry("client", us(edit_us));
        }
        if let Some(edits) = &self.measured.edits {
            page.line(format!("when {} records of the table change at once", count(edits.records)));
            page.entry("each server", us(edits.server_update_ms * 1e3));
            page.entry("client", us(edits.client_update_ms * 1e3));
        }
        page.line("kept");
        page.entry("client state", bytes(self.measured.client_state_bytes));
        page.entry("server, beyond table", bytes(self.measured.server_extra_bytes));
        page.line("this machine, one core, in this run");
        page.entry("sequential read", format!("{:.1} GB/s", self.yardsticks.read_gbps));
        page.entry(
            "random reads",
            format!(
                "{:.1} M/s of {}",
                self.yardsticks.random_reads_per_s / 1e6,
                match work {
                    Work::Lines { .. } => bytes(64),
                    _ => bytes(self.record_len),
                }
            ),
        );
        page.entry("AES-128 blocks", format!("{:.2} G/s", self.yardsticks.aes_blocks_per_s / 1e9));
        page.entry(
            "byte products",
            format!("{:.0} G/s", self.yardsticks.multiply_accumulates_per_s / 1e9),
        );
    }
}
