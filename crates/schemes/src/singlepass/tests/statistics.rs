//! What each server sees, tested against uniform offsets; and each test against a client with a mistake planted in it, which it must catch.
//!
//! Tables are so small that a test can count everything: a view is all that one server sees of three queries of a history, of which there are a few hundred, and each must
//! occur equally often. So nothing that a server could compute from those three queries escapes.
//!
//! **False alarms.** What is compared to [`THRESHOLD`] is a chi-square with 511 or 728 degrees of freedom, as its distance from what is expected in standard deviations. It exceeds the
//! threshold with probability below 10^-8 (Laurent and Massart; every cell is expected 25 times), and fewer than 100 of them are computed: with other seeds than these, all honest tests
//! would pass except with probability below 10^-6. The seeds are fixed, so what passes passes always.
//!
//! **Power.** A deviation of all cells by some share `d` of what is expected, up or down, adds `25·d²` for each cell, and is seen nearly always from `d` = 16 % on.

use super::super::generation::Generation;
use super::super::permutations::{Coins, Place};
use super::*;
use crate::test_statistics::excess;

const THRESHOLD: f64 = 8.0;

/// A planted leak must exceed the threshold at least that many times.
const CLEARLY: f64 = 3.0;

/// How often each view is expected; fewer do for a leak.
const EXPECTED: usize = 25;
const EXPECTED_OF_LEAKS: usize = 6;

/// What may be wrong with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leak {
    Nothing,
    /// The wanted record's own offset is shown to server 1.
    NoDecoy,
    /// The decoy is never the wanted record itself.
    DecoyAvoidsTheRecord,
    /// Nothing is shuffled in.
    NotShuffled,
    /// The used hint changes places with the same one in all partitions.
    OnePartner,
    /// The used hint never stays where it is.
    NeverItsOwnPartner,
    /// All lookups of a client draw from one seed.
    SeedReused,
}

use Leak::*;

/// Which server looks, and which of the queries it looks at.
#[derive(Clone, Copy)]
struct Looks {
    role: usize,
    at: [usize; 3],
}

/// One cut of a small table.
struct Small {
    world: World,
    partition_records: u64,
}

impl Small {
    fn new(partitions: u64, partition_records: u64) -> Self {
        // The last record is beyond the end: that must not show either.
        let parameters = cut(partitions * partition_records - 1, 1, partition_records);
        assert_eq!(u64::from(parameters.partitions()), partitions);
        Self { world: World::with(parameters), partition_records }
    }

    fn client(&self, seed: [u8; 32]) -> SinglePassClient {
        let (parameters, kernels) = (&self.world.parameters, Kernels::detect());
        let hints = vec![0; parameters.hint_bytes() as usize];
        let seed = privet_core::Secret::new(seed);
        self.world.load(&Generation::encode_first(parameters, &seed, &hints, kernels).unwrap())
    }

    /// The offsets that both servers see of one lookup.
    fn ask(
        &mut self,
        leak: Leak,
        client: &mut SinglePassClient,
        reused: [u8; 32],
        index: u64,
    ) -> [Vec<u16>; 2] {
        let wanted = self.world.index(index);
        let (partition, offset) = wanted.divide(self.partition_records);
        let rng = &mut self.world.rng;
        if matches!(leak, OnePartner | NeverItsOwnPartner) {
            let place = client.generation.permutations.place_of(&wanted);
            let coins = self.leaky_coins(leak, place);
            let queries = client.generation.permutations.show(place, &coins);
            client.generation.permutations.exchange(place.hint, &coins.partners_of(place));
            return queries.map(|query| query.offsets);
        }
        let mut reserved = match leak {
            SeedReused => client.reserve(&wanted, &mut SecretRng::from_fixed_seed(reused)).unwrap(),
            _ => client.reserve(&wanted, rng).unwrap(),
        };
        if leak == NoDecoy {
            reserved.queries[1].offsets[partition as usize] = offset as u16;
        }
        while leak == DecoyAvoidsTheRecord
            && reserved.queries[1].offsets[partition as usize] == offset as u16
        {
            reserved = client.reserve(&wanted, rng).unwrap();
        }
        if leak != NotShuffled {
            client.apply(&reserved.change).unwrap();
        }
        let offsets: Vec<_> = reserved.queries.into_iter().map(|query| query.offsets).collect();
        offsets.try_into().unwrap()
    }

    fn leaky_coins(&mut self, leak: Leak, place: Place) -> Coins {
        let rng = &mut self.world.rng;
        let records = self.partition_records;
        let one = rng.below(records) as u16;
        let mut partner = || match leak {
            OnePartner => one,
            _ => {
                let other = rng.below(records - 1) as u16;
                other + u16::from(other >= place.hint)
            }
        };
        let partners = (0..self.world.parameters.partitions()).map(|_| partner()).collect();
        Coins { partners: Zeroizing::new(partners), decoy: self.world.rng.below(records) as u16 }
    }

    /// How far the views of three queries of `history` are from occurring equally often. Permutations are fresh for each client (for server 1, which does not know
    /// them), or always those of `known` (for server 0, which does).
    fn excess(&mut self, leak: Leak, looks: Looks, history: &[u64], known: Option<u8>) -> f64 {
        let partitions = self.world.parameters.partitions();
        let cells = self.partition_records.pow(3 * partitions) as usize;
        let mut counts = vec![0u64; cells];
        let honest = leak == Nothing && (looks.role == 0 || known.is_none());
        let expected = if honest { EXPECTED } else { EXPECTED_OF_LEAKS };
        for _ in 0..cells * expected {
            let (mut fresh, mut reused) = ([0; 32], [0; 32]);
            self.world.rng.fill(&mut fresh);
            self.world.rng.fill(&mut reused);
            let mut client = self.client(known.map_or(fresh, |byte| [byte; 32]));
            let mut cell = 0;
            for (number, index) in history.iter().enumerate() {
                let seen = self.ask(leak, &mut client, reused, *index);
                if looks.at.contains(&number) {
                    cell = seen[looks.role].iter().fold(cell, |cell, offset| {
                        cell * self.partition_records as usize + usize::from(*offset)
                    });
                }
            }
            counts[cell] += 1;
        }
        excess(&counts, &vec![expected as f64; counts.len()])
    }
}

const FIRST_THREE: [usize; 3] = [0, 1, 2];
const HINT_SERVER: Looks = Looks { role: 0, at: FIRST_THREE };
const OTHER_SERVER: Looks = Looks { role: 1, at: FIRST_THREE };

/// One record for ever; two of one partition, two of different ones; and three different ones. For two partitions of three records and for three of two.
const HISTORIES: [[u64; 3]; 6] = [[0, 0, 0], [0, 1, 0], [0, 3, 0], [4, 4, 1], [1, 0, 4], [0, 2, 4]];

fn smalls() -> [Small; 2] {
    [Small::new(2, 3), Small::new(3, 2)]
}

#[test]
fn the_other_server_sees_uniform_offsets_whatever_is_looked_up() {
    for mut small in smalls() {
        for history in HISTORIES {
            let excess = small.excess(Nothing, OTHER_SERVER, &history, None);
            assert!(excess < THRESHOLD, "{history:?}: {excess}");
        }
    }
}

#[test]
fn the_hint_server_sees_uniform_offsets_though_it_knows_the_permutations() {
    for mut small in smalls() {
        for history in HISTORIES {
            for known in [1, 2] {
                let excess = small.excess(Nothing, HINT_SERVER, &history, Some(known));
                assert!(excess < THRESHOLD, "{history:?}: {excess}");
            }
        }
    }
}

#[test]
fn views_late_in_a_long_history_are_uniform_too() {
    let mut small = Small::new(2, 3);
    for (role, known) in [(0, Some(1)), (1, None)] {
        let looks = Looks { role, at: [0, 6, 9] };
        for history in [[0; 10], [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]] {
            let excess = small.excess(Nothing, looks, &history, known);
            assert!(excess < THRESHOLD, "server {role}, {history:?}: {excess}");
        }
    }
}

#[test]
fn mistakes_that_show_to_the_other_server_are_caught() {
    for mut small in smalls() {
        for leak in [NoDecoy, DecoyAvoidsTheRecord, NotShuffled, NeverItsOwnPartner, SeedReused] {
            let excess = small.excess(leak, OTHER_SERVER, &[0, 0, 0], None);
            assert!(excess > CLEARLY * THRESHOLD, "{leak:?}: {excess}");
        }
    }
    // With two partitions there is only one whose partner matters.
    let mut three = Small::new(3, 2);
    let excess = three.excess(OnePartner, OTHER_SERVER, &[0, 0, 0], None);
    assert!(excess > CLEARLY * THRESHOLD, "{excess}");
}

#[test]
fn mistakes_that_show_to_the_hint_server_are_caught() {
    for mut small in smalls() {
        for leak in [OnePartner, NeverItsOwnPartner, SeedReused] {
            let excess = small.excess(leak, HINT_SERVER, &[0, 0, 0], Some(1));
            assert!(excess > CLEARLY * THRESHOLD, "{leak:?}: {excess}");
        }
    }
}

/// Permutations that the other server knows are the case against asking it for hints.
#[test]
fn a_server_that_knows_the_permutations_must_not_see_the_hints_used() {
    let mut small = Small::new(2, 3);
    let excess = small.excess(Nothing, OTHER_SERVER, &[0, 0, 0], Some(1));
    assert!(excess > CLEARLY * THRESHOLD, "{excess}");
}

/// Exchanging in the wanted record's partition as well would show to nobody. It is a mistake all the same, because nothing was read there with which the hints could follow.
#[test]
fn exchanging_in_the_wanted_partition_too_makes_hints_false() {
    let mut world = World::with(cut(60, 4, 10));
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 7).unwrap();
    world.settle(&mut client, &reserved);
    world.assert_hints_fit(&client);
    let place = client.generation.permutations.place_of(&world.index(7));
    let mut partners = vec![place.hint; world.parameters.partitions() as usize];
    partners[place.partition as usize] = (place.hint + 1) % 10;
    let coins = Coins { partners: Zeroizing::new(partners.clone()), decoy: 0 };
    client.generation.permutations.exchange(place.hint, &coins.partners_of(place));
    assert!(world.hints_fit(&client), "nothing is exchanged there");
    client.generation.permutations.exchange(place.hint, &partners);
    assert!(!world.hints_fit(&client));
}

/// The permutations themselves: each of the 24 of four numbers equally often, in each partition, and together.
#[test]
fn permutations_are_uniform_and_independent() {
    let parameters = cut(8, 1, 4);
    let small = Small { world: World::with(parameters.clone()), partition_records: 4 };
    let mut rng = SecretRng::from_fixed_seed([8; 32]);
    let mut counts = vec![0u64; 24 * 24];
    for _ in 0..24 * 24 * EXPECTED {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        let client = small.client(seed);
        let place = |index| {
            usize::from(client.generation.permutations.place_of(&small.world.index(index)).hint)
        };
        // The number of a permutation: how many of the numbers after each are smaller.
        let number = |first: u64| {
            (0..4).fold(0, |number, k| {
                let smaller = (k + 1..4).filter(|l| place(first + l) < place(first + k)).count();
                number * (4 - k as usize) + smaller
            })
        };
        counts[number(0) * 24 + number(4)] += 1;
    }
    let excess = excess(&counts, &vec![EXPECTED as f64; counts.len()]);
    assert!(excess < THRESHOLD, "{excess}");
}
