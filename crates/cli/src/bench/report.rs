//! What `privet bench` prints: one JSON object, documented in `docs/bench.md` and stable, or the
//! same as a page for people.

use crate::display::{self, Page};
use crate::traffic::LookupBytes;
use crate::yardsticks::Yardsticks;
use privet_core::TableShape;
use privet_schemes::registry::Work;
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
pub(crate) struct BenchReport {
    pub(super) scheme: &'static str,
    pub(super) records: u64,
    pub(super) record_len: u64,
    pub(super) queries: u64,
    pub(super) batch: u64,
    pub(super) threads: usize,
    /// Always true: a run in which one record differs ends with an error and prints no report.
    pub(super) verified: bool,
    pub(super) offline: Offline,
    pub(super) online: Online,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edit_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) edits: Option<EditsInPlace>,
    pub(super) client_state_bytes: u64,
    pub(super) server_extra_bytes: u64,
    pub(super) kernel: String,
    pub(super) yardsticks: Yardsticks,
    pub(super) ratios: Ratios,
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

#[derive(Serialize)]
pub(super) struct Offline {
    /// Present if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reference_string_s: Option<f64>,
    pub(super) server_s: f64,
    /// Present for schemes in which a server computes hints for a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prepare_s: Option<f64>,
    pub(super) client_s: f64,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Serialize)]
pub(super) struct Online {
    pub(super) client_query_us: f64,
    pub(super) journal_us: f64,
    pub(super) client_recover_us: f64,
    pub(super) servers: Vec<ServerTime>,
    pub(super) up_bytes: u64,
    pub(super) down_bytes: u64,
}

#[derive(Serialize)]
pub(super) struct ServerTime {
    pub(super) role: u8,
    pub(super) answer_us: f64,
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

impl Online {
    /// Compares each server's time with the yardstick of its work.
    pub(super) fn against(mut self, work: Work, yardsticks: &Yardsticks) -> Self {
        if let Work::Records { records: reads, .. } | Work::Lines { lines: reads, .. } = work {
            let least_us = reads as f64 / yardsticks.random_reads_per_s * 1e6;
            for server in &mut self.servers {
                server.to_random_reads = Some(server.answer_us / least_us);
            }
        }
        self
    }
}

/// How many times longer a step takes than the yardstick of its kind predicts, with one thread and
/// one query in a pass. Only the ratios that limit the scheme are present.
#[derive(Serialize)]
pub(super) struct Ratios {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_to_read: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer_to_random_reads: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query_to_aes: Option<f64>,
}

impl Ratios {
    pub(super) fn new(
        work: Work,
        shape: TableShape,
        online: &Online,
        yardsticks: &Yardsticks,
    ) -> Self {
        let slowest = online.servers.iter().map(|server| server.answer_us).fold(0.0, f64::max);
        match work {
            Work::Nothing | Work::Points => {
                Self { answer_to_read: None, answer_to_random_reads: None, query_to_aes: None }
            }
            Work::WholeTable => {
                let least_us = shape.bytes() as f64 / yardsticks.read_gbps / 1e3;
                Self {
                    answer_to_read: Some(slowest / least_us),
                    answer_to_random_reads: None,
                    query_to_aes: None,
                }
            }
            Work::Lines { .. } => Self {
                answer_to_read: None,
                answer_to_random_reads: Some(single_reads(online)),
                query_to_aes: None,
            },
            Work::Records { aes_blocks, .. } => {
                let aes_us = aes_blocks as f64 / yardsticks.aes_blocks_per_s * 1e6;
                Self {
                    answer_to_read: None,
                    answer_to_random_reads: Some(single_reads(online)),
                    query_to_aes: (aes_blocks > 0).then_some(online.client_query_us / aes_us),
                }
            }
        }
    }
}

/// The highest ratio of a server's time to that of the same number of single reads.
fn single_reads(online: &Online) -> f64 {
    online.servers.iter().filter_map(|server| server.to_random_reads).fold(0.0, f64::max)
}

impl BenchReport {
    pub(super) fn page(&self) -> Page {
        let us = |microseconds: f64| display::duration(Duration::from_secs_f64(microseconds / 1e6));
        let seconds = |seconds: f64| display::duration(Duration::from_secs_f64(seconds));
        let table = self.records as f64 * self.record_len as f64;
        let mut page = Page::default();
        page.line(format!(
            "{} on {} records of {} ({}), {} queries in batches of {}, {} server thread(s), {} kernels; every record verified",
            self.scheme,
            display::count(self.records),
            display::bytes(self.record_len),
            display::bytes(table as u64),
            self.queries,
            self.batch,
            self.threads,
            self.kernel
        ));
        page.line("offline, once");
        if let Some(reference_string_s) = self.offline.reference_string_s {
            page.entry("reference string", seconds(reference_string_s));
        }
        page.entry("server", seconds(self.offline.server_s));
        if let Some(prepare_s) = self.offline.prepare_s {
            page.entry("server, for a client", seconds(prepare_s));
        }
        page.entry("client", seconds(self.offline.client_s));
        page.entry(
            "sent, received",
            format!(
                "{}, {}",
                display::bytes(self.offline.up_bytes),
                display::bytes(self.offline.down_bytes)
            ),
        );
        page.line("online, median per query");
        let query = us(self.online.client_query_us);
        page.entry(
            "client query",
            match (self.work, self.ratios.query_to_aes) {
                (Work::Records { aes_blocks, .. }, Some(ratio)) => {
                    format!("{query}: {} AES blocks, {ratio:.2} x AES", display::count(aes_blocks))
                }
                _ => query,
            },
        );
        if self.online.journal_us > 0.0 {
            page.entry("journal", us(self.online.journal_us));
        }
        for server in &self.online.servers {
            let answer = us(server.answer_us);
            page.entry(
                &format!("server {} answer", server.role),
                match (self.work, server.to_random_reads) {
                    (Work::Records { records, .. }, Some(ratio)) => {
                        let records = display::count(records);
                        format!("{answer}: {records} records, {ratio:.2} x random reads")
                    }
                    (Work::Lines { lines, .. }, Some(ratio)) => {
                        let lines = display::count(lines);
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
        page.entry("client recover", us(self.online.client_recover_us));
        page.entry(
            "sent, received",
            format!(
                "{}, {}",
                display::bytes(self.online.up_bytes),
                display::bytes(self.online.down_bytes)
            ),
        );
        if let Some(edit_us) = self.edit_us {
            page.line("when a record of the table changes, median");
            page.entry("client", us(edit_us));
        }
        if let Some(edits) = &self.edits {
            page.line(format!(
                "when {} records of the table change at once",
                display::count(edits.records)
            ));
            page.entry("each server", us(edits.server_update_ms * 1e3));
            page.entry("client", us(edits.client_update_ms * 1e3));
        }
        page.line("kept");
        page.entry("client state", display::bytes(self.client_state_bytes));
        page.entry("server, beyond table", display::bytes(self.server_extra_bytes));
        page.line("this machine, one core, in this run");
        page.entry("sequential read", format!("{:.1} GB/s", self.yardsticks.read_gbps));
        page.entry(
            "random reads",
            format!(
                "{:.1} M/s of {}",
                self.yardsticks.random_reads_per_s / 1e6,
                match self.work {
                    Work::Lines { .. } => display::bytes(64),
                    _ => display::bytes(self.record_len),
                }
            ),
        );
        page.entry("AES-128 blocks", format!("{:.2} G/s", self.yardsticks.aes_blocks_per_s / 1e9));
        page.entry(
            "byte products",
            format!("{:.0} G/s", self.yardsticks.multiply_accumulates_per_s / 1e9),
        );
        page
    }
}
