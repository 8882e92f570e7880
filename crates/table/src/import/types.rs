//! What the cells of a CSV column are in JSON values.
//!
//! CSV has only text, and a cell stays text unless somebody says otherwise: `007` and `1.50` are
//! kept as they are. The caller may declare columns of [numbers or booleans](ColumnType), or have
//! all inputs read once before to [guess them](guess).

use super::json_text::write_string;
use super::source::Like;
use super::{Format, ResolvedColumns, Selection, Source, WantedColumns, no_such_column, quoted};
use crate::snapshot::ValueForm;
use crate::values::ValueType;
use privet_core::{Error, Result};
use std::str::FromStr;

/// The types of columns, by their names.
pub type ColumnTypes = Vec<(String, ColumnType)>;

/// What the cells of a column in CSV are in a JSON value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// Strings.
    #[default]
    Text,
    /// Numbers, as they are written; an empty cell is `null`.
    Number,
    /// `true` and `false`, from these words in any case; an empty cell is `null`.
    Boolean,
}

/// What is said of the types of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types {
    /// Find out.
    Auto,
    /// This column has this type.
    Column(String, ColumnType),
}

impl Types {
    /// The columns whose types are named.
    pub fn named(types: &[Self]) -> ColumnTypes {
        let named = types.iter().filter_map(|one| match one {
            Self::Column(column, one) => Some((column.clone(), *one)),
            Self::Auto => None,
        });
        named.collect()
    }
}

impl FromStr for Types {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let column = text.rsplit_once('=').and_then(|(column, name)| {
            Some(Self::Column(column.to_owned(), ColumnType::from_name(name)?))
        });
        let words = "write `auto`, or COLUMN=number, COLUMN=boolean or COLUMN=text";
        column.ok_or_else(|| Error::api_misuse(words))
    }
}

impl ColumnType {
    /// The type that a name stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Text, Self::Number, Self::Boolean].into_iter().find(|one| one.name() == name)
    }

    /// The type whose cells look in JSON like values of a column of `of`; `None` for texts, and
    /// where CSV has none.
    pub(super) fn of(of: &ValueType) -> Option<Self> {
        match of {
            ValueType::Integer { .. }
            | ValueType::Float(_)
            | ValueType::Number
            | ValueType::Decimal { .. } => Some(Self::Number),
            ValueType::Boolean => Some(Self::Boolean),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// Appends a cell to a JSON value.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the cell is not of this type.
    pub(super) fn write_cell(self, column: &str, cell: &str, out: &mut Vec<u8>) -> Result<()> {
        let json = match self {
            Self::Text => {
                write_string(cell, out);
                return Ok(());
            }
            _ if cell.is_empty() => "null",
            Self::Number if is_number(cell) => cell,
            Self::Boolean if cell.eq_ignore_ascii_case("true") => "true",
            Self::Boolean if cell.eq_ignore_ascii_case("false") => "false",
            _ => {
                let what = match self {
                    Self::Boolean => "neither true nor false",
                    _ => "no number as JSON has them, such as -12 or 0.5",
                };
                return Err(Error::api_misuse(format!(
                    "the cell of column {} is {}, which is {what}; correct it, or let the column be text",
                    quoted(column),
                    quoted(cell)
                )));
            }
        };
        out.extend_from_slice(json.as_bytes());
        Ok(())
    }
}

/// The types of all `columns`, in their order.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a column that was given a type does not
/// exist, or is not part of a JSON value.
pub(super) fn resolve(
    wanted: &WantedColumns,
    columns: &[String],
    resolved: &ResolvedColumns,
) -> Result<Vec<ColumnType>> {
    let mut types = vec![ColumnType::Text; columns.len()];
    for (name, one) in &wanted.known_types {
        let column = columns.iter().position(|column| column == name);
        if let Some(column) = column.filter(|column| resolved.value.contains(column)) {
            types[column] = *one;
        }
    }
    for (name, one) in &wanted.types {
        let Some(column) = columns.iter().position(|column| column == name) else {
            return Err(no_such_column(name, columns.iter().map(String::as_str)));
        };
        let why = if *one == ColumnType::Text {
            None
        } else if resolved.key == Some(column) {
            Some("it is the key, which is always text")
        } else if resolved.raw {
            Some("values are the text of one column, and no JSON")
        } else if !resolved.value.contains(&column) {
            Some("it is no part of the value")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(Error::api_misuse(format!(
                "the column {} cannot be given a type: {why}",
                quoted(name)
            )));
        }
        types[column] = *one;
    }
    Ok(types)
}

/// Whether `text` is a number in JSON's grammar.
pub(super) fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

/// Whether `text` is the usual way to write a number, and every program reads it as the same
/// number: not `007`, `1.50`, `1e3` or `-0`, and no more digits than a double holds.
fn is_canonical(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    is_number(text)
        && digits <= 15
        && !text.contains(['e', 'E'])
        && !(text.contains('.') && text.ends_with('0'))
        && text != "-0"
}

/// What the cells of a column have shown so far.
#[derive(Clone, Copy)]
pub(super) struct Evidence {
    is_empty: bool,
    numbers: bool,
    booleans: bool,
}

impl Default for Evidence {
    fn default() -> Self {
        Self { is_empty: true, numbers: true, booleans: true }
    }
}

impl Evidence {
    /// Looks at one more cell.
    pub(super) fn look(&mut self, cell: &str) {
        if !cell.is_empty() {
            self.is_empty = false;
            self.numbers = self.numbers && is_canonical(cell);
            self.booleans = self.booleans && matches!(cell, "true" | "false");
        }
    }

    fn says(self) -> ColumnType {
        match self {
            Self { is_empty: true, .. } => ColumnType::Text,
            Self { numbers: true, .. } => ColumnType::Number,
            Self { booleans: true, .. } => ColumnType::Boolean,
            _ => ColumnType::Text,
        }
    }
}

/// Reads all of `sources` and gives types to the columns of their values. A column is of numbers if
/// every cell in all sources is empty or [canonical](is_canonical), and of booleans if every cell
/// is empty, `true` or `false`. Columns in `named` keep the type they have there. Returns the
/// types, and the sources, to be read again. Only CSV is read: other formats have types of their
/// own.
///
/// # Errors
/// As reading the rows.
pub(crate) fn guess(
    sources: Vec<Source>,
    selection: &Selection,
    named: &ColumnTypes,
    read: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<(ColumnTypes, Vec<Source>)> {
    let mut types = named.to_vec();
    let mut columns: Option<Like> = None;
    let (mut evidence, mut kept) = (Vec::new(), Vec::new());
    let mut bytes_before = 0;
    for source in sources {
        let name = source.name();
        let within = |error: Error| error.within(&name);
        let is_csv = matches!(source.resolve_format().map_err(within)?, Format::Csv | Format::Tsv);
        if !is_csv || matches!(selection.value, ValueForm::Raw(_)) {
            kept.push(source);
            continue;
        }
        let source = source.keep().map_err(within)?;
        // If the value columns are named, the inputs may differ in their other columns.
        let like = columns.clone().filter(|_| selection.value == ValueForm::JsonRest);
        let again = source.again().map_err(within)?.like(like);
        let (mut rows, _) = again.open_csv(selection.clone()).map_err(within)?;
        if columns.is_none() {
            let of = rows.value_names();
            evidence.resize(of.len(), Evidence::default());
            columns = Some(Like { columns: of, of: name.clone() });
        }
        let skip = source.on_empty_key == super::OnEmptyKey::Skip;
        let mut bytes = 0;
        rows.look(&mut evidence, skip, &mut |done| {
            bytes = done;
            read(bytes_before + done)
        })
        .map_err(within)?;
        bytes_before += bytes;
        kept.push(source);
    }
    let columns = columns.into_iter().flat_map(|like| like.columns);
    for (column, evidence) in columns.zip(evidence) {
        if evidence.says() != ColumnType::Text && named.iter().all(|(name, _)| *name != column) {
            types.push((column, evidence.says()));
        }
    }
    Ok((types, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_columns_or_found_out() {
        let column = |name: &str, one| Types::Column(name.to_owned(), one);
        for (text, types) in [
            ("auto", Types::Auto),
            ("a=number", column("a", ColumnType::Number)),
            ("a=b=boolean", column("a=b", ColumnType::Boolean)),
            ("auto=text", column("auto", ColumnType::Text)),
        ] {
            assert_eq!(text.parse::<Types>().unwrap(), types);
        }
        for text in ["", "a", "a=", "a=integer", "number"] {
            assert!(text.parse::<Types>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for (text, number, canonical) in [
            ("0", true, true),
            ("-1", true, true),
            ("10", true, true),
            ("0.5", true, true),
            ("-120.05", true, true),
            ("123456789012345", true, true),
            ("1234567890123456", true, false),
            ("1.50", true, false),
            ("1.0", true, false),
            ("-0", true, false),
            ("1e3", true, false),
            ("1E-3", true, false),
            ("1.5e+10", true, false),
            ("", false, false),
            ("-", false, false),
            ("007", false, false),
            ("-01", false, false),
            ("+1", false, false),
            (".5", false, false),
            ("5.", false, false),
            ("1e", false, false),
            ("1,000", false, false),
            ("1.2.3", false, false),
            (" 1", false, false),
            ("1 ", false, false),
            ("0x10", false, false),
            ("NaN", false, false),
            ("\u{661}", false, false),
        ] {
            assert_eq!((is_number(text), is_canonical(text)), (number, canonical), "{text:?}");
            assert_eq!(
                serde_json::from_str::<serde_json::Number>(text).is_ok(),
                number || text.trim() != text
            );
        }
    }
}
