//! `privet setup pointproofs`, and what refuses to work with its output.

use crate::place::Place;
use insta::assert_snapshot;

const SERVE: &str = "serve phones.privet --no-cache --listen 127.0.0.1:0";

#[test]
fn a_reference_string_is_made_and_its_maker_must_be_trusted() {
    let place = Place::new();
    assert_snapshot!(place.run("setup pointproofs --size 8 -o string").printed(), @r#"
    string made in [TIME]
      for                    tapir-pp, partitions of up to 8 records
      file size              1.50 KiB
      digest                 [DIGEST]
    Whoever made this file must be trusted by everybody who looks records up with it. It was made from a secret number, and who knows that number can prove any record to any
    client. The number was drawn in this process, was written nowhere, and has been erased from its memory; nobody else can check that. So the party that makes the file must be one that
    all clients trust, and not a server that may lie. All servers of a table take the same file; it is no secret. `privet get -v` shows the digest.
    "#);
    let first = std::fs::read(place.path("string")).unwrap();

    assert_snapshot!(place.run("setup pointproofs --size 8 -o string").mistake(), @r#"
    privet: string is there already; servers and clients that use it could not go on without it: choose another name, or replace it with --force
    "#);
    assert_eq!(std::fs::read(place.path("string")).unwrap(), first);

    let report = place.run("setup pointproofs --size 8 -o string --force --json").json();
    let second = std::fs::read(place.path("string")).unwrap();
    // Each run draws a new secret number, so the string differs.
    assert!(second.len() == first.len() && second != first);
    assert_eq!(report["file_bytes"], second.len());
    assert_eq!((&report["file"], &report["size"]), (&"string".into(), &8.into()));
    assert_eq!(report["digest"].as_str().unwrap().len(), 64);
    assert_eq!(place.files(), ["string"]);
}

#[test]
fn sizes_and_places_that_do_not_exist_are_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("setup pointproofs --size 65537 -o string").mistake(), @r#"
    privet: there are reference strings for vectors of 1 to 65536 records, not for 65537
    "#);
    for size in ["0", "2^32", "many"] {
        assert_eq!(place.run(&format!("setup pointproofs --size {size} -o string")).code(), 2);
    }
    assert_snapshot!(place.run("setup pointproofs --size 2 -o nowhere/string").mistake(), @r#"
    privet: cannot write nowhere/string: its directory does not exist
    "#);
    assert_eq!(place.run("setup pointproofs --size 2").code(), 2);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn a_server_takes_a_reference_string_for_tapir_pp_and_for_nothing_else() {
    let place = Place::with_phones();
    assert_snapshot!(place.run(&format!("{SERVE} --scheme tapir-pp")).refusal(), @r#"
    [exit 2]
    privet: tapir-pp commits to the table with a reference string, and none is given: let somebody whom all clients trust make one, and give it to both servers (--reference-string; `privet setup pointproofs` makes one)
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --scheme tapir-mt --reference-string string")).refusal(), @r#"
    [exit 2]
    privet: the option reference-string is for tapir-pp alone: leave it out, or choose tapir-pp (--scheme)
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --precompute-openings")).refusal(), @r#"
    [exit 2]
    privet: the option precompute-openings is for tapir-pp alone: leave it out, or choose tapir-pp (--scheme)
    "#);
    let bench = "bench --records 100 --record-len 3 --precompute-openings --scheme";
    insta::allow_duplicates! {
        for scheme in ["plain", "dpf"] {
            assert_snapshot!(place.run(&format!("{bench} {scheme}")).mistake(), @r#"
            privet: the option precompute-openings is for tapir-pp alone: leave it out, or choose tapir-pp (--scheme)
            "#);
        }
    }
}

#[test]
fn what_is_no_reference_string_is_refused_by_name() {
    let place = Place::with_phones();
    let serve = |more: &str| {
        place.run(&format!("{SERVE} --scheme tapir-pp --reference-string {more}")).refusal()
    };
    assert_snapshot!(serve("string"), @r#"
    [exit 2]
    privet: cannot read the reference string string: No such file or directory (os error 2); have one made (--reference-string; `privet setup pointproofs` makes one)
    "#);
    assert_snapshot!(serve("phones.privet"), @r#"
    [exit 4]
    privet: phones.privet: this is not a reference string for Pointproofs
    "#);
    assert_eq!(place.run("setup pointproofs --size 4 -o string").code(), 0);
    assert_snapshot!(serve("string --partition-records 5"), @r#"
    [exit 2]
    privet: table phones: vectors of 5 records need a larger reference string than this one for 4: make one of that size, or cut the table into shorter vectors
    "#);
    let mut bytes = std::fs::read(place.path("string")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.write("string", &bytes);
    assert_snapshot!(serve("string"), @r#"
    [exit 4]
    privet: string: the reference string is damaged: its digest does not match; copy it again from where it was made
    "#);
    place.write("string", &bytes[..middle]);
    assert_snapshot!(serve("string"), @r#"
    [exit 4]
    privet: string: a reference string for vectors of 4 records has 766 bytes, and this one has 383; copy it again from where it was made
    "#);
}
