//! `privet demo` and `privet doctor`.

use crate::place::Place;
use insta::assert_snapshot;
use serde_json::Value;

#[test]
fn the_demonstration_looks_up_six_names_under_each_scheme_and_every_query_looks_alike() {
    let run = Place::new().run("demo --entries 50000");
    assert_eq!((run.code(), run.stderr()), (0, ""), "{run}");
    let parts: Vec<&str> = run.stdout().split("\n\n").collect();
    let [
        _table,
        simplepir,
        doublepir,
        dpf,
        dummy_subsets,
        dummy_subsets_two,
        piano,
        all_parities,
        singlepass,
        tapir_merkle,
        tapir_pointproofs,
        apir_dpf,
        apir_matrix,
        finite_differences,
        finite_differences_many,
        download,
        lie,
    ] = parts[..]
    else {
        panic!("{run}")
    };
    // Queries for one name have no more in common than queries for two, and neither more than
    // chance gives.
    for (part, heading, agreement) in [
        (simplepir, "2. With simplepir: a server at", 3.0),
        (dummy_subsets, "5. With dummy-subsets: a server at", AGREEMENT),
        (piano, "7. With piano: a server at", AGREEMENT),
        (all_parities, "8. With piano-all-parities: a server at", AGREEMENT),
    ] {
        assert!(part.starts_with(heading), "{run}");
        let [seen] = six_names_are_looked_up(part)[..] else { panic!("{part}") };
        six_queries_look_alike(seen, agreement);
    }
    assert!(
        doublepir.starts_with("3. Not with doublepir: DoublePIR's hint has 16 MiB for each byte"),
        "{run}"
    );
    assert!(doublepir.contains("the limit is 1024 MiB"), "{run}");

    assert!(dpf.starts_with("4. With dpf: two servers that must not collude at"), "{run}");
    let [first, second] = six_names_are_looked_up(dpf)[..] else { panic!("{dpf}") };
    six_queries_look_alike(first, DPF_AGREEMENT);
    six_queries_look_alike(second, DPF_AGREEMENT);

    let two = "two servers that must not collude at";
    assert!(dummy_subsets_two.starts_with(&format!("6. With dummy-subsets-two: {two}")), "{run}");
    let [hints, answers] = six_names_are_looked_up(dummy_subsets_two)[..] else { panic!("{run}") };
    six_queries_are_equally_long(hints);
    assert!(hints.contains("numbers count up, whatever is looked up"), "{hints}");
    six_queries_look_alike(answers, AGREEMENT);

    assert!(singlepass.starts_with(&format!("9. With singlepass: {two}")), "{run}");
    assert!(tapir_merkle.starts_with(&format!("10. With tapir-mt: {two}")), "{run}");
    assert!(tapir_pointproofs.starts_with(&format!("11. With tapir-pp: {two}")), "{run}");
    for part in [singlepass, tapir_merkle, tapir_pointproofs] {
        let seen = six_names_are_looked_up(part);
        assert_eq!(seen.len(), 2, "{part}");
        seen.into_iter().for_each(six_queries_are_equally_long);
    }

    assert!(apir_dpf.starts_with(&format!("12. With apir-dpf: {two}")), "{run}");
    assert!(apir_matrix.starts_with(&format!("13. With apir-matrix-mt: {two}")), "{run}");
    for part in [apir_dpf, apir_matrix] {
        let [first, second] = six_names_are_looked_up(part)[..] else { panic!("{part}") };
        six_queries_look_alike(first, DPF_AGREEMENT);
        six_queries_look_alike(second, DPF_AGREEMENT);
    }

    assert!(
        finite_differences.starts_with(&format!("14. With finite-differences: {two}")),
        "{run}"
    );
    let seen = six_names_are_looked_up(finite_differences);
    assert_eq!(seen.len(), 2, "{finite_differences}");
    seen.into_iter().for_each(six_queries_are_equally_long);

    assert!(
        finite_differences_many
            .starts_with("15. Not with finite-differences-many: each server would make "),
        "{run}"
    );

    assert!(lie.starts_with("17. With apir-dpf, and a second server that lies"), "{run}");
    assert!(
        lie.contains(
            "the lookup ends with   exit code 4: one of the two servers sent a wrong answer"
        ),
        "{lie}"
    );

    assert!(download.starts_with("16. With download: a server at"), "{run}");
    let [seen] = six_names_are_looked_up(download)[..] else { panic!("{download}") };
    assert_eq!(seen, "the server saw of them: nothing. The client has the table and asks nobody.");
}

/// Six standard deviations of the share of agreeing bits, in percent, of two queries of dummy
/// subsets: they have 450 bits on the table of 50,000 entries.
const AGREEMENT: f64 = 15.0;

/// The same for keys of distributed point functions: 1000 bits or more.
const DPF_AGREEMENT: f64 = 10.0;

/// Returns what each server saw.
fn six_names_are_looked_up(part: &str) -> Vec<&str> {
    let (_, lookups) = part.split_once("Lookups").unwrap();
    let mut parts = lookups.split("What ");
    let lines: Vec<&str> =
        parts.next().unwrap().lines().filter(|line| line.starts_with("  ")).collect();
    // Name and value stand in columns of their own; then come the time, and the bytes.
    let found: Vec<&str> = lines.iter().map(|line| line[..65].trim_end()).collect();
    insta::allow_duplicates! {
        assert_snapshot!(found.join("\n"), @r#"
    Ada Archer 1           {"phone":"555-0000000","floor":"0"}
    Tony Smith 625         {"phone":"555-0370679","floor":"9"}
    Tony Smith 625         {"phone":"555-0370679","floor":"9"}
    Tony Smith 1250        {"phone":"555-8395679","floor":"19"}
    Nobody Nowhere 1       not found
    Eve Dropper 7          not found
    "#);
    }
    let bytes: Vec<&str> = lines.iter().map(|line| line.split_once("s, ").unwrap().1).collect();
    assert!(bytes.iter().all(|sent| *sent == bytes[0]), "{bytes:?}");
    parts.collect()
}

fn six_queries_are_equally_long(seen: &str) {
    let lengths: Vec<&str> = seen
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("query "))
        .map(|line| line.split_once(": ").unwrap().0.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(lengths.len(), 6, "{seen}");
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    assert!(lengths[0].parse::<u64>().unwrap() > 0);
}

fn six_queries_look_alike(seen: &str, agreement: f64) {
    six_queries_are_equally_long(seen);
    let parts = seen.split("agree in ").skip(1);
    let agreements: Vec<f64> =
        parts.map(|rest| rest.split_once(" %").unwrap().0.parse().unwrap()).collect();
    let [repeated, different, chance] = agreements[..] else { panic!("{seen}") };
    assert!((repeated - 50.0).abs() < agreement, "{seen}");
    assert!((different - 50.0).abs() < agreement, "{seen}");
    assert_eq!(chance, 50.0);
}

#[test]
fn a_demonstration_has_bounds() {
    let place = Place::new();
    assert_eq!(place.run("demo --entries 1").code(), 0);
    assert_snapshot!(place.run("demo --entries 0"), @r#"
    [exit 2]
    [stderr]
    error: invalid value '0' for '--entries <ENTRIES>': "0" is no positive whole number such as 1000000 or 2^20

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("demo --entries 10000001"), @r#"
    [exit 2]
    [stderr]
    privet: a demonstration has at most 10000000 entries
    "#);
}

#[test]
fn the_doctor_reports_each_subject_and_advises_where_one_is_wanting() {
    let place = Place::new();
    let findings = place.run("doctor --json").json();
    let findings = findings.as_array().unwrap();
    let subjects: Vec<&str> =
        findings.iter().map(|finding| finding["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["processor", "kernels", "huge pages", "memory", "open files"]);
    for finding in findings {
        assert_eq!(
            finding["good"].as_bool().unwrap(),
            finding["advice"] == Value::Null,
            "{finding}"
        );
    }
    let page = place.run("doctor");
    assert_eq!((page.code(), page.stderr()), (0, ""));
    assert!(subjects.iter().all(|subject| page.stdout().contains(subject)), "{page}");
}
