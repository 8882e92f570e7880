//! Clients, servers, storage and network in memory, under one seed: everything that can go wrong
//! does.
//!
//! A run is the life of one client's hints: several processes after one another over one disk. Each
//! looks things up until it ends or is cut off between any two steps, in a disk operation or before
//! a message. Messages are lost, repeated, reordered, late; streams break off; servers vanish for a
//! while, and so do hints and parts, because another process holds them. Tables are small and
//! generations short, so that hints are used up, prepared and switched all the time. Some tables
//! change and grow, and the earlier version is served for a while or not; then hints follow them or
//! are given up.
//!
//! The simulator drives the [`Conductor`](crate::conductor::Conductor), like a native client.
//!
//! The following must always hold, and is checked as it happens ([`world`]). Every value is right.
//! No query is sent before the receipt for its journal record. No hint is used for two different
//! queries. What is sent again is the same, byte for byte. Every lookup has exactly one outcome,
//! unless its process was cut off. And two runs that differ only in what is looked up send the
//! same, at the same times and of the same lengths. Computing takes time in the simulator, and
//! another time for each index ([`slow`]). Journal writes, and outcomes that the user is told, are
//! compared with their times as well.
//!
//! Toys come in kinds: the table comes to them as it is, in another order, or in replies of one of
//! the servers, and hints run out or do not. The same world has servers of other schemes: dummy
//! subsets; two servers of DPF-PIR, one of which may lie; and one that clients only fetch from,
//! whose table may lie in files that are damaged now and then.
//!
//! Clients and disks that are flawed on purpose show that the checks can fail. A failure names the
//! seed: `PRIVET_SIMULATOR_SEEDS=17..18 cargo test -p privet-client simulator` repeats it, and a
//! longer range tries more seeds.

mod conducted;
mod desk;
mod disk;
mod history;
mod scenario;
mod shelf;
pub(super) mod slow;
mod stateless;
mod world;

use super::super::planted::SessionFlaw;
use super::toy::{Flaw, Flow};
use disk::DiskFlaw;
use scenario::{Driver, Report, Scenario, Scheme};
use slow::Costs;
use std::ops::Range;
use std::time::Duration;
use world::simulate;

/// The seeds that the tests use by default.
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
        assert!(all.together > 1000, "only {} × several records in one commit", all.together);
    }
}

#[test]
fn everything_holds_for_dummy_subsets() {
    let mut all = Report::default();
    let few = if seeds() == SEEDS { 0..SEEDS.end / 10 } else { seeds() };
    for seed in few {
        for targets in [None, Some((|_| 3) as fn(u64) -> u64)] {
            let scheme = Scheme::DummySubsets;
            let scenario = Scenario { scheme, targets, ..Scenario::default() };
            all.add(&run(seed, scenario));
        }
    }
    if seeds() == SEEDS {
        // Its checkpoints lie at the ends of tables as small as these, so hardly any preparation
        // goes on from one.
        let counts = all.counts().into_iter().filter(|(what, _)| !what.contains("checkpoint"));
        for (what, count) in counts {
            assert!(count >= 5, "only {count} × {what}");
        }
    }
}

const FLOWS: [Flow; 3] = [Flow::Streamed, Flow::Backwards, Flow::Asked];

#[test]
fn everything_holds_however_the_table_comes() {
    for flow in FLOWS {
        let mut all = Report::default();
        for seed in few_seeds() {
            all.add(&run(seed, Scenario { flow, ..Scenario::default() }));
        }
        if seeds() == SEEDS {
            for (what, count) in all.counts() {
                assert!(count >= 20, "{flow:?}: only {count} × {what}");
            }
            assert_eq!(all.requests > 1000, flow == Flow::Asked, "{} requests", all.requests);
        }
    }
}

#[test]
fn everything_holds_for_hints_that_never_run_out() {
    for flow in FLOWS {
        let mut all = Report::default();
        for seed in few_seeds() {
            all.add(&run(seed, Scenario { flow, endless: true, ..Scenario::default() }));
        }
        if seeds() == SEEDS {
            let idle = "a stretch streamed in the background";
            for (what, count) in all.counts() {
                assert_eq!(count < 20, what == idle, "{flow:?}: {count} × {what}");
            }
            assert_eq!(all.streamed_in_background, 0, "nobody is asked for the next generation");
            // For each client's first generation, a switch is counted, and no condensation.
            assert!(all.condensed > 500, "{flow:?}: {} × a generation condensed", all.condensed);
        }
    }
}

const VERIFYING: Scenario = Scenario { scheme: Scheme::Toy, endless: true, verifies: true, ..DPF };

#[test]
fn everything_holds_for_answers_that_are_verified() {
    for (flow, lies) in FLOWS.into_iter().flat_map(|flow| [(flow, false), (flow, true)]) {
        let mut all = Report::default();
        for seed in few_seeds() {
            all.add(&run(seed, Scenario { flow, lies, ..VERIFYING }));
        }
        if seeds() == SEEDS {
            for (what, count) in all.counts_without_a_next_generation() {
                assert!(count >= 20, "{flow:?}: only {count} × {what}");
            }
            assert_eq!(all.wrong, 0);
            assert_eq!(all.ended > 100, lies, "{} clients came to their end", all.ended);
            // All lookups after the end fail, and so does each later process.
            assert!(all.told_of_the_end >= 5 * all.ended, "{}", all.told_of_the_end);
        }
    }
}

#[test]
fn traffic_of_queries_one_after_the_other_does_not_depend_on_what_is_looked_up() {
    for lies in [false, true] {
        for seed in few_seeds() {
            assert_blind(seed, &Scenario { lies, ..VERIFYING });
        }
    }
}

#[test]
fn everything_holds_for_streams_that_are_compared() {
    let mut all = Report::default();
    for (seed, endless) in few_seeds().flat_map(|seed| [(seed, false), (seed, true)]) {
        let scenario = Scenario { flow: Flow::Backwards, compare: true, endless, ..DPF };
        all.add(&run(seed, Scenario { scheme: Scheme::Toy, ..scenario }));
    }
    if seeds() == SEEDS {
        for (what, count) in all.counts() {
            assert!(count >= 20, "only {count} × {what}");
        }
    }
}

/// The seeds, or a part of them where each costs more.
fn few_seeds() -> Range<u64> {
    if seeds() == SEEDS { 0..SEEDS.end / 5 } else { seeds() }
}

#[test]
fn everything_holds_for_two_servers_of_which_one_may_lie() {
    for lies in [false, true] {
        let mut all = Report::default();
        for seed in few_seeds() {
            all.add(&run(seed, Scenario { lies, ..DPF }));
        }
        if seeds() == SEEDS {
            for (what, count) in all.counts_without_hints() {
                assert!(count >= 20, "only {count} × {what}");
            }
            let (values, wrong) = all.values();
            assert_eq!(wrong > values / 10, lies, "{wrong} of {values} values were wrong");
        }
    }
}

#[test]
fn everything_holds_for_a_table_that_is_fetched_whole() {
    let mut found = 0;
    for seed in few_seeds() {
        found += run(seed, DOWNLOAD).values().0;
    }
    assert!(found > 10 * few_seeds().count() as u64, "{found} lookups were told a value");
}

#[test]
fn everything_holds_for_a_hint_that_comes_beside_the_first_queries() {
    let mut all = Report::default();
    for seed in few_seeds() {
        all.add(&run(seed, LATE_HINT));
    }
    if seeds() == SEEDS {
        for (what, count) in all.counts_without_hints() {
            assert!(count >= 20, "only {count} × {what}");
        }
    }
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up_while_the_hint_is_on_its_way() {
    for seed in few_seeds() {
        let reference = assert_blind(seed, &LATE_HINT).0;
        assert_same_traffic(seed, &run(seed, Scenario { lies: true, ..LATE_HINT }), &reference);
    }
}

const LATE_HINT: Scenario = Scenario { scheme: Scheme::LateHint, ..DPF };

const DPF: Scenario = Scenario {
    scheme: Scheme::Dpf,
    flow: Flow::Streamed,
    endless: false,
    verifies: false,
    compare: false,
    client: Flaw::None,
    stateless_client: stateless::Flaw::None,
    disk: DiskFlaw::None,
    costs: Costs::Within,
    timetable: None,
    driver: Driver::Prompt,
    targets: None,
    lies: false,
    damages: false,
    changes: false,
};

const DOWNLOAD: Scenario = Scenario { scheme: Scheme::Download, ..DPF };

/// Checks that everything that is sent is the same as in `reference`, and at the same times.
fn assert_same_traffic(seed: u64, report: &Report, reference: &Report) {
    let differ = report.trace.iter().zip(&reference.trace).position(|(a, b)| a != b);
    if let Some(at) = differ {
        let (this, other) = (&report.trace[..=at], &reference.trace[..=at]);
        let since = at.saturating_sub(3);
        panic!("seed {seed}: the traffic differs: {:?} {:?}", &this[since..], &other[since..]);
    }
    assert_eq!(report.trace.len(), reference.trace.len(), "seed {seed}");
}

/// Checks that nothing that is sent, nor its time, depends on what is looked up. Returns the run
/// with the scenario's own targets, and those with others.
fn assert_blind(seed: u64, scenario: &Scenario) -> (Report, [Report; 2]) {
    let reference = run(seed, scenario.clone());
    let sequences: [fn(u64) -> u64; 2] = [|_| 0, |k| k];
    let reports = sequences.map(|targets| {
        let report = run(seed, Scenario { targets: Some(targets), ..scenario.clone() });
        assert_same_traffic(seed, &report, &reference);
        report
    });
    (reference, reports)
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up() {
    for seed in seeds() {
        assert_blind(seed, &Scenario::default());
    }
}

#[test]
fn traffic_of_every_kind_of_hint_does_not_depend_on_what_is_looked_up() {
    for (flow, endless) in [(Flow::Asked, false), (Flow::Asked, true), (Flow::Backwards, true)] {
        for seed in few_seeds() {
            assert_blind(seed, &Scenario { flow, endless, ..Scenario::default() });
        }
    }
}

#[test]
fn traffic_to_two_servers_does_not_depend_on_what_is_looked_up_or_answered() {
    for seed in few_seeds() {
        let reference = assert_blind(seed, &DPF).0;
        assert_same_traffic(seed, &run(seed, Scenario { lies: true, ..DPF }), &reference);
    }
}

/// Nor does it show in when, or whether, a damaged stored table is fetched again.
#[test]
fn traffic_for_a_table_that_is_fetched_whole_does_not_depend_on_what_is_looked_up() {
    for damages in [false, true] {
        let mut all = Report::default();
        // Files are synced, which takes its time.
        let seeds = if damages && seeds() == SEEDS { 0..SEEDS.end / 15 } else { few_seeds() };
        for seed in seeds {
            let (_, reports) = assert_blind(seed, &Scenario { damages, ..DOWNLOAD });
            reports.iter().for_each(|report| all.add(report));
        }
        if damages && self::seeds() == SEEDS {
            assert!(all.damaged > 200 && all.met_damage > 50, "{} {}", all.damaged, all.met_damage);
        }
    }
}

/// Toys of every kind, of a table that changes.
fn changing() -> impl Iterator<Item = Scenario> {
    let kinds = FLOWS.into_iter().flat_map(|flow| [(flow, false), (flow, true)]);
    let toys = kinds.map(|(flow, endless)| Scenario { flow, endless, ..Scenario::default() });
    let all = toys.chain([VERIFYING]);
    all.map(|scenario| Scenario { changes: true, ..scenario })
}

#[test]
fn everything_holds_while_the_table_changes() {
    for scenario in changing() {
        let mut all = Report::default();
        for seed in few_seeds() {
            all.add(&run(seed, scenario.clone()));
        }
        let kind = (scenario.flow, scenario.endless, scenario.verifies);
        if seeds() == SEEDS {
            for (what, count) in all.counts_without_hints().into_iter().take(4) {
                assert!(count >= 20, "{kind:?}: only {count} × {what}");
            }
            let (followed, left_behind) = (all.followed, all.left_behind);
            assert!(followed > 100 && left_behind > 100, "{kind:?}: {followed}, {left_behind}");
        }
    }
}

#[test]
fn everything_holds_for_dummy_subsets_while_the_table_changes() {
    let mut all = Report::default();
    let few = if seeds() == SEEDS { 0..SEEDS.end / 20 } else { seeds() };
    for seed in few {
        let scheme = Scheme::DummySubsets;
        all.add(&run(seed, Scenario { scheme, changes: true, ..Scenario::default() }));
    }
    if seeds() == SEEDS {
        let (followed, left_behind) = (all.followed, all.left_behind);
        assert!(followed > 20 && left_behind > 5, "{followed}, {left_behind}");
    }
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up_while_the_table_changes() {
    for scenario in changing() {
        let seeds = if seeds() == SEEDS { 0..SEEDS.end / 15 } else { seeds() };
        for seed in seeds {
            assert_blind(seed, &scenario);
        }
    }
}

#[test]
fn who_loses_track_of_a_table_that_changes_is_caught() {
    let changing = Scenario { changes: true, ..Scenario::default() };
    let overlooked = caught(Scenario { client: Flaw::OverlooksEdits, ..changing.clone() });
    assert!(
        overlooked.len() > 10 && overlooked.iter().all(|how| how.contains("is wrong")),
        "{overlooked:?}"
    );
    let forgotten = caught(Scenario { disk: DiskFlaw::ForgetsThatItFollowed, ..changing });
    assert!(forgotten.len() > 10, "{forgotten:?}");
}

/// In how many of a hundred runs a flaw is caught, and how.
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
    let condensed =
        caught(Scenario { client: Flaw::CondensesTooMuch, endless: true, ..Scenario::default() });
    assert!(
        condensed.len() > 50 && condensed.iter().all(|how| how.contains("two queries")),
        "{condensed:?}"
    );
    let sent = with(Flaw::SendsAtOnce);
    assert!(
        sent.len() > 50 && sent.iter().all(|how| how.contains("before its receipt")),
        "{sent:?}"
    );
}

#[test]
fn clients_that_verify_and_are_flawed_are_caught() {
    let with = |client| caught(Scenario { client, lies: true, ..VERIFYING });
    let together = with(Flaw::HidesThatItVerifies);
    assert!(
        together.len() > 50 && together.iter().all(|how| how.contains("another was not settled")),
        "{together:?}"
    );
    let went_on = with(Flaw::GoesOnAfterItsEnd);
    assert!(went_on.len() > 30 && went_on.iter().all(|how| how.contains("the end")), "{went_on:?}");
    let disk = DiskFlaw::CertifiesTheEndBeforeSyncing;
    let unsynced = caught(Scenario { disk, lies: true, ..VERIFYING });
    assert!(
        unsynced.len() > 30 && unsynced.iter().all(|how| how.contains("before it was durable")),
        "{unsynced:?}"
    );
}

#[test]
fn stateless_clients_that_are_flawed_are_caught() {
    let with = |stateless_client| caught(Scenario { stateless_client, ..DPF });
    let shared = with(stateless::Flaw::SendsOneQueryToBoth);
    assert!(
        shared.len() > 90 && shared.iter().all(|how| how.contains("to two servers")),
        "{shared:?}"
    );
    let repeated = with(stateless::Flaw::RepeatsItself);
    assert!(
        repeated.len() > 50 && repeated.iter().all(|how| how.contains("two lookups were one")),
        "{repeated:?}"
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
    let toy = Scenario { client: Flaw::LeaksZero, ..Scenario::default() };
    let dpf = Scenario { stateless_client: stateless::Flaw::LeaksZero, ..DPF };
    for scenario in [toy, dpf] {
        assert!(leaks(&scenario) > 40);
    }
}

/// Work that takes longer than its slot does not show either, if it ends at the same quarter of a
/// slot.
#[test]
fn traffic_does_not_depend_on_what_takes_longer_than_its_slot() {
    for seed in few_seeds() {
        for scenario in [Scenario::default(), VERIFYING, DPF] {
            let scenario = Scenario { costs: Costs::Beyond, ..scenario };
            assert_blind(seed, &scenario);
        }
    }
}

/// Nor does it matter who tells the time, or how coarsely.
#[test]
fn traffic_does_not_depend_on_what_is_looked_up_whoever_tells_the_time() {
    let drivers =
        [(Driver::LooksTooEarly, Costs::Within), (Driver::HasACoarseClock, Costs::WithinOnceOpen)];
    for (driver, costs) in drivers {
        for seed in few_seeds() {
            for scenario in [Scenario::default(), VERIFYING, DPF] {
                let scenario = Scenario { driver, costs, ..scenario };
                assert_blind(seed, &scenario);
            }
        }
    }
}

/// An answer that takes long to read delays no query unless one waits for it, and lengthens no
/// later slot. The user is told late, by quarters of a slot.
#[test]
fn queries_do_not_depend_on_answers_that_none_of_them_waited_for() {
    let differ = |timetable| {
        let costs = Costs::SomeAnswersBeyond;
        let differ = (0..50).filter(|seed| {
            let sequences: [fn(u64) -> u64; 2] = [|_| 0, |k| k];
            let [zeros, others] = sequences.map(|targets| {
                let targets = Some(targets);
                sent_one_after_the_other(*seed, Scenario { timetable, costs, targets, ..DPF })
            });
            zeros != others
        });
        differ.count()
    };
    assert_eq!(differ(None), 0);
    assert!(differ(Some(SessionFlaw::GrowsWithAnswers)) > 20);
}

#[test]
fn moments_that_depend_on_the_index_are_caught() {
    let with = |timetable, costs| {
        let kinds = [Scenario::default(), VERIFYING, DPF];
        kinds.map(|scenario| leaks(&Scenario { timetable, costs, ..scenario }))
    };
    let at_once = with(Some(SessionFlaw::SendsWhenDone), Costs::Within);
    assert!(at_once.iter().all(|leaks| *leaks > 40), "{at_once:?}");
    // If some indices take longer than any dummy, that shows, however it is rounded.
    let late = with(None, Costs::SomeQueriesBeyond);
    assert!(late.iter().all(|leaks| *leaks > 40), "{late:?}");
    let believed = [Scenario::default(), VERIFYING, DPF].map(|scenario| {
        let (driver, timetable) = (Driver::LooksTooEarly, Some(SessionFlaw::BelievesWhatItIsTold));
        leaks(&Scenario { driver, timetable, ..scenario })
    });
    assert!(believed.iter().all(|leaks| *leaks > 40), "{believed:?}");
    let unrounded = with(Some(SessionFlaw::DoesNotRound), Costs::Beyond);
    assert!(unrounded.iter().all(|leaks| *leaks > 40), "{unrounded:?}");
    // Reading delays a query only if one waits for it, or is handed in meanwhile.
    let [toys, verifying, dpf] = with(Some(SessionFlaw::ReadsWithoutSlot), Costs::Within);
    assert!(verifying > 40 && toys > 10 && dpf > 10, "{verifying} {toys} {dpf}");
}

/// In how many of fifty runs a leak shows in what is sent.
fn leaks(scenario: &Scenario) -> usize {
    let differing = (0..50).filter(|seed| {
        let sequences: [fn(u64) -> u64; 2] = [|_| 0, |k| k + 1];
        let [zero, other] = sequences.map(|targets| {
            simulate(*seed, Scenario { targets: Some(targets), ..scenario.clone() })
        });
        // A lookup that is not even tried also fails visibly.
        match (zero, other) {
            (Ok(zero), Ok(other)) => zero.sent() != other.sent(),
            (zero, other) => zero.is_err() || other.is_err(),
        }
    });
    differing.count()
}

/// What servers see of a client that looks up one thing every few seconds: each message, at the
/// time since the first.
fn sent_one_after_the_other(
    seed: u64,
    scenario: Scenario,
) -> Vec<(Duration, usize, &'static str, usize)> {
    let sent = run(seed, scenario).sent();
    // Only the last process looks things up like that.
    let last = sent.iter().map(|(_, process, ..)| *process).max();
    let sent: Vec<_> = sent.into_iter().filter(|(_, process, ..)| Some(*process) == last).collect();
    let first = sent.first().map_or(Duration::ZERO, |(at, ..)| *at);
    sent.into_iter().map(|(at, _, server, kind, len)| (at - first, server, kind, len)).collect()
}
