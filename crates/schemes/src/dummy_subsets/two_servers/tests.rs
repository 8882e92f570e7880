//! Dummy subsets on two servers end to end without a network.

mod known_answers;
mod lookups;
mod state;
mod statistics;

use super::*;
use crate::conformance::hinted::{self, Hinted, hinted_suite};
use crate::contract::{
    Answerer as _, Asked as _, HintedClient as _, Preparation as _, QueryMessage as _,
    ReservationId,
};
use crate::dummy_subsets::tests::cut_into;
use privet_core::{Blame, SecretRng, TableShape, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;

pub(super) struct Tested;

pub(super) type World = hinted::World<Tested>;

hinted_suite!(suite: Tested);

impl Hinted for Tested {
    type Parameters = DummySubsetsParameters;
    type Scheme = DummySubsetsTwo;
    type Server = DummySubsetsTwoServer;
    type Client = DummySubsetsTwoClient;
    type Preparation = DummySubsetsTwoPreparation;
    /// The table of hints, and each.
    type State = (Vec<u8>, Vec<Option<privet_core::hints::LiveHint>>);

    const EDIT_WHILE_OPEN: Blame = Blame::ApiMisuse;

    fn parameters(shape: TableShape, cut: Option<u64>) -> DummySubsetsParameters {
        cut_into(shape, cut)
    }

    fn shape(parameters: &DummySubsetsParameters) -> TableShape {
        parameters.shape()
    }

    fn cut(parameters: &DummySubsetsParameters) -> u64 {
        parameters.partition_records().into()
    }

    fn cuts() -> BoxedStrategy<u64> {
        (0u32..=13).prop_map(|log2| 1 << log2).boxed()
    }

    fn server(parameters: &DummySubsetsParameters, table: TableView<'_>) -> DummySubsetsTwoServer {
        DummySubsetsTwoServer::new(parameters.clone(), table, Kernels::detect()).unwrap()
    }

    /// The offline server's reply to the next request, which is the same until it is answered.
    fn reply(world: &World, preparation: &mut DummySubsetsTwoPreparation) -> Vec<u8> {
        let request = preparation.next_request().unwrap();
        assert_eq!(Some(&request), preparation.next_request().as_ref(), "asked again, the same");
        assert_eq!(request.len(), HintsRequest::encoded_len(&world.parameters));
        let reply = world.server.reply(DummySubsetsTwo::ASKED, &request).unwrap();
        assert_eq!(reply.len(), HintsReply::encoded_len(&world.parameters));
        reply
    }

    /// The last is prepared by several requests.
    fn checkpointed() -> Vec<(u64, u64, Option<u64>)> {
        let several = (3_000, 20_000, Some(16));
        let parameters = cut_into(TableShape::new(several.0, several.1).unwrap(), several.2);
        assert!(messages::requests(&parameters) > 5);
        vec![(1, 1, None), (300, 7, None), several]
    }

    fn state(client: &DummySubsetsTwoClient) -> Self::State {
        let hints = (0..client.table.len()).map(|row| client.table.hint(row)).collect();
        (client.table.bytes().to_vec(), hints)
    }

    fn check(_world: &World, client: &DummySubsetsTwoClient) {
        client.ledger.check_settled("nothing").unwrap();
    }

    /// Id, pair, index, half and cutoff, and a hint that is already used: one of them is wrong at a
    /// time.
    fn wrong_changes(_world: &World, used: &[u8], good: &[u8]) -> Vec<Vec<u8>> {
        let wrong = [(1, 1), (13, 1), (24, 1), (25, 2), (26, 1)].map(|(at, byte): (usize, u8)| {
            let mut change = good.to_vec();
            change[at] ^= byte;
            change
        });
        let mut used_again = good.to_vec();
        used_again[9..13].copy_from_slice(&used[9..13]);
        wrong.into_iter().chain([used_again]).collect()
    }
}
