//! The epochs after which a table holds the rows of a file, and nothing else.
//!
//! A table by key does not tell its keys. But the file's keys are all that it is to have, so their
//! tags are all that it is to have: every entry with another tag is removed. That makes room. Then
//! each row is compared with what the table has, and where they differ it is set: first values that
//! do not grow, then the others, the longest first. A value in the stash goes back to its records
//! where there is room by then.
//!
//! Besides the rows themselves this holds their tags, eight bytes for each part of each key, and
//! the records that change.
//!
//! # Several epochs
//!
//! An epoch has a limit, so a large difference becomes several. After each of them the table is
//! whole: a key has its old value or its new one. Where that cannot be, there is one epoch or none:
//! if the bounds of ranges change, or what the table tells of its values (their columns, their
//! types), and for what is removed where values lie in parts (nobody knows which pieces belong
//! together). All epochs are made before the first is signed, so a table that cannot take all rows
//! stays as it is.

#[cfg(test)]
mod tests;

use super::rows::Counts;
use super::{NumberedRows, TableUpdate, Written, update_of};
use crate::build::{KeptRows, OnDuplicate, RowCounts};
use crate::import::{Columns, check_value};
use crate::key_map::{Editor, Effect, Held, KeyForm, KeyMap, Pairs as _, decode_list};
use crate::layout::{IndexLayout, RecordLayout, TableLayout};
use crate::update_log::check_can_be_sent;
use crate::values::Values;
use privet_core::quantities::count;
use privet_core::{Error, Reason, Result, TableShape};
use std::cmp::Reverse;

/// An epoch is ended when its records take about so many bytes. Servers and clients hold one in
/// memory, and accept four times as much.
pub(crate) const EPOCH_BYTES: u64 = 64 << 20;

/// So many rows without room are counted at most: to find out takes long.
const MOST_REFUSED: u64 = 1000;

/// The epochs that make a table hold certain rows.
#[derive(Debug, Default)]
pub struct Replacement {
    /// In their order; none if the table holds these rows already.
    pub epochs: Vec<TableUpdate>,
    /// What they do to keys, or to rows in a table by index. Where values lie in several parts,
    /// `deleted` counts the parts of values, because without their keys nobody can say more.
    pub counts: Counts,
    /// What became of the rows.
    pub rows: RowCounts,
}

/// How rows take the place of what a table holds.
#[derive(Clone, Copy, Debug)]
pub struct HowReplaced {
    /// What becomes of a key that occurs again, in a table of one value for each key.
    pub on_duplicate: OnDuplicate,
    /// Ranges may lie in one another. In a table whose ranges were nested, they may in any case.
    pub nested: bool,
    /// Values may lack columns that they have in the table, or have other types.
    pub columns_may_change: bool,
}

/// The epochs that make the table of this layout and shape hold `rows`. `read` gives its records;
/// an epoch ends when it has about `epoch_bytes`.
///
/// # Errors
/// - [`Blame::Exhausted`](privet_core::Blame::Exhausted), with figures, if the table has no room.
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a value is too long, if rows of a table
///   by index would go, or if one epoch is needed and cannot hold the difference. All these have
///   the [reason](Reason::DoesNotFit) that says so.
/// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if a record is malformed; whatever `read`
///   fails with.
pub(crate) fn replacement(
    layout: &TableLayout,
    shape: TableShape,
    read: impl Fn(u64) -> Result<Vec<u8>>,
    rows: &KeptRows,
    epoch_bytes: u64,
) -> Result<Replacement> {
    let described = described(layout, rows);
    let changes = !described.is_that_of(layout);
    // Rows of two descriptions are never in one version.
    let epoch_bytes = if changes { u64::MAX } else { epoch_bytes };
    let mut planned =
        Planned { layout: layout.clone(), shape, read, epochs: Vec::new(), epoch_bytes };
    let counts = match layout.records() {
        RecordLayout::Keyed(key_map) => planned.by_key(key_map, rows)?,
        RecordLayout::Index(index) => planned.by_index(*index, rows)?,
    };
    if changes {
        planned.describe(described)?;
    }
    Ok(Replacement { epochs: planned.epochs, counts, rows: rows.counts() })
}

/// Refuses rows whose values lack columns that the table's values have, or have them of other
/// types. Where all rows have the same columns, further ones are fine: the table tells them then.
pub(crate) fn check_columns(layout: &TableLayout, rows: &KeptRows) -> Result<()> {
    let columns = match (layout.values(), rows.columns()) {
        (Some(before), Some(now)) if before.columns == now => return Ok(()),
        (Some(_), Some(_)) => Columns::AtLeast,
        (Some(_), None) => Columns::Exactly,
        (None, None) => return Ok(()),
        (None, Some(_)) => {
            return Err(Error::api_misuse(
                "the rows of the table may differ in their columns, and those of this file may \
                 not: give a file of the kind that the table was built from, or say that columns \
                 may change",
            )
            .because(Reason::ColumnsDiffer));
        }
    };
    let Some(values) = layout.values() else { return Ok(()) };
    let has_lists = layout.records().key_map().is_some_and(KeyMap::has_lists);
    for row in 0..rows.rows() {
        let value = rows.value(row as usize);
        let several = if has_lists { decode_list(value)? } else { vec![value] };
        several.into_iter().try_for_each(|value| check_value(values, value, columns))?;
    }
    Ok(())
}

/// How the table is described that has `rows`: which ranges there are, and what the values are.
fn described(layout: &TableLayout, rows: &KeptRows) -> Described {
    let values = match (layout.values(), rows.columns()) {
        (Some(before), Some(columns)) => {
            let now = Values { is_raw: before.is_raw, columns: columns.to_vec() };
            Some(now).filter(Values::fits)
        }
        // Rows that may differ, of which all are like those of the table, or not.
        (before, _) => before.filter(|_| check_columns(layout, rows).is_ok()).cloned(),
    };
    Described { key_form: rows.key_form().clone(), values }
}

/// What a table's layout says of keys and values, besides where they lie.
struct Described {
    key_form: KeyForm,
    values: Option<Values>,
}

impl Described {
    /// Whether `layout` says this.
    fn is_that_of(&self, layout: &TableLayout) -> bool {
        let key_map = layout.records().key_map();
        self.values.as_ref() == layout.values()
            && key_map.is_none_or(|key_map| *key_map.key_form() == self.key_form)
    }

    /// `layout`, saying this.
    fn within(self, layout: &TableLayout) -> TableLayout {
        let records = match layout.records().clone() {
            RecordLayout::Keyed(map) => RecordLayout::Keyed(map.with_key_form(self.key_form)),
            records => records,
        };
        TableLayout::from(records).describing(self.values)
    }
}

/// A table with the epochs that were made so far.
struct Planned<R> {
    layout: TableLayout,
    shape: TableShape,
    read: R,
    epochs: Vec<TableUpdate>,
    epoch_bytes: u64,
}

impl<R: Fn(u64) -> Result<Vec<u8>>> Planned<R> {
    fn record(&self, number: u64) -> Result<Vec<u8>> {
        let mut epochs = self.epochs.iter().rev();
        match epochs.find_map(|update| update.written.get(&number)) {
            Some(record) => Ok(record.clone()),
            None => (self.read)(number),
        }
    }

    fn add(&mut self, update: Option<TableUpdate>) -> Result<()> {
        let Some(update) = update else { return Ok(()) };
        check_can_be_sent(&update).map_err(at_once)?;
        self.shape = update.after;
        if let Some(layout) = &update.layout {
            self.layout = layout.clone();
        }
        self.epochs.push(update);
        Ok(())
    }

    fn by_index(&mut self, index: IndexLayout, rows: &KeptRows) -> Result<Counts> {
        let (now, wanted) = (self.shape.records(), rows.rows());
        if wanted < now {
            return Err(Error::api_misuse(format!(
                "the table has {now} rows, and would have {wanted}: a row of a table by row number \
                 cannot be removed, because those after it would move; build the table anew"
            ))
            .because(Reason::DoesNotFit));
        }
        let (mut counts, mut row) = (Counts::default(), 0);
        while row < wanted {
            let mut editor = NumberedRows::new(index, self.shape, |number| self.record(number));
            let mut bytes = 0;
            while row < wanted && bytes < self.epoch_bytes {
                let value = rows.value(row as usize);
                let named = |error: Error| error.within(format!("row {row}"));
                if row >= now {
                    editor.append(value).map_err(named)?;
                    counts.inserted += 1;
                    bytes += self.shape.record_len();
                } else if index.value_in(&self.record(row)?)? == value {
                    counts.unchanged += 1;
                } else {
                    editor.set(row, value).map_err(named)?;
                    counts.replaced += 1;
                    bytes += bytes_of_a_change(self.shape);
                }
                row += 1;
            }
            let written = editor.finish()?;
            self.add(update_of((written, None), self.shape, None)?)?;
        }
        Ok(counts)
    }

    fn by_key(&mut self, key_map: &KeyMap, rows: &KeptRows) -> Result<Counts> {
        let most_records = self.epoch_bytes / bytes_of_a_change(self.shape);
        let mut work = ByKey::new(key_map, rows, most_records)?;
        loop {
            let layout = self.layout.clone();
            let Some(key_map) = layout.records().key_map() else { return Ok(work.counts) };
            let mut editor = Editor::new(key_map, |number| self.record(number));
            let done = work.go_on(&mut editor)?;
            let update = update_of(editor.finish()?, self.shape, layout.values())?;
            self.add(update)?;
            if done {
                return work.finish();
            }
        }
    }

    /// Has the one epoch say this of the table. Makes one if no record changes.
    fn describe(&mut self, described: Described) -> Result<()> {
        let layout = Some(described.within(&self.layout));
        let update = match self.epochs.pop() {
            Some(update) => TableUpdate { layout, ..update },
            None => TableUpdate::new(self.shape, Written::new(), layout)?,
        };
        check_can_be_sent(&update).map_err(at_once)?;
        self.epochs.push(update);
        Ok(())
    }
}

/// The error for an epoch that is larger than any may be, because nothing of it may come later.
fn at_once(error: Error) -> Error {
    error.within("all rows change at once").because(Reason::DoesNotFit)
}

/// The bytes that an epoch has for a record that changes.
fn bytes_of_a_change(shape: TableShape) -> u64 {
    2 * shape.record_len() + 8
}

/// How far the work on a table by key is.
struct ByKey<'r> {
    rows: &'r KeptRows,
    /// Of all parts of all keys, in ascending order.
    tags: Vec<u64>,
    /// How many records an epoch changes, about.
    most_records: u64,
    /// Values lie in one record each.
    undivided: bool,
    records: u64,
    /// Records whose other entries are removed.
    swept: u64,
    /// Rows that were compared.
    compared: usize,
    /// Rows to be set when the others are, from the longest to the shortest value.
    later: Vec<Later>,
    /// How many of these are set.
    placed: usize,
    counts: Counts,
    refused: u64,
    refusal: Option<Error>,
}

#[derive(Clone, Copy)]
struct Later {
    row: usize,
    /// The table has this very value, in the stash.
    is_there: bool,
}

impl<'r> ByKey<'r> {
    fn new(key_map: &KeyMap, rows: &'r KeptRows, most_records: u64) -> Result<Self> {
        let mut tags = Vec::with_capacity(rows.len() * key_map.parts());
        for row in 0..rows.len() {
            tags.extend(key_map.tags_of_formed(rows.key(row)));
        }
        tags.sort_unstable();
        if tags.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::api_misuse(
                "two keys have the same tag in this table, so one would get the value of the \
                 other: build the table anew",
            )
            .because(Reason::DoesNotFit));
        }
        Ok(Self {
            rows,
            tags,
            most_records,
            undivided: key_map.parts() == 1,
            records: key_map.buckets(),
            swept: 0,
            compared: 0,
            later: Vec::new(),
            placed: 0,
            counts: Counts::default(),
            refused: 0,
            refusal: None,
        })
    }

    /// Goes on until an epoch is full. Returns whether all is done.
    fn go_on<R: FnMut(u64) -> Result<Vec<u8>>>(
        &mut self,
        editor: &mut Editor<'_, R>,
    ) -> Result<bool> {
        let most = self.most_records;
        let tags = &self.tags;
        let keep = |tag: u64| tags.binary_search(&tag).is_ok();
        if self.swept == 0 {
            self.counts.deleted += editor.sweep_stash(keep);
        }
        while self.swept < self.records {
            self.counts.deleted += editor.sweep(self.swept, keep)?;
            self.swept += 1;
            if self.undivided && editor.touched() >= most {
                return Ok(false);
            }
        }
        while self.compared < self.rows.len() {
            self.compare(self.compared, editor)?;
            self.compared += 1;
            if self.compared == self.rows.len() {
                let value_len = |later: &Later| Reverse(self.rows.value(later.row).len());
                self.later.sort_by_key(value_len);
                // Where nothing else changes, what lies in the stash stays there.
                if self.counts.replaced + self.counts.deleted == 0
                    && self.later.iter().all(|later| later.is_there)
                {
                    self.later.clear();
                }
            }
            if editor.touched() >= most {
                return Ok(false);
            }
        }
        while self.placed < self.later.len() && self.refused <= MOST_REFUSED {
            self.place(self.later[self.placed], editor)?;
            self.placed += 1;
            if editor.touched() >= most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compare<R: FnMut(u64) -> Result<Vec<u8>>>(
        &mut self,
        row: usize,
        editor: &mut Editor<'_, R>,
    ) -> Result<()> {
        let (key, value) = (self.rows.key(row), self.rows.value(row));
        let held = editor.compare(key, value)?;
        if let Held::Same { .. } = held {
            self.counts.unchanged += 1;
        }
        match held {
            Held::Same { in_stash: false } => {}
            Held::Other(len) if value.len() <= len => match editor.put_formed(key, value) {
                Ok(_) => self.counts.replaced += 1,
                Err(error) if has_no_room(&error) => {
                    self.later.push(Later { row, is_there: false });
                }
                Err(error) => return Err(error),
            },
            Held::Same { .. } => self.later.push(Later { row, is_there: true }),
            Held::Nothing | Held::Other(_) => self.later.push(Later { row, is_there: false }),
        }
        Ok(())
    }

    fn place<R: FnMut(u64) -> Result<Vec<u8>>>(
        &mut self,
        Later { row, is_there }: Later,
        editor: &mut Editor<'_, R>,
    ) -> Result<()> {
        match editor.put_formed(self.rows.key(row), self.rows.value(row)) {
            Err(error) if has_no_room(&error) => {
                // What is in the stash already may stay there.
                self.refused += u64::from(!is_there);
                if !is_there && self.refusal.is_none() {
                    self.refusal = Some(error);
                }
            }
            Err(error) => return Err(error),
            Ok(_) if is_there => {}
            Ok(Effect::Inserted) => self.counts.inserted += 1,
            Ok(_) => self.counts.replaced += 1,
        }
        Ok(())
    }

    fn finish(self) -> Result<Counts> {
        let Some(refusal) = self.refusal else { return Ok(self.counts) };
        let more = if self.refused > MOST_REFUSED { "more than " } else { "" };
        let refused = count(self.refused.min(MOST_REFUSED));
        let of = count(self.later.iter().filter(|later| !later.is_there).count() as u64);
        Err(refusal.within(format!(
            "{more}{refused} of the {of} keys that are new or have a longer value do not fit, and \
             nothing was changed"
        )))
    }
}

fn has_no_room(error: &Error) -> bool {
    error.reason() == Some(Reason::DoesNotFit)
}
