//! The anchor: a small file that decides everything about a table's single-use hints.
//!
//! The process that holds the hints locks it. It says which generation is in use, which file has
//! its journal and how many commits that has at least. It also records where it was created. It has
//! two slots, written in turn, each synced before anything relies on it:
//!
//! ```text
//! slot 0 at 0, slot 1 at 4096:
//!     magic "privethk" ‖ version u32 ‖ sequence u64 ‖ written (ms since 1970) u64 ‖ lineage 16 ‖ place 32 ‖
//!     the version where the hints stand: table id 16 ‖ epoch u64 ‖ table digest 32 ‖
//!     records u64 ‖ bytes of a record u64 ‖ parameter digest 32 ‖
//!     servers 32 ‖ generation u64 ‖ journal u64 ‖ commits u64 ‖ seal of the last of them 32 ‖
//!     when the journal's file was changed last (ms since 1970) u64 ‖ BLAKE3 of all that 32
//! ```
//!
//! Version 4, which is still read, lacks the last of these fields.
//!
//! The valid slot with the larger sequence counts. If a crash comes while one slot is written, the
//! other is still there.
//!
//! **Why count commits outside the journal.** An older journal in place of the last one looks
//! whole, and so does one that was cut off after a commit. Both would return the hints to a state
//! in which a used hint is unused. So a journal with fewer commits than were counted is damaged. If
//! it has more, these were committed since. Then the journal also says where the hints stand, and
//! they are counted before anything else.
//!
//! **Why not at each commit.** That would cost a second sync. A write without a sync would do harm:
//! the system may keep the time of the write and lose its bytes, and then the file looks as if
//! another program had changed it. Between two counts, the [journal](super::journal) itself
//! guarantees its commits.
//!
//! **Each file records when the other last changed.** The anchor does when it is written, and the
//! journal with each commit. Whichever was written last is right about the other, as long as only
//! Privet writes to them ([`contradicts`]). A file that is put back contradicts that at once, also
//! if both are put back, unless the clock of the file system was set back. Both times come from
//! that one clock, so clocks that differ do no harm. A crash may lose a time, but then the file
//! seems older.

use super::version::Version;
use crate::disk::Times;
use crate::state::HintsKey;
use crate::store::files::{self, StoredFile};
use privet_core::codec::Reader;
use privet_core::{Blame, Error, Reason, Result};

const MAGIC: &[u8; 8] = b"privethk";
const VERSION: u32 = 5;
/// The last version without the journal's time.
const WITHOUT_TIME: u32 = 4;
/// On different pages of the file, so that no write can tear both.
pub(super) const SLOTS: [u64; 2] = [0, 4096];
const CHECKSUM_LEN: usize = 32;
pub(super) const SLOT_LEN: usize =
    8 + 4 + 8 + 8 + 16 + 32 + Version::LEN + 32 + 8 + 8 + 8 + 32 + 8 + CHECKSUM_LEN;

/// The file system's clock may differ from this machine's by this much.
const CHANGE_TOLERANCE_MS: u64 = 60_000;

/// Both times of a file come from one clock. A file system may round them by this much.
const ROUNDING_MS: u64 = 2_000;

/// A random name for one line of generations: it ties all files to their anchor, and changes when
/// everything is erased.
pub(crate) type Lineage = [u8; 16];

/// The contents of an anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// When this was written, in milliseconds since 1970 by the system's clock.
    pub(crate) written: u64,
    pub(crate) lineage: Lineage,
    /// Where the anchor was created: see [`Medium::place`].
    pub(crate) place: [u8; 32],
    /// The version where the hints stand.
    pub(crate) version: Version,
    /// See [`HintsKey::servers`].
    pub(crate) servers: [u8; 32],
    /// The generation in use; 0 before the first.
    pub(crate) generation: u64,
    /// The number of its journal's file that is in use.
    pub(crate) journal: u64,
    /// How many commits of its journal were counted.
    pub(crate) commits: u64,
    /// The seal of the last counted commit.
    pub(crate) seal: [u8; 32],
    /// When the journal's file had been changed last, by the file system's clock; 0: unknown.
    pub(crate) journal_changed: u64,
}

impl Anchor {
    pub(crate) fn new(key: &HintsKey, lineage: Lineage, place: [u8; 32]) -> Self {
        Self {
            written: 0,
            lineage,
            place,
            version: Version::of(key),
            servers: key.servers,
            generation: 0,
            journal: 0,
            commits: 0,
            seal: [0; 32],
            journal_changed: 0,
        }
    }

    pub(super) fn encode(&self, sequence: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SLOT_LEN);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(self.written.to_le_bytes());
        bytes.extend(self.lineage);
        bytes.extend(self.place);
        self.version.put(&mut bytes);
        bytes.extend(self.servers);
        for number in [self.generation, self.journal, self.commits] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.seal);
        bytes.extend(self.journal_changed.to_le_bytes());
        let checksum = blake3::hash(&bytes);
        bytes.extend(checksum.as_bytes());
        bytes
    }

    /// `bytes`: the slot, and perhaps what is behind it.
    fn decode(bytes: &[u8]) -> Result<(u64, Self)> {
        let len = match version_of(bytes) {
            Some(WITHOUT_TIME) => SLOT_LEN - 8,
            _ => SLOT_LEN,
        };
        let bytes = bytes.get(..len).ok_or_else(|| Error::corrupted("it is too short"))?;
        let (fields, checksum) = bytes.split_at(len - CHECKSUM_LEN);
        if blake3::hash(fields).as_bytes() != checksum {
            return Err(Error::corrupted("it is damaged"));
        }
        let mut reader = Reader::new("the anchor", fields);
        let version = files::format_version(&mut reader, MAGIC, 0..=u32::MAX)?;
        if !(WITHOUT_TIME..=VERSION).contains(&version) {
            return Err(other_format(version));
        }
        let sequence = reader.u64()?;
        let anchor = Self {
            written: reader.u64()?,
            lineage: reader.array()?,
            place: reader.array()?,
            version: Version::read(&mut reader)?,
            servers: reader.array()?,
            generation: reader.u64()?,
            journal: reader.u64()?,
            commits: reader.u64()?,
            seal: reader.array()?,
            journal_changed: if version == WITHOUT_TIME { 0 } else { reader.u64()? },
        };
        reader.finish()?;
        Ok((sequence, anchor))
    }
}

/// The anchor in its file. While this value lives, the file is locked.
#[derive(Debug)]
pub(crate) struct AnchorFile {
    file: StoredFile,
    anchor: Anchor,
    sequence: u64,
    slot: usize,
    /// Whether there are remains of a write that was begun and never done.
    remains: bool,
}

impl AnchorFile {
    /// Writes a first anchor, in both slots.
    pub(crate) fn begin(file: StoredFile, anchor: Anchor) -> Result<Self> {
        // If an older line of generations was here, its slots must not count any more.
        let older = read_slots(&file)?.newest;
        let (sequence, slot) = older.map_or((0, 1), |(sequence, slot, _)| (sequence, slot));
        let mut begun = Self { file, anchor: anchor.clone(), sequence, slot, remains: false };
        begun.write_twice(anchor)?;
        Ok(begun)
    }

    /// Reads the anchor.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if neither slot is valid.
    pub(crate) fn read(file: StoredFile) -> Result<Self> {
        let Slots { newest, remains } = read_slots(&file)?;
        let (sequence, slot, anchor) = newest.ok_or_else(|| Error::corrupted("it is damaged"))?;
        Ok(Self { file, anchor, sequence, slot, remains })
    }

    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    pub(crate) fn file(&self) -> StoredFile {
        self.file.clone()
    }

    /// Whether these hints lie where they were created, and only Privet wrote to this file.
    pub(crate) fn is_original(&self) -> Result<bool> {
        is_untouched(&self.file, &self.anchor.place, self.anchor.written)
    }

    /// When this file was changed last; 0: unknown.
    pub(crate) fn changed(&self) -> Result<u64> {
        changed(&self.file)
    }

    /// Whether this file contradicts the journal, which `told` when it was changed last and was
    /// written later. Remains of a write explain a later change.
    pub(super) fn contradicts(&self, told: u64) -> Result<bool> {
        Ok(!self.remains && contradicts(self.changed()?, told))
    }

    /// Replaces the anchor by `anchor`. Durable on return.
    pub(crate) fn write(&mut self, anchor: Anchor) -> Result<()> {
        let anchor = Anchor { written: self.file.now(), ..anchor };
        let (slot, sequence) = (1 - self.slot, self.sequence + 1);
        self.file.write_at(SLOTS[slot], &anchor.encode(sequence))?;
        self.file.sync()?;
        (self.slot, self.sequence, self.anchor) = (slot, sequence, anchor);
        Ok(())
    }

    /// The same in both slots: for a step after which the earlier slot would lead to removed files.
    pub(crate) fn write_twice(&mut self, anchor: Anchor) -> Result<()> {
        self.write(anchor.clone())?;
        self.write(anchor)
    }
}

/// Whether a file that was created at `place` and last written at `written` still lies there, and
/// only Privet wrote to it:
///
/// - A copy lies elsewhere.
/// - If a backup was restored into this very file, the file was changed later than it says it was
///   written.
/// - Where birth times are not kept: a tool that copies a file with its times (an archive, or a
///   container's file system that copies up a file of its image) leaves a file whose last write is
///   older than its last change. A write by Privet sets both times at once.
pub(super) fn is_untouched(file: &StoredFile, place: &[u8; 32], written: u64) -> Result<bool> {
    let (now_at, times) = (file.place()?, file.times()?);
    let latest = written.saturating_add(CHANGE_TOLERANCE_MS);
    let by_us = |Times { changed, written }| {
        let copied = written.is_some_and(|at| changed > at.saturating_add(ROUNDING_MS));
        changed <= latest && !copied
    };
    Ok(now_at == *place && times.is_none_or(by_us))
}

/// When a file was changed last, in milliseconds since 1970 by the file system's clock; 0: unknown.
pub(super) fn changed(file: &StoredFile) -> Result<u64> {
    Ok(file.times()?.map_or(0, |times| times.changed))
}

/// Whether a file that was changed last at `changed` contradicts the other, which `told` when that
/// was and was written later. A time that was lost in a crash, or that a file system rounds when it
/// stores it, is earlier. No program can set this time: it follows from the file system's clock.
pub(super) fn contradicts(changed: u64, told: u64) -> bool {
    told != 0 && changed > told
}

fn other_format(version: u32) -> Error {
    let said = format!(
        "it has format version {version}, this program knows version {VERSION}; use the version of Privet that wrote it"
    );
    match version < WITHOUT_TIME {
        true => Error::unavailable(format!(
            "{said}, or have new hints prepared at the next use: erase these"
        ))
        .because(Reason::HintsUnusable),
        false => Error::unavailable(said),
    }
}

/// The format's version, if a slot begins like one.
fn version_of(bytes: &[u8]) -> Option<u32> {
    let mut reader = Reader::new("the anchor", bytes);
    let is_ours = reader.array::<8>().is_ok_and(|magic| magic == *MAGIC);
    reader.u32().ok().filter(|_| is_ours)
}

/// The version of a format that is not read any more. This program does not know where the checksum
/// lies in it.
fn older_format(bytes: &[u8]) -> Option<u32> {
    version_of(bytes).filter(|version| (1..WITHOUT_TIME).contains(version))
}

/// What the slots contain.
struct Slots {
    /// The newest valid slot: sequence, slot, contents.
    newest: Option<(u64, usize, Anchor)>,
    /// Whether a slot has something else in it.
    remains: bool,
}

fn read_slots(file: &StoredFile) -> Result<Slots> {
    let mut newest: Option<(u64, usize, Anchor)> = None;
    let (mut older, mut remains) = (None, false);
    let len = file.len()?;
    for (slot, at) in SLOTS.into_iter().enumerate() {
        let there = len.saturating_sub(at).min(SLOT_LEN as u64);
        if there == 0 {
            continue;
        }
        let mut bytes = vec![0; there as usize];
        file.read_at(at, &mut bytes)?;
        let (sequence, anchor) = match Anchor::decode(&bytes) {
            Ok(decoded) => decoded,
            // Not damage: a newer version of Privet wrote this.
            Err(error) if error.blame() == Blame::Unavailable => return Err(file.blame(error)),
            Err(_) => {
                older = older.or(older_format(&bytes));
                remains |= bytes.iter().any(|byte| *byte != 0);
                continue;
            }
        };
        if newest.as_ref().is_none_or(|(other, ..)| sequence > *other) {
            newest = Some((sequence, slot, anchor));
        }
    }
    match older {
        Some(version) if newest.is_none() => Err(file.blame(other_format(version))),
        _ => Ok(Slots { newest, remains }),
    }
}
