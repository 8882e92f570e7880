//! A table, its server and a client in one place, and what the tests ask of them.

mod known_answers;
mod lookups;
mod messages;
mod state;
pub(in crate::dummy_subsets) mod statistics;
pub(in crate::dummy_subsets) mod views;

use super::query::testing;
use super::*;
use crate::contract::{
    Answerer as _, HintedClient as _, Message as _, Parameters as _, Preparation as _, Record,
    ReservationId, Reserved, Role,
};
use crate::offline::StreamConsumer as _;
use crate::test_tables::Sequence;
use privet_core::hints::{Change, Exchange};
use privet_core::{
    Epoch, RecordIndex, Result, SecretRng, TableDigest, TableId, TableIdentity, TableShape,
    TableView,
};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A table of bytes that follow from their place, and its server.
pub(super) struct World {
    pub(super) parameters: DummySubsetsParameters,
    pub(super) records: Vec<u8>,
    pub(super) server: DummySubsetsServer,
    pub(super) rng: SecretRng,
}

pub(super) fn identity(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(1), digest: TableDigest([8; 32]), shape }
}

impl World {
    pub(super) fn new(records: u64, record_len: u64) -> Self {
        let shape = TableShape::new(records, record_len).unwrap();
        Self::with(DummySubsetsParameters::new(shape).unwrap())
    }

    pub(super) fn with(parameters: DummySubsetsParameters) -> Self {
        let shape = parameters.shape();
        let mut records = vec![0; shape.bytes() as usize];
        blake3::Hasher::new().update(b"table").finalize_xof().fill(&mut records);
        let view = TableView::new(identity(shape), &records).unwrap();
        let server = DummySubsetsServer::new(parameters.clone(), view, Kernels::detect()).unwrap();
        let rng = SecretRng::from_fixed_seed([3; 32]);
        Self { parameters, records, server, rng }
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.records).as_bytes()
    }

    pub(super) fn preparation(&mut self) -> DummySubsetsPreparation {
        DummySubsetsPreparation::begin(
            self.parameters.clone(),
            self.digest(),
            &mut self.rng,
            Kernels::detect(),
        )
        .unwrap()
    }

    /// A generation, streamed in chunks of `chunk` bytes.
    pub(super) fn generation(&mut self, chunk: usize) -> Vec<u8> {
        let mut preparation = self.preparation();
        for chunk in self.records.chunks(chunk) {
            preparation.absorb(preparation.next_offset(), chunk).unwrap();
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap().to_vec()
    }

    pub(super) fn load(&self, generation: &[u8]) -> DummySubsetsClient {
        let generation = Zeroizing::new(generation.to_vec());
        DummySubsetsClient::load(self.parameters.clone(), generation, Kernels::detect()).unwrap()
    }

    pub(super) fn client(&mut self) -> DummySubsetsClient {
        let generation = self.generation(1 << 16);
        self.load(&generation)
    }

    pub(super) fn indices(&mut self, sequence: Sequence, count: u64) -> Vec<u64> {
        let records = self.parameters.shape().records();
        let partition = u64::from(self.parameters.partition_records());
        sequence.indices(records, partition, count, &mut self.rng)
    }

    pub(super) fn index(&self, index: u64) -> RecordIndex {
        RecordIndex::new(index, self.parameters.shape()).unwrap()
    }

    pub(super) fn record(&self, index: u64) -> &[u8] {
        let len = self.parameters.cut().record_len();
        &self.records[index as usize * len..][..len]
    }

    /// Reserves, and applies the change.
    pub(super) fn reserve(
        &mut self,
        client: &mut DummySubsetsClient,
        index: u64,
    ) -> Result<Reserved<DummySubsetsQuery>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// Over the wire and back.
    pub(super) fn answer(&self, query: &DummySubsetsQuery) -> DummySubsetsAnswer {
        let bytes = query.encode();
        assert_eq!(bytes.len(), DummySubsetsQuery::encoded_len(&self.parameters));
        let query = DummySubsetsQuery::decode(&self.parameters, &bytes).unwrap();
        let answer = self.server.answer(Role(0), &[query]).remove(0).encode();
        DummySubsetsAnswer::decode(&self.parameters, &answer).unwrap()
    }

    /// Settles, applies and takes the record.
    pub(super) fn settle(
        &self,
        client: &mut DummySubsetsClient,
        reserved: &Reserved<DummySubsetsQuery>,
    ) -> Option<Result<Record>> {
        let answer = self.answer(&reserved.queries[0]);
        let change = client.settle(reserved.id, &[answer]).unwrap();
        client.apply(&change).unwrap();
        client.take_record(reserved.id)
    }

    /// What all live hints of a client contain.
    pub(super) fn all_contents(client: &DummySubsetsClient) -> Vec<Vec<Option<u16>>> {
        testing::all_contents(&client.table, Kernels::detect())
    }

    /// Reads a change back.
    pub(super) fn decode(&self, change: &[u8]) -> Change {
        let len = self.parameters.shape().record_len() as usize;
        Change::decode(change, len, len).unwrap()
    }

    /// One whole lookup.
    pub(super) fn get(&mut self, client: &mut DummySubsetsClient, index: u64) -> Result<Record> {
        let reserved = self.reserve(client, index)?;
        self.settle(client, &reserved).expect("nothing else is under way")
    }
}
