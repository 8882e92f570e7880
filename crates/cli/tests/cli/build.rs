//! `privet build`: what it reports, and that a refused input leaves nothing behind.

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
    let place = Place::new();
    place.write("phones.csv", PHONES);
    let report = place.run("build phones.csv --key name --key-map cuckoo -o phones.privet --json");
    assert_eq!((report.code(), &report.json()["key_map"]), (0, &"cuckoo".into()), "{report}");
    let report = place.run("build phones.csv --key name --key-map buckets -o phones.privet");
    assert!(report.stdout().contains("key map                buckets, "), "{report}");
    assert_snapshot!(refused(&place, "phones.csv --key-map cuckoo -o other.privet"), @r#"
    [exit 2]
    [stderr]
    error: the following required arguments were not provided:
      --key <COLUMN>

    Usage: privet build --output <FILE> --key <COLUMN> --key-map <KIND> <INPUT>

    For more information, try '--help'.
    "#);
}

#[test]
fn a_csv_file_becomes_a_table_by_key() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet"), @r#"
    [exit 0]
    [stdout]
    phones.privet built in [TIME]
      rows                   3
      records                3 of 38 B
      key map                buckets, 97.4 % full, 80 B downloaded by each client
      stash                  0 values, 0 B
      overhead               2.31 x the 84 B of values
      file size              4.11 KiB
      table id               [ID]
      digest                 [DIGEST]
    "#);
    assert_eq!(place.files(), ["phones.csv", "phones.privet"]);
    assert_snapshot!(place.run("build phones.csv --key name -o phones.privet --json"), @r#"
    [exit 0]
    [stdout]
    {"file":"phones.privet","rows":3,"keys":3,"records":3,"record_len":38,"path_len":0,"key_map":"buckets","multi":false,"parts":1,"undivided_record_len":null,"records_per_lookup":1,"load":0.9736842105263158,"stash_entries":0,"stash_bytes":0,"layout_bytes":80,"value_bytes":84,"overhead":2.3095238095238093,"duplicates_dropped":0,"file_bytes":4210,"table_id":"[ID]","epoch":0,"digest":"[DIGEST]","root":null,"publisher":null,"seconds":[TIME]}
    "#);
}

#[test]
fn a_json_lines_file_becomes_a_table_by_key() {
    let place = Place::new();
    place.write(
        "phones.jsonl",
        "{\"name\":\"ada\",\"phone\":1}\n{\"name\":\"bob\",\"phone\":[2,{}]}\n",
    );
    assert_snapshot!(place.run("build phones.jsonl --key name -o phones.privet"), @r#"
    [exit 0]
    [stdout]
    phones.privet built in [TIME]
      rows                   2
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
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(place.run("build phones.csv -o phones.privet"), @r#"
    [exit 0]
    [stdout]
    phones.privet built in [TIME]
      rows                   3
      records                3 of 43 B
      key map                none: records are looked up by row number, from 0
      overhead               1.08 x the 123 B of values
      file size              4.13 KiB
      table id               [ID]
      digest                 [DIGEST]
    "#);
}

#[test]
fn standard_input_needs_a_format() {
    let place = Place::new();
    assert_snapshot!(place.run_with_input("build - -o x.privet", PHONES.as_bytes()), @r#"
    [exit 2]
    [stderr]
    privet: standard input: say which format it has: csv, jsonl or parquet
    "#);
    assert_eq!(place.files(), Vec::<String>::new());
    let run = place
        .run_with_input("build - --format csv --key name -o x.privet --json", PHONES.as_bytes());
    assert_eq!(run.json()["rows"], 3);
}

#[test]
fn columns_of_the_value_may_be_chosen() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
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
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(refused(&place, "phones.csv --key nmae -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.csv: line 1: there is no column "nmae"; the columns are "name", "phone", "floor"; did you mean "name"?
    "#);
    assert_snapshot!(refused(&place, "phones.csv --key name --value phone,flor -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.csv: line 1: there is no column "flor"; the columns are "name", "phone", "floor"; did you mean "floor"?
    "#);
    assert_snapshot!(refused(&place, "phones.csv --key name --raw-value fone -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.csv: line 1: there is no column "fone"; the columns are "name", "phone", "floor"
    "#);
    place.write("phones.jsonl", "{\"name\":\"ada\",\"phone\":1}\n");
    assert_snapshot!(refused(&place, "phones.jsonl --key nmae -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.jsonl: line 1: there is no column "nmae"; the columns are "name", "phone"; did you mean "name"?
    "#);
}

#[test]
fn empty_inputs_are_refused() {
    let place = Place::new();
    place.write("empty.csv", "");
    place.write("header.csv", "name,phone\n");
    place.write("empty.jsonl", "\n");
    assert_snapshot!(refused(&place, "empty.csv -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: empty.csv: it is empty; a CSV file begins with a line of column names
    "#);
    assert_snapshot!(refused(&place, "header.csv --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: header.csv: it has no rows; a table needs at least one
    "#);
    assert_snapshot!(refused(&place, "empty.jsonl -o x.privet"), @r#"
    [exit 2]
    [stderr]
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
    assert_snapshot!(refused(&place, "latin.csv --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: latin.csv: line 3: byte 2 is not UTF-8; convert the file to UTF-8 first
    "#);
    assert_snapshot!(refused(&place, "ragged.csv --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: ragged.csv: line 3: this row has 1 cells and the header has 2 columns; is a comma unquoted or a quote missing?
    "#);
    assert_snapshot!(refused(&place, "latin.jsonl --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: latin.jsonl: line 2: byte 11 is not UTF-8; convert the file to UTF-8 first
    "#);
    assert_snapshot!(refused(&place, "broken.jsonl --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: broken.jsonl: line 2: column 8: not valid JSON: EOF while parsing a value
    "#);
    assert_snapshot!(refused(&place, "broken.jsonl --format parquet -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: broken.jsonl: this is no readable Parquet file: Parquet error: Invalid Parquet file. Corrupt footer
    "#);
}

#[test]
fn duplicate_keys_are_an_error_unless_one_is_chosen() {
    let place = Place::new();
    place.write("twice.csv", "name,phone\nada,1\nbob,2\nada,33\n");
    assert_snapshot!(refused(&place, "twice.csv --key name -o x.privet"), @r#"
    [exit 2]
    [stderr]
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
    assert_snapshot!(refused(&place, "twice.csv --key name --on-duplicate both -o x.privet"), @r#"
    [exit 2]
    [stderr]
    error: invalid value 'both' for '--on-duplicate <WHAT>'
      [possible values: error, first, last]

    For more information, try '--help'.
    "#);
}

#[test]
fn values_longer_than_asked_for_are_refused() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    assert_snapshot!(refused(&place, "phones.csv --key name --max-value 10 -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.csv: line 2: the value of the key "ada" has 29 bytes, and the limit is 10; raise the limit or shorten the value
    "#);
    assert_snapshot!(refused(&place, "phones.csv --max-value 10 -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.csv: line 2: the value has 42 bytes, and the limit is 10; raise the limit or shorten the value
    "#);
    place.build("phones.csv --key name --raw-value phone --max-value 5 -o x.privet");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.write("phones.txt", PHONES);
    std::fs::create_dir(place.path("directory")).unwrap();
    assert_snapshot!(refused(&place, "missing.csv -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: missing.csv: cannot open it: No such file or directory (os error 2)
    "#);
    assert_snapshot!(refused(&place, "phones.txt -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: phones.txt: its name does not tell its format; say which it has: csv, jsonl or parquet
    "#);
    assert_snapshot!(refused(&place, "phones.csv -o nowhere/x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: cannot write nowhere/x.privet: its directory does not exist
    "#);
    assert_snapshot!(refused(&place, "phones.csv -o directory"), @r#"
    [exit 2]
    [stderr]
    privet: directory: this is a directory; name a file to write to
    "#);
    assert_snapshot!(refused(&place, "directory --format csv -o x.privet"), @r#"
    [exit 2]
    [stderr]
    privet: directory: cannot open it: is a directory
    "#);
}

#[test]
fn a_refused_build_leaves_the_table_that_was_there() {
    let place = Place::with_phones();
    let before = std::fs::read(place.path("phones.privet")).unwrap();
    place.write("phones.csv", "name,phone\nada,1\nada,2\n");
    refused(&place, "phones.csv --key name -o phones.privet");
    assert_eq!(std::fs::read(place.path("phones.privet")).unwrap(), before);
}

/// Every way to name the input again, `-` among them.
#[test]
fn the_input_is_never_written_over() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    std::fs::hard_link(place.path("phones.csv"), place.path("hard.csv")).unwrap();
    std::fs::create_dir(place.path("folder")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("phones.csv", place.path("soft.csv")).unwrap();
    let mut outputs = vec!["phones.csv", "./phones.csv", "folder/../phones.csv", "hard.csv"];
    outputs.extend(cfg!(unix).then_some("soft.csv"));
    for output in outputs {
        for force in ["", " --force"] {
            let run = refused(&place, &format!("phones.csv --key name -o {output}{force}"));
            assert_eq!(run.code(), 2, "{run}");
            assert!(run.stderr().contains("is the same file as phones.csv"), "{run}");
            assert_eq!(std::fs::read(place.path(output)).unwrap(), PHONES.as_bytes());
        }
    }
    #[cfg(unix)]
    {
        let mut command = place.command("build - --format csv --key name -o phones.csv --force");
        command.stdin(std::fs::File::open(place.path("phones.csv")).unwrap());
        let run = Run(command.output().unwrap());
        assert_eq!(run.code(), 2, "{run}");
        assert!(run.stderr().contains("is the same file as standard input"), "{run}");
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
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.write("notes.txt", "bread, milk");
    assert_snapshot!(refused(&place, "phones.csv --key name -o notes.txt"), @r#"
    [exit 2]
    [stderr]
    privet: notes.txt is there already, and is no table: choose another name, or replace it with --force
    "#);
    assert_eq!(std::fs::read(place.path("notes.txt")).unwrap(), b"bread, milk");
    // Not even an empty file, or one that only begins as a table does.
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
    // A table is built anew without a word.
    place.build("phones.csv --key name -o notes.txt");
}

#[test]
fn no_other_file_of_ours_is_replaced_by_a_table() {
    let place = Place::with_phones();
    place.run("setup pointproofs --size 8 -o string");
    let points = "setup points phones.privet --scheme finite-differences -o points";
    let made = place.run(points);
    assert_eq!(made.code(), 0, "{made}");
    place.run("keygen -o key");
    let set = "update phones.privet --publisher-key key --delete bob";
    assert_eq!(place.run(set).code(), 0);
    for output in ["string", "points", "key", "phones.privet.log"] {
        let before = std::fs::read(place.path(output)).unwrap();
        let run = refused(&place, &format!("phones.csv --key name -o {output} --force"));
        assert!(run.stderr().contains("--force does not replace"), "{run}");
        assert_eq!(std::fs::read(place.path(output)).unwrap(), before);
    }
    // A table with updates, also where its log is not at its side.
    assert_eq!(place.run(&format!("{set} --compact")).code(), 0);
    std::fs::rename(place.path("phones.privet.log"), place.path("elsewhere")).unwrap();
    let run = refused(&place, "phones.csv --key name -o phones.privet");
    assert!(run.stderr().contains("a table with updates"), "{run}");
    place.build("phones.csv --key name -o phones.privet --force");
}

#[test]
fn quiet_says_nothing_of_what_is_built_and_tells_of_mistakes() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    let run = place.run("build phones.csv --key name -o phones.privet -q");
    assert_eq!((run.code(), run.stdout(), run.stderr()), (0, "", ""), "{run}");
    let run = place.run("build phones.csv --key nom -o other.privet --quiet");
    assert_eq!((run.code(), run.stdout()), (2, ""), "{run}");
    assert!(run.stderr().contains("there is no column"), "{run}");
}
