//! `privet inspect`: whole files, damaged ones, and others.

use crate::place::{PHONES, Place};
use insta::assert_snapshot;

#[test]
fn a_table_is_described() {
    let place = Place::with_phones();
    assert_snapshot!(place.run("inspect phones.privet"), @"");
    assert_snapshot!(place.run("inspect phones.privet --json --verify"), @"");
}

#[test]
fn an_index_table_is_described_and_verified() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.build("phones.csv --raw-value phone -o phones.privet");
    assert_snapshot!(place.run("inspect phones.privet --verify"), @"");
}

#[test]
fn a_truncated_file_is_refused() {
    let place = Place::with_phones();
    let bytes = std::fs::read(place.path("phones.privet")).unwrap();
    place.write("short.privet", &bytes[..bytes.len() - 1]);
    assert_snapshot!(place.run("inspect short.privet"), @"");
    place.write("shorter.privet", &bytes[..20]);
    assert_snapshot!(place.run("inspect shorter.privet"), @"");
}

#[test]
fn a_damaged_record_is_found_by_reading_everything() {
    let place = Place::with_phones();
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    place.write("damaged.privet", bytes);
    assert_eq!(place.run("inspect damaged.privet").code(), 0);
    assert_snapshot!(place.run("inspect damaged.privet --verify"), @"");
}

#[test]
fn a_damaged_header_is_found_at_once() {
    let place = Place::with_phones();
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    bytes[60] ^= 1;
    place.write("damaged.privet", bytes);
    assert_snapshot!(place.run("inspect damaged.privet"), @"");
}

#[test]
fn other_files_are_refused() {
    let place = Place::with_phones();
    place.write("empty.privet", "");
    assert_snapshot!(place.run("inspect phones.csv"), @"");
    assert_snapshot!(place.run("inspect empty.privet"), @"");
    assert_snapshot!(place.run("inspect missing.privet"), @"");
    assert_snapshot!(place.run("inspect ."), @"");
}
