//! The bucket map's placement: a displacement for each group.
//!
//! Groups are placed from the largest to the smallest. A displacement is judged by the buckets that
//! the group's members would go to, and the best of the 256 is taken, by three rules in this order:
//!
//! 1. No bucket beyond the intended width, or as little beyond it as possible. The width is a goal
//!    and not a limit: in the end the fullest bucket decides how wide a record is, so placement
//!    cannot fail.
//! 2. Little *dead space*: room that is left in a bucket but too small for most values (four in
//!    five), and so stays empty for good. It is best to fill a bucket completely or nearly so,
//!    which one of 256 choices often does. Next best is to leave room for another value.
//! 3. The emptier buckets, so that all fill up evenly.

use super::placement::{Item, all_equal};
use std::cmp::Reverse;

/// Keys per group, on average. Fewer make the key map larger and balance little better.
pub(super) const KEYS_PER_GROUP: usize = 2;

/// A bucket counts as full when its room is at most one part in `BRIM` of a short entry.
const BRIM: u64 = 32;

/// Items sorted into their groups, and the groups by size.
pub(super) struct Grouped<'a> {
    members: Vec<&'a Item>,
    // Group g has members[starts[g]..starts[g + 1]].
    starts: Vec<usize>,
    largest_first: Vec<usize>,
    width: u64,
    /// Room smaller than this counts as dead: four entries in five are longer.
    usable: u64,
    /// Room smaller than this counts as none.
    brim: u64,
}

impl<'a> Grouped<'a> {
    /// Groups the items that are not for the stash: those that fit into `width` bytes.
    pub(super) fn new(items: &[&'a Item], width: u64) -> Self {
        let groups = items.len().div_ceil(KEYS_PER_GROUP).max(1);
        let group_of = |item: &Item| item.hash.group(groups as u64) as usize;
        let in_buckets = || items.iter().filter(|item| item.entry_len <= width);

        let mut starts = vec![0; groups + 1];
        let mut sizes = vec![0u64; groups];
        for item in in_buckets() {
            starts[group_of(item) + 1] += 1;
            sizes[group_of(item)] += item.entry_len;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut members = vec![items[0]; starts[groups]];
        for item in in_buckets() {
            let slot = &mut next[group_of(item)];
            members[*slot] = item;
            *slot += 1;
        }
        let mut largest_first: Vec<usize> = (0..groups).collect();
        largest_first.sort_unstable_by_key(|&group| (Reverse(sizes[group]), group));
        let mut lens: Vec<u64> = members.iter().map(|item| item.entry_len).collect();
        let fifth = lens.len() / 5;
        // The sample may hold nothing but entries for the stash; then there is nothing to place.
        let usable = if lens.is_empty() { 0 } else { *lens.select_nth_unstable(fifth).1 };
        // Entries of equal length leave no room or a lot of it, and are packed best by keeping all
        // buckets level.
        let brim = if all_equal(&members) { 0 } else { usable / BRIM + 1 };
        Self { members, starts, largest_first, width, usable, brim }
    }

    /// Gives each group the best displacement, the first if several are equally good. Returns the
    /// displacements and how full the fullest bucket is, at least 1.
    pub(super) fn place(&self, buckets: u64) -> (Vec<u8>, u64) {
        let mut loads = vec![0u64; buckets as usize];
        let mut displacements = vec![0u8; self.largest_first.len()];
        let mut fullest = 1;
        for &group in &self.largest_first {
            let members = &self.members[self.starts[group]..self.starts[group + 1]];
            if members.is_empty() {
                continue;
            }
            // It cannot get better than a different, empty bucket for each member.
            let ideal = members.iter().map(|item| item.entry_len).sum();
            let ideal = Penalty { overflow: 0, dead: 0, filled: ideal };
            let mut best = (Penalty::MAX, 0);
            for displacement in 0..=u8::MAX {
                let penalty = self.judge(&mut loads, members, displacement);
                if penalty < best.0 {
                    best = (penalty, displacement);
                }
                if penalty == ideal {
                    break;
                }
            }
            displacements[group] = best.1;
            for item in members {
                let load = &mut loads[item.hash.bucket(best.1, buckets) as usize];
                *load += item.entry_len;
                fullest = fullest.max(*load);
            }
        }
        (displacements, fullest)
    }

    /// How bad it would be to put `members` where `displacement` says. Leaves `loads` as it found
    /// them.
    fn judge(&self, loads: &mut [u64], members: &[&Item], displacement: u8) -> Penalty {
        let buckets = loads.len() as u64;
        // Two members may meet in one bucket, so all are put down before any bucket is looked at.
        for item in members {
            loads[item.hash.bucket(displacement, buckets) as usize] += item.entry_len;
        }
        let mut penalty = Penalty { overflow: 0, dead: 0, filled: 0 };
        for item in members {
            let load = loads[item.hash.bucket(displacement, buckets) as usize];
            match self.width.checked_sub(load) {
                None => penalty.overflow = penalty.overflow.max(load - self.width),
                Some(room) if room < self.brim => {}
                // One more than the room. Where `brim` is 0, even a bucket without room then costs
                // something.
                Some(room) if room < self.usable => penalty.dead += room + 1,
                Some(_) => penalty.filled += load,
            }
        }
        for item in members {
            loads[item.hash.bucket(displacement, buckets) as usize] -= item.entry_len;
        }
        penalty
    }
}

/// The three rules of the module, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Penalty {
    overflow: u64,
    dead: u64,
    filled: u64,
}

impl Penalty {
    const MAX: Self = Self { overflow: u64::MAX, dead: u64::MAX, filled: u64::MAX };
}
