//! The long part of a start: computing what a scheme's server needs from its table, or reading it
//! from the cache.
//!
//! The result has two parts: the hint, which clients download, and what the server itself keeps. A
//! scheme may have both, either or neither. If they come from the cache, neither is held in memory:
//! the hint is served from the mapped file, and the server borrows the other part while it makes
//! something of it.
//!
//! A scheme that makes points of the table, many times its size, caches none. To compute points
//! only once, an operator puts them in a file of their own and hands that to the server. The cache
//! is not the place for them: it fills itself, and points are many times as large as the table,
//! often larger than the memory. A file of points that an operator asked for serves all servers of
//! a table.
//!
//! If a scheme's clients stream the table in an order of the scheme's own, its server holds the
//! table in that order. Then there is nothing to compute and nothing to cache: clients fetch the
//! server's own memory, which is read once here for the announced digest.

use super::Part;
use crate::hint_cache::{CacheKey, CachedEntry, HintCache, PartLengths};
use crate::table::SetupSource;
use bytes::Bytes;
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::offline::{OfflinePhase, Precomputed};
use privet_schemes::registry::{ErasedServer, ErasedSetup, SchemePlan, ServerOptions};
use std::sync::Arc;

/// Where the data came from that a server needs beside its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintOrigin {
    /// The scheme needs none: its clients receive nothing first, or the table itself, or hints that
    /// a server computes for each of them alone.
    None,
    /// From the cache directory.
    Cached,
    /// Computed, because the cache had no entry, or there is no cache. For points: because no file
    /// of them was given.
    Computed,
    /// Computed, because the entry in the cache was damaged or from another release.
    Rebuilt,
    /// Made from the earlier version's.
    Patched,
    /// Precomputed points, read into memory.
    File,
    /// Precomputed points, left in their file.
    Mapped,
}

impl HintOrigin {
    /// A name for people and metrics.
    pub fn name(self) -> &'static str {
        match self {
            HintOrigin::None => "none",
            HintOrigin::Cached => "cached",
            HintOrigin::Computed => "computed",
            HintOrigin::Rebuilt => "rebuilt",
            HintOrigin::Patched => "patched",
            HintOrigin::File => "file",
            HintOrigin::Mapped => "mapped",
        }
    }

    /// Whether answers come from precomputed data in a file.
    pub(super) fn is_a_setup_file(self) -> bool {
        matches!(self, HintOrigin::File | HintOrigin::Mapped)
    }
}

/// A server that can answer.
pub(super) struct Finished {
    pub(super) server: Arc<dyn ErasedServer>,
    /// What its clients fetch, if anything: not the table in its natural order, nor what is
    /// computed for one client alone.
    pub(super) hint: Option<ReadyHint>,
    pub(super) origin: HintOrigin,
}

impl Finished {
    /// A server that was made from the earlier version's. If that one answers from points that were
    /// read from a file, so does this.
    ///
    /// # Errors
    /// As [`finish`].
    pub(super) fn of_successor(server: Box<dyn ErasedServer>, before: HintOrigin) -> Result<Self> {
        let origin = match before {
            HintOrigin::None | HintOrigin::File => before,
            _ => HintOrigin::Patched,
        };
        finished(server, None, origin)
    }
}

/// Where a hint may come from beside the cache: the earlier version's, if it can be patched.
pub(super) type Former<'a> = Option<&'a dyn Fn() -> Result<Option<Bytes>>>;

/// A hint that is ready to be fetched.
pub(super) struct ReadyHint {
    pub(super) part: Part,
    pub(super) digest: [u8; 32],
}

/// The cache's entry for this version, if it is whole.
pub(super) fn load_cached(
    cache: &HintCache,
    plan: &SchemePlan,
    identity: &TableIdentity,
) -> Option<CachedEntry> {
    let OfflinePhase::Download { len } = plan.offline else { return None };
    // An entry of other lengths belongs to a scheme whose server keeps data and whose hint is never
    // patched.
    let lengths = PartLengths { hint: len, kept: 0 };
    let entry = cache.load(&CacheKey::new(plan, identity), lengths).ok().flatten()?;
    entry.release();
    Some(entry)
}

/// Finishes `setup` with the cache's entry, or with `former`, or else by computing, whose result
/// goes into the cache. The cache is only for tables that were found whole: a hint of the true
/// records beside damaged ones would make answers wrong in ways that reveal queries. `progress` is
/// called only if something is computed.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory. A cache
/// that cannot be used costs time and memory, never the start.
pub(super) fn finish(
    name: &str,
    setup: Box<dyn ErasedSetup>,
    identity: &TableIdentity,
    cache: Option<&HintCache>,
    former: Former<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Finished> {
    let Some(lengths) = lengths(&*setup) else {
        let origin = match setup.plan().work(identity).computed_bytes() {
            Some(_) => HintOrigin::Computed,
            None => HintOrigin::None,
        };
        return finished(setup.finish(&[], progress)?, None, origin);
    };
    let key = CacheKey::new(setup.plan(), identity);
    let mut origin = HintOrigin::Computed;
    match cache.map(|cache| cache.load(&key, lengths)) {
        Some(Ok(Some(entry))) => return from_cache(setup, entry, HintOrigin::Cached, progress),
        Some(Err(error)) => {
            tracing::warn!(table = name, ?error, "the hint is computed again");
            origin = HintOrigin::Rebuilt;
        }
        Some(Ok(None)) | None => {}
    }
    if let Some(patched) = former
        && lengths.kept == 0
    {
        match patched() {
            Ok(Some(hint)) if hint.len() as u64 == lengths.hint => {
                if let Some(entry) = stored(name, cache, &key, lengths, &hint, &[]) {
                    return from_cache(setup, entry, HintOrigin::Patched, progress);
                }
                let digest = *blake3::hash(&hint).as_bytes();
                let hint = ReadyHint { part: Part::Memory(hint), digest };
                let server = setup.finish(&[], progress)?;
                return finished(server, Some(hint), HintOrigin::Patched);
            }
            Ok(Some(_)) => tracing::warn!(table = name, "the patched hint has a wrong length"),
            Ok(None) => {}
            Err(error) => tracing::warn!(table = name, ?error, "the hint cannot be patched"),
        }
    }
    let computed = checked(setup.precompute(progress)?, lengths, &*setup)?;
    let (hint, kept) = (computed.hint.as_bytes(), computed.kept.as_bytes());
    if let Some(entry) = stored(name, cache, &key, lengths, &hint, &kept) {
        drop((hint, kept));
        // Frees the memory of the computation before the server takes more.
        drop(computed);
        return from_cache(setup, entry, origin, progress);
    }
    drop((hint, kept));
    from_memory(setup, computed, origin, progress)
}

/// Puts an entry into the cache, and returns it as the next start will find it. `None`: it could
/// not be stored.
fn stored(
    name: &str,
    cache: Option<&HintCache>,
    key: &CacheKey,
    lengths: PartLengths,
    hint: &[u8],
    kept: &[u8],
) -> Option<CachedEntry> {
    let cache = cache?;
    match cache.store(key, hint, kept).and_then(|()| cache.load(key, lengths)) {
        Ok(Some(entry)) => return Some(entry),
        Ok(None) => {
            tracing::warn!(table = name, "the hint just cached is gone; it is kept in memory");
        }
        Err(error) => tracing::warn!(table = name, ?error, "the hint is kept in memory"),
    }
    None
}

/// The server of precomputed points, once they are checked.
///
/// # Errors
/// As [`SetupSource::server`].
pub(super) fn finish_stored(
    stored: &dyn SetupSource,
    plan: SchemePlan,
    identity: &TableIdentity,
    options: ServerOptions,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Finished> {
    let server = stored.server(plan, identity, options, progress)?;
    let origin = match server.resident_bytes() {
        0 => HintOrigin::Mapped,
        _ => HintOrigin::File,
    };
    finished(server, None, origin)
}

/// The lengths of what must be computed or read from the cache, if anything.
fn lengths(setup: &dyn ErasedSetup) -> Option<PartLengths> {
    let hint = match setup.plan().offline {
        OfflinePhase::Download { len } => len,
        _ => 0,
    };
    let kept = setup.kept_len();
    (hint > 0 || kept > 0).then_some(PartLengths { hint, kept })
}

/// Checks that the parts have the lengths that follow from the plan, before they are stored and
/// announced.
fn checked(
    computed: Precomputed,
    lengths: PartLengths,
    setup: &dyn ErasedSetup,
) -> Result<Precomputed> {
    let hint = computed.hint.as_bytes().len() as u64;
    let kept = computed.kept.as_bytes().len() as u64;
    if (PartLengths { hint, kept }) == lengths {
        return Ok(computed);
    }
    Err(Error::internal(format!(
        "{} did not compute what its plan prescribes; this is a bug",
        setup.plan().scheme
    )))
}

fn from_cache(
    setup: Box<dyn ErasedSetup>,
    entry: CachedEntry,
    origin: HintOrigin,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Finished> {
    let server = setup.finish(entry.kept(), progress)?;
    entry.check_unchanged()?;
    entry.release();
    let digest = entry.hint_digest();
    let hint = downloads(&*server).then(|| ReadyHint { part: Part::Cached(entry), digest });
    finished(server, hint, origin)
}

fn from_memory(
    setup: Box<dyn ErasedSetup>,
    computed: Precomputed,
    origin: HintOrigin,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Finished> {
    let Precomputed { hint, kept } = computed;
    let server = setup.finish(&kept.as_bytes(), progress)?;
    drop(kept);
    let hint = downloads(&*server).then(|| {
        let digest = *blake3::hash(&hint.as_bytes()).as_bytes();
        ReadyHint { part: Part::computed(hint), digest }
    });
    finished(server, hint, origin)
}

/// Adds what the server itself lends to clients, if it lends anything.
fn finished(
    server: Box<dyn ErasedServer>,
    hint: Option<ReadyHint>,
    origin: HintOrigin,
) -> Result<Finished> {
    let server: Arc<dyn ErasedServer> = Arc::from(server);
    // A successor that is made from the earlier version's server has its clients' download.
    let hint = hint.or_else(|| {
        let announced = server.announced().filter(|_| downloads(&*server))?;
        let digest = *blake3::hash(announced).as_bytes();
        Some(ReadyHint { part: Part::Memory(Bytes::copy_from_slice(announced)), digest })
    });
    let OfflinePhase::StreamArranged { len } = server.plan().offline else {
        return Ok(Finished { server, hint, origin });
    };
    let streamed = server.streamed().unwrap_or_default();
    if streamed.len() as u64 != len {
        return Err(Error::internal(format!(
            "{} does not lend the table that its plan prescribes; this is a bug",
            server.plan().scheme
        )));
    }
    let digest = *blake3::hash(streamed).as_bytes();
    let part = Part::Streamed(Arc::clone(&server));
    Ok(Finished { server, hint: Some(ReadyHint { part, digest }), origin })
}

fn downloads(server: &dyn ErasedServer) -> bool {
    matches!(server.plan().offline, OfflinePhase::Download { .. })
}

#[cfg(test)]
mod tests;
