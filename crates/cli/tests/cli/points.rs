//! `privet setup points` and `privet serve --points`: the points that servers of finite differences
//! answer from, in a file of their own.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;

const FOUND: &str = "{\"phone\":\"555-1\",\"floor\":\"3\"}\n";
/// A polynomial for which a lookup reads several points.
const CHOSEN: &str = "--scheme finite-differences --variables 8 --degree 3";
const SETUP: &str =
    "setup points phones.privet --scheme finite-differences --variables 8 --degree 3 -o points";
const SERVE: &str = "serve phones.privet --listen 127.0.0.1:0";

/// A place with the phone book and its points, for two servers.
fn with_points() -> Place {
    let place = Place::with_phones();
    place.run(SETUP).succeeds();
    place
}

#[test]
fn points_are_computed_once_and_said_what_they_are() {
    let place = Place::with_phones();
    assert_snapshot!(place.run(SETUP).printed(), @r#"
    points computed in [TIME]
      for                    finite-differences, 2 servers
      parameters             a polynomial of degree 3 in 8 variables, 9.50 KiB of its values on each server, of which 9 are sent for a lookup
      file size              13.50 KiB
      of table               [ID], epoch 0
      its digest             [DIGEST]
    All servers of the table may have a copy of this file (`privet serve TABLE --points FILE`). It holds the table's contents: who may not read the table may not read it. Whoever can write it
    can make answers wrong.
    "#);
    let first = std::fs::read(place.path("points")).unwrap();
    assert_snapshot!(place.run(SETUP).mistake(), @r#"
    privet: points is there already; servers that answer from it could not start again without it: choose another name, or replace it with --force
    "#);
    assert_eq!(std::fs::read(place.path("points")).unwrap(), first);
    // With the least memory, one thread and the portable kernel, the file is the same.
    let again =
        place.run(&format!("{SETUP} --force --memory 2^20 --threads 1 --kernel portable --json"));
    let report = again.json();
    assert_eq!(std::fs::read(place.path("points")).unwrap(), first);
    assert_eq!(report["file_bytes"], first.len());
    assert_eq!(report["points_bytes"], first.len() - 4096);
    assert_eq!((&report["scheme"], &report["servers"]), (&"finite-differences".into(), &2.into()));
    assert_eq!(place.files(), ["phones.csv", "phones.privet", "points"]);
}

#[test]
fn nothing_but_points_is_replaced_by_points() {
    let place = Place::with_phones();
    let table = std::fs::read(place.path("phones.privet")).unwrap();
    std::fs::hard_link(place.path("phones.privet"), place.path("same")).unwrap();
    for output in ["phones.privet", "same", "phones.csv"] {
        let arguments = SETUP.replace("-o points", &format!("-o {output} --force"));
        place.run(&arguments).says(2, "is another kind of file");
    }
    assert_eq!(std::fs::read(place.path("phones.privet")).unwrap(), table);
    assert_snapshot!(place.run(&format!("{SETUP} --memory 8")).mistake(), @r#"
    privet: --memory is in bytes, and 8 are too few: at least 1048576; 2^33 is 8 GiB
    "#);
}

#[test]
fn two_servers_answer_from_the_file_one_from_memory_and_one_from_the_disk() {
    let place = with_points();
    let first = Served::start(&place, "phones.privet --points points");
    let second = Served::start(
        &place,
        "phones.privet --points points --mapped --scheme finite-differences --metrics-listen 127.0.0.1:0",
    );
    let announced = |served: &Served| served.announcement.lines().next().unwrap().to_owned();
    assert_snapshot!(announced(&first), @"table phones: 3 records of 38 B, finite-differences, points of 9.50 KiB read from points, ready in [TIME], digest [DIGEST]");
    assert_snapshot!(announced(&second), @"table phones: 3 records of 38 B, finite-differences, points of 9.50 KiB mapped from points, ready in [TIME], digest [DIGEST]");
    // A server that computes its points itself agrees with both.
    let third = Served::start(&place, &format!("phones.privet {CHOSEN}"));
    assert_snapshot!(announced(&third), @"table phones: 3 records of 38 B, finite-differences, points of 9.50 KiB computed, ready in [TIME], digest [DIGEST]");
    for (one, other) in [(&first, &second), (&second, &third), (&third, &first)] {
        let run = place.run(&format!("get {} {} -k ada -k nobody -k ada", one.url, other.url));
        assert_eq!((run.code(), run.stdout()), (1, &*format!("ada\t{FOUND}").repeat(2)), "{run}");
    }
    let (_, metrics) = crate::served::http_get(second.metrics_address(), "/metrics");
    for line in
        ["privet_hints_total{origin=\"mapped\"} 1", "privet_table_extra_bytes{table=\"phones\"} 0"]
    {
        assert!(metrics.lines().any(|other| other == line), "{line}:\n{metrics}");
    }
    for served in [first, second, third] {
        assert_eq!(served.terminate(), Some(0));
    }
}

#[test]
fn more_servers_answer_from_a_file_and_what_was_chosen_lies_in_it() {
    let place = Place::with_phones();
    let run = place.run(
        "setup points phones.privet --scheme finite-differences-many --servers 4 -o points --json",
    );
    assert_eq!(run.json()["servers"], 4);
    let serve = |more: &str| Served::start(&place, &format!("phones.privet --points points{more}"));
    let servers = [serve(""), serve(" --mapped"), serve(""), serve(" --mapped")];
    let urls = servers.each_ref().map(|served| served.url.as_str()).join(" ");
    let run = place.run(&format!("get {urls} -k ada"));
    assert_eq!((run.code(), run.stdout()), (0, FOUND), "{run}");
}

#[test]
fn the_points_of_another_table_are_refused() {
    let place = with_points();
    place.write("other.csv", "name,phone\nada,555-9\n");
    place.build("other.csv --key name -o other.privet");
    for mapped in ["", " --mapped"] {
        insta::allow_duplicates! {
            let serve = format!("serve other.privet --listen 127.0.0.1:0 --points points{mapped}");
            assert_snapshot!(place.run(&serve).refusal(), @r#"
            [exit 2]
            privet: points: these points were computed from another table, with id [ID], epoch 0, 3 records of 38 bytes, digest [DIGEST]; the table to be served has id [ID], epoch 0, 1 records of 26 bytes, digest [DIGEST]. Serve them with the table they were computed from, or compute those of this one (`privet setup points`)
            "#);
        }
    }
}

#[test]
fn points_are_for_one_table_and_the_scheme_they_were_computed_for() {
    let place = with_points();
    assert_snapshot!(place.run(&format!("{SERVE} second=phones.privet --points points")).refusal(), @r#"
    [exit 2]
    privet: points holds the points of one table: name that one alone, and serve others by another `privet serve`
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --points points --scheme finite-differences-many")).refusal(), @r#"
    [exit 2]
    privet: points holds points for finite-differences, and --scheme says finite-differences-many: leave out --scheme, or compute points for finite-differences-many with `privet setup points`
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --points points --scheme dpf")).refusal(), @r#"
    [exit 2]
    privet: points holds points for finite-differences, and --scheme says dpf: leave out --scheme, or compute points for dpf with `privet setup points`
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --mapped")).mistake(), @r#"
    error: the following required arguments were not provided:
      --points <FILE>

    Usage: privet serve --points <FILE> --listen <ADDR> --mapped <[NAME=]FILE>...

    For more information, try '--help'.
    "#);
    for chosen in [
        "--storage-limit 2^20",
        "--answer-limit 100",
        "--variables 6",
        "--variables 6 --degree 3",
        "--one-bit",
        "--servers 3",
        "--partition-records 2",
        "--reference-string string",
        "--precompute-openings",
    ] {
        place
            .run(&format!("{SERVE} --points points {chosen}"))
            .says(2, "'--points <FILE>' cannot be used with");
    }
}

#[test]
fn a_damaged_file_of_points_is_named_and_not_computed_again() {
    let place = with_points();
    let good = std::fs::read(place.path("points")).unwrap();
    let serve = |mapped: &str| place.run(&format!("{SERVE} --points points{mapped}")).refusal();
    let altered = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        place.write("points", bytes);
    };
    altered(good.len() - 1);
    for mapped in ["", " --mapped"] {
        insta::allow_duplicates! {
            assert_snapshot!(serve(mapped), @r#"
            [exit 4]
            privet: table phones: points: the file of points is damaged or incomplete: the digest of its points does not match; copy it again from where it is whole, or compute it again (`privet setup points`)
            "#);
        }
    }
    altered(60);
    assert_snapshot!(serve(""), @r#"
    [exit 4]
    privet: points: the file of points is damaged or incomplete: the checksum of its header does not match; copy it again from where it is whole, or compute it again (`privet setup points`)
    "#);
    altered(8);
    assert_snapshot!(serve(""), @r#"
    [exit 2]
    privet: points: this file of points has version 0, and this program reads version 1; use the program that wrote it, or compute them again (`privet setup points`)
    "#);
    place.write("points", &good[..good.len() - 1]);
    assert_snapshot!(serve(" --mapped"), @r#"
    [exit 4]
    privet: points: the file of points is damaged or incomplete: it should have 13824 bytes and has 13823; copy it again from where it is whole, or compute it again (`privet setup points`)
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --points phones.csv")).refusal(), @r#"
    [exit 2]
    privet: phones.csv: this is no file of points; compute those of the table (`privet setup points`)
    "#);
    assert_snapshot!(place.run(&format!("{SERVE} --points missing")).refusal(), @r#"
    [exit 2]
    privet: cannot open missing: No such file or directory (os error 2); compute it (`privet setup points`)
    "#);
}

#[test]
fn points_that_cannot_be_computed_leave_no_file() {
    let place = Place::with_phones();
    let setup = |more: &str| place.run(&format!("setup points phones.privet -o points {more}"));
    assert_snapshot!(setup("--scheme dpf").mistake(), @r#"
    privet: dpf makes no points of a table: only finite-differences and finite-differences-many do
    "#);
    assert_snapshot!(setup("--scheme finite-differences --one-bit").mistake(), @r#"
    privet: single bits are bytes of value 0 or 1, records of one byte each, not 38
    "#);
    assert_snapshot!(setup("--scheme finite-differences --servers 3").refusal(), @r#"
    [exit 2]
    privet: the option servers is for finite-differences-many alone: leave it out, or choose finite-differences-many (--scheme)
    "#);
    assert_eq!(setup("").code(), 2);
    assert_snapshot!(place.run("setup points phones.privet --scheme finite-differences -o nowhere/points").mistake(), @r#"
    privet: cannot write nowhere/points: its directory does not exist
    "#);
    assert_snapshot!(place.run("setup points missing --scheme finite-differences -o points").mistake(), @r#"
    privet: cannot open missing: No such file or directory (os error 2); build it (`privet build`)
    "#);
    // Points of a damaged table would bear a digest that does not match its records.
    let mut table = std::fs::read(place.path("phones.privet")).unwrap();
    *table.last_mut().unwrap() ^= 1;
    place.write("phones.privet", table);
    assert_snapshot!(setup("--scheme finite-differences").refusal(), @r#"
    [exit 4]
    privet: phones.privet: the table file is damaged or incomplete: the digest of its records does not match; build it again, or copy it again from where it is whole
    "#);
    assert_eq!(place.files(), ["phones.csv", "phones.privet"]);
}

#[test]
fn a_file_of_points_is_inspected() {
    let place = with_points();
    assert_snapshot!(place.run("inspect points").printed(), @r#"
    points: the points of a table
      for                    finite-differences, 2 servers
      parameters             a polynomial of degree 3 in 8 variables, 9.50 KiB of its values on each server, of which 9 are sent for a lookup
      of table               [ID], epoch 0
      its records            3 of 38 B
      its digest             [DIGEST]
      file size              13.50 KiB
      created by             privet [VERSION]
      verified               header only; --verify reads everything
    "#);
    let report = place.run("inspect points --verify --json").json();
    assert_eq!((&report["verified"], &report["servers"]), (&true.into(), &2.into()));
    let mut bytes = std::fs::read(place.path("points")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    place.write("points", bytes);
    assert_eq!(place.run("inspect points").code(), 0);
    assert_snapshot!(place.run("inspect points --verify").refusal(), @r#"
    [exit 4]
    privet: points: the file of points is damaged or incomplete: the digest of its points does not match; copy it again from where it is whole, or compute it again (`privet setup points`)
    "#);
}
