//! What was published: tables and figures of the papers, as files of data.
//!
//! A file refuses what it does not know, so that a misspelt field is noticed.

use super::metric::Metric;
use super::run::Run;
use clap::ValueEnum;
use privet_core::{Error, Result};
use privet_measure::plan::Link;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The papers that have data here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Name {
    /// SimplePIR and DoublePIR
    Simplepir,
    /// Dummy subsets, with one server and two
    DummySubsets,
    /// Piano
    Piano,
    /// TAPIR, and what it is compared with
    Tapir,
    /// Finite differences
    FiniteDifferences,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::Simplepir => include_str!("data/simplepir.toml"),
            Self::DummySubsets => include_str!("data/dummy-subsets.toml"),
            Self::Piano => include_str!("data/piano.toml"),
            Self::Tapir => include_str!("data/tapir.toml"),
            Self::FiniteDifferences => include_str!("data/finite-differences.toml"),
        }
    }

    /// Reads the data.
    ///
    /// # Errors
    /// None is expected: a test reads them all.
    pub(super) fn read(self) -> Result<Paper> {
        toml::from_str(self.text()).map_err(|error| {
            Error::internal(format!("the data of {self:?} cannot be read")).caused_by(error)
        })
    }
}

/// What one paper measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) title: String,
    pub(super) authors: String,
    pub(super) published: String,
    /// What the authors measured on.
    pub(super) machine: String,
    #[serde(default, rename = "table")]
    pub(super) tables: Vec<Table>,
    #[serde(default, rename = "figure")]
    pub(super) figures: Vec<Figure>,
}

/// Figures that stand in a table, or in the text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) section: String,
    pub(super) about: String,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    /// Between client and server, where the figures include it.
    #[serde(default)]
    pub(super) link: Option<Text<Link>>,
    #[serde(rename = "row")]
    pub(super) rows: Vec<PaperRow>,
}

/// What was published about one scheme on one table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PaperRow {
    /// As the paper calls it.
    pub(super) scheme: String,
    /// As `privet bench` calls it. Missing if it is not here.
    #[serde(default)]
    pub(super) ours: Option<String>,
    pub(super) records: Text<RecordCount>,
    pub(super) record_len: u64,
    /// Options of `privet bench` that give the paper's parameters.
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// How the figures came about, if they were not measured.
    #[serde(default)]
    pub(super) by: Option<String>,
    pub(super) published: BTreeMap<Metric, Text<Quantity>>,
}

impl PaperRow {
    /// What measures the same here.
    pub(super) fn run(&self) -> Option<Run> {
        let scheme = self.ours.as_ref()?;
        Some(Run::new(scheme, self.records.0.0, self.record_len, &self.options))
    }
}

/// A plot over the number of records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) section: String,
    pub(super) about: String,
    /// What is drawn, each in a plot of its own.
    pub(super) y: Vec<Metric>,
    #[serde(default)]
    pub(super) records: Vec<Text<RecordCount>>,
    #[serde(default)]
    pub(super) record_len: u64,
    #[serde(default)]
    pub(super) schemes: Vec<String>,
    /// The same as the paper calls them.
    #[serde(default)]
    pub(super) labels: Vec<String>,
    /// Partitions have as many records as the square root of the table's.
    #[serde(default)]
    pub(super) square: Vec<String>,
}

impl Figure {
    /// What measures a scheme at each number of records.
    pub(super) fn runs<'f>(&'f self, scheme: &'f str) -> impl Iterator<Item = Run> + 'f {
        self.records.iter().map(move |Text(RecordCount(records))| {
            let is_square = self.square.iter().any(|square| square == scheme);
            let options = match is_square {
                true => vec!["--partition-records".to_owned(), records.isqrt().to_string()],
                false => Vec::new(),
            };
            Run::new(scheme, *records, self.record_len, &options)
        })
    }
}

/// What is written as a string.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String", bound(deserialize = "T: FromStr<Err = String>"))]
pub(super) struct Text<T>(pub(super) T);

impl<T: FromStr<Err = String>> TryFrom<String> for Text<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// A number of records, such as `1000` or `2^20`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordCount(pub(super) u64);

impl FromStr for RecordCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        privet_core::quantities::parse_number(text).map(Self)
    }
}

/// A number and its unit.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    /// As it was published.
    pub(super) text: String,
    /// In bytes, seconds, or a second's number of things.
    pub(super) amount: f64,
}

impl FromStr for Quantity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 20] = [
            ("B", 1.0),
            ("KiB", 1024.0),
            ("MiB", 1048576.0),
            ("GiB", 1073741824.0),
            ("TiB", 1099511627776.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("TB", 1e12),
            ("PB", 1e15),
            ("us", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
            ("min", 60.0),
            ("h", 3600.0),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
            ("queries/s", 1.0),
            ("reads", 1.0),
            ("x", 1.0),
        ];
        let wrong = || format!("{text:?} is no number with a unit");
        let (number, unit) = text.split_once(' ').ok_or_else(wrong)?;
        let number: f64 = number.replace(',', "").parse().map_err(|_| wrong())?;
        let (_, each) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        Ok(Self { text: text.to_owned(), amount: number * each })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_data_can_be_read_and_its_runs_can_be_typed() {
        for name in Name::value_variants() {
            let paper = name.read().unwrap_or_else(|error| panic!("{name:?}: {error:?}"));
            assert!(!paper.tables.is_empty(), "{name:?}");
            let runs = paper.tables.iter().flat_map(|table| &table.rows).filter_map(PaperRow::run);
            let of_figures = paper.figures.iter().flat_map(|figure| {
                assert_eq!(figure.schemes.len(), figure.labels.len(), "{}", figure.name);
                assert!(!figure.y.is_empty(), "{}", figure.name);
                assert!(figure.square.iter().all(|square| figure.schemes.contains(square)));
                figure.schemes.iter().flat_map(|scheme| figure.runs(scheme))
            });
            for run in runs.chain(of_figures) {
                run.bench(1).unwrap_or_else(|error| panic!("{name:?}: {error}"));
            }
        }
    }

    #[test]
    fn quantities_have_a_unit() {
        let amount = |text: &str| text.parse::<Quantity>().map(|quantity| quantity.amount);
        assert_eq!(amount("6.25 MiB"), Ok(6.25 * 1048576.0));
        assert_eq!(amount("18,982.05 KiB"), Ok(18982.05 * 1024.0));
        assert_eq!(amount("425 min"), Ok(25_500.0));
        for wrong in ["", "6.25", "6.25MiB", "6.25 furlongs", "many B"] {
            assert!(amount(wrong).unwrap_err().contains("no number"), "{wrong}");
        }
    }
}
