//! Query and answer: bare words, their number fixed by the parameters.

use super::SimplePirParameters;
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::Reader;
use privet_kernels::memory::little_endian_bytes;

/// An encrypted unit vector: one little-endian 32-bit word for each column, `4 · columns` bytes.
pub struct SimplePirQuery {
    pub(crate) words: Vec<u32>,
}

/// The byte matrix times a query: one little-endian 32-bit word for each row, `4 · rows` bytes.
pub struct SimplePirAnswer {
    pub(crate) words: Vec<u32>,
}

macro_rules! message_of_words {
    ($message:ident, $name:literal, $count:ident) => {
        impl Message<SimplePirParameters> for $message {
            fn encoded_len(parameters: &SimplePirParameters) -> usize {
                parameters.$count() as usize * 4
            }

            fn encode(&self) -> Vec<u8> {
                little_endian_bytes(&self.words).into_owned()
            }

            fn decode(parameters: &SimplePirParameters, bytes: &[u8]) -> Result<Self> {
                let mut reader = Reader::new($name, bytes);
                let words = reader.words(parameters.$count() as usize)?;
                reader.finish()?;
                Ok(Self { words })
            }
        }
    };
}

message_of_words!(SimplePirQuery, "a SimplePIR query", columns);
message_of_words!(SimplePirAnswer, "a SimplePIR answer", rows);
