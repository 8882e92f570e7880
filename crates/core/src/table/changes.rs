//! The changes of a table's records between two of its versions.

use super::{TableDelta, TableShape};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The changes from one version of a table to a later one, with each record's bytes before and
/// after. Public. Some hints are patched with XOR differences, others with differences modulo a
/// number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChanges {
    before: TableShape,
    after: TableShape,
    replaced: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
}

impl TableChanges {
    /// No changes of a table of shape `shape`.
    pub fn none(shape: TableShape) -> Self {
        Self { before: shape, after: shape, replaced: BTreeMap::new() }
    }

    /// The changes from a table of shape `before` to one of shape `after`, with as many records or
    /// more. `records` are the changed ones: index, bytes before (zeros if the record is new),
    /// bytes after.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if the table would shrink or its
    /// records change their width, or a record lies beyond it or has another width.
    pub fn new(
        before: TableShape,
        after: TableShape,
        records: impl IntoIterator<Item = (u64, Vec<u8>, Vec<u8>)>,
    ) -> Result<Self> {
        before.check_becomes(after)?;
        let mut changes = Self { after, ..Self::none(before) };
        for (index, before, bytes) in records {
            let width = after.record_len();
            if index >= after.records()
                || before.len() as u64 != width
                || bytes.len() as u64 != width
            {
                return Err(Error::invalid_message(format!(
                    "a change of record {index} does not fit a table of {} records of {width} bytes",
                    after.records()
                )));
            }
            changes.add(index, before, bytes);
        }
        Ok(changes)
    }

    /// The changes from the records `old`, of a table of shape `before`, to the records `new`, of
    /// one of shape `after`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn between(
        (before, old): (TableShape, &[u8]),
        (after, new): (TableShape, &[u8]),
    ) -> Result<Self> {
        let width = after.record_len() as usize;
        let absent = vec![0; width];
        let old = old.chunks_exact(width).chain(std::iter::repeat(absent.as_slice()));
        let records = (0..).zip(old.zip(new.chunks_exact(width)));
        let others = records.filter(|(_, (old, new))| old != new);
        Self::new(before, after, others.map(|(index, (old, new))| (index, old.into(), new.into())))
    }

    /// Appends the changes that came next. Their bytes before are used only for records that are
    /// not among the changes yet.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if `next` begins with a table of
    /// another shape.
    pub fn then(&mut self, next: Self) -> Result<()> {
        if next.before != self.after {
            return Err(Error::invalid_message(
                "the changes so far lead to a table of another shape",
            ));
        }
        self.after = next.after;
        for (index, (before, after)) in next.replaced {
            self.add(index, before, after);
        }
        Ok(())
    }

    fn add(&mut self, index: u64, before: Vec<u8>, after: Vec<u8>) {
        match self.replaced.entry(index) {
            Entry::Occupied(mut known) => known.get_mut().1 = after,
            Entry::Vacant(place) => _ = place.insert((before, after)),
        }
    }

    /// The shape of the table before.
    pub fn shape(&self) -> TableShape {
        self.before
    }

    /// The shape of the table afterwards.
    pub fn shape_after(&self) -> TableShape {
        self.after
    }

    /// How many records have changed or are new. This includes records that have changed back.
    pub fn len(&self) -> usize {
        self.replaced.len()
    }

    /// Whether no record has.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty()
    }

    /// The changed and new records by ascending index, each once: index, bytes before, bytes after.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8], &[u8])> {
        self.replaced
            .iter()
            .map(|(index, (before, after))| (*index, before.as_slice(), after.as_slice()))
    }

    /// The changes as XOR differences, for schemes that patch with these.
    pub fn delta(&self) -> TableDelta {
        let difference = |(index, before, after): (u64, &[u8], &[u8])| {
            (index, before.iter().zip(after).map(|(before, after)| before ^ after).collect())
        };
        let edits = self.records().map(difference).collect();
        TableDelta::of_checked(self.before, self.after, edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blame;
    use proptest::prelude::*;

    fn shape(records: u64) -> TableShape {
        TableShape::new(records, 2).unwrap()
    }

    fn applied(table: &[[u8; 2]], changes: &TableChanges) -> Vec<[u8; 2]> {
        let mut table = table.to_vec();
        table.resize(changes.shape_after().records() as usize, [0; 2]);
        for (index, before, after) in changes.records() {
            assert_eq!(table[index as usize], before, "what it was before is what it was");
            table[index as usize].copy_from_slice(after);
        }
        table
    }

    proptest! {
        /// Several versions in a row come to the same as all their changes at once, in either form.
        #[test]
        fn changes_of_several_versions_are_one_change(
            first in proptest::collection::vec(any::<[u8; 2]>(), 1..20),
            versions in proptest::collection::vec(
                (0..3usize, proptest::collection::vec((any::<prop::sample::Index>(), any::<[u8; 2]>()), 0..8)),
                0..5,
            ),
        ) {
            let mut changes = TableChanges::none(shape(first.len() as u64));
            let mut table = first.clone();
            for (grown, edits) in versions {
                table.resize(table.len() + grown, [0; 2]);
                let mut replaced = Vec::new();
                for (index, bytes) in edits {
                    let index = index.index(table.len());
                    let before = std::mem::replace(&mut table[index], bytes);
                    replaced.push((index as u64, before.to_vec(), bytes.to_vec()));
                }
                let after = shape(table.len() as u64);
                changes.then(TableChanges::new(changes.shape_after(), after, replaced).unwrap()).unwrap();
            }
            prop_assert_eq!(applied(&first, &changes), table.clone());
            let (before, after) = (changes.shape(), changes.shape_after());
            let at_once =
                TableChanges::between((before, first.as_flattened()), (after, table.as_flattened())).unwrap();
            prop_assert_eq!(applied(&first, &at_once), table.clone());
            prop_assert!(at_once.records().all(|(_, before, after)| before != after));

            let mut patched = first;
            patched.resize(table.len(), [0; 2]);
            for (index, difference) in changes.delta().edits() {
                for (byte, difference) in patched[*index as usize].iter_mut().zip(difference) {
                    *byte ^= difference;
                }
            }
            prop_assert_eq!(patched, table);
        }
    }

    #[test]
    fn what_does_not_fit_the_table_is_refused() {
        let of = |before, after, change| TableChanges::new(shape(before), shape(after), change);
        let change =
            |index, before: usize, after: usize| [(index, vec![0; before], vec![1; after])];
        for (records, change) in
            [(5, change(5, 2, 2)), (6, change(6, 2, 2)), (5, change(0, 1, 2)), (5, change(0, 2, 3))]
        {
            let error = of(5, records, change).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage);
        }
        assert!(TableChanges::new(shape(5), shape(4), []).is_err(), "it would shrink");
        assert!(TableChanges::new(shape(5), TableShape::new(5, 3).unwrap(), []).is_err());
        let grown = of(5, 6, change(5, 2, 2)).unwrap();
        let mut changes = TableChanges::none(shape(5));
        assert_eq!(
            changes.then(TableChanges::none(shape(6))).unwrap_err().blame(),
            Blame::InvalidMessage
        );
        assert_eq!(changes, TableChanges::none(shape(5)));
        changes.then(grown.clone()).unwrap();
        assert_eq!(changes, grown);
    }
}
