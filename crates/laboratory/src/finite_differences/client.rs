//! The client sends a random point to one server, and the same point plus the record's word to the
//! other.

use super::{
    FiniteDifferences, FiniteDifferencesAnswer, FiniteDifferencesParameters, FiniteDifferencesQuery,
};
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_schemes::contract::{Message, Record, SchemeOf, StatelessClient, of_all};
use zeroize::Zeroizing;

/// A client of one table.
pub struct FiniteDifferencesClient {
    parameters: FiniteDifferencesParameters,
}

/// The wanted record's word.
pub struct FiniteDifferencesPending {
    word: Secret<u64>,
}

impl FiniteDifferencesClient {
    /// A client that needs nothing but the parameters.
    pub fn new(parameters: FiniteDifferencesParameters) -> Self {
        Self { parameters }
    }

    /// The points `origin` and `origin ⊕ word`, one for each server.
    pub(super) fn points(&self, word: u64, origin: u64) -> [FiniteDifferencesQuery; 2] {
        let len = self.parameters.query_len();
        [origin, origin ^ word]
            .map(|point| FiniteDifferencesQuery { point: Zeroizing::new(point), len })
    }
}

impl StatelessClient for FiniteDifferencesClient {
    type Pending = FiniteDifferencesPending;

    /// # Panics
    /// If `index` was made for a larger table than this.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<FiniteDifferencesQuery>, FiniteDifferencesPending)> {
        let word = Secret::new(self.parameters.words().secret_word(index));
        let origin = Zeroizing::new(rng.next_u64() >> (64 - self.parameters.variables()));
        let queries = self.points(*word.expose(), *origin);
        Ok((queries.into(), FiniteDifferencesPending { word }))
    }

    /// XORs the entries at all subsets of the word that are within the ball, from both answers.
    /// There are 2^D of them, for every record. Their places follow from the word. So if answers
    /// are larger than the processor's caches, recovery takes somewhat longer for some records than
    /// for others. This happens after the answers are in.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the answers belong to other
    /// parameters, or there is not one from each server. A wrong answer gives a wrong record,
    /// without an error.
    fn recover(
        &self,
        pending: FiniteDifferencesPending,
        answers: &[FiniteDifferencesAnswer],
    ) -> Result<Record> {
        let [one, other] = of_all("finite differences", answers)?;
        let expected = FiniteDifferencesAnswer::encoded_len(&self.parameters);
        if answers.iter().any(|answer| answer.entries.len() != expected) {
            return Err(Error::api_misuse("an answer was read under other parameters than these"));
        }
        let (word, mut subset) = (*pending.word.expose(), 0u64);
        let (ball, record_len) =
            (self.parameters.ball(), self.parameters.shape().record_len() as usize);
        let mut record = Zeroizing::new(vec![0u8; record_len]);
        // All subsets of the word, in ascending order.
        loop {
            if subset.count_ones() <= ball.radius() {
                let place = ball.rank(subset) as usize;
                for entries in [&one.entries, &other.entries] {
                    if self.parameters.one_bit() {
                        record[0] ^= entries[place / 8] >> (place % 8) & 1;
                    } else {
                        let entry = &entries[place * record_len..][..record_len];
                        record.iter_mut().zip(entry).for_each(|(sum, byte)| *sum ^= byte);
                    }
                }
            }
            subset = subset.wrapping_sub(word) & word;
            if subset == 0 {
                if self.parameters.one_bit() {
                    record[0] |= self.parameters.zero();
                }
                return Ok(record);
            }
        }
    }
}

impl SchemeOf for FiniteDifferencesClient {
    type Scheme = FiniteDifferences;
}
