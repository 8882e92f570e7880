//! Tests that what each server sees is uniform offsets. Leaks are planted in the code that clients
//! run (see [`crate::planted`]), and each must show.
//!
//! Tables are so small that a test can count everything. A view is all that one server sees of
//! three queries of a history. There are a few hundred views, and each must occur equally often. So
//! the test catches everything that a server could compute from these three queries. In most of
//! these tables the last partition is partly filled.
//!
//! By default all seeds are fixed, so a test that passes always passes. The threshold is such that
//! other seeds would pass too.
//!
//! **Power.** The share of histories that a leak must affect to show nearly always, by
//! [`size_of_leak`]; the last column is `make nightly`:
//!
//! | what is counted | coins | cells | shows | nightly |
//! |---|---|---|---|---|
//! | three queries, two partitions of three records | 18225 | 729 | 0.7 % | 0.2 % |
//! | three queries, three partitions of two records | 12800 | 512 | 0.9 % | 0.2 % |

use super::super::generation::Generation;
use super::super::permutations::Coins;
use super::views::*;
use super::*;
use crate::planted::Flaw::*;
use crate::test_statistics::{Measured, assert_documented, coins, seed, size_of_leak};

/// How often each view is expected; fewer do for a leak.
fn expected() -> usize {
    coins(25)
}

const EXPECTED_OF_LEAKS: usize = 6;

impl Seen for World {
    type Client = SinglePassClient;

    fn of(of: Cut) -> Self {
        let mut world = World::with(cut(of.records, 1, of.partition_records));
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }

    /// The values of its hints do not matter here, and are all zero.
    fn client(&mut self, known: Option<[u8; 32]>) -> SinglePassClient {
        let mut seed = [0; 32];
        self.rng.fill(&mut seed);
        let seed = privet_core::Secret::new(known.unwrap_or(seed));
        let hints = vec![0; self.parameters.hint_bytes() as usize];
        let generation =
            Generation::encode_first(&self.parameters, &seed, &hints, Kernels::detect());
        self.load(&generation.unwrap())
    }

    fn look_up(
        &mut self,
        client: &mut SinglePassClient,
        index: u64,
        answered: bool,
    ) -> [Vec<u16>; 2] {
        let reserved = self.reserve(client, index).unwrap();
        if answered {
            self.settle(client, &reserved);
        }
        let offsets: Vec<_> = reserved.queries.into_iter().map(|query| query.offsets).collect();
        offsets.try_into().unwrap()
    }

    fn hand_over(&mut self, client: SinglePassClient) -> SinglePassClient {
        self.load(&client.condense().unwrap())
    }
}

/// All histories, and some of them without answers and across a hand-over.
fn histories() -> Vec<History<'static>> {
    let mut all: Vec<_> = HISTORIES.iter().map(|indices| History::from(&indices[..])).collect();
    for same in [History::from(&HISTORIES[0][..]), History::from(&HISTORIES[3][..])] {
        all.push(History { answered: false, ..same });
        all.push(History { hand_over: Some(2), ..same });
    }
    all
}

fn assert_uniform(cut: Cut, looks: Looks, history: History<'_>, known: Option<u8>) {
    let measured = three_together::<World>(cut, looks, history, known, None, expected());
    measured.assert_fits(&format!("{cut:?}, {looks:?}, {history:?}"));
}

#[test]
fn the_other_server_sees_uniform_offsets_whatever_is_looked_up() {
    for cut in [PADDED, THREE] {
        for history in histories() {
            assert_uniform(cut, OTHER_SERVER, history, None);
        }
    }
    assert_uniform(FULL, OTHER_SERVER, History::from(&HISTORIES[0][..]), None);
}

#[test]
fn the_hint_server_sees_uniform_offsets_though_it_knows_the_permutations() {
    for cut in [PADDED, THREE] {
        for (number, history) in (1..).zip(histories()) {
            assert_uniform(cut, HINT_SERVER, history, Some(number));
        }
    }
}

#[test]
fn views_late_in_a_long_history_are_uniform_too() {
    for (role, known) in [(0, Some(1)), (1, None)] {
        let looks = Looks { role, at: [0, 6, 9] };
        for history in [[0; 10], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]] {
            assert_uniform(PADDED, looks, History::from(&history[..]), known);
        }
    }
}

fn planted(
    flaw: crate::planted::Flaw,
    cut: Cut,
    looks: Looks,
    history: History<'_>,
    known: Option<u8>,
) -> Measured {
    three_together::<World>(cut, looks, history, known, Some(flaw), EXPECTED_OF_LEAKS)
}

#[test]
fn mistakes_that_show_to_the_other_server_are_caught() {
    for cut in [PADDED, THREE] {
        let records = cut.partition_records as u16;
        let same = History { answered: false, ..History::from(&[0, 0, 0][..]) };
        for flaw in [
            WantedOffsetShown,
            DummyAvoidsTheRecord,
            NotShuffled,
            NeverItsOwnPartner(records),
            SeedOfTheLookupBefore,
        ] {
            let measured = planted(flaw, cut, OTHER_SERVER, same, None);
            measured.assert_shows(&format!("{flaw:?}, {cut:?}"));
        }
        let handed_over = History { hand_over: Some(2), ..History::from(&[0, 0, 0][..]) };
        let lost = planted(LastExchangeLost, cut, OTHER_SERVER, handed_over, None);
        lost.assert_shows("what the last lookup of a generation shuffled in");
    }
    // With two partitions, only one partner matters.
    let same = History::from(&[0, 0, 0][..]);
    let alike = planted(PartnersAlike, THREE, OTHER_SERVER, same, None);
    alike.assert_shows("one partner for all partitions");
}

/// Only a lookup of a record in the partly filled partition shows it.
#[test]
fn a_decoy_within_the_table_is_caught() {
    for (cut, partition, records) in [(PADDED, 1, 2), (THREE, 2, 1)] {
        let flaw = DecoyWithin { partition, records };
        let last = History::from(&[4, 4, 4][..]);
        planted(flaw, cut, OTHER_SERVER, last, None).assert_shows("a decoy within the table");
    }
}

#[test]
fn mistakes_that_show_to_the_hint_server_are_caught() {
    for cut in [PADDED, THREE] {
        let never = NeverItsOwnPartner(cut.partition_records as u16);
        let same = History { answered: false, ..History::from(&[0, 0, 0][..]) };
        for flaw in [PartnersAlike, never, SeedOfTheLookupBefore] {
            let measured = planted(flaw, cut, HINT_SERVER, same, Some(1));
            measured.assert_shows(&format!("{flaw:?}, {cut:?}"));
        }
    }
}

/// Permutations that the other server knows show why that server must not compute hints.
#[test]
fn a_server_that_knows_the_permutations_must_not_see_the_hints_used() {
    let same = History::from(&[0, 0, 0][..]);
    three_together::<World>(PADDED, OTHER_SERVER, same, Some(1), None, EXPECTED_OF_LEAKS)
        .assert_shows("known permutations");
}

/// No server would see an exchange in the wanted record's partition. It is still a mistake, because
/// no record was read there with which the hints could follow.
#[test]
fn exchanging_in_the_wanted_partition_too_makes_hints_false() {
    let mut world = World::with(cut(60, 4, 10));
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 7).unwrap();
    world.settle(&mut client, &reserved);
    assert!(world.hints_fit(&client));
    let place = client.generation.permutations.place_of(&world.index(7));
    let mut partners = vec![place.hint; world.parameters.partitions() as usize];
    partners[place.partition as usize] = (place.hint + 1) % 10;
    let coins = Coins { partners: Zeroizing::new(partners.clone()), decoy: 0 };
    client.generation.permutations.exchange(place.hint, &coins.partners_of(place));
    assert!(world.hints_fit(&client), "nothing is exchanged there");
    client.generation.permutations.exchange(place.hint, &partners);
    assert!(!world.hints_fit(&client));
}

/// The permutations themselves: each of the 24 permutations of four numbers occurs equally often,
/// in each partition and in all together.
#[test]
fn permutations_are_uniform_and_independent() {
    let mut world = <World as Seen>::of(Cut { records: 8, partition_records: 4 });
    let mut counts = vec![0u64; 24 * 24];
    for _ in 0..24 * 24 * expected() {
        let client = Seen::client(&mut world, None);
        let place =
            |index| usize::from(client.generation.permutations.place_of(&world.index(index)).hint);
        // The number of a permutation: how many of the numbers after each are smaller.
        let number = |first: u64| {
            (0..4).fold(0, |number, k| {
                let smaller = (k + 1..4).filter(|l| place(first + l) < place(first + k)).count();
                number * (4 - k as usize) + smaller
            })
        };
        counts[number(0) * 24 + number(4)] += 1;
    }
    Measured::uniform(&counts).assert_fits("permutations");
}

/// The table above.
#[test]
fn the_sizes_of_leaks_that_show_are_as_documented() {
    for (cells, percents) in [(729.0, (0.7, 0.2)), (512.0, (0.9, 0.2))] {
        assert_documented(|coins| size_of_leak(coins, cells), 25.0 * cells, percents);
    }
}
