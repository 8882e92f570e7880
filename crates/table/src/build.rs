//! From an input file to a snapshot file.
//!
//! [`build_table`] reads all rows, decides how the table looks, and writes it. A table's shape
//! follows from all of its values: from the longest one in a table by index, from all of them in a
//! table by key. So the rows are kept in memory: the bytes of keys and values once, and about 170
//! bytes more for each row, most of them while a table by key is packed. For values of a kilobyte
//! that makes one to two times the size of the output, for values of 32 bytes five times. With
//! [`OnDuplicate::Last`], values that are replaced keep their memory until the end. With
//! [`OnDuplicate::All`], all values are in memory twice for a moment, as rows and as lists. An
//! [authenticated](crate::authentication) table takes 64 bytes more for each record, and every
//! record is made twice: once to hash it, once to write it.

mod arena;
mod key_shape;
mod ranges;
mod report;
mod rows;

#[cfg(test)]
mod tests;

pub use key_shape::KeyShape;
pub use report::{BuildReport, KeyFormReport, RangesReport};
pub(crate) use report::{written, written_if_any};

use crate::authentication::{MerkleTree, shape_with_paths};
use crate::choice::Choice;
use crate::import::{ColumnType, ColumnTypes, Format, OnEmptyKey, Selection, Source, guess_types};
use crate::key_map::{KeyFormat, KeyMapKind, Normalization, PackOptions, Pairs as _, pack_with};
use crate::layout::{IndexLayout, RecordLayout, TableLayout};
use crate::new_file::Existing;
use crate::snapshot::{Mark, SnapshotPlan, SnapshotWriter, ValueForm};
use crate::update_log::{earlier_log_path, log_path};
use crate::values::Values;
use privet_core::{Epoch, Error, PublicSeed, Reason, Result, SecretRng, TableId, TableShape};
pub(crate) use rows::KeptRows;
pub use rows::RowCounts;
use std::path::{Path, PathBuf};

/// Progress is reported each time this many more rows or records are done.
const REPORT_EVERY: u64 = 64;

/// What to make of an input.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// The column that gives the key. Without one, the table is by index: record *i* holds row *i*,
    /// from 0.
    pub key: Option<String>,
    /// Which differences between keys do not count. Keys that differ in nothing else are the same
    /// key.
    pub normalization: Normalization,
    /// How keys are written, in the inputs and by clients. A column of bytes (Parquet has them)
    /// needs no reading, and its table has hexadecimal keys unless something else is said here or
    /// its keys are normalised. Otherwise keys are text.
    pub key_format: Option<KeyFormat>,
    /// The columns with the bounds, if rows answer for ranges of keys. Not together with `key`.
    pub ranges: Option<RangeColumns>,
    /// The kind of key map, for a table by key.
    pub key_map: KeyMapKind,
    /// How many parts each key has, for a table by key: [`PackOptions::parts`].
    pub parts: Option<u8>,
    /// For so many more keys there is to be room, in a table by key with a cuckoo map.
    pub room: u64,
    /// The columns that make the value, as a JSON object. Empty for all columns except the key or
    /// the bounds.
    pub value_columns: Vec<String>,
    /// The one column whose bytes are the value. Not together with `value_columns`.
    pub raw_value: Option<String>,
    /// Refuse values longer than this many bytes.
    pub max_value: Option<u64>,
    /// What to do with a key that occurs again.
    pub on_duplicate: OnDuplicate,
    /// What the cells of these columns are in JSON values, for CSV: [`Source::types`]. If any types
    /// are given here or guessed, they replace all those that the sources give.
    pub types: ColumnTypes,
    /// Whether to read inputs in CSV once before, to find out which of the columns not in `types`
    /// hold numbers or booleans. A column holds numbers only if every program writes and reads them
    /// in the same way: `007`, `1.50` and numbers of more than 15 digits stay text.
    pub guess_types: bool,
    /// Store with each record the proof that it belongs to the table: see
    /// [`authentication`](crate::authentication).
    pub authenticate: bool,
    /// The table will have a log of updates, and its file says so from the start. The caller makes
    /// the log ([`UpdateLog::create`](crate::update_log::UpdateLog::create)).
    pub has_log: bool,
    /// What becomes of a file that has the output's name already.
    pub existing: Existing,
}

/// Where the bounds of ranges stand. They are whole numbers or addresses. Ranges do not overlap,
/// unless they are nested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeColumns {
    /// The column of the first point; or of both, as a network (`1.2.3.0/24`) or as two addresses
    /// (`1.2.3.0-1.2.3.255`).
    pub from: String,
    /// The column of the last point, which belongs to the range. Without it, and without the last
    /// point in `from`, a range ends where the next one begins.
    pub to: Option<String>,
    /// Whether ranges may lie in one another. Of those that hold a key, the narrowest answers. Each
    /// row must say where its range ends.
    pub nested: bool,
}

/// What to do with a key that occurs again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// Refuse the input, naming the key and both places.
    #[default]
    Error,
    /// Keep the first row with the key.
    First,
    /// Keep the last row with the key.
    Last,
    /// Keep all rows. Every key has a [list](crate::key_map::encode_list) of values, in the order
    /// of the rows, even a key that occurs once.
    All,
}

impl OnDuplicate {
    /// What keeps one row for each key, as people choose it.
    pub const CHOICES: [Choice<Self>; 3] = [
        Choice::new(Self::Error, "error", "Stop and name the key and its lines"),
        Choice::new(Self::First, "first", "Keep the first row"),
        Choice::new(Self::Last, "last", "Keep the last row"),
    ];
}

/// How far a build or an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many bytes of it are done.
    pub bytes_done: u64,
    /// How many bytes there are to do, if that is known.
    pub bytes_total: Option<u64>,
}

/// What a build or an update does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Finding out of what types the columns are.
    Guessing,
    /// Reading the input.
    Reading,
    /// Distributing keys over buckets. Takes about a microsecond per key; its bytes are not
    /// counted.
    Packing,
    /// Hashing the records of an authenticated table.
    Hashing,
    /// Writing the output.
    Writing,
    /// Reading rows and comparing them with a table that is to hold them.
    Comparing,
    /// Reading a table and signing its next epoch.
    Signing,
    /// Writing a table anew with all its updates.
    Compacting,
}

impl Stage {
    /// The stage in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Guessing => "looking at the columns",
            Self::Reading => "reading",
            Self::Packing => "packing",
            Self::Hashing => "hashing",
            Self::Writing => "writing",
            Self::Comparing => "reading the rows and comparing them with the table",
            Self::Signing => "reading the table and signing",
            Self::Compacting => "writing the table anew",
        }
    }
}

/// Reads `source`, builds a table as `options` say, and writes it to `output`. `progress` is called
/// often; it should be quick. If it fails, the build ends with its error.
///
/// If anything fails, `output` is as it was before.
///
/// # Errors
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the options contradict each other, or
///   the input is not as [`import`](crate::import) says it should be, is empty, has duplicate keys,
///   or values that are too long.
/// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the input cannot be read or the
///   output cannot be written.
pub fn build_table(
    options: &BuildOptions,
    source: Source,
    output: &Path,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<BuildReport> {
    build_table_from(options, vec![source], output, progress)
}

/// As [`build_table`], from the rows of several inputs, one after the other. All inputs must have
/// the same format and the same columns, in any order.
///
/// # Errors
/// As [`build_table`].
pub fn build_table_from(
    options: &BuildOptions,
    sources: Vec<Source>,
    output: &Path,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<BuildReport> {
    let selection = selection(options)?;
    if selection.key.is_none() && says_something_of_keys(options, &sources) {
        return Err(Error::api_misuse(
            "something is said of keys, and the table is to have none: say which column they are in",
        )
        .because(Reason::NoKeyColumn));
    }
    check_formats(&sources)?;
    let (types, sources) = match options.guess_types {
        true => guess_types(sources, &selection, &options.types, &mut |bytes_done| {
            progress(Progress { stage: Stage::Guessing, bytes_done, bytes_total: None })
        })?,
        false => (options.types.clone(), sources),
    };
    let sources = sources.into_iter().map(|source| match types.is_empty() {
        true => source,
        false => source.types(types.clone()),
    });
    let kept = KeptRows::read(sources.collect(), &selection, options, progress)?;
    // Drawn only now: nobody can have chosen the keys to fit the seed.
    let mut rng = SecretRng::from_os()?;
    let (mut id, mut seed) = ([0; 16], [0; 32]);
    rng.fill(&mut id);
    rng.fill(&mut seed);
    let (id, seed) = (TableId(id), PublicSeed::from_bytes(seed));
    let report = write_table(&kept, selection, options, id, seed, output, progress)?;
    let types = types.into_iter().filter(|(_, one)| *one != ColumnType::Text).collect();
    Ok(BuildReport { types, ..report })
}

/// Refuses inputs of different formats, because their values would differ in form: `"1"` from CSV
/// is `1` from JSON Lines.
fn check_formats(sources: &[Source]) -> Result<()> {
    let mut first: Option<(Format, String)> = None;
    for source in sources {
        let format = match source.resolve_format().map_err(|error| error.within(source.name()))? {
            Format::Tsv => Format::Csv,
            format => format,
        };
        match &first {
            None => first = Some((format, source.name())),
            Some((other, name)) if *other != format => {
                return Err(Error::api_misuse(format!(
                    "{} is {}, and {name} is {}; build a table from inputs of one format",
                    source.name(),
                    format.name(),
                    other.name()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Refuses to build over a table that has an update log. The log would not belong to the new table,
/// and the old table's history would be lost with its file.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is an update log beside `output`.
pub fn refuse_over_a_history(output: &Path) -> Result<()> {
    // A link that leads nowhere counts too: the log may be on a disk that is not mounted.
    let is_there = |log: &PathBuf| log.symlink_metadata().is_ok();
    match [log_path(output), earlier_log_path(output)].into_iter().find(is_there) {
        None => Ok(()),
        Some(log) => Err(Error::api_misuse(format!(
            "{} has an update log, {}: clients follow that table's history, and a table that is built anew does not continue it. Move both files away, or choose another name",
            output.display(),
            log.display()
        ))),
    }
}

fn selection(options: &BuildOptions) -> Result<Selection> {
    let value = match (&options.raw_value, options.value_columns.as_slice()) {
        (Some(_), [_, ..]) => {
            return Err(Error::api_misuse(
                "a value is either one column's bytes or a JSON object of several columns; choose one",
            ));
        }
        (Some(column), []) => ValueForm::Raw(column.clone()),
        (None, []) => ValueForm::JsonRest,
        (None, columns) => {
            let twice =
                (1..columns.len()).find(|&column| columns[..column].contains(&columns[column]));
            if let Some(column) = twice {
                return Err(Error::api_misuse(format!(
                    "the value column {} is named twice",
                    crate::import::quoted(&columns[column])
                )));
            }
            ValueForm::JsonColumns(columns.to_vec())
        }
    };
    let is_text = options.key_format.is_none_or(|format| format == KeyFormat::Text);
    let needs_text = options.ranges.is_some() || options.normalization != Normalization::default();
    if !is_text && needs_text {
        return Err(Error::api_misuse(
            "only keys that are text are normalised or are points of ranges; leave that out, or the format of keys",
        ));
    }
    match &options.ranges {
        None => Ok(Selection { key: options.key.clone(), until: None, value }),
        Some(_) if options.key.is_some() => {
            Err(Error::api_misuse("a table is by key or by range of keys; choose one"))
        }
        Some(_) if options.normalization != Normalization::default() => {
            Err(Error::api_misuse("the keys of a table of ranges are not normalised"))
        }
        Some(RangeColumns { from, to, .. }) => {
            Ok(Selection { key: Some(from.clone()), until: to.clone(), value })
        }
    }
}

/// Whether there is more to know about keys than the column that they are in.
fn says_something_of_keys(options: &BuildOptions, sources: &[Source]) -> bool {
    let BuildOptions { normalization, key_format, key_map, parts, room, on_duplicate, .. } =
        options;
    *normalization != Normalization::default()
        || key_format.is_some()
        || *key_map != KeyMapKind::default()
        || parts.is_some()
        || *room > 0
        || *on_duplicate == OnDuplicate::All
        || sources.iter().any(|source| source.on_empty_key != OnEmptyKey::Error)
}

/// Everything after reading. Depends on its arguments alone, so that tests can repeat it.
fn write_table(
    kept: &KeptRows,
    selection: Selection,
    options: &BuildOptions,
    id: TableId,
    seed: PublicSeed,
    output: &Path,
    progress: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<BuildReport> {
    progress(Progress { stage: Stage::Packing, bytes_done: 0, bytes_total: None })?;
    let BuildOptions { authenticate, has_log, existing, .. } = *options;
    let unfinished = Unfinished { kept, selection, id, authenticate, has_log, existing };
    if unfinished.selection.key.is_some() {
        let pack = PackOptions {
            kind: options.key_map,
            parts: options.parts,
            lists: options.on_duplicate == OnDuplicate::All,
            room: options.room,
        };
        let packed = pack_with(&pack, kept, seed)?;
        let packed = packed.with_key_form(kept.key_form().clone());
        let layout = RecordLayout::Keyed(packed.key_map().clone());
        let shape = packed.key_map().shape();
        let write = |number: u64, record: &mut Vec<u8>| packed.write_record(kept, number, record);
        let report = unfinished.write(layout, shape, output, progress, write)?;
        Ok(BuildReport { undivided_record_len: packed.undivided_record_len(), ..report })
    } else {
        let (shortest, longest) = kept.value_lengths();
        let index = IndexLayout::for_lengths(shortest, longest);
        let shape = TableShape::new(kept.rows(), index.record_len(longest))?;
        let write = |number: u64, record: &mut Vec<u8>| {
            index.write_record(kept.value(number as usize), shape.record_len(), record);
        };
        unfinished.write(RecordLayout::Index(index), shape, output, progress, write)
    }
}

/// A table of which everything but the records is decided.
struct Unfinished<'a> {
    kept: &'a KeptRows,
    selection: Selection,
    id: TableId,
    authenticate: bool,
    has_log: bool,
    existing: Existing,
}

impl Unfinished<'_> {
    /// Writes the records. `write` makes record number `i`, of the shape `within`. If the table is
    /// to be authenticated, its path follows each record.
    fn write(
        self,
        records: RecordLayout,
        within: TableShape,
        output: &Path,
        progress: &mut dyn FnMut(Progress) -> Result<()>,
        write: impl Fn(u64, &mut Vec<u8>),
    ) -> Result<BuildReport> {
        let shape = if self.authenticate { shape_with_paths(within)? } else { within };
        let mut stopped = Ok(());
        let tree = self.authenticate.then(|| {
            MerkleTree::over(within.records(), |number, record| {
                if stopped.is_ok() {
                    write(number, record);
                    stopped = report_record(progress, Stage::Hashing, number, within);
                }
            })
        });
        stopped?;
        let layout = match &tree {
            Some(tree) => TableLayout::authenticated(tree.authentication(), records),
            None => records.into(),
        };
        let is_raw = matches!(self.selection.value, ValueForm::Raw(_));
        let values =
            self.kept.columns().map(|columns| Values { is_raw, columns: columns.to_vec() });
        let layout = layout.describing(values.filter(Values::fits));
        let plan = SnapshotPlan {
            id: self.id,
            epoch: Epoch(0),
            shape,
            layout: layout.clone(),
            key_column: self.selection.key,
            until_column: self.selection.until,
            value_form: self.selection.value,
            mark: self.has_log.then_some(Mark::before_the_first(Epoch(0))),
        };
        let mut writer = SnapshotWriter::create_over(output, self.existing, plan)?;
        let mut record = Vec::new();
        for number in 0..shape.records() {
            write(number, &mut record);
            if let Some(tree) = &tree {
                tree.append_path(number, &mut record);
            }
            writer.write_record(&record)?;
            report_record(progress, Stage::Writing, number, shape)?;
        }
        // Building takes a while. An update log may have appeared since the caller checked.
        refuse_over_a_history(output)?;
        let (header, file_bytes) = writer.finish()?;
        Ok(BuildReport::of(self.kept, &layout, within, header.identity, file_bytes))
    }
}

fn report_record(
    progress: &mut dyn FnMut(Progress) -> Result<()>,
    stage: Stage,
    number: u64,
    shape: TableShape,
) -> Result<()> {
    if number % REPORT_EVERY == REPORT_EVERY - 1 || number + 1 == shape.records() {
        progress(Progress {
            stage,
            bytes_done: (number + 1) * shape.record_len(),
            bytes_total: Some(shape.bytes()),
        })?;
    }
    Ok(())
}
