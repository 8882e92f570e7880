//! What a parser of CSV lets pass: text after a closing quotation mark.
//!
//! A file whose quotation marks are characters of the text looks nearly like CSV. A cell that
//! begins with one would swallow all rows up to the next. It seldom ends where a cell may end, so
//! it is found here.

use privet_core::{Error, Reason, Result};

/// Follows the quoted cells of one row, line by line.
pub(super) struct Quotes {
    delimiter: u8,
    at: At,
    /// The line on which the quoted cell begins.
    line: u64,
    /// Whether the quoted cell has had a line end, and a delimiter.
    line_end: bool,
    delimited: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a cell.
    Start,
    /// In a cell that is not quoted.
    Plain,
    /// In a quoted cell.
    Quoted,
    /// After a quotation mark in a quoted cell: its end, or the first of two.
    Closing,
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, at: At::Start, line: 0, line_end: false, delimited: false }
    }

    pub(super) fn reset(&mut self) {
        self.at = At::Start;
    }

    /// The line on which the quoted cell begins that is not closed yet, if there is one.
    pub(super) fn open(&self) -> Option<u64> {
        (self.at == At::Quoted).then_some(self.line)
    }

    /// Looks at one line, which has this number.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the line where the cell begins,
    /// if text follows a closing quotation mark, or if rows seem to have run together.
    pub(super) fn look(&mut self, line: &str, number: u64) -> Result<()> {
        if self.at == At::Start && !line.contains('"') {
            return Ok(());
        }
        let text = line.strip_suffix('\n').unwrap_or(line);
        let text = text.strip_suffix('\r').unwrap_or(text);
        for byte in text.bytes() {
            self.at = match (self.at, byte) {
                (At::Start, b'"') => {
                    (self.line, self.line_end, self.delimited) = (number, false, false);
                    At::Quoted
                }
                (At::Quoted, b'"') => At::Closing,
                (At::Quoted, byte) => {
                    self.delimited |= byte == self.delimiter;
                    At::Quoted
                }
                (At::Closing, b'"') => At::Quoted,
                (At::Start | At::Plain | At::Closing, byte) if byte == self.delimiter => {
                    self.check_closed()?;
                    At::Start
                }
                (At::Closing, _) => {
                    return Err(unclear(
                        self.line,
                        "goes on after its closing quotation mark. Within quotes, a quotation mark is written twice",
                    ));
                }
                (At::Start | At::Plain, _) => At::Plain,
            };
        }
        match self.at {
            At::Quoted => self.line_end = true,
            _ => {
                self.check_closed()?;
                self.at = At::Start;
            }
        }
        Ok(())
    }

    /// Refuses a quoted cell that ends here and has tabs and line ends, where tabs separate cells:
    /// hardly any program can put both into one cell, and in a dump without quotes, two lines with
    /// a lone quotation mark make such a cell.
    fn check_closed(&self) -> Result<()> {
        if self.at == At::Closing && self.delimiter == b'\t' && self.line_end && self.delimited {
            return Err(unclear(
                self.line,
                "has tabs and line ends, as if rows had run together. If it is one cell, separate cells by commas",
            ));
        }
        Ok(())
    }
}

/// The error for the quoted cell that begins on a line.
pub(super) fn unclear(line: u64, what: &str) -> Error {
    Error::api_misuse(format!(
        "line {line}: the quoted cell that begins here {what}; where quotation marks are characters like any other, say so"
    ))
    .because(Reason::QuotesUnclear)
}
