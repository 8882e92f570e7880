//! Operations on tables of either kind, compared with the same operations on a plain map or list.

use super::*;
use crate::authentication::Authentication;
use crate::key_map::{KeyMapKind, pack_as};
use privet_core::{Blame, PublicSeed};
use proptest::prelude::*;

/// A table by index, with the records of `values`.
fn by_index(values: &[Vec<u8>]) -> (TableLayout, TableShape, Vec<Vec<u8>>) {
    let lengths = || values.iter().map(|value| value.len() as u64);
    let (shortest, longest) = (lengths().min().unwrap(), lengths().max().unwrap());
    let layout = IndexLayout::for_lengths(shortest, longest);
    let shape = TableShape::new(values.len() as u64, layout.record_len(longest)).unwrap();
    let records = values.iter().map(|value| {
        let mut record = Vec::new();
        layout.write_record(value, shape.record_len(), &mut record);
        record
    });
    (RecordLayout::Index(layout).into(), shape, records.collect())
}

fn apply(edits: &TableUpdate, records: &mut Vec<Vec<u8>>) {
    for (index, record) in edits.written() {
        match records.get_mut(*index as usize) {
            Some(place) => place.clone_from(record),
            None => {
                assert_eq!(*index, records.len() as u64);
                records.push(record.clone());
            }
        }
    }
    assert_eq!(edits.shape_after().records(), records.len() as u64);
}

proptest! {
    #[test]
    fn rows_become_what_a_list_becomes(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 1..20),
        operations in prop::collection::vec(
            (prop::option::of(0usize..30), prop::collection::vec(any::<u8>(), 0..7)), 0..40),
    ) {
        let (layout, shape, mut records) = by_index(&values);
        let before = records.clone();
        let read = |number: u64| Ok(before[number as usize].clone());
        let mut editor = TableEditor::new(&layout, shape, read).unwrap();
        let RecordLayout::Index(rows) = layout.records() else { panic!() };
        let (most, exactly) = (values.iter().map(Vec::len).max().unwrap(), rows.prefix_bytes() == 0);
        let mut list = values.clone();
        for (row, value) in operations {
            let fits = value.len() <= most && (!exactly || value.len() == most);
            let outcome = match row {
                Some(row) => editor.set_row(row as u64, &value),
                None => editor.append_row(&value).map(|row| assert_eq!(row as usize, list.len())),
            };
            prop_assert_eq!(outcome.is_ok(), fits && row.is_none_or(|row| row < list.len()));
            match (outcome, row) {
                (Ok(()), Some(row)) => list[row] = value,
                (Ok(()), None) => list.push(value),
                (Err(error), _) => {
                    prop_assert_eq!(error.blame(), Blame::ApiMisuse);
                    continue;
                }
            }
        }
        let edits = editor.finish().unwrap();
        prop_assert_eq!(edits.is_some(), list != values);
        if let Some(edits) = edits {
            prop_assert!(edits.layout.is_none());
            apply(&edits, &mut records);
        }
        let found: Vec<_> = records.iter().map(|record| rows.value_in(record).unwrap()).collect();
        prop_assert_eq!(found, list);
    }

    #[test]
    fn keys_become_what_a_map_becomes(
        cuckoo: bool,
        operations in prop::collection::vec(
            (0u8..60, prop::option::of(prop::collection::vec(any::<u8>(), 0..9))), 1..60),
    ) {
        let kind = if cuckoo { KeyMapKind::Cuckoo } else { KeyMapKind::Buckets };
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..40u8).map(|key| (vec![key], vec![key; 5])).collect();
        let packed = pack_as(kind, &pairs[..], PublicSeed::from_bytes([3; 32])).unwrap();
        let mut records: Vec<Vec<u8>> = (0..packed.key_map().buckets())
            .map(|number| {
                let mut record = Vec::new();
                packed.write_record(&pairs[..], number, &mut record);
                record
            })
            .collect();
        let layout: TableLayout = RecordLayout::Keyed(packed.key_map().clone()).into();
        let before = records.clone();
        let read = |number: u64| Ok(before[number as usize].clone());
        let mut editor = TableEditor::new(&layout, packed.key_map().shape(), read).unwrap();
        let mut map: BTreeMap<Vec<u8>, Vec<u8>> = pairs.into_iter().collect();
        for (key, value) in operations {
            let key = vec![key];
            let effect = match &value {
                Some(value) => editor.set(&key, value),
                None => editor.delete(&key),
            };
            match effect {
                Ok(effect) => {
                    let old = match value {
                        Some(value) => map.insert(key, value),
                        None => map.remove(&key),
                    };
                    prop_assert_eq!(old.is_some(), matches!(effect, Effect::Replaced | Effect::Deleted));
                }
                Err(error) => prop_assert!(matches!(error.blame(), Blame::Exhausted | Blame::ApiMisuse)),
            }
        }
        let mut after = layout.clone();
        if let Some(edits) = editor.finish().unwrap() {
            apply(&edits, &mut records);
            after = edits.layout.unwrap_or(after);
        }
        let key_map = after.records().key_map().unwrap();
        for key in 0..60u8 {
            let asked = key_map.candidates(&[key]).map(|number| &records[number as usize][..]);
            let found = key_map.find(&[key], asked).unwrap();
            prop_assert_eq!(found.as_ref(), map.get(&vec![key]));
        }
    }
}

#[test]
fn each_kind_of_table_takes_its_own_operations() {
    let (layout, shape, _) = by_index(&[vec![1, 2]]);
    let mut editor = TableEditor::new(&layout, shape, |_| Ok(vec![1, 2])).unwrap();
    assert_eq!(editor.set(b"a", b"b").err().unwrap().blame(), Blame::ApiMisuse);
    assert_eq!(editor.delete(b"a").err().unwrap().blame(), Blame::ApiMisuse);
    assert!(editor.finish().unwrap().is_none());

    let pairs = [(&b"a"[..], &b"b"[..])];
    let packed = pack_as(KeyMapKind::Buckets, &pairs[..], PublicSeed::from_bytes([3; 32])).unwrap();
    let layout: TableLayout = RecordLayout::Keyed(packed.key_map().clone()).into();
    let mut editor =
        TableEditor::new(&layout, packed.key_map().shape(), |_| panic!("nothing is read")).unwrap();
    assert_eq!(editor.set_row(0, b"b").err().unwrap().blame(), Blame::ApiMisuse);
    assert_eq!(editor.append_row(b"b").err().unwrap().blame(), Blame::ApiMisuse);
    assert!(editor.finish().unwrap().is_none());
}

#[test]
fn an_authenticated_table_is_refused() {
    let (layout, shape, _) = by_index(&[vec![1, 2]]);
    let layout = TableLayout::authenticated(Authentication::new([0; 32]), layout.records().clone());
    let refused = TableEditor::new(&layout, shape, |_| Ok(vec![1, 2])).err().unwrap();
    assert_eq!(refused.blame(), Blame::ApiMisuse);
}
