//! A scheme for tests. It is private but useless: a server answers every query with its whole
//! table.
//!
//! It shows what a new scheme takes: this folder, and a line in the registry's table. Its
//! `tests.rs` plans, serves and queries it through the registry, which knows nothing else about it.

mod descriptor;
mod tests;

use crate::SchemeId;
use crate::contract::{
    Answerer, Message, Offline, Parameters, ParametersOf, Record, Role, Scheme, SchemeOf,
    StatelessClient,
};
use crate::offline::OfflinePhase;
use privet_core::codec::Reader;
use privet_core::{Error, RecordIndex, Result, SecretRng, TableIdentity, TableShape};

pub(crate) struct Toy;

impl Scheme for Toy {
    const ID: SchemeId = SchemeId::named("toy");
    type Parameters = ToyParameters;
    type Query = Hello;
    type Answer = WholeTable;

    fn servers(_: &ToyParameters) -> usize {
        1
    }
}

impl Offline for Toy {
    fn offline_phase(_: &ToyParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}

#[derive(Clone)]
pub(crate) struct ToyParameters {
    shape: TableShape,
    /// Zeros after the table in each answer.
    padding: u32,
}

impl ToyParameters {
    fn new(identity: &TableIdentity, padding: u32) -> Result<Self> {
        match padding {
            0..=64 => Ok(Self { shape: identity.shape, padding }),
            _ => Err(Error::peer_misbehaved("a toy's answers have at most 64 bytes too many")),
        }
    }
}

impl Parameters for ToyParameters {
    fn encode(&self) -> Vec<u8> {
        self.padding.to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a toy's parameters", bytes);
        let padding = reader.u32()?;
        reader.finish()?;
        Self::new(identity, padding)
    }
}

/// A query: the same byte for every record.
pub(crate) struct Hello;

impl Message<ToyParameters> for Hello {
    fn encoded_len(_: &ToyParameters) -> usize {
        1
    }

    fn encode(&self) -> Vec<u8> {
        vec![b'?']
    }

    fn decode(_: &ToyParameters, bytes: &[u8]) -> Result<Self> {
        match bytes {
            b"?" => Ok(Self),
            _ => Err(Error::invalid_message("a toy is asked with a question mark")),
        }
    }
}

/// An answer: all records, and the padding.
pub(crate) struct WholeTable(Vec<u8>);

impl Message<ToyParameters> for WholeTable {
    fn encoded_len(parameters: &ToyParameters) -> usize {
        parameters.shape.bytes() as usize + parameters.padding as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.0.clone()
    }

    fn decode(parameters: &ToyParameters, bytes: &[u8]) -> Result<Self> {
        match bytes.len() == Self::encoded_len(parameters) {
            true => Ok(Self(bytes.to_vec())),
            false => Err(Error::invalid_message("a toy's answer is not of its size")),
        }
    }
}

struct ToyServer {
    parameters: ToyParameters,
    answer: Vec<u8>,
}

impl SchemeOf for ToyServer {
    type Scheme = Toy;
}

impl Answerer for ToyServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &ParametersOf<Self> {
        &self.parameters
    }

    fn answer(&self, _: Role, queries: &[Hello]) -> Vec<WholeTable> {
        queries.iter().map(|_| WholeTable(self.answer.clone())).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.answer.len() as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.answer]
    }
}

struct ToyClient(TableShape);

impl SchemeOf for ToyClient {
    type Scheme = Toy;
}

impl StatelessClient for ToyClient {
    type Pending = u64;

    fn query(&self, index: &RecordIndex, _: &mut SecretRng) -> Result<(Vec<Hello>, u64)> {
        Ok((vec![Hello], index.expose()))
    }

    fn recover(&self, index: u64, answers: &[WholeTable]) -> Result<Record> {
        let len = self.0.record_len() as usize;
        Ok(Record::new(answers[0].0[index as usize * len..][..len].to_vec()))
    }
}
