//! Lines of text, of limited length. Some are no rows: lines before the first, comments, blanks.

use super::text::Text;
use super::{LinesLeftOut, MAX_ROW_BYTES, cannot_read, quoted};
use privet_core::{Error, Result};
use std::io::{BufRead, BufReader, Read};

/// Which lines are no rows.
#[derive(Clone, Default)]
pub(super) struct NoRows {
    /// So many lines at the beginning.
    pub(super) first: u64,
    /// Lines that begin with this.
    pub(super) comment: Option<String>,
    /// Whether a line of white space counts as blank, and white space before a comment is fine.
    pub(super) white_is_blank: bool,
}

impl NoRows {
    /// Whether other lines than blank ones may be none.
    pub(super) fn leaves_out_lines(&self) -> bool {
        self.first > 0 || self.comment.is_some()
    }

    /// Whether a line is a comment. So may be what remains of it, from one of its cells on.
    pub(super) fn is_comment(&self, line: &[u8]) -> bool {
        self.comment.as_ref().is_some_and(|comment| line.starts_with(comment.as_bytes()))
    }
}

/// Reads lines, counts them and checks their encoding.
pub(super) struct Lines<R> {
    input: BufReader<Text<R>>,
    line: Vec<u8>,
    number: u64,
    /// What is counted.
    unit: &'static str,
    no_rows: NoRows,
    left_out: LinesLeftOut,
    /// Whether the present line is to be given out once more.
    again: bool,
    /// How many bytes of the line come before the first that is not UTF-8; `None` if all are UTF-8.
    valid: Option<usize>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, no_rows: NoRows) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 18, Text::new(input)),
            line: Vec::new(),
            number: 0,
            unit: "line",
            no_rows,
            left_out: LinesLeftOut::default(),
            again: false,
            valid: None,
        }
    }

    /// Says what a line is to whoever reads errors.
    pub(super) fn counted_as(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// What is counted.
    pub(super) fn unit(&self) -> &'static str {
        self.unit
    }

    /// The number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Which lines are no rows.
    pub(super) fn no_rows(&self) -> &NoRows {
        &self.no_rows
    }

    /// How many lines were no rows so far.
    pub(super) fn left_out(&self) -> LinesLeftOut {
        self.left_out
    }

    /// Gives the line that was read last out once more.
    pub(super) fn once_more(&mut self) {
        self.again = true;
    }

    /// The next line with its number and its end (`\n`, which the last line may lack), or `None`
    /// after the last.
    pub(super) fn next_line(&mut self) -> Result<Option<(u64, &str)>> {
        if !self.advance()? {
            return Ok(None);
        }
        self.checked().map(Some)
    }

    /// As [`next_line`](Self::next_line), without the lines that are no rows.
    pub(super) fn next_row(&mut self) -> Result<Option<(u64, &str)>> {
        while self.advance()? {
            let white = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let mut line = self.line.as_slice();
            if self.no_rows.white_is_blank {
                line = line.trim_ascii_start();
            }
            if self.number <= self.no_rows.first {
                self.left_out.first += 1;
            } else if self.no_rows.is_comment(line) {
                self.left_out.comments += 1;
            } else if matches!(line, b"" | b"\n" | b"\r\n")
                || self.no_rows.white_is_blank && line.iter().all(white)
            {
                self.left_out.blank += 1;
            } else {
                return self.checked().map(Some);
            }
        }
        Ok(None)
    }

    /// Reads the next line, and says whether there is one.
    fn advance(&mut self) -> Result<bool> {
        if std::mem::take(&mut self.again) {
            return Ok(true);
        }
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
                return Err(row_too_long().within(format!("{} {}", self.unit, self.number)));
            }
            self.line.extend_from_slice(&available[..taken]);
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        Ok(!self.line.is_empty())
    }

    fn checked(&mut self) -> Result<(u64, &str)> {
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok((self.number, line)),
            Err(error) => {
                self.valid = Some(error.valid_up_to());
                Err(not_utf8(self.unit, self.number, error.valid_up_to(), None))
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
pub(super) fn not_utf8(unit: &str, line: u64, valid: usize, column: Option<&str>) -> Error {
    let column = column.map(|name| format!(", in the column {},", quoted(name)));
    Error::api_misuse(format!(
        "{unit} {line}: byte {}{} is not UTF-8; convert the file to UTF-8 first",
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
