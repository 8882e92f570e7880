//! Writes a snapshot file, either whole or not at all.

use super::Snapshot;
use super::header::{CHECKSUM_LEN, SnapshotHeader, ValueForm, damaged, records_offset};
use super::mark::{self, Mark};
use crate::TableLayout;
use crate::digest::{DigestParts, layout_digest};
use crate::new_file::{Existing, NewFile, cannot};
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity, TableShape};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What must be known before the first record is written.
#[derive(Clone, Debug)]
pub struct SnapshotPlan {
    /// The table's id, the same in all its versions.
    pub id: TableId,
    /// The version.
    pub epoch: Epoch,
    /// Number and width of the records, with their paths.
    pub shape: TableShape,
    /// How to read the records.
    pub layout: TableLayout,
    /// The column that keys came from, if any; of ranges, their first points.
    pub key_column: Option<String>,
    /// The column that the last points of ranges came from, if that is another.
    pub until_column: Option<String>,
    /// What the values are.
    pub value_form: ValueForm,
    /// How far the table's log of updates reaches, if it has one.
    pub mark: Option<Mark>,
}

impl Snapshot {
    /// Writes a snapshot file `output` of another version of this table, or of this one with a
    /// mark: the table `identity`, whose records `record` gives. Nothing is replaced unless they
    /// have its digest. Who may not read this file may not read that one.
    ///
    /// # Errors
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they have another.
    /// - As [`SnapshotWriter::create`] and [`SnapshotWriter::finish`].
    pub(crate) fn write_version<'r>(
        &self,
        output: &Path,
        identity: TableIdentity,
        layout: &TableLayout,
        mark: Mark,
        record: impl Fn(u64) -> Option<&'r [u8]>,
    ) -> Result<()> {
        let old = self.header();
        let plan = SnapshotPlan {
            id: identity.id,
            epoch: identity.epoch,
            shape: identity.shape,
            layout: layout.clone(),
            key_column: old.key_column.clone(),
            until_column: old.until_column.clone(),
            value_form: old.value_form.clone(),
            mark: Some(mark),
        };
        let file = NewFile::create_like(output, Existing::Replace, self.path())?;
        let mut writer = SnapshotWriter::begin(file, plan)?;
        for record in (0..identity.shape.records()).map_while(record) {
            writer.write_record(record)?;
        }
        let written = writer.finish_if(|written| match written == identity {
            true => Ok(()),
            false => Err(damaged("the digest of its records does not match")),
        });
        written.map(drop).map_err(|error| error.within(self.path().display()))
    }
}

/// Takes records one by one and makes a snapshot file of them. If it is dropped unfinished, it
/// leaves nothing.
///
/// Needs a few hundred kilobytes of memory besides the layout, however many records there are.
pub struct SnapshotWriter {
    output: PathBuf,
    file: BufWriter<NewFile>,
    header: SnapshotHeader,
    mark: Option<Mark>,
    layout_len: u64,
    records_hasher: blake3::Hasher,
    written: u64,
}

impl SnapshotWriter {
    /// Begins the snapshot file `output`, under a temporary name beside it.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `plan` contradicts itself, or
    ///   `output` cannot be a file.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be written.
    pub fn create(output: &Path, plan: SnapshotPlan) -> Result<Self> {
        Self::create_over(output, Existing::Replace, plan)
    }

    /// The same; `existing` says what happens to a file that is there already.
    ///
    /// # Errors
    /// As [`create`](Self::create), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a
    /// file is there that must be kept.
    pub fn create_over(output: &Path, existing: Existing, plan: SnapshotPlan) -> Result<Self> {
        Self::begin(NewFile::create(output, existing)?, plan)
    }

    fn begin(file: NewFile, plan: SnapshotPlan) -> Result<Self> {
        let output = file.output().to_owned();
        let named = |error: Error| error.within(output.display());
        plan.layout
            .check_shape(plan.shape)
            .map_err(|error| named(Error::api_misuse(error.message())))?;
        let layout = plan.layout.encode();
        let header = SnapshotHeader {
            identity: TableIdentity {
                id: plan.id,
                epoch: plan.epoch,
                // Known only at the end, when the header is written once more.
                digest: TableDigest([0; 32]),
                shape: plan.shape,
            },
            parts: DigestParts { layout: layout_digest(&layout), records: [0; 32] },
            key_column: plan.key_column,
            until_column: plan.until_column,
            value_form: plan.value_form,
            created_by: concat!("privet ", env!("CARGO_PKG_VERSION")).to_owned(),
            has_log: plan.mark.is_some(),
        };
        header.check_encodable().map_err(named)?;

        let mut file = BufWriter::with_capacity(1 << 18, file);
        let layout_len = layout.len() as u64;
        let header_len = header.encoded_len() as u64;
        let before = header_len + layout_len;
        let padding = records_offset(before, header.has_log) - before;
        let before_records = [vec![0; header_len as usize], layout, vec![0; padding as usize]];
        for section in &before_records {
            file.write_all(section).map_err(|error| cannot("write", &output, error))?;
        }
        let records_hasher = blake3::Hasher::new();
        let mark = plan.mark;
        Ok(Self { output, file, header, mark, layout_len, records_hasher, written: 0 })
    }

    /// Appends the next record.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it has the wrong width, or all
    ///   records are written already.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be written: the disk
    ///   is full, for example.
    pub fn write_record(&mut self, record: &[u8]) -> Result<()> {
        let shape = self.header.identity.shape;
        if record.len() as u64 != shape.record_len() || self.written == shape.records() {
            return Err(Error::api_misuse(format!(
                "record number {} of {} bytes does not belong to a table of {} records of {} bytes",
                self.written,
                record.len(),
                shape.records(),
                shape.record_len()
            )));
        }
        self.file.write_all(record).map_err(|error| cannot("write", &self.output, error))?;
        self.records_hasher.update(record);
        self.written += 1;
        Ok(())
    }

    /// Completes the file, syncs it to disk and gives it its name, replacing any file of that name.
    /// Returns its header and its length in bytes.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records are missing.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be written or
    ///   renamed.
    pub fn finish(self) -> Result<(SnapshotHeader, u64)> {
        self.finish_if(|_| Ok(()))
    }

    /// The same, if `check` accepts what the table has become. Otherwise nothing is replaced.
    pub(crate) fn finish_if(
        self,
        check: impl FnOnce(TableIdentity) -> Result<()>,
    ) -> Result<(SnapshotHeader, u64)> {
        let Self { output, mut file, mut header, mark, layout_len, records_hasher, written } = self;
        let shape = header.identity.shape;
        if written != shape.records() {
            return Err(Error::api_misuse(format!(
                "only {written} of {} records were written",
                shape.records()
            )));
        }
        header.parts.records = *records_hasher.finalize().as_bytes();
        header.identity.digest = header.parts.combine(shape);
        check(header.identity)?;

        let failed = |error| cannot("write", &output, error);
        let encoded = header.encode(layout_len);
        let before_records = records_offset(encoded.len() as u64 + layout_len, header.has_log);
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        file.write_all(&encoded).map_err(failed)?;
        if let (Some(mark), Some(checksum)) = (mark, encoded.last_chunk::<CHECKSUM_LEN>()) {
            for offset in mark::offsets(before_records) {
                file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                file.write_all(&mark.encode(checksum)).map_err(failed)?;
            }
        }
        file.into_inner().map_err(|error| failed(error.into_error()))?.publish()?;
        Ok((header, before_records + shape.bytes()))
    }
}
