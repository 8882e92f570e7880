//! The client: encrypts the number of the wanted column, and reads its record from the answer.

use super::{SimplePir, SimplePirAnswer, SimplePirParameters, SimplePirQuery};
use crate::contract::{Ahead, Record, SchemeOf, StatelessClient, of_all};
use crate::hint_rows::hint_times_secret;
use crate::offline::{HintSource, check_len};
use privet_core::lwe::{DecryptionKey, ZeroVector, encrypt_zero_vector};
use privet_core::{RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of one table in one epoch, with its hint.
pub struct SimplePirClient {
    parameters: SimplePirParameters,
    hint: Arc<dyn HintSource>,
    kernels: Kernels,
}

/// What recovering one record needs: the key, and the row at which the record begins.
pub struct SimplePirPending {
    key: DecryptionKey,
    first_row: Secret<u64>,
}

impl SimplePirClient {
    /// A client that reads its hint from `hint`.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the hint has another size than the
    /// parameters prescribe.
    pub fn new(
        parameters: SimplePirParameters,
        hint: Arc<dyn HintSource>,
        kernels: Kernels,
    ) -> Result<Self> {
        check_len("the hint", hint.len(), parameters.hint_bytes())?;
        Ok(Self { parameters, hint, kernels })
    }
}

impl StatelessClient for SimplePirClient {
    type Pending = SimplePirPending;

    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<SimplePirQuery>, SimplePirPending)> {
        self.fill(self.blank_maker()(rng), index)
    }

    fn recover(&self, pending: SimplePirPending, answers: &[SimplePirAnswer]) -> Result<Record> {
        let [answer] = of_all("SimplePIR", answers)?;
        let record_len = self.parameters.shape().record_len() as usize;
        let first_row = *pending.first_row.expose() as usize;
        let mut mask = Zeroizing::new(vec![0; record_len]);
        let secret = pending.key.secret();
        hint_times_secret(self.kernels, &*self.hint, first_row, secret, &mut mask)?;
        let words = &answer.words[first_row..first_row + record_len];
        let record = words
            .iter()
            .zip(mask.iter())
            .map(|(word, mask)| pending.key.decrypt(*word, *mask))
            .collect();
        Ok(Zeroizing::new(record))
    }
}

impl Ahead for SimplePirClient {
    type Blank = ZeroVector;

    fn blank_maker(&self) -> impl Fn(&mut SecretRng) -> ZeroVector + Send + Sync + 'static {
        let (parameters, kernels) = (self.parameters.clone(), self.kernels);
        move |rng| encrypt_zero_vector(kernels, parameters.matrix(), parameters.encryption(), rng)
    }

    fn copy_to_rehearse(blank: &ZeroVector) -> ZeroVector {
        blank.copy_to_rehearse()
    }

    fn fill(
        &self,
        blank: ZeroVector,
        index: &RecordIndex,
    ) -> Result<(Vec<SimplePirQuery>, SimplePirPending)> {
        blank.check(self.parameters.encryption())?;
        let (column, first_row) = self.parameters.place(index);
        let (words, key) = blank.into_unit_vector(column);
        let pending = SimplePirPending { key, first_row: Secret::new(first_row) };
        Ok((vec![SimplePirQuery { words }], pending))
    }
}

impl SchemeOf for SimplePirClient {
    type Scheme = SimplePir;
}
