//! Lines of UTF-8, of limited length.

use super::text::Text;
use super::{MAX_ROW_BYTES, cannot_read, quoted};
use privet_core::{Error, Result};
use std::io::{BufRead, BufReader, Read};

/// Reads lines, counts them and checks their encoding.
pub(super) struct Lines<R> {
    input: BufReader<Text<R>>,
    line: Vec<u8>,
    number: u64,
    /// How many bytes of the line come before the first that is not UTF-8; `None` if all are UTF-8.
    valid: Option<usize>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, Text::new(input)),
            line: Vec::new(),
            number: 0,
            valid: None,
        }
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line with its end (`\n`, which the last line may lack), or `None` after the last.
    pub(super) fn next_line(&mut self) -> Result<Option<&str>> {
        self.line.clear();
        self.number += 1;
        self.valid = None;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot_read(error)),
            };
            if available.is_empty() {
                break;
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > MAX_ROW_BYTES {
                return Err(row_too_long().within(format!("line {}", self.number)));
            }
            self.line.extend_from_slice(&available[..taken]);
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => {
                self.valid = Some(error.valid_up_to());
                Err(not_utf8(self.number, error.valid_up_to(), None))
            }
        }
    }

    /// The part of the line before the first byte that is not UTF-8, if the line was refused for
    /// that.
    pub(super) fn valid_part(&self) -> Option<&[u8]> {
        self.valid.map(|len| &self.line[..len])
    }
}

/// The error for a line whose first `valid` bytes are UTF-8 and whose next byte is not. Names the
/// column of that byte if it is known.
pub(super) fn not_utf8(line: u64, valid: usize, column: Option<&str>) -> Error {
    let column = column.map(|name| format!(", in the column {},", quoted(name)));
    Error::api_misuse(format!(
        "line {line}: byte {}{} is not UTF-8; convert the file to UTF-8 first",
        valid + 1,
        column.unwrap_or_default()
    ))
}

pub(super) fn row_too_long() -> Error {
    Error::api_misuse(format!(
        "a row takes more than {MAX_ROW_BYTES} bytes; is this the right format?"
    ))
}

/// The line without its end.
pub(super) fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
