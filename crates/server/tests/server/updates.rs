//! Tables that change while they are served.

mod damage;
mod epochs;
mod failures;
mod restarts;
mod switching;

use crate::common::*;
use privet_core::{Epoch, TableChanges, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_server::{
    CheckedBytes, EpochSource, NextVersion, RecordSource, RunningServer, ServedTable, ServerConfig,
    TableUpdates, UpdateFeed, VersionStep,
};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const PUBLISHER: [u8; 32] = [9; 32];

/// A table that its owner changes, with its whole history.
#[derive(Clone)]
struct Changing {
    name: &'static str,
    id: u8,
    scheme: SchemeId,
    /// The version served first, and those after, each with its records.
    versions: Vec<(TableIdentity, Vec<u8>)>,
}

impl Changing {
    fn new(scheme: SchemeId, count: u64, record_len: u64) -> Self {
        Self::named("t", 1, scheme, count, record_len)
    }

    fn named(name: &'static str, id: u8, scheme: SchemeId, count: u64, record_len: u64) -> Self {
        let identity = identity(count, record_len, id);
        let first = (identity, records(identity.shape.bytes() as usize, id));
        Self { name, id, scheme, versions: vec![first] }
    }

    /// The first version, from a server that has no log.
    fn served(&self) -> ServedTable {
        let shape = self.versions[0].0.shape;
        served_by(self.scheme, table(self.name, shape.records(), shape.record_len(), self.id))
    }

    /// The last version, from a server that knows no earlier ones.
    fn served_as_it_is(&self) -> ServedTable {
        let (identity, records) = self.last().clone();
        ServedTable { identity, records: Box::new(records), ..self.served() }
    }

    /// The first version, with the log of all that followed.
    fn served_with_log(&self) -> ServedTable {
        let next = (self.versions.len() > 1).then(|| self.steps(0));
        let (signing, first_epoch) = (PUBLISHER.into(), self.versions[0].0.epoch);
        let updates = UpdateFeed { signing, first_epoch, epochs: Vec::new(), next };
        ServedTable { updates: Some(updates), ..self.served() }
    }

    fn last(&self) -> &(TableIdentity, Vec<u8>) {
        self.versions.last().unwrap()
    }

    /// What a record was in that version.
    fn record(&self, epoch: Epoch, index: u64) -> &[u8] {
        let (identity, records) =
            self.versions.iter().find(|(identity, _)| identity.epoch == epoch).unwrap();
        let len = identity.shape.record_len() as usize;
        &records[index as usize * len..][..len]
    }

    /// Makes another version: `edits` records are changed, and `added` come after the last.
    fn change(&mut self, edits: u64, added: u64) {
        let (before, mut records) = self.last().clone();
        let len = before.shape.record_len();
        let shape = TableShape::new(before.shape.records() + added, len).unwrap();
        records.resize(shape.bytes() as usize, 0);
        let edited = (0..edits).map(|number| (number * 7919 + before.epoch.0) % shape.records());
        for index in edited.chain(before.shape.records()..shape.records()) {
            let changed = crate::common::records(len as usize, (before.epoch.0 * 37 + index) as u8);
            records[(index * len) as usize..][..len as usize].copy_from_slice(&changed);
        }
        let epoch = Epoch(before.epoch.0 + 1);
        let identity = TableIdentity { epoch, digest: digest(shape, &records), shape, ..before };
        self.versions.push((identity, records));
    }

    /// The steps from the version numbered `from` to the last.
    fn steps(&self, from: usize) -> NextVersion {
        let records = self.last().1.clone();
        let steps = self.versions[from..].windows(2).map(|pair| {
            let [(before, old), (after, new)] = pair else { unreachable!() };
            VersionStep {
                identity: *after,
                changes: TableChanges::between((before.shape, old), (after.shape, new)).unwrap(),
                epoch: Some(Arc::new(CheckedBytes::from(epoch_bytes(after.epoch)))),
            }
        });
        NextVersion {
            signing: PUBLISHER.into(),
            layout: Arc::from(LAYOUT),
            records_digest: *blake3::hash(&records).as_bytes(),
            records: Box::new(records),
            steps: steps.collect(),
            keep_from: Epoch(0),
        }
    }

    /// Changes the table; returns the step from the version before to the new one.
    fn next(&mut self, edits: u64, added: u64) -> NextVersion {
        self.change(edits, added);
        self.steps(self.versions.len() - 2)
    }
}

/// Stands for a signed epoch. Servers pass epochs on unchanged.
fn epoch_bytes(epoch: Epoch) -> Vec<u8> {
    records(100 + 13 * (epoch.0 as usize % 10), epoch.0 as u8)
}

/// No version is retired by itself while a test runs.
fn keeping() -> ServerConfig {
    let max_version_memory = Some(u64::MAX);
    ServerConfig { grace: Duration::from_secs(3600), max_version_memory, ..config() }
}

async fn versions_served(server: &RunningServer) -> Vec<u64> {
    let described = describe(&mut stub(server).await).await;
    described.tables[0].versions().map(|version| version.identity.epoch.0).collect()
}
