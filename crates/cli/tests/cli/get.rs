//! `privet get` against a server in another process: what it finds, what it does not find, and what
//! it keeps between calls.

use crate::place::{PHONES, Place, Run};
use crate::served::Served;
use insta::assert_snapshot;

/// The output for `ada`.
const FOUND: &str = "{\"phone\":\"555-1\",\"floor\":\"3\"}\n";

fn get(place: &Place, served: &Served, arguments: &str) -> Run {
    place.run(&format!("get {} {arguments}", served.url))
}

#[test]
fn keys_are_found_or_not() {
    let (place, served) = Served::phones();
    assert_snapshot!(get(&place, &served, "--key ada"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-1","floor":"3"}
    "#);
    assert_snapshot!(get(&place, &served, "--key nobody"), @r#"
    [exit 1]
    [stderr]
    privet: not found: nobody
    "#);
    assert_snapshot!(get(&place, &served, "-k eve -k nobody -k bob"), @r#"
    [exit 1]
    [stdout]
    eve	{"phone":"5,5","floor":""}
    bob	{"phone":"555-2","floor":"4"}
    [stderr]
    privet: not found: nobody
    "#);
    assert_snapshot!(get(&place, &served, "-k eve -k nobody -k bob --json"), @r#"
    [exit 1]
    [stdout]
    {"key":"eve","found":true,"value":{"phone":"5,5","floor":""}}
    {"key":"nobody","found":false}
    {"key":"bob","found":true,"value":{"phone":"555-2","floor":"4"}}
    "#);
}

#[test]
fn keys_come_from_a_file_or_standard_input() {
    let (place, served) = Served::phones();
    place.write("keys", "bob\r\nada\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys"), @r#"
    [exit 0]
    [stdout]
    bob	{"phone":"555-2","floor":"4"}
    ada	{"phone":"555-1","floor":"3"}
    "#);
    let arguments = format!("get {} -k eve --keys-from - --json", served.url);
    assert_snapshot!(place.run_with_input(&arguments, b"ada\nnobody"), @r#"
    [exit 1]
    [stdout]
    {"key":"eve","found":true,"value":{"phone":"5,5","floor":""}}
    {"key":"ada","found":true,"value":{"phone":"555-1","floor":"3"}}
    {"key":"nobody","found":false}
    "#);
    assert_snapshot!(get(&place, &served, "--keys-from missing"), @r#"
    [exit 2]
    [stderr]
    privet: cannot read keys from missing
      because: No such file or directory (os error 2)
    "#);
}

#[test]
fn what_is_found_is_printed_in_several_forms_and_into_a_file() {
    let (place, served) = Served::phones();
    assert_snapshot!(get(&place, &served, "-k eve -k nobody -k bob --format csv"), @r#"
    [exit 1]
    [stdout]
    key,phone,floor
    eve,"5,5",
    bob,555-2,4
    [stderr]
    privet: not found: nobody
    "#);
    let json = get(&place, &served, "-k eve -k nobody --json");
    let lines = get(&place, &served, "-k eve -k nobody --format jsonl");
    assert_eq!((lines.code(), lines.stdout()), (1, json.stdout()));
    assert_eq!(get(&place, &served, "-k ada --format lines").stdout(), FOUND);

    place.write("keys", "ada\n");
    // With a list of keys there could be several lookups, so each line has its key.
    let pair = format!("ada\t{FOUND}");
    assert_eq!(get(&place, &served, "--keys-from keys").stdout(), pair);
    place.write("found", "something longer than what is found there, which is replaced\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys -k nobody -o found"), @r#"
    [exit 1]
    [stderr]
    privet: not found: nobody
    "#);
    assert_eq!(std::fs::read_to_string(place.path("found")).unwrap(), pair);

    // The output may replace neither an input nor one of Privet's files.
    for output in ["keys", "phones.privet"] {
        let before = std::fs::read(place.path(output)).unwrap();
        let refused = get(&place, &served, &format!("--keys-from keys -o {output}"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains("would be lost"), "{refused}");
        assert_eq!(std::fs::read(place.path(output)).unwrap(), before);
    }
    let nothing = get(&place, &served, "-k nobody --format csv");
    assert_eq!((nothing.code(), nothing.stdout()), (1, "key,phone,floor\n"));
    let promised = get(&place, &served, "-k ada -o found.parquet").refusal();
    assert!(promised.contains("would not be what its name says"), "{promised}");
    assert!(!place.path("found.parquet").exists());
    for both in ["--json --format csv", "--raw --format csv", "-q -v"] {
        assert_eq!(get(&place, &served, &format!("-k ada {both}")).code(), 2);
    }
}

#[test]
fn the_environment_may_say_whom_to_ask_and_where_things_are_kept() {
    let place = Place::with_phones();
    let [one, two] =
        [(), ()].map(|()| Served::start(&place, "phones.privet --scheme dpf --no-cache"));
    for between in [" ", ",", ", "] {
        let mut command = place.command("get -k ada");
        command.env("PRIVET_URL", format!("{}{between}{}", one.url, two.url));
        command.env("PRIVET_STATE", "kept");
        let run = Run(command.output().unwrap());
        assert_eq!((run.code(), run.stdout()), (0, FOUND), "{run}");
    }
    let mut command = place.command("state show");
    let shown = Run(command.env("PRIVET_STATE", "kept").output().unwrap());
    for server in [&one, &two] {
        let seen = format!("  seen as                phones at {}\n", server.url);
        assert!(shown.stdout().contains(&seen), "{shown}");
    }
    // Typed addresses take precedence.
    let mut command = place.command(&format!("get {} {} -k ada", one.url, two.url));
    let run = Run(command.env("PRIVET_URL", "http://127.0.0.1:1").output().unwrap());
    assert_eq!((run.code(), run.stdout()), (0, FOUND), "{run}");
}

#[test]
fn a_key_that_is_not_found_is_not_repeated_at_length() {
    let (place, served) = Served::phones();
    let run = get(&place, &served, &format!("--key {}", "k".repeat(100_000)));
    let shown = "k".repeat(100);
    assert_eq!(run.stderr(), format!("privet: not found: {shown}… (100,000 characters)\n"));
}

/// What standard error says is kept in journals and logs, unless it is a terminal.
#[test]
fn a_key_of_a_list_that_is_not_found_is_told_by_its_line() {
    let (place, served) = Served::phones();
    place.write("keys", "ada\n\nsecret\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys --verbose -k nobody").stderr()
        .lines().filter(|line| line.contains("found")).collect::<Vec<_>>().join("\n"), @r"
    privet: not found: nobody
    privet: not found: line 3 of keys
    ");
    for more in ["", "--format csv", "--raw"] {
        let run = get(&place, &served, &format!("--keys-from keys {more}"));
        assert!(run.stderr().contains("line 3 of keys"), "{run}");
        assert!(!run.to_string().contains("secret"), "{run}");
    }
    let arguments = format!("get {} --keys-from -", served.url);
    let run = place.run_with_input(&arguments, b"secret\n");
    assert_eq!(run.stderr(), "privet: not found: line 1 of standard input\n");
}

/// What is found is private. A file that was there keeps the permissions that somebody gave it.
#[cfg(unix)]
#[test]
fn a_new_file_of_what_was_found_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, served) = Served::phones();
    place.write("shared", "");
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(place.path("shared"), open).unwrap();
    for (name, mode) in [("new", 0o600), ("shared", 0o640)] {
        assert_eq!(get(&place, &served, &format!("-k ada -o {name}")).code(), 0);
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), FOUND);
        let permissions = place.path(name).metadata().unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn blank_lines_are_no_keys_and_quiet_says_nothing_of_them() {
    let (place, served) = Served::phones();
    place.write("keys", "\nada\r\n\r\n\n");
    assert_snapshot!(get(&place, &served, "--keys-from keys"), @r#"
    [exit 0]
    [stdout]
    ada	{"phone":"555-1","floor":"3"}
    [stderr]
    privet: skipped 3 blank lines of keys
    "#);
    let quiet = get(&place, &served, "--keys-from keys --quiet -k nobody");
    assert_eq!((quiet.code(), quiet.stderr()), (1, "privet: not found: nobody\n"));
    place.write("keys", "\n");
    let none = get(&place, &served, "--keys-from keys");
    assert_eq!((none.code(), none.stdout()), (0, ""), "{none}");
}

/// A key may consist of any bytes, wherever it is read from.
#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_are_a_key_on_the_line_and_a_mistake_in_a_list() {
    use std::os::unix::ffi::OsStrExt as _;
    let (place, served) = Served::phones();
    let mut command = place.command(&format!("get {} --json --key", served.url));
    command.arg(std::ffi::OsStr::from_bytes(b"a\xffda"));
    let typed = Run(command.output().unwrap());
    // No other key looks like it.
    assert_eq!(typed.stdout(), "{\"key_hex\":\"61ff6461\",\"found\":false}\n", "{typed}");
    assert_eq!(typed.code(), 1);
    place.write("keys", b"a\xffda");
    let listed = get(&place, &served, "--keys-from keys --json");
    assert_eq!((listed.code(), listed.stdout()), (2, ""), "{listed}");
}

/// The writer of keys may wait for a result before it writes the next key.
#[test]
fn lookups_begin_while_keys_still_come() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Stdio;
    let (place, served) = Served::phones();
    let mut command = place.command(&format!("get {} --keys-from -", served.url));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut found = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        keys.write_all(b"ada\n").unwrap();
        keys.flush().unwrap();
        let mut line = String::new();
        found.read_line(&mut line).unwrap();
        assert_eq!(line, format!("ada\t{FOUND}"));
    }
    drop(keys);
    assert!(child.wait().unwrap().success());
}

/// The command ends in time even if keys never come.
#[test]
fn waiting_for_keys_has_an_end() {
    let (place, served) = Served::phones();
    let mut command = place.command(&format!("get {} --keys-from - --max-time 1", served.url));
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let keys = child.stdin.take();
    let run = Run(child.wait_with_output().unwrap());
    drop(keys);
    assert_eq!((run.code(), run.stdout()), (3, ""), "{run}");
    assert!(run.stderr().contains("(--max-time)"), "{run}");
}

#[test]
fn records_are_found_by_number() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.build("phones.csv --raw-value phone -o phones.privet");
    let served = Served::start(&place, "phones.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "--index 0 -i 2 --json"), @r#"
    [exit 0]
    [stdout]
    {"index":0,"found":true,"text":"555-1"}
    {"index":2,"found":true,"text":"5,5"}
    "#);
    assert_snapshot!(get(&place, &served, "--index 2"), @r#"
    [exit 0]
    [stdout]
    5,5
    "#);
    // The table tells that its values are text, so none of them is taken for a number.
    place.write("numbers.csv", "phone\n555\n");
    place.build("numbers.csv --raw-value phone -o numbers.privet");
    let numbers = Served::start(&place, "numbers.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &numbers, "--index 0 --json"), @r#"
    [exit 0]
    [stdout]
    {"index":0,"found":true,"text":"555"}
    "#);
    assert_snapshot!(get(&place, &served, "--index 3"), @r#"
    [exit 2]
    [stderr]
    privet: there is no record with that index: the table has 3 records, numbered from 0
    "#);
    assert_snapshot!(get(&place, &served, "--key ada"), @r#"
    [exit 2]
    [stderr]
    privet: the table has no keys: look records up by number (--index)
    "#);
}

/// The outcome of one lookup must not affect the queries after it. So all are sent, and errors are
/// reported at the end.
#[test]
fn a_lookup_that_fails_does_not_end_the_others() {
    let place = Place::new();
    place.write("phones.csv", PHONES);
    place.build("phones.csv --raw-value phone -o phones.privet");
    let served = Served::start(&place, "phones.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "--index 0 -i 7 -i 2"), @r#"
    [exit 2]
    [stdout]
    0	555-1
    2	5,5
    [stderr]
    privet: there is no record with that index: the table has 3 records, numbered from 0
    "#);
    assert_snapshot!(get(&place, &served, "--index 7 -i 8 -i 2"), @r#"
    [exit 2]
    [stdout]
    2	5,5
    [stderr]
    privet: 2 lookups failed; the first: there is no record with that index: the table has 3 records, numbered from 0
    "#);
}

#[test]
fn a_table_by_key_has_no_row_numbers() {
    let (place, served) = Served::phones();
    assert_snapshot!(get(&place, &served, "--index 0"), @r#"
    [exit 2]
    [stderr]
    privet: the table is not looked up by number, but by key (--key)
    "#);
}

#[test]
fn one_of_several_tables_must_be_named() {
    let place = Place::with_phones();
    place.build("phones.csv --key phone -o names.privet");
    let served = Served::start(&place, "phones.privet names.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "--table names -k 555-2"), @r#"
    [exit 0]
    [stdout]
    {"name":"bob","floor":"4"}
    "#);
    assert_snapshot!(get(&place, &served, "--table phones -k bob"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-2","floor":"4"}
    "#);
    assert_snapshot!(get(&place, &served, "-k bob"), @r#"
    [exit 2]
    [stderr]
    privet: the server has several tables: phones, names; choose one by name (--table)
    "#);
    assert_snapshot!(get(&place, &served, "--table faces -k bob"), @r#"
    [exit 2]
    [stderr]
    privet: the server has no table called "faces"; it has: phones, names
    "#);
}

#[test]
fn the_hint_is_fetched_once_and_kept() {
    let (place, served) = Served::phones();
    assert_snapshot!(get(&place, &served, "-k ada -v --state state"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-1","floor":"3"}
    [stderr]
    privet: table phones at epoch 0, 3 records of 38 B, digest [DIGEST], scheme simplepir; the server runs privet [VERSION]
    privet: ready after [TIME] (152.12 KiB fetched); 1 lookup, 71 B sent and 212 B received, query [TIME] and recover [TIME] each
    "#);
    assert_snapshot!(get(&place, &served, "-k ada -v --state state"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-1","floor":"3"}
    [stderr]
    privet: table phones at epoch 0, 3 records of 38 B, digest [DIGEST], scheme simplepir; the server runs privet [VERSION]
    privet: ready after [TIME] (0 B fetched); 1 lookup, 71 B sent and 212 B received, query [TIME] and recover [TIME] each
    "#);
    assert!(place.path("state").is_dir() && !place.path(".local").exists());
    assert_eq!(get(&place, &served, "-k ada").code(), 0);
    assert!(place.path(".local/state/privet").is_dir());
}

#[test]
fn a_damaged_hint_is_fetched_again() {
    let (place, served) = Served::phones();
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
            // Hints are far longer than any other file in the state.
            if bytes.len() > 10_000 {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&path, bytes).unwrap();
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    // The damage is found before any query, so finding it does not depend on the key.
    assert_snapshot!(get(&place, &served, "-k ada --state state"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-1","floor":"3"}
    [stderr]
    privet: state/tables/[ID]/hint-[ID].part: it is damaged; the hint will be fetched again
    "#);
}

#[test]
fn a_changed_table_is_refused_until_accepted() {
    let (place, served) = Served::phones();
    assert_eq!(get(&place, &served, "-k ada").code(), 0);
    let address = served.address().to_owned();
    assert_eq!(served.terminate(), Some(0));
    place.write("phones.csv", "name,phone\nada,1\n");
    place.build("phones.csv --key name -o phones.privet");
    let served = Served::start_at(&place, &address, "phones.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "-k ada"), @r#"
    [exit 4]
    [stderr]
    privet: table phones is another table than before (id [ID] then, [ID] now); nothing was asked. If you expected this change, accept the new table (--accept-new-table)
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --accept-new-table"), @r#"
    [exit 0]
    [stdout]
    {"phone":"1"}
    "#);
    assert_snapshot!(get(&place, &served, "-k ada"), @r#"
    [exit 0]
    [stdout]
    {"phone":"1"}
    "#);
}

#[test]
fn a_renamed_table_is_refused_until_it_is_named() {
    let place = Place::with_phones();
    let arguments = "--scheme simplepir --no-cache";
    let served = Served::start(&place, &format!("phones.privet {arguments}"));
    assert_eq!(get(&place, &served, "-k ada").code(), 0);
    let address = served.address().to_owned();
    assert_eq!(served.terminate(), Some(0));
    // The same address serves only one table, a different one under a different name.
    place.write("others.csv", "name,phone\nada,1\n");
    place.build("others.csv --key name -o others.privet");
    let served = Served::start_at(&place, &address, &format!("others.privet {arguments}"));
    assert_snapshot!(get(&place, &served, "-k ada"), @r#"
    [exit 4]
    [stderr]
    privet: the only table of the server is others, and the table used there last was phones: another table by its id; nothing was asked. If others is the table that you want, name it (--table)
    "#);
    assert_eq!(get(&place, &served, "-k ada --table others").stdout(), "{\"phone\":\"1\"}\n");
    assert_eq!(get(&place, &served, "-k ada").code(), 0, "it was named once");
    assert_eq!(served.terminate(), Some(0));
    // The first table again, under a third name. The client has not forgotten it, and it is
    // unchanged.
    let served = Served::start_at(&place, &address, &format!("third=phones.privet {arguments}"));
    assert_snapshot!(get(&place, &served, "-k ada"), @r#"
    [exit 4]
    [stderr]
    privet: the only table of the server is third, and the table used there last was others: another table by its id; nothing was asked. If third is the table that you want, name it (--table)
    "#);
    assert_eq!(get(&place, &served, "-k ada --table third").code(), 0);
    assert_eq!(served.terminate(), Some(0));
    // A table that is served differently is recognised by its id and refused, even under a new
    // name.
    let served =
        Served::start_at(&place, &address, "new=phones.privet --no-cache --scheme download");
    assert_snapshot!(get(&place, &served, "-k ada --table new"), @r#"
    [exit 4]
    [stderr]
    privet: table new was used before as table phones, and is served with another scheme or other parameters than before; nothing was asked. If you expected this change, accept the new table (--accept-new-table)
    "#);
}

#[test]
fn a_scheme_can_be_demanded() {
    let (place, served) = Served::phones();
    assert_snapshot!(get(&place, &served, "-k ada --scheme dummy-subsets,download"), @r#"
    [exit 2]
    [stderr]
    privet: table phones is served by simplepir, and dummy-subsets, download was to be used; name one that all servers offer (--scheme)
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --verified"), @r#"
    [exit 2]
    [stderr]
    privet: table phones is served by simplepir, and only schemes that verify answers were to be used: apir-dpf, apir-matrix-mt, tapir-mt, tapir-pp. Ask those who run the servers for one of these, or allow the others (leave out --verified)
    "#);
    for scheme in [
        "--scheme simplepir",
        "--scheme download,simplepir",
        "--scheme download --scheme simplepir",
    ] {
        let run = get(&place, &served, &format!("-k ada {scheme}"));
        assert_eq!((run.code(), run.stderr()), (0, ""), "{scheme}");
    }
    let unknown = get(&place, &served, "-k ada --scheme onion");
    assert_eq!(unknown.code(), 2, "{unknown}");
    assert!(unknown.stderr().contains("there is no scheme \"onion\" here"), "{unknown}");
    let pair = ["phones.privet --scheme apir-dpf --no-cache"; 2];
    let [first, second] = pair.map(|arguments| Served::start(&place, arguments));
    let run = place.run(&format!("get {} {} -k ada --verified", first.url, second.url));
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
}

#[test]
fn more_lookups_than_a_generation_serves_are_answered() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --scheme dummy-subsets");
    // A generation for so small a table serves 128 queries.
    place.write("keys", "bob\nada\neve\n".repeat(70));
    let run = get(&place, &served, "--keys-from keys --state state --verbose");
    assert_eq!(run.code(), 0, "{run}");
    assert!(run.stderr().contains("privet: the next generation of hints has taken in "), "{run}");
    assert_eq!(run.stdout().lines().count(), 210);
    assert_eq!(run.stdout().matches("555-1").count(), 70);
}

#[test]
fn a_certificate_may_be_trusted_by_file() {
    let place = Place::with_phones();
    // A certificate as `openssl req -x509` makes it, which calls itself an authority.
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    place.write("cert.pem", params.self_signed(&key).unwrap().pem());
    place.write_secret("key.pem", key.serialize_pem());
    let served = Served::start(
        &place,
        "phones.privet --scheme simplepir --no-cache --tls-cert cert.pem --tls-key key.pem",
    );
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, simplepir, hint of 152.00 KiB computed, ready in [TIME], digest [DIGEST]
    listening at https://127.0.0.1:[PORT]
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --ca-file cert.pem"), @r#"
    [exit 0]
    [stdout]
    {"phone":"555-1","floor":"3"}
    "#);
    assert_snapshot!(get(&place, &served, "-k ada"), @r#"
    [exit 3]
    [stderr]
    privet: the certificate of https://127.0.0.1:[PORT] is not to be trusted (it is signed by itself, or by nobody who is trusted here); if the server uses a certificate of its own, get that certificate or its authority's from whoever runs the server, and name the file (--ca-file)
    "#);
    let by_name = served.url.replace("127.0.0.1", "localhost");
    let refused = place.run(&format!("get {by_name} -k ada --ca-file cert.pem"));
    assert_eq!(refused.code(), 3, "{refused}");
    assert!(refused.stderr().contains("is for another name ("), "{refused}");
    assert_snapshot!(get(&place, &served, "-k ada --ca-file key.pem"), @r#"
    [exit 2]
    [stderr]
    privet: key.pem holds no certificate in PEM form: it holds a private key
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --ca-file missing.pem"), @r#"
    [exit 2]
    [stderr]
    privet: cannot read missing.pem: No such file or directory (os error 2)
    "#);
    let plain = format!("get http://{} -k ada", served.address());
    assert_snapshot!(place.run(&plain), @r#"
    [exit 3]
    [stderr]
    privet: http://127.0.0.1:[PORT] does not speak gRPC ([HOW IT BROKE OFF]); check that the address and port are those of a Privet server, and whether it is http:// or https:// there; a server at its limit of connections looks the same
    "#);
}

/// A stranger's authority among the system's must not count for who names a file.
#[test]
fn a_named_file_is_trusted_instead_of_the_system_and_not_besides() {
    let place = Place::with_phones();
    for name in ["system", "other"] {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        place.write(&format!("{name}.pem"), made.cert.pem());
        place.write_secret(&format!("{name}.key"), made.signing_key.serialize_pem());
    }
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    place.write("both.pem", [read("other.pem"), read("system.pem")].concat());
    let served = Served::start(
        &place,
        "phones.privet --no-cache --tls-cert system.pem --tls-key system.key",
    );
    let get = |ca_file: &str| {
        let mut command = place.command(&format!("get {} -k ada {ca_file}", served.url));
        command.env("SSL_CERT_FILE", place.path("system.pem"));
        Run(command.output().unwrap())
    };
    assert_eq!(get("").code(), 0);
    let refused = get("--ca-file other.pem");
    assert_eq!(refused.code(), 3, "{refused}");
    assert!(refused.stderr().contains("is not to be trusted"), "{refused}");
    assert_eq!(get("--ca-file both.pem").code(), 0);
}

/// A value that tries to start a line of its own, and to send commands to a terminal.
#[test]
fn a_value_stays_in_its_line() {
    let place = Place::new();
    let forged = "{\"k\":\"a\",\"v\":\"[1,\\n{\\\"key\\\":\\\"victim\\\",\\\"found\\\":true}\\n]\"}\n\
        {\"k\":\"b\",\"v\":\"\\u001b[2J\\u202e\"}\n";
    place.write("forged.jsonl", forged);
    place.build("forged.jsonl --key k --raw-value v -o forged.privet");
    let served = Served::start(&place, "forged.privet --no-cache");
    assert_snapshot!(get(&place, &served, "-k a -k b --json"), @r#"
    [exit 0]
    [stdout]
    {"key":"a","found":true,"value":[1,{"key":"victim","found":true}]}
    {"key":"b","found":true,"text":"\u001b[2J\u202e"}
    "#);
    // Outside a terminal, and with `--raw`, values are printed unchanged.
    for raw in ["", "--raw"] {
        let run = get(&place, &served, &format!("-k b {raw}"));
        assert_eq!(run.stdout(), "\u{1b}[2J\u{202e}\n");
    }
    let missing = get(&place, &served, "-k no\u{1b}[2Jbody");
    assert_eq!(missing.stderr(), "privet: not found: no\\u{1b}[2Jbody\n");
}

/// Starts looking up 20,000 keys, and calls `stop` once the first is found. Returns how many were
/// found, and how the command ended.
fn interrupted(place: &Place, url: &str, arguments: &str, stop: impl FnOnce()) -> (usize, Run) {
    use std::io::{BufRead as _, BufReader, Read as _};
    place.write("keys", "ada\nbob\n".repeat(10_000));
    let mut command = place.command(&format!("get {url} --keys-from keys {arguments}"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command waits for no reader. But the lookups take longer than it takes to read this.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    out.read_line(&mut printed).unwrap();
    stop();
    out.read_to_string(&mut printed).unwrap();
    let expected = [
        "ada\t{\"phone\":\"555-1\",\"floor\":\"3\"}",
        "bob\t{\"phone\":\"555-2\",\"floor\":\"4\"}",
    ];
    for line in printed.lines() {
        assert!(expected.contains(&line), "not whole: {line}");
    }
    let run = Run(child.wait_with_output().unwrap());
    // Two lines for one key say that the lookup between them was under way and failed. The server
    // may have sent the answer to a later one before that.
    let lines: Vec<_> = printed.lines().collect();
    let gaps = lines.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(gaps == 0 || run.stderr().contains("lookups failed"), "{gaps} gaps: {run}");
    (lines.len(), run)
}

#[test]
fn a_server_that_ends_in_the_middle_ends_the_command_with_what_was_found() {
    for (scheme, servers) in [("simplepir", 1), ("dpf", 2), ("singlepass", 2)] {
        let place = Place::with_phones();
        let serve = format!("phones.privet --scheme {scheme} --no-cache");
        let mut all: Vec<_> = (0..servers).map(|_| Served::start(&place, &serve)).collect();
        let urls: Vec<_> = all.iter().map(|served| served.url.clone()).collect();
        let last = all.pop().unwrap();
        let began = std::time::Instant::now();
        let (found, run) = interrupted(&place, &urls.join(" "), "--timeout 4", || drop(last));
        assert_eq!(run.code(), 3, "{scheme}: {run}");
        assert!((1..20_000).contains(&found), "{scheme}: {found}");
        assert!(run.stderr().contains("were not begun"), "{scheme}: {run}");
        let told = run.stderr().matches("trying again").count();
        assert!((1..=3).contains(&told), "{scheme}: {run}");
        assert!(began.elapsed().as_secs() < 60, "{scheme}: {:?}", began.elapsed());
    }
}

#[test]
fn a_server_that_stands_still_is_not_waited_for_for_ever_nor_in_silence() {
    let (place, served) = Served::phones();
    let url = served.url.clone();
    let (found, run) = interrupted(&place, &url, "--timeout 4", || served.freeze());
    assert_eq!(run.code(), 3, "{run}");
    assert!((1..20_000).contains(&found), "{found}");
    assert!(run.stderr().contains("nothing has come from http://"), "{run}");
    assert!(run.stderr().contains(" within 2 s; allow more time (--timeout)"), "{run}");
}

#[test]
fn the_whole_command_may_be_given_a_time() {
    let (place, served) = Served::phones();
    let url = served.url.clone();
    let (found, run) = interrupted(&place, &url, "--max-time 2", || served.freeze());
    assert_eq!(run.code(), 3, "{run}");
    assert!((1..20_000).contains(&found), "{found}");
    assert!(run.stderr().contains("(--max-time)"), "{run}");
    // The limit also applies before the first lookup.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let run = place.run(&format!("get http://{address} -k ada --max-time 1"));
    assert_eq!(run.code(), 3, "{run}");
    assert!(run.stderr().contains("(--max-time)"), "{run}");
}
