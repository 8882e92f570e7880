//! A table with its file and its update log, at the start and while it is served.
//!
//! A table file and its log change in two ways. An update appends an epoch to the log. A compaction
//! replaces both by new files: first a table file that has all epochs in it, then a log that begins
//! later, with the last epochs or none. Open files stay readable, so nothing is lost between two
//! looks: epochs are read to the end of the old log first, and only then from the new files. If
//! there were several compactions in between, some epochs may lie in a log that this process never
//! saw. Then the records of the two table files are compared instead.
//!
//! A new version is offered to the server, and counts when the server has taken it. Until then
//! every look finds it again. If another table lies there that continues the served one, that is
//! offered: see the module `successor`.

use crate::TableFile;
use crate::table_file::FileRecords;
use privet_core::{
    Epoch, Error, PIECE_BYTES, ReadRecords, Reason, Result, TableChanges, TableIdentity,
    TableShape, TableSource,
};
use privet_server::{Next, NextVersion, ServedTable, Signing, UpdateFeed, VersionStep};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::shared_hasher::SharedHasher;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{
    Chain, CurrentRecords, EpochHash, EpochUpdate, PublisherId, TableKeys, UpdateLog, find_log,
};
use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

mod successor;

/// A table that is served, and the files from which it is updated.
pub struct FollowedTable {
    /// Where it lies, and how it is served: by this scheme, whoever chose it.
    table: TableFile,
    files: Files,
    /// Reading from the log has failed, so it must be opened again.
    broken: bool,
    /// The version that the server serves.
    position: Position,
    /// What was offered to the server.
    offered: Option<Offered>,
    /// Where the log began before the last compaction: older epochs are no longer available.
    keep_from: Epoch,
    /// The state of the files before they were last read.
    stamps: Stamps,
    /// Where a test wants a panic.
    #[cfg(test)]
    pub(crate) planted: Option<&'static str>,
}

/// What the server was offered, and where this goes on once the server has taken it.
enum Offered {
    Version(Box<(Option<Files>, Position)>),
    Successor(Box<FollowedTable>),
}

/// A table file with its log, if it has one, opened.
struct Files {
    snapshot: Arc<Snapshot>,
    log: Option<UpdateLog>,
    stamps: Stamps,
}

/// A version of the table, and who must have signed what follows.
#[derive(Clone)]
struct Position {
    identity: TableIdentity,
    layout_digest: [u8; 32],
    keys: Option<TableKeys>,
    previous: Option<EpochHash>,
}

/// The work of [`TableFile::open`].
pub(crate) fn open(table: &TableFile) -> Result<(ServedTable, FollowedTable)> {
    let files = Files::open(&table.path)?;
    files.check_publisher(table.publisher)?;
    begin(table, files)
}

/// The table in `files`, to be served first, and what follows it.
fn begin(table: &TableFile, files: Files) -> Result<(ServedTable, FollowedTable)> {
    let snapshot = &files.snapshot;
    let mut position = Position {
        identity: snapshot.identity(),
        layout_digest: layout_digest(snapshot.layout_bytes()),
        keys: None,
        previous: None,
    };
    let mut served = table.served(Arc::clone(snapshot));
    if let Some(log) = &files.log {
        // Chosen for the table's first shape, whatever was folded into the table file since: so
        // clients keep what they have.
        let first = log.first_table()?;
        served.planned_for = Some(first.shape);
        served.scheme = table.scheme_for(&first);
        served.updates = Some(first_feed(log, &files, &mut position)?);
    }
    let followed = FollowedTable {
        table: TableFile { scheme: Some(served.scheme), ..table.clone() },
        keep_from: Epoch(0),
        stamps: files.stamps,
        files,
        broken: false,
        position,
        offered: None,
        #[cfg(test)]
        planted: None,
    };
    Ok((served, followed))
}

impl FollowedTable {
    /// The name under which the table is served.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Whether the files have changed since before they were last read.
    pub fn has_changed(&self) -> bool {
        #[cfg(test)]
        assert!(self.planted != Some("has_changed"), "planted");
        Stamps::of(&self.table.path) != self.stamps
    }

    /// Opens the files again at the next look, whatever was found in them so far.
    pub(crate) fn distrust(&mut self) {
        self.broken = true;
    }

    /// The table's new version, or its successor, if it has changed since the version that the
    /// server serves. Verifies every epoch, and the records after the last one. Takes time in
    /// proportion to the table, and waits for disks.
    ///
    /// Call [`taken`](Self::taken) when the server has taken it; until then every look finds it
    /// again.
    ///
    /// # Errors
    /// An error does not affect what is served, and the next look tries again.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if a file is damaged;
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if the files do not continue the
    ///   served version: another table, another publisher, an earlier epoch, another history;
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a file is missing or of another
    ///   kind;
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the log is gone or a file
    ///   cannot be read.
    pub fn look(&mut self) -> Result<Option<Next>> {
        self.offered = None;
        self.stamps = Stamps::of(&self.table.path);
        #[cfg(test)]
        assert!(self.planted.take_if(|place| *place == "look").is_none(), "planted");
        let replaced = self.stamps.are_other_files(&self.files.stamps) || self.broken;
        // A new log may have been offered and not taken: then it is still followed.
        let mut chain = self.files.log.as_ref().map(|log| self.position.chain_in(log));
        let mut steps = Vec::new();
        if let Some(log) = self.files.log.as_mut().filter(|_| !self.broken) {
            let mut ahead = chain.clone();
            let read = log.catch_up().and_then(|_| follow(&mut ahead, log));
            match read {
                Ok(followed) => (steps, chain) = (followed, ahead),
                Err(error) if !replaced => {
                    self.broken = true;
                    return Err(error);
                }
                // The new files decide.
                Err(_) => {}
            }
        }
        let opened = match replaced || self.files.log.is_none() {
            true => Some(Files::open(&self.table.path)?),
            false => None,
        };
        let opened = match opened {
            Some(files) if files.snapshot.identity().id != self.position.identity.id => {
                return self.successor(files).map(Some);
            }
            opened => opened,
        };
        if let Some(opened) = &opened {
            opened.check_publisher(self.table.publisher)?;
        }
        let files = opened.as_ref().unwrap_or(&self.files);
        let Some(log) = &files.log else {
            return self.nothing_new(files.snapshot.identity(), opened);
        };
        if !self.position.leads_to(log)? {
            return Err(Error::integrity(format!(
                "{} is signed by another publisher than before, or names another next key: bring \
                back the log that the table had",
                log.path().display()
            )));
        }
        let chain = match chain {
            Some(chain) => chain,
            None => {
                steps.clear();
                self.position.chain_in(log)
            }
        };
        self.check_continues(log, &chain)?;

        let (skipped, mut chain) = self.skipped(files, log, chain)?;
        steps.extend(skipped);
        steps.extend(follow_chain(&mut chain, log)?);
        if chain.identity() != log.current() {
            return Err(Error::integrity(format!(
                "{} has another history than the table that is served: its publisher has signed \
                two, or the files are mixed up",
                log.path().display()
            )));
        }
        if steps.is_empty() {
            return self.nothing_new(log.current(), opened);
        }
        let next = NextVersion { keep_from: self.keep_from, steps, ..files.current(log)? };
        let whole = log.base() <= self.position.identity.epoch;
        // If the new files have everything that is offered, the old ones are not needed.
        let (now, later) = if whole { (opened, None) } else { (None, opened) };
        self.offered = Some(Offered::Version(Box::new((later, Position::at(&chain)))));
        now.into_iter().for_each(|files| self.replace_files(files));
        Ok(Some(next.into()))
    }

    /// Notes that the server serves what it was offered last.
    pub fn taken(&mut self) {
        match self.offered.take() {
            None => {}
            Some(Offered::Successor(next)) => *self = *next,
            Some(Offered::Version(version)) => {
                let (files, position) = *version;
                self.position = position;
                files.into_iter().for_each(|files| self.replace_files(files));
            }
        }
    }

    /// Checks that the files have the served version, as they should.
    fn nothing_new(
        &mut self,
        identity: TableIdentity,
        opened: Option<Files>,
    ) -> Result<Option<Next>> {
        let served = self.position.identity;
        let log_lost = opened.as_ref().is_some_and(|files| files.log.is_none())
            && self.position.keys.is_some();
        // The table file alone may well be at an earlier epoch: it is still the same table.
        if log_lost && identity.id == served.id {
            return Err(Error::unavailable(format!(
                "the update log of {} is gone: bring it back",
                self.table.path.display()
            )));
        }
        if identity != served {
            return Err(Error::integrity(format!(
                "{} has another version of the table than the one that is served, and no update \
                 log leads there: start the server again if that is wanted",
                self.table.path.display()
            )));
        }
        if let Some(files) = opened {
            // Keys that are known stay: `leads_to` has compared them.
            self.position.keys = self.position.keys.or(files.log.as_ref().map(UpdateLog::keys));
            self.replace_files(files);
        }
        Ok(None)
    }

    fn replace_files(&mut self, files: Files) {
        if let Some(log) = &self.files.log {
            self.keep_from = log.base();
        }
        self.files = files;
        self.broken = false;
    }

    fn check_continues(&self, log: &UpdateLog, chain: &Chain) -> Result<()> {
        let (served, found) = (chain.identity(), log.current());
        if found.epoch < served.epoch {
            return Err(Error::integrity(format!(
                "{} ends with epoch {}, and epoch {} is served (a rollback): bring back the newer \
                files",
                log.path().display(),
                found.epoch.0,
                served.epoch.0
            )));
        }
        Ok(())
    }

    /// The step over epochs that are in the table file and in no log that this process saw, if
    /// there are any, and where the rest goes on.
    fn skipped(
        &self,
        files: &Files,
        log: &UpdateLog,
        chain: Chain,
    ) -> Result<(Option<VersionStep>, Chain)> {
        if log.base() <= chain.identity().epoch {
            return Ok((None, chain));
        }
        let (known, before) = match &self.files.log {
            Some(log) => (log.current(), log.records(&self.files.snapshot)?),
            None => {
                let snapshot = &self.files.snapshot;
                (snapshot.identity(), CurrentRecords::from(Arc::clone(snapshot)))
            }
        };
        if known != chain.identity() {
            return Err(Error::unavailable(format!(
                "{} begins after epoch {}, and the changes of the table until then cannot be found \
                from the files: start the server again",
                log.path().display(),
                log.base().0
            )));
        }
        let identity = files.snapshot.identity();
        let (changes, records) = difference((known.shape, &before), (identity, &files.snapshot))?;
        // The difference depends on the earlier contents of each record, and hints are made from
        // it.
        let parts = DigestParts { layout: chain.layout_digest(), records };
        if parts.combine(known.shape) != known.digest {
            return Err(Error::integrity(format!(
                "the records of {} at epoch {} are damaged, so their changes cannot be found: \
                 start the server again",
                self.files.snapshot.path().display(),
                known.epoch.0
            )));
        }
        let keys = log.keys_at(identity.epoch);
        let chain = Chain::new(identity, files.snapshot.layout().clone(), keys, None)?;
        Ok((Some(VersionStep { identity, changes, epoch: None }), chain))
    }
}

impl Files {
    fn open(path: &Path) -> Result<Self> {
        let stamps = Stamps::of(path);
        let snapshot = Arc::new(Snapshot::open_guarded(path)?);
        let log = UpdateLog::of(&snapshot)?;
        Ok(Self { snapshot, log, stamps })
    }

    /// Checks that the log is that of the publisher whom the caller named, or that this one has
    /// signed who it is now.
    fn check_publisher(&self, named: Option<PublisherId>) -> Result<()> {
        if let (Some(log), Some(publisher)) = (&self.log, named)
            && log.publisher() != publisher
            && !log.lineage().is_signed_by(publisher)
        {
            return Err(Error::integrity(format!(
                "{} is signed by {}, and not by {publisher}, who was named as the table's \
                publisher: \
                 bring back the log that the table had, or say who publishes it now",
                log.path().display(),
                log.publisher()
            ))
            .because(Reason::PublisherDiffers));
        }
        Ok(())
    }

    /// The table after the last epoch, all of it verified, without its steps.
    fn current(&self, log: &UpdateLog) -> Result<NextVersion> {
        let identity = log.current();
        let layout = log.layout().encode();
        let records = log.records(&self.snapshot)?;
        let mut hasher = SharedHasher::on_all_cores();
        TableSource::new(identity, &records)?.pieces(PIECE_BYTES, |_, piece| {
            hasher.update(piece);
            Ok(())
        })?;
        let records_digest = hasher.digest();
        self.snapshot.check_unchanged()?;
        let parts = DigestParts { layout: layout_digest(&layout), records: records_digest };
        if parts.combine(identity.shape) != identity.digest {
            return Err(Error::corrupted(format!(
                "the records of {} are damaged: their digest at epoch {} is not what its \
                publisher signed; copy it again from where it is whole",
                self.snapshot.path().display(),
                identity.epoch.0
            )));
        }
        Ok(NextVersion {
            signing: signing(log),
            layout: layout.into(),
            records: Box::new(FileRecords(records)),
            records_digest,
            steps: Vec::new(),
            keep_from: Epoch(0),
        })
    }
}

impl Position {
    fn at(chain: &Chain) -> Self {
        Self {
            identity: chain.identity(),
            layout_digest: chain.layout_digest(),
            keys: Some(chain.keys()),
            previous: chain.previous(),
        }
    }

    /// Where the table's history goes on in `log`.
    fn chain_in(&self, log: &UpdateLog) -> Chain {
        let keys = self.keys.unwrap_or_else(|| log.keys_at(self.identity.epoch));
        Chain::knowing_digest(self.identity, self.layout_digest, keys, self.previous)
    }

    /// Whether the keys of `log` are those of this position, or signed rotations lead to them. The
    /// next key counts as well: a log's header names it unsigned.
    fn leads_to(&self, log: &UpdateLog) -> Result<bool> {
        if self.keys.is_none_or(|keys| keys == log.keys()) {
            return Ok(true);
        }
        let walk = log.lineage().walk(&self.chain_in(log), &[])?;
        Ok(walk.is_some_and(|walk| walk.end.keys() == log.keys()))
    }
}

/// The log up to the table file's version, and the later epochs as the next version.
fn first_feed(log: &UpdateLog, files: &Files, position: &mut Position) -> Result<UpdateFeed> {
    let base = log.base();
    let in_snapshot = position.identity.epoch.0.saturating_sub(base.0);
    let epochs = log.stored_from(base)?.take(in_snapshot as usize).collect();
    let mut chain = position.chain_in(log);
    let steps = follow_chain(&mut chain, log)?;
    let next = match steps.is_empty() {
        true => None,
        false => Some(NextVersion { steps, ..files.current(log)? }),
    };
    *position = Position::at(&chain);
    Ok(UpdateFeed { signing: signing(log), first_epoch: base, epochs, next })
}

/// What clients are told of who signs.
fn signing(log: &UpdateLog) -> Signing {
    let TableKeys { publisher, next } = log.keys();
    Signing {
        publisher: publisher.0,
        next_key: next.map(|next| next.0),
        lineage: log.lineage().encode().into(),
    }
}

/// As [`follow_chain`], if the publisher is known already.
fn follow(chain: &mut Option<Chain>, log: &UpdateLog) -> Result<Vec<VersionStep>> {
    chain.as_mut().map_or(Ok(Vec::new()), |chain| follow_chain(chain, log))
}

/// The epochs of the log after the chain's position, each verified, as steps. None if the log
/// begins later.
fn follow_chain(chain: &mut Chain, log: &UpdateLog) -> Result<Vec<VersionStep>> {
    let epoch = chain.identity().epoch;
    if epoch < log.base() {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    for (bytes, stored) in log.epochs_from(epoch)?.zip(log.stored_from(epoch)?) {
        let EpochUpdate { after: identity, changes, .. } = chain.follow(&bytes?)?;
        steps.push(VersionStep { identity, changes, epoch: Some(stored) });
    }
    Ok(steps)
}

/// The changes from the records `old`, of a table of shape `before`, to those of the table file
/// `snapshot`; and the BLAKE3 digest of the old ones. Holds a piece of each in memory.
fn difference(
    (before, old): (TableShape, &CurrentRecords),
    (identity, snapshot): (TableIdentity, &Arc<Snapshot>),
) -> Result<(TableChanges, [u8; 32])> {
    let after = identity.shape;
    // Refuses a table that cannot become the other before it is read.
    TableChanges::new(before, after, [])?;
    let len = after.record_len() as usize;
    let mut hasher = SharedHasher::on_all_cores();
    let mut changed = Vec::new();
    let new = CurrentRecords::from(Arc::clone(snapshot));
    TableSource::new(identity, &new)?.pieces(
        (PIECE_BYTES / len).max(1) * len,
        |offset, piece| {
            let known = before.bytes().saturating_sub(offset).min(piece.len() as u64) as usize;
            // New records were zeros before.
            let mut were = vec![0; piece.len()];
            old.read(offset, &mut were[..known])?;
            hasher.update(&were[..known]);
            let records = were.chunks_exact(len).zip(piece.chunks_exact(len));
            let records = (offset / len as u64..).zip(records).filter(|(_, (old, new))| old != new);
            changed.extend(records.map(|(index, (old, new))| (index, old.to_vec(), new.to_vec())));
            Ok(())
        },
    )?;
    Ok((TableChanges::new(before, after, changed)?, hasher.digest()))
}

/// The metadata of a table file and its log.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamps {
    snapshot: Option<Stamp>,
    log: Option<Stamp>,
}

/// The metadata of one file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: FileId,
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamps {
    fn of(path: &Path) -> Self {
        let stamp = |path: &Path| std::fs::metadata(path).ok().map(|found| Stamp::of(&found));
        let log = find_log(path).ok().flatten();
        Self { snapshot: stamp(path), log: log.as_deref().and_then(stamp) }
    }

    /// Whether either name now leads to another file, whatever its contents.
    fn are_other_files(&self, opened: &Self) -> bool {
        let id = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.file);
        id(self.snapshot) != id(opened.snapshot) || id(self.log) != id(opened.log)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { file: file_id(metadata), len: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Distinguishes a file from another that took its place.
#[cfg(unix)]
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
type FileId = Option<SystemTime>;

#[cfg(not(unix))]
fn file_id(metadata: &Metadata) -> FileId {
    metadata.created().ok()
}

#[cfg(test)]
pub(crate) mod tests;
