//! A made-up table of names, telephone numbers and floors.

use crate::display::{self, Page};
use privet_core::Result;
use privet_table::build::{BuildOptions, build_table};
use privet_table::import::{Format, Source};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

const FIRST_NAMES: [&str; 8] =
    ["Ada", "Alan", "Barbara", "Claude", "Edsger", "Grace", "Katherine", "Tony"];
const LAST_NAMES: [&str; 5] = ["Archer", "Baker", "Cooper", "Miller", "Smith"];

pub(super) struct PhoneBook {
    path: PathBuf,
    entries: u64,
}

impl PhoneBook {
    /// Generates the input, builds the table in `directory`, and prints a summary.
    pub(super) fn build(entries: u64, directory: &Path) -> Result<Self> {
        let start = Instant::now();
        let book = Self { path: directory.join("phone-book.privet"), entries };
        let mut csv = Vec::new();
        csv.extend_from_slice(b"name,phone,floor\n");
        for entry in 0..entries {
            // Writing to a vector cannot fail.
            let _ = writeln!(csv, "{},{},{}", book.name(entry), phone(entry), floor(entry));
        }
        let input = std::io::Cursor::new(csv);
        let source = Source::reader("the generated phone book", input).format(Format::Csv);
        let options = BuildOptions { key: Some("name".to_owned()), ..BuildOptions::default() };
        let report = build_table(&options, source, &book.path, &mut |_| Ok(()))?;
        let mut page = Page::default();
        page.line(format!(
            "1. A table of {} names, built in {}: {} records of {}, {:.2} x the values.",
            display::count(entries),
            display::duration(start.elapsed()),
            display::count(report.records),
            display::bytes(report.record_len),
            report.overhead
        ));
        page.print()?;
        Ok(book)
    }

    /// The keys of such a table with their values, which are JSON objects.
    pub(super) fn rows(entries: u64) -> impl Iterator<Item = (String, String)> {
        let book = Self { path: PathBuf::new(), entries };
        (0..entries).map(move |entry| (book.name(entry), book.value(entry)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// The name of an entry, which is its key.
    pub(super) fn name(&self, entry: u64) -> String {
        let (first, rest) = (FIRST_NAMES[(entry % 8) as usize], entry / 8);
        format!("{first} {} {}", LAST_NAMES[(rest % 5) as usize], rest / 5 + 1)
    }

    pub(super) fn value(&self, entry: u64) -> String {
        format!("{{\"phone\":\"{}\",\"floor\":\"{}\"}}", phone(entry), floor(entry))
    }
}

fn phone(entry: u64) -> String {
    // A permutation of the numbers below 10^7, so that neighbours do not look alike.
    format!("555-{:07}", entry.wrapping_mul(7_654_321) % 10_000_000)
}

fn floor(entry: u64) -> u64 {
    entry % 30
}
