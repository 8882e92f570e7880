//! `privet doctor`: what this machine offers, and what to do about what is missing.

use crate::arguments::Doctor;
use crate::display::{self, Page};
use privet_core::Result;
use privet_host::memory;
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use privet_kernels::memory::{HugeBuffer, ThpMode, transparent_huge_pages};
use serde::Serialize;

/// Each connection needs a file. With fewer than this, a server does not start with the connections
/// that it allows otherwise.
const ENOUGH_FILES: u64 = 4096 + 256;
/// A table is held in memory once. Less free memory than this is too little for tables of ordinary
/// size.
const ENOUGH_MEMORY: u64 = 1 << 30;

/// One finding.
#[derive(Serialize)]
struct Finding {
    subject: &'static str,
    found: String,
    good: bool,
    advice: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: String) -> Self {
        Self { subject, found, good: true, advice: None }
    }

    fn wanting(subject: &'static str, found: String, advice: impl Into<String>) -> Self {
        Self { subject, found, good: false, advice: Some(advice.into()) }
    }
}

/// Examines the machine and prints the findings. No finding is an error: Privet still works on a
/// machine that lacks something, only more slowly.
pub(crate) fn run(arguments: &Doctor) -> Result<()> {
    let findings = [processor(), kernels(), huge_pages(), of_memory(), open_files()];
    display::report(arguments.json, &findings, || page(&findings))
}

fn page(findings: &[Finding]) -> Page {
    let mut page = Page::default();
    for finding in findings {
        page.entry(finding.subject, &finding.found);
        if let Some(advice) = &finding.advice {
            page.entry("", format!("-> {advice}"));
        }
    }
    let wanting = findings.iter().filter(|finding| !finding.good).count();
    page.line(match wanting {
        0 => "Everything is as it should be.".to_owned(),
        _ => {
            format!("Privet works here; {wanting} thing(s) above would make it faster or steadier.")
        }
    });
    page
}

fn processor() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Finding::good("processor", format!("{}, {cores} core(s)", std::env::consts::ARCH))
}

fn kernels() -> Finding {
    let available: Vec<String> = Arm::available().iter().map(Arm::to_string).collect();
    let chosen = Kernels::detect().arm();
    let found = format!("{chosen} (available: {})", available.join(", "));
    match chosen {
        Arm::Portable => Finding::wanting(
            "kernels",
            found,
            "answers are several times slower than on a processor with AVX2 or, better, AVX-512 with VBMI, VNNI, GFNI and VAES",
        ),
        Arm::Avx2 => Finding::wanting(
            "kernels",
            found,
            "batches are about twice as fast on a processor with AVX-512, VBMI, VNNI, GFNI and VAES",
        ),
        _ => Finding::good("kernels", found),
    }
}

/// Asks for huge pages as a table would, touches them, and reads back how many were granted.
fn huge_pages() -> Finding {
    const PROBE: usize = 64 << 20;
    let mode = transparent_huge_pages();
    let advice = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    let granted = HugeBuffer::<u8>::new_zeroed(PROBE).ok().and_then(|mut buffer| {
        buffer.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        buffer.huge_page_bytes()
    });
    let granted_of_all = |granted: usize| {
        let (granted, all) = (display::bytes(granted as u64), display::bytes(PROBE as u64));
        format!("mode {mode}; {granted} of {all} granted")
    };
    match (mode, granted) {
        (_, Some(bytes)) if bytes >= PROBE / 2 => {
            Finding::good("huge pages", granted_of_all(bytes))
        }
        (ThpMode::Never, _) => Finding::wanting("huge pages", format!("mode {mode}"), advice),
        (_, Some(bytes)) => Finding::wanting(
            "huge pages",
            granted_of_all(bytes),
            "memory is fragmented: free some, or restart the machine, before serving large tables",
        ),
        (_, None) => Finding::good(
            "huge pages",
            format!("mode {mode}; this system does not say how many are granted"),
        ),
    }
}

fn of_memory() -> Finding {
    let (Some(total), Some(free)) = (memory::total(), memory::available()) else {
        return Finding::good("memory", "this system does not say".to_owned());
    };
    let found = format!("{} available of {}", display::bytes(free), display::bytes(total));
    if free >= ENOUGH_MEMORY {
        return Finding::good("memory", found);
    }
    Finding::wanting(
        "memory",
        found,
        "a server holds each table in memory once; free some or serve smaller tables",
    )
}

fn open_files() -> Finding {
    let limit = std::fs::read_to_string("/proc/self/limits").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("Max open files"))?.to_owned();
        // A server raises the first of the two limits as far as the second allows.
        let hard = line.split_whitespace().nth(4)?.to_owned();
        Some(if hard == "unlimited" { u64::MAX } else { hard.parse().ok()? })
    });
    match limit {
        None => Finding::good("open files", "this system does not say".to_owned()),
        Some(u64::MAX) => Finding::good("open files", "unlimited".to_owned()),
        Some(limit) if limit >= ENOUGH_FILES => {
            Finding::good("open files", format!("limit {}", display::count(limit)))
        }
        Some(limit) => Finding::wanting(
            "open files",
            format!("limit {}", display::count(limit)),
            format!(
                "each connection needs one: run `ulimit -n {ENOUGH_FILES}` before `privet serve`, or give it --limit connections=N"
            ),
        ),
    }
}
