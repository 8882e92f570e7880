//! A table by index that changes and grows, in all its versions, with the epochs in between.

use super::super::living::records_of;
use super::super::peer::{Peer, SignedEpoch};
use super::super::toy::{self, Kind};
use privet_core::TableIdentity;
use privet_schemes::SchemeId;
use privet_table::build::{BuildOptions, build_table};
use privet_table::edit::RowEditor;
use privet_table::import::Source;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{LogWriter, PublisherId, PublisherKey, UpdateLog, log_path};
use std::fmt::Write;
use std::sync::LazyLock;

/// How many versions there are.
pub(super) const VERSIONS: usize = 12;

struct Version {
    identity: TableIdentity,
    records: Vec<u8>,
}

struct History {
    layout: Vec<u8>,
    versions: Vec<Version>,
    epochs: Vec<SignedEpoch>,
    publisher: PublisherId,
}

/// The same for all runs, which differ in which version is served when.
static HISTORY: LazyLock<History> = LazyLock::new(History::new);

/// Peers that serve one version each.
static BY_SIMPLE_PIR: LazyLock<Vec<Peer>> = LazyLock::new(|| HISTORY.served(SchemeId::SimplePir));
static BY_DUMMY_SUBSETS: LazyLock<Vec<Peer>> =
    LazyLock::new(|| HISTORY.served(SchemeId::DummySubsets));

/// Every version by toys.
pub(super) fn toys(servers: usize, total: u64, kind: Kind) -> Vec<Peer> {
    BY_SIMPLE_PIR.iter().map(|peer| toy::serve(peer.clone(), servers, total, kind)).collect()
}

/// Every version by dummy subsets.
pub(super) fn dummy_subsets() -> Vec<Peer> {
    BY_DUMMY_SUBSETS.clone()
}

/// A peer that serves one of these versions, and the earlier ones from `oldest` on.
pub(super) fn peer(versions: &[Peer], version: usize, oldest: usize) -> Peer {
    let earlier = versions[oldest..version].iter().rev().cloned().collect();
    versions[version].clone().with_history(earlier, &HISTORY.epochs, HISTORY.publisher, 0)
}

/// The value of row `row` after so many changes of it, of 20 bytes.
fn value(row: u64, changes: usize) -> String {
    format!("{changes:08}{row:012}")
}

impl History {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (input, path) = (folder.path().join("in.csv"), folder.path().join("table.privet"));
        let mut csv = "value\n".to_owned();
        for row in 0..super::world::RECORDS {
            writeln!(csv, "{}", value(row, 0)).unwrap();
        }
        std::fs::write(&input, csv).unwrap();
        let options =
            BuildOptions { raw_value: Some("value".to_owned()), ..BuildOptions::default() };
        build_table(&options, Source::path(&input), &path, &mut |_| Ok(())).unwrap();
        let key = PublisherKey::generate().unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        UpdateLog::create(&log_path(&path), &snapshot, key.id()).unwrap();
        let mut writer = LogWriter::open(&log_path(&path), &snapshot).unwrap();
        let first =
            Version { identity: snapshot.identity(), records: snapshot.view().bytes().to_vec() };
        let mut history = Self {
            layout: snapshot.layout_bytes().to_vec(),
            versions: vec![first],
            epochs: Vec::new(),
            publisher: key.id(),
        };
        for version in 1..VERSIONS {
            history.go_on(&mut writer, &key, version);
        }
        history
    }

    /// Changes some rows; every third time, adds one.
    fn go_on(&mut self, writer: &mut LogWriter<'_>, key: &PublisherKey, version: usize) {
        let layout = writer.log().layout().clone();
        let edits = {
            let table = writer.table();
            let mut editor = RowEditor::new(&layout, table.shape(), |number| {
                Ok(table.record(number).unwrap().to_vec())
            })
            .unwrap();
            let rows = table.shape().records();
            for row in (0..rows).filter(|row| row % 3 != version as u64 % 3) {
                editor.set(row.to_string().as_bytes(), value(row, version).as_bytes()).unwrap();
            }
            if version % 3 == 2 {
                editor.add(&b""[..], value(rows, version).as_bytes()).unwrap();
            }
            editor.finish().unwrap().0.expect("something changes")
        };
        let before = writer.log().current().epoch;
        writer.append(key, &edits).unwrap();
        let identity = writer.log().current();
        let mut epochs = writer.log().epochs_from(before).unwrap();
        let epoch = epochs.next().expect("one epoch").unwrap();
        assert!(epochs.next().is_none() && edits.layout.is_none());
        drop(epochs);
        self.epochs.push((identity.epoch.0, epoch, Vec::new()));
        self.versions.push(Version { identity, records: records_of(&writer.table()) });
    }

    fn served(&self, scheme: SchemeId) -> Vec<Peer> {
        let of = |Version { identity, records }: &Version| {
            Peer::of(scheme, *identity, self.layout.clone(), records)
        };
        self.versions.iter().map(of).collect()
    }
}
