//! Keys as people have them: in lists of any encoding, as bytes, behind a hyphen, in another form
//! of Unicode; and what is no key at all.

use crate::place::{Place, Run};
use crate::served::Served;
use insta::assert_snapshot;

fn get(place: &Place, served: &Served, arguments: &str) -> Run {
    place.run(&format!("get {} {arguments}", served.url))
}

/// A server of the table that `build` makes of `rows`, of the scheme that starts fastest.
fn serve(place: &Place, rows: &str, build: &str) -> Served {
    place.write("rows.csv", rows);
    place.build(&format!("rows.csv {build} -o rows.privet"));
    Served::start(place, "rows.privet --scheme simplepir --no-cache")
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// `ads.example` and `track.example`, on a line each, compressed.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03KL)\xd6K\xadH\xcc-\xc8I\xe5*)JL\xce\
    \x86\xf3\x00\x85\xf5=\xfd\x1a\x00\x00\x00";

/// The lists of keys that are read in the same way.
fn lists() -> [(&'static str, Vec<u8>); 5] {
    [
        ("bom.txt", b"\xef\xbb\xbfads.example\r\ntrack.example\r\n".to_vec()),
        ("utf16.txt", wide("\u{feff}ads.example\ntrack.example\n")),
        ("keys.txt.gz", GZIP.to_vec()),
        ("under-another-name", GZIP.to_vec()),
        ("cr.txt", b"ads.example\rtrack.example\r".to_vec()),
    ]
}

const DOMAINS: &str = "domain,kind\nads.example,ad\ntrack.example,tracker\n";

#[test]
fn a_list_of_keys_is_read_as_a_table_is() {
    let place = Place::new();
    let served = serve(&place, DOMAINS, "--key domain --raw-value kind");
    for (name, list) in lists() {
        let expected = "ads.example\tad\ntrack.example\ttracker\n";
        place.write(name, &list);
        let run = get(&place, &served, &format!("--keys-from {name}"));
        assert_eq!((run.code(), run.stdout()), (0, expected), "{name}: {run}");
        let piped = place.run_with_input(&format!("get {} --keys-from -", served.url), &list);
        assert_eq!((piped.code(), piped.stdout()), (0, expected), "{name}: {piped}");
    }
    place.write("latin1.txt", b"b\xfccher.example\n");
    // Nothing is asked, so no server is needed.
    assert_snapshot!(place.run("get http://127.0.0.1:9 --keys-from latin1.txt --json").mistake(), @r"
    privet: latin1.txt: line 1: byte 2 is not UTF-8 (is this Latin-1 or Windows-1252?); convert the list to UTF-8 first
    ");
    place.write("keys.xz", b"\xfd7zXZ\0and more");
    place.run("get http://127.0.0.1:9 --keys-from keys.xz").says(2, "xz");
    // A pipe has been read up to there.
    let piped = format!("get {} --keys-from - --json", served.url);
    assert_snapshot!(place.run_with_input(&piped, b"ads.example\nb\xfccher.example\n"), @r#"
    [exit 2]
    [stdout]
    {"key":"ads.example","found":true,"text":"ad"}
    [stderr]
    privet: standard input: line 2: byte 2 is not UTF-8 (is this Latin-1 or Windows-1252?); convert the list to UTF-8 first
    "#);
}

#[test]
fn a_list_of_deletions_is_read_as_a_table_is() {
    for (name, list) in lists() {
        let place = Place::new();
        place.write("rows.csv", DOMAINS);
        place.build("rows.csv --key domain -o rows.privet");
        place.begin_history("rows.privet");
        place.write(name, &list);
        let update = "update rows.privet --publisher-key publisher.key --json";
        let report = place.run(&format!("{update} --delete-from {name}")).json();
        assert_eq!((&report["deleted"], &report["absent"]), (&2.into(), &0.into()), "{name}");
        place
            .run_with_input(&format!("{update} --delete-from -"), b"a\nb\xfc\n")
            .says(2, "standard input: line 2: byte 2 is not UTF-8");
    }
}

/// SHA-1 hashes in a column of bytes.
const HASHES: &[u8] = include_bytes!("../../../table/samples/hashes.parquet");

#[test]
fn keys_of_bytes_are_given_and_shown_in_hexadecimal() {
    let place = Place::new();
    place.write("hashes.parquet", HASHES);
    let built = place.build("hashes.parquet --key h -o hashes.privet");
    let line = built.stdout().lines().find(|line| line.contains("keys written in"));
    assert!(line.is_some_and(|line| line.ends_with(" hex")), "{built}");
    assert!(built.stdout().contains("0x9348ccb9352910390d366c56636a9b607179ffbf"), "{built}");
    let inspected = place.run("inspect hashes.privet --json").json();
    assert_eq!(inspected["key_format"], "hex");
    let served = Served::start(&place, "hashes.privet --scheme simplepir --no-cache");
    let digits = "9348ccb9352910390d366c56636a9b607179ffbf";
    for key in [format!("0x{digits}"), digits.to_uppercase()] {
        let found = get(&place, &served, &format!("--key {key} --json"));
        let expected = format!("{{\"key\":\"{key}\",\"found\":true,\"value\":{{");
        assert!(found.stdout().starts_with(&expected), "{found}");
        place.write("keys", format!("{key}\n"));
        assert_eq!(get(&place, &served, "--keys-from keys").code(), 0);
    }
    assert_snapshot!(get(&place, &served, "--key 0x93 --key 9348ccb9352910390d366c56636a9b607179ffb --key häh").mistake(), @r"
    privet: not found: 0x93
    privet: [ID]7179ffb: this is no hexadecimal key: write two of 0-9 and a-f for each byte
    privet: häh: this is no hexadecimal key: write two of 0-9 and a-f for each byte
    ");
}

/// A key with a zero byte, one with a line feed, and one whose bytes are text.
#[test]
fn keys_of_any_bytes_work_in_every_place() {
    let (zero, feed, text) = (["00ff", "AP8="], ["0a0d", "Cg0="], ["30313233", "MDEyMw=="]);
    for (number, format) in ["hex", "base64"].into_iter().enumerate() {
        let place = Place::new();
        let [zero, feed, text] = [zero, feed, text].map(|key| key[number]);
        place.write("rows.csv", format!("k,v\n{zero},1\n{feed},2\n{text},3\n"));
        let build = "rows.csv --key k --raw-value v -o rows.privet --json --key-format";
        let shape = place.build(&format!("{build} {format}")).json();
        let shown = match format {
            "hex" => ["0x00ff", "0x0a0d", "0x30313233"],
            _ => [zero, feed, text],
        };
        assert_eq!(shape["key_shape"]["first"], serde_json::json!(shown));
        assert_eq!(shape["key_format"], format);
        place.begin_history("rows.privet");
        let update = "update rows.privet --publisher-key publisher.key --json";
        place.write("gone", format!("{feed}\n"));
        // What is set ends at the first =, so base64 goes without padding.
        let set = zero.trim_end_matches('=');
        let changes = format!("{update} --set {set}=4 --delete {text} --delete-from gone");
        let report = place.run(&changes).json();
        assert_eq!((&report["replaced"], &report["deleted"]), (&1.into(), &2.into()));
        place.write("more.csv", format!("k,v\n{feed},5\n"));
        let report = place.run(&format!("{update} --from more.csv")).json();
        assert_eq!(report["inserted"], 1);
        place.run(&format!("{update} --delete $$")).says(2, "the key \"$$\": this is no");

        let served = Served::start(&place, "rows.privet --scheme simplepir --no-cache");
        place.write("keys", format!("{zero}\r\n{feed}\n{text}"));
        let found = get(&place, &served, "--keys-from keys --format csv");
        assert_eq!(found.stdout(), format!("key,v\n{zero},4\n{feed},5\n"), "{found}");
        assert_eq!(found.stderr(), "privet: not found: line 3 of keys\n");
    }
}

#[test]
fn what_cannot_be_read_or_normalised_as_bytes_is_no_table() {
    let place = Place::new();
    place.write("rows.csv", "k,v\n0a,1\n0A,2\nxyz,3\n");
    let build = |options: &str| {
        place.run(&format!("build rows.csv --key k -o rows.privet --key-format hex {options}"))
    };
    assert_snapshot!(build("").mistake(), @r"
    privet: rows.csv: line 3: the key 0x0a occurs twice, first in line 2; keep one of the rows, or choose which to keep: the first, the last, or all of them (--on-duplicate, or --multi)
    ");
    assert_snapshot!(build("--on-duplicate first").mistake(), @r#"
    privet: rows.csv: line 4: the key "xyz": this is no hexadecimal key: write two of 0-9 and a-f for each byte
    "#);
    assert_snapshot!(build("--normalize lower").mistake(), @r"
    privet: only keys that are text are normalised or are points of ranges; leave that out, or the format of keys
    ");
}

#[test]
fn what_is_no_address_is_told_beside_the_answers() {
    let place = Place::new();
    let rows = "network,country\n1.0.0.0/24,XA\n2001:200::/32,XB\n";
    let served = serve(&place, rows, "--range-from network --raw-value country");
    let wrong = "--key abc --key 001.000.000.007 --key [2001:200::1] --key 1.0.0.0/24";
    assert_snapshot!(get(&place, &served, &format!("--key 1.0.0.7 {wrong} --key 9.9.9.9")), @r"
    [exit 2]
    [stdout]
    1.0.0.7	XA
    [stderr]
    privet: abc: this is no address
    privet: 001.000.000.007: this is no address: leave out the zeros at the beginning of its numbers
    privet: [2001:200::1]: this is no address: leave out the brackets, and a port
    privet: 1.0.0.0/24: this is a network and no address: name one address of it
    privet: not found: 9.9.9.9
    ");
    assert_snapshot!(get(&place, &served, "--key fe80::1%eth0 --key 1.0.0.9 --json"), @r#"
    [exit 2]
    [stdout]
    {"key":"fe80::1%eth0","found":false,"error":"this is no address: leave out the zone, from the % on"}
    {"key":"1.0.0.9","found":true,"text":"XA"}
    "#);
    place.write("keys", "1.0.0.7\nabc\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys"), @r"
    [exit 2]
    [stdout]
    1.0.0.7	XA
    [stderr]
    privet: line 2 of keys: this is no address
    ");
    assert_snapshot!(get(&place, &served, "--key abc --format csv"), @r"
    [exit 2]
    [stdout]
    key,country
    [stderr]
    privet: abc: this is no address
    ");
    // Random keys are no addresses, and their lookups are made all the same.
    let load = format!("load {} --rate 20 --for 100ms --clients 1 -q --json", served.url);
    let report = place.run(&load).json();
    assert_eq!(report["steps"][0]["failed"], serde_json::json!({}), "{report}");
    drop(served);
    place.begin_history("rows.privet");
    let update = "update rows.privet --publisher-key publisher.key";
    assert_snapshot!(place.run(&format!("{update} --delete abc")).mistake(), @r#"
    privet: the key "abc": this is no address
    "#);
    assert_snapshot!(place.run(&format!("{update} --set abc=XC")).mistake(), @r#"
    privet: the key "abc": this is no address
    "#);
    // The bounds of a range name it, and a point of none is only absent.
    let deleted =
        place.run(&format!("{update} --json --delete 1.0.0.0/24 --delete 9.9.9.9")).json();
    assert_eq!((&deleted["deleted"], &deleted["absent"]), (&1.into(), &1.into()));
}

#[test]
fn keys_that_begin_with_a_hyphen_are_typed_as_they_are() {
    let place = Place::new();
    let served = serve(&place, "id,v\n-Abc_9,1\nx,2\n--json,3\n-v,4\n", "--key id --raw-value v");
    for typed in ["--key -Abc_9", "--key=-Abc_9", "-k -Abc_9", "-k-Abc_9", "--key -Abc_9 --json"] {
        let found = get(&place, &served, typed);
        assert_eq!(found.code(), 0, "{typed}: {found}");
    }
    assert_eq!(get(&place, &served, "--key=--json --key -v --key=-v -q").stdout(), "");
    assert_snapshot!(get(&place, &served, "--key --json").mistake(), @r"
    error: --key is followed by an option, --json; if that is the key, write --key=--json

    Usage: privet get [OPTIONS] <--key <KEY>|--index <N>|--keys-from <FILE>> <URL>...

    For more information, try '--help'.
    ");
    assert_snapshot!(get(&place, &served, "-k -v").mistake(), @r"
    error: -k is followed by an option, -v; if that is the key, write -k-v

    Usage: privet get [OPTIONS] <--key <KEY>|--index <N>|--keys-from <FILE>> <URL>...

    For more information, try '--help'.
    ");
    assert_snapshot!(get(&place, &served, "--key --max-time=9").mistake(), @r"
    error: --key is followed by an option, --max-time=9; if that is the key, write --key=--max-time=9

    Usage: privet get [OPTIONS] <--key <KEY>|--index <N>|--keys-from <FILE>> <URL>...

    For more information, try '--help'.
    ");
    assert_eq!(get(&place, &served, "--key=--json").stdout(), "3\n");
    assert_eq!(get(&place, &served, "-k-v").stdout(), "4\n");
    drop(served);
    place.begin_history("rows.privet");
    let update = "update rows.privet --publisher-key publisher.key";
    let set =
        place.run(&format!("{update} --json --set -Abc_9=5 --delete --json")).stderr().to_owned();
    assert!(set.contains("--delete=--json"), "{set}");
    let set = place.run(&format!("{update} --json --set -Abc_9=5 --delete -v --delete=--json"));
    let report = set.json();
    assert_eq!((&report["replaced"], &report["deleted"]), (&1.into(), &2.into()));
}

/// What nobody sees does not count, if the table says so.
#[test]
fn forms_of_unicode_do_not_count() {
    let place = Place::new();
    let words = "id,v\nCafé,1\nΣΑΣ,2\nStraße,3\n\u{200b}b\u{200b},4\n";
    let build = "--key id --raw-value v --normalize trim-invisible,nfc,fold";
    let served = serve(&place, words, build);
    place.write("asked.txt", "Cafe\u{301}\nσας\nstrasse\nb\n");
    let found = get(&place, &served, "--keys-from asked.txt --format csv");
    assert_eq!((found.code(), found.stdout().lines().count()), (0, 5), "{found}");
    assert_snapshot!(place.run("inspect rows.privet").stdout().lines().find(|line| line.contains("normalised")).unwrap(), @"  keys normalised        nfc, fold, trim-invisible");
    place.write("twice.csv", "id,v\nCafé,1\nCafe\u{301},2\n");
    place.run("build twice.csv --key id --normalize nfc -o twice.privet").says(2, "occurs twice");
    let both = place.run("build twice.csv --key id --normalize lower,fold -o twice.privet");
    assert_eq!(both.code(), 2, "{both}");
}
