//! Turns the machine's Debian package index into JSON Lines, ready for `privet build`.
//!
//! ```text
//! apt-cache dumpavail | debian-packages > packages.jsonl
//! privet build packages.jsonl --key Package -o packages.privet
//! ```
//!
//! `apt-cache dumpavail` prints one paragraph per package: lines `Field: value`, and lines that
//! begin with white space and continue the field above. Each paragraph becomes one JSON object on
//! one line, with
//!
//! - every field, in the order of the paragraph, as a string;
//! - a value that begins after the colon and one space;
//! - continuation lines exactly as they stand, white space included, after a newline each: nothing
//!   is joined, trimmed or unfolded, so `Field: value` gives the paragraph's lines back.
//!
//! Input that is not like that (a line without a colon, a continuation with nothing to continue, a
//! field given twice, a paragraph without a `Package` field, bytes that are not UTF-8, nothing at
//! all) ends the program with status 2 and a message that names the line.

mod check;

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

/// A line longer than this is not from a package index.
const MAX_LINE: u64 = 16 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nothing is left to do if not even this can be written.
            let _ = writeln!(io::stderr(), "debian-packages: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), String> {
    let input = io::stdin().lock();
    let output = io::BufWriter::with_capacity(1 << 18, io::stdout().lock());
    match *arguments {
        [] | ["convert"] => convert(input, output).map(|_| ()),
        ["choose", count] => check::choose(input, count.parse().map_err(|_| format!("{count} is no number"))?, output),
        ["names"] => check::names(input, output),
        ["compare", packages] => {
            let count = check::compare(open(packages)?, input)?;
            let mut output = output;
            writeln!(output, "{count} names came back, every field exactly").map_err(|error| format!("cannot write: {error}"))
        }
        _ => Err("usage: debian-packages convert < dumpavail | choose COUNT < packages.jsonl | names < chosen.jsonl | compare chosen.jsonl < found.jsonl".to_owned()),
    }
}

fn open(path: &str) -> Result<io::BufReader<std::fs::File>, String> {
    std::fs::File::open(path)
        .map(io::BufReader::new)
        .map_err(|error| format!("cannot open {path}: {error}"))
}

/// Converts all of `input` and returns the number of packages.
fn convert(mut input: impl BufRead, mut output: impl Write) -> Result<u64, String> {
    let mut packages = 0;
    let mut paragraph = Paragraph::default();
    let mut line_number = 0u64;
    let mut line = Vec::new();
    loop {
        line.clear();
        line_number += 1;
        let len = (&mut input)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("cannot read the input: {error}"))?;
        if len as u64 == MAX_LINE && line.last() != Some(&b'\n') {
            return Err(format!("line {line_number}: it is longer than {MAX_LINE} bytes"));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.is_empty() {
            if paragraph.write_to(&mut output)? {
                packages += 1;
            }
            if len == 0 {
                break;
            }
            continue;
        }
        let text = std::str::from_utf8(text).map_err(|error| {
            format!("line {line_number}: byte {} is not UTF-8", error.valid_up_to() + 1)
        })?;
        paragraph
            .add_line(text, line_number)
            .map_err(|message| format!("line {line_number}: {message}"))?;
    }
    if packages == 0 {
        return Err(
            "the input is empty; pipe the output of `apt-cache dumpavail` into this program"
                .to_owned(),
        );
    }
    output.flush().map_err(cannot_write)?;
    Ok(packages)
}

/// The fields of a paragraph, in their order.
#[derive(Default)]
struct Paragraph {
    first_line: u64,
    fields: Vec<(String, String)>,
}

impl Paragraph {
    fn add_line(&mut self, line: &str, number: u64) -> Result<(), String> {
        if line.starts_with([' ', '\t']) {
            let Some((_, value)) = self.fields.last_mut() else {
                return Err("it continues a field, and there is none above".to_owned());
            };
            value.push('\n');
            value.push_str(line);
            return Ok(());
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err("there is no colon; a field looks like `Name: value`".to_owned());
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("{name:?} is not a field name"));
        }
        if self.fields.iter().any(|(earlier, _)| earlier == name) {
            return Err(format!("the field {name:?} occurs twice in one paragraph"));
        }
        if self.fields.is_empty() {
            self.first_line = number;
        }
        let value = value.strip_prefix(' ').unwrap_or(value);
        self.fields.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Writes the paragraph, if there is one, and empties it.
    fn write_to(&mut self, output: &mut impl Write) -> Result<bool, String> {
        if self.fields.is_empty() {
            return Ok(false);
        }
        if !self.fields.iter().any(|(name, value)| name == "Package" && !value.is_empty()) {
            return Err(format!(
                "line {}: the paragraph that begins here has no Package field",
                self.first_line
            ));
        }
        let mut separator = "{";
        for (name, value) in self.fields.drain(..) {
            output.write_all(separator.as_bytes()).map_err(cannot_write)?;
            serde_json::to_writer(&mut *output, &name)
                .map_err(|error| cannot_write(error.into()))?;
            output.write_all(b":").map_err(cannot_write)?;
            serde_json::to_writer(&mut *output, &value)
                .map_err(|error| cannot_write(error.into()))?;
            separator = ",";
        }
        output.write_all(b"}\n").map_err(cannot_write)?;
        Ok(true)
    }
}

fn cannot_write(error: io::Error) -> String {
    format!("cannot write the output: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(input: &[u8]) -> Result<String, String> {
        let mut output = Vec::new();
        convert(input, &mut output)?;
        Ok(String::from_utf8(output).expect("JSON is UTF-8"))
    }

    #[test]
    fn fields_keep_their_order_and_their_lines() {
        let input = b"Package: a\nVersion: 1:2.0-1\nTag: x::y,\n z::w,\n\tv\nDescription: say \"hi\"\n .\n  indented\n\n\
            Version: 3\nPackage: b\nEmpty:\nOnly:  two spaces\n";
        let expected = concat!(
            r#"{"Package":"a","Version":"1:2.0-1","Tag":"x::y,\n z::w,\n\tv","Description":"say \"hi\"\n .\n  indented"}"#,
            "\n",
            r#"{"Version":"3","Package":"b","Empty":"","Only":" two spaces"}"#,
            "\n",
        );
        assert_eq!(converted(input).expect("valid"), expected);
    }

    #[test]
    fn blank_lines_and_a_missing_last_newline_do_not_matter() {
        let expected = "{\"Package\":\"a\"}\n{\"Package\":\"b\"}\n";
        for input in ["Package: a\n\nPackage: b", "\n\nPackage: a\n\n\n\nPackage: b\n\n\n"] {
            assert_eq!(converted(input.as_bytes()).expect("valid"), expected);
        }
    }

    #[test]
    fn the_input_can_be_reproduced() {
        let input = "Package: a\nDescription: d\n long\n .\n more\n\nPackage: b\nX: \u{e9}\n\n";
        let mut again = String::new();
        for line in converted(input.as_bytes()).expect("valid").lines() {
            let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            for (name, value) in object.as_object().expect("an object") {
                again += &format!("{name}: {}\n", value.as_str().expect("a string"));
            }
            again.push('\n');
        }
        assert_eq!(again, input);
    }

    #[test]
    fn malformed_input_is_refused_with_its_line() {
        for (input, message) in [
            (
                &b""[..],
                "the input is empty; pipe the output of `apt-cache dumpavail` into this program",
            ),
            (
                b"\n\n",
                "the input is empty; pipe the output of `apt-cache dumpavail` into this program",
            ),
            (
                b"Package: a\nno colon\n",
                "line 2: there is no colon; a field looks like `Name: value`",
            ),
            (b" lost\n", "line 1: it continues a field, and there is none above"),
            (b"Package: a\n\n lost\n", "line 3: it continues a field, and there is none above"),
            (b"Package: a\nX: 1\nX: 2\n", "line 3: the field \"X\" occurs twice in one paragraph"),
            (b"Package: a\n: x\n", "line 2: \"\" is not a field name"),
            (b"Package: a\nA B: x\n", "line 2: \"A B\" is not a field name"),
            (b"Package: a\nX: \xff\n", "line 2: byte 4 is not UTF-8"),
            (
                b"Package: a\n\nX: y\n",
                "line 3: the paragraph that begins here has no Package field",
            ),
        ] {
            assert_eq!(converted(input).expect_err("malformed"), message, "{input:?}");
        }
    }
}
