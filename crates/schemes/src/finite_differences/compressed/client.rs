//! The client: encrypts which differences are wanted, and adds up what comes back.

use super::{CompressedAnswer, CompressedParameters, CompressedQuery};
use crate::contract::Record;
use crate::finite_differences::FiniteDifferencesClient;
use privet_core::ring::{BlockSymbols, EncryptionFactors, PublicKeys, RingKey, encrypt_zero};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A client of one table.
pub struct CompressedClient {
    parameters: CompressedParameters,
    plain: FiniteDifferencesClient,
    factors: EncryptionFactors,
    kernels: Kernels,
}

/// The wanted record's word, and the key for each server's answer.
pub struct CompressedPending {
    word: Secret<u64>,
    keys: [RingKey; 2],
}

impl CompressedPending {
    /// The keys, for tests of what a query gives away.
    #[cfg(test)]
    pub(super) fn keys(&self) -> &[RingKey; 2] {
        &self.keys
    }
}

impl CompressedClient {
    /// A client that needs nothing but the parameters. Expands the table's public polynomials.
    pub fn new(parameters: CompressedParameters, kernels: Kernels) -> Self {
        let plain = FiniteDifferencesClient::new(parameters.plain().clone());
        let public = parameters.public(kernels);
        let factors = EncryptionFactors::new(kernels, parameters.form(), &public);
        Self { parameters, plain, factors, kernels }
    }

    /// The queries for both servers. No branch and no address depends on the index.
    ///
    /// # Panics
    /// If `index` was made for a larger table than this.
    pub fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> ([CompressedQuery; 2], CompressedPending) {
        let plain = self.parameters.plain();
        let word = Secret::new(plain.words().secret_word(index));
        let origin = Zeroizing::new(rng.next_u64() >> (64 - plain.variables()));
        let wanted = self.wanted(*word.expose());
        // A secret for each server: under one secret, both servers' words would differ by noise.
        let [one, other] = self.plain.points(*word.expose(), *origin).map(|point| {
            let (words, keys, key) = self.encrypt(&wanted, rng);
            let (form, query_bits) = (self.parameters.form(), self.parameters.query_bits());
            (CompressedQuery { point, form, query_bits, words, keys }, key)
        });
        ([one.0, other.0], CompressedPending { word, keys: [one.1, other.1] })
    }

    /// χ(e₂) for all e₂.
    fn wanted(&self, word: u64) -> Zeroizing<Vec<u8>> {
        let is_subset = |high: u64| (high & !word).ct_eq(&0).unwrap_u8();
        Zeroizing::new(self.parameters.highs().map(is_subset).collect())
    }

    /// Encrypts bits, one for each column, under a fresh secret.
    pub(super) fn encrypt(
        &self,
        bits: &[u8],
        rng: &mut SecretRng,
    ) -> (Vec<u32>, PublicKeys, RingKey) {
        let (lens, query_bits) = ([self.parameters.query_words()], self.parameters.query_bits());
        encrypt_zero(self.kernels, &self.factors, &lens, query_bits, rng).into_bits(bits)
    }

    /// Decrypts the sums for all e₁, and adds up those of e₁ ⊆ x.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the answers belong to other
    /// parameters, or there is not one from each server. A wrong answer gives a wrong record,
    /// without an error.
    pub fn recover(
        &self,
        pending: CompressedPending,
        answers: &[CompressedAnswer],
    ) -> Result<Record> {
        if answers.len() != 2 {
            return Err(Error::api_misuse(format!(
                "finite differences need one answer from each of the two servers, but {} were given",
                answers.len()
            )));
        }
        let (parameters, word) = (&self.parameters, *pending.word.expose());
        let (form, record_bits) = (parameters.form(), parameters.record_bits() as usize);
        let wanted = parameters.lows().map(|low| (low & !word).ct_eq(&0).unwrap_u8());
        let wanted: Zeroizing<Vec<u8>> = Zeroizing::new(wanted.collect());
        let mut record = Zeroizing::new(vec![0; parameters.plain().shape().record_len() as usize]);
        let mut bits = Zeroizing::new(vec![0; parameters.answer_symbols() as usize]);
        for (answer, key) in answers.iter().zip(&pending.keys) {
            let masks = parameters.blocks() as usize * form.degree();
            if (answer.symbols.len(), answer.masks.len()) != (bits.len(), masks) {
                return Err(Error::api_misuse(
                    "an answer was read under other parameters than these",
                ));
            }
            let blocks =
                answer.masks.chunks(form.degree()).zip(answer.symbols.chunks(form.degree()));
            for ((mask, symbols), bits) in blocks.zip(bits.chunks_mut(form.degree())) {
                let symbols = BlockSymbols { vector: 0, mask, first_row: 0, symbols };
                key.decrypt_bits(self.kernels, &self.factors, symbols, bits);
            }
            for (sum, wanted) in bits.chunks(record_bits).zip(wanted.iter()) {
                for (place, bit) in sum.iter().enumerate() {
                    record[place / 8] ^= (bit & wanted) << (place % 8);
                }
            }
        }
        if parameters.plain().one_bit() {
            record[0] |= parameters.plain().zero();
        }
        Ok(record)
    }
}
