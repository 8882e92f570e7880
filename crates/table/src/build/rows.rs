//! The rows of an input, kept in memory until the shape of the table is known.

use super::arena::{Arena, Place};
use super::{BuildOptions, OnDuplicate, Progress, REPORT_EVERY, Stage};
use crate::import::{Row, Rows, quoted};
use crate::key_map::{KeyForm, Pairs, listed_len, push_to_list};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Reason, Result};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The longest value that any table can hold: with its tag and length, it fits into one record.
const MAX_VALUE: u64 = MAX_RECORD_LEN - 16;

pub(super) struct KeptRows {
    arena: Arena,
    /// One for each key, in a table by key.
    rows: Vec<KeptRow>,
    /// The values of rows whose key had occurred before, where all are kept: by the first row with
    /// it.
    further: HashMap<u32, Further>,
    by_key: bool,
    rows_kept: u64,
    value_bytes: u64,
    duplicates_dropped: u64,
    key_form: KeyForm,
    empty_keys: u64,
}

#[derive(Default)]
struct Further {
    values: Vec<Place>,
    /// What they take in a list.
    listed_bytes: u64,
}

struct KeptRow {
    key: Place,
    value: Place,
    position: u64,
}

impl KeptRows {
    /// Reads all of `rows`.
    pub(super) fn read(
        mut rows: Rows,
        options: &BuildOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self> {
        let by_key = options.key.is_some() || options.ranges.is_some();
        let mut kept = Self {
            arena: Arena::default(),
            rows: Vec::new(),
            further: HashMap::new(),
            by_key,
            rows_kept: 0,
            value_bytes: 0,
            duplicates_dropped: 0,
            key_form: KeyForm { normalization: options.normalization, ranges: None },
            empty_keys: 0,
        };
        let mut by_hash = KeyIndex::default();
        let (name, unit) = (rows.name().to_owned(), rows.unit());
        let mut count = 0u64;
        while let Some(row) = rows.next_row()? {
            let at = |error: Error, row: &Row<'_>| {
                error.within(format!("{unit} {}", row.position)).within(&name)
            };
            check_length(&row, by_key, options.max_value).map_err(|error| at(error, &row))?;
            let key = options.normalization.apply(row.key);
            if by_key && key.is_empty() {
                return Err(at(nothing_left(row.key), &row));
            }
            let row = Row { key: &key, ..row };
            if by_key {
                kept.add_keyed(&row, &mut by_hash, options.on_duplicate, unit)
                    .map_err(|error| at(error, &row))?;
            } else {
                kept.add(&row);
            }
            count += 1;
            if count.is_multiple_of(REPORT_EVERY) {
                report(&rows, progress);
            }
        }
        report(&rows, progress);
        kept.empty_keys = rows.empty_keys();
        if kept.rows.is_empty() && kept.empty_keys > 0 {
            return Err(Error::api_misuse(format!(
                "{name}: none of its rows, {} in all, has a key; a table needs at least one that has",
                kept.empty_keys
            )));
        }
        if kept.rows.is_empty() {
            return Err(Error::api_misuse(format!(
                "{name}: it has no rows; a table needs at least one"
            )));
        }
        kept.count();
        if by_key && options.on_duplicate == OnDuplicate::All {
            kept.make_lists();
        }
        if options.ranges.is_some() {
            let ranges = kept.make_ranges(unit).map_err(|error| error.within(&name))?;
            kept.key_form.ranges = Some(ranges);
        }
        Ok(kept)
    }

    fn count(&mut self) {
        let further = || self.further.values().flat_map(|further| &further.values);
        self.rows_kept = (self.rows.len() + further().count()) as u64;
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
        let (key, value) = (self.arena.keep(row.key), self.arena.keep(row.value));
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
        let Some(earlier) = index.find_or_add(row.key, self) else {
            self.add(row);
            return Ok(());
        };
        match on_duplicate {
            OnDuplicate::Error => {
                return Err(Error::api_misuse(format!(
                    "the key {} occurs twice, first in {unit} {}; keep one of the rows, or choose which to keep: \
                     the first, the last, or all of them",
                    printable(row.key),
                    self.rows[earlier].position
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
        self.duplicates_dropped += 1;
        Ok(())
    }

    /// Keeps one more value of a key.
    fn add_further(&mut self, first: usize, row: &Row<'_>) -> Result<()> {
        let first_len = listed_len(self.rows[first].value.len()) as u64;
        let further = self.further.entry(first as u32).or_default();
        further.listed_bytes += listed_len(row.value.len()) as u64;
        if first_len + further.listed_bytes > MAX_VALUE {
            return Err(Error::api_misuse(format!(
                "with this row, the {} values of the key {} have {} bytes together, and the limit is {MAX_VALUE}; no table can hold them",
                further.values.len() + 2,
                printable(row.key),
                first_len + further.listed_bytes
            )));
        }
        further.values.push(self.arena.keep(row.value));
        Ok(())
    }

    /// What the builder made of keys, and clients have to make of theirs.
    pub(super) fn key_form(&self) -> &KeyForm {
        &self.key_form
    }

    pub(super) fn key_of(&self, row: usize) -> &[u8] {
        self.arena.at(self.rows[row].key)
    }

    /// Gives the row another key.
    pub(super) fn rename(&mut self, row: usize, key: &[u8]) {
        self.rows[row].key = self.arena.keep(key);
    }

    /// Where the row is in the input.
    pub(super) fn position(&self, row: usize) -> u64 {
        self.rows[row].position
    }

    /// The number of records of a table by index.
    pub(super) fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    /// How many rows of the input are in the table.
    pub(super) fn rows_kept(&self) -> u64 {
        self.rows_kept
    }

    pub(super) fn value_of(&self, row: u64) -> &[u8] {
        self.arena.at(self.rows[row as usize].value)
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

    pub(super) fn duplicates_dropped(&self) -> u64 {
        self.duplicates_dropped
    }

    /// How many rows were skipped because they have no key.
    pub(super) fn empty_keys(&self) -> u64 {
        self.empty_keys
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

/// Finds rows by key. Holds numbers of rows; the keys stay in the arena. Keyed anew in every run,
/// so that no input can be made to collide.
#[derive(Default)]
struct KeyIndex {
    table: HashTable<u32>,
    hasher: RandomState,
}

impl KeyIndex {
    /// The row that has `key` already; if there is none, notes that the next row added to `kept`
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

fn nothing_left(key: &[u8]) -> Error {
    Error::api_misuse(format!(
        "nothing is left of the key {} without the differences that do not count",
        printable(key)
    ))
}

fn check_length(row: &Row<'_>, by_key: bool, max_value: Option<u64>) -> Result<()> {
    let limit = max_value.unwrap_or(MAX_VALUE).min(MAX_VALUE);
    let len = row.value.len() as u64;
    if len <= limit {
        return Ok(());
    }
    let whose = if by_key {
        format!("the value of the key {}", printable(row.key))
    } else {
        "the value".to_owned()
    };
    let advice = if limit < MAX_VALUE {
        "raise the limit or shorten the value"
    } else {
        "no table can hold it"
    };
    Err(Error::api_misuse(format!("{whose} has {len} bytes, and the limit is {limit}; {advice}")))
}

/// A key for people: as text if it is text, in hexadecimal if not.
fn printable(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) => quoted(text),
        Err(_) => {
            let hex: String = key.iter().take(40).map(|byte| format!("{byte:02x}")).collect();
            format!("0x{hex}{}", if key.len() > 40 { "…" } else { "" })
        }
    }
}

fn report(rows: &Rows, progress: &mut dyn FnMut(Progress)) {
    progress(Progress {
        stage: Stage::Reading,
        bytes_done: rows.bytes_read(),
        bytes_total: rows.bytes_total(),
    });
}
