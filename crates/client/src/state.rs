//! What a client keeps between runs, as a session and its driver see it: parts downloaded from
//! servers, and pins.
//!
//! [`State`] is the seam. [`MemoryState`] keeps everything for as long as the process lives; the
//! state directory ([`store`](crate::store), native builds only) keeps it in files that survive a
//! crash at any moment.

mod memory;
mod patch;

pub use patch::patch_part;

use memory::{Kept, MemoryHints};
use privet_core::{Error, Result, TableId, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::contract::ReservationId;
use privet_schemes::offline::{Download, HintSource, StreamConsumer};
use privet_schemes::reservation::{JournalRecord, Receipt, StoredRecord};
use privet_table::update_log::{EpochHash, PublisherId};
use privet_wire::{PartDescription, PartKind};
use std::collections::HashMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Names one part of one table: which table, which part, and what its bytes must be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartKey {
    /// The table, in its epoch.
    pub table: TableIdentity,
    /// Layout, hint or table.
    pub kind: PartKind,
    /// Size in bytes.
    pub len: u64,
    /// BLAKE3 digest of the whole part.
    pub digest: [u8; 32],
}

impl PartKey {
    /// What it is kept under: the same bytes serve every version of the table that names them.
    pub(crate) fn name(&self) -> PartName {
        PartName { table: self.table.id, kind: self.kind, len: self.len, digest: self.digest }
    }
}

/// Names a part of a table, whatever version it was fetched for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PartName {
    pub(crate) table: TableId,
    pub(crate) kind: PartKind,
    pub(crate) len: u64,
    pub(crate) digest: [u8; 32],
}

/// What a state holds of a part.
pub enum PartState {
    /// All of it, and its digest was checked when the last byte arrived.
    Complete(Arc<dyn HintSource>),
    /// The bytes up to the download's next offset, already absorbed by it. The rest is to be
    /// fetched and appended.
    Partial(Box<Download>),
}

/// What opening a part came to.
pub enum Opened {
    /// The part, whole or in part. A partial one is now this state's to append to.
    Have {
        /// What there is.
        part: PartState,
        /// Something that a person should hear: a damaged file was dropped and its contents will be
        /// fetched again.
        notice: Option<String>,
    },
    /// Another process is downloading it: ask again in a while.
    Busy {
        /// How many bytes of it seem to be there by now. If this does not grow, the other process
        /// has stalled.
        done: u64,
    },
}

/// What was seen when a server was first asked for a table under some name, or after the table's
/// epochs were followed from there. A server that later shows something else is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The table: which, in which version, with which contents, of which shape.
    pub table: TableIdentity,
    /// Scheme, parameters and table in one digest.
    pub parameter_digest: [u8; 32],
    /// How keys and values lie in records. It follows from the table, as does [`hint`](Self::hint),
    /// but a client cannot check that; it can see them change.
    pub layout: PartDescription,
    /// What is received before the first query, if it is the same for every client.
    pub hint: Option<PartDescription>,
    /// Who signs the table's epochs, if the servers have said so.
    pub publisher: Option<PublisherId>,
    /// The hash of the epoch that made this version, if it was followed to it.
    pub last_epoch: Option<EpochHash>,
}

impl Pin {
    /// Whether both are about the same table in the same version, served in the same way. Who signs
    /// its epochs is not a part of that: it may become known later.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Self { table, parameter_digest, layout, hint, .. } = *self;
        (table, parameter_digest, layout, hint)
            == (other.table, other.parameter_digest, other.layout, other.hint)
    }

    /// Whether this is a later version of the same table by the same publisher, who is known in
    /// both: what was prepared for the one can follow to the other.
    pub(crate) fn follows(&self, earlier: &Self) -> bool {
        self.table.id == earlier.table.id
            && self.table.epoch > earlier.table.epoch
            && self.publisher.is_some()
            && self.publisher == earlier.publisher
    }

    /// Whether `part` is one of those that it names.
    pub(crate) fn names(&self, part: &PartName) -> bool {
        let described = match part.kind {
            PartKind::Layout => Some(self.layout),
            PartKind::Hint | PartKind::Table => self.hint,
            _ => None,
        };
        self.table.id == part.table
            && described == Some(PartDescription { len: part.len, digest: part.digest })
    }
}

/// A pin at a server that is not asked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinElsewhere {
    /// The server's address.
    pub server: String,
    /// The table's name there.
    pub name: String,
    /// What was seen.
    pub pin: Pin,
}

/// Names the single-use hints for one table in one version under one scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HintsKey {
    /// The table, in its epoch.
    pub table: TableIdentity,
    /// The scheme.
    pub scheme: SchemeId,
    /// Scheme, parameters and table in one digest: hints of another digest are of no use and are
    /// discarded.
    pub parameter_digest: [u8; 32],
    /// Digest of the servers' addresses in the order of their roles, if there are several: what one
    /// of them has seen of the hints, or knows because it computed them, no other may ever see.
    /// Zeros for one server.
    pub servers: [u8; 32],
}

/// What opening single-use hints came to.
pub enum HintsOpened {
    /// They are this process's until the store is dropped.
    Have {
        /// Where they are kept.
        hints: Box<dyn HintStore>,
        /// Something that a person should hear: that hints were discarded because they had been
        /// copied, say.
        notice: Option<String>,
    },
    /// Another process holds them: ask again in a while.
    Busy,
}

/// Everything kept of one table's single-use hints.
#[derive(Default)]
pub struct SavedHints {
    /// The generation in use, as it was prepared. `None`: there is none yet.
    pub generation: Option<Zeroizing<Vec<u8>>>,
    /// All changes to it since, in the order in which they were made.
    pub changes: Vec<Zeroizing<Vec<u8>>>,
    /// The records of reservations that were not settled, oldest first: their queries were sent,
    /// or were about to be.
    pub unfinished: Vec<(ReservationId, StoredRecord)>,
    /// How far the next generation is.
    pub next: NextGeneration,
    /// The version of the table that the generation in use was prepared for. Its changes lead on
    /// from there. `None`: there is no generation, or it was prepared for the version that was
    /// asked for and has followed no edits.
    pub prepared_for: Option<TableIdentity>,
    /// Why the hints have [ended](HintStore::end), if they have.
    pub ended: Option<String>,
    /// Which table, version and parameters the hints stand at, if those are not the ones that were
    /// asked for: [`State::open_hints_to_follow`] only.
    pub stands_at: Option<HintsKey>,
}

/// How far the next generation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextGeneration {
    /// Not begun.
    #[default]
    None,
    /// There is a checkpoint from which the stream goes on at `offset`. It has not been read: if it
    /// turns out to be damaged, [`PreparationStore::checkpoint`] has an older one, or none.
    Partial {
        /// Bytes of the stream that need not come again.
        offset: u64,
    },
    /// Prepared, and waiting for [`HintStore::switch`].
    Ready,
}

/// Keeps the single-use hints of one table. One process at a time has it.
///
/// Its journal is **trusted**: an implementation makes receipts and reads records back through its
/// own [`Journal`](privet_schemes::reservation::Journal) and
/// [`JournalReader`](privet_schemes::reservation::JournalReader), and these must be true to what
/// they promise.
///
/// After any failure of a method that writes, nothing is known of what reached the disk: the store
/// is then *poisoned*, and every further call fails until it is opened again.
pub trait HintStore: Send {
    /// What is kept.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged: it names the file and
    /// says what to do.
    fn load(&mut self) -> Result<SavedHints>;

    /// Appends the journal records of reservations and returns once all would survive a crash,
    /// together with everything that was handed to [`settle`](Self::settle) before: a receipt for
    /// each, in their order. All that come together take one sync.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if one may not be durable: then
    /// there is no receipt for any. [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there
    /// is no generation, or the numbers do not go on from that of reservations made in it before.
    fn reserve(&mut self, batch: &[(ReservationId, &JournalRecord)]) -> Result<Vec<Receipt>>;

    /// The same for one reservation.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    fn reserve_one(&mut self, id: ReservationId, record: &JournalRecord) -> Result<Receipt> {
        let receipt = self.reserve(&[(id, record)])?.pop();
        receipt.ok_or_else(|| Error::api_misuse("a journal gave no receipt for a reservation"))
    }

    /// Notes the change that settles a reservation. Durable at the latest with the next
    /// [`reserve`](Self::reserve) or [`flush`](Self::flush); until then a crash leaves the
    /// reservation unfinished.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if no such reservation is unfinished.
    fn settle(&mut self, id: ReservationId, change: &[u8]) -> Result<()>;

    /// Notes the change that ends the hints for good, `why` in words for people: the change that
    /// settles the reservation `id`, or, without one, a change of its own. Durable on return, and
    /// after it nothing is reserved any more. Nothing but the user's erasing takes it back: the
    /// hints stay as they are, whatever key they are opened for.
    ///
    /// # Errors
    /// As [`settle`](Self::settle) and [`reserve`](Self::reserve).
    fn end(&mut self, id: Option<ReservationId>, change: &[u8], why: &str) -> Result<()>;

    /// Appends the change by which the hints follow edits of the table, and makes them those of
    /// `to`, the table after the edits; together with everything that was handed to
    /// [`settle`](Self::settle) before. Durable on return, all of it or nothing. What was prepared
    /// of a next generation belongs to the table before, and is erased.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a
    /// reservation is unfinished, `to` is not a later version of the same table under the same
    /// scheme with the same servers, or there still is a [`preparation`](Self::preparation).
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the hints have [ended](Self::end).
    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()>;

    /// Erases everything that is kept, and begins anew for `key`, the same table under the same
    /// scheme: the hints cannot follow the table. Durable on return; a crash leaves all that was
    /// there, or nothing of it.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it may not be durable;
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `key` is of another table or scheme,
    /// or there still is a [`preparation`](Self::preparation).
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the hints have [ended](Self::end):
    /// that a server was caught is not forgotten because the table has changed since.
    fn restart(&mut self, key: &HintsKey) -> Result<()>;

    /// Makes durable what was handed to [`settle`](Self::settle).
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    fn flush(&mut self) -> Result<()>;

    /// Where the next generation is prepared. It does not touch what the other methods write, so
    /// another thread may use it meanwhile. At most one exists at a time, and the hints stay this
    /// process's until it is dropped, too.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is one already;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) after a failure.
    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>>;

    /// Replaces the generation in use by the prepared one; the old one, its changes and its
    /// unfinished reservations are erased. [`load`](Self::load) tells of the new one.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if none is prepared; otherwise as
    /// [`reserve`](Self::reserve).
    fn switch(&mut self) -> Result<()>;

    /// Replaces the generation in use by `generation`, which it was condensed into: see
    /// [`Endless`](privet_schemes::contract::Endless). Whatever is kept of a next generation is
    /// erased first: it belongs to another state, or was made by a process that did not live to
    /// switch to it.
    ///
    /// # Errors
    /// As [`switch`](Self::switch) and [`PreparationStore::save_generation`]. The generation in use
    /// is then still the one before, or already this one.
    fn switch_to(&mut self, generation: &[u8]) -> Result<()> {
        // The changes that went into it are durable before it is.
        self.flush()?;
        let mut next = self.preparation()?;
        next.discard()?;
        next.save_generation(generation)?;
        drop(next);
        self.switch()
    }
}

/// Keeps a generation in the making.
pub trait PreparationStore: Send {
    /// The last checkpoint, and the offset at which the stream goes on from it. A damaged one
    /// counts as none: it holds nothing that could not be prepared again.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn checkpoint(&mut self) -> Result<Option<(u64, Zeroizing<Vec<u8>>)>>;

    /// Replaces the checkpoint. Durable on return.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be kept; the one before
    /// is then still there. [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a complete
    /// generation waits for its turn.
    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()>;

    /// Keeps the complete generation, for [`HintStore::switch`], and erases the checkpoint. Durable
    /// on return.
    ///
    /// # Errors
    /// As [`save_checkpoint`](Self::save_checkpoint).
    fn save_generation(&mut self, generation: &[u8]) -> Result<()>;

    /// Erases what is kept of the next generation, complete or not: the stream that it was made
    /// from had another digest than announced, say.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn discard(&mut self) -> Result<()>;
}

/// Where parts, single-use hints and pins are kept.
pub trait State: Send {
    /// What is there of `part`; if it is incomplete, makes it ready to be appended to.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the part is longer than it ever
    /// takes. Damage is no error: parts are public and are fetched again. Whether a table
    /// ([`PartKind::Table`]) is complete must not depend on where it was read before.
    fn open(&mut self, part: &PartKey) -> Result<Opened>;

    /// Keeps the bytes at `offset`, which is where the last call ended. They may be lost in a
    /// crash, but are never kept damaged.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be kept: a full disk,
    /// say.
    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Marks the part complete. Only for a part whose digest has been checked over every byte.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if bytes
    /// are missing.
    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>>;

    /// Drops what there is of `part`: its bytes turned out to be wrong.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn discard(&mut self, part: &PartKey) -> Result<()>;

    /// The single-use hints named by `key`. Hints that are kept for the same table and scheme under
    /// another key (an older version, say) are erased if the user has decided to believe what the
    /// server shows now, and refused otherwise.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if there are hints of another key, and
    /// nobody said to replace them; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the
    /// storage cannot be used, [`Blame::Corrupted`](privet_core::Blame::Corrupted) if what is kept
    /// is damaged.
    fn open_hints(&mut self, key: &HintsKey) -> Result<HintsOpened>;

    /// The same for a client that has seen the table change, epoch by epoch, each signed by its
    /// publisher: hints that are kept for another version of the same table and scheme, used with
    /// the same servers, are opened as they are. [`SavedHints::stands_at`] says where they stand,
    /// and it is for the client to have them [`follow`](HintStore::follow) or to
    /// [`restart`](HintStore::restart) them.
    ///
    /// # Errors
    /// As [`open_hints`](Self::open_hints).
    fn open_hints_to_follow(&mut self, key: &HintsKey) -> Result<HintsOpened>;

    /// What was pinned under `server`, with the tables' names. The one that was pinned last is the
    /// last.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if the pins are
    /// damaged: they protect against a server that changes its story, so they are not quietly
    /// forgotten.
    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>>;

    /// What was pinned under all other servers than these. What is damaged of that is left out:
    /// whoever asks such a server is told.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>>;

    /// Remembers `pin` for the table called `name` on `server`. If that replaces a pin of another
    /// table or version, what was kept for the old one and is pinned nowhere else is dropped; but
    /// not single-use hints for an earlier version of the same table by the same publisher, which
    /// can follow.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Blame::Integrity`](privet_core::Blame::Integrity) if another
    /// process has pinned meanwhile, under this name or for a table with this id, what contradicts
    /// `pin`.
    fn pin(&mut self, server: &str, name: &str, pin: &Pin) -> Result<()>;
}

/// The longest part that is kept in memory: how long it is, a server says.
const MEMORY_LIMIT: u64 = 1 << 30;

/// A state that lives as long as the process. It takes no parts longer than 1 GiB.
#[derive(Default)]
pub struct MemoryState {
    parts: HashMap<PartName, Vec<u8>>,
    complete: HashMap<PartName, Arc<dyn HintSource>>,
    hints: HashMap<(TableId, SchemeId), Kept>,
    /// In the order in which they were pinned.
    pins: Vec<PinElsewhere>,
}

impl State for MemoryState {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        if let Some(source) = self.complete.get(&part.name()) {
            return Ok(Opened::Have {
                part: PartState::Complete(Arc::clone(source)),
                notice: None,
            });
        }
        if part.len > MEMORY_LIMIT {
            return Err(Error::api_misuse(format!(
                "the {} of this table has {} bytes, more than the {} that are kept in memory at most; name a state directory to keep it in files",
                part.kind, part.len, MEMORY_LIMIT
            )));
        }
        let mut download = Download::new(part.len, part.digest);
        download.absorb(0, self.parts.entry(part.name()).or_default())?;
        Ok(Opened::Have { part: PartState::Partial(Box::new(download)), notice: None })
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        let kept = self.parts.entry(part.name()).or_default();
        if kept.len() as u64 != offset {
            return Err(out_of_order(offset, kept.len() as u64));
        }
        kept.try_reserve(bytes.len()).map_err(|error| {
            Error::unavailable(format!("no memory for the {}", part.kind)).caused_by(error)
        })?;
        kept.extend_from_slice(bytes);
        Ok(())
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        let kept = self.parts.remove(&part.name()).unwrap_or_default();
        if kept.len() as u64 != part.len {
            return Err(incomplete(kept.len() as u64, part.len));
        }
        let source: Arc<dyn HintSource> = Arc::new(kept);
        self.complete.insert(part.name(), Arc::clone(&source));
        Ok(source)
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        self.parts.remove(&part.name());
        self.complete.remove(&part.name());
        Ok(())
    }

    fn open_hints(&mut self, key: &HintsKey) -> Result<HintsOpened> {
        Ok(self.open_hints_of(key, false))
    }

    fn open_hints_to_follow(&mut self, key: &HintsKey) -> Result<HintsOpened> {
        Ok(self.open_hints_of(key, true))
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        let of_server = self.pins.iter().filter(|known| known.server == server);
        Ok(of_server.map(|known| (known.name.clone(), known.pin)).collect())
    }

    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>> {
        let elsewhere = |known: &&PinElsewhere| !servers.contains(&known.server.as_str());
        Ok(self.pins.iter().filter(elsewhere).cloned().collect())
    }

    fn pin(&mut self, server: &str, name: &str, pin: &Pin) -> Result<()> {
        let known = self.pins.iter().position(|known| known.server == server && known.name == name);
        let replaced = known.map(|at| self.pins.remove(at).pin);
        let (server, name) = (server.to_owned(), name.to_owned());
        self.pins.push(PinElsewhere { server, name, pin: *pin });
        let Some(old) = replaced.filter(|old| !old.agrees_with(pin)) else { return Ok(()) };
        let table = old.table.id;
        let pins: Vec<_> =
            self.pins.iter().map(|known| known.pin).filter(|pin| pin.table.id == table).collect();
        let superfluous =
            |part: &PartName| part.table == table && !pins.iter().any(|pin| pin.names(part));
        self.parts.retain(|part, _| !superfluous(part));
        self.complete.retain(|part, _| !superfluous(part));
        if !pin.follows(&old) {
            self.hints.retain(|(of, _), kept| *of != table || memory::are_wanted(kept, &pins));
        }
        Ok(())
    }
}

impl MemoryState {
    fn open_hints_of(&mut self, key: &HintsKey, to_follow: bool) -> HintsOpened {
        let kept = self.hints.entry((key.table.id, key.scheme)).or_default();
        match MemoryHints::open(kept, key, to_follow) {
            Some(hints) => HintsOpened::Have { hints: Box::new(hints), notice: None },
            None => HintsOpened::Busy,
        }
    }
}

pub(crate) fn out_of_order(offset: u64, due: u64) -> Error {
    Error::api_misuse(format!("byte {offset} of a part was to be kept when byte {due} was due"))
}

/// Checks that reservations are numbered on from the one that is due.
pub(crate) fn check_numbers(batch: &[(ReservationId, &JournalRecord)], due: u64) -> Result<()> {
    for ((id, _), due) in batch.iter().zip(due..) {
        if id.0 != due {
            let given = id.0;
            return Err(Error::api_misuse(format!("reservation {given} came when {due} was due")));
        }
    }
    Ok(())
}

/// Checks that hints of the key `from` may follow their table to `to`.
pub(crate) fn check_follows(from: &HintsKey, to: &HintsKey) -> Result<()> {
    let same = (from.table.id, from.scheme, from.servers) == (to.table.id, to.scheme, to.servers);
    if same && to.table.epoch > from.table.epoch {
        return Ok(());
    }
    Err(Error::api_misuse(
        "hints follow their table to a later version only, under the same scheme and with the same servers",
    ))
}

/// Checks that hints of the key `from` may be begun anew for `to`, in the same place.
pub(crate) fn check_restarts(from: &HintsKey, to: &HintsKey) -> Result<()> {
    match (from.table.id, from.scheme) == (to.table.id, to.scheme) {
        true => Ok(()),
        false => {
            Err(Error::api_misuse("hints are begun anew for the same table under the same scheme"))
        }
    }
}

/// Checks that nobody prepares a next generation, which is then not for the table in the right
/// version any more.
pub(crate) fn check_not_lent(lent: bool) -> Result<()> {
    match lent {
        false => Ok(()),
        true => Err(Error::api_misuse("the next generation of hints is still being prepared")),
    }
}

pub(crate) fn unsettled() -> Error {
    Error::api_misuse("the hints cannot follow the table while a query of theirs is not settled")
}

pub(crate) fn no_hints_to_end() -> Error {
    Error::api_misuse("there are no hints that could end")
}

pub(crate) fn after_the_end() -> Error {
    Error::integrity(
        "the hints have ended, because a server was found to lie, so nothing is asked with them any more",
    )
}

pub(crate) fn incomplete(have: u64, len: u64) -> Error {
    Error::api_misuse(format!("a part was called complete after {have} of {len} bytes"))
}
