//! What a server sees, tested against what it should see; and each test against a client with a leak planted in it, which it must catch.
//!
//! Everything is drawn from fixed seeds, so a test that passes passes always. Thresholds are such that another seed would pass as well.

use super::super::query::cover;
use super::*;
use crate::test_statistics::{difference, excess};
use privet_core::hints::EARLY_EXIT;

pub(in crate::dummy_subsets) const RECORDS: u64 = 128;
pub(in crate::dummy_subsets) const PARTITION: u32 = 8;
pub(in crate::dummy_subsets) const PARTITIONS: usize = 16;

fn small_world() -> World {
    let shape = TableShape::new(RECORDS, 1).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, u64::from(PARTITION));
    World::with(cut.unwrap().with_hint_security(20).unwrap())
}

/// What a server sees of one query: for each partition its half, and the offset of the record that is read there.
#[derive(Clone)]
pub(in crate::dummy_subsets) struct View {
    pub(in crate::dummy_subsets) halves: Vec<bool>,
    pub(in crate::dummy_subsets) offsets: Vec<u16>,
}

impl View {
    pub(in crate::dummy_subsets) fn of(query: &DummySubsetsQuery) -> Self {
        let halves: Vec<bool> =
            (0..PARTITIONS).map(|k| query.halves[k / 8] >> (k % 8) & 1 == 1).collect();
        let mut filled = [0; 2];
        let offsets = halves.iter().map(|half| {
            let place = &mut filled[usize::from(*half)];
            *place += 1;
            query.offsets[*place - 1]
        });
        let offsets = offsets.collect();
        Self { halves, offsets }
    }
}

/// A client that may leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Honest,
    /// The real half always bears the same name.
    UnseededCoin,
    /// What is read in the queried partition is never the record itself.
    DummyAvoidsTheRecord,
    /// A used hint stays in use.
    HintUsedAgain,
    /// A used hint gets no successor.
    HintNotReplaced,
    /// The last offset is never drawn.
    BiasedOffsets,
}

use Behaviour::*;

impl Behaviour {
    /// One query, and what it leaves behind.
    fn ask(self, world: &mut World, client: &mut DummySubsetsClient, index: u64) -> View {
        let (partition, offset) = world.parameters.cut().place(index);
        let wanted = world.index(index);
        let mut reserved = client.reserve(&wanted, &mut world.rng).unwrap();
        if self == DummyAvoidsTheRecord {
            while View::of(&reserved.queries[0]).offsets[partition as usize] == offset as u16 {
                reserved = client.reserve(&wanted, &mut world.rng).unwrap();
            }
        }
        let query = &mut reserved.queries[0];
        let Change::Exchange(Exchange { real_half, successor, .. }) =
            world.decode(&reserved.change)
        else {
            panic!("a reservation is an exchange")
        };
        if self == UnseededCoin && real_half {
            query.halves.iter_mut().for_each(|byte| *byte = !*byte);
        }
        if self == BiasedOffsets {
            query.offsets.iter_mut().for_each(|offset| *offset %= PARTITION as u16 - 1);
        }
        let view = View::of(query);
        if self != HintUsedAgain {
            let answer = world.answer(&reserved.queries[0]);
            client.apply(&reserved.change).unwrap();
            let settled = client.settle(reserved.id, &[answer]).unwrap();
            client.apply(&settled).unwrap();
        }
        if self == HintNotReplaced {
            let row = client.table.row_of(world.parameters.singles() + successor);
            client.table.forget(row.unwrap());
        }
        view
    }
}

/// Chi-square has a heavy tail where freedom is small: with one degree of it, this is passed with a probability of 10^-6.
pub(in crate::dummy_subsets) const THRESHOLD: f64 = 16.0;

/// Views of the last query of each of `rounds` histories, each of a fresh client.
fn last_views(behaviour: Behaviour, history: &[u64], rounds: usize) -> Vec<View> {
    let mut world = small_world();
    let last = |_| {
        let mut client = world.client();
        let views = history.iter().map(|index| behaviour.ask(&mut world, &mut client, *index));
        views.last().unwrap()
    };
    (0..rounds).map(last).collect()
}

/// Every half and every offset on its own.
pub(in crate::dummy_subsets) fn marginals(views: &[View]) -> f64 {
    let rounds = views.len() as f64;
    let mut worst = f64::MIN;
    for k in 0..PARTITIONS {
        let ones = views.iter().filter(|view| view.halves[k]).count() as u64;
        worst = worst.max(excess(&[ones, views.len() as u64 - ones], &[rounds / 2.0; 2]));
        let mut offsets = [0; PARTITION as usize];
        views.iter().for_each(|view| offsets[usize::from(view.offsets[k])] += 1);
        worst = worst.max(excess(&offsets, &[rounds / 8.0; 8]));
    }
    worst
}

/// Neighbouring partitions: which halves they are in, and whether their offsets agree.
pub(in crate::dummy_subsets) fn adjacent_pairs(views: &[View]) -> f64 {
    let rounds = views.len() as f64;
    let same_half = (PARTITIONS as f64 / 2.0 - 1.0) / (PARTITIONS as f64 - 1.0);
    let mut worst = f64::MIN;
    for k in 1..PARTITIONS {
        let mut halves = [0; 4];
        for view in views {
            halves[usize::from(view.halves[k - 1]) * 2 + usize::from(view.halves[k])] += 1;
        }
        let (same, other) = (rounds * same_half / 2.0, rounds * (1.0 - same_half) / 2.0);
        worst = worst.max(excess(&halves, &[same, other, other, same]));
        // Partitions of one half have independent offsets.
        let together = views.iter().filter(|view| view.halves[k] == view.halves[k - 1]);
        let mut agree = [0; 2];
        together.for_each(|view| {
            agree[usize::from(view.offsets[k] == view.offsets[k - 1])] += 1;
        });
        let all = (agree[0] + agree[1]) as f64;
        worst = worst.max(excess(&agree, &[all * 7.0 / 8.0, all / 8.0]));
    }
    worst
}

/// The queried partition: its half and offset, together.
pub(in crate::dummy_subsets) fn queried_partition(views: &[View], index: u64) -> f64 {
    let partition = (index / u64::from(PARTITION)) as usize;
    let mut counts = [0; 2 * PARTITION as usize];
    for view in views {
        let offset = usize::from(view.offsets[partition]);
        counts[offset * 2 + usize::from(view.halves[partition])] += 1;
    }
    excess(&counts, &[views.len() as f64 / 16.0; 16])
}

/// Counts of a feature of whole histories: how alike the splits of each two of its queries are, and how many of their offsets agree.
fn history_features(behaviour: Behaviour, history: &[u64], rounds: usize) -> Vec<u64> {
    let mut world = small_world();
    let of_one = |_| {
        let mut client = world.client();
        history.iter().map(|index| behaviour.ask(&mut world, &mut client, *index)).collect()
    };
    features((0..rounds).map(of_one))
}

/// The same of given histories.
pub(in crate::dummy_subsets) fn features(histories: impl Iterator<Item = Vec<View>>) -> Vec<u64> {
    let mut counts = vec![0; (PARTITIONS + 1) * (PARTITIONS + 1)];
    for views in histories {
        for (later, view) in views.iter().enumerate() {
            for earlier in &views[..later] {
                let alike = |k: &usize| view.halves[*k] == earlier.halves[*k];
                let equal = |k: &usize| view.offsets[*k] == earlier.offsets[*k];
                let halves = (0..PARTITIONS).filter(alike).count();
                let offsets = (0..PARTITIONS).filter(equal).count();
                counts[halves * (PARTITIONS + 1) + offsets] += 1;
            }
        }
    }
    counts
}

#[test]
fn a_query_looks_the_same_for_every_record_and_every_history() {
    let histories: [&[u64]; 4] = [&[5], &[5, 5, 5], &[5, 6, 7, 5], &[100, 3, 77, 127]];
    for history in histories {
        let views = last_views(Honest, history, 6000);
        let index = *history.last().unwrap();
        assert!(marginals(&views) < THRESHOLD, "{history:?}: {}", marginals(&views));
        assert!(adjacent_pairs(&views) < THRESHOLD, "{history:?}: {}", adjacent_pairs(&views));
        let queried = queried_partition(&views, index);
        assert!(queried < THRESHOLD, "{history:?}: {queried}");
    }
}

#[test]
fn repeated_queries_are_like_fresh_ones_and_histories_like_each_other() {
    let fresh = history_features(Honest, &[5, 40, 99], 3000);
    for history in [[5, 5, 5], [5, 6, 7], [127, 5, 127]] {
        let other = history_features(Honest, &history, 3000);
        assert!(difference(&fresh, &other) < THRESHOLD, "{}", difference(&fresh, &other));
    }
}

#[test]
fn an_unseeded_coin_is_caught() {
    // The queried partition is then always in the same half.
    let views = last_views(UnseededCoin, &[5], 2000);
    assert!(marginals(&views) > 5.0 * THRESHOLD);
}

#[test]
fn a_dummy_that_never_falls_on_the_record_is_caught() {
    let views = last_views(DummyAvoidsTheRecord, &[5], 6000);
    assert!(queried_partition(&views, 5) > 5.0 * THRESHOLD);
}

#[test]
fn biased_offsets_are_caught() {
    let views = last_views(BiasedOffsets, &[5], 2000);
    assert!(marginals(&views) > 5.0 * THRESHOLD);
}

#[test]
fn a_hint_that_is_used_again_is_caught() {
    let fresh = history_features(HintUsedAgain, &[5, 40, 99], 3000);
    let repeated = history_features(HintUsedAgain, &[5, 5, 5], 3000);
    assert!(difference(&fresh, &repeated) > 2.5 * THRESHOLD, "{}", difference(&fresh, &repeated));
}

/// How the live hints are distributed after `history`: how many of them contain each of some records, how often each partition is selected, how often each offset.
fn hints_after(behaviour: Behaviour, history: &[u64], rounds: usize) -> [Vec<u64>; 3] {
    let mut world = small_world();
    let (mut containing, mut partitions, mut offsets) =
        (vec![0; 64], vec![0; PARTITIONS], vec![0; PARTITION as usize]);
    for _ in 0..rounds {
        let mut client = world.client();
        for index in history {
            behaviour.ask(&mut world, &mut client, *index);
        }
        let hints = World::all_contents(&client);
        for hint in &hints {
            assert_eq!(hint.iter().flatten().count(), PARTITIONS / 2 + 1);
            for (partition, offset) in hint.iter().enumerate() {
                if let Some(offset) = offset {
                    partitions[partition] += 1;
                    offsets[usize::from(*offset)] += 1;
                }
            }
        }
        let holds_five = |hint: &&Vec<Option<u16>>| hint[0] == Some(5);
        containing[hints.iter().filter(holds_five).count()] += 1;
    }
    [containing, partitions, offsets]
}

#[test]
fn the_hints_have_the_same_distribution_before_and_after_queries() {
    let before = hints_after(Honest, &[], 3000);
    for history in [vec![5; 12], vec![5, 6, 7, 4, 5, 6, 7, 4], (0..12).map(|k| k * 10).collect()] {
        let after = hints_after(Honest, &history, 3000);
        for (before, after) in before.iter().zip(&after) {
            assert!(difference(before, after) < THRESHOLD, "{history:?} {before:?} {after:?}");
        }
    }
    // And a client that does not replace what it uses is caught, after a single query.
    let after = hints_after(HintNotReplaced, &[5], 3000);
    assert!(difference(&before[0], &after[0]) > THRESHOLD);
}

#[test]
fn the_search_does_the_same_work_for_every_record() {
    let mut world = World::new(3000, 2);
    let mut client = world.client();
    for round in 0..3 {
        let work: Vec<_> = (0..3000).map(|index| client.table.find(index).work).collect();
        assert!(work.iter().all(|one| *one == work[0]), "after {round} rounds of lookups");
        let words = world.parameters.singles() as usize / 64;
        assert!(work[0] > words, "all hints are looked at, 64 at a time");
        for index in 0..100 {
            world.get(&mut client, index * 7).unwrap();
        }
    }
    // A search that stops where it first finds something is caught by the same count.
    EARLY_EXIT.set(true);
    let work: Vec<_> = (0..3000).map(|index| client.table.find(index).work).collect();
    EARLY_EXIT.set(false);
    assert!(!work.iter().all(|one| *one == work[0]));
}

#[test]
fn a_cover_looks_like_any_query() {
    let mut world = small_world();
    let covers: Vec<View> =
        (0..6000).map(|_| View::of(&cover(world.parameters.cut(), &mut world.rng))).collect();
    assert!(marginals(&covers) < THRESHOLD, "{}", marginals(&covers));
    assert!(adjacent_pairs(&covers) < THRESHOLD, "{}", adjacent_pairs(&covers));
    // A cover whose halves are the lower and the upper partitions, named by a coin, is caught: each half on its own is fair, neighbours are not.
    let unshuffled = covers.into_iter().enumerate().map(|(number, view)| {
        let halves = (0..PARTITIONS).map(|k| (k < PARTITIONS / 2) == (number % 2 == 0)).collect();
        View { halves, ..view }
    });
    let unshuffled: Vec<View> = unshuffled.collect();
    assert!(adjacent_pairs(&unshuffled) > 5.0 * THRESHOLD);
}
