//! The cuckoo map's placement: each entry in one of its two candidates.
//!
//! Entries are placed from the longest to the shortest, so that the short ones fill the gaps that
//! the long ones leave. `path.rs` says how room is made for each. Nothing is random: the same
//! entries under the same seed always lie in the same records.
//!
//! An entry for which no path is found goes to the stash while that has room, and after that to its
//! roomier candidate, though it does not fit there. As in a bucket map, the width is a goal and not
//! a limit: in the end the fullest record decides how wide all are, so placement cannot fail.

use super::pairing::Pairing;
use super::path::{self, Lying, Move, make_room};
use super::placement::{Home, Item, StashRoom};
use std::cmp::Reverse;
use std::convert::Infallible;

/// The entries in the order in which they are placed.
pub(super) struct TwoChoices<'a> {
    items: Vec<&'a Item>,
    width: u64,
}

impl<'a> TwoChoices<'a> {
    /// Orders the items that fit into `width` bytes; the others are for the stash.
    pub(super) fn new(items: &[&'a Item], width: u64) -> Self {
        let mut items: Vec<&Item> =
            items.iter().copied().filter(|item| item.entry_len <= width).collect();
        items.sort_unstable_by_key(|item| (Reverse(item.entry_len), item.hash.tag));
        Self { items, width }
    }

    /// Gives each entry a home. Returns the homes by the number of the item, and how full the
    /// fullest record is, at least 1.
    pub(super) fn place(&self, records: u64, stash: &mut StashRoom) -> (Vec<(u32, Home)>, u64) {
        let mut shelf = Shelf::new(&self.items, records, self.width);
        let mut homes = Vec::with_capacity(self.items.len());
        for (number, item) in self.items.iter().enumerate() {
            if shelf.put(number as u32) {
                continue;
            }
            if stash.take(item) {
                homes.push((item.number, Home::Stash));
            } else {
                let roomier = shelf.roomier(item);
                shelf.add(roomier, number as u32);
            }
        }
        for (record, entries) in shelf.entries.iter().enumerate() {
            let home = Home::Record(record as u32);
            homes.extend(entries.iter().map(|&number| (self.items[number as usize].number, home)));
        }
        let fullest = shelf.loads.iter().copied().max().unwrap_or(0).max(1);
        (homes, fullest)
    }
}

/// The records while they are being filled. Entries go by their number in the order of placement.
pub(super) struct Shelf<'a> {
    items: &'a [&'a Item],
    width: u64,
    entries: Vec<Vec<u32>>,
    loads: Vec<u64>,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(items: &'a [&'a Item], records: u64, width: u64) -> Self {
        let records = records as usize;
        Self { items, width, entries: vec![Vec::new(); records], loads: vec![0; records] }
    }

    fn candidates(&self, item: &Item) -> [u64; 2] {
        item.hash.candidates(self.loads.len() as u64)
    }

    /// The candidate of `item` with more room, the first if they are level.
    fn roomier(&mut self, item: &Item) -> u64 {
        let Ok(roomier) = path::roomier(self, &self.candidates(item));
        roomier
    }

    fn add(&mut self, record: u64, number: u32) {
        self.loads[record as usize] += self.items[number as usize].entry_len;
        self.entries[record as usize].push(number);
    }

    fn remove(&mut self, record: u64, position: usize) -> u32 {
        let number = self.entries[record as usize].remove(position);
        self.loads[record as usize] -= self.items[number as usize].entry_len;
        number
    }

    /// Puts an entry into one of its candidates, and says whether a way was found.
    pub(super) fn put(&mut self, number: u32) -> bool {
        let item = self.items[number as usize];
        let candidates = self.candidates(item);
        let Ok(moves) = make_room(self, &candidates, item.entry_len);
        let Some(moves) = moves else { return false };
        for Move { from, to } in moves {
            let moved = from.map_or(number, |(record, position)| self.remove(record, position));
            self.add(to, moved);
        }
        true
    }
}

impl path::Shelf for Shelf<'_> {
    type Error = Infallible;

    fn width(&self) -> u64 {
        self.width
    }

    fn load(&mut self, record: u64) -> Result<u64, Infallible> {
        Ok(self.loads[record as usize])
    }

    fn entry(&mut self, record: u64, position: usize) -> Result<Option<Lying>, Infallible> {
        let Some(&number) = self.entries[record as usize].get(position) else { return Ok(None) };
        let item = self.items[number as usize];
        let other = Pairing::new(item.hash.tag, self.loads.len() as u64).other(record);
        Ok(Some(Lying { len: item.entry_len, other }))
    }
}
