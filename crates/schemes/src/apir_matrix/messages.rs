//! Query and answer: a bit for each row, and a row's worth of bytes.

use super::ApirMatrixParameters;
use crate::contract::Message;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use zeroize::Zeroizing;

/// The rows that one server adds up: ⌈rows/8⌉ bytes. Bit `r % 8` of byte `r / 8`, counted from the
/// lowest, is for row `r`; bits beyond the last row are zero. One query alone is noise, but two
/// show the wanted row, so it is erased when dropped.
pub struct ApirMatrixQuery {
    pub(super) bits: Zeroizing<Vec<u8>>,
}

/// The XOR of the rows that a query selects: `row_len` bytes. One answer alone is noise, but two
/// give the wanted row, so it is erased when dropped.
pub struct ApirMatrixAnswer {
    pub(super) sum: Zeroizing<Vec<u8>>,
}

impl ApirMatrixQuery {
    /// Those bits of an encoding's last byte that are for rows.
    pub(super) fn bits_of_last_byte(parameters: &ApirMatrixParameters) -> u8 {
        u8::MAX >> (parameters.rows().wrapping_neg() % 8)
    }
}

impl Message<ApirMatrixParameters> for ApirMatrixQuery {
    fn encoded_len(parameters: &ApirMatrixParameters) -> usize {
        parameters.query_len() as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.bits.to_vec()
    }

    fn decode(parameters: &ApirMatrixParameters, bytes: &[u8]) -> Result<Self> {
        let bits = Reader::all("an APIR-Matrix query", bytes, Self::encoded_len(parameters))?;
        if bits.last().is_some_and(|last| last & !Self::bits_of_last_byte(parameters) != 0) {
            return Err(Error::invalid_message(
                "an APIR-Matrix query selects rows beyond the last one",
            ));
        }
        Ok(Self { bits: Zeroizing::new(bits.to_vec()) })
    }
}

impl Message<ApirMatrixParameters> for ApirMatrixAnswer {
    fn encoded_len(parameters: &ApirMatrixParameters) -> usize {
        parameters.row_len() as usize
    }

    fn encode(&self) -> Vec<u8> {
        self.sum.to_vec()
    }

    fn decode(parameters: &ApirMatrixParameters, bytes: &[u8]) -> Result<Self> {
        let sum = Zeroizing::new(
            Reader::all("an APIR-Matrix answer", bytes, Self::encoded_len(parameters))?.to_vec(),
        );
        Ok(Self { sum })
    }
}
