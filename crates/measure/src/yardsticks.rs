//! The limits of one core of this machine, taken in the same run as the figures they are compared
//! with.

use privet_core::{Error, Result, TableShape};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_kernels::rates::{self, best, random_places};
use serde::Serialize;
use std::hint::black_box;

/// What is built for tests measures a part: no figure of it counts, and there are many runs.
const PART: usize = if cfg!(debug_assertions) { 64 } else { 1 };
/// Sequential reads are measured over this many bytes.
const READ_BYTES: usize = (1 << 30) / PART;
/// Random reads use a buffer as large as the table, and at least this large, so that caches cannot
/// serve them.
const LEAST_RANDOM_BYTES: u64 = 64 << 20;

const AES_BLOCKS: u64 = (1 << 26) / PART as u64;

/// How fast one core is.
#[derive(Serialize)]
pub(crate) struct Yardsticks {
    /// 10^9 bytes a second, read sequentially.
    pub(crate) read_gbps: f64,
    pub(crate) random_reads_per_s: f64,
    pub(crate) aes_blocks_per_s: f64,
    /// For the printed page only: what limits a batch when memory does not.
    #[serde(skip)]
    pub(crate) multiply_accumulates_per_s: f64,
}

/// Takes all yardsticks. `reads` are the random reads: their length, and from how many places.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no memory for them.
pub(crate) fn take(kernels: Kernels, reads: TableShape) -> Result<Yardsticks> {
    Ok(Yardsticks {
        read_gbps: read_gbps(kernels)?,
        random_reads_per_s: random_reads(kernels, reads)?,
        aes_blocks_per_s: best(AES_BLOCKS, || {
            black_box(kernels.aes_blocks(AES_BLOCKS));
        }),
        multiply_accumulates_per_s: multiply_accumulates(kernels),
    })
}

/// Memory with real pages behind it.
pub(crate) fn filled(len: usize) -> Result<HugeBuffer<u8>> {
    rates::filled(len)
        .map_err(|error| Error::unavailable("no memory for the yardsticks").caused_by(error))
}

/// Sequential reads, in 10^9 bytes a second.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no memory for them.
pub(crate) fn read_gbps(kernels: Kernels) -> Result<f64> {
    let buffer = filled(READ_BYTES)?;
    let rate = best(READ_BYTES as u64, || {
        black_box(kernels.read_sum(black_box(&buffer)));
    });
    Ok(rate / 1e9)
}

/// Reads of records of this shape in a second, from random places.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no memory for as many
/// records, [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they do not fit this machine.
pub(crate) fn random_reads(kernels: Kernels, shape: TableShape) -> Result<f64> {
    const READS: u64 = (1 << 21) / PART as u64;
    let record_len = shape.record_len() as usize;
    let len = usize::try_from(shape.bytes().max(LEAST_RANDOM_BYTES))
        .map_err(|_| Error::api_misuse("the table does not fit this machine"))?;
    let buffer = filled(len)?;
    let records = (len / record_len) as u64;
    let positions = random_places(READS, records);
    let mut out = vec![0; record_len];
    let mut failure = None;
    let rate = best(READS, || {
        failure = kernels.gather_xor(&buffer, record_len, &positions, black_box(&mut out)).err()
    });
    failure.map_or(Ok(rate), |failure| {
        Err(Error::api_misuse("the yardstick of random reads is broken").caused_by(failure))
    })
}

fn multiply_accumulates(kernels: Kernels) -> f64 {
    const WANTED: u64 = (1 << 32) / PART as u64;
    let mut done = 0;
    let rate = best(1, || done = black_box(kernels.multiply_accumulate_peak(WANTED)));
    rate * done as f64
}
