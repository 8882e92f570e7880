//! A table, its server and a client in one place, and what the tests ask of them, in both forms of answers.

mod edits;
mod known_answers;
mod lookups;
mod messages;
mod numbers;
mod state;
mod statistics;

use super::*;
use crate::contract::{
    Answerer as _, HintedClient as _, Message as _, Parameters as _, Preparation as _, Record,
    ReservationId, Reserved, Role, StreamingServer as _,
};
use crate::offline::StreamConsumer as _;
use privet_core::{
    Epoch, RecordIndex, Result, SecretRng, TableDigest, TableId, TableIdentity, TableShape,
    TableView,
};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// Runs a test for either form.
macro_rules! for_both_forms {
    ($name:ident) => {
        mod $name {
            #[test]
            fn single_parity() {
                super::$name::<crate::piano::SingleParity>();
            }

            #[test]
            fn all_parities() {
                super::$name::<crate::piano::AllParities>();
            }
        }
    };
}
pub(super) use for_both_forms;

/// A table of bytes that follow from their place, and its server.
pub(super) struct World<F> {
    pub(super) parameters: PianoParameters,
    pub(super) records: Vec<u8>,
    pub(super) server: PianoServer<F>,
    pub(super) rng: SecretRng,
}

pub(super) fn identity(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(1), digest: TableDigest([8; 32]), shape }
}

pub(super) fn shape(records: u64, record_len: u64) -> TableShape {
    TableShape::new(records, record_len).unwrap()
}

/// Parameters of a cut into chunks of `chunk_records`.
pub(super) fn cut(records: u64, record_len: u64, chunk_records: u64) -> PianoParameters {
    let identity = identity(shape(records, record_len));
    PianoParameters::with_chunk_records(&identity, chunk_records).unwrap()
}

impl<F: AnswerForm> World<F> {
    pub(super) fn new(records: u64, record_len: u64) -> Self {
        Self::with(PianoParameters::new(&identity(shape(records, record_len))).unwrap())
    }

    pub(super) fn with(parameters: PianoParameters) -> Self {
        let mut records = vec![0; parameters.shape().bytes() as usize];
        blake3::Hasher::new().update(b"table").finalize_xof().fill(&mut records);
        Self::of(parameters, records)
    }

    pub(super) fn of(parameters: PianoParameters, records: Vec<u8>) -> Self {
        let view = TableView::new(identity(parameters.shape()), &records).unwrap();
        let server = PianoServer::new(parameters.clone(), view, Kernels::detect()).unwrap();
        Self { parameters, records, server, rng: SecretRng::from_fixed_seed([3; 32]) }
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        *blake3::hash(self.server.streamed()).as_bytes()
    }

    pub(super) fn preparation_with(&self, rng: &mut SecretRng) -> PianoPreparation<F> {
        let kernels = Kernels::detect();
        PianoPreparation::begin(self.parameters.clone(), self.digest(), rng, kernels).unwrap()
    }

    pub(super) fn preparation(&mut self) -> PianoPreparation<F> {
        let mut rng = SecretRng::from_fixed_seed([self.rng.next_u32() as u8; 32]);
        self.preparation_with(&mut rng)
    }

    /// The hints of a window, streamed in pieces of `piece` bytes.
    pub(super) fn generation(&mut self, piece: usize) -> Vec<u8> {
        let mut key = [0; 32];
        self.rng.fill(&mut key);
        let mut preparation = self.preparation_with(&mut SecretRng::from_fixed_seed(key));
        for piece in self.server.streamed().chunks(piece) {
            preparation.absorb(preparation.next_offset(), piece).unwrap();
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap().to_vec()
    }

    pub(super) fn load(&self, generation: &[u8]) -> PianoClient<F> {
        let generation = Zeroizing::new(generation.to_vec());
        PianoClient::load(self.parameters.clone(), generation, Kernels::detect()).unwrap()
    }

    pub(super) fn client(&mut self) -> PianoClient<F> {
        let generation = self.generation(1 << 16);
        self.load(&generation)
    }

    pub(super) fn index(&self, index: u64) -> RecordIndex {
        RecordIndex::new(index, self.parameters.shape()).unwrap()
    }

    pub(super) fn position(&self, index: u64) -> u64 {
        self.parameters.permutation().position(&self.index(index))
    }

    /// The records that lie in a chunk, in the order of their places.
    pub(super) fn indices_in_chunk(&self, chunk: u32) -> Vec<u64> {
        let start = u64::from(chunk) * u64::from(self.parameters.chunk_records());
        let end = (start + u64::from(self.parameters.chunk_records()))
            .min(self.parameters.shape().records());
        (start..end).map(|at| self.parameters.permutation().index_at(at)).collect()
    }

    pub(super) fn record(&self, index: u64) -> &[u8] {
        let len = self.parameters.record_len();
        &self.records[index as usize * len..][..len]
    }

    /// Reserves, and applies the change.
    pub(super) fn reserve(
        &mut self,
        client: &mut PianoClient<F>,
        index: u64,
    ) -> Result<Reserved<PianoQuery<F>>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// Over the wire and back.
    pub(super) fn answer(&self, query: &PianoQuery<F>) -> PianoAnswer<F> {
        let bytes = query.encode();
        assert_eq!(bytes.len(), PianoQuery::<F>::encoded_len(&self.parameters));
        let query = PianoQuery::decode(&self.parameters, &bytes).unwrap();
        let answer = self.server.answer(Role(0), &[query]).remove(0).encode();
        PianoAnswer::decode(&self.parameters, &answer).unwrap()
    }

    /// Settles, applies and takes the record.
    pub(super) fn settle(
        &self,
        client: &mut PianoClient<F>,
        reserved: &Reserved<PianoQuery<F>>,
    ) -> Option<Result<Record>> {
        let answer = self.answer(&reserved.queries[0]);
        let change = client.settle(reserved.id, &[answer]).unwrap();
        client.apply(&change).unwrap();
        client.take_record(reserved.id)
    }

    /// One whole lookup.
    pub(super) fn get(&mut self, client: &mut PianoClient<F>, index: u64) -> Result<Record> {
        let reserved = self.reserve(client, index)?;
        self.settle(client, &reserved).expect("nothing else is under way")
    }
}

/// What each hint in use contains: for each chunk the offset of its record there.
pub(super) fn all_contents<F: AnswerForm>(client: &PianoClient<F>) -> Vec<Vec<u16>> {
    let hints = (0..client.table.len()).filter_map(|row| client.table.hint(row));
    let contents = hints.map(|hint| {
        let chunks = client.parameters.chunks() as usize;
        let (mut selects, mut offsets) = (vec![0; chunks], vec![0; chunks]);
        let records = client.parameters.chunk_records();
        let key = client.table.key();
        Kernels::detect().subset_rebuild(key, hint.id, records, &mut selects, &mut offsets);
        if let Some(extra) = hint.extra {
            let (chunk, offset) = client.parameters.cut().place(extra);
            offsets[chunk as usize] = offset as u16;
        }
        offsets
    });
    contents.collect()
}

/// All that there is of a client's state.
pub(super) fn snapshot<F: AnswerForm>(
    client: &PianoClient<F>,
) -> (Vec<u8>, Vec<Vec<u16>>, Vec<ReservationId>, u64) {
    (client.table.bytes().to_vec(), all_contents(client), client.open(), client.supply().used)
}
