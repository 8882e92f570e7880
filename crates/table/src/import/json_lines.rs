//! One JSON object per line, or one [array](super::json_array) of objects.

use super::formats::Opened;
use super::json_array::as_lines;
use super::json_fields::Fields;
use super::json_text::{reason, string_text, write_compact, write_name};
use super::lines::Lines;
use super::{
    Format, LinesLeftOut, RowBytes, RowReader, Selection, Source, bad_key, bad_raw_value,
    cannot_read, no_key, no_such_column, quoted,
};
use crate::snapshot::ValueForm;
use privet_core::{Error, Reason, Result};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::io::Read;
use std::rc::Rc;

/// How many different field names are remembered for the error about a column that no row has.
const REMEMBERED_FIELDS: usize = 64;

struct JsonLinesRows {
    lines: Lines<Box<dyn Read>>,
    counter: Rc<Cell<u64>>,
    columns: Columns,
}

/// The selection, and which of its columns have been seen. A row may lack a column, but some row
/// must have it.
struct Columns {
    selection: Selection,
    key_seen: bool,
    seen: Vec<bool>,
    all_seen: bool,
    fields: BTreeSet<String>,
}

/// Opens an input in JSON.
pub(super) fn open(source: Source, selection: Selection) -> Result<Opened> {
    let no_rows = source.checked_dialect(Format::JsonLines)?.no_rows(Format::JsonLines);
    let input = source.open()?;
    // An array has no lines that could be left out.
    let (lines, is_array) = match no_rows.leaves_out_lines() {
        true => (input.bytes, false),
        false => as_lines(input.bytes).map_err(cannot_read)?,
    };
    let seen = vec![false; selection.value.columns().len()];
    let all_seen = seen.is_empty();
    let columns = Columns { selection, key_seen: false, seen, all_seen, fields: BTreeSet::new() };
    let unit = if is_array { "row" } else { "line" };
    let lines = Lines::new(lines, no_rows).counted_as(unit);
    let rows = JsonLinesRows { lines, counter: input.counter, columns };
    Ok((Box::new(rows), input.bytes_total))
}

impl RowReader for JsonLinesRows {
    fn next_row(&mut self, row: &mut RowBytes) -> Result<Option<u64>> {
        let unit = self.unit();
        let Some((number, line)) = self.lines.next_row()? else {
            return self.columns.check_seen().map(|()| None);
        };
        let line = line.trim_matches([' ', '\t', '\r', '\n']);
        let read = read_object(line, unit).and_then(|fields| self.columns.read_row(&fields, row));
        read.map(|()| Some(number)).map_err(|error| error.within(format!("{unit} {number}")))
    }

    fn unit(&self) -> &'static str {
        self.lines.unit()
    }

    fn value_columns(&self) -> Option<Vec<crate::values::ValueColumn>> {
        None
    }

    fn bytes_read(&self) -> u64 {
        self.counter.get()
    }

    fn left_out(&self) -> LinesLeftOut {
        self.lines.left_out()
    }
}

impl Columns {
    fn read_row(
        &mut self,
        fields: &Fields<'_>,
        RowBytes { key, until, value }: &mut RowBytes,
    ) -> Result<()> {
        if let Some(column) = &self.selection.key {
            match fields.find(column) {
                Some(token) => {
                    self.key_seen = true;
                    write_key(column, token, key)?;
                }
                // An earlier row had the column, so its name is right.
                None if self.key_seen => {
                    return Err(no_such_column(column, fields.names()).because(Reason::EmptyKey));
                }
                None => return Err(no_such_column(column, fields.names())),
            }
        }
        if let Some(column) = &self.selection.until {
            let Some(token) = fields.find(column) else {
                return Err(no_such_column(column, fields.names()));
            };
            write_key(column, token, until)?;
        }
        self.remember(fields);
        match &self.selection.value {
            ValueForm::JsonRest => {
                let is_bound = |name: &str| self.selection.is_bound(name);
                write_object(fields.0.iter().filter(|(name, _)| !is_bound(name)), value)
            }
            ValueForm::JsonColumns(columns) => {
                let find = |column: &String| fields.0.iter().find(|(name, _)| name == column);
                write_object(columns.iter().filter_map(find), value)
            }
            ValueForm::Raw(column) => match fields.find(column).map(RawValue::get) {
                None => Err(no_such_column(column, fields.names())),
                Some(token) if token.starts_with('"') => {
                    value.extend_from_slice(string_text(token)?.as_bytes());
                    Ok(())
                }
                Some(token) => Err(bad_raw_value(column, kind_of(token))),
            },
        }
    }

    fn remember(&mut self, fields: &Fields<'_>) {
        if self.all_seen {
            return;
        }
        for (name, _) in &fields.0 {
            if let Some(column) =
                self.selection.value.columns().iter().position(|column| column == name)
            {
                self.seen[column] = true;
            }
            if self.fields.len() < REMEMBERED_FIELDS && !self.fields.contains(name.as_ref()) {
                self.fields.insert(name.clone().into_owned());
            }
        }
        self.all_seen = self.seen.iter().all(|&seen| seen);
    }

    fn check_seen(&self) -> Result<()> {
        // An input without rows is an error of its own, which the caller reports.
        let unseen = self.seen.iter().position(|&seen| !seen).filter(|_| !self.fields.is_empty());
        match unseen {
            None => Ok(()),
            Some(column) => Err(no_such_column(
                &self.selection.value.columns()[column],
                self.fields.iter().map(String::as_str),
            )),
        }
    }
}

fn write_key(column: &str, token: &RawValue, key: &mut Vec<u8>) -> Result<()> {
    let token = token.get();
    match token.as_bytes()[0] {
        b'"' => key.extend_from_slice(string_text(token)?.as_bytes()),
        b'n' => return Err(no_key(column, kind_of(token))),
        b'{' | b'[' => return Err(bad_key(column, kind_of(token))),
        _ => key.extend_from_slice(token.as_bytes()),
    }
    if key.is_empty() { Err(no_key(column, "is empty")) } else { Ok(()) }
}

fn write_object<'a, 'de: 'a>(
    fields: impl Iterator<Item = &'a (Cow<'de, str>, &'de RawValue)>,
    value: &mut Vec<u8>,
) -> Result<()> {
    value.push(b'{');
    for (name, field) in fields {
        write_name(name, value);
        write_compact(field, value)?;
    }
    value.push(b'}');
    Ok(())
}

/// What a JSON token is, as part of a sentence.
fn kind_of(token: &str) -> &'static str {
    match token.as_bytes().first() {
        Some(b'{') => "is an object",
        Some(b'[') => "is an array",
        Some(b'"') => "is a string",
        Some(b't' | b'f') => "is true or false",
        Some(b'n') => "is null",
        _ => "is a number",
    }
}

fn read_object<'l>(line: &'l str, unit: &str) -> Result<Fields<'l>> {
    if line.starts_with('[') {
        let jq = if unit == "row" { ".[][]" } else { ".[]" };
        return Err(Error::api_misuse(format!(
            "this is a JSON array; write each of its objects on a line of its own (jq -c '{jq}')"
        )));
    }
    if !line.starts_with('{') {
        return Err(Error::api_misuse(format!(
            "this is not a JSON object; every {unit} must be one, like {{\"name\":\"…\"}}"
        )));
    }
    let fields: Fields<'_> = serde_json::from_str(line).map_err(|error| {
        // The parser saw a single line and calls it line 1, so its own message is not passed on.
        let whole = match error.is_eof() {
            true => "; an object stands on one line, whole (jq -c . writes it so)",
            false => "",
        };
        let (column, reason) = (error.column(), reason(&error));
        Error::api_misuse(format!("column {column}: not valid JSON: {reason}{whole}"))
    })?;
    let mut names = HashSet::with_capacity(fields.0.len());
    if let Some(twice) = fields.names().find(|name| !names.insert(*name)) {
        return Err(Error::api_misuse(format!("the field {} occurs twice", quoted(twice))));
    }
    Ok(fields)
}
