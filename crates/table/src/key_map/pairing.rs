//! The two candidates of a cuckoo map: which record is the other one.
//!
//! An entry in a record shows its tag and not its key. Whoever moves entries must get from one
//! candidate of an entry to the other without the key. So the tag decides which records form pairs,
//! and a key's two candidates are one of the pairs of its tag. This is partial-key cuckoo hashing
//! (Fan, Andersen, Kaminsky and Mitzenmacher, *Cuckoo Filter*, CoNEXT 2014), with another way of
//! pairing: theirs needs a number of records that is a power of two.
//!
//! # Pairing by reflection
//!
//! Think of *m* of the *n* records as lying on a circle: *m* = *n* if *n* is odd and *n* − 1 if it
//! is even, so *m* is odd. A tag names one of them its *centre* *h*, and pairs record *c* with its
//! mirror image on the other side of the centre,
//!
//! ```text
//! other(c) = 2h − c  mod m
//! ```
//!
//! - Reflecting twice leads back: 2*h* − (2*h* − *c*) = *c*.
//! - A record is its own image if 2*c* = 2*h* mod *m*. Since *m* is odd, both sides can be divided
//!   by 2, so only the centre is its own image.
//! - If *n* is even, the centre is paired with the record that is not on the circle, *n* − 1. So
//!   every record has another.
//! - If *n* is odd, the centre is left over, and is no candidate of any key with this tag. (An odd
//!   number of records cannot be paired off without leaving one over.)
//!
//! So `other` leads from either candidate to the other one, and the two differ, unless the table
//! has a single record. Tournaments in which each team meets every other team once are scheduled in
//! the same way: the centre is the round, and any two records are a pair under exactly one centre.
//! (Two on the circle, *c* and *d*, under (*c* + *d*)/2; record *n* − 1 and *c* under *c*.)
//!
//! # Why this is as good as two free choices
//!
//! The first candidate is uniform among the records that have another under the key's centre, and
//! the centre is uniform among *m*. They come from two words of the key's hash, the centre from the
//! tag. For even *n* these are (*n* − 1)·*n* cases, for odd *n* they are *n*·(*n* − 1), all equally
//! likely. There are as many ordered pairs of different records, and each comes from exactly one
//! case. So a key's candidates are any two different records with equal probability, as if the
//! first were uniform and the second uniform among the others. That is what the theory of cuckoo
//! hashing assumes. Different keys have different tags, and their candidates are independent of
//! each other.
//!
//! Two keys with the same tag have the same pair, or two pairs without a record in common.

use super::hash::scale;
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

/// How one tag pairs off the records of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairing {
    records: u64,
    /// How many records lie on the circle, an odd number: all or all but the last.
    circle: u64,
    /// In `[0, circle)`.
    centre: u64,
}

impl Pairing {
    /// The pairing of `tag` in a table of `records` records, of which there is at least one.
    pub(super) fn new(tag: u64, records: u64) -> Self {
        let circle = (records - 1) | 1;
        // The lower half of the tag comes first: the builder rehearses with the keys whose tags are
        // smallest, and their centres should lie anywhere.
        Self { records, circle, centre: scale(tag.rotate_left(32), circle) }
    }

    /// The first candidate of a key whose hash has `word`: a record that is paired with another,
    /// unless there is only one record.
    pub(super) fn first(self, word: u64) -> u64 {
        if self.circle < self.records {
            return scale(word, self.records);
        }
        // Skips the centre, which has no other record. With a single record there is nothing to
        // skip.
        let among_others = scale(word, self.records - 1);
        among_others + (u64::from(among_others >= self.centre) & u64::from(self.records > 1))
    }

    /// The record that is paired with `record`, which must be below the number of records; `record`
    /// itself if it is left over. Both may follow from a secret key. So no branch depends on them,
    /// and there is no division, which takes longer for some numbers than for others.
    pub(super) fn other(self, record: u64) -> u64 {
        // Below 3m, so two subtractions are enough. (Not used for the record beside the circle.)
        let reflected = 2 * self.centre + self.circle - record;
        let reflected = less_if_not_below(less_if_not_below(reflected, self.circle), self.circle);
        // The centre goes with the record beside the circle, if there is one.
        let of_centre = if self.circle < self.records { self.circle } else { self.centre };
        let other = u64::conditional_select(&reflected, &of_centre, record.ct_eq(&self.centre));
        u64::conditional_select(&other, &self.centre, record.ct_eq(&self.circle))
    }
}

/// `number` modulo `modulus`, if it is below twice that.
fn less_if_not_below(number: u64, modulus: u64) -> u64 {
    let (less, borrowed) = number.overflowing_sub(modulus);
    less.wrapping_add(modulus & u64::from(borrowed).wrapping_neg())
}
