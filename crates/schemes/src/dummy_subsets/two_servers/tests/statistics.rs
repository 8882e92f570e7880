//! What each server sees. The online server is tested with the tests of the form with one server.
//! What the offline server sees must be the same for all records, byte by byte.

use super::*;
use crate::dummy_subsets::tests::statistics::tests_of_both_forms;
use crate::dummy_subsets::tests::views::Seen;
use crate::planted::Flaw::{self, *};
use crate::planted::{plant, set_queries_per_generation};
use crate::test_statistics::seed;

impl Seen for World {
    type Client = DummySubsetsTwoClient;

    fn new(parameters: DummySubsetsParameters) -> Self {
        let mut world = World::with(parameters);
        world.rng = SecretRng::from_fixed_seed(seed());
        world
    }

    fn client(&mut self) -> DummySubsetsTwoClient {
        self.client()
    }

    fn look_up(
        &mut self,
        client: &mut DummySubsetsTwoClient,
        index: u64,
        answered: bool,
    ) -> crate::dummy_subsets::DummySubsetsQuery {
        let mut reserved = self.reserve(client, index).unwrap();
        if answered {
            self.settle(client, &reserved);
        }
        match reserved.queries.remove(1) {
            TwoServersQuery::Subsets(query) => query,
            TwoServersQuery::Replenish(_) => panic!("the online server is sent subsets"),
        }
    }

    fn hand_over(&mut self, mut client: DummySubsetsTwoClient) -> DummySubsetsTwoClient {
        client.queries = client.supply().used;
        self.load(&client.condense().unwrap())
    }

    fn hints(client: &DummySubsetsTwoClient) -> Vec<Vec<Option<u16>>> {
        crate::dummy_subsets::query::testing::all_contents(&client.table, Kernels::detect())
    }
}

tests_of_both_forms!(World:
    a_query_looks_the_same_for_every_record_and_every_history,
    histories_look_like_each_other,
    three_queries_together_are_uniform,
    the_hints_have_the_same_distribution_before_and_after_queries,
    covers_look_like_queries,
    every_planted_flaw_shows,
);

/// What the offline server is sent in sixty lookups, with a hand-over after every ten.
fn offline(flaw: Option<Flaw>, index_of: &dyn Fn(u64) -> u64) -> Vec<Vec<u8>> {
    let _planted = plant(flaw);
    set_queries_per_generation(Some(10));
    let shape = TableShape::new(100, 1).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 8).unwrap();
    let mut world = World::with(cut.with_hint_security(20).unwrap());
    let mut client = world.client();
    let seen = (0..60).map(|number| {
        if client.supply().left() == 0 {
            client = world.load(&client.condense().unwrap());
        }
        let reserved = world.reserve(&mut client, index_of(number)).unwrap();
        world.settle(&mut client, &reserved);
        reserved.queries[0].encode_query()
    });
    let seen = seen.collect();
    set_queries_per_generation(None);
    seen
}

/// The offline server knows the key, so its messages must not depend on anything else: they are the
/// same, byte by byte.
#[test]
fn the_offline_server_sees_the_same_bytes_whatever_is_looked_up() {
    let histories: [&dyn Fn(u64) -> u64; 3] =
        [&|_| 4, &|number| number, &|number| 98 - number / 2 * 3];
    let honest = histories.map(|history| offline(None, history));
    assert!(honest.windows(2).all(|pair| pair[0] == pair[1]));
    for flaw in [PairsPassedOver, IdsLeftOut] {
        let leaking = histories.map(|history| offline(Some(flaw), history));
        assert!(leaking.windows(2).all(|pair| pair[0] != pair[1]), "{flaw:?} is caught");
    }
}
