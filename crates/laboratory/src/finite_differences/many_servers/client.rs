//! The client asks each server about another point on a line in a secret direction, and
//! interpolates.

use super::encoding::Encoding;
use super::field::MOST_PER_BYTE;
use super::recovery::Recovery;
use super::{FiniteDifferencesMany, ManyServersAnswer, ManyServersParameters, ManyServersQuery};
use crate::combinations::Ball;
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_schemes::contract::{Message, Record, SchemeOf, StatelessClient};
use zeroize::Zeroizing;

/// A client of one table.
pub struct ManyServersClient {
    parameters: ManyServersParameters,
    encoding: Encoding,
    recovery: Recovery,
    /// The sets of at most K of a record's D variables.
    subsets: Ball,
    unpacked: Vec<[u8; MOST_PER_BYTE]>,
}

/// What a client keeps of a lookup.
pub struct ManyServersPending {
    /// The word of the record that is wanted.
    word: Secret<u64>,
}

impl ManyServersClient {
    /// A client that needs nothing but the parameters.
    ///
    /// # Errors
    /// None with valid parameters.
    pub fn new(parameters: ManyServersParameters) -> Result<Self> {
        let subsets = Ball::new(parameters.degree(), parameters.ball().radius())?;
        let (encoding, recovery) = (Encoding::new(&parameters), Recovery::new(&parameters));
        let unpacked = parameters.packing().unpacked();
        Ok(Self { parameters, encoding, recovery, subsets, unpacked })
    }

    /// The points `origin + b·word` for all servers b. `origin` has an element of the field for
    /// each variable.
    pub(super) fn points(&self, word: u64, origin: &[u8]) -> Vec<ManyServersQuery> {
        let order = u64::from(self.parameters.field());
        let point = |server: u64| {
            let mut number = Zeroizing::new(0u64);
            for (variable, coordinate) in origin.iter().enumerate().rev() {
                let moved = u64::from(*coordinate) + server * (word >> variable & 1);
                // The sum is below 2·q. There is no branch, because the sum follows from the word.
                let (less, borrowed) = moved.overflowing_sub(order);
                let keeps = u64::from(borrowed).wrapping_neg();
                *number = *number * order + ((moved & keeps) | (less & !keeps));
            }
            ManyServersQuery { point: number }
        };
        (0..self.parameters.servers().into()).map(point).collect()
    }

    /// For each server, and each set of at most K of the word's variables: the server, the size of
    /// the set, and its place in the ball. Their number is the same for every word.
    fn entries_of(&self, word: u64) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        let mut variables = Zeroizing::new(vec![0u32; self.parameters.degree() as usize + 1]);
        let mut found = 0;
        for variable in 0..self.parameters.variables() {
            // Each variable is written, and stays if it is one of the word's.
            variables[found] = variable;
            found += (word >> variable & 1) as usize;
        }
        let chosen = self.subsets.words().map(move |subset| {
            let places = variables.iter().enumerate();
            let set =
                places.fold(0, |set, (place, variable)| set | (subset >> place & 1) << variable);
            (subset.count_ones() as usize, self.parameters.ball().rank(set))
        });
        let servers = self.parameters.servers() as usize;
        chosen.flat_map(move |(size, place)| (0..servers).map(move |server| (server, size, place)))
    }
}

impl StatelessClient for ManyServersClient {
    type Pending = ManyServersPending;

    /// Draws one element of the field for each variable, the lowest first.
    ///
    /// # Panics
    /// If `index` was made for a larger table than this polynomial can hold.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<ManyServersQuery>, ManyServersPending)> {
        let word = Secret::new(self.parameters.words().secret_word(index));
        let coordinates = 0..self.parameters.variables();
        let order = u64::from(self.parameters.field());
        let origin: Zeroizing<Vec<u8>> =
            Zeroizing::new(coordinates.map(|_| rng.below(order) as u8).collect());
        Ok((self.points(*word.expose(), &origin), ManyServersPending { word }))
    }

    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the answers belong to other
    /// parameters, or there is not one from each server. A wrong answer gives a wrong record,
    /// without an error.
    ///
    /// The places of the entries that are added follow from the word. So if answers are larger than
    /// the processor's caches, recovery takes somewhat longer for some records than for others.
    /// This happens after the answers are in.
    fn recover(
        &self,
        pending: ManyServersPending,
        answers: &[ManyServersAnswer],
    ) -> Result<Record> {
        if answers.len() != self.parameters.servers() as usize {
            return Err(Error::api_misuse(format!(
                "this scheme needs one answer from each of its {} servers, but {} were given",
                self.parameters.servers(),
                answers.len()
            )));
        }
        let expected = ManyServersAnswer::encoded_len(&self.parameters);
        if answers.iter().any(|answer| answer.entries.len() != expected) {
            return Err(Error::api_misuse("an answer was read under other parameters than these"));
        }
        let (entry_len, per_byte) =
            (self.parameters.entry_len(), self.parameters.packing().per_byte());
        // The coefficient of each entry that is part of the record, with its answer and its place
        // there.
        let terms = self.entries_of(*pending.word.expose()).map(|(server, size, place)| {
            let coefficient = u64::from(self.recovery.coefficient(server, size));
            (server, place as usize * entry_len, coefficient)
        });
        let terms: Zeroizing<Vec<(usize, usize, u64)>> = Zeroizing::new(terms.collect());
        let order = u64::from(self.parameters.field());
        let mut record = Zeroizing::new(vec![0; self.parameters.shape().record_len() as usize]);
        // A record may be long, and its symbols take several times as much memory. So it is read
        // piece by piece.
        let (of_record, of_entry) = self.encoding.piece();
        for (piece, record) in record.chunks_mut(of_record).enumerate() {
            let from = piece * of_entry;
            let len = of_entry.min(entry_len - from);
            // The sums stay far below 2^64: each product of two elements is at most 144, and there
            // are no more of them than entries in all answers.
            let mut sums = Zeroizing::new(vec![0u64; len * per_byte]);
            for (server, start, coefficient) in terms.iter() {
                let entry = &answers[*server].entries[start + from..][..len];
                for (sums, byte) in sums.chunks_exact_mut(per_byte).zip(entry) {
                    for (sum, symbol) in sums.iter_mut().zip(self.unpacked[usize::from(*byte)]) {
                        *sum += coefficient * u64::from(symbol);
                    }
                }
            }
            let symbols: Zeroizing<Vec<u8>> =
                Zeroizing::new(sums.iter().map(|sum| (sum % order) as u8).collect());
            self.encoding.read(&symbols, record);
        }
        Ok(record)
    }
}

impl SchemeOf for ManyServersClient {
    type Scheme = FiniteDifferencesMany;
}
