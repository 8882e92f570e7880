//! Query and answer: a key, and a record's worth of bytes with its tag.

use super::ApirDpfParameters;
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_core::dpf::Key;
use privet_kernels::authenticated_sum::ELEMENT_BYTES;
use zeroize::Zeroizing;

/// One server's key: its encoding is that of [`Key`], whose size follows from the number of
/// records.
pub struct ApirDpfQuery {
    pub(crate) key: Key,
}

/// One server's two sums. One answer alone is noise, but two give the record, so it is erased when
/// dropped.
///
/// # Encoding
/// ```text
/// w bytes        the value: the XOR of the records that the key selects
/// e × 16 bytes   the tag: for each element of a record the sum of its products, little-endian
/// ```
/// The value leaves out the padding of a record's last element: it is zero in every record, so a
/// server has nothing to send for it. The tag includes it, because products fill the whole element.
/// Every string of the right length is a valid answer.
pub struct ApirDpfAnswer {
    pub(crate) value: Zeroizing<Vec<u8>>,
    pub(crate) tag: Zeroizing<Vec<u128>>,
}

impl Message<ApirDpfParameters> for ApirDpfQuery {
    fn encoded_len(parameters: &ApirDpfParameters) -> usize {
        Key::encoded_len(parameters.domain())
    }

    fn encode(&self) -> Vec<u8> {
        self.key.encode()
    }

    fn decode(parameters: &ApirDpfParameters, bytes: &[u8]) -> Result<Self> {
        Key::decode(parameters.domain(), bytes).map(|key| Self { key })
    }
}

impl Message<ApirDpfParameters> for ApirDpfAnswer {
    fn encoded_len(parameters: &ApirDpfParameters) -> usize {
        parameters.record_len() + parameters.elements() * ELEMENT_BYTES
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.value.len() + self.tag.len() * ELEMENT_BYTES);
        bytes.extend_from_slice(&self.value);
        bytes.extend(self.tag.iter().flat_map(|element| element.to_le_bytes()));
        bytes
    }

    fn decode(parameters: &ApirDpfParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("an APIR-DPF answer", bytes);
        let value = reader.bytes(parameters.record_len())?;
        let (tag, _) = reader.bytes(parameters.elements() * ELEMENT_BYTES)?.as_chunks();
        reader.finish()?;
        let tag = tag.iter().map(|element| u128::from_le_bytes(*element)).collect();
        Ok(Self { value: Zeroizing::new(value.to_vec()), tag: Zeroizing::new(tag) })
    }
}
