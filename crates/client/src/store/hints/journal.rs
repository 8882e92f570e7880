//! The journal of one generation: every change since it was prepared, in order, and the queries that wait for answers.
//!
//! It is a [redb](https://docs.rs/redb) database of three tables:
//!
//! | table | key | value |
//! |---|---|---|
//! | `log` | 0, 1, 2, … | a change ‖ checksum 16 |
//! | `unfinished` | number of a reservation | its journal record ‖ checksum 16 |
//! | `summary` | `"summary"` | what both must add up to: [`Summary`] |
//!
//! The database makes each commit all or nothing, also over a power failure. It is not asked to notice damage: its checksums are looked at when it is opened and
//! not when it is read, and what it takes for an interrupted commit it takes back. So every row has a checksum of ours, keyed with the lineage and the
//! generation; the summary counts and digests the rows; and the [anchor](super::anchor) digests the summary.
//!
//! A settled reservation's record is removed: its queries need not be sent again. The changes stay until the generation is replaced, and then the whole file is erased.
//!
//! When the hints follow edits of their table, the change is a row like any other, and the summary says for which version the generation was prepared, and at which the hints stand.

use super::anchor::Lineage;
use super::backend::{Backend, caught};
use super::folder::Medium;
use super::sealed::Header;
use super::version::Version;
use crate::store::files::half;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use privet_schemes::contract::ReservationId;
use redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

const VERSION: u32 = 3;
/// The longest reason that is kept of why hints have ended, in bytes.
const MAX_REASON: usize = 2048;
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const UNFINISHED: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("unfinished");
const SUMMARY: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("summary");
const SUMMARY_KEY: &str = "summary";
const CHECKSUM_LEN: usize = 16;
/// The whole journal usually fits.
const CACHE_LEN: usize = 16 << 20;

type Checksum = [u8; CHECKSUM_LEN];
type Secret = Zeroizing<Vec<u8>>;

/// What the rows add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) lineage: Lineage,
    pub(crate) generation: u64,
    /// Size and digest of the file that holds the generation as it was prepared.
    pub(crate) generation_len: u64,
    pub(crate) generation_digest: [u8; 32],
    /// Which version of the table that was prepared for.
    pub(crate) prepared_for: Version,
    /// Where the hints stand since they followed the table's edits.
    pub(crate) version: Version,
    /// Transactions of ours so far.
    pub(crate) commits: u64,
    /// Reservations so far, which is also the number of the next one.
    pub(crate) reserved: u64,
    /// Rows of the log.
    pub(crate) log_len: u64,
    /// Each row's checksum hashed onto the chain of those before.
    log_chain: [u8; 32],
    /// Rows of unfinished reservations.
    pub(crate) unfinished: u64,
    /// Their checksums, exclusive-ored.
    unfinished_sum: Checksum,
    /// Why the hints have ended, if they have: the last row of the log is the change that did it.
    pub(crate) ended: Option<String>,
}

impl Summary {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.lineage);
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.generation_len.to_le_bytes());
        bytes.extend(self.generation_digest);
        self.prepared_for.put(&mut bytes);
        self.version.put(&mut bytes);
        for count in [self.commits, self.reserved, self.log_len, self.unfinished] {
            bytes.extend(count.to_le_bytes());
        }
        bytes.extend(self.log_chain);
        bytes.extend(self.unfinished_sum);
        bytes.push(u8::from(self.ended.is_some()));
        bytes.extend(self.ended.iter().flat_map(|reason| reason.bytes()));
        let checksum = half(blake3::hash(&bytes));
        bytes.extend(checksum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corrupted("its summary is damaged");
        let at = bytes.len().checked_sub(CHECKSUM_LEN).ok_or_else(damaged)?;
        let (fields, checksum) = bytes.split_at(at);
        if half(blake3::hash(fields)) != checksum {
            return Err(damaged());
        }
        let mut reader = Reader::new("the summary", fields);
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::corrupted(format!(
                "it has format version {version}, this program knows version {VERSION}"
            )));
        }
        let mut summary = Self {
            lineage: reader.array()?,
            generation: reader.u64()?,
            generation_len: reader.u64()?,
            generation_digest: reader.array()?,
            prepared_for: Version::read(&mut reader)?,
            version: Version::read(&mut reader)?,
            commits: reader.u64()?,
            reserved: reader.u64()?,
            log_len: reader.u64()?,
            unfinished: reader.u64()?,
            log_chain: reader.array()?,
            unfinished_sum: reader.array()?,
            ended: None,
        };
        if reader.u8()? != 0 {
            let reason = reader.bytes(reader.remaining())?;
            let reason = std::str::from_utf8(reason).map_err(|_| damaged())?;
            summary.ended = Some(reason.to_owned());
        }
        reader.finish()?;
        Ok(summary)
    }

    /// For the anchor.
    pub(crate) fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.encode()).as_bytes()
    }

    fn row_key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 rows of a hint journal");
        hasher.update(&self.lineage);
        hasher.update(&self.generation.to_le_bytes());
        *hasher.finalize().as_bytes()
    }

    fn log_row(&mut self, checksum: &Checksum) {
        self.log_len += 1;
        self.log_chain = chained(&self.log_chain, checksum);
    }

    fn toggle_unfinished(&mut self, checksum: &[u8]) {
        self.unfinished_sum.iter_mut().zip(checksum).for_each(|(sum, byte)| *sum ^= byte);
    }
}

fn chained(chain: &[u8; 32], checksum: &Checksum) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(chain);
    hasher.update(checksum);
    *hasher.finalize().as_bytes()
}

#[derive(Clone, Copy)]
enum Row {
    Log = 1,
    Unfinished = 2,
}

fn checksum(key: &[u8; 32], row: Row, number: u64, bytes: &[u8]) -> Checksum {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&[row as u8]);
    hasher.update(&number.to_le_bytes());
    hasher.update(bytes);
    half(hasher.finalize())
}

/// A row's value, with its checksum behind it.
fn sealed(key: &[u8; 32], row: Row, number: u64, bytes: &[u8]) -> (Secret, Checksum) {
    let checksum = checksum(key, row, number, bytes);
    let mut value = Zeroizing::new(Vec::with_capacity(bytes.len() + CHECKSUM_LEN));
    value.extend(bytes);
    value.extend(checksum);
    (value, checksum)
}

fn unsealed(
    key: &[u8; 32],
    row: Row,
    number: u64,
    value: &[u8],
) -> Result<(Secret, Checksum), redb::Error> {
    let damaged = || damaged("a row is damaged");
    let (bytes, found) = value.split_last_chunk().ok_or_else(damaged)?;
    if checksum(key, row, number, bytes) != *found {
        return Err(damaged());
    }
    Ok((Zeroizing::new(bytes.to_vec()), *found))
}

fn damaged(what: &str) -> redb::Error {
    redb::Error::Corrupted(what.to_owned())
}

/// Everything in a journal.
pub(crate) struct Contents {
    pub(crate) changes: Vec<Secret>,
    pub(crate) unfinished: Vec<(ReservationId, Secret)>,
}

/// What a commit brings, apart from the changes that settle reservations.
pub(crate) enum News<'a> {
    Nothing,
    /// The next reservation's change and record.
    Reserved {
        id: ReservationId,
        change: &'a [u8],
        record: &'a [u8],
    },
    /// There will be no reservation any more: the change that says so, unless it settles one, and why.
    Ended {
        change: Option<&'a [u8]>,
        why: &'a str,
    },
    /// The change by which the hints follow the table's edits, and to which version.
    Followed {
        change: &'a [u8],
        to: Version,
    },
}

/// An open journal.
pub(crate) struct Journal {
    /// `None` only while it is dropped.
    database: Option<Database>,
    backend: Backend,
    path: PathBuf,
    key: [u8; 32],
    summary: Summary,
}

impl Journal {
    /// Makes a journal without rows in the empty file `medium`, for the generation of which `generation` is the header. Durable on return, except for the file's name.
    pub(crate) fn create(
        medium: Arc<dyn Medium>,
        path: &Path,
        generation: &Header,
    ) -> Result<Self> {
        let Header { lineage, number, len, digest, version, .. } = *generation;
        let summary = Summary {
            lineage,
            generation: number,
            generation_len: len,
            generation_digest: digest,
            prepared_for: version,
            version,
            commits: 0,
            reserved: 0,
            log_len: 0,
            log_chain: [0; 32],
            unfinished: 0,
            unfinished_sum: [0; CHECKSUM_LEN],
            ended: None,
        };
        let backend = Backend::new(medium);
        let database = caught(&backend, path, || {
            let database =
                Builder::new().set_cache_size(CACHE_LEN).create_with_backend(backend.clone())?;
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.open_table(LOG)?;
            transaction.open_table(UNFINISHED)?;
            transaction.open_table(SUMMARY)?.insert(SUMMARY_KEY, summary.encode().as_slice())?;
            transaction.commit()?;
            Ok(database)
        })?;
        let key = summary.row_key();
        Ok(Self { database: Some(database), backend, path: path.to_owned(), key, summary })
    }

    /// Opens a journal, after a crash as well, and checks the database's own structure throughout. What it then shows is durable.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged.
    pub(crate) fn open(medium: Arc<dyn Medium>, path: &Path) -> Result<Self> {
        let backend = Backend::new(medium);
        let (database, summary) = caught(&backend, path, || {
            if backend.len()? == 0 {
                return Err(damaged("it is empty"));
            }
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_LEN).set_check_integrity_on_open(true);
            let database = builder.create_with_backend(backend.clone())?;
            // A process that was killed may have left it to the system to write this out some time.
            backend.sync_data()?;
            let transaction = database.begin_read()?;
            let table = transaction.open_table(SUMMARY)?;
            let value = table.get(SUMMARY_KEY)?.ok_or_else(|| damaged("it has no summary"))?;
            let summary =
                Summary::decode(value.value()).map_err(|error| damaged(error.message()))?;
            drop((value, table, transaction));
            Ok((database, summary))
        })?;
        let key = summary.row_key();
        Ok(Self { database: Some(database), backend, path: path.to_owned(), key, summary })
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Runs `f` on the database. Any failure closes the file to further writes.
    fn with<T>(&self, f: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T> {
        caught(&self.backend, &self.path, || {
            f(self.database.as_ref().ok_or(redb::Error::DatabaseClosed)?)
        })
    }

    /// Whether a reservation is unfinished.
    pub(crate) fn is_unfinished(&self, id: ReservationId) -> Result<bool> {
        self.with(|database| {
            let transaction = database.begin_read()?;
            Ok(transaction.open_table(UNFINISHED)?.get(id.0)?.is_some())
        })
    }

    /// Appends the changes that settle reservations, in this order, and then what is new, all or nothing. Durable on return.
    pub(crate) fn commit(
        &mut self,
        settled: &[(ReservationId, Secret)],
        news: &News<'_>,
    ) -> Result<()> {
        let mut summary = self.summary.clone();
        summary.commits += 1;
        self.with(|database| {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            {
                let mut log = transaction.open_table(LOG)?;
                let mut unfinished = transaction.open_table(UNFINISHED)?;
                let mut append = |summary: &mut Summary, change: &[u8]| {
                    let (value, checksum) = sealed(&self.key, Row::Log, summary.log_len, change);
                    log.insert(summary.log_len, value.as_slice())?;
                    summary.log_row(&checksum);
                    Ok::<_, redb::Error>(())
                };
                for (id, change) in settled {
                    append(&mut summary, change)?;
                    let record = unfinished.remove(id.0)?;
                    let record = record.ok_or_else(|| damaged("an unfinished row is missing"))?;
                    let (_, checksum) = unsealed(&self.key, Row::Unfinished, id.0, record.value())?;
                    summary.unfinished = summary
                        .unfinished
                        .checked_sub(1)
                        .ok_or_else(|| damaged("a row too many"))?;
                    summary.toggle_unfinished(&checksum);
                }
                match *news {
                    News::Nothing => {}
                    News::Reserved { id, change, record } => {
                        append(&mut summary, change)?;
                        let (value, checksum) = sealed(&self.key, Row::Unfinished, id.0, record);
                        unfinished.insert(id.0, value.as_slice())?;
                        summary.reserved += 1;
                        summary.unfinished += 1;
                        summary.toggle_unfinished(&checksum);
                    }
                    News::Ended { change, why } => {
                        if let Some(change) = change {
                            append(&mut summary, change)?;
                        }
                        let len = why.floor_char_boundary(MAX_REASON);
                        summary.ended = Some(why[..len].to_owned());
                    }
                    News::Followed { change, to } => {
                        append(&mut summary, change)?;
                        summary.version = to;
                    }
                }
            }
            transaction.open_table(SUMMARY)?.insert(SUMMARY_KEY, summary.encode().as_slice())?;
            transaction.commit()?;
            Ok(())
        })?;
        self.summary = summary;
        Ok(())
    }

    /// Reads and checks every row.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless the rows are exactly what the summary says.
    pub(crate) fn load(&self) -> Result<Contents> {
        self.with(|database| {
            let transaction = database.begin_read()?;
            let mut contents = Contents { changes: Vec::new(), unfinished: Vec::new() };
            let mut chain = [0; 32];
            for row in transaction.open_table(LOG)?.iter()? {
                let (number, value) = row?;
                if number.value() != contents.changes.len() as u64 {
                    return Err(damaged("a row of its log is missing"));
                }
                let (change, checksum) =
                    unsealed(&self.key, Row::Log, number.value(), value.value())?;
                chain = chained(&chain, &checksum);
                contents.changes.push(change);
            }
            let mut found = self.summary.clone();
            found.unfinished_sum = [0; CHECKSUM_LEN];
            for row in transaction.open_table(UNFINISHED)?.iter()? {
                let (id, value) = row?;
                let (record, checksum) =
                    unsealed(&self.key, Row::Unfinished, id.value(), value.value())?;
                found.toggle_unfinished(&checksum);
                contents.unfinished.push((ReservationId(id.value()), record));
            }
            (found.log_len, found.log_chain) = (contents.changes.len() as u64, chain);
            found.unfinished = contents.unfinished.len() as u64;
            if found != self.summary {
                return Err(damaged("its rows are not those that its summary counts"));
            }
            Ok(contents)
        })
    }

    /// Lets nothing more reach the file.
    pub(crate) fn seal_off(&self) {
        self.backend.close_to_writes();
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let database = self.database.take();
        // What closing fails to write is recovered when it is opened.
        let _ = caught(&self.backend, &self.path, || {
            drop(database);
            Ok(())
        });
    }
}
