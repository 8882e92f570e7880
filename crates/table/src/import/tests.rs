use super::*;
use crate::snapshot::ValueForm;
use ::parquet::arrow::ArrowWriter;
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationSecondArray,
    Float32Array, Float64Array, Int64Array, ListArray, MapBuilder, StringArray, StringBuilder,
    StructArray, TimestampMillisecondArray, UInt64Array,
};
use arrow::array::{Int32Builder, RecordBatch};
use arrow::datatypes::{DataType, Field, Int32Type};
use privet_core::Blame;
use proptest::prelude::*;
use std::io::Cursor;
use std::sync::Arc;

fn selection(key: Option<&str>, value: ValueForm) -> Selection {
    Selection { key: key.map(str::to_owned), value }
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
    let source = Source::reader("input", Cursor::new(bytes.to_vec())).format(format);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rows = || -> Result<Vec<Plain>> {
        let mut rows = Rows::open(source, selection)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next_row()? {
            all.push((row.position, text(row.key), text(row.value)));
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
        ("\"x\"y,z\n", "xy", "z"),
        ("\"x\" \"y\",z\n", "x \"y\"", "z"),
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
    // Only the first byte order mark is one.
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
            Ok(Some(row)) => format!("{} {:?} {:?}", row.position, row.key, row.value),
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
fn json_values_keep_their_meaning_to_the_last_digit() {
    let text = concat!(
        "\u{feff}{ \"k\" : \"a\" , \"n\" : [ 1.10 , 1e400, -0, 123456789012345678901234567890 ] , \"o\" : { \"x\" : null } }\r\n",
        "\n",
        "{\"k\":17,\"s\":\"\\u00e9\\n \\/ \\ud83d\\ude00 \\\" : , }\",\"t\":true}\n",
        "{\"k\":1.0,\"\\u0061b\":\" spaces  stay \"}\n",
        "{\"k\":false}",
    );
    let rows = json_rows(text, selection(Some("k"), ValueForm::JsonRest)).expect("valid");
    let expected = [
        (1, "a", r#"{"n":[1.10,1e400,-0,123456789012345678901234567890],"o":{"x":null}}"#),
        (3, "17", "{\"s\":\"é\\n / 😀 \\\" : , }\",\"t\":true}"),
        (4, "1.0", r#"{"ab":" spaces  stay "}"#),
        (5, "false", "{}"),
    ];
    assert_eq!(rows, plain(&expected));
}

#[test]
fn a_json_row_may_lack_a_column_but_not_every_row() {
    let text = "{\"k\":1,\"a\":2}\n{\"k\":2,\"b\":3}\n";
    let rows = json_rows(text, selection(Some("k"), columns(&["b", "a"]))).expect("valid");
    assert_eq!(rows, plain(&[(1, "1", r#"{"a":2}"#), (2, "2", r#"{"b":3}"#)]));
    let error = json_rows(text, selection(Some("k"), columns(&["a", "c"]))).expect_err("no c");
    assert_eq!(error, r#"input: there is no column "c"; the columns are "a", "b", "k""#);
}

#[test]
fn csv_errors_name_the_line() {
    let key = || selection(Some("name"), ValueForm::JsonRest);
    for (text, message) in [
        ("", "input: it is empty; a CSV file begins with a line of column names"),
        ("\n\n", "input: it is empty; a CSV file begins with a line of column names"),
        (
            "nam,size\na,1\n",
            r#"input: line 1: there is no column "name"; the columns are "nam", "size"; did you mean "nam"?"#,
        ),
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
            "input: line 2: a quoted cell in the row that begins here is never closed",
        ),
        (
            "name,size\na,\"1",
            "input: line 2: a quoted cell in the row that begins here is never closed",
        ),
        (
            "name,size\na,1\n\"",
            "input: line 3: a quoted cell in the row that begins here is never closed",
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
fn json_errors_name_the_line() {
    let key = || selection(Some("k"), ValueForm::JsonRest);
    let not_an_object =
        "input: line 2: this is not a JSON object; every line must be one, like {\"name\":\"…\"}";
    let bad_key = |why: &str| {
        format!(
            "input: line 2: the key (column \"k\") {why}; every row needs a text or a number there"
        )
    };
    for (line, message) in [
        ("[1]", not_an_object.to_owned()),
        ("17", not_an_object.to_owned()),
        (
            "{\"k\":1",
            "input: line 2: column 6: not valid JSON: EOF while parsing an object".to_owned(),
        ),
        ("{\"k\":1}}", "input: line 2: column 8: not valid JSON: trailing characters".to_owned()),
        ("{\"k\":01}", "input: line 2: column 7: not valid JSON: invalid number".to_owned()),
        ("{\"k\":2,\"a\":1,\"a\":2}", "input: line 2: the field \"a\" occurs twice".to_owned()),
        (
            "{\"k\":2,\"a\":\"\\ud800\"}",
            "input: line 2: a string is not valid: unexpected end of hex escape".to_owned(),
        ),
        (
            "{\"K\":2}",
            "input: line 2: there is no column \"k\"; the columns are \"K\"; did you mean \"K\"?"
                .to_owned(),
        ),
        ("{\"k\":null}", bad_key("is null")),
        ("{\"k\":[1]}", bad_key("is an array")),
        ("{\"k\":{}}", bad_key("is an object")),
        ("{\"k\":\"\"}", bad_key("is empty")),
    ] {
        let text = format!("{{\"k\":1}}\n{line}\n");
        assert_eq!(json_rows(&text, key()).expect_err(&message), message);
    }
    let error =
        json_rows("{\"k\":1,\"v\":2}\n", selection(Some("k"), raw("v"))).expect_err("a number");
    let message = "input: line 1: the column \"v\" is a number; a raw value must be text or bytes (as JSON, any value will do)";
    assert_eq!(error, message);
    let error = json_rows("{\"k\":1}\n", selection(Some("k"), raw("v"))).expect_err("missing");
    assert_eq!(error, "input: line 1: there is no column \"v\"; the columns are \"k\"");
}

#[test]
fn bad_encodings_name_the_byte() {
    for format in [Format::Csv, Format::JsonLines] {
        let bytes = b"{\"k\":1}\n{\"k\":\"\xc3\"}\n";
        let error =
            read(format, bytes, selection(None, ValueForm::JsonRest)).expect_err("not UTF-8");
        assert_eq!(error, "input: line 2: byte 7 is not UTF-8; convert the file to UTF-8 first");
        let error =
            read(format, b"\xff\xfek\0", selection(None, ValueForm::JsonRest)).expect_err("UTF-16");
        assert_eq!(error, "input: it looks like UTF-16; convert it to UTF-8 first");
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
    assert!(rows.next_row().expect_err("endless").message().contains("a row takes more than"));
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

#[test]
fn formats_follow_from_names() {
    let open = |source| Rows::open(source, selection(None, ValueForm::JsonRest)).map(|_| ());
    let error = open(Source::path("table.xlsx")).expect_err("unknown");
    assert_eq!(
        error.message(),
        "table.xlsx: its name does not tell its format; say which it has: csv, jsonl or parquet"
    );
    let error = open(Source::path("-")).expect_err("no name");
    assert_eq!(error.message(), "standard input: say which format it has: csv, jsonl or parquet");
    let error = open(Source::path("/no/such.csv")).expect_err("missing");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().starts_with("/no/such.csv: cannot open it: "), "{error}");
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

fn parquet_file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of equal length");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("in memory");
    writer.write(&batch).expect("in memory");
    writer.close().expect("in memory");
    bytes
}

#[test]
fn parquet_types_become_json() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let point = StructArray::from(vec![
        (
            Arc::new(Field::new("x", DataType::Float64, true)),
            Arc::new(Float64Array::from(vec![0.1, f64::NAN])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("y", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec![Some("q\""), None])) as ArrayRef,
        ),
    ]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("m");
    map.values().append_value(4);
    map.append(true).expect("balanced");
    map.append(true).expect("balanced");
    let decimal =
        Decimal128Array::from(vec![110, -5]).with_precision_and_scale(9, 2).expect("valid");
    let instants = TimestampMillisecondArray::from(vec![0, 1_700_000_000_123]);
    let bytes = parquet_file(vec![
        ("i", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("f", Arc::new(Float32Array::from(vec![0.1, f32::NEG_INFINITY]))),
        ("b", Arc::new(BooleanArray::from(vec![true, false]))),
        ("s", Arc::new(StringArray::from(vec!["é\n", ""]))),
        ("bin", Arc::new(BinaryArray::from(vec![&b"\xff\x00"[..], b""]))),
        ("day", Arc::new(Date32Array::from(vec![0, 19_000]))),
        ("dec", Arc::new(decimal)),
        ("local", Arc::new(instants.clone())),
        ("utc", Arc::new(instants.with_timezone("+02:00"))),
        ("list", Arc::new(list)),
        ("point", Arc::new(point)),
        ("map", Arc::new(map.finish())),
    ]);
    let rows =
        read(Format::Parquet, &bytes, selection(Some("u"), ValueForm::JsonRest)).expect("valid");
    let first = concat!(
        r#"{"i":-9223372036854775808,"f":0.1,"b":true,"s":"é\n","bin":"/wA=","day":"1970-01-01","dec":1.10,"#,
        r#""local":"1970-01-01T00:00:00","utc":"1970-01-01T00:00:00Z","list":[1,null],"point":{"x":0.1,"y":"q\""},"map":{"m":4}}"#,
    );
    let second = concat!(
        r#"{"i":null,"f":"-Infinity","b":false,"s":"","bin":"","day":"2022-01-08","dec":-0.05,"#,
        r#""local":"2023-11-14T22:13:20.123","utc":"2023-11-14T22:13:20.123Z","list":null,"point":{"x":"NaN","y":null},"map":{}}"#,
    );
    assert_eq!(rows, plain(&[(1, "18446744073709551615", first), (2, "0", second)]));

    // Columns come in the order asked for, not in the file's, and keys and raw values are bytes as
    // they are.
    let rows =
        read(Format::Parquet, &bytes, selection(Some("dec"), columns(&["u", "b"]))).expect("valid");
    assert_eq!(rows[1], (2, "-0.05".into(), r#"{"u":0,"b":false}"#.into()));
    let rows = read(Format::Parquet, &bytes, selection(Some("b"), raw("s"))).expect("valid");
    assert_eq!(rows, plain(&[(1, "true", "é\n"), (2, "false", "")]));
}

#[test]
fn parquet_errors_name_the_row() {
    let texts = |texts: Vec<Option<&str>>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let bytes = parquet_file(vec![
        ("k", texts(vec![Some("a"), None])),
        ("v", texts(vec![None, Some("x")])),
        ("e", texts(vec![Some("e"), Some("")])),
        (
            "l",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([
                Some(vec![Some(1)]),
                None,
            ])),
        ),
        ("i", Arc::new(Int64Array::from(vec![1, 2]))),
    ]);
    for (selection, message) in [
        (
            selection(Some("k"), raw("e")),
            r#"input: row 2: the key (column "k") is null; every row needs a text or a number there"#,
        ),
        (
            selection(Some("e"), raw("k")),
            r#"input: row 2: the key (column "e") is empty; every row needs a text or a number there"#,
        ),
        (
            selection(Some("l"), raw("k")),
            r#"input: row 1: the key (column "l") is a list, a struct or a map; every row needs a text or a number there"#,
        ),
        (
            selection(Some("i"), raw("v")),
            r#"input: row 1: the column "v" is null; a raw value must be text or bytes (as JSON, any value will do)"#,
        ),
        (
            selection(None, raw("i")),
            r#"input: row 1: the column "i" is neither; a raw value must be text or bytes (as JSON, any value will do)"#,
        ),
        (
            selection(Some("x"), ValueForm::JsonRest),
            r#"input: there is no column "x"; the columns are "k", "v", "e", "l", "i""#,
        ),
    ] {
        assert_eq!(read(Format::Parquet, &bytes, selection).expect_err(message), message);
    }
    let error =
        read(Format::Parquet, b"name\na\n", selection(None, raw("a"))).expect_err("a CSV file");
    assert!(error.starts_with("input: this is no readable Parquet file: "), "{error}");
    let intervals = Arc::new(DurationSecondArray::from(vec![1]));
    let bytes = parquet_file(vec![("d", intervals)]);
    // Durations are plain numbers in Parquet.
    assert_eq!(
        read(Format::Parquet, &bytes, selection(None, ValueForm::JsonRest)).expect("valid"),
        plain(&[(1, "", r#"{"d":1}"#)])
    );
}

#[test]
fn damaged_parquet_is_an_error_or_other_values() {
    let texts =
        StringArray::from_iter_values((0..500).map(|number| format!("text {}", number % 50)));
    let numbers = Int64Array::from_iter_values(0..500);
    let bytes = parquet_file(vec![("k", Arc::new(texts)), ("n", Arc::new(numbers))]);
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        let source = Source::reader("input", Cursor::new(damaged)).format(Format::Parquet);
        // Whatever it says, it must not panic.
        if let Ok(mut rows) = Rows::open(source, selection(None, ValueForm::JsonRest)) {
            while let Ok(Some(_)) = rows.next_row() {}
        }
    }
}
