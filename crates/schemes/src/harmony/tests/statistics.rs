//! Tests what a server sees against what it should see: draws without replacement. Leaks are
//! planted in the code that clients run (see [`crate::planted`]), and each must show. Two of them
//! are rules that others published or run.
//!
//! Every test knows the exact distribution: the [room](super::super) proves it. In the smallest
//! table the test counts whole views: all that a server sees of three lookups.
//!
//! By default all seeds are fixed, so a test that passes always passes. The threshold is such that
//! other seeds would pass too.
//!
//! **Power.** The share of lookups that a leak must affect to show nearly always, by
//! [`size_of_leak`]; the last column is `make nightly`:
//!
//! | what is counted | coins | cells | shows | nightly |
//! |---|---|---|---|---|
//! | whether the wanted record is in its own query | 32000 | 2 | 5.6 % | 1.7 % |
//! | the record at one place of a query | 4000 | 32 | 3.9 % | 1.1 % |
//! | the number of empties in a query | 1500 | 5 | 14.9 % | 4.3 % |
//! | three queries together | 8000 | 244 | 1.4 % | 0.4 % |
//! | two queries together, with more records | 8000 | 705 | 1.1 % | 0.3 % |

use super::*;
use crate::planted::Flaw::{self, *};
use crate::planted::plant;
use crate::test_statistics::{History, Measured, assert_documented, coins, seed, size_of_leak};
use std::collections::BTreeMap;

/// A table, and how its cells are cut into segments.
#[derive(Clone, Copy, Debug)]
struct Cut {
    records: u64,
    segment: u64,
    cells_log2: u32,
}

impl Cut {
    fn parameters(self) -> HarmonyParameters {
        cut_small(self.records, 1, self.segment, self.cells_log2)
    }

    fn world(self) -> World {
        let mut world = World::with(self.parameters());
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }
}

/// Tables so small that all views can be counted: 16 cells in segments of two. Three records, for
/// views of three lookups.
const TINY: Cut = Cut { records: 3, segment: 2, cells_log2: 4 };
/// The same cells for eight records, so that half of them are full.
const DENSE: Cut = Cut { records: 8, ..TINY };
/// 64 cells in 16 segments of four, for half as many records: eight lookups.
const SMALL: Cut = Cut { records: 32, segment: 4, cells_log2: 6 };
/// The same with 27 records.
const SPARSE: Cut = Cut { records: 27, ..SMALL };

/// What the server sees of a history, from clients with permutations of their own.
fn views(table: Cut, history: History<'_>, flaw: Option<Flaw>, coins: usize) -> Vec<Vec<Vec<u32>>> {
    let _planted = plant(flaw);
    let mut world = table.world();
    let look_up = |world: &mut World, client: &mut HarmonyClient, index, answered| {
        let mut reserved = world.reserve(client, index).unwrap();
        if answered {
            world.settle(client, &reserved);
        }
        reserved.queries.remove(0).values
    };
    let new = World::blank_client;
    (0..coins).map(|_| history.views(&mut world, new, |world, _| new(world), look_up)).collect()
}

/// Cells that were there before the lookups that are counted from the last other hints on.
fn cells_left(parameters: &HarmonyParameters, history: History<'_>, number: usize) -> u64 {
    let since = history.hand_over.filter(|first| *first <= number).unwrap_or(0);
    parameters.cells() - (number - since) as u64 * u64::from(parameters.segment_records())
}

/// The probability of a query if the values in its places are drawn without replacement from `left`
/// contents, among them all records.
fn probability(query: &[u32], records: u32, left: u64) -> f64 {
    let mut empties = left - u64::from(records);
    let mut probability = 1.0;
    for (drawn, value) in (0..).zip(query) {
        let mut ways = 1;
        if *value == records {
            ways = empties;
            empties = empties.saturating_sub(1);
        } else if query[..drawn as usize].contains(value) {
            ways = 0;
        }
        probability *= ways as f64 / (left - drawn) as f64;
    }
    probability
}

/// All views of the lookups of `history` in a table with segments of two, and their probabilities.
fn all_views(parameters: &HarmonyParameters, history: History<'_>) -> Vec<(Vec<Vec<u32>>, f64)> {
    let records = parameters.records();
    let pairs = (0..=records).flat_map(|a| (0..=records).map(move |b| vec![a, b]));
    let queries: Vec<Vec<u32>> =
        pairs.filter(|pair| pair[0] != pair[1] || pair[0] == records).collect();
    (0..history.indices.len()).fold(vec![(Vec::new(), 1.0)], |views, number| {
        let left = cells_left(parameters, history, number);
        let longer = views.iter().flat_map(|(view, before)| {
            queries.iter().map(move |query| {
                let view = [&view[..], std::slice::from_ref(query)].concat();
                (view, before * probability(query, records, left))
            })
        });
        longer.collect()
    })
}

/// Whole views of a history, against their exact distribution.
fn together(table: Cut, history: History<'_>, flaw: Option<Flaw>, coins: usize) -> Measured {
    let mut counts: BTreeMap<Vec<Vec<u32>>, u64> = BTreeMap::new();
    for view in views(table, history, flaw, coins) {
        *counts.entry(view).or_default() += 1;
    }
    let parameters = table.parameters();
    let cells = all_views(&parameters, history)
        .into_iter()
        .map(|(view, probability)| (counts.remove(&view).unwrap_or(0), probability * coins as f64));
    let cells = cells.collect();
    // What can never be seen.
    assert!(counts.is_empty() || flaw.is_some(), "{counts:?}");
    fit(cells, coins as f64)
}

/// How far counts are from their expectations. Those that are expected less than eight times are
/// counted together with others.
fn fit(mut cells: Vec<(u64, f64)>, coins: f64) -> Measured {
    assert!((cells.iter().map(|(_, expected)| expected).sum::<f64>() - coins).abs() < 1e-3);
    cells.sort_by(|one, other| one.1.total_cmp(&other.1));
    let (mut counts, mut expected) = (vec![0], vec![0.0]);
    for (count, expectation) in cells {
        if expected[counts.len() - 1] >= 8.0 {
            counts.push(0);
            expected.push(0.0);
        }
        *counts.last_mut().unwrap() += count;
        *expected.last_mut().unwrap() += expectation;
    }
    Measured::of(&counts, &expected)
}

#[test]
fn queries_together_are_draws_without_replacement() {
    let histories: [(Cut, &[u64]); 6] = [
        (TINY, &[0, 0, 0]),
        (TINY, &[0, 1, 0]),
        (TINY, &[2, 2, 1]),
        (TINY, &[0, 1, 2]),
        (DENSE, &[3, 3]),
        (DENSE, &[3, 7]),
    ];
    for (table, indices) in histories {
        let measured = together(table, History::from(indices), None, coins(8000));
        measured.assert_fits(&format!("{table:?}, {indices:?}"));
    }
    for history in [
        History { answered: false, ..History::from(&[1, 1, 1][..]) },
        History { hand_over: Some(1), ..History::from(&[1, 1, 1][..]) },
    ] {
        together(TINY, history, None, coins(8000)).assert_fits(&format!("{history:?}"));
    }
}

#[test]
fn every_planted_flaw_shows_in_queries_together() {
    let same = History { answered: false, ..History::from(&[0, 0, 0][..]) };
    for flaw in
        [ReplacementAsPublished, ReplacementFromOutside, ReplacementIsARecord, WantedPlaceFirst]
    {
        together(TINY, same, Some(flaw), coins(4000)).assert_shows(&format!("{flaw:?}"));
    }
}

/// How often each query of a generation has the record that it is for, and how often not.
fn own_record(flaw: Option<Flaw>, coins: usize) -> Measured {
    let parameters = SMALL.parameters();
    let indices = [5; 8];
    let history = History { answered: false, ..History::from(&indices[..]) };
    let (mut counts, mut expected) = ([0; 2], [0.0; 2]);
    for view in views(SMALL, history, flaw, coins) {
        for (number, query) in view.iter().enumerate() {
            let left = cells_left(&parameters, history, number);
            let probability = query.len() as f64 / left as f64;
            counts[usize::from(query.contains(&5))] += 1;
            expected[1] += probability;
            expected[0] += 1.0 - probability;
        }
    }
    Measured::of(&counts, &expected)
}

#[test]
fn the_wanted_record_is_in_its_own_query_as_often_as_any_other() {
    own_record(None, coins(4000)).assert_fits("the wanted record in its own query");
}

/// HarmonyPIR as published takes a cell from outside the segment, or the wanted record's own.
#[test]
fn the_published_rule_is_caught() {
    own_record(Some(ReplacementAsPublished), coins(500)).assert_shows("as published");
}

/// A published implementation (Bitcoin-PIR/harmonypir) takes a cell from outside the segment.
#[test]
fn a_rule_without_the_segment_is_caught() {
    own_record(Some(ReplacementFromOutside), coins(500)).assert_shows("never its own segment");
}

/// A generation's lookups of few and of many records.
const SEQUENCES: [[u64; 8]; 3] =
    [[7, 7, 7, 7, 7, 7, 7, 7], [0, 1, 0, 1, 2, 2, 0, 1], [3, 14, 15, 9, 26, 5, 8, 20]];

#[test]
fn records_and_pairs_of_records_are_uniform_at_every_place() {
    for table in [SMALL, SPARSE] {
        let records = table.records as usize;
        for indices in &SEQUENCES {
            let views = views(table, History::from(&indices[..]), None, coins(1200));
            let mut alone = vec![vec![0; records]; table.segment as usize];
            let mut pairs = vec![0; records * records];
            for query in views.iter().flatten() {
                let is_record = |value: u32| (value as usize) < records;
                for (place, value) in query.iter().enumerate().filter(|(_, v)| is_record(**v)) {
                    alone[place][*value as usize] += 1;
                }
                if is_record(query[0]) && is_record(query[3]) {
                    pairs[query[0] as usize * records + query[3] as usize] += 1;
                }
            }
            let at_places = alone.iter().map(|counts| Measured::uniform(counts));
            Measured::worst(at_places).assert_fits(&format!("{table:?} {indices:?}"));
            let different = (0..records * records).filter(|pair| pair / records != pair % records);
            let different: Vec<u64> = different.map(|pair| pairs[pair]).collect();
            assert_eq!(different.iter().sum::<u64>(), pairs.iter().sum::<u64>(), "a record twice");
            Measured::uniform(&different).assert_fits(&format!("pairs, {table:?} {indices:?}"));
        }
    }
}

/// The numbers of empties in each query of a generation, against the hypergeometric distribution.
fn empties(table: Cut, indices: &[u64], flaw: Option<Flaw>, coins: usize) -> Measured {
    let parameters = table.parameters();
    let history = History::from(indices);
    let views = views(table, history, flaw, coins);
    let all = (0..indices.len()).map(|number| {
        let mut counts = vec![0; table.segment as usize + 1];
        for view in &views {
            let empty = |value: &&u32| u64::from(**value) == table.records;
            counts[view[number].iter().filter(empty).count()] += 1;
        }
        let left = cells_left(&parameters, history, number);
        let cells = counts.into_iter().zip(0..).map(|(count, empties)| {
            let ways = binomial(left - table.records, empties)
                * binomial(table.records, table.segment - empties);
            (count, ways / binomial(left, table.segment) * coins as f64)
        });
        fit(cells.collect(), coins as f64)
    });
    Measured::worst(all)
}

fn binomial(n: u64, k: u64) -> f64 {
    (0..k).map(|i| n.saturating_sub(i) as f64 / (i + 1) as f64).product()
}

#[test]
fn the_number_of_empties_is_hypergeometric() {
    for table in [SMALL, SPARSE] {
        for indices in &SEQUENCES {
            let measured = empties(table, indices, None, coins(1500));
            measured.assert_fits(&format!("empties, {table:?}, {indices:?}"));
        }
    }
    for flaw in [ReplacementIsARecord, ReplacementDrawnFromAllCells, NothingMoves] {
        let measured = empties(SPARSE, &SEQUENCES[0], Some(flaw), coins(1500));
        measured.assert_shows(&format!("{flaw:?}"));
    }
}

/// What tells two histories apart, if anything does: which of the records that either of them is
/// about are in which query, and how many values come again.
fn likenesses(history: &[u64], flaw: Option<Flaw>, coins: usize) -> Vec<u64> {
    let views = views(SMALL, History::from(history), flaw, coins);
    let mut counts = vec![0; 48];
    for view in &views {
        let (first, last) = (&view[0], &view[view.len() - 1]);
        let again = first.iter().filter(|value| **value < 32 && last.contains(value)).count();
        let is_in = |query: &[u32], index: u32| usize::from(query.contains(&index));
        let which = [is_in(first, 5), is_in(first, 9), is_in(last, 5), is_in(last, 9)];
        counts[which.into_iter().fold(again.min(2), |cell, bit| 2 * cell + bit)] += 1;
    }
    counts
}

#[test]
fn nobody_can_tell_two_histories_apart() {
    let differ = |one: &[u64], other: &[u64], flaw, coins| {
        Measured::difference(&likenesses(one, flaw, coins), &likenesses(other, flaw, coins))
    };
    let long = [[5; 6], [5, 9, 9, 9, 9, 9]];
    let pairs: [(&[u64], &[u64]); 3] =
        [(&[5, 5], &[5, 9]), (&[5, 5], &[9, 5]), (&long[0], &long[1])];
    for (one, other) in pairs {
        let measured = differ(one, other, None, coins(5000));
        measured.assert_fits(&format!("{one:?} and {other:?}"));
    }
    for flaw in [ReplacementAsPublished, ReplacementFromOutside] {
        differ(&[5, 5], &[9, 9], Some(flaw), coins(4000)).assert_shows(&format!("{flaw:?}"));
    }
}

/// A new generation under the old key shows the old segment of a record again.
#[test]
fn a_key_that_serves_two_generations_shows() {
    let history = History { hand_over: Some(1), ..History::from(&[0, 0, 0][..]) };
    let measured = together(TINY, history, Some(KeyOfTheGenerationBefore), coins(4000));
    measured.assert_shows("a key used again");
}

/// The table above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    let documented = [
        (32_000.0, 2.0, (5.6, 1.7)),
        (4000.0, 32.0, (3.9, 1.1)),
        (1500.0, 5.0, (14.9, 4.3)),
        (8000.0, 244.0, (1.4, 0.4)),
        (8000.0, 705.0, (1.1, 0.3)),
    ];
    for (coins, cells, percents) in documented {
        assert_documented(|coins| size_of_leak(coins, cells), coins, percents);
    }
}
