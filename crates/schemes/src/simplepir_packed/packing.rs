//! Packing blocks of a table, on several threads.

use super::SimplePirPackedParameters;
use crate::sharing::{Progress, share};
use privet_core::Result;
use privet_core::ring::{BlockOut, PackingFactors};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;

/// Words that are kept of a block: its packing matrix, column by column, the digits of its fold,
/// and its mask.
pub(super) fn kept_block_words(parameters: &SimplePirPackedParameters, block: u64) -> usize {
    parameters.form().degree() * (parameters.block_rows(block) as usize + 2)
}

/// Packs blocks of the table that is in the first columns of `matrix`. Each block comes with the
/// words that are kept of it, [`kept_block_words`]. Each thread works on a block of its own, and
/// needs 48 MiB for that, and 64 bytes for each column.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory,
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a block cannot be packed.
pub(super) fn pack_blocks(
    parameters: &SimplePirPackedParameters,
    matrix: &TiledBytes,
    kernels: Kernels,
    threads: usize,
    blocks: Vec<(u64, &mut [u32])>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let form = parameters.form();
    let (degree, columns) = (form.degree(), parameters.columns() as usize);
    let factors = PackingFactors::new(kernels, form, &parameters.public(kernels));
    let progress = Progress::new(blocks.len() as u128, progress);
    share(threads, blocks.into_iter(), || {
        let mut scratch = None;
        let (factors, progress) = (&factors, &progress);
        move |(block, kept): (u64, &mut [u32])| {
            let scratch = match &mut scratch {
                Some(scratch) => scratch,
                none => none.insert(factors.scratch()?),
            };
            let (rows, first_row) =
                (parameters.block_rows(block) as usize, block as usize * degree);
            let read = |from: usize, count: usize, bytes: &mut Vec<u8>| {
                bytes.resize(count * columns, 0);
                matrix.copy_rows(first_row + from, count, columns, bytes);
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
