//! All tables of a server, and the moment at which a new version becomes current.
//!
//! All served tables are one value, which is replaced as a whole. A request takes the value when it
//! arrives, so it finds a table before a switch-over or after it, and never in between.

use super::feed::Feed;
use super::{Condition, Made, Maker, Part, ReadyTable, Version};
use crate::table::ServedTable;
use privet_core::{Epoch, Error, Result, TableId, TableShape};
use privet_schemes::registry::ErasedServer;
use privet_wire::limits::{self, MAX_EARLIER};
use privet_wire::{FetchRequest, PartKind, ServerDescription, TableDescription, proto};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// All tables of a server, in the versions that are served now.
pub(crate) struct HostedTables {
    served: RwLock<Arc<Served>>,
    /// The servers of retired versions that work under way may still hold.
    leaving: Mutex<Vec<Weak<dyn ErasedServer>>>,
}

/// What is served at one time.
pub(crate) struct Served {
    tables: Vec<TableVersions>,
    by_id: HashMap<TableId, usize>,
    pub(crate) description: proto::DescribeResponse,
    /// The longest valid request about any version of any table, in bytes.
    pub(crate) request_limit: usize,
}

/// The versions of one table that are served.
#[derive(Clone)]
struct TableVersions {
    current: Arc<Version>,
    /// The latest first, at most [`MAX_EARLIER`]. Behind those of this table come those of the
    /// tables that it succeeds.
    earlier: Vec<Arc<Version>>,
}

impl HostedTables {
    /// Makes every table ready, one after the other. This is the long part of a start.
    ///
    /// # Errors
    /// If a table cannot be served under its scheme, or two tables have the same name or the same
    /// id. The message names the table.
    pub(crate) fn prepare(
        tables: Vec<ServedTable>,
        maker: &Maker,
    ) -> Result<(Self, Vec<ReadyTable>)> {
        if tables.is_empty() {
            return Err(Error::api_misuse("there is no table to serve"));
        }
        let (mut versions, mut ready) = (Vec::new(), Vec::new());
        for table in tables {
            let name = table.name.clone();
            let condition = Arc::new(Condition::new(&name));
            let made = maker.first(table, condition);
            let made = made.map_err(|error| error.within(format!("table {name}")))?;
            ready.push(made.ready);
            versions.push(TableVersions { current: Arc::new(made.version), earlier: Vec::new() });
        }
        maker.tidy(versions.iter().map(|table| &*table.current));
        Ok((Self::serving(versions)?, ready))
    }

    fn serving(versions: Vec<TableVersions>) -> Result<Self> {
        let served = RwLock::new(Arc::new(Served::new(versions)?));
        Ok(Self { served, leaving: Mutex::default() })
    }

    /// What is served now.
    pub(crate) fn now(&self) -> Arc<Served> {
        // Nothing that can panic runs under the lock.
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes room for the next version of a table, of shape `shape`: retires its earliest versions
    /// while those beside the newest would hold more than `memory` with it. Returns how many are
    /// still served, with the current one.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such table.
    pub(crate) fn make_room(
        &self,
        name: &str,
        shape: TableShape,
        memory: VersionMemory,
    ) -> Result<usize> {
        self.replace(name, |table, elsewhere| {
            let more = shape.bytes().saturating_sub(table.current.identity.shape.bytes());
            table.keep_within(memory, elsewhere, table.current.memory().saturating_add(more));
            1 + table.earlier.len()
        })
    }

    /// Whether the memory of a retired version is not free yet, because of work under way.
    pub(crate) fn is_leaving(&self) -> bool {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|server| server.strong_count() > 0);
        !leaving.is_empty()
    }

    /// Makes `made` the current version of its table. The one that was current before stays as the
    /// latest of the earlier ones. If there are too many, or they hold more than `memory`, the
    /// earliest of this table are dropped. Returns the version that was current before.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such table, or the new
    /// set of tables cannot be described.
    pub(crate) fn switch(&self, made: Made, memory: VersionMemory) -> Result<Arc<Version>> {
        let Made { version, .. } = made;
        let name = version.name.clone();
        self.replace(&name, |table, elsewhere| {
            let before = std::mem::replace(&mut table.current, Arc::new(version));
            table.earlier.insert(0, Arc::clone(&before));
            table.earlier.truncate(MAX_EARLIER);
            table.keep_within(memory, elsewhere, 0);
            before
        })
    }

    /// Stops serving those earlier versions of a table for which `retired` is true. Returns how
    /// many are still served, with the current one.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such table.
    pub(crate) fn retire(
        &self,
        name: &str,
        retired: impl Fn(&Arc<Version>) -> bool,
    ) -> Result<usize> {
        self.replace(name, |table, _| {
            table.earlier.retain(|version| !retired(version));
            1 + table.earlier.len()
        })
    }

    /// Replaces what is served by the result of `change` on one table. `change` also gets the
    /// memory that the earlier versions of the other tables hold.
    fn replace<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut TableVersions, u64) -> T,
    ) -> Result<T> {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let mut tables = served.tables.clone();
        let others = tables.iter().filter(|table| table.current.name != name);
        let elsewhere = others.map(TableVersions::earlier_memory).sum();
        let table = tables
            .iter_mut()
            .find(|table| table.current.name == name)
            .ok_or_else(|| no_such_table(name))?;
        let changed = change(table, elsewhere);
        let next = Arc::new(Served::new(tables)?);
        let before = std::mem::replace(&mut *served, Arc::clone(&next));
        drop(served);
        let stays = |version: &Arc<Version>| next.versions().any(|next| Arc::ptr_eq(next, version));
        let gone = before.versions().filter(|version| !stays(version));
        let gone: Vec<_> = gone.map(|version| Arc::downgrade(&version.server)).collect();
        self.leaving.lock().unwrap_or_else(PoisonError::into_inner).extend(gone);
        // This may free versions that are not served any more, and requests need not wait for that.
        drop(before);
        Ok(changed)
    }
}

impl Served {
    fn new(tables: Vec<TableVersions>) -> Result<Self> {
        let described =
            tables.iter().map(TableVersions::description).collect::<Result<Vec<_>>>()?;
        let software = concat!("privet ", env!("CARGO_PKG_VERSION"));
        let mut description = ServerDescription::new(software, described)
            .map_err(|error| Error::api_misuse(error.message().to_owned()))?;
        description.max_queries = limits::MAX_QUERIES;
        let ids = |(place, table): (usize, &TableVersions)| -> Vec<_> {
            table.versions().map(|version| (version.identity.id, place)).collect()
        };
        let by_id = tables.iter().enumerate().flat_map(ids).collect();
        let request_limit = limits::request_limit(description.plans());
        Ok(Self { tables, by_id, description: description.into(), request_limit })
    }

    /// The current version of the table with that name.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such table.
    pub(crate) fn current(&self, name: &str) -> Result<&Arc<Version>> {
        let mut current = self.all_current();
        current.find(|version| version.name == name).ok_or_else(|| no_such_table(name))
    }

    /// The version that a message is about.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if damage was found in its table,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if its table is not served here,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if the table is served, but in
    /// other versions or under other parameters.
    pub(crate) fn find(
        &self,
        id: TableId,
        epoch: Epoch,
        parameter_digest: &[u8; 32],
    ) -> Result<&Arc<Version>> {
        let table = self.table(id)?;
        let is_meant =
            |version: &&Arc<Version>| (version.identity.id, version.identity.epoch) == (id, epoch);
        let version = table.versions().find(is_meant);
        let version = version.ok_or_else(|| {
            Error::peer_misbehaved(format!(
                "table {} is at epoch {} here, not {}; ask again what is served, and fetch what belongs to it",
                table.current.name, table.current.identity.epoch.0, epoch.0
            ))
        })?;
        if *parameter_digest != version.parameter_digest {
            return Err(table.other_parameters());
        }
        version.condition.check()?;
        Ok(version)
    }

    /// The requested part, and whether its table is served.
    ///
    /// # Errors
    /// As [`find`](Self::find); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the version
    /// has no such part, or no epochs lead to it from the client's version.
    pub(crate) fn part(&self, request: &FetchRequest) -> Result<(Arc<Part>, Arc<Condition>)> {
        let FetchRequest { table: id, epoch, parameter_digest, part, .. } = *request;
        if part == PartKind::Updates {
            let table = self.table(id)?;
            let mut versions = table.versions();
            let target = versions.find(|version| version.parameter_digest == parameter_digest);
            let target = target.ok_or_else(|| table.other_parameters())?;
            let feed = target.feed.as_ref().ok_or_else(|| {
                Error::api_misuse(format!("table {} has no updates to fetch", table.current.name))
            })?;
            let part = feed
                .part(epoch, target.identity.epoch)
                .map_err(|error| error.within(format!("table {}", table.current.name)))?;
            let condition = &target.condition;
            condition.check()?;
            return Ok((Arc::new(part), Arc::clone(condition)));
        }
        let version = self.find(id, epoch, &parameter_digest)?;
        if part == PartKind::Lineage {
            let lineage = version.feed.as_ref().and_then(|feed| feed.lineage());
            let lineage = lineage.ok_or_else(|| {
                Error::api_misuse(format!("table {} continues no other", version.name))
            })?;
            return Ok((Arc::clone(lineage), Arc::clone(&version.condition)));
        }
        let part = version.part(part).cloned().ok_or_else(|| {
            Error::api_misuse(format!(
                "table {} has no {part} to fetch under {}",
                version.name, version.plan.scheme
            ))
        })?;
        Ok((part, Arc::clone(&version.condition)))
    }

    /// All versions of all tables that are served.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.tables.iter().flat_map(TableVersions::versions)
    }

    /// The current versions of all tables.
    pub(crate) fn all_current(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.tables.iter().map(|table| &table.current)
    }

    /// The update logs of all tables that have one.
    pub(crate) fn feeds(&self) -> impl Iterator<Item = (&Arc<Condition>, &Feed)> {
        self.all_current()
            .filter_map(|version| Some((&version.condition, &**version.feed.as_ref()?)))
    }

    /// Whether each table is served. A server's set of tables never changes.
    pub(crate) fn conditions(&self) -> Vec<Arc<Condition>> {
        self.tables.iter().map(|table| Arc::clone(&table.current.condition)).collect()
    }

    fn table(&self, id: TableId) -> Result<&TableVersions> {
        let place = self.by_id.get(&id).ok_or_else(|| {
            Error::api_misuse(format!(
                "no table with the id {id} is served here; ask again what is served"
            ))
        })?;
        Ok(&self.tables[*place])
    }
}

/// What the versions beside the newest may hold in memory.
#[derive(Clone, Copy)]
pub(crate) enum VersionMemory {
    /// So many bytes, of all tables together.
    Bytes(u64),
    /// Of each table, as much as its newest version or the one before, and a tenth more; and at
    /// least [`SMALL`].
    AsMuchAgain,
}

/// Versions of small tables may stay for their grace periods: 16 MiB.
const SMALL: u64 = 16 << 20;

impl TableVersions {
    /// Retires the earliest versions while those beside the newest hold more than `memory`, of
    /// which `elsewhere` is taken by other tables and `making` by a version that is being made.
    fn keep_within(&mut self, memory: VersionMemory, elsewhere: u64, making: u64) {
        let room = match memory {
            VersionMemory::Bytes(bytes) => bytes.saturating_sub(elsewhere),
            VersionMemory::AsMuchAgain => {
                // A successor may be smaller than the table that it takes the place of.
                let newest = self.versions().take(2).map(|version| version.memory()).max();
                (newest.unwrap_or(0) / 10 * 11).max(SMALL)
            }
        };
        while self.earlier_memory().saturating_add(making) > room
            && let Some(earliest) = self.earlier.pop()
        {
            tracing::info!(
                table = earliest.name,
                epoch = earliest.identity.epoch.0,
                held_bytes = earliest.memory(),
                room_bytes = room,
                "version retired before its grace period ended, for its memory: its clients move \
                 on to the newest"
            );
        }
    }

    fn versions(&self) -> impl Iterator<Item = &Arc<Version>> {
        std::iter::once(&self.current).chain(&self.earlier)
    }

    /// What the earlier versions hold in memory, in bytes.
    fn earlier_memory(&self) -> u64 {
        self.earlier.iter().map(|version| version.memory()).sum()
    }

    fn description(&self) -> Result<TableDescription> {
        let updates = |version: &Version| version.feed.as_ref().map(|feed| feed.description());
        let earlier = self.earlier.iter().map(|version| {
            let is_own = version.identity.id == self.current.identity.id;
            let updates = if is_own { None } else { updates(version) };
            version.description.clone().with_versions(updates, Vec::new())
        });
        let earlier = earlier.collect::<Result<_>>()?;
        self.current.description.clone().with_versions(updates(&self.current), earlier)
    }

    fn other_parameters(&self) -> Error {
        Error::peer_misbehaved(format!(
            "table {} is served under other parameters; ask again what is served, and fetch what belongs to it",
            self.current.name
        ))
    }
}

fn no_such_table(name: &str) -> Error {
    Error::api_misuse(format!("no table named {name} is served here"))
}

#[cfg(test)]
impl HostedTables {
    /// One table in one version.
    pub(super) fn of_version(current: Version) -> Self {
        let table = TableVersions { current: Arc::new(current), earlier: Vec::new() };
        Self::serving(vec![table]).unwrap()
    }
}
