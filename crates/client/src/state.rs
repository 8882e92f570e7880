//! What a client keeps between runs, as a session and its driver see it: parts downloaded from
//! servers, and pins.
//!
//! [`State`] is the trait between them. [`MemoryState`] keeps everything as long as the process
//! lives. The state directory ([`store`](crate::store)) keeps it in files that
//! survive a crash at any moment.

mod memory;
mod patch;

pub use memory::MemoryState;
pub use patch::patch_part;

use privet_core::{Error, Result, TableId, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::contract::ReservationId;
use privet_schemes::offline::{Download, HintSource};
use privet_schemes::reservation::{JournalRecord, Receipt, StoredRecord};
use privet_table::update_log::{EpochHash, Left, NextKeyDigest, PublisherId, TableKeys};
use privet_wire::{PartDescription, PartKind};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Names one part of one table: the table, the part, and its digest.
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
    /// The name that it is stored under: the same bytes serve every version of the table that has
    /// the same part.
    pub(crate) fn name(&self) -> PartName {
        PartName { table: self.table.id, kind: self.kind, len: self.len, digest: self.digest }
    }
}

/// Names a part of a table, independent of the version that it was fetched for.
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
    /// The bytes up to the download's next offset, which the download has absorbed. The rest must
    /// be fetched and appended.
    Partial(Box<Download>),
}

/// The outcome of opening a part.
pub enum Opened {
    /// The part, complete or partial. This process may now append to a partial one.
    Have {
        /// The stored part.
        part: PartState,
        /// Something that a person should know: a damaged file was dropped, and its contents will
        /// be fetched again.
        notice: Option<String>,
    },
    /// Another process is downloading it: ask again in a while.
    Busy {
        /// About how many bytes of it are there by now. If this does not grow, the other process
        /// has stalled.
        done: u64,
    },
}

/// What a server showed when it was first asked for a table under some name, or after the client
/// followed the table's epochs from there. The client does not believe a server that later shows
/// something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The table's id, version, contents and shape.
    pub table: TableIdentity,
    /// Scheme, parameters and table in one digest.
    pub parameter_digest: [u8; 32],
    /// The scheme alone, which a successor of the table has to keep. `None` in pins of earlier
    /// versions.
    pub scheme: Option<SchemeId>,
    /// The layout: how keys and values lie in records. The layout and the [`hint`](Self::hint)
    /// follow from the table. A client cannot check that, but it can see them change.
    pub layout: PartDescription,
    /// What the client receives before the first query, if it is the same for every client.
    pub hint: Option<PartDescription>,
    /// Who signs the table's epochs, if the servers have said so.
    pub publisher: Option<PublisherId>,
    /// The hash of the epoch that made this version, if the client followed the table to it.
    pub last_epoch: Option<EpochHash>,
    /// The digest of the key without which nobody hands the table on, if the servers named one at
    /// first use, or a succession did since.
    pub next_key: Option<NextKeyDigest>,
    /// Who signed the table's epochs when this client first knew, if signed changes of keys have
    /// led from there to the [`publisher`](Self::publisher). `None`: the same one.
    pub first_publisher: Option<PublisherId>,
}

impl Pin {
    /// Who signs the table's epochs and hands it on, if that is known.
    pub(crate) fn keys(&self) -> Option<TableKeys> {
        Some(TableKeys { publisher: self.publisher?, next: self.next_key })
    }

    /// Whether both pins are of the same table in the same version, served in the same way. The
    /// publisher does not count: it may become known later.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Self { table, parameter_digest, layout, hint, .. } = *self;
        (table, parameter_digest, layout, hint)
            == (other.table, other.parameter_digest, other.layout, other.hint)
    }

    /// Who signed the table's epochs when this client first knew.
    pub(crate) fn origin(&self) -> Option<PublisherId> {
        self.first_publisher.or(self.publisher)
    }

    /// Whether it is known who signs both, and that is the same publisher, or the client has
    /// followed changes of keys to both from the same one.
    pub(crate) fn shares_publisher(&self, other: &Self) -> bool {
        let same = self.publisher == other.publisher || self.origin() == other.origin();
        self.publisher.is_some() && other.publisher.is_some() && same
    }

    /// Whether this is a later version of the same table by a publisher that both
    /// [share](Self::shares_publisher): what was prepared for one can follow to the other.
    pub(crate) fn follows(&self, earlier: &Self) -> bool {
        self.table.id == earlier.table.id
            && self.table.epoch > earlier.table.epoch
            && self.shares_publisher(earlier)
    }

    /// Whether `part` is one that the pin names.
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

/// A pin at another server, which is not asked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinElsewhere {
    /// The server's address.
    pub server: String,
    /// The table's name there.
    pub name: String,
    /// What was seen there.
    pub pin: Pin,
}

/// Names the single-use hints for one table in one version under one scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HintsKey {
    /// The table, in its epoch.
    pub table: TableIdentity,
    /// The scheme.
    pub scheme: SchemeId,
    /// Scheme, parameters and table in one digest: hints with another digest are useless and are
    /// discarded.
    pub parameter_digest: [u8; 32],
    /// Digest of the servers' addresses in the order of their roles, if there are several. What one
    /// server has seen of the hints, or knows because it computed them, no other may ever see.
    /// Zeros for one server.
    pub servers: [u8; 32],
}

/// The outcome of opening single-use hints.
pub enum HintsOpened {
    /// This process holds them until the store is dropped.
    Have {
        /// Where they are kept.
        hints: Box<dyn HintStore>,
        /// Something that a person should know: that hints were discarded because they had been
        /// copied, say.
        notice: Option<String>,
    },
    /// Another process holds them: ask again in a while.
    Busy,
}

/// Everything stored of one table's single-use hints.
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
    /// The version of the table that the generation in use was prepared for, from which its changes
    /// lead on. `None`: there is no generation, or it was prepared for the version that was asked
    /// for and has followed no edits.
    pub prepared_for: Option<TableIdentity>,
    /// Why the hints have [ended](HintStore::end), if they have.
    pub ended: Option<String>,
    /// The table, version and parameters at which the hints stand, if these are not the requested
    /// ones: only after [`State::open_hints`] to follow.
    pub stands_at: Option<HintsKey>,
}

/// How far the next generation has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextGeneration {
    /// Not begun.
    #[default]
    None,
    /// A checkpoint exists, from which the stream goes on at `offset`. It has not been read: if it
    /// is damaged, [`PreparationStore::checkpoint`] returns an older one, or none.
    Partial {
        /// Bytes of the stream that are not needed again.
        offset: u64,
    },
    /// Prepared, and waits for [`HintStore::switch`].
    Ready,
}

/// Keeps the single-use hints of one table. Only one process at a time holds it.
///
/// Its journal is **trusted**: an implementation makes receipts and reads records back through its
/// own [`Journal`](privet_schemes::reservation::Journal) and
/// [`JournalReader`](privet_schemes::reservation::JournalReader), and these must keep what they
/// promise.
///
/// After a method that writes has failed, it is unknown what reached the disk. The store is then
/// *poisoned*, and every further call fails until the store is opened again.
pub trait HintStore: Send {
    /// Everything that is stored.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged: the error names the
    /// file and says what to do.
    fn load(&mut self) -> Result<SavedHints>;

    /// Appends the journal records of reservations. Returns a receipt for each, in their order,
    /// once all would survive a crash, together with everything that was handed to
    /// [`settle`](Self::settle) before. One call costs one sync.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if a record may not be durable: then
    /// there is no receipt for any. [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is
    /// no generation, or the numbers do not continue those of its earlier reservations.
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

    /// Notes the change that ends the hints for good, and `why`, in words for people. It is the
    /// change that settles the reservation `id`, or, without one, a change of its own. Durable on
    /// return; after it nothing is reserved any more. Only the user can undo it, by erasing the
    /// hints: otherwise they stay as they are, whatever key they are opened for.
    ///
    /// # Errors
    /// As [`settle`](Self::settle) and [`reserve`](Self::reserve).
    fn end(&mut self, id: Option<ReservationId>, change: &[u8], why: &str) -> Result<()>;

    /// Appends the change by which the hints follow edits of the table, together with everything
    /// that was handed to [`settle`](Self::settle) before. The hints are then those of `to`, the
    /// table after the edits. Durable on return, all of it or nothing. Anything prepared of a next
    /// generation belongs to the earlier version, and is erased.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a
    /// reservation is unfinished, `to` is not a later version of the same table under the same
    /// scheme with the same servers, or a [`preparation`](Self::preparation) still exists.
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the hints have [ended](Self::end).
    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()>;

    /// Erases everything, and begins anew for `key`, the same table under the same scheme: the
    /// hints cannot follow the table. Durable on return. A crash leaves everything or nothing.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it may not be durable;
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `key` is of another table or scheme,
    /// or a [`preparation`](Self::preparation) still exists.
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the hints have [ended](Self::end): a
    /// change of the table must not erase the record that a server was caught.
    fn restart(&mut self, key: &HintsKey) -> Result<()>;

    /// Makes everything durable that was handed to [`settle`](Self::settle).
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    fn flush(&mut self) -> Result<()>;

    /// The store in which the next generation is prepared. It writes other files than the other
    /// methods, so another thread may use it meanwhile. At most one exists at a time, and this
    /// process holds the hints until that one is dropped too.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is one already;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) after a failure.
    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>>;

    /// Replaces the generation in use by the prepared one. The old one, its changes and its
    /// unfinished reservations are erased. After it, [`load`](Self::load) returns the new one.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if none is prepared; otherwise as
    /// [`reserve`](Self::reserve).
    fn switch(&mut self) -> Result<()>;

    /// Replaces the generation in use by `generation`, which was condensed from it: see
    /// [`condense`](privet_schemes::contract::HintedClient::condense). First erases any stored next
    /// generation: it belongs to another state, or to a process that ended before it switched.
    ///
    /// # Errors
    /// As [`switch`](Self::switch) and [`PreparationStore::save_generation`]. The generation in use
    /// is then either still the earlier one, or already the new one.
    fn switch_to(&mut self, generation: &[u8]) -> Result<()> {
        // The changes that went into it must be durable before it is.
        self.flush()?;
        let mut next = self.preparation()?;
        next.discard()?;
        next.save_generation(generation)?;
        drop(next);
        self.switch()
    }
}

/// Keeps a generation that is being prepared.
pub trait PreparationStore: Send {
    /// The last checkpoint, and the offset at which the stream goes on after it. A damaged one
    /// counts as none: everything in it can be prepared again.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn checkpoint(&mut self) -> Result<Option<(u64, Zeroizing<Vec<u8>>)>>;

    /// Replaces the checkpoint. Durable on return.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be kept; the earlier
    /// one is then still there. [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a complete
    /// generation waits for its turn.
    fn save_checkpoint(&mut self, offset: u64, checkpoint: &[u8]) -> Result<()>;

    /// Keeps the complete generation, for [`HintStore::switch`], and erases the checkpoint. Durable
    /// on return.
    ///
    /// # Errors
    /// As [`save_checkpoint`](Self::save_checkpoint).
    fn save_generation(&mut self, generation: &[u8]) -> Result<()>;

    /// Erases the next generation, complete or not: because its stream had another digest than
    /// announced, say.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn discard(&mut self) -> Result<()>;
}

/// Stores parts, single-use hints and pins.
pub trait State: Send {
    /// Opens what is stored of `part`; if it is incomplete, prepares it for appending.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the part is longer than it ever
    /// takes. Damage is not an error: parts are public and are fetched again. Whether a table
    /// ([`PartKind::Table`]) is complete must not depend on where it was read before.
    fn open(&mut self, part: &PartKey) -> Result<Opened>;

    /// Keeps the bytes at `offset`, which is where the last call ended. A crash may lose them, but
    /// they are never kept damaged.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be kept: a full disk,
    /// say.
    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Marks the part complete. The caller must have checked its digest over every byte.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if bytes
    /// are missing.
    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>>;

    /// Drops what is stored of `part`: its bytes are wrong.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    fn discard(&mut self, part: &PartKey) -> Result<()>;

    /// The single-use hints named by `key`. If hints of the same table and scheme are stored under
    /// another key (an older version, say), this refuses to open them; if the user has decided to
    /// believe what the server shows now, it erases them instead.
    ///
    /// `to_follow` is for a client that has seen the table change, epoch by epoch, each signed by
    /// its publisher. Then this opens hints of another version of the same table and scheme as they
    /// are, if they were used with the same servers. [`SavedHints::stands_at`] says where they
    /// stand. The client must then have them [`follow`](HintStore::follow), or
    /// [`restart`](HintStore::restart) them.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if there are hints of another key, and
    /// the user did not allow to replace them;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used,
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the stored hints are damaged.
    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened>;

    /// The pins of `server`, with the tables' names. The last pin of the list was pinned last.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if the pins are
    /// damaged. They protect against a server that changes what it shows, so damage must not
    /// silently erase them.
    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>>;

    /// The pins of all servers but these. Damaged pins are left out: a client that asks such a
    /// server hears of the damage.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>>;

    /// Stores `pin` for the table called `name` on `server`. If that replaces a pin of another
    /// table or version, this drops what was stored for the old pin and is pinned nowhere else. It
    /// keeps single-use hints for an earlier version of the same table by the same publisher,
    /// because they can follow.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`Blame::Integrity`](privet_core::Blame::Integrity) if another
    /// process has meanwhile stored a pin that contradicts `pin`, under this name or for a table
    /// with this id.
    fn pin(&mut self, server: &str, name: &str, pin: &Pin) -> Result<()> {
        self.pin_successor(server, name, pin, &[])
    }

    /// The same for a table that succeeds others: together with the pin, in one write, this stores
    /// that the client has `left` those.
    ///
    /// # Errors
    /// As [`pin`](Self::pin); [`Blame::Unavailable`](privet_core::Blame::Unavailable) also if too
    /// many tables were left.
    fn pin_successor(&mut self, server: &str, name: &str, pin: &Pin, left: &[Left]) -> Result<()>;

    /// The tables that were left for their successors, with the server at which that was. Of a
    /// damaged file none, as with [`pins_elsewhere`](Self::pins_elsewhere).
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the storage cannot be used.
    fn tables_left(&mut self) -> Result<Vec<(String, Left)>>;
}

pub(crate) fn out_of_order(offset: u64, due: u64) -> Error {
    Error::api_misuse(format!("byte {offset} of a part came when byte {due} was due"))
}

/// Checks that the reservations' numbers go on from the one that is due.
pub(crate) fn check_numbers(batch: &[(ReservationId, &JournalRecord)], due: u64) -> Result<()> {
    for ((id, _), due) in batch.iter().zip(due..) {
        if id.0 != due {
            let given = id.0;
            return Err(Error::api_misuse(format!("reservation {given} came when {due} was due")));
        }
    }
    Ok(())
}

/// Checks that hints of the key `from` can follow their table to `to`.
pub(crate) fn check_follows(from: &HintsKey, to: &HintsKey) -> Result<()> {
    let same = (from.table.id, from.scheme, from.servers) == (to.table.id, to.scheme, to.servers);
    if same && to.table.epoch > from.table.epoch {
        return Ok(());
    }
    Err(Error::api_misuse(
        "hints follow their table to a later version only, under the same scheme and with the same servers",
    ))
}

/// Checks that hints of the key `from` can be begun anew for `to`, in the same place.
pub(crate) fn check_restarts(from: &HintsKey, to: &HintsKey) -> Result<()> {
    match (from.table.id, from.scheme) == (to.table.id, to.scheme) {
        true => Ok(()),
        false => {
            Err(Error::api_misuse("hints are begun anew for the same table under the same scheme"))
        }
    }
}

/// Checks that no next generation is being prepared: it would then be for the wrong version of the
/// table.
pub(crate) fn check_not_lent(lent: bool) -> Result<()> {
    match lent {
        false => Ok(()),
        true => Err(Error::api_misuse("the next generation of hints is still being prepared")),
    }
}

pub(crate) fn unsettled() -> Error {
    Error::api_misuse("the hints cannot follow the table while one of their queries is not settled")
}

pub(crate) fn no_hints_to_end() -> Error {
    Error::api_misuse("there are no hints that could end")
}

pub(crate) fn after_the_end() -> Error {
    Error::integrity(
        "the hints have ended, because a server was found to lie, so they serve no more lookups",
    )
}

pub(crate) fn incomplete(have: u64, len: u64) -> Error {
    Error::api_misuse(format!("a part was called complete after {have} of {len} bytes"))
}
