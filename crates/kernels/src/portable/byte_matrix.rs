//! Tiles and their products with vectors.

use crate::byte_matrix::{GROUP_BYTES, GROUP_COLUMNS, PANEL_ROWS};

/// Tiles the rows from `first_row` on (a multiple of 64) of whole groups of `columns`, which all
/// have the same length.
///
/// `panels` is the memory of the panels from row `first_row` on, `stride` bytes apart; in each of
/// them the groups go to `offset` and following. The number of panels and the length of the columns
/// determine the end. Rows beyond a column's end keep their bytes, which are the zeros of the
/// padding.
pub(crate) fn tile_rows(
    columns: &[&[u8]],
    first_row: usize,
    panels: &mut [u8],
    stride: usize,
    offset: usize,
) {
    for (p, panel) in panels.chunks_exact_mut(stride).enumerate() {
        tile_panel(columns, first_row + p * PANEL_ROWS, &mut panel[offset..]);
    }
}

/// Tiles the up to 64 rows from `row` on into consecutive groups at the start of `tiles`.
pub(crate) fn tile_panel(columns: &[&[u8]], row: usize, tiles: &mut [u8]) {
    for (group, columns) in tiles.chunks_exact_mut(GROUP_BYTES).zip(columns.chunks(GROUP_COLUMNS)) {
        for (c, column) in columns.iter().enumerate() {
            let rows = &column[row..column.len().min(row + PANEL_ROWS)];
            for (r, &byte) in rows.iter().enumerate() {
                group[r * GROUP_COLUMNS + c] = byte;
            }
        }
    }
}

/// The words of one vector for the four columns of a group, in the form that this arm's
/// [`multiply_chunk`] takes. Here: as they are.
pub(crate) fn prepare_group(words: [u32; 4]) -> [u32; 4] {
    words
}

/// Multiplies consecutive groups of one panel by several vectors and adds the 64 results for each
/// to `sums`, modulo 2³².
///
/// `prepared` holds `chunk.len()` prepared groups for the first vector, then as many for the
/// second, and so on; there are `sums.len()` vectors. `ahead` is the distance in bytes from this
/// chunk to memory that will be needed next, for arms that prefetch.
///
/// # Panics
///
/// If `prepared.len()` is not `chunk.len() * sums.len()`.
pub(crate) fn multiply_chunk(
    chunk: &[[u8; GROUP_BYTES]],
    prepared: &[[u32; 4]],
    sums: &mut [[u32; PANEL_ROWS]],
    _ahead: usize,
) {
    assert_eq!(prepared.len(), chunk.len() * sums.len());
    for (sums, prepared) in sums.iter_mut().zip(prepared.chunks(chunk.len().max(1))) {
        for (group, words) in chunk.iter().zip(prepared) {
            for (sum, bytes) in sums.iter_mut().zip(group.as_chunks::<GROUP_COLUMNS>().0) {
                let [a, b, c, d] = bytes.map(u32::from);
                *sum = sum
                    .wrapping_add(a.wrapping_mul(words[0]))
                    .wrapping_add(b.wrapping_mul(words[1]))
                    .wrapping_add(c.wrapping_mul(words[2]))
                    .wrapping_add(d.wrapping_mul(words[3]));
            }
        }
    }
}
