//! What one polynomial costs, whether it can be served or not.

use super::{field_in_words, power};
use crate::display::{self, Page};
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Result};
use privet_schemes::finite_differences::tradeoff::{Exponents, Family, Polynomial};
use serde::Serialize;

/// The costs. `docs/tradeoff.md` explains the fields.
#[derive(Serialize)]
pub(super) struct Report {
    servers: u32,
    field: u32,
    individual_degree: u32,
    variables: u32,
    degree: u32,
    /// K = ⌊D/s⌋.
    radius: u32,
    /// The number of coefficients, each a symbol of the field.
    records: u128,
    points: u128,
    reads: u128,
    table_bits: u128,
    storage_bits: u128,
    answer_bits: u128,
    /// The same costs for records of this many bytes. Each coefficient is one record, and symbols
    /// are packed without loss.
    record_len: u64,
    table_bytes: u128,
    storage_bytes: u128,
    answer_bytes: u128,
    /// Summed over all servers.
    download_bytes: u128,
    storage_factor: f64,
    precomputed: Precomputed,
    /// The powers of this polynomial. `None` for a single record.
    exact: Option<Powers>,
    /// The powers that it tends to. `None` if the table does not grow.
    asymptotic: Option<Powers>,
}

#[derive(Serialize)]
struct Precomputed {
    /// The number of derivatives up to order K.
    derivatives: u128,
    /// With that many derivatives at each point.
    storage_bytes: f64,
    /// With two servers: the least storage that allows answers of the same length.
    least: Option<Least>,
}

#[derive(Serialize)]
struct Least {
    variables: u32,
    degree: u32,
    joined_records: u128,
    storage_bytes: f64,
    /// The multiple of this polynomial's storage.
    storage_factor: f64,
}

#[derive(Clone, Copy, Serialize)]
struct Powers {
    storage_exponent: f64,
    reads_exponent: f64,
}

impl From<Exponents> for Powers {
    fn from(exponents: Exponents) -> Self {
        Self { storage_exponent: exponents.storage, reads_exponent: exponents.reads }
    }
}

impl Report {
    pub(super) fn new(
        family: Family,
        variables: u32,
        degree: u32,
        record_len: u64,
    ) -> Result<Self> {
        if record_len > MAX_RECORD_LEN {
            return Err(Error::api_misuse(format!(
                "a record of {record_len} bytes is too long: the limit is {MAX_RECORD_LEN} bytes"
            )));
        }
        let one = Polynomial::new(family, variables, degree)?;
        // This cannot overflow: there are at most 2^100 points, 2^24 bytes and 13 servers.
        let bytes = |records: u128| records * u128::from(record_len);
        let storage = bytes(one.points());
        let least = one.precomputed().map(|least| Least {
            variables: least.variables,
            degree: least.degree,
            joined_records: least.joined,
            storage_bytes: least.storage * record_len as f64,
            storage_factor: least.storage / one.points() as f64,
        });
        Ok(Self {
            servers: family.servers(),
            field: family.field(),
            individual_degree: family.individual_degree(),
            variables,
            degree,
            radius: one.radius(),
            records: one.coefficients(),
            points: one.points(),
            reads: one.reads(),
            table_bits: one.table_bits(),
            storage_bits: one.storage_bits(),
            answer_bits: one.answer_bits(),
            record_len,
            table_bytes: bytes(one.coefficients()),
            storage_bytes: storage,
            answer_bytes: bytes(one.reads()),
            download_bytes: bytes(one.reads()) * u128::from(family.servers()),
            storage_factor: one.points() as f64 / one.coefficients() as f64,
            precomputed: Precomputed {
                derivatives: one.derivatives(),
                storage_bytes: one.derivatives() as f64 * storage as f64,
                least,
            },
            exact: one.exact_exponents().map(Powers::from),
            asymptotic: one.exponents().map(Powers::from),
        })
    }

    /// The polynomial as a point of the plot.
    pub(super) fn mark(&self) -> Option<(String, Exponents)> {
        let label = format!("{} variables, degree {}, exactly", self.variables, self.degree);
        let Powers { storage_exponent, reads_exponent } = self.exact?;
        Some((label, Exponents { storage: storage_exponent, reads: reads_exponent }))
    }

    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!(
            "A polynomial of degree {} in {} variables over the field of {}, no power of a variable above {}, and {} servers",
            self.degree,
            self.variables,
            field_in_words(self.field),
            self.individual_degree,
            self.servers
        ));
        page.entry("records", count(self.records));
        page.entry("points", count(self.points));
        page.entry("reads", format!("{} on each server", count(self.reads)));
        page.line("As symbols of the field:");
        page.entry("table", format!("{} bits", count(self.table_bits)));
        page.entry("storage", format!("{} bits on each server", count(self.storage_bits)));
        page.entry("answer", format!("{} bits of each server", count(self.answer_bits)));
        page.line(format!("With records of {}:", display::bytes(self.record_len)));
        page.entry("table", bytes(self.table_bytes as f64));
        page.entry(
            "storage",
            format!(
                "{} on each server, {:.1} times the table",
                bytes(self.storage_bytes as f64),
                self.storage_factor
            ),
        );
        page.entry("answer", format!("{} of each server", bytes(self.answer_bytes as f64)));
        page.entry("download", format!("{} from all", bytes(self.download_bytes as f64)));
        page.line("With precomputed derivatives instead:");
        page.entry(
            "storage",
            format!(
                "{} on each server: {} for each point",
                bytes(self.precomputed.storage_bytes),
                count(self.precomputed.derivatives)
            ),
        );
        if let Some(least) = &self.precomputed.least {
            let joined = match least.joined_records {
                1 => String::new(),
                joined => format!(", {} records joined", count(joined)),
            };
            page.entry(
                "at least",
                format!(
                    "{} for answers no longer: {} variables, degree {}{joined}; {} times as much as above",
                    bytes(least.storage_bytes),
                    least.variables,
                    least.degree,
                    count(least.storage_factor.round() as u128)
                ),
            );
        }
        let row = |what: &str, powers: &Option<Powers>| {
            let cell = |value: fn(&Powers) -> f64| {
                powers.as_ref().map_or("–".to_owned(), |powers| power(value(powers)))
            };
            [
                what.to_owned(),
                cell(|powers| powers.storage_exponent),
                cell(|powers| powers.reads_exponent),
            ]
        };
        let rows = [row("this polynomial", &self.exact), row("if it grew", &self.asymptotic)];
        let heading = ["for n records", "storage", "reads"];
        page.table(heading, &rows);
        page
    }
}

/// `1,234`, or `1.23e30` for what has more than 64 bits.
fn count(number: u128) -> String {
    match u64::try_from(number) {
        Ok(number) => display::count(number),
        Err(_) => format!("{:.2e}", number as f64),
    }
}

/// `12.3 MiB`, or `1.23e30 B` from 16 EiB.
fn bytes(number: f64) -> String {
    match number < u64::MAX as f64 {
        true => display::bytes(number as u64),
        false => format!("{number:.2e} B"),
    }
}
