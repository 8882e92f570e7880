//! Query and answer.
//!
//! A query names one record in each partition and splits the partitions into two halves of equal
//! size: `p` bits for the split, and an offset for each *pair* of partitions, the k-th of either
//! half. The halves may share offsets: it is enough that a server sees a balanced split, and
//! offsets that are uniform and independent of it. This halves the upload.

use super::DummySubsetsParameters;
use crate::contract::Message;
use privet_core::codec::Reader;
use privet_core::hints::offsets;
use privet_core::{Error, Result};
use zeroize::Zeroizing;

/// A split of the partitions into halves 0 and 1, and an offset for the k-th partition of either
/// half.
///
/// Encoding: `p` bits, then `p/2` offsets of `log2 s` bits each; each is a row of bits, from the
/// lowest bit of each byte on, padded with zeros to whole bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DummySubsetsQuery {
    /// Bit `k`: the half that partition `k` belongs to.
    pub(crate) halves: Vec<u8>,
    pub(crate) offsets: Vec<u16>,
    pub(crate) offset_bits: u32,
}

/// The XOR of the named records of half 0, and that of half 1.
pub struct DummySubsetsAnswer {
    /// Two records.
    pub(crate) sums: Vec<u8>,
}

impl DummySubsetsAnswer {
    /// The sum of one half.
    pub(crate) fn half(&self, half: bool) -> Zeroizing<Vec<u8>> {
        let len = self.sums.len() / 2;
        let start = usize::from(half) * len;
        Zeroizing::new(self.sums[start..start + len].to_vec())
    }
}

impl Message<DummySubsetsParameters> for DummySubsetsQuery {
    fn encoded_len(parameters: &DummySubsetsParameters) -> usize {
        halves_len(parameters) + offsets_len(parameters)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(
            self.halves.len() + offsets::packed_len(self.offsets.len(), self.offset_bits),
        );
        bytes.extend_from_slice(&self.halves);
        offsets::pack(&self.offsets, self.offset_bits, &mut bytes);
        bytes
    }

    fn decode(parameters: &DummySubsetsParameters, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a query of dummy subsets", bytes);
        let halves = reader.bytes(halves_len(parameters))?.to_vec();
        let packed = reader.bytes(offsets_len(parameters))?;
        reader.finish()?;

        let partitions = parameters.partitions() as usize;
        let (count, offset_bits) = (partitions / 2, parameters.cut().offset_bits());
        let ones: u32 = halves.iter().map(|byte| byte.count_ones()).sum();
        if ones as usize != count || !offsets::padding_is_zero(&halves, partitions as u64) {
            return Err(Error::invalid_message(format!(
                "a query must split the {partitions} partitions into two halves of equal size"
            )));
        }
        let offsets = offsets::unpack(packed, count, offset_bits)?;
        Ok(Self { halves, offsets, offset_bits })
    }
}

impl Message<DummySubsetsParameters> for DummySubsetsAnswer {
    fn encoded_len(parameters: &DummySubsetsParameters) -> usize {
        2 * parameters.cut().record_len()
    }

    fn encode(&self) -> Vec<u8> {
        self.sums.clone()
    }

    fn decode(parameters: &DummySubsetsParameters, bytes: &[u8]) -> Result<Self> {
        let sums = Reader::all("an answer of dummy subsets", bytes, Self::encoded_len(parameters))?
            .to_vec();
        Ok(Self { sums })
    }
}

fn halves_len(parameters: &DummySubsetsParameters) -> usize {
    parameters.partitions().div_ceil(8) as usize
}

fn offsets_len(parameters: &DummySubsetsParameters) -> usize {
    offsets::packed_len(parameters.partitions() as usize / 2, parameters.cut().offset_bits())
}
