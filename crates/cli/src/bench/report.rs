//! What `privet bench` prints: one JSON object, documented in `docs/bench.md` and stable, or the same as a page for people.

use crate::display::{self, Page};
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
pub(super) struct Report {
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
    pub(super) client_state_bytes: u64,
    pub(super) server_extra_bytes: u64,
    pub(super) kernel: String,
    pub(super) yardsticks: Yardsticks,
}

#[derive(Serialize)]
pub(super) struct Offline {
    pub(super) server_s: f64,
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
}

#[derive(Serialize)]
pub(super) struct Yardsticks {
    pub(super) read_gbps: f64,
    pub(super) random_reads_per_s: f64,
    pub(super) aes_blocks_per_s: f64,
    /// For people only: what bounds a batch when memory does not.
    #[serde(skip)]
    pub(super) multiply_accumulates_per_s: f64,
}

impl Report {
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
        page.entry("server", seconds(self.offline.server_s));
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
        page.entry("client query", us(self.online.client_query_us));
        if self.online.journal_us > 0.0 {
            page.entry("journal", us(self.online.journal_us));
        }
        for server in &self.online.servers {
            let rate = table / server.answer_us / 1e3;
            page.entry(
                &format!("server {} answer", server.role),
                format!(
                    "{}: {rate:.1} GB/s, {:.2} x read",
                    us(server.answer_us),
                    rate / self.yardsticks.read_gbps
                ),
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
                display::bytes(self.record_len)
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
