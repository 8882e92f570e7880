//! What can be typed after `privet get`.

use super::examples;
use super::servers::{Addresses, LIMITS, Limits, TRUST, Trust};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Headings of groups of options.
const OUTPUT: &str = "Output";
const KEPT: &str = "What is kept";

#[derive(Args)]
#[command(group = clap::ArgGroup::new("wanted").required(true).multiple(true).args(["key", "index", "keys_from"]))]
#[command(after_long_help = examples::GET)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) addresses: Addresses,

    /// A key to look up; may be repeated.
    ///
    /// Written as the table's keys are, in hexadecimal or base64 perhaps (`build --key-format`).
    /// What the table can never have, such as `abc` in a table of addresses, is looked up like any
    /// other key, so that nobody who listens learns of it; then it is told, and the exit code is 2.
    ///
    /// What is typed here, other users of this machine can read in the list of processes, and it
    /// stays in the shell's history. Hand a key that is a secret in through `--keys-from -`.
    #[arg(short, long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) key: Vec<OsString>,
    /// A record to look up by its number, from 0; may be repeated
    #[arg(short, long, value_name = "N")]
    pub(crate) index: Vec<u64>,
    /// Look up every line of this file; `-` for standard input.
    ///
    /// In UTF-8 or UTF-16, also compressed with gzip or zstd. Blank lines are skipped. A file is
    /// checked before anything is asked; from a pipe, lookups begin while lines still come. How
    /// many are sent, and when, follows from the list and from when its lines come. It never
    /// follows from what they say, from what is found, or from who reads the output and how fast: a
    /// reader who goes away (`| head`) ends no lookup.
    #[arg(long, value_name = "FILE")]
    pub(crate) keys_from: Option<PathBuf>,
    /// The table to look in, if the server has several.
    ///
    /// Or another than the one that was used there last.
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// Print one JSON object for each lookup.
    ///
    /// On one line of printable characters, whatever the value holds: JSON under "value", text
    /// under "text", other bytes under "hex". If the table can have no such key, "error" says why.
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// How to print what is found
    #[arg(long, value_enum, conflicts_with_all = ["json", "raw"], help_heading = OUTPUT)]
    pub(crate) format: Option<OutputFormat>,
    /// Write the bytes of values as they are, also to a terminal.
    ///
    /// Without keys, each with the end of a line. Otherwise control characters are escaped on a
    /// terminal, and behind keys.
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub(crate) raw: bool,
    /// The file to write to, instead of standard output.
    ///
    /// A new file is for its owner alone (mode 0600). One that is there is replaced, and stays open
    /// to whom it was open. What is not found is said on standard error all the same.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Say on standard error what was sent and received, and how long it took
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
    /// No notices and no progress.
    ///
    /// What was not found, and errors, are said all the same: a typed key by its name, one of a
    /// list by its line, unless standard error is a terminal.
    #[arg(short, long, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) trust: Trust,
    /// Accept that the table at this address is another one than at first use
    #[arg(long, help_heading = TRUST)]
    pub(crate) accept_new_table: bool,
    /// Have both servers stream the whole table, and compare every byte.
    ///
    /// For schemes of two servers that stream it. It stops at the first byte in which they differ.
    /// Default: each streams a half, and the whole is checked at the end against the digest that
    /// both announced.
    #[arg(long, help_heading = TRUST, hide_short_help = true)]
    pub(crate) compare_streams: bool,

    #[command(flatten)]
    pub(crate) limits: Limits,
    /// End with exit code 3 when the whole command has taken so long.
    ///
    /// Whatever it is doing, and however short each wait of --timeout was. What was found by then
    /// is printed.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    #[arg(help_heading = LIMITS)]
    max_time: Option<u32>,
    /// Directory for hints, tables and pins between calls.
    ///
    /// Default: the user's state directory. `privet state` shows what is in it.
    #[arg(long, value_name = "DIR", env = "PRIVET_STATE", hide_env_values = true)]
    #[arg(help_heading = KEPT)]
    pub(crate) state: Option<PathBuf>,
}

/// How what was found is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The value; of several lookups, key, tab and value on each line: JSON as it is, in other text
    /// \\ for a backslash, \t, \n, \r, \u{1b} and \xff for what is no text (default)
    Lines,
    /// Comma-separated, with a header: the key, and a cell for each column of the table. Have
    /// spreadsheets import cells as text: they take what begins with =, +, - or @ for a formula
    Csv,
    /// As --json
    Jsonl,
}

impl Get {
    /// How long the whole command may take.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_time.map(|seconds| Duration::from_secs(seconds.into()))
    }
}
