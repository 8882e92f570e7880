//! Tests what a server that reads subsets sees against what it should see, in both forms of the
//! scheme. Leaks are planted in the code that clients run (see [`crate::planted`]), and each must
//! show.
//!
//! By default all seeds are fixed, so a test that passes always passes. The threshold is such that
//! other seeds would pass too.
//!
//! **Power.** The share of lookups that a leak must affect to show nearly always, by
//! [`size_of_leak`](crate::test_statistics::size_of_leak); the last column is `make nightly`:
//!
//! | what is counted | coins | cells | shows | nightly |
//! |---|---|---|---|---|
//! | the half of one partition | 6000 | 2 | 13.4 % | 4.1 % |
//! | the offset read in one partition | 6000 | 8 | 5.5 % | 1.6 % |
//! | half and offset in the queried partition | 6000 | 16 | 4.1 % | 1.2 % |
//! | three queries together | 27648 | 13824 | 0.3 % | 0.1 % |

use super::super::query::cover;
use super::views::*;
use super::*;
use crate::planted::Flaw::{self, *};
use crate::planted::plant;
use crate::test_statistics::{History, Measured, assert_documented, coins, seed, size_of_leak};
use privet_core::planted::Flaw::*;

impl Seen for World {
    type Client = DummySubsetsClient;

    fn new(parameters: DummySubsetsParameters) -> Self {
        let mut world = World::with(parameters);
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }

    fn client(&mut self) -> DummySubsetsClient {
        self.client()
    }

    fn look_up(
        &mut self,
        client: &mut DummySubsetsClient,
        index: u64,
        answered: bool,
    ) -> DummySubsetsQuery {
        let mut reserved = self.reserve(client, index).unwrap();
        if answered {
            let _ = self.settle(client, &reserved);
        }
        reserved.queries.remove(0)
    }

    /// Hints are not handed over here: new ones are made under a fresh key.
    fn hand_over(&mut self, _: DummySubsetsClient) -> DummySubsetsClient {
        self.client()
    }

    fn hints(client: &DummySubsetsClient) -> Vec<Vec<Option<u16>>> {
        World::all_contents(client)
    }
}

/// Runs the tests that both forms have in common.
macro_rules! tests_of_both_forms {
    ($world:ty: $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                crate::dummy_subsets::tests::statistics::shared::$name::<$world>();
            }
        )*
    };
}
pub(in crate::dummy_subsets) use tests_of_both_forms;

tests_of_both_forms!(World:
    a_query_looks_the_same_for_every_record_and_every_history,
    histories_look_like_each_other,
    three_queries_together_are_uniform,
    the_hints_have_the_same_distribution_before_and_after_queries,
    covers_look_like_queries,
    every_planted_flaw_shows,
);

pub(in crate::dummy_subsets) mod shared {
    use super::*;

    /// One record about as often as hints contain it. Then another record.
    const TWELVE_TIMES: [u64; 13] = [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 40];

    fn rounds() -> usize {
        coins(6000)
    }

    /// Many planted flaws show in a fourth of the rounds, and more so in all.
    fn fewer() -> usize {
        rounds() / 4
    }

    fn assert_last_views_fit<S: Seen>(cut: Cut, history: History<'_>) {
        let views = last(&views::<S>(cut, history, None, rounds()));
        let what = |test: &str| format!("{test}, {cut:?}, {history:?}");
        marginals(cut, &views).assert_fits(&what("halves and offsets"));
        adjacent_pairs(cut, &views).assert_fits(&what("neighbouring partitions"));
        let index = *history.indices.last().unwrap();
        queried_partition(cut, &views, index).assert_fits(&what("the queried partition"));
    }

    pub(in crate::dummy_subsets) fn a_query_looks_the_same_for_every_record_and_every_history<
        S: Seen,
    >() {
        let histories: [&[u64]; 4] = [&[5], &TWELVE_TIMES, &[5, 6, 7, 5], &[99, 3, 77, 98]];
        // The last partition but one holds only 96 to 99.
        histories.iter().for_each(|history| {
            assert_last_views_fit::<S>(PADDED, History::from(*history));
        });
        assert_last_views_fit::<S>(FULL, History::from(histories[3]));
        let withheld = History { answered: false, ..History::from(&TWELVE_TIMES[..]) };
        assert_last_views_fit::<S>(PADDED, withheld);
    }

    fn likenesses_of<S: Seen>(
        cut: Cut,
        history: History<'_>,
        flaw: Option<Flaw>,
        rounds: usize,
    ) -> Vec<u64> {
        likenesses(cut, &views::<S>(cut, history, flaw, rounds))
    }

    pub(in crate::dummy_subsets) fn histories_look_like_each_other<S: Seen>() {
        let seen = |cut, history: History<'_>| likenesses_of::<S>(cut, history, None, coins(3000));
        let assert_alike = |fresh: &[u64], cut, history: History<'_>| {
            let unlike = Measured::difference(fresh, &seen(cut, history));
            unlike.assert_fits(&format!("{cut:?}, {history:?}"));
        };
        let fresh = History::from(&[5, 40, 99][..]);
        let apart = seen(PADDED, fresh);
        for indices in [[5, 5, 5], [5, 6, 7], [98, 5, 98]] {
            assert_alike(&apart, PADDED, History::from(&indices[..]));
        }
        let same = History::from(&[5, 5, 5][..]);
        assert_alike(&seen(FULL, fresh), FULL, same);
        let withheld = |history| History { answered: false, ..history };
        assert_alike(&seen(PADDED, withheld(fresh)), PADDED, withheld(same));
        let across = |history| History { hand_over: Some(2), ..history };
        assert_alike(&seen(PADDED, across(fresh)), PADDED, across(same));
    }

    /// One record three times, two of a partition, the only one of the last partition, all
    /// different; also across a hand-over, and without answers.
    pub(in crate::dummy_subsets) fn three_queries_together_are_uniform<S: Seen>() {
        let histories = [
            History::from(&[0, 0, 0][..]),
            History::from(&[0, 1, 0][..]),
            History::from(&[6, 6, 3][..]),
            History::from(&[0, 2, 5][..]),
            History { answered: false, ..History::from(&[0, 0, 1][..]) },
            History { hand_over: Some(2), ..History::from(&[6, 6, 6][..]) },
        ];
        for history in histories {
            let views = views::<S>(TINY, history, None, coins(2 * TINY_VIEWS.pow(3)));
            three_together(&views).assert_fits(&format!("{history:?}"));
        }
    }

    /// The distribution of the hints in use after `history`: how many contain record 5, how often
    /// they select each partition, and how often each offset.
    fn hints_after<S: Seen>(history: &[u64], flaw: Option<Flaw>, rounds: usize) -> [Vec<u64>; 3] {
        let _planted = plant(flaw);
        let mut world = S::new(PADDED.parameters());
        let partitions = PADDED.partitions();
        let mut counts = [vec![0; 64], vec![0; partitions], vec![0; PADDED.partition as usize]];
        for _ in 0..rounds {
            let mut client = world.client();
            for index in history {
                world.look_up(&mut client, *index, true);
            }
            let hints = S::hints(&client);
            for hint in &hints {
                assert_eq!(hint.iter().flatten().count(), partitions / 2 + 1);
                for (partition, offset) in hint.iter().enumerate() {
                    if let Some(offset) = offset {
                        counts[1][partition] += 1;
                        counts[2][usize::from(*offset)] += 1;
                    }
                }
            }
            counts[0][hints.iter().filter(|hint| hint[0] == Some(5)).count()] += 1;
        }
        counts
    }

    pub(in crate::dummy_subsets) fn the_hints_have_the_same_distribution_before_and_after_queries<
        S: Seen,
    >() {
        let before = hints_after::<S>(&[], None, coins(3000));
        for history in
            [vec![5; 12], vec![5, 6, 7, 4, 5, 6, 7, 4], (0..12).map(|k| k * 8 + 3).collect()]
        {
            let after = hints_after::<S>(&history, None, coins(3000));
            for (before, after) in before.iter().zip(&after) {
                Measured::difference(before, after).assert_fits(&format!("{history:?}"));
            }
        }
        for flaw in [Hints(NoSuccessor), SuccessorOfTheNeighbour] {
            let after = hints_after::<S>(&[5, 5], Some(flaw), fewer());
            Measured::difference(&before[0], &after[0]).assert_shows(&format!("{flaw:?}"));
        }
    }

    /// The first lookup of a client that has few hints.
    pub(in crate::dummy_subsets) fn covers_look_like_queries<S: Seen>() {
        assert_last_views_fit::<S>(SCARCE, History::from(&[5][..]));
        assert_last_views_fit::<S>(SCARCE, History::from(&[499][..]));
    }

    pub(in crate::dummy_subsets) fn every_planted_flaw_shows<S: Seen>() {
        let seen = |flaw, cut| last(&views::<S>(cut, History::from(&[5][..]), Some(flaw), fewer()));
        let cut = PADDED;
        let alone = |flaw| marginals(cut, &seen(flaw, cut));
        let queried = |flaw| queried_partition(cut, &seen(flaw, cut), 5);
        alone(RealHalfHasAName).assert_shows("a real half with a fixed name");
        queried(WantedOffsetShown).assert_shows("the wanted offset");
        queried(DummyAvoidsTheRecord).assert_shows("a dummy that is never the record");
        // With the same coins, queries are the same whether or not they are answered.
        for flaw in [Hints(FirstSuitableHint), Hints(NoSuccessor), SuccessorOfTheNeighbour] {
            let history = History::from(&TWELVE_TIMES[..]);
            let seen = last(&views::<S>(cut, history, Some(flaw), rounds()));
            marginals(cut, &seen).assert_shows(&format!("{flaw:?}"));
        }
        let (apart, same) = (History::from(&[5, 40, 99][..]), History::from(&[5, 5, 5][..]));
        let flaw = Some(Hints(UsedHintStays));
        let flawed = |history: History<'_>| likenesses_of::<S>(cut, history, flaw, fewer());
        let again = Measured::difference(&flawed(apart), &flawed(same));
        again.assert_shows("a hint that is used again");
        let padded = seen(WithinTheTable, PADDED);
        marginals(PADDED, &padded).assert_shows("a real half that is read within the table");
        let covers = seen(CoverUnlikeAQuery, SCARCE);
        adjacent_pairs(SCARCE, &covers).assert_shows("covers that are drawn otherwise");
        let three = views::<S>(
            TINY,
            History::from(&[0, 0, 0][..]),
            Some(Hints(UsedHintStays)),
            2 * TINY_VIEWS.pow(3),
        );
        three_together(&three).assert_shows("a hint that is used again, in three queries");
    }
}

/// A new generation under the old key holds the old hints.
#[test]
fn a_key_that_serves_two_generations_shows() {
    let across = |indices: &[u64]| {
        let history = History { hand_over: Some(1), ..History::from(indices) };
        let flaw = Some(KeyOfTheGenerationBefore);
        likenesses(FULL, &views::<World>(FULL, history, flaw, coins(3000)))
    };
    Measured::difference(&across(&[5, 40]), &across(&[5, 5])).assert_shows("a key used again");
}

#[test]
fn the_search_does_the_same_work_for_every_record() {
    let mut world = World::new(3000, 2);
    let mut client = world.client();
    let works = |client: &DummySubsetsClient| -> Vec<usize> {
        (0..3000).map(|index| client.table.find(index).work).collect()
    };
    for round in 0..3 {
        let work = works(&client);
        assert!(work.iter().all(|one| *one == work[0]), "after {round} rounds of lookups");
        let words = world.parameters.singles() as usize / 64;
        assert!(work[0] > words, "all hints are looked at, 64 at a time");
        for index in 0..100 {
            world.get(&mut client, index * 7).unwrap();
        }
    }
    // The same count catches a search that stops at its first find.
    let _planted = plant(Some(Hints(SearchEndsEarly)));
    let work = works(&client);
    assert!(!work.iter().all(|one| *one == work[0]));
}

#[test]
fn a_cover_on_its_own_looks_like_any_query() {
    for cut in [FULL, PADDED] {
        let mut world = <World as Seen>::new(cut.parameters());
        let covers = (0..coins(6000)).map(|_| {
            let cover = cover(world.parameters.cut(), &mut world.rng);
            View::of(&cover, cut.partitions())
        });
        let covers: Vec<View> = covers.collect();
        marginals(cut, &covers).assert_fits("covers");
        adjacent_pairs(cut, &covers).assert_fits("covers");
    }
}

/// The table above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    let documented = [
        (6000.0, 2.0, (13.4, 4.1)),
        (6000.0, 8.0, (5.5, 1.6)),
        (6000.0, 16.0, (4.1, 1.2)),
        (27648.0, 13824.0, (0.3, 0.1)),
    ];
    for (coins, cells, percents) in documented {
        assert_documented(|coins| size_of_leak(coins, cells), coins, percents);
    }
}
