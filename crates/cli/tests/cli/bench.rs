//! `privet bench`: the report's fields are those that docs/bench.md promises.

use crate::place::Place;
use insta::assert_snapshot;
use privet_kernels::dispatch::Arm;
use serde_json::Value;

/// One line for each field, with the kind of its value. Names of nested fields follow a dot.
fn fields(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(inner) => {
            let inner_name =
                |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            inner.iter().flat_map(|(key, value)| fields(&inner_name(key), value)).collect()
        }
        Value::Array(inner) => {
            inner.iter().flat_map(|value| fields(&format!("{name}[]"), value)).collect()
        }
        Value::String(_) => vec![format!("{name}: text")],
        Value::Number(number) if number.is_f64() => vec![format!("{name}: fraction")],
        Value::Number(_) => vec![format!("{name}: whole number")],
        Value::Bool(_) => vec![format!("{name}: true or false")],
        Value::Null => vec![format!("{name}: null")],
    }
}

#[test]
fn the_report_on_simplepir_has_the_promised_fields_with_every_kernel_of_this_machine() {
    let shape = "--scheme simplepir --records 2^7 --record-len 3 --queries 5 --batch 2";
    for arm in Arm::available() {
        let arguments = format!("bench {shape} --threads 1 --seed 7 --kernel {arm} --json");
        let run = Place::new().run(&arguments);
        let report = run.json();
        insta::allow_duplicates! {
            assert_snapshot!(fields("", &report).join("\n"), @r#"
            scheme: text
            records: whole number
            record_len: whole number
            queries: whole number
            batch: whole number
            threads: whole number
            verified: true or false
            offline.server_s: fraction
            offline.client_s: fraction
            offline.up_bytes: whole number
            offline.down_bytes: whole number
            online.client_query_us: fraction
            online.journal_us: fraction
            online.client_recover_us: fraction
            online.servers[].role: whole number
            online.servers[].answer_us: fraction
            online.servers[].up_bytes: whole number
            online.servers[].down_bytes: whole number
            online.up_bytes: whole number
            online.down_bytes: whole number
            client_state_bytes: whole number
            server_extra_bytes: whole number
            kernel: text
            yardsticks.read_gbps: fraction
            yardsticks.random_reads_per_s: fraction
            yardsticks.aes_blocks_per_s: fraction
            ratios.answer_to_read: fraction
            "#);
        }
        assert_eq!(run.stdout().lines().count(), 1);
        assert_eq!(report["verified"], true);
        assert_eq!(report["kernel"], arm.to_string());
        // Five queries in batches of two need three batches, so six are made.
        let given =
            [("records", 128), ("record_len", 3), ("queries", 6), ("batch", 2), ("threads", 1)];
        for (field, value) in given {
            assert_eq!(report[field], value, "{field}");
        }
        assert_eq!(report["online"]["journal_us"], 0.0);
        let measured = [
            &report["offline"]["server_s"],
            &report["online"]["client_query_us"],
            &report["online"]["client_recover_us"],
            &report["online"]["servers"][0]["answer_us"],
            &report["yardsticks"]["read_gbps"],
            &report["yardsticks"]["random_reads_per_s"],
            &report["yardsticks"]["aes_blocks_per_s"],
        ];
        assert!(measured.iter().all(|figure| figure.as_f64().unwrap() > 0.0), "{report}");
    }
}

#[test]
fn the_report_on_dummy_subsets_has_a_journal_and_other_ratios() {
    let shape = "--scheme dummy-subsets --records 2^10 --record-len 3 --queries 5 --batch 2";
    for arm in Arm::available() {
        let arguments = format!("bench {shape} --threads 1 --seed 7 --kernel {arm} --json");
        let report = Place::new().run(&arguments).json();
        let ratios: Vec<&String> = report["ratios"].as_object().unwrap().keys().collect();
        assert_eq!(ratios, ["answer_to_random_reads", "query_to_aes"]);
        assert_eq!((&report["scheme"], &report["queries"]), (&"dummy-subsets".into(), &6.into()));
        assert_eq!(report["verified"], true);
        let measured = [
            &report["offline"]["server_s"],
            &report["offline"]["client_s"],
            &report["edit_us"],
            &report["online"]["client_query_us"],
            &report["online"]["journal_us"],
            &report["online"]["client_recover_us"],
            &report["online"]["servers"][0]["answer_us"],
            &report["online"]["servers"][0]["to_random_reads"],
            &report["ratios"]["answer_to_random_reads"],
            &report["ratios"]["query_to_aes"],
        ];
        assert!(measured.iter().all(|figure| figure.as_f64().unwrap() > 0.0), "{report}");
        // 32 partitions of 32 records: up go 4 bytes for the split and 16 offsets of 5 bits, and
        // down come two records. The envelope of each message adds about 60 bytes.
        let online = |field: &str| report["online"][field].as_u64().unwrap();
        assert!((14..114).contains(&online("up_bytes")), "{report}");
        assert!((6..106).contains(&online("down_bytes")), "{report}");
        // The whole table is sent, in one chunk. The client keeps about 160 parities for each
        // record of a partition.
        let down = report["offline"]["down_bytes"].as_u64().unwrap();
        assert!((3072..3172).contains(&down), "{report}");
        assert!(report["client_state_bytes"].as_u64().unwrap() > 160 * 32 * 3, "{report}");
    }
}

#[test]
fn the_report_on_a_scheme_of_two_servers_has_both() {
    let shape = "--scheme dpf --records 1000 --record-len 5 --queries 5 --batch 2";
    for arm in Arm::available() {
        let arguments = format!("bench {shape} --threads 1 --seed 7 --kernel {arm} --json");
        let report = Place::new().run(&arguments).json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &6.into()));
        let servers = report["online"]["servers"].as_array().unwrap();
        let roles: Vec<u64> = servers.iter().map(|s| s["role"].as_u64().unwrap()).collect();
        assert_eq!(roles, [0, 1]);
        assert!(servers.iter().all(|server| server["answer_us"].as_f64().unwrap() > 0.0));
        assert!(report["ratios"]["answer_to_read"].as_f64().unwrap() > 0.0);
        // Nothing is sent before the first query, and nothing is kept. Each server receives a key
        // of 97 bytes and sends a record of 5. The envelope of each message adds about 60 bytes.
        let number = |part: &str, field: &str| report[part][field].as_u64().unwrap();
        assert_eq!((number("offline", "up_bytes"), number("offline", "down_bytes")), (0, 0));
        assert_eq!(report["client_state_bytes"], 0);
        assert!((2 * 97..2 * 197).contains(&number("online", "up_bytes")), "{report}");
        assert!((2 * 5..2 * 105).contains(&number("online", "down_bytes")), "{report}");
    }
}

#[test]
fn the_reports_on_schemes_that_read_single_records_have_each_servers_part() {
    let table_bytes = 5000 * 5;
    for (scheme, servers, asked) in [
        ("dummy-subsets-two", 2, true),
        ("harmony", 1, false),
        ("piano", 1, false),
        ("piano-all-parities", 1, false),
        ("singlepass", 2, true),
    ] {
        let shape =
            format!("--scheme {scheme} --records 5000 --record-len 5 --queries 20 --batch 3");
        let report = Place::new().run(&format!("bench {shape} --threads 1 --json")).json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &21.into()));
        let shown = report["online"]["servers"].as_array().unwrap();
        assert_eq!(shown.len(), servers, "{report}");
        for (role, server) in shown.iter().enumerate() {
            assert_eq!(server["role"], role);
            assert!(server["answer_us"].as_f64().unwrap() > 0.0, "{report}");
            assert!(server["to_random_reads"].as_f64().unwrap() > 0.0, "{report}");
        }
        for field in ["up_bytes", "down_bytes"] {
            let sum: u64 = shown.iter().map(|server| server[field].as_u64().unwrap()).sum();
            assert_eq!(report["online"][field], sum, "{report}");
        }
        let prepare_s = report["offline"].get("prepare_s").map(|seconds| seconds.as_f64().unwrap());
        assert_eq!(prepare_s.map(|seconds| seconds > 0.0), asked.then_some(true), "{report}");
        let down = report["offline"]["down_bytes"].as_u64().unwrap();
        // A client that makes its own hints receives the whole table. One that asks for them need
        // not.
        assert!(down > if asked { 0 } else { table_bytes }, "{report}");
        for figure in [&report["edit_us"], &report["online"]["journal_us"]] {
            assert!(figure.as_f64().unwrap() > 0.0, "{report}");
        }
        assert!(report["client_state_bytes"].as_u64().unwrap() > 0, "{report}");
    }
    // With dummy subsets, the hint server only receives which hint to replace. The other server
    // receives the offsets.
    let shape = "--scheme dummy-subsets-two --records 2^16 --record-len 5 --queries 1 --threads 1";
    let report = Place::new().run(&format!("bench {shape} --json")).json();
    let up = |role: usize| report["online"]["servers"][role]["up_bytes"].as_u64().unwrap();
    assert!(up(0) < up(1), "{report}");
}

#[test]
fn the_reports_on_schemes_that_verify_have_what_an_update_takes() {
    for (scheme, partitions) in [("tapir-mt", ""), ("tapir-pp", ""), ("tapir-pp", OPENINGS)] {
        let shape = "--records 1000 --record-len 5 --queries 5 --edits 20 --threads 1";
        let run = Place::new().run(&format!("bench --scheme {scheme} {shape} {partitions} --json"));
        let report = run.json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &5.into()));
        let servers = report["online"]["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 2, "{report}");
        let measured = [
            &report["offline"]["server_s"],
            &report["offline"]["client_s"],
            &report["online"]["client_query_us"],
            &report["online"]["journal_us"],
            &report["online"]["client_recover_us"],
            &servers[0]["answer_us"],
            &servers[1]["answer_us"],
            &report["edits"]["server_update_ms"],
            &report["edits"]["client_update_ms"],
        ];
        assert!(measured.iter().all(|figure| figure.as_f64().unwrap() > 0.0), "{report}");
        // Twenty records drawn from a thousand may include some twice.
        assert!((15..=20).contains(&report["edits"]["records"].as_u64().unwrap()), "{report}");
        assert_eq!(report.get("edit_us"), None);
        let made = report["offline"].get("reference_string_s");
        assert_eq!(made.is_some(), scheme == "tapir-pp", "{report}");
        // No yardstick predicts the time of work with points.
        let ratios = report["ratios"].as_object().unwrap();
        assert_eq!(ratios.is_empty(), scheme == "tapir-pp", "{report}");
        // The table once, from both servers together, and what comes with it.
        let down = report["offline"]["down_bytes"].as_u64().unwrap();
        assert!((5_000..60_000).contains(&down), "{report}");
        assert!(report["client_state_bytes"].as_u64().unwrap() > 2 * 1000, "{report}");
    }
}

/// Partitions of 64 records, with their openings.
const OPENINGS: &str = "--partition-records 64 --precompute-openings";

#[test]
fn a_reference_string_from_a_file_is_used() {
    let place = Place::new();
    assert_eq!(place.run("setup pointproofs --size 32 -o string").code(), 0);
    let shape = "--records 100 --record-len 5 --queries 3 --threads 1";
    let bench = format!("bench --scheme tapir-pp {shape} --reference-string string");
    let report = place.run(&format!("{bench} --json")).json();
    assert_eq!(report["offline"].get("reference_string_s"), None);
    let page = place.run(&bench);
    assert!(!page.stdout().contains("reference string"), "{page}");
    assert!(page.stdout().contains("records of the table change at once"), "{page}");
}

#[test]
fn clients_that_verify_have_no_batches() {
    let shape = "--records 100 --record-len 5 --queries 4 --batch 2 --threads 1";
    let refused = Place::new().run(&format!("bench --scheme tapir-mt {shape}"));
    assert_snapshot!(refused.refusal(), @r#"
    [exit 2]
    privet: clients of tapir-mt make one query after the other, so that there is no batch of 2 (leave out --batch)
    "#);
}

#[test]
fn the_reports_on_verified_schemes_without_state_have_both_servers() {
    for scheme in ["apir-dpf", "apir-matrix-mt"] {
        let shape = "--records 1000 --record-len 5 --queries 5 --batch 2 --threads 1";
        let report = Place::new().run(&format!("bench --scheme {scheme} {shape} --json")).json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &6.into()));
        let servers = report["online"]["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 2, "{report}");
        assert!(servers.iter().all(|server| server["answer_us"].as_f64().unwrap() > 0.0));
        assert!(report["ratios"]["answer_to_read"].as_f64().unwrap() > 0.0, "{report}");
        // The root of the tree, if there is one.
        let kept = if scheme == "apir-dpf" { 0 } else { 32 };
        assert_eq!(report["client_state_bytes"], kept);
        assert_eq!(report.get("edit_us").or(report.get("edits")), None);
    }
}

/// What a client downloads does not depend on the number of blocks. The mask of a record comes with
/// its answer.
#[test]
fn masks_on_demand_come_with_answers() {
    let shape = "--records 30 --record-len 900 --queries 3 --batch 2 --threads 1";
    let run = |more: &str| {
        let arguments = format!("bench --scheme simplepir-packed {shape} {more} --json");
        Place::new().run(&arguments).json()
    };
    let report = run("--masks-on-demand");
    assert_eq!(report["verified"], true);
    assert_eq!(report["client_state_bytes"], 3 * 4352);
    // The answer has ten bits for each row of the masks' matrix.
    assert!(report["online"]["servers"][0]["down_bytes"].as_u64().unwrap() > 4352 * 10 / 8);
    assert_snapshot!(
        Place::new().run(&format!("bench --scheme simplepir {shape} --masks-on-demand")).refusal(),
        @r#"
    [exit 2]
    privet: the option masks-on-demand is for simplepir-packed alone: leave it out, or choose simplepir-packed (--scheme)
    "#
    );
}

#[test]
fn the_report_on_finite_differences_compares_with_reads_of_lines() {
    for more in [
        "--record-len 4",
        "--record-len 4 --storage-limit 2^20",
        "--record-len 4 --variables 16 --degree 5",
        "--record-len 1 --one-bit",
        "--record-len 1 --one-bit --digits",
    ] {
        let shape = "--records 1000 --queries 5 --batch 2 --threads 1";
        let arguments = format!("bench --scheme finite-differences {shape} {more} --json");
        let report = Place::new().run(&arguments).json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &6.into()));
        let servers = report["online"]["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 2, "{report}");
        assert!(servers.iter().all(|server| server["to_random_reads"].as_f64().unwrap() > 0.0));
        assert!(report["ratios"]["answer_to_random_reads"].as_f64().unwrap() > 0.0, "{report}");
        assert_eq!(
            (&report["client_state_bytes"], &report["online"]["journal_us"]),
            (&0.into(), &0.0.into())
        );
    }
}

#[test]
fn the_report_on_finite_differences_with_many_servers_has_all_of_them() {
    for servers in [3, 5] {
        let shape = "--records 50 --record-len 9 --queries 5 --batch 2 --threads 1";
        let scheme = format!("bench --scheme finite-differences-many --servers {servers}");
        let report = Place::new().run(&format!("{scheme} {shape} --json")).json();
        assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &6.into()));
        assert_eq!(report["online"]["servers"].as_array().unwrap().len(), servers, "{report}");
    }
}

#[test]
fn the_size_of_partitions_can_be_chosen_where_there_are_any() {
    let place = Place::new();
    let run = |scheme: &str, more: &str| {
        let shape = "--records 4096 --record-len 5 --queries 2 --threads 1";
        place.run(&format!("bench --scheme {scheme} {shape} {more}"))
    };
    for scheme in [
        "dummy-subsets",
        "dummy-subsets-two",
        "piano",
        "piano-all-parities",
        "singlepass",
        "tapir-mt",
    ] {
        let chosen = run(scheme, "--partition-records 128");
        assert!(
            chosen.stdout().contains(": 32 records, ")
                || chosen.stdout().contains(": 64 records, "),
            "{chosen}"
        );
    }
    assert_snapshot!(run("dpf", "--partition-records 128").mistake(), @r#"
    privet: dpf does not cut the table into partitions, so their size cannot be chosen
    "#);
    assert_snapshot!(run("plain", "--partition-records 128").mistake(), @r#"
    privet: plain lookups do not cut the table into partitions, so their size cannot be chosen
    "#);
}

#[test]
fn the_report_on_doublepir_has_its_hint_and_what_the_server_keeps() {
    let shape = "--scheme doublepir --records 20000 --record-len 1 --queries 3 --batch 3";
    let report = Place::new().run(&format!("bench {shape} --threads 1 --seed 7 --json")).json();
    assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &3.into()));
    assert_eq!(report["client_state_bytes"], 16 << 20);
    let number = |part: &str, field: &str| report[part][field].as_u64().unwrap();
    assert!(number("offline", "down_bytes") > 16 << 20, "{report}");
    // 4096 masked bytes and the first product of one column.
    assert!((4 * 4096..8 * 4096).contains(&number("online", "down_bytes")), "{report}");
    assert!(report["server_extra_bytes"].as_u64().unwrap() > 16 << 20, "{report}");
    assert!(report["ratios"]["answer_to_read"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_download_asks_nothing_and_a_plain_lookup_asks_openly() {
    let run = |scheme: &str| {
        let shape = "--records 1000 --record-len 5 --queries 8 --batch 2 --threads 1 --seed 7";
        Place::new().run(&format!("bench --scheme {scheme} {shape} --json")).json()
    };
    let report = run("download");
    assert_eq!((&report["verified"], &report["queries"]), (&true.into(), &8.into()));
    assert_eq!(report["online"]["servers"].as_array().unwrap().len(), 0);
    assert_eq!(report["online"]["up_bytes"], 0);
    assert_eq!(report["online"]["down_bytes"], 0);
    assert_eq!(report["client_state_bytes"], 5000);
    assert!((5000..5100).contains(&report["offline"]["down_bytes"].as_u64().unwrap()));
    assert!(report["ratios"].as_object().unwrap().is_empty());

    let report = run("plain");
    assert_eq!((&report["verified"], &report["scheme"]), (&true.into(), &"plain".into()));
    assert_eq!(report["offline"]["down_bytes"], 0);
    assert!((8..108).contains(&report["online"]["up_bytes"].as_u64().unwrap()), "{report}");
    let ratios: Vec<&String> = report["ratios"].as_object().unwrap().keys().collect();
    assert_eq!(ratios, ["answer_to_random_reads"]);
}

#[test]
fn a_generation_of_hints_serves_so_many_queries_and_no_more() {
    let place = Place::new();
    // Two records in each of four partitions: 128 pairs of backup hints.
    let shape = "bench --scheme dummy-subsets --records 8 --record-len 5 --threads 1";
    assert_eq!(place.run(&format!("{shape} --queries 60 --batch 7")).code(), 0);
    assert_snapshot!(place.run(&format!("{shape} --queries 129")).mistake(), @r#"
    privet: a generation of hints for this table serves 128 queries; 129 were to be measured, ask for fewer (--queries)
    "#);
}

#[test]
fn people_get_a_page() {
    let run = Place::new()
        .run("bench --records 1 --record-len 1 --queries 1 --threads 1 --kernel portable");
    let labels: Vec<&str> =
        run.stdout().lines().map(|line| line.get(..24).unwrap_or(line).trim_end()).collect();
    assert_snapshot!(labels.join("\n"), @r#"
    simplepir on 1 records o
    offline, once
      server
      client
      sent, received
    online, median per query
      client query
      server 0 answer
      client recover
      sent, received
    kept
      client state
      server, beyond table
    this machine, one core,
      sequential read
      random reads
      AES-128 blocks
      byte products
    "#);
    assert_eq!((run.code(), run.stderr()), (0, ""));
}

#[test]
fn people_get_a_page_on_dummy_subsets() {
    let run = Place::new()
        .run("bench --scheme dummy-subsets --records 1000 --record-len 5 --queries 9 --threads 1");
    assert_eq!((run.code(), run.stderr()), (0, ""));
    let line = |label: &str| {
        let mut lines = run.stdout().lines().map(str::trim_start);
        lines.find_map(|line| line.strip_prefix(label)).unwrap_or_else(|| panic!("{run}")).trim()
    };
    // 32 partitions of 32 records. One AES block makes 8 hints, and each partition takes two more
    // blocks.
    let hints = 2432 + 1280;
    let blocks = format!(": {} AES blocks, ", hints / 8 + 2 * 32);
    assert!(
        line("client query").contains(&blocks) && line("client query").ends_with(" x AES"),
        "{run}"
    );
    let answer = line("server 0 answer");
    assert!(answer.contains(": 32 records, ") && answer.ends_with(" x random reads"), "{run}");
    assert!(!line("journal").is_empty());
}

#[test]
fn shapes_and_names_that_do_not_exist_are_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("bench --records 0 --record-len 1").mistake(), @r#"
    error: invalid value '0' for '--records <N>': "0" is no positive whole number such as 1000000, 2^20 or 5M

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("bench --records 1 --record-len 0").mistake(), @r#"
    error: invalid value '0' for '--record-len <B>': "0" is no number of bytes such as 100, 2^20, 64k or 1GiB

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("bench --records 2^63 --record-len 2^63").mistake(), @r#"
    privet: a record of 9223372036854775808 bytes is too long: the limit is 16777216 bytes
    "#);
    assert_snapshot!(place.run("bench --records 2^60 --record-len 1").mistake(), @r#"
    privet: 1152921504606846976 records of 1 bytes are too much for one table: the limit is 281474976710656 bytes
    "#);
    assert_snapshot!(place.run("bench --scheme onion --records 1 --record-len 1").mistake(), @r#"
    error: invalid value 'onion' for '--scheme <SCHEME>': there is no scheme "onion" here; known are: simplepir, simplepir-packed, doublepir, dpf, dummy-subsets, dummy-subsets-two, harmony, piano, piano-all-parities, singlepass, tapir-mt, apir-dpf, apir-matrix-mt, download, tapir-pp, finite-differences, finite-differences-many

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("bench --records 1 --record-len 1 --batch 1025").mistake(), @r#"
    privet: a batch has at most 1024 queries, not 1025
    "#);
    assert_snapshot!(place.run("bench --scheme doublepir --records 10 --record-len 65").mistake(), @r#"
    privet: DoublePIR's hint has 16 MiB for each byte of a record, 1040 MiB for records of 65 bytes; the limit is 1024 MiB, records of 64 bytes; SimplePIR's hint for this table has 1 MiB
    "#);
    assert_snapshot!(place.run("bench --kernel mmx --records 1 --record-len 1").mistake(), @r#"
    error: invalid value 'mmx' for '--kernel <KERNEL>': unknown instruction set "mmx"; valid are portable, avx2 and avx512

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("bench --records 1").mistake(), @r#"
    error: the following required arguments were not provided:
      --record-len <B>

    Usage: privet bench --records <N> --record-len <B>

    For more information, try '--help'.
    "#);
}
