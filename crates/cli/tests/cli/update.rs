//! `privet keygen`, `privet update`, and tables served with their updates.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;

/// A place with a phone book that has a key map of this kind, and a publisher's key.
fn with_key(kind: &str) -> Place {
    let place = Place::with_phones();
    place.build(&format!("phones.csv --key name --key-map {kind} -o phones.privet"));
    place.begin_history("phones.privet");
    place
}

const UPDATE: &str = "update phones.privet --publisher-key publisher.key";

/// What a server of the table returns for some keys.
fn look_up(place: &Place, scheme: &str, keys: &str) -> (i32, String) {
    let served = Served::start(place, &format!("phones.privet --no-cache --scheme {scheme}"));
    let run = place.run(&format!("get {} {keys}", served.url));
    (run.code(), run.stdout().to_owned())
}

#[test]
fn a_key_is_made_once_and_for_its_owner_alone() {
    let place = Place::new();
    let report = place.run("keygen -o publisher.key --json").json();
    assert_eq!(report["publisher"].as_str().unwrap().len(), 64);
    assert_eq!(place.run("keygen -o publisher.key").code(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("publisher.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn keys_are_set_and_deleted_and_served_as_they_are_then() {
    for kind in ["buckets", "cuckoo"] {
        let place = with_key(kind);
        let set =
            r#"--set ada={"phone":"555-9","floor":"9"} --set zoe={"phone":"555-8","floor":"8"}"#;
        let report =
            place.run(&format!("{UPDATE} {set} --delete bob --delete nobody --json")).json();
        assert_eq!(report["epoch"], 1);
        for (count, expected) in [("inserted", 1), ("replaced", 1), ("deleted", 1), ("absent", 1)] {
            assert_eq!(report[count], expected, "{count} of {report}");
        }
        let expected = "ada\t{\"phone\":\"555-9\",\"floor\":\"9\"}\nzoe\t{\"phone\":\"555-8\",\"floor\":\"8\"}\n";
        for scheme in ["simplepir", "download"] {
            let found = look_up(&place, scheme, "-k ada -k zoe -k bob");
            assert_eq!(found, (1, expected.to_owned()), "{kind}, {scheme}");
        }
        // The same update again changes nothing. Other rows make the next epoch.
        let again = place.run(&format!("{UPDATE} {set} --json")).json();
        assert_eq!((&again["epoch"], &again["records_changed"]), (&1.into(), &0.into()));
        place.write("more.csv", "name,phone,floor\nbob,555-7,7\nada,555-6,6\n");
        place.write("gone", "zoe\n");
        let next = place.run(&format!("{UPDATE} --from more.csv --delete-from gone --json")).json();
        assert_eq!(
            (&next["epoch"], &next["inserted"], &next["deleted"]),
            (&2.into(), &1.into(), &1.into())
        );
        let found = look_up(&place, "dummy-subsets", "-k bob -k ada -k zoe");
        let expected = "bob\t{\"phone\":\"555-7\",\"floor\":\"7\"}\nada\t{\"phone\":\"555-6\",\"floor\":\"6\"}\n";
        assert_eq!(found, (1, expected.to_owned()), "{kind}");
        let shown = place.run("inspect phones.privet --verify --json").json();
        assert_eq!((&shown["epoch"], &shown["updates"]["epoch"]), (&0.into(), &2.into()));

        let compacted = place.run(&format!("{UPDATE} --compact --json")).json();
        assert_eq!((&compacted["epoch"], &compacted["compacted"]), (&2.into(), &true.into()));
        assert_eq!(compacted["digest"], next["digest"]);
        assert_eq!(compacted["log_bytes"], 0, "the table file has it all");
        assert_eq!(look_up(&place, "download", "-k bob -k ada -k zoe"), (1, expected.to_owned()));
        let shown = place.run("inspect phones.privet --verify --json").json();
        assert_eq!((&shown["epoch"], &shown["digest"]), (&2.into(), &next["digest"]));
    }
}

#[test]
fn rows_are_set_and_appended_in_a_table_by_number() {
    let place = Place::new();
    place.write("rows.csv", "value\naa\nbb\ncc\n");
    place.build("rows.csv --raw-value value -o phones.privet");
    place.begin_history("phones.privet");
    place.write("more.csv", "value\ndd\n");
    let report =
        place.run(&format!("{UPDATE} --set 1=xx --set 3=yy --from more.csv --json")).json();
    assert_eq!((&report["records"], &report["records_changed"]), (&4.into(), &2.into()));
    let served = Served::start(&place, "phones.privet --no-cache --scheme simplepir");
    let run = place.run(&format!("get {} --index 0 --index 1 --index 3", served.url));
    assert_eq!((run.code(), run.stdout()), (0, "0\taa\n1\txx\n3\tyy\n"), "{run}");
    for refused in ["--set 9=xx", "--set 1=toolong", "--set one=xx", "--delete aa"] {
        let run = place.run(&format!("{UPDATE} {refused}"));
        assert_eq!(run.code(), 2, "{run}");
    }
}

#[test]
fn updates_that_are_not_the_publishers_are_refused() {
    let place = with_key("cuckoo");
    place.run(&format!("{UPDATE} --delete bob"));
    place.run("keygen -o other.key");
    let other = UPDATE.replace("publisher.key", "other.key");
    for what in ["--delete ada", "--delete nobody", "--compact"] {
        let refused = place.run(&format!("{other} {what}"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("the table's publisher is"), "{refused}");
    }
    // A log with one changed byte is not served.
    let mut log = std::fs::read(place.path("phones.privet.updates")).unwrap();
    *log.last_mut().unwrap() ^= 1;
    place.write("phones.privet.updates", log);
    let refused = place.run("serve phones.privet --no-cache --listen 127.0.0.1:0");
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(refused.stderr().contains("phones.privet.updates"), "{refused}");
}

#[test]
fn what_cannot_be_updated_is_refused_and_changes_nothing() {
    let place = with_key("buckets");
    let log = std::fs::read(place.path("phones.privet.updates")).unwrap();
    assert_snapshot!(place.run(&format!("{UPDATE} --set ada=plain")).refusal(), @r#"
    [exit 2]
    privet: the key "ada": the values of this table are JSON objects: write KEY='{"column":"value"}'
    "#);
    for wrong in ["", "--set =plain", "--set ada", "--delete nobody", "--compact"] {
        let run = place.run(&format!("{UPDATE} {wrong}"));
        assert_eq!(run.code(), if wrong.starts_with("--set") || wrong.is_empty() { 2 } else { 0 });
    }
    let unknown = place.run(&format!(r#"{UPDATE} --set ada={{"fax":"1"}}"#));
    assert_eq!(unknown.code(), 2, "{unknown}");
    assert_eq!(std::fs::read(place.path("phones.privet.updates")).unwrap(), log);
    place.build("phones.csv --key name --authenticate -o authenticated.privet");
    let authenticated = UPDATE.replace("phones.privet", "authenticated.privet");
    for what in ["--delete ada", "--begin-history"] {
        let refused = place.run(&format!("{authenticated} {what}"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("build it anew"), "{refused}");
    }
    assert!(!place.path("authenticated.privet.updates").exists());
}

#[test]
fn columns_are_not_lost_unless_that_is_said() {
    let place = with_key("buckets");
    let short = |flags: &str| place.run(&format!(r#"{UPDATE} --set ada={{"phone":"1"}} {flags}"#));
    assert_snapshot!(short("").refusal(), @r#"
    [exit 2]
    privet: the key "ada": the values in the table have "floor" too, and this one has not: give all of their columns (--replace)
    "#);
    // A new key has the same columns, and none has more.
    for other in [r#"new={"phone":"1"}"#, r#"bob={"phone":"1","floor":"2","fax":"3"}"#] {
        let refused = place.run(&format!("{UPDATE} --set {other}"));
        assert_eq!(refused.code(), 2, "{refused}");
        let replaced = place.run(&format!("{UPDATE} --set {other} --replace"));
        assert_eq!(replaced.code(), 0, "{replaced}");
    }
    // The same holds for a file with fixed columns.
    place.write("short.csv", "name,phone\nzoe,1\nada,2\n");
    assert_snapshot!(place.run(&format!("{UPDATE} --from short.csv")).refusal(), @r#"
    [exit 2]
    privet: short.csv: line 1: there is no column "floor"; the columns are "name", "phone" (--replace)
    "#);
    place.write("short.jsonl", "{\"name\":\"eve\",\"phone\":\"2\"}\n");
    let lines = place.run(&format!("{UPDATE} --from short.jsonl"));
    assert_eq!(lines.code(), 2, "{lines}");
    // Columns may go if the flag allows it.
    for flags in ["--replace", "--replace --from short.csv"] {
        let replaced = short(flags);
        assert_eq!(replaced.code(), 0, "{replaced}");
        let full = r#"--set ada={"phone":"555-1","floor":"3"}"#;
        let full = place.run(&format!("{UPDATE} {full}"));
        assert_eq!(full.code(), 0, "{full}");
    }
}

#[test]
fn of_several_values_or_rows_no_column_is_lost_either() {
    let place = Place::new();
    place.write("phones.csv", "name,phone,floor\nada,1,1\nada,2,22\n");
    for key in ["--key name --multi", ""] {
        place.build(&format!("phones.csv {key} -o phones.privet"));
        place.begin_history("phones.privet");
        let key = if key.is_empty() { "1" } else { "ada" };
        let short = format!(r#"{UPDATE} --set {key}={{"phone":"3"}}"#);
        let refused = place.run(&short);
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("\"floor\""), "{refused}");
        let replaced = place.run(&format!("{short} --replace"));
        assert_eq!(replaced.code(), 0, "{replaced}");
        for file in ["phones.privet", "phones.privet.updates"] {
            std::fs::remove_file(place.path(file)).unwrap();
        }
    }
}

/// A table from JSON Lines does not say what its columns are; the key's present value does.
#[test]
fn a_list_or_an_object_does_not_become_text_unless_that_is_said() {
    let place = Place::new();
    place.write("rows.jsonl", r#"{"k":"a","tags":["x"],"of":{"x":1}}"#);
    place.build("rows.jsonl --key k --value tags --value of -o phones.privet");
    place.begin_history("phones.privet");
    place.write("tags.csv", "k,tags,of\na,x,y\n");
    let texts = [
        r#"--set a={"tags":"x","of":{}}"#,
        r#"--set a={"tags":{},"of":{}}"#,
        r#"--set a={"tags":[],"of":[]}"#,
        "--from tags.csv",
    ];
    for refused in texts {
        let run = place.run(&format!("{UPDATE} {refused}"));
        assert_eq!(run.code(), 2, "{run}");
        assert!(run.stderr().contains(" in the table, and would be "), "{run}");
    }
    for taken in [r#"--set a={"tags":[1],"of":{"y":[]}}"#, "--from tags.csv --replace"] {
        let run = place.run(&format!("{UPDATE} {taken}"));
        assert_eq!(run.code(), 0, "{run}");
    }
    for flags in ["", " --replace"] {
        let empty = place.run(&format!("{UPDATE} --set new={{}}{flags}")).refusal();
        assert!(empty.contains(r#"give it at least one of "tags", "of""#), "{empty}");
    }
}

#[test]
fn fields_that_the_table_has_no_column_for_are_refused() {
    let place = Place::with_phones();
    place.build("phones.csv --key name --value phone -o phones.privet");
    place.begin_history("phones.privet");
    for wrong in [r#"{"fone":"1"}"#, r#"{"phone":"1","floor":"2"}"#, "{}"] {
        let refused = place.run(&format!("{UPDATE} --set ada={wrong}"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("\"phone\""), "{refused}");
    }
    let set = place.run(&format!(r#"{UPDATE} --set ada={{"phone":"1"}}"#));
    assert_eq!(set.code(), 0, "{set}");
}

#[test]
fn a_history_is_neither_built_over_nor_begun_again() {
    let place = with_key("buckets");
    let made = place.run(&format!("{UPDATE} --delete bob --compact"));
    assert_eq!(made.code(), 0, "{made}");
    let table = std::fs::read(place.path("phones.privet")).unwrap();
    for key in ["", "--publisher-key publisher.key"] {
        let refused = place.run(&format!("build phones.csv --key name {key} -o phones.privet"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("phones.privet.updates"), "{refused}");
    }
    std::fs::rename(place.path("phones.privet.updates"), place.path("elsewhere")).unwrap();
    let refused = place.run(&format!("{UPDATE} --delete ada"));
    assert_eq!(refused.code(), 3, "{refused}");
    assert!(refused.stderr().contains("bring it back"), "{refused}");
    assert!(!place.path("phones.privet.updates").exists());
    assert_eq!(std::fs::read(place.path("phones.privet")).unwrap(), table);
}

#[test]
fn a_server_may_be_told_whose_updates_it_serves() {
    let place = with_key("buckets");
    let made = place.run(&format!("{UPDATE} --delete bob --json")).json();
    let publisher = made["publisher"].as_str().unwrap();
    let other = place.run("keygen -o other.key --json").json();
    let serve = |publisher: &str| format!("phones.privet --no-cache --publisher {publisher}");
    drop(Served::start(&place, &serve(publisher)));
    let other = serve(other["publisher"].as_str().unwrap());
    let refused = place.run(&format!("serve {other} --listen 127.0.0.1:0"));
    assert_eq!(refused.code(), 4, "{refused}");
    assert!(refused.stderr().contains(publisher), "{refused}");
}

#[test]
fn keygen_and_update_explain_themselves() {
    let place = Place::new();
    assert_snapshot!(place.run("keygen --help").stdout(), @r#"
    Make the key with which a table's owner signs its updates

    Usage: privet keygen [OPTIONS] --output <FILE>

    Options:
      -o, --output <FILE>
              The file to write the secret key to.

              Only its owner can read it, and an existing file is never replaced.

          --next
              Make a next key: it signs nothing before the table is handed on, and can stay offline.

              What is printed is its digest, for `privet build --next-key`.

          --json
              Print as JSON

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      Make the key, and print who signs with it:
        privet keygen -o publisher.key

      Make the key that will hand tables on, and print its digest:
        privet keygen --next -o next.key

      The same for a script:
        privet keygen -o publisher.key --json
    "#);
    assert_snapshot!(place.run("update --help").stdout(), @r#"
    Set and delete keys of a table: the next of its signed updates

    Usage: privet update [OPTIONS] --publisher-key <FILE> <TABLE>

    Arguments:
      <TABLE>
              The table file

    Options:
          --publisher-key <FILE>
              The secret key to sign with, as `privet keygen` makes it.

              The table must have been built with it (`privet build --publisher-key`), or see
              --begin-history.

          --set <KEY=VALUE>
              Give a key this value.

              A JSON object of all of the value's columns, or the value itself for a table built with
              --raw-value. In a table by row number, KEY is the number of a row. In a table of several
              values (--multi) this is the key's only value then, and --set again with the same key adds
              another. KEY ends at the first =; keys that have one in them go through --from, and keys
              in base64 go without their padding.

          --delete <KEY>
              Remove a key and its value, or all of its values

          --from <FILE>
              Set the key of each row of a CSV, JSON Lines or Parquet file.

              With the columns of the file that the table was built from. In a table by row number,
              append the rows. In a table of several values, the rows of a key in this file are all the
              values that it has then.

          --replace-with <FILE>
              Make the table hold the rows of a file, and nothing else.

              For lists that come out whole. Keys that the file does not have are removed, and equal
              values change nothing. The difference is signed as one epoch, or as several if it is
              large. A table of ranges takes the file's ranges. Rows of a table by row number can become
              more, but not fewer. If the table cannot take all rows, it stays as it is.

          --on-duplicate <WHAT>
              What to do with a key that occurs again in the file of --replace-with, as for `privet
              build`

              Possible values:
              - error: Stop and name the key and its lines
              - first: Keep the first row
              - last:  Keep the last row

              [default: error]

          --nested
              Ranges in the file of --replace-with may lie in one another, as for `privet build`, and in
              the table from then on

          --replace
              Let values have other columns than the table's, or columns of other types

              Without it, each new value must have the columns that the table was built with, and their
              types. In a table that was built from JSON Lines, rows may differ; there a value is
              refused only if it leaves out columns that the key's present value has, or changes their
              types.

          --delete-from <FILE>
              Remove the keys in a file, one on each line; `-` for standard input

          --compact [<PERCENT>]
              Afterwards replace the table file by one with all changes.

              If those that it does not have yet have grown to that percentage of it; 0: in any case.
              The log then keeps the last epochs, up to a quarter of the table file, for clients that
              are behind.

          --begin-history
              Sign a table for the first time that was built without --publisher-key

              Clients that know the table refuse it from then on, with exit code 4, until their users
              type `privet get --accept-new-table`. Also for a table whose log is lost for good: what is
              left in its file goes on as another table, and clients refuse that in the same way.

          --hand-over-to <FILE>
              Have another key sign the table's updates from now on.

              It is the next key that the table names, or any if it names none. Clients follow, and keep
              their hints. The key in --publisher-key signs this, and nothing afterwards.

          --next-key <DIGEST>
              The digest of the publisher's next key from now on, which `privet keygen --next` prints

          --dry-run
              Say what would change, and whether it fits, and sign nothing

          --json
              Print the report as JSON

      -h, --help
              Print help (see a summary with '-h')

    How files of rows are read:
          --format <FORMAT>
              Format of the files; default: by their names.

              Input that gzip or zstd has compressed is recognised by its content: big.csv.gz is CSV. So
              is UTF-16. What another program unpacks comes through standard input: `xz -dc big.csv.xz |
              privet build - --format csv -o big.privet`.

              Possible values:
              - csv:     Comma-separated values, the first line with the names of the columns
              - tsv:     The same with tabs
              - jsonl:   JSON Lines: one object on each line; or one JSON array of objects
              - parquet: Apache Parquet

          --delimiter <CHARACTER>
              What separates the cells of a row in CSV; default: a comma, in TSV a tab.

              A single character, such as `;` or `|` (in quotes, for the shell), or `tab`, or
              `whitespace`: any number of spaces and tabs. A first line `sep=;`, as spreadsheets write
              it, says it too.

          --no-quotes
              Quotation marks in CSV are characters like any other.

              As in most dumps of databases with tabs. Without it, a cell that begins with one ends with
              one.

          --no-header
              The first line of CSV is a row, and not the names of the columns.

              Columns then are called by their numbers, from 1, or as --columns says.

          --columns <NAME,…>
              Names of the columns, where there is no header

          --spread
              A row of CSV with more cells than columns is several rows.

              They differ in their last column, which has one of the further cells in each: a line of a
              hosts file is a row for each of its names.

          --comment <PREFIX>
              Leave out lines that begin with this, such as `#` or `//`.

              With `--delimiter whitespace` also the rest of a line.

          --skip-lines <N>
              Skip the first N lines, before the header

          --types <TYPES>
              What columns of CSV are in JSON: `auto`, or COLUMN=number|boolean|text,…; default: text.

              A number is kept as it is written, and an empty cell becomes null. With `auto` the inputs
              are read twice, and a column is a column of numbers if no program writes or reads any of
              them otherwise (so 007, 1.50 and long numbers stay text), or of booleans if it has true
              and false alone. Both together: `auto,zip=text`. An update knows the types of the table.

          --on-empty-key <WHAT>
              What to do with a row that has no key.

              It has none where the cell is empty or null.

              Possible values:
              - error: Stop and name the line
              - skip:  Leave the row out; the report says how many there were

              [default: error]

    Deletions come first, then rows of files, then single keys, each in the order given. In a table of
    several values, what a file or --set has of a key replaces all that it had before. All together are
    one epoch: it is made whole or not at all, signed, and appended to TABLE.updates. The table file
    notes how far that reaches; its records stay until the log is folded into it (--compact).

    Examples:
      Change one key and delete another:
        privet update t.privet --publisher-key p.key --set 'Kenya={"population":"49"}' --delete Peru

      Set the keys of a file's rows, and fold the log into the table where it has grown:
        privet update t.privet --publisher-key p.key --from changes.csv --compact 20

      Follow a list that comes out whole every week:
        privet update t.privet --publisher-key p.key --replace-with week2.csv

      Have another key sign from now on:
        privet update t.privet --publisher-key p.key --hand-over-to q.key
    "#);
}

/// Rows name the bounds of their ranges, as in the file that the table was built from.
#[test]
fn the_values_of_ranges_are_updated_and_their_bounds_are_not() {
    let place = Place::new();
    place.write("rates.csv", "from,to,rate,name\n0,9,10,low\n10,99,20,high\n");
    place.build("rates.csv --range-from from --range-to to --key-map cuckoo --parts 2 -o t.privet");
    place.begin_history("t.privet");
    let update =
        |rest: &str| place.run(&format!("update t.privet --publisher-key publisher.key {rest}"));

    place.write("new.csv", "from,to,rate,name\n10,99,25,high\n");
    let updated = update("--from new.csv --json").json();
    assert_eq!((&updated["epoch"], &updated["replaced"]), (&1.into(), &1.into()));
    // A lost column is noticed, however the range is named.
    place.write("short.csv", "from,to,rate\n10,99,26\n");
    for short in ["--from short.csv", "--set 50={\"rate\":\"26\"}"] {
        let refused = update(short);
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("\"name\""), "{refused}");
    }
    place.write("other.csv", "from,to,rate,name\n10,98,26,high\n");
    let refused = update("--from other.csv");
    assert_eq!(refused.code(), 2, "{refused}");
    assert!(refused.stderr().contains("the table has no such range"), "{refused}");
}
