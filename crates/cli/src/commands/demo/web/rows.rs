//! The rows of the table that the page shows: Debian's index of packages, or made-up ones.

use super::super::phone_book::PhoneBook;
use privet_core::{Error, Result};
use privet_table::build::{BuildOptions, OnDuplicate, build_table};
use privet_table::import::{Format, Source};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The column that is the key.
const KEY: &str = "name";

/// The fields of a package that are shown, and how the table calls them.
const FIELDS: [(&str, &str); 6] = [
    ("Version", "version"),
    ("Description", "about"),
    ("Description-en", "about"),
    ("Section", "section"),
    ("Installed-Size", "kilobytes"),
    ("Homepage", "homepage"),
];

/// An index of fewer packages is no index.
const FEWEST_PACKAGES: usize = 100;

/// Keys with their values, which are JSON objects.
pub(super) struct Rows {
    /// What the rows are, in the plural.
    pub(super) what: &'static str,
    /// Keys to begin with.
    pub(super) examples: Vec<String>,
    /// The column about which a liar lies.
    lied_about: &'static str,
    values: BTreeMap<String, String>,
}

impl Rows {
    /// Debian's packages, if this system knows them.
    pub(super) fn packages() -> Option<Self> {
        let mut listing = Command::new("apt-cache");
        let listing = listing.arg("dumpavail").env("LC_ALL", "C").stdin(Stdio::null());
        let listing = listing.stderr(Stdio::null()).output().ok()?;
        Self::of_listing(&String::from_utf8_lossy(&listing.stdout))
    }

    fn of_listing(listing: &str) -> Option<Self> {
        let values: BTreeMap<_, _> = listing.split("\n\n").filter_map(package).collect();
        let wanted = ["openssl", "curl", "git", "vim", "nano"].map(str::to_owned);
        let examples = wanted.into_iter().filter(|name| values.contains_key(name)).collect();
        (values.len() >= FEWEST_PACKAGES).then_some(Self {
            what: "Debian packages",
            examples,
            lied_about: "version",
            values,
        })
    }

    /// Made-up people.
    pub(super) fn people(entries: u64) -> Self {
        let values: BTreeMap<_, _> = PhoneBook::rows(entries).collect();
        let examples = values.keys().step_by(values.len().div_ceil(3).max(1)).cloned().collect();
        Self { what: "people", examples, lied_about: "phone", values }
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Builds the table of them.
    pub(super) fn build(&self, table: &Path) -> Result<()> {
        let mut lines = Vec::new();
        for (key, value) in &self.values {
            let key = Value::from(key.as_str());
            // Values are objects: after the brace comes a field.
            lines.extend_from_slice(format!("{{\"{KEY}\":{key},{}\n", &value[1..]).as_bytes());
        }
        let source = Source::reader(self.what, std::io::Cursor::new(lines));
        let options = BuildOptions {
            key: Some(KEY.to_owned()),
            on_duplicate: OnDuplicate::First,
            ..BuildOptions::default()
        };
        build_table(&options, source.format(Format::JsonLines), table, &mut |_| Ok(())).map(drop)
    }

    /// Changes in all records what is said in the column that is lied about. Rows that clients hold
    /// outside of the records stay true.
    ///
    /// # Errors
    /// If no record has that column.
    pub(super) fn lie(&self, records: &mut [u8]) -> Result<()> {
        let column = format!("\"{}\":\"", self.lied_about).into_bytes();
        let (mut at, mut lies) = (0, 0);
        while let Some(place) = find(&records[at..], &column) {
            at += place + column.len();
            for byte in records[at..].iter_mut().take_while(|byte| **byte != b'"') {
                if byte.is_ascii_digit() {
                    *byte = b'6';
                    lies += 1;
                }
            }
        }
        match lies {
            0 => Err(Error::internal("there was nothing to lie about")),
            _ => Ok(()),
        }
    }
}

fn find(within: &[u8], wanted: &[u8]) -> Option<usize> {
    within.windows(wanted.len()).position(|here| here == wanted)
}

/// A package's name and what is shown of it.
fn package(paragraph: &str) -> Option<(String, String)> {
    let fields = || paragraph.lines().filter_map(|line| line.split_once(": "));
    let (_, name) = fields().find(|(field, _)| *field == "Package")?;
    let mut shown = Map::new();
    for (field, column) in FIELDS {
        if let Some((_, text)) = fields().find(|(name, _)| *name == field) {
            shown.insert(column.to_owned(), text.into());
        }
    }
    (!shown.is_empty()).then(|| (name.to_owned(), Value::Object(shown).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_table::snapshot::Snapshot;

    #[test]
    fn packages_have_what_is_shown_of_them() {
        let paragraph = "Package: nano\nVersion: 7.2-1\nInstalled-Size: 2871\n\
                         Depends: libc6\nDescription: small editor\n with more lines: of it\n";
        let listing = |count| {
            let packages = (0..count).map(|number| format!("Package: p{number}\nVersion: 1\n"));
            packages.chain([paragraph.to_owned(), "Package: empty\n".to_owned()])
        };
        let join = |count| listing(count).collect::<Vec<_>>().join("\n");
        let rows = Rows::of_listing(&join(200)).unwrap();
        assert_eq!((rows.keys().len(), &rows.examples[..]), (201, &["nano".to_owned()][..]));
        assert_eq!(
            rows.value("nano").unwrap(),
            r#"{"version":"7.2-1","about":"small editor","kilobytes":"2871"}"#
        );
        assert!(rows.value("empty").is_none());
        assert!(Rows::of_listing(&join(10)).is_none());
    }

    #[test]
    fn a_lie_changes_one_column_of_all_records_and_no_length() {
        let rows = Rows::people(30);
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("people.privet");
        rows.build(&table).unwrap();
        let snapshot = Snapshot::open(&table).unwrap();
        let mut records = vec![0; snapshot.identity().shape.bytes() as usize];
        snapshot.read_records(0, &mut records).unwrap();
        let before = records.clone();
        rows.lie(&mut records).unwrap();
        let text = String::from_utf8_lossy(&records).into_owned();
        assert_eq!(text.matches("\"phone\":\"666-6666666\"").count(), 30);
        assert_eq!(text.matches("\"floor\":\"7\"").count(), 1);
        assert_eq!(before.len(), records.len());
        assert!(rows.lie(&mut [0; 100]).is_err());
    }
}
