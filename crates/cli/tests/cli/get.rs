//! `privet get` against a server in another process: what it finds, what it does not find, and what
//! it keeps between calls.

use crate::place::{Place, Run};
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
    assert_snapshot!(get(&place, &served, "--key ada").printed(), @r#"
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
    assert_snapshot!(get(&place, &served, "--keys-from keys").printed(), @r#"
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
    assert_snapshot!(get(&place, &served, "--keys-from missing").mistake(), @r#"
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
        get(&place, &served, &format!("--keys-from keys -o {output}")).says(2, "would be lost");
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
    let place = Place::with_rows();
    place.build("phones.csv --raw-value phone -o phones.privet");
    let served = Served::start(&place, "phones.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "--index 0 -i 2 --json").printed(), @r#"
    {"index":0,"found":true,"text":"555-1"}
    {"index":2,"found":true,"text":"5,5"}
    "#);
    assert_snapshot!(get(&place, &served, "--index 2").printed(), @r#"
    5,5
    "#);
    // The table tells that its values are text, so none of them is taken for a number.
    place.write("numbers.csv", "phone\n555\n");
    place.build("numbers.csv --raw-value phone -o numbers.privet");
    let numbers = Served::start(&place, "numbers.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &numbers, "--index 0 --json").printed(), @r#"
    {"index":0,"found":true,"text":"555"}
    "#);
    assert_snapshot!(get(&place, &served, "--index 3").mistake(), @r#"
    privet: there is no record with that index: the table has 3 records, numbered from 0
    "#);
    assert_snapshot!(get(&place, &served, "--key ada").mistake(), @r#"
    privet: the table has no keys: look records up by number (--index)
    "#);
}

/// The outcome of one lookup must not affect the queries after it. So all are sent, and errors are
/// reported at the end.
#[test]
fn a_lookup_that_fails_does_not_end_the_others() {
    let place = Place::with_rows();
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
    assert_snapshot!(get(&place, &served, "--index 0").mistake(), @r#"
    privet: the table is not looked up by number, but by key (--key)
    "#);
}

#[test]
fn one_of_several_tables_must_be_named() {
    let place = Place::with_phones();
    place.build("phones.csv --key phone -o names.privet");
    let served = Served::start(&place, "phones.privet names.privet --scheme simplepir --no-cache");
    assert_snapshot!(get(&place, &served, "--table names -k 555-2").printed(), @r#"
    {"name":"bob","floor":"4"}
    "#);
    assert_snapshot!(get(&place, &served, "--table phones -k bob").printed(), @r#"
    {"phone":"555-2","floor":"4"}
    "#);
    assert_snapshot!(get(&place, &served, "-k bob").mistake(), @r#"
    privet: the server has several tables: phones, names; choose one by name (--table)
    "#);
    assert_snapshot!(get(&place, &served, "--table faces -k bob").mistake(), @r#"
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
    privet: ready after [TIME] (152.01 KiB fetched); 1 lookup, 71 B sent and 212 B received, query [TIME] and recover [TIME] each
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
    assert_snapshot!(get(&place, &served, "-k ada --accept-new-table").printed(), @r#"
    {"phone":"1"}
    "#);
    assert_snapshot!(get(&place, &served, "-k ada").printed(), @r#"
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
    assert_snapshot!(get(&place, &served, "-k ada --scheme dummy-subsets,download").mistake(), @r#"
    privet: table phones is served by simplepir, and dummy-subsets, download was to be used; name one that all servers offer (--scheme)
    "#);
    assert_snapshot!(get(&place, &served, "-k ada --verified").mistake(), @r#"
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
    get(&place, &served, "-k ada --scheme onion").says(2, "there is no scheme \"onion\" here");
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
    let run = get(&place, &served, "--keys-from keys --state state --verbose")
        .says(0, "privet: the next generation of hints has taken in ");
    assert_eq!(run.stdout().lines().count(), 210);
    assert_eq!(run.stdout().matches("555-1").count(), 70);
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
    assert_snapshot!(get(&place, &served, "-k a -k b --json").printed(), @r#"
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
