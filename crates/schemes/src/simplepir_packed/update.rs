//! A server of the next version packs the blocks again that changes touch.
//!
//! A changed byte changes the mask of its row, through it the digits, and so all that is kept of
//! its block. Other blocks stay as they are. If masks are on demand, those that changed are written
//! over in their matrix, and all of its blocks are packed again: three, unless records are longer
//! than a block. Clients download the masks again: the whole is not larger than a patch would be.

use super::{SimplePirPackedParameters, SimplePirPackedServer};
use privet_core::ring::Folding;
use privet_core::{Error, Result, TableChanges, TableSource};
use std::collections::BTreeSet;

impl SimplePirPackedServer {
    /// The server of the table after `changes`. `None` if the table has another number of columns
    /// than before: then all blocks change.
    pub(super) fn packed_again(
        &self,
        parameters: SimplePirPackedParameters,
        table: TableSource<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<Self>> {
        table.check_shape(parameters.shape())?;
        if (changes.shape(), changes.shape_after()) != (self.parameters.shape(), table.shape()) {
            return Err(Error::api_misuse("the changes are between tables of other shapes"));
        }
        let layout = |parameters: &SimplePirPackedParameters| {
            let (rows, columns) = (parameters.rows(), parameters.columns());
            (rows, columns, parameters.query_bits(), parameters.form(), parameters.masks())
        };
        if layout(&parameters) != layout(&self.parameters) {
            return Ok(None);
        }
        let (kernels, record_len) = (self.kernels, parameters.shape().record_len());
        let mut packed = self.table.copied()?;
        let mut touched = BTreeSet::new();
        for (index, before, after) in changes.records() {
            let per_column = parameters.records_per_column();
            let (column, first_row) = (index / per_column, index % per_column * record_len);
            packed.set_bytes(column, first_row, after);
            let rows = (first_row..).zip(before.iter().zip(after));
            let changed = rows.filter(|(_, (before, after))| before != after);
            touched.extend(changed.map(|(row, _)| parameters.table_layout().block_of(row)));
        }
        let anything = !touched.is_empty();
        let mut downloaded = self.downloaded.clone();
        let mask_bytes = parameters.form().mask_bytes();
        let mut download = |block: u64, mask: &[u8]| {
            downloaded[(block * mask_bytes) as usize..][..mask.len()].copy_from_slice(mask);
        };
        let masks = match &self.masks {
            None => {
                packed.pack_again(touched, kernels, threads, download)?;
                None
            }
            Some(masks) => {
                let mut masks = masks.copied()?;
                let per_unit = parameters.table_layout().blocks_per_unit();
                packed.pack_again(touched, kernels, threads, |block, mask| {
                    masks.set_bytes(block / per_unit, block % per_unit * mask_bytes, mask);
                })?;
                if anything {
                    let all = 0..masks.layout().blocks();
                    masks.pack_again(all, kernels, threads, &mut download)?;
                }
                Some(masks)
            }
        };
        let (table, folding) = (packed, Folding::new(parameters.form()));
        Ok(Some(Self { parameters, table, masks, downloaded, folding, kernels, threads }))
    }
}
