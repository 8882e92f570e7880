//! How a table is cut into partitions, and how many hints make failures rare enough.

use crate::contract::{Parameters, announced};
use crate::stored_hints::check_state;
use privet_core::hints::Partitions;
use privet_core::{Error, Result, TableDelta, TableIdentity, TableShape};

/// The default of λ_hint: no hint contains the wanted record with probability below e^-40.
pub const DEFAULT_HINT_SECURITY: u32 = 80;

/// Hints come in blocks of 64: a block of the pseudorandom function serves eight, and searches mark
/// hints by the bits of words.
const HINT_BLOCK: u64 = 64;

/// The table's partitions, and how many hints a client has.
///
/// The number of partitions is even, so that a balanced split exists, and at least 4, so that a
/// hint never selects all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DummySubsetsParameters {
    cut: Partitions,
    hint_security: u32,
    singles: u32,
    pairs: u32,
}

impl DummySubsetsParameters {
    /// The default cut: about as many records in a partition as there are partitions. The number is
    /// a power of two, and rather smaller than larger, because the client's state grows with it.
    ///
    /// # Errors
    /// As [`with_partition_records`](Self::with_partition_records).
    pub fn new(shape: TableShape) -> Result<Self> {
        let log2_records = (shape.records() as f64).log2();
        let log2_partition = ((log2_records - 1.0) / 2.0).ceil().clamp(0.0, 16.0);
        Self::with_partition_records(shape, 1 << log2_partition as u32)
    }

    /// A cut with the given number of records in a partition. More records mean shorter queries,
    /// less work for the server, and more state for the client.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if it is no power of
    /// two up to 2^16 or the client's state or the queries would be too large.
    pub fn with_partition_records(shape: TableShape, partition_records: u64) -> Result<Self> {
        let cut = Partitions::new(shape, partition_records, 2, 4)?;
        let cut = Self { cut, hint_security: 0, singles: 0, pairs: 0 };
        cut.with_hint_security(DEFAULT_HINT_SECURITY)
    }

    /// The same cut with another λ_hint. Only the client uses λ_hint: servers need not know it.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is 0 or beyond 4096, or the
    /// client's state would be too large.
    pub fn with_hint_security(mut self, hint_security: u32) -> Result<Self> {
        if !(1..=4096).contains(&hint_security) {
            return Err(Error::api_misuse(format!(
                "λ_hint must lie between 1 and 4096, not {hint_security}"
            )));
        }
        // (1 - q)^M <= e^(-λ/2), with q for a hint that may turn out invalid.
        let needed = f64::from(hint_security) / 2.0 / -(-self.containment_probability()).ln_1p();
        let singles = (needed.ceil() as u64).next_multiple_of(HINT_BLOCK);
        let pairs = (u64::from(hint_security) * u64::from(self.partition_records()))
            .div_ceil(2)
            .next_multiple_of(HINT_BLOCK);
        self.hint_security = hint_security;
        (self.singles, self.pairs) = (singles as u32, pairs as u32);
        check_state("dummy subsets", self.shape(), self.state_bytes())?;
        Ok(self)
    }

    /// The parameters of the same table with more records, if the present partitions have room for
    /// them. Hints for one are then hints for the other.
    ///
    /// # Errors
    /// As [`Partitions::grown`].
    pub fn grown(&self, after: TableShape) -> Result<Self> {
        Ok(Self { cut: self.cut.grown(after)?, ..self.clone() })
    }

    /// The parameters after `delta`.
    ///
    /// # Errors
    /// As [`grown`](Self::grown), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the
    /// delta is for a table of another shape.
    pub(super) fn grown_by(&self, delta: &TableDelta) -> Result<Self> {
        delta.check_before(self.shape())?;
        self.grown(delta.shape_after())
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.cut.shape()
    }

    /// Records in a partition, `s`: a power of two.
    pub fn partition_records(&self) -> u32 {
        self.cut.records()
    }

    /// The number of partitions, `p`: even, at least 4.
    pub fn partitions(&self) -> u32 {
        self.cut.count()
    }

    /// How the table is cut.
    pub fn cut(&self) -> &Partitions {
        &self.cut
    }

    /// λ_hint.
    pub fn hint_security(&self) -> u32 {
        self.hint_security
    }

    /// How many single hints a generation begins with, `M`. They have the ids from 0 on.
    pub fn singles(&self) -> u32 {
        self.singles
    }

    /// How many pairs of backup hints a generation has, `B`: the number of queries that it serves
    /// (without the few invalid pairs). They have the ids from `M` on.
    pub fn pairs(&self) -> u32 {
        self.pairs
    }

    /// The probability that a single hint contains a given record: `(p/2 + 1)/p · 1/s`, less the
    /// share of hints that are discarded because two of their select values tie at the cutoff.
    pub fn containment_probability(&self) -> f64 {
        let partitions = f64::from(self.partitions());
        // Neighbouring order statistics of p uniform 32-bit values are equal with probability about
        // p/2^32.
        let tie = 2.0 * partitions / 2f64.powi(32);
        (partitions / 2.0 + 1.0) / partitions / f64::from(self.partition_records()) * (1.0 - tie)
    }

    /// The probability that no hint contains a given record, at most: `(1 - q)^M`.
    pub fn failure_probability(&self) -> f64 {
        (f64::from(self.singles) * (-self.containment_probability()).ln_1p()).exp()
    }

    /// How many records are summed up in `hints` hints: half of the partitions each, and one more.
    pub(super) fn summed(&self, hints: u64) -> u64 {
        hints * (u64::from(self.partitions()) / 2 + 1)
    }

    /// What a client keeps of a generation, in bytes: a record for each single hint, two for each
    /// pair, and a cutoff for each.
    pub fn state_bytes(&self) -> u64 {
        let (singles, pairs) = (u64::from(self.singles), u64::from(self.pairs));
        (singles + 2 * pairs) * self.shape().record_len() + 4 * (singles + pairs)
    }
}

impl Parameters for DummySubsetsParameters {
    /// Eight bytes: the number of records in a partition, little-endian. Everything else follows
    /// from the table's shape, or only the client uses it.
    fn encode(&self) -> Vec<u8> {
        u64::from(self.partition_records()).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("the parameters of dummy subsets", bytes, |partition_records| {
            Self::with_partition_records(identity.shape, partition_records)
        })
    }
}
