//! What can be typed. The doc comments below are the help texts that users read.

mod as_typed;
pub(crate) mod examples;
mod get;
mod keys;
mod load;
mod options;
mod plan;
mod reading;
mod serve;
mod servers;
mod update;

pub(crate) use as_typed::AsTyped;
pub(crate) use get::{Get, OutputFormat};
pub(crate) use load::Load;
pub(crate) use options::{SchemeOptions, Typed};
pub(crate) use plan::Plan;
pub(crate) use reading::ReadingArguments;
pub(crate) use serve::Serve;
pub(crate) use update::{Keygen, Update};

use crate::advice;
use crate::laboratory::papers::arguments::Papers;
use crate::laboratory::setup::arguments::Setup;
use crate::laboratory::tradeoff::Tradeoff;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use privet_core::Error;
use privet_core::quantities::{
    parse_bytes, parse_bytes_or_none, parse_number, parse_number_or_none,
};
use privet_kernels::dispatch::Arm;
use privet_measure::bench::{PLAIN, Subject};
use privet_schemes::SchemeId;
use privet_table::build::OnDuplicate;
use privet_table::key_map::{KeyFormat, KeyMapKind};
use privet_table::similar::meant;
use privet_table::update_log::NextKeyDigest;
use reading::choice;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Look records up in somebody else's table without the server learning which.
#[derive(Parser)]
#[command(name = "privet", version, about, max_term_width = 100)]
#[command(after_help = examples::EXIT_CODES, after_long_help = examples::all())]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// What was typed, the program's name first, and the definition of the command that runs.
    pub(crate) fn typed(typed: Vec<OsString>) -> Result<(Self, clap::Command), clap::Error> {
        privet_laboratory::register();
        let mut command = options::explained(Self::command(), &typed);
        keys::refuse_options(&command, &typed)?;
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

/// In the order in which one meets them.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the whole thing in one process.
    ///
    /// A table, lookups under each scheme, and what the server saw.
    #[command(after_long_help = examples::DEMO)]
    Demo(Demo),
    /// Turn a CSV, JSON Lines or Parquet file into a table that can be served
    Build(Build),
    /// Show what a table file holds, and check that it is whole.
    ///
    /// Also a file of a table's points, as `privet setup points` makes it.
    #[command(after_long_help = examples::INSPECT)]
    Inspect(Inspect),
    /// Serve tables over the network
    Serve(Serve),
    /// Look records up without the server learning which
    Get(Get),
    /// Show, check or erase what is kept between lookups
    #[command(after_long_help = examples::STATE)]
    State(State),
    /// Make the key with which a table's owner signs its updates
    Keygen(Keygen),
    /// Set and delete keys of a table: the next of its signed updates
    Update(Update),
    /// Say what this machine offers and what to do about what is missing
    #[command(after_long_help = examples::DOCTOR)]
    Doctor(Doctor),
    /// Make what some schemes need beside a table.
    ///
    /// The reference string of tapir-pp, the points of finite-differences.
    #[command(after_long_help = crate::laboratory::examples::SETUP)]
    Setup(Setup),
    /// Say which scheme suits a table, and what each would cost
    Plan(Plan),
    /// Measure a scheme on this machine; every record received is compared with the table
    Bench(Bench),
    /// Measure how a running server answers at a rate of lookups
    Load(Load),
    /// Measure what the papers measured, and put both on one page
    Papers(Papers),
    /// Compute what finite differences cost with more or less storage.
    ///
    /// A table, JSON, or a plot.
    Tradeoff(Tradeoff),
    /// Print what makes a shell complete this command
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(Completions),
    /// Print the manual, or write it to a directory, a page for each command
    #[command(after_long_help = examples::MAN)]
    Man(Man),
}

/// Headings of groups of options.
const LAYOUT: &str = "How values are stored";
const FORGERY: &str = "Changes and forgery";

#[derive(Args)]
#[command(after_long_help = examples::BUILD)]
pub(crate) struct Build {
    /// The files to read, one after the other; `-` for standard input (needs --format).
    ///
    /// All have to be of one format and to have the same columns, in any order.
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) making: Making,
    /// The table file to write.
    ///
    /// A table that is there already is replaced, unless it has updates; a file that is read never
    /// is.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the output also if it is a file that `privet build` has not written
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No report and no progress; errors are said all the same
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Say from the beginning who will sign the table's updates.
    ///
    /// The file is the key of whoever will, made by `privet keygen`. Clients that have used the
    /// table before its first update then follow it.
    #[arg(long, value_name = "FILE", help_heading = FORGERY)]
    pub(crate) publisher_key: Option<PathBuf>,
    /// The digest of the publisher's next key (`privet keygen --next`).
    ///
    /// Clients pin it. Whoever steals the publisher's key can then sign updates, and lead no client
    /// to another table or to other keys.
    #[arg(long, value_name = "DIGEST", help_heading = FORGERY)]
    pub(crate) next_key: Option<NextKeyDigest>,
    /// The table that ends for this one, as its publisher signs.
    ///
    /// Clients that know that table follow to this one without a question, and prepare new hints.
    /// --publisher-key is the key of that table's publisher.
    #[arg(long, value_name = "TABLE", help_heading = FORGERY)]
    pub(crate) succeeds: Option<PathBuf>,
    /// The key of who publishes from now on, if that changes.
    ///
    /// If the table that ends names a next key, it has to be that one, and signs too. Without
    /// --publisher-key, because that was stolen, it signs alone: updates that are not in the log of
    /// the table that ends are void then, and clients that have followed them leave them.
    #[arg(long, value_name = "FILE", requires = "succeeds", help_heading = FORGERY)]
    pub(crate) hand_over_to: Option<PathBuf>,
}

/// What is made of the rows: what `privet build` and `privet plan` have in common.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("by_key").args(["key", "range_from"]))]
pub(crate) struct Making {
    /// Column that holds the key; without it, records are numbered by row from 0
    #[arg(long, value_name = "COLUMN")]
    pub(crate) key: Option<String>,
    /// Column of the first key of a range: a row answers for all keys of its range.
    ///
    /// Keys are whole numbers, or IPv4 and IPv6 addresses. A cell may hold a whole range, as a
    /// network (`1.2.3.0/24`) or as `1.2.3.0-1.2.3.255`. Ranges may not overlap. A client downloads
    /// the bounds of all ranges, one to three bytes for most networks.
    #[arg(long, value_name = "COLUMN", conflicts_with = "key")]
    pub(crate) range_from: Option<String>,
    /// Column of the last key of a range; default: a range ends where the next one begins.
    #[arg(long, value_name = "COLUMN", requires = "range_from")]
    pub(crate) range_to: Option<String>,
    /// Ranges may lie in one another: of those that hold a key, the narrowest answers.
    ///
    /// The others are cut, so the table has more records than rows. Clients still make one lookup.
    /// A range may not lie partly in another, and no two may be the same. Such a table is changed
    /// as a whole, with `privet update --replace-with`.
    #[arg(long, requires = "range_from", hide_short_help = true)]
    pub(crate) nested: bool,
    /// Differences between keys that do not count: trim, trim-invisible, nfc, lower, upper, fold,
    /// alphanumeric, number.
    ///
    /// Clients treat their keys in the same way. trim: white space at both ends. trim-invisible:
    /// also what has no width there. nfc: whether an accent is a part of its letter, as Windows
    /// writes it, or stands behind it, as macOS does. lower, upper: upper and lower case, letter by
    /// letter. fold: case as Unicode compares it, for which `Straße` is `STRASSE`, and a sigma at
    /// the end of a word is a sigma. alphanumeric: all but letters and digits, so that `08-00-30`
    /// and `08:00:30` are one key. number: how a decimal number is written, so that `1.50` and
    /// `01.5` are one key. For words: `trim-invisible,nfc,fold`.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "key")]
    pub(crate) normalize: Vec<String>,
    /// How keys are written; default: text, and hex where a column of Parquet holds bytes.
    ///
    /// With hex and base64, the keys of the table are bytes. Clients give and see them in that
    /// form.
    #[arg(long, value_parser = choice(KeyFormat::CHOICES), value_name = "FORMAT")]
    #[arg(requires = "key", hide_short_help = true)]
    pub(crate) key_format: Option<KeyFormat>,
    /// What to do when a key appears twice
    #[arg(long, value_parser = choice(OnDuplicate::CHOICES), default_value = "error")]
    #[arg(value_name = "WHAT")]
    pub(crate) on_duplicate: OnDuplicate,
    /// Keep all rows with the same key.
    ///
    /// It then has several values, and `get` prints them all, in the order of the rows.
    #[arg(long, requires = "by_key", conflicts_with = "on_duplicate")]
    pub(crate) multi: bool,

    /// Columns that make up the value, as compact JSON; default: all but the key
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', conflicts_with = "raw_value")]
    #[arg(help_heading = LAYOUT)]
    pub(crate) value: Vec<String>,
    /// Store the bytes of this one column as the value, instead of JSON
    #[arg(long, value_name = "COLUMN", help_heading = LAYOUT)]
    pub(crate) raw_value: Option<String>,
    /// Refuse values longer than this many bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = LAYOUT)]
    pub(crate) max_value: Option<u64>,
    /// How keys get to records.
    ///
    /// With buckets every lookup takes one query; with cuckoo it takes two, and tables can change
    /// without clients having to learn where keys went.
    #[arg(long, value_parser = choice(KeyMapKind::CHOICES), default_value = "buckets")]
    #[arg(value_name = "KIND", requires = "by_key", help_heading = LAYOUT)]
    pub(crate) key_map: KeyMapKind,
    /// How many records the value of a key may lie in, 1 to 16.
    ///
    /// Every lookup fetches as many, however long the value is, and twice as many with cuckoo. Long
    /// values then need no wide records. Default: 1, or more where values of many kilobytes make
    /// that cheaper for clients.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16), requires = "by_key")]
    #[arg(help_heading = LAYOUT)]
    pub(crate) parts: Option<u8>,
    /// Leave room for N keys that updates may add, with --key-map cuckoo
    #[arg(long, value_name = "N", value_parser = parse_number, requires = "by_key")]
    #[arg(help_heading = LAYOUT, hide_short_help = true)]
    pub(crate) room: Option<u64>,

    /// Store with each record the proof that it belongs to the table.
    ///
    /// It takes 32 bytes for each doubling of the number of records. The root that clients verify
    /// against (`get --root`) is printed.
    #[arg(long, help_heading = FORGERY)]
    pub(crate) authenticate: bool,
}

/// Leaves options on how a table is built to the long help of a command that seldom builds one.
fn in_long_help(argument: clap::Arg) -> clap::Arg {
    const OF_KEYS: [&str; 5] = ["range_from", "range_to", "normalize", "on_duplicate", "multi"];
    let heading = argument.get_help_heading();
    let is_of_building = heading
        .is_some_and(|it| [LAYOUT, FORGERY, reading::READING].contains(&it))
        || OF_KEYS.contains(&argument.get_id().as_str());
    if is_of_building { argument.hide_short_help(true) } else { argument }
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
pub(crate) struct State {
    #[command(subcommand)]
    pub(crate) action: StateAction,
}

#[derive(Subcommand)]
pub(crate) enum StateAction {
    /// Say what is kept, in counts and sizes
    #[command(after_long_help = examples::STATE_SHOW)]
    Show(StateShow),
    /// Read everything that is kept and check that it is whole; exit code 4 if it is not
    #[command(after_long_help = examples::STATE_VERIFY)]
    Verify(StateShow),
    /// Erase private hints with zeros, and remove downloads and pins
    #[command(after_long_help = examples::STATE_RESET)]
    Reset(StateReset),
}

#[derive(Args)]
pub(crate) struct StateShow {
    /// The state directory; default: the user's
    #[arg(value_name = "DIR", env = "PRIVET_STATE", hide_env_values = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct StateReset {
    /// The state directory; default: the user's
    #[arg(value_name = "DIR", env = "PRIVET_STATE", hide_env_values = true)]
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
    /// Show every scheme, not only three
    #[arg(long)]
    pub(crate) all: bool,
    /// Entries in the demonstration's table, which is made up; default: 200000
    #[arg(long, value_parser = parse_number)]
    pub(crate) entries: Option<u64>,
    /// Show it as a page for browsers of this machine.
    ///
    /// On Debian and its kin, the table is the index of packages, unless --entries is given.
    #[arg(long, conflicts_with = "all")]
    pub(crate) web: bool,
    /// Where the page is; with port 0, the system chooses one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7780", requires = "web")]
    #[arg(value_parser = parse_address)]
    pub(crate) listen: SocketAddr,
}

#[derive(Args)]
#[command(after_long_help = examples::BENCH)]
pub(crate) struct Bench {
    #[arg(long, default_value = "simplepir", value_parser = parse_subject)]
    #[arg(help = "Scheme to measure; or `plain`, a lookup that is not private")]
    #[arg(long_help = measured_schemes())]
    pub(crate) scheme: Subject,
    /// Records in the table, such as 1000000 or 2^20
    #[arg(long, value_name = "N", value_parser = parse_number)]
    pub(crate) records: u64,
    /// Bytes in a record
    #[arg(long, value_name = "B", value_parser = parse_bytes)]
    pub(crate) record_len: u64,
    /// Queries to measure, rounded up to whole batches
    #[arg(long, value_name = "Q", default_value = "16", value_parser = parse_number)]
    pub(crate) queries: u64,
    /// Queries answered in one pass
    #[arg(long, value_name = "K", default_value = "1", value_parser = parse_number)]
    pub(crate) batch: u64,
    /// Records to change afterwards.
    ///
    /// For schemes whose clients can follow: one by one, or in one batch where servers follow as
    /// well.
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
    #[command(flatten)]
    pub(crate) options: SchemeOptions,
}

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct Man {
    /// The directory to write pages to, which is made if it is not there.
    ///
    /// Without it, the page about `privet` itself is printed.
    pub(crate) directory: Option<PathBuf>,
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

/// The rule of [`choose`](privet_schemes::registry::choose) in one line.
fn served_schemes() -> String {
    format!(
        "Scheme to answer with: {}; or `auto`, by the rule of `privet plan`, for one operator, clients that keep no secrets, and ten lookups of each in a day: download for tables of a few MiB, simplepir-packed for larger ones, and simplepir where simplepir-packed refuses the table.\n\nWith --help it explains the options of that scheme. docs/schemes.md compares the schemes.",
        scheme_names()
    )
}

fn measured_schemes() -> String {
    format!(
        "Scheme to measure: {}; or `plain`, a lookup that is not private, for comparison.\n\nWith --help it explains the options of that scheme.",
        scheme_names()
    )
}

fn verifying_schemes() -> String {
    let mut schemes: Vec<_> = schemes().filter(|scheme| scheme.verifies()).collect();
    schemes.sort_by_key(|scheme| scheme.about().preference);
    format!("Use only schemes that verify answers: {}", names(schemes))
}

fn scheme_names() -> String {
    names(schemes())
}

/// All schemes that can be typed.
fn schemes() -> impl Iterator<Item = SchemeId> {
    privet_laboratory::all()
}

fn names(schemes: impl IntoIterator<Item = SchemeId>) -> String {
    schemes.into_iter().map(SchemeId::name).collect::<Vec<_>>().join(", ")
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

pub(crate) fn parse_scheme_name(text: &str) -> Result<SchemeId, String> {
    text.parse().map_err(|error: Error| {
        let meant = meant(text, schemes().map(SchemeId::name));
        let meant = meant.map(|name| format!("; did you mean {name}?"));
        format!("{error}{}", meant.unwrap_or_default())
    })
}

/// An IP address and a port. A port alone, or that of `localhost`, is of this machine.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    let port: Option<u16> = port.parse().ok().filter(|_| !port.starts_with('+'));
    let here = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse().ok().or(here).ok_or_else(|| {
        "an IP address and a port are expected, such as 127.0.0.1:7700 or [::]:7700, or a port of this machine, such as 7700".to_owned()
    })
}

fn parse_table_id(text: &str) -> Result<[u8; 16], String> {
    let hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| hexadecimal);
    let wrong = || "a table's id has 32 hexadecimal digits: see `privet state show`".to_owned();
    number.map(u128::to_be_bytes).ok_or_else(wrong)
}

/// A number of records in a partition; how many are too many is for the scheme to say.
pub(crate) fn parse_size(text: &str) -> Result<u32, String> {
    let number = parse_number(text)?;
    u32::try_from(number).map_err(|_| format!("a partition has far fewer than {number} records"))
}

/// Reads what is read like this in the library, too.
fn parse_known<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| advice::told_anywhere(&error))
}

pub(crate) fn parse_arm(text: &str) -> Result<Arm, String> {
    text.parse().map_err(|error| format!("{error}"))
}

fn parse_milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value),
        _ => Err("a number of milliseconds from 0 to 1000 is expected".to_owned()),
    }
}

#[cfg(test)]
mod tests;
