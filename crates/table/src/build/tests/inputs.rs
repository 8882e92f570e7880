//! Several inputs of one table, and the types of their columns.

use super::*;

/// What the table has for each of these keys.
fn values(place: &Place, keys: &[&str]) -> Vec<Option<String>> {
    let snapshot = place.open();
    keys.iter().map(|key| look_up(&snapshot, key)).collect()
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

#[test]
fn several_inputs_make_one_table() {
    let place = Place::new();
    let build = |options: &BuildOptions, sources: Vec<Source>| {
        let mut told = Vec::new();
        let report =
            build_table_from(options, sources, &place.path("out.privet"), &mut |progress| {
                told.push(progress);
                Ok(())
            });
        report.map(|report| (report, told))
    };
    let sources = || {
        vec![
            place.input("a.csv", "k,v,w\na,1,2\nb,3,4\n"),
            place.input("b.csv", "w,k,v\n6,c,5\n"),
            place.input("none.csv", "w,k,v\n"),
            place.input("c.tsv", "v\tw\tk\n7\t8\td\n"),
        ]
    };
    let (report, told) = build(&keyed("k"), sources()).expect("valid");
    assert_eq!(report.rows, 4);
    let expected = [r#"{"v":"1","w":"2"}"#, r#"{"v":"5","w":"6"}"#, r#"{"v":"7","w":"8"}"#];
    assert_eq!(values(&place, &["a", "c", "d"]), some(&expected));
    // Progress counts the bytes of all inputs.
    assert!(told.is_sorted_by_key(|progress| (progress.stage as u8, progress.bytes_done)));
    let read = told.iter().rfind(|progress| progress.stage == Stage::Reading).expect("reading");
    assert_eq!((read.bytes_done, read.bytes_total), (48, Some(48)));

    // In a table by index, the rows of an input are numbered after those of the input before.
    let by_number = BuildOptions { raw_value: Some("k".into()), ..BuildOptions::default() };
    build(&by_number, sources()).expect("valid");
    let snapshot = place.open();
    let records: Vec<_> = (0..4).map(|row| snapshot.view().record(row).expect("there")).collect();
    assert_eq!(records, [b"a", b"b", b"c", b"d"]);

    let json = |rows: &str| {
        Source::reader("json", Cursor::new(rows.to_owned()))
            .format(crate::import::Format::JsonLines)
    };
    let lines = || vec![json("{\"k\":\"a\",\"v\":1}"), json("{\"k\":\"b\",\"w\":2}")];
    build(&keyed("k"), lines()).expect("each row says what it has");
    assert_eq!(values(&place, &["a", "b"]), some(&[r#"{"v":1}"#, r#"{"w":2}"#]));

    let only_v = BuildOptions { value_columns: vec!["v".into()], ..keyed("k") };
    let more = || vec![place.input("a.csv", "k,v\na,1\n"), place.input("b.csv", "x,v,k\n0,2,b\n")];
    build(&only_v, more()).expect("other columns do not matter");
    assert_eq!(values(&place, &["a", "b"]), some(&[r#"{"v":"1"}"#, r#"{"v":"2"}"#]));

    let parquet = |columns: [(&str, &str); 3]| {
        let columns = columns.map(|(name, value)| (name, vec![value]));
        Source::reader("parquet", Cursor::new(file_of_texts(&columns)))
            .format(crate::import::Format::Parquet)
    };
    let first = [("k", "a"), ("v", "1"), ("w", "2")];
    let second = [("w", "4"), ("v", "3"), ("k", "b")];
    build(&keyed("k"), vec![parquet(first), parquet(second)]).expect("valid");
    let expected = [r#"{"v":"1","w":"2"}"#, r#"{"v":"3","w":"4"}"#];
    assert_eq!(values(&place, &["a", "b"]), some(&expected));

    let refused = |sources, message: &str| {
        let message = message.replace("[a.csv]", &place.path("a.csv").display().to_string());
        let error = build(&keyed("k"), sources).expect_err(&message);
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains(&message), "{error}");
    };
    for (a, b, message) in [
        (
            "k,v\na,1\n",
            "x,v,k\n0,2,b\n",
            r#"b.csv: line 1: it has a column "x", and [a.csv] has none; the inputs of a table have the same columns"#,
        ),
        (
            "k,v,w\na,1,2\n",
            "k,v\nb,1\n",
            r#"b.csv: line 1: there is no column "w"; the columns are "k", "v""#,
        ),
        (
            "k,v\nb,0\na,1\n",
            "k,v\nc,2\na,3\n",
            r#"b.csv: line 3: the key "a" occurs twice, first in [a.csv], line 3; keep one of the rows, or choose which to keep: the first, the last, or all of them"#,
        ),
        (
            "k,v\nb,0\n",
            "k,v\na,2\na,3\n",
            r#"b.csv: line 3: the key "a" occurs twice, first in line 2; keep one of the rows, or choose which to keep: the first, the last, or all of them"#,
        ),
        (
            "k,v\nb,0\n",
            "k,v\na,2,3\n",
            "b.csv: line 2: this row has 3 cells and the header has 2 columns; is a comma unquoted or a quote missing?",
        ),
        ("k,v\n", "k,v\n", "[a.csv] and 1 more: they have no rows; a table needs at least one"),
    ] {
        refused(vec![place.input("a.csv", a), place.input("b.csv", b)], message);
    }
    let csv = || place.input("a.csv", "k,v\na,1\n");
    refused(
        vec![csv(), json("{\"k\":\"b\"}")],
        "json is JSON Lines, and [a.csv] is CSV; build a table from inputs of one format",
    );
    refused(vec![csv(), Source::path("no/such.csv")], "no/such.csv: cannot open it");
    refused(vec![], "there is no input; a table needs at least one row");
}

#[test]
fn types_are_found_out_from_all_rows_of_all_inputs() {
    use crate::import::{ColumnType, Format, OnEmptyKey};
    let place = Place::new();
    let first = "k,n,b,zip,price,long,none,mixed\na,1,true,007,1.50,1234567890123456,,1\nb,-0.5,,8,2,1,,2\n";
    let second = "mixed,k,n,b,zip,price,long,none\nx,c,,false,9,3,2,\n";
    let auto = BuildOptions { guess_types: true, ..keyed("k") };
    // From files, and from what can be read only once.
    let sources: [fn(&Place, &str, &str) -> Source; 2] = [
        |place, name, rows| place.input(name, rows),
        |_, name, rows| Source::reader(name, Cursor::new(rows.to_owned())).format(Format::Csv),
    ];
    for source in sources {
        let build = |options: &BuildOptions, sources: Vec<Source>| {
            build_table_from(options, sources, &place.path("out.privet"), &mut |_| Ok(()))
        };
        let both = || vec![source(&place, "a.csv", first), source(&place, "b.csv", second)];
        let report = build(&auto, both()).expect("valid");
        let typed = |name: &str, one| (name.to_owned(), one);
        assert_eq!(report.types, [typed("n", ColumnType::Number), typed("b", ColumnType::Boolean)]);
        let expected = [
            r#"{"n":1,"b":true,"zip":"007","price":"1.50","long":"1234567890123456","none":"","mixed":"1"}"#,
            r#"{"n":-0.5,"b":null,"zip":"8","price":"2","long":"1","none":"","mixed":"2"}"#,
            r#"{"n":null,"b":false,"zip":"9","price":"3","long":"2","none":"","mixed":"x"}"#,
        ];
        assert_eq!(values(&place, &["a", "b", "c"]), some(&expected));
        // Types that are given win over types that are guessed.
        let said = vec![typed("n", ColumnType::Text), typed("price", ColumnType::Number)];
        let options = BuildOptions { types: said.clone(), ..auto.clone() };
        let report = build(&options, both()).expect("valid");
        assert_eq!(
            report.types,
            [typed("price", ColumnType::Number), typed("b", ColumnType::Boolean)]
        );
        // Without types and without guessing, all columns are text.
        let report = build(&keyed("k"), both()).expect("valid");
        assert_eq!(report.types, []);
        assert_eq!(
            values(&place, &["c"]),
            some(&[
                r#"{"n":"","b":"false","zip":"9","price":"3","long":"2","none":"","mixed":"x"}"#
            ])
        );
        // A row that is skipped says nothing.
        let total =
            vec![source(&place, "a.csv", "k,n\na,1\n,sum\n").on_empty_key(OnEmptyKey::Skip)];
        let report = build(&auto, total).expect("valid");
        assert_eq!(report.types, [typed("n", ColumnType::Number)]);
        let error = build(&auto, vec![source(&place, "a.csv", "k,n\na,1,2\n")]).expect_err("cells");
        assert!(error.message().contains("a.csv: line 2: this row has 3 cells"), "{error}");
    }
    let by_json =
        Source::reader("json", Cursor::new("{\"k\":\"a\",\"v\":\"1\"}")).format(Format::JsonLines);
    place.build(&auto, by_json).expect("it has types of its own");
    assert_eq!(values(&place, &["a"]), some(&[r#"{"v":"1"}"#]));
    let raw = BuildOptions { raw_value: Some("v".into()), ..auto };
    place.build(&raw, place.input("a.csv", "k,v\na,1\n")).expect("values are text");
    assert_eq!(values(&place, &["a"]), some(&["1"]));
}
