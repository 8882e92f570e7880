//! A table, its two servers and a client in one place, and what the tests ask of them.

// Browsers have one of the two forms, and of its tests the known answers and what needs no other.
#![cfg_attr(target_family = "wasm", allow(dead_code, unused_imports))]

#[cfg(not(target_family = "wasm"))]
mod adversaries;
mod known_answers;
#[cfg(not(target_family = "wasm"))]
mod lookups;
#[cfg(not(target_family = "wasm"))]
mod messages;
mod planted;
#[cfg(not(target_family = "wasm"))]
mod selective_failure;
#[cfg(not(target_family = "wasm"))]
mod state;
mod statistics;
#[cfg(not(target_family = "wasm"))]
mod updates;

pub(super) use planted::Planted;

use super::*;
use crate::contract::{
    Answerer as _, Endless as _, HintedClient as _, Message, Parameters as _, Preparation as _,
    Record, Reserved, Role, Setup as _, StreamingServer as _, Succession as _, Verifying as _,
};
use crate::offline::StreamConsumer as _;
use crate::singlepass::SinglePassParameters;
use crate::test_tables::{identity, public_bytes};
use privet_core::commit::VectorCommitment as _;
use privet_core::commit::merkle::Merkle;
#[cfg(not(target_family = "wasm"))]
use privet_core::commit::pointproofs::{Openings, Pointproofs, ReferenceString};
use privet_core::{
    RecordIndex, Replacement, Result, SecretRng, TableChanges, TableDelta, TableShape, TableUpdate,
    TableView,
};
use privet_kernels::Kernels;
#[cfg(not(target_family = "wasm"))]
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// How the tests make a form's commitment.
pub(super) trait TestForm: Form {
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

#[cfg(not(target_family = "wasm"))]
impl TestForm for PointproofsForm {
    fn commitment(pass: &SinglePassParameters) -> Pointproofs {
        let reference = Arc::clone(reference_string());
        Pointproofs::new(vectors_of(pass).unwrap(), reference, Openings::OnDemand).unwrap()
    }
}

/// For partitions of up to 16 records.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn reference_string() -> &'static Arc<ReferenceString> {
    static STRING: OnceLock<Arc<ReferenceString>> = OnceLock::new();
    STRING.get_or_init(|| {
        let mut rng = SecretRng::from_fixed_seed([5; 32]);
        Arc::new(ReferenceString::generate(16, &mut rng).unwrap())
    })
}

pub(super) fn parameters<F: TestForm>(
    records: u64,
    record_len: u64,
    partition_records: u64,
) -> TapirParameters<F> {
    let shape = TableShape::new(records, record_len).unwrap();
    let pass = SinglePassParameters::with_partition_records(shape, partition_records).unwrap();
    let commitment = F::commitment(&pass);
    TapirParameters::new(pass, commitment).unwrap()
}

pub(super) fn server<F: Form>(parameters: &TapirParameters<F>, records: &[u8]) -> TapirServer<F> {
    let shape = parameters.shape();
    let identity = identity(shape.records(), shape.record_len());
    let view = TableView::new(identity, records).unwrap();
    let setup = TapirSetup::new(parameters.clone(), view, Kernels::detect()).unwrap();
    let kept = setup.precompute(&|_| ()).unwrap().kept;
    setup.finish(&kept.as_bytes()).unwrap()
}

/// A table of known bytes, and the server, which takes both roles.
pub(super) struct World<F: Form> {
    pub(super) parameters: TapirParameters<F>,
    pub(super) records: Vec<u8>,
    pub(super) server: TapirServer<F>,
    pub(super) rng: SecretRng,
}

impl<F: TestForm> World<F> {
    pub(super) fn new(records: u64, record_len: u64, partition_records: u64) -> Self {
        let parameters = parameters::<F>(records, record_len, partition_records);
        let records = public_bytes("a table", parameters.shape().bytes() as usize);
        let server = server(&parameters, &records);
        Self { parameters, records, server, rng: SecretRng::from_fixed_seed([3; 32]) }
    }

    /// What clients stream.
    pub(super) fn stream(&self) -> Vec<u8> {
        match self.parameters.commitment().announcement_len() {
            0 => self.records.clone(),
            _ => self.server.streamed().to_vec(),
        }
    }

    /// What a client knows of the parameters.
    pub(super) fn announced(&self) -> TapirParameters<F> {
        let shape = self.parameters.shape();
        let identity = identity(shape.records(), shape.record_len());
        TapirParameters::decode(&identity, &self.parameters.encode()).unwrap()
    }

    pub(super) fn preparation(&mut self) -> TapirPreparation<F> {
        let digest = *blake3::hash(&self.stream()).as_bytes();
        TapirPreparation::begin(self.announced(), digest, &mut self.rng, Kernels::detect()).unwrap()
    }

    pub(super) fn generation(&mut self) -> Zeroizing<Vec<u8>> {
        let mut preparation = self.preparation();
        preparation.absorb(0, &self.stream()).unwrap();
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }

    pub(super) fn load(&self, generation: &Zeroizing<Vec<u8>>) -> TapirClient<F> {
        TapirClient::load(self.announced(), generation.clone(), Kernels::detect()).unwrap()
    }

    pub(super) fn client(&mut self) -> TapirClient<F> {
        let generation = self.generation();
        self.load(&generation)
    }

    pub(super) fn index(&self, index: u64) -> RecordIndex {
        RecordIndex::new(index, self.parameters.shape()).unwrap()
    }

    pub(super) fn record(&self, index: u64) -> &[u8] {
        let len = self.parameters.pass().record_len();
        &self.records[index as usize * len..][..len]
    }

    /// The next generation if this one is used up.
    pub(super) fn refill(&self, client: &mut TapirClient<F>) {
        if client.supply().left() == 0 {
            let generation = client.condense().unwrap();
            let parameters = client.parameters().clone();
            *client = TapirClient::load(parameters, generation, Kernels::detect()).unwrap();
        }
    }

    /// Reserves, and applies the change.
    pub(super) fn reserve(
        &mut self,
        client: &mut TapirClient<F>,
        index: u64,
    ) -> Result<Reserved<TapirQuery>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// Both answers, as bytes.
    pub(super) fn answers(&self, reserved: &Reserved<TapirQuery>) -> [Vec<u8>; 2] {
        answers_of(&self.server, &self.parameters, reserved)
    }

    pub(super) fn decoded(&self, answers: &[Vec<u8>; 2]) -> Result<Vec<TapirAnswer>> {
        answers.iter().map(|bytes| Message::decode(&self.parameters, bytes)).collect()
    }

    /// Settles and applies, and returns the change.
    pub(super) fn settle(
        &self,
        client: &mut TapirClient<F>,
        reserved: &Reserved<TapirQuery>,
    ) -> Zeroizing<Vec<u8>> {
        let answers = self.decoded(&self.answers(reserved)).unwrap();
        let change = client.settle(reserved.id, &answers).unwrap();
        client.apply(&change).unwrap();
        change
    }

    /// Updates the table, and says what clients are told.
    pub(super) fn update(&mut self, update: &TableUpdate) -> TableDelta {
        let changes = self.write(update);
        let shape = update.shape_after();
        let identity = identity(shape.records(), shape.record_len());
        let view = TableView::new(identity, &self.records).unwrap();
        let announced = TapirParameters::decode(&identity, &self.parameters.encode()).unwrap();
        let successor = self.server.successor(announced, view, &changes, 1).unwrap();
        let (server, commitments) = successor.expect("it is cut as before");
        self.server = server;
        self.parameters = self.server.parameters().clone();
        changes.delta().unwrap().with_commitments(commitments)
    }

    fn write(&mut self, update: &TableUpdate) -> TableChanges {
        let (before, after) = (update.shape(), update.shape_after());
        let record_len = before.record_len() as usize;
        self.records.resize(after.bytes() as usize, 0);
        let replaced = update.written().iter().map(|(index, record)| {
            let place = &mut self.records[*index as usize * record_len..][..record_len];
            let before = place.to_vec();
            place.copy_from_slice(record);
            Replacement { index: *index, before, after: record.clone() }
        });
        let mut changes = TableChanges::none(before);
        changes.then(after, replaced.collect::<Vec<_>>()).unwrap();
        changes
    }

    /// One whole lookup.
    pub(super) fn get(&mut self, client: &mut TapirClient<F>, index: u64) -> Record {
        self.refill(client);
        let reserved = self.reserve(client, index).unwrap();
        self.settle(client, &reserved);
        client.take_record(reserved.id).expect("the lookup is settled").unwrap()
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
