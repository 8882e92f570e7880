//! Setting and deleting single keys in a finished table.
//!
//! An editor has the key map and reads records by their number. It needs neither the keys of the
//! table nor its other records. It collects what changes, and the caller writes it: records by
//! their number, and a new key map if the stash changed.
//!
//! # Where an entry goes
//!
//! A value has an entry for each of its [pieces](super::pieces), most often one. The entries of the
//! old value are taken out. Then, for each new entry:
//!
//! 1. If the key had this entry in a record and the new one fits there, it stays in that record.
//! 2. Otherwise the entry goes to the roomier of the key's candidates, or takes a place that a path
//!    of other entries makes free, in the way in which the builder makes room ([`path`]). Only a
//!    cuckoo map has such paths.
//! 3. Otherwise it goes to the stash, within these limits: one entry for each 16 keys that the
//!    table was built with (for a small table 16, but no more than it had keys), times the number
//!    of parts, and 64 KiB or a fiftieth of the bytes of its entries, whichever is more. Every
//!    client downloads the stash, and downloads it again when it changes.
//! 4. Otherwise the table is full, the operation is refused, and nothing has changed.
//!
//! The entries of one value are set together or not at all.
//!
//! # All keys at once
//!
//! An editor does not know which keys the table has. But whoever knows all keys that it is to have
//! knows all their tags. Every other entry goes: [`sweep`](Editor::sweep) looks for them, record by
//! record.
//!
//! A key in the stash goes back to a record when it is set again and there is room by then. An
//! entry that is longer than a record goes to the stash at once, within the same limits.
//!
//! # Keys that share a tag
//!
//! Tags stand for keys. A builder that finds two keys with the same tag draws another seed; an
//! editor cannot, nor can it find out. If a new key has the tag of an entry in one of its
//! candidates or in the stash, it is taken for that entry's key, and replaces its value. For one
//! new key this has a probability of at most 2^-64 for each of these entries. A key that goes to
//! the stash hides, with the same probability for each entry of the table, a key of the same tag
//! that lies in a record.

use super::hash::KeyHash;
use super::key_form::no_such_range;
use super::path::{self, Lying, Move, make_room};
use super::placement::STASH_BYTES;
use super::{KeyMap, encode_list, encoding, entry};
use crate::edit::Written;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Reason, Result};
use std::collections::BTreeMap;
use std::mem;

/// What an operation found, and so what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The key was not there and is now.
    Inserted,
    /// The key was there and has the new value, which may equal the old one.
    Replaced,
    /// The key was there and is gone.
    Deleted,
    /// The key to be deleted was not there.
    Absent,
}

/// Sets and deletes keys of a table; each operation sees what the ones before it did. Holds the
/// records that have changed, and during an operation up to a few hundred others.
///
/// `read` gives the record with a number in `[0, buckets())`, as it was before the first operation:
/// exactly [`record_len`](KeyMap::record_len) bytes. (Records of an authenticated table are longer,
/// because their paths follow them.)
///
/// ```
/// use privet_core::PublicSeed;
/// use privet_table::key_map::{Editor, Effect, KeyMapKind, pack_as};
///
/// let pairs: Vec<(String, &[u8])> = (0..100).map(|i| (format!("key {i}"), &b"old"[..])).collect();
/// // A real seed is drawn at random when the keys are known.
/// let packed = pack_as(KeyMapKind::Cuckoo, &pairs[..], PublicSeed::from_bytes([7; 32]))?;
/// let key_map = packed.key_map();
///
/// let mut editor = Editor::new(key_map, |number| {
///     let mut record = Vec::new();
///     packed.write_record(&pairs[..], number, &mut record);
///     Ok(record)
/// });
/// assert_eq!(editor.set(b"key 7", b"new")?, Effect::Replaced);
/// assert_eq!(editor.delete(b"key 8")?, Effect::Deleted);
/// let (records, key_map) = editor.finish()?;
/// assert!(records.len() <= 2 && key_map.is_none());
/// # Ok::<(), privet_core::Error>(())
/// ```
pub struct Editor<'a, R> {
    key_map: &'a KeyMap,
    read: R,
    stash: BTreeMap<u64, Vec<u8>>,
    changed: BTreeMap<u64, RecordEntries>,
}

impl<'a, R: FnMut(u64) -> Result<Vec<u8>>> Editor<'a, R> {
    /// An editor of the table that `key_map` describes and `read` reads.
    pub fn new(key_map: &'a KeyMap, read: R) -> Self {
        Self {
            key_map,
            read,
            stash: key_map.stash.iter().cloned().collect(),
            changed: BTreeMap::new(),
        }
    }

    /// Gives `key` the value `value`, whether the table has the key or not. In a table of
    /// [lists](KeyMap::has_lists) it is the key's only value then.
    ///
    /// # Errors
    /// The operation has then changed nothing.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the value is too long for the
    ///   table's records and there is no room in the stash, if no range of a table of ranges holds
    ///   the key, if its ranges were nested ([`Reason::RangesNested`]), or if `read` gave a record
    ///   of another length.
    /// - [`Blame::Exhausted`](privet_core::Blame::Exhausted), with figures, if the table is full.
    /// - [`Blame::Corrupted`](privet_core::Blame::Corrupted) if a record is malformed.
    /// - Whatever `read` fails with.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<Effect> {
        match self.key_map.lists {
            true => self.put(key, &encode_list([value])),
            false => self.put(key, value),
        }
    }

    /// Gives `key` these values, in this order, and no others.
    ///
    /// # Errors
    /// As [`set`](Editor::set), and [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there
    /// are none, or several in a table without [lists](KeyMap::has_lists).
    pub fn set_all<V: AsRef<[u8]>>(&mut self, key: &[u8], values: &[V]) -> Result<Effect> {
        match (self.key_map.lists, values) {
            (_, []) => Err(Error::api_misuse("a key has at least one value; delete it instead")),
            (true, _) => self.put(key, &encode_list(values)),
            (false, [value]) => self.put(key, value.as_ref()),
            (false, _) => Err(Error::api_misuse(format!(
                "{} values for one key, in a table whose keys have one each; build it with several",
                values.len()
            ))
            .because(Reason::OneValueForEachKey)),
        }
    }

    /// Sets what the table has for a key.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Effect> {
        let key_map = self.key_map;
        key_map.key_form.check_edited_alone()?;
        if !key_map.key_form.has_place_for(key) {
            return Err(no_such_range());
        }
        self.put_hashed(&key_map.hashes_of(key).collect::<Vec<_>>(), value)
    }

    fn put_hashed(&mut self, hashes: &[KeyHash], value: &[u8]) -> Result<Effect> {
        let key_map = self.key_map;
        if value.len() as u64 > MAX_RECORD_LEN {
            return Err(Error::api_misuse(format!(
                "a value of {} bytes is too long; the limit is {MAX_RECORD_LEN}",
                value.len()
            )));
        }
        let mut operation = Operation::new(self);
        let (mut homes, mut was_there) = (Vec::new(), false);
        for hash in hashes {
            let (home, was_in_stash) = operation.take_out(hash)?;
            was_there |= home.is_some() || was_in_stash;
            homes.push(home);
        }
        for (piece, (hash, home)) in
            hashes.iter().zip(homes).take(key_map.parts.pieces(value.len())).enumerate()
        {
            operation.put_in(hash, home, &key_map.parts.payload(value, piece))?;
        }
        operation.keep();
        Ok(if was_there { Effect::Replaced } else { Effect::Inserted })
    }

    /// Removes `key` and all that the table has for it, if it has the key.
    ///
    /// # Errors
    /// As [`set`](Editor::set), except that there is always room.
    pub fn delete(&mut self, key: &[u8]) -> Result<Effect> {
        self.key_map.key_form.check_edited_alone()?;
        let hashes = self.key_map.hashes_of(key);
        let mut operation = Operation::new(self);
        let mut was_there = false;
        for hash in hashes {
            let (home, was_in_stash) = operation.take_out(&hash)?;
            was_there |= home.is_some() || was_in_stash;
        }
        operation.keep();
        Ok(if was_there { Effect::Deleted } else { Effect::Absent })
    }

    /// The result of all operations together: by their numbers, the records that are no longer what
    /// they were, each [`record_len`](KeyMap::record_len) bytes long; and the new key map, if its
    /// stash changed. They belong together: a reader needs both the new ones or both the old ones.
    ///
    /// # Errors
    /// Whatever `read` fails with.
    pub fn finish(mut self) -> Result<(Written, Option<KeyMap>)> {
        let mut records = Written::new();
        for (number, contents) in mem::take(&mut self.changed) {
            let record = contents.write(self.key_map.record_len());
            if record != (self.read)(number)? {
                records.insert(number, record);
            }
        }
        let stash: Vec<(u64, Vec<u8>)> = self.stash.into_iter().collect();
        let key_map = (stash != self.key_map.stash).then(|| KeyMap {
            stash,
            rule: self.key_map.rule.clone(),
            key_form: self.key_map.key_form.clone(),
            ..*self.key_map
        });
        Ok((records, key_map))
    }
}

/// How what a table has for a key compares with a value.
#[cfg(feature = "files")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It does not have the key.
    Nothing,
    /// It has this very value.
    Same {
        /// At least a piece of it lies in the stash.
        in_stash: bool,
    },
    /// It has another value, of this length in bytes.
    Other(usize),
}

/// What it takes to give a table all of its keys. Keys are those that are hashed: whoever calls
/// this has brought them to the table's [`KeyForm`](super::KeyForm).
#[cfg(feature = "files")]
impl<R: FnMut(u64) -> Result<Vec<u8>>> Editor<'_, R> {
    /// As [`set`](Editor::set), for a value as it is stored: in a table of lists, a list.
    ///
    /// # Errors
    /// As [`set`](Editor::set).
    pub(crate) fn put_formed(&mut self, key: &[u8], value: &[u8]) -> Result<Effect> {
        self.put_hashed(&self.key_map.hashes_of_formed(key).collect::<Vec<_>>(), value)
    }

    /// Compares what the table has for `key` with `value`, in the form in which it is stored.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if a record is malformed; whatever
    /// `read` fails with.
    pub(crate) fn compare(&mut self, key: &[u8], value: &[u8]) -> Result<Held> {
        let parts = self.key_map.parts;
        let pieces = parts.pieces(value.len());
        let (mut len, mut same, mut in_stash) = (None, true, false);
        for (piece, hash) in self.key_map.hashes_of_formed(key).enumerate() {
            let due = (piece < pieces).then(|| parts.payload(value, piece));
            let found = self.with_entry(&hash, |payload, lies_in_stash| {
                in_stash |= lies_in_stash;
                *len.get_or_insert(0) += payload.len();
                due.as_deref() == Some(payload)
            })?;
            same &= found.unwrap_or(due.is_none());
        }
        Ok(match len {
            None => Held::Nothing,
            Some(_) if same => Held::Same { in_stash },
            Some(len) => Held::Other(len),
        })
    }

    /// Shows `look` what the table has under a hash, and whether that lies in the stash.
    fn with_entry<T>(
        &mut self,
        hash: &KeyHash,
        look: impl FnOnce(&[u8], bool) -> T,
    ) -> Result<Option<T>> {
        if let Some(payload) = self.stash.get(&hash.tag) {
            return Ok(Some(look(payload, true)));
        }
        for record in self.key_map.candidates_of(hash) {
            match self.changed.get(&record) {
                Some(contents) => {
                    if let Some(position) = contents.position(hash.tag) {
                        return Ok(Some(look(&contents.entries[position].1, false)));
                    }
                }
                None => {
                    let bytes = (self.read)(record)?;
                    let found = entry::find_entry(&bytes, hash.tag);
                    if let Some(payload) = found.map_err(|error| damaged().caused_by(error))? {
                        return Ok(Some(look(payload, false)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Removes the entries of a record whose tags are not among those that `keep` knows. Returns
    /// how many there were.
    ///
    /// # Errors
    /// As [`compare`](Self::compare).
    pub(crate) fn sweep(&mut self, record: u64, keep: impl Fn(u64) -> bool) -> Result<u64> {
        let mut contents = match self.changed.get(&record) {
            Some(contents) => contents.clone(),
            None => {
                // Most records lose nothing, and need not be taken apart.
                let bytes = (self.read)(record)?;
                let mut stays = true;
                entry::for_each_entry(&bytes, |tag, _| stays &= keep(tag))
                    .map_err(|error| damaged().caused_by(error))?;
                if stays {
                    return Ok(0);
                }
                RecordEntries::read(&bytes, self.key_map.record_len())?
            }
        };
        let before = contents.entries.len();
        contents.entries.retain(|(tag, _)| keep(*tag));
        let removed = before - contents.entries.len();
        if removed > 0 {
            let lens = contents.entries.iter().map(|(_, value)| entry::entry_len(value.len()));
            contents.load = lens.sum();
            self.changed.insert(record, contents);
        }
        Ok(removed as u64)
    }

    /// Does the same to the stash.
    pub(crate) fn sweep_stash(&mut self, keep: impl Fn(u64) -> bool) -> u64 {
        let before = self.stash.len();
        self.stash.retain(|tag, _| keep(*tag));
        (before - self.stash.len()) as u64
    }

    /// How many records may have changed so far.
    pub(crate) fn touched(&self) -> u64 {
        self.changed.len() as u64
    }
}

/// The error for an entry of `len` bytes that fits neither into a record nor into the stash.
fn too_long(len: u64, record_len: u64) -> Error {
    Error::api_misuse(format!(
        "a value takes {len} bytes, more than the {record_len} bytes of a record, and the stash \
         has no room for it; shorten the value, or build the table anew with it"
    ))
    .because(Reason::DoesNotFit)
}

/// How many entries an editor lets the stash have, and how many bytes: see the module.
pub(super) fn stash_limits(key_map: &KeyMap) -> (u64, u64) {
    let most_values = (key_map.keys / 16).max(key_map.keys.min(16));
    (most_values.saturating_mul(key_map.parts() as u64), STASH_BYTES.max(key_map.entry_bytes / 50))
}

/// One operation under way: what it has read and perhaps changed. If it is dropped, the editor
/// stays as it was.
struct Operation<'e, 'a, R> {
    editor: &'e mut Editor<'a, R>,
    open: BTreeMap<u64, OpenRecord>,
    /// What becomes of entries of the stash, by their tag.
    stash: BTreeMap<u64, Option<Vec<u8>>>,
}

struct OpenRecord {
    contents: RecordEntries,
    is_changed: bool,
}

impl<'e, 'a, R: FnMut(u64) -> Result<Vec<u8>>> Operation<'e, 'a, R> {
    fn new(editor: &'e mut Editor<'a, R>) -> Self {
        Self { editor, open: BTreeMap::new(), stash: BTreeMap::new() }
    }

    /// What a record holds at this point of the operation.
    fn contents(&mut self, record: u64) -> Result<&mut OpenRecord> {
        use std::collections::btree_map::Entry;
        match self.open.entry(record) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => {
                let contents = match self.editor.changed.get(&record) {
                    Some(contents) => contents.clone(),
                    None => {
                        let bytes = (self.editor.read)(record)?;
                        RecordEntries::read(&bytes, self.editor.key_map.record_len())?
                    }
                };
                Ok(place.insert(OpenRecord { contents, is_changed: false }))
            }
        }
    }

    /// Removes an entry from its candidates and from the stash, and says in which record it was,
    /// and whether it was in the stash.
    fn take_out(&mut self, hash: &KeyHash) -> Result<(Option<u64>, bool)> {
        let mut home = None;
        for record in self.editor.key_map.candidates_of(hash) {
            let open = self.contents(record)?;
            if let Some(position) = open.contents.position(hash.tag) {
                open.contents.remove(position);
                open.is_changed = true;
                home = home.or(Some(record));
            }
        }
        let was_in_stash = self.editor.stash.contains_key(&hash.tag);
        if was_in_stash {
            self.stash.insert(hash.tag, None);
        }
        Ok((home, was_in_stash))
    }

    /// Finds a place for an entry. `home` is the record in which it was; `None` if it was in none
    /// of its candidates.
    fn put_in(&mut self, hash: &KeyHash, home: Option<u64>, payload: &[u8]) -> Result<()> {
        let len = entry::entry_len(payload.len());
        let record_len = self.editor.key_map.record_len();
        let candidates: Vec<u64> = self.editor.key_map.candidates_of(hash).collect();
        let moves = match home {
            _ if len > record_len => None,
            Some(home) if self.has_room(home, len)? => Some(vec![Move { from: None, to: home }]),
            _ => make_room(self, &candidates, len)?,
        };
        match moves {
            Some(moves) => self.make(&moves, hash.tag, payload),
            None => {
                let room = self.check_stash_room(payload.len());
                room.map_err(|error| match len > record_len {
                    true => too_long(len, record_len).caused_by(error),
                    false => error,
                })?;
                self.stash.insert(hash.tag, Some(payload.to_vec()));
                Ok(())
            }
        }
    }

    /// Checks that the stash may take one more entry, of `len` bytes.
    fn check_stash_room(&self, len: usize) -> Result<()> {
        let (most_entries, most_bytes) = stash_limits(self.editor.key_map);
        let stash_len = |value: &Vec<u8>| value.len() as u64 + encoding::STASH_ENTRY_OVERHEAD;
        let before = self.editor.stash.values();
        let bytes_before: u64 = before.clone().map(stash_len).sum();
        let kept = self.editor.stash.iter().filter(|(tag, _)| !self.stash.contains_key(tag));
        let now = kept.map(|(_, value)| value).chain(self.stash.values().flatten());
        let entries = now.clone().count() + 1;
        let bytes = now.map(stash_len).sum::<u64>() + len as u64 + encoding::STASH_ENTRY_OVERHEAD;

        // A builder may have filled the stash beyond these limits. What is there may stay, and
        // shrink.
        let entries_fit = entries as u64 <= most_entries || entries <= before.len();
        if entries_fit && (bytes <= most_bytes || bytes <= bytes_before) {
            return Ok(());
        }
        Err(Error::exhausted(format!(
            "the table is full: the records of this key have no room for a value of {len} bytes, and \
             neither has the stash, with {} of at most {most_entries} values in {bytes_before} \
             of at most {most_bytes} bytes; build the table anew",
            before.len(),
        ))
        .because(Reason::DoesNotFit))
    }

    fn has_room(&mut self, record: u64, len: u64) -> Result<bool> {
        Ok(self.contents(record)?.contents.load + len <= self.editor.key_map.record_len())
    }

    /// Carries out the moves that bring an entry into a record.
    fn make(&mut self, moves: &[Move], tag: u64, value: &[u8]) -> Result<()> {
        for &Move { from, to } in moves {
            let (tag, value) = match from {
                Some((record, position)) => {
                    let open = self.contents(record)?;
                    open.is_changed = true;
                    open.contents.remove(position)
                }
                None => (tag, value.to_vec()),
            };
            let open = self.contents(to)?;
            if open.contents.position(tag).is_some() {
                // Only in a damaged table does an entry lie in both of its candidates.
                return Err(damaged());
            }
            open.is_changed = true;
            open.contents.insert(tag, value);
        }
        Ok(())
    }

    /// Hands the changes to the editor.
    fn keep(self) {
        for (tag, value) in self.stash {
            match value {
                Some(value) => self.editor.stash.insert(tag, value),
                None => self.editor.stash.remove(&tag),
            };
        }
        let changed = self.open.into_iter().filter(|(_, open)| open.is_changed);
        self.editor.changed.extend(changed.map(|(record, open)| (record, open.contents)));
    }
}

impl<R: FnMut(u64) -> Result<Vec<u8>>> path::Shelf for Operation<'_, '_, R> {
    type Error = Error;

    fn width(&self) -> u64 {
        self.editor.key_map.record_len()
    }

    fn load(&mut self, record: u64) -> Result<u64> {
        Ok(self.contents(record)?.contents.load)
    }

    fn entry(&mut self, record: u64, position: usize) -> Result<Option<Lying>> {
        let entry = self.contents(record)?.contents.entries.get(position);
        let Some((tag, len)) = entry.map(|(tag, value)| (*tag, entry::entry_len(value.len())))
        else {
            return Ok(None);
        };
        Ok(Some(Lying { len, other: self.editor.key_map.other_candidate(record, tag) }))
    }
}

/// What a record holds, taken apart.
#[derive(Clone)]
struct RecordEntries {
    // In ascending order of tags, no tag twice.
    entries: Vec<(u64, Vec<u8>)>,
    /// The bytes that the entries take.
    load: u64,
}

impl RecordEntries {
    fn read(record: &[u8], record_len: u64) -> Result<Self> {
        if record.len() as u64 != record_len {
            return Err(Error::api_misuse(format!(
                "the records of this table have {record_len} bytes by its key map, and one of {} was read",
                record.len()
            )));
        }
        let (mut entries, mut load) = (Vec::new(), 0);
        entry::for_each_entry(record, |tag, value| {
            entries.push((tag, value.to_vec()));
            load += entry::entry_len(value.len());
        })
        .map_err(|error| damaged().caused_by(error))?;
        Ok(Self { entries, load })
    }

    fn position(&self, tag: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&tag, |(tag, _)| *tag).ok()
    }

    fn insert(&mut self, tag: u64, value: Vec<u8>) {
        let position = self.entries.partition_point(|(other, _)| *other < tag);
        self.load += entry::entry_len(value.len());
        self.entries.insert(position, (tag, value));
    }

    fn remove(&mut self, position: usize) -> (u64, Vec<u8>) {
        let (tag, value) = self.entries.remove(position);
        self.load -= entry::entry_len(value.len());
        (tag, value)
    }

    fn write(&self, record_len: u64) -> Vec<u8> {
        let mut record = Vec::with_capacity(record_len as usize);
        for (tag, value) in &self.entries {
            entry::write_entry(&mut record, *tag, value);
        }
        record.resize(record_len as usize, 0);
        record
    }
}

fn damaged() -> Error {
    Error::corrupted(
        "a record of the table is malformed, or the table and its key map do not belong together; build the table anew",
    )
}
