//! Query and answer: strings of bits, their lengths fixed by the parameters.

use super::CompressedParameters;
use crate::contract::Message;
use crate::finite_differences::FiniteDifferencesQuery;
use privet_core::codec::{BitReader, BitWriter};
use privet_core::ring::{Form, PublicKeys};
use privet_core::{Error, Result};

/// A point, and the encryption of χ(e₂) for all e₂, with the keys for the answer.
pub struct CompressedQuery {
    pub(super) point: FiniteDifferencesQuery,
    pub(super) form: Form,
    pub(super) query_bits: u32,
    pub(super) words: Vec<u32>,
    pub(super) keys: PublicKeys,
}

/// The masks of all blocks, and a symbol for each bit of each sum.
pub struct CompressedAnswer {
    pub(super) form: Form,
    pub(super) masks: Vec<u32>,
    pub(super) symbols: Vec<u16>,
}

impl Message<CompressedParameters> for CompressedQuery {
    fn encoded_len(parameters: &CompressedParameters) -> usize {
        usize::try_from(parameters.query_bytes()).unwrap_or(usize::MAX)
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = BitWriter::default();
        writer.push(self.words.iter().map(|word| u64::from(*word)), self.query_bits);
        let keys = [&self.keys.packing, &self.keys.fold];
        for (key, bits) in keys.into_iter().zip(self.form.key_bits()) {
            writer.push(key.iter().copied(), bits);
        }
        [self.point.encode(), writer.finish()].concat()
    }

    fn decode(parameters: &CompressedParameters, bytes: &[u8]) -> Result<Self> {
        let point_len = FiniteDifferencesQuery::encoded_len(parameters.plain());
        let Some((point, encrypted)) = bytes.split_at_checked(point_len) else {
            return Err(Error::invalid_message("a compressed query ends within its point"));
        };
        let point = FiniteDifferencesQuery::decode(parameters.plain(), point)?;
        let (form, query_bits) = (parameters.form(), parameters.query_bits());
        let (count, [packing_bits, fold_bits]) = (parameters.query_words(), form.key_bits());
        let bits = count as usize * query_bits as usize
            + form.degree() * (packing_bits + fold_bits) as usize;
        let mut reader = BitReader::new("a compressed query", encrypted, bits)?;
        let words = reader.numbers(count as usize, query_bits)?.map(|word| word as u32).collect();
        let mut key = |bits| Ok(reader.numbers(form.degree(), bits)?.collect());
        let keys = PublicKeys { packing: key(packing_bits)?, fold: key(fold_bits)? };
        Ok(Self { point, form, query_bits, words, keys })
    }
}

impl Message<CompressedParameters> for CompressedAnswer {
    fn encoded_len(parameters: &CompressedParameters) -> usize {
        usize::try_from(parameters.answer_bytes()).unwrap_or(usize::MAX)
    }

    fn encode(&self) -> Vec<u8> {
        let mut writer = BitWriter::default();
        writer.push(self.masks.iter().map(|word| u64::from(*word)), self.form.mask_bits());
        writer.push(self.symbols.iter().map(|word| u64::from(*word)), self.form.answer_bits());
        writer.finish()
    }

    fn decode(parameters: &CompressedParameters, bytes: &[u8]) -> Result<Self> {
        let form = parameters.form();
        let bits = usize::try_from(parameters.answer_bits()).unwrap_or(usize::MAX);
        let mut reader = BitReader::new("a compressed answer", bytes, bits)?;
        let of_masks = parameters.blocks() as usize * form.degree();
        let masks = reader.numbers(of_masks, form.mask_bits())?.map(|word| word as u32).collect();
        let symbols = reader.numbers(parameters.answer_symbols() as usize, form.answer_bits())?;
        Ok(Self { form, masks, symbols: symbols.map(|symbol| symbol as u16).collect() })
    }
}
