//! A table that changes: its file, its signed log, and peers that serve one version or another.

use super::world::*;
use crate::session::*;
use privet_core::{Epoch, TableChanges, TableIdentity, TableView};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, ServerOptions};
use privet_table::build::{BuildOptions, build_table};
use privet_table::edit::RowEditor;
use privet_table::import::Source;
use privet_table::key_map::KeyMapKind;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{
    Chain, CurrentTable, LogWriter, NextKeyDigest, PublisherKey, Signers, TableKeys, UpdateLog,
    log_path,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A table by key at its publisher.
pub(super) struct Living {
    _folder: TempDir,
    path: PathBuf,
    key: Arc<PublisherKey>,
    /// The digest of the next key.
    next: Option<NextKeyDigest>,
    lineage: Vec<u8>,
    /// What the table holds.
    pub(super) model: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Every version so far, each served alone.
    versions: Vec<Peer>,
    epochs: Vec<SignedEpoch>,
}

impl Living {
    /// `keys` keys served by `scheme`.
    pub(super) fn new(scheme: SchemeId, kind: KeyMapKind, keys: usize) -> Self {
        let key = PublisherKey::generate().unwrap();
        Self::under(Arc::new(key), None, scheme, kind, keys, "value")
    }

    /// The same under these keys, with values that begin with `value`.
    pub(super) fn under(
        key: Arc<PublisherKey>,
        next: Option<NextKeyDigest>,
        scheme: SchemeId,
        kind: KeyMapKind,
        keys: usize,
        value: &str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (input, path) = (folder.path().join("in.csv"), folder.path().join("table.privet"));
        let model: BTreeMap<Vec<u8>, Vec<u8>> = (0..keys)
            .map(|k| (format!("key-{k}").into_bytes(), format!("{value} {}", k % 10).into_bytes()))
            .collect();
        let mut csv = "key,value\n".to_owned();
        for (key, value) in &model {
            csv +=
                &format!("{},{}\n", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        }
        std::fs::write(&input, csv).unwrap();
        let options = BuildOptions {
            key: Some("key".to_owned()),
            key_map: kind,
            raw_value: Some("value".to_owned()),
            ..BuildOptions::default()
        };
        build_table(&options, Source::path(&input), &path, &mut |_| Ok(())).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        let all = TableKeys { publisher: key.id(), next };
        UpdateLog::create(&log_path(&path), &snapshot, all).unwrap();
        let layout = snapshot.layout_bytes().to_vec();
        let first = Peer::of(scheme, snapshot.identity(), layout, snapshot.view().bytes());
        let versions = vec![first];
        let (lineage, epochs) = (Vec::new(), Vec::new());
        Self { _folder: folder, path, key, next, lineage, model, versions, epochs }
    }

    /// Has these keys sign that `successor`, which has no updates yet, continues the table.
    pub(super) fn succeed(&self, signers: Signers<'_>, successor: &mut Self) {
        let snapshot = Snapshot::open(&self.path).unwrap();
        let mut writer = LogWriter::open(&log_path(&self.path), &snapshot).unwrap();
        let new = Snapshot::open(&successor.path).unwrap();
        let keys = TableKeys { publisher: successor.key.id(), next: successor.next };
        let (_, lineage) = writer.succeed(signers, &new, keys).unwrap();
        std::fs::remove_file(log_path(&successor.path)).unwrap();
        UpdateLog::create_after(&log_path(&successor.path), &new, keys, &lineage).unwrap();
        successor.lineage = lineage.encode();
    }

    /// Has `next`, the next key, sign the table's epochs from now on.
    pub(super) fn rotate(&mut self, next: Arc<PublisherKey>) -> u64 {
        self.rotate_to(next, None)
    }

    /// The same, with a next key after that.
    pub(super) fn rotate_to(
        &mut self,
        next: Arc<PublisherKey>,
        then: Option<NextKeyDigest>,
    ) -> u64 {
        let snapshot = Snapshot::open(&self.path).unwrap();
        let mut writer = LogWriter::open(&log_path(&self.path), &snapshot).unwrap();
        let before = writer.log().current().epoch;
        let by_next = self.next.map(|_| &*next);
        let signers = Signers { publisher: Some(&self.key), next: by_next };
        writer.rotate(signers, TableKeys { publisher: next.id(), next: then }).unwrap();
        self.lineage = writer.log().lineage().encode();
        let version = self.note(&writer, before);
        (self.key, self.next) = (next, then);
        version
    }

    /// What a thief of the publisher's key has: the table, and a history of his own that knows of
    /// no next key.
    pub(super) fn stolen(&self) -> Self {
        let stolen = self.forked();
        std::fs::remove_file(log_path(&stolen.path)).unwrap();
        let snapshot = Snapshot::open(&stolen.path).unwrap();
        UpdateLog::create(&log_path(&stolen.path), &snapshot, self.key.id()).unwrap();
        Self { next: None, ..stolen }
    }

    /// The same table with a separate history from here on, which the same publisher signs.
    pub(super) fn forked(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.privet");
        for (from, to) in [(&self.path, &path), (&log_path(&self.path), &log_path(&path))] {
            std::fs::copy(from, to).unwrap();
        }
        Self {
            _folder: folder,
            path,
            key: Arc::clone(&self.key),
            next: self.next,
            lineage: self.lineage.clone(),
            model: self.model.clone(),
            versions: self.versions.clone(),
            epochs: self.epochs.clone(),
        }
    }

    pub(super) fn publisher(&self) -> privet_table::update_log::PublisherId {
        self.key.id()
    }

    fn append(&mut self, edits: &[(Vec<u8>, Option<Vec<u8>>)]) -> u64 {
        let snapshot = Snapshot::open(&self.path).unwrap();
        let mut writer = LogWriter::open(&log_path(&self.path), &snapshot).unwrap();
        let before = writer.log().current();
        let layout = writer.log().layout().clone();
        let edits = {
            let table = writer.table();
            let mut editor = RowEditor::new(&layout, table.shape(), |number| {
                Ok(table.record(number).unwrap().to_vec())
            })
            .unwrap();
            for (key, value) in edits {
                match value {
                    Some(value) => editor.set(key, value).unwrap(),
                    None => editor.delete(key).unwrap(),
                };
            }
            editor.finish().unwrap().0.expect("something changes")
        };
        writer.append(&self.key, &edits).unwrap();
        self.note(&writer, before.epoch)
    }

    /// Makes the version that `writer` has made of the version `before`.
    fn note(&mut self, writer: &LogWriter<'_>, before: Epoch) -> u64 {
        let log = writer.log();
        let (identity, records) = (log.current(), records_of(&writer.table()));
        let epochs = log.epochs_from(before).unwrap().map(|epoch| epoch.unwrap());
        let epochs: Vec<_> = epochs.collect();
        let [epoch] = &epochs[..] else { panic!("one epoch") };
        let encoded = log.layout().encode();
        let last = self.versions.last().unwrap();
        let (next, commitments) =
            next_version(last, epoch, self.publisher(), identity, encoded, &records);
        self.versions.push(next);
        self.epochs.push((identity.epoch.0, epoch.clone(), commitments));
        identity.epoch.0
    }

    /// Sets (`Some`) or deletes keys, as the next epoch. Returns its version.
    pub(super) fn update(&mut self, edits: &[(Vec<u8>, Option<Vec<u8>>)]) -> u64 {
        for (key, value) in edits {
            match value {
                Some(value) => self.model.insert(key.clone(), value.clone()),
                None => self.model.remove(key),
            };
        }
        self.append(edits)
    }

    /// A peer that serves `version`, and `earlier` ones beside it, with the epochs after `first`.
    pub(super) fn peer(&self, version: u64, earlier: &[u64], first: u64) -> Peer {
        let at = |version: u64| self.versions[version as usize].clone();
        let earlier = earlier.iter().map(|version| at(*version)).collect();
        at(version)
            .with_history(earlier, &self.epochs, self.publisher(), first)
            .with_lineage(self.next, self.lineage.clone())
    }

    /// Checks that `world` finds what the newest version of the table holds: some of it, and a key
    /// that is not there.
    pub(super) fn check(&self, world: &mut World, dice: &mut Dice, lookups: usize) {
        let keys: Vec<_> = self.model.keys().cloned().collect();
        for _ in 0..lookups {
            let key = &keys[dice.roll(keys.len() as u64) as usize];
            let found = world.get(Target::key(key)).unwrap().map(|value| value.to_vec());
            assert_eq!(
                found.as_ref(),
                self.model.get(key),
                "{} of {}: {:?}",
                String::from_utf8_lossy(key),
                world.peers[0].scheme().plan.scheme,
                world.trace()
            );
        }
        assert_eq!(world.get(Target::key(b"never there")).unwrap(), None);
    }
}

/// The next version of a peer, and the commitments for its epoch.
fn next_version(
    last: &Peer,
    epoch: &[u8],
    publisher: privet_table::update_log::PublisherId,
    identity: TableIdentity,
    layout: Vec<u8>,
    records: &[u8],
) -> (Peer, Vec<u8>) {
    let before = last.identity();
    let digest = *blake3::hash(&last.layout).as_bytes();
    let mut chain = Chain::knowing_digest(before, digest, publisher, None);
    let mut changes = TableChanges::none(before.shape);
    changes.then(chain.follow(epoch).unwrap().changes).unwrap();
    let server = last.server.as_ref().unwrap();
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    let tuning = registry::Tuning::default();
    let plan = registry::plan_next(server.plan(), &identity, &tuning).unwrap();
    let table = TableView::new(identity, records).unwrap();
    match server.successor(&plan, table.into(), &changes, options).unwrap() {
        Some(successor) => {
            let server = Arc::from(successor.server);
            let peer = Peer::with_server(server, identity, layout, records, Vec::new());
            (peer, successor.commitments)
        }
        None => (Peer::of(plan.scheme, identity, layout, records), Vec::new()),
    }
}

/// All records of a table in a row.
pub(super) fn records_of(table: &CurrentTable<'_>) -> Vec<u8> {
    (0..table.shape().records()).flat_map(|number| table.record(number).unwrap()).copied().collect()
}
