//! The products. The work is cut such that the table is read from memory once, and everything else
//! stays in the caches.
//!
//! The innermost kernel ([`Kernels::multiply_chunk`]) takes a *chunk* of one panel (64 rows × 256
//! columns, 16 KiB: half of a first-level cache) and multiplies it by several vectors in turn. The
//! sums of one vector stay in registers for the length of the chunk. While it works on one chunk it
//! prefetches the next. Around it, [`Kernels::multiply`] walks a panel from chunk to chunk, and
//! [`Kernels::multiply_matrix`] treats the public matrix as very many vectors.

use super::strassen;
use super::{GROUP_BYTES, GROUP_COLUMNS, PANEL_ROWS, TiledBytes};
use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::memory::{HugeBuffer, MemoryError};
use crate::threads;

/// Groups of one chunk: 16 KiB of the table.
const CHUNK_GROUPS: usize = 64;

/// How far ahead of its loads the pass for a single query prefetches, in bytes.
const STREAM_AHEAD: usize = 4096;

/// The size in bytes of the prepared vectors of a block of columns, which should stay in the
/// second-level cache.
const BLOCK_BYTES: usize = 256 << 10;

/// How many panels one thread takes at a time in [`Kernels::multiply`].
const PANELS_PER_ITEM: usize = 8;

/// Columns of the public matrix that are expanded at a time in [`Kernels::multiply_matrix`].
const BLOCK_COLUMNS: usize = 2048;

/// Rows of the public matrix that one call of `fill` produces.
const FILL_COLUMNS: usize = 128;

/// How many vectors of the public matrix are processed at a time. Their prepared form (512 KiB)
/// stays in the second-level cache while all panels are processed.
const TILE_VECTORS: usize = 64;

/// Prepared words of one group of four columns for one vector (see [`Kernels::prepare_group`]).
pub(super) type Prepared = [u32; 4];
/// The sums of one panel for one vector.
pub(super) type PanelSums = [u32; PANEL_ROWS];

impl Kernels {
    /// `answers[k] = matrix · queries[k]` modulo 2³² for all `k`, in one pass over the matrix, on
    /// up to `threads` threads.
    ///
    /// One query costs about one reading of the matrix from memory. With AVX-512, a second one
    /// costs a fraction of that. From the third on, and with the other arms, the multiplier is the
    /// limit.
    ///
    /// # Panics
    ///
    /// If the numbers of queries and answers differ, a query's length is not `matrix.columns()`, or
    /// an answer's is not `matrix.rows()`.
    pub fn multiply(
        self,
        matrix: &TiledBytes,
        queries: &[&[u32]],
        answers: &mut [&mut [u32]],
        threads: usize,
    ) {
        assert_eq!(queries.len(), answers.len(), "one answer for each query");
        for (query, answer) in queries.iter().zip(answers.iter()) {
            assert_eq!(query.len(), matrix.columns(), "a query has one word for each column");
            assert_eq!(answer.len(), matrix.rows(), "an answer has one word for each row");
        }
        if queries.is_empty() || matrix.rows() == 0 {
            return;
        }
        let width = queries.len();
        let groups = matrix.groups();
        // A single vector does not use a chunk again, so its sums can stay in registers along a
        // block.
        let chunk_groups = if width == 1 { groups.max(1) } else { CHUNK_GROUPS };
        let block_groups =
            (BLOCK_BYTES / size_of::<Prepared>() / width / CHUNK_GROUPS).max(1) * CHUNK_GROUPS;
        let prepared = self.prepare_queries(queries, groups, chunk_groups);

        let panels = matrix.rows().div_ceil(PANEL_ROWS);
        let panels_per_item = PANELS_PER_ITEM.min(panels.div_ceil(threads.max(1)));
        let mut items: Vec<(usize, Vec<&mut [u32]>)> = (0..panels)
            .step_by(panels_per_item)
            .map(|first_panel| (first_panel, Vec::with_capacity(width)))
            .collect();
        for answer in answers.iter_mut() {
            let pieces = answer.chunks_mut(panels_per_item * PANEL_ROWS);
            items.iter_mut().zip(pieces).for_each(|((_, item), piece)| item.push(piece));
        }

        threads::for_each(threads, items, |(first_panel, mut answers)| {
            let rows = answers[0].len();
            let mut sums = vec![[0u32; PANEL_ROWS]; width];
            answers.iter_mut().for_each(|answer| answer.fill(0));
            for block in (0..groups).step_by(block_groups) {
                let block_end = groups.min(block + block_groups);
                for (panel, first_row) in (first_panel..).zip((0..rows).step_by(PANEL_ROWS)) {
                    sums.fill([0; PANEL_ROWS]);
                    for start in (block..block_end).step_by(chunk_groups) {
                        let end = block_end.min(start + chunk_groups);
                        let ahead = if width == 1 {
                            STREAM_AHEAD
                        } else if end < block_end {
                            CHUNK_GROUPS * GROUP_BYTES
                        } else {
                            // The next chunk is the first of this block in the next panel.
                            matrix.stride - (start - block) * GROUP_BYTES
                        };
                        on_arm!(
                            self,
                            byte_matrix::multiply_chunk(
                                matrix.panel_groups(panel, start..end),
                                &prepared[start * width..end * width],
                                &mut sums,
                                ahead
                            )
                        );
                    }
                    let last_row = rows.min(first_row + PANEL_ROWS);
                    for (answer, sums) in answers.iter_mut().zip(&sums) {
                        for (word, sum) in answer[first_row..last_row].iter_mut().zip(sums) {
                            *word = word.wrapping_add(*sum);
                        }
                    }
                }
            }
        });
    }

    /// All queries in the order in which [`multiply`](Kernels::multiply) uses them: by chunk, then
    /// by query, then by group; padded with zeros.
    fn prepare_queries(
        self,
        queries: &[&[u32]],
        groups: usize,
        chunk_groups: usize,
    ) -> Vec<Prepared> {
        let mut prepared = Vec::with_capacity(groups * queries.len());
        for start in (0..groups).step_by(chunk_groups) {
            let columns = start * GROUP_COLUMNS..(start + chunk_groups) * GROUP_COLUMNS;
            for query in queries {
                let words = &query[columns.start..columns.end.min(query.len())];
                let (whole, rest) = words.as_chunks::<GROUP_COLUMNS>();
                prepared.extend(whole.iter().map(|&words| self.prepare_group(words)));
                if !rest.is_empty() {
                    let mut last = [0; GROUP_COLUMNS];
                    last[..rest.len()].copy_from_slice(rest);
                    prepared.push(self.prepare_group(last));
                }
            }
        }
        prepared
    }

    /// `out = matrix · a` modulo 2³², for a matrix `a` of `matrix.columns()` × `width` words that
    /// is produced piece by piece and never stored whole, on up to `threads` threads.
    ///
    /// `fill(first, n, words)` writes rows `first..first + n` of `a`, row-major, into `words`,
    /// whose length is `n * width`; it is called once for each row, from several threads and in no
    /// particular order. `out` is row-major, `matrix.rows()` × `width`. `progress` is called from
    /// time to time, from any of the threads, with the share of the work done, between 0 and 1.
    ///
    /// Besides `out`, the working memory is about 16 KiB × `width`; large products, which take a
    /// shortcut (`strassen`), need 4 bytes × `width` for each column of the matrix, up to 32 768
    /// columns, and a sixth more.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when there is no memory to work in; `out` is then all zeros.
    ///
    /// # Panics
    ///
    /// If `out.len()` is not `matrix.rows() * width`.
    pub fn multiply_matrix(
        self,
        matrix: &TiledBytes,
        width: usize,
        fill: impl Fn(usize, usize, &mut [u32]) + Sync,
        out: &mut [u32],
        threads: usize,
        progress: impl Fn(f64) + Sync,
    ) -> Result<(), MemoryError> {
        assert_eq!(
            Some(out.len()),
            matrix.rows().checked_mul(width),
            "one word for each row and column"
        );
        if out.is_empty() {
            progress(1.0);
            return Ok(());
        }
        if strassen::pays(matrix, width) {
            return self.multiply_matrix_in_parts(matrix, width, &fill, out, threads, &progress);
        }
        out.fill(0);
        let panels = matrix.rows().div_ceil(PANEL_ROWS);
        let groups = matrix.groups();
        let block_groups = BLOCK_COLUMNS / GROUP_COLUMNS;

        // While the sum runs, each panel's part of `out` holds its 64 × width sums vector by
        // vector, as the kernel makes them; the panels are turned to row-major at the end. A last
        // panel of fewer than 64 rows has no room for that, and has its sums elsewhere.
        let (whole, last_rows) = out.split_at_mut(matrix.rows() / PANEL_ROWS * PANEL_ROWS * width);
        let whole: &mut [PanelSums] = whole.as_chunks_mut().0;
        let mut last_sums = vec![[0u32; PANEL_ROWS]; if last_rows.is_empty() { 0 } else { width }];

        let block_words = block_groups.min(groups) * GROUP_COLUMNS * width;
        let mut prepared = HugeBuffer::<u32>::new_zeroed(block_words)?;
        let mut words = HugeBuffer::<u32>::new_zeroed(block_words)?;
        let prepared: &mut [Prepared] = prepared.as_chunks_mut().0;
        for first_group in (0..groups).step_by(block_groups) {
            let block_groups = block_groups.min(groups - first_group);
            let block = &mut prepared[..block_groups * width];
            let words = &mut words[..block_groups * GROUP_COLUMNS * width];
            let first_column = first_group * GROUP_COLUMNS;
            let columns = (matrix.columns() - first_column).min(block_groups * GROUP_COLUMNS);
            // The words beyond the last column do not matter: they are multiplied by the zeros that
            // pad the matrix.
            expand(first_column, width, &fill, &mut words[..columns * width], threads);
            self.prepare_block(words, width, block, threads);
            for (tile, prepared) in block.chunks(block_groups * TILE_VECTORS).enumerate() {
                let tile_width = prepared.len() / block_groups;
                let tile = tile * TILE_VECTORS..tile * TILE_VECTORS + tile_width;
                let tile_end = tile.end;
                let mut items: Vec<(usize, &mut [PanelSums])> = whole
                    .chunks_mut(width)
                    .map(|sums| &mut sums[tile.clone()])
                    .enumerate()
                    .collect();
                if !last_sums.is_empty() {
                    items.push((panels - 1, &mut last_sums[tile]));
                }
                threads::for_each(threads, items, |(panel, sums)| {
                    for start in (0..block_groups).step_by(CHUNK_GROUPS) {
                        let end = block_groups.min(start + CHUNK_GROUPS);
                        let ahead = if end < block_groups {
                            CHUNK_GROUPS * GROUP_BYTES
                        } else {
                            matrix.stride - start * GROUP_BYTES
                        };
                        on_arm!(
                            self,
                            byte_matrix::multiply_chunk(
                                matrix.panel_groups(panel, first_group + start..first_group + end),
                                &prepared[start * tile_width..end * tile_width],
                                sums,
                                ahead
                            )
                        );
                    }
                });
                let part_done = tile_end as f64 / width as f64 * block_groups as f64;
                progress((first_group as f64 + part_done) / groups as f64);
            }
        }

        let items = whole.chunks_mut(width).collect();
        threads::for_each(threads, items, |panel: &mut [PanelSums]| {
            let sums = panel.to_vec();
            transpose(&sums, panel.as_flattened_mut());
        });
        transpose(&last_sums, last_rows);
        progress(1.0);
        Ok(())
    }

    /// Arranges one block of expanded rows of the public matrix in the order of
    /// [`multiply_chunk`](Kernels::multiply_chunk): by tile of vectors, then by chunk, by vector
    /// and by group.
    fn prepare_block(self, words: &[u32], width: usize, block: &mut [Prepared], threads: usize) {
        let block_groups = block.len() / width;
        let items = block.chunks_mut(block_groups * TILE_VECTORS).enumerate().collect();
        threads::for_each(threads, items, |(tile, prepared): (usize, &mut [Prepared])| {
            let tile_width = prepared.len() / block_groups;
            for (group, rows) in words.chunks_exact(GROUP_COLUMNS * width).enumerate() {
                let start = group / CHUNK_GROUPS * CHUNK_GROUPS;
                let chunk_groups = CHUNK_GROUPS.min(block_groups - start);
                let chunk = &mut prepared[start * tile_width..(start + chunk_groups) * tile_width];
                for t in 0..tile_width {
                    let k = tile * TILE_VECTORS + t;
                    let words =
                        [rows[k], rows[width + k], rows[2 * width + k], rows[3 * width + k]];
                    chunk[t * chunk_groups + group - start] = self.prepare_group(words);
                }
            }
        });
    }
}

/// Calls `fill` to write consecutive rows of the public matrix from `first_column` on, as many as
/// `words` holds.
fn expand(
    first_column: usize,
    width: usize,
    fill: &(impl Fn(usize, usize, &mut [u32]) + Sync),
    words: &mut [u32],
    threads: usize,
) {
    let items = words.chunks_mut(FILL_COLUMNS * width).enumerate().collect();
    threads::for_each(threads, items, |(i, words): (usize, &mut [u32])| {
        fill(first_column + i * FILL_COLUMNS, words.len() / width, words);
    });
}

/// Turns sums that lie vector by vector (64 rows each) into as many rows, row-major, as `rows`
/// holds.
pub(super) fn transpose(sums: &[PanelSums], rows: &mut [u32]) {
    for (r, row) in rows.chunks_exact_mut(sums.len().max(1)).enumerate() {
        for (word, sums) in row.iter_mut().zip(sums) {
            *word = sums[r];
        }
    }
}
