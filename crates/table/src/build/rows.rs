//! The rows of an input, kept in memory until the shape of the table is known.

use super::arena::{Arena, Place};
use super::{BuildOptions, OnDuplicate, Progress, REPORT_EVERY, Stage};
use crate::import::{Row, Rows, quoted};
use crate::key_map::Pairs;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Result};
use std::hash::{BuildHasher, RandomState};

/// The longest value that any table can hold: with its tag and length, it fits into one record.
const MAX_VALUE: u64 = MAX_RECORD_LEN - 16;

pub(super) struct KeptRows {
    arena: Arena,
    rows: Vec<KeptRow>,
    by_key: bool,
    duplicates_dropped: u64,
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
        let by_key = options.key.is_some();
        let mut kept =
            Self { arena: Arena::default(), rows: Vec::new(), by_key, duplicates_dropped: 0 };
        let mut by_hash = KeyIndex::default();
        let (name, unit) = (rows.name().to_owned(), rows.unit());
        let mut count = 0u64;
        while let Some(row) = rows.next_row()? {
            let at = |error: Error, row: &Row<'_>| {
                error.within(format!("{unit} {}", row.position)).within(&name)
            };
            check_length(&row, by_key, options.max_value).map_err(|error| at(error, &row))?;
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
        if kept.rows.is_empty() {
            return Err(Error::api_misuse(format!(
                "{name}: it has no rows; a table needs at least one"
            )));
        }
        Ok(kept)
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
                    "the key {} occurs twice, first in {unit} {}; keep one of the rows, or choose which to keep (first \
                     or last)",
                    printable(row.key),
                    self.rows[earlier].position
                )));
            }
            OnDuplicate::First => {}
            OnDuplicate::Last => {
                self.rows[earlier].value = self.arena.keep(row.value);
                self.rows[earlier].position = row.position;
            }
        }
        self.duplicates_dropped += 1;
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(super) fn value_of(&self, row: u64) -> &[u8] {
        self.arena.at(self.rows[row as usize].value)
    }

    pub(super) fn value_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.value.len() as u64).sum()
    }

    /// The lengths of the shortest and the longest value.
    pub(super) fn value_lengths(&self) -> (u64, u64) {
        let lengths = || self.rows.iter().map(|row| row.value.len() as u64);
        (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0))
    }

    pub(super) fn duplicates_dropped(&self) -> u64 {
        self.duplicates_dropped
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

/// Finds rows by key. Holds numbers of rows; the keys stay in the arena. Keyed anew in every run, so that no input can be
/// made to collide.
#[derive(Default)]
struct KeyIndex {
    table: HashTable<u32>,
    hasher: RandomState,
}

impl KeyIndex {
    /// The row that has `key` already; if there is none, notes that the next row added to `kept` has it.
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
