//! How text is read: what separates cells, what is a row, and what the columns are called.

use super::Format;
use super::lines::NoRows;
use privet_core::{Error, Result};
use std::str::FromStr;

/// How a file of text is read. The default is CSV as RFC 4180 describes it, with a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// What separates the cells of a row, if it is not what is usual for the format.
    pub delimiter: Option<Delimiter>,
    /// Quotation marks are characters like any other. A row then ends with its line.
    pub no_quotes: bool,
    /// The first line is a row. These are the names of the columns; without names, the columns are
    /// called by their numbers, from `1`.
    pub no_header: Option<Vec<String>>,
    /// Lines that begin with this are comments.
    pub comment: Option<String>,
    /// So many lines before the header, or before the first row, are left out.
    pub skip_lines: u64,
    /// A row with more cells than there are columns is several rows. They differ in their last
    /// column, which has one of the further cells in each.
    pub spread: bool,
}

/// What separates the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// A character of ASCII, no quotation mark and no line end.
    Character(u8),
    /// Any number of spaces and tabs, which do not count at either end of a line. There are no
    /// quotation marks then, and a cell that begins as a comment does ends the row.
    WhiteSpace,
}

impl FromStr for Delimiter {
    type Err = Error;

    /// One character, or `tab`, or `whitespace`.
    fn from_str(text: &str) -> Result<Self> {
        match (text, text.as_bytes()) {
            ("tab" | "\\t", _) => Ok(Self::Character(b'\t')),
            ("whitespace", _) => Ok(Self::WhiteSpace),
            (_, &[character]) if character.is_ascii() && !b"\"\r\n".contains(&character) => {
                Ok(Self::Character(character))
            }
            _ => Err(Error::api_misuse(
                "write one ASCII character, no quote and no line end, or `tab`, or `whitespace`",
            )),
        }
    }
}

impl Dialect {
    /// Which lines are no rows.
    pub(super) fn no_rows(&self, format: Format) -> NoRows {
        NoRows {
            first: self.skip_lines,
            comment: self.comment.clone().filter(|comment| !comment.is_empty()),
            white_is_blank: format == Format::JsonLines
                || self.delimiter == Some(Delimiter::WhiteSpace),
        }
    }

    /// What separates cells in a format that has cells.
    pub(super) fn separator(&self, format: Format) -> Delimiter {
        let usual = if format == Format::Tsv { b'\t' } else { b',' };
        self.delimiter.unwrap_or(Delimiter::Character(usual))
    }

    /// Refuses what has no meaning in `format`.
    pub(super) fn check(&self, format: Format) -> Result<()> {
        let plain = Self::default();
        let of_text = Self { skip_lines: 0, comment: None, ..self.clone() };
        match format {
            Format::Csv | Format::Tsv => {}
            _ if self.delimiter.is_some() => {
                return Err(Error::api_misuse(
                    "only CSV has a delimiter, and this is in another format; leave it out",
                ));
            }
            _ if of_text != plain => {
                return Err(Error::api_misuse(
                    "only CSV has quotes, a header and cells to spread, and this is in another format; leave that out",
                ));
            }
            Format::JsonLines => {}
            _ if *self != plain => {
                return Err(Error::api_misuse(
                    "only text has lines that can be left out, and this is in another format; leave that out",
                ));
            }
            _ => {}
        }
        match self.delimiter {
            Some(Delimiter::Character(delimiter))
                if !delimiter.is_ascii() || b"\"\r\n".contains(&delimiter) =>
            {
                Err(Error::api_misuse(
                    "the delimiter must be one ASCII character, no quote and no line end",
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_one_character_or_tab() {
        for (text, delimiter) in
            [(",", b','), (";", b';'), ("|", b'|'), ("tab", b'\t'), ("\\t", b'\t'), ("\t", b'\t')]
        {
            assert_eq!(text.parse::<Delimiter>().unwrap(), Delimiter::Character(delimiter));
        }
        assert_eq!("whitespace".parse::<Delimiter>().unwrap(), Delimiter::WhiteSpace);
        for text in ["", ";;", "comma", "\"", "\n", "\r", "\u{b7}"] {
            assert!(text.parse::<Delimiter>().is_err(), "{text:?}");
        }
    }
}
