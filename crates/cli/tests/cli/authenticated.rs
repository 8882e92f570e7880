//! Authenticated tables: what `build` and `inspect` print about them, and that `get` accepts no
//! record that does not belong to the root.

use crate::place::{Place, Run};
use crate::served::Served;
use insta::assert_snapshot;
use privet_table::snapshot::{Snapshot, SnapshotPlan, SnapshotWriter};

/// A place with the phone book as an authenticated table, and its root.
fn with_phones(arguments: &str) -> (Place, String) {
    let place = Place::with_rows();
    let built =
        place.build(&format!("phones.csv --authenticate -o phones.privet --json {arguments}"));
    let root = built.json()["root"].as_str().unwrap().to_owned();
    (place, root)
}

fn get(place: &Place, served: &Served, arguments: &str) -> Run {
    place.run(&format!("get {} {arguments}", served.url))
}

/// Rewrites `phones.privet` as a lying server could. The layout and so the root stay, the records
/// differ, and the digest fits the new records.
fn forge(place: &Place, forge: impl Fn(&mut Vec<Vec<u8>>)) {
    let path = place.path("phones.privet");
    let true_table = Snapshot::open(&path).unwrap();
    let identity = true_table.identity();
    let mut records: Vec<Vec<u8>> = (0..identity.shape.records())
        .map(|index| true_table.view().record(index).unwrap().to_vec())
        .collect();
    forge(&mut records);
    let plan = SnapshotPlan {
        id: identity.id,
        epoch: identity.epoch,
        shape: identity.shape,
        layout: true_table.layout().clone(),
        key_column: true_table.header().key_column.clone(),
        until_column: None,
        value_form: true_table.header().value_form.clone(),
        mark: None,
    };
    drop(true_table);
    let mut writer = SnapshotWriter::create(&path, plan).unwrap();
    for record in records {
        writer.write_record(&record).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_build_says_what_the_root_is_and_so_does_inspect() {
    let place = Place::with_rows();
    // Almost every random seed gives this size, as `Place::with_phones` says.
    let build = || place.run("build phones.csv --key name --authenticate -o phones.privet");
    let mut built = std::iter::repeat_with(build).take(20);
    let built = built.find(|built| built.stdout().contains(" 3 of 102 B")).unwrap();
    assert_snapshot!(built, @r#"
    [exit 0]
    [stdout]
    phones.privet built in [TIME]
      rows                   3
      keys                   3, 3 B long: lower-case letters
      such as                "ada", "bob", "eve"
      records                3 of 102 B, of which the path takes 64 B
      key map                buckets, 97.4 % full, 139 B downloaded by each client
      stash                  0 values, 0 B
      overhead               5.30 x the 84 B of values
      file size              4.30 KiB
      table id               [ID]
      digest                 [DIGEST]
      root                   [DIGEST]
    "#);
    assert_snapshot!(place.run("inspect phones.privet --verify").printed(), @r#"
    phones.privet
      table id               [ID]
      epoch                  0
      records                3 of 102 B, of which the path takes 64 B
      key map                buckets, 3 keys from column "name"
      keys                   not in the file, which has a tag for each; look one up by `privet get`
      load                   97.4 %
      stash                  0 values, 0 B
      value                  json: phone (text), floor (text)
      record layout          139 B
      file size              4.30 KiB
      to serve it            no memory by download: clients get it from the file
      digest                 [DIGEST]
      root                   [DIGEST]
      created by             privet [VERSION]
      verified               yes, every byte
    "#);
    let report = place.build("phones.csv --key name --authenticate -o phones.privet --json").json();
    assert_eq!((&report["record_len"], &report["path_len"]), (&102.into(), &64.into()));
    let inspected = place.run("inspect phones.privet --json").json();
    assert_eq!(inspected["root"], report["root"]);
    assert_eq!(inspected["path_len"], 64);
    // A new build draws a new seed, so the key map and the root differ.
    let again = place.build("phones.csv --key name --authenticate -o phones.privet --json").json();
    assert_ne!(again["root"], report["root"]);
}

#[test]
fn what_is_verified_against_the_root_is_said() {
    let (place, root) = with_phones("--raw-value phone");
    let served = Served::start(&place, "phones.privet --no-cache --scheme download");
    assert_snapshot!(get(&place, &served, &format!("-i 0 -i 2 -v --root {root}")), @r#"
    [exit 0]
    [stdout]
    0	555-1
    2	5,5
    [stderr]
    privet: every record is verified against the root [DIGEST]
    privet: table phones at epoch 0, 3 records of 70 B, digest [DIGEST], scheme download; the server runs privet [VERSION]
    privet: ready after [TIME] (218 B fetched); 2 lookups, 0 B sent and 0 B received, query [TIME] and recover [TIME] each
    "#);
}

#[test]
fn a_table_with_another_root_is_refused_and_not_pinned() {
    let (place, root) = with_phones("--key name");
    let served = Served::start(&place, "phones.privet --no-cache --scheme simplepir");
    let other = format!("{:064x}", 7);
    assert_snapshot!(get(&place, &served, &format!("-k ada --root {other}")), @r#"
    [exit 4]
    [stderr]
    privet: table phones does not have the root that was given: it is another table, another build or another version, or was built without authentication, or is not what its owner built; nothing was asked. Ask its owner which root it has now (--root)
    "#);
    let state = place.path(".local/state/privet");
    let state = place.run(&format!("state show {}", state.display()));
    assert!(state.stdout().contains("0 tables from 0 servers"), "{state}");
    assert_eq!(get(&place, &served, &format!("-k ada --root {root}")).code(), 0);

    place.build("phones.csv --key name -o plain.privet");
    let served = Served::start(&place, "plain.privet --no-cache --scheme simplepir");
    assert_snapshot!(get(&place, &served, &format!("-k ada --root {root}")), @r#"
    [exit 4]
    [stderr]
    privet: table plain does not have the root that was given: it is another table, another build or another version, or was built without authentication, or is not what its owner built; nothing was asked. Ask its owner which root it has now (--root)
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --root 1234").mistake(), @r#"
    error: invalid value '1234' for '--root <HEX>': a root has 64 hexadecimal digits (`privet build --authenticate` and `privet inspect` print it)

    For more information, try '--help'.
    "#);
}

/// One record of three is damaged. Lookups that do not need it are printed, the other one fails,
/// and all are sent.
#[test]
fn a_record_that_does_not_belong_to_the_root_is_not_believed() {
    let (place, root) = with_phones("--raw-value phone");
    forge(&place, |records| records[1][4] ^= 1);
    // The file is whole, but checking all of it still finds the record.
    place.run("inspect phones.privet --verify").says(4, "record 1 does not belong to its root");
    let served = Served::start(&place, "phones.privet --no-cache --scheme simplepir");
    let known = get(&place, &served, &format!("-i 0 -i 1 -i 2 --root {root}"));
    assert_snapshot!(known, @r#"
    [exit 4]
    [stdout]
    0	555-1
    2	5,5
    [stderr]
    privet: the server answered with a record that does not belong to the table's root: it does not tell the truth, or the table is damaged there. Ask those who run the server. Do not look the same up again: that may tell the server that this record was wanted
    "#);
    assert_eq!(get(&place, &served, "-i 0 -i 1 -i 2").to_string(), known.to_string());
    let second = Served::start(&place, "phones.privet --no-cache --scheme dpf");
    let first = Served::start(&place, "phones.privet --no-cache --scheme dpf");
    let both = format!("get {} {} -i 1 --root {root}", first.url, second.url);
    assert_snapshot!(place.run(&both), @r#"
    [exit 4]
    [stderr]
    privet: the servers answered with a record that does not belong to the table's root: one of them does not tell the truth, or the table is damaged there. Ask those who run the servers. Do not look the same up again: that may tell the servers that this record was wanted
    "#);
}

#[test]
fn a_true_record_in_the_wrong_place_is_not_believed() {
    let (place, root) = with_phones("--key name");
    forge(&place, |records| records.rotate_left(1));
    let served = Served::start(&place, "phones.privet --no-cache --scheme simplepir");
    for key in ["ada", "bob", "nobody"] {
        let run = get(&place, &served, &format!("-k {key} --root {root}"));
        assert_eq!((run.code(), run.stdout()), (4, ""), "{run}");
    }
}
