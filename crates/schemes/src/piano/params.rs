//! How a table is cut into chunks, how many queries a window has, and how many hints make failures
//! in it rare enough.
//!
//! A window of `Q` queries, all for different records, can fail in two ways. Each has probability
//! 2^-41 at most.
//!
//! **No hint contains the record.** Each of the `M₁` hints in use contains a given record with
//! probability `1/s`, independently, before every query. So over the whole window this failure has
//! probability at most `Q·(1 - 1/s)^M₁`.
//!
//! **Too many records of one chunk are asked for.** Every query takes one of the `M₂` spares of the
//! chunk that its record lies in. The table is shuffled, so the records that are asked for are a
//! random sample of it without replacement, as long as they are chosen without regard to the
//! shuffle. So the number of them in one chunk of `s` records has a hypergeometric distribution
//! with mean `μ = Q·s/n`. Its tail is below Hoeffding's bound for the binomial distribution (W.
//! Hoeffding, *Probability inequalities for sums of bounded random variables*, 1963: theorem 1, and
//! section 6 for sampling without replacement): there are at least `m > μ` of them with probability
//! at most `exp(-Q·D(m/Q ‖ s/n))`, where `D(x ‖ y) = x·ln(x/y) + (1-x)·ln((1-x)/(1-y))`. `M₂` is
//! the least number for which this bound, with `m = M₂ + 1`, is at most 2^-41 divided by the number
//! of chunks. A chunk never needs more spares than it has records.

use super::AnswerForm;
use crate::contract::{Parameters, announced, table_seed};
use crate::stored_hints::check_state;
use privet_core::hints::Partitions;
use privet_core::permutation::Permutation;
use privet_core::{Result, TableIdentity, TableShape};

/// A window fails with probability at most 2 to the power of minus this.
pub const STATISTICAL_SECURITY: u32 = 40;

/// The least number of queries in a window, however small the table is.
const LEAST_WINDOW: u64 = 8;
/// Primary hints come in blocks of 64, because searches mark hints by the bits of words, …
const PRIMARY_BLOCK: u64 = 64;
/// … and spares in blocks of 8, which share a block of the pseudorandom function.
const SPARE_BLOCK: u64 = 8;

/// The shuffled table as `chunks` chunks of `chunk_records` records, and the numbers of queries and
/// hints in a window. The last chunk may reach beyond the table; records there count as zero.
#[derive(Clone, Debug)]
pub struct PianoParameters {
    chunks: Partitions,
    window: u64,
    primaries: u32,
    spares: u32,
    permutation: Permutation,
}

impl PianoParameters {
    /// The default cut: chunks of a power of two of records near `2·√n`.
    ///
    /// # Errors
    /// As [`with_chunk_records`](Self::with_chunk_records).
    pub fn new(identity: &TableIdentity) -> Result<Self> {
        let log2_records = (identity.shape.records() as f64).log2();
        let log2_chunk = (1.0 + log2_records / 2.0).round().clamp(0.0, 16.0);
        Self::with_chunk_records(identity, 1 << log2_chunk as u32)
    }

    /// A cut with the given number of records in a chunk. More records mean shorter queries, less
    /// work for the server, and more state for the client.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if it is no power of
    /// two up to 2^16 or the client's state or the queries would be too large.
    pub fn with_chunk_records(identity: &TableIdentity, chunk_records: u64) -> Result<Self> {
        let shape = identity.shape;
        let chunks = Partitions::new(shape, chunk_records, 1, 2)?;
        let window = window(shape.records());
        let primaries = primaries(window, chunk_records);
        let spares = spares(window, shape.records(), chunk_records, u64::from(chunks.count()));
        // Checks that the hints' ids fit into 32 bits, with room to spare; later code relies on
        // these products.
        let hints = u64::from(chunks.count()) * 2 * spares + primaries;
        let state =
            bytes_of_state(&chunks, primaries + 2 * spares * u64::from(chunks.count()), window);
        let state = if hints < (1 << 32) - (1 << 16) { state } else { u64::MAX };
        check_state("Piano", shape, state)?;
        let seed = table_seed("privet 2026-11 piano order of records", identity);
        Ok(Self {
            chunks,
            window,
            primaries: primaries as u32,
            spares: spares as u32,
            permutation: Permutation::new(shape.records(), &seed),
        })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.chunks.shape()
    }

    /// Records in a chunk, `s`: a power of two.
    pub fn chunk_records(&self) -> u32 {
        self.chunks.records()
    }

    /// The number of chunks, `p`: at least 2.
    pub fn chunks(&self) -> u32 {
        self.chunks.count()
    }

    /// Bits of an offset within a chunk: log2 of [`chunk_records`](Self::chunk_records).
    pub fn offset_bits(&self) -> u32 {
        self.chunks.offset_bits()
    }

    /// The number of queries in a window, `Q`: `√n·ln n`, at least 8.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Whether a window has more queries than there are records, so that some records are asked for
    /// more than once.
    pub fn repeats(&self) -> bool {
        self.window > self.shape().records()
    }

    /// How many hints a window begins with, `M₁`. They have the ids from 0 on.
    pub fn primaries(&self) -> u32 {
        self.primaries
    }

    /// How many spares each chunk has, `M₂`: backup hints, and as many pairs of offset and record
    /// if the answer form uses pairs. Backups have the ids from `M₁` on, `M₂` for each chunk in
    /// turn. Pairs have the ids after those, in the same order.
    pub fn spares(&self) -> u32 {
        self.spares
    }

    /// A bound on the probability that any lookup of a window fails: because no hint contains the
    /// record, or because too many records of a chunk are asked for.
    pub fn failure_probability(&self) -> f64 {
        let (records, chunk_records) = (self.shape().records(), u64::from(self.chunk_records()));
        let miss = (-1.0 / f64::from(self.chunk_records())).ln_1p();
        let no_hint = self.window as f64 * (f64::from(self.primaries) * miss).exp();
        if u64::from(self.spares) >= most_in_one_chunk(self.window, records, chunk_records) {
            return no_hint;
        }
        let tail = log_tail(u64::from(self.spares) + 1, self.window, records, chunk_records);
        no_hint + f64::from(self.chunks()) * tail.exp()
    }

    /// What a client keeps, in bytes: a record for each hint and each pair, and what was looked up
    /// in the window.
    pub fn state_bytes<F: AnswerForm>(&self) -> u64 {
        let records =
            u64::from(self.primaries) + self.backups() * if F::REPLACES_THE_WANTED { 2 } else { 1 };
        bytes_of_state(&self.chunks, records, self.window)
    }

    /// The number of backup hints of all chunks.
    pub(super) fn backups(&self) -> u64 {
        u64::from(self.chunks()) * u64::from(self.spares)
    }

    /// The id of a chunk's first backup.
    pub(super) fn first_backup(&self, chunk: u32) -> u32 {
        self.primaries + chunk * self.spares
    }

    /// The id from which the offset of a chunk's first pair follows.
    pub(super) fn first_pair(&self, chunk: u32) -> u32 {
        self.primaries + self.backups() as u32 + chunk * self.spares
    }

    /// How many groups of eight hints may be in use after `queries` queries: those of all
    /// primaries, and those of the backups that came into use. A query opens at most one group, and
    /// the next seven queries of the same chunk open none.
    pub(super) fn searched_groups(&self, queries: u64) -> usize {
        let opened = queries.min(u64::from(self.chunks()) + queries / SPARE_BLOCK);
        (u64::from(self.primaries) / SPARE_BLOCK + opened) as usize
    }

    /// About how many hints contain a given record.
    pub(super) fn expected_hints(&self) -> u32 {
        self.primaries.div_ceil(self.chunk_records())
    }

    /// The cut of the shuffled table.
    pub(super) fn cut(&self) -> &Partitions {
        &self.chunks
    }

    /// The order in which the table is shuffled.
    pub(super) fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Bytes of a record.
    pub(super) fn record_len(&self) -> usize {
        self.chunks.record_len()
    }
}

fn window(records: u64) -> u64 {
    let records = records as f64;
    ((records.sqrt() * records.ln()).ceil() as u64).max(LEAST_WINDOW)
}

/// The largest allowed probability of either kind of failure, as a natural logarithm.
fn log_failure() -> f64 {
    -f64::from(STATISTICAL_SECURITY + 1) * std::f64::consts::LN_2
}

fn primaries(window: u64, chunk_records: u64) -> u64 {
    let miss = (-1.0 / chunk_records as f64).ln_1p();
    let needed = (log_failure() - (window as f64).ln()) / miss;
    (needed.ceil() as u64).max(1).next_multiple_of(PRIMARY_BLOCK)
}

/// The most queries of a window that can fall into one chunk. If the table has fewer records than a
/// window has queries, some records are asked for more than once.
fn most_in_one_chunk(window: u64, records: u64, chunk_records: u64) -> u64 {
    if window > records { window } else { window.min(chunk_records).min(records) }
}

fn spares(window: u64, records: u64, chunk_records: u64, chunks: u64) -> u64 {
    let most = most_in_one_chunk(window, records, chunk_records);
    let allowed = log_failure() - (chunks as f64).ln();
    let mean = window as f64 * chunk_records as f64 / records as f64;
    // The tail shrinks with every additional spare, so bisection finds the least number that
    // suffices.
    let (mut low, mut high) = ((mean.ceil() as u64).min(most), most);
    while low < high {
        let middle = low.midpoint(high);
        if log_tail(middle + 1, window, records, chunk_records) <= allowed {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high.max(1).next_multiple_of(SPARE_BLOCK)
}

/// The logarithm of a bound for the probability that at least `count` of a window's queries, all
/// for different records, fall into one chunk.
fn log_tail(count: u64, window: u64, records: u64, chunk_records: u64) -> f64 {
    let (share, expected) = (count as f64 / window as f64, chunk_records as f64 / records as f64);
    if share >= 1.0 || expected >= 1.0 || share <= expected {
        return if share > 1.0 { f64::NEG_INFINITY } else { 0.0 };
    }
    let divergence =
        share * (share / expected).ln() + (1.0 - share) * ((1.0 - share) / (1.0 - expected)).ln();
    -(window as f64) * divergence
}

/// `records` records, the records that were looked up in a window, and twenty bytes for each of the
/// latter to find it again.
fn bytes_of_state(chunks: &Partitions, records: u64, window: u64) -> u64 {
    let record_len = chunks.shape().record_len();
    records.saturating_mul(record_len).saturating_add(window.saturating_mul(record_len + 20))
}

impl Parameters for PianoParameters {
    /// Eight bytes: the number of records in a chunk, little-endian. Everything else follows from
    /// the table's identity, or only the client uses it.
    fn encode(&self) -> Vec<u8> {
        u64::from(self.chunk_records()).to_le_bytes().to_vec()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        announced("Piano's parameters", bytes, |chunk_records| {
            Self::with_chunk_records(identity, chunk_records)
        })
    }
}

#[cfg(test)]
impl PianoParameters {
    /// For tests: fewer hints than suffice.
    pub(super) fn with_hints(mut self, primaries: u32, spares: u32) -> Self {
        (self.primaries, self.spares) = (primaries, spares);
        self
    }
}
