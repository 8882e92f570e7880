//! How files of rows are read: what is refused and why, which option leads out, and that `build`,
//! `update` and `plan` read alike.

use crate::place::{Place, Run};
use crate::served::Served;

/// Runs a command that must fail for its input, and returns what it said.
fn refused(place: &Place, arguments: &str) -> String {
    let run = place.run(arguments);
    assert_eq!((run.code(), run.stdout()), (2, ""), "{run}");
    run.stderr().to_owned()
}

/// The same, and checks that its words are among what it said.
fn refused_for(place: &Place, arguments: &str, words: &[&str]) {
    let said = refused(place, arguments);
    for word in words {
        assert!(said.contains(word), "{arguments}: no {word:?} in {said}");
    }
}

fn rows_of(run: &Run) -> u64 {
    assert_eq!(run.code(), 0, "{run}");
    run.json()["rows"].as_u64().unwrap()
}

#[test]
fn quotation_marks_merge_no_rows() {
    let place = Place::new();
    place.write("notes.tsv", "id\tnote\n1\t\"24 inch\n2\tbob\n3\tsays \"hi\"\n4\t5\" pipe\n");
    let build = "build notes.tsv --key id -o notes.privet --json";
    refused_for(&place, build, &["notes.tsv: line 2: ", "closing quotation mark", "(--no-quotes)"]);
    assert_eq!(rows_of(&place.run(&format!("{build} --no-quotes"))), 4);
}

#[test]
fn files_without_a_header_are_read_by_names_or_numbers() {
    let place = Place::new();
    let hash = "00000A1B2C3D4E5F60718293A4B5C6D7E8F90123";
    place.write("pwned.txt", format!("{hash}:17\nFFFF00112233445566778899AABBCCDDEEFF0011:1\n"));
    let pwned = "build pwned.txt --delimiter : --key hash -o t.privet --json";
    refused_for(&place, pwned, &["there is no column \"hash\"", "(--no-header)"]);
    let named = format!("{pwned} --no-header --columns hash,count");
    assert_eq!(rows_of(&place.run(&named)), 2);

    place.write(
        "ranges.csv",
        "\"0\",\"16777215\",\"-\",\"-\"\n\"16777216\",\"16777471\",\"XA\",\"X\"\n",
    );
    let ranges = "build ranges.csv --range-from 1 --range-to 2 -o t.privet --json";
    refused_for(&place, ranges, &["the column \"-\" occurs twice", "(--no-header)"]);
    assert_eq!(rows_of(&place.run(&format!("{ranges} --no-header"))), 2);

    place.write("list.csv", "a.example\nb.example\nc.example\n");
    let list = place.run("build list.csv -o t.privet").says(0, "\"a.example\" looks like data");
    assert!(list.stderr().contains("--no-header"), "{list}");
    let list = place.run("build list.csv --no-header -o t.privet --json");
    assert_eq!((rows_of(&list), list.stderr()), (3, ""));
    refused_for(&place, "build list.csv --columns a -o t.privet", &["--no-header"]);
}

#[test]
fn comments_and_lines_before_the_header_are_left_out_and_counted() {
    let place = Place::new();
    place.write(
        "feed.csv",
        "# Example threat list\n#\n# id,dateadded,url\n\"1\",\"2026\",\"http://a/x\"\n\n\"2\",\"2026\",\"http://b/y\"\n",
    );
    let feed = "build feed.csv --key id -o feed.privet";
    refused_for(&place, feed, &["there is no column \"id\"", "(--comment)"]);
    let named = format!("{feed} --comment # --no-header --columns id,dateadded,url");
    let report = place.run(&format!("{named} --json")).json();
    for (name, expected) in [
        ("rows", 2),
        ("rows_read", 2),
        ("comment_lines", 3),
        ("blank_lines", 1),
        ("skipped_lines", 0),
        ("empty_keys_skipped", 0),
    ] {
        assert_eq!(report[name], expected, "{name} of {report}");
    }
    let page = place.run(&named);
    assert!(
        page.stdout().contains("skipped                3 comment lines, 1 blank line\n"),
        "{page}"
    );
    let skipped = format!("{feed} --skip-lines 3 --no-header --columns id,dateadded,url --json");
    assert_eq!(place.run(&skipped).json()["skipped_lines"], 3);

    place.write("excel.csv", "sep=;\r\nid;name\r\n1;Ann\r\n");
    for delimiter in ["", "--delimiter ;"] {
        let excel = format!("build excel.csv {delimiter} --key id -o excel.privet --json");
        assert_eq!(rows_of(&place.run(&excel)), 1);
    }
}

#[test]
fn what_cannot_be_read_is_named_whatever_its_name() {
    let place = Place::new();
    place.write("rows.csv.xz", b"\xfd7zXZ\0\0\x04\xe6\xd6");
    place.write("rows.csv.bz2", b"BZh91AY&SY\x50");
    place.write("rows.zip", b"PK\x03\x04\x14\0\0\0\x08\0rows.csv");
    place.write("rows.xlsx", b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0          [Content_Types].xml");
    place.write("pretty.jsonl", "{\n \"id\":\"1\"\n}\n");
    place.write("array.json", "[[{\"id\":\"1\",\"n\":\"a\"},\n{\"id\":\"2\",\"n\":\"b\"}]]\n");
    place.write("cut.json", "[{\"id\":\"1\",\"n\":\"a\"},\n{\"id\"");
    std::fs::create_dir(place.path("parts")).unwrap();
    for (name, words) in [
        ("rows.csv.xz", ["compressed with xz", "xz -dk"]),
        ("rows.csv.bz2", ["compressed with bzip2", "bzip2 -dk"]),
        ("rows.zip", ["a ZIP archive", "unzip"]),
        ("rows.xlsx", ["a spreadsheet's workbook", "CSV UTF-8"]),
        ("parts", ["it is a folder", "name the files in it"]),
        ("pretty.jsonl", ["line 1", "jq -c"]),
        ("array.json", ["a JSON array", "jq -c '.[][]'"]),
        ("cut.json", ["after element 1 of the JSON array", "cut off"]),
    ] {
        for command in ["build", "plan"] {
            let output = if command == "build" { "-o t.privet" } else { "" };
            refused_for(&place, &format!("{command} {name} --key id {output}"), &words);
        }
    }
}

/// A new row is checked as one that is there: its columns and their types, in every format.
#[test]
fn an_update_checks_new_rows_and_knows_the_types() {
    let place = Place::new();
    let capitals = "country,capital,population\nKenya,Nairobi,4397000\nPeru,Lima,10092000\n";
    place.write("capitals.csv", capitals);
    place.run("keygen -o p.key");
    let build = "capitals.csv --key country --types population=number --publisher-key p.key";
    place.build(&format!("{build} -o t.privet"));
    let update = |rest: &str| format!("update t.privet --publisher-key p.key {rest}");
    for (file, contents, words) in [
        ("fewer.csv", "country,capital\nFiji,Suva\n", ["\"population\"", "(--replace)"]),
        (
            "misspelt.csv",
            "country,capitol,population\nTogo,Lome,1\n",
            ["\"capitol\"", "(--replace)"],
        ),
        ("text.csv", "country,capital,population\nApia,Samoa,many\n", ["line 2", "\"many\""]),
        ("more.csv", "country,capital,population,x\nFiji,Suva,1,2\n", ["\"x\"", "(--replace)"]),
        (
            "few.jsonl",
            "{\"country\":\"Fiji\",\"capital\":\"Suva\"}\n",
            ["\"population\"", "(--replace)"],
        ),
        (
            "text.jsonl",
            "{\"country\":\"Fiji\",\"capital\":\"Suva\",\"population\":\"1\"}\n",
            ["\"population\" is a number in the table", "(--replace)"],
        ),
    ] {
        place.write(file, contents);
        refused_for(&place, &update(&format!("--from {file}")), &words);
    }
    refused_for(
        &place,
        &update(r#"--set Fiji={"capital":"Suva"}"#),
        &["population", "(--replace)"],
    );

    // The table knows its types, and its columns stand in any order.
    place.write("new.csv", "# new\npopulation;country;capital\n2;Samoa;Apia\n3;Fiji;Suva\n");
    let read = "--from new.csv --delimiter ; --comment #";
    let report = place.run(&update(&format!("{read} --json"))).json();
    for (name, expected) in [("inserted", 2), ("rows_read", 2), ("comment_lines", 1)] {
        assert_eq!(report[name], expected, "{name} of {report}");
    }
    place.write("auto.csv", capitals.replace("4397000", "5"));
    place.run(&update("--from auto.csv --types auto")).succeeds();
    let served = Served::start(&place, "t.privet --no-cache --scheme download");
    let found = place.run(&format!("get {} -k Samoa -k Kenya", served.url));
    let expected = "Samoa\t{\"capital\":\"Apia\",\"population\":2}\n\
                    Kenya\t{\"capital\":\"Nairobi\",\"population\":5}\n";
    assert_eq!(found.stdout(), expected, "{found}");
    // What is said of a file needs one.
    refused_for(&place, &update("--delete Kenya --format csv"), &["--from"]);
}

#[test]
fn of_ranges_in_ranges_the_narrowest_answers() {
    let place = Place::new();
    let nested = "network,who\n10.0.0.0/8,carrier\n10.1.0.0/16,customer\n10.1.2.0/24,office\n";
    place.write("nested.csv", nested);
    let build = "nested.csv --range-from network -o nested.privet";
    refused_for(&place, &format!("build {build}"), &["the ranges overlap", "(--nested)"]);
    place.build(&format!("{build} --nested"));
    let served = Served::start(&place, "nested.privet --no-cache --scheme simplepir");
    let run =
        place.run(&format!("get {} -k 10.9.9.9 -k 10.1.9.9 -k 10.1.2.9 -k 11.0.0.0", served.url));
    let expected = "10.9.9.9\t{\"who\":\"carrier\"}\n10.1.9.9\t{\"who\":\"customer\"}\n\
                    10.1.2.9\t{\"who\":\"office\"}\n";
    assert_eq!((run.code(), run.stdout()), (1, expected), "{run}");
    drop(served);
    // A row lies in several pieces, so all rows change, or none.
    let shown = place.run("inspect nested.privet");
    assert!(shown.stdout().contains("5 of addresses, cut from nested ones"), "{shown}");
    place.begin_history("nested.privet");
    let update = "update nested.privet --publisher-key publisher.key";
    for edit in ["--set 10.9.9.9={\"who\":\"x\"}", "--delete 10.9.9.9", "--from nested.csv"] {
        let words = &["lie in one another", "(--replace-with)"];
        refused_for(&place, &format!("{update} {edit}"), words);
    }
    place.write("nested.csv", nested.replace("carrier", "another"));
    let replaced = place.run(&format!("{update} --replace-with nested.csv --json"));
    assert_eq!((replaced.code(), &replaced.json()["replaced"]), (0, &2.into()), "{replaced}");
    // The first row is hidden, and not counted here.
    place.write("nested.csv", "network,who\n10.0.0.0/8,a\n10.0.0.0/9,b\n10.128.0.0/9,c\n");
    let replaced = place.run(&format!("{update} --replace-with nested.csv --dry-run --json"));
    assert_eq!((replaced.code(), &replaced.json()["rows_read"]), (0, &2.into()), "{replaced}");
    place.run(&format!("{update} --compact")).succeeds();
}

#[test]
fn plan_reads_what_build_reads() {
    let place = Place::new();
    place.write("machine.json", include_str!("../../../measure/src/machine/typical.json"));
    place.write("semicolons.csv", "id;name\n1;Ann\n1;Bob\n");
    place.write("rows.txt", "# x\n1,Ann\n2,Bob\n");
    place.write("nested.csv", "network,who\n10.0.0.0/8,carrier\n10.1.0.0/16,customer\n");
    for options in [
        "semicolons.csv --delimiter ; --key id --multi --key-map cuckoo",
        "rows.txt --format csv --comment # --no-header --key 1 --normalize trim --parts 2",
        "rows.txt --delimiter , --comment # --no-header --authenticate",
        "nested.csv --range-from network --nested",
        "nested.csv",
    ] {
        let built = place.run(&format!("build {options} -o t.privet --json")).json();
        let planned =
            place.run(&format!("plan {options} --machine machine.json --json")).succeeds();
        let of = |report: &serde_json::Value| {
            ["records", "records_per_lookup"].map(|name| report[name].as_u64().unwrap())
        };
        assert_eq!(of(&planned.json()), of(&built), "{options}");
    }
    refused_for(&place, "plan t.privet --key id", &["is a table already"]);
}
