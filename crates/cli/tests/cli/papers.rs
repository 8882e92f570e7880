//! `privet papers`: bytes need no run, results are kept, and a page says what was not measured.

use crate::place::Place;

/// Yardsticks of a machine, so that the same runs are made everywhere.
const MACHINE: &str = include_str!("../../../measure/src/machine/typical.json");

/// No run may take time, so nothing is measured.
const NO_TIME: &str = "--machine machine.json --longest 1us -o figures";

fn place() -> Place {
    let place = Place::new();
    place.write("machine.json", MACHINE);
    place
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn a_page_without_a_run_has_exact_bytes_and_says_what_is_missing() {
    let place = place();
    let run = place.run(&format!("papers simplepir dummy-subsets {NO_TIME}"));
    assert_eq!((run.code(), run.stdout()), (0, "figures/README.md\n"), "{run}");
    let page = read(&place, "figures/README.md");
    let row = page.lines().find(|line| line.contains("→ `doublepir`")).unwrap();
    assert!(row.contains("| 16 MiB → 16.00 MiB |"), "{row}");
    assert!(row.contains("| 7 GB/s → – |"), "{row}");
    assert!(row.ends_with("| takes too long |"), "{row}");
    let not_here = page.lines().find(|line| line.contains("| Spiral |")).unwrap();
    assert!(!not_here.contains('→'), "{not_here}");
    // Growth belongs to a page of all papers.
    assert!(!page.contains("How cost grows"));
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let place = place();
    let line = "papers simplepir --machine machine.json --longest 100ms -o figures";
    let measured = || {
        place.run(line).succeeds();
        (read(&place, "figures/runs.jsonl"), read(&place, "figures/README.md"))
    };
    let (runs, page) = measured();
    assert!(runs.lines().count() >= 2, "{runs}");
    assert!(runs.lines().all(|line| line.contains("\"verified\":true")), "{runs}");
    assert!(page.contains("≈"), "{page}");
    assert_eq!(measured(), (runs, page));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = place();
    place.write("taken", "a file");
    let failed = place.run(&format!("papers simplepir {NO_TIME}").replace("figures", "taken"));
    let failed = failed.refusal();
    assert!(failed.contains("taken"), "{failed}");
}
