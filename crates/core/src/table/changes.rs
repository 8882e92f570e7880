//! What became of a table's records between two of its versions.

use super::{Edit, TableDelta, TableShape};
use crate::{Error, Result};
use std::collections::BTreeMap;

/// What became of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Which record.
    pub index: u64,
    /// Its bytes before; zeros if it was not there.
    pub before: Vec<u8>,
    /// Its bytes after.
    pub after: Vec<u8>,
}

/// What makes a table in one version the table in a later one, with each record's bytes before and after: public. Some hints are patched with XOR differences, others with
/// differences modulo a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChanges {
    before: TableShape,
    after: TableShape,
    replaced: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
}

impl TableChanges {
    /// No change yet of a table of shape `shape`.
    pub fn none(shape: TableShape) -> Self {
        Self { before: shape, after: shape, replaced: BTreeMap::new() }
    }

    /// Goes on to a table of shape `after`, with as many records or more, in which the records of `replaced` have other bytes. What they were before is only looked at for records that
    /// are not among the changes yet.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if the table would shrink or its records change their width, or a record lies beyond it or has another width.
    pub fn then(
        &mut self,
        after: TableShape,
        replaced: impl IntoIterator<Item = Replacement>,
    ) -> Result<()> {
        // The shapes are checked as they are for deltas.
        TableDelta::growing(self.after, after, Vec::new(), Vec::new())?;
        for Replacement { index, before, after: bytes } in replaced {
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
            self.replaced
                .entry(index)
                .and_modify(|(_, last)| last.clone_from(&bytes))
                .or_insert((before, bytes));
        }
        self.after = after;
        Ok(())
    }

    /// The shape of the table before.
    pub fn shape(&self) -> TableShape {
        self.before
    }

    /// The shape of the table afterwards.
    pub fn shape_after(&self) -> TableShape {
        self.after
    }

    /// How many records have changed or are new, those included that came to be again what they were.
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
    ///
    /// # Errors
    /// None that is known: whatever went in was checked.
    pub fn delta(&self) -> Result<TableDelta> {
        let edit = |(index, before, after): (u64, &[u8], &[u8])| Edit {
            index,
            difference: before.iter().zip(after).map(|(before, after)| before ^ after).collect(),
        };
        TableDelta::growing(self.before, self.after, self.records().map(edit).collect(), Vec::new())
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
                    let (before, after) = (before.to_vec(), bytes.to_vec());
                    replaced.push(Replacement { index: index as u64, before, after });
                }
                changes.then(shape(table.len() as u64), replaced).unwrap();
            }
            prop_assert_eq!(applied(&first, &changes), table.clone());

            let mut patched = first;
            patched.resize(table.len(), [0; 2]);
            for edit in changes.delta().unwrap().edits() {
                for (byte, difference) in patched[edit.index as usize].iter_mut().zip(&edit.difference) {
                    *byte ^= difference;
                }
            }
            prop_assert_eq!(patched, table);
        }
    }

    #[test]
    fn what_does_not_fit_the_table_is_refused() {
        let change = |index, before: usize, after: usize| Replacement {
            index,
            before: vec![0; before],
            after: vec![1; after],
        };
        let mut changes = TableChanges::none(shape(5));
        for (records, change) in
            [(5, change(5, 2, 2)), (6, change(6, 2, 2)), (5, change(0, 1, 2)), (5, change(0, 2, 3))]
        {
            let error = changes.then(shape(records), [change]).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage);
        }
        assert!(changes.then(shape(4), []).is_err(), "it would shrink");
        assert!(changes.then(TableShape::new(5, 3).unwrap(), []).is_err());
        assert_eq!(changes, TableChanges::none(shape(5)));
        changes.then(shape(6), [change(5, 2, 2)]).unwrap();
        assert_eq!(changes.shape_after(), shape(6));
    }
}
