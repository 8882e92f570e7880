//! What can be typed after `privet load`.

use super::examples;
use super::servers::{Addresses, Limits, Trust};
use clap::Args;
use privet_measure::load::{MetricsAddress, Objective, parse_rate, parse_time};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
#[command(after_long_help = examples::LOAD)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) addresses: Addresses,

    /// How many lookups begin each second; default: find how many the server stands.
    ///
    /// Such as 100 or 0.5. Lookups come at random moments (a Poisson process), as from many users
    /// who do not know of each other. All are drawn before the first is sent. Without --rate, the
    /// rate is raised until the server does not achieve --slo (or p99 is ten times what it is under
    /// a light load) or does not keep up, and then narrowed down to 5 %. This loads the server: use
    /// it on one of your own.
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub(crate) rate: Option<f64>,
    /// For how long at each rate: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// How many clients look up, in turn.
    ///
    /// Each has its own connections. Together they receive and keep public hints once; secret hints
    /// are each client's own. What they keep lies in a temporary directory (below TMPDIR).
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) clients: u16,
    /// What the server must achieve, such as p99=250ms; otherwise the exit code is 1.
    ///
    /// The share of lookups, in percent, and the time within which they must be answered. May be
    /// repeated, or have commas between. Without --rate, the exit code is 1 if the server achieves
    /// it at no rate.
    #[arg(long, value_name = "pN=TIME", value_delimiter = ',')]
    pub(crate) slo: Vec<Objective>,
    /// Where the server publishes its metrics, such as http://127.0.0.1:7790/metrics.
    ///
    /// The report then says what share of the time the server's passes took, and how many queries
    /// each answered. Of several servers, name each once. They are asked directly, whatever proxy
    /// is set.
    #[arg(long, value_name = "URL")]
    pub(crate) metrics: Vec<MetricsAddress>,
    /// Write a plot of rates and latencies to this file, as SVG; it is replaced if it is there
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// The table, if the server has several
    #[arg(long, value_name = "NAME")]
    pub(crate) table: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// No notices, only the report
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) limits: Limits,
}
