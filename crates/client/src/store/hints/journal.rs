//! The journal of one generation: every change since it was prepared, in order, and the queries
//! that wait for answers.
//!
//! It is an append-only file: one commit after the other, each with one sync:
//!
//! ```text
//! base      magic "privethj" ‖ version u32 ‖ lineage 16 ‖
//!           the generation's number u64, size u64 and BLAKE3 digest 32 ‖
//!           the table's version that it was prepared for 104 ‖
//!           the one where the hints stand 104 ‖ place 32 ‖
//!           reserved u64 ‖ commits u64 ‖ written (ms since 1970) u64 ‖ length u64 ‖ entries ‖ seal 32
//! commit    number u64 ‖ written u64 ‖ seal of what is before it 32 ‖ length u64 ‖ entries ‖ seal 32
//! the same  from the beginning of the next block of 4096 bytes
//! …         the next commit, and the same again
//! zeros     room for more: a commit never makes the file longer
//!
//! entry     1 ‖ length u64 ‖ a change                        the log of changes goes on
//!           2 ‖ reservation u64 ‖ length u64 ‖ its record    it is unfinished
//!           3 ‖ reservation u64                              it is finished
//!           4 ‖ length u64 ‖ why                             the hints have ended
//!           5 ‖ the table's version 104                      where the hints stand from here on
//!           6 ‖ milliseconds since 1970 u64                  when the anchor was changed last
//! ```
//!
//! Each commit has an entry 6. A file of version 4, which has none, is read and then begun anew.
//!
//! A seal is BLAKE3 under a key of lineage and generation, over everything before it. So a commit
//! is either whole or does not count, belongs to this journal, and has one place in it. Opening
//! replays all of it.
//!
//! **Why twice.** A crash during a commit may leave any part of it. Nothing was sent for that
//! commit, and the hints must go on without it. But after a fault of the disk, the rest of an
//! acknowledged commit may look the same, and its hint *is* used. A single copy with one sync
//! cannot distinguish the two. So the commit is written at two places that share no block:
//!
//! - An acknowledged commit has both copies. If one is damaged, the other is read, and nothing is
//!   lost.
//! - If a commit has neither, its sync never returned. It is dropped, and was never sent.
//! - The remaining case: both copies of an acknowledged commit were damaged, in different blocks.
//!   Then a commit after them is out of order. And everything that the [anchor](super::anchor) has
//!   counted must be there: it counts when hints are opened, closed, followed or ended, and when a
//!   journal is begun anew. It does not count each commit: that would be a second sync. In both
//!   cases the journal is refused, that is, its hints count as used.
//! - One fault stays unnoticed: *both* copies of the *last* commit of a process that did not close
//!   were damaged before the hints were opened again. If they were cut off, or an older journal was
//!   put in place, the file system's time or the file's number shows it: the journal is checked
//!   like the anchor ([`is_untouched`]), against where it was created and the time in its last
//!   commit.
//!
//! The record of a settled reservation is useless. When no room is left, or not all of the file is
//! as it was written, a journal with the same contents is begun in another file. It counts once the
//! anchor names it, and the old one is erased, as all are when their generation is replaced. So a
//! full disk shows before any byte of the old file is touched. A touched file would look as if
//! another program had changed it.

use super::anchor::{Anchor, AnchorFile, Lineage, changed, contradicts, is_untouched};
use super::sealed::{Header, Label};
use super::version::Version;
use crate::store::files::{self, StoredFile};
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::reservation::JournalReader;
use std::collections::BTreeMap;
use std::iter;
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"privethj";
const VERSION: u32 = 5;
/// The last version that does not record when the anchor was changed.
const WITHOUT_TIME: u32 = 4;
/// The longest stored reason why hints have ended, in bytes.
const MAX_REASON: usize = 2048;
pub(super) const SEAL_LEN: usize = 32;
pub(super) const HEAD_LEN: usize = 8 + 8 + SEAL_LEN + 8;
/// The largest stretch that one fault of a disk damages.
pub(super) const BLOCK: usize = 4096;
/// The room for commits in a generation's first file. (In tests both are so small that short
/// histories reach their end.)
const ROOM: usize = if cfg!(test) { 4 * BLOCK } else { 64 * BLOCK };
/// Each later file has twice the room of the one before, up to this, or three times the useful
/// bytes if that is more.
const MOST_ROOM: usize = if cfg!(test) { 6 * BLOCK } else { 512 * BLOCK };

type Seal = [u8; SEAL_LEN];
type Secret = Zeroizing<Vec<u8>>;

/// The sum of the commits, without [`JournalContents`].
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) lineage: Lineage,
    pub(crate) generation: u64,
    /// Size and digest of the file that holds the generation as it was prepared.
    pub(crate) generation_len: u64,
    pub(crate) generation_digest: [u8; 32],
    /// The version of the table that it was prepared for.
    pub(crate) prepared_for: Version,
    /// The version where the hints stand, after following the table's edits.
    pub(crate) version: Version,
    /// Where this file was created: see [`Medium::place`].
    place: [u8; 32],
    /// Reservations so far; also the number of the next one.
    pub(crate) reserved: u64,
    /// Commits so far, with those of earlier files.
    pub(crate) commits: u64,
    /// When the last commit was written, in milliseconds since 1970.
    written: u64,
    /// The last commit's seal, which covers everything before.
    pub(crate) seal: Seal,
    /// Why the hints have ended, if they have: the last change in the log ended them.
    pub(crate) ended: Option<String>,
    /// When the anchor had been changed last at the last commit, by the file system's clock; 0:
    /// unknown.
    anchor_changed: u64,
}

impl Summary {
    fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 commits of a hint journal");
        hasher.update(&self.lineage);
        hasher.update(&self.generation.to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// The useful contents of a journal.
#[derive(Clone, Default)]
struct JournalContents {
    changes: Vec<Secret>,
    unfinished: BTreeMap<u64, Secret>,
    /// Their length in bytes.
    len: u64,
}

/// An entry of a journal.
#[derive(Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// A change for the log.
    Change(&'a [u8]),
    /// A reservation is unfinished, and this is its record.
    Unfinished(u64, &'a [u8]),
    /// A reservation is finished.
    Finished(u64),
    /// There will be no more reservations, and why. A reason that is too long is cut.
    Ended(&'a str),
    /// The version where the hints stand from here on.
    StandsAt(Version),
    /// When the anchor was changed last; 0: unknown. Milliseconds since 1970.
    AnchorChanged(u64),
}

impl<'a> Entry<'a> {
    /// Its length in bytes.
    fn len(&self) -> usize {
        1 + match *self {
            Entry::Change(change) => 8 + change.len(),
            Entry::Unfinished(_, record) => 8 + 8 + record.len(),
            Entry::Finished(_) => 8,
            Entry::Ended(why) => 8 + why.floor_char_boundary(MAX_REASON),
            Entry::StandsAt(_) => Version::LEN,
            Entry::AnchorChanged(_) => 8,
        }
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        let number: u8 = match *self {
            Entry::Change(_) => 1,
            Entry::Unfinished(..) => 2,
            Entry::Finished(_) => 3,
            Entry::Ended(_) => 4,
            Entry::StandsAt(_) => 5,
            Entry::AnchorChanged(_) => 6,
        };
        bytes.push(number);
        let mut put_sized = |part: &[u8]| {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        };
        match *self {
            Entry::Change(change) => put_sized(change),
            Entry::Ended(why) => put_sized(&why.as_bytes()[..why.floor_char_boundary(MAX_REASON)]),
            Entry::Finished(number) | Entry::AnchorChanged(number) => {
                bytes.extend(number.to_le_bytes());
            }
            Entry::Unfinished(id, record) => {
                bytes.extend(id.to_le_bytes());
                bytes.extend((record.len() as u64).to_le_bytes());
                bytes.extend(record);
            }
            Entry::StandsAt(version) => version.put(bytes),
        }
    }

    /// `head` and all of `entries`, sealed. The buffer has its full size from the beginning:
    /// growing would leave copies behind.
    fn seal(entries: &[Self], key: &[u8; 32], head: &[u8]) -> Secret {
        let len: usize = entries.iter().map(Self::len).sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(head.len() + 8 + len + SEAL_LEN));
        bytes.extend(head);
        bytes.extend((len as u64).to_le_bytes());
        entries.iter().for_each(|entry| entry.put(&mut bytes));
        let seal = sealed_with(key, &bytes);
        bytes.extend(seal);
        bytes
    }

    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let damaged = || Error::corrupted("an entry makes no sense");
        Ok(match reader.u8()? {
            1 => Entry::Change(sized(reader)?),
            2 => Entry::Unfinished(reader.u64()?, sized(reader)?),
            3 => Entry::Finished(reader.u64()?),
            4 => Entry::Ended(str::from_utf8(sized(reader)?).map_err(|_| damaged())?),
            5 => Entry::StandsAt(Version::read(reader)?),
            6 => Entry::AnchorChanged(reader.u64()?),
            _ => return Err(damaged()),
        })
    }
}

fn sized<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = reader.u64()?;
    reader.bytes(usize::try_from(len).unwrap_or(usize::MAX))
}

/// Applies `entries`.
fn apply(entries: &[u8], summary: &mut Summary, contents: &mut JournalContents) -> Result<()> {
    let damaged = || Error::corrupted("its entries do not go together");
    let mut reader = Reader::new("an entry", entries);
    while reader.remaining() > 0 {
        match Entry::read(&mut reader)? {
            Entry::Change(change) => {
                contents.len += change.len() as u64;
                contents.changes.push(Zeroizing::new(change.to_vec()));
            }
            Entry::Unfinished(id, record) => {
                contents.len += record.len() as u64;
                summary.reserved = summary.reserved.max(id.checked_add(1).ok_or_else(damaged)?);
                let other = contents.unfinished.insert(id, Zeroizing::new(record.to_vec()));
                other.map_or(Ok(()), |_| Err(damaged()))?;
            }
            Entry::Finished(id) => {
                let record = contents.unfinished.remove(&id).ok_or_else(damaged)?;
                contents.len -= record.len() as u64;
            }
            Entry::Ended(why) => summary.ended = Some(why.to_owned()),
            Entry::StandsAt(version) => summary.version = version,
            Entry::AnchorChanged(at) => summary.anchor_changed = at,
        }
    }
    Ok(())
}

/// A whole commit.
struct Commit<'a> {
    number: u64,
    written: u64,
    before: Seal,
    entries: &'a [u8],
    seal: Seal,
    bytes: &'a [u8],
}

impl<'a> Commit<'a> {
    /// The commit at the beginning of `bytes`, if there is one.
    fn read(key: &[u8; 32], bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new("a commit", bytes);
        let number = reader.u64().ok().filter(|number| *number > 0)?;
        let (written, before) = (reader.u64().ok()?, reader.array().ok()?);
        let entries = sized(&mut reader).ok()?;
        let sealed = bytes.len() - reader.remaining();
        let seal = reader.array().ok()?;
        let bytes = &bytes[..sealed + SEAL_LEN];
        let whole = sealed_with(key, &bytes[..sealed]) == seal;
        whole.then_some(Self { number, written, before, entries, seal, bytes })
    }

    /// The first commit at `at`, or later at the beginning of a block, where a second copy may lie.
    fn find(key: &[u8; 32], bytes: &'a [u8], at: usize) -> Option<(usize, Self)> {
        let blocks = (next_block(at + 1)..bytes.len()).step_by(BLOCK);
        let mut places = iter::once(at).chain(blocks);
        places.find_map(|place| Some((place, Self::read(key, bytes.get(place..)?)?)))
    }
}

fn sealed_with(key: &[u8; 32], bytes: &[u8]) -> Seal {
    *blake3::keyed_hash(key, bytes).as_bytes()
}

/// The seal with which a base or a commit ends.
fn seal_of(bytes: &[u8]) -> Seal {
    let mut seal = [0; SEAL_LEN];
    seal.copy_from_slice(&bytes[bytes.len() - SEAL_LEN..]);
    seal
}

/// `at`, or the next beginning of a block after it.
fn next_block(at: usize) -> usize {
    at.next_multiple_of(BLOCK)
}

/// An open journal.
pub(crate) struct Journal {
    file: StoredFile,
    key: [u8; 32],
    summary: Summary,
    contents: JournalContents,
    /// Where the first commit is.
    first: usize,
    /// Where the next commit goes.
    pub(super) tail: usize,
    /// Where the room of the file ends.
    room: usize,
    /// Whether each commit is there twice, with zeros after the last.
    pub(super) sound: bool,
    /// Whether there are remains of a commit that was begun and never done.
    remains: bool,
}

impl Journal {
    /// Begins a journal without entries in the empty `file`, for the generation whose header is
    /// `generation`. Durable on return, except for the file's name.
    pub(crate) fn create(file: StoredFile, generation: &Header) -> Result<Self> {
        let Header { label: Label { lineage, number, version, .. }, len, digest } = *generation;
        let summary = Summary {
            lineage,
            generation: number,
            generation_len: len,
            generation_digest: digest,
            prepared_for: version,
            version,
            place: [0; 32],
            reserved: 0,
            commits: 0,
            written: 0,
            seal: [0; SEAL_LEN],
            ended: None,
            anchor_changed: 0,
        };
        Self::begin(file, summary, JournalContents::default(), ROOM)
    }

    /// Begins a journal with the useful contents of this one, to take its place, with room for
    /// `entries`.
    pub(crate) fn renewed(&self, file: StoredFile, entries: &[Entry<'_>]) -> Result<Self> {
        let room = MOST_ROOM.min(2 * self.room.saturating_sub(self.first));
        let room = room.max(3 * self.contents.len as usize).max(places(0, entries).1);
        Self::begin(file, self.summary.clone(), self.contents.clone(), room.max(ROOM))
    }

    fn begin(
        file: StoredFile,
        mut summary: Summary,
        contents: JournalContents,
        room: usize,
    ) -> Result<Self> {
        summary.place = file.place()?;
        summary.written = file.now();
        let changes = contents.changes.iter().map(|change| Entry::Change(change));
        let unfinished =
            contents.unfinished.iter().map(|(id, record)| Entry::Unfinished(*id, record));
        let ended = summary.ended.iter().map(|why| Entry::Ended(why));
        let entries: Vec<_> = changes.chain(unfinished).chain(ended).collect();

        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend(summary.lineage);
        head.extend(summary.generation.to_le_bytes());
        head.extend(summary.generation_len.to_le_bytes());
        head.extend(summary.generation_digest);
        summary.prepared_for.put(&mut head);
        summary.version.put(&mut head);
        head.extend(summary.place);
        for number in [summary.reserved, summary.commits, summary.written] {
            head.extend(number.to_le_bytes());
        }
        let key = summary.key();
        let bytes = Entry::seal(&entries, &key, &head);
        summary.seal = seal_of(&bytes);
        let tail = next_block(bytes.len());
        let room = tail + room;
        file.write_at(0, &bytes)?;
        file.zero(bytes.len() as u64, room as u64)?;
        file.sync()?;
        let (first, sound, remains) = (tail, true, false);
        Ok(Self { file, key, summary, contents, first, tail, room, sound, remains })
    }

    /// Opens the journal that `anchor` names, also after a crash, and checks all of it. What it
    /// then contains is durable. Writes nothing.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is damaged, belongs to other
    /// hints, or lacks commits that were counted.
    pub(crate) fn open(file: StoredFile, anchor: &Anchor) -> Result<Self> {
        // A killed process may have left its writes unsynced.
        file.sync()?;
        let bytes = file.read_part(0, file.len()?)?;
        Self::replay(file.clone(), &bytes, anchor).map_err(|error| file.blame(error))
    }

    fn replay(file: StoredFile, bytes: &[u8], anchor: &Anchor) -> Result<Self> {
        let mut reader = Reader::new("its beginning", bytes);
        let version = files::format_version(&mut reader, MAGIC, WITHOUT_TIME..=VERSION)?;
        let mut summary = Summary {
            lineage: reader.array()?,
            generation: reader.u64()?,
            generation_len: reader.u64()?,
            generation_digest: reader.array()?,
            prepared_for: Version::read(&mut reader)?,
            version: Version::read(&mut reader)?,
            place: reader.array()?,
            reserved: reader.u64()?,
            commits: reader.u64()?,
            written: reader.u64()?,
            seal: [0; SEAL_LEN],
            ended: None,
            anchor_changed: 0,
        };
        let entries = sized(&mut reader)?;
        let sealed = bytes.len() - reader.remaining();
        summary.seal = reader.array()?;
        let key = summary.key();
        if sealed_with(&key, &bytes[..sealed]) != summary.seal {
            return Err(Error::corrupted("its beginning is damaged"));
        }
        if (summary.lineage, summary.generation) != (anchor.lineage, anchor.generation) {
            return Err(Error::corrupted("it belongs to other hints"));
        }
        if summary.commits > anchor.commits {
            return Err(Error::corrupted("it has more changes than were counted"));
        }
        let mut contents = JournalContents::default();
        apply(entries, &mut summary, &mut contents)?;
        let first = next_block(sealed + SEAL_LEN);
        let (mut tail, mut sound) = (first, version == VERSION);
        loop {
            if summary.commits == anchor.commits && summary.seal != anchor.seal {
                return Err(Error::corrupted("it is not as it was left"));
            }
            let Some((place, commit)) = Commit::find(&key, bytes, tail) else { break };
            let second = next_block(tail + commit.bytes.len());
            let is_next = (commit.number, commit.before) == (summary.commits + 1, summary.seal);
            if !is_next || (place != tail && place != second) {
                return Err(Error::corrupted("its changes are not in their order"));
            }
            apply(commit.entries, &mut summary, &mut contents)?;
            Commit { number: summary.commits, written: summary.written, seal: summary.seal, .. } =
                commit;
            let end = second + commit.bytes.len();
            sound &= bytes.get(tail..).is_some_and(|rest| rest.starts_with(commit.bytes));
            sound &= bytes.get(second..end) == Some(commit.bytes);
            tail = end;
        }
        if summary.commits < anchor.commits {
            return Err(Error::corrupted("it has lost its last changes"));
        }
        let remains = bytes.iter().skip(tail).any(|byte| *byte != 0);
        sound &= !remains;
        let room = bytes.len();
        Ok(Self { file, key, summary, contents, first, tail, room, sound, remains })
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// How many reservations are unfinished.
    pub(crate) fn unfinished(&self) -> u64 {
        self.contents.unfinished.len() as u64
    }

    pub(crate) fn is_unfinished(&self, id: ReservationId) -> bool {
        self.contents.unfinished.contains_key(&id.0)
    }

    /// All changes, and the unfinished reservations: their records are [read](JournalReader) in the
    /// same order.
    pub(crate) fn load(&self) -> (Vec<Secret>, Vec<ReservationId>) {
        let ids = self.contents.unfinished.keys().map(|id| ReservationId(*id));
        (self.contents.changes.clone(), ids.collect())
    }

    /// Whether it lies where it was created, and only Privet wrote to it.
    pub(crate) fn is_original(&self) -> Result<bool> {
        is_untouched(&self.file, &self.summary.place, self.summary.written)
    }

    /// When this file was changed last; 0: unknown.
    pub(crate) fn changed(&self) -> Result<u64> {
        changed(&self.file)
    }

    /// Whether this file and the anchor agree on when the other was changed last.
    ///
    /// If the anchor has counted all commits, it was written last; if not, the journal was, and the
    /// process was killed. Remains of a commit, or of a slot of the anchor, explain a later change:
    /// the process was killed while it wrote.
    pub(crate) fn agrees_with(&self, anchor: &AnchorFile) -> Result<bool> {
        let Anchor { commits, journal_changed, .. } = *anchor.anchor();
        Ok(match commits == self.summary.commits {
            true => self.remains || !contradicts(self.changed()?, journal_changed),
            false => !anchor.contradicts(self.summary.anchor_changed)?,
        })
    }

    /// Whether another file must take its place before `entries` are appended.
    pub(crate) fn is_worn(&self, entries: &[Entry<'_>]) -> bool {
        !self.sound || places(self.tail, entries).1 > self.room
    }

    /// Appends `entries`, for which there must be room, all or nothing. Durable on return. After a
    /// failure nothing more may be appended.
    pub(crate) fn commit(&mut self, entries: &[Entry<'_>]) -> Result<()> {
        let number = self.summary.commits + 1;
        let written = self.file.now();
        let mut head = number.to_le_bytes().to_vec();
        head.extend(written.to_le_bytes());
        head.extend(self.summary.seal);
        let bytes = Entry::seal(entries, &self.key, &head);
        let (second, end) = places(self.tail, entries);
        self.file.write_at(self.tail as u64, &bytes)?;
        self.file.write_at(second as u64, &bytes)?;
        self.file.sync()?;
        let entries = &bytes[HEAD_LEN..bytes.len() - SEAL_LEN];
        apply(entries, &mut self.summary, &mut self.contents)?;
        (self.summary.commits, self.summary.written) = (number, written);
        (self.summary.seal, self.tail) = (seal_of(&bytes), end);
        Ok(())
    }
}

/// Where the second copy of a commit begins if the first begins at `at`, and where it ends.
fn places(at: usize, entries: &[Entry<'_>]) -> (usize, usize) {
    let len = HEAD_LEN + entries.iter().map(Entry::len).sum::<usize>() + SEAL_LEN;
    let second = next_block(at + len);
    (second, second + len)
}

impl JournalReader for Journal {
    fn records(&mut self) -> Result<Vec<Secret>> {
        Ok(self.contents.unfinished.values().cloned().collect())
    }
}
