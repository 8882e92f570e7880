//! What can be typed after `privet get`.

use super::{
    examples, parse_number, parse_publisher, parse_root, parse_scheme_name, verifying_schemes,
};
use clap::{Args, ValueEnum};
use privet_schemes::SchemeId;
use privet_table::TableRoot;
use privet_table::update_log::PublisherId;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Headings of groups of options.
const OUTPUT: &str = "Output";
const TRUST: &str = "Whom and what to trust";
const LIMITS: &str = "Limits";
const KEPT: &str = "What is kept";

#[derive(Args)]
#[command(group = clap::ArgGroup::new("wanted").required(true).multiple(true).args(["key", "index", "keys_from"]))]
#[command(after_long_help = examples::GET)]
pub(crate) struct Get {
    /// Address of the server, such as http://127.0.0.1:7700; or of all servers.
    ///
    /// For schemes that take several servers, name all, in the same order every time: for those
    /// that keep hints (dummy-subsets-two, singlepass, tapir-mt, tapir-pp) it decides who learns
    /// what. The first server of dummy-subsets-two and singlepass computes the hints and learns
    /// their key, which the second must never learn. By tapir-mt, tapir-pp, apir-dpf and
    /// apir-matrix-mt answers are verified: a wrong one ends the command with exit code 4. In
    /// PRIVET_URL, addresses have spaces or commas between.
    #[arg(required = true, value_name = "URL", value_parser = parse_urls)]
    #[arg(env = "PRIVET_URL", hide_env_values = true)]
    urls: Vec<Urls>,

    /// A key to look up; may be repeated
    #[arg(short, long, value_name = "KEY")]
    pub(crate) key: Vec<OsString>,
    /// A record to look up by its number, from 0; may be repeated
    #[arg(short, long, value_name = "N")]
    pub(crate) index: Vec<u64>,
    /// Look up every line of this file; `-` for standard input.
    ///
    /// Blank lines are skipped. Lookups begin while lines still come; how many are sent together
    /// follows from when lines come, never from what they say.
    #[arg(long, value_name = "FILE")]
    pub(crate) keys_from: Option<PathBuf>,
    /// The table to look in, if the server has several.
    ///
    /// Or another than the one that was used there last.
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// Print one JSON object for each lookup.
    ///
    /// On one line of printable characters, whatever the value holds.
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
    /// It is replaced if it is there. What is not found is said on standard error all the same.
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) output: Option<PathBuf>,
    /// Say on standard error what was sent and received, and how long it took
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) verbose: bool,
    /// No notices and no progress.
    ///
    /// What was not found, and errors, are said all the same.
    #[arg(short, long, conflicts_with = "verbose", help_heading = OUTPUT)]
    pub(crate) quiet: bool,

    /// Use only these schemes, the most wanted first.
    ///
    /// Names with commas between, or the option repeated. Without it, what was used before with the
    /// table stays; otherwise those that verify answers come first, and no server's order of offers
    /// decides.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_scheme_name)]
    #[arg(help_heading = TRUST)]
    pub(crate) scheme: Vec<SchemeId>,
    #[arg(long, help = "Use only schemes that verify answers", long_help = verifying_schemes())]
    #[arg(help_heading = TRUST)]
    pub(crate) verified: bool,
    /// Certificates to trust for https besides the system's, in PEM
    #[arg(long, value_name = "FILE", help_heading = TRUST)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Allow plaintext to several servers that are not on this machine.
    ///
    /// Whoever listens nearby then sees the queries to all of them, and can tell what is looked up.
    #[arg(long, help_heading = TRUST)]
    pub(crate) insecure: bool,
    /// The table's root, from whoever built it with --authenticate.
    ///
    /// Any other table is refused before anything is asked, and any record that does not belong to
    /// it. Without --root, records of such a table are verified against the root that the server
    /// announced at first use, which is pinned with the table: that finds damage, not a server that
    /// lied from the beginning.
    #[arg(long, value_name = "HEX", value_parser = parse_root, help_heading = TRUST)]
    pub(crate) root: Option<TableRoot>,
    /// Who publishes the table, as `privet keygen` printed it.
    ///
    /// A table with updates by anybody else, or by nobody, is refused before anything is asked.
    /// Without --publisher, it is whoever the server named at first use.
    #[arg(long, value_name = "HEX", value_parser = parse_publisher, help_heading = TRUST)]
    pub(crate) publisher: Option<PublisherId>,
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

    /// Refuse to receive more than this before the first lookup.
    ///
    /// In bytes, such as 100000000 or 2^32. It counts the record layout, the hint, the table or
    /// stream, and updates; hints that take more are not kept either.
    #[arg(long, value_name = "BYTES", default_value = "2^32", value_parser = parse_number)]
    #[arg(help_heading = LIMITS)]
    pub(crate) max_download: u64,
    /// Wait so long for a server that does not answer [default: 120].
    ///
    /// The command ends with exit code 3 once a server has left it waiting for about so long: half
    /// of it for an answer, half of it in new attempts. While a server computes hints, the default
    /// is 600. This is not the time for the whole command, which is --max-time.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    #[arg(help_heading = LIMITS)]
    timeout: Option<u32>,
    /// End with exit code 3 when the whole command has taken so long.
    ///
    /// Whatever it is doing. What was found by then is printed.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    #[arg(help_heading = LIMITS)]
    max_time: Option<u32>,
    /// Give up a download slower than this, in bytes a second [default: 8192]
    #[arg(long, value_name = "BYTES", value_parser = parse_number, help_heading = LIMITS)]
    pub(crate) min_rate: Option<u64>,

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
    /// Key and value, comma-separated, with a header
    Csv,
    /// As --json
    Jsonl,
}

/// Addresses, with spaces or commas between.
#[derive(Clone)]
struct Urls(Vec<String>);

fn parse_urls(text: &str) -> Result<Urls, String> {
    let urls = text.split([' ', ',']).filter(|url| !url.is_empty());
    let urls: Vec<String> = urls.map(str::to_owned).collect();
    if urls.is_empty() { Err("an address is expected".to_owned()) } else { Ok(Urls(urls)) }
}

impl Get {
    /// The addresses of the servers.
    pub(crate) fn urls(&self) -> Vec<&str> {
        self.urls.iter().flat_map(|urls| &urls.0).map(String::as_str).collect()
    }

    /// How long a server may leave the command waiting, if that was said.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// How long the whole command may take.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_time.map(|seconds| Duration::from_secs(seconds.into()))
    }
}
