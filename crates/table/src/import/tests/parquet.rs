use super::*;
use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, FixedLenByteArray};
use ::parquet::data_type::{FixedLenByteArrayType, Int32Type, Int64Type, Int96, Int96Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// One column chunk: definition levels, repetition levels, values.
struct Chunk<'a, T: DataType>(&'a [i16], &'a [i16], &'a [T::T]);

/// Something that can be written as the next column chunk of a row group.
trait Written {
    fn write(&self, group: &mut ::parquet::file::writer::SerializedRowGroupWriter<'_, Vec<u8>>);
}

impl<T: DataType> Written for Chunk<'_, T> {
    fn write(&self, group: &mut ::parquet::file::writer::SerializedRowGroupWriter<'_, Vec<u8>>) {
        let mut column = group.next_column().expect("in memory").expect("a column is left");
        let Chunk(definitions, repetitions, values) = self;
        // A column that cannot be null has values alone, and one without lists no repetitions.
        let present = |levels: &'_ [i16]| levels.len() >= values.len();
        let (definitions, repetitions) = (
            Some(*definitions).filter(|levels| present(levels)),
            Some(*repetitions).filter(|levels| present(levels)),
        );
        column.typed::<T>().write_batch(values, definitions, repetitions).expect("in memory");
        column.close().expect("in memory");
    }
}

fn file(schema: &str, properties: WriterProperties, groups: &[&[&dyn Written]]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).expect("a valid schema"));
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).expect("in memory");
    for group in groups {
        let mut rows = writer.next_row_group().expect("in memory");
        group.iter().for_each(|column| column.write(&mut rows));
        rows.close().expect("in memory");
    }
    writer.into_inner().expect("in memory")
}

/// A file with columns of texts.
pub(crate) fn file_of_texts(columns: &[(&str, Vec<&str>)]) -> Vec<u8> {
    let columns: Vec<(&str, Vec<Option<&str>>)> = columns
        .iter()
        .map(|(name, texts)| (*name, texts.iter().copied().map(Some).collect()))
        .collect();
    file_of_texts_and_nulls(&columns)
}

/// A file with columns of texts, and nulls among them.
pub(crate) fn file_of_texts_and_nulls(columns: &[(&str, Vec<Option<&str>>)]) -> Vec<u8> {
    let fields = columns.iter().map(|(name, _)| format!("optional binary {name} (UTF8); "));
    let schema = format!("message m {{ {}}}", fields.collect::<String>());
    let values: Vec<(Vec<i16>, Vec<ByteArray>)> = columns
        .iter()
        .map(|(_, texts)| {
            let levels = texts.iter().map(|text| text.is_some().into()).collect();
            (levels, texts.iter().flatten().map(|text| ByteArray::from(*text)).collect())
        })
        .collect();
    let chunks: Vec<Chunk<'_, ByteArrayType>> =
        values.iter().map(|(levels, values)| Chunk(levels, &[], values)).collect();
    let group: Vec<&dyn Written> = chunks.iter().map(|chunk| chunk as &dyn Written).collect();
    file(&schema, WriterProperties::default(), &[&group])
}

fn all_columns(bytes: &[u8]) -> Result<Vec<String>, String> {
    let rows = read(Format::Parquet, bytes, selection(None, ValueForm::JsonRest))?;
    Ok(rows.into_iter().map(|(_, _, value)| value).collect())
}

// The samples were written by the `arrow` and `parquet` crates, version 60.1.

#[test]
fn types_become_json() {
    let bytes = include_bytes!("../../../samples/types.parquet");
    let rows =
        read(Format::Parquet, bytes, selection(Some("u"), ValueForm::JsonRest)).expect("valid");
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
        read(Format::Parquet, bytes, selection(Some("dec"), columns(&["u", "b"]))).expect("valid");
    assert_eq!(rows[1], (2, "-0.05".into(), r#"{"u":0,"b":false}"#.into()));
    let rows = read(Format::Parquet, bytes, selection(Some("b"), raw("s"))).expect("valid");
    assert_eq!(rows, plain(&[(1, "true", "é\n"), (2, "false", "")]));
}

#[test]
fn errors_name_the_row() {
    let bytes = include_bytes!("../../../samples/nulls.parquet");
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
            r#"input: row 1: the column "i" is neither text nor bytes; a raw value must be text or bytes (as JSON, any value will do)"#,
        ),
        (
            selection(Some("x"), ValueForm::JsonRest),
            r#"input: there is no column "x"; the columns are "k", "v", "e", "l", "i""#,
        ),
    ] {
        assert_eq!(read(Format::Parquet, bytes, selection).expect_err(message), message);
    }
    let error =
        read(Format::Parquet, b"name\na\n", selection(None, raw("a"))).expect_err("a CSV file");
    assert!(error.starts_with("input: this is no readable Parquet file: "), "{error}");
    // Durations are plain numbers in Parquet.
    let bytes = include_bytes!("../../../samples/duration.parquet");
    assert_eq!(
        read(Format::Parquet, bytes, selection(None, ValueForm::JsonRest)).expect("valid"),
        plain(&[(1, "", r#"{"d":1}"#)])
    );
}

#[test]
fn a_damaged_file_is_an_error_or_has_other_values() {
    for bytes in [
        &include_bytes!("../../../samples/texts.parquet")[..],
        include_bytes!("../../../samples/types.parquet"),
    ] {
        for position in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[position] ^= 1 << (position % 8);
            let source = Source::reader("input", Cursor::new(damaged)).format(Format::Parquet);
            // Whatever it says, it must not panic.
            if let Ok(mut rows) = Rows::open(source, selection(None, ValueForm::JsonRest)) {
                while let Ok(Some(_)) = rows.next_row() {}
            }
        }
    }
}

#[test]
fn every_compression_is_read() {
    let values: Vec<i64> = (0..1000).map(|number| number % 7).collect();
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let properties = WriterProperties::builder().set_compression(compression).build();
        let column: Chunk<'_, Int64Type> = Chunk(&[], &[], &values);
        let bytes = file("message m { required int64 n; }", properties, &[&[&column]]);
        let read = all_columns(&bytes).expect("valid");
        assert_eq!(read.len(), 1000, "{compression:?}");
        assert_eq!(read[8], r#"{"n":1}"#, "{compression:?}");
    }
}

#[test]
fn rare_compressions_are_named_in_the_refusal() {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let column: Chunk<'_, Int64Type> = Chunk(&[], &[], &[1, 2, 3]);
    let bytes = file("message m { required int64 n; }", properties, &[&[&column]]);
    // In the footer, the path of the column, [n], comes before its compression, which is 2 × 1.
    let before = b"\x19\x18\x01n\x15";
    let place = bytes.windows(before.len()).position(|window| window == before).expect("there");
    assert_eq!(bytes[place + before.len()], 2);
    for (number, name) in [(3, "LZO"), (4, "Brotli")] {
        let mut bytes = bytes.clone();
        bytes[place + before.len()] = 2 * number;
        let error = all_columns(&bytes).expect_err("not read").to_string();
        assert!(error.contains(&format!("column \"n\" is compressed with {name}")), "{error}");
    }
}

#[test]
fn rarer_types_become_json_too() {
    let schema = "message m {
        required int64 nanos (TIMESTAMP(NANOS, true));
        required int96 old;
        required fixed_len_byte_array(16) id (UUID);
        required fixed_len_byte_array(3) wide (DECIMAL(6, 3));
        required fixed_len_byte_array(2) half (FLOAT16);
        required int32 small (INTEGER(8, false));
        required int32 day (DATE);
        required int32 clock (TIME_MILLIS);
        required int64 since (TIMESTAMP_MICROS);
    }";
    let fixed = |bytes: &[u8]| vec![FixedLenByteArray::from(bytes.to_vec())];
    let mut old = Int96::new();
    // A day and a nanosecond before 1970.
    old.set_data(1, 0, 2_440_587);
    let nanos: Chunk<'_, Int64Type> = Chunk(&[], &[], &[-1]);
    let old: Chunk<'_, Int96Type> = Chunk(&[], &[], &[old]);
    let bytes: Vec<u8> = (0..16).collect();
    let (id, wide, half) = (fixed(&bytes), fixed(&[0xff, 0xff, 0xfe]), fixed(&[0, 0x3e]));
    let id: Chunk<'_, FixedLenByteArrayType> = Chunk(&[], &[], &id);
    let wide: Chunk<'_, FixedLenByteArrayType> = Chunk(&[], &[], &wide);
    let half: Chunk<'_, FixedLenByteArrayType> = Chunk(&[], &[], &half);
    let small: Chunk<'_, Int32Type> = Chunk(&[], &[], &[200]);
    let day: Chunk<'_, Int32Type> = Chunk(&[], &[], &[-1]);
    let clock: Chunk<'_, Int32Type> = Chunk(&[], &[], &[3_723_004]);
    let since: Chunk<'_, Int64Type> = Chunk(&[], &[], &[1]);
    let columns: [&dyn Written; 9] =
        [&nanos, &old, &id, &wide, &half, &small, &day, &clock, &since];
    let bytes = file(schema, WriterProperties::default(), &[&columns]);
    let expected = concat!(
        r#"{"nanos":"1969-12-31T23:59:59.999999999Z","old":"1969-12-31T00:00:00.000000001","#,
        r#""id":"00010203-0405-0607-0809-0a0b0c0d0e0f","wide":-0.002,"half":1.5,"small":200,"#,
        r#""day":"1969-12-31","clock":"01:02:03.004","since":"1970-01-01T00:00:00.000001Z"}"#,
    );
    assert_eq!(all_columns(&bytes).expect("valid"), [expected]);
}

#[test]
fn lists_of_old_writers_are_lists() {
    let schema = "message m {
        repeated int64 bare;
        required group two (LIST) { repeated int64 item; }
        required group pairs (LIST) { repeated group array { required int64 x; } }
        repeated group points { required int64 x; optional int64 y; }
    }";
    let bare: Chunk<'_, Int64Type> = Chunk(&[1, 1, 0], &[0, 1, 0], &[1, 2]);
    let two: Chunk<'_, Int64Type> = Chunk(&[0, 1], &[0, 0], &[3]);
    let pairs: Chunk<'_, Int64Type> = Chunk(&[1, 1, 0], &[0, 1, 0], &[4, 5]);
    let xs: Chunk<'_, Int64Type> = Chunk(&[0, 1, 1], &[0, 0, 1], &[6, 7]);
    let ys: Chunk<'_, Int64Type> = Chunk(&[0, 1, 2], &[0, 0, 1], &[8]);
    let columns: [&dyn Written; 5] = [&bare, &two, &pairs, &xs, &ys];
    let bytes = file(schema, WriterProperties::default(), &[&columns]);
    assert_eq!(
        all_columns(&bytes).expect("valid"),
        [
            r#"{"bare":[1,2],"two":[],"pairs":[{"x":4},{"x":5}],"points":[]}"#,
            r#"{"bare":[],"two":[3],"pairs":[],"points":[{"x":6,"y":null},{"x":7,"y":8}]}"#,
        ]
    );
}

#[test]
fn types_that_cannot_be_imported_are_named() {
    for (schema, named) in [
        ("optional fixed_len_byte_array(12) c (INTERVAL);", "the type INTERVAL, which cannot"),
        (
            "required group c (MAP) { repeated group e { required int32 key; optional int32 value; } }",
            "the type of a map whose keys are not texts, which cannot",
        ),
    ] {
        let bytes = file(&format!("message m {{ {schema} }}"), WriterProperties::default(), &[]);
        let error = all_columns(&bytes).expect_err("no such cells");
        assert!(
            error.starts_with(r#"input: the column "c" has "#) && error.contains(named),
            "{error}"
        );
    }
}

type Lists = Option<Vec<Option<Vec<Option<i64>>>>>;

/// The entries of a column of lists of lists: definition levels, repetition levels, values.
fn shredded(rows: &[Lists]) -> (Vec<i16>, Vec<i16>, Vec<i64>) {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut entry = |definition, repetition| {
        definitions.push(definition);
        repetitions.push(repetition);
    };
    for row in rows {
        let Some(outer) = row else {
            entry(0, 0);
            continue;
        };
        if outer.is_empty() {
            entry(1, 0);
        }
        for (first, inner) in outer.iter().enumerate() {
            let begins = if first == 0 { 0 } else { 1 };
            let Some(inner) = inner else {
                entry(2, begins);
                continue;
            };
            if inner.is_empty() {
                entry(3, begins);
            }
            for (second, item) in inner.iter().enumerate() {
                entry(if item.is_some() { 5 } else { 4 }, if second == 0 { begins } else { 2 });
                values.extend(item);
            }
        }
    }
    (definitions, repetitions, values)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nested_lists_come_back(
        rows in prop::collection::vec(
            prop::option::of(prop::collection::vec(
                prop::option::of(prop::collection::vec(prop::option::of(any::<i64>()), 0..4)),
                0..4,
            )),
            0..700,
        ),
        first_group in 0usize..700,
        page_rows in 1usize..100,
    ) {
        let schema = "message m {
            optional group l (LIST) { repeated group list {
                optional group element (LIST) { repeated group list { optional int64 element; } }
            } }
            required int64 row;
        }";
        let properties = WriterProperties::builder()
            .set_data_page_row_count_limit(page_rows)
            .set_write_batch_size(page_rows)
            .build();
        let (before, after) = rows.split_at(first_group.min(rows.len()));
        let numbers: Vec<i64> = (0..rows.len() as i64).collect();
        let (first, second) = (shredded(before), shredded(after));
        let (first_numbers, second_numbers) = numbers.split_at(before.len());
        let bytes = file(schema, properties, &[
            &[
                &Chunk::<Int64Type>(&first.0, &first.1, &first.2),
                &Chunk::<Int64Type>(&[], &[], first_numbers),
            ],
            &[
                &Chunk::<Int64Type>(&second.0, &second.1, &second.2),
                &Chunk::<Int64Type>(&[], &[], second_numbers),
            ],
        ]);
        let read = all_columns(&bytes).expect("valid");
        let expected: Vec<String> = rows
            .iter()
            .enumerate()
            .map(|(row, lists)| serde_json::json!({"l": lists, "row": row}).to_string())
            .collect();
        prop_assert_eq!(read, expected);
    }
}

/// A file that says that its first page has `bytes` bytes.
fn with_a_page_of(bytes: u64) -> Vec<u8> {
    let mut file = file_of_texts(&[("k", vec!["a"]), ("v", vec!["b"])]);
    // The kind of the page, and the length: a number of 32 bits, each byte of which has seven.
    assert_eq!((file[4], file[6]), (0x15, 0x15));
    let old = 7..8 + file[7..].iter().position(|byte| *byte < 0x80).expect("it ends");
    let doubled = 2 * bytes;
    let number =
        (0..5).map(|at| (doubled >> (7 * at)) as u8 & 0x7f | if at < 4 { 0x80 } else { 0 });
    file.splice(old, number);
    file
}

#[test]
fn a_page_that_says_too_much_is_refused_before_memory_is_taken_for_it() {
    for bytes in [(1 << 27) + 1, (1 << 31) - 1] {
        let error = all_columns(&with_a_page_of(bytes)).expect_err("too long");
        let what = format!("a page has {bytes} bytes, and the limit is 134217728; write the file");
        assert!(error.contains(&what), "{error}");
    }
    let mut file = with_a_page_of(9);
    file[6] = 0x14;
    let error = all_columns(&file).expect_err("not as any writer begins");
    assert!(error.contains("a page does not begin with its lengths"), "{error}");
}

#[test]
fn a_row_of_more_values_than_fit_into_memory_is_refused() {
    let schema =
        "message m { optional group l (LIST) { repeated group list { optional int32 element; } } }";
    // One list of nulls, in a file of some hundred bytes.
    let nulls = |count: usize| {
        let (definitions, mut repetitions) = (vec![2; count], vec![1; count]);
        repetitions[0] = 0;
        let column = Chunk::<Int32Type>(&definitions, &repetitions, &[]);
        file(schema, WriterProperties::default(), &[&[&column]])
    };
    assert_eq!(all_columns(&nulls(3)).expect("few"), [r#"{"l":[null,null,null]}"#]);
    let file = nulls((1 << 22) + 1);
    assert!(file.len() < 2000, "{}", file.len());
    let error = all_columns(&file).expect_err("many");
    assert!(error.contains("has 4194305 values, and the limit is 4194304"), "{error}");
}

#[test]
fn a_value_in_a_dictionary_cannot_fill_a_row_many_times() {
    let schema = "message m { optional group l (LIST) { repeated group list { optional binary element (UTF8); } } }";
    let (definitions, mut repetitions) = (vec![3; 100], vec![1; 100]);
    repetitions[0] = 0;
    let values = vec![ByteArray::from(vec![b'x'; 1 << 20]); 100];
    let column = Chunk::<ByteArrayType>(&definitions, &repetitions, &values);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = file(schema, properties, &[&[&column]]);
    assert!(file.len() < 1 << 20, "{}", file.len());
    let error = all_columns(&file).expect_err("a row of 100 MiB");
    assert!(error.contains("a row takes more than 67108864 bytes"), "{error}");
}

/// Each value repeats the one before it: a batch of them would be a batch of copies.
#[test]
fn values_that_repeat_the_one_before_are_read_one_at_a_time() {
    let values: Vec<ByteArray> = (0..300)
        .map(|row| ByteArray::from(format!("{}{row}", "x".repeat(50_000)).into_bytes()))
        .collect();
    let column = Chunk::<ByteArrayType>(&[], &[], &values);
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(::parquet::basic::Encoding::DELTA_BYTE_ARRAY)
        .build();
    let file = file("message m { required binary v (UTF8); }", properties, &[&[&column]]);
    assert!(file.len() < 200_000, "{}", file.len());
    let rows = all_columns(&file).expect("valid");
    assert_eq!(rows.len(), 300);
    assert!(rows[299].ends_with("x299\"}"));
}
