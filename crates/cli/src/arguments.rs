//! What can be typed. The doc comments below are the help texts that users read.

mod options;
mod reading;
mod setup;
mod update;

pub(crate) use options::{SchemeOptions, Typed};
pub(crate) use reading::{Delimiter, InputFormat, OnEmptyKey, Types};
pub(crate) use setup::{Setup, SetupAction, SetupPointproofs, SetupPoints};
pub(crate) use update::{Keygen, Update};

use crate::advice;
use crate::commands::tradeoff::Tradeoff;
use clap::{
    ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
};
use privet_kernels::dispatch::Arm;
use privet_schemes::SchemeId;
use privet_table::TableRoot;
use privet_table::update_log::PublisherId;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Look records up in somebody else's table without the server learning which.
#[derive(Parser)]
#[command(name = "privet", version, about, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 found or done, 1 not found, 2 usage or bad input, 3 server or network, 4 do not try again: a lie, damage, or a failure that may depend on what was asked for."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// What was typed on this process' command line, and the definition of the command that runs.
    pub(crate) fn typed() -> Result<(Self, clap::Command), clap::Error> {
        let typed: Vec<_> = std::env::args_os().collect();
        let mut command = options::explained(Self::command(), &typed);
        let matches = command.try_get_matches_from_mut(typed)?;
        Ok((Self::from_arg_matches(&matches)?, running(&command, &matches).clone()))
    }
}

/// The command below `command` that was typed last.
fn running<'c>(command: &'c clap::Command, matches: &ArgMatches) -> &'c clap::Command {
    let typed = matches.subcommand();
    let below = typed.and_then(|(name, matches)| Some((command.find_subcommand(name)?, matches)));
    below.map_or(command, |(command, matches)| running(command, matches))
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Turn a CSV, JSON Lines or Parquet file into a table that can be served
    Build(Build),
    /// Show what a table file (or a file of its points) holds, and check that it is whole
    Inspect(Inspect),
    /// Make what a scheme needs beside a table: the reference string of tapir-pp, the points of
    /// finite-differences
    Setup(Setup),
    /// Make the key with which a table's owner signs its updates
    Keygen(Keygen),
    /// Set and delete keys of a table: the next of its signed updates
    Update(Update),
    /// Serve tables over the network
    Serve(Serve),
    /// Look records up without the server learning which
    Get(Get),
    /// Show, check or erase what is kept between lookups
    State(State),
    /// Show the whole thing in one process: a table, lookups under each scheme, and what the server
    /// saw
    Demo(Demo),
    /// Measure a scheme on this machine; every record received is compared with the table
    Bench(Bench),
    /// Compute what finite differences cost with more or less storage: a table, JSON, or a plot
    Tradeoff(Tradeoff),
    /// Say what this machine offers and what to do about what is missing
    Doctor(Doctor),
}

#[derive(Args)]
pub(crate) struct Build {
    /// The files to read, one after the other; `-` for standard input (needs --format)
    ///
    /// All have to be of one format and to have the same columns, in any order.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Column that holds the key; without it, records are numbered by row from 0
    #[arg(long, value_name = "COLUMN")]
    pub(crate) key: Option<String>,
    /// How keys get to records: with buckets every lookup takes one query; with cuckoo it takes
    /// two, and tables can change without clients having to learn where keys went
    #[arg(long, value_enum, default_value_t = KeyMap::Buckets, value_name = "KIND", requires = "key")]
    pub(crate) key_map: KeyMap,
    /// How many records the value of a key may lie in, 1 to 16: every lookup fetches as many,
    /// however long the value is, and twice as many with cuckoo. Long values then need no wide
    /// records; default: 1, or more where values of many kilobytes make that cheaper for clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16), requires = "key")]
    pub(crate) parts: Option<u8>,
    /// Columns that make up the value, as compact JSON; default: all but the key
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', conflicts_with = "raw_value")]
    pub(crate) value: Vec<String>,
    /// Store the bytes of this one column as the value, instead of JSON
    #[arg(long, value_name = "COLUMN")]
    pub(crate) raw_value: Option<String>,
    /// Refuse values longer than this many bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_number)]
    pub(crate) max_value: Option<u64>,
    /// What to do when a key appears twice
    #[arg(long, value_enum, default_value_t = OnDuplicate::Error, value_name = "WHAT")]
    pub(crate) on_duplicate: OnDuplicate,
    /// Keep all rows with the same key: it has several values, and `get` prints them all, in the
    /// order of the rows
    #[arg(long, requires = "key", conflicts_with = "on_duplicate")]
    pub(crate) multi: bool,
    /// Store with each record the proof that it belongs to the table, 32 bytes for each doubling of
    /// the number of records, and print the root that clients verify against (`get --root`)
    #[arg(long)]
    pub(crate) authenticate: bool,
    /// Say from the beginning who will sign the table's updates: whose key file this is, made by
    /// `privet keygen`. Clients that have used the table before its first update then follow it
    #[arg(long, value_name = "FILE")]
    pub(crate) publisher_key: Option<PathBuf>,
    /// Format of the inputs; default: by their extension
    ///
    /// Input that gzip or zstd has compressed is recognised by its content: big.csv.gz is CSV. What
    /// another program decompresses comes through standard input: `zcat big.csv.gz | privet build -
    /// --format csv -o big.privet`.
    #[arg(long, value_enum)]
    pub(crate) format: Option<InputFormat>,
    /// What separates the cells of a row in CSV; default: a comma, in TSV a tab
    ///
    /// A single character, such as `;` or `|` (in quotes, for the shell), or `tab`.
    #[arg(long, value_name = "CHARACTER", value_parser = reading::parse_delimiter)]
    pub(crate) delimiter: Option<Delimiter>,
    /// What columns of CSV are in JSON: `auto`, or COLUMN=number|boolean|text,…; default: text
    ///
    /// A number is kept as it is written, and an empty cell becomes null. With `auto` the inputs
    /// are read twice, and a column is a column of numbers if no program writes or reads any of
    /// them otherwise (so 007, 1.50 and long numbers stay text), or of booleans if it has true and
    /// false alone. Both together: `auto,zip=text`.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = reading::parse_types)]
    pub(crate) types: Vec<Types>,
    /// What to do with a row that has no key
    ///
    /// It has none where the cell is empty or null.
    #[arg(long, value_enum, default_value_t = OnEmptyKey::Error, value_name = "WHAT", requires = "key")]
    pub(crate) on_empty_key: OnEmptyKey,
    /// The table file to write. A table that is there already is replaced, unless it has updates;
    /// a file that is read never is
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the output also if it is a file that `privet build` has not written
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KeyMap {
    /// One candidate record for each key
    Buckets,
    /// Two candidate records for each key
    Cuckoo,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OnDuplicate {
    /// Stop and name the key and its lines
    Error,
    /// Keep the first row
    First,
    /// Keep the last row
    Last,
}

#[derive(Args)]
pub(crate) struct Inspect {
    /// The table file, or the file of its points
    pub(crate) file: PathBuf,
    /// Read the whole file and check its digest
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print the first N values as well, as `privet get` prints them
    ///
    /// In a table by key they lie in no order that anybody chose, and without their keys, of which
    /// the file has tags alone.
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub(crate) head: Option<u64>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Table files. A table is named after its file, without the extension; NAME=FILE chooses
    /// another name
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub(crate) tables: Vec<String>,
    #[arg(long, default_value = "auto", value_parser = parse_scheme, help = served_schemes())]
    pub(crate) scheme: SchemeChoice,
    #[command(flatten)]
    pub(crate) options: SchemeOptions,
    /// For finite-differences and finite-differences-many: answer from the points that `privet
    /// setup points` computed from this one table, read into memory. The scheme and what was chosen
    /// for it are those of the file
    #[arg(long, value_name = "FILE", conflicts_with_all = options::names())]
    pub(crate) points: Option<PathBuf>,
    /// With --points: leave the points in the file, of which the system keeps in memory what there
    /// is room for. The file is still read once at the start, to check it
    #[arg(long, requires = "points")]
    pub(crate) mapped: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700", value_parser = parse_address)]
    pub(crate) listen: SocketAddr,
    /// Second address, for /metrics (Prometheus) and /healthz
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Certificate chain in PEM; with --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key in PEM; with --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Allow plaintext on an address that is not loopback
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Threads that share each pass over a table; default: all cores
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Collect concurrent queries for at most this long before a pass, in milliseconds; schemes
    /// where a pass saves nothing never wait
    #[arg(long, value_name = "MS", default_value_t = 2.0, value_parser = parse_milliseconds)]
    pub(crate) batch_window: f64,
    /// Most queries answered in one pass
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_batch: u16,
    /// Most connections at once
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,
    /// Where precomputed hints are kept between starts; default: the user's cache directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Keep precomputed hints in memory only
    #[arg(long, conflicts_with = "cache")]
    pub(crate) no_cache: bool,
    /// Look so often, in seconds, whether a table file or its update log has changed, and serve the
    /// table with the new updates; 0: only when told to by SIGHUP
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=86400))]
    pub(crate) watch: u32,
    /// After an update, go on serving the version before for so many seconds beside the new one,
    /// for clients that are in the middle of something. Each version takes memory of its own; at
    /// most 3 earlier ones are kept
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(0..=86400))]
    pub(crate) grace: u32,
    /// Read again so many bytes a second of what is answered from, to find damage to memory and
    /// files; a table in which some is found is not served any more. 0: read nothing again
    #[arg(long, value_name = "BYTES", default_value = "2^25", value_parser = parse_rate)]
    pub(crate) scrub_rate: u64,
    /// Serve tables without a look at whether they are whole. A start is shorter by the time in
    /// which a table is read once, but hints are computed anew. From a damaged table clients then
    /// get wrong records, and nobody notices
    #[arg(long)]
    pub(crate) skip_verification: bool,
    /// Who has to sign the updates of these tables, as `privet keygen` printed it: an update log of
    /// anybody else is refused. Without it, it is whoever a table's log names when it is opened
    /// first
    #[arg(long, value_name = "HEX", value_parser = parse_publisher)]
    pub(crate) publisher: Option<PublisherId>,
    /// Log as JSON lines
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Instruction set to compute with: portable, avx2 or avx512; default: the best there is
    #[arg(long, value_parser = parse_arm)]
    pub(crate) kernel: Option<Arm>,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("wanted").required(true).multiple(true).args(["key", "index", "keys_from"]))]
pub(crate) struct Get {
    /// Address of the server, such as http://127.0.0.1:7700; for schemes that take several servers,
    /// those of all, in the same order every time: for those that keep hints (dummy-subsets-two,
    /// singlepass, tapir-mt, tapir-pp) it decides who learns what. The first server of
    /// dummy-subsets-two and singlepass computes the hints and learns their key, which the second
    /// must never learn. By tapir-mt, tapir-pp, apir-dpf and apir-matrix-mt answers are verified: a
    /// wrong one ends the command with exit code 4
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// A key to look up; may be repeated
    #[arg(short, long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// A record to look up by its number, from 0; may be repeated
    #[arg(short, long, value_name = "N")]
    pub(crate) index: Vec<u64>,
    /// Look up every line of this file; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) keys_from: Option<PathBuf>,
    /// The table to look in, if the server has several, or another than the one that was used there
    /// last
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// Use only these schemes, the most wanted first: names with commas between, or the option
    /// repeated. Without it, what was used before with the table stays; otherwise those that verify
    /// answers come first, and no server's order of offers decides
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_scheme_name)]
    pub(crate) scheme: Vec<SchemeId>,
    #[arg(long, help = verifying_schemes())]
    pub(crate) verified: bool,
    /// Where hints, tables and pins are kept between calls; default: the user's state directory
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Refuse to receive more than this many bytes before the first lookup (record layout, hint,
    /// table or stream, updates), such as 100000000 or 2^32, and to keep hints that take more
    #[arg(long, value_name = "BYTES", default_value = "2^32", value_parser = parse_number)]
    pub(crate) max_download: u64,
    /// End with exit code 3 once a server has left the command waiting for about so long: half of
    /// it for an answer, half of it in new attempts. Not for the whole command, which is --max-time
    /// [default: 120; 600 while a server computes hints]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    timeout: Option<u32>,
    /// End with exit code 3 when the whole command has taken so long, whatever it is doing. What
    /// was found by then is printed
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    max_time: Option<u32>,
    /// Give up a download that comes slower than this, on the whole, in bytes a second [default:
    /// 8192]
    #[arg(long, value_name = "BYTES", value_parser = parse_number)]
    pub(crate) min_rate: Option<u64>,
    /// Allow plaintext to several servers that are not on this machine: whoever listens nearby then
    /// sees the queries to all of them, and can tell what is looked up
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Certificates to trust for https besides the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Accept that the table at this address is another one than at first use
    #[arg(long)]
    pub(crate) accept_new_table: bool,
    /// The table's root, from whoever built it with --authenticate: any other table is refused
    /// before anything is asked, and any record that does not belong to it. Without --root, records
    /// of such a table are verified against the root that the server announced at first use, which
    /// is pinned with the table: that finds damage, not a server that lied from the beginning
    #[arg(long, value_name = "HEX", value_parser = parse_root)]
    pub(crate) root: Option<TableRoot>,
    /// Who publishes the table, as `privet keygen` printed it: a table with updates by anybody
    /// else, or by nobody, is refused before anything is asked. Without --publisher, it is whoever
    /// the server named at first use
    #[arg(long, value_name = "HEX", value_parser = parse_publisher)]
    pub(crate) publisher: Option<PublisherId>,
    /// Have both servers stream the whole table and stop at the first byte in which they differ,
    /// for schemes of two servers that stream it; default: each streams a half, and the whole is
    /// checked at the end against the digest that both announced
    #[arg(long)]
    pub(crate) compare_streams: bool,
    /// Print one JSON object for each lookup, on one line of printable characters, whatever the
    /// value holds
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the bytes of values as they are, also to a terminal, where otherwise control
    /// characters are escaped
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Say on standard error what was sent and received, and how long it took
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl Get {
    /// How long a server may leave the command waiting, if that was said.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// How long the whole command may take.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_time.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

#[derive(Args)]
pub(crate) struct State {
    #[command(subcommand)]
    pub(crate) action: StateAction,
}

#[derive(Subcommand)]
pub(crate) enum StateAction {
    /// Say what is kept, in counts and sizes
    Show(StateShow),
    /// Read everything that is kept and check that it is whole; exit code 4 if it is not
    Verify(StateShow),
    /// Erase private hints with zeros, and remove downloads and pins
    Reset(StateReset),
}

#[derive(Args)]
pub(crate) struct StateShow {
    /// The state directory; default: the user's
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct StateReset {
    /// The state directory; default: the user's
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Erase only what is kept for this table
    #[arg(long, value_name = "ID", value_parser = parse_table_id)]
    pub(crate) table: Option<[u8; 16]>,
    /// Forget only what was seen at this server: its pins
    #[arg(long, value_name = "URL", conflicts_with = "table")]
    pub(crate) server: Option<String>,
    /// Really do it
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Entries in the demonstration's table
    #[arg(long, default_value = "200000", value_parser = parse_number)]
    pub(crate) entries: u64,
}

#[derive(Args)]
pub(crate) struct Bench {
    #[arg(long, default_value = "simplepir", value_parser = parse_subject, help = measured_schemes())]
    pub(crate) scheme: Subject,
    /// Records in the table, such as 1000000 or 2^20
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub(crate) records: u64,
    /// Bytes in a record
    #[arg(long, value_name = "B", value_parser = parse_number)]
    pub(crate) record_len: u64,
    #[command(flatten)]
    pub(crate) options: SchemeOptions,
    /// Queries to measure, rounded up to whole batches
    #[arg(long, value_name = "Q", default_value = "16", value_parser = parse_number)]
    pub(crate) queries: u64,
    /// Queries answered in one pass
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_number)]
    pub(crate) batch: u64,
    /// Records to change afterwards, for schemes whose clients can follow: one by one, or in one
    /// batch where servers follow as well
    #[arg(long, value_name = "E", default_value = "16", value_parser = parse_number)]
    pub(crate) edits: u64,
    /// Threads of the server; default: all cores
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of the table's bytes and of the choice of records (never of secrets)
    #[arg(long, value_name = "X", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Instruction set to compute with: portable, avx2 or avx512; default: the best there is
    #[arg(long, value_parser = parse_arm)]
    pub(crate) kernel: Option<Arm>,
}

#[derive(Args)]
pub(crate) struct Doctor {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--scheme` says to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemeChoice {
    /// The scheme that suits the table.
    Auto,
    /// This one.
    Named(SchemeId),
}

impl SchemeChoice {
    /// The scheme that was named, if one was.
    pub(crate) fn named(self) -> Option<SchemeId> {
        match self {
            SchemeChoice::Auto => None,
            SchemeChoice::Named(scheme) => Some(scheme),
        }
    }
}

/// What `privet bench` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A scheme.
    Scheme(SchemeId),
    /// The lookup that is not private.
    Plain,
}

impl Subject {
    /// The name that users type and reports bear.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Scheme(scheme) => scheme.name(),
            Subject::Plain => PLAIN,
        }
    }
}

/// Not a scheme's name, so that no server can offer it and no client can be talked into it.
const PLAIN: &str = "plain";

/// The rule of [`choose`](privet_schemes::registry::choose) in one line.
fn served_schemes() -> String {
    format!(
        "The scheme to answer with: {}; or `auto`, which takes download where simplepir's hint would be no smaller than the table (up to 16 MiB) and simplepir otherwise. With --help it explains the options of that scheme; docs/schemes.md compares them",
        scheme_names()
    )
}

fn measured_schemes() -> String {
    format!(
        "The scheme to measure: {}; or `plain`, a lookup that is not private, for comparison. With --help it explains the options of that scheme",
        scheme_names()
    )
}

fn verifying_schemes() -> String {
    let mut schemes: Vec<_> = SchemeId::ALL.iter().filter(|scheme| scheme.verifies()).collect();
    schemes.sort_by_key(|scheme| scheme.about().preference);
    format!("Use only schemes that verify answers: {}", names(schemes))
}

fn scheme_names() -> String {
    names(SchemeId::ALL)
}

fn names<'s>(schemes: impl IntoIterator<Item = &'s SchemeId>) -> String {
    schemes.into_iter().map(|scheme| scheme.name()).collect::<Vec<_>>().join(", ")
}

fn parse_scheme(text: &str) -> Result<SchemeChoice, String> {
    if text == "auto" {
        return Ok(SchemeChoice::Auto);
    }
    if text == PLAIN {
        return Err("plain lookups are not private, so they are not served; `privet bench` measures them for comparison".to_owned());
    }
    parse_scheme_name(text).map(SchemeChoice::Named)
}

fn parse_subject(text: &str) -> Result<Subject, String> {
    if text == PLAIN {
        return Ok(Subject::Plain);
    }
    parse_scheme_name(text).map(Subject::Scheme)
}

fn parse_scheme_name(text: &str) -> Result<SchemeId, String> {
    text.parse().map_err(|error: privet_core::Error| error.to_string())
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an IP address and a port are expected, such as 127.0.0.1:7700 or [::]:7700".to_owned()
    })
}

fn parse_table_id(text: &str) -> Result<[u8; 16], String> {
    let hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| hexadecimal);
    let wrong = || "a table's id has 32 hexadecimal digits: see `privet state show`".to_owned();
    number.map(u128::to_be_bytes).ok_or_else(wrong)
}

/// A number of records in a partition; how many are too many is for the scheme to say.
fn parse_size(text: &str) -> Result<u32, String> {
    let number = parse_number(text)?;
    u32::try_from(number).map_err(|_| format!("a partition has far fewer than {number} records"))
}

fn parse_publisher(text: &str) -> Result<PublisherId, String> {
    text.parse().map_err(|error: privet_core::Error| advice::told_anywhere(&error))
}

fn parse_root(text: &str) -> Result<TableRoot, String> {
    text.parse().map_err(|error: privet_core::Error| advice::told_anywhere(&error))
}

fn parse_arm(text: &str) -> Result<Arm, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn parse_milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value),
        _ => Err("a number of milliseconds from 0 to 1000 is expected".to_owned()),
    }
}

/// As [`parse_number`], or 0.
fn parse_rate(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { parse_number(text) }
}

/// A positive whole number: `1000000`, `1_000_000` or `2^20`.
pub(crate) fn parse_number(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "");
    let number = match plain.split_once('^') {
        Some((base, exponent)) => {
            let base: Option<u64> = base.parse().ok();
            let exponent: Option<u32> = exponent.parse().ok();
            base.zip(exponent).and_then(|(base, exponent)| base.checked_pow(exponent))
        }
        None => plain.parse().ok(),
    };
    match number {
        Some(0) | None => {
            Err(format!("{text:?} is no positive whole number such as 1000000 or 2^20"))
        }
        Some(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn numbers_may_be_powers_and_overflow_is_refused() {
        assert_eq!(parse_number("2^25"), Ok(1 << 25));
        assert_eq!(parse_number("1_000"), Ok(1000));
        for wrong in ["0", "", "2^64", "-1", "x", "2^", "^3", "1.5"] {
            assert!(parse_number(wrong).is_err(), "{wrong}");
        }
    }
}
