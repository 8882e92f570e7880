//! The long part of a start: what a scheme's server computes from its table, or reads back from the
//! cache.
//!
//! Two things come of it: the hint, which clients download, and what the server itself keeps. A
//! scheme may have both, either or neither. Read back, neither is held in memory: the hint is
//! served from the mapped file, and what is kept is lent to the server for as long as it takes to
//! make something of it.
//!
//! A scheme that makes points of the table, many times its size, caches none: whoever wants to
//! compute them only once has them in a file of their own, and the server is handed that.
//!
//! Why not in the cache: it fills itself, and points are many times as large as the table, often
//! larger than the memory. A file of points that somebody asked for serves all servers of a table.
//!
//! A scheme whose clients stream the table in an order of its own has its server hold it in that
//! order. There is nothing to compute then and nothing to cache: what clients fetch is the server's
//! own memory, read once here for the digest that is announced.

use super::Part;
use crate::hint_cache::{CacheKey, CachedEntry, HintCache, PartLengths};
use crate::table::SetupSource;
use bytes::Bytes;
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::offline::{OfflinePhase, Precomputed};
use privet_schemes::registry::{self, ErasedServer, ErasedSetup, SchemePlan, ServerOptions};
use std::sync::Arc;

/// Where what a server needs beside its table came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintOrigin {
    /// There is none to compute: clients of the scheme receive nothing first, or the table itself,
    /// or what a server computes for each of them alone.
    None,
    /// From the cache directory.
    Cached,
    /// Computed, because there was no entry in the cache, or no cache; points, because no file of
    /// them was given.
    Computed,
    /// Computed, because the entry in the cache was damaged or of another release.
    Rebuilt,
    /// Made of the one of the version before.
    Patched,
    /// Points that were computed before, read into memory.
    File,
    /// Points that were computed before, left in their file.
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
}

/// A server that can answer.
pub(super) struct Finished {
    pub(super) server: Arc<dyn ErasedServer>,
    /// What its clients fetch that is neither computed for them alone nor the table in its natural
    /// order, if there is such.
    pub(super) hint: Option<ReadyHint>,
    pub(super) origin: HintOrigin,
}

impl Finished {
    /// A server that was made of the one of the version before. If that answers from points that
    /// were read from a file, so does this.
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

/// Where a hint may come from beside the cache.
pub(super) enum Former<'a> {
    None,
    /// From that of the version before, if it can be patched.
    Patched(&'a dyn Fn() -> Result<Option<Bytes>>),
}

/// A hint that is ready to be fetched.
pub(super) struct ReadyHint {
    pub(super) part: Part,
    pub(super) digest: [u8; 32],
}

/// What the cache has for this version, if that is whole.
pub(super) fn load_cached(
    cache: &HintCache,
    plan: &SchemePlan,
    identity: &TableIdentity,
) -> Option<CachedEntry> {
    let OfflinePhase::Download { len } = plan.offline else { return None };
    // An entry of other lengths is one of a scheme whose server keeps something, and whose hint
    // nobody patches.
    let lengths = PartLengths { hint: len, kept: 0 };
    cache.load(&CacheKey::new(plan, identity), lengths).ok().flatten()
}

/// Finishes `setup` with what the cache has for it, or what `former` has, or else with what it
/// computes, which goes into the cache. The cache is for tables that were found to be whole: a hint
/// of the true records beside damaged ones would make answers wrong in ways that tell of queries.
/// `progress` hears of the computing, and of nothing if there is none.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had. A cache
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
        let origin = match registry::setup_bytes(setup.plan(), identity) {
            Ok(_) => HintOrigin::Computed,
            Err(_) => HintOrigin::None,
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
    if let Former::Patched(patched) = former
        && lengths.kept == 0
    {
        match patched() {
            Ok(Some(hint)) if hint.len() as u64 == lengths.hint => {
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
    if let Some(cache) = cache {
        let stored = cache.store(&key, &computed.hint.as_bytes(), &computed.kept.as_bytes());
        match stored.and_then(|()| cache.load(&key, lengths)) {
            Ok(Some(entry)) => {
                // The memory it was computed in is free again before the server takes more.
                drop(computed);
                return from_cache(setup, entry, origin, progress);
            }
            Ok(None) => {
                tracing::warn!(table = name, "the hint just cached is gone; it is kept in memory")
            }
            Err(error) => tracing::warn!(table = name, ?error, "the hint is kept in memory"),
        }
    }
    from_memory(setup, computed, origin, progress)
}

/// Makes a server of points that were computed before, once they are checked.
///
/// # Errors
/// As [`SetupSource::load`], and [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are
/// not as many as `plan` says.
pub(super) fn finish_stored(
    stored: &dyn SetupSource,
    plan: SchemePlan,
    identity: &TableIdentity,
    options: ServerOptions,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Finished> {
    let stored = stored.load(options.threads, progress)?;
    let origin = match stored.resident_bytes() {
        0 => HintOrigin::Mapped,
        _ => HintOrigin::File,
    };
    finished(registry::server_of_setup(plan, identity, stored, options)?, None, origin)
}

/// What has to be computed or read back, if anything has.
fn lengths(setup: &dyn ErasedSetup) -> Option<PartLengths> {
    let hint = match setup.plan().offline {
        OfflinePhase::Download { len } => len,
        _ => 0,
    };
    let kept = setup.kept_len();
    (hint > 0 || kept > 0).then_some(PartLengths { hint, kept })
}

/// What is stored under a key, and announced, has the lengths that follow from the plan.
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
    entry.release_kept();
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

/// Adds what the server itself lends to clients, if it does.
fn finished(
    server: Box<dyn ErasedServer>,
    hint: Option<ReadyHint>,
    origin: HintOrigin,
) -> Result<Finished> {
    let server: Arc<dyn ErasedServer> = Arc::from(server);
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
