//! The client: a random point for one server, the same point moved by the record's word for the other.

use super::{
    FiniteDifferences, FiniteDifferencesAnswer, FiniteDifferencesParameters, FiniteDifferencesQuery,
};
use crate::contract::{Record, SchemeOf, StatelessClient};
use privet_core::{Error, RecordIndex, Result, SecretRng};
use zeroize::Zeroizing;

/// A client of one table.
pub struct FiniteDifferencesClient {
    parameters: FiniteDifferencesParameters,
}

/// The wanted record's word.
pub struct FiniteDifferencesPending {
    word: Zeroizing<u64>,
}

impl FiniteDifferencesClient {
    /// A client that needs nothing but the parameters.
    pub fn new(parameters: FiniteDifferencesParameters) -> Self {
        Self { parameters }
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
        let (variables, len) = (self.parameters.variables(), self.parameters.query_len());
        let word = Zeroizing::new(self.parameters.words().secret_word(index));
        let point = Zeroizing::new(rng.next_u64() >> (64 - variables));
        let moved = Zeroizing::new(*point ^ *word);
        let queries = [point, moved].map(|point| FiniteDifferencesQuery { point, len });
        Ok((queries.into(), FiniteDifferencesPending { word }))
    }

    /// The XOR of the entries at all subsets of the word that are within the ball, of both answers: 2^D of them in all, whichever record it is.
    fn recover(
        &self,
        pending: FiniteDifferencesPending,
        answers: &[FiniteDifferencesAnswer],
    ) -> Result<Record> {
        let [one, other] = answers else {
            return Err(Error::api_misuse(format!(
                "finite differences were asked of two servers, and need one answer of each; the number given was {}",
                answers.len()
            )));
        };
        let (ball, record_len) =
            (self.parameters.ball(), self.parameters.shape().record_len() as usize);
        let mut record = Zeroizing::new(vec![0u8; record_len]);
        // All subsets of the word, in ascending order.
        let mut subset = 0u64;
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
            subset = subset.wrapping_sub(*pending.word) & *pending.word;
            if subset == 0 {
                return Ok(record);
            }
        }
    }
}

impl SchemeOf for FiniteDifferencesClient {
    type Scheme = FiniteDifferences;
}
