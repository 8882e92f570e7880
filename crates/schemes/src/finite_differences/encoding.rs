//! From records to points: the polynomial's value everywhere.

use super::FiniteDifferencesParameters;
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// Points are padded with zeros to at least one cache line, because they are read by lines.
const LINE: usize = 64;

/// All points of the polynomial whose coefficients are `records`: each is the XOR of the records whose words are subsets of the point. `progress` hears of the share done.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records should be single bits and one is not,
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
pub(super) fn encode(
    parameters: &FiniteDifferencesParameters,
    records: &[u8],
    kernels: Kernels,
    threads: usize,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<HugeBuffer<u8>> {
    if parameters.one_bit() && records.iter().any(|byte| *byte > 1) {
        return Err(Error::api_misuse(
            "this table's records are not single bits: a byte of it is neither 0 nor 1",
        ));
    }
    let used = usize::try_from(parameters.points_bytes()).unwrap_or(usize::MAX);
    let mut points = HugeBuffer::new_zeroed(used.max(LINE)).map_err(|error| {
        Error::unavailable(format!(
            "no memory for {used} bytes of points; fewer variables take less, and more reads"
        ))
        .caused_by(error)
    })?;
    let words = parameters.words();
    let records_of = |first: u64, count: u64| {
        let (from, to) = (words.rank(first), words.rank(first + count));
        let to = to.min(parameters.shape().records());
        words.words_from(from).zip(from..to).map(move |(word, index)| (word - first, index))
    };
    match parameters.one_bit() {
        false => {
            let record_len = parameters.shape().record_len() as usize;
            let fill = |first: u64, piece: &mut [u8]| {
                for (place, index) in records_of(first, (piece.len() / record_len) as u64) {
                    let (place, index) = (place as usize * record_len, index as usize * record_len);
                    piece[place..][..record_len].copy_from_slice(&records[index..][..record_len]);
                }
            };
            kernels.subset_sums(&mut points[..used], record_len, threads, &fill, progress);
        }
        true => {
            let fill = |first: u64, piece: &mut [u8]| {
                for (place, index) in records_of(8 * first, 8 * piece.len() as u64) {
                    piece[(place / 8) as usize] |= records[index as usize] << (place % 8);
                }
                // The three lowest variables lie within a byte.
                for byte in piece {
                    *byte ^= (*byte & 0x55) << 1;
                    *byte ^= (*byte & 0x33) << 2;
                    *byte ^= (*byte & 0x0f) << 4;
                }
            };
            kernels.subset_sums(&mut points[..used], 1, threads, &fill, progress);
        }
    }
    Ok(points)
}
