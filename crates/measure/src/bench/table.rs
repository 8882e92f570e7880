//! The table that is measured: a public stream of bytes derived from a seed. Every received record
//! can be compared with it, and no second copy of the table is needed.

use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use std::collections::BTreeMap;

/// The table's contents: BLAKE3's output stream under the seed. Any record can be computed again.
pub(super) struct BenchTable {
    seed: u64,
    shape: TableShape,
    /// The bits of each byte that may vary.
    mask: u8,
    /// The bits that are set in every byte.
    base: u8,
    /// Edited records, which differ from the stream.
    edited: BTreeMap<u64, Vec<u8>>,
}

impl BenchTable {
    pub(super) fn new(seed: u64, shape: TableShape) -> Self {
        Self { seed, shape, mask: u8::MAX, base: 0, edited: BTreeMap::new() }
    }

    /// The same table with only one varying bit left in each byte, on top of `zero`.
    pub(super) fn of_single_bits(self, zero: u8) -> Self {
        Self { mask: 1, base: zero, ..self }
    }

    pub(super) fn shape(&self) -> TableShape {
        self.shape
    }

    /// An identity that follows from the seed. Its digest is not that of the contents: nothing here
    /// checks it.
    pub(super) fn identity(&self) -> TableIdentity {
        let mut digest = [0; 32];
        self.stream("privet bench table digest").fill(&mut digest);
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        TableIdentity {
            id: TableId(id),
            epoch: Epoch(0),
            digest: TableDigest(digest),
            shape: self.shape,
        }
    }

    /// All records, one after the other, as they were before any edit.
    pub(super) fn contents(&self) -> TableBytes {
        TableBytes { stream: self.stream("privet bench table"), mask: self.mask, base: self.base }
    }

    /// A record as it is now.
    pub(super) fn record(&self, index: u64) -> Vec<u8> {
        if let Some(edited) = self.edited.get(&index) {
            return edited.clone();
        }
        let mut record = vec![0; self.shape.record_len() as usize];
        let mut contents = self.contents();
        contents.stream.set_position(index * self.shape.record_len());
        contents.fill(&mut record);
        record
    }

    /// Replaces a record by one that differs in every byte, and returns the new one.
    pub(super) fn edit(&mut self, index: u64) -> Vec<u8> {
        let record: Vec<u8> = self.record(index).iter().map(|byte| byte ^ self.mask).collect();
        self.edited.insert(index, record.clone());
        record
    }

    /// The record that query `number` asks for.
    pub(super) fn wanted(&self, number: u64) -> u64 {
        let mut stream = self.stream("privet bench queries");
        stream.set_position(number * 16);
        let mut bytes = [0; 16];
        stream.fill(&mut bytes);
        (u128::from_le_bytes(bytes) % u128::from(self.shape.records())) as u64
    }

    fn stream(&self, purpose: &str) -> blake3::OutputReader {
        blake3::Hasher::new_derive_key(purpose).update(&self.seed.to_le_bytes()).finalize_xof()
    }
}

/// A table's bytes, from the start.
pub(super) struct TableBytes {
    stream: blake3::OutputReader,
    mask: u8,
    base: u8,
}

impl TableBytes {
    pub(super) fn fill(&mut self, out: &mut [u8]) {
        self.stream.fill(out);
        out.iter_mut().for_each(|byte| *byte = *byte & self.mask | self.base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_computed_again_are_those_of_the_table() {
        let mut table = BenchTable::new(9, TableShape::new(100, 7).unwrap());
        let mut bytes = vec![0; 700];
        table.contents().fill(&mut bytes);
        for index in [0, 1, 50, 99] {
            assert_eq!(table.record(index), &bytes[index as usize * 7..][..7]);
            assert!(table.wanted(index) < 100);
        }
        let edited = table.edit(50);
        assert_eq!(table.record(50), edited);
        assert!(edited.iter().zip(&bytes[350..]).all(|(new, old)| new != old));
        assert_eq!(table.record(51), &bytes[357..364]);
    }
}
