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
        let mut editor = RowEditor::new(&layout, shape, read).unwrap();
        let RecordLayout::Index(rows) = layout.records() else { panic!() };
        let (most, exactly) = (values.iter().map(Vec::len).max().unwrap(), rows.prefix_bytes() == 0);
        let mut list = values.clone();
        for (row, value) in operations {
            let fits = value.len() <= most && (!exactly || value.len() == most);
            let outcome = match row {
                Some(row) => editor.set(row.to_string().as_bytes(), &value),
                None => editor.add(&b"ignored"[..], &value),
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
        let (edits, _) = editor.finish().unwrap();
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
        let mut records = packed.records(&pairs[..]);
        let layout: TableLayout = RecordLayout::Keyed(packed.key_map().clone()).into();
        let before = records.clone();
        let read = |number: u64| Ok(before[number as usize].clone());
        let mut editor = RowEditor::new(&layout, packed.key_map().shape(), read).unwrap();
        let mut counts = Counts::default();
        let mut map: BTreeMap<Vec<u8>, Vec<u8>> = pairs.into_iter().collect();
        for (key, value) in operations {
            let key = vec![key];
            let done = match &value {
                Some(value) => editor.set(&key, value),
                None => editor.delete(&key),
            };
            match (done, value) {
                (Ok(()), Some(value)) => match map.insert(key, value) {
                    Some(_) => counts.replaced += 1,
                    None => counts.inserted += 1,
                },
                (Ok(()), None) => match map.remove(&key) {
                    Some(_) => counts.deleted += 1,
                    None => counts.absent += 1,
                },
                (Err(error), _) => prop_assert!(matches!(error.blame(), Blame::Exhausted | Blame::ApiMisuse)),
            }
        }
        let mut after = layout.clone();
        let (edits, counted) = editor.finish().unwrap();
        prop_assert_eq!(counted, counts);
        if let Some(edits) = edits {
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
fn a_table_by_index_has_no_keys() {
    let (layout, shape, _) = by_index(&[vec![1, 2]]);
    let mut editor = RowEditor::new(&layout, shape, |_| Ok(vec![1, 2])).unwrap();
    assert_eq!(editor.set(b"a", b"b").err().unwrap().blame(), Blame::ApiMisuse);
    assert_eq!(editor.delete(b"a").err().unwrap().blame(), Blame::ApiMisuse);
    assert_eq!(editor.finish().unwrap(), (None, Counts::default()));
}

#[test]
fn an_authenticated_table_is_refused() {
    let (layout, shape, _) = by_index(&[vec![1, 2]]);
    let layout = TableLayout::authenticated(Authentication([0; 32]), layout.records().clone());
    let refused = RowEditor::new(&layout, shape, |_| Ok(vec![1, 2])).err().unwrap();
    assert_eq!(refused.blame(), Blame::ApiMisuse);
}

#[test]
fn an_update_leaves_no_record_out_and_keeps_their_width() {
    let shape = TableShape::new(3, 2).unwrap();
    let of = |written: &[(u64, usize)]| {
        let written = written.iter().map(|(index, len)| (*index, vec![0; *len])).collect();
        TableUpdate::new(shape, written, None)
    };
    for wrong in [&[(4, 2)][..], &[(3, 2), (5, 2)], &[(0, 1)], &[(3, 3)], &[(u64::MAX, 2)]] {
        assert_eq!(of(wrong).unwrap_err().blame(), Blame::ApiMisuse, "{wrong:?}");
    }
    assert_eq!(of(&[(1, 2), (3, 2), (4, 2)]).unwrap().shape_after().records(), 5);
}
