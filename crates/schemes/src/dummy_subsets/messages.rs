//! Query and answer.
//!
//! A query names one record in each partition and splits the partitions into two halves of equal size: `p` bits for the split, and an offset for each *pair* of
//! partitions, the k-th of either half. The halves may share offsets because all that matters is that a server sees a balanced split and offsets
//! that are uniform and independent of it; this halves the upload.

use super::DummySubsetsParameters;
use crate::contract::Message;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use zeroize::Zeroizing;

/// A split of the partitions into halves 0 and 1, and an offset for the k-th partition of either half.
///
/// Encoding: `p` bits, then `p/2` offsets of `log2 s` bits each; either is a row of bits from the lowest of each byte on, filled up with zeros to
/// whole bytes.
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
        let mut bytes = self.halves.clone();
        let (mut buffer, mut filled) = (0u64, 0);
        for offset in &self.offsets {
            buffer |= u64::from(*offset) << filled;
            filled += self.offset_bits;
            while filled >= 8 {
                bytes.push(buffer as u8);
                buffer >>= 8;
                filled -= 8;
            }
        }
        if filled > 0 {
            bytes.push(buffer as u8);
        }
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
        if ones as usize != count || !padding_is_zero(&halves, partitions) {
            return Err(Error::invalid_message(format!(
                "a query must split the {partitions} partitions into two halves of equal size"
            )));
        }
        if !padding_is_zero(packed, count * offset_bits as usize) {
            return Err(Error::invalid_message("a query's offsets must be filled up with zeros"));
        }
        // Four bytes from where an offset begins hold all of it: 16 bits, and 7 before them. The last ones need bytes beyond the end.
        let mut padded = packed.to_vec();
        padded.extend([0; 4]);
        let mask = (1u32 << offset_bits) - 1;
        let offset = |number: usize| {
            let bit = number * offset_bits as usize;
            let [a, b, c, d] = *padded[bit / 8..].first_chunk().unwrap_or(&[0; 4]);
            (u32::from_le_bytes([a, b, c, d]) >> (bit % 8) & mask) as u16
        };
        Ok(Self { halves, offsets: (0..count).map(offset).collect(), offset_bits })
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
        let mut reader = Reader::new("an answer of dummy subsets", bytes);
        let sums = reader.bytes(Self::encoded_len(parameters))?.to_vec();
        reader.finish()?;
        Ok(Self { sums })
    }
}

fn halves_len(parameters: &DummySubsetsParameters) -> usize {
    parameters.partitions().div_ceil(8) as usize
}

fn offsets_len(parameters: &DummySubsetsParameters) -> usize {
    let bits = u64::from(parameters.partitions() / 2) * u64::from(parameters.cut().offset_bits());
    bits.div_ceil(8) as usize
}

/// Whether the bits of `bytes` from `bits` on are zero; there are fewer than eight of them.
fn padding_is_zero(bytes: &[u8], bits: usize) -> bool {
    bits.is_multiple_of(8) || bytes.last().is_none_or(|last| last >> (bits % 8) == 0)
}
