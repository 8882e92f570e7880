//! Rows of cells make the same keys and values as rows of files.

use super::*;
use crate::values::ValueType;
use std::borrow::Cow;

/// Rows with a text, a number, bytes, and a list of two numbers.
struct InMemory {
    columns: Vec<ValueColumn>,
    rows: Vec<[Option<&'static str>; 4]>,
    next: usize,
}

impl InMemory {
    fn new(rows: &[[Option<&'static str>; 4]]) -> Self {
        let number = ValueType::Integer { bits: 64, is_signed: true };
        let list = ValueType::List(Box::new(number.clone()));
        let types = [ValueType::Text, number, ValueType::Bytes, list];
        let names = ["text", "number", "bytes", "list"].map(str::to_owned);
        let columns =
            names.into_iter().zip(types).map(|(name, of)| ValueColumn { name, of }).collect();
        Self { columns, rows: rows.to_vec(), next: 0 }
    }
}

impl Cells for InMemory {
    fn columns(&self) -> &[ValueColumn] {
        &self.columns
    }

    fn next_row(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.next <= self.rows.len())
    }

    fn cell(&self, column: usize) -> Result<Option<Cell<'_>>> {
        Ok(match (column, self.rows[self.next - 1][column]) {
            (3, Some(_)) => None,
            (_, None) => Some(Cell::Null),
            (0, Some(text)) => Some(Cell::text(text)),
            (1, Some(text)) => Some(Cell::Literal(Cow::Borrowed(text))),
            (_, Some(text)) => Some(Cell::Bytes(text.as_bytes())),
        })
    }

    fn write_json(&self, column: usize, out: &mut Vec<u8>) -> Result<()> {
        match self.cell(column)? {
            Some(cell) => cell.write_json(out),
            None => out.extend_from_slice(b"[1,2]"),
        }
        Ok(())
    }

    fn size(&self) -> Option<(u64, u64)> {
        Some((self.rows.len() as u64, 100))
    }
}

fn cell_rows(
    rows: &[[Option<&'static str>; 4]],
    selection: Selection,
) -> Result<Vec<Plain>, String> {
    rows_of(Source::cells("the frame", InMemory::new(rows)), selection)
}

const ROW: [Option<&str>; 4] = [Some("a\"b"), Some("-7"), Some("xyz"), Some("")];

#[test]
fn cells_are_written_as_those_of_files() {
    let rows = [ROW, [Some("c"), None, None, None]];
    assert_eq!(
        cell_rows(&rows, selection(Some("text"), ValueForm::JsonRest)).unwrap(),
        plain(&[
            (1, "a\"b", r#"{"number":-7,"bytes":"eHl6","list":[1,2]}"#),
            (2, "c", r#"{"number":null,"bytes":null,"list":null}"#),
        ])
    );
    let by_number = selection(Some("number"), columns(&["text"]));
    assert_eq!(
        cell_rows(&rows[..1], by_number).unwrap(),
        plain(&[(1, "-7", r#"{"text":"a\"b"}"#)])
    );
    assert_eq!(cell_rows(&rows[..1], selection(None, raw("bytes"))).unwrap()[0].2, "xyz");
}

#[test]
fn what_cannot_be_a_key_or_a_raw_value_is_refused_with_its_row() {
    let empty = [Some(""), None, None, None];
    for (key, row, why) in [
        ("list", ROW, "is a list, a struct or a map"),
        ("number", [Some("c"), None, None, None], "is null"),
        ("text", empty, "is empty"),
    ] {
        let refused = cell_rows(&[row], selection(Some(key), ValueForm::JsonRest)).unwrap_err();
        assert!(refused.contains("the frame: row 1") && refused.contains(why), "{refused}");
    }
    for (column, why) in [("number", "neither text nor bytes"), ("list", "neither text nor bytes")]
    {
        let refused = cell_rows(&[ROW], selection(None, raw(column))).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let refused = cell_rows(&[ROW], selection(Some("txt"), ValueForm::JsonRest)).unwrap_err();
    assert!(refused.contains("did you mean \"text\"?"), "{refused}");
    // An empty key may be skipped, as in files.
    let source = Source::cells("the frame", InMemory::new(&[empty, ROW]));
    let rows = rows_of(
        source.on_empty_key(OnEmptyKey::Skip),
        selection(Some("text"), columns(&["number"])),
    );
    assert_eq!(rows.unwrap(), plain(&[(2, "a\"b", r#"{"number":-7}"#)]));
}

#[test]
fn the_columns_of_a_value_keep_their_types() {
    let open = |selection| Rows::open(Source::cells("it", InMemory::new(&[ROW])), selection);
    let rows = open(selection(Some("text"), columns(&["list", "bytes"]))).unwrap();
    let types = rows.value_columns().unwrap();
    let names: Vec<_> = types.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["list", "bytes"]);
    assert_eq!(types[1].of, ValueType::Bytes);
    // Nothing can be said of a delimiter where there are no bytes.
    let source = Source::cells("it", InMemory::new(&[ROW])).delimiter(b';');
    assert!(
        rows_of(source, selection(None, ValueForm::JsonRest)).unwrap_err().contains("delimiter")
    );
}
