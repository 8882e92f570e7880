//! Tables made ready: for each, the scheme's server, the parts that clients fetch, and what is announced of both.

mod setup;

use crate::ServerConfig;
use crate::config::Progress;
use crate::hint_cache::{CachedEntry, HintCache};
use crate::table::{PointsSource, RecordSource, ServedTable};
use bytes::Bytes;
use privet_core::{Epoch, Error, Result, TableId, TableIdentity, TableView};
use privet_schemes::SchemeId;
use privet_schemes::offline::{OfflinePhase, PublicWords};
use privet_schemes::registry::{self, ErasedServer, ErasedSetup, SchemePlan, ServerOptions};
use privet_table::digest::DigestParts;
use privet_wire::limits::MAX_LAYOUT_LEN;
use privet_wire::{
    PartDescription, PartKind, SchemeDescription, ServerDescription, TableDescription,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

pub use setup::HintOrigin;
use setup::{Finished, finish, finish_with_points};

/// What a server says of a table that is ready.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadyTable {
    /// Its name, identity and scheme as clients see them.
    pub description: TableDescription,
    /// Where its hint, and what else its scheme needs beside the table, came from.
    pub hint_origin: HintOrigin,
    /// Seconds it took to be ready.
    pub seconds: f64,
    /// Memory held beyond the bytes of the table itself, in bytes: padding, what the scheme's server keeps, and the hint if no file has it.
    pub extra_bytes: u64,
    /// Size of the points that it answers from, in memory or in a file, for schemes that make points of a table.
    pub points_bytes: Option<u64>,
    /// How much of the memory of the table, or of its points, the system backs with huge pages, if it says.
    pub huge_page_bytes: Option<u64>,
}

/// One table, ready to be asked about.
pub(crate) struct HostedTable {
    pub(crate) name: String,
    pub(crate) identity: TableIdentity,
    pub(crate) plan: SchemePlan,
    pub(crate) parameter_digest: [u8; 32],
    pub(crate) server: Arc<dyn ErasedServer>,
    layout: Arc<Part>,
    hint: Option<Arc<Part>>,
    records: Arc<Part>,
}

impl HostedTable {
    /// The part `kind`, or `None` if the table has none such.
    pub(crate) fn part(&self, kind: PartKind) -> Option<&Arc<Part>> {
        match kind {
            PartKind::Layout => Some(&self.layout),
            PartKind::Hint => self.hint.as_ref(),
            PartKind::Table => Some(&self.records),
            _ => None,
        }
    }
}

/// A part that clients fetch.
pub(crate) enum Part {
    Memory(Arc<[u8]>),
    Computed(PublicWords),
    Cached(CachedEntry),
    Records(Box<dyn RecordSource>),
    /// The table as the scheme's server holds it, which lends it.
    Streamed(Arc<dyn ErasedServer>),
}

impl Part {
    pub(crate) fn len(&self) -> u64 {
        self.bytes().len() as u64
    }

    /// The bytes from `offset`, at most `max_len`; none beyond the end. Copied, because reading a mapped part may wait for a disk, and that must happen here rather
    /// than wherever the bytes are used.
    pub(crate) fn copy(&self, offset: u64, max_len: usize) -> Bytes {
        let bytes = self.bytes();
        let start = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let end = start.saturating_add(max_len).min(bytes.len());
        Bytes::copy_from_slice(&bytes[start..end])
    }

    /// Says that a reader has come to its end.
    pub(crate) fn release(&self) {
        if let Part::Records(records) = self {
            records.release();
        }
    }

    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Part::Memory(bytes) => Cow::Borrowed(bytes),
            Part::Computed(words) => words.as_bytes(),
            Part::Cached(cached) => Cow::Borrowed(cached.hint()),
            Part::Records(records) => Cow::Borrowed(records.bytes()),
            Part::Streamed(server) => Cow::Borrowed(server.streamed().unwrap_or_default()),
        }
    }

    /// Bytes that it holds in memory of its own, rather than in a file.
    fn memory(&self) -> u64 {
        match self {
            Part::Memory(_) | Part::Computed(_) => self.len(),
            Part::Cached(_) | Part::Records(_) | Part::Streamed(_) => 0,
        }
    }

    /// Keeps `words` without a copy, unless this machine stores words in another order than they are sent in.
    fn computed(words: PublicWords) -> Self {
        if let Cow::Owned(bytes) = words.as_bytes() {
            return Part::Memory(bytes.into());
        }
        Part::Computed(words)
    }
}

/// All tables of a server.
pub(crate) struct HostedTables {
    pub(crate) tables: Vec<Arc<HostedTable>>,
    pub(crate) description: ServerDescription,
    pub(crate) ready: Vec<ReadyTable>,
    by_id: HashMap<TableId, usize>,
}

impl HostedTables {
    /// Makes every table ready, one after the other. The long part of a start: reads the tables, computes the hints that no cache has.
    ///
    /// # Errors
    /// If a table cannot be served under its scheme, or two have one name or one id. The message names the table.
    pub(crate) fn prepare(tables: Vec<ServedTable>, config: &ServerConfig) -> Result<Self> {
        if tables.is_empty() {
            return Err(Error::api_misuse("there is no table to serve"));
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
        let (mut hosted, mut ready) = (Vec::new(), Vec::new());
        for table in tables {
            let name = table.name.clone();
            let (table, said) = prepare_table(table, cache.as_ref(), config)
                .map_err(|error| error.within(format!("table {name}")))?;
            hosted.push(Arc::new(table));
            ready.push(said);
        }
        let software = concat!("privet ", env!("CARGO_PKG_VERSION"));
        let description = ServerDescription::new(
            software,
            ready.iter().map(|table| table.description.clone()).collect(),
        )
        .map_err(|error| Error::api_misuse(error.message().to_owned()))?;
        let by_id =
            hosted.iter().enumerate().map(|(number, table)| (table.identity.id, number)).collect();
        Ok(Self { tables: hosted, description, ready, by_id })
    }

    /// The number of the table that a message is about.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is not served here, [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it is, but
    /// in another epoch or under other parameters.
    pub(crate) fn find(
        &self,
        id: TableId,
        epoch: Epoch,
        parameter_digest: &[u8; 32],
    ) -> Result<usize> {
        let number = *self.by_id.get(&id).ok_or_else(|| {
            Error::api_misuse(format!(
                "no table with the id {id} is served here; ask again what is served"
            ))
        })?;
        let table = &self.tables[number];
        if epoch != table.identity.epoch {
            return Err(Error::peer_misbehaved(format!(
                "table {} is at epoch {} here, not {}; ask again what is served, and fetch what belongs to it",
                table.name, table.identity.epoch.0, epoch.0
            )));
        }
        if *parameter_digest != table.parameter_digest {
            return Err(Error::peer_misbehaved(format!(
                "table {} is served under other parameters; ask again what is served, and fetch what belongs to it",
                table.name
            )));
        }
        Ok(number)
    }
}

fn prepare_table(
    table: ServedTable,
    cache: Option<&HintCache>,
    config: &ServerConfig,
) -> Result<(HostedTable, ReadyTable)> {
    let started = Instant::now();
    let ServedTable { name, identity, layout, records, scheme, tuning, points } = table;
    // What can be refused quickly is refused before the long work.
    privet_wire::describe::check_name(&name)
        .map_err(|error| Error::api_misuse(error.message().to_owned()))?;
    if layout.len() as u64 > MAX_LAYOUT_LEN {
        return Err(Error::api_misuse(format!(
            "its record layout has {} bytes; clients accept at most {MAX_LAYOUT_LEN}",
            layout.len()
        )));
    }
    let options = ServerOptions { kernels: config.kernels, threads: config.threads };
    let view = TableView::new(identity, records.bytes())?;
    let start = match points {
        None => Start::Setup(registry::setup(scheme, view, &tuning, options)?),
        Some(points) => {
            points.check_table(&identity)?;
            let plan = plan_of_points(scheme, &identity, &*points)?;
            Start::Points(points, plan)
        }
    };
    let plan = match &start {
        Start::Setup(setup) => setup.plan().clone(),
        Start::Points(_, plan) => plan.clone(),
    };
    let fetched_table = match plan.offline {
        OfflinePhase::StreamTable { len } | OfflinePhase::KeepTable { len } => {
            Some(PartDescription::new(len, checked_digest(view, &layout)?))
        }
        _ => None,
    };
    records.release();

    let report = |share: f64| {
        if let Some(progress) = &config.progress {
            progress(Progress { table: &name, share });
        }
    };
    let Finished { server, hint, origin } = match start {
        Start::Setup(setup) => finish(&name, setup, &identity, cache, &report)?,
        Start::Points(points, plan) => {
            finish_with_points(&*points, plan, &identity, options, &report)?
        }
    };
    let computed = hint.as_ref().map(|hint| PartDescription::new(hint.part.len(), hint.digest));
    let scheme = SchemeDescription::new(plan.clone(), &identity, computed.or(fetched_table))?;
    let parameter_digest = scheme.parameter_digest;
    let layout_description =
        PartDescription::new(layout.len() as u64, *blake3::hash(&layout).as_bytes());
    let description = TableDescription::new(&name, identity, layout_description, vec![scheme])?;

    let ready = ReadyTable {
        description,
        hint_origin: origin,
        seconds: started.elapsed().as_secs_f64(),
        extra_bytes: server.resident_bytes().saturating_sub(identity.shape.bytes())
            + hint.as_ref().map_or(0, |hint| hint.part.memory()),
        // What makes none says so by refusing.
        points_bytes: registry::points_bytes(&plan, &identity).ok(),
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
    let hosted = HostedTable {
        name,
        identity,
        plan,
        parameter_digest,
        server,
        layout: Arc::new(Part::Memory(layout)),
        hint: hint.map(|hint| Arc::new(hint.part)),
        records: Arc::new(Part::Records(records)),
    };
    Ok((hosted, ready))
}

/// What a table's server is made of.
enum Start {
    /// The table itself.
    Setup(Box<dyn ErasedSetup>),
    /// Points that were computed from it before, under this plan.
    Points(Box<dyn PointsSource>, SchemePlan),
}

/// Reads the parameters with which points were computed, and makes sure that there are as many as these make.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are none for the table, or other points were computed, [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme makes no points of a table.
fn plan_of_points(
    scheme: SchemeId,
    identity: &TableIdentity,
    points: &dyn PointsSource,
) -> Result<SchemePlan> {
    let plan = SchemePlan::from_announcement(scheme, identity, points.parameters()).map_err(|error| {
        Error::corrupted(format!(
            "its points bear parameters that {scheme} does not have on this table; compute them again"
        ))
        .caused_by(error)
    })?;
    // Before there is memory for them.
    match (registry::points_bytes(&plan, identity)?, points.len()) {
        (expected, found) if expected == found => Ok(plan),
        (expected, found) => Err(Error::corrupted(format!(
            "{scheme} makes {expected} bytes of points of this table, and there are {found}; compute them again"
        ))),
    }
}

/// The digest of a table's records, which clients that receive the table will check, whether they keep it or make hints from it.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the table is not the one whose identity it bears: every client would refuse it, after having received
/// all of it.
fn checked_digest(table: TableView<'_>, layout: &[u8]) -> Result<[u8; 32]> {
    let digests = DigestParts {
        layout: *blake3::hash(layout).as_bytes(),
        records: *blake3::hash(table.bytes()).as_bytes(),
    };
    let identity = table.identity();
    if digests.combine(identity.shape) != identity.digest {
        return Err(Error::corrupted(
            "its file is damaged: the records do not have the digest that was noted when it was built; build it again",
        ));
    }
    Ok(digests.records)
}

#[cfg(test)]
mod tests;
