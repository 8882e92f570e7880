//! Schemes beside SimplePIR as a user sees them: one or two processes serve, and another looks up.

use crate::place::{PHONES, Place};
use crate::served::Served;
use insta::assert_snapshot;
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, Tuning};
use privet_table::snapshot::Snapshot;

/// What `get -v` says of some schemes beyond what their descriptors do.
const WORDS: &[(SchemeId, &str)] = &[
    (
        SchemeId::DummySubsets,
        "privet: 4 partitions of 2 records; 128 hints and 128 pairs of backup hints, one pair for each query, ",
    ),
    (SchemeId::DummySubsetsTwo, ASKED_FIRST),
    (SchemeId::DummySubsetsTwo, ", replaced as they are used"),
    (SchemeId::SinglePass, ASKED_FIRST),
    (SchemeId::SinglePass, ", replaced as they are used"),
    (
        SchemeId::Piano,
        "lookups of records chosen by somebody who knows the table's public shuffle may use up one chunk's spare hints; such a lookup fails with an error, and the query that was sent looks like any other",
    ),
    (privet_laboratory::FINITE_DIFFERENCES_MANY, "on each of 3 servers"),
];

const ASKED_FIRST: &str = "the first server computes the hints and learns their key; the second answers and must not learn it";

/// Runs every scheme of the registry between processes, and checks what is printed.
/// `crates/client/tests/end_to_end.rs` checks that lookups are right on every form of table.
#[test]
fn every_scheme_is_served_by_processes_and_asked_by_others() {
    let place = Place::with_phones();
    assert_eq!(place.run("setup pointproofs --size 4 -o string").code(), 0);
    let identity = Snapshot::open(&place.path("phones.privet")).unwrap().identity();
    let string = "--reference-string string";
    let with_openings = format!("{string} --precompute-openings");
    let cases = privet_laboratory::all()
        .map(|scheme| (scheme, if scheme.about().has("reference-string") { string } else { "" }));
    for (scheme, options) in cases.chain([(privet_laboratory::TAPIR_PP, &*with_openings)]) {
        // Its hint is 16 MiB for each byte of a record. It has a test of its own.
        if scheme == SchemeId::DoublePir {
            continue;
        }
        let about = scheme.about();
        let arguments = format!("phones.privet --no-cache --scheme {scheme} {options}");
        let servers: Vec<_> =
            (0..*about.servers.start()).map(|_| Served::start(&place, &arguments)).collect();
        let urls: Vec<&str> = servers.iter().map(|served| served.url.as_str()).collect();
        let get = |arguments: &str| place.run(&format!("get {} {arguments}", urls.join(" ")));
        let run = get("-k ada -k nobody -k ada -v");
        assert_eq!((run.code(), run.stdout()), (1, PAIR.repeat(2).as_str()), "{run}");
        assert!(run.stderr().contains(&format!("scheme {scheme};")), "{run}");
        assert_eq!(run.stderr().contains("verified"), about.verifies, "{run}");
        let own = WORDS.iter().filter(|(of, _)| *of == scheme).map(|(_, words)| *words);
        for words in own.chain(about.weaker_promise) {
            assert!(run.stderr().contains(words), "{words}: {run}");
        }
        // The next process uses the state that this one kept.
        let again = get("-k bob -v");
        assert_eq!((again.code(), again.stdout()), (0, "{\"phone\":\"555-2\",\"floor\":\"4\"}\n"));
        assert!(again.stderr().contains(" (0 B fetched); 1 lookup, "), "{again}");
        let tuning = privet_laboratory::completed(scheme, &identity, Tuning::default()).unwrap();
        let plan = registry::plan(scheme, &identity, &tuning).unwrap();
        let hints = place
            .run("state show")
            .stdout()
            .contains(&format!("private hints          {scheme}, "));
        assert_eq!(hints, plan.hints_len(&identity) > 0, "{scheme}");
        if urls.len() > 1 {
            let alone = place.run(&format!("get {} -k ada", urls[0]));
            assert_eq!(alone.code(), 2, "{alone}");
        }
        place.run("state reset --yes");
    }
}

const FOUND: &str = "{\"phone\":\"555-1\",\"floor\":\"3\"}\n";

/// The same value, preceded by its key.
const PAIR: &str = "ada\t{\"phone\":\"555-1\",\"floor\":\"3\"}\n";

#[test]
fn a_download_is_kept_and_nobody_is_asked_again() {
    let place = Place::with_phones();
    // The scheme that `auto` chooses for such a small table.
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, download, no hint to compute, ready in [TIME], digest [DIGEST]
      the scheme is chosen for one operator, clients that keep no secrets, and 10 lookups of each in a day; `privet plan` can know better
    listening at http://127.0.0.1:[PORT]
    "#);
    let get = |arguments: &str| place.run(&format!("get {} {arguments}", served.url));
    assert_snapshot!(get("-k ada -k nobody -k ada -v"), @r#"
    [exit 1]
    [stdout]
    ada	{"phone":"555-1","floor":"3"}
    ada	{"phone":"555-1","floor":"3"}
    [stderr]
    privet: table phones at epoch 0, 3 records of 38 B, digest [DIGEST], scheme download; the server runs privet [VERSION]
    privet: not found: nobody
    privet: ready after [TIME] (121 B fetched); 3 lookups, 0 B sent and 0 B received, query [TIME] and recover [TIME] each
    "#);
    let again = get("-k bob -v");
    assert_eq!((again.code(), again.stdout()), (0, "{\"phone\":\"555-2\",\"floor\":\"4\"}\n"));
    assert!(
        again.stderr().contains(" (0 B fetched); 1 lookup, 0 B sent and 0 B received"),
        "{again}"
    );
    assert_snapshot!(place.run("state show").printed(), @r#"
    [DIRECTORY]/.local/state/privet
      pins                   1 table from 1 server, 417 B
    table [ID]
      seen as                phones at http://127.0.0.1:[PORT]
      pinned                 epoch 0
      layout                 225 B, complete
      table                  234 B, complete
    "#);
}

#[test]
fn two_servers_answer_together_and_only_together() {
    let place = Place::with_phones();
    let serve = || Served::start(&place, "phones.privet --no-cache --scheme dpf");
    let (first, second) = (serve(), serve());
    assert_snapshot!(first.announcement, @r#"
    table phones: 3 records of 38 B, dpf, no hint to compute, ready in [TIME], digest [DIGEST]
    listening at http://127.0.0.1:[PORT]
    "#);
    let both = format!("get {} {}", first.url, second.url);
    assert_snapshot!(place.run(&format!("{both} -k ada -k nobody -v")), @r#"
    [exit 1]
    [stdout]
    ada	{"phone":"555-1","floor":"3"}
    [stderr]
    privet: table phones at epoch 0, 3 records of 38 B, digest [DIGEST], scheme dpf; the servers must not collude, and the first runs privet [VERSION]
    privet: not found: nobody
    privet: ready after [TIME] (0 B fetched); 2 lookups, 432 B sent and 388 B received, query [TIME] and recover [TIME] each
    "#);
    let swapped = place.run(&format!("get {} {} -k ada", second.url, first.url));
    assert_eq!((swapped.code(), swapped.stdout()), (0, FOUND), "{swapped}");

    assert_snapshot!(place.run(&format!("get {} -k ada", first.url)).mistake(), @r#"
    privet: table phones is served by dpf, which takes two servers, run by parties that do not collude, and one was named: name the addresses of both
    "#);
    assert_snapshot!(place.run(&format!("get {} {}/ -k ada", first.url, first.url)).mistake(), @r#"
    privet: http://127.0.0.1:[PORT] is named twice: it would see both queries of each lookup, and could tell from them what is looked up; name servers that are run by parties that do not collude
    "#);
    let third = serve();
    assert_snapshot!(place.run(&format!("{both} {} -k ada", third.url)).mistake(), @r#"
    privet: table phones is served by dpf, which takes two servers, run by parties that do not collude, and 3 were named: name the addresses of both
    "#);
}

#[test]
fn two_servers_that_differ_are_not_asked() {
    let place = Place::with_phones();
    let first = Served::start(&place, "phones.privet --no-cache --scheme dpf");
    place.write("other.csv", PHONES.replace("555-2", "555-3"));
    place.build("other.csv --key name -o other.privet");
    let second = Served::start(&place, "phones=other.privet --no-cache --scheme dpf");
    assert_snapshot!(place.run(&format!("get {} {} -k ada", first.url, second.url)), @r#"
    [exit 4]
    [stderr]
    privet: the second server has another table under the name phones than the first server (id [ID], not [ID]); nothing was asked. They have to serve the same table
    "#);
    // Two servers are too many for a scheme with one.
    let single = Served::start(&place, "phones.privet --no-cache --scheme simplepir");
    assert_snapshot!(place.run(&format!("get {} {} -k ada", single.url, first.url)).mistake(), @r#"
    privet: the first server does not serve table phones by dpf, as the second server does: table phones is served at the first server by simplepir, at the second server by dpf; nothing was asked. They have to be started with the same scheme; or name one that all of them offer (--scheme)
    "#);
}

#[test]
fn doublepir_serves_short_records_and_refuses_long_ones_with_numbers() {
    let place = Place::new();
    let letters: Vec<u8> = (0..5000u32).map(|row| b'a' + (row * 7 % 26) as u8).collect();
    let rows: String = letters.iter().map(|letter| format!("{}\n", *letter as char)).collect();
    place.write("letters.csv", format!("letter\n{rows}"));
    place.build("letters.csv --raw-value letter -o letters.privet");
    let wanted = "--index 0 --index 1 --index 2500 --index 4999";
    let expected: String = [0, 1, 2500, 4999]
        .iter()
        .map(|row| format!("{row}\t{}\n", letters[*row] as char))
        .collect();
    // Computed at first, then taken from the cache. The cache also holds what the server itself
    // needs.
    for origin in ["computed", "cached"] {
        let served = Served::start(&place, "letters.privet --scheme doublepir --cache cache");
        let announced = format!("5,000 records of 1 B, doublepir, hint of 16.00 MiB {origin}, ");
        assert!(served.announcement.contains(&announced), "{}", served.announcement);
        let run = place.run(&format!("get {} {wanted} -v", served.url));
        assert_eq!((run.code(), run.stdout()), (0, expected.as_str()), "{run}");
        assert_eq!(run.stderr().contains("16.00 MiB fetched"), origin == "computed", "{run}");
        assert_eq!(served.terminate(), Some(0));
    }

    let place = Place::new();
    place.write("long.csv", format!("text\n{}\n", "x".repeat(65)));
    place.build("long.csv --raw-value text -o long.privet");
    let arguments = "serve long.privet --no-cache --listen 127.0.0.1:0 --scheme doublepir";
    assert_snapshot!(place.run(arguments).mistake(), @r#"
    privet: table long: DoublePIR's hint has 16 MiB for each byte of a record, 1040 MiB for records of 65 bytes; the limit is 1024 MiB, records of 64 bytes; SimplePIR's hint for this table has 1 MiB
    "#);
}

#[test]
fn piano_says_what_it_does_not_promise() {
    let place = Place::with_phones();
    for scheme in ["piano", "piano-all-parities"] {
        let served = Served::start(&place, &format!("phones.privet --no-cache --scheme {scheme}"));
        let quiet = place.run(&format!("get {} -k ada", served.url));
        // A client that looks up keys is warned by default, and so is the server's operator.
        let warning = format!(
            "by {scheme}, the maker of the table (often the operator of the server) chose where keys lie, and can make lookups of a class of keys fail; for lookups by key, dummy-subsets is the better scheme"
        );
        assert_eq!((quiet.code(), quiet.stdout()), (0, FOUND));
        assert_eq!(quiet.stderr(), format!("privet: warning: {warning}\n"));
        place.server_log(|log| log.contains(&warning));
        place.run("state reset --yes");
    }
    // Nobody chose where records by number lie, so there is no warning. The other schemes have none
    // either.
    place.write("lines.csv", "line\none\ntwo\nthree\n");
    place.build("lines.csv --raw-value line -o lines.privet");
    let served = Served::start(&place, "lines.privet --no-cache --scheme piano");
    let run = place.run(&format!("get {} -i 1", served.url));
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    assert!(
        !std::fs::read_to_string(place.path("server.log")).unwrap().contains("dummy-subsets is")
    );
    let served = Served::start(&place, "phones.privet --no-cache --scheme dummy-subsets");
    let run = place.run(&format!("get {} -k ada", served.url));
    assert_eq!((run.code(), run.stdout(), run.stderr()), (0, FOUND, ""), "{run}");
    assert!(
        !std::fs::read_to_string(place.path("server.log")).unwrap().contains("dummy-subsets is")
    );
}

#[test]
fn the_size_of_partitions_is_chosen_by_the_server() {
    let place = Place::new();
    let rows: String = (0..1000).map(|row| format!("{row:04}\n")).collect();
    place.write("rows.csv", format!("value\n{rows}"));
    place.build("rows.csv --raw-value value -o rows.privet");
    let served = Served::start(
        &place,
        "rows.privet --no-cache --scheme dummy-subsets --partition-records 128",
    );
    let run = place.run(&format!("get {} --index 999 -v", served.url));
    assert_eq!((run.code(), run.stdout()), (0, "0999\n"), "{run}");
    assert!(run.stderr().contains("8 partitions of 128 records"), "{run}");
    let arguments = "serve rows.privet --no-cache --listen 127.0.0.1:0 --scheme simplepir --partition-records 128";
    assert_snapshot!(place.run(arguments).mistake(), @r#"
    privet: table rows: simplepir does not cut the table into partitions, so their size cannot be chosen
    "#);
}

#[test]
fn finite_differences_are_asked_of_two_servers_with_the_same_polynomial() {
    let place = Place::with_phones();
    let serve = |more: &str| {
        Served::start(
            &place,
            &format!("phones.privet --no-cache --scheme finite-differences {more}"),
        )
    };
    let (first, second, other) = (serve(""), serve(""), serve("--variables 9 --degree 3"));
    let get = |first: &Served, second: &Served| {
        place.run(&format!("get {} {} -k ada -k nobody -v", first.url, second.url))
    };
    let found = get(&first, &second);
    assert_eq!((found.code(), found.stdout()), (1, PAIR), "{found}");
    assert!(found.stderr().contains("scheme finite-differences"), "{found}");
    // Both servers have the table, but what they computed from it differs.
    let refused = get(&first, &other);
    assert_eq!((refused.code(), refused.stdout()), (2, ""), "{refused}");
    place.run(&format!("get {} -k ada", first.url)).says(2, "takes two servers");
}

#[test]
fn finite_differences_with_many_servers_are_asked_of_all_of_them() {
    let place = Place::with_phones();
    let serve = |servers: u32| {
        let scheme = format!("--scheme finite-differences-many --servers {servers}");
        Served::start(&place, &format!("phones.privet --no-cache {scheme}"))
    };
    let get = |servers: &[&Served]| {
        let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
        place.run(&format!("get {} -k ada -k nobody -v", urls.join(" ")))
    };
    for count in [3, 5] {
        let servers: Vec<Served> = (0..count).map(|_| serve(count)).collect();
        let mut all: Vec<&Served> = servers.iter().collect();
        let found = get(&all);
        assert_eq!((found.code(), found.stdout()), (1, PAIR), "{found}");
        assert!(found.stderr().contains(&format!("on each of {count} servers")), "{found}");
        // Clients may name the servers in any order, since a lookup sends each of them a different
        // point.
        all.reverse();
        assert_eq!(get(&all).stdout(), PAIR);
        // One server is missing, or uses another polynomial for the table than the rest.
        let refused = get(&all[1..]);
        assert_eq!((refused.code(), refused.stdout()), (2, ""), "{refused}");
        assert!(refused.stderr().contains(&format!("takes {count} servers")), "{refused}");
        let other = serve(4);
        all[2] = &other;
        let refused = get(&all);
        assert_eq!((refused.code(), refused.stdout()), (2, ""), "{refused}");
    }
}

#[test]
fn what_finite_differences_cannot_keep_is_refused_with_what_they_can() {
    let place = Place::with_phones();
    let serve = |more: &str| place.run(&format!("serve phones.privet --no-cache {more}"));
    serve("--scheme finite-differences --storage-limit 10").says(2, "variables of degree");
    // The records of this table are not single bits.
    let refused = serve("--scheme finite-differences --one-bit");
    assert_eq!(refused.code(), 2, "{refused}");
    let refused = serve("--scheme dpf --storage-limit 1000");
    assert_eq!(refused.code(), 2, "{refused}");
    let only = "is for finite-differences and finite-differences-many alone";
    assert!(refused.stderr().contains(only), "{refused}");
    serve("--scheme finite-differences --servers 3")
        .says(2, "is for finite-differences-many alone");
}
