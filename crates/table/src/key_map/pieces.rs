//! Long values: cut into pieces that lie in different records.
//!
//! One value of 30 KB among thousands of short ones makes all records 30 KB wide, or goes to the
//! stash, which every client downloads. So a key map may divide what it stores for a key into
//! *parts*, between 1 and [`MOST_PARTS`] of them. Part *j* of a key is an entry of its own, with a
//! tag and candidates of its own, and holds piece *j* of the value. A value with fewer pieces than
//! parts has no entries for the other parts.
//!
//! The number of parts is public and the same for all keys. A lookup fetches the candidates of all
//! parts, whether or not the key is there, and whatever the length of its value. So a short value
//! costs as much as a long one, and nothing that is sent shows which it was.
//!
//! # What an entry holds
//!
//! With a single part the entry is the value. With more, the first entry begins with the length of
//! the other pieces:
//!
//! | bytes | content |
//! |---|---|
//! | 1 to 4 | the bytes of all other pieces together, as a [variable-length number](super::number) |
//! | 8 | a check of the whole value, if there are other pieces: the first bytes of BLAKE3 under the context "privet value in pieces v1" |
//! | | the piece |
//!
//! The other entries are just their pieces, of at least one byte each. A reader takes pieces until
//! it has that length, and checks that there are no more and that they belong together. The check
//! shows damage. It does not protect against a malicious server, which can compute it as well. That
//! takes an [authenticated](crate::authentication) table.
//!
//! # Where a value is cut
//!
//! Values of up to a certain length, which the builder chose, lie in one piece. Longer ones are cut
//! into the fewest pieces that are no longer than that; if all parts are too few for this, into as
//! many longer pieces as there are parts. The pieces of one value have equal lengths, up to a byte.
//! Readers do not rely on any of this.

use super::number;
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, Result};
use std::borrow::Cow;
use std::ops::Range;

/// The most parts that a key map can have.
pub const MOST_PARTS: u8 = 16;

const CHECK_LEN: usize = 8;

/// How values are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    number: u8,
    /// Values of up to this many bytes are not cut. 0 if there is one part: then no value is cut.
    piece_len: u32,
}

impl Parts {
    /// Values lie in one record each.
    pub(super) const ONE: Self = Self { number: 1, piece_len: 0 };

    /// `number` parts for pieces of `piece_len` bytes. `None` if these two do not fit together.
    pub(super) fn new(number: u8, piece_len: u32) -> Option<Self> {
        let is_valid = match number {
            1 => piece_len == 0,
            2..=MOST_PARTS => piece_len > 0,
            _ => false,
        };
        is_valid.then_some(Self { number, piece_len })
    }

    /// How many parts every key has.
    pub(super) fn number(self) -> u8 {
        self.number
    }

    pub(super) fn piece_len(self) -> u32 {
        self.piece_len
    }

    /// Into how many pieces a value of `value_len` bytes is cut, from 1 to the number of parts.
    pub(super) fn pieces(self, value_len: usize) -> usize {
        match self.piece_len as usize {
            0 => 1,
            piece_len => value_len.div_ceil(piece_len).clamp(1, self.number.into()),
        }
    }

    /// The length of the payload in the entry of piece number `piece`, for a value of `value_len`
    /// bytes.
    pub(super) fn payload_len(self, value_len: usize, piece: usize) -> usize {
        let range = self.range(value_len, piece);
        range.len() + if piece == 0 { self.head_len(value_len - range.len()) } else { 0 }
    }

    /// The payload in the entry of piece number `piece` of `value`.
    pub(super) fn payload(self, value: &[u8], piece: usize) -> Cow<'_, [u8]> {
        let range = self.range(value.len(), piece);
        if self.number == 1 || piece > 0 {
            return Cow::Borrowed(&value[range]);
        }
        let rest = value.len() - range.len();
        let mut payload = Vec::with_capacity(self.head_len(rest) + range.len());
        number::write(&mut payload, rest as u64);
        if rest > 0 {
            payload.extend_from_slice(&check(value));
        }
        payload.extend_from_slice(&value[range]);
        Cow::Owned(payload)
    }

    /// The payloads of a value of `value_len` zeros that is cut evenly into all parts, whatever
    /// length the builder chose for cutting.
    pub(super) fn payloads_of_zeros(self, value_len: usize) -> Vec<Vec<u8>> {
        let everywhere = match self.number {
            1 => self,
            number => Self { number, piece_len: 1 },
        };
        let value = vec![0; value_len];
        (0..everywhere.pieces(value_len))
            .map(|piece| everywhere.payload(&value, piece).into_owned())
            .collect()
    }

    /// The value whose payloads, by their part, are `payloads`; `None` if there are none.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if they do not belong together.
    pub(super) fn join(self, payloads: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>> {
        let [first, later @ ..] = payloads else { return Ok(None) };
        let Some(first) = *first else {
            return match later.iter().flatten().next() {
                Some(_) => Err(contradiction("the first is missing")),
                None => Ok(None),
            };
        };
        if self.number == 1 {
            return Ok(Some(first.to_vec()));
        }
        let (rest, first) = number::read(first).map_err(contradiction)?;
        let cut_off = || contradiction("the first is cut off");
        let (check, first) = match rest {
            0 => (None, first),
            _ => first
                .split_first_chunk::<CHECK_LEN>()
                .map(|(check, first)| (Some(check), first))
                .ok_or_else(cut_off)?,
        };
        // Memory is taken for the pieces that are there, not for the length that is announced.
        let there = later.iter().flatten().map(|piece| piece.len()).sum::<usize>();
        if there as u64 != rest {
            return Err(contradiction("they are not as long as the first says"));
        }
        if (first.len() + there) as u64 > MAX_RECORD_LEN {
            return Err(contradiction("together they are longer than any value"));
        }
        let mut value = Vec::with_capacity(first.len() + there);
        value.extend_from_slice(first);
        let mut is_over = false;
        for piece in later {
            match piece {
                Some([]) => return Err(contradiction("one is empty")),
                Some(_) if is_over => return Err(contradiction("one between them is missing")),
                Some(piece) => value.extend_from_slice(piece),
                None => is_over = true,
            }
        }
        if check.is_some_and(|due| *due != self::check(&value)) {
            return Err(contradiction("they are not of one value"));
        }
        Ok(Some(value))
    }

    /// Where piece number `piece` of a value of `value_len` bytes lies in it.
    fn range(self, value_len: usize, piece: usize) -> Range<usize> {
        let pieces = self.pieces(value_len);
        value_len * piece / pieces..value_len * (piece + 1) / pieces
    }

    /// The bytes before the first piece, if `rest` bytes follow in others.
    fn head_len(self, rest: usize) -> usize {
        match (self.number, rest) {
            (1, _) => 0,
            (_, 0) => 1,
            _ => number::len(rest as u64) + CHECK_LEN,
        }
    }
}

fn check(value: &[u8]) -> [u8; CHECK_LEN] {
    let mut hasher = blake3::Hasher::new_derive_key("privet value in pieces v1");
    let mut check = [0; CHECK_LEN];
    hasher.update(value).finalize_xof().fill(&mut check);
    check
}

fn contradiction(how: &str) -> Error {
    Error::integrity(format!(
        "the pieces of a value do not belong together ({how}): an answer was recovered wrongly, or the table and its key map \
         do not belong together"
    ))
}
