mod cells;
mod compression;
mod dialects;
mod encodings;
mod json;
mod parquet;

use super::formats::format_by_name;
use super::*;
use crate::snapshot::ValueForm;
use privet_core::{Blame, Reason};
use proptest::prelude::*;
use std::io::Cursor;

pub(crate) use parquet::{file_of_texts, file_of_texts_and_nulls};
use std::path::Path;

fn selection(key: Option<&str>, value: ValueForm) -> Selection {
    Selection { key: key.map(str::to_owned), until: None, value }
}

fn columns(names: &[&str]) -> ValueForm {
    ValueForm::JsonColumns(names.iter().map(|name| (*name).to_owned()).collect())
}

fn raw(name: &str) -> ValueForm {
    ValueForm::Raw(name.to_owned())
}

type Plain = (u64, String, String);

/// All rows, as text, or the message of the error that ends them.
fn read(format: Format, bytes: &[u8], selection: Selection) -> Result<Vec<Plain>, String> {
    rows_of(Source::reader("input", Cursor::new(bytes.to_vec())).format(format), selection)
}

fn rows_of(source: Source, selection: Selection) -> Result<Vec<Plain>, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rows = || -> Result<Vec<Plain>> {
        let mut rows = Rows::open(source, selection)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next_row()? {
            all.push((row.position, text(row.key.key), text(row.value)));
        }
        Ok(all)
    };
    rows().map_err(|error| {
        assert_eq!(error.blame(), Blame::ApiMisuse);
        error.to_string()
    })
}

fn csv_rows(text: &str, selection: Selection) -> Result<Vec<Plain>, String> {
    read(Format::Csv, text.as_bytes(), selection)
}

fn json_rows(text: &str, selection: Selection) -> Result<Vec<Plain>, String> {
    read(Format::JsonLines, text.as_bytes(), selection)
}

fn plain(rows: &[(u64, &str, &str)]) -> Vec<Plain> {
    rows.iter()
        .map(|&(position, key, value)| (position, key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn csv_is_read_as_rfc_4180_says() {
    let text = "\u{feff}name,note,size\r\n\r\na,\"one, \"\"two\"\"\r\nthree\",1\r\n\nb,5\" disk,\nc,,\"\"\n\"d\",\u{e9},3";
    let rows = csv_rows(text, selection(Some("name"), ValueForm::JsonRest)).expect("valid");
    let expected = [
        (3, "a", r#"{"note":"one, \"two\"\r\nthree","size":"1"}"#),
        (6, "b", r#"{"note":"5\" disk","size":""}"#),
        (7, "c", r#"{"note":"","size":""}"#),
        (8, "d", r#"{"note":"é","size":"3"}"#),
    ];
    assert_eq!(rows, plain(&expected));
}

#[test]
fn csv_keeps_what_rfc_4180_leaves_open() {
    for (cells, a, b) in [
        ("x\ry,z\r\r\n", "x\ry", "z\r"),
        ("x,\r\n", "x", ""),
        ("x,\"\"\r\n", "x", ""),
        ("x,\"\r\"\n", "x", "\r"),
        ("x,\"\r\n\"\r\n", "x", "\r\n"),
        ("x,y\r", "x", "y"),
        ("x,", "x", ""),
        ("x,\"y\"", "x", "y"),
        ("\u{feff}x,y", "\u{feff}x", "y"),
    ] {
        let rows = csv_rows(&format!("a,b\n{cells}"), selection(Some("a"), raw("b")));
        assert_eq!(rows.expect("valid"), plain(&[(2, a, b)]), "{cells:?}");
    }
    // Only the first byte order mark is dropped. The second is text.
    let rows = csv_rows("\u{feff}\u{feff}\nx\n", selection(None, ValueForm::JsonRest));
    assert_eq!(rows.expect("valid"), plain(&[(2, "", "{\"\u{feff}\":\"x\"}")]));
}

#[test]
fn csv_rows_may_be_wide_and_cells_long() {
    let header: Vec<String> = (0..3000).map(|column| format!("c{column}")).collect();
    let long = "é,\n".repeat(100_000);
    let mut cells = vec!["x"; header.len()];
    cells[1] = &long;
    cells[2999] = "last";
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(&header).expect("in memory");
    writer.write_record(&cells).expect("in memory");
    writer.write_record(vec!["y"; header.len()]).expect("in memory");
    let bytes = writer.into_inner().expect("in memory");
    for (column, cell) in [("c1", long.as_str()), ("c2999", "last")] {
        let rows = read(Format::Csv, &bytes, selection(Some("c0"), raw(column))).expect("valid");
        assert_eq!(rows, plain(&[(2, "x", cell), (100_003, "y", "y")]));
    }
}

#[test]
fn csv_goes_on_after_an_error() {
    let bytes = b"a,b\n\"x,\n\xff\n\xef\xbb\xbf,2\n3\n4,5\n\"";
    let source = Source::reader("input", Cursor::new(bytes)).format(Format::Csv);
    let mut rows = Rows::open(source, selection(Some("a"), raw("b"))).expect("a header");
    let mut outcomes = Vec::new();
    for _ in 0..5 {
        outcomes.push(match rows.next_row() {
            Ok(None) => "the end".to_owned(),
            Ok(Some(row)) => format!("{} {:?} {:?}", row.position, row.key.key, row.value),
            Err(error) => error.message()[..13].to_owned(),
        });
    }
    let expected = [
        "input: line 3",
        "4 [239, 187, 191] [50]",
        "input: line 5",
        "6 [52] [53]",
        "input: line 7",
    ];
    assert_eq!(outcomes, expected);
    assert!(rows.next_row().expect("the end").is_none());
}

#[test]
fn columns_are_selected_in_the_order_asked_for() {
    let csv = "a,b,c\n1,2,3\n";
    let json = "{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}";
    for (value, expected) in [
        (columns(&["c", "a"]), r#"{"c":"3","a":"1"}"#),
        (columns(&["b"]), r#"{"b":"2"}"#),
        (raw("c"), "3"),
        (ValueForm::JsonRest, r#"{"a":"1","c":"3"}"#),
    ] {
        let selection = selection(Some("b"), value);
        assert_eq!(csv_rows(csv, selection.clone()).expect("valid"), plain(&[(2, "2", expected)]));
        assert_eq!(json_rows(json, selection).expect("valid"), plain(&[(1, "2", expected)]));
    }
    let rows = csv_rows("a\nx\n", selection(Some("a"), ValueForm::JsonRest)).expect("valid");
    assert_eq!(rows, plain(&[(2, "x", "{}")]));
    let rows = csv_rows("a\nx\ny\n", selection(None, raw("a"))).expect("valid");
    assert_eq!(rows, plain(&[(2, "", "x"), (3, "", "y")]));
}

#[test]
fn csv_errors_name_the_line() {
    let key = || selection(Some("name"), ValueForm::JsonRest);
    for (text, message) in [
        ("\n\n", "input: it is empty; a CSV file begins with a line of column names"),
        ("name,size,size\n", r#"input: line 1: the column "size" occurs twice; rename one"#),
        (
            "name,size\na,1\n\nb\n",
            "input: line 4: this row has 1 cells and the header has 2 columns; is a comma unquoted or a quote missing?",
        ),
        (
            "name,size\n\"a\n\",1,2\n",
            "input: line 2: this row has 3 cells and the header has 2 columns; is a comma unquoted or a quote missing?",
        ),
        (
            "name,size\na,\"1\nb,2\nc,3\n",
            "input: line 2: the quoted cell that begins here is never closed; where quotation marks are characters like any other, say so",
        ),
        (
            "name,size\na,\"1",
            "input: line 2: the quoted cell that begins here is never closed; where quotation marks are characters like any other, say so",
        ),
        (
            "name,size\na,1\n\"",
            "input: line 3: the quoted cell that begins here is never closed; where quotation marks are characters like any other, say so",
        ),
        (
            "name,size\n,1\n",
            r#"input: line 2: the key (column "name") is empty; every row needs a text or a number there"#,
        ),
    ] {
        assert_eq!(csv_rows(text, key()).expect_err(message), message);
    }
}

#[test]
fn rows_without_a_key_are_refused_for_that_reason_or_skipped_and_counted() {
    let parquet = file_of_texts_and_nulls(&[
        ("k", vec![Some("a"), None, Some(""), Some("b")]),
        ("v", vec![Some("1"), Some("2"), Some("3"), Some("4")]),
    ]);
    let json = "{\"k\":\"a\",\"v\":\"1\"}\n{\"k\":null}\n{\"k\":\"\"}\n{\"v\":\"3\"}\n{\"k\":\"b\",\"v\":\"4\"}\n";
    for (format, bytes, last, skipped) in [
        (Format::Csv, b"k,v\na,1\n,2\n\"\",3\nb,4\n".to_vec(), 5, 2),
        (Format::JsonLines, json.as_bytes().to_vec(), 5, 3),
        (Format::Parquet, parquet, 4, 2),
    ] {
        let open = |on_empty_key| {
            let source = in_memory(bytes.clone()).format(format).on_empty_key(on_empty_key);
            Rows::open(source, selection(Some("k"), raw("v"))).expect("valid")
        };
        let mut rows = open(OnEmptyKey::Error);
        assert_eq!(rows.next_row().expect("valid").expect("a row").key.key, b"a");
        let error = rows.next_row().expect_err("no key");
        assert_eq!(error.reason(), Some(Reason::EmptyKey), "{format:?}: {error}");

        let mut rows = open(OnEmptyKey::Skip);
        let mut all = Vec::new();
        while let Some(row) = rows.next_row().expect("skipped") {
            all.push((row.position, row.key.key.to_vec(), row.value.to_vec()));
        }
        let first = if format == Format::Parquet { 1 } else { last - 3 - (skipped - 2) };
        let expected =
            [(first, b"a".to_vec(), b"1".to_vec()), (last, b"b".to_vec(), b"4".to_vec())];
        assert_eq!(all, expected, "{format:?}");
        assert_eq!(rows.empty_keys(), skipped, "{format:?}");
    }
    // A key of the wrong type, or one that no row has, does not count as empty.
    for line in ["{\"k\":[1]}", "{\"K\":1}"] {
        let source = in_memory(line).format(Format::JsonLines).on_empty_key(OnEmptyKey::Skip);
        let mut rows = Rows::open(source, selection(Some("k"), raw("v"))).expect("valid");
        assert_eq!(rows.next_row().expect_err("no key").reason(), None);
    }
}

#[test]
fn bad_encodings_name_the_byte() {
    for (format, column) in
        [(Format::Csv, r#", in the column "{\"k\":1}","#), (Format::JsonLines, "")]
    {
        let bytes = b"{\"k\":1}\n{\"k\":\"\xc3\"}\n";
        let error =
            read(format, bytes, selection(None, ValueForm::JsonRest)).expect_err("not UTF-8");
        let message =
            format!("input: line 2: byte 7{column} is not UTF-8; convert the file to UTF-8 first");
        assert_eq!(error, message);
    }
}

#[test]
fn bad_encodings_in_csv_name_the_column() {
    let key = || selection(Some("a"), raw("b"));
    for (text, message) in [
        (&b"a,b\nx\xff,y\n"[..], "line 2: byte 2, in the column \"a\", is not UTF-8"),
        (b"a,b\nx,y\xff\n", "line 2: byte 4, in the column \"b\", is not UTF-8"),
        (b"a,b\nx,\xff", "line 2: byte 3, in the column \"b\", is not UTF-8"),
        (b"a,b\nx,\"1,\n2\n3,\xff\"\n", "line 4: byte 3, in the column \"b\", is not UTF-8"),
        (b"a,b\nx,y,\xff\n", "line 2: byte 5 is not UTF-8"),
        (b"a,\xff\nx,y\n", "line 1: byte 3 is not UTF-8"),
    ] {
        let error = read(Format::Csv, text, key()).expect_err(message);
        assert_eq!(error, format!("input: {message}; convert the file to UTF-8 first"));
    }
}

#[test]
fn a_row_cannot_take_all_memory() {
    for (format, start) in [(Format::JsonLines, "{\"k\":\""), (Format::Csv, "a\n\"")] {
        let endless = start.as_bytes().chain(io::repeat(b'x'));
        let source = Source::reader("input", endless).format(format);
        let result = Rows::open(source, selection(None, ValueForm::JsonRest))
            .and_then(|mut rows| rows.next_row().map(|_| ()));
        let error = result.expect_err("endless");
        assert!(
            error
                .message()
                .ends_with("a row takes more than 67108864 bytes; is this the right format?")
        );
    }
    // Short lines, but all within quotes.
    let endless = b"a\n\"".chain(LongCell);
    let source = Source::reader("input", endless).format(Format::Csv);
    let mut rows = Rows::open(source, selection(None, ValueForm::JsonRest)).expect("a header");
    let error = rows.next_row().expect_err("endless");
    assert!(error.message().contains("line 2: the quoted cell that begins here takes more bytes"));
}

/// Lines without end, and without a quote.
struct LongCell;

impl Read for LongCell {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for (position, byte) in buffer.iter_mut().enumerate() {
            *byte = if position % 1000 == 999 { b'\n' } else { b'x' };
        }
        Ok(buffer.len())
    }
}

/// The rows of the phone book in CSV, whatever separates its cells.
fn with_delimiter(source: Source) -> Result<Vec<Plain>, String> {
    rows_of(source, selection(Some("name"), ValueForm::JsonRest))
}

fn in_memory(bytes: impl Into<Vec<u8>>) -> Source {
    Source::reader("input", Cursor::new(bytes.into()))
}

#[test]
fn another_delimiter_may_stand_for_the_comma() {
    let expected = plain(&[
        (2, "ada", r#"{"phone":"1,2","floor":"3"}"#),
        (3, "b;b\t|", r#"{"phone":"","floor":"4"}"#),
    ]);
    for delimiter in [b';', b'\t', b'|', b' ', 1] {
        let cells = "name_phone_floor\nada_1,2_3\n\"b;b\t|\"__4\n";
        let text = cells.replace('_', &char::from(delimiter).to_string());
        let csv = || in_memory(text.clone()).delimiter(delimiter);
        assert_eq!(with_delimiter(csv().format(Format::Csv)), Ok(expected.clone()));
        assert_eq!(with_delimiter(csv()), Ok(expected.clone()), "a delimiter says that it is CSV");
        assert_eq!(with_delimiter(csv().format(Format::Tsv)), Ok(expected.clone()));
    }
    let tabs = in_memory("name\tphone\tfloor\nada\t1,2\t3\n").format(Format::Tsv);
    assert_eq!(with_delimiter(tabs), Ok(expected[..1].to_vec()));
    for delimiter in [b'"', b'\n', b'\r', 0x80, 0xff] {
        let error = with_delimiter(in_memory("").delimiter(delimiter)).expect_err("no delimiter");
        assert!(error.contains("one ASCII character"), "{error}");
    }
    for format in [Format::JsonLines, Format::Parquet] {
        let error = with_delimiter(in_memory("").delimiter(b';').format(format));
        assert!(error.expect_err("no CSV").contains("only CSV has a delimiter"));
    }
}

#[test]
fn a_header_with_another_delimiter_is_refused_unless_it_was_named() {
    let open = |format, header: &str| {
        let source = in_memory(format!("{header}\nx\n")).format(format);
        Rows::open(source, selection(None, ValueForm::JsonRest)).map(drop)
    };
    for (format, header, suspect) in [
        (Format::Csv, "name;phone", "a semicolon"),
        (Format::Csv, "name\tphone", "a tab"),
        (Format::Csv, "name|phone", "a vertical bar"),
        (Format::Tsv, "name,phone", "a comma"),
    ] {
        let error = open(format, header).expect_err("one column");
        assert_eq!(error.reason(), Some(Reason::DelimiterUnclear));
        assert!(error.message().starts_with("input: line 1: the header is one column"), "{error}");
        assert!(error.message().contains(&format!("separated by {suspect}")), "{error}");
    }
    open(Format::Csv, "name").expect("one column");
    let two = in_memory("\"a;b\",c\nx,y\n").format(Format::Csv);
    rows_of(two, selection(None, ValueForm::JsonRest)).expect("two columns");
    let named = in_memory("name;phone\nx\n").delimiter(b',');
    let rows = rows_of(named, selection(None, ValueForm::JsonRest)).expect("it was named");
    assert_eq!(rows, plain(&[(2, "", r#"{"name;phone":"x"}"#)]));
}

#[test]
fn cells_have_the_types_that_were_said() {
    let csv = |text: &str, types: &[(&str, ColumnType)]| {
        let types = types.iter().map(|(column, one)| ((*column).to_owned(), *one));
        let source = in_memory(text).format(Format::Csv).types(types);
        rows_of(source, selection(Some("k"), ValueForm::JsonRest))
    };
    use ColumnType::{Boolean, Number, Text};
    let text = "k,n,b,t\n007,1.50,TRUE,1\n8,-12345678901234567890,false,\n9,,,x\n";
    let rows = csv(text, &[("n", Number), ("b", Boolean), ("t", Text), ("k", Text)]);
    let expected = [
        (2, "007", r#"{"n":1.50,"b":true,"t":"1"}"#),
        (3, "8", r#"{"n":-12345678901234567890,"b":false,"t":""}"#),
        (4, "9", r#"{"n":null,"b":null,"t":"x"}"#),
    ];
    assert_eq!(rows, Ok(plain(&expected)));
    for (types, message) in [
        (
            ("t", Number),
            r#"input: line 4: the cell of column "t" is "x", which is no number as JSON has them, such as -12 or 0.5; correct it, or let the column be text"#,
        ),
        (
            ("n", Boolean),
            r#"input: line 2: the cell of column "n" is "1.50", which is neither true nor false; correct it, or let the column be text"#,
        ),
        (
            ("k", Number),
            r#"input: line 1: the column "k" cannot be given a type: it is the key, which is always text"#,
        ),
        (
            ("x", Number),
            r#"input: line 1: there is no column "x"; the columns are "k", "n", "b", "t""#,
        ),
    ] {
        assert_eq!(csv(text, &[types]).expect_err(message), message);
    }
    let typed = |format| in_memory(text).format(format).types([("n".to_owned(), Number)]);
    let of_one = rows_of(typed(Format::Csv), selection(Some("k"), raw("n"))).expect_err("raw");
    assert!(of_one.contains("cannot be given a type: values are the text of one column"));
    let left_out = rows_of(typed(Format::Csv), selection(Some("k"), columns(&["b"])));
    assert!(left_out.expect_err("left out").contains("it is no part of the value"));
    for format in [Format::JsonLines, Format::Parquet] {
        let error = rows_of(typed(format), selection(None, ValueForm::JsonRest));
        assert!(error.expect_err("no CSV").contains("this format has types of its own"));
    }
}

#[test]
fn formats_follow_from_names() {
    let open = |source| Rows::open(source, selection(None, ValueForm::JsonRest)).map(|_| ());
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("table.txt");
    std::fs::write(&path, "a,b\n1,2\n").expect("written");
    let error = open(Source::path(&path)).expect_err("unknown");
    let ends =
        "table.txt: its name does not tell its format; say which it has: csv, tsv, jsonl, parquet";
    assert!(error.message().ends_with(ends), "{error}");
    assert_eq!(error.reason(), Some(Reason::FormatUnknown));
    let error = open(Source::path("-")).expect_err("no name");
    assert_eq!(
        error.message(),
        "standard input: say which format it has: csv, tsv, jsonl, parquet"
    );
    let error = open(Source::path("/no/such.csv")).expect_err("missing");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().starts_with("/no/such.csv: cannot open it: "), "{error}");
    for name in ["", "x.csv"] {
        let folder = directory.path().join(name);
        std::fs::create_dir_all(&folder).expect("made");
        let error = open(Source::path(folder)).expect_err("a folder");
        assert!(error.message().ends_with(": it is a folder; name the files in it"), "{error}");
    }
    // Parquet tells what it is.
    std::fs::write(&path, file_of_texts(&[("a", vec!["x"])])).expect("written");
    open(Source::path(&path)).expect("Parquet");
    let error = open(Source::path(&path).format(Format::Csv)).expect_err("no text");
    assert!(error.message().contains("this is a Parquet file"), "{error}");
    for (name, format) in [
        ("a.tsv", Some(Format::Tsv)),
        ("a.csv.gz", Some(Format::Csv)),
        ("a.b.JSONL.Zst", Some(Format::JsonLines)),
        ("a.parquet.gzip", Some(Format::Parquet)),
        ("a.gz", None),
        ("csv.gz", None),
        ("a.csv.xz", None),
    ] {
        assert_eq!(format_by_name(Path::new(name)), format, "{name}");
    }
    for (name, format) in
        [("CSV", Format::Csv), ("ndjson", Format::JsonLines), ("parquet", Format::Parquet)]
    {
        assert_eq!(Format::from_name(name), Some(format));
    }
}

proptest! {
    #[test]
    fn csv_cells_come_back_as_they_were_written(
        rows in (1..5_usize).prop_flat_map(|columns| {
            prop::collection::vec(prop::collection::vec("([a\",\r\n ]|.){0,6}", columns), 1..8)
        }),
        crlf: bool,
        always_quote: bool,
    ) {
        let terminator = if crlf { ::csv::Terminator::CRLF } else { ::csv::Terminator::Any(b'\n') };
        let quotes =
            if always_quote { ::csv::QuoteStyle::Always } else { ::csv::QuoteStyle::Necessary };
        let mut writer = ::csv::WriterBuilder::new()
            .terminator(terminator)
            .quote_style(quotes)
            .from_writer(Vec::new());
        let names = &["w", "x", "y", "z"][..rows[0].len()];
        writer.write_record(names).expect("in memory");
        let (mut line, mut expected) = (2, Vec::new());
        for row in &rows {
            writer.write_record(row).expect("in memory");
            let cells = names.iter().zip(row).map(|(name, cell)| (*name, cell.as_str()));
            let value: serde_json::Map<_, _> =
                cells.map(|(name, cell)| (name.to_owned(), cell.into())).collect();
            let value = serde_json::Value::Object(value).to_string();
            expected.push((line, String::new(), value));
            line += 1 + row.concat().matches('\n').count() as u64;
        }
        let bytes = writer.into_inner().expect("in memory");
        let read = read(Format::Csv, &bytes, selection(None, ValueForm::JsonRest)).expect("valid");
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for format in [Format::Csv, Format::JsonLines, Format::Parquet] {
            let _ = read(format, &bytes, selection(None, ValueForm::JsonRest));
        }
    }

    #[test]
    fn compact_json_means_the_same(text in "[\\[\\]{}\":,a\\\\n1 .e-]{0,12}") {
        let line = format!("{{\"a\": {text}}}");
        if let Ok(expected) = serde_json::from_str::<serde_json::Value>(&line)
            && let Ok(rows) = json_rows(&line, selection(None, ValueForm::JsonRest))
        {
            let value: serde_json::Value = serde_json::from_str(&rows[0].2).expect("still JSON");
            prop_assert_eq!(value, expected);
        }
    }
}
