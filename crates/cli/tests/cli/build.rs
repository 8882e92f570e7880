//! `privet build`: its report, and that a refused input leaves no file behind.

use crate::place::{PHONES, Place, Run};
use insta::assert_snapshot;

/// Runs a build that must fail, and checks that it left no file, not even a temporary one.
fn refused(place: &Place, arguments: &str) -> Run {
    let before = place.files();
    let run = place.run(&format!("build {arguments}"));
    assert_ne!(run.code(), 0, "{run}");
    assert_eq!(run.stdout(), "");
    assert_eq!(place.files(), before);
    run
}

#[test]
fn the_kind_of_key_map_can_be_chosen() {
    let place = Place::with_rows();
    let report = place.run("build phones.csv --key name --key-map cuckoo -o phones.privet --json");
    assert_eq!((report.code(), &report.json()["key_map"]), (0, &"cuckoo".into()), "{report}");
    let report = place.run("build phones.csv --key name --key-map buckets -o phones.privet");
    assert!(report.stdout().contains("key map                buckets, "), "{report}");
    assert_snapshot!(refused(&place, "phones.csv --key-map cuckoo -o other.privet").mistake(), @r"
    error: the following required arguments were not provided:
      <--key <COLUMN>|--range-from <COLUMN>>

    Usage: privet build --output <FILE> --key-map <KIND> <--key <COLUMN>|--range-from <COLUMN>> <INPUT>...

    For more information, try '--help'.
    ");
}

#[test]
fn a_csv_file_becomes_a_table_by_key() {
    let place = Place::with_rows();
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet").printed(), @r#"
    phones.privet built in [TIME]
      rows                   3
      keys                   3, 3 B long: lower-case letters
      such as                "ada", "bob", "eve"
      records                3 of 38 B
      key map                buckets, 97.4 % full, 105 B downloaded by each client
      stash                  0 values, 0 B
      overhead               2.61 x the 84 B of values
      file size              4.11 KiB
      table id               [ID]
      digest                 [DIGEST]
    "#);
    assert_eq!(place.files(), ["phones.csv", "phones.privet"]);
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet --json").printed(), @r#"
    {"file":"phones.privet","rows":3,"keys":3,"key_shape":{"shortest":3,"longest":3,"characters":"lower-case letters","spaced":0,"first":["\"ada\"","\"bob\"","\"eve\""]},"records":3,"record_len":38,"path_len":0,"key_map":"buckets","ranges":null,"key_format":"text","normalized":[],"multi":false,"parts":1,"undivided_record_len":null,"records_per_lookup":1,"load":0.9736842105263158,"stash_entries":0,"stash_bytes":0,"layout_bytes":105,"value_bytes":84,"overhead":2.607142857142857,"rows_read":3,"rows_hidden":0,"duplicates_dropped":0,"empty_keys_skipped":0,"skipped_lines":0,"comment_lines":0,"blank_lines":0,"types":{},"file_bytes":4210,"table_id":"[ID]","epoch":0,"digest":"[DIGEST]","root":null,"publisher":null,"next_key":null,"succeeds":null,"void_after":null,"seconds":[TIME]}
    "#);
}

#[test]
fn a_json_lines_file_becomes_a_table_by_key() {
    let place = Place::new();
    place.write(
        "phones.jsonl",
        "{\"name\":\"ada\",\"phone\":1}\n{\"name\":\"bob\",\"phone\":[2,{}]}\n",
    );
    assert_snapshot!(place.run("build phones.jsonl --key name -o phones.privet").printed(), @r#"
    phones.privet built in [TIME]
      rows                   2
      keys                   2, 3 B long: lower-case letters
      such as                "ada", "bob"
      records                2 of 25 B
      key map                buckets, 90.0 % full, 79 B downloaded by each client
      stash                  0 values, 0 B
      overhead               4.78 x the 27 B of values
      file size              4.05 KiB
      table id               [ID]
      digest                 [DIGEST]
    "#);
}

#[test]
fn without_a_key_rows_are_numbered() {
    let place = Place::with_rows();
    assert_snapshot!(place.run("build phones.csv -o phones.privet").printed(), @r#"
    phones.privet built in [TIME]
      rows                   3
      records                3 of 43 B
      key map                none: records are looked up by row number, from 0
      overhead               1.34 x the 123 B of values
      file size              4.13 KiB
      table id               [ID]
      digest                 [DIGEST]
    "#);
}

#[test]
fn standard_input_needs_a_format() {
    let place = Place::new();
    assert_snapshot!(place.run_with_input("build - -o x.privet", PHONES.as_bytes()).mistake(), @r#"
    privet: standard input: say which format it has: csv, tsv, jsonl, parquet (--format)
    "#);
    assert_eq!(place.files(), Vec::<String>::new());
    let run = place
        .run_with_input("build - --format csv --key name -o x.privet --json", PHONES.as_bytes());
    assert_eq!(run.json()["rows"], 3);
}

#[test]
fn columns_of_the_value_may_be_chosen() {
    let place = Place::with_rows();
    place.build("phones.csv --key name --value phone,floor -o two.privet");
    assert_eq!(
        place.run("inspect two.privet --json").json()["value_columns"],
        serde_json::json!(["phone", "floor"])
    );
    let raw = place.build("phones.csv --key name --raw-value phone -o raw.privet --json").json();
    assert_eq!(raw["value_bytes"], "555-1555-25,5".len());
    let report = place.run("inspect raw.privet --json").json();
    assert_eq!(
        (&report["value"], &report["value_columns"]),
        (&"raw".into(), &serde_json::json!(["phone"]))
    );
}

#[test]
fn unknown_columns_are_named_with_those_there_are() {
    let place = Place::with_rows();
    assert_snapshot!(refused(&place, "phones.csv --key nmae -o x.privet").mistake(), @r#"
    privet: phones.csv: line 1: there is no column "nmae"; the columns are "name", "phone", "floor"; did you mean "name"?
    "#);
    assert_snapshot!(refused(&place, "phones.csv --key name --value phone,flor -o x.privet").mistake(), @r#"
    privet: phones.csv: line 1: there is no column "flor"; the columns are "name", "phone", "floor"; did you mean "floor"?
    "#);
    assert_snapshot!(refused(&place, "phones.csv --key name --raw-value fone -o x.privet").mistake(), @r#"
    privet: phones.csv: line 1: there is no column "fone"; the columns are "name", "phone", "floor"
    "#);
    place.write("phones.jsonl", "{\"name\":\"ada\",\"phone\":1}\n");
    assert_snapshot!(refused(&place, "phones.jsonl --key nmae -o x.privet").mistake(), @r#"
    privet: phones.jsonl: line 1: there is no column "nmae"; the columns are "name", "phone"; did you mean "name"?
    "#);
}

#[test]
fn empty_inputs_are_refused() {
    let place = Place::new();
    place.write("empty.csv", "");
    place.write("header.csv", "name,phone\n");
    place.write("empty.jsonl", "\n");
    assert_snapshot!(refused(&place, "empty.csv -o x.privet").mistake(), @r#"
    privet: empty.csv: it is empty; a CSV file begins with a line of column names
    "#);
    assert_snapshot!(refused(&place, "header.csv --key name -o x.privet").mistake(), @r#"
    privet: header.csv: it has no rows; a table needs at least one
    "#);
    assert_snapshot!(refused(&place, "empty.jsonl -o x.privet").mistake(), @r#"
    privet: empty.jsonl: it has no rows; a table needs at least one
    "#);
}

#[test]
fn bad_input_is_located() {
    let place = Place::new();
    place.write("latin.csv", b"name,phone\nada,1\nJ\xfcrgen,2\n");
    place.write("ragged.csv", "name,phone\nada,1\nbob\n");
    place.write("latin.jsonl", b"{\"name\":\"ada\"}\n{\"name\":\"J\xfcrgen\"}\n");
    place.write("broken.jsonl", "{\"name\":\"ada\"}\n{\"name\":\n");
    assert_snapshot!(refused(&place, "latin.csv --key name -o x.privet").mistake(), @r#"
    privet: latin.csv: line 3: byte 2, in the column "name", is not UTF-8; convert the file to UTF-8 first
    "#);
    assert_snapshot!(refused(&place, "ragged.csv --key name -o x.privet").mistake(), @r#"
    privet: ragged.csv: line 3: this row has 1 cells and the header has 2 columns; is a comma unquoted or a quote missing?
    "#);
    assert_snapshot!(refused(&place, "latin.jsonl --key name -o x.privet").mistake(), @r#"
    privet: latin.jsonl: line 2: byte 11 is not UTF-8; convert the file to UTF-8 first
    "#);
    assert_snapshot!(refused(&place, "broken.jsonl --key name -o x.privet").mistake(), @r"
    privet: broken.jsonl: line 2: column 8: not valid JSON: EOF while parsing a value; an object stands on one line, whole (jq -c . writes it so)
    ");
    assert_snapshot!(refused(&place, "broken.jsonl --format parquet -o x.privet").mistake(), @r#"
    privet: broken.jsonl: this is no readable Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    "#);
}

#[test]
fn rows_without_a_key_are_an_error_unless_they_are_skipped() {
    let place = Place::new();
    place.write("holes.csv", "name,phone\nada,1\n,2\nbob,3\n,4\n");
    assert_snapshot!(refused(&place, "holes.csv --key name -o x.privet").mistake(), @r#"
    privet: holes.csv: line 3: the key (column "name") is empty; every row needs a text or a number there (--on-empty-key skip)
    "#);
    let skip = "holes.csv --key name --on-empty-key skip -o x.privet";
    let report = place.build(&format!("{skip} --json")).json();
    assert_eq!((&report["rows"], &report["empty_keys_skipped"]), (&2.into(), &2.into()));
    let page = place.build(skip);
    assert!(page.stdout().contains("  skipped                2 rows without a key\n"), "{page}");
    place.begin_history("x.privet");
    let update = "update x.privet --publisher-key publisher.key --from holes.csv";
    let refused = place.run(update);
    assert!(refused.stderr().contains("(--on-empty-key skip)"), "{refused}");
    let updated = place.run(&format!("{update} --on-empty-key skip --json")).json();
    assert_eq!((&updated["replaced"], &updated["empty_keys_skipped"]), (&2.into(), &2.into()));
}

#[test]
fn keys_are_shown_so_that_lookups_are_written_alike() {
    let place = Place::new();
    place.write("keys.csv", "mac,name\n08-00-2B,a\nAC-DE-48 ,b\n1,c\n2,d\n");
    let page = place.build("keys.csv --key mac -o x.privet");
    for line in [
        "  keys                   4, 1 to 9 B long: upper-case hexadecimal digits, \"-\" and spaces\n",
        "  such as                \"08-00-2B\", \"AC-DE-48 \", \"1\"\n",
        "  with spaces            1 at an end, which lookups have to have as well\n",
    ] {
        assert!(page.stdout().contains(line), "{page}");
    }
    let by_number = place.build("keys.csv -o x.privet");
    assert!(!by_number.stdout().contains("such as"), "{by_number}");
}

#[test]
fn several_files_make_one_table() {
    let place = Place::new();
    place.write("a.csv", "name,phone\nada,1\n");
    place.write("b.csv", "phone,name\n2,bob\n");
    let built = place.build("a.csv b.csv --key name -o x.privet --json").json();
    assert_eq!((&built["rows"], &built["keys"]), (&2.into(), &2.into()));
    let piped = "build a.csv - --format csv --key name -o x.privet --json";
    let piped = place.run_with_input(piped, b"name,phone\neve,3\n");
    assert_eq!(piped.json()["rows"], 2);
    assert_snapshot!(refused(&place, "a.csv a.csv --key name -o y.privet").mistake(), @r#"
    privet: a.csv: line 2: the key "ada" occurs twice, first in a.csv, line 2; keep one of the rows, or choose which to keep: the first, the last, or all of them (--on-duplicate, or --multi)
    "#);
    assert_snapshot!(refused(&place, "- - --format csv -o y.privet").mistake(), @r#"
    privet: standard input can be read once only: name `-` once
    "#);
    // No input is ever overwritten.
    for output in ["a.csv", "b.csv"] {
        let before = std::fs::read(place.path(output)).unwrap();
        let run = refused(&place, &format!("a.csv b.csv --key name -o {output} --force"));
        assert!(run.stderr().contains(&format!("is the same file as {output}")), "{run}");
        assert_eq!(std::fs::read(place.path(output)).unwrap(), before);
    }
}

#[test]
fn columns_may_have_types() {
    let place = Place::new();
    place.write("t.csv", "name,population,active,zip\nada,1,true,007\nbob,,FALSE,8\n");
    let head = |types: &str| {
        place.build(&format!("t.csv --key name {types} -o x.privet"));
        let mut values: Vec<_> =
            place.run("inspect x.privet --head 9 --json").json()["head"]["values"]
                .as_array()
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect();
        values.sort();
        values
    };
    assert_eq!(
        head(""),
        [
            r#"{"population":"","active":"FALSE","zip":"8"}"#,
            r#"{"population":"1","active":"true","zip":"007"}"#,
        ]
    );
    assert_eq!(
        head("--types population=number,active=boolean"),
        [
            r#"{"population":1,"active":true,"zip":"007"}"#,
            r#"{"population":null,"active":false,"zip":"8"}"#,
        ]
    );
    assert_eq!(
        head("--types auto --types active=boolean"),
        [
            r#"{"population":1,"active":true,"zip":"007"}"#,
            r#"{"population":null,"active":false,"zip":"8"}"#,
        ]
    );
    let told = place.build("t.csv --key name --types auto -o x.privet");
    assert!(told.stdout().contains("  types                  population=number\n"), "{told}");
    let piped = place.run_with_input(
        "build - --format csv --key name --types auto -o x.privet --json",
        b"name,n\nada,1\n",
    );
    assert_eq!(piped.json()["types"], serde_json::json!({"n": "number"}));
    assert_snapshot!(refused(&place, "t.csv --key name --types zip=number -o y.privet").mistake(), @r#"
    privet: t.csv: line 2: the cell of column "zip" is "007", which is no number as JSON has them, such as -12 or 0.5; correct it, or let the column be text
    "#);
    // An update knows the types, and refuses others.
    place.build("t.csv --key name --types population=number -o x.privet");
    place.begin_history("x.privet");
    place.write("more.csv", "name,population,active,zip\nada,2,true,007\nbob,3,FALSE,8\n");
    let update = "update x.privet --publisher-key publisher.key --from more.csv --types";
    for (types, message) in [
        (
            "population=text",
            r#"the column "population" is a number in the table, and would be "2" here"#,
        ),
        ("active=boolean", r#"the column "active" is text in the table, and would be true here"#),
    ] {
        place.run(&format!("{update} {types}")).says(2, message);
    }
    assert_eq!(place.run(&format!("{update} auto")).code(), 0);
    assert_eq!(place.run(&format!("{update} population=number")).code(), 0);
    let values = place.run("inspect x.privet --head 2").stdout().to_owned();
    assert!(values.contains("{\"population\":2,"), "{values}");
}

/// The phone book, compressed with gzip.
const PHONES_GZ: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbK\xccM\xd5)\xc8\xc8\xcfK\xd5I\xcb\xc9\xcf/\xe2JLI\xd4155\xd55\xd41\xe6J\xcaO\x02\xb3\x8dtL\xb8R\xcbRu\x94LuL\x95t\xb8\x00\xc7,M\xd04\x00\x00\x00";

#[test]
fn compressed_files_are_read_by_what_is_in_them() {
    let place = Place::with_rows();
    let plain = place.build("phones.csv --key name -o plain.privet --json").json();
    place.write("phones.csv.gz", PHONES_GZ);
    place.write("PHONES.CSV.ZST", PHONES_GZ);
    for arguments in ["phones.csv.gz", "PHONES.CSV.ZST"] {
        let built = place.build(&format!("{arguments} --key name -o x.privet --json")).json();
        assert_eq!(
            (&built["rows"], &built["value_bytes"]),
            (&plain["rows"], &plain["value_bytes"])
        );
    }
    let piped =
        place.run_with_input("build - --format csv --key name -o x.privet --json", PHONES_GZ);
    assert_eq!(piped.json()["value_bytes"], plain["value_bytes"]);
    place.write("short.csv.gz", &PHONES_GZ[..30]);
    assert_snapshot!(refused(&place, "short.csv.gz --key name -o y.privet").mistake(), @r#"
    privet: short.csv.gz: it is compressed with gzip, and ends too early: it was cut off; copy or write it again
    "#);
}

#[test]
fn other_delimiters_are_read_and_suggested() {
    let place = Place::new();
    let semicolons = "name;phone;floor\nada;555-1;3\nbob;555-2;4\neve;5,5;\n";
    place.write("phones.csv", semicolons);
    place.write("phones.txt", semicolons);
    place.write("phones.tsv", semicolons.replace(';', "\t"));
    place.write("commas.csv", PHONES);
    let expected = place.build("commas.csv --key name -o x.privet --json").json();
    for arguments in [
        "phones.csv --delimiter ;",
        "phones.txt --delimiter ;",
        "phones.tsv",
        "phones.tsv --delimiter tab",
        "phones.tsv --format csv --delimiter \\t",
        "phones.tsv --format tsv",
    ] {
        let built = place.build(&format!("{arguments} --key name -o x.privet --json")).json();
        assert_eq!(built["value_bytes"], expected["value_bytes"], "{arguments}");
    }
    assert_snapshot!(refused(&place, "phones.csv --key name -o y.privet").mistake(), @r#"
    privet: phones.csv: line 1: the header is one column, "name;phone;floor": perhaps the cells are separated by a semicolon and not by a comma; say which delimiter there is (--delimiter)
    "#);
    place.begin_history("x.privet");
    let update = "update x.privet --publisher-key publisher.key --from phones.csv";
    let refused = place.run(update);
    assert!(refused.stderr().contains("(--delimiter)"), "{refused}");
    assert_eq!(place.run(&format!("{update} --delimiter ; --json")).json()["replaced"], 3);
}

#[test]
fn duplicate_keys_are_an_error_unless_one_is_chosen() {
    let place = Place::new();
    place.write("twice.csv", "name,phone\nada,1\nbob,2\nada,33\n");
    assert_snapshot!(refused(&place, "twice.csv --key name -o x.privet").mistake(), @r#"
    privet: twice.csv: line 4: the key "ada" occurs twice, first in line 2; keep one of the rows, or choose which to keep: the first, the last, or all of them (--on-duplicate, or --multi)
    "#);
    let report = |choice: &str| {
        let arguments = format!(
            "twice.csv --key name --raw-value phone --on-duplicate {choice} -o {choice}.privet --json"
        );
        let report = place.build(&arguments).json();
        (
            report["rows"].clone(),
            report["duplicates_dropped"].clone(),
            report["value_bytes"].clone(),
        )
    };
    assert_eq!(report("first"), (2.into(), 1.into(), "12".len().into()));
    assert_eq!(report("last"), (2.into(), 1.into(), "332".len().into()));
    assert_snapshot!(refused(&place, "twice.csv --key name --on-duplicate both -o x.privet").mistake(), @r"
    error: invalid value 'both' for '--on-duplicate <WHAT>'
      [possible values: error, first, last]

    For more information, try '--help'.
    ");
}

#[test]
fn values_longer_than_asked_for_are_refused() {
    let place = Place::with_rows();
    assert_snapshot!(refused(&place, "phones.csv --key name --max-value 10 -o x.privet").mistake(), @r#"
    privet: phones.csv: line 2: the value of the key "ada" has 29 bytes, and the limit is 10; raise the limit or shorten the value
    "#);
    assert_snapshot!(refused(&place, "phones.csv --max-value 10 -o x.privet").mistake(), @r#"
    privet: phones.csv: line 2: the value has 42 bytes, and the limit is 10; raise the limit or shorten the value
    "#);
    place.build("phones.csv --key name --raw-value phone --max-value 5 -o x.privet");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let place = Place::with_rows();
    place.write("phones.txt", PHONES);
    std::fs::create_dir(place.path("directory")).unwrap();
    assert_snapshot!(refused(&place, "missing.csv -o x.privet").mistake(), @r#"
    privet: missing.csv: cannot open it: No such file or directory (os error 2)
    "#);
    assert_snapshot!(refused(&place, "phones.txt -o x.privet").mistake(), @r#"
    privet: phones.txt: its name does not tell its format; say which it has: csv, tsv, jsonl, parquet (--format)
    "#);
    assert_snapshot!(refused(&place, "phones.csv -o nowhere/x.privet").mistake(), @r#"
    privet: cannot write nowhere/x.privet: its directory does not exist
    "#);
    assert_snapshot!(refused(&place, "phones.csv -o directory").mistake(), @r#"
    privet: directory: this is a directory; name a file to write to
    "#);
    assert_snapshot!(refused(&place, "directory --format csv -o x.privet").mistake(), @r"
    privet: directory: it is a folder; name the files in it
    ");
}

#[test]
fn a_refused_build_leaves_the_table_that_was_there() {
    let place = Place::with_phones();
    let before = std::fs::read(place.path("phones.privet")).unwrap();
    place.write("phones.csv", "name,phone\nada,1\nada,2\n");
    refused(&place, "phones.csv --key name -o phones.privet");
    assert_eq!(std::fs::read(place.path("phones.privet")).unwrap(), before);
}

/// Tries every way to name the input a second time, including `-`.
#[test]
fn the_input_is_never_written_over() {
    let place = Place::with_rows();
    std::fs::hard_link(place.path("phones.csv"), place.path("hard.csv")).unwrap();
    std::fs::create_dir(place.path("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("phones.csv", place.path("soft.csv")).unwrap();
    let mut outputs = vec!["phones.csv", "./phones.csv", "folder/../phones.csv", "hard.csv"];
    outputs.extend(cfg!(unix).then_some("soft.csv"));
    for output in outputs {
        for force in ["", " --force"] {
            refused(&place, &format!("phones.csv --key name -o {output}{force}"))
                .says(2, "is the same file as phones.csv");
            assert_eq!(std::fs::read(place.path(output)).unwrap(), PHONES.as_bytes());
        }
    }
    #[cfg(unix)]
    {
        let mut command = place.command("build - --format csv --key name -o phones.csv --force");
        command.stdin(std::fs::File::open(place.path("phones.csv")).unwrap());
        Run(command.output().unwrap()).says(2, "is the same file as standard input");
        assert_eq!(std::fs::read(place.path("phones.csv")).unwrap(), PHONES.as_bytes());
    }
    place.run("keygen -o publisher.key");
    let key = std::fs::read(place.path("publisher.key")).unwrap();
    for reads in ["--publisher-key publisher.key ", ""] {
        refused(&place, &format!("phones.csv --key name {reads}-o publisher.key --force"));
        assert_eq!(std::fs::read(place.path("publisher.key")).unwrap(), key);
    }
}

#[test]
fn what_is_no_table_is_replaced_only_if_that_is_said() {
    let place = Place::with_rows();
    place.write("notes.txt", "bread, milk");
    assert_snapshot!(refused(&place, "phones.csv --key name -o notes.txt").mistake(), @r#"
    privet: notes.txt is there already, and it is not a table: choose another name, or replace it with --force
    "#);
    assert_eq!(std::fs::read(place.path("notes.txt")).unwrap(), b"bread, milk");
    // Even an empty file, or the beginning of a table, is only replaced with `--force`.
    place.build("phones.csv --key name -o table.privet");
    let table = std::fs::read(place.path("table.privet")).unwrap();
    for contents in [&b""[..], &table[..8], &table[..table.len() - 1]] {
        place.write("notes.txt", contents);
        let run = refused(&place, "phones.csv --key name -o notes.txt");
        assert!(run.stderr().contains("--force"), "{run}");
        assert_eq!(std::fs::read(place.path("notes.txt")).unwrap(), contents);
    }
    place.build("phones.csv --key name -o notes.txt --force");
    assert_eq!(place.run("inspect notes.txt --json").json()["keys"], 3);
    // A table may be replaced without `--force`.
    place.build("phones.csv --key name -o notes.txt");
}

#[test]
fn no_other_file_of_ours_is_replaced_by_a_table() {
    let place = Place::with_phones();
    place.run("setup pointproofs --size 8 -o string");
    let points = "setup points phones.privet --scheme finite-differences -o points";
    place.run(points).succeeds();
    place.begin_history("phones.privet");
    let set = "update phones.privet --publisher-key publisher.key --delete bob";
    assert_eq!(place.run(set).code(), 0);
    for output in ["string", "points", "publisher.key", "phones.privet.updates"] {
        let before = std::fs::read(place.path(output)).unwrap();
        let run = refused(&place, &format!("phones.csv --key name -o {output} --force"));
        assert!(run.stderr().contains("--force does not replace"), "{run}");
        assert_eq!(std::fs::read(place.path(output)).unwrap(), before);
    }
    // A table with updates, also where its log is not at its side. They may be in the log alone.
    for compacted in [false, true] {
        let log = [place.path("phones.privet.updates"), place.path("elsewhere")];
        if compacted {
            assert_eq!(place.run(&format!("{set} --compact")).code(), 0);
        }
        std::fs::rename(&log[0], &log[1]).unwrap();
        let run = refused(&place, "phones.csv --key name -o phones.privet");
        assert!(run.stderr().contains("a table with updates"), "{run}");
        std::fs::rename(&log[1], &log[0]).unwrap();
    }
    std::fs::remove_file(place.path("phones.privet.updates")).unwrap();
    place.build("phones.csv --key name -o phones.privet --force");
}

#[test]
fn quiet_says_nothing_of_what_is_built_and_tells_of_mistakes() {
    let place = Place::with_rows();
    let run = place.run("build phones.csv --key name -o phones.privet -q");
    assert_eq!((run.code(), run.stdout(), run.stderr()), (0, "", ""), "{run}");
    let run = place.run("build phones.csv --key nom -o other.privet --quiet");
    assert_eq!((run.code(), run.stdout()), (2, ""), "{run}");
    assert!(run.stderr().contains("there is no column"), "{run}");
}
