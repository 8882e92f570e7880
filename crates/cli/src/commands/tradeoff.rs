//! `privet tradeoff`: what finite differences cost with more or less storage. It needs no table.
//! With `--records` it shows the settings for a table as a server would make them, with
//! `--variables` any one polynomial, and with neither the powers of the table's size that the costs
//! tend to.

mod asymptotic;
mod polynomial;
mod served;

use crate::arguments::{examples, parse_bytes, parse_number};
use crate::display;
use crate::exit::Outcome;
use crate::plot::Plot;
use clap::Args;
use privet_core::Result;
use privet_schemes::finite_differences::many_servers::least_field;
use privet_schemes::finite_differences::tradeoff::Family;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_long_help = examples::TRADEOFF)]
pub(crate) struct Tradeoff {
    /// Show what there is to choose from for a table of so many records.
    ///
    /// Such as 1000000 or 2^30. Without --records and --variables: the powers of the number of
    /// records that storage and reads tend to.
    #[arg(long, value_name = "N", value_parser = parse_number)]
    records: Option<u64>,
    /// Bytes in a record
    #[arg(long, value_name = "B", default_value = "1", value_parser = parse_bytes)]
    record_len: u64,
    /// How many servers are asked
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=13))]
    servers: u32,
    /// Records are bytes of value 0 or 1, and are stored as single bits: with two servers
    #[arg(long, requires = "records")]
    one_bit: bool,
    /// Mark what `serve` takes if each server may store at most so many bytes.
    ///
    /// Such as 2^30. Default: 32 times the table.
    #[arg(long, value_name = "BYTES", requires = "records", value_parser = parse_bytes)]
    storage_limit: Option<u64>,
    /// Mark what `serve` takes for answers of at most so many bytes
    #[arg(long, value_name = "BYTES", requires = "records", value_parser = parse_bytes)]
    answer_limit: Option<u64>,
    /// Show what a polynomial in so many variables costs, whether it can be served or not
    #[arg(long, value_name = "M", requires = "degree", conflicts_with = "records", value_parser = clap::value_parser!(u32).range(1..=100))]
    variables: Option<u32>,
    /// The degree of that polynomial
    #[arg(long, value_name = "D", requires = "variables", value_parser = clap::value_parser!(u32).range(1..=1000))]
    degree: Option<u32>,
    /// Compute over the field of so many elements: 2, 3, 5, 7, 11 or 13.
    ///
    /// Default: the smallest with one for each server.
    #[arg(long, value_name = "Q", conflicts_with = "records")]
    field: Option<u32>,
    /// The highest power of a single variable in the polynomial; what is served has 1
    #[arg(long, value_name = "POWER", default_value_t = 1, conflicts_with = "records")]
    individual_degree: u32,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Write a plot of the curve to this file, which is replaced if it is there
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Computes the costs and prints them. Nothing is measured, so it takes only some milliseconds.
pub(crate) fn run(arguments: &Tradeoff) -> Result<Outcome> {
    match (arguments.records, arguments.variables.zip(arguments.degree)) {
        (Some(records), _) => {
            let report = served::Report::new(records, arguments)?;
            write_plot(arguments, || report.plot())?;
            display::report(arguments.json, &report, || report.page())?;
        }
        (None, Some((variables, degree))) => {
            let family = arguments.family()?;
            let report = polynomial::Report::new(family, variables, degree, arguments.record_len)?;
            write_plot(arguments, || asymptotic::plot(family, report.mark()))?;
            display::report(arguments.json, &report, || report.page())?;
        }
        (None, None) => {
            let family = arguments.family()?;
            let report = asymptotic::Report::new(family);
            write_plot(arguments, || asymptotic::plot(family, None))?;
            display::report(arguments.json, &report, || report.page())?;
        }
    }
    Ok(Outcome::Done)
}

impl Tradeoff {
    fn family(&self) -> Result<Family> {
        let field = match (self.field, self.servers) {
            (Some(field), _) => field,
            (None, 2) => 2,
            // The argument's range admits only numbers of servers that have a field.
            (None, servers) => least_field(servers).unwrap_or(0),
        };
        Family::new(self.servers, field, self.individual_degree)
    }
}

/// Writes the plot, if one is wanted. This comes before printing, so that a report is printed only
/// if everything succeeded.
fn write_plot(arguments: &Tradeoff, plot: impl FnOnce() -> Plot) -> Result<()> {
    arguments.svg.as_ref().map_or(Ok(()), |file| plot().write(file))
}

/// `two elements`, `5 elements`
fn field_in_words(field: u32) -> String {
    match field {
        2 => "two elements".to_owned(),
        field => format!("{field} elements"),
    }
}

/// `n^0.811`
fn power(exponent: f64) -> String {
    format!("n^{exponent:.3}")
}
