//! How a file of rows is read: what `privet build` and `privet update` have in common.

use clap::ValueEnum;
use privet_table::import::ColumnType;

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

/// What was said of the types of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Types {
    /// Find out.
    Auto,
    /// This column has this type.
    Column(String, ColumnType),
}

pub(super) fn parse_types(typed: &str) -> Result<Types, String> {
    if typed == "auto" {
        return Ok(Types::Auto);
    }
    let column = typed.rsplit_once('=').and_then(|(column, name)| {
        Some(Types::Column(column.to_owned(), ColumnType::from_name(name)?))
    });
    column.ok_or_else(|| "write `auto`, or COLUMN=number, COLUMN=boolean or COLUMN=text".to_owned())
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

    #[test]
    fn types_are_those_of_columns_or_found_out() {
        let column = |name: &str, one| Ok(Types::Column(name.to_owned(), one));
        assert_eq!(parse_types("auto"), Ok(Types::Auto));
        assert_eq!(parse_types("a=number"), column("a", ColumnType::Number));
        assert_eq!(parse_types("a=b=boolean"), column("a=b", ColumnType::Boolean));
        assert_eq!(parse_types("auto=text"), column("auto", ColumnType::Text));
        for typed in ["", "a", "a=", "a=integer", "number"] {
            assert!(parse_types(typed).is_err(), "{typed:?}");
        }
    }
}
