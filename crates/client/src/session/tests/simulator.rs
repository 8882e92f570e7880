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
use std::fmt::Debug;
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

/// The seeds, or a part of them where each costs more.
fn few_seeds() -> Range<u64> {
    one_in(5)
}

/// The first of so many parts of the seeds.
fn one_in(parts: u64) -> Range<u64> {
    if seeds() == SEEDS { 0..SEEDS.end / parts } else { seeds() }
}

/// What happened in the runs of all these seeds.
fn total(seeds: Range<u64>, scenario: &Scenario) -> Report {
    let mut all = Report::default();
    for seed in seeds {
        all.add(&run(seed, scenario.clone()));
    }
    all
}

/// A simulation in which nothing happens proves nothing.
fn assert_happened(counts: &[(&str, u64)], least: u64, of: &dyn Debug) {
    for (what, count) in counts {
        assert!(seeds() != SEEDS || *count >= least, "{of:?}: only {count} × {what}");
    }
}

const TOY: Scenario = Scenario {
    scheme: Scheme::Toy,
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
const VERIFYING: Scenario = Scenario { endless: true, verifies: true, ..TOY };
const DUMMY_SUBSETS: Scenario = Scenario { scheme: Scheme::DummySubsets, ..TOY };
const DPF: Scenario = Scenario { scheme: Scheme::Dpf, ..TOY };
const LATE_HINT: Scenario = Scenario { scheme: Scheme::LateHint, ..TOY };
const DOWNLOAD: Scenario = Scenario { scheme: Scheme::Download, ..TOY };

const FLOWS: [Flow; 3] = [Flow::Streamed, Flow::Backwards, Flow::Asked];

#[test]
fn everything_holds_for_dummy_subsets() {
    let mut all = total(one_in(10), &DUMMY_SUBSETS);
    all.add(&total(one_in(10), &Scenario { targets: Some(|_| 3), ..DUMMY_SUBSETS }));
    // Its checkpoints lie at the ends of tables as small as these, so hardly any preparation goes
    // on from one.
    let counts = all.counts().into_iter().filter(|(what, _)| !what.contains("checkpoint"));
    assert_happened(&counts.collect::<Vec<_>>(), 5, &"dummy subsets");
}

#[test]
fn everything_holds_however_the_table_comes() {
    let asked = total_of_blind(few_seeds(), &Scenario { flow: Flow::Asked, ..TOY });
    let backwards = total(few_seeds(), &Scenario { flow: Flow::Backwards, ..TOY });
    for (flow, all) in [(Flow::Asked, asked), (Flow::Backwards, backwards)] {
        assert_happened(&all.counts(), 20, &flow);
        if seeds() == SEEDS {
            assert_eq!(all.requests > 1000, flow == Flow::Asked, "{} requests", all.requests);
        }
    }
}

#[test]
fn everything_holds_for_hints_that_never_run_out() {
    for flow in FLOWS {
        let scenario = Scenario { flow, endless: true, ..TOY };
        let all = match flow {
            Flow::Streamed => total(few_seeds(), &scenario),
            Flow::Backwards | Flow::Asked => total_of_blind(few_seeds(), &scenario),
        };
        assert_eq!(all.streamed_in_background, 0, "nobody is asked for the next generation");
        assert_happened(&all.counts_without_a_next_generation(), 20, &flow);
        // For each client's first generation, a switch is counted, and no condensation.
        assert_happened(&[("a generation condensed", all.condensed)], 500, &flow);
    }
}

#[test]
fn everything_holds_for_answers_that_are_verified() {
    for (flow, lies) in FLOWS.into_iter().flat_map(|flow| [(flow, false), (flow, true)]) {
        let scenario = Scenario { flow, lies, ..VERIFYING };
        let all = match flow {
            Flow::Streamed => total_of_blind(few_seeds(), &scenario),
            Flow::Backwards | Flow::Asked => total(few_seeds(), &scenario),
        };
        assert_happened(&all.counts_without_a_next_generation(), 20, &flow);
        if seeds() == SEEDS {
            assert_eq!(all.wrong, 0);
            assert_eq!(all.ended > 100, lies, "{} clients came to their end", all.ended);
            // All lookups after the end fail, and so does each later process.
            assert!(all.told_of_the_end >= 5 * all.ended, "{}", all.told_of_the_end);
        }
    }
}

#[test]
fn everything_holds_for_streams_that_are_compared() {
    let compared = Scenario { flow: Flow::Backwards, compare: true, ..TOY };
    let mut all = total(few_seeds(), &compared);
    all.add(&total(few_seeds(), &Scenario { endless: true, ..compared }));
    assert_happened(&all.counts(), 20, &"compared");
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up_while_the_hint_is_on_its_way() {
    let mut all = Report::default();
    for seed in few_seeds() {
        let reference = assert_blind(seed, &LATE_HINT).0;
        assert_same_traffic(seed, &run(seed, Scenario { lies: true, ..LATE_HINT }), &reference);
        all.add(&reference);
    }
    assert_happened(&all.counts_without_hints(), 20, &"a late hint");
}

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

/// As [`total`]. Nor does anything that is sent depend on what is looked up.
fn total_of_blind(seeds: Range<u64>, scenario: &Scenario) -> Report {
    let mut all = Report::default();
    seeds.for_each(|seed| all.add(&assert_blind(seed, scenario).0));
    all
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up() {
    let all = total_of_blind(seeds(), &TOY);
    assert_happened(&all.counts(), 20, &"toys");
    assert_happened(&[("several records in one commit", all.together)], 1000, &"toys");
    assert!(seeds() != SEEDS || all.requests <= 5000, "{} requests", all.requests);
}

#[test]
fn traffic_to_two_servers_does_not_depend_on_what_is_looked_up_or_answered() {
    let (mut honest, mut lying) = (Report::default(), Report::default());
    for seed in few_seeds() {
        let reference = assert_blind(seed, &DPF).0;
        let lied_to = run(seed, Scenario { lies: true, ..DPF });
        assert_same_traffic(seed, &lied_to, &reference);
        honest.add(&reference);
        lying.add(&lied_to);
    }
    for (all, lies) in [(honest, false), (lying, true)] {
        assert_happened(&all.counts_without_hints(), 20, &lies);
        if seeds() == SEEDS {
            let (values, wrong) = all.values();
            assert_eq!(wrong > values / 10, lies, "{wrong} of {values} values were wrong");
        }
    }
}

/// Nor does it show in when, or whether, a damaged stored table is fetched again.
#[test]
fn traffic_for_a_table_that_is_fetched_whole_does_not_depend_on_what_is_looked_up() {
    for damages in [false, true] {
        let (mut all, mut found) = (Report::default(), 0);
        // Files are synced, which takes its time.
        let seeds = if damages { one_in(15) } else { few_seeds() };
        let least = 10 * seeds.clone().count() as u64;
        for seed in seeds {
            let (reference, reports) = assert_blind(seed, &Scenario { damages, ..DOWNLOAD });
            found += reference.values().0;
            reports.iter().for_each(|report| all.add(report));
        }
        assert!(damages || found > least, "{found} lookups were told a value");
        if damages && self::seeds() == SEEDS {
            assert!(all.damaged > 200 && all.met_damage > 50, "{} {}", all.damaged, all.met_damage);
        }
    }
}

/// Toys of every kind, of a table that changes.
fn changing() -> impl Iterator<Item = Scenario> {
    let kinds = FLOWS.into_iter().flat_map(|flow| [(flow, false), (flow, true)]);
    let toys = kinds.map(|(flow, endless)| Scenario { flow, endless, ..TOY });
    let all = toys.chain([VERIFYING]);
    all.map(|scenario| Scenario { changes: true, ..scenario })
}

#[test]
fn everything_holds_for_dummy_subsets_while_the_table_changes() {
    let all = total(one_in(20), &Scenario { changes: true, ..DUMMY_SUBSETS });
    assert_happened(&[("hints followed", all.followed)], 20, &"dummy subsets");
    assert_happened(&[("hints given up", all.left_behind)], 5, &"dummy subsets");
}

#[test]
fn traffic_does_not_depend_on_what_is_looked_up_while_the_table_changes() {
    for scenario in changing() {
        let compared = one_in(15);
        let others = compared.end..few_seeds().end;
        let mut all = total_of_blind(compared, &scenario);
        all.add(&total(others, &scenario));
        let kind = (scenario.flow, scenario.endless, scenario.verifies);
        assert_happened(&all.counts_without_hints()[..4], 20, &kind);
        let hints = [("hints followed", all.followed), ("hints given up", all.left_behind)];
        assert_happened(&hints, 100, &kind);
    }
}

/// How a flaw is caught in those of a hundred runs in which it is.
fn caught(scenario: Scenario) -> Vec<String> {
    (0..100).filter_map(|seed| simulate(seed, scenario.clone()).err()).collect()
}

/// Checks that a flaw is caught in more than `least` of a hundred runs, and each time for this
/// reason.
fn assert_caught(scenario: Scenario, least: usize, why: &str) {
    let caught = caught(scenario);
    assert!(caught.len() > least && caught.iter().all(|how| how.contains(why)), "{caught:?}");
}

#[test]
fn who_loses_track_of_a_table_that_changes_is_caught() {
    let changing = Scenario { changes: true, ..TOY };
    assert_caught(Scenario { client: Flaw::OverlooksEdits, ..changing.clone() }, 10, "is wrong");
    assert_caught(Scenario { disk: DiskFlaw::ForgetsThatItFollowed, ..changing }, 10, "");
}

#[test]
fn clients_that_are_flawed_are_caught() {
    let condensing = Scenario { endless: true, ..TOY };
    assert_caught(Scenario { client: Flaw::ReusesHints, ..TOY }, 50, "two queries");
    assert_caught(Scenario { client: Flaw::CondensesTooMuch, ..condensing }, 50, "two queries");
    assert_caught(Scenario { client: Flaw::SendsAtOnce, ..TOY }, 50, "before its receipt");
}

#[test]
fn clients_that_verify_and_are_flawed_are_caught() {
    let lied_to = || Scenario { lies: true, ..VERIFYING };
    let together = Scenario { client: Flaw::HidesThatItVerifies, ..lied_to() };
    assert_caught(together, 50, "another was not settled");
    assert_caught(Scenario { client: Flaw::GoesOnAfterItsEnd, ..lied_to() }, 30, "the end");
    let unsynced = Scenario { disk: DiskFlaw::CertifiesTheEndBeforeSyncing, ..lied_to() };
    assert_caught(unsynced, 30, "before it was durable");
}

#[test]
fn stateless_clients_that_are_flawed_are_caught() {
    let with = |stateless_client| Scenario { stateless_client, ..DPF };
    assert_caught(with(stateless::Flaw::SendsOneQueryToBoth), 90, "to two servers");
    assert_caught(with(stateless::Flaw::RepeatsItself), 50, "two lookups were one");
}

#[test]
fn disks_that_are_flawed_are_caught() {
    for disk in [DiskFlaw::ForgetsTheLastRecord, DiskFlaw::CertifiesBeforeSyncing] {
        let caught = caught(Scenario { disk, ..TOY });
        assert!(caught.iter().any(|how| how.contains("two queries")), "{caught:?}");
    }
    for disk in [DiskFlaw::ChangesWhatIsUnfinished, DiskFlaw::LosesAnswers] {
        assert_caught(Scenario { disk, ..TOY }, 10, "");
    }
}

#[test]
fn traffic_that_depends_on_the_index_is_caught() {
    let toy = Scenario { client: Flaw::LeaksZero, ..TOY };
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
        for scenario in [TOY, VERIFYING, DPF] {
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
            for scenario in [TOY, VERIFYING, DPF] {
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
        let kinds = [TOY, VERIFYING, DPF];
        kinds.map(|scenario| leaks(&Scenario { timetable, costs, ..scenario }))
    };
    let at_once = with(Some(SessionFlaw::SendsWhenDone), Costs::Within);
    assert!(at_once.iter().all(|leaks| *leaks > 40), "{at_once:?}");
    // If some indices take longer than any dummy, that shows, however it is rounded.
    let late = with(None, Costs::SomeQueriesBeyond);
    assert!(late.iter().all(|leaks| *leaks > 40), "{late:?}");
    let believed = [TOY, VERIFYING, DPF].map(|scenario| {
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
