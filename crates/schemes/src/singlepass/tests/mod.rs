//! A table, its two servers and a client in one place, and what the tests ask of them.

mod edits;
mod known_answers;
mod lookups;
mod messages;
mod state;
mod statistics;
pub(crate) mod views;

use super::*;
use crate::contract::{
    Answerer as _, AskingPreparation as _, HintedClient as _, Parameters as _, Preparation as _,
    PreparingServer as _, Record, ReservationId, Reserved, Role,
};
use crate::offline::StreamConsumer as _;
use crate::test_tables::Sequence;
use crate::test_tables::{identity, public_bytes};
use privet_core::{RecordIndex, Result, SecretRng, TableShape, TableView};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A table of known bytes, and its server, which takes both roles.
pub(super) struct World {
    pub(super) parameters: SinglePassParameters,
    pub(super) records: Vec<u8>,
    pub(super) server: SinglePassServer,
    pub(super) rng: SecretRng,
}

pub(super) fn cut(records: u64, record_len: u64, partition_records: u64) -> SinglePassParameters {
    let shape = TableShape::new(records, record_len).unwrap();
    SinglePassParameters::with_partition_records(shape, partition_records).unwrap()
}

impl World {
    pub(super) fn new(records: u64, record_len: u64) -> Self {
        let shape = TableShape::new(records, record_len).unwrap();
        Self::with(SinglePassParameters::new(shape).unwrap())
    }

    pub(super) fn with(parameters: SinglePassParameters) -> Self {
        let records = public_bytes("a table", parameters.shape().bytes() as usize);
        let server = server(&parameters, &records);
        let rng = SecretRng::from_fixed_seed([3; 32]);
        Self { parameters, records, server, rng }
    }

    pub(super) fn preparation(&mut self) -> SinglePassPreparation {
        let kernels = Kernels::detect();
        SinglePassPreparation::begin(self.parameters.clone(), [0; 32], &mut self.rng, kernels)
            .unwrap()
    }

    /// The reply to a request, over the wire and back.
    pub(super) fn reply(&self, request: &SinglePassRequest) -> Vec<u8> {
        let bytes = request.encode();
        assert_eq!(bytes.len(), SinglePassRequest::encoded_len(&self.parameters));
        let request = SinglePassRequest::decode(&self.parameters, &bytes).unwrap();
        let reply = self.server.prepare(&request).unwrap().encode();
        assert_eq!(reply.len(), SinglePassReply::encoded_len(&self.parameters));
        reply
    }

    pub(super) fn generation(&mut self) -> Zeroizing<Vec<u8>> {
        let mut preparation = self.preparation();
        let reply = self.reply(&preparation.request());
        preparation.absorb(0, &reply).unwrap();
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }

    pub(super) fn load(&self, generation: &Zeroizing<Vec<u8>>) -> SinglePassClient {
        let kernels = Kernels::detect();
        SinglePassClient::load(self.parameters.clone(), generation.clone(), kernels).unwrap()
    }

    pub(super) fn client(&mut self) -> SinglePassClient {
        let generation = self.generation();
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
        let len = self.parameters.record_len();
        &self.records[index as usize * len..][..len]
    }

    /// Reserves, and applies the change.
    pub(super) fn reserve(
        &mut self,
        client: &mut SinglePassClient,
        index: u64,
    ) -> Result<Reserved<SinglePassQuery>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// Both answers, over the wire and back.
    pub(super) fn answers(&self, reserved: &Reserved<SinglePassQuery>) -> Vec<SinglePassAnswer> {
        assert_eq!(reserved.queries.len(), 2);
        let over_the_wire = |(query, role): (&SinglePassQuery, u8)| {
            let bytes = query.encode();
            assert_eq!(bytes.len(), SinglePassQuery::encoded_len(&self.parameters));
            let query = SinglePassQuery::decode(&self.parameters, &bytes).unwrap();
            let answer = self.server.answer(Role(role), &[query]).remove(0).encode();
            assert_eq!(answer.len(), SinglePassAnswer::encoded_len(&self.parameters));
            SinglePassAnswer::decode(&self.parameters, &answer).unwrap()
        };
        reserved.queries.iter().zip(0..).map(over_the_wire).collect()
    }

    /// Settles and applies, and returns the change.
    pub(super) fn settle(
        &self,
        client: &mut SinglePassClient,
        reserved: &Reserved<SinglePassQuery>,
    ) -> Zeroizing<Vec<u8>> {
        let change = client.settle(reserved.id, &self.answers(reserved)).unwrap();
        client.apply(&change).unwrap();
        change
    }

    /// One whole lookup.
    pub(super) fn get(&mut self, client: &mut SinglePassClient, index: u64) -> Record {
        let reserved = self.reserve(client, index).unwrap();
        self.settle(client, &reserved);
        client.take_record(reserved.id).expect("nothing else is under way").unwrap()
    }

    /// That every hint is the XOR of the records that the permutations say.
    pub(super) fn assert_hints_fit(&self, client: &SinglePassClient) {
        assert!(self.hints_fit(client), "hints and permutations do not fit each other");
    }

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

pub(super) fn server(parameters: &SinglePassParameters, records: &[u8]) -> SinglePassServer {
    let shape = parameters.shape();
    let identity = identity(shape.records(), shape.record_len());
    let view = TableView::new(identity, records).unwrap();
    SinglePassServer::new(parameters.clone(), view, Kernels::detect()).unwrap()
}
