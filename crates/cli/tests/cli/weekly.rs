//! A list that comes out whole every week, and a client that follows it.

use crate::place::{Place, Run};
use crate::served::Served;
use insta::assert_snapshot;
use std::collections::BTreeMap;

/// A list of 300 keys. Each week forty of them go, forty come, and a third of the others change.
fn week(number: u32) -> BTreeMap<String, String> {
    let keys = 40 * number..300 + 40 * number;
    let value = |key: u32| match key % 3 {
        0 => format!("city {key} of week {number}"),
        _ => format!("city {key}, as always"),
    };
    keys.map(|key| (format!("key {key}"), value(key))).collect()
}

fn csv(week: &BTreeMap<String, String>) -> String {
    let rows = week.iter().map(|(key, city)| format!("{key},\"{city}\"\n"));
    format!("name,city\n{}", rows.collect::<String>())
}

fn place_with_weeks(kind: &str) -> Place {
    let place = Place::new();
    for number in 1..=4 {
        place.write(&format!("week{number}.csv"), csv(&week(number)));
    }
    assert_eq!(place.run("keygen -o p.key").code(), 0);
    place.build(&format!(
        "week1.csv --key name --key-map {kind} --publisher-key p.key -o list.privet"
    ));
    place
}

fn replace(place: &Place, week: u32) -> Run {
    place.run(&format!("update list.privet --publisher-key p.key --replace-with week{week}.csv"))
}

/// One client, whose state is kept, follows for three weeks. Nobody has to answer a question, and
/// it finds what the list has and nothing that it had.
#[test]
fn a_client_follows_a_weekly_list_for_three_weeks() {
    for scheme in ["simplepir", "dummy-subsets", "download"] {
        let place = place_with_weeks("cuckoo");
        let served = Served::start(
            &place,
            &format!(
                "list.privet --no-cache --watch 1 --scheme {scheme} --metrics-listen 127.0.0.1:0"
            ),
        );
        // Some stay for good, some go, some come, some change.
        let asked = [41, 80, 84, 119, 120, 159, 160, 161, 300, 339, 340, 345, 379, 380, 419, 420];
        let keys: String = asked.iter().map(|key| format!("key {key}\n")).collect();
        place.write("asked", keys);
        for number in 1..=4 {
            if number > 1 {
                replace(&place, number).succeeds();
            }
            served.until_metric("privet_table_epoch{table=\"list\"}", u64::from(number) - 1);
            let run = place.run(&format!("get {} --keys-from asked --json", served.url));
            let list = week(number);
            let expected = asked.iter().map(|key| {
                let key = format!("key {key}");
                match list.get(&key) {
                    Some(city) => {
                        format!("{{\"key\":\"{key}\",\"found\":true,\"value\":{{\"city\":\"{city}\"}}}}\n")
                    }
                    None => format!("{{\"key\":\"{key}\",\"found\":false}}\n"),
                }
            });
            let context = format!("{scheme}, week {number}: {run}");
            assert_eq!(run.stdout(), expected.collect::<String>(), "{context}");
            assert_eq!(run.code(), 1, "{context}");
        }
    }
}

#[test]
fn the_report_says_what_came_what_went_and_what_stayed() {
    let place = place_with_weeks("cuckoo");
    // First without doing it.
    let files = || {
        ["list.privet", "list.privet.updates"].map(|name| std::fs::read(place.path(name)).unwrap())
    };
    let before = files();
    let dry = "update list.privet --publisher-key p.key --dry-run";
    let told = place.run(&format!("{dry} --replace-with week2.csv"));
    let lines = told.stdout().lines().filter(|line| !line.contains("changed"));
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    list.privet would be at epoch 1, 1 epoch later
      new                    40
      replaced               87
      deleted                40
      as before              173
    It fits. Nothing was signed.
    ");
    let report =
        place.run(&format!("{dry} --delete nobody --set new={{\"city\":\"x\"}} --json")).json();
    let counts = ["dry_run", "epoch", "epochs", "inserted", "absent"].map(|name| &report[name]);
    assert_eq!(counts.map(ToString::to_string), ["true", "1", "1", "1", "1"]);
    place.write("wide.csv", format!("name,city\nada,{}\n", "long".repeat(40_000)));
    let refused = place.run(&format!("{dry} --replace-with wide.csv"));
    assert!(refused.code() != 0 && refused.stderr().contains("do not fit"), "{refused}");
    assert!(files() == before, "nothing is written");
    let told = replace(&place, 2);
    assert_snapshot!(told.stdout().lines().take(5).collect::<Vec<_>>().join("\n"), @r"
    list.privet is at epoch 1
      new                    40
      replaced               87
      deleted                40
      as before              173
    ");
    let run = place.run("update list.privet --publisher-key p.key --replace-with week2.csv --json");
    let report = run.json();
    assert_eq!((&report["epochs"], &report["unchanged"]), (&0.into(), &300.into()));
    let inspected = place.run("inspect list.privet --verify --json").json();
    assert_eq!(inspected["updates"]["epoch"], 1);
}

/// What `build` takes, a replacement takes: numbers stay numbers, and rows are checked alike.
#[test]
fn a_file_is_read_as_the_table_was_built() {
    let place = Place::new();
    place.write("1.csv", "name;seats\na;1\nb;2\n");
    place.write("2.csv", "name;seats\na;1\nc;3\n");
    place.run("keygen -o p.key");
    place.build("1.csv --key name --delimiter ; --types auto --publisher-key p.key -o t.privet");
    let replace = "update t.privet --publisher-key p.key --delimiter ; --json --replace-with";
    let report = place.run(&format!("{replace} 2.csv")).json();
    let counts = ["inserted", "replaced", "deleted", "unchanged"].map(|name| report[name].clone());
    assert_eq!(counts, [1, 0, 1, 1].map(serde_json::Value::from));
    let rows = b"name;seats\na;1\na;2\n";
    place.run_with_input(&format!("{replace} - --format csv"), rows).says(2, "--on-duplicate");
    let last = place.run_with_input(&format!("{replace} - --format csv --on-duplicate last"), rows);
    assert_eq!(last.json()["duplicates_dropped"], 1);
    for others in ["--set a=1", "--delete a", "--from 2.csv", "--delete-from 2.csv"] {
        let run = place.run(&format!("{replace} 2.csv {others}"));
        assert_eq!(run.code(), 2, "{run}");
    }
}

/// A table of four records, and a list that is far longer.
#[test]
fn a_list_that_does_not_fit_changes_nothing_and_says_what_would() {
    let place = place_with_weeks("buckets");
    place.write(
        "week9.csv",
        csv(&(0..3000).map(|key| (format!("new {key}"), "x".into())).collect()),
    );
    let before = std::fs::read(place.path("list.privet.updates")).unwrap();
    let refused = replace(&place, 9).says(3, "do not fit, and nothing was changed");
    assert!(refused.stderr().contains("(`privet build"), "{refused}");
    assert_eq!(std::fs::read(place.path("list.privet.updates")).unwrap(), before);
}

/// The week's file of the table in README.md, and a table of four records.
#[test]
fn a_small_table_follows_too_or_says_why_not() {
    let place = Place::new();
    let row = |country: &str, capital: &str| format!("{country},{capital},1000000\n");
    let head = "country,capital,population\n".to_owned();
    let few =
        [("Austria", "Vienna"), ("Bhutan", "Thimphu"), ("Kenya", "Nairobi"), ("Peru", "Lima")];
    let week1: String = few.iter().map(|(country, capital)| row(country, capital)).collect();
    place.write("week1.csv", head.clone() + &week1);
    place.write("week2.csv", head.clone() + &week1 + &row("Fiji", "Suva"));
    let many: String = (0..40).map(|number| row(&format!("Island {number}"), "Port")).collect();
    place.write("week3.csv", head + &week1 + &many);
    place.run("keygen -o p.key");
    place.build("week1.csv --key country --publisher-key p.key -o list.privet");
    let report =
        place.run("update list.privet --publisher-key p.key --replace-with week2.csv --json");
    let report = report.json();
    assert_eq!((&report["inserted"], &report["unchanged"]), (&1.into(), &4.into()));
    assert!(report["keys_that_fit"].as_u64().unwrap() < 10, "{report}");
    replace(&place, 3).says(3, "of the 40 keys that are new");
}

#[test]
fn a_version_can_be_demanded() {
    let place = place_with_weeks("cuckoo");
    let inspected = place.run("inspect list.privet --json").json();
    let first = inspected["digest"].as_str().unwrap().to_owned();
    let served = Served::start(
        &place,
        "list.privet --no-cache --watch 1 --grace 0 --scheme simplepir --metrics-listen 127.0.0.1:0",
    );
    let get = |arguments: &str| place.run(&format!("get {} {arguments} -k Kenya", served.url));
    assert_eq!(get(&format!("--digest {first}")).code(), 1);
    assert_snapshot!(get("--at-least-epoch 1").refusal(), @"
    [exit 3]
    privet: table list is served in version 0 with the digest [DIGEST], and at least version 1 was demanded; nothing was asked. The servers are behind: try again later, or demand less (--at-least-epoch)
    ");
    assert_eq!(get("--digest 12").code(), 2);
    let second = replace_json(&place, 2)["digest"].as_str().unwrap().to_owned();
    served.until_metric("privet_table_epoch{table=\"list\"}", 1);
    for demand in [format!("--digest {second}"), "--at-least-epoch 1".to_owned()] {
        assert_eq!(get(&demand).code(), 1, "{}", get(&demand));
    }
    assert_snapshot!(get(&format!("--digest {first}")).refusal(), @"
    [exit 4]
    privet: table list is served in version 1 with the digest [DIGEST], and the digest [DIGEST] was demanded; nothing was asked. The servers are behind or ahead of that version, or have another table: ask whoever published the digest which one is right now (--digest)
    ");
    let metrics = served.metrics();
    let fullness = metrics
        .lines()
        .find_map(|line| line.strip_prefix("privet_table_key_map_fullness{table=\"list\"} "))
        .and_then(|value| value.parse::<f64>().ok());
    assert!(fullness.is_some_and(|fullness| 0.7 < fullness && fullness < 1.0), "{metrics}");
}

fn replace_json(place: &Place, week: u32) -> serde_json::Value {
    let command =
        format!("update list.privet --publisher-key p.key --replace-with week{week}.csv --json");
    place.run(&command).json()
}
