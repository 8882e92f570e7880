//! Query and answer, in both forms.
//!
//! A query is a row of offsets, one for each chunk of the table, or one for each chunk except the
//! wanted record's. Nothing in it shows which chunk that is.

use super::{AnswerForm, PianoParameters};
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_core::hints::offsets::{pack, packed_len, unpack};
use std::marker::PhantomData;

/// Uniform offsets. With the form [`SingleParity`](super::SingleParity) there is one for each
/// chunk, with [`AllParities`](super::AllParities) one fewer.
///
/// Encoding: `log2 s` bits for each, a row of bits, from the lowest bit of each byte on, padded
/// with zeros to whole bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PianoQuery<F> {
    pub(super) offsets: Vec<u16>,
    pub(super) offset_bits: u32,
    pub(super) form: PhantomData<F>,
}

/// With the form [`SingleParity`](super::SingleParity), one record: the XOR of those that the query
/// names. With [`AllParities`](super::AllParities), one for each chunk: the XOR in the case that
/// this chunk is left out.
pub struct PianoAnswer<F> {
    pub(super) parities: Vec<u8>,
    pub(super) form: PhantomData<F>,
}

impl<F: AnswerForm> PianoQuery<F> {
    pub(super) fn new(parameters: &PianoParameters, offsets: Vec<u16>) -> Self {
        Self { offsets, offset_bits: parameters.offset_bits(), form: PhantomData }
    }

    /// How many offsets a query has.
    pub(super) fn count(parameters: &PianoParameters) -> usize {
        let chunks = parameters.chunks() as usize;
        if F::REPLACES_THE_WANTED { chunks } else { chunks - 1 }
    }
}

impl<F: AnswerForm> Message<PianoParameters> for PianoQuery<F> {
    fn encoded_len(parameters: &PianoParameters) -> usize {
        packed_len(Self::count(parameters), parameters.offset_bits())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(packed_len(self.offsets.len(), self.offset_bits));
        pack(&self.offsets, self.offset_bits, &mut bytes);
        bytes
    }

    fn decode(parameters: &PianoParameters, bytes: &[u8]) -> Result<Self> {
        let offsets = unpack(bytes, Self::count(parameters), parameters.offset_bits())
            .map_err(|error| error.within("a query of Piano"))?;
        Ok(Self::new(parameters, offsets))
    }
}

impl<F: AnswerForm> Message<PianoParameters> for PianoAnswer<F> {
    fn encoded_len(parameters: &PianoParameters) -> usize {
        let parities = if F::REPLACES_THE_WANTED { 1 } else { parameters.chunks() as usize };
        parities * parameters.record_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.parities.clone()
    }

    fn decode(parameters: &PianoParameters, bytes: &[u8]) -> Result<Self> {
        let parities =
            Reader::all("an answer of Piano", bytes, Self::encoded_len(parameters))?.to_vec();
        Ok(Self { parities, form: PhantomData })
    }
}
