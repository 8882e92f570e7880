//! A table, its two servers and a client in one place.

mod known_answers;
mod lookups;
mod state;
mod statistics;

use super::*;
use crate::contract::{
    Answerer as _, AskingPreparation as _, Endless as _, HintedClient as _, Preparation as _,
    PreparingServer as _, QueryMessage as _, Record, ReservationId, Reserved, Updatable as _,
};
use crate::offline::StreamConsumer as _;
use crate::test_tables::{identity, public_bytes, query_through_its_encoding};
use privet_core::{RecordIndex, Result, SecretRng, TableShape, TableView};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

pub(super) struct World {
    pub(super) parameters: DummySubsetsParameters,
    pub(super) records: Vec<u8>,
    pub(super) server: DummySubsetsTwoServer,
    pub(super) rng: SecretRng,
}

impl World {
    pub(super) fn new(records: u64, record_len: u64) -> Self {
        let shape = TableShape::new(records, record_len).unwrap();
        Self::with(DummySubsetsParameters::new(shape).unwrap())
    }

    pub(super) fn with(parameters: DummySubsetsParameters) -> Self {
        let records = public_bytes("two servers", parameters.shape().bytes() as usize);
        let server = Self::serve(&parameters, &records);
        Self { parameters, records, server, rng: SecretRng::from_fixed_seed([3; 32]) }
    }

    pub(super) fn serve(
        parameters: &DummySubsetsParameters,
        records: &[u8],
    ) -> DummySubsetsTwoServer {
        let view = TableView::new(
            identity(parameters.shape().records(), parameters.shape().record_len()),
            records,
        )
        .unwrap();
        DummySubsetsTwoServer::new(parameters.clone(), view, Kernels::detect()).unwrap()
    }

    pub(super) fn preparation(&mut self) -> DummySubsetsTwoPreparation {
        let parameters = self.parameters.clone();
        DummySubsetsTwoPreparation::begin(parameters, [0; 32], &mut self.rng, Kernels::detect())
            .unwrap()
    }

    /// The offline server's reply to the request that is due.
    pub(super) fn reply(&self, preparation: &mut DummySubsetsTwoPreparation) -> Vec<u8> {
        let request = preparation.request().encode();
        assert_eq!(request.len(), HintsRequest::encoded_len(&self.parameters));
        let request = HintsRequest::decode(&self.parameters, &request).unwrap();
        let reply = self.server.prepare(&request).unwrap().encode();
        assert_eq!(reply.len(), HintsReply::encoded_len(&self.parameters));
        reply
    }

    pub(super) fn generation(&mut self) -> Zeroizing<Vec<u8>> {
        let mut preparation = self.preparation();
        self.replies(&mut preparation)
    }

    /// What comes of a preparation that gets all its replies.
    pub(super) fn replies(
        &self,
        preparation: &mut DummySubsetsTwoPreparation,
    ) -> Zeroizing<Vec<u8>> {
        let len = DummySubsetsTwo::offline_phase(&self.parameters).len();
        while preparation.next_offset() < len {
            let reply = self.reply(preparation);
            preparation.absorb(preparation.next_offset(), &reply).unwrap();
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }

    pub(super) fn load(&self, generation: &[u8]) -> DummySubsetsTwoClient {
        let generation = Zeroizing::new(generation.to_vec());
        DummySubsetsTwoClient::load(self.parameters.clone(), generation, Kernels::detect()).unwrap()
    }

    pub(super) fn client(&mut self) -> DummySubsetsTwoClient {
        let generation = self.generation();
        self.load(&generation)
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
        client: &mut DummySubsetsTwoClient,
        index: u64,
    ) -> Result<Reserved<TwoServersQuery>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// Both servers' answers, over the wire and back.
    pub(super) fn answers(&self, queries: &[TwoServersQuery]) -> Vec<DummySubsetsAnswer> {
        let answer = |(role, query): (u8, &TwoServersQuery)| {
            let query = query_through_its_encoding(&self.parameters, Role(role), query);
            let answer = self.server.answer(Role(role), &[query]).remove(0).encode();
            DummySubsetsAnswer::decode(&self.parameters, &answer).unwrap()
        };
        (0u8..).zip(queries).map(answer).collect()
    }

    /// Settles and applies; returns the change.
    pub(super) fn settle(
        &self,
        client: &mut DummySubsetsTwoClient,
        reserved: &Reserved<TwoServersQuery>,
    ) -> Zeroizing<Vec<u8>> {
        let change = client.settle(reserved.id, &self.answers(&reserved.queries)).unwrap();
        client.apply(&change).unwrap();
        change
    }

    /// One whole lookup.
    pub(super) fn get(&mut self, client: &mut DummySubsetsTwoClient, index: u64) -> Result<Record> {
        let reserved = self.reserve(client, index)?;
        self.settle(client, &reserved);
        client.take_record(reserved.id).expect("nothing else is under way")
    }
}
