//! How `privet get` prints what it found.
//!
//! A value may hold any bytes, and whoever wrote the table chose them. With `--json` each lookup is
//! one compact object on one line, and no value can break out of it. Of several lookups, each value
//! stands on one line behind its key and a tab, with escapes. CSV puts fields in quotation marks
//! where needed. On a terminal, characters that it would act on are escaped. A single value that
//! goes to a file or another program, and all values with `--raw`, are written as they are.

use super::json_lines::{Reading, Shown, json_line};
use super::wanted::{Lookup, Wanted};
use crate::arguments::{Get, OutputFormat};
use crate::display::{self, say_in_full};
use crate::output_file;
use crate::printable::{printable_bytes, printable_json};
use privet_core::{Error, Result};
use privet_table::values::Values;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// How values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// An object on each line, of printable characters.
    Json,
    /// Comma-separated, with a header. `screen`: what a terminal would act on is escaped.
    Csv { screen: bool },
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
            Some(OutputFormat::Csv) => Self::Csv { screen },
            Some(OutputFormat::Lines) | None => match (single, screen) {
                (false, _) => Self::Pairs,
                (true, true) => Self::Screen,
                (true, false) => Self::Raw,
            },
        }
    }
}

/// What was found for a key: the value, or the list of its values.
pub(super) struct Found<'a> {
    pub(super) values: Vec<&'a [u8]>,
    pub(super) is_list: bool,
}

/// Where results are written.
pub(super) struct Output {
    style: Style,
    reading: Reading,
    /// The file and its name, or `None` for standard output.
    file: Option<(BufWriter<File>, PathBuf)>,
    has_header: bool,
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
        output_file::for_values(path, &read.collect::<Vec<_>>())?;
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
        Ok(Self { style, reading: Reading::of(values), file, has_header: false, source })
    }

    /// Whether standard output leaves the terminal free for progress bars.
    pub(super) fn leaves_the_screen(&self) -> bool {
        self.file.is_some() || !std::io::stdout().is_terminal()
    }

    /// Prints the result of one lookup. What was not found is named on standard error, unless the
    /// style has a place for it. Returns whether the reader is still there.
    pub(super) fn print(&mut self, lookup: &Lookup, found: Option<&Found<'_>>) -> Result<bool> {
        let wanted = &lookup.wanted;
        if self.style == Style::Json {
            let shown = found.map(|found| Shown::of(found, self.reading));
            return self.write(json_line(wanted, shown)?.as_bytes());
        }
        let is_read = self.write_header(wanted)?;
        let Some(found) = found else {
            say_in_full(&self.not_found(lookup));
            return Ok(is_read);
        };
        self.write(&lines(self.style, self.reading, wanted, &found.values, !found.is_list))
    }

    /// A key from a list may be a secret, and is told by its line. One that was typed stands in the
    /// list of processes already.
    fn not_found(&self, Lookup { wanted, line }: &Lookup) -> String {
        match (wanted, line, &self.source) {
            (Wanted::Key(_), Some(line), Some(source)) => {
                format!("not found: line {} of {source}", display::count(*line))
            }
            (Wanted::Key(key), ..) => format!("not found: {}", shortened(key)),
            (Wanted::Index(index), ..) => format!("record {index} holds no value"),
        }
    }

    /// Must be called at the end. Otherwise what is still buffered may be lost. Returns whether the
    /// reader is still there.
    pub(super) fn finish(&mut self) -> Result<bool> {
        match &mut self.file {
            Some((file, path)) => is_taken(file.flush(), path),
            None => Ok(true),
        }
    }

    fn write_header(&mut self, wanted: &Wanted) -> Result<bool> {
        let is_due = matches!(self.style, Style::Csv { .. }) && !self.has_header;
        self.has_header = true;
        match (is_due, wanted) {
            (false, _) => Ok(true),
            (true, Wanted::Key(_)) => self.write(b"key,value\n"),
            (true, Wanted::Index(_)) => self.write(b"index,value\n"),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        match &mut self.file {
            Some((file, path)) => is_taken(file.write_all(bytes), path),
            None => display::is_read(bytes),
        }
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
    let text = String::from_utf8_lossy(key);
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
fn lines(
    style: Style,
    reading: Reading,
    wanted: &Wanted,
    values: &[&[u8]],
    alone: bool,
) -> Vec<u8> {
    let mut lines = Vec::new();
    for value in values {
        match style {
            Style::Screen => lines.extend(printable_bytes(value, alone).into_bytes()),
            Style::Raw | Style::Json => lines.extend_from_slice(value),
            Style::Pairs => {
                lines.extend(wanted.escaped().into_bytes());
                lines.push(b'\t');
                let json = reading.json_of(value).map(|json| printable_json(json.get()));
                lines.extend(json.unwrap_or_else(|| escaped(value)).into_bytes());
            }
            Style::Csv { screen } => {
                let field = |bytes: &[u8]| match screen {
                    true => quoted(printable_bytes(bytes, false).as_bytes()),
                    false => quoted(bytes),
                };
                match wanted {
                    Wanted::Key(key) => lines.extend(field(key)),
                    Wanted::Index(index) => lines.extend(index.to_string().into_bytes()),
                }
                lines.push(b',');
                lines.extend(field(value));
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

/// A field of a CSV file (RFC 4180), in quotation marks where they are needed.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    if !bytes.iter().any(|byte| b"\",\r\n".contains(byte)) {
        return bytes.to_vec();
    }
    let mut field = vec![b'"'];
    for byte in bytes {
        if *byte == b'"' {
            field.push(b'"');
        }
        field.push(*byte);
    }
    field.push(b'"');
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_command_a_terminal() {
        let key = Wanted::Key(b"k".to_vec());
        let forged = b"555\x1b[2K\rnot so\nprivet: verified\xff\xe2\x80\xae";
        let line =
            |style| String::from_utf8(lines(style, Reading::Any, &key, &[forged], true)).unwrap();
        let escaped = "555\\u{1b}[2K\\rnot so\\nprivet: verified\\xff\\u{202e}\n";
        assert_eq!(
            line(Style::Screen),
            "555\\u{1b}[2K\\rnot so\n  privet: verified\\xff\\u{202e}\n"
        );
        assert_eq!(line(Style::Pairs), format!("k\t{escaped}"));
        assert_eq!(line(Style::Csv { screen: true }), format!("k,{escaped}"));
        let list = lines(Style::Screen, Reading::Any, &key, &[b"a\nb", b"c"], false);
        assert_eq!(list, b"a\\nb\nc\n");
        assert_eq!(
            lines(Style::Raw, Reading::Any, &key, &[forged], true),
            [&forged[..], b"\n"].concat()
        );
    }

    #[test]
    fn a_pair_is_one_line_with_one_tab() {
        let key = Wanted::Key(b"a\tb\\\n".to_vec());
        let line = |value: &[u8]| {
            String::from_utf8(lines(Style::Pairs, Reading::Any, &key, &[value], true))
        };
        assert_eq!(line(b"x\ty\\t\n").unwrap(), "a\\tb\\\\\\n\tx\\ty\\\\t\\n\n");
        // JSON stays JSON.
        assert_eq!(line(b"{\"a\" :\n \"b\\n\"}").unwrap(), "a\\tb\\\\\\n\t{\"a\":\"b\\n\"}\n");
        let index = Wanted::Index(7);
        assert_eq!(
            lines(Style::Pairs, Reading::Any, &index, &[b"a", b"b"], false),
            b"7\ta\n7\tb\n"
        );
    }

    #[test]
    fn a_csv_field_is_quoted_where_it_has_to_be() {
        let line = |key: &[u8], value: &[u8]| {
            let key = Wanted::Key(key.to_vec());
            lines(Style::Csv { screen: false }, Reading::Any, &key, &[value], true)
        };
        assert_eq!(line(b"k", b"v w"), b"k,v w\n");
        assert_eq!(line(b"a,b", b"{\"c\":\"\n\"}"), b"\"a,b\",\"{\"\"c\"\":\"\"\n\"\"}\"\n");
        assert_eq!(line(b"\xff", b"\r"), b"\xff,\"\r\"\n");
    }

    #[test]
    fn a_long_key_is_not_repeated() {
        assert_eq!(shortened(b"k"), "k");
        assert_eq!(shortened(&[b'k'; 100]), "k".repeat(100));
        let long = "k".repeat(100) + "… (100,000 characters)";
        assert_eq!(shortened(&[b'k'; 100_000]), long);
    }
}
