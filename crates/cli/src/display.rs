//! Numbers, sizes, durations and progress for people. Reports go to standard output through
//! [`Page`], and progress to standard error.

mod screen;
pub(crate) mod voice;

use crate::printable::{printable, printable_json, printable_lines};
use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};
use privet_core::{Error, Result};
use privet_measure::watch::{Amount, Watched};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use privet_core::quantities::{bytes, count, hexadecimal};
pub(crate) use privet_measure::page::{duration, some};

/// `3 of 38 B`. For an authenticated table it also names the share of the path: `3 of 102 B, of
/// which the path takes 64 B`
pub(crate) fn records(count: u64, record_len: u64, path_len: Option<u64>) -> String {
    let path = path_len.map(|len| format!(", of which the path takes {}", bytes(len)));
    format!("{} of {}{}", self::count(count), bytes(record_len), path.unwrap_or_default())
}

/// Text for standard output: lines, and pairs of a label and a value in two columns.
#[derive(Default)]
pub(crate) struct Page(String);

/// What measures and forecasts puts its reports on one.
impl privet_measure::page::Page for Page {
    fn line(&mut self, text: impl AsRef<str>) {
        self.line(text);
    }

    fn paragraph(&mut self, text: impl AsRef<str>) {
        self.paragraph(text);
    }

    fn entry(&mut self, label: &str, value: impl std::fmt::Display) {
        self.entry(label, value);
    }

    fn table<const COLUMNS: usize>(
        &mut self,
        heading: [&str; COLUMNS],
        rows: &[[String; COLUMNS]],
    ) {
        self.table(heading, rows);
    }
}

impl Page {
    /// The page that somebody fills.
    pub(crate) fn of(fill: impl FnOnce(&mut Self)) -> Self {
        let mut page = Self::default();
        fill(&mut page);
        page
    }

    /// A line of text.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.0.push_str(&printable_lines(text.as_ref()));
        self.0.push('\n');
        self
    }

    /// One or more sentences, indented, in lines of at most 100 columns.
    pub(crate) fn paragraph(&mut self, text: impl AsRef<str>) -> &mut Self {
        let text = printable(text.as_ref());
        let mut line = "  ".to_owned();
        for word in text.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > 100 {
                self.line(&line);
                line = "  ".to_owned();
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(line)
    }

    /// A label and its value.
    pub(crate) fn entry(&mut self, label: &str, value: impl std::fmt::Display) -> &mut Self {
        let value = value.to_string();
        self.0.push_str(&format!("  {:<22} {}\n", printable(label), printable(&value)));
        self
    }

    /// A label and its value, if there is one.
    pub(crate) fn entry_if(&mut self, label: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.entry(label, value);
        }
    }

    /// A label and a number of something, unless there is none.
    pub(crate) fn count_if(&mut self, label: &str, number: u64) {
        self.entry_if(label, (number > 0).then(|| count(number)));
    }

    /// A heading, then a line for each row. Columns are aligned on the right. The first is aligned
    /// on the left if it has no heading.
    pub(crate) fn table<const COLUMNS: usize>(
        &mut self,
        heading: [&str; COLUMNS],
        rows: &[[String; COLUMNS]],
    ) -> &mut Self {
        let is_first_of_names = heading.first().is_some_and(|first| first.is_empty());
        let heading = heading.map(str::to_owned);
        let lines: Vec<_> = [&heading].into_iter().chain(rows).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..COLUMNS).filter_map(width).collect();
        for line in lines {
            let cells = line.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 if is_first_of_names => format!("  {cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            self.line(cells.collect::<String>().trim_end());
        }
        self
    }

    /// Writes the collected text.
    pub(crate) fn print(&self) -> Result<()> {
        write_out(self.0.as_bytes())
    }

    /// The same for a server, which goes on whether or not anybody reads it.
    pub(crate) fn announce(&self) {
        let lines = self.0.matches('\n').count();
        voice::on_output().say(self.0.as_bytes().to_vec(), lines as u64);
    }

    /// The same for a command that has to clear up: see [`is_read`].
    pub(crate) fn is_read(&self) -> Result<bool> {
        is_read(self.0.as_bytes())
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

/// Writes to standard output. If the reader went away (`| head`), nothing is left to do and nothing
/// failed, so the process ends with code 0.
pub(crate) fn write_out(bytes: &[u8]) -> Result<()> {
    match is_read(bytes)? {
        true => Ok(()),
        false => exit(0),
    }
}

/// Ends the process. What was said before is still written, if it can be.
pub(crate) fn exit(code: i32) -> ! {
    voice::farewell();
    std::process::exit(code)
}

/// Writes to standard output, for a command that has to clear up before it ends. Returns whether
/// the reader is still there.
pub(crate) fn is_read(bytes: &[u8]) -> Result<bool> {
    voice::settle();
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::unavailable("cannot write to standard output").caused_by(error)),
    }
}

/// Whether only errors and requested output are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// The bar that stays on the screen while other lines are written.
static STANDING: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// If `quiet` is true, there are no notices and no progress bars from here on.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether progress bars are shown at all.
pub(crate) fn shows_progress() -> bool {
    std::io::stderr().is_terminal() && !QUIET.load(Ordering::Relaxed)
}

/// Prints something optional on standard error; `--quiet` suppresses it.
pub(crate) fn notice(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        say(text);
    }
}

/// Prints a line on standard error. Never waits: if nobody reads, the line is lost and counted.
pub(crate) fn say(text: &str) {
    say_lines(&printable(text));
}

/// As [`say`], for lines that should not be lost, from a thread that nothing waits for. It first
/// waits for a slow reader, as long as something is read now and then.
pub(crate) fn say_in_full(text: &str) {
    voice::on_error().wait_for_room();
    say(text);
}

/// As [`say`], for text that is [printable](crate::printable), of several lines if it has to be.
pub(crate) fn say_lines(text: &str) {
    let standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let lines = 1 + text.matches('\n').count() as u64;
    let write = || voice::on_error().say(format!("privet: {text}\n").into_bytes(), lines);
    match standing {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// A progress bar in bytes on a terminal. Elsewhere it is hidden.
pub(crate) fn byte_progress(what: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes}{speed}",
        None => "{msg} {spinner} {bytes}{speed}",
    };
    bar(what, total, template, |rate| format!("{}/s", bytes(rate as u64)))
}

/// A progress bar for a share of work, in thousandths.
pub(crate) fn share_progress(what: &str) -> ProgressBar {
    bar(what, Some(1000), "{msg} [{bar:30}] {percent} %{speed}", |_| String::new())
}

/// Shows what is under way when something is measured.
pub(crate) fn watch(what: &str, amount: Amount) -> Watched {
    let bar = match amount {
        Amount::Unknown => working(what),
        Amount::Thousandths => share_progress(what),
        Amount::Bytes(total) => byte_progress(what, Some(total)),
    };
    Box::new(move |done| bar.set_position(done))
}

/// A progress bar for a number of steps, each named by the bar's message.
pub(crate) fn count_progress(what: &str, total: u64) -> ProgressBar {
    bar(what, Some(total), "[{bar:30}] {human_pos}/{human_len} {msg}", |_| String::new())
}

/// Counts the lookups of a long list on a terminal.
pub(crate) struct Batch {
    total: Option<u64>,
    done: u64,
    is_shown: bool,
    bar: Option<ProgressBar>,
}

impl Batch {
    /// Fewer lookups than this are not worth a bar.
    const MANY: u64 = 100;

    /// A batch of `total` lookups, if the number is known. `screen_is_free`: nothing else is
    /// written to the terminal.
    pub(crate) fn new(total: Option<u64>, screen_is_free: bool) -> Self {
        Self { total, done: 0, is_shown: screen_is_free && shows_progress(), bar: None }
    }

    /// Counts a finished lookup.
    pub(crate) fn one_more(&mut self) {
        self.done += 1;
        let is_long = self.total.unwrap_or(self.done) > Self::MANY;
        if self.is_shown && is_long && self.bar.is_none() {
            let template = match self.total {
                Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len}{speed}",
                None => "{msg} {spinner} {human_pos}{speed}",
            };
            let bar = bar("looking up", self.total, template, |rate| format!("{rate:.0}/s"));
            *STANDING.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            *STANDING.lock().unwrap_or_else(PoisonError::into_inner) = None;
            bar.finish_and_clear();
        }
    }
}

/// A spinner on a terminal, for work whose end is unknown.
pub(crate) fn working(what: &str) -> ProgressBar {
    let spinner = bar(what, None, "{msg} {spinner} {elapsed}", |_| String::new());
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

/// A bar, which is cleared when it is dropped. `rate` puts a speed, in steps per second, into
/// words.
fn bar(what: &str, total: Option<u64>, template: &str, rate: fn(f64) -> String) -> ProgressBar {
    let target = if shows_progress() { screen::target() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        // Steps done before the bar appeared must not count towards the speed.
        let began = Arc::new(OnceLock::new());
        let speed = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let (at, from) = *began.get_or_init(|| (Instant::now(), state.pos()));
            let steps = state.pos().saturating_sub(from);
            let left = state.len().map(|len| len.saturating_sub(state.pos()));
            let _ = out.write_str(&speed(at.elapsed(), steps, left, rate));
        };
        bar.set_style(style.progress_chars("=> ").with_key("speed", speed));
    }
    bar.with_message(printable(what).into_owned()).with_finish(ProgressFinish::AndClear)
}

/// ` at 3.2 MiB/s, 12s left`, for `steps` in `time`. Empty until there is enough to measure.
fn speed(time: Duration, steps: u64, left: Option<u64>, rate: fn(f64) -> String) -> String {
    const TELLING: Duration = Duration::from_secs(1);
    if time < TELLING || steps == 0 {
        return String::new();
    }
    let per_second = steps as f64 / time.as_secs_f64();
    let words = match rate(per_second) {
        rate if rate.is_empty() => rate,
        rate => format!(" at {rate}"),
    };
    let seconds = left.map(|left| (left as f64 / per_second).min(1e9).ceil() as u64);
    let left = seconds.map(|left| format!(", {:#} left", HumanDuration(Duration::from_secs(left))));
    format!("{words}{}", left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_told_once_it_says_something() {
        let per_second = |rate: f64| format!("{}/s", bytes(rate as u64));
        let told =
            |millis, steps, left| speed(Duration::from_millis(millis), steps, left, per_second);
        // The first piece was ready in a buffer, so its speed says nothing.
        assert_eq!(told(1, 1 << 25, Some(1 << 30)), "");
        assert_eq!(told(999, 1 << 25, None), "");
        assert_eq!(told(2000, 0, None), "");
        assert_eq!(told(2000, 1 << 25, None), " at 16.00 MiB/s");
        assert_eq!(told(2000, 1 << 25, Some(1 << 30)), " at 16.00 MiB/s, 64s left");
        let share = speed(Duration::from_secs(2), 500, Some(500), |_| String::new());
        assert_eq!(share, ", 2s left");
    }
}
