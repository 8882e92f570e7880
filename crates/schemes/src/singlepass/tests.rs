//! SinglePass end to end without a network.

mod known_answers;
mod messages;
mod state;
mod statistics;
pub(crate) mod views;

use super::*;
use crate::conformance::hinted::{self, Hinted, hinted_suite};
use crate::contract::{
    Answerer as _, Asked as _, HintedClient as _, Parameters as _, Preparation as _, ReservationId,
    Role,
};
use crate::offline::StreamConsumer as _;
use crate::test_tables::identity;
use privet_core::{Result, SecretRng, TableShape, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use zeroize::Zeroizing;

pub(super) struct Tested;

pub(super) type World = hinted::World<Tested>;

hinted_suite!(suite: Tested);

pub(super) fn cut(records: u64, record_len: u64, partition_records: u64) -> SinglePassParameters {
    let shape = TableShape::new(records, record_len).unwrap();
    SinglePassParameters::with_partition_records(shape, partition_records).unwrap()
}

impl Hinted for Tested {
    type Parameters = SinglePassParameters;
    type Scheme = SinglePass;
    type Server = SinglePassServer;
    type Client = SinglePassClient;
    type Preparation = SinglePassPreparation;
    /// Permutations and hints.
    type State = Zeroizing<Vec<u8>>;

    const TELLS_IN_ORDER: bool = true;

    fn parameters(shape: TableShape, cut: Option<u64>) -> SinglePassParameters {
        match cut {
            Some(records) => SinglePassParameters::with_partition_records(shape, records),
            None => SinglePassParameters::new(shape),
        }
        .unwrap()
    }

    fn shape(parameters: &SinglePassParameters) -> TableShape {
        parameters.shape()
    }

    fn cut(parameters: &SinglePassParameters) -> u64 {
        parameters.partition_records().into()
    }

    fn cuts() -> BoxedStrategy<u64> {
        prop_oneof![6 => 2u64..=40, 6 => 2u64..=5_000, 1 => Just(1u64 << 16)].boxed()
    }

    fn server(parameters: &SinglePassParameters, table: TableView<'_>) -> SinglePassServer {
        SinglePassServer::new(parameters.clone(), table, Kernels::detect()).unwrap()
    }

    /// The reply to a request, over the wire and back.
    fn reply(world: &World, preparation: &mut SinglePassPreparation) -> Vec<u8> {
        let bytes = preparation.next_request().unwrap();
        assert_eq!(
            Some(&bytes),
            preparation.next_request().as_ref(),
            "the same until it is answered"
        );
        assert_eq!(bytes.len(), SinglePassRequest::encoded_len(&world.parameters));
        let reply = world.server.reply(SinglePass::ASKED, &bytes).unwrap();
        assert_eq!(reply.len(), SinglePassReply::encoded_len(&world.parameters));
        reply
    }

    fn state(client: &SinglePassClient) -> Self::State {
        client.generation.encode(client.parameters()).unwrap()
    }

    fn check(world: &World, client: &SinglePassClient) {
        assert!(world.hints_fit(client), "hints and permutations do not fit each other");
    }

    /// Kind, id, and an index beyond the table: one of them is wrong at a time.
    fn wrong_changes(_world: &World, _used: &[u8], good: &[u8]) -> Vec<Vec<u8>> {
        let wrong = [(0, 2), (0, 7), (1, 1), (10, 2)].map(|(at, byte): (usize, u8)| {
            let mut change = good.to_vec();
            change[at] ^= byte;
            change
        });
        wrong.into()
    }
}

impl World {
    /// Whether every hint is the XOR of the records that the permutations name.
    pub(super) fn hints_fit(&self, client: &SinglePassClient) -> bool {
        let len = self.parameters.record_len();
        let mut hints = client.generation.hints.to_vec();
        for index in 0..self.parameters.shape().records() {
            let place = client.generation.permutations.place_of(&self.index(index));
            let hint = &mut hints[usize::from(place.hint) * len..][..len];
            hint.iter_mut().zip(self.record(index)).for_each(|(hint, byte)| *hint ^= byte);
        }
        hints.iter().all(|byte| *byte == 0)
    }
}
