//! A server of the next version packs the blocks again that changes touch.
//!
//! A changed byte changes the mask of its row, through it the digits, and so all that is kept of
//! its block. Other blocks stay as they are. Clients download the masks again: the whole is not
//! larger than a patch would be.

use super::packing::{kept_block_words, pack_blocks};
use super::{SimplePirPackedParameters, SimplePirPackedServer};
use crate::contract::Succession;
use privet_core::codec::BitWriter;
use privet_core::ring::{Folding, PLANES};
use privet_core::{Error, Result, TableChanges, TableView};
use std::collections::BTreeSet;

impl Succession for SimplePirPackedServer {
    /// `None` if the table has another number of columns than before: then all blocks change.
    fn successor(
        &self,
        parameters: SimplePirPackedParameters,
        table: TableView<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        table.bytes_for(parameters.shape())?;
        if (changes.shape(), changes.shape_after()) != (self.parameters.shape(), table.shape()) {
            return Err(Error::api_misuse("the changes are between tables of other shapes"));
        }
        let layout = |parameters: &SimplePirPackedParameters| {
            (parameters.rows(), parameters.columns(), parameters.query_bits(), parameters.form())
        };
        if layout(&parameters) != layout(&self.parameters) {
            return Ok(None);
        }
        let mut matrix = self.matrix.copied().map_err(|error| {
            Error::unavailable("no memory for the next version of the table").caused_by(error)
        })?;
        let (form, record_len) = (parameters.form(), parameters.shape().record_len());
        let (degree, per_column) = (form.degree(), parameters.records_per_column());
        let mut touched = BTreeSet::new();
        for (index, before, after) in changes.records() {
            let (column, first_row) = (index / per_column, index % per_column * record_len);
            matrix.set_bytes(column as usize, first_row as usize, after);
            let rows = (first_row..).zip(before.iter().zip(after));
            let changed = rows.filter(|(_, (before, after))| before != after);
            touched.extend(changed.map(|(row, _)| row / degree as u64));
        }
        let mut kept: Vec<(u64, Vec<u32>)> = touched
            .into_iter()
            .map(|block| (block, vec![0; kept_block_words(&parameters, block)]))
            .collect();
        let blocks = kept.iter_mut().map(|(block, kept)| (*block, kept.as_mut_slice())).collect();
        pack_blocks(&parameters, &matrix, self.kernels, threads, blocks, &|_| {})?;

        let (mut digits, mut masks) = (self.digits.clone(), self.masks.clone());
        for (block, kept) in kept {
            let block = block as usize;
            let (packing, rest) = kept.split_at(kept.len() - 2 * degree);
            let rows = packing.len() / degree;
            for plane in 0..PLANES {
                for (number, words) in packing.chunks_exact(rows).enumerate() {
                    let bytes: Vec<u8> =
                        words.iter().map(|word| word.to_le_bytes()[plane]).collect();
                    let column = parameters.table_columns() as usize + plane * degree + number;
                    matrix.set_bytes(column, block * degree, &bytes);
                }
            }
            let (of_fold, mask) = rest.split_at(degree);
            let of_block = &mut digits[4 * block * degree..][..4 * degree];
            for (bytes, digit) in of_block.as_chunks_mut::<4>().0.iter_mut().zip(of_fold) {
                *bytes = digit.to_le_bytes();
            }
            let mask_bytes = form.mask_bytes() as usize;
            let mut writer = BitWriter::with_capacity(mask_bytes);
            writer.push(mask.iter().map(|word| u64::from(*word)), form.mask_bits());
            masks[block * mask_bytes..][..mask_bytes].copy_from_slice(&writer.finish());
        }
        let (folding, kernels) = (Folding::new(form), self.kernels);
        let server = Self { parameters, matrix, digits, masks, folding, kernels, threads };
        Ok(Some((server, Vec::new())))
    }
}
