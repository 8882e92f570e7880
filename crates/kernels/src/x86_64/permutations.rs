//! Permutations with the memory of what comes next on its way.
//!
//! A swap touches four lines of each permutation, scattered over tens of megabytes, and where the permutations
//! begin at a large power of two apart, many of these lines compete for the same few places of the caches. So
//! it goes in two steps, each of which touches a line only once and soon after it was asked for: the first
//! reads and exchanges two numbers, from which it knows the lines of the inverse and asks for them; the
//! second, some permutations behind, puts the inverse right.
//!
//! All is prefetched into the second-level cache, which can wait for more lines at a time than the first.
//! Measured on Zen 4 with 4096 permutations of 4096 numbers, a swap in each takes 41 µs this way, and 100 to
//! 125 µs with prefetches into the first-level cache or without any.

use super::prefetch_second_level;
use super::xor::{xor_array, xor_bytes};
use crate::permutations::{Shown, Swap};
use crate::portable;
use crate::portable::permutations::{exchange, exchange_mask, put_right};

/// How many permutations ahead numbers are prefetched.
const NUMBERS_AHEAD: usize = 32;
/// How many permutations later the inverse is put right.
const INVERSES_BEHIND: usize = 32;
/// How many elements of a permutation ahead records are prefetched.
const RECORDS_AHEAD: usize = 32;
/// Of longer records, how many bytes are prefetched; the processor follows by itself.
const PREFETCHED_BYTES: usize = 512;
const LINE: usize = 64;

/// See [`Kernels::swap_in_permutations`](crate::Kernels::swap_in_permutations).
pub(crate) fn swap(
    forward: &mut [u16],
    inverse: &mut [u16],
    m: usize,
    swap: Swap<'_>,
    shown: Shown<'_>,
) {
    let Swap { a, b, skip } = swap;
    for ahead in 0..b.len() + NUMBERS_AHEAD + INVERSES_BEHIND {
        if let Some(&b) = b.get(ahead) {
            prefetch_number(forward, ahead * m + a as usize);
            prefetch_number(forward, ahead * m + b as usize);
        }
        let Some(now) = ahead.checked_sub(NUMBERS_AHEAD) else { continue };
        if let Some(&b) = b.get(now) {
            let forward = &mut forward[now * m..][..m];
            let numbers = exchange(forward, [a, b], exchange_mask(now, skip));
            [shown.a[now], shown.b[now]] = numbers;
            for number in numbers {
                prefetch_number(inverse, now * m + usize::from(number));
            }
        }
        let Some(behind) = now.checked_sub(INVERSES_BEHIND) else { continue };
        let inverse = &mut inverse[behind * m..][..m];
        let numbers = [shown.a[behind], shown.b[behind]];
        put_right(inverse, numbers, [a, b[behind]], exchange_mask(behind, skip));
    }
}

/// Asks for the number at `place`.
#[inline(always)]
fn prefetch_number(numbers: &[u16], place: usize) {
    prefetch_second_level(numbers.as_ptr(), place.wrapping_mul(size_of::<u16>()));
}

/// See [`Kernels::xor_accumulate_permuted`](crate::Kernels::xor_accumulate_permuted). To be compiled for
/// each arm's vectors.
#[inline(always)]
pub(super) fn xor_accumulate(
    partition: &[u8],
    record_len: usize,
    permutation: &[u16],
    sums: &mut [u8],
) {
    match record_len {
        8 => accumulate_short::<8>(partition, permutation, sums),
        16 => accumulate_short::<16>(partition, permutation, sums),
        32 => accumulate_short::<32>(partition, permutation, sums),
        64 => accumulate_short::<64>(partition, permutation, sums),
        0..8 => portable::permutations::xor_accumulate(partition, record_len, permutation, sums),
        _ => accumulate_any(partition, record_len, permutation, sums),
    }
}

/// The same for records of a few vectors at most.
#[inline(always)]
fn accumulate_short<const LEN: usize>(partition: &[u8], permutation: &[u16], sums: &mut [u8]) {
    let records = partition.as_chunks::<LEN>().0;
    let sums = sums.as_chunks_mut::<LEN>().0.iter_mut();
    for (x, (sum, &number)) in sums.zip(permutation).enumerate() {
        prefetch_records(partition, LEN, permutation, x);
        xor_array(sum, &records[usize::from(number)]);
    }
}

/// The same for records of any length.
#[inline(always)]
fn accumulate_any(partition: &[u8], record_len: usize, permutation: &[u16], sums: &mut [u8]) {
    let sums = sums.chunks_exact_mut(record_len);
    for (x, (sum, &number)) in sums.zip(permutation).enumerate() {
        prefetch_records(partition, record_len, permutation, x);
        let start = usize::from(number) * record_len;
        xor_bytes(sum, &partition[start..start + record_len]);
    }
}

/// Asks for the record that will be needed some places after `x`, and for as much of what lies behind the
/// partition, to be at hand in the next call.
#[inline(always)]
fn prefetch_records(partition: &[u8], record_len: usize, permutation: &[u16], x: usize) {
    if let Some(&number) = permutation.get(x + RECORDS_AHEAD) {
        for offset in (0..record_len.min(PREFETCHED_BYTES)).step_by(LINE) {
            prefetch_second_level(partition.as_ptr(), usize::from(number) * record_len + offset);
        }
    }
    for offset in (0..record_len).step_by(LINE) {
        prefetch_second_level(partition.as_ptr(), partition.len() + x * record_len + offset);
    }
}
