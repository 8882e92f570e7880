//! Packing blocks of a byte matrix, on several threads.

use super::layout::MatrixLayout;
use crate::sharing::share;
use privet_core::Result;
use privet_core::ring::{BlockOut, PackingFactors};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::progress::ProgressReporter;
use std::ops::Range;

/// What a thread needs for the block that it works on: 48 MiB.
pub(super) const BLOCK_BYTES: u64 = 48 << 20;

/// Packs blocks of the matrix that is in the first columns of `matrix`. Each block comes with the
/// words that are kept of it, [`MatrixLayout::kept_block_words`]. Each thread works on a block of
/// its own, and needs [`BLOCK_BYTES`] for that, and 64 bytes for each column.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory,
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a block cannot be packed.
pub(super) fn pack_blocks(
    layout: &MatrixLayout,
    matrix: &TiledBytes,
    kernels: Kernels,
    threads: usize,
    blocks: Vec<(u64, &mut [u32])>,
    progress: &ProgressReporter<'_>,
) -> Result<()> {
    let (degree, columns) = (layout.form().degree(), layout.columns() as usize);
    let factors = PackingFactors::new(kernels, layout.form(), &layout.public(kernels));
    share(threads, blocks.into_iter(), || {
        let mut scratch = None;
        let factors = &factors;
        move |(block, kept): (u64, &mut [u32])| {
            let scratch = match &mut scratch {
                Some(scratch) => scratch,
                none => none.insert(factors.scratch()?),
            };
            let Range { start, end } = layout.block(block);
            let rows = (end - start) as usize;
            let read = |from: usize, count: usize, bytes: &mut Vec<u8>| {
                bytes.resize(count * columns, 0);
                matrix.copy_rows(start as usize + from, count, columns, bytes);
            };
            let (packing, rest) = kept.split_at_mut(rows * degree);
            let (fold, mask) = rest.split_at_mut(degree);
            let mut out = BlockOut { matrix: packing, fold, mask };
            factors.pack(kernels, rows, read, scratch, &mut out)?;
            progress.add(1);
            Ok(())
        }
    })
}
