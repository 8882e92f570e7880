//! How a table is cut into partitions.

use crate::contract::{Parameters, announced};
use crate::planted;
use crate::stored_hints::MAX_STATE_BYTES;
use privet_core::hints::partitions::check_grown;
use privet_core::{Error, Result, TableIdentity, TableShape};

/// Offsets are 16 bits.
const MAX_PARTITION_RECORDS: u64 = 1 << 16;
/// With one partition a query would not depend on the permutation, and a hint would be a record.
const MIN_PARTITIONS: u64 = 2;
/// The hints come as one message, and so does an answer.
const MAX_MESSAGE_BYTES: u64 = 1 << 26;
/// How many lookups the default cut expects of a client.
const EXPECTED_LOOKUPS: u64 = 1024;
/// The most bytes that a client downloads before its first lookup with the default cut.
const DEFAULT_MAX_HINT_BYTES: u64 = 1 << 22;

/// The fewest and the most queries of a generation. In between, they are as many as make its
/// journal about twice as large as the generation.
const FEWEST_QUERIES: u64 = 64;
const MOST_QUERIES: u64 = 4096;

/// The table as `partitions` partitions of `partition_records` records. The last ones may reach
/// beyond the table; records there count as zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinglePassParameters {
    shape: TableShape,
    partition_records: u32,
    partitions: u32,
}

impl SinglePassParameters {
    /// The default cut: a client that makes 1024 lookups with it sends and receives the least,
    /// including its hints, as long as the hints have no more than 4 MiB.
    ///
    /// The costs are `M·w` bytes of hints, and `4·Q + 2·Q·w` bytes for each lookup. They are least
    /// for `M² = 1024·n·(2·w + 4)/w`. So 2^24 records of 32 bytes are cut into 256 partitions of 65
    /// 536: 2 MiB once, and 17 KiB for each lookup. A table of fewer than some thousand records is
    /// cut into two halves.
    ///
    /// # Errors
    /// As [`with_partition_records`](Self::with_partition_records).
    pub fn new(shape: TableShape) -> Result<Self> {
        let (records, record_len) = (shape.records(), shape.record_len());
        let lookup = 2 * record_len + 4;
        let of_lookups = u128::from(EXPECTED_LOOKUPS) * u128::from(records) * u128::from(lookup);
        let cheapest = (of_lookups / u128::from(record_len)).isqrt();
        // At most the limit, so it fits 64 bits.
        let cheapest = cheapest.clamp(2, u128::from(MAX_PARTITION_RECORDS)) as u64;

        let most_records = (DEFAULT_MAX_HINT_BYTES / record_len).clamp(2, MAX_PARTITION_RECORDS);
        let fewest = records.div_ceil(most_records).max(MIN_PARTITIONS);
        // Only one case has longer hints: records so long that one record of each partition would
        // make too long an answer.
        let most = (MAX_MESSAGE_BYTES / record_len).max(MIN_PARTITIONS);
        let bytes = |partitions: &u64| {
            let hints = records.div_ceil(*partitions).saturating_mul(record_len);
            hints.saturating_add(EXPECTED_LOOKUPS * lookup * partitions)
        };
        // The costs are convex in the number of partitions. So the best number is one of the two
        // next to the minimum.
        let about = records / cheapest;
        let candidates = [about, about + 1].map(|partitions| partitions.max(fewest).min(most));
        let partitions = candidates.into_iter().min_by_key(bytes).unwrap_or(fewest);
        let chosen = records.div_ceil(partitions).clamp(2, MAX_PARTITION_RECORDS);
        Self::with_partition_records(shape, chosen)
    }

    /// A cut with the given number of records in a partition. More records mean shorter queries and
    /// answers, less work for the servers, and more hints to download.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if it is not between
    /// 2 and 2^16, or the client's state or the messages would be too large.
    pub fn with_partition_records(shape: TableShape, partition_records: u64) -> Result<Self> {
        if !(2..=MAX_PARTITION_RECORDS).contains(&partition_records) {
            return Err(Error::api_misuse(format!(
                "a partition has between 2 and {MAX_PARTITION_RECORDS} records, not {partition_records}"
            )));
        }
        let partitions = shape.records().div_ceil(partition_records).max(MIN_PARTITIONS);
        let (hints, answer) =
            (partition_records * shape.record_len(), partitions.saturating_mul(shape.record_len()));
        if hints.max(answer) > MAX_MESSAGE_BYTES {
            return Err(Error::api_misuse(format!(
                "SinglePass on {shape}, cut into {partitions} partitions of {partition_records}, would take {hints} bytes of hints and {answer} bytes for an answer; the limit for either is {MAX_MESSAGE_BYTES}"
            )));
        }
        let state = 2 * u128::from(partitions) * u128::from(partition_records) + u128::from(hints);
        if state > u128::from(MAX_STATE_BYTES) {
            return Err(Error::api_misuse(format!(
                "SinglePass on {shape} would take {state} bytes of a client's memory for permutations and hints; the limit is {MAX_STATE_BYTES}"
            )));
        }
        // An answer has at least a byte for each partition, so there are at most 2^26 partitions.
        Ok(Self {
            shape,
            partition_records: partition_records as u32,
            partitions: partitions as u32,
        })
    }

    /// The parameters of the same table with more records, if the present partitions have room for
    /// them. Hints for one are then hints for the other.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they have no room, or it is not the
    /// same table with more records.
    pub fn grown(&self, after: TableShape) -> Result<Self> {
        check_grown(self.shape, after, self.padded_records())?;
        Ok(Self { shape: after, ..self.clone() })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Records in a partition, and hints, `M`: between 2 and 2^16.
    pub fn partition_records(&self) -> u32 {
        self.partition_records
    }

    /// The number of partitions, `Q`: at least 2.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// What a client keeps of a generation, in bytes: two for each number of each permutation, and
    /// a record for each hint.
    pub fn state_bytes(&self) -> u64 {
        2 * self.padded_records() + self.hint_bytes()
    }

    /// Bytes of all hints.
    pub fn hint_bytes(&self) -> u64 {
        u64::from(self.partition_records) * self.shape.record_len()
    }

    /// How many queries a generation serves before it is written down anew: as many as make the
    /// journal about twice as large as the generation, but at least 64 and at most 4096. Each query
    /// adds about `Q` records and both its messages to the journal.
    pub fn queries_per_generation(&self) -> u64 {
        let journalled = u64::from(self.partitions) * (self.shape.record_len() + 4);
        let queries = 2 * self.state_bytes() / journalled;
        planted::queries_per_generation(queries.clamp(FEWEST_QUERIES, MOST_QUERIES))
    }

    /// Records in all partitions, those beyond the table's end included.
    pub(crate) fn padded_records(&self) -> u64 {
        u64::from(self.partitions) * u64::from(self.partition_records)
    }

    /// Bytes of a record.
    pub(crate) fn record_len(&self) -> usize {
        self.shape.record_len() as usize
    }

    /// Bytes of an answer: a record for each partition.
    pub(crate) fn answer_len(&self) -> usize {
        self.partitions as usize * self.record_len()
    }
}

impl Parameters for SinglePassParameters {
    /// Eight bytes: the number of records in a partition, little-endian. Everything else follows
    /// from the table's shape.
    fn encode(&self) -> Vec<u8> {
        u64::from(self.partition_records).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("the parameters of SinglePass", bytes, |partition_records| {
            Self::with_partition_records(identity.shape, partition_records)
        })
    }
}
