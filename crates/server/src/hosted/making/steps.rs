//! From one version of a table to another: steps in a row, what can be made of the earlier version
//! by their changes, and the epochs for clients.

use super::*;

/// The result of the steps.
pub(super) struct Followed {
    pub(super) plan: SchemePlan,
    pub(super) server: Option<Box<dyn ErasedServer>>,
    /// One for each step, if the scheme has commitments.
    pub(super) commitments: Option<Vec<CheckedBytes>>,
}

impl Maker {
    /// The plan after all steps, and a server made from the earlier one, if there is one and the
    /// scheme can. `table` is the table after the last step.
    pub(super) fn follow_steps(
        &self,
        base: &VersionBefore<'_>,
        steps: &[VersionStep],
        table: TableSource<'_>,
    ) -> Result<Followed> {
        let plans = plans(base, steps)?;
        let plan = plans.last().unwrap_or(base.plan).clone();
        let mut followed = Followed { plan, server: None, commitments: None };
        let Some(version) = base.version else { return Ok(followed) };
        let server = &*version.server;
        if !needs_commitments(base.plan.scheme) {
            let changes = changes(base.identity, steps)?;
            let successor = server.successor(&followed.plan, table, &changes, self.options())?;
            if successor.is_some() {
                version.condition.or_end(version.check_held(self.config.threads))?;
            }
            followed.server = successor.map(|successor| successor.server);
            return Ok(followed);
        }
        let mut records = Vec::from(version.records.copy(0, usize::MAX)?);
        let (mut latest, mut commitments) = (None::<Box<dyn ErasedServer>>, Vec::new());
        let mut before = base.identity;
        for (step, plan) in steps.iter().zip(&plans) {
            let changes = changes(before, std::slice::from_ref(step))?;
            apply(&changes, &mut records);
            let view = TableView::new(step.identity, &records)?;
            let server = latest.as_deref().unwrap_or(server);
            let successor = server.successor(plan, view.into(), &changes, self.options())?;
            let Some(successor) = successor else {
                return Ok(followed);
            };
            commitments.push(CheckedBytes::from(successor.commitments));
            latest = Some(successor.server);
            before = step.identity;
        }
        if !table.has(&records)? {
            let damage = format!(
                "its records at epoch {} have changed since they were first read",
                version.identity.epoch.0
            );
            return version.condition.or_end(Err(Error::corrupted(damage)));
        }
        version.condition.or_end(version.check_held(self.config.threads))?;
        (followed.server, followed.commitments) = (latest, Some(commitments));
        Ok(followed)
    }

    /// The hint after all steps, made from the earlier one, or from one on the way that is in the
    /// cache; `None` if that is not possible.
    pub(super) fn patched_hint(
        &self,
        base: &VersionBefore<'_>,
        steps: &[VersionStep],
        plan: &SchemePlan,
        identity: &TableIdentity,
        cache: Option<&HintCache>,
    ) -> Result<Option<Bytes>> {
        let OfflinePhase::Download { len } = plan.offline else { return Ok(None) };
        let on_the_way = cache.and_then(|cache| cached_on_the_way(cache, base, steps));
        let (before, hint, steps): ((_, _), &dyn HintSource, _) = match (&on_the_way, base.hint) {
            (Some(OnTheWay { taken, plan, identity, hint }), _) => {
                ((plan, identity), hint, &steps[*taken..])
            }
            (None, Some(hint)) => ((base.plan, &base.identity), hint, steps),
            (None, None) => return Ok(None),
        };
        let after = (plan, identity);
        if !registry::patches_downloads(before, after) {
            return Ok(None);
        }
        let changes = changes(*before.1, steps)?;
        let mut patched = Vec::with_capacity(len as usize);
        let mut sink = |piece: &[u8]| {
            patched.extend_from_slice(piece);
            Ok(())
        };
        let kernels = self.config.kernels;
        let outcome = registry::patch_downloaded(before, after, &changes, hint, &mut sink, kernels);
        // Check after reading: what is whole now was whole then.
        if let Some(version) = base.version {
            version.condition.or_end(version.check_hint(self.config.threads))?;
        }
        outcome?;
        Ok(Some(patched.into()))
    }
}

/// The plan after each step.
fn plans(base: &VersionBefore<'_>, steps: &[VersionStep]) -> Result<Vec<SchemePlan>> {
    let mut plans = Vec::with_capacity(steps.len());
    for step in steps {
        let before = plans.last().unwrap_or(base.plan);
        plans.push(registry::plan_next(before, &step.identity, base.tuning)?);
    }
    Ok(plans)
}

/// A version between two others whose hint is in the cache.
struct OnTheWay {
    /// How many steps lead to it.
    taken: usize,
    plan: SchemePlan,
    identity: TableIdentity,
    hint: Part,
}

/// The latest version after `base`, and before the last step, whose hint is in the cache.
fn cached_on_the_way(
    cache: &HintCache,
    base: &VersionBefore<'_>,
    steps: &[VersionStep],
) -> Option<OnTheWay> {
    let versions = plans(base, steps).ok()?.into_iter().zip(steps).enumerate().rev().skip(1);
    let mut cached = versions.filter_map(|(number, (plan, step))| {
        let hint = Part::Cached(load_cached(cache, &plan, &step.identity)?);
        Some(OnTheWay { taken: number + 1, plan, identity: step.identity, hint })
    });
    cached.next()
}

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
fn changes(before: TableIdentity, steps: &[VersionStep]) -> Result<TableChanges> {
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

fn apply(changes: &TableChanges, records: &mut Vec<u8>) {
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
