//! Tests what a server sees against what it should see. Leaks are planted in the code that clients
//! run (see [`crate::planted`]), and each must show.
//!
//! By default all seeds are fixed, so a test that passes always passes. The threshold is such that
//! other seeds would pass too.
//!
//! **Power.** The share of lookups that a leak must affect to show nearly always, by
//! [`size_of_leak`]; the last column is `make nightly`:
//!
//! | what is counted | coins | cells | shows | nightly |
//! |---|---|---|---|---|
//! | the offset read in one chunk | 6000 | 8 | 5.5 % | 1.6 % |
//! | the offsets read in two neighbouring chunks | 6000 | 64 | 2.5 % | 0.7 % |
//! | whether a record asked for before is read again | 48000 | 2 | 4.6 % | 1.4 % |
//! | three queries together | 20480 | 512 | 0.7 % | 0.2 % |

use super::*;
use crate::planted::Flaw::{self, *};
use crate::planted::plant;
use crate::test_statistics::{History, Measured, assert_documented, coins, seed, size_of_leak};
use privet_core::planted::Flaw::*;

/// A small table and how it is cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    records: u64,
    chunk: u64,
    /// The exact number of hints.
    hints: Option<u32>,
}

/// Every chunk is full.
const FULL: Cut = Cut { records: 128, chunk: 8, hints: None };
/// The last chunk has five of eight records.
const PADDED: Cut = Cut { records: 125, chunk: 8, hints: None };
/// Eight hints contain a record, so that one more or one less shows.
const FEW: Cut = Cut { records: 125, chunk: 8, hints: Some(64) };
/// About every second record is in no hint.
const SCARCE: Cut = Cut { records: 250, chunk: 16, hints: Some(8) };
/// Three chunks of two, of which the last has one: all views of three queries can be counted.
const TINY: Cut = Cut { records: 5, chunk: 2, hints: None };
/// The same with eight chunks. Here a window has fewer queries than there are records.
const SMALL: Cut = Cut { records: 15, chunk: 2, hints: None };

impl Cut {
    fn world<F: AnswerForm>(self) -> World<F> {
        let parameters = cut(self.records, 1, self.chunk);
        let parameters = match self.hints {
            Some(hints) => parameters.with_hints(hints, 8),
            None => parameters,
        };
        let mut world = World::with(parameters);
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }
}

/// The offsets that a server sees in `rounds` histories, each of a fresh client.
fn views<F: AnswerForm>(
    cut: Cut,
    history: History<'_>,
    flaw: Option<Flaw>,
    rounds: usize,
) -> Vec<Vec<Vec<u16>>> {
    let _planted = plant(flaw);
    let mut world = cut.world::<F>();
    // By position, so that tests can choose which chunk a record lies in.
    let look_up = |world: &mut World<F>, client: &mut PianoClient<F>, position, answered| {
        let index = world.parameters.permutation().index_at(position);
        let mut reserved = world.reserve(client, index).unwrap();
        if answered {
            let _ = world.settle(client, &reserved);
        }
        reserved.queries.remove(0).offsets
    };
    let new = World::<F>::client;
    (0..rounds).map(|_| history.views(&mut world, new, |world, _| new(world), look_up)).collect()
}

fn last(histories: &[Vec<Vec<u16>>]) -> Vec<Vec<u16>> {
    histories.iter().map(|views| views.last().unwrap().clone()).collect()
}

/// Every offset on its own: the worst place.
fn marginals(cut: Cut, views: &[Vec<u16>]) -> Measured {
    Measured::worst((0..views[0].len()).map(|place| {
        let mut counts = vec![0; cut.chunk as usize];
        views.iter().for_each(|view| counts[usize::from(view[place])] += 1);
        Measured::uniform(&counts)
    }))
}

/// Neighbouring places together: the worst pair of them.
fn neighbours(cut: Cut, views: &[Vec<u16>]) -> Measured {
    let chunk = cut.chunk as usize;
    Measured::worst((1..views[0].len()).map(|place| {
        let mut counts = vec![0; chunk * chunk];
        for view in views {
            counts[usize::from(view[place - 1]) * chunk + usize::from(view[place])] += 1;
        }
        Measured::uniform(&counts)
    }))
}

/// In how many places each two queries of a history agree, against the binomial distribution; and
/// whether they agree in place 0.
fn agreements(cut: Cut, histories: &[Vec<Vec<u16>>]) -> Measured {
    let places = histories[0][0].len();
    let (mut counts, mut first, mut pairs) = (vec![0; places + 1], [0; 2], 0.0);
    for views in histories {
        for (later, view) in views.iter().enumerate() {
            for earlier in &views[..later] {
                let equal = view.iter().zip(earlier).filter(|(one, other)| one == other).count();
                counts[equal] += 1;
                first[usize::from(view[0] == earlier[0])] += 1;
                pairs += 1.0;
            }
        }
    }
    let share = 1.0 / cut.chunk as f64;
    let mut expected = vec![pairs * (1.0 - share).powi(places as i32)];
    for k in 0..places {
        let odds = (places - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
        expected.push(expected[k] * odds);
    }
    // Cells with small expected counts are joined.
    while expected.len() > 2 && expected[expected.len() - 1] < 10.0 {
        let (count, share) = (counts.pop().unwrap(), expected.pop().unwrap());
        *counts.last_mut().unwrap() += count;
        *expected.last_mut().unwrap() += share;
    }
    let first = Measured::of(&first, &[pairs * (1.0 - share), pairs * share]);
    Measured::of(&counts, &expected).worse(first)
}

/// Eight records of eight chunks, and one of another.
const ALL_OVER: [u64; 9] = [5, 13, 17, 31, 32, 46, 51, 60, 70];

/// How often the last query of [`ALL_OVER`] reads a record that was asked for before.
fn read_again<F: AnswerForm>(flaw: Option<Flaw>) -> Measured {
    let histories = views::<F>(FEW, History::from(&ALL_OVER[..]), flaw, rounds());
    let mut counts = [0; 2];
    for view in last(&histories) {
        for position in &ALL_OVER[..8] {
            let (chunk, offset) = ((position / 8) as usize, (position % 8) as u16);
            counts[usize::from(view[chunk] == offset)] += 1;
        }
    }
    let all = (counts[0] + counts[1]) as f64;
    Measured::of(&counts, &[all * 7.0 / 8.0, all / 8.0])
}

/// Three queries together, seen in three places: the first two and the last.
fn three_together(histories: &[Vec<Vec<u16>>]) -> Measured {
    let places = |view: &[u16]| -> Vec<usize> {
        let of_interest = [0, 1, view.len() - 1];
        of_interest[..view.len().min(3)].iter().map(|place| usize::from(view[*place])).collect()
    };
    let bits = histories[0].iter().map(|view| places(view).len()).sum::<usize>();
    let mut counts = vec![0; 1 << bits];
    for views in histories {
        let all = views.iter().flat_map(|view| places(view));
        counts[all.fold(0, |cell, offset| cell * 2 + offset)] += 1;
    }
    Measured::uniform(&counts)
}

fn rounds() -> usize {
    coins(6000)
}

/// Many planted flaws show in a fourth of the rounds, and more so in all.
fn fewer() -> usize {
    rounds() / 4
}

for_both_forms!(a_query_looks_the_same_for_every_record_and_every_history);

fn a_query_looks_the_same_for_every_record_and_every_history<F: AnswerForm>() {
    // The last chunk of the padded table holds only 120 to 124.
    let histories: [&[u64]; 5] = [&[5], &[124], &[5, 5, 5], &[5, 6, 7, 5], &[100, 3, 77, 123]];
    let assert_fits = |cut, history: History<'_>| {
        let views = last(&views::<F>(cut, history, None, rounds()));
        marginals(cut, &views).assert_fits(&format!("offsets, {cut:?}, {history:?}"));
        neighbours(cut, &views).assert_fits(&format!("neighbours, {cut:?}, {history:?}"));
    };
    histories.iter().for_each(|history| assert_fits(PADDED, History::from(*history)));
    assert_fits(FULL, History::from(histories[3]));
    assert_fits(PADDED, History { answered: false, ..History::from(histories[3]) });
}

for_both_forms!(the_queries_of_a_history_have_nothing_in_common);

fn the_queries_of_a_history_have_nothing_in_common<F: AnswerForm>() {
    let assert_fits = |cut, history: History<'_>| {
        let views = views::<F>(cut, history, None, coins(3000));
        agreements(cut, &views).assert_fits(&format!("{cut:?}, {history:?}"));
    };
    for positions in [[5, 5, 5], [5, 6, 7], [124, 5, 124], [5, 40, 99]] {
        assert_fits(PADDED, History::from(&positions[..]));
    }
    for cut in [PADDED, FEW] {
        let same = History::from(&[124, 124, 124][..]);
        assert_fits(cut, History { answered: false, ..same });
        assert_fits(cut, History { hand_over: Some(2), ..same });
    }
}

for_both_forms!(a_record_that_was_asked_for_is_read_again_as_often_as_any);

fn a_record_that_was_asked_for_is_read_again_as_often_as_any<F: AnswerForm>() {
    if F::REPLACES_THE_WANTED {
        read_again::<F>(None).assert_fits("records asked for before");
    }
}

for_both_forms!(three_queries_together_are_uniform);

/// One record three times, two of a chunk, the only one of the last chunk, all different; also
/// with other hints in between, and without answers.
fn three_queries_together_are_uniform<F: AnswerForm>() {
    let assert_fits = |cut, history: History<'_>| {
        let views = views::<F>(cut, history, None, coins(20_480));
        three_together(&views).assert_fits(&format!("{cut:?}, {history:?}"));
    };
    for cut in [TINY, SMALL] {
        let end = cut.records - 1;
        for positions in [[0, 0, 0], [0, 1, 0], [end, end, 3], [0, 2, end]] {
            assert_fits(cut, History::from(&positions[..]));
        }
        let two = [end, 0, end];
        assert_fits(cut, History { answered: false, ..History::from(&two[..]) });
        assert_fits(cut, History { hand_over: Some(2), ..History::from(&two[..]) });
    }
}

for_both_forms!(covers_look_like_queries);

/// The first lookup of a client that has few hints, and covers alone.
fn covers_look_like_queries<F: AnswerForm>() {
    for position in [5, 249] {
        let views = last(&views::<F>(SCARCE, History::from(&[position][..]), None, rounds()));
        marginals(SCARCE, &views).assert_fits("offsets");
        neighbours(SCARCE, &views).assert_fits("neighbours");
    }
    let mut world = PADDED.world::<F>();
    let client = world.client();
    let covers: Vec<_> = (0..rounds()).map(|_| client.cover(&mut world.rng).offsets).collect();
    assert_eq!(covers[0].len(), PianoQuery::<F>::count(&world.parameters));
    marginals(PADDED, &covers).assert_fits("offsets");
    neighbours(PADDED, &covers).assert_fits("neighbours");
}

for_both_forms!(every_planted_flaw_of_the_hints_shows);

fn every_planted_flaw_of_the_hints_shows<F: AnswerForm>() {
    let again = |cut, positions: &[u64], hand_over, flaw| {
        let history = History { hand_over, ..History::from(positions) };
        agreements(cut, &views::<F>(cut, history, Some(flaw), coins(3000)))
    };
    again(FEW, &[5, 40, 99], None, Hints(UsedHintStays)).assert_shows("a hint used again");
    again(PADDED, &[5, 5], Some(1), KeyOfTheGenerationBefore).assert_shows("a key used again");
    let (few, history) = (Cut { hints: Some(8), ..TINY }, History::from(&[0, 2, 4][..]));
    let three = views::<F>(few, history, Some(Hints(UsedHintStays)), 5_120);
    three_together(&three).assert_shows("a hint that is used again, in three queries");
    let covers = views::<F>(SCARCE, History::from(&[5][..]), Some(CoverUnlikeAQuery), fewer());
    marginals(SCARCE, &last(&covers)).assert_shows("covers that are drawn otherwise");
}

/// The form in which a server could see where a record lies.
#[test]
fn every_planted_flaw_in_the_place_of_the_wanted_record_shows() {
    let alone = |cut, position, flaw| {
        let history = History::from(std::slice::from_ref(&position));
        marginals(cut, &last(&views::<SingleParity>(cut, history, Some(flaw), fewer())))
    };
    alone(PADDED, 5, WantedOffsetShown).assert_shows("the wanted offset");
    alone(PADDED, 5, DummyAvoidsTheRecord).assert_shows("a dummy that is never the record");
    let together = History::from(&[5, 6, 7][..]);
    let again = views::<SingleParity>(PADDED, together, Some(FirstPairAlways), fewer());
    agreements(PADDED, &again).assert_shows("a pair that is used again");
    alone(PADDED, 124, WithinTheTable).assert_shows("a dummy within the table");
    for flaw in [Hints(FirstSuitableHint), Hints(NoSuccessor), SuccessorOfTheNeighbour] {
        read_again::<SingleParity>(Some(flaw)).assert_shows(&format!("{flaw:?}"));
    }
}

/// The distribution of the hints in use after `history`: how many contain position 5, and how often
/// each offset occurs.
fn hints_after(cut: Cut, history: &[u64], flaw: Option<Flaw>, rounds: usize) -> [Vec<u64>; 2] {
    let _planted = plant(flaw);
    let mut world = cut.world::<SingleParity>();
    let (mut containing, mut offsets) = (vec![0; 400], vec![0; cut.chunk as usize]);
    for _ in 0..rounds {
        let mut client = world.client();
        for position in history {
            let index = world.parameters.permutation().index_at(*position);
            let _ = world.get(&mut client, index);
        }
        let hints = all_contents(&client);
        hints.iter().flatten().for_each(|offset| offsets[usize::from(*offset)] += 1);
        containing[hints.iter().filter(|hint| hint[0] == 5).count()] += 1;
    }
    [containing, offsets]
}

#[test]
fn the_hints_have_the_same_distribution_before_and_after_queries() {
    let before = hints_after(PADDED, &[], None, coins(3000));
    for history in [vec![5; 8], vec![5, 6, 7, 4, 5, 6], (0..8).map(|k| k * 15).collect()] {
        let after = hints_after(PADDED, &history, None, coins(3000));
        for (before, after) in before.iter().zip(&after) {
            Measured::difference(before, after).assert_fits(&format!("{history:?}"));
        }
    }
    // With few hints, one more or one less shows.
    let [before, _] = hints_after(FEW, &[], None, coins(3000));
    let [after, _] = hints_after(FEW, &[5], None, coins(3000));
    Measured::difference(&before, &after).assert_fits("few hints");
    for flaw in [Hints(NoSuccessor), SuccessorOfTheNeighbour] {
        let [after, _] = hints_after(FEW, &[5], Some(flaw), fewer());
        Measured::difference(&before, &after).assert_shows(&format!("{flaw:?}"));
    }
}

for_both_forms!(the_search_does_the_same_work_for_every_record_and_history);

fn the_search_does_the_same_work_for_every_record_and_history<F: AnswerForm>() {
    let mut world = World::<F>::new(3000, 2);
    let generation = world.generation();
    let mut works = Vec::new();
    for history in [vec![5; 60], (0..60).collect(), (0..60).map(|k| k * 49).collect::<Vec<u64>>()] {
        let mut client = world.load(&generation);
        let mut work_after = Vec::new();
        for index in history {
            let work = |position| client.table.find(position).work;
            let first = work(0);
            assert!((0..3000).step_by(97).all(|position| work(position) == first));
            assert!(first > world.parameters.primaries() as usize / 64, "all hints are looked at");
            work_after.push(first);
            world.get(&mut client, index).unwrap();
        }
        works.push(work_after);
    }
    assert!(works.windows(2).all(|pair| pair[0] == pair[1]));
    let client = world.load(&generation);
    let _planted = plant(Some(Hints(SearchEndsEarly)));
    let work = |position| client.table.find(position).work;
    assert!((1..3000).any(|position| work(position) != work(0)), "an early end shows");
}

#[test]
fn fillers_are_uniform_among_what_was_not_asked_for() {
    let mut world = FULL.world::<SingleParity>();
    let mut client = world.client();
    for position in 0..40 {
        let index = world.parameters.permutation().index_at(position);
        world.get(&mut client, index).unwrap();
    }
    let mut counts = [0; 128];
    for _ in 0..coins(20_000) {
        counts[client.lookups.filler(&mut world.rng) as usize] += 1;
    }
    assert!(counts[..40].iter().all(|count| *count == 0));
    Measured::uniform(&counts[40..]).assert_fits("fillers");
}

/// The table above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    let documented = [
        (6000.0, 8.0, (5.5, 1.6)),
        (6000.0, 64.0, (2.5, 0.7)),
        (48_000.0, 2.0, (4.6, 1.4)),
        (20_480.0, 512.0, (0.7, 0.2)),
    ];
    for (coins, cells, percents) in documented {
        assert_documented(|coins| size_of_leak(coins, cells), coins, percents);
    }
}
