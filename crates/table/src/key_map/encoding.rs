//! The key map as bytes. All numbers are little-endian; there is exactly one encoding of a key map.
//!
//! A bucket map has version 1 and a cuckoo map version 2, so a program that knows only buckets
//! reads the first and refuses the second by its version. A map of either kind with several parts
//! or with lists has version 3, and one with its own form of keys version 4. Version 1:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 1 |
//! | 2 | 32 | hash seed |
//! | 34 | 8 | number of keys, stash included |
//! | 42 | 8 | number of buckets |
//! | 50 | 8 | bytes of a bucket |
//! | 58 | 8 | bytes of all entries in buckets |
//! | 66 | 4 | number of groups *g* |
//! | 70 | 4 | number of stash entries *s* |
//! | 74 | *g* | the groups' displacements |
//! | 74 + *g* | | *s* entries in strictly ascending order of tags: tag (8), length (4), value |
//!
//! Version 2 has no groups, and room for further kinds:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 2 |
//! | 2 | 1 | kind: 2 cuckoo |
//! | 3 | 64 | hash seed to bytes of all entries, as in version 1 |
//! | 67 | 4 | number of stash entries *s* |
//! | 71 | | *s* entries, as in version 1 |
//!
//! Version 3 is for both kinds:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 2 | version, 3 |
//! | 2 | 1 | kind: 0 buckets, 2 cuckoo |
//! | 3 | 1 | number of parts, 1 to 16 |
//! | 4 | 1 | what keys have: 0 a value, 1 a list of values |
//! | 5 | 4 | bytes up to which a value is in one piece; 0 if there is one part |
//! | 9 | 64 | hash seed to bytes of all entries, as in version 1 |
//! | 73 | 4 | number of groups *g*; only in a bucket map |
//! | 73 or 77 | 4 | number of stash entries *s* |
//! | | *g* | the groups' displacements; only in a bucket map |
//! | | | *s* entries, as in version 1 |
//!
//! Version 4 is version 3, of any number of parts, followed by the [form of keys](super::key_form).
//! That is 0 and one byte of bits, for the steps of [`Normalization::NAMES`] from the lowest bit
//! on; or 1 and a directory of [ranges](super::ranges): the kind of points (1 byte: 0 numbers, 1
//! signed numbers, 2 addresses), the number of ranges (4), the number of bytes that they take (8),
//! and these bytes; or 2 and one byte for how keys are [written](super::KeyFormat): 1 in
//! hexadecimal, 2 in base64; or 3 and a directory as after 1, whose ranges were
//! [nested](super::Directory::is_nested).
//!
//! [`Normalization::NAMES`]: super::Normalization::NAMES
//!
//! Kind 1 was a cuckoo map whose second candidate did not follow from the tag; it is refused by
//! name.
//!
//! The number of keys and the bytes of their entries are those of the table as it was built. An
//! [edit](super::edit) leaves them alone, so that the key map changes only with its stash. The
//! stash never has more entries than the table's keys had parts.

use super::pieces::Parts;
use super::{KeyForm, KeyMap, Rule};
use privet_core::codec::Reader;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, PublicSeed, Result, TableShape};

const BUCKETS_VERSION: u16 = 1;
const KINDS_VERSION: u16 = 2;
const PARTS_VERSION: u16 = 3;
const KEY_FORM_VERSION: u16 = 4;
const BUCKETS: u8 = 0;
const UNPAIRED_CUCKOO: u8 = 1;
const CUCKOO: u8 = 2;

/// The bytes before the stash, displacements not counted, at most.
const LONGEST_HEAD: usize = 81;

/// The bytes that a stash entry takes besides its value.
pub(super) const STASH_ENTRY_OVERHEAD: u64 = 12;

impl KeyMap {
    /// The key map as bytes, in the one form that [`decode`](KeyMap::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let stash = self.stash_bytes() + self.stash_entries() * STASH_ENTRY_OVERHEAD;
        let displacements = match &self.rule {
            Rule::Displaced(displacements) => displacements.as_slice(),
            Rule::TwoCandidates => &[],
        };
        let mut out = Vec::with_capacity(LONGEST_HEAD + displacements.len() + stash as usize);
        let kind = match self.rule {
            Rule::Displaced(_) => BUCKETS,
            Rule::TwoCandidates => CUCKOO,
        };
        let has_plain_keys = self.key_form.is_plain();
        if !has_plain_keys || needs_parts_version(self.parts, self.lists) {
            let version = if has_plain_keys { PARTS_VERSION } else { KEY_FORM_VERSION };
            out.extend_from_slice(&version.to_le_bytes());
            out.extend_from_slice(&[kind, self.parts.number(), self.lists.into()]);
            out.extend_from_slice(&self.parts.piece_len().to_le_bytes());
        } else if kind == BUCKETS {
            out.extend_from_slice(&BUCKETS_VERSION.to_le_bytes());
        } else {
            out.extend_from_slice(&KINDS_VERSION.to_le_bytes());
            out.push(kind);
        }
        out.extend_from_slice(self.seed.as_bytes());
        for number in [self.keys, self.buckets(), self.record_len(), self.entry_bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        // Both counts are below 2^32: the builder makes no more groups than entries, of which it
        // takes fewer than 2^32.
        if let Rule::Displaced(_) = self.rule {
            out.extend_from_slice(&(displacements.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&(self.stash.len() as u32).to_le_bytes());
        out.extend_from_slice(displacements);
        for (tag, value) in &self.stash {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
        if !has_plain_keys {
            self.key_form.encode(&mut out);
        }
        out
    }

    /// Reads a key map that came from outside. Allocates a few times as much as `bytes` is long.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `bytes` is not an encoded
    /// key map.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("a key map", bytes);
        let version = reader.u16()?;
        let kind = match version {
            BUCKETS_VERSION => BUCKETS,
            KINDS_VERSION | PARTS_VERSION | KEY_FORM_VERSION => reader.u8()?,
            _ => {
                return Err(invalid(format!(
                    "it has version {version}, and this program reads versions {BUCKETS_VERSION} to {KEY_FORM_VERSION}"
                )));
            }
        };
        if version == KINDS_VERSION && kind == UNPAIRED_CUCKOO {
            return Err(invalid(
                "it is a cuckoo map of an earlier form, which this program does not read; build the table again",
            ));
        }
        if kind != CUCKOO && (kind != BUCKETS || version == KINDS_VERSION) {
            return Err(invalid(format!("this program does not know its kind, {kind}")));
        }
        let (parts, lists) = match version {
            PARTS_VERSION | KEY_FORM_VERSION => read_parts(&mut reader, version)?,
            _ => (Parts::ONE, false),
        };
        let seed = PublicSeed::from_bytes(reader.array()?);
        let keys = reader.u64()?;
        let (buckets, record_len) = (reader.u64()?, reader.u64()?);
        let shape =
            TableShape::new(buckets, record_len).map_err(|error| invalid(error.message()))?;
        let entry_bytes = reader.u64()?;
        if entry_bytes > shape.bytes() {
            return Err(invalid("its entries are larger than its buckets"));
        }
        let groups = if kind == BUCKETS { Some(reader.u32()?) } else { None };
        let stash_entries = reader.u32()?;
        let entries = keys.saturating_mul(parts.number().into());
        if u64::from(stash_entries) > entries {
            return Err(invalid(format!(
                "{stash_entries} stash entries cannot belong to {keys} keys"
            )));
        }
        let rule = match groups {
            Some(groups) if groups == 0 || u64::from(groups) > entries => {
                return Err(invalid(format!("{groups} groups cannot belong to {keys} keys")));
            }
            Some(groups) => Rule::Displaced(reader.bytes(groups as usize)?.to_vec()),
            None => Rule::TwoCandidates,
        };
        let stash = read_stash(&mut reader, stash_entries)?;
        let key_form = match version {
            KEY_FORM_VERSION => KeyForm::decode(&mut reader)?,
            _ => KeyForm::default(),
        };
        if version == KEY_FORM_VERSION && key_form.is_plain() {
            return Err(invalid("it has plain keys, and a version for others"));
        }
        reader.finish()?;
        Ok(Self { seed, keys, shape, entry_bytes, key_form, rule, parts, lists, stash })
    }
}

/// Whether versions 1 and 2 cannot express this.
fn needs_parts_version(parts: Parts, lists: bool) -> bool {
    parts != Parts::ONE || lists
}

fn read_parts(reader: &mut Reader<'_>, version: u16) -> Result<(Parts, bool)> {
    let (number, lists, piece_len) = (reader.u8()?, reader.u8()?, reader.u32()?);
    if let (Some(parts), 0..=1) = (Parts::new(number, piece_len), lists) {
        let lists = lists == 1;
        if version == KEY_FORM_VERSION || needs_parts_version(parts, lists) {
            return Ok((parts, lists));
        }
    }
    Err(invalid(format!(
        "it cannot have {number} parts for pieces of {piece_len} bytes, with {lists} for lists"
    )))
}

fn read_stash(reader: &mut Reader<'_>, entries: u32) -> Result<Vec<(u64, Vec<u8>)>> {
    // No more than can be there, whatever the number says.
    let most = reader.remaining() / STASH_ENTRY_OVERHEAD as usize;
    let mut stash: Vec<(u64, Vec<u8>)> = Vec::with_capacity(most.min(entries as usize));
    for _ in 0..entries {
        let tag = reader.u64()?;
        if stash.last().is_some_and(|(previous, _)| *previous >= tag) {
            return Err(invalid("the tags of its stash are out of order"));
        }
        let value_len = reader.u32()?;
        if u64::from(value_len) > MAX_RECORD_LEN {
            return Err(invalid(format!(
                "a piece in its stash has {value_len} bytes, and the limit is {MAX_RECORD_LEN}"
            )));
        }
        stash.push((tag, reader.bytes(value_len as usize)?.to_vec()));
    }
    Ok(stash)
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::invalid_message(format!("the key map is invalid: {why}"))
}
