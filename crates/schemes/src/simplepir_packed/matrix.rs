//! A byte matrix in memory, with its packing matrix beside it: what a query is multiplied with.

use super::layout::MatrixLayout;
use super::packing::pack_blocks;
use crate::laid_out::no_memory;
use privet_core::Result;
use privet_core::codec::{BitReader, BitWriter};
use privet_core::ring::{Folding, PLANES, PublicKeys, pass_words};
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use privet_kernels::progress::ProgressReporter;

/// Columns of the packing matrix that are put into place at a time.
const COLUMNS_AT_ONCE: usize = 16;

/// A matrix that is packed.
pub(super) struct PackedMatrix {
    layout: MatrixLayout,
    /// The bytes, zeros up to a multiple of 16 columns, and the four planes of the packing matrix.
    matrix: TiledBytes,
    /// The digits of the fold, little-endian: 8 KiB for each block.
    digits: Vec<u8>,
}

/// Memory for a matrix and its packing.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(super) fn room(layout: &MatrixLayout) -> Result<TiledBytes> {
    let (rows, columns) = (layout.rows() as usize, layout.pass_columns() as usize);
    TiledBytes::zeroed(rows, columns).map_err(no_memory)
}

/// The same with the bytes of the matrix in place, column after column.
///
/// # Errors
/// As [`room`].
pub(super) fn tiled(layout: &MatrixLayout, bytes: &[u8], threads: usize) -> Result<TiledBytes> {
    let mut matrix = room(layout)?;
    matrix.fill_columns(0, bytes, threads);
    Ok(matrix)
}

/// Packs the matrix that is in the first columns of `matrix`, and writes what is kept of it.
///
/// # Errors
/// As [`pack_blocks`].
pub(super) fn pack_all(
    layout: &MatrixLayout,
    matrix: &TiledBytes,
    kernels: Kernels,
    threads: usize,
    kept: &mut [u32],
    progress: &ProgressReporter<'_>,
) -> Result<()> {
    let (mut blocks, mut left) = (Vec::new(), kept);
    for (block, rows) in (0..).zip(layout.block_rows()) {
        let (of_block, others) = left.split_at_mut(layout.kept_block_words(rows));
        blocks.push((block, of_block));
        left = others;
    }
    pack_blocks(layout, matrix, kernels, threads, blocks, progress)
}

impl PackedMatrix {
    /// Puts what was kept of a matrix beside it.
    pub(super) fn new(
        layout: MatrixLayout,
        mut matrix: TiledBytes,
        kept: &KeptMatrix<'_>,
        threads: usize,
    ) -> Self {
        kept.fill_planes(&layout, &mut matrix, threads);
        let digits = kept.digits();
        Self { layout, matrix, digits }
    }

    /// Symbols for queries, from each query's words for this matrix and its keys. One pass.
    pub(super) fn answer(
        &self,
        kernels: Kernels,
        folding: &Folding,
        query_bits: u32,
        queries: &[(&[u32], &PublicKeys)],
        threads: usize,
    ) -> Vec<Vec<u16>> {
        let Self { layout, matrix, digits } = self;
        let (form, columns) = (layout.form(), layout.padded_columns() as usize);
        let words = queries.iter();
        let words: Vec<Vec<u32>> =
            words.map(|(words, keys)| pass_words(form, query_bits, words, keys, columns)).collect();
        let words: Vec<&[u32]> = words.iter().map(Vec::as_slice).collect();
        let mut sums = vec![vec![0; layout.rows() as usize]; queries.len()];
        let mut out: Vec<&mut [u32]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
        kernels.multiply(matrix, &words, &mut out, threads);
        let digits = folding.digits(kernels, digits);
        let answers = queries.iter().zip(&sums);
        answers
            .map(|((_, keys), sums)| {
                let rows = layout.block_rows().map(|rows| rows as usize);
                folding.symbols(kernels, &digits, keys, sums, rows)
            })
            .collect()
    }

    /// A copy in which some bytes are others.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(super) fn copied(&self) -> Result<Self> {
        let (layout, digits) = (self.layout.clone(), self.digits.clone());
        Ok(Self { layout, matrix: self.matrix.copied().map_err(no_memory)?, digits })
    }

    /// Overwrites bytes of one column. The blocks of their rows have to be [packed
    /// again](Self::pack_again).
    pub(super) fn set_bytes(&mut self, column: u64, row: u64, bytes: &[u8]) {
        self.matrix.set_bytes(column as usize, row as usize, bytes);
    }

    /// Packs blocks again. Calls `on_mask` with each of them and its new mask, as it is downloaded.
    ///
    /// # Errors
    /// As [`pack_blocks`].
    pub(super) fn pack_again(
        &mut self,
        blocks: impl IntoIterator<Item = u64>,
        kernels: Kernels,
        threads: usize,
        mut on_mask: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        let Self { layout, matrix, digits } = self;
        let degree = layout.form().degree();
        let mut kept: Vec<(u64, Vec<u32>)> = blocks
            .into_iter()
            .map(|block| {
                let rows = layout.block(block);
                (block, vec![0; layout.kept_block_words(rows.end - rows.start)])
            })
            .collect();
        let progress = ProgressReporter::new(kept.len() as u128, &|_| {});
        let blocks = kept.iter_mut().map(|(block, kept)| (*block, kept.as_mut_slice())).collect();
        pack_blocks(layout, matrix, kernels, threads, blocks, &progress)?;
        for (block, kept) in kept {
            let first_row = layout.block(block).start as usize;
            let (packing, rest) = kept.split_at(kept.len() - 2 * degree);
            let rows = packing.len() / degree;
            for plane in 0..PLANES {
                for (number, words) in packing.chunks_exact(rows).enumerate() {
                    let bytes: Vec<u8> =
                        words.iter().map(|word| word.to_le_bytes()[plane]).collect();
                    let column = layout.padded_columns() as usize + plane * degree + number;
                    matrix.set_bytes(column, first_row, &bytes);
                }
            }
            let (of_fold, mask) = rest.split_at(degree);
            let of_block = &mut digits[4 * block as usize * degree..][..4 * degree];
            for (bytes, digit) in of_block.as_chunks_mut::<4>().0.iter_mut().zip(of_fold) {
                *bytes = digit.to_le_bytes();
            }
            let mut writer = BitWriter::with_capacity(layout.form().mask_bytes() as usize);
            let bits = layout.form().mask_bits();
            writer.push(mask.iter().map(|word| u64::from(*word)), bits);
            on_mask(block, &writer.finish());
        }
        Ok(())
    }

    /// Writes what was kept of the matrix, as [`pack_all`] did. `mask` gives the mask of a block,
    /// as it is downloaded.
    ///
    /// # Errors
    /// If a mask is none.
    pub(super) fn kept(
        &self,
        kept: &mut [u32],
        mut mask: impl FnMut(u64, &mut [u8]),
    ) -> Result<()> {
        let Self { layout, matrix, digits } = self;
        let (form, degree) = (layout.form(), layout.form().degree());
        let mut of_block = vec![0; form.mask_bytes() as usize];
        let mut left = kept;
        for block in 0..layout.blocks() {
            let rows = layout.block(block);
            let (first_row, rows) = (rows.start as usize, (rows.end - rows.start) as usize);
            let (words, others) = left.split_at_mut(layout.kept_block_words(rows as u64));
            let (packing, rest) = words.split_at_mut(rows * degree);
            let (of_fold, of_mask) = rest.split_at_mut(degree);
            let mut bytes = vec![0; rows];
            for plane in 0..PLANES {
                for (number, words) in packing.chunks_exact_mut(rows).enumerate() {
                    let column = layout.padded_columns() as usize + plane * degree + number;
                    matrix.read_bytes(column, first_row, &mut bytes);
                    for (word, byte) in words.iter_mut().zip(&bytes) {
                        *word |= u32::from(*byte) << (8 * plane);
                    }
                }
            }
            let of_digits = &digits[4 * block as usize * degree..][..4 * degree];
            for (word, bytes) in of_fold.iter_mut().zip(of_digits.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
            mask(block, &mut of_block);
            let bits = form.mask_bits();
            let mut reader = BitReader::new("a mask", &of_block, degree * bits as usize)?;
            for (word, number) in of_mask.iter_mut().zip(reader.numbers(degree, bits)?) {
                *word = number as u32;
            }
            left = others;
        }
        Ok(())
    }

    /// Copies rows of one column.
    pub(super) fn read_bytes(&self, column: u64, row: u64, out: &mut [u8]) {
        self.matrix.read_bytes(column as usize, row as usize, out);
    }

    pub(super) fn layout(&self) -> &MatrixLayout {
        &self.layout
    }

    pub(super) fn resident_bytes(&self) -> usize {
        self.matrix.bytes() + self.digits.len()
    }

    pub(super) fn huge_page_bytes(&self) -> Option<usize> {
        self.matrix.huge_page_bytes()
    }

    pub(super) fn held(&self) -> [&[u8]; 2] {
        [self.matrix.as_bytes(), &self.digits]
    }
}

/// What was kept of a matrix, block by block, in bytes.
pub(super) struct KeptMatrix<'a> {
    degree: usize,
    rows: usize,
    blocks: Vec<&'a [[u8; 4]]>,
}

impl<'a> KeptMatrix<'a> {
    /// # Panics
    /// If `kept` is not of the layout's length.
    pub(super) fn new(layout: &MatrixLayout, kept: &'a [u8]) -> Self {
        let (mut left, _) = kept.as_chunks::<4>();
        let blocks = layout.block_rows().map(|rows| {
            let (block, others) = left.split_at(layout.kept_block_words(rows));
            left = others;
            block
        });
        let blocks = blocks.collect();
        Self { degree: layout.form().degree(), rows: layout.rows() as usize, blocks }
    }

    /// Writes the planes of the packing matrix after the matrix' own columns.
    fn fill_planes(&self, layout: &MatrixLayout, matrix: &mut TiledBytes, threads: usize) {
        let mut bytes = Vec::with_capacity(COLUMNS_AT_ONCE * self.rows);
        for plane in 0..PLANES {
            for first in (0..self.degree).step_by(COLUMNS_AT_ONCE) {
                bytes.clear();
                for column in first..first + COLUMNS_AT_ONCE {
                    for block in &self.blocks {
                        let rows = block.len() / self.degree - 2;
                        let words = &block[column * rows..][..rows];
                        bytes.extend(words.iter().map(|word| word[plane]));
                    }
                }
                let column = layout.padded_columns() as usize + plane * self.degree + first;
                matrix.fill_columns(column, &bytes, threads);
            }
        }
    }

    /// The digits of the fold.
    fn digits(&self) -> Vec<u8> {
        let of_block = |block: &&'a [[u8; 4]]| {
            let words: &'a [[u8; 4]] = &block[block.len() - 2 * self.degree..];
            words[..self.degree].as_flattened()
        };
        self.blocks.iter().flat_map(of_block).copied().collect()
    }

    /// The masks, block by block, as they are downloaded.
    pub(super) fn masks(&self, layout: &MatrixLayout) -> Vec<u8> {
        let mut writer = BitWriter::with_capacity(layout.mask_bytes() as usize);
        for block in &self.blocks {
            let words = block[block.len() - self.degree..].iter();
            let words = words.map(|word| u64::from(u32::from_le_bytes(*word)));
            writer.push(words, layout.form().mask_bits());
        }
        writer.finish()
    }
}
