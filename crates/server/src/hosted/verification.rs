//! Checks that a version answers from data that has its digest, when it is made and from then on.
//!
//! **When it is made**, all threads hash its records, while the scheme's server copies them into
//! place. Both read the same source, which must be [unchanged](RecordSource::check_unchanged)
//! afterwards. Nothing is computed, read from the cache or announced before. The records of a later
//! version come with their digest. They are [hashed](Hashed) again as the server copies them, so
//! what it copied has that digest.
//!
//! **From then on**, the memory that answers come from is compared with the digest that it had when
//! it was made: it is in an order of the scheme's own and holds more than records. All threads take
//! that digest right after a start, while the server already answers, so that the start need not
//! wait for it; for a later version it is taken before the version is served. What clients fetch is
//! compared with the announced digest, in memory or in a file. See [`scrub`](crate::scrub).

use super::{Part, Version};
use crate::table::RecordSource;
use privet_core::{Error, PIECE_BYTES, ReadRecords, Result, TableSource};
use privet_schemes::registry::ErasedServer;
use privet_table::digest::DigestParts;
use privet_table::shared_hasher::SharedHasher;
use privet_wire::PartKind;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// Bytes hashed at a time: enough to occupy all threads.
const STEP: usize = 16 << 20;

/// A hasher for `len` bytes, with at most `threads` threads.
fn hasher(len: usize, threads: usize) -> SharedHasher {
    // A thread does not pay for fewer bytes.
    let threads = NonZero::new(threads).filter(|_| len >= STEP / 16);
    SharedHasher::new(threads.unwrap_or(NonZero::<usize>::MIN))
}

/// The BLAKE3 digest of `bytes`, by `threads` threads; `None` if `given_up` was set.
fn digest(bytes: &[u8], threads: usize, given_up: &AtomicBool) -> Option<[u8; 32]> {
    let mut hasher = hasher(bytes.len(), threads);
    for step in bytes.chunks(STEP) {
        if given_up.load(Ordering::Relaxed) {
            return None;
        }
        hasher.update(step);
    }
    Some(hasher.digest())
}

/// The BLAKE3 digest of the records of `table`, by `threads` threads; `None` if `given_up` was set.
fn records_digest(
    table: TableSource<'_>,
    threads: usize,
    given_up: &AtomicBool,
) -> Result<Option<[u8; 32]>> {
    let mut hasher = hasher(table.shape().bytes() as usize, threads);
    let given_up = || given_up.load(Ordering::Relaxed);
    let read = table.pieces(PIECE_BYTES, |_, piece| {
        if given_up() {
            return Err(Error::unavailable("nobody waits for the digest any more"));
        }
        hasher.update(piece);
        Ok(())
    });
    match given_up() {
        true => Ok(None),
        false => read.map(|()| Some(hasher.digest())),
    }
}

/// Runs `work`, which copies the records of `table`, and meanwhile hashes them with
/// `threads` threads. Returns the digest of the records.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the table does not have the identity that
/// it claims, or its source changed meanwhile; the errors of `work`.
pub(super) fn beside<T>(
    table: TableSource<'_>,
    layout: &[u8],
    records: &dyn RecordSource,
    threads: usize,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, [u8; 32])> {
    let given_up = AtomicBool::new(false);
    let hash = || records_digest(table, threads, &given_up);
    let (outcome, hashed) = thread::scope(|scope| {
        let hashing = thread::Builder::new().spawn_scoped(scope, hash);
        let outcome = work();
        given_up.store(outcome.is_err(), Ordering::Relaxed);
        let hashed = match hashing {
            Ok(hashing) => hashing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // If the system gives no thread, hash afterwards.
            Err(_) => hash(),
        };
        (outcome, hashed)
    });
    // The scheme may refuse damaged records as well, but this is the better reason.
    let Some(hashed) = hashed? else { return outcome.map(|made| (made, [0; 32])) };
    let checked = check_digest(table, layout, hashed).and_then(|()| records.check_unchanged());
    match (checked, records.file()) {
        (Err(error), Some(file)) if !error.message().contains(&*file.to_string_lossy()) => {
            Err(error.within(file.display()))
        }
        (checked, _) => {
            checked?;
            Ok((outcome?, hashed))
        }
    }
}

fn check_digest(table: TableSource<'_>, layout: &[u8], records: [u8; 32]) -> Result<()> {
    let identity = table.identity();
    let parts = DigestParts { layout: *blake3::hash(layout).as_bytes(), records };
    match parts.combine(identity.shape) == identity.digest {
        true => Ok(()),
        false => Err(Error::corrupted(
            "damaged: the records do not have the digest that was noted when the table was built; \
             copy the file again from where it is whole, or build it again",
        )),
    }
}

/// Records that are hashed while they are copied. The pass that copies them fails at its end if
/// they do not have their digest.
pub(super) struct Hashed<'a> {
    records: &'a dyn RecordSource,
    digest: [u8; 32],
    threads: usize,
    /// How far the present pass is.
    pass: Mutex<Option<(u64, SharedHasher)>>,
}

impl<'a> Hashed<'a> {
    pub(super) fn new(records: &'a dyn RecordSource, digest: [u8; 32], threads: usize) -> Self {
        Self { records, digest, threads, pass: Mutex::default() }
    }
}

impl ReadRecords for Hashed<'_> {
    fn len(&self) -> u64 {
        self.records.len()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.records.read(offset, into)?;
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 {
            *pass = Some((0, hasher(into.len(), self.threads)));
        }
        // A `TableSource` always reads in order.
        let Some((position, hasher)) = pass.as_mut().filter(|(position, _)| *position == offset)
        else {
            return Err(Error::internal("records were not read in their order; this is a bug"));
        };
        hasher.update(into);
        *position += into.len() as u64;
        if *position < self.len() || hasher.digest() == self.digest {
            return Ok(());
        }
        let error = Error::corrupted(
            "damaged: the records do not have the digest any more that they had when they were \
             verified; copy the file again from where it is whole",
        );
        Err(match self.records.file() {
            Some(file) => error.within(file.display()),
            None => error,
        })
    }
}

/// The known digests of the memory that a server answers from.
pub(super) enum HeldDigests {
    /// None: this server does not check.
    Unchecked,
    /// The memory was made from verified data. So many threads take its digests, one for each
    /// piece, when they are first needed: soon after a start has ended.
    Hashed(usize, OnceLock<Vec<[u8; 32]>>),
    /// All of it together has this digest.
    Known([u8; 32]),
}

impl HeldDigests {
    pub(super) fn hashed(threads: usize) -> Self {
        Self::Hashed(threads, OnceLock::new())
    }

    /// The digests of everything that `server` answers from. `streamed` is the digest of what it
    /// lends to clients, which clients were told.
    fn of(&self, server: &dyn ErasedServer, streamed: Option<[u8; 32]>) -> &[[u8; 32]] {
        let hash = |piece: &[u8], threads| match (streamed, server.streamed()) {
            (Some(digest), Some(streamed)) if std::ptr::eq(streamed, piece) => digest,
            _ => digest(piece, threads, &AtomicBool::new(false)).unwrap_or_default(),
        };
        match self {
            HeldDigests::Unchecked => &[],
            HeldDigests::Known(digest) => std::slice::from_ref(digest),
            HeldDigests::Hashed(threads, digests) => digests.get_or_init(|| {
                server.held().into_iter().map(|piece| hash(piece, *threads)).collect()
            }),
        }
    }
}

/// Something that is compared with a digest from time to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    what: Piece,
    digest: [u8; 32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// A piece of what the server answers from.
    Held(usize),
    /// What clients fetch.
    Part(PartKind),
}

/// How far something has been read again.
pub(crate) struct ReadProgress {
    checked: Checked,
    offset: u64,
    hasher: SharedHasher,
}

impl ReadProgress {
    /// The reading of `checked`, on the thread that calls this.
    pub(crate) fn new(checked: Checked) -> Self {
        Self::by(checked, hasher(0, 1))
    }

    fn by(checked: Checked, hasher: SharedHasher) -> Self {
        Self { checked, offset: 0, hasher }
    }
}

impl Version {
    /// Takes the digests of what the server answers from, unless they were taken already: this
    /// reads all of it.
    pub(crate) fn held_digests(&self) -> &[[u8; 32]] {
        let lends = matches!(self.hint.as_deref(), Some(Part::Streamed(_)));
        let announced = self.description.schemes.first().and_then(|scheme| scheme.hint);
        let streamed = announced.filter(|_| lends).map(|announced| announced.digest);
        self.held_digests.of(&*self.server, streamed)
    }

    /// Everything of this version that is compared with a digest. Takes the digests of what the
    /// server answers from, as [`held_digests`](Self::held_digests) does.
    pub(crate) fn checked(&self) -> Vec<Checked> {
        let part = |kind, digest| Checked { what: Piece::Part(kind), digest };
        let mut checked = vec![part(PartKind::Layout, self.description.layout.digest)];
        let held = self.held_digests().iter().enumerate();
        checked.extend(held.map(|(place, &digest)| Checked { what: Piece::Held(place), digest }));
        for scheme in &self.description.schemes {
            let (Some(kind), Some(announced)) = (scheme.hint_kind(), scheme.hint) else { continue };
            let lent = matches!(self.part(kind).map(|part| &**part), Some(Part::Streamed(_)));
            // What the server lends is part of what it holds.
            if !lent || self.held_digests().is_empty() {
                checked.push(part(kind, announced.digest));
            }
        }
        checked
    }

    /// Reads at most `len` more bytes. Returns how many: 0 when all were read and their digest is
    /// right.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with what it is and where it lies, if
    /// it has changed; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if it cannot be
    /// read.
    pub(crate) fn read_on(&self, reading: &mut ReadProgress, len: usize) -> Result<u64> {
        let ReadProgress { checked: Checked { what, digest }, offset, hasher } = reading;
        let read = match *what {
            Piece::Held(place) => {
                let held = self.server.held();
                let piece = held.get(place).copied().unwrap_or_default();
                let start = usize::try_from(*offset).map_or(piece.len(), |at| at.min(piece.len()));
                let piece = &piece[start..start.saturating_add(len).min(piece.len())];
                hasher.update(piece);
                piece.len()
            }
            Piece::Part(kind) => {
                let piece = match self.part(kind) {
                    Some(part) => part.copy(*offset, len)?,
                    None => return Err(Error::corrupted("a part is gone; this is a bug")),
                };
                hasher.update(&piece);
                piece.len()
            }
        };
        self.check_files()?;
        *offset += read as u64;
        if read > 0 || hasher.digest() == *digest {
            return Ok(read as u64);
        }
        Err(Error::corrupted(match *what {
            Piece::Held(_) => match self.setup_file.as_ref() {
                Some(file) => format!("the points of {} have another digest", file.display()),
                None => {
                    "the memory that it is answered from has another digest than when it was made"
                        .to_owned()
                }
            },
            Piece::Part(kind) => match self.part(kind).and_then(|part| part.file()) {
                Some(file) => format!("the {kind} in {} has another digest", file.display()),
                None => format!("the {kind} in memory has another digest"),
            },
        }))
    }

    /// Checks that the files behind this version are unchanged, as far as the system can say
    /// without reading them.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if one was
    /// written to or cut short.
    pub(crate) fn check_files(&self) -> Result<()> {
        self.server.check_held()?;
        let fetched = self.description.schemes.iter().filter_map(|scheme| scheme.hint_kind());
        fetched.filter_map(|kind| self.part(kind)).try_for_each(|part| part.check_unchanged())
    }

    /// Reads everything that its server answers from, at once, with `threads`. The server of
    /// another version was made from it, and must not be served before this check: it would be
    /// damaged as well, and have a digest of its own.
    ///
    /// # Errors
    /// As [`read_on`](Self::read_on).
    pub(super) fn check_held(&self, threads: usize) -> Result<()> {
        self.check_all(|what| matches!(what, Piece::Held(_)), threads)
    }

    /// Reads all of its hint at once, with `threads`: another version's hint was made from
    /// it.
    ///
    /// # Errors
    /// As [`read_on`](Self::read_on).
    pub(super) fn check_hint(&self, threads: usize) -> Result<()> {
        self.check_all(|what| matches!(what, Piece::Part(PartKind::Hint)), threads)
    }

    fn len(&self, what: Piece) -> usize {
        match what {
            Piece::Held(place) => self.server.held().get(place).map_or(0, |piece| piece.len()),
            Piece::Part(kind) => self.part(kind).map_or(0, |part| part.len() as usize),
        }
    }

    fn check_all(&self, wanted: impl Fn(Piece) -> bool, threads: usize) -> Result<()> {
        for checked in self.checked().into_iter().filter(|checked| wanted(checked.what)) {
            let mut reading = ReadProgress::by(checked, hasher(self.len(checked.what), threads));
            while self.read_on(&mut reading, PIECE_BYTES)? > 0 {}
        }
        Ok(())
    }
}
