//! Files that are not quite CSV, read as their dialect says and refused without it.

use super::*;

fn dialect(of: impl FnOnce(&mut Dialect)) -> Dialect {
    let mut dialect = Dialect::default();
    of(&mut dialect);
    dialect
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// The keys and values of all rows.
fn all(text: &str, format: Format, key: &str, dialect: Dialect) -> Result<Vec<Plain>, String> {
    let source = in_memory(text).format(format).dialect(dialect);
    rows_of(source, selection(Some(key), ValueForm::JsonRest))
}

const NOTES: &str =
    "id\tnote\n1\t\"24 inch\n2\tbob\n3\tsays \"hi\"\n4\t5\" pipe\n5\t\"six\" foot\n";

#[test]
fn text_after_a_closing_quote_names_the_line_where_the_cell_begins() {
    let key = || selection(Some("id"), ValueForm::JsonRest);
    for (format, text, line) in [
        (Format::Tsv, NOTES, 2),
        (Format::Csv, "id,a\n1,\"x\"y\n", 2),
        (Format::Csv, "id,a\n1,\"x\n\"\n2,\"x\ny\"\"\nz\" ,\n", 4),
        (Format::Csv, "\"id\"x,a\n1,2\n", 1),
        // Closed, and swallowed rows all the same.
        (Format::Tsv, "id\tnote\n1\t\"24 inch\n2\tbob\n3\t5\"\n", 2),
    ] {
        let source = in_memory(text).format(format);
        let mut rows = match Rows::open(source, key()) {
            Ok(rows) => rows,
            Err(error) => {
                assert!(error.message().starts_with("input: line 1: the quoted cell"), "{error}");
                assert_eq!((error.reason(), line), (Some(Reason::QuotesUnclear), 1));
                continue;
            }
        };
        let error = loop {
            match rows.next_row() {
                Ok(row) => assert!(row.is_some(), "{text:?} ends"),
                Err(error) => break error,
            }
        };
        let begins = format!("input: line {line}: the quoted cell that begins here");
        assert!(error.message().starts_with(&begins), "{error}");
        assert_eq!(error.reason(), Some(Reason::QuotesUnclear), "{error}");
    }
    // Cells that end where they may.
    let good = "id,a\n1,\"x, \"\"y\"\"\nz\"\r\n2,\"\"\n\"3\",\"a\tb\nc\"";
    let rows = all(good, Format::Csv, "id", Dialect::default()).expect("quoted");
    assert_eq!(rows.len(), 3);
    let lines = "id\tnote\n1\t\"two\nlines\"\n2\t\"a\ttab\"\n";
    assert_eq!(all(lines, Format::Tsv, "id", Dialect::default()).expect("quoted").len(), 2);
}

#[test]
fn without_quotes_every_line_is_a_row() {
    let rows = all(NOTES, Format::Tsv, "id", dialect(|of| of.no_quotes = true));
    let expected = [
        (2, "1", r#"{"note":"\"24 inch"}"#),
        (3, "2", r#"{"note":"bob"}"#),
        (4, "3", r#"{"note":"says \"hi\""}"#),
        (5, "4", r#"{"note":"5\" pipe"}"#),
        (6, "5", r#"{"note":"\"six\" foot"}"#),
    ];
    assert_eq!(rows, Ok(plain(&expected)));
}

#[test]
fn columns_without_a_header_have_the_given_names_or_numbers() {
    let text = "ada,1,x\nbob,2,\"y\nz\"\n";
    let numbered = all(text, Format::Csv, "1", dialect(|of| of.no_header = names(&[])));
    let expected = [(1, "ada", r#"{"2":"1","3":"x"}"#), (2, "bob", r#"{"2":"2","3":"y\nz"}"#)];
    assert_eq!(numbered, Ok(plain(&expected)));
    let named = all(text, Format::Csv, "n", dialect(|of| of.no_header = names(&["n", "a", "b"])));
    assert_eq!(named.expect("named")[1].2, r#"{"a":"2","b":"y\nz"}"#);
    // The first record may take several lines.
    let long = "\"a\nda\",1\nbob,2\n";
    let rows = all(long, Format::Csv, "1", dialect(|of| of.no_header = names(&[])));
    assert_eq!(rows, Ok(plain(&[(1, "a\nda", r#"{"2":"1"}"#), (3, "bob", r#"{"2":"2"}"#)])));
    let few = all(text, Format::Csv, "n", dialect(|of| of.no_header = names(&["n", "a"])));
    assert_eq!(
        few,
        Err("input: line 1: 2 columns are named, and this row has 3; name each".into())
    );
    let ragged =
        all("a,1\nb\n", Format::Csv, "1", dialect(|of| of.no_header = names(&[]))).expect_err("1");
    assert!(ragged.contains("this row has 1 cells and the first row has 2 columns"), "{ragged}");
}

#[test]
fn a_first_line_that_looks_like_data_is_doubted() {
    let reason = |text: &str, key: Option<&str>| {
        let source = in_memory(text).format(Format::Csv);
        match Rows::open(source, selection(key, ValueForm::JsonRest)) {
            Ok(rows) => rows.doubt().map(str::to_owned).ok_or(None),
            Err(error) => Err(error.reason()),
        }
    };
    for (text, key) in [
        ("\"0\",\"16777215\",\"-\",\"-\"\n", Some("1")),
        ("\"0\",\"16777215\",\"-\",\"-\"\n", None),
        ("00000A1B2C3D4E5F60718293A4B5C6D7E8F90123,17\n", Some("hash")),
        ("10.0.0.0/8,x\n", Some("network")),
    ] {
        assert_eq!(reason(text, key), Err(Some(Reason::HeaderUnclear)), "{text}");
    }
    assert_eq!(reason("# list\n1\n", Some("id")), Err(Some(Reason::CommentUnclear)));
    assert_eq!(reason("nam,size\n", Some("name")), Err(None), "a typing error");
    for text in ["a.example\nb.example\n", "1,2\n", "http://a.example,x\n", "# a; b\nc\n"] {
        assert!(reason(text, None).is_ok(), "{text}");
    }
    for text in ["name,size\n", ",a,b\n", "first.name,last.name\n"] {
        assert_eq!(reason(text, None), Err(None), "{text}");
    }
    assert_eq!(reason("2019,2020\n", Some("2019")), Err(None), "the caller knows the names");
}

#[test]
fn lines_that_are_no_rows_are_left_out_and_counted() {
    let text = "made\nby hand\n#a\nid,n\n# b\n1,\"x\n# no comment\"\n\n2,y#\n#\n";
    let comments = dialect(|of| (of.comment, of.skip_lines) = (Some("#".into()), 2));
    let source = in_memory(text).format(Format::Csv).dialect(comments.clone());
    let mut rows = Rows::open(source, selection(Some("id"), raw("n"))).expect("a header");
    let mut keys = Vec::new();
    while let Some(row) = rows.next_row().expect("rows") {
        keys.push((row.position, row.value.to_vec()));
    }
    assert_eq!(keys, [(6, b"x\n# no comment".to_vec()), (9, b"y#".to_vec())]);
    let counted = LinesLeftOut { first: 2, comments: 3, blank: 1 };
    assert_eq!(rows.left_out(), counted);

    let json = "x\ny\n# a\n{\"id\":1}\n\n";
    let rows = all(json, Format::JsonLines, "id", comments.clone());
    assert_eq!(rows, Ok(plain(&[(4, "1", "{}")])));
    let error = all("", Format::Parquet, "id", comments).expect_err("no text");
    assert!(error.contains("only text has lines"), "{error}");
    let error = all("", Format::JsonLines, "id", dialect(|of| of.no_quotes = true));
    assert!(error.expect_err("no CSV").contains("only CSV has quotes"));
    let error = all("id,n\n# x\n1,2\n", Format::Csv, "id", Dialect::default()).expect_err("1 cell");
    assert!(
        error.contains("line 2: this row has 1 of 2 cells and begins like a comment"),
        "{error}"
    );
}

#[test]
fn the_first_line_may_say_what_separates_cells() {
    let expected = Ok(plain(&[(3, "1", r#"{"name":"Ann"}"#)]));
    for first in ["sep=;", "SEP=;", "\"sep=;\"", "\u{feff}sep=;\r"] {
        for delimiter in [None, Some(Delimiter::Character(b';'))] {
            let text = format!("{first}\nid;name\n1;Ann\n");
            let rows = all(&text, Format::Csv, "id", dialect(|of| of.delimiter = delimiter));
            assert_eq!(rows, expected, "{first:?}");
        }
    }
    let other = dialect(|of| of.delimiter = Some(Delimiter::Character(b'|')));
    let error = all("sep=;\nid;name\n", Format::Csv, "id", other).expect_err("another");
    assert!(error.contains("says that a semicolon separates cells, and a vertical bar"), "{error}");
    let rows = all("sep=,x\n1,2\n", Format::Csv, "x", Dialect::default());
    assert_eq!(rows, Ok(plain(&[(2, "2", r#"{"sep=":"1"}"#)])), "a name like another");
}

#[test]
fn white_space_separates_cells_and_further_cells_make_rows() {
    let hosts =
        "# hosts\n\n127.0.0.1\tlocalhost  local # here\n  # indented\n \t\n  ::1 localhost\r\n";
    let white = |spread| {
        dialect(|of| {
            of.delimiter = Some(Delimiter::WhiteSpace);
            of.comment = Some("#".into());
            of.no_header = names(&["address", "name"]);
            of.spread = spread;
        })
    };
    let expected = [
        (3, "localhost", r#"{"address":"127.0.0.1"}"#),
        (3, "local", r#"{"address":"127.0.0.1"}"#),
        (6, "localhost", r#"{"address":"::1"}"#),
    ];
    assert_eq!(all(hosts, Format::Csv, "name", white(true)), Ok(plain(&expected)));
    let error = all(hosts, Format::Csv, "name", white(false)).expect_err("3 cells");
    assert!(error.contains("line 3: 2 columns are named, and this row has 3"), "{error}");
    let error = all("a b\nc\n", Format::Csv, "name", white(true)).expect_err("1 cell");
    assert!(error.contains("line 2: this row has 1 cells"), "{error}");
    let commas = dialect(|of| of.spread = true);
    let rows = all("k,v\na,1,2\n,3\nb,4\n", Format::Csv, "k", commas).expect_err("no key");
    assert!(rows.contains("line 3"), "{rows}");
}
