//! What can be typed after `privet plan`.

use super::reading::choice;
use super::{AsTyped, Making, ReadingArguments, examples, parse_bytes, parse_number};
use clap::Args;
use privet_measure::plan::{ASSUMPTIONS, ClientKind, Link, Prices};
use privet_schemes::registry::Assumption;
use std::path::PathBuf;

/// Headings of groups of options.
const TRUST: &str = "Who is trusted with what";
const USE: &str = "How the table is used";
const MEANS: &str = "What there is";

#[derive(Args)]
#[command(after_long_help = examples::PLAN)]
#[command(mut_args(super::in_long_help))]
#[command(group = clap::ArgGroup::new("subject").args(["table", "keys", "records"]).required(true))]
pub(crate) struct Plan {
    /// A table file, or a file that `privet build` reads, with the same options.
    ///
    /// The second is built into a temporary file, to see how long the records get.
    pub(crate) table: Option<PathBuf>,
    /// Keys of a table that is still to be built, such as 5M, instead of a file.
    ///
    /// The table is the one that `privet build --key` makes of as many keys: how many records it
    /// has, and how long they are, is planned as the builder plans it.
    #[arg(long, value_name = "N", value_parser = parse_number, requires = "value_len")]
    #[arg(group = "by_key", conflicts_with_all = ["key", "range_from"])]
    pub(crate) keys: Option<u64>,
    /// Bytes in the value of a key, such as 100 or 4KiB: its JSON, or with --raw-value its bytes
    #[arg(long, value_name = "B", value_parser = parse_bytes, requires = "keys")]
    pub(crate) value_len: Option<u64>,
    /// Records of a table by row number, such as 1000000 or 2^20, instead of a file.
    ///
    /// Records are not keys: a table by key has fewer and longer ones. For that, say --keys.
    #[arg(long, value_name = "N", value_parser = parse_number, requires = "record_len")]
    pub(crate) records: Option<u64>,
    /// Bytes in a record
    #[arg(long, value_name = "B", value_parser = parse_bytes, requires = "records")]
    pub(crate) record_len: Option<u64>,

    /// Operators who do not talk to each other, each with a server.
    ///
    /// Without this, no scheme of two servers is recommended: only you know who talks to whom.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=13))]
    #[arg(help_heading = TRUST)]
    pub(crate) servers: u32,
    /// A server may answer wrongly: only schemes that notice.
    ///
    /// An authenticated table is safe with every scheme: `privet build --authenticate`.
    #[arg(long, help_heading = TRUST)]
    pub(crate) may_lie: bool,
    /// Clients can keep secret single-use hints.
    ///
    /// These lie on a disk that is never copied or rolled back: docs/security/single-use-hints.md.
    /// Without this, no scheme that has them is recommended, but all are ranked.
    #[arg(long, help_heading = TRUST)]
    pub(crate) keep_hints: bool,
    /// The strongest assumption that privacy may rest on, besides servers that do not talk.
    #[arg(long, value_parser = choice(ASSUMPTIONS), value_name = "WHAT", default_value = "ring-lwe")]
    #[arg(help_heading = TRUST)]
    pub(crate) assume: Assumption,

    /// Lookups of a client in a day
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_number, help_heading = USE)]
    pub(crate) lookups: u64,
    /// Clients
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_number, help_heading = USE)]
    pub(crate) clients: u64,
    /// Updates of the table in a day; 0 if it does not change
    #[arg(long, value_name = "N", default_value = "0", value_parser = super::parse_number_or_none, help_heading = USE)]
    pub(crate) updates_per_day: u64,
    /// Records that an update changes
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_number, help_heading = USE)]
    pub(crate) changed_records: u64,

    /// What clients run in: native, python or browser.
    ///
    /// In Python, the same code runs as in a program of its own. In a browser it runs as
    /// WebAssembly, which is slower, and single-use hints last for a visit, so for a day here.
    #[arg(long, value_parser = choice(ClientKind::CHOICES), value_name = "WHAT")]
    #[arg(default_value = "native", help_heading = MEANS)]
    pub(crate) client: ClientKind,
    /// A client's connection: megabits in a second, and the time of a round trip
    #[arg(long, value_name = "RATE,TIME", default_value = "20Mbit,40ms", help_heading = MEANS)]
    pub(crate) link: Link,
    /// The most that a client can keep, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = MEANS)]
    pub(crate) client_storage: Option<u64>,
    /// Memory of each server, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = MEANS)]
    pub(crate) server_memory: Option<u64>,
    /// What things cost, of any currency: traffic=PRICE,core=PRICE,memory=PRICE,waiting=PRICE.
    ///
    /// A gigabyte that a server sends; a core for a month; a gibibyte of memory for a month; an
    /// hour that somebody waits. What is left out keeps its default.
    #[arg(long, value_name = "PRICES", default_value_t, help_heading = MEANS)]
    pub(crate) prices: Prices,
    /// Take the machine's yardsticks from this file, instead of measuring this machine
    #[arg(long, value_name = "FILE", help_heading = MEANS)]
    pub(crate) machine: Option<PathBuf>,
    /// Write the yardsticks of this machine to a file
    #[arg(long, value_name = "FILE", conflicts_with = "machine", help_heading = MEANS)]
    pub(crate) save_machine: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a plot of all schemes to this file, as SVG; it is replaced if it is there
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) making: AsTyped<Making>,
    #[command(flatten)]
    pub(crate) reading: AsTyped<ReadingArguments>,
}
