//! Keys with several values, and values that span several records: built, served, looked up,
//! updated.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;

/// Some people have several phones, and one has a long name for one of them.
fn with_phones(options: &str) -> Place {
    let place = Place::new();
    let mut rows = "name,phone\nada,555-1\nbob,555-2\nada,555-3\neve,555-4\nada,555-1\n".to_owned();
    for number in 0..300 {
        rows += &format!(
            "name-{number},{}\n",
            "0123456789".repeat(if number % 7 == 0 { 60 } else { 1 })
        );
    }
    place.write("phones.csv", rows);
    place.build(&format!(
        "phones.csv --key name --raw-value phone --multi {options} -o phones.privet"
    ));
    place
}

const UPDATE: &str = "update phones.privet --publisher-key publisher.key";

fn look_up(place: &Place, serve: &str, get: &str) -> String {
    let served = Served::start(place, &format!("phones.privet --no-cache {serve}"));
    place.run(&format!("get {} {get}", served.url)).to_string()
}

#[test]
fn all_values_of_a_key_are_printed_in_the_order_of_their_rows() {
    for options in
        ["", "--key-map cuckoo", "--parts 4", "--parts 3 --key-map cuckoo --authenticate"]
    {
        let place = with_phones(options);
        let found = look_up(&place, "--scheme download", "-k ada -k eve -k name-7");
        let long = "0123456789".repeat(60);
        assert_eq!(
            found,
            format!(
                "[exit 0]\n[stdout]\nada\t555-1\nada\t555-3\nada\t555-1\neve\t555-4\nname-7\t{long}\n"
            ),
            "{options}"
        );
    }
    let place = with_phones("--parts 4");
    assert_snapshot!(look_up(&place, "--scheme simplepir", "-k ada -k nobody -k eve --json"), @r#"
    [exit 1]
    [stdout]
    {"key":"ada","found":true,"texts":["555-1","555-3","555-1"]}
    {"key":"nobody","found":false}
    {"key":"eve","found":true,"texts":["555-4"]}
    "#);
}

#[test]
fn what_a_file_has_of_a_key_replaces_all_that_it_had() {
    for options in ["--parts 4", "--key-map cuckoo"] {
        let place = with_phones(options);
        place.begin_history("phones.privet");
        place.write("more.csv", "name,phone\nzoe,555-8\nbob,555-6\nzoe,555-7\n");
        let report = place
            .run(&format!("{UPDATE} --from more.csv --set ada=555-9 --set new=1 --set new=2 --delete eve --json"))
            .json();
        for (count, expected) in [("inserted", 2), ("replaced", 2), ("deleted", 1)] {
            assert_eq!(report[count], expected, "{count} of {report}");
        }
        let found = look_up(&place, "--scheme simplepir", "-k zoe -k bob -k ada -k new -k eve");
        assert_eq!(
            found,
            "[exit 1]\n[stdout]\nzoe\t555-8\nzoe\t555-7\nbob\t555-6\nada\t555-9\nnew\t1\nnew\t2\n\
             [stderr]\nprivet: not found: eve\n",
            "{options}"
        );
        // A longer value takes more parts, and frees them when it is short again. (Without parts, a
        // value as long as that might not fit into any record.)
        let long = "x".repeat(if options.contains("parts") { 400 } else { 30 });
        for value in [&long, "short"] {
            let report = place.run(&format!("{UPDATE} --set name-1={value} --json")).json();
            assert_eq!(report["replaced"], 1);
            let found = look_up(&place, "--scheme download", "-k name-1");
            assert!(
                found.starts_with(&format!("[exit 0]\n[stdout]\n{value}\n")),
                "{options}: {found}"
            );
        }
    }
}

#[test]
fn parts_and_several_values_are_told() {
    let place = with_phones("--parts 4");
    let built = place
        .run("build phones.csv --key name --raw-value phone --multi --parts 4 -o again.privet");
    for line in [
        "  rows                   305\n",
        "  keys                   303, with one value or several, ",
        "  parts                  4: a lookup fetches 4 records, however long the value is\n",
        "pieces of values, ",
    ] {
        assert!(built.stdout().contains(line), "{line}{built}");
    }
    let shown = place.run("inspect phones.privet");
    for line in [
        "303 keys from column \"name\", with one value or several\n",
        "  parts                  4: a lookup fetches 4 records, however long the value is\n",
    ] {
        assert!(shown.stdout().contains(line), "{line}{shown}");
    }
    let shown = place.run("inspect phones.privet --json").json();
    assert_eq!(
        (&shown["multi"], &shown["parts"], &shown["records_per_lookup"]),
        (&true.into(), &4.into(), &4.into())
    );
}

#[test]
fn long_values_are_divided_and_it_is_said_why() {
    let place = Place::new();
    let rows: String = (0..1000)
        .map(|number| {
            format!("k{number},{}\n", "v".repeat(if number % 10 == 0 { 60_000 } else { 20 }))
        })
        .collect();
    place.write("long.csv", format!("k,v\n{rows}"));
    // Each build draws the places of keys at random. In about one table in eighty, parts gain
    // nothing.
    let build = "build long.csv --key k --raw-value v -o long.privet";
    let built = (0..5).map(|_| place.run(&format!("{build} --json")).json());
    let built = built.into_iter().find(|built| built["parts"].as_u64().unwrap() > 1).unwrap();
    let undivided = built["undivided_record_len"].as_u64().unwrap();
    assert!(undivided >= 60_000, "{built}");
    assert!(built["record_len"].as_u64().unwrap() < undivided * 3 / 4, "{built}");
    let told = |run: &crate::place::Run| {
        run.stdout().contains("with one part (--parts 1) they would have ")
    };
    assert!((0..5).map(|_| place.run(build)).any(|run| told(&run)));
    let one =
        place.run("build long.csv --key k --raw-value v --parts 1 -o one.privet --json").json();
    assert_eq!(
        (&one["parts"], &one["undivided_record_len"]),
        (&1.into(), &serde_json::Value::Null)
    );
}

#[test]
fn choices_that_cannot_be_are_refused() {
    let place = with_phones("");
    for wrong in [
        "--multi",
        "--parts 2",
        "--key name --multi --on-duplicate first",
        "--key name --parts 0",
        "--key name --parts 17",
    ] {
        let refused = place.run(&format!("build phones.csv {wrong} -o x.privet"));
        assert_eq!(refused.code(), 2, "{wrong}: {refused}");
    }
}
