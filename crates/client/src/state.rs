//! What a client keeps between runs, as a session and its driver see it: parts downloaded from servers, and pins.
//!
//! [`State`] is the seam. [`MemoryState`] keeps everything for as long as the process lives; the state directory
//! ([`store`](crate::store), native builds only) keeps it in files that survive a crash at any moment.

use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity};
use privet_schemes::offline::{Download, HintSource, StreamConsumer};
use privet_wire::PartKind;
use std::collections::HashMap;
use std::sync::Arc;

/// Names one part of one table: which table, which part, and what its bytes must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartKey {
    /// The table, in its epoch.
    pub table: TableIdentity,
    /// Layout or hint.
    pub kind: PartKind,
    /// Size in bytes.
    pub len: u64,
    /// BLAKE3 digest of the whole part.
    pub digest: [u8; 32],
}

/// What a state holds of a part.
pub enum PartState {
    /// All of it, and its digest was checked when the last byte arrived.
    Complete(Arc<dyn HintSource>),
    /// The bytes up to the download's next offset, already absorbed by it. The rest is to be fetched and appended.
    Partial(Box<Download>),
}

/// What opening a part came to.
pub enum Opened {
    /// The part, whole or in part. A partial one is now this state's to append to.
    Have {
        /// What there is.
        part: PartState,
        /// Something that a person should hear: a damaged file was dropped and its contents will be fetched again.
        notice: Option<String>,
    },
    /// Another process is downloading it: ask again in a while.
    Busy {
        /// How many bytes of it seem to be there by now. If this does not grow, the other process has stalled.
        done: u64,
    },
}

/// What was seen when a server was first asked for a table under some name. A server that later shows something else is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The table.
    pub table: TableId,
    /// Its version.
    pub epoch: Epoch,
    /// Its contents.
    pub digest: TableDigest,
    /// Scheme, parameters and table in one digest.
    pub parameter_digest: [u8; 32],
    /// Lengths and digests of layout and hint in one digest. They follow from the table, but a client cannot check that; it can see them change.
    pub parts_digest: [u8; 32],
}

/// Where parts and pins are kept.
pub trait State: Send {
    /// What is there of `part`; if it is incomplete, makes it ready to be appended to.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used. Damage is no error: parts are public and are
    /// fetched again.
    fn open(&mut self, part: &PartKey) -> Result<Opened>;

    /// Keeps the bytes at `offset`, which is where the last call ended. They may be lost in a crash, but are never kept damaged.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be kept: a full disk, say.
    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Marks the part complete. Only for a part whose digest has been checked over every byte.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if bytes are missing.
    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>>;

    /// Drops what there is of `part`: its bytes turned out to be wrong.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn discard(&mut self, part: &PartKey) -> Result<()>;

    /// What was pinned under `server`, with the tables' names.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if the pins are damaged: they protect against a server that
    /// changes its story, so they are not quietly forgotten.
    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>>;

    /// Remembers `pin` for the table called `name` on `server`. If that replaces a pin of another table or version, what was kept for the old
    /// one and is pinned nowhere else is dropped.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn pin(&mut self, server: &str, name: &str, pin: &Pin) -> Result<()>;
}

/// A state that lives as long as the process.
#[derive(Default)]
pub struct MemoryState {
    parts: HashMap<PartKey, Vec<u8>>,
    complete: HashMap<PartKey, Arc<dyn HintSource>>,
    pins: HashMap<(String, String), Pin>,
}

impl State for MemoryState {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        if let Some(source) = self.complete.get(part) {
            return Ok(Opened::Have {
                part: PartState::Complete(Arc::clone(source)),
                notice: None,
            });
        }
        let mut download = Download::new(part.len, part.digest);
        download.absorb(0, self.parts.entry(part.clone()).or_default())?;
        Ok(Opened::Have { part: PartState::Partial(Box::new(download)), notice: None })
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        let kept = self.parts.entry(part.clone()).or_default();
        if kept.len() as u64 != offset {
            return Err(out_of_order(offset, kept.len() as u64));
        }
        kept.extend_from_slice(bytes);
        Ok(())
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        let kept = self.parts.remove(part).unwrap_or_default();
        if kept.len() as u64 != part.len {
            return Err(incomplete(kept.len() as u64, part.len));
        }
        let source: Arc<dyn HintSource> = Arc::new(kept);
        self.complete.insert(part.clone(), Arc::clone(&source));
        Ok(source)
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        self.parts.remove(part);
        self.complete.remove(part);
        Ok(())
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        let of_server = self.pins.iter().filter(|((url, _), _)| url == server);
        Ok(of_server.map(|((_, name), pin)| (name.clone(), *pin)).collect())
    }

    fn pin(&mut self, server: &str, name: &str, pin: &Pin) -> Result<()> {
        self.pins.insert((server.to_owned(), name.to_owned()), *pin);
        let pinned = |part: &PartKey| {
            self.pins
                .values()
                .any(|pin| (pin.table, pin.epoch) == (part.table.id, part.table.epoch))
        };
        self.parts.retain(|part, _| pinned(part));
        self.complete.retain(|part, _| pinned(part));
        Ok(())
    }
}

pub(crate) fn out_of_order(offset: u64, due: u64) -> Error {
    Error::api_misuse(format!("byte {offset} of a part was to be kept when byte {due} was due"))
}

pub(crate) fn incomplete(have: u64, len: u64) -> Error {
    Error::api_misuse(format!("a part was called complete after {have} of {len} bytes"))
}
