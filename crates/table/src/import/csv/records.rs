//! Lines joined into records, and records cut into cells.

use super::quotes::{Quotes, unclear};
use crate::import::MAX_ROW_BYTES;
use crate::import::dialect::Delimiter;
use crate::import::lines::{Lines, NoRows, row_too_long};
use privet_core::{Error, Result};
use std::io::Read;

/// Joins lines into records.
pub(super) struct Records<R> {
    pub(super) lines: Lines<R>,
    pub(super) row: RowCells,
    /// The number of the cell with a byte that is not UTF-8, if the row was refused for that.
    bad_cell: Option<usize>,
}

impl<R: Read> Records<R> {
    pub(super) fn new(input: R, no_rows: NoRows, delimiter: Delimiter, quotes: bool) -> Self {
        let lines = Lines::new(input, no_rows);
        Self { lines, row: RowCells::new(delimiter, quotes), bad_cell: None }
    }

    /// Reads the next record and returns the line on which it begins, or `None` after the last.
    /// After an error, it goes on with the next line.
    pub(super) fn next_record(&mut self) -> Result<Option<u64>> {
        self.row.clear();
        self.bad_cell = None;
        let first_line = self.read_record();
        if first_line.is_err() {
            let is_csv = self.row.delimiter != Delimiter::WhiteSpace;
            if let Some(valid) = self.lines.valid_part().filter(|_| is_csv) {
                // The valid part ends `count` cells. The bad byte is in the next one.
                self.bad_cell = self.row.push(valid).ok().map(|_| self.row.count);
            }
            self.row.reset();
        }
        first_line
    }

    /// The line with a byte that is not UTF-8, how many of its bytes come before that byte, and the
    /// number of the cell; `None` if the last record was not refused for that.
    pub(super) fn bad_cell(&self) -> Option<(u64, usize, usize)> {
        Some((self.lines.number(), self.lines.valid_part()?.len(), self.bad_cell?))
    }

    fn read_record(&mut self) -> Result<Option<u64>> {
        let Self { lines, row, .. } = self;
        if row.delimiter == Delimiter::WhiteSpace {
            let no_rows = lines.no_rows().clone();
            let Some((number, line)) = lines.next_row()? else { return Ok(None) };
            row.push_words(line, &no_rows);
            return Ok(Some(number));
        }
        let mut first_line = None;
        loop {
            let line = match first_line {
                None => lines.next_row()?,
                Some(_) => lines.next_line()?,
            };
            let Some((number, line)) = line else {
                return match row.quotes.as_ref().and_then(Quotes::open) {
                    Some(begins) => Err(unclear(begins, "is never closed")),
                    None => Ok(None),
                };
            };
            let first_line = *first_line.get_or_insert(number);
            if row.push_line(line, number).map_err(|error| in_row(error, first_line))? {
                return Ok(Some(first_line));
            }
        }
    }
}

/// Names the line, unless the error does.
fn in_row(error: Error, first_line: u64) -> Error {
    match error.reason() {
        Some(_) => error,
        None => error.within(format!("line {first_line}")),
    }
}

/// The cells of one row, one after the other in `text`; cell i ends at `ends[i]`. `text_len` and
/// `count` say how much of the two buffers is in use.
pub(super) struct RowCells {
    delimiter: Delimiter,
    parser: csv_core::Reader,
    /// `None` where quotation marks mean nothing.
    quotes: Option<Quotes>,
    text: Vec<u8>,
    text_len: usize,
    ends: Vec<usize>,
    pub(super) count: usize,
}

impl RowCells {
    fn new(delimiter: Delimiter, quotes: bool) -> Self {
        let (text, ends) = (vec![], vec![]);
        let (parser, quotes) = parser(delimiter, quotes);
        let mut row = Self { delimiter, parser, quotes, text, text_len: 0, ends, count: 0 };
        row.reset();
        row
    }

    /// Goes on with another delimiter, and with no quotes if there were none.
    pub(super) fn separate_by(&mut self, delimiter: u8) {
        *self = Self::new(Delimiter::Character(delimiter), self.quotes.is_some());
    }

    /// Makes the parser expect the beginning of a row.
    fn reset(&mut self) {
        self.parser.reset();
        if let Some(quotes) = &mut self.quotes {
            quotes.reset();
        }
        // The parser would drop a byte order mark at the start of its first input. So it first gets
        // this line end, which it does not consume, as there is no room for output.
        let _ = self.parser.read_record(b"\n", &mut [], &mut []);
    }

    fn clear(&mut self) {
        self.text_len = 0;
        self.count = 0;
    }

    pub(super) fn cell(&self, column: usize) -> &str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        let cell = &self.text[start..self.ends[..self.count][column]];
        std::str::from_utf8(cell).expect("the lines are UTF-8, and are cut at ASCII characters")
    }

    /// Adds a line to the row and says whether the row ends with it. If not, the line ends within
    /// quotes.
    fn push_line(&mut self, line: &str, number: u64) -> Result<bool> {
        if let Some(quotes) = &mut self.quotes {
            quotes.look(line, number)?;
        }
        let ended = self.push(line.as_bytes())?
            // The last line of a file need not have an end.
            || !line.ends_with('\n') && self.push(b"\n")?;
        if ended && line.strip_suffix('\n').unwrap_or(line).ends_with('\r') {
            // The `\r` stands outside quotes, so the parser has taken it for the last character of
            // the row.
            self.text_len -= 1;
            self.ends[self.count - 1] = self.text_len;
        }
        Ok(ended)
    }

    /// Parses a part of the row and says whether it ends the row.
    fn push(&mut self, mut part: &[u8]) -> Result<bool> {
        use csv_core::ReadRecordResult::{End, InputEmpty, OutputEndsFull, OutputFull, Record};
        loop {
            let (result, parsed, written, ended) = self.parser.read_record(
                part,
                &mut self.text[self.text_len..],
                &mut self.ends[self.count..],
            );
            part = &part[parsed..];
            self.text_len += written;
            self.count += ended;
            match result {
                Record => return Ok(true),
                InputEmpty | End => return Ok(false),
                OutputFull if self.text.len() >= MAX_ROW_BYTES => {
                    return Err(match self.quotes.as_ref().and_then(Quotes::open) {
                        Some(line) => unclear(line, "takes more bytes than a row may have"),
                        None => row_too_long(),
                    });
                }
                OutputFull => {
                    self.text.resize((2 * self.text.len()).clamp(256, MAX_ROW_BYTES), 0);
                }
                OutputEndsFull => self.ends.resize((2 * self.ends.len()).max(16), 0),
            }
        }
    }

    /// Takes a line as a row whose cells stand between white space, up to a comment.
    fn push_words(&mut self, line: &str, no_rows: &NoRows) {
        self.text.clear();
        self.ends.clear();
        let words = line.split_ascii_whitespace();
        for word in words.take_while(|word| !no_rows.is_comment(word.as_bytes())) {
            self.text.extend_from_slice(word.as_bytes());
            self.ends.push(self.text.len());
        }
        (self.text_len, self.count) = (self.text.len(), self.ends.len());
    }
}

fn parser(delimiter: Delimiter, quotes: bool) -> (csv_core::Reader, Option<Quotes>) {
    let Delimiter::Character(delimiter) = delimiter else {
        return (csv_core::Reader::new(), None);
    };
    // With its other terminator, CRLF, the parser would end a row at a carriage return alone as
    // well.
    let terminator = csv_core::Terminator::Any(b'\n');
    let mut builder = csv_core::ReaderBuilder::new();
    let parser = builder.delimiter(delimiter).terminator(terminator).quoting(quotes).build();
    (parser, quotes.then(|| Quotes::new(delimiter)))
}
