//! The client: encrypts the number of the wanted column and of the record within it, and removes
//! two masks from the answer.

use super::{DoublePir, DoublePirAnswer, DoublePirParameters, DoublePirQuery};
use crate::contract::{Ahead, Record, SchemeOf, StatelessClient, of_all};
use crate::hint_rows::hint_times_secret;
use crate::offline::{HintSource, check_len};
use privet_core::codec::words_from_bytes;
use privet_core::lwe::{DecryptionKey, SECRET_DIMENSION, ZeroVector, encrypt_zero_vector};
use privet_core::{RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of one table in one epoch, with its hint.
pub struct DoublePirClient {
    parameters: DoublePirParameters,
    hint: Arc<dyn HintSource>,
    kernels: Kernels,
}

/// What recovering one record needs: the keys of both levels, and the record's number within its
/// column.
pub struct DoublePirPending {
    column: DecryptionKey,
    record: DecryptionKey,
    place: Secret<u64>,
}

impl DoublePirPending {
    /// The keys of the first and the second level, for tests of what a query gives away and of the
    /// noise.
    #[cfg(test)]
    pub(super) fn keys(&self) -> (&DecryptionKey, &DecryptionKey) {
        (&self.column, &self.record)
    }
}

impl DoublePirClient {
    /// A client that reads its hint from `hint`.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the hint has another size than the
    /// parameters prescribe.
    pub fn new(
        parameters: DoublePirParameters,
        hint: Arc<dyn HintSource>,
        kernels: Kernels,
    ) -> Result<Self> {
        check_len("the hint", hint.len(), parameters.hint_bytes())?;
        Ok(Self { parameters, hint, kernels })
    }
}

impl StatelessClient for DoublePirClient {
    type Pending = DoublePirPending;

    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<DoublePirQuery>, DoublePirPending)> {
        self.fill(self.blank_maker()(rng), index)
    }

    /// First the second level: the record's rows of the first hint, and its words of the first
    /// product. Then, with these, the first.
    fn recover(&self, pending: DoublePirPending, answers: &[DoublePirAnswer]) -> Result<Record> {
        let [answer] = of_all("DoublePIR", answers)?;
        let record_len = self.parameters.shape().record_len() as usize;
        let hint_rows = self.first_hint_rows(&pending.record, &answer.hint_rows)?;
        let words = if self.parameters.folds_first_product() {
            self.unfold(&pending.record, &answer.first)
        } else {
            let first_word = *pending.place.expose() as usize * record_len;
            Zeroizing::new(answer.first[first_word..first_word + record_len].to_vec())
        };
        let mut masks = Zeroizing::new(vec![0; record_len]);
        self.kernels.words_times_vector(&hint_rows, pending.column.secret(), &mut masks);
        let bytes = words.iter().zip(masks.iter());
        Ok(Zeroizing::new(bytes.map(|(word, mask)| pending.column.decrypt(*word, *mask)).collect()))
    }
}

impl Ahead for DoublePirClient {
    /// Of the first and of the second level.
    type Blank = [ZeroVector; 2];

    fn blank_maker(&self) -> impl Fn(&mut SecretRng) -> [ZeroVector; 2] + Send + Sync + 'static {
        let (parameters, kernels) = (self.parameters.clone(), self.kernels);
        move |rng| {
            let [of_column, of_record] = parameters.encryption();
            [
                encrypt_zero_vector(kernels, parameters.first_matrix(), of_column, rng),
                encrypt_zero_vector(kernels, parameters.second_matrix(), of_record, rng),
            ]
        }
    }

    fn copy_to_rehearse(blank: &[ZeroVector; 2]) -> [ZeroVector; 2] {
        blank.each_ref().map(ZeroVector::copy_to_rehearse)
    }

    fn fill(
        &self,
        [first, second]: [ZeroVector; 2],
        index: &RecordIndex,
    ) -> Result<(Vec<DoublePirQuery>, DoublePirPending)> {
        let [of_column, of_record] = self.parameters.encryption();
        first.check(of_column)?;
        second.check(of_record)?;
        let (column, place) = self.parameters.place(index);
        let (column, column_key) = first.into_unit_vector(column);
        let (record, record_key) = second.into_unit_vector(place);
        let pending =
            DoublePirPending { column: column_key, record: record_key, place: Secret::new(place) };
        Ok((vec![DoublePirQuery { column, record }], pending))
    }
}

impl DoublePirClient {
    /// The record's rows of the first hint: 1024 words for each of its bytes. Reads the whole hint,
    /// whatever the record.
    fn first_hint_rows(&self, key: &DecryptionKey, masked: &[u32]) -> Result<Zeroizing<Vec<u32>>> {
        let mut masks = Zeroizing::new(vec![0; masked.len()]);
        hint_times_secret(self.kernels, &*self.hint, 0, key.secret(), &mut masks)?;
        let decrypted = masked.iter().zip(masks.iter());
        let bytes: Zeroizing<Vec<u8>> =
            Zeroizing::new(decrypted.map(|(word, mask)| key.decrypt(*word, *mask)).collect());
        Ok(Zeroizing::new(words_from_bytes(&bytes)))
    }

    /// The record's words of a folded first product.
    fn unfold(&self, key: &DecryptionKey, folded: &[u32]) -> Zeroizing<Vec<u32>> {
        let bytes_per_record = 4 * self.parameters.shape().record_len() as usize;
        let (hint_rows, masked) = folded.split_at(bytes_per_record * SECRET_DIMENSION);
        let mut masks = Zeroizing::new(vec![0; bytes_per_record]);
        self.kernels.words_times_vector(hint_rows, key.secret(), &mut masks);
        let decrypted = masked.iter().zip(masks.iter());
        let bytes: Zeroizing<Vec<u8>> =
            Zeroizing::new(decrypted.map(|(word, mask)| key.decrypt(*word, *mask)).collect());
        Zeroizing::new(words_from_bytes(&bytes))
    }
}

impl SchemeOf for DoublePirClient {
    type Scheme = DoublePir;
}
