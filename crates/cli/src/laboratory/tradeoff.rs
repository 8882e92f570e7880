//! `privet tradeoff`: what finite differences cost with more or less storage: the settings for a
//! table as a server would make them. It needs no table.

mod served;

use crate::display;
use crate::laboratory::examples;
use clap::Args;
use privet_core::Result;
use privet_core::quantities::{parse_bytes, parse_number};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_long_help = examples::TRADEOFF)]
pub(crate) struct Tradeoff {
    /// How many records the table has, such as 1000000 or 2^30
    #[arg(long, value_name = "N", value_parser = parse_number)]
    records: u64,
    /// Bytes in a record
    #[arg(long, value_name = "B", default_value = "1", value_parser = parse_bytes)]
    record_len: u64,
    /// How many servers are asked
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=13))]
    servers: u32,
    /// Records are bytes of value 0 or 1, and are stored as single bits: with two servers
    #[arg(long)]
    one_bit: bool,
    /// Mark what `serve` takes if each server may store at most so many bytes.
    ///
    /// Such as 2^30. Default: 32 times the table.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    storage_limit: Option<u64>,
    /// Mark what `serve` takes for answers of at most so many bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    answer_limit: Option<u64>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Write a plot of the curve to this file, which is replaced if it is there
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Computes the costs and prints them. Nothing is measured, so it takes only some milliseconds.
pub(crate) fn run(arguments: &Tradeoff) -> Result<()> {
    let report = served::TradeoffReport::new(arguments)?;
    // The plot comes first, so that a report is printed only if everything succeeded.
    if let Some(file) = &arguments.svg {
        report.plot().write(file)?;
    }
    display::report(arguments.json, &report, || report.page())
}
