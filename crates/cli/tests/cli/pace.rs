//! What leaves the connection of `privet get`, and when, follows from the list alone: not from what
//! is found, nor from who reads the output and how fast. A relay records it outside the process.
//! (`crates/cli/src/commands/get/tests.rs` shows that planted mistakes would be noticed.)

use crate::place::Place;
use crate::served::Served;
use privet_testing::{Margins, Observed, Reading, Relay, differences, observe};
use std::time::Duration;

/// So many that their values fill a pipe.
const LOOKUPS: usize = 160;

/// The command waits for nobody if it closes its connections while nothing of its output is read.
const LAST: Reading = Reading::Last(Duration::from_secs(120));

/// A table of a few long values, which fill a pipe soon, and a few short ones. And lists of keys of
/// each kind, of keys that are not there, and of a few that are there before many that are not.
fn place() -> Place {
    let place = Place::new();
    let rows = (0..8).map(|row| format!("long{row},{}\nshort{row},v\n", "v".repeat(500)));
    place.write("rows.csv", format!("k,v\n{}", rows.collect::<String>()));
    place.build("rows.csv --key k --raw-value v -o rows.privet");
    for kind in ["long", "short", "none"] {
        let keys = (0..LOOKUPS).map(|number| format!("{kind}{}\n", number % 8));
        place.write(kind, keys.collect::<String>());
    }
    let keys = (0..LOOKUPS)
        .map(|number| format!("{}{number}\n", if number < 2 { "long" } else { "none" }));
    place.write("first", keys.collect::<String>());
    place
}

fn get(place: &Place, served: &Served, arguments: &str, reading: Reading) -> Observed {
    let relay = Relay::start(served.address().parse().unwrap()).unwrap();
    let get = format!("get {} --state state {arguments}", relay.url());
    observe(place.command(&get), &relay, reading).unwrap()
}

#[test]
fn what_is_sent_and_when_does_not_follow_from_what_is_found_or_who_reads_it() {
    let place = place();
    for scheme in ["simplepir", "simplepir-packed"] {
        let served = Served::start(&place, &format!("rows.privet --scheme {scheme} --no-cache"));
        // The first call receives the hint, which the others find.
        get(&place, &served, "--key long0 --accept-new-table", Reading::All);
        let all = get(&place, &served, "--keys-from none", Reading::All);
        assert_eq!(all.code, Some(1), "{}", all.said);
        assert!(all.record.messages().len() > LOOKUPS, "{scheme}");

        let cases = [
            ("--keys-from long", LAST, Some(0)),
            ("--keys-from short", Reading::All, Some(0)),
            // Whether the command notices that its reader went away depends on when that was.
            ("--keys-from first", Reading::FirstLine, None),
            ("--keys-from none --json", LAST, Some(1)),
            ("--keys-from long -o found", Reading::All, Some(0)),
            #[cfg(target_os = "linux")]
            ("--keys-from long -o /dev/full", Reading::All, Some(3)),
        ];
        let cases = if scheme == "simplepir" { &cases[..] } else { &cases[..3] };
        for (arguments, reading, code) in cases {
            let seen = get(&place, &served, arguments, *reading);
            let as_expected = code.is_none() || seen.code == *code;
            assert!(as_expected, "{scheme} {arguments}: {:?} {}", seen.code, seen.said);
            assert!(seen.waited_for_nobody, "{scheme} {arguments}");
            // Pauses of a busy machine are not counted. Those of a reader would be longer: this one
            // reads nothing before all is sent.
            let margins = Margins { time: Duration::from_secs(60), ..Margins::default() };
            let found = differences(&all.record, &seen.record, &margins);
            assert_eq!(found, [""; 0], "{scheme} {arguments}");
        }
    }
}

/// Nor from whether something is a key at all: a network in a table of addresses, say.
#[test]
fn what_is_sent_and_when_does_not_follow_from_whether_keys_can_be_in_the_table() {
    let place = Place::new();
    let networks = (0..40).map(|row| format!("10.0.{row}.0/24,v\n")).collect::<String>();
    place.write("networks.csv", format!("k,v\n{networks}"));
    place.build("networks.csv --range-from k --raw-value v -o networks.privet");
    let hashes = (0..40).map(|row| format!("00{row:02x}0a,v\n")).collect::<String>();
    place.write("hashes.csv", format!("k,v\n{hashes}"));
    place.build("hashes.csv --key k --key-format hex --raw-value v -o hashes.privet");
    type Keys = fn(usize) -> String;
    let tables: [(&str, [Keys; 3]); 2] = [
        (
            "networks",
            [
                |n| format!("10.0.{}.7", n % 40),
                |n| format!("11.0.0.{n}"),
                |n| match n % 3 {
                    0 => format!("10.0.{n}.0/24"),
                    1 => "[::1]".to_owned(),
                    _ => "é".repeat(n),
                },
            ],
        ),
        (
            "hashes",
            [
                |n| format!("0x00{:02x}0a", n % 40),
                |n| format!("{n:06x}"),
                |n| match n % 3 {
                    0 => format!("0x{}", "00".repeat(n) + "0"),
                    1 => "-".to_owned(),
                    _ => "é".repeat(n),
                },
            ],
        ),
    ];
    for (table, kinds) in tables {
        let served =
            Served::start(&place, &format!("{table}.privet --scheme simplepir --no-cache"));
        get(&place, &served, "--key 00 --accept-new-table", Reading::All);
        let mut first = None;
        for (kind, code) in kinds.into_iter().zip([0, 1, 2]) {
            place.write("keys", (0..LOOKUPS).map(|n| kind(n + 41) + "\n").collect::<String>());
            let seen = get(&place, &served, "--keys-from keys --json", Reading::All);
            assert_eq!(seen.code, Some(code), "{table}: {}", seen.said);
            let first = first.get_or_insert_with(|| seen.record.clone());
            assert!(first.messages().len() > LOOKUPS, "{table}");
            let margins = Margins { time: Duration::from_secs(60), ..Margins::default() };
            assert_eq!(differences(first, &seen.record, &margins), [""; 0], "{table}, {code}");
        }
    }
}

/// Who reads the first line (`| head -1`) has what it wanted: not a failure, and not a miss.
#[test]
fn a_reader_who_goes_away_is_no_failure() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir --no-cache");
    let seen = get(&place, &served, "--keys-from long --key none", Reading::FirstLine);
    assert_eq!((seen.code, &*seen.said), (Some(0), "privet: not found: none\n"));
}

/// A reader who comes late, or goes on slowly, gets everything all the same.
#[test]
fn nothing_is_lost_to_a_reader_who_reads_last() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir --no-cache");
    let seen = get(&place, &served, "--keys-from long --key none --key short0", LAST);
    let line = |number: usize| format!("long{}\t{}\n", number % 8, "v".repeat(500));
    let expected: String = (0..LOOKUPS).map(line).collect();
    assert_eq!(String::from_utf8(seen.output).unwrap(), format!("short0\tv\n{expected}"));
    assert_eq!((seen.code, &*seen.said), (Some(1), "privet: not found: none\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_once_and_all_lookups_are_made() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir --no-cache");
    let seen = get(&place, &served, "--key long0 --key short0 --raw -o /dev/full", Reading::All);
    assert_eq!(seen.code, Some(3));
    assert_eq!(
        seen.said,
        "privet: cannot write to /dev/full\n  because: No space left on device (os error 28)\n"
    );
}

/// Of two errors, both are told with their causes, each on a line of its own.
#[cfg(target_os = "linux")]
#[test]
fn two_errors_are_told_on_lines_of_their_own() {
    let place = place();
    let served = Served::start(&place, "rows.privet --scheme simplepir --no-cache");
    let relay = Relay::start(served.address().parse().unwrap()).unwrap();
    let get = format!("get {} --state state --key long0 --keys-from - -o /dev/full", relay.url());
    let mut command = place.command(&get);
    // A folder cannot be read as a list of keys.
    command.stdin(std::fs::File::open("/").unwrap());
    let seen = observe(command, &relay, Reading::All).unwrap();
    let lines: Vec<_> = seen.said.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "privet: cannot write to /dev/full",
            "  because: No space left on device (os error 28)",
            "privet: cannot read keys from -"
        ]
    );
    assert_eq!((lines.len(), lines[3]), (4, "  because: Is a directory (os error 21)"));
}
