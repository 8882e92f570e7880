//! The client: encrypts the number of the wanted column, and reads its record from the answer.

use super::{
    SimplePirPacked, SimplePirPackedAnswer, SimplePirPackedParameters, SimplePirPackedQuery,
};
use crate::contract::{Ahead, Record, SchemeOf, StatelessClient};
use crate::offline::{HintSource, check_len};
use privet_core::codec::BitReader;
use privet_core::ring::{Blank, EncryptionFactors, RingKey, encrypt_zero};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of one table in one epoch. It needs the masks only to read answers, so they may come
/// [later](crate::offline::LateHint) than its first query is sent.
pub struct SimplePirPackedClient {
    parameters: SimplePirPackedParameters,
    masks: Arc<dyn HintSource>,
    factors: Arc<EncryptionFactors>,
    kernels: Kernels,
}

/// What recovering one record needs: the key, and the row at which the record begins.
pub struct SimplePirPackedPending {
    key: RingKey,
    first_row: Secret<u64>,
}

impl SimplePirPackedPending {
    /// The key, for tests of what a query gives away.
    #[cfg(test)]
    pub(super) fn key(&self) -> &RingKey {
        &self.key
    }
}

impl SimplePirPackedClient {
    /// A client that reads the blocks' masks from `masks`. Expands and transforms the table's
    /// public polynomials, of which it keeps 12 bytes for each coefficient.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the masks have another size than the
    /// parameters prescribe.
    pub fn new(
        parameters: SimplePirPackedParameters,
        masks: Arc<dyn HintSource>,
        kernels: Kernels,
    ) -> Result<Self> {
        check_len("the hint", masks.len(), parameters.hint_bytes())?;
        let public = parameters.public(kernels);
        let factors = Arc::new(EncryptionFactors::new(kernels, parameters.form(), &public));
        Ok(Self { parameters, masks, factors, kernels })
    }
}

impl StatelessClient for SimplePirPackedClient {
    type Pending = SimplePirPackedPending;

    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<SimplePirPackedQuery>, SimplePirPackedPending)> {
        self.fill(self.blank_maker()(rng), index)
    }

    fn recover(
        &self,
        pending: SimplePirPackedPending,
        answers: &[SimplePirPackedAnswer],
    ) -> Result<Record> {
        let [answer] = answers else {
            return Err(Error::api_misuse(format!(
                "packed SimplePIR has one server, but {} answers were given",
                answers.len()
            )));
        };
        let degree = self.parameters.form().degree();
        let mut record = Zeroizing::new(vec![0; self.parameters.shape().record_len() as usize]);
        let (mut row, mut rest) = (*pending.first_row.expose() as usize, &mut record[..]);
        // A record may lie in several blocks.
        while !rest.is_empty() {
            let (block, first) = (row / degree, row % degree);
            let (here, later) = rest.split_at_mut(rest.len().min(degree - first));
            let symbols = &answer.symbols[row..row + here.len()];
            let (mask, Self { kernels, factors, .. }) = (self.mask(block)?, self);
            pending.key.decrypt(*kernels, factors, &mask, first, symbols, here);
            row += here.len();
            rest = later;
        }
        Ok(record)
    }
}

impl Ahead for SimplePirPackedClient {
    type Blank = Blank;

    fn blank_maker(&self) -> impl Fn(&mut SecretRng) -> Blank + Send + Sync + 'static {
        let (kernels, factors) = (self.kernels, Arc::clone(&self.factors));
        let (columns, query_bits) = (self.parameters.columns(), self.parameters.query_bits());
        move |rng| encrypt_zero(kernels, &factors, columns, query_bits, rng)
    }

    fn fill(
        &self,
        blank: Blank,
        index: &RecordIndex,
    ) -> Result<(Vec<SimplePirPackedQuery>, SimplePirPackedPending)> {
        let (form, query_bits) = (self.parameters.form(), self.parameters.query_bits());
        blank.check(form, self.parameters.columns(), query_bits)?;
        let (column, first_row) = self.parameters.place(index);
        let (words, keys, key) = blank.into_query(column);
        let pending = SimplePirPackedPending { key, first_row: Secret::new(first_row) };
        Ok((vec![SimplePirPackedQuery { form, query_bits, words, keys }], pending))
    }
}

impl SimplePirPackedClient {
    /// The mask of a block. Which block that is is secret, but the read is local: no server sees
    /// it.
    fn mask(&self, block: usize) -> Result<Vec<u32>> {
        let form = self.parameters.form();
        let mut bytes = vec![0; form.mask_bytes() as usize];
        self.masks.read_at((block * bytes.len()) as u64, &mut bytes)?;
        let mut reader = BitReader::new("a mask", &bytes, 8 * bytes.len())?;
        let words = reader.numbers(form.degree(), form.mask_bits())?;
        Ok(words.map(|word| word as u32).collect())
    }
}

impl SchemeOf for SimplePirPackedClient {
    type Scheme = SimplePirPacked;
}
