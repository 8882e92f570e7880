//! Query and answer: those of SinglePass; the answer has a proof.

use super::{Form, TapirParameters};
use crate::contract::Message;
use crate::singlepass::{SinglePassAnswer, SinglePassQuery};
use privet_core::Result;
use privet_core::codec::Reader;
use privet_core::commit::{Opened, VectorCommitment};

/// One record of each partition: encoded as SinglePass encodes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapirQuery(pub(crate) SinglePassQuery);

/// The records that a query names, in order, and the proof that they belong to the commitments.
pub struct TapirAnswer {
    /// `Q` records.
    pub(crate) records: Vec<u8>,
    /// The form's proof, for all of them.
    pub(crate) proof: Vec<u8>,
}

impl<F: Form> Message<TapirParameters<F>> for TapirQuery {
    fn encoded_len(parameters: &TapirParameters<F>) -> usize {
        SinglePassQuery::encoded_len(parameters.pass())
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    fn decode(parameters: &TapirParameters<F>, bytes: &[u8]) -> Result<Self> {
        SinglePassQuery::decode(parameters.pass(), bytes).map(Self)
    }
}

impl TapirAnswer {
    /// Its claim about the records at the given offsets.
    pub(super) fn opened<'a>(&'a self, offsets: &'a [u16]) -> Opened<'a> {
        Opened { offsets, records: &self.records, proof: &self.proof }
    }
}

impl<F: Form> Message<TapirParameters<F>> for TapirAnswer {
    fn encoded_len(parameters: &TapirParameters<F>) -> usize {
        SinglePassAnswer::encoded_len(parameters.pass()) + parameters.commitment().proof_len()
    }

    /// `records ‖ proof`
    fn encode(&self) -> Vec<u8> {
        [&self.records[..], &self.proof].concat()
    }

    fn decode(parameters: &TapirParameters<F>, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("an answer of TAPIR", bytes);
        let records = SinglePassAnswer::encoded_len(parameters.pass());
        let records = reader.bytes(records)?.to_vec();
        let proof = reader.bytes(parameters.commitment().proof_len())?.to_vec();
        reader.finish()?;
        Ok(Self { records, proof })
    }
}
