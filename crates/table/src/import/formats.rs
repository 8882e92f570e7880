//! The formats of files: their names, the ends of files' names, and what reads them.

use super::cells::CellRows;
use super::{RowReader, Selection, Source, csv, json_lines, parquet};
use crate::choice::Choice;
use privet_core::Result;
use std::path::Path;

/// A file format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values with a header line (RFC 4180), in UTF-8. Another
    /// [delimiter](Source::delimiter) may stand for the comma.
    Csv,
    /// As CSV, with tabs in place of commas. Quotes have the same meaning, except that no cell has
    /// both tabs and line ends.
    Tsv,
    /// One JSON object per line, or one array of objects, in UTF-8.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// No file: [rows of cells](super::Cells) that a program supplies.
    Cells,
}

/// The rows of an input, and how many bytes it has, if that is known.
pub(super) type Opened = (Box<dyn RowReader>, Option<u64>);

struct FileFormat {
    /// Its names are also the extensions of files.
    choice: Choice<Format>,
    /// For people.
    title: &'static str,
    open: fn(Source, Selection) -> Result<Opened>,
}

/// Every format of files, in one place.
const FILE_FORMATS: [FileFormat; 4] = [
    FileFormat {
        title: "CSV",
        open: csv::open,
        choice: Choice::new(
            Format::Csv,
            "csv",
            "Comma-separated values, the first line with the names of the columns",
        ),
    },
    FileFormat {
        title: "TSV",
        open: csv::open,
        choice: Choice::new(Format::Tsv, "tsv", "The same with tabs").or(&["tab"]),
    },
    FileFormat {
        title: "JSON Lines",
        open: json_lines::open,
        choice: Choice::new(
            Format::JsonLines,
            "jsonl",
            "JSON Lines: one object on each line; or one JSON array of objects",
        )
        .or(&["ndjson", "json", "json-lines"]),
    },
    FileFormat {
        title: "Parquet",
        open: parquet::open,
        choice: Choice::new(Format::Parquet, "parquet", "Apache Parquet"),
    },
];

impl Format {
    /// The formats of files.
    pub fn choices() -> impl Iterator<Item = Choice<Self>> {
        FILE_FORMATS.iter().map(|format| format.choice)
    }

    /// The format that a name or a file extension stands for, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let mut choices = Self::choices();
        let named = choices.find(|one| is_it(one.name) || one.other_names.iter().any(|n| is_it(n)));
        named.map(|choice| choice.value)
    }

    /// The format's name, for people.
    pub fn name(self) -> &'static str {
        self.of_file().map_or("a table in memory", |format| format.title)
    }

    fn of_file(self) -> Option<&'static FileFormat> {
        FILE_FORMATS.iter().find(|format| format.choice.value == self)
    }

    /// Opens an input that has this format.
    pub(super) fn open(self, source: Source, selection: Selection) -> Result<Opened> {
        source.checked_dialect(self)?;
        let open = self.of_file().map_or(CellRows::open_source as fn(_, _) -> _, |file| file.open);
        open(source, selection)
    }
}

/// The format that a file's extension tells. For a compressed file such as `rows.csv.gz`, the
/// extension before its last.
pub(super) fn format_by_name(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?;
    match extension.to_ascii_lowercase().as_str() {
        "gz" | "gzip" | "zst" | "zstd" => {
            Format::from_name(Path::new(path.file_stem()?).extension()?.to_str()?)
        }
        _ => Format::from_name(extension),
    }
}
