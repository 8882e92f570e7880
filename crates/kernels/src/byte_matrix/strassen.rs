//! The product with a matrix by fewer multiplications.
//!
//! Strassen's identity multiplies two matrices cut into 2 × 2 parts with seven products of parts
//! instead of eight. Applied three times, it needs 343 products of eighths instead of 512. That is
//! two thirds of the work, because at these sizes nearly all work is multiplication. The price is
//! that the left factor's parts are sums of up to eight bytes, which no longer fit into a byte.
//! They fit easily into a signed half-word. Multiplying half-words by the two half-words of a word
//! costs exactly as much as multiplying bytes by its four bytes: half as many products for each
//! instruction, but also half as many digits. The right factor's parts are sums of words modulo
//! 2³², which stay words. So do the results, which are added to or subtracted from the output.
//! Everything is exact modulo 2³².
//!
//! ```text
//! matrix: 8 strips of panels x 8 parts of groups      each product t of the 343:
//! a:      8 parts of groups  x 8 parts of width          left  = sum of up to 8 of the 64 parts of the matrix, on the fly, tile by tile
//! out:    8 strips of panels x 8 parts of width          right = sum of up to 8 of the 64 parts of a
//!                                                         left * right is added to, or taken from, up to 8 of the 64 parts of out
//! ```
//!
//! Strips and parts that reach beyond the end are zeros that are never stored: they drop out of the
//! sums. Source: V. Strassen, *Gaussian Elimination is not Optimal*, Numerische Mathematik 13,
//! 1969.
//!
//! Measured for a table of 1 GiB, a hint takes 16.3 s. The plain product, at 0.97 of the
//! multiplier's limit, takes 19.4 s.

use super::product::{PanelSums, Prepared, transpose};
use super::{GROUP_BYTES, GROUP_COLUMNS, PANEL_ROWS, TiledBytes};
use crate::dispatch::Kernels;
use crate::dispatch::on_arm;
use crate::memory::{HugeBuffer, MemoryError};
use crate::threads;

/// How often the identity is applied. A fourth time would save another eighth of the
/// multiplications, but cost more in additions.
const LEVELS: u32 = 3;

/// Parts along each side of each matrix.
const PARTS: usize = 1 << LEVELS;

/// Products of parts.
const PRODUCTS: usize = 7usize.pow(LEVELS);

/// Groups whose widened sums are made at a time: 16 KiB, half of a first-level cache.
const CHUNK_GROUPS: usize = 32;

/// Columns of the public matrix that are held expanded at a time.
const BLOCK_COLUMNS: usize = 1 << 15;

/// The least groups and panels of a part for which the additions pay.
const LEAST_PART_GROUPS: usize = 4 * CHUNK_GROUPS;
const LEAST_STRIP_PANELS: usize = 8;
const LEAST_PART_WIDTH: usize = 32;

/// 64 rows × 4 columns of sums: first columns 0 and 2 side by side for each row, then columns 1
/// and 3. This is the order of the even and odd bytes of a [group](super). Aligned to cache lines,
/// so that no load crosses one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct WideGroup(pub(crate) [[i16; 2 * PANEL_ROWS]; 2]);

/// A part in a sum: its row and column among the parts, and whether it is subtracted.
#[derive(Clone, Copy)]
struct Term {
    row: usize,
    column: usize,
    minus: bool,
}

const fn plus(row: usize, column: usize) -> Term {
    Term { row, column, minus: false }
}

const fn minus(row: usize, column: usize) -> Term {
    Term { row, column, minus: true }
}

/// Strassen's seven products: the factors of each, and the parts of the output to which it is
/// added.
struct Identity {
    left: [&'static [Term]; 7],
    right: [&'static [Term]; 7],
    out: [&'static [Term]; 7],
}

const STRASSEN: Identity = Identity {
    left: [
        &[plus(0, 0), plus(1, 1)],
        &[plus(1, 0), plus(1, 1)],
        &[plus(0, 0)],
        &[plus(1, 1)],
        &[plus(0, 0), plus(0, 1)],
        &[plus(1, 0), minus(0, 0)],
        &[plus(0, 1), minus(1, 1)],
    ],
    right: [
        &[plus(0, 0), plus(1, 1)],
        &[plus(0, 0)],
        &[plus(0, 1), minus(1, 1)],
        &[plus(1, 0), minus(0, 0)],
        &[plus(1, 1)],
        &[plus(0, 0), plus(0, 1)],
        &[plus(1, 0), plus(1, 1)],
    ],
    out: [
        &[plus(0, 0), plus(1, 1)],
        &[plus(1, 0), minus(1, 1)],
        &[plus(0, 1), plus(1, 1)],
        &[plus(0, 0), plus(1, 0)],
        &[minus(0, 0), plus(0, 1)],
        &[plus(1, 1)],
        &[plus(0, 0)],
    ],
};

/// The terms of product `product` of the identity applied [`LEVELS`] times: one choice of seven for
/// each level.
fn terms(mut product: usize, of: &[&[Term]; 7]) -> Vec<Term> {
    let mut terms = vec![plus(0, 0)];
    for _ in 0..LEVELS {
        let inner = of[product % 7];
        product /= 7;
        let refine = |outer: Term| {
            inner.iter().map(move |inner| Term {
                row: 2 * outer.row + inner.row,
                column: 2 * outer.column + inner.column,
                minus: outer.minus != inner.minus,
            })
        };
        terms = terms.into_iter().flat_map(refine).collect();
    }
    terms
}

/// The added and the subtracted slices of a sum.
struct Sum<'a, T> {
    plus: Vec<&'a [T]>,
    minus: Vec<&'a [T]>,
}

impl<'a, T> Sum<'a, T> {
    /// The sum over `terms` of the slices that `part` finds. Missing parts count as zeros.
    fn of(terms: &[Term], part: impl Fn(&Term) -> Option<&'a [T]>) -> Self {
        let mut sum =
            Sum { plus: Vec::with_capacity(terms.len()), minus: Vec::with_capacity(terms.len()) };
        for term in terms {
            if let Some(slice) = part(term) {
                if term.minus { sum.minus.push(slice) } else { sum.plus.push(slice) }
            }
        }
        sum
    }

    fn is_zero(&self) -> bool {
        self.plus.is_empty() && self.minus.is_empty()
    }
}

/// Whether a product of this size is faster in parts.
pub(crate) fn pays(matrix: &TiledBytes, width: usize) -> bool {
    width.is_multiple_of(PARTS)
        && width / PARTS >= LEAST_PART_WIDTH
        && matrix.rows() >= PARTS * LEAST_STRIP_PANELS * PANEL_ROWS
        && matrix.groups() >= PARTS * LEAST_PART_GROUPS
}

impl Kernels {
    /// As [`multiply_matrix`](Kernels::multiply_matrix), for a `width` that is a multiple of 8.
    /// Holds up to 32 768 rows of the right factor expanded.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when there is no room for that; `out` is then untouched.
    pub(crate) fn multiply_matrix_in_parts(
        self,
        matrix: &TiledBytes,
        width: usize,
        fill: &(impl Fn(usize, usize, &mut [u32]) + Sync),
        out: &mut [u32],
        threads: usize,
        progress: &(impl Fn(f64) + Sync),
    ) -> Result<(), MemoryError> {
        assert!(width.is_multiple_of(PARTS), "the width is cut into {PARTS} parts");
        let block_columns = BLOCK_COLUMNS.min(matrix.groups() * GROUP_COLUMNS);
        let mut expanded = HugeBuffer::<u32>::new_zeroed(block_columns * width)?;
        let part_groups = (block_columns / GROUP_COLUMNS).div_ceil(PARTS);
        let mut right = HugeBuffer::<u32>::new_zeroed(part_groups * (width / PARTS) * 4)?;
        let right: &mut [Prepared] = right.as_chunks_mut().0;
        out.fill(0);
        let blocks = matrix.columns().div_ceil(block_columns);
        for block in 0..blocks {
            let first_column = block * block_columns;
            let columns = block_columns.min(matrix.columns() - first_column);
            let padded = columns.next_multiple_of(GROUP_COLUMNS);
            expanded[columns * width..padded * width].fill(0);
            let items = expanded[..columns * width]
                .chunks_mut(COLUMNS_PER_FILL * width)
                .enumerate()
                .collect();
            threads::for_each(threads, items, |(item, words): (usize, &mut [u32])| {
                fill(first_column + item * COLUMNS_PER_FILL, words.len() / width, words);
            });
            let factor = Block {
                kernels: self,
                matrix,
                first_group: first_column / GROUP_COLUMNS,
                groups: padded / GROUP_COLUMNS,
                words: &expanded[..padded * width],
                width,
                threads,
            };
            for product in 0..PRODUCTS {
                factor.add_product(product, right, out);
                progress((block * PRODUCTS + product + 1) as f64 / (blocks * PRODUCTS) as f64);
            }
        }
        Ok(())
    }
}

/// Rows of the right factor that are expanded by one call of `fill`.
const COLUMNS_PER_FILL: usize = 256;

/// A block of columns of the matrix, and the rows of the right factor that belong to it.
struct Block<'a> {
    kernels: Kernels,
    matrix: &'a TiledBytes,
    first_group: usize,
    groups: usize,
    /// `4 · groups` rows of `width` words.
    words: &'a [u32],
    width: usize,
    threads: usize,
}

impl Block<'_> {
    fn part_groups(&self) -> usize {
        self.groups.div_ceil(PARTS)
    }

    fn part_width(&self) -> usize {
        self.width / PARTS
    }

    /// Adds one product of parts to every part of `out` to which it belongs.
    fn add_product(&self, product: usize, right: &mut [Prepared], out: &mut [u32]) {
        let right = &mut right[..self.part_groups() * self.part_width()];
        self.write_right_factor(&terms(product, &STRASSEN.right), right);
        let right = &*right;
        let left_terms = terms(product, &STRASSEN.left);
        let out_terms = terms(product, &STRASSEN.out);

        // Panel p of all strips is one piece of work. Different p share no memory, so threads take
        // them in parallel.
        let panels = self.matrix.rows().div_ceil(PANEL_ROWS);
        let strip_panels = panels.div_ceil(PARTS);
        let mut items: Vec<(usize, Vec<&mut [u32]>)> =
            (0..strip_panels).map(|p| (p, Vec::with_capacity(PARTS))).collect();
        for (panel, rows) in out.chunks_mut(PANEL_ROWS * self.width).enumerate() {
            items[panel % strip_panels].1.push(rows);
        }
        threads::for_each(self.threads, items, |(p, mut strips)| {
            let Some(sums) = self.multiply_panel(p, strip_panels, &left_terms, right) else {
                return;
            };
            let mut rows = vec![0; PANEL_ROWS * self.part_width()];
            transpose(&sums, &mut rows);
            for term in &out_terms {
                // The last strip may have fewer panels, and the last panel fewer rows.
                let Some(strip) = strips.get_mut(term.row) else { continue };
                let first = term.column * self.part_width();
                for (row, sums) in strip.chunks_mut(self.width).zip(rows.chunks(self.part_width()))
                {
                    let row = &mut row[first..first + self.part_width()];
                    on_arm!(self.kernels, strassen::accumulate_words(sums, term.minus, row));
                }
            }
        });
    }

    /// Panel `p` of the product's left factor times its right factor; `None` if it is zero.
    fn multiply_panel(
        &self,
        p: usize,
        strip_panels: usize,
        left: &[Term],
        right: &[Prepared],
    ) -> Option<Vec<PanelSums>> {
        let panels = self.matrix.rows().div_ceil(PANEL_ROWS);
        let mut sums = vec![[0u32; PANEL_ROWS]; self.part_width()];
        let mut wide = vec![WideGroup([[0; 2 * PANEL_ROWS]; 2]); CHUNK_GROUPS];
        let mut touched = false;
        for start in (0..self.part_groups()).step_by(CHUNK_GROUPS) {
            let len = CHUNK_GROUPS.min(self.part_groups() - start);
            let sum = Sum::of(left, |term| {
                let panel = term.row * strip_panels + p;
                let first = term.column * self.part_groups() + start;
                let last = self.groups.min(first + len);
                (panel < panels && first < last).then(|| {
                    self.matrix
                        .panel_groups(panel, self.first_group + first..self.first_group + last)
                })
            });
            if sum.is_zero() {
                continue;
            }
            touched = true;
            let wide = &mut wide[..len];
            on_arm!(self.kernels, strassen::sum_groups(&sum.plus, &sum.minus, wide));
            let prepared = &right[start * self.part_width()..(start + len) * self.part_width()];
            on_arm!(self.kernels, strassen::multiply_wide(wide, prepared, &mut sums));
        }
        touched.then_some(sums)
    }

    /// The product's right factor, in the order of [`multiply_wide`](Kernels::multiply_wide): by
    /// chunk, then by vector, then by group.
    fn write_right_factor(&self, terms: &[Term], right: &mut [Prepared]) {
        let (part_groups, part_width) = (self.part_groups(), self.part_width());
        let items = right.chunks_mut(CHUNK_GROUPS * part_width).enumerate().collect();
        threads::for_each(self.threads, items, |(chunk, prepared): (usize, &mut [Prepared])| {
            let chunk_groups = prepared.len() / part_width;
            let mut rows = vec![0u32; GROUP_COLUMNS * part_width];
            let mut places = Vec::with_capacity(terms.len());
            for group in 0..chunk_groups {
                for (column, row) in rows.chunks_mut(part_width).enumerate() {
                    places.clear();
                    places.extend(terms.iter().filter_map(|term| {
                        let group = term.row * part_groups + chunk * CHUNK_GROUPS + group;
                        let first = (group * GROUP_COLUMNS + column) * self.width
                            + term.column * part_width;
                        (group < self.groups).then_some((first, term.minus))
                    }));
                    on_arm!(self.kernels, strassen::sum_words(self.words, &places, row));
                }
                let (ab, cd) = rows.split_at(2 * part_width);
                let ((a, b), (c, d)) = (ab.split_at(part_width), cd.split_at(part_width));
                let words = a.iter().zip(b).zip(c.iter().zip(d));
                for (prepared, ((a, b), (c, d))) in
                    prepared[group..].iter_mut().step_by(chunk_groups).zip(words)
                {
                    *prepared = self.kernels.prepare_wide([*a, *b, *c, *d]);
                }
            }
        });
    }
}

// A sum of up to 2^LEVELS bytes fits a signed half-word, and the product of a sum with a half-word,
// twice, fits a word.
const _: () = assert!(255 * PARTS < 1 << 14 && GROUP_BYTES == 256);
