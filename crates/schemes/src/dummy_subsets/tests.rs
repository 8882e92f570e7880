//! Dummy subsets end to end without a network.

mod known_answers;
mod lookups;
mod messages;
mod state;
pub(in crate::dummy_subsets) mod statistics;
pub(in crate::dummy_subsets) mod views;

use super::query::testing;
use super::*;
use crate::conformance::hinted::{self, Hinted, hinted_suite};
use crate::contract::{
    HintedClient as _, Message as _, Parameters as _, Preparation as _, ReservationId,
};
use crate::offline::StreamConsumer as _;
use privet_core::hints::{Exchange, StateChange};
use privet_core::{
    Blame, Epoch, SecretRng, TableDigest, TableId, TableIdentity, TableShape, TableView,
};
use privet_kernels::Kernels;
use proptest::prelude::*;

pub(super) struct Tested;

pub(super) type World = hinted::World<Tested>;

hinted_suite!(suite: Tested);

pub(super) fn identity(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(1), digest: TableDigest([8; 32]), shape }
}

/// Parameters by default, or of partitions of `records` records.
pub(in crate::dummy_subsets) fn cut_into(
    shape: TableShape,
    records: Option<u64>,
) -> DummySubsetsParameters {
    match records {
        Some(records) => DummySubsetsParameters::with_partition_records(shape, records),
        None => DummySubsetsParameters::new(shape),
    }
    .unwrap()
}

impl Hinted for Tested {
    type Parameters = DummySubsetsParameters;
    type Scheme = DummySubsets;
    type Server = DummySubsetsServer;
    type Client = DummySubsetsClient;
    type Preparation = DummySubsetsPreparation;
    /// The table of hints, and what they contain.
    type State = (Vec<u8>, Vec<Vec<Option<u16>>>);

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

    fn server(parameters: &DummySubsetsParameters, table: TableView<'_>) -> DummySubsetsServer {
        DummySubsetsServer::new(parameters.clone(), table, Kernels::detect()).unwrap()
    }

    fn stream(world: &World) -> Option<Vec<u8>> {
        Some(world.records.clone())
    }

    fn state(client: &DummySubsetsClient) -> Self::State {
        (client.table.bytes().to_vec(), World::all_contents(client))
    }

    fn check(_world: &World, client: &DummySubsetsClient) {
        client.ledger.check_settled("nothing").unwrap();
    }

    /// Id, pair, half, index and a hint that is already used: one of them is wrong at a time.
    fn wrong_changes(_world: &World, used: &[u8], good: &[u8]) -> Vec<Vec<u8>> {
        let wrong = [(1, 1), (13, 1), (25, 2), (24, 1)].map(|(at, byte): (usize, u8)| {
            let mut change = good.to_vec();
            change[at] ^= byte;
            change
        });
        let mut used_again = good.to_vec();
        used_again[9..13].copy_from_slice(&used[9..13]);
        wrong.into_iter().chain([used_again]).collect()
    }
}

impl World {
    /// What all live hints of a client contain.
    pub(super) fn all_contents(client: &DummySubsetsClient) -> Vec<Vec<Option<u16>>> {
        testing::all_contents(&client.table, Kernels::detect())
    }

    /// Reads a change back.
    pub(super) fn decode(&self, change: &[u8]) -> StateChange {
        let len = self.parameters.shape().record_len() as usize;
        StateChange::decode(change, len, len).unwrap()
    }
}
