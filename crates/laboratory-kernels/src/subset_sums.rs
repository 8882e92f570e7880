//! The subset-sum transform over XOR: from the coefficients of a polynomial to its values at all
//! points.
//!
//! A polynomial over the field of two elements in which no variable is squared has one coefficient
//! for each set of variables. Its value at a point is the sum of the coefficients of all sets whose
//! variables are one there: the subsets of the point. The values at all 2^k points are computed
//! from the coefficients in place: for one variable after another, the half where the variable is
//! zero is added to the half where it is one (Yates 1937). The literature calls this the zeta or
//! Möbius transform; over XOR the two are the same. Entries are strings of bytes of any length,
//! which are XORed.
//!
//! # Passes
//!
//! A direct implementation reads and writes the whole table for each variable. Variables may be
//! taken in any order, so here several of them are summed while the same bytes are in the cache:
//!
//! ```text
//! block   2^a entries side by side, half a second-level cache: filled by the caller, then
//!         the a lowest variables are summed, most of them in pieces the size of a first-level cache
//! tile    of each of the 2^h rows that differ in h higher variables, the same few columns: h variables are
//!         summed on the way through a buffer in the second-level cache
//! ```
//!
//! A row is as long as a block, or as long as the entries that the passes before it have summed.
//! Its length is usually a large power of two, and then the same column of all rows falls into the
//! same few places of a cache. So tiles go through a buffer, and are written around the caches if
//! the alignment allows it.
//!
//! With h up to 11, tables of up to 2¹¹ blocks take two passes over memory, and those of up to 2²²
//! blocks three. Measured on one core of Zen 4 with AVX-512, 2²⁸ entries of one byte take 0.07 s if
//! they are in memory already, and 2³³ take 3.5 s. That is about 0.4 ns for each byte of the
//! result. Fresh memory costs several times as much: the system must find and clear it first.

use crate::on_arm;
use privet_kernels::progress::ProgressReporter;
use privet_kernels::{Kernels, threads};
use std::sync::{Mutex, PoisonError};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// The most bytes of a block, unless an entry is longer; and of a tile.
pub(crate) const BLOCK_BYTES: usize = 512 << 10;

/// The most variables that are summed in one pass over tiles. With more, the columns of a tile,
/// which are four lines now, would be too short for fast memory access.
const TILE_VARIABLES: u32 = 11;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// For every variable `j`, XORs entry `z − 2^j` into entry `z` for all `z` that have bit `j`:
/// each entry becomes the XOR of the entries at all subsets of its number's bits. In place, on
/// up to `threads` threads.
///
/// `points` has `2^k` entries of `entry_len` bytes, of any length from one byte to megabytes.
///
/// `fill(first, entries)` is called once for each block of entries, which is in the cache from
/// then until its lowest variables are summed: a caller that has not written its coefficients
/// yet can do so there, and saves a pass over memory. `first` is the number of the block's
/// first entry; blocks have equally many entries, a power of two. It is called from several
/// threads and in no particular order.
///
/// `progress` is called with the share of the work done, after each block or tile, from any
/// thread. The share never falls, and the last is 1.
///
/// # Panics
///
/// If `entry_len` is 0 or `points` is not a power of two of entries.
pub fn subset_sums(
    kernels: Kernels,
    points: &mut [u8],
    entry_len: usize,
    threads: usize,
    fill: &(dyn Fn(u64, &mut [u8]) + Sync),
    progress: &(dyn Fn(f64) + Sync),
) {
    assert!(entry_len > 0, "entries have at least one byte");
    let entries = points.len() / entry_len;
    assert!(
        points.len().is_multiple_of(entry_len) && entries.is_power_of_two(),
        "there is a power of two of entries"
    );
    subset_sums_in(kernels, BLOCK_BYTES, points, entry_len, threads, fill, progress);
}

/// The same with blocks and tiles of another size, so that tests see many of them.
pub(crate) fn subset_sums_in(
    kernels: Kernels,
    block_bytes: usize,
    points: &mut [u8],
    entry_len: usize,
    threads: usize,
    fill: &(dyn Fn(u64, &mut [u8]) + Sync),
    progress: &(dyn Fn(f64) + Sync),
) {
    let entries = points.len() / entry_len;
    let block_entries = 1 << (block_bytes / entry_len).clamp(1, entries).ilog2();
    let block_len = block_entries * entry_len;
    let passes = tile_passes((entries / block_entries).ilog2());
    // Bytes summed, counted once in each pass.
    let total = points.len() as u128 * (1 + passes.len()) as u128;
    let progress = ProgressReporter::new(total, progress);

    let blocks = points.chunks_exact_mut(block_len).enumerate();
    each(threads, blocks, || {
        |(i, block): (usize, &mut [u8])| {
            fill((i * block_entries) as u64, block);
            on_arm!(kernels, sum_block(block, entry_len));
            progress.add(block.len() as u128);
        }
    });

    let mut row_len = block_len;
    for variables in passes {
        // Whole lines, so that pieces of rows that begin with a line begin with a line too.
        let columns = (block_bytes >> variables).max(1).next_multiple_of(LINE);
        each(threads, tiles(points, row_len, variables, columns), || {
            let mut stage = Vec::new();
            let progress = &progress;
            move |mut rows: Vec<&mut [u8]>| {
                on_arm!(kernels, sum_tile(&mut rows, &mut stage));
                progress.add(rows.iter().map(|row| row.len() as u128).sum());
            }
        });
        row_len <<= variables;
    }
}

/// How many variables each pass over tiles sums: as equal as possible.
fn tile_passes(variables: u32) -> Vec<u32> {
    let passes = variables.div_ceil(TILE_VARIABLES);
    (0..passes).map(|pass| (variables + pass) / passes).collect()
}

/// Tiles of at most so many columns, from every `2^variables` neighbouring rows of `points`. A tile
/// has a slice of each row.
fn tiles(
    points: &mut [u8],
    row_len: usize,
    variables: u32,
    columns: usize,
) -> impl Iterator<Item = Vec<&mut [u8]>> {
    points.chunks_exact_mut(row_len << variables).flat_map(move |group| {
        let mut rows: Vec<_> =
            group.chunks_exact_mut(row_len).map(|row| row.chunks_mut(columns)).collect();
        std::iter::from_fn(move || rows.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>())
    })
}

/// Gives each item to one of up to `threads` threads. Each thread works with a function of its own.
fn each<I, W>(threads: usize, items: impl Iterator<Item = I> + Send, worker: impl Fn() -> W + Sync)
where
    W: FnMut(I),
{
    let queue = Mutex::new(items);
    threads::for_each(threads, vec![(); threads.max(1)], |()| {
        let mut work = worker();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(item) => work(item),
                None => break,
            }
        }
    });
}
