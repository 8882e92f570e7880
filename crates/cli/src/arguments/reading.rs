//! How a file of rows is read: what `privet build` and `privet update` have in common.

use clap::ValueEnum;

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum InputFormat {
    /// Comma-separated values, the first line with the names of the columns
    Csv,
    /// The same with tabs
    Tsv,
    /// JSON Lines: one object on each line
    #[value(alias = "json-lines")]
    Jsonl,
    /// Apache Parquet
    Parquet,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OnEmptyKey {
    /// Stop and name the line
    Error,
    /// Leave the row out; the report says how many there were
    Skip,
}

/// What separates cells: an ASCII character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delimiter(pub(crate) u8);

pub(super) fn parse_delimiter(typed: &str) -> Result<Delimiter, String> {
    match (typed, typed.as_bytes()) {
        ("tab" | "\\t", _) => Ok(Delimiter(b'\t')),
        (_, &[character]) if character.is_ascii() && !b"\"\r\n".contains(&character) => {
            Ok(Delimiter(character))
        }
        _ => Err("write one ASCII character, no quote and no line end, or `tab`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_one_character_or_tab() {
        for (typed, delimiter) in
            [(",", b','), (";", b';'), ("|", b'|'), ("tab", b'\t'), ("\\t", b'\t'), ("\t", b'\t')]
        {
            assert_eq!(parse_delimiter(typed), Ok(Delimiter(delimiter)), "{typed:?}");
        }
        for typed in ["", ";;", "comma", "\"", "\n", "\r", "\u{b7}"] {
            assert!(parse_delimiter(typed).is_err(), "{typed:?}");
        }
    }
}
