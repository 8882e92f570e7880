//! TAPIR end to end without a network.

// With the feature `testing` the laboratory runs these for a form of its own.
#![cfg_attr(not(test), allow(dead_code, unused_imports, unused_macros, unused_variables))]

pub mod adversaries;
#[cfg(test)]
mod known_answers;
pub mod lookups;
mod messages;
pub mod selective_failure;
pub mod state;
#[cfg(test)]
mod statistics;
pub mod updates;

use super::*;
use crate::conformance::hinted::{self, Hinted, hinted_suite};
use crate::contract::{
    Answerer as _, HintedClient as _, Message, Parameters as _, Preparation as _, Record, Reserved,
    Role, Setup as _,
};
use crate::offline::StreamConsumer as _;
use crate::singlepass::SinglePassParameters;
use crate::test_tables::identity;
use privet_core::commit::VectorCommitment as _;
use privet_core::commit::merkle::Merkle;
use privet_core::{Result, SecretRng, TableChanges, TableDelta, TableShape, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// Records that an update writes, by their numbers.
pub type Written = BTreeMap<u64, Vec<u8>>;

/// How the tests make a form's commitment.
pub trait TestForm: Form {
    fn commitment(pass: &SinglePassParameters) -> Self::Commitment;
}

impl TestForm for MerkleForm {
    /// Two levels of each tree are sent, the others kept.
    fn commitment(pass: &SinglePassParameters) -> Merkle {
        let vectors = vectors_of(pass).unwrap();
        let depth = pass.partition_records().next_power_of_two().trailing_zeros() as u8;
        Merkle::new(vectors, depth.saturating_sub(2)).unwrap()
    }
}

pub fn parameters<F: TestForm>(
    records: u64,
    record_len: u64,
    partition_records: u64,
) -> TapirParameters<F> {
    Tested::parameters(TableShape::new(records, record_len).unwrap(), Some(partition_records))
}

pub struct Tested<F>(PhantomData<F>);

pub type World<F> = hinted::World<Tested<F>>;

// The suite leaves some tests out. Queries go strictly one after the other, so none waits for the
// answer to another; edits come with commitments; parameters that are cut short blame a misbehaving
// server. Tests of these are in this folder.
hinted_suite! { suite: Tested<MerkleForm>:
    any_table_any_sequence,
    a_generation_serves_its_queries_and_then_says_so,
    answers_that_fit_no_lookup_are_refused,
    clients_that_verify_end_and_no_others,
    a_preparation_goes_on_from_a_checkpoint_to_the_same_hints,
    preparations_differ,
    what_arrives_out_of_order_too_long_too_short_or_damaged_is_noticed,
    damaged_hints_and_checkpoints_are_refused_at_every_length,
    every_arm_prepares_the_same_hints,
    what_a_stranger_sends_is_answered_or_refused,
    the_same_coins_make_the_same_queries_of_one_length,
}

impl<F: TestForm> Hinted for Tested<F> {
    type Parameters = TapirParameters<F>;
    type Scheme = Tapir<F>;
    type Server = TapirServer<F>;
    type Client = TapirClient<F>;
    type Preparation = TapirPreparation<F>;
    /// The encoded state.
    type State = Zeroizing<Vec<u8>>;

    fn parameters(shape: TableShape, cut: Option<u64>) -> TapirParameters<F> {
        let pass = match cut {
            Some(records) => SinglePassParameters::with_partition_records(shape, records),
            None => SinglePassParameters::new(shape),
        }
        .unwrap();
        let commitment = F::commitment(&pass);
        TapirParameters::new(pass, commitment).unwrap()
    }

    fn clients(parameters: &TapirParameters<F>) -> TapirParameters<F> {
        let shape = parameters.shape();
        let identity = identity(shape.records(), shape.record_len());
        TapirParameters::decode(&identity, &parameters.encode()).unwrap()
    }

    fn shape(parameters: &TapirParameters<F>) -> TableShape {
        parameters.shape()
    }

    fn cut(parameters: &TapirParameters<F>) -> u64 {
        parameters.pass().partition_records().into()
    }

    fn cuts() -> BoxedStrategy<u64> {
        (2u64..=40).boxed()
    }

    fn server(parameters: &TapirParameters<F>, table: TableView<'_>) -> TapirServer<F> {
        let setup = TapirSetup::new(parameters.clone(), table, Kernels::detect()).unwrap();
        let kept = setup.precompute(&|_| ()).unwrap().kept;
        setup.finish(&kept.as_bytes()).unwrap()
    }

    fn stream(world: &World<F>) -> Option<Vec<u8>> {
        Some(world.stream())
    }

    fn state(client: &TapirClient<F>) -> Self::State {
        client.written_down()
    }

    fn wrong_changes(_: &World<F>, _used: &[u8], _good: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

pub fn server<F: TestForm>(parameters: &TapirParameters<F>, records: &[u8]) -> TapirServer<F> {
    World::serve(parameters, records)
}

impl<F: TestForm> World<F> {
    /// What clients stream.
    pub fn stream(&self) -> Vec<u8> {
        match self.parameters.commitment().announcement_len() {
            0 => self.records.clone(),
            _ => self.server.streamed().unwrap().to_vec(),
        }
    }

    /// What a client knows of the parameters.
    pub fn announced(&self) -> TapirParameters<F> {
        Tested::clients(&self.parameters)
    }

    /// The next generation if this one is used up.
    pub fn refill(&self, client: &mut TapirClient<F>) {
        if client.supply().left() == 0 {
            let generation = client.condense().unwrap();
            let parameters = client.parameters().clone();
            *client = TapirClient::load(parameters, generation, Kernels::detect()).unwrap();
        }
    }

    /// Both answers, as bytes.
    pub fn answer_bytes(&self, reserved: &Reserved<TapirQuery>) -> [Vec<u8>; 2] {
        answers_of(&self.server, &self.parameters, reserved)
    }

    pub fn decoded(&self, answers: &[Vec<u8>; 2]) -> Result<Vec<TapirAnswer>> {
        answers.iter().map(|bytes| Message::decode(&self.parameters, bytes)).collect()
    }

    /// Updates the table, and returns what clients are told.
    pub fn update(&mut self, written: &Written) -> TableDelta {
        let changes = self.write(written);
        let shape = changes.shape_after();
        let identity = identity(shape.records(), shape.record_len());
        let view = TableView::new(identity, &self.records).unwrap();
        let announced = TapirParameters::decode(&identity, &self.parameters.encode()).unwrap();
        let successor = self.server.successor(announced, view.into(), &changes, 1).unwrap();
        let (server, commitments) = successor.expect("it is cut as before");
        self.server = server;
        self.parameters = self.server.parameters().clone();
        changes.delta().with_commitments(commitments)
    }

    fn write(&mut self, written: &Written) -> TableChanges {
        let before = self.parameters.shape();
        let record_len = before.record_len() as usize;
        let last = written.last_key_value().map_or(0, |(index, _)| *index);
        let records = before.records().max(last + 1);
        let after = TableShape::new(records, before.record_len()).unwrap();
        self.records.resize(after.bytes() as usize, 0);
        let replaced = written.iter().map(|(index, record)| {
            let place = &mut self.records[*index as usize * record_len..][..record_len];
            let before = place.to_vec();
            place.copy_from_slice(record);
            (*index, before, record.clone())
        });
        TableChanges::new(before, after, replaced).unwrap()
    }

    /// One whole lookup, of the next generation if this one is used up.
    pub fn fetch(&mut self, client: &mut TapirClient<F>, index: u64) -> Record {
        self.refill(client);
        self.get(client, index).unwrap()
    }
}

/// What one server, in both roles, answers to a lookup's queries, as bytes.
pub(super) fn answers_of<F: Form>(
    server: &TapirServer<F>,
    parameters: &TapirParameters<F>,
    reserved: &Reserved<TapirQuery>,
) -> [Vec<u8>; 2] {
    assert_eq!(reserved.queries.len(), 2);
    [0, 1].map(|role| {
        let query = &reserved.queries[usize::from(role)];
        let bytes = Message::<TapirParameters<F>>::encode(query);
        let len = <TapirQuery as Message<TapirParameters<F>>>::encoded_len(parameters);
        assert_eq!(bytes.len(), len);
        let query = Message::decode(parameters, &bytes).unwrap();
        let answer = server.answer(Role(role), &[query]).remove(0);
        let bytes = Message::<TapirParameters<F>>::encode(&answer);
        assert_eq!(bytes.len(), <TapirAnswer as Message<_>>::encoded_len(parameters));
        bytes
    })
}
