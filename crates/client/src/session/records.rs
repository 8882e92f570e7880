//! From targets to the numbers of records, and from these records to the value.
//!
//! The client verifies a record of an authenticated table before it looks at anything in it. It
//! verifies every record that a lookup fetches, whichever of them has the value. If a record fails,
//! only its lookup fails. If the session ended there, a server that spoils some records would see
//! from the missing queries whether one of them was wanted. (It may still see that from what the
//! user does next.)
//!
//! A key that the table can never have, such as `abc` in a table of addresses, is looked up like
//! any other. That it is malformed is told in place of the value, so servers do not see it.

use super::interface::Target;
use super::planted;
use super::value::Value;
use privet_core::{Blame, Error, Reason, RecordIndex, Result, SecretRng, TableShape};
use privet_table::values::Values;
use privet_table::{KeyMap, RecordLayout, TableLayout, TableRoot};
use std::borrow::Cow;
use std::hint::black_box;
use zeroize::Zeroizing;

/// What one record holds for the target: its value or a piece of it, or nothing.
pub(super) type Piece = Option<Zeroizing<Vec<u8>>>;

/// A key that is looked up, and whether the table can have such a key.
struct Key<'t> {
    bytes: Cow<'t, [u8]>,
    is_well_formed: Result<()>,
}

/// How to read the records of one table.
pub(crate) struct RecordReader {
    layout: TableLayout,
    shape: TableShape,
    servers: usize,
}

/// The contents that take longest to read, for rehearsals.
pub(super) struct Fullest {
    /// As long as a record. No server sent it, so verification fails, but runs to its end.
    served: Vec<u8>,
    /// For a table by key: a record with as many entries as possible …
    crowded: Vec<u8>,
    /// … and pieces of a value at least as long as any.
    pieces: Vec<Piece>,
}

impl RecordReader {
    /// Reads the layout that the server describes for a table of shape `shape`, which `servers`
    /// servers have.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if the bytes are not a layout
    /// for such a table.
    pub(super) fn decode(bytes: &[u8], shape: TableShape, servers: usize) -> Result<Self> {
        let layout = TableLayout::decode(bytes)?;
        layout.check_shape(shape)?;
        Ok(Self { layout, shape, servers })
    }

    /// Whether records are looked up by key, and not by number.
    pub(crate) fn is_by_key(&self) -> bool {
        matches!(self.layout.records(), RecordLayout::Keyed(_))
    }

    /// What the values are, if the table's builder knew.
    pub(crate) fn values(&self) -> Option<&Values> {
        self.layout.values()
    }

    /// The root that every record is verified against, if the table is authenticated.
    pub(super) fn root(&self) -> Option<TableRoot> {
        self.layout.root(self.shape)
    }

    /// How many records each lookup fetches: the same for all.
    pub(super) fn fetches(&self) -> usize {
        match self.layout.records() {
            RecordLayout::Keyed(map) => map.candidates_per_key(),
            _ => 1,
        }
    }

    /// A target that may be looked up like any other, and takes as long as any: a key of `key_len`
    /// bytes, or a record's number. Which keys take longest is not known, so `number` goes through
    /// several kinds.
    pub(super) fn dummy(&self, number: usize, key_len: usize, rng: &mut SecretRng) -> Target {
        match self.layout.records() {
            RecordLayout::Keyed(map) => {
                Target::Written(Zeroizing::new(map.key_form().slow_key(number, key_len, rng)))
            }
            _ => Target::index(rng.below(self.shape.records())),
        }
    }

    /// The record to ask for: of several candidates, the one numbered `candidate`. The result does
    /// not depend on whether the table has the key.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is not looked up that way,
    /// or has no such record.
    pub(super) fn locate(&self, target: &Target, candidate: usize) -> Result<RecordIndex> {
        let index = match (self.keyed(target), self.layout.records(), target) {
            (Some((map, key)), _, _) => {
                let mut candidates = map.candidates(&key.bytes);
                Zeroizing::new(candidates.nth(candidate).ok_or_else(no_such_candidate)?)
            }
            (None, RecordLayout::Index(_), Target::Index(index)) => index.clone(),
            _ => return Err(self.other_way()),
        };
        RecordIndex::new(*index, self.shape)
    }

    /// What the record `served` holds for the target. The client asked for it as the record that
    /// [`locate`](Self::locate) names for this candidate.
    ///
    /// # Errors
    /// [`Blame::Integrity`] if it is another record, or not a record at all.
    pub(super) fn piece(&self, target: &Target, candidate: usize, served: &[u8]) -> Result<Piece> {
        let index = self.locate(target, candidate)?;
        let record = self
            .layout
            .verified(self.shape, index.expose(), served)
            .map_err(|error| self.not_that_record(error))?;
        let piece = match (self.keyed(target), self.layout.records(), target) {
            (Some((map, key)), _, _) => map.piece_in(&key.bytes, candidate, record)?,
            (None, RecordLayout::Index(layout), Target::Index(_)) => Some(layout.value_in(record)?),
            _ => return Err(self.other_way()),
        };
        Ok(piece.map(|piece| Zeroizing::new(piece.to_vec())))
    }

    /// The value, put together from what all of its candidates hold, in their order; `None` if the
    /// table does not have the key.
    ///
    /// # Errors
    /// [`Blame::Integrity`] if the pieces do not belong together; [`Reason::MalformedKey`] if the
    /// table can have no such key.
    pub(super) fn value(&self, target: &Target, pieces: &[Piece]) -> Result<Option<Value>> {
        match (self.keyed(target), self.layout.records(), target, pieces) {
            (Some((map, key)), _, _, _) => {
                let value = map.value(&key.bytes, pieces)?.map(Zeroizing::new);
                let value = value.map(|value| Value::read(value, map.has_lists())).transpose()?;
                key.is_well_formed.map(|()| value)
            }
            (None, RecordLayout::Index(_), Target::Index(_), [value]) => {
                value.clone().map(|value| Value::read(value, false)).transpose()
            }
            _ => Err(self.other_way()),
        }
    }

    /// The contents that take longest to read.
    pub(super) fn fullest(&self) -> Fullest {
        let served = vec![0; self.shape.record_len() as usize];
        let (crowded, pieces) = match self.layout.records() {
            RecordLayout::Keyed(map) => (map.crowded_record(), map.longest_pieces()),
            _ => (Vec::new(), vec![Some(served.clone())]),
        };
        let pieces = pieces.into_iter().map(|piece| piece.map(Zeroizing::new)).collect();
        Fullest { served, crowded, pieces }
    }

    /// Does the work of [`piece`](Self::piece) and [`value`](Self::value) at its slowest: each of
    /// their steps, for the record or value that takes that step longest.
    pub(super) fn rehearse(&self, target: &Target, candidate: usize, fullest: &Fullest) {
        let Fullest { served, crowded, pieces } = fullest;
        // In an authenticated table verification fails, but runs to its end.
        let _ = self.piece(target, candidate, served);
        if let Some((map, key)) = self.keyed(target) {
            let _ = map.piece_in(&key.bytes, candidate, crowded);
        }
        drop(black_box(pieces.first().cloned()));
        let value = black_box(self.value(target, pieces));
        planted::rehearsed(&value);
    }

    /// The key map and the key, if a key of a table by key is looked up.
    fn keyed<'t>(&self, target: &'t Target) -> Option<(&KeyMap, Key<'t>)> {
        let map = self.layout.records().key_map()?;
        let read = match target {
            Target::Index(_) => return None,
            Target::Key(key) => map.key_form().check(key).map(|()| Cow::Borrowed(&key[..])),
            Target::Written(written) => map.key_form().read(written),
        };
        Some((
            map,
            match read {
                Ok(bytes) => Key { bytes, is_well_formed: Ok(()) },
                // It has candidates all the same: those of no key, which take least to find. So it
                // takes no longer than the dummies, all of which are read to their end.
                Err(why) => Key { bytes: Cow::Borrowed(b""), is_well_formed: Err(why) },
            },
        ))
    }

    fn not_that_record(&self, error: Error) -> Error {
        if error.blame() != Blame::Integrity {
            return error;
        }
        let (who, which) = match self.servers {
            1 => ("the server", "it does not tell the truth"),
            _ => ("the servers", "one of them does not tell the truth"),
        };
        Error::integrity(format!(
            "{who} answered with a record that does not belong to the table's root: {which}, or the table is damaged there"
        ))
    }

    fn other_way(&self) -> Error {
        match self.layout.records() {
            RecordLayout::Index(_) => {
                Error::api_misuse("the table has no keys: look records up by number")
                    .because(Reason::NoKeys)
            }
            _ => Error::api_misuse("the table is not looked up by number, but by key")
                .because(Reason::LookedUpByKey),
        }
    }
}

fn no_such_candidate() -> Error {
    Error::api_misuse("a key has fewer candidate records than were to be fetched")
}
