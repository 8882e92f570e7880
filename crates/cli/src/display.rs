//! Numbers, sizes, durations and progress for people. Everything written by hand goes to standard
//! output through [`Page`], progress to standard error.

use crate::printable::{printable, printable_json, printable_lines};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use privet_core::{Error, Result};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

pub(crate) use privet_core::quantities::{bytes, count, hexadecimal};

/// `3 of 38 B`, and for an authenticated table how much of that is the path: `3 of 102 B, of which
/// the path takes 64 B`
pub(crate) fn records(count: u64, record_len: u64, path_len: Option<u64>) -> String {
    let path = path_len.map(|len| format!(", of which the path takes {}", bytes(len)));
    format!("{} of {}{}", self::count(count), bytes(record_len), path.unwrap_or_default())
}

/// `0.4 µs`, `35 µs`, `1.20 ms`, `3.4 s`
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-5 => format!("{:.1} µs", s * 1e6),
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        _ => HumanDuration(duration).to_string(),
    }
}

/// Two columns of text on standard output: a label and what it says.
#[derive(Default)]
pub(crate) struct Page(String);

impl Page {
    /// A line of text.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.0.push_str(&printable_lines(text.as_ref()));
        self.0.push('\n');
        self
    }

    /// A label and its value.
    pub(crate) fn entry(&mut self, label: &str, value: impl std::fmt::Display) -> &mut Self {
        let value = value.to_string();
        self.0.push_str(&format!("  {:<22} {}\n", printable(label), printable(&value)));
        self
    }

    /// Writes what was collected.
    pub(crate) fn print(&self) -> Result<()> {
        write_out(self.0.as_bytes())
    }
}

/// Prints a report as one line of JSON, or as a page for people.
pub(crate) fn report(
    json: bool,
    report: &impl Serialize,
    page: impl FnOnce() -> Page,
) -> Result<()> {
    if !json {
        return page().print();
    }
    let text = serde_json::to_string(report).map_err(|error| {
        Error::unavailable("the report cannot be printed as JSON").caused_by(error)
    })?;
    write_out(format!("{}\n", printable_json(&text)).as_bytes())
}

/// Writes to standard output. A reader that went away (`| head`) is no error of ours, but there is
/// nothing left to do: the process ends quietly.
pub(crate) fn write_out(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Error::unavailable("cannot write to standard output").caused_by(error)),
    }
}

/// A progress bar in bytes on a terminal, nothing elsewhere.
pub(crate) fn byte_progress(what: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes} at {bytes_per_sec}, {eta} left",
        None => "{msg} {spinner} {bytes} at {bytes_per_sec}",
    };
    bar(what, total, template)
}

/// A progress bar for a share of work, in thousandths.
pub(crate) fn share_progress(what: &str) -> ProgressBar {
    bar(what, Some(1000), "{msg} [{bar:30}] {percent} %, {eta} left")
}

/// A sign of life for work whose end cannot be told, on a terminal.
pub(crate) fn working(what: &str) -> ProgressBar {
    let spinner = bar(what, None, "{msg} {spinner} {elapsed}");
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn bar(what: &str, total: Option<u64>, template: &str) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::new_spinner(),
    };
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(printable(what).into_owned())
}
