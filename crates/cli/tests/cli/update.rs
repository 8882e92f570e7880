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
        place.run(&format!("{other} {what}")).says(2, "the table's publisher is");
    }
    // A log with one changed byte is not served.
    let mut log = std::fs::read(place.path("phones.privet.updates")).unwrap();
    *log.last_mut().unwrap() ^= 1;
    place.write("phones.privet.updates", log);
    place
        .run("serve phones.privet --no-cache --listen 127.0.0.1:0")
        .says(4, "phones.privet.updates");
}

#[test]
fn what_cannot_be_updated_is_refused_and_changes_nothing() {
    let place = with_key("buckets");
    let log = std::fs::read(place.path("phones.privet.updates")).unwrap();
    assert_snapshot!(place.run(&format!("{UPDATE} --set ada=plain")).mistake(), @r#"
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
        place.run(&format!("{authenticated} {what}")).says(2, "build it anew");
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
        place.run(&format!("{UPDATE} --set {other} --replace")).succeeds();
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
        short(flags).succeeds();
        let full = r#"--set ada={"phone":"555-1","floor":"3"}"#;
        place.run(&format!("{UPDATE} {full}")).succeeds();
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
        place.run(&short).says(2, "\"floor\"");
        place.run(&format!("{short} --replace")).succeeds();
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
        place.run(&format!("{UPDATE} {refused}")).says(2, " in the table, and would be ");
    }
    for taken in [r#"--set a={"tags":[1],"of":{"y":[]}}"#, "--from tags.csv --replace"] {
        place.run(&format!("{UPDATE} {taken}")).succeeds();
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
        place.run(&format!("{UPDATE} --set ada={wrong}")).says(2, "\"phone\"");
    }
    place.run(&format!(r#"{UPDATE} --set ada={{"phone":"1"}}"#)).succeeds();
}

#[test]
fn a_history_is_neither_built_over_nor_begun_again() {
    let place = with_key("buckets");
    place.run(&format!("{UPDATE} --delete bob --compact")).succeeds();
    let table = std::fs::read(place.path("phones.privet")).unwrap();
    for key in ["", "--publisher-key publisher.key"] {
        place
            .run(&format!("build phones.csv --key name {key} -o phones.privet"))
            .says(2, "phones.privet.updates");
    }
    std::fs::rename(place.path("phones.privet.updates"), place.path("elsewhere")).unwrap();
    place.run(&format!("{UPDATE} --delete ada")).says(3, "bring it back");
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
    place.run(&format!("serve {other} --listen 127.0.0.1:0")).says(4, publisher);
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
        update(short).says(2, "\"name\"");
    }
    place.write("other.csv", "from,to,rate,name\n10,98,26,high\n");
    update("--from other.csv").says(2, "the table has no such range");
}
