//! The next epoch of a table, signed and appended to the log beside its file.

use super::rows;
use crate::build::{OnDuplicate, Progress, RowCounts, Stage, written, written_if_any};
use crate::edit::{HowReplaced, Replacement};
use crate::import::{Columns, LinesLeftOut, Source, check_value, common_columns};
use crate::key_map::{Room, RowKey};
use crate::owner::{OwnedTable, begin_history};
use crate::snapshot::{Snapshot, ValueForm};
use crate::update_log::{NextKeyDigest, PublisherId, PublisherKey};
use privet_core::{Blame, Error, Reason, Result, TableDigest};
use serde::Serialize;
use std::collections::HashSet;
use std::path::PathBuf;

/// What is to be done with a table, and who signs it.
#[derive(Default)]
pub struct Update {
    /// The table's file.
    pub table: PathBuf,
    /// The file with the publisher's key.
    pub publisher_key: PathBuf,
    /// Let values have other columns than the table's, or columns of other types.
    pub columns_may_change: bool,
    /// Afterwards write the table file anew, if the epochs that it does not have take so many
    /// percent of it.
    pub compact: Option<u32>,
    /// First [begin the table's history](begin_history).
    pub begin_history: bool,
    /// The file with the key of who signs from now on. Nothing else is changed then.
    pub hand_over_to: Option<PathBuf>,
    /// The digest of the next key from now on. Nothing else is changed then.
    pub next_key: Option<NextKeyDigest>,
    /// Say what would change, and whether it fits, and sign nothing.
    pub dry_run: bool,
}

/// The rows that a table is to have.
#[derive(Default)]
pub enum NewRows {
    /// Those that it has.
    #[default]
    AsBefore,
    /// Some others, and some no longer.
    Edited(RowEdits),
    /// These and no others.
    Replaced {
        /// All rows.
        by: Source,
        /// What becomes of a key that occurs again.
        on_duplicate: OnDuplicate,
        /// Ranges may lie in one another.
        nested: bool,
    },
}

/// What becomes of some rows.
#[derive(Default)]
pub struct RowEdits {
    /// Keys that go. They go first.
    pub delete: Vec<Vec<u8>>,
    /// Rows whose keys are set.
    pub from: Option<Source>,
    /// The types of their columns are to be found out. Only a table that knows them allows it.
    pub guess_types: bool,
    /// Keys and their new values: JSON, or what is raw. They come last.
    pub set: Vec<(String, String)>,
}

/// What an update has done.
#[derive(Serialize)]
pub struct Updated {
    /// The table's file.
    pub file: String,
    /// Nothing was signed. Records and digest are those of the table as it is.
    pub dry_run: bool,
    /// The table's last epoch.
    pub epoch: u64,
    /// How many epochs this update made, or would make.
    pub epochs: u64,
    /// Keys or rows that are new.
    pub inserted: u64,
    /// Those that were given a value.
    pub replaced: u64,
    /// Those that were removed. If values lie in several `parts`, a replacement counts these.
    pub deleted: u64,
    /// Those to remove that were not there.
    pub absent: u64,
    /// Of a replacement: those that have what they had.
    pub unchanged: Option<u64>,
    /// In how many parts values lie.
    #[serde(skip)]
    pub parts: u64,
    /// How many more keys fit, if that is known and something was signed.
    #[serde(flatten)]
    pub room: Option<KeysLeft>,
    /// How many rows were dropped because another row has their key.
    pub duplicates_dropped: u64,
    /// Rows that were read, also those that were dropped or skipped, but none that narrower ranges
    /// hide.
    pub rows_read: u64,
    /// Rows that were skipped for lack of a key.
    pub empty_keys_skipped: u64,
    /// Lines that were no rows.
    #[serde(flatten)]
    pub lines_left_out: LinesLeftOut,
    /// How many records changed.
    pub records_changed: u64,
    /// Whether the way from keys to records changed.
    pub layout_changed: bool,
    /// How many records the table has.
    pub records: u64,
    /// The digest of its contents.
    #[serde(serialize_with = "written")]
    pub digest: TableDigest,
    /// Who signs its updates.
    #[serde(serialize_with = "written")]
    pub publisher: PublisherId,
    /// The digest of the key without which nobody hands it on.
    #[serde(serialize_with = "written_if_any")]
    pub next_key: Option<NextKeyDigest>,
    /// Bytes of the epochs that are not in the table's file.
    pub log_bytes: u64,
    /// Whether the file was written anew.
    pub compacted: bool,
}

/// The room of a table by key. Estimates.
#[derive(Clone, Copy, Serialize)]
pub struct KeysLeft {
    /// How many more keys fit, about; of values in several parts, how many parts.
    pub keys_that_fit: u64,
    /// From 0 to 1.
    pub fullness: f64,
    /// Whether the table takes few new keys.
    #[serde(skip)]
    pub is_short: bool,
}

impl From<Room> for KeysLeft {
    fn from(room: Room) -> Self {
        let (fullness, is_short) = (room.fullness(), room.is_short());
        Self { keys_that_fit: room.more, fullness, is_short }
    }
}

/// Changes a table's `rows`, signs that, and compacts the table if that is due; or has its keys
/// change. `progress` is called at each stage. If it fails before anything is signed, that ends the
/// update.
///
/// # Errors
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options contradict each other, with
///   [`Reason::NothingToChange`] if there is nothing to do.
/// - As [`PublisherKey::from_file`], [`begin_history`], and the methods of [`OwnedTable`].
/// - [`Reason::EpochInDoubt`] if the epoch may be in the log or not, and [`Reason::NotCompacted`]
///   if it is, and only the rest has failed.
pub fn update(
    wanted: &Update,
    rows: NewRows,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Updated> {
    let Update { begin_history: begins, compact, next_key, dry_run, .. } = *wanted;
    let hands_over = wanted.hand_over_to.is_some() || next_key.is_some();
    let rewrites = begins || compact.is_some();
    match !matches!(rows, NewRows::AsBefore) || rewrites {
        true if hands_over => {
            return Err(Error::api_misuse(
                "a table's keys change by themselves: first make the other changes",
            ));
        }
        false if !hands_over => {
            return Err(Error::api_misuse("say what is to change").because(Reason::NothingToChange));
        }
        _ if dry_run && (rewrites || hands_over) => {
            return Err(Error::api_misuse("only changes of rows can be tried: try these alone"));
        }
        _ => {}
    }
    let mut tell = |stage| progress(Progress { stage, bytes_done: 0, bytes_total: None });
    let key = PublisherKey::from_file(&wanted.publisher_key)?;
    if begins {
        begin_history(&wanted.table, key.id())?;
    }
    let snapshot = Snapshot::open(&wanted.table)?;
    let mut table = OwnedTable::open(&snapshot, key)?;
    let before = table.identity().epoch.0;
    let replaces = matches!(rows, NewRows::Replaced { .. });
    let changes = match rows {
        NewRows::AsBefore => Replacement::default(),
        NewRows::Edited(rows) => edits(rows, wanted.columns_may_change, &snapshot, &table)?,
        NewRows::Replaced { by, on_duplicate, nested } => {
            tell(Stage::Comparing)?;
            let by = match table.layout().values() {
                // Which columns there have to be is compared when all rows are read.
                Some(values) => by.of_table("the table", values, true),
                None => by,
            };
            let columns_may_change = wanted.columns_may_change;
            let how = HowReplaced { on_duplicate, nested, columns_may_change };
            table.replacement(by, how, &mut |_| Ok(()))?
        }
    };
    let Replacement { epochs, counts, rows } = changes;
    if hands_over {
        let to = wanted.hand_over_to.as_deref().map(PublisherKey::from_file).transpose()?;
        tell(Stage::Signing)?;
        table.hand_over(to.as_ref(), next_key)?;
    }
    let records_changed = epochs.iter().map(|edits| edits.written().len() as u64).sum();
    let layout_changed = epochs.iter().any(|edits| edits.layout.is_some());
    if dry_run {
        // Of several epochs each was checked as it was made.
        epochs.first().map(|edits| table.check(edits)).transpose()?;
    } else if !epochs.is_empty() {
        tell(Stage::Signing)?;
        for edits in &epochs {
            table.publish(edits).map_err(|error| match error.blame() {
                Blame::Unavailable => error
                    .within(
                        "whether the epoch is in the log, a look at the table says: look before \
                         you repeat this",
                    )
                    .because(Reason::EpochInDoubt),
                _ => error,
            })?;
        }
    }
    let (identity, keys) = (table.identity(), table.keys());
    let made = match dry_run {
        true => epochs.len() as u64,
        // Also the one in which keys change.
        false => identity.epoch.0 - before,
    };
    let mut updated = Updated {
        file: wanted.table.display().to_string(),
        dry_run,
        epoch: before + made,
        epochs: made,
        inserted: counts.inserted,
        replaced: counts.replaced,
        deleted: counts.deleted,
        absent: counts.absent,
        unchanged: replaces.then_some(counts.unchanged),
        parts: table.layout().records().key_map().map_or(1, |map| map.parts() as u64),
        // What was published stays published, so a failure here is none of the update.
        room: table.room().ok().flatten().filter(|_| !dry_run).map(KeysLeft::from),
        duplicates_dropped: rows.duplicates_dropped,
        rows_read: rows.read() - rows.hidden,
        empty_keys_skipped: rows.empty_keys,
        lines_left_out: rows.left_out,
        records_changed,
        layout_changed,
        records: identity.shape.records(),
        digest: identity.digest,
        publisher: keys.publisher,
        next_key: keys.next,
        log_bytes: table.unfolded_bytes(),
        compacted: compact.is_some_and(|percent| table.is_worth_compacting(percent)),
    };
    if updated.compacted {
        // Nobody can end any more what was signed.
        let _ = tell(Stage::Compacting);
        table.compact().map_err(|error| {
            error
                .within(format!(
                    "epoch {} is made and in the log, and only the compaction has failed; do not \
                     repeat the changes, but compact the table",
                    identity.epoch.0
                ))
                .because(Reason::NotCompacted)
        })?;
        updated.log_bytes = 0;
    }
    Ok(updated)
}

/// Collects what is to change, and counts what was read of files.
fn edits(
    RowEdits { delete, from, guess_types, set }: RowEdits,
    any_columns: bool,
    snapshot: &Snapshot,
    table: &OwnedTable<'_>,
) -> Result<Replacement> {
    let mut editor = table.editor()?;
    let mut deleted: HashSet<&[u8]> = HashSet::new();
    for key in &delete {
        editor.delete(key)?;
        deleted.insert(key);
    }
    // Columns of a key that is deleted in the same update are not missed.
    let present = |key: RowKey<'_>| match any_columns || deleted.contains(key.key) {
        true => Ok(Vec::new()),
        false => table.values_of(key),
    };
    let values = table.layout().values();
    let is_raw = matches!(snapshot.header().value_form, ValueForm::Raw(_));
    // Where rows of a file may have different columns, each row lists its own, and none counts as
    // missing.
    let check = |key: RowKey<'_>, value: &[u8], row_of_any: bool, is_row: bool| {
        let checked = match values {
            _ if any_columns => Ok(()),
            Some(values) => check_value(values, value, Columns::Exactly),
            None if row_of_any || is_raw || key.key.is_empty() => Ok(()),
            None => check_value(&common_columns(&present(key)?), value, Columns::AtLeast),
        };
        checked.map_err(|error| match key.key.is_empty() || !is_row {
            true => error,
            false => error.within(rows::named(key.key)),
        })
    };
    let mut read = RowCounts::default();
    if let Some(mut source) = from {
        let name = source.name();
        match values {
            Some(values) => source = source.of_table("the table", values, any_columns),
            None if guess_types => {
                return Err(Error::api_misuse(
                    "types are found out when a table is built: name the columns and the types \
                     that the table has",
                ));
            }
            None => {}
        }
        let format = snapshot.key_map().map_or_else(Default::default, |map| map.key_form().format);
        let header = snapshot.header();
        read = rows::read(source, header, format, |key, value, same_columns| {
            check(key, value, !same_columns, true)?;
            editor.add(key, value)
        })?;
        editor.end_rows().map_err(|error| error.within(name))?;
    }
    for (key, value) in &set {
        rows::value(snapshot.header(), key, value)
            .and_then(|value| {
                check(key.as_bytes().into(), &value, false, false)?;
                editor.set(key.as_bytes(), &value)
            })
            .map_err(|error| error.within(rows::named(key.as_bytes())))?;
    }
    let (edits, counts) = editor.finish()?;
    Ok(Replacement { epochs: edits.into_iter().collect(), counts, rows: read })
}
