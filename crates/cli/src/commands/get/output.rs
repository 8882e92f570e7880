//! How `privet get` prints what it found.
//!
//! A value may hold any bytes, and whoever wrote the table chose them. With `--json` each lookup is
//! one compact object on one line, and no value can break out of it. Of several lookups, each value
//! stands on one line behind its key and a tab, with escapes. CSV puts fields in quotation marks
//! where needed. On a terminal, characters that it would act on are escaped. A single value that
//! goes to a file or another program, and all values with `--raw`, are written as they are.

use super::wanted::Wanted;
use crate::arguments::{Get, OutputFormat};
use crate::display::{self, say};
use crate::output_file;
use crate::printable::{compact_json, printable_bytes, printable_json};
use privet_client::Value;
use privet_core::{Error, Result};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// One lookup as a JSON line. A value that is JSON itself stands under `value`, other text under
/// `text`, and other bytes under `hex`. Where keys have several values, they stand in a list under
/// `values` if all are JSON, under `texts` if all are text, else under `hexes`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    found: bool,
    #[serde(flatten)]
    value: Option<Shown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shown<'a> {
    Value(Box<RawValue>),
    Text(&'a str),
    Hex(String),
    Values(Vec<Box<RawValue>>),
    Texts(Vec<&'a str>),
    Hexes(Vec<String>),
}

impl<'a> Shown<'a> {
    fn of(value: &'a Value) -> Self {
        match value.is_list() {
            true => Self::list(value.values().collect()),
            false => Self::single(value),
        }
    }

    fn single(value: &'a [u8]) -> Self {
        match (json_of(value), text_of(value)) {
            (Some(json), _) => Self::Value(json),
            (None, Some(text)) => Self::Text(text),
            (None, None) => Self::Hex(hex_of(value)),
        }
    }

    pub(crate) fn list(values: Vec<&'a [u8]>) -> Self {
        if let Some(values) = values.iter().map(|value| json_of(value)).collect() {
            return Self::Values(values);
        }
        match values.iter().map(|value| text_of(value)).collect() {
            Some(texts) => Self::Texts(texts),
            None => Self::Hexes(values.into_iter().map(hex_of).collect()),
        }
    }
}

fn text_of(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

/// A value that is JSON, without space between its tokens. So it has no line break.
fn json_of(value: &[u8]) -> Option<Box<RawValue>> {
    let json: &RawValue = serde_json::from_str(text_of(value)?).ok()?;
    RawValue::from_string(compact_json(json.get())?).ok()
}

fn hex_of(value: &[u8]) -> String {
    value.iter().map(|byte| format!("{byte:02x}")).collect()
}

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

/// Where results are written.
pub(super) struct Output {
    style: Style,
    /// The file and its name, or `None` for standard output.
    file: Option<(BufWriter<File>, PathBuf)>,
    has_header: bool,
}

impl Output {
    /// Checks that the output file, if one is named, may be written.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if not.
    pub(super) fn check(arguments: &Get) -> Result<()> {
        let read = arguments.keys_from.iter().chain(&arguments.ca_file).map(PathBuf::as_path);
        match &arguments.output {
            None => Ok(()),
            Some(path) => output_file::for_values(path, &read.collect::<Vec<_>>()),
        }
    }

    /// Opens and empties the output file, if one is named. `single`: there is only one lookup.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be written.
    pub(super) fn new(arguments: &Get, single: bool) -> Result<Self> {
        let file = match &arguments.output {
            None => None,
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    Error::api_misuse(format!("cannot write {}", path.display())).caused_by(error)
                })?;
                Some((BufWriter::new(file), path.clone()))
            }
        };
        let screen = arguments.output.is_none() && std::io::stdout().is_terminal();
        let style = Style::new(arguments, single, screen);
        Ok(Self { style, file, has_header: false })
    }

    /// Whether standard output leaves the terminal free for progress bars.
    pub(super) fn leaves_the_screen(&self) -> bool {
        self.file.is_some() || !std::io::stdout().is_terminal()
    }

    /// Prints the result of one lookup. A key that was not found is named on standard error, unless
    /// the style has a place for it.
    pub(super) fn print(&mut self, wanted: &Wanted, value: Option<&Value>) -> Result<()> {
        if self.style == Style::Json {
            return self.write(json_line(wanted, value.map(Shown::of))?.as_bytes());
        }
        self.write_header(wanted)?;
        let Some(value) = value else {
            say(&match wanted {
                Wanted::Key(key) => format!("not found: {}", shortened(key)),
                Wanted::Index(index) => format!("record {index} holds no value"),
            });
            return Ok(());
        };
        let alone = !value.is_list();
        let values: Vec<&[u8]> = value.values().collect();
        self.write(&lines(self.style, wanted, &values, alone))
    }

    /// Must be called at the end. Otherwise what is still buffered may be lost.
    pub(super) fn finish(&mut self) -> Result<()> {
        match &mut self.file {
            Some((file, path)) => file.flush().map_err(|error| unwritten(path, error)),
            None => Ok(()),
        }
    }

    fn write_header(&mut self, wanted: &Wanted) -> Result<()> {
        let is_due = matches!(self.style, Style::Csv { .. }) && !self.has_header;
        self.has_header = true;
        match (is_due, wanted) {
            (false, _) => Ok(()),
            (true, Wanted::Key(_)) => self.write(b"key,value\n"),
            (true, Wanted::Index(_)) => self.write(b"index,value\n"),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.file {
            Some((file, path)) => file.write_all(bytes).map_err(|error| unwritten(path, error)),
            None => display::write_out(bytes),
        }
    }
}

fn unwritten(path: &Path, error: std::io::Error) -> Error {
    Error::unavailable(format!("cannot write to {}", path.display())).caused_by(error)
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
fn lines(style: Style, wanted: &Wanted, values: &[&[u8]], alone: bool) -> Vec<u8> {
    let mut lines = Vec::new();
    for value in values {
        match style {
            Style::Screen => lines.extend(printable_bytes(value, alone).into_bytes()),
            Style::Raw | Style::Json => lines.extend_from_slice(value),
            Style::Pairs => {
                lines.extend(wanted.escaped().into_bytes());
                lines.push(b'\t');
                let json = json_of(value).map(|json| printable_json(json.get()));
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

fn json_line(wanted: &Wanted, value: Option<Shown<'_>>) -> Result<String> {
    let line = Line {
        key: match wanted {
            Wanted::Key(key) => Some(String::from_utf8_lossy(key).into_owned()),
            Wanted::Index(_) => None,
        },
        index: match wanted {
            Wanted::Key(_) => None,
            Wanted::Index(index) => Some(*index),
        },
        found: value.is_some(),
        value,
    };
    let line = serde_json::to_string(&line).map_err(|error| {
        Error::unavailable("a value cannot be printed as JSON").caused_by(error)
    })?;
    Ok(printable_json(&line) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    #[test]
    fn values_are_printed_as_what_they_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line =
            |value: Option<&'static [u8]>| json_line(&key, value.map(Shown::single)).unwrap();
        assert_eq!(
            line(Some(br#"{"price":1.10}"#)),
            "{\"key\":\"k\",\"found\":true,\"value\":{\"price\":1.10}}\n"
        );
        assert_eq!(
            line(Some(b"plain words")),
            "{\"key\":\"k\",\"found\":true,\"text\":\"plain words\"}\n"
        );
        assert_eq!(line(Some(&[0xff, 0x00])), "{\"key\":\"k\",\"found\":true,\"hex\":\"ff00\"}\n");
        assert_eq!(line(None), "{\"key\":\"k\",\"found\":false}\n");
        assert_eq!(
            json_line(&Wanted::Index(7), Some(Shown::single(b""))).unwrap(),
            "{\"index\":7,\"found\":true,\"text\":\"\"}\n"
        );
    }

    #[test]
    fn lists_are_printed_as_what_all_of_their_values_are() {
        let key = Wanted::Key(b"k".to_vec());
        let line = |values: &[&[u8]]| json_line(&key, Some(Shown::list(values.to_vec()))).unwrap();
        assert_eq!(
            line(&[br#"{"price":1.10}"#, b"2"]),
            "{\"key\":\"k\",\"found\":true,\"values\":[{\"price\":1.10},2]}\n"
        );
        assert_eq!(
            line(&[b"2", b"plain words"]),
            "{\"key\":\"k\",\"found\":true,\"texts\":[\"2\",\"plain words\"]}\n"
        );
        assert_eq!(
            line(&[b"2", &[0xff, 0x00]]),
            "{\"key\":\"k\",\"found\":true,\"hexes\":[\"32\",\"ff00\"]}\n"
        );
        assert_eq!(line(&[b"2"]), "{\"key\":\"k\",\"found\":true,\"values\":[2]}\n");
    }

    #[test]
    fn values_cannot_command_a_terminal() {
        let key = Wanted::Key(b"k".to_vec());
        let forged = b"555\x1b[2K\rnot so\nprivet: verified\xff\xe2\x80\xae";
        let line = |style| String::from_utf8(lines(style, &key, &[forged], true)).unwrap();
        let escaped = "555\\u{1b}[2K\\rnot so\\nprivet: verified\\xff\\u{202e}\n";
        assert_eq!(
            line(Style::Screen),
            "555\\u{1b}[2K\\rnot so\n  privet: verified\\xff\\u{202e}\n"
        );
        assert_eq!(line(Style::Pairs), format!("k\t{escaped}"));
        assert_eq!(line(Style::Csv { screen: true }), format!("k,{escaped}"));
        let list = lines(Style::Screen, &key, &[b"a\nb", b"c"], false);
        assert_eq!(list, b"a\\nb\nc\n");
        assert_eq!(lines(Style::Raw, &key, &[forged], true), [&forged[..], b"\n"].concat());
    }

    #[test]
    fn a_pair_is_one_line_with_one_tab() {
        let key = Wanted::Key(b"a\tb\\\n".to_vec());
        let line = |value: &[u8]| String::from_utf8(lines(Style::Pairs, &key, &[value], true));
        assert_eq!(line(b"x\ty\\t\n").unwrap(), "a\\tb\\\\\\n\tx\\ty\\\\t\\n\n");
        // JSON stays JSON.
        assert_eq!(line(b"{\"a\" :\n \"b\\n\"}").unwrap(), "a\\tb\\\\\\n\t{\"a\":\"b\\n\"}\n");
        let index = Wanted::Index(7);
        assert_eq!(lines(Style::Pairs, &index, &[b"a", b"b"], false), b"7\ta\n7\tb\n");
    }

    #[test]
    fn a_csv_field_is_quoted_where_it_has_to_be() {
        let line = |key: &[u8], value: &[u8]| {
            let key = Wanted::Key(key.to_vec());
            lines(Style::Csv { screen: false }, &key, &[value], true)
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

    /// The key and the values of a line, in whatever form it has them.
    fn read(line: &str) -> (String, Vec<Vec<u8>>) {
        /// A value that is `null` is a value; serde alone would read it as `None`.
        fn present<'de, D: serde::Deserializer<'de>>(
            json: D,
        ) -> std::result::Result<Option<&'de RawValue>, D::Error> {
            serde::Deserialize::deserialize(json).map(Some)
        }
        #[derive(serde::Deserialize)]
        struct Read<'a> {
            key: String,
            found: bool,
            #[serde(borrow, default, deserialize_with = "present")]
            value: Option<&'a RawValue>,
            text: Option<String>,
            hex: Option<String>,
            #[serde(borrow)]
            values: Option<Vec<&'a RawValue>>,
            texts: Option<Vec<String>>,
            hexes: Option<Vec<String>>,
        }
        let read: Read<'_> = serde_json::from_str(line).unwrap();
        assert!(read.found);
        let raw = |json: &RawValue| json.get().as_bytes().to_vec();
        let hex = |digits: &String| {
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>()
        };
        let mut forms = Vec::new();
        forms.extend(read.value.map(|value| vec![raw(value)]));
        forms.extend(read.text.map(|text| vec![text.into_bytes()]));
        forms.extend(read.hex.map(|digits| vec![hex(&digits)]));
        forms.extend(read.values.map(|values| values.into_iter().map(raw).collect()));
        forms.extend(read.texts.map(|texts| texts.into_iter().map(String::into_bytes).collect()));
        forms.extend(read.hexes.map(|digits| digits.iter().map(hex).collect()));
        assert_eq!(forms.len(), 1, "a line has its values once: {line}");
        (read.key, forms.remove(0))
    }

    /// JSON in a form to compare: its tokens, with strings decoded.
    fn tokens(json: &str) -> Vec<String> {
        let (mut tokens, mut rest) = (Vec::new(), json);
        while let Some(first) = rest.chars().next() {
            let len = match first {
                ' ' | '\t' | '\n' | '\r' => {
                    rest = &rest[1..];
                    continue;
                }
                '"' => {
                    let mut strings = serde_json::Deserializer::from_str(rest).into_iter();
                    let text: String = strings.next().unwrap().unwrap();
                    let len = strings.byte_offset();
                    tokens.push(format!("text {text}"));
                    rest = &rest[len..];
                    continue;
                }
                '[' | ']' | '{' | '}' | ':' | ',' => 1,
                _ => rest
                    .find(|next: char| !(next.is_ascii_alphanumeric() || "+-.".contains(next)))
                    .unwrap_or(rest.len()),
            };
            tokens.push(rest[..len].to_owned());
            rest = &rest[len..];
        }
        tokens
    }

    /// Checks that the lookup is one line of printable characters, and one object with the key and
    /// these values.
    fn check(key: &[u8], values: &[Vec<u8>]) -> std::result::Result<(), TestCaseError> {
        let slices: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let shown = match slices[..] {
            [single] => Shown::single(single),
            _ => Shown::list(slices),
        };
        let line = json_line(&Wanted::Key(key.to_vec()), Some(shown)).unwrap();
        let object = line.strip_suffix('\n').unwrap();
        prop_assert_eq!(&*crate::printable::printable(object), object);
        let (told, read) = read(object);
        prop_assert_eq!(told, String::from_utf8_lossy(key).into_owned());
        prop_assert_eq!(read.len(), values.len());
        for (read, value) in read.iter().zip(values) {
            let (said, meant) = (String::from_utf8_lossy(read), String::from_utf8_lossy(value));
            prop_assert!(
                read == value || tokens(&said) == tokens(&meant),
                "{} is not {}",
                said,
                meant
            );
        }
        // Other programs must read it too, unless a number is beyond their range.
        if !object.contains(['e', 'E']) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(object).is_ok());
        }
        Ok(())
    }

    /// Pieces from which JSON, near misses and forgeries are made.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            proptest::sample::select(vec![
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                " ",
                "\n",
                "\r\n",
                "\t",
                "\"",
                "\\",
                "\\u",
                "d83d",
                "\\ude00",
                "\\ud83d",
                "\"a\"",
                "\"a\":",
                "1",
                "-0.10",
                "1e400",
                "null",
                "true",
                "{\"key\":\"victim\",\"found\":true}",
                "\u{2028}",
                "\u{202e}",
                "\u{85}",
                "\x7f",
                "\x1b[2J",
                "\u{feff}",
                "é",
                "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
            ])
            .prop_map(|piece| piece.as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    /// JSON with white space wherever it may stand.
    fn json() -> impl Strategy<Value = Vec<u8>> {
        let space = || proptest::sample::select(vec!["", " ", "\n", "\r\n\t "]);
        let leaf = prop_oneof![
            proptest::sample::select(vec!["1.10", "-0e+00", "12345678901234567890123", "null"])
                .prop_map(str::to_owned),
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        let value = leaf.prop_recursive(4, 32, 4, move |inner| {
            let inner = (space(), inner, space());
            let inner = inner.prop_map(|(before, value, after)| format!("{before}{value}{after}"));
            let list = proptest::collection::vec(inner.clone(), 0..4);
            let pairs = proptest::collection::vec(inner, 0..4);
            prop_oneof![
                list.prop_map(|values| format!("[{}]", values.join(","))),
                pairs.prop_map(|values| {
                    // One key, repeated.
                    let pairs: Vec<_> =
                        values.into_iter().map(|value| format!("\n\"k\" :{value}")).collect();
                    format!("{{{}}}", pairs.join(","))
                }),
            ]
        });
        (space(), value, space())
            .prop_map(|(before, value, after)| format!("{before}{value}{after}").into_bytes())
    }

    proptest! {
        #[test]
        fn a_line_is_one_object_that_says_the_value_whatever_it_holds(
            key in proptest::collection::vec(any::<u8>(), 0..8),
            values in proptest::collection::vec(prop_oneof![pieces(), json()], 1..4),
        ) {
            check(&key, &values)?;
        }
    }

    #[test]
    fn null_is_a_value() {
        check(b"k", &[b"null".to_vec()]).unwrap();
        check(b"k", &[b"null".to_vec(), b"null".to_vec()]).unwrap();
    }

    #[test]
    fn a_value_cannot_make_a_line_of_its_own() {
        let forgery = b"{\"a\":\n{}}".to_vec();
        let line = json_line(&Wanted::Key(b"k".to_vec()), Some(Shown::single(&forgery))).unwrap();
        assert_eq!(line, "{\"key\":\"k\",\"found\":true,\"value\":{\"a\":{}}}\n");
        let forgery = b"[1,\n{\"key\":\"victim\",\"found\":true}\n]".to_vec();
        let line = json_line(&Wanted::Key(b"k".to_vec()), Some(Shown::single(&forgery))).unwrap();
        assert_eq!(line.lines().count(), 1);
        check(b"k", &[forgery]).unwrap();
    }
}
