//! `privet inspect`: whole files, damaged files, and files of other kinds.

use crate::place::Place;
use insta::assert_snapshot;

#[test]
fn a_table_is_described() {
    let place = Place::with_phones();
    assert_snapshot!(place.run("inspect phones.privet").printed(), @r#"
    phones.privet
      table id               [ID]
      epoch                  0
      records                3 of 38 B
      key map                buckets, 3 keys from column "name"
      keys                   not in the file, which has a tag for each; look one up by `privet get`
      load                   97.4 %
      stash                  0 values, 0 B
      room                   for about 3 more keys: 50 % full
      value                  json: phone (text), floor (text)
      record layout          105 B
      file size              4.11 KiB
      to serve it            no memory by download: clients get it from the file
      digest                 [DIGEST]
      created by             privet [VERSION]
      verified               header and layout only; --verify reads everything
    "#);
    assert_snapshot!(place.run("inspect phones.privet --json --verify").printed(), @r#"
    {"file":"phones.privet","file_bytes":4210,"table_id":"[ID]","epoch":0,"records":3,"record_len":38,"path_len":0,"key_column":"name","until_column":null,"ranges":null,"key_format":"text","normalized":[],"value":"json","value_columns":[],"columns":[{"name":"phone","type":"text"},{"name":"floor","type":"text"}],"key_map":"buckets","keys":3,"multi":false,"parts":1,"records_per_lookup":1,"load":0.9736842105263158,"stash_entries":0,"stash_bytes":0,"keys_that_fit":3,"fullness":0.5,"layout_bytes":105,"serving":{"scheme":"download","memory_bytes":0,"start_bytes":0,"update_bytes":0},"digest":"[DIGEST]","root":null,"created_by":"privet [VERSION]","verified":true}
    "#);
}

#[test]
fn the_first_values_are_shown_as_get_shows_them() {
    let place = Place::with_phones();
    let run = place.run("inspect phones.privet --head 2");
    let (page, values) = run.stdout().split_once("first values:\n").unwrap();
    assert!(page.contains("  verified  "), "{run}");
    assert_eq!(values.lines().count(), 2, "{run}");
    assert!(values.lines().all(|value| value.starts_with("{\"phone\":\"5")), "{run}");
    let all = place.run("inspect phones.privet --head 100 --json").json();
    assert_eq!(all["head"]["values"].as_array().unwrap().len(), 3);
    // All values of a key are listed, and rows are in order.
    place.write("twice.csv", "name,phone\nada,1\nada,22\n");
    place.build("twice.csv --key name --raw-value phone --multi -o twice.privet");
    let run = place.run("inspect twice.privet --head 9");
    assert!(run.stdout().ends_with("first values:\n1\n22\n"), "{run}");
    place.build("twice.csv --raw-value phone -o rows.privet");
    let run = place.run("inspect rows.privet --head 1");
    assert!(run.stdout().ends_with("first values:\n1\n"), "{run}");
    // Values changed in the log are listed too.
    place.begin_history("rows.privet");
    let update = "update rows.privet --publisher-key publisher.key --set 0=7";
    assert_eq!(place.run(update).code(), 0);
    let run = place.run("inspect rows.privet --head 1");
    assert!(run.stdout().ends_with("first values:\n7\n"), "{run}");
    place.build("twice.csv --key name --on-duplicate last --parts 2 -o parts.privet");
    place.run("setup points twice.privet --scheme finite-differences -o points").succeeds();
    for refused in ["parts.privet", "points"] {
        let run = place.run(&format!("inspect {refused} --head 1"));
        assert_eq!(run.code(), 2, "{run}");
    }
}

#[test]
fn a_cuckoo_map_is_named() {
    let place = Place::with_phones();
    place.build("phones.csv --key name --key-map cuckoo -o cuckoo.privet");
    let run = place.run("inspect cuckoo.privet");
    assert!(run.stdout().contains("key map                cuckoo, 3 keys from column"), "{run}");
    assert_eq!(place.run("inspect cuckoo.privet --json").json()["key_map"], "cuckoo");
}

#[test]
fn an_index_table_is_described_and_verified() {
    let place = Place::with_rows();
    place.build("phones.csv --raw-value phone -o phones.privet");
    assert_snapshot!(place.run("inspect phones.privet --verify").printed(), @r#"
    phones.privet
      table id               [ID]
      epoch                  0
      records                3 of 6 B
      key map                none: records are looked up by number
      value                  raw: phone (text)
      record layout          21 B
      file size              4.02 KiB
      to serve it            no memory by download: clients get it from the file
      digest                 [DIGEST]
      created by             privet [VERSION]
      verified               yes, every byte
    "#);
}

#[test]
fn a_truncated_file_is_refused() {
    let place = Place::with_phones();
    let bytes = std::fs::read(place.path("phones.privet")).unwrap();
    place.write("short.privet", &bytes[..bytes.len() - 1]);
    assert_snapshot!(place.run("inspect short.privet"), @r#"
    [exit 4]
    [stderr]
    privet: short.privet: the table file is damaged or incomplete: it should have 4210 bytes and has 4209; build it again, or copy it again from where it is whole
    "#);
    place.write("shorter.privet", &bytes[..20]);
    assert_snapshot!(place.run("inspect shorter.privet"), @r#"
    [exit 4]
    [stderr]
    privet: shorter.privet: the table file is damaged or incomplete: it ends within its header; build it again, or copy it again from where it is whole
    "#);
}

#[test]
fn a_damaged_record_is_found_by_reading_everything() {
    let place = Place::with_phones();
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    place.write("damaged.privet", bytes);
    assert_eq!(place.run("inspect damaged.privet").code(), 0);
    assert_snapshot!(place.run("inspect damaged.privet --verify"), @r#"
    [exit 4]
    [stderr]
    privet: damaged.privet: the table file is damaged or incomplete: the digest of its records does not match; build it again, or copy it again from where it is whole
    "#);
}

#[test]
fn a_damaged_header_is_found_at_once() {
    let place = Place::with_phones();
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    bytes[60] ^= 1;
    place.write("damaged.privet", bytes);
    assert_snapshot!(place.run("inspect damaged.privet"), @r#"
    [exit 4]
    [stderr]
    privet: damaged.privet: the table file is damaged or incomplete: the checksum of its header does not match; build it again, or copy it again from where it is whole
    "#);
}

#[test]
fn other_files_are_refused() {
    let place = Place::with_phones();
    place.write("empty.privet", "");
    assert_snapshot!(place.run("inspect phones.csv").mistake(), @r#"
    privet: phones.csv: this is no Privet table file; build one (`privet build`)
    "#);
    assert_snapshot!(place.run("inspect empty.privet"), @r#"
    [exit 4]
    [stderr]
    privet: empty.privet: the table file is damaged or incomplete: it ends within its first bytes; build it again, or copy it again from where it is whole
    "#);
    assert_snapshot!(place.run("inspect missing.privet").mistake(), @r#"
    privet: cannot open missing.privet: No such file or directory (os error 2); build it (`privet build`)
    "#);
    assert_snapshot!(place.run("inspect ."), @r#"
    [exit 3]
    [stderr]
    privet: cannot map .: not a regular file
    "#);
}
