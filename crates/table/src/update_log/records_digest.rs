//! The BLAKE3 digest of all records of a table, kept up to date without reading all of them.
//!
//! BLAKE3 is a binary tree over chunks of 1 KiB. The left part of every subtree has the largest
//! power of two of chunks that is less than all of them. So the same tree results from pairing
//! equal subtrees, level by level, while an odd last one moves up unchanged (section 2.1 of the
//! BLAKE3 paper). This keeps the inner values from subtrees of 16 chunks upwards: as many chunks as
//! the widest vector units hash at once. It takes 1/256 of the memory of the records. A changed
//! record costs its subtree and the path above.

use blake3::hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use std::borrow::Cow;
use std::ops::Range;

/// The size in bytes of the lowest subtrees whose values are kept.
const GROUP: u64 = 16 << 10;

/// All records of a table in a row, in any kind of memory.
pub trait RecordBytes {
    /// How many bytes there are, at least 1.
    fn byte_len(&self) -> u64;

    /// The bytes in `range`, which must lie within.
    fn range(&self, range: Range<u64>) -> Cow<'_, [u8]>;
}

impl RecordBytes for [u8] {
    fn byte_len(&self) -> u64 {
        self.len() as u64
    }

    fn range(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self[range.start as usize..range.end as usize])
    }
}

/// The digest of a table's records, with the values needed to keep it up to date.
#[derive(Clone)]
pub struct RecordsDigest {
    /// From the groups up to the last level with at most two values, the children of the root.
    levels: Vec<Vec<[u8; 32]>>,
    len: u64,
    root: [u8; 32],
}

impl RecordsDigest {
    /// The digest of these records: reads all of them, once.
    pub fn of<R: RecordBytes + ?Sized>(records: &R) -> Self {
        let mut digest = Self { levels: vec![Vec::new()], len: 0, root: [0; 32] };
        digest.update(records, []);
        digest
    }

    /// The BLAKE3 digest of all records.
    pub fn get(&self) -> [u8; 32] {
        self.root
    }

    /// Follows a change. `records` are the records as they are now, not fewer than before. They
    /// differ from before at most in the bytes `changed`, and in appended bytes.
    ///
    /// # Panics
    /// If there are fewer records than before, or `changed` goes beyond them.
    pub fn update<R: RecordBytes + ?Sized>(
        &mut self,
        records: &R,
        changed: impl IntoIterator<Item = Range<u64>>,
    ) {
        let len = records.byte_len();
        assert!(len >= self.len, "a table never loses records");
        let groups_of = |range: Range<u64>| range.start / GROUP..range.end.div_ceil(GROUP);
        // If the last group grows, it changes; if nothing is appended, this is empty.
        let appended = Some(self.len..len).filter(|range| !range.is_empty());
        let mut touched: Vec<u64> =
            changed.into_iter().chain(appended).flat_map(groups_of).collect();
        touched.sort_unstable();
        touched.dedup();
        self.len = len;

        let groups = &mut self.levels[0];
        groups.resize(len.div_ceil(GROUP) as usize, [0; 32]);
        for &group in &touched {
            let bytes = group * GROUP..len.min((group + 1) * GROUP);
            let mut hasher = blake3::Hasher::new();
            hasher.set_input_offset(bytes.start);
            hasher.update(&records.range(bytes));
            groups[group as usize] = hasher.finalize_non_root();
        }
        self.update_parents(touched);
        self.root = match self.levels.last().map(Vec::as_slice) {
            Some([left, right]) => *merge_subtrees_root(left, right, Mode::Hash).as_bytes(),
            _ => *blake3::hash(&records.range(0..len)).as_bytes(),
        };
    }

    /// Updates all levels above the groups. The groups in `touched` have changed.
    fn update_parents(&mut self, mut touched: Vec<u64>) {
        let mut height = 0;
        while self.levels[height].len() > 2 {
            let parents = self.levels[height].len().div_ceil(2);
            if self.levels.len() == height + 1 {
                self.levels.push(Vec::new());
                touched = (0..self.levels[height].len() as u64).collect();
            }
            touched.iter_mut().for_each(|index| *index /= 2);
            touched.dedup();
            let (below, above) = self.levels.split_at_mut(height + 1);
            let (below, above) = (&below[height], &mut above[0]);
            above.resize(parents, [0; 32]);
            for &index in &touched {
                let children = &below[2 * index as usize..];
                above[index as usize] = match children {
                    [left, right, ..] => merge_subtrees_non_root(left, right, Mode::Hash),
                    _ => children[0],
                };
            }
            height += 1;
        }
    }
}
