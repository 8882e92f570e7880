//! Query and answer: a key, and a record's worth of bytes.

use super::DpfParameters;
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_core::dpf::Key;
use zeroize::Zeroizing;

/// One server's key: its encoding is that of [`Key`], whose size follows from the number of
/// records.
pub struct DpfQuery {
    pub(crate) key: Key,
}

/// The XOR of the records that a key selects: `record_len` bytes. One answer alone is noise, but
/// two give the record, so it is erased when dropped.
pub struct DpfAnswer {
    pub(crate) sum: Zeroizing<Vec<u8>>,
}

impl Message<DpfParameters> for DpfQuery {
    fn encoded_len(parameters: &DpfParameters) -> usize {
        Key::encoded_len(parameters.domain())
    }

    fn encode(&self) -> Vec<u8> {
        self.key.encode()
    }

    fn decode(parameters: &DpfParameters, bytes: &[u8]) -> Result<Self> {
        Key::decode(parameters.domain(), bytes).map(|key| Self { key })
    }
}

impl Message<DpfParameters> for DpfAnswer {
    fn encoded_len(parameters: &DpfParameters) -> usize {
        parameters.shape().record_len() as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.sum.to_vec()
    }

    fn decode(parameters: &DpfParameters, bytes: &[u8]) -> Result<Self> {
        let sum = Zeroizing::new(
            Reader::all("a DPF-PIR answer", bytes, Self::encoded_len(parameters))?.to_vec(),
        );
        Ok(Self { sum })
    }
}
