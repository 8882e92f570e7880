//! What was built, in figures.

use super::{KeptRows, KeyShape};
use crate::authentication::{TableRoot, path_len};
use crate::import::{ColumnTypes, LinesLeftOut};
use crate::key_map::{KeyForm, KeyMap};
use crate::layout::TableLayout;
use privet_core::{Result, TableDigest, TableId, TableIdentity, TableShape};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt::Display;

/// The table that was built, in figures. Serialized, it is what is shown of it in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct BuildReport {
    /// The number of rows in the table.
    pub rows: u64,
    /// How many keys there are; `None` for a table by index.
    pub keys: Option<u64>,
    /// What they look like, if they are no points of ranges.
    pub key_shape: Option<KeyShape>,
    /// The number of records.
    pub records: u64,
    /// The width of a record in bytes, its path included.
    pub record_len: u64,
    /// The bytes of the path in each record; 0 if the table is not authenticated.
    pub path_len: u64,
    /// The name of the kind of key map.
    pub key_map: Option<&'static str>,
    /// What becomes of keys before they are looked up.
    #[serde(flatten)]
    pub key_form: KeyFormReport,
    /// Whether keys have lists of values.
    pub multi: bool,
    /// How many parts each key has.
    pub parts: u64,
    /// About how wide records would be with one part, without their paths; `None` if the number of
    /// parts was given, or is one.
    pub undivided_record_len: Option<u64>,
    /// How many records each lookup fetches.
    pub records_per_lookup: u64,
    /// The share of the bytes of all records, paths excluded, that entries (by key) or values (by
    /// index) fill, in `[0, 1]`. The rest is padding and, by index, the values' lengths.
    pub load: f64,
    /// How many values are in the stash; with more than one part, how many pieces of values.
    pub stash_entries: u64,
    /// The bytes of these values.
    pub stash_bytes: u64,
    /// The bytes of the layout that every client of a table by key downloads: the key map with its
    /// stash and, if the table is authenticated, the Merkle root.
    pub layout_bytes: u64,
    /// The bytes of all values.
    pub value_bytes: u64,
    /// The bytes of all records and of what clients download to read them, divided by the bytes of
    /// all values; infinite if there are none.
    pub overhead: f64,
    /// How many rows the inputs have.
    pub rows_read: u64,
    /// How many rows answer for no key, because narrower ranges cover theirs:
    /// [`nested`](super::RangeColumns::nested).
    pub rows_hidden: u64,
    /// How many rows were dropped because another row has their key.
    pub duplicates_dropped: u64,
    /// How many rows were skipped because they have no key:
    /// [`Skip`](crate::import::OnEmptyKey::Skip).
    pub empty_keys_skipped: u64,
    /// How many lines of the inputs were no rows.
    #[serde(flatten)]
    pub lines_left_out: LinesLeftOut,
    /// The columns of CSV whose cells are not text in JSON values.
    #[serde(serialize_with = "by_name")]
    pub types: ColumnTypes,
    /// The length of the output in bytes.
    pub file_bytes: u64,
    /// The table's name for life.
    #[serde(rename = "table_id", serialize_with = "written")]
    pub id: TableId,
    /// The number of the version that was built.
    pub epoch: u64,
    /// The digest of its contents.
    #[serde(serialize_with = "written")]
    pub digest: TableDigest,
    /// What fixes the table for its clients; `None` if it is not authenticated.
    #[serde(serialize_with = "written_if_any")]
    pub root: Option<TableRoot>,
    /// What was read and may have been meant otherwise, each in a sentence that names the input.
    #[serde(skip)]
    pub doubts: Vec<String>,
}

impl BuildReport {
    pub(super) fn of(
        kept: &KeptRows,
        layout: &TableLayout,
        within: TableShape,
        identity: TableIdentity,
        file_bytes: u64,
    ) -> Self {
        let TableIdentity { id, epoch, digest, shape } = identity;
        let layout_bytes = layout.encode().len() as u64;
        let key_map = layout.records().key_map();
        let value_bytes = kept.value_bytes();
        let root = layout.root(shape);
        let rows = kept.counts();
        Self {
            rows: rows.kept,
            keys: key_map.map(KeyMap::keys),
            key_shape: key_map
                .filter(|map| map.key_form().ranges.is_none())
                .map(|_| kept.key_shape()),
            records: shape.records(),
            record_len: shape.record_len(),
            path_len: root.map_or(0, |_| path_len(shape.records())),
            key_map: key_map.map(|map| map.kind().name()),
            key_form: key_map.map(KeyMap::key_form).into(),
            multi: key_map.is_some_and(KeyMap::has_lists),
            parts: key_map.map_or(1, |map| map.parts() as u64),
            undivided_record_len: None,
            records_per_lookup: key_map.map_or(1, |map| map.candidates_per_key() as u64),
            load: match key_map {
                Some(key_map) => key_map.load(),
                None => value_bytes as f64 / within.bytes() as f64,
            },
            stash_entries: key_map.map_or(0, KeyMap::stash_entries),
            stash_bytes: key_map.map_or(0, KeyMap::stash_bytes),
            layout_bytes: key_map.map_or(0, |_| layout_bytes),
            value_bytes,
            overhead: (shape.bytes() + layout_bytes) as f64 / value_bytes as f64,
            rows_read: rows.read(),
            rows_hidden: rows.hidden,
            duplicates_dropped: rows.duplicates_dropped,
            empty_keys_skipped: rows.empty_keys,
            lines_left_out: rows.left_out,
            types: Vec::new(),
            file_bytes,
            id,
            epoch: epoch.0,
            digest,
            root,
            doubts: kept.doubts().to_vec(),
        }
    }
}

/// What a table does to keys before it looks them up.
#[derive(Clone, Debug, Serialize)]
pub struct KeyFormReport {
    /// The ranges of a table in which each row answers for a range of keys.
    pub ranges: Option<RangesReport>,
    /// How keys are written; `None` for a table by index.
    pub key_format: Option<&'static str>,
    /// Which differences between keys do not count.
    pub normalized: Vec<&'static str>,
}

/// The ranges of a table, in figures.
#[derive(Clone, Debug, Serialize)]
pub struct RangesReport {
    /// How many there are.
    pub count: u64,
    /// What their bounds are.
    pub points: &'static str,
    /// Whether they were cut from ranges that may lie in one another.
    pub nested: bool,
    /// Bytes of the key map that the bounds take.
    pub bytes: u64,
}

impl From<Option<&KeyForm>> for KeyFormReport {
    fn from(form: Option<&KeyForm>) -> Self {
        let ranges = form.and_then(|form| form.ranges.as_ref());
        Self {
            ranges: ranges.map(|directory| RangesReport {
                count: directory.ranges(),
                points: directory.points().name(),
                nested: directory.is_nested(),
                bytes: directory.bytes(),
            }),
            key_format: form.map(|form| form.format.name()),
            normalized: form.map_or_else(Vec::new, |form| form.normalization.names()),
        }
    }
}

fn by_name<S: Serializer>(types: &ColumnTypes, into: S) -> Result<S::Ok, S::Error> {
    into.collect_map(
        types.iter().map(|(column, one)| (column, one.name())).collect::<BTreeMap<_, _>>(),
    )
}

/// A value in the form in which people write it.
pub(crate) fn written<S: Serializer>(value: &impl Display, into: S) -> Result<S::Ok, S::Error> {
    into.collect_str(value)
}

/// The same, or nothing.
pub(crate) fn written_if_any<S: Serializer>(
    value: &Option<impl Display>,
    into: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(into)
}
