//! What each server sees: the tests of SinglePass's
//! [`statistics`](crate::singlepass::tests::views), and mistakes in the code that only TAPIR has.
//! Neither server knows the permutations here.

use super::*;
use crate::conformance::hinted::follow;
use crate::planted::Flaw::{self, *};
use crate::planted::plant;
use crate::singlepass::tests::views::*;
use crate::test_statistics::{Measured, coins, seed};

fn expected() -> usize {
    coins(25)
}

const EXPECTED_OF_LEAKS: usize = 6;

impl Seen for World<MerkleForm> {
    type Client = TapirClient<MerkleForm>;

    fn of(cut: Cut) -> Self {
        let mut world = World::cut(cut.records, 1, cut.partition_records);
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }

    fn client(&mut self, known: Option<[u8; 32]>) -> TapirClient<MerkleForm> {
        assert!(known.is_none(), "no server knows where TAPIR's permutations come from");
        self.client()
    }

    /// One lookup after the other: each is answered.
    fn look_up(
        &mut self,
        client: &mut TapirClient<MerkleForm>,
        index: u64,
        _: bool,
    ) -> [Vec<u16>; 2] {
        let reserved = self.reserve(client, index).unwrap();
        self.settle(client, &reserved);
        let offsets: Vec<_> = reserved.queries.into_iter().map(|query| query.0.offsets).collect();
        offsets.try_into().unwrap()
    }

    fn hand_over(&mut self, mut client: TapirClient<MerkleForm>) -> TapirClient<MerkleForm> {
        assert_eq!(client.supply().left(), 0);
        self.refill(&mut client);
        client
    }
}

#[test]
fn either_server_sees_uniform_offsets_whatever_is_looked_up() {
    let of = three_together::<World<MerkleForm>>;
    let assert_uniform = |cut, looks, history: History<'_>| {
        let measured = of(cut, looks, history, None, None, expected());
        measured.assert_fits(&format!("{cut:?}, {looks:?}, {history:?}"));
    };
    for looks in [HINT_SERVER, OTHER_SERVER] {
        for indices in HISTORIES {
            assert_uniform(PADDED, looks, History::from(&indices[..]));
        }
        let same = History::from(&[4, 4, 4][..]);
        assert_uniform(THREE, looks, same);
        assert_uniform(THREE, looks, History { hand_over: Some(2), ..same });
    }
}

#[test]
fn planted_mistakes_are_caught() {
    let planted = |flaw: Flaw, cut, looks, history| {
        let of = three_together::<World<MerkleForm>>;
        of(cut, looks, history, None, Some(flaw), EXPECTED_OF_LEAKS)
            .assert_shows(&format!("{flaw:?}, {cut:?}, {looks:?}"));
    };
    let same = History::from(&[0, 0, 0][..]);
    for cut in [PADDED, THREE] {
        planted(NeverItsOwnPartner(cut.partition_records as u16), cut, OTHER_SERVER, same);
        planted(SeedOfTheLookupBefore, cut, OTHER_SERVER, same);
        let handed_over = History { hand_over: Some(2), ..same };
        planted(LastExchangeLost, cut, OTHER_SERVER, handed_over);
    }
    planted(PartnersAlike, THREE, OTHER_SERVER, same);
    for (cut, partition, records) in [(PADDED, 1, 2), (THREE, 2, 1)] {
        let last = History::from(&[4, 4, 4][..]);
        planted(DecoyWithin { partition, records }, cut, OTHER_SERVER, last);
    }
}

/// Two partitions of two records become four, and the last is partly filled. Then there are three
/// lookups, seen in the first partition and the new ones.
fn after_growth(history: [u64; 3], role: usize, flaw: Option<Flaw>, expected: usize) -> Measured {
    let _planted = plant(flaw);
    let mut rng = SecretRng::from_fixed_seed(seed());
    let after = 7;
    let update = (4..after).map(|k| (k, vec![k as u8])).collect();
    let mut counts = vec![0u64; 512];
    for _ in 0..512 * expected {
        let mut world = World::<MerkleForm>::cut(4, 1, 2);
        let mut coins = [0; 32];
        rng.fill(&mut coins);
        world.rng = SecretRng::from_fixed_seed(coins);
        let mut client = world.client();
        let delta = world.update(&update);
        follow(&mut client, &delta).unwrap();
        let mut cell = 0;
        for index in history {
            let seen = &world.look_up(&mut client, index, true)[role];
            assert_eq!(seen.len(), 4);
            cell = [0, 2, 3].iter().fold(cell, |cell, place| cell * 2 + usize::from(seen[*place]));
        }
        counts[cell] += 1;
    }
    Measured::uniform(&counts)
}

#[test]
fn partitions_that_come_later_are_as_secret_as_the_first() {
    for history in [[0, 0, 0], [4, 4, 4], [6, 0, 6]] {
        for role in 0..2 {
            let measured = after_growth(history, role, None, expected());
            measured.assert_fits(&format!("{history:?}, server {role}"));
        }
    }
    let alike = after_growth([0, 0, 0], 1, Some(LaterPartitionsAlike), EXPECTED_OF_LEAKS);
    alike.assert_shows("one permutation for all later partitions");
}
