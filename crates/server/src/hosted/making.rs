//! Making versions: the first of a table, when the server starts, and each next one, while the
//! earlier one is still served.
//!
//! The next version is made from the earlier one where that is less work than a start from the
//! table: its server by [`successor`](ErasedServer::successor), its hint by
//! [`patch_downloaded`](registry::patch_downloaded), its parameters by
//! [`plan_next`](registry::plan_next), which lets clients keep their hints. A server may follow its
//! table's epochs one by one, several at a time, or start after all of them: the parameters are the
//! same, because they follow epoch by epoch in each case. (The epochs begin at the snapshot. After
//! the snapshot is compacted, a server that starts from it may cut a grown table differently.)
//!
//! Hints of later versions are held in memory, until a table rests or the server stops: then the
//! newest goes [into the cache](Maker::keep), so that the next start finds it. A start also makes
//! what it needs from the hint of any earlier version that the cache has.

mod steps;

use super::feed::{FedEpoch, Feed};
use super::setup::{Finished, ReadyHint, finish, finish_stored, load_cached};
use super::verification::{self, Hashed, HeldDigests};
use super::{Condition, HintOrigin, Part, ReadyTable, Version};
use crate::ServerConfig;
use crate::config::Progress;
use crate::hint_cache::{CacheKey, HintCache};
use crate::table::{RecordSource, ServedTable, SetupSource};
use crate::updates::{CheckedBytes, NextVersion, Signing, UpdateFeed, VersionStep};
use bytes::Bytes;
use privet_core::{
    Epoch, Error, Reason, Result, TableChanges, TableIdentity, TableSource, TableView,
};
use privet_schemes::SchemeId;
use privet_schemes::offline::{HintSource, OfflinePhase};
use privet_schemes::registry::{
    self, ErasedServer, ErasedSetup, SchemePlan, ServerOptions, Tuning,
};
use privet_table::TableLayout;
use privet_table::digest::DigestParts;
use privet_table::key_map::Room;
use privet_wire::limits::{MAX_LAYOUT_LEN, MAX_TOLD_LAYOUT_LEN};
use privet_wire::{PartDescription, SchemeDescription, TableDescription};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use steps::{Followed, check_steps, first_feed, fitting, next_feed};

/// A version that is ready, with its description.
pub(crate) struct Made {
    pub(crate) version: Version,
    pub(crate) ready: ReadyTable,
}

/// Makes versions.
pub(crate) struct Maker {
    config: ServerConfig,
    cache: Option<HintCache>,
}

impl Maker {
    pub(crate) fn new(config: ServerConfig) -> Self {
        if !config.verify_records {
            tracing::warn!(
                "record verification is off: clients get wrong records from a damaged table, and \
                 neither they nor this server will notice"
            );
        }
        let cache = config.cache_dir.as_deref().and_then(|dir| match HintCache::open(dir) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(
                    ?error,
                    "hints will be kept in memory and computed again at the next start"
                );
                None
            }
        });
        Self { config, cache }
    }

    /// The cache of hints. Only hints of verified records go into it.
    fn cache(&self) -> Option<&HintCache> {
        self.cache.as_ref().filter(|_| self.config.verify_records)
    }

    /// Removes what no table needs any more from the cache, once these versions are ready.
    pub(crate) fn tidy<'v>(&self, versions: impl Iterator<Item = &'v Version>) {
        let Some(cache) = self.cache() else { return };
        for version in versions {
            let key = CacheKey::new(&version.plan, &version.identity);
            if cache.path(&key).exists() {
                cache.remove_other_versions(&key);
            }
        }
        cache.remove_unused();
    }

    /// Puts the hint of a version that was made from an earlier one into the cache, in place of
    /// that one's. Takes as long as it takes to write it. Whatever hinders it is logged.
    pub(crate) fn keep(&self, version: &Version) {
        let Some(cache) = self.cache() else { return };
        match self.keep_in(cache, version) {
            Ok(false) => {}
            Ok(true) => tracing::info!(
                table = version.name,
                epoch = version.identity.epoch.0,
                "the hint is kept for the next start"
            ),
            Err(error) => tracing::warn!(
                table = version.name,
                ?error,
                "the hint is not kept: the next start computes it"
            ),
        }
    }

    /// Returns whether there was something to keep.
    fn keep_in(&self, cache: &HintCache, version: &Version) -> Result<bool> {
        let key = CacheKey::new(&version.plan, &version.identity);
        let downloaded = matches!(version.plan.offline, OfflinePhase::Download { .. });
        let hint = version.hint.as_ref().filter(|hint| downloaded && hint.is_in_memory());
        let Some(hint) = hint.filter(|_| !cache.path(&key).exists()) else { return Ok(false) };
        let Some(kept) = version.server.kept()? else { return Ok(false) };
        let hint = hint.copy(0, usize::MAX)?;
        // Check after reading: what is whole now was whole then.
        version.condition.or_end(version.check_hint(self.config.threads))?;
        version.condition.or_end(version.check_held(self.config.threads))?;
        cache.store(&key, &hint, &kept.as_bytes())?;
        cache.remove_other_versions(&key);
        Ok(true)
    }

    fn options(&self) -> ServerOptions {
        ServerOptions { kernels: self.config.kernels, threads: self.config.threads }
    }

    /// The same, once the server runs: then no progress is shown.
    pub(crate) fn while_serving(mut self) -> Self {
        self.config.progress = None;
        self
    }

    /// Makes the first served version. This is the long part of a start: reads the table, and
    /// computes the hint if the cache does not have it.
    ///
    /// # Errors
    /// If the table cannot be served under its scheme.
    pub(crate) fn first(&self, mut table: ServedTable, condition: Arc<Condition>) -> Result<Made> {
        let started = Instant::now();
        // Refuse what can be refused quickly before the long work.
        privet_wire::describe::check_name(&table.name)
            .map_err(|error| Error::api_misuse(error.message().to_owned()))?;
        check_layout(&table.layout)?;
        let (feed, next) = match table.updates.take() {
            Some(UpdateFeed { signing, first_epoch, epochs, next }) => {
                (Some(first_feed(&table, signing, first_epoch, epochs)?), next)
            }
            None => (None, None),
        };
        match next {
            None => self.of_table(table, feed, condition, started),
            // Some server must know the earlier versions.
            Some(next) if needs_commitments(table.scheme) || table.setup.is_some() => {
                let base = self.of_table(table, feed, condition, started)?;
                self.next(&base.version, next)
            }
            Some(next) => self.followed(table, feed, next, condition, started),
        }
    }

    /// Makes the first version of the table that succeeds `before`, which is served meanwhile.
    ///
    /// # Errors
    /// As [`first`](Self::first); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is no
    /// other table, or answers come from points in a file.
    pub(crate) fn succeed(&self, before: &Version, table: ServedTable) -> Result<Made> {
        if table.identity.id == before.identity.id {
            return Err(Error::api_misuse("a table does not succeed itself"));
        }
        if before.origin.is_a_setup_file() {
            return Err(points_needed(table.scheme));
        }
        self.first(table, Arc::clone(&before.condition))
    }

    fn of_table(
        &self,
        table: ServedTable,
        feed: Option<Feed>,
        condition: Arc<Condition>,
        started: Instant,
    ) -> Result<Made> {
        let planned = table.plan();
        let ServedTable { name, identity, layout, records, scheme, tuning, setup, .. } = table;
        let source = TableSource::new(identity, &*records)?;
        let setup_file = setup.as_ref().and_then(|setup| setup.file()).map(Path::to_owned);
        let setup_digest = setup.as_ref().map(|setup| setup.digest());
        // Clients' downloads have an announced digest, and only data with that digest is announced.
        let must = setup.is_none() && planned.as_ref().is_ok_and(receives_table);
        let options = self.options();
        let copy = || -> Result<Start> {
            Ok(match setup {
                None => Start::Setup(registry::setup_as(planned?, source, &tuning, options)?),
                Some(setup) => {
                    let plan = setup.plan(scheme, &identity)?;
                    Start::Stored(setup, plan)
                }
            })
        };
        let (start, records_digest) = match self.config.verify_records || must {
            true => {
                let threads = self.config.threads;
                let (start, digest) =
                    verification::beside(source, &layout, &*records, threads, copy)?;
                (start, Some(digest))
            }
            false => (copy()?, None),
        };
        let plan = match &start {
            Start::Setup(setup) => setup.plan().clone(),
            Start::Stored(_, plan) => plan.clone(),
        };

        let report = |share: f64| self.report(&name, share);
        let finished = match start {
            Start::Setup(setup) => finish(&name, setup, &identity, self.cache(), None, &report)?,
            Start::Stored(setup, plan) => {
                finish_stored(&*setup, plan, &identity, options, &report)?
            }
        };
        let what = VersionParts {
            identity,
            layout,
            records,
            records_digest,
            tuning,
            condition,
            held: self.held(setup_digest),
            setup_file,
            feed: feed.map(|feed| fitting(feed, scheme, &identity)),
        };
        let (version, ready) = what.with(finished, plan, started)?;
        Ok(Made { version, ready })
    }

    /// The digests of the memory that answers come from. `setup` is the digest of the precomputed
    /// data, if it is that.
    fn held(&self, setup: Option<[u8; 32]>) -> HeldDigests {
        match setup {
            _ if self.config.scrub_rate == 0 => HeldDigests::Unchecked,
            Some(digest) => HeldDigests::Known(digest),
            None if self.config.verify_records => HeldDigests::hashed(self.config.threads),
            None => HeldDigests::Unchecked,
        }
    }

    /// At a start, when no version before `next` is served.
    fn followed(
        &self,
        table: ServedTable,
        feed: Option<Feed>,
        next: NextVersion,
        condition: Arc<Condition>,
        started: Instant,
    ) -> Result<Made> {
        let plan = table.plan()?;
        let ServedTable { name, identity, tuning, .. } = table;
        let cached = self.cache().and_then(|cache| load_cached(cache, &plan, &identity));
        let hint = cached.map(Part::Cached);
        let base = VersionBefore {
            name: &name,
            identity,
            plan: &plan,
            tuning: &tuning,
            version: None,
            hint: hint.as_ref().map(|hint| hint as &dyn HintSource),
            origin: HintOrigin::None,
            condition,
        };
        self.follow(&base, feed.as_ref(), next, self.cache.as_ref(), started)
    }

    /// Makes the version that follows `before`, which is served meanwhile.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `next` does not follow, or cannot be
    /// served under the scheme; the scheme's own errors.
    pub(crate) fn next(&self, before: &Version, next: NextVersion) -> Result<Made> {
        let base = VersionBefore {
            name: &before.name,
            identity: before.identity,
            plan: &before.plan,
            tuning: &before.tuning,
            version: Some(before),
            hint: before.hint.as_deref().map(|hint| hint as &dyn HintSource),
            origin: before.origin,
            condition: Arc::clone(&before.condition),
        };
        self.follow(&base, before.feed.as_deref(), next, None, Instant::now())
    }

    fn follow(
        &self,
        base: &VersionBefore<'_>,
        feed: Option<&Feed>,
        next: NextVersion,
        cache: Option<&HintCache>,
        started: Instant,
    ) -> Result<Made> {
        let NextVersion { signing, layout, records, records_digest, steps, keep_from } = next;
        check_layout(&layout)?;
        let Some(identity) = steps.last().map(|step| step.identity) else {
            return Err(Error::api_misuse(
                "nothing leads to this version: it needs one step at least",
            ));
        };
        base.check_signing(feed, &signing)?;
        check_steps(base.identity, &steps)?;
        check_digest(&identity, &layout, records_digest)?;
        let hashed = Hashed::new(&*records, records_digest, self.config.threads);
        let source = TableSource::new(identity, &hashed)?;
        let Followed { plan, server, commitments } = self.follow_steps(base, &steps, source)?;

        let finished = match server {
            Some(server) => Finished::of_successor(server, base.origin)?,
            None if base.origin.is_a_setup_file() => {
                return Err(points_needed(plan.scheme));
            }
            None => {
                let setup = registry::setup_as(plan.clone(), source, base.tuning, self.options())?;
                let report = |share: f64| self.report(base.name, share);
                let cache = cache.filter(|_| self.config.verify_records);
                let patch = || self.patched_hint(base, &steps, &plan, &identity, cache);
                finish(base.name, setup, &identity, cache, Some(&patch), &report)?
            }
        };
        // Copies of the records had their digest. Clients may fetch them from their file as well.
        records.check_unchanged()?;
        // Damage may have been found in the earlier version: then no version made from it is
        // served.
        base.version.map_or(Ok(()), |version| version.condition.check())?;
        let told = commitments.is_some() || !needs_commitments(plan.scheme);
        let mut feed = next_feed(feed, base.identity.epoch, &signing, steps, commitments);
        feed.forget_before(if told { keep_from } else { identity.epoch });
        let what = VersionParts {
            identity,
            layout,
            records,
            records_digest: Some(records_digest),
            tuning: base.tuning.clone(),
            condition: Arc::clone(&base.condition),
            held: self.held(None),
            setup_file: None,
            feed: Some(feed),
        };
        let (version, ready) = what.with(finished, plan, started)?;
        if base.version.is_some() {
            version.held_digests();
        }
        Ok(Made { version, ready })
    }

    fn report(&self, table: &str, share: f64) {
        if let Some(progress) = &self.config.progress {
            progress(Progress { table, share });
        }
    }
}

/// The earlier version, or what is known of it if it is not served.
struct VersionBefore<'a> {
    name: &'a str,
    identity: TableIdentity,
    plan: &'a SchemePlan,
    tuning: &'a Tuning,
    version: Option<&'a Version>,
    hint: Option<&'a dyn HintSource>,
    origin: HintOrigin,
    condition: Arc<Condition>,
}

impl VersionBefore<'_> {
    /// Whoever made the version has verified it. If keys have changed, that is in the lineage too.
    fn check_signing(&self, feed: Option<&Feed>, signing: &Signing) -> Result<()> {
        let goes_on = |before: &Signing| {
            before.publisher == signing.publisher || before.lineage != signing.lineage
        };
        match feed {
            Some(feed) if !goes_on(feed.signing()) => Err(Error::integrity(
                "the table's update log is now signed by another publisher: clients would refuse it; bring back the log that it had",
            )),
            _ => Ok(()),
        }
    }
}

/// What a version has beside its scheme's server and hint.
struct VersionParts {
    identity: TableIdentity,
    layout: Arc<[u8]>,
    records: Box<dyn RecordSource>,
    /// Known if clients receive the table.
    records_digest: Option<[u8; 32]>,
    tuning: Tuning,
    condition: Arc<Condition>,
    held: HeldDigests,
    setup_file: Option<PathBuf>,
    feed: Option<Feed>,
}

impl VersionParts {
    /// The version, and its description.
    fn with(
        self,
        finished: Finished,
        plan: SchemePlan,
        started: Instant,
    ) -> Result<(Version, ReadyTable)> {
        let Self { identity, layout, records, records_digest, tuning, condition, .. } = self;
        let name = condition.table().to_owned();
        let Finished { server, hint, origin } = finished;
        let computed = hint.as_ref().map(|hint| PartDescription::new(hint.part.len(), hint.digest));
        let table = records_digest
            .filter(|_| receives_table(&plan))
            .map(|digest| PartDescription::new(plan.offline.len(), digest));
        let scheme = SchemeDescription::new(plan.clone(), &identity, computed.or(table))?;
        let parameter_digest = scheme.parameter_digest;
        let layout_description =
            PartDescription::new(layout.len() as u64, *blake3::hash(&layout).as_bytes());
        let mut description =
            TableDescription::new(&name, identity, layout_description, vec![scheme])?;
        description.layout_bytes = (layout.len() <= MAX_TOLD_LAYOUT_LEN).then(|| layout.to_vec());

        let ready = ReadyTable {
            room: room(&layout, &identity, &*records),
            description: description.clone(),
            hint_origin: origin,
            seconds: started.elapsed().as_secs_f64(),
            extra_bytes: server.resident_bytes().saturating_sub(identity.shape.bytes())
                + hint.as_ref().map_or(0, |hint| hint.part.memory()),
            setup_bytes: plan.work(&identity).computed_bytes(),
            huge_page_bytes: server.huge_page_bytes(),
        };
        tracing::info!(
            table = name,
            scheme = %plan.scheme,
            records = identity.shape.records(),
            record_len = identity.shape.record_len(),
            epoch = identity.epoch.0,
            servers = plan.servers,
            hint = origin.name(),
            extra_bytes = ready.extra_bytes,
            seconds = ready.seconds,
            "table ready"
        );
        let version = Version {
            lanes: Version::lanes(&condition, &server, &plan),
            name,
            identity,
            plan,
            parameter_digest,
            server,
            layout: Version::layout_part(&layout),
            hint: hint.map(|ReadyHint { part, .. }| Arc::new(part)),
            records: Arc::new(Part::Records(records)),
            description,
            feed: self.feed.map(Arc::new),
            tuning,
            origin,
            condition,
            held_digests: self.held,
            setup_file: self.setup_file,
        };
        Ok((version, ready))
    }
}

/// How many more keys the table takes, if that can be said: not of a table by index, nor of one
/// that is authenticated and so never updated.
fn room(layout: &[u8], identity: &TableIdentity, records: &dyn RecordSource) -> Option<Room> {
    let layout = TableLayout::decode(layout).ok()?;
    let key_map = layout.records().key_map().filter(|_| layout.authentication().is_none())?;
    let len = identity.shape.record_len();
    let read = |number: u64| {
        let mut record = vec![0; len as usize];
        records.read(number * len, &mut record).map(|()| record)
    };
    key_map.room(read).ok()
}

/// What a table's server is made from.
enum Start {
    /// The table itself.
    Setup(Box<dyn ErasedSetup>),
    /// Data that was precomputed from it, under this plan.
    Stored(Box<dyn SetupSource>, SchemePlan),
}

fn points_needed(scheme: SchemeId) -> Error {
    Error::api_misuse(format!(
        "the points that {scheme} answers from do not follow the table: compute points of this \
         version, and start the server again with them"
    ))
    .because(Reason::PointsNeeded)
}

/// Whether clients receive the table in its natural order.
fn receives_table(plan: &SchemePlan) -> bool {
    matches!(plan.offline, OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. })
}

/// Whether clients need data of each epoch that only a server can compute.
fn needs_commitments(scheme: SchemeId) -> bool {
    scheme.about().commits
}

fn check_layout(layout: &[u8]) -> Result<()> {
    if layout.len() as u64 > MAX_LAYOUT_LEN {
        return Err(Error::api_misuse(format!(
            "its record layout has {} bytes; clients accept at most {MAX_LAYOUT_LEN}",
            layout.len()
        )));
    }
    Ok(())
}

/// Checks that the table's digest was made from this digest of the records. That the records have
/// it, [`Hashed`] checks.
fn check_digest(identity: &TableIdentity, layout: &[u8], records: [u8; 32]) -> Result<()> {
    let parts = DigestParts { layout: *blake3::hash(layout).as_bytes(), records };
    if parts.combine(identity.shape) == identity.digest {
        return Ok(());
    }
    Err(Error::corrupted(
        "its layout and records do not have the digest that the last epoch names; take another copy of the table and its update log",
    ))
}
