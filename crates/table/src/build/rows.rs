//! The rows of an input, kept in memory until the shape of the table is known.

use super::arena::{Arena, ArenaSpan};
use super::key_shape::KeyShape;
use super::{BuildOptions, OnDuplicate, Progress, REPORT_EVERY, Stage};
use crate::import::{Like, LinesLeftOut, Row, Rows, Selection, Source, quoted};
use crate::key_map::{
    KeyForm, KeyFormat, NAME_LEN, Normalization, Pairs, listed_len, push_to_list,
};
use crate::snapshot::ValueForm;
use crate::values::ValueColumn;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Reason, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The longest value that any table can hold: with its tag and length, it fits into one record.
const MAX_VALUE: u64 = MAX_RECORD_LEN - 16;

#[derive(Default)]
pub(crate) struct KeptRows {
    arena: Arena,
    /// One for each key, in a table by key.
    rows: Vec<KeptRow>,
    /// With [`OnDuplicate::All`], the values of a key after its first one, by the number of the
    /// key's first row.
    further: HashMap<u32, Further>,
    by_key: bool,
    /// Keys have two bounds each: see [`both_bounds`].
    two_bounds: bool,
    counts: RowCounts,
    value_bytes: u64,
    key_form: KeyForm,
    doubts: Vec<String>,
    /// The names of the inputs, each with the number of its first row.
    inputs: Vec<(usize, String)>,
    /// The columns of the values, if all rows have the same ones.
    columns: Option<Vec<ValueColumn>>,
}

/// What became of the rows that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCounts {
    /// Those that are in the table, or are edits of it.
    pub kept: u64,
    /// Those that narrower ranges hide.
    pub hidden: u64,
    /// Those whose key another row has.
    pub duplicates_dropped: u64,
    /// Those that were skipped because they have no key.
    pub empty_keys: u64,
    /// Lines that were no rows.
    pub left_out: LinesLeftOut,
}

impl RowCounts {
    /// All rows.
    pub(crate) fn read(&self) -> u64 {
        self.kept + self.hidden + self.duplicates_dropped + self.empty_keys
    }
}

/// The columns of two inputs, which have the same names in the same order.
fn joined(one: Vec<ValueColumn>, other: &[ValueColumn]) -> Vec<ValueColumn> {
    let joined = |(one, other): (ValueColumn, &ValueColumn)| ValueColumn {
        of: one.of.joined(&other.of),
        ..one
    };
    one.into_iter().zip(other).map(joined).collect()
}

#[derive(Default)]
struct Further {
    values: Vec<ArenaSpan>,
    /// The bytes that they take in a list.
    listed_bytes: u64,
}

struct KeptRow {
    key: ArenaSpan,
    value: ArenaSpan,
    position: u64,
}

impl KeptRows {
    /// Reads all rows of `sources`, one input after the other. All inputs must have the same
    /// columns.
    pub(crate) fn read(
        sources: Vec<Source>,
        selection: &Selection,
        options: &BuildOptions,
        progress: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Self> {
        let mut kept = Self {
            by_key: options.key.is_some() || options.ranges.is_some(),
            two_bounds: selection.until.is_some(),
            key_form: KeyForm { normalization: options.normalization, ..KeyForm::default() },
            ..Self::default()
        };
        let mut by_hash = KeyIndex::default();
        let bytes_total = bytes_in_all(&sources)?;
        let (mut like, mut bytes_before, mut unit) = (None, 0, "");
        for source in sources {
            let mut rows = Rows::open(source.like(like.clone()), selection.clone())?;
            let mut report = |rows: &Rows| {
                progress(Progress {
                    stage: Stage::Reading,
                    bytes_done: bytes_before + rows.bytes_read(),
                    bytes_total,
                })
            };
            if kept.inputs.is_empty() {
                kept.key_form.format = key_format(options, &rows);
            }
            kept.inputs.push((kept.rows.len(), rows.name().to_owned()));
            unit = rows.unit();
            kept.take(&mut rows, &mut by_hash, options, &mut report)?;
            bytes_before += rows.bytes_read();
            kept.counts.empty_keys += rows.empty_keys();
            kept.counts.left_out += rows.left_out();
            kept.doubts.extend(rows.doubt().map(|doubt| format!("{}: {doubt}", rows.name())));
            let columns = rows.value_columns();
            if like.is_none() && selection.value == ValueForm::JsonRest {
                let names = |columns: &Vec<ValueColumn>| {
                    columns.iter().map(|column| column.name.clone()).collect()
                };
                let of = rows.name().to_owned();
                like = columns.as_ref().map(|columns| Like { columns: names(columns), of });
            }
            kept.columns = match (kept.inputs.len(), kept.columns.take()) {
                (1, _) => columns,
                (_, before) => before.zip(columns).map(|(one, other)| joined(one, &other)),
            };
        }
        kept.check_not_empty()?;
        kept.count();
        if kept.by_key && options.on_duplicate == OnDuplicate::All {
            kept.make_lists();
        }
        if let Some(columns) = &options.ranges {
            let name = kept.inputs.last().map_or("", |(_, name)| name).to_owned();
            let ranges =
                kept.make_ranges(unit, columns.nested).map_err(|error| error.within(name))?;
            kept.key_form.ranges = Some(ranges);
        }
        Ok(kept)
    }

    /// Takes all rows of one input.
    fn take(
        &mut self,
        rows: &mut Rows,
        by_hash: &mut KeyIndex,
        options: &BuildOptions,
        report: &mut dyn FnMut(&Rows) -> Result<()>,
    ) -> Result<()> {
        let (name, unit) = (rows.name().to_owned(), rows.unit());
        let has_byte_keys = rows.has_byte_keys();
        let mut count = 0u64;
        while let Some(row) = rows.next_row()? {
            let at = |error: Error, row: &Row<'_>| {
                error.within(format!("{unit} {}", row.position)).within(&name)
            };
            let written = row.key.key;
            let key = match (self.key_form.format, row.key.until) {
                (_, Some(until)) => Cow::Owned(both_bounds(written, until)),
                (KeyFormat::Text, None) => options.normalization.apply(written),
                _ if has_byte_keys => Cow::Borrowed(written),
                (format, None) => format.read(written).map_err(|error| {
                    let written = KeyFormat::Text.shown(written);
                    at(error.within(format!("the key {written}")), &row)
                })?,
            };
            if self.by_key && key.is_empty() {
                return Err(at(nothing_left(written), &row));
            }
            let row = Row { key: (&*key).into(), ..row };
            self.check_length(&row, options.max_value).map_err(|error| at(error, &row))?;
            if self.by_key {
                self.add_keyed(&row, by_hash, options.on_duplicate, unit)
                    .map_err(|error| at(error, &row))?;
            } else {
                self.add(&row);
            }
            count += 1;
            if count.is_multiple_of(REPORT_EVERY) {
                report(rows)?;
            }
        }
        report(rows)
    }

    /// The columns of the values, if all rows have the same ones.
    pub(crate) fn columns(&self) -> Option<&[ValueColumn]> {
        self.columns.as_deref()
    }

    fn check_not_empty(&self) -> Result<()> {
        if !self.rows.is_empty() {
            return Ok(());
        }
        let inputs = match self.inputs.as_slice() {
            [] => {
                return Err(Error::api_misuse("there is no input; a table needs at least one row"));
            }
            [(_, name)] => name.clone(),
            [(_, name), others @ ..] => format!("{name} and {} more", others.len()),
        };
        Err(Error::api_misuse(match self.counts.empty_keys {
            0 if self.inputs.len() > 1 => {
                format!("{inputs}: they have no rows; a table needs at least one")
            }
            0 => format!("{inputs}: it has no rows; a table needs at least one"),
            rows => format!(
                "{inputs}: none of the rows, {rows} in all, has a key; a table needs at least one that has"
            ),
        }))
    }

    /// Where row number `row` was read: `line 7`, or `a.csv, line 7` if it is not of the input that
    /// was opened last.
    pub(super) fn place_of(&self, row: usize, unit: &str) -> String {
        let place = format!("{unit} {}", self.rows[row].position);
        let input = self.inputs.iter().rposition(|(first, _)| *first <= row);
        match input {
            Some(input) if input + 1 < self.inputs.len() => {
                format!("{}, {place}", self.inputs[input].1)
            }
            _ => place,
        }
    }

    fn count(&mut self) {
        let further = || self.further.values().flat_map(|further| &further.values);
        self.counts.kept = (self.rows.len() + further().count()) as u64;
        let firsts = self.rows.iter().map(|row| row.value.len());
        self.value_bytes = firsts.chain(further().map(|place| place.len())).sum::<usize>() as u64;
    }

    /// Makes the value of each key the list of its values.
    fn make_lists(&mut self) {
        let (rows, mut lists) = (std::mem::take(&mut self.arena), Arena::default());
        let mut list = Vec::new();
        for (number, row) in (0..).zip(&mut self.rows) {
            list.clear();
            push_to_list(&mut list, rows.at(row.value));
            for value in self.further.remove(&number).unwrap_or_default().values {
                push_to_list(&mut list, rows.at(value));
            }
            row.key = lists.keep(rows.at(row.key));
            row.value = lists.keep(&list);
        }
        self.arena = lists;
    }

    fn add(&mut self, row: &Row<'_>) {
        let (key, value) = (self.arena.keep(row.key.key), self.arena.keep(row.value));
        self.rows.push(KeptRow { key, value, position: row.position });
    }

    fn add_keyed(
        &mut self,
        row: &Row<'_>,
        index: &mut KeyIndex,
        on_duplicate: OnDuplicate,
        unit: &str,
    ) -> Result<()> {
        if self.rows.len() >= u32::MAX as usize {
            return Err(Error::api_misuse(format!("more than {} keys; split the input", u32::MAX)));
        }
        let Some(earlier) = index.find_or_add(row.key.key, self) else {
            self.add(row);
            return Ok(());
        };
        match on_duplicate {
            OnDuplicate::Error => {
                return Err(Error::api_misuse(format!(
                    "the key {} occurs twice, first in {}; keep one of the rows, or choose which to keep: \
                     the first, the last, or all of them",
                    self.shown_key(row.key.key),
                    self.place_of(earlier, unit)
                ))
                .because(Reason::KeyTwice));
            }
            OnDuplicate::First => {}
            OnDuplicate::Last => {
                self.rows[earlier].value = self.arena.keep(row.value);
                self.rows[earlier].position = row.position;
            }
            OnDuplicate::All => return self.add_further(earlier, row),
        }
        self.counts.duplicates_dropped += 1;
        Ok(())
    }

    /// Keeps one more value of a key.
    fn add_further(&mut self, first: usize, row: &Row<'_>) -> Result<()> {
        let first_len = listed_len(self.rows[first].value.len()) as u64;
        let further = self.further.entry(first as u32).or_default();
        further.listed_bytes += listed_len(row.value.len()) as u64;
        let (values, bytes) = (further.values.len() + 2, first_len + further.listed_bytes);
        if bytes > MAX_VALUE {
            return Err(Error::api_misuse(format!(
                "with this row, the {values} values of the key {} have {bytes} bytes together, and the limit is {MAX_VALUE}; no table can hold them",
                self.shown_key(row.key.key),
            )));
        }
        further.values.push(self.arena.keep(row.value));
        Ok(())
    }

    /// The bounds of a range that are a key.
    pub(super) fn bounds_in<'k>(&self, key: &'k [u8]) -> (&'k str, Option<&'k str>) {
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let both = |key: &'k [u8]| {
            let (len, both) = key.split_first_chunk()?;
            both.split_at_checked(u32::from_le_bytes(*len) as usize)
        };
        match both(key).filter(|_| self.two_bounds) {
            Some((from, until)) => (text(from), Some(text(until))),
            None => (text(key), None),
        }
    }

    /// A key in a message.
    pub(super) fn shown_key(&self, key: &[u8]) -> String {
        match self.bounds_in(key) {
            (from, Some(until)) => quoted(&format!("{from} to {until}")),
            _ => self.key_form.format.shown(key),
        }
    }

    fn check_length(&self, row: &Row<'_>, max_value: Option<u64>) -> Result<()> {
        let limit = max_value.unwrap_or(MAX_VALUE).min(MAX_VALUE);
        let len = row.value.len() as u64;
        if len <= limit {
            return Ok(());
        }
        let whose = match self.by_key {
            true => format!("the value of the key {}", self.shown_key(row.key.key)),
            false => "the value".to_owned(),
        };
        let advice = if limit < MAX_VALUE {
            "raise the limit or shorten the value"
        } else {
            "no table can hold it"
        };
        Err(Error::api_misuse(format!(
            "{whose} has {len} bytes, and the limit is {limit}; {advice}"
        )))
    }

    /// What the keys look like, in a table by key.
    pub(super) fn key_shape(&self) -> KeyShape {
        KeyShape::of(self.key_form.format, self.rows.iter().map(|row| self.arena.at(row.key)))
    }

    /// How the builder changed the keys. Clients have to change theirs in the same way.
    pub(crate) fn key_form(&self) -> &KeyForm {
        &self.key_form
    }

    /// Lets the rows of these numbers stand under these keys, and no others. A row may stand under
    /// several keys.
    pub(super) fn rename(&mut self, names: impl ExactSizeIterator<Item = (usize, [u8; NAME_LEN])>) {
        let before = std::mem::take(&mut self.rows);
        self.rows.reserve_exact(names.len());
        for (row, name) in names {
            let KeptRow { value, position, .. } = before[row];
            self.rows.push(KeptRow { key: self.arena.keep(&name), value, position });
        }
    }

    /// Notes rows that have no place in the table.
    pub(super) fn hide(&mut self, rows: u64) {
        self.counts.hidden = rows;
        self.counts.kept -= rows;
    }

    /// The number of records of a table by index.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// The bytes of the values of all rows that are in the table.
    pub(super) fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// The lengths of the shortest and the longest value.
    pub(super) fn value_lengths(&self) -> (u64, u64) {
        let lengths = || self.rows.iter().map(|row| row.value.len() as u64);
        (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0))
    }

    /// What was read and may have been meant otherwise.
    pub(super) fn doubts(&self) -> &[String] {
        &self.doubts
    }
}

impl Pairs for KeptRows {
    fn len(&self) -> usize {
        debug_assert!(self.by_key, "only rows with keys are pairs");
        self.rows.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        self.arena.at(self.rows[number].key)
    }

    fn value(&self, number: usize) -> &[u8] {
        self.arena.at(self.rows[number].value)
    }
}

/// Finds rows by key. Holds numbers of rows; the keys stay in the arena. The hasher gets a new key
/// in every run, so nobody can prepare an input whose keys collide.
#[derive(Default)]
struct KeyIndex {
    table: HashTable<u32>,
    hasher: RandomState,
}

impl KeyIndex {
    /// The row that has `key`, if there is one. Otherwise notes that the next row added to `kept`
    /// has it.
    fn find_or_add(&mut self, key: &[u8], kept: &KeptRows) -> Option<usize> {
        let Self { table, hasher } = self;
        let key_of = |row: &u32| kept.arena.at(kept.rows[*row as usize].key);
        let entry = table.entry(
            hasher.hash_one(key),
            |row| key_of(row) == key,
            |row| hasher.hash_one(key_of(row)),
        );
        match entry {
            Entry::Occupied(earlier) => Some(*earlier.get() as usize),
            Entry::Vacant(vacant) => {
                vacant.insert(kept.rows.len() as u32);
                None
            }
        }
    }
}

/// The key of a row with two bounds, as one: the length of the first, and both.
fn both_bounds(from: &[u8], until: &[u8]) -> Vec<u8> {
    // A row has fewer than 2^32 bytes.
    [&(from.len() as u32).to_le_bytes(), from, until].concat()
}

fn nothing_left(key: &[u8]) -> Error {
    Error::api_misuse(format!(
        "the key {} is empty in the form of this table's keys",
        KeyFormat::Text.shown(key)
    ))
}

/// How the keys of a table are written whose first input is this one.
fn key_format(options: &BuildOptions, rows: &Rows) -> KeyFormat {
    let is_text = options.key.is_none() || options.normalization != Normalization::default();
    options.key_format.unwrap_or(match rows.has_byte_keys() && !is_text {
        true => KeyFormat::Hex,
        false => KeyFormat::Text,
    })
}

/// How many bytes all inputs have, if that is known of each.
fn bytes_in_all(sources: &[Source]) -> Result<Option<u64>> {
    sources.iter().map(Source::bytes).sum()
}
