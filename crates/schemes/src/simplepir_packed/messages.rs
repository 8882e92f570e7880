//! Query and answer: strings of bits, their lengths fixed by the parameters.

use super::SimplePirPackedParameters;
use crate::contract::Message;
use privet_core::Result;
use privet_core::codec::{BitReader, BitWriter};
use privet_core::ring::{Form, PublicKeys};

/// An encrypted unit vector, a word for each column, and the keys for the answer. If masks are on
/// demand, there is another vector under the same secret, a word for each column of the masks'
/// matrix. All of it is one string of bits: the words of both vectors, of
/// [`query_bits`](SimplePirPackedParameters::query_bits) each, the packing key's 2048 words of 45
/// bits, the fold key's 2048 words of 35 bits.
pub struct SimplePirPackedQuery {
    pub(super) form: Form,
    pub(super) query_bits: u32,
    pub(super) words: Vec<u32>,
    pub(super) keys: PublicKeys,
}

/// A symbol of 10 bits for each row, as one string of bits. If masks are on demand, the rows of
/// their matrix follow those of the table.
pub struct SimplePirPackedAnswer {
    pub(super) form: Form,
    pub(super) symbols: Vec<u16>,
}

impl Message<SimplePirPackedParameters> for SimplePirPackedQuery {
    fn encoded_len(parameters: &SimplePirPackedParameters) -> usize {
        let words = parameters.query_words() as usize;
        bits_of_query(parameters.form(), parameters.query_bits(), words).div_ceil(8)
    }

    fn encode(&self) -> Vec<u8> {
        let Self { form, query_bits, words, keys } = self;
        let len = bits_of_query(*form, *query_bits, words.len()).div_ceil(8);
        let mut writer = BitWriter::with_capacity(len);
        writer.push(words.iter().map(|word| u64::from(*word)), *query_bits);
        for (key, bits) in [&keys.packing, &keys.fold].into_iter().zip(form.key_bits()) {
            writer.push(key.iter().copied(), bits);
        }
        writer.finish()
    }

    fn decode(parameters: &SimplePirPackedParameters, bytes: &[u8]) -> Result<Self> {
        let (form, query_bits) = (parameters.form(), parameters.query_bits());
        let count = parameters.query_words() as usize;
        let bits = bits_of_query(form, query_bits, count);
        let mut reader = BitReader::new("a query of packed SimplePIR", bytes, bits)?;
        let words = reader.numbers(count, query_bits)?.map(|word| word as u32).collect();
        let mut key = |bits| Ok(reader.numbers(form.degree(), bits)?.collect());
        let [packing_bits, fold_bits] = form.key_bits();
        let keys = PublicKeys { packing: key(packing_bits)?, fold: key(fold_bits)? };
        Ok(Self { form, query_bits, words, keys })
    }
}

fn bits_of_query(form: Form, query_bits: u32, words: usize) -> usize {
    let [packing_bits, fold_bits] = form.key_bits();
    words * query_bits as usize + form.degree() * (packing_bits + fold_bits) as usize
}

impl Message<SimplePirPackedParameters> for SimplePirPackedAnswer {
    fn encoded_len(parameters: &SimplePirPackedParameters) -> usize {
        bits_of_answer(parameters.form(), parameters.answer_symbols() as usize).div_ceil(8)
    }

    fn encode(&self) -> Vec<u8> {
        let len = bits_of_answer(self.form, self.symbols.len()).div_ceil(8);
        let mut writer = BitWriter::with_capacity(len);
        let symbols = self.symbols.iter().map(|symbol| u64::from(*symbol));
        writer.push(symbols, self.form.answer_bits());
        writer.finish()
    }

    fn decode(parameters: &SimplePirPackedParameters, bytes: &[u8]) -> Result<Self> {
        let (form, rows) = (parameters.form(), parameters.answer_symbols() as usize);
        let bits = bits_of_answer(form, rows);
        let mut reader = BitReader::new("an answer of packed SimplePIR", bytes, bits)?;
        let symbols = reader.numbers(rows, form.answer_bits())?;
        Ok(Self { form, symbols: symbols.map(|symbol| symbol as u16).collect() })
    }
}

fn bits_of_answer(form: Form, rows: usize) -> usize {
    rows * form.answer_bits() as usize
}
