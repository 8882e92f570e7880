//! What was found as CSV (RFC 4180): a row for each value, with the columns of the table.
//!
//! A table whose columns have types tells their names. Of others, the first value that is found
//! does. There is one header, and a row has its columns and no others: what a later value has
//! besides is left out, and counted. Columns may have the same name: then so have a value's fields,
//! and their order counts.

use super::wanted::Wanted;
use crate::printable::{compact_json, printable_bytes};
use privet_table::import::Fields;
use privet_table::values::Values;
use std::collections::HashMap;

/// The columns behind the key.
#[derive(Debug, PartialEq, Eq)]
enum Columns {
    /// Nothing is known before the first value.
    Unknown,
    /// Those of JSON objects.
    Named(Names),
    /// One, of this name: values are no objects.
    Whole(String),
}

/// The names of columns.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    in_order: Vec<String>,
    /// Where each name is.
    places: HashMap<String, Vec<usize>>,
}

/// Rows as they are printed.
pub(super) struct Sheet {
    /// Whether what a terminal would act on is escaped.
    screen: bool,
    columns: Columns,
    has_header: bool,
    /// Values that have other columns.
    others: u64,
}

impl Sheet {
    /// A sheet for a table that tells this of its values.
    pub(super) fn new(screen: bool, values: Option<&Values>) -> Self {
        let columns = match values {
            None => Columns::Unknown,
            Some(values) if values.is_raw => {
                let name = values.columns.first().map(|column| column.name.clone());
                Columns::Whole(name.unwrap_or_else(whole))
            }
            Some(values) => {
                Columns::Named(Names::new(values.columns.iter().map(|column| column.name.clone())))
            }
        };
        Self { screen, columns, has_header: false, others: 0 }
    }

    /// The rows of the values of a key, after the header if it is the first.
    pub(super) fn rows(&mut self, wanted: &Wanted, values: &[&[u8]]) -> Vec<u8> {
        if let (Columns::Unknown, Some(first)) = (&self.columns, values.first()) {
            self.columns = match serde_json::from_slice(first) {
                Ok(Fields(fields)) if !fields.is_empty() => {
                    Columns::Named(Names::new(fields.into_iter().map(|(name, _)| name.into())))
                }
                _ => Columns::Whole(whole()),
            };
        }
        let mut rows = self.header(wanted);
        for value in values {
            match wanted {
                Wanted::Key(key) => rows.extend(self.field(key)),
                Wanted::Index(index) => rows.extend(index.to_string().into_bytes()),
            }
            let cells = match &self.columns {
                Columns::Named(names) => {
                    let (cells, is_other) = names.cells(value);
                    self.others += u64::from(is_other);
                    cells
                }
                _ => vec![value.to_vec()],
            };
            for cell in cells {
                rows.push(b',');
                rows.extend(self.field(&cell));
            }
            rows.push(b'\n');
        }
        rows
    }

    /// The header, if it was not there yet.
    pub(super) fn header(&mut self, wanted: &Wanted) -> Vec<u8> {
        if std::mem::replace(&mut self.has_header, true) {
            return Vec::new();
        }
        let first: &[u8] = match wanted {
            Wanted::Key(_) => b"key",
            Wanted::Index(_) => b"index",
        };
        let names = match &self.columns {
            Columns::Named(names) => names.in_order.as_slice(),
            Columns::Whole(name) => std::slice::from_ref(name),
            Columns::Unknown => &[],
        };
        let mut header = first.to_vec();
        for name in names {
            header.push(b',');
            header.extend(self.field(name.as_bytes()));
        }
        header.push(b'\n');
        header
    }

    /// How many values had columns that the header has not.
    pub(super) fn others(&self) -> u64 {
        self.others
    }

    fn field(&self, bytes: &[u8]) -> Vec<u8> {
        match self.screen {
            true => quoted(printable_bytes(bytes, false).as_bytes()),
            false => quoted(bytes),
        }
    }
}

/// The name of the only column of values without names.
fn whole() -> String {
    "value".to_owned()
}

impl Names {
    fn new(names: impl Iterator<Item = String>) -> Self {
        let in_order: Vec<String> = names.collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (place, name) in in_order.iter().enumerate() {
            places.entry(name.clone()).or_default().push(place);
        }
        Self { in_order, places }
    }

    /// The cells of a value, and whether it has anything for which there is no column.
    fn cells(&self, value: &[u8]) -> (Vec<Vec<u8>>, bool) {
        let mut cells = vec![Vec::new(); self.in_order.len()];
        let Ok(Fields(fields)) = serde_json::from_slice(value) else { return (cells, true) };
        let mut is_other = false;
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for (name, value) in &fields {
            let seen = seen.entry(name).or_default();
            match self.places.get(name.as_ref()).and_then(|places| places.get(*seen)) {
                Some(place) => cells[*place] = in_cell(value.get()),
                None => is_other = true,
            }
            *seen += 1;
        }
        (cells, is_other)
    }
}

/// A JSON value in a cell: text as it is, nothing for `null`, and all else as JSON.
fn in_cell(json: &str) -> Vec<u8> {
    match serde_json::from_str::<Option<String>>(json) {
        Ok(text) => text.unwrap_or_default().into_bytes(),
        Err(_) => compact_json(json).unwrap_or_else(|| json.to_owned()).into_bytes(),
    }
}

/// A field, in quotation marks where they are needed.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    if !bytes.iter().any(|byte| b"\",\r\n".contains(byte)) {
        return bytes.to_vec();
    }
    let mut field = vec![b'"'];
    for byte in bytes {
        if *byte == b'"' {
            field.push(b'"');
        }
        field.push(*byte);
    }
    field.push(b'"');
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_table::values::{ValueColumn, ValueType};

    fn rows(sheet: &mut Sheet, key: &[u8], values: &[&[u8]]) -> String {
        String::from_utf8_lossy(&sheet.rows(&Wanted::Key(key.to_vec()), values)).into_owned()
    }

    #[test]
    fn a_value_has_a_cell_for_each_column() {
        let mut sheet = Sheet::new(false, None);
        assert_eq!(
            rows(&mut sheet, b"a", &[br#"{"name":"x, \"y\"\n","n":1.50,"of":null,"all":[1, {}]}"#]),
            "key,name,n,of,all\na,\"x, \"\"y\"\"\n\",1.50,,\"[1,{}]\"\n"
        );
        assert_eq!(rows(&mut sheet, b"b", &[br#"{"n":true,"name":"null"}"#]), "b,null,true,,\n");
        assert_eq!(sheet.others(), 0);
        assert_eq!(rows(&mut sheet, b"c", &[br#"{"n":2,"new":3}"#, b"5"]), "c,,2,,\nc,,,,\n");
        assert_eq!(sheet.others(), 2);
    }

    #[test]
    fn fields_of_one_name_have_a_column_each_in_their_order() {
        let mut sheet = Sheet::new(false, None);
        let first = rows(&mut sheet, b"k", &[br#"{"a":1,"b":2,"a":3}"#]);
        assert_eq!(first, "key,a,b,a\nk,1,2,3\n");
        assert_eq!(rows(&mut sheet, b"l", &[br#"{"b":5,"a":4}"#]), "l,4,5,\n");
        assert_eq!(sheet.others(), 0);
        assert_eq!(rows(&mut sheet, b"m", &[br#"{"a":1,"a":2,"a":3}"#]), "m,1,,2\n");
        assert_eq!(sheet.others(), 1, "what has no column is counted");
    }

    #[test]
    fn a_table_that_tells_its_columns_needs_no_value_for_the_header() {
        let column = |name: &str| ValueColumn { name: name.to_owned(), of: ValueType::Text };
        let values = |is_raw, names: &[&str]| Values {
            is_raw,
            columns: names.iter().map(|name| column(name)).collect(),
        };
        let mut sheet = Sheet::new(false, Some(&values(false, &["b,c", "a"])));
        assert_eq!(sheet.header(&Wanted::Index(3)), b"index,\"b,c\",a\n");
        assert_eq!(rows(&mut sheet, b"k", &[br#"{"a":"1","b,c":"2"}"#]), "k,2,1\n");
        let mut raw = Sheet::new(false, Some(&values(true, &["photo"])));
        assert_eq!(rows(&mut raw, b"k", &[br#"{"a":1}"#]), "key,photo\nk,\"{\"\"a\"\":1}\"\n");
        let mut unknown = Sheet::new(false, None);
        assert_eq!(unknown.header(&Wanted::Key(Vec::new())), b"key\n");
    }

    #[test]
    fn a_field_is_quoted_where_it_has_to_be_and_commands_no_terminal() {
        let line = |key: &[u8], value: &[u8]| rows(&mut Sheet::new(false, None), key, &[value]);
        assert_eq!(line(b"k", b"v w"), "key,value\nk,v w\n");
        assert_eq!(line(b"a,b", b"\r"), "key,value\n\"a,b\",\"\r\"\n");
        let bytes = Sheet::new(false, None).rows(&Wanted::Key(b"\xff".to_vec()), &[b""]);
        assert_eq!(bytes, b"key,value\n\xff,\n");
        let forged = b"555\x1b[2K\rnot so\nprivet: verified\xff\xe2\x80\xae";
        let screen = rows(&mut Sheet::new(true, None), b"k", &[forged]);
        let escaped = "555\\u{1b}[2K\\rnot so\\nprivet: verified\\xff\\u{202e}\n";
        assert_eq!(screen, format!("key,value\nk,{escaped}"));
    }
}
