//! The cuckoo map's placement: each entry in one of its two candidates.
//!
//! Entries are placed from the longest to the shortest, so that the short ones fill the gaps that the long ones leave. An
//! entry goes to the roomier of its two candidates. Where neither has room, an entry that lies there moves to its *own*
//! other candidate, and where that has no room either, an entry there moves on, and so forth: a *path* of moves. The
//! shortest path is searched for breadth first, over at most [`SEARCHED_RECORDS`] records, each of them looked at once. No
//! coins are involved: the same entries under the same seed always lie in the same records.
//!
//! An entry for which no path is found goes to the stash as long as that has room, and then to the roomier candidate all the
//! same. The width is an intention here as it is for the bucket map: the fullest record says in the end how wide all are, and so
//! placement cannot fail.
//!
//! Cuckoo hashing is of Pagh and Rodler (*Cuckoo hashing*, Journal of Algorithms 2004), records of several entries of
//! Dietzfelbinger and Weidling (*Balanced allocation and dictionaries with tightly packed constant size bins*, TCS 2007).

use super::placement::{Home, Item, StashRoom};
use std::cmp::Reverse;
use std::ops::ControlFlow;

/// How many records are looked at for one entry before the search is given up. Paths found are far shorter: with four entries to
/// a record this many lie within four or five moves.
const SEARCHED_RECORDS: usize = 256;

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

    /// Gives each entry a home. Returns the homes by the number of the item's pair, and how full the fullest record is, at least 1.
    pub(super) fn place(&self, records: u64, stash: &mut StashRoom) -> (Vec<(u32, Home)>, u64) {
        let mut shelf = Shelf::new(&self.items, records, self.width);
        let mut homes = Vec::with_capacity(self.items.len());
        for (number, item) in self.items.iter().enumerate() {
            if shelf.put(number as u32) {
                continue;
            }
            if stash.take(item) {
                homes.push((item.pair, Home::Stash));
            } else {
                let roomier = shelf.roomier(item);
                shelf.add(roomier, number as u32);
            }
        }
        for (record, entries) in shelf.entries.iter().enumerate() {
            let home = Home::Record(record as u32);
            homes.extend(entries.iter().map(|&number| (self.items[number as usize].pair, home)));
        }
        let fullest = shelf.loads.iter().copied().max().unwrap_or(0).max(1);
        (homes, fullest)
    }
}

/// The records while they are being filled. Entries go by their number in the order of placement.
struct Shelf<'a> {
    items: &'a [&'a Item],
    width: u64,
    entries: Vec<Vec<u32>>,
    loads: Vec<u64>,
    // The search that last looked at each record: there is nothing to clear between searches.
    seen_by: Vec<u32>,
    search: u32,
}

/// One record that a search has reached: `incoming` would come here, out of the record of step `from`.
#[derive(Clone, Copy)]
struct Step {
    record: u64,
    incoming: u32,
    from: Option<usize>,
}

impl<'a> Shelf<'a> {
    fn new(items: &'a [&'a Item], records: u64, width: u64) -> Self {
        let records = records as usize;
        Self {
            items,
            width,
            entries: vec![Vec::new(); records],
            loads: vec![0; records],
            seen_by: vec![0; records],
            search: 0,
        }
    }

    fn candidates(&self, item: &Item) -> [u64; 2] {
        item.hash.candidates(self.loads.len() as u64)
    }

    fn len_of(&self, number: u32) -> u64 {
        self.items[number as usize].entry_len
    }

    fn has_room(&self, record: u64, number: u32) -> bool {
        self.loads[record as usize] + self.len_of(number) <= self.width
    }

    /// The candidate of `item` with more room, the first if they are level.
    fn roomier(&self, item: &Item) -> u64 {
        let [first, second] = self.candidates(item);
        if self.loads[second as usize] < self.loads[first as usize] { second } else { first }
    }

    fn add(&mut self, record: u64, number: u32) {
        self.loads[record as usize] += self.len_of(number);
        self.entries[record as usize].push(number);
    }

    fn remove(&mut self, record: u64, number: u32) {
        self.loads[record as usize] -= self.len_of(number);
        self.entries[record as usize].retain(|&entry| entry != number);
    }

    /// Puts an entry into one of its candidates, and says whether a way was found.
    fn put(&mut self, number: u32) -> bool {
        let item = self.items[number as usize];
        let roomier = self.roomier(item);
        if self.has_room(roomier, number) {
            self.add(roomier, number);
            return true;
        }
        self.search += 1;
        let mut steps: Vec<Step> = Vec::new();
        for record in self.candidates(item) {
            if !self.is_seen(record) {
                steps.push(Step { record, incoming: number, from: None });
            }
        }
        let mut next = 0;
        while next < steps.len() {
            if let ControlFlow::Break(last) = self.look_around(next, &mut steps) {
                self.walk_back(last, &steps);
                return true;
            }
            next += 1;
        }
        false
    }

    /// Follows each entry of one record to its other candidate: breaks with the last step of a path if that has room, and
    /// otherwise notes where else to look.
    fn look_around(&mut self, at: usize, steps: &mut Vec<Step>) -> ControlFlow<Step> {
        let Step { record, incoming, .. } = steps[at];
        for position in 0..self.entries[record as usize].len() {
            let leaving = self.entries[record as usize][position];
            let load = self.loads[record as usize] - self.len_of(leaving);
            if load + self.len_of(incoming) > self.width || steps.len() == SEARCHED_RECORDS {
                continue;
            }
            let [first, second] = self.candidates(self.items[leaving as usize]);
            let other = if record == first { second } else { first };
            if self.is_seen(other) {
                continue;
            }
            let step = Step { record: other, incoming: leaving, from: Some(at) };
            if self.has_room(other, leaving) {
                return ControlFlow::Break(step);
            }
            steps.push(step);
        }
        ControlFlow::Continue(())
    }

    /// Makes the moves of a path, the last one first, so that each entry comes into room that is there. No record is on a path
    /// twice, so one move does not spoil another.
    fn walk_back(&mut self, last: Step, steps: &[Step]) {
        let mut step = last;
        loop {
            if let Some(from) = step.from {
                self.remove(steps[from].record, step.incoming);
            }
            self.add(step.record, step.incoming);
            match step.from {
                Some(from) => step = steps[from],
                None => return,
            }
        }
    }

    /// Whether the search under way has looked at `record` before; from now on it has.
    fn is_seen(&mut self, record: u64) -> bool {
        std::mem::replace(&mut self.seen_by[record as usize], self.search) == self.search
    }
}
