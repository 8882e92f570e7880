//! How `privet get` prints what it found.
//!
//! A value may hold any bytes, and whoever wrote the table chose them. With `--json` each lookup is
//! one compact object on one line, and no value can break out of it. Of several lookups, each value
//! stands on one line behind its key and a tab, with escapes. CSV has a cell for each
//! column. On a terminal, characters that it would act on are escaped. A single value that
//! goes to a file or another program, and all values with `--raw`, are written as they are.

use super::csv::Sheet;
use super::json_lines::{ReadAs, ShownValue, json_line};
use super::wanted::{RequestedLookup, Wanted};
use crate::arguments::{Get, OutputFormat};
use crate::display::{self, say_in_full};
use crate::printable::{printable_bytes, printable_json};
use privet_core::{Error, Result};
use privet_table::key_map::KeyFormat;
use privet_table::publish::output;
use privet_table::values::Values;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// How values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// An object on each line, of printable characters.
    Json,
    /// Rows of a [`Sheet`].
    Csv,
    /// Key, tab and value on each line, with escapes.
    Pairs,
    /// The bytes of each value, then a line break.
    Raw,
    /// The value of a single lookup, which may have several lines. What a terminal would act on is
    /// escaped.
    Screen,
}

impl Style {
    fn new(arguments: &Get, single: bool, screen: bool) -> Self {
        match arguments.format {
            _ if arguments.json => Self::Json,
            _ if arguments.raw => Self::Raw,
            Some(OutputFormat::Jsonl) => Self::Json,
            Some(OutputFormat::Csv) => Self::Csv,
            Some(OutputFormat::Lines) | None => match (single, screen) {
                (false, _) => Self::Pairs,
                (true, true) => Self::Screen,
                (true, false) => Self::Raw,
            },
        }
    }
}

/// What was found for a key: the value, or the list of its values.
pub(super) struct FoundValues<'a> {
    pub(super) values: Vec<&'a [u8]>,
    pub(super) is_list: bool,
}

/// What is printed of a lookup.
pub(super) enum Told<'a> {
    Found(FoundValues<'a>),
    NotFound,
    /// The table can have no such key, and why.
    Malformed(Cow<'a, str>),
}

/// Where results are written.
pub(super) struct Output {
    style: Style,
    reading: ReadAs,
    sheet: Sheet,
    /// What is looked up first.
    first: Option<Wanted>,
    /// The file and its name, or `None` for standard output.
    file: Option<(BufWriter<File>, PathBuf)>,
    /// What keys are read from, unless they may be named where standard error goes.
    source: Option<String>,
}

impl Output {
    /// Checks that the output file, if one is named, may be written. Opens what is no regular file:
    /// a named pipe, say, whose opening waits for a reader. That must not happen while a connection
    /// stands, or servers would see how long it takes.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it may not or cannot be written.
    pub(super) fn check(arguments: &Get) -> Result<Option<File>> {
        let read = arguments.keys_from.iter().chain(&arguments.trust.ca_file).map(PathBuf::as_path);
        let Some(path) = &arguments.output else { return Ok(None) };
        refuse_other_formats(path, arguments)?;
        output::for_values(path, &read.collect::<Vec<_>>())?;
        match path.metadata().is_ok_and(|there| !there.is_file()) {
            true => create(path).map(Some),
            false => Ok(None),
        }
    }

    /// Opens and empties the output file, if one is named and it is not `opened` yet. `single`:
    /// there is only one lookup. `source`: what keys are read from. `values`: what the table tells
    /// of its values.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be written.
    pub(super) fn new(
        arguments: &Get,
        opened: Option<File>,
        single: bool,
        source: String,
        values: Option<&Values>,
    ) -> Result<Self> {
        let file = match &arguments.output {
            None => None,
            Some(path) => {
                let file = opened.map_or_else(|| create(path), Ok)?;
                Some((BufWriter::new(file), path.clone()))
            }
        };
        let screen = arguments.output.is_none() && std::io::stdout().is_terminal();
        let style = Style::new(arguments, single, screen);
        // Elsewhere than on a terminal, what standard error says is kept: in a journal, say.
        let source = Some(source).filter(|_| !std::io::stderr().is_terminal());
        let (reading, sheet) = (ReadAs::of(values), Sheet::new(screen, values));
        Ok(Self { style, reading, sheet, first: None, file, source })
    }

    /// Whether standard output leaves the terminal free for progress bars.
    pub(super) fn leaves_the_screen(&self) -> bool {
        self.file.is_some() || !std::io::stdout().is_terminal()
    }

    /// Prints the result of one lookup. What was not found, and what is no key, is named on
    /// standard error, unless the style has a place for it. Returns whether the reader is still
    /// there.
    pub(super) fn print(&mut self, lookup: &RequestedLookup, told: &Told<'_>) -> Result<bool> {
        let wanted = &lookup.wanted;
        if self.style == Style::Json {
            let (shown, error) = match told {
                Told::Found(found) => (Some(ShownValue::of(found, self.reading)), None),
                Told::NotFound => (None, None),
                Told::Malformed(why) => (None, Some(&**why)),
            };
            return self.write(json_line(wanted, shown, error)?.as_bytes());
        }
        self.first.get_or_insert_with(|| wanted.clone());
        match (told, wanted) {
            (Told::Found(found), _) if self.style == Style::Csv => {
                let rows = self.sheet.rows(wanted, &found.values);
                return self.write(&rows);
            }
            (Told::Found(found), _) => {
                let lines = lines(self.style, self.reading, wanted, &found.values, !found.is_list);
                return self.write(&lines);
            }
            (Told::Malformed(why), _) => say_in_full(&format!("{}: {why}", self.named(lookup))),
            (Told::NotFound, Wanted::Key(_)) => {
                say_in_full(&format!("not found: {}", self.named(lookup)));
            }
            (Told::NotFound, Wanted::Index(index)) => {
                say_in_full(&format!("record {index} holds no value"));
            }
        }
        Ok(true)
    }

    /// A key from a list may be secret, and is named by its line. One that was typed stands in the
    /// list of processes already.
    fn named(&self, RequestedLookup { wanted, line }: &RequestedLookup) -> String {
        match (wanted, line, &self.source) {
            (Wanted::Key(_), Some(line), Some(source)) => {
                format!("line {} of {source}", display::count(*line))
            }
            (Wanted::Key(key), ..) => shortened(key),
            (Wanted::Index(index), ..) => index.to_string(),
        }
    }

    /// Must be called at the end. Otherwise what is still buffered may be lost. Returns whether the
    /// reader is still there.
    pub(super) fn finish(&mut self) -> Result<bool> {
        let mut is_read = true;
        if let (Style::Csv, Some(first)) = (self.style, self.first.take()) {
            let header = self.sheet.header(&first);
            is_read = self.write(&header)?;
        }
        if self.sheet.others() > 0 {
            say_in_full(&format!(
                "{} other columns than the header, which are left out; --json prints them",
                display::some(self.sheet.others(), "value has", "values have")
            ));
        }
        match &mut self.file {
            Some((file, path)) => is_taken(file.flush(), path),
            None => Ok(is_read),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        match &mut self.file {
            Some((file, path)) => is_taken(file.write_all(bytes), path),
            None => display::is_read(bytes),
        }
    }
}

/// Refuses a file whose name promises what is not written: spreadsheets and data frames would take
/// it for damaged.
fn refuse_other_formats(path: &Path, arguments: &Get) -> Result<()> {
    const OTHERS: [&str; 7] = ["parquet", "arrow", "feather", "xlsx", "xls", "ods", "sqlite"];
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match OTHERS.iter().find(|other| other.eq_ignore_ascii_case(extension)) {
        Some(_) if !arguments.raw => Err(Error::api_misuse(format!(
            "{} would not be what its name says: lines of text, CSV (--format csv) and JSON Lines (--json) are written, and with --raw the bytes of values; the package for Python makes data frames, which write other formats",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Opens and empties a file, which only its owner may read if it is new.
fn create(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| {
        Error::api_misuse(format!("cannot write {}", path.display())).caused_by(error)
    })
}

/// Whether what was written to the file is taken. Nobody takes it if the file is a pipe whose
/// reader went away.
fn is_taken(written: std::io::Result<()>, path: &Path) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            Err(Error::unavailable(format!("cannot write to {}", path.display())).caused_by(error))
        }
    }
}

/// The beginning of a key that was not found, with the key's length if it is cut.
fn shortened(key: &[u8]) -> String {
    const SHOWN: usize = 100;
    let text = match std::str::from_utf8(key) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => KeyFormat::Hex.shown(key).into(),
    };
    let mut rest = text.chars();
    let shown: String = rest.by_ref().take(SHOWN).collect();
    match rest.count() {
        0 => shown,
        more => format!("{shown}… ({} characters)", display::count((SHOWN + more) as u64)),
    }
}

/// Values for standard output, one on each line: as printable text on a terminal, and elsewhere as
/// they are.
pub(crate) fn plain_lines(values: &[&[u8]]) -> Vec<u8> {
    let screen = std::io::stdout().is_terminal();
    let mut lines = Vec::new();
    for value in values {
        match screen {
            true => lines.extend(printable_bytes(value, false).into_bytes()),
            false => lines.extend_from_slice(value),
        }
        lines.push(b'\n');
    }
    lines
}

/// Values, one on each line. `alone`: the value is the only one of its key, so it may keep its
/// lines.
fn lines(style: Style, reading: ReadAs, wanted: &Wanted, values: &[&[u8]], alone: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for value in values {
        match style {
            Style::Screen => lines.extend(printable_bytes(value, alone).into_bytes()),
            Style::Raw | Style::Json | Style::Csv => lines.extend_from_slice(value),
            Style::Pairs => {
                lines.extend(wanted.escaped().into_bytes());
                lines.push(b'\t');
                let json = reading.json_of(value).map(|json| printable_json(json.get()));
                lines.extend(json.unwrap_or_else(|| escaped(value)).into_bytes());
            }
        }
        lines.push(b'\n');
    }
    lines
}

impl Wanted {
    fn escaped(&self) -> String {
        match self {
            Wanted::Key(key) => escaped(key),
            Wanted::Index(index) => index.to_string(),
        }
    }
}

/// Text on one line without tabs: `\\` for a backslash, `\t`, `\n`, `\r`, `\u{1b}` for other
/// characters that a terminal acts on, `\xff` for bytes that are no text.
fn escaped(bytes: &[u8]) -> String {
    let pieces = bytes.split(|byte| *byte == b'\\');
    pieces.map(|piece| printable_bytes(piece, false)).collect::<Vec<_>>().join("\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_command_a_terminal() {
        let key = Wanted::Key(b"k".to_vec());
        let forged = b"555\x1b[2K\rnot so\nprivet: verified\xff\xe2\x80\xae";
        let line =
            |style| String::from_utf8(lines(style, ReadAs::Any, &key, &[forged], true)).unwrap();
        let escaped = "555\\u{1b}[2K\\rnot so\\nprivet: verified\\xff\\u{202e}\n";
        assert_eq!(
            line(Style::Screen),
            "555\\u{1b}[2K\\rnot so\n  privet: verified\\xff\\u{202e}\n"
        );
        assert_eq!(line(Style::Pairs), format!("k\t{escaped}"));
        let list = lines(Style::Screen, ReadAs::Any, &key, &[b"a\nb", b"c"], false);
        assert_eq!(list, b"a\\nb\nc\n");
        assert_eq!(
            lines(Style::Raw, ReadAs::Any, &key, &[forged], true),
            [&forged[..], b"\n"].concat()
        );
    }

    #[test]
    fn a_pair_is_one_line_with_one_tab() {
        let key = Wanted::Key(b"a\tb\\\n".to_vec());
        let line = |value: &[u8]| {
            String::from_utf8(lines(Style::Pairs, ReadAs::Any, &key, &[value], true))
        };
        assert_eq!(line(b"x\ty\\t\n").unwrap(), "a\\tb\\\\\\n\tx\\ty\\\\t\\n\n");
        // JSON stays JSON.
        assert_eq!(line(b"{\"a\" :\n \"b\\n\"}").unwrap(), "a\\tb\\\\\\n\t{\"a\":\"b\\n\"}\n");
        let index = Wanted::Index(7);
        assert_eq!(lines(Style::Pairs, ReadAs::Any, &index, &[b"a", b"b"], false), b"7\ta\n7\tb\n");
    }

    #[test]
    fn a_long_key_is_not_repeated() {
        assert_eq!(shortened(b"k"), "k");
        assert_eq!(shortened(b"k\xff"), "0x6bff");
        assert_eq!(shortened(&[b'k'; 100]), "k".repeat(100));
        let long = "k".repeat(100) + "… (100,000 characters)";
        assert_eq!(shortened(&[b'k'; 100_000]), long);
    }
}
