//! One model for all tests: a plain vector of records, and epochs made from it without the code
//! that keeps files.

mod chain;
mod known_answers;
mod malformed;
mod records_digest;
mod succession;

#[cfg(feature = "files")]
mod compaction;
#[cfg(feature = "files")]
mod crashes;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "files")]
mod key_file;
#[cfg(feature = "files")]
mod succeed;

use super::entry::Draft;
use super::*;
use crate::TableLayout;
use crate::digest::{DigestParts, layout_digest};
use crate::edit::TableUpdate;
use crate::layout::{IndexLayout, RecordLayout};
use privet_core::{Epoch, TableChanges, TableId, TableIdentity, TableShape};
use proptest::prelude::*;
use std::collections::BTreeMap;

const RECORD_LEN: u64 = 6;

fn key(number: u8) -> PublisherKey {
    PublisherKey::from_secret(&[number; 32])
}

fn shape(records: u64) -> TableShape {
    TableShape::new(records, RECORD_LEN).expect("a shape")
}

/// Layouts that every table here can have, all different.
fn layout(prefix_bytes: u8) -> TableLayout {
    let longest = [RECORD_LEN, 100, 1000, 100_000, 100_000_000][usize::from(prefix_bytes)];
    let shortest = if prefix_bytes == 0 { longest } else { 0 };
    let index = IndexLayout::for_lengths(shortest, longest);
    assert_eq!(index.prefix_bytes(), prefix_bytes);
    RecordLayout::Index(index).into()
}

/// A table and its history so far, in the simplest form.
#[derive(Clone)]
struct Model {
    id: TableId,
    epoch: u64,
    layout: TableLayout,
    records: Vec<u8>,
    previous: EpochHash,
    publisher: u8,
}

impl Model {
    fn new(records: u64) -> Self {
        let bytes = (0..records * RECORD_LEN).map(|position| position as u8).collect();
        Self {
            id: TableId([7; 16]),
            epoch: 3,
            layout: layout(0),
            records: bytes,
            previous: EpochHash::NONE,
            publisher: 1,
        }
    }

    fn shape(&self) -> TableShape {
        shape(self.records.len() as u64 / RECORD_LEN)
    }

    fn identity(&self) -> TableIdentity {
        let parts = DigestParts {
            layout: layout_digest(&self.layout.encode()),
            records: *blake3::hash(&self.records).as_bytes(),
        };
        let digest = parts.combine(self.shape());
        TableIdentity { id: self.id, epoch: Epoch(self.epoch), digest, shape: self.shape() }
    }

    fn chain(&self) -> Chain {
        self.chain_under(key(self.publisher).id().into())
    }

    fn chain_under(&self, keys: TableKeys) -> Chain {
        Chain::new(self.identity(), self.layout.clone(), keys, Some(self.previous))
            .expect("the layout fits")
    }

    fn update(&self, operations: &[Operation]) -> TableUpdate {
        let (mut records, mut written) = (self.shape().records(), BTreeMap::new());
        for (index, record) in operations {
            written.insert(index.unwrap_or(records), record.to_vec());
            records += u64::from(index.is_none());
        }
        TableUpdate::new(self.shape(), written, None).expect("fitting operations")
    }

    /// Makes an epoch of the operations, and returns it.
    fn next(&mut self, operations: &[Operation], layout_after: Option<TableLayout>) -> Vec<u8> {
        let before = self.identity();
        let update = self.update(operations);
        let len = RECORD_LEN as usize;
        let written = update.written().iter().filter_map(|(index, new)| {
            let start = *index as usize * len;
            let old = self.records.get(start..start + len);
            (old != Some(new))
                .then(|| (*index, old.map_or(vec![0; len], <[u8]>::to_vec), new.clone()))
        });
        let changes =
            TableChanges::new(update.shape(), update.shape_after(), written).expect("fitting");
        self.records.resize(update.shape_after().bytes() as usize, 0);
        for (index, record) in update.written() {
            self.records[*index as usize * len..][..len].copy_from_slice(record);
        }
        let encoded = layout_after.as_ref().map(TableLayout::encode);
        self.layout = layout_after.unwrap_or(self.layout.clone());
        self.epoch += 1;
        let bytes = Draft {
            before,
            previous: self.previous,
            epoch: Epoch(self.epoch),
            records_digest: *blake3::hash(&self.records).as_bytes(),
            layout: encoded.as_deref(),
            changes: &changes,
        }
        .sign(&key(self.publisher));
        self.previous =
            EpochHash(blake3::derive_key("privet update log epoch v1", &bytes[..bytes.len() - 64]));
        bytes
    }
}

/// Makes an epoch's changes in `records`, which are those of the table before.
fn apply(update: &EpochUpdate, records: &mut Vec<u8>) {
    let shape = update.after.shape;
    records.resize(shape.bytes() as usize, 0);
    for (index, old, new) in update.changes.records() {
        let len = shape.record_len();
        let record = &mut records[(index * len) as usize..][..len as usize];
        assert_eq!(record, old);
        record.copy_from_slice(new);
    }
}

/// A record becomes another, or, without a number, is appended.
type Operation = (Option<u64>, [u8; RECORD_LEN as usize]);

fn edit(index: u64, byte: u8) -> Operation {
    (Some(index), [byte; RECORD_LEN as usize])
}

fn add(byte: u8) -> Operation {
    (None, [byte; RECORD_LEN as usize])
}

/// One batch, independent of the size of the table: edits of the records at these fractions of it,
/// appended records, and perhaps another layout.
#[derive(Clone, Debug)]
struct Batch {
    edits: Vec<(u16, [u8; RECORD_LEN as usize])>,
    adds: Vec<[u8; RECORD_LEN as usize]>,
    layout: Option<u8>,
}

impl Batch {
    fn operations(&self, records: u64) -> Vec<Operation> {
        let adds = self.adds.iter().map(|record| (None, *record));
        let records = records + self.adds.len() as u64;
        let edits = self.edits.iter().map(|(at, record)| (Some(u64::from(*at) % records), *record));
        adds.chain(edits).collect()
    }
}

fn batches(count: usize) -> impl Strategy<Value = Vec<Batch>> {
    let edits = prop::collection::vec((any::<u16>(), any::<[u8; RECORD_LEN as usize]>()), 1..8);
    let adds = prop::collection::vec(any::<[u8; RECORD_LEN as usize]>(), 0..4);
    let layout = prop::option::of(0..5u8);
    let batch =
        (edits, adds, layout).prop_map(|(edits, adds, layout)| Batch { edits, adds, layout });
    prop::collection::vec(batch, 1..count)
}
