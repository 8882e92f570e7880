//! `privet get` against a server in another process: what is found, what is not, and what is kept between calls.

use crate::place::{PHONES, Place, Run};
use crate::served::Served;
use insta::assert_snapshot;

fn get(place: &Place, served: &Served, arguments: &str) -> Run {
    place.run(&format!("get {} {arguments}", served.url))
}

#[test]
fn keys_are_found_or_not() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_snapshot!(get(&place, &served, "--key ada"), @"");
    assert_snapshot!(get(&place, &served, "--key nobody"), @"");
    assert_snapshot!(get(&place, &served, "-k eve -k nobody -k bob"), @"");
    assert_snapshot!(get(&place, &served, "-k eve -k nobody -k bob --json"), @"");
}

#[test]
fn keys_come_from_a_file_or_standard_input() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    place.write("keys", "bob\r\nada\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys"), @"");
    let arguments = format!("get {} -k eve --keys-from - --json", served.url);
    assert_snapshot!(place.run_with_input(&arguments, b"ada\nnobody"), @"");
    assert_snapshot!(get(&place, &served, "--keys-from missing"), @"");
}

#[test]
fn records_are_found_by_number() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.build("phones.csv --raw-value phone -o phones.privet");
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_snapshot!(get(&place, &served, "--index 0 -i 2 --json"), @"");
    assert_snapshot!(get(&place, &served, "--index 2"), @"");
    assert_snapshot!(get(&place, &served, "--index 3"), @"");
    assert_snapshot!(get(&place, &served, "--key ada"), @"");
}

#[test]
fn a_table_by_key_has_no_row_numbers() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_snapshot!(get(&place, &served, "--index 0"), @"");
}

#[test]
fn one_of_several_tables_must_be_named() {
    let place = Place::with_phones();
    place.build("phones.csv --key phone -o names.privet");
    let served = Served::start(&place, "phones.privet names.privet --no-cache");
    assert_snapshot!(get(&place, &served, "--table names -k 555-2"), @"");
    assert_snapshot!(get(&place, &served, "--table phones -k bob"), @"");
    assert_snapshot!(get(&place, &served, "-k bob"), @"");
    assert_snapshot!(get(&place, &served, "--table faces -k bob"), @"");
}

#[test]
fn the_hint_is_fetched_once_and_kept() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_snapshot!(get(&place, &served, "-k ada -v --state state"), @"");
    assert_snapshot!(get(&place, &served, "-k ada -v --state state"), @"");
    assert!(place.path("state").is_dir() && !place.path(".local").exists());
    assert_eq!(get(&place, &served, "-k ada").code(), 0);
    assert!(place.path(".local/state/privet").is_dir());
}

#[test]
fn a_damaged_hint_is_fetched_again() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_eq!(get(&place, &served, "-k ada --state state").code(), 0);
    let mut damaged = 0;
    let mut directories = vec![place.path("state")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).unwrap();
            // Hints are far longer than whatever else is kept.
            if bytes.len() > 10_000 {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&path, bytes).unwrap();
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    assert_snapshot!(get(&place, &served, "-k ada --state state"), @"");
    assert_snapshot!(get(&place, &served, "-k ada --state state"), @"");
}

#[test]
fn a_changed_table_is_refused_until_accepted() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_eq!(get(&place, &served, "-k ada").code(), 0);
    let address = served.address().to_owned();
    assert_eq!(served.terminate(), Some(0));
    place.write("phones.csv", "name,phone\nada,1\n");
    place.build("phones.csv --key name -o phones.privet");
    let served = Served::start_at(&place, &address, "phones.privet --no-cache");
    assert_snapshot!(get(&place, &served, "-k ada"), @"");
    assert_snapshot!(get(&place, &served, "-k ada --accept-new-table"), @"");
    assert_snapshot!(get(&place, &served, "-k ada"), @"");
}

#[test]
fn a_certificate_may_be_trusted_by_file() {
    let place = Place::with_phones();
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    place.write("cert.pem", certified.cert.pem());
    place.write("key.pem", certified.signing_key.serialize_pem());
    let served =
        Served::start(&place, "phones.privet --no-cache --tls-cert cert.pem --tls-key key.pem");
    assert_snapshot!(served.announcement, @"");
    assert_snapshot!(get(&place, &served, "-k ada --ca-file cert.pem"), @"");
    assert_snapshot!(get(&place, &served, "-k ada"), @"");
    assert_snapshot!(get(&place, &served, "-k ada --ca-file key.pem"), @"");
    assert_snapshot!(get(&place, &served, "-k ada --ca-file missing.pem"), @"");
    let plain = format!("get http://{} -k ada", served.address());
    assert_snapshot!(place.run(&plain), @"");
}
