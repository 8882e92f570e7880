//! Clients, servers, storage and network in memory, under one seed: what happens when everything that can go wrong does.
//!
//! A run is the life of one client's hints: several processes after one another over one disk, each of which looks things up until it ends or is cut off
//! between any two steps, in a disk operation or before a message. Messages are lost, repeated, overtaken, late; streams break off; servers vanish for a
//! while. Tables are small and generations short, so that hints are used up, prepared and switched all the time.
//!
//! What must hold all the same is checked as it happens ([`world`]): every value is right; no query is sent before the receipt for its journal record; no
//! hint is used for two different queries; what is sent again is the same, byte for byte; every lookup has exactly one outcome, unless its process was cut
//! off; and nothing of what is sent, when or how long, differs between two runs that differ in nothing but in what is looked up.
//!
//! That the checks can fail is shown by clients and disks that are flawed on purpose. A failure names the seed:
//! `PRIVET_SIMULATOR_SEEDS=17..18 cargo test -p privet-client simulator` repeats it, and a longer range looks further.

mod disk;
mod world;

use super::toy::Flaw;
use disk::DiskFlaw;
use std::ops::Range;
use world::{Report, Scenario, simulate};

/// The seeds that the tests go through if nobody says otherwise.
const SEEDS: Range<u64> = 0..1500;

fn seeds() -> Range<u64> {
    let Ok(range) = std::env::var("PRIVET_SIMULATOR_SEEDS") else { return SEEDS };
    let parsed = range
        .split_once("..")
        .and_then(|(from, to)| Some(from.trim().parse().ok()?..to.trim().parse().ok()?));
    parsed.unwrap_or_else(|| panic!("PRIVET_SIMULATOR_SEEDS is {range:?}, not of the form 0..1000"))
}

fn run(seed: u64, scenario: Scenario) -> Report {
    simulate(seed, scenario).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"))
}

#[test]
fn everything_holds_whatever_happens() {
    let mut all = Report::default();
    for seed in seeds() {
        let report = run(seed, Scenario::default());
        all.add(&report);
    }
    // A simulation in which nothing happens proves nothing.
    if seeds() == SEEDS {
        for (what, count) in all.counts() {
            assert!(count >= 20, "only {count} × {what}");
        }
    }
}

#[test]
fn everything_holds_for_dummy_subsets() {
    let mut all = Report::default();
    let few = if seeds() == SEEDS { 0..SEEDS.end / 10 } else { seeds() };
    for seed in few {
        for targets in [None, Some((|_| 3) as fn(u64) -> u64)] {
            let scenario = Scenario { dummy_subsets: true, targets, ..Scenario::default() };
            all.add(&run(seed, scenario));
        }
    }
    if seeds() == SEEDS {
        // Its checkpoints lie at the ends of tables as small as these, so hardly any is gone on from.
        let counts = all.counts().into_iter().filter(|(what, _)| !what.contains("checkpoint"));
        for (what, count) in counts {
            assert!(count >= 5, "only {count} × {what}");
        }
    }
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up() {
    let sequences: [fn(u64) -> u64; 2] = [|_| 0, |k| k];
    for seed in seeds() {
        let reference = run(seed, Scenario::default());
        for targets in sequences {
            let report = run(seed, Scenario { targets: Some(targets), ..Scenario::default() });
            let at = report.trace.iter().zip(&reference.trace).position(|(a, b)| a != b);
            assert_eq!(at, None, "seed {seed}: the traffic differs");
            assert_eq!(report.trace.len(), reference.trace.len(), "seed {seed}");
        }
    }
}

/// In how many of a hundred runs a flaw shows, and how.
fn caught(scenario: Scenario) -> Vec<String> {
    (0..100).filter_map(|seed| simulate(seed, scenario.clone()).err()).collect()
}

#[test]
fn clients_that_are_flawed_are_caught() {
    let with = |client| caught(Scenario { client, ..Scenario::default() });
    let reused = with(Flaw::ReusesHints);
    assert!(
        reused.len() > 50 && reused.iter().all(|how| how.contains("two queries")),
        "{reused:?}"
    );
    let sent = with(Flaw::SendsAtOnce);
    assert!(
        sent.len() > 50 && sent.iter().all(|how| how.contains("before its receipt")),
        "{sent:?}"
    );
}

#[test]
fn disks_that_are_flawed_are_caught() {
    let with = |disk| caught(Scenario { disk, ..Scenario::default() });
    let forgotten = with(DiskFlaw::ForgetsTheLastRecord);
    assert!(forgotten.iter().any(|how| how.contains("two queries")), "{forgotten:?}");
    let unsynced = with(DiskFlaw::CertifiesBeforeSyncing);
    assert!(unsynced.iter().any(|how| how.contains("two queries")), "{unsynced:?}");
    let changed = with(DiskFlaw::ChangesWhatIsUnfinished);
    assert!(changed.len() > 10, "{changed:?}");
    let lost = with(DiskFlaw::LosesAnswers);
    assert!(lost.len() > 10, "{lost:?}");
}

#[test]
fn traffic_that_depends_on_the_index_is_caught() {
    let differing = (0..50).filter(|seed| {
        let scenario = Scenario { client: Flaw::LeaksZero, ..Scenario::default() };
        let sequences: [fn(u64) -> u64; 2] = [|_| 0, |k| k + 1];
        let [zero, other] = sequences.map(|targets| {
            simulate(*seed, Scenario { targets: Some(targets), ..scenario.clone() })
        });
        // A lookup that is not even tried fails in a way that is noticed too.
        match (zero, other) {
            (Ok(zero), Ok(other)) => zero.trace != other.trace,
            (zero, other) => zero.is_err() || other.is_err(),
        }
    });
    assert!(differing.count() > 40);
}
