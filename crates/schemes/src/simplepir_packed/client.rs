//! The client: encrypts the number of the wanted column, and reads its record from the answer.

use super::layout::MatrixLayout;
use super::params::MatrixPlace;
use super::{
    SimplePirPacked, SimplePirPackedAnswer, SimplePirPackedParameters, SimplePirPackedQuery,
};
use crate::contract::{Ahead, Record, SchemeOf, StatelessClient, of_all};
use crate::offline::{HintSource, check_len};
use privet_core::codec::BitReader;
use privet_core::ring::{Blank, BlockSymbols, EncryptionFactors, RingKey, encrypt_zero};
use privet_core::{RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of one table in one epoch. It needs what it downloads only to read answers, so that may
/// come [later](crate::offline::LateHint) than its first query is sent.
pub struct SimplePirPackedClient {
    parameters: SimplePirPackedParameters,
    downloaded: Arc<dyn HintSource>,
    factors: Arc<EncryptionFactors>,
    kernels: Kernels,
}

/// What recovering one record needs: the key, the row at which the record begins, and the unit of
/// its rows.
pub struct SimplePirPackedPending {
    key: RingKey,
    first_row: Secret<u64>,
    unit: Secret<u64>,
}

impl SimplePirPackedPending {
    /// The key, for tests of what a query gives away.
    #[cfg(test)]
    pub(super) fn key(&self) -> &RingKey {
        &self.key
    }
}

impl SimplePirPackedClient {
    /// A client that reads masks from `downloaded`: those of the table, or those of its masks if
    /// these are on demand. Expands and transforms the table's public polynomials, of which it
    /// keeps 12 bytes for each coefficient.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the masks have another size than the
    /// parameters prescribe.
    pub fn new(
        parameters: SimplePirPackedParameters,
        downloaded: Arc<dyn HintSource>,
        kernels: Kernels,
    ) -> Result<Self> {
        check_len("the hint", downloaded.len(), parameters.hint_bytes())?;
        let public = parameters.table_layout().public(kernels);
        let mut factors = EncryptionFactors::new(kernels, parameters.form(), &public);
        if let Some(masks) = parameters.masks_layout() {
            factors = factors.with_vector(kernels, &masks.public(kernels).columns);
        }
        Ok(Self { parameters, downloaded, factors: Arc::new(factors), kernels })
    }
}

impl StatelessClient for SimplePirPackedClient {
    type Pending = SimplePirPackedPending;

    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<SimplePirPackedQuery>, SimplePirPackedPending)> {
        self.fill(self.blank_maker()(rng), index)
    }

    fn recover(
        &self,
        pending: SimplePirPackedPending,
        answers: &[SimplePirPackedAnswer],
    ) -> Result<Record> {
        let [answer] = of_all("packed SimplePIR", answers)?;
        let (table, masks) = (self.parameters.table_layout(), self.parameters.masks_layout());
        let (of_table, of_masks) = answer.symbols.split_at(table.rows() as usize);
        let first_row = *pending.first_row.expose();
        let mut record = Zeroizing::new(vec![0; self.parameters.shape().record_len() as usize]);
        let Some(masks) = masks else {
            let read = |block| self.downloaded_mask(block);
            self.decrypt((table, 0), &pending.key, of_table, first_row, &mut record, read)?;
            return Ok(record);
        };
        // The masks of the record's unit come with the answer, and are as secret as the record.
        let mut of_unit = Zeroizing::new(vec![0; table.unit_mask_bytes() as usize]);
        let read = |block| self.downloaded_mask(block);
        self.decrypt((masks, 1), &pending.key, of_masks, 0, &mut of_unit, read)?;
        let first_block = *pending.unit.expose() * table.blocks_per_unit();
        let mask_bytes = self.parameters.form().mask_bytes();
        let read = |block: u64| {
            let mask = &of_unit[((block - first_block) * mask_bytes) as usize..];
            self.coefficients(&mask[..mask_bytes as usize])
        };
        self.decrypt((table, 0), &pending.key, of_table, first_row, &mut record, read)?;
        Ok(record)
    }
}

impl Ahead for SimplePirPackedClient {
    type Blank = Blank;

    fn blank_maker(&self) -> impl Fn(&mut SecretRng) -> Blank + Send + Sync + 'static {
        let (kernels, factors) = (self.kernels, Arc::clone(&self.factors));
        let (lens, query_bits) = (self.parameters.vector_lens(), self.parameters.query_bits());
        move |rng| encrypt_zero(kernels, &factors, &lens, query_bits, rng)
    }

    fn copy_to_rehearse(blank: &Blank) -> Blank {
        blank.copy_to_rehearse()
    }

    fn fill(
        &self,
        blank: Blank,
        index: &RecordIndex,
    ) -> Result<(Vec<SimplePirPackedQuery>, SimplePirPackedPending)> {
        let (form, query_bits) = (self.parameters.form(), self.parameters.query_bits());
        let lens = self.parameters.vector_lens();
        blank.check(form, &lens, query_bits)?;
        let MatrixPlace { column, unit, first_row } = self.parameters.place(index);
        let (words, keys, key) = blank.into_query(&[column, unit][..lens.len()]);
        let (first_row, unit) = (Secret::new(first_row), Secret::new(unit));
        let pending = SimplePirPackedPending { key, first_row, unit };
        Ok((vec![SimplePirPackedQuery { form, query_bits, words, keys }], pending))
    }
}

impl SimplePirPackedClient {
    /// The bytes of one column of a matrix, from `row` on: that of vector `vector` of the query,
    /// whose symbols are given. `mask` reads the mask of a block.
    fn decrypt(
        &self,
        (layout, vector): (&MatrixLayout, usize),
        key: &RingKey,
        symbols: &[u16],
        mut row: u64,
        bytes: &mut [u8],
        mask: impl Fn(u64) -> Result<Zeroizing<Vec<u32>>>,
    ) -> Result<()> {
        let mut rest = bytes;
        // A record may lie in several blocks.
        while !rest.is_empty() {
            let block = layout.block_of(row);
            let rows = layout.block(block);
            let here = rest.len().min((rows.end - row) as usize);
            let (bytes, later) = rest.split_at_mut(here);
            let symbols = &symbols[row as usize..][..here];
            let (mask, first_row) = (mask(block)?, (row - rows.start) as usize);
            let symbols = BlockSymbols { vector, mask: &mask, first_row, symbols };
            key.decrypt(self.kernels, &self.factors, symbols, bytes);
            row += here as u64;
            rest = later;
        }
        Ok(())
    }

    /// The mask of a block, as it was downloaded. Which block that is may be secret, but the read
    /// is local: no server sees it.
    fn downloaded_mask(&self, block: u64) -> Result<Zeroizing<Vec<u32>>> {
        let mut bytes = vec![0; self.parameters.form().mask_bytes() as usize];
        self.downloaded.read_at(block * bytes.len() as u64, &mut bytes)?;
        self.coefficients(&bytes)
    }

    /// The coefficients of a mask.
    fn coefficients(&self, bytes: &[u8]) -> Result<Zeroizing<Vec<u32>>> {
        let form = self.parameters.form();
        let mut reader = BitReader::new("a mask", bytes, 8 * bytes.len())?;
        let words = reader.numbers(form.degree(), form.mask_bits())?;
        Ok(Zeroizing::new(words.map(|word| word as u32).collect()))
    }
}

impl SchemeOf for SimplePirPackedClient {
    type Scheme = SimplePirPacked;
}
