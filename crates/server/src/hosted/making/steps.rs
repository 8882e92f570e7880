//! From one version of a table to another: steps in a row, their changes, and the epochs for
//! clients.

use super::*;

pub(super) fn check_steps(before: TableIdentity, steps: &[VersionStep]) -> Result<()> {
    let mut before = before;
    for VersionStep { identity, epoch, .. } in steps {
        let next = before.epoch.0.checked_add(1) == Some(identity.epoch.0);
        let follows = if epoch.is_some() { next } else { identity.epoch > before.epoch };
        if identity.id != before.id || !follows {
            return Err(Error::api_misuse(format!(
                "version {} of table {} does not follow version {} of table {}",
                identity.epoch.0, identity.id, before.epoch.0, before.id
            )));
        }
        before = *identity;
    }
    Ok(())
}

/// The combined changes of the steps.
pub(super) fn changes(before: TableIdentity, steps: &[VersionStep]) -> Result<TableChanges> {
    let mut changes = TableChanges::none(before.shape);
    for VersionStep { identity, changes: next, .. } in steps {
        if next.shape_after() != identity.shape {
            return Err(Error::api_misuse(format!(
                "the changes do not lead to version {} of the table: it has another shape",
                identity.epoch.0
            )));
        }
        changes
            .then(next.clone())
            .map_err(|error| Error::api_misuse(error.message()).caused_by(error))?;
    }
    Ok(changes)
}

pub(super) fn apply(changes: &TableChanges, records: &mut Vec<u8>) {
    let shape = changes.shape_after();
    records.resize(shape.bytes() as usize, 0);
    let len = shape.record_len() as usize;
    for (index, _, after) in changes.records() {
        records[index as usize * len..][..len].copy_from_slice(after);
    }
}

/// The epochs that lead to the first served version of a table.
pub(super) fn first_feed(
    table: &ServedTable,
    signing: Signing,
    first_epoch: Epoch,
    epochs: Vec<Arc<dyn crate::EpochSource>>,
) -> Result<Feed> {
    let last = first_epoch.0.checked_add(epochs.len() as u64);
    if last != Some(table.identity.epoch.0) {
        return Err(Error::api_misuse(format!(
            "{} epochs that follow version {} do not lead to version {}",
            epochs.len(),
            first_epoch.0,
            table.identity.epoch.0
        )));
    }
    let mut feed = Feed::new(signing, first_epoch);
    for epoch in epochs {
        feed.push(FedEpoch { epoch, commitments: Arc::new(Vec::new().into()) });
    }
    Ok(feed)
}

/// Drops the epochs that this server did not follow itself, if its clients need data that only a
/// server that follows can compute.
pub(super) fn fitting(mut feed: Feed, scheme: SchemeId, identity: &TableIdentity) -> Feed {
    if needs_commitments(scheme) {
        feed.forget_before(identity.epoch);
    }
    feed
}

/// The epochs that lead to the version after the steps.
pub(super) fn next_feed(
    feed: Option<&Feed>,
    before: Epoch,
    signing: &Signing,
    steps: Vec<VersionStep>,
    commitments: Option<Vec<CheckedBytes>>,
) -> Feed {
    let mut feed = feed.cloned().unwrap_or_else(|| Feed::new(signing.clone(), before));
    let mut commitments = commitments.unwrap_or_default().into_iter();
    for VersionStep { identity, epoch, .. } in steps {
        let commitments = commitments.next().unwrap_or_else(|| Vec::new().into());
        let commitments = Arc::new(commitments);
        match epoch {
            Some(epoch) => feed.push(FedEpoch { epoch, commitments }),
            None => feed = Feed::new(signing.clone(), identity.epoch),
        }
    }
    feed.signed_by(signing.clone())
}
