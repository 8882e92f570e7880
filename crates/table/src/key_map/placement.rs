//! Where everything goes: how many buckets, how wide, and which displacement for each group.
//!
//! # What is chosen, and by which cost
//!
//! Let *E* be the bytes of all entries, *W* the width of a bucket and *n* their number; the table has *N = n·W ≥ E* bytes.
//! Three things cost something:
//!
//! - every query makes the server work through all *N* bytes, so padding is paid for in time, forever;
//! - a client of the single-server scheme downloads a hint of 4096 bytes for each byte of max(*W*, √*N*), once, and
//!   with it the key map: one byte per group, and the stash;
//! - an answer of the schemes that return one record takes *W* bytes. Over 1 024 lookups that is 1 024·*W*.
//!
//! The first is what the table costs its server, the others what it costs a client; `pack` minimises their product
//!
//! ```text
//! N · (4096·max(W, √N) + key map + 1024·W)
//! ```
//!
//! in which a tenth more padding weighs as much as a tenth more download. Candidates for *W* are √*E*, √*E*/2, √*E*/3,
//! √*E*/4, √*E*/6 and so on, as long as four average entries fit; a value wider than the candidate goes to the stash. The stash holds at most one key in 16 and at most
//! 64 KiB or a fiftieth of all values, whichever is more; where that would not do, the bucket is widened until it does.
//!
//! How full the buckets get is not computed but tried, on a sample of the keys: a *rehearsal* with at most 4 096 keys and
//! proportionally fewer buckets takes milliseconds, and what happens in a bucket does not depend on how many others
//! there are. The best candidate is then played for real.
//!
//! # How a displacement is chosen
//!
//! Groups are placed from the largest to the smallest. A displacement is judged by the buckets that the group's members
//! would go to, and the best of the 256 is taken, by three rules in this order:
//!
//! 1. No bucket beyond the intended width, or as little beyond it as possible. It is an intention and not a
//!    limit: the fullest bucket says in the end how wide a record is, and so placement cannot fail.
//! 2. Little *dead space*: room that is left in a bucket and too small for most values (for four in five) stays empty
//!    for good. Best is to fill a bucket to the brim, or nearly so, which one of 256 choices often does; next
//!    best to leave room for another value.
//! 3. The emptier buckets, so that all fill up evenly.

use super::encoding::STASH_ENTRY_OVERHEAD;
use super::entry::entry_len;
use super::hash::KeyHash;
use super::packing::Pairs;
use privet_core::table::MAX_RECORD_LEN;
use std::borrow::Borrow;
use std::cmp::Reverse;

/// Keys per group, on average. Fewer make the key map larger and balance little better.
const KEYS_PER_GROUP: usize = 2;

/// The most keys a rehearsal works with, about.
const REHEARSAL_KEYS: usize = 4096;

/// How full the buckets are hoped to be. Where few entries share a bucket, only a modest hope comes true: of 100 equal
/// entries, three to a bucket, 34 buckets are likely to end up with four somewhere, and 36 are not.
const HOPED_LOADS: [f64; 5] = [1.0, 0.98, 0.95, 0.9, 0.8];

/// A bucket is as good as full when it has less room than this part of a short entry.
const BRIM: u64 = 32;

/// Parts into which √E is divided to give candidates for the width.
const WIDTH_DIVISORS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];

/// A bucket narrower than √E should hold this many average entries: with fewer, little is won and packing gets hard.
const ENTRIES_PER_BUCKET: f64 = 4.0;

/// The stash may always take this much, and a fiftieth of all values where that is more.
const STASH_BYTES: u64 = 64 << 10;

/// What the single-server scheme's hint takes for each byte of the matrix's height: 1 024 words of 32 bits.
const HINT_BYTES_PER_ROW: f64 = 4096.0;

/// For how many lookups the width of an answer is charged.
const LOOKUPS: f64 = 1024.0;

/// A pair as the placement sees it.
pub(super) struct Item {
    pub(super) hash: KeyHash,
    /// The bytes that its entry takes in a bucket.
    pub(super) entry_len: u64,
    /// Its number among the pairs.
    pub(super) pair: u32,
}

/// What the stash may hold.
pub(super) struct StashLimits {
    /// Buckets narrower than this would push more into the stash than it may hold.
    narrowest_bucket: u64,
}

impl StashLimits {
    /// Applies the limits that the module states to the lengths of all values.
    pub(super) fn of<P: Pairs + ?Sized>(pairs: &P) -> Self {
        let mut lens: Vec<usize> = (0..pairs.len()).map(|pair| pairs.value(pair).len()).collect();
        lens.sort_unstable_by_key(|&len| Reverse(len));
        let all_bytes: u64 = lens.iter().map(|&len| len as u64).sum();
        let most_bytes = STASH_BYTES.max(all_bytes / 50);
        let most_entries = lens.len() / 16;
        let mut bytes = 0;
        let mut entries = 0;
        // Values of equal length go to the stash together or not at all, so the first that does not fit decides for
        // all of its length.
        for &len in &lens {
            bytes += len as u64 + STASH_ENTRY_OVERHEAD;
            entries += 1;
            if bytes > most_bytes || entries > most_entries {
                return Self { narrowest_bucket: entry_len(len) };
            }
        }
        // Not reached: fewer entries are allowed than there are.
        Self { narrowest_bucket: 1 }
    }
}

/// A decision about the shape of the table, to be played with all keys.
pub(super) struct Plan {
    buckets: u64,
    width: u64,
    hoped_cost: f64,
}

/// What a placement of all keys came to.
pub(super) struct Outcome {
    pub(super) buckets: u64,
    pub(super) record_len: u64,
    /// Entries longer than this are in the stash.
    pub(super) widest_entry: u64,
    pub(super) displacements: Vec<u8>,
    pub(super) cost: f64,
}

impl Plan {
    /// Tries every candidate on a sample of the keys and keeps the cheapest.
    pub(super) fn by_rehearsal(items: &[Item], limits: &StashLimits) -> Self {
        let sample = sample(items);
        let mut best = Plan { buckets: 1, width: MAX_RECORD_LEN, hoped_cost: f64::INFINITY };
        for width in candidate_widths(items, limits) {
            let totals = Totals::of(items, width);
            let sampled = Totals::of(sample.iter().copied(), width);
            let share = sampled.entry_bytes as f64 / totals.entry_bytes as f64;
            let grouped = Grouped::new(&sample, width);
            for hoped_load in HOPED_LOADS {
                let buckets = totals.entry_bytes as f64 / (width as f64 * hoped_load);
                let buckets = buckets.ceil().max(1.0);
                let rehearsed = (buckets * share).round().max(1.0) as u64;
                let (_, fullest) = grouped.place(rehearsed);
                let buckets = buckets as u64;
                let cost = totals.cost(buckets, fullest);
                if cost < best.hoped_cost {
                    best = Plan { buckets, width, hoped_cost: cost };
                }
                if fullest <= width {
                    // The hope came true; a more modest one would only add padding.
                    break;
                }
            }
        }
        best
    }

    /// The cost that the rehearsal promised.
    pub(super) fn hoped_cost(&self) -> f64 {
        self.hoped_cost
    }

    /// Places all keys. Each further attempt takes one bucket in 50 more, in case that all of them are too tight.
    pub(super) fn play(&self, items: &[Item], attempt: u32) -> Outcome {
        let buckets = self.buckets + self.buckets * u64::from(attempt) / 50;
        let items: Vec<&Item> = items.iter().collect();
        let (displacements, record_len) = Grouped::new(&items, self.width).place(buckets);
        let totals = Totals::of(items.iter().copied(), self.width);
        let cost = totals.cost(buckets, record_len);
        Outcome { buckets, record_len, widest_entry: self.width, displacements, cost }
    }
}

/// The widths to try, in bytes. At least the narrowest bucket that the stash allows, and whole entries where all are equal.
fn candidate_widths(items: &[Item], limits: &StashLimits) -> Vec<u64> {
    let all_bytes: u64 = items.iter().map(|item| item.entry_len).sum();
    let root = (all_bytes as f64).sqrt();
    let narrowest = limits.narrowest_bucket;
    let average = all_bytes as f64 / items.len() as f64;
    let mut widths: Vec<u64> = WIDTH_DIVISORS
        .iter()
        .map(|divisor| root / divisor)
        .filter(|&width| width == root || width >= ENTRIES_PER_BUCKET * average)
        .map(|width| width as u64)
        .collect();
    for width in &mut widths {
        if all_equal(items) {
            *width -= *width % items[0].entry_len;
        }
        *width = (*width).clamp(narrowest, MAX_RECORD_LEN.max(narrowest));
    }
    widths.sort_unstable();
    widths.dedup();
    widths
}

fn all_equal<I: Borrow<Item>>(items: &[I]) -> bool {
    items.windows(2).all(|pair| pair[0].borrow().entry_len == pair[1].borrow().entry_len)
}

/// At most about [`REHEARSAL_KEYS`] items, chosen by their hash.
fn sample(items: &[Item]) -> Vec<&Item> {
    if items.len() <= REHEARSAL_KEYS {
        return items.iter().collect();
    }
    let below = u64::MAX / items.len() as u64 * REHEARSAL_KEYS as u64;
    items.iter().filter(|item| item.hash.tag < below).collect()
}

/// Sizes of the two parts of a table.
struct Totals {
    entry_bytes: u64,
    key_map_bytes: u64,
}

impl Totals {
    fn of<'a>(items: impl IntoIterator<Item = &'a Item>, widest_entry: u64) -> Self {
        let (mut entry_bytes, mut stash_bytes, mut keys) = (0, 0, 0);
        for item in items {
            keys += 1;
            if item.entry_len <= widest_entry {
                entry_bytes += item.entry_len;
            } else {
                stash_bytes += item.entry_len;
            }
        }
        Self { entry_bytes, key_map_bytes: keys / KEYS_PER_GROUP as u64 + stash_bytes }
    }

    /// The cost that the module states, for `buckets` buckets of `width` bytes.
    fn cost(&self, buckets: u64, width: u64) -> f64 {
        if width > MAX_RECORD_LEN {
            return f64::INFINITY;
        }
        let width = width as f64;
        let table_bytes = buckets as f64 * width;
        let hint = HINT_BYTES_PER_ROW * width.max(table_bytes.sqrt());
        table_bytes * (hint + self.key_map_bytes as f64 + LOOKUPS * width)
    }
}

/// Items sorted into their groups, and the groups by size.
struct Grouped<'a> {
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
    fn new(items: &[&'a Item], width: u64) -> Self {
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
        // Entries of equal length leave no room or a lot of it, and are packed best by keeping all buckets level.
        let brim = if all_equal(&members) { 0 } else { usable / BRIM + 1 };
        Self { members, starts, largest_first, width, usable, brim }
    }

    /// Gives each group the best displacement, the first if several are equally good. Returns the displacements and how
    /// full the fullest bucket is, at least 1.
    fn place(&self, buckets: u64) -> (Vec<u8>, u64) {
        let mut loads = vec![0u64; buckets as usize];
        let mut displacements = vec![0u8; self.largest_first.len()];
        let mut fullest = 1;
        for &group in &self.largest_first {
            let members = &self.members[self.starts[group]..self.starts[group + 1]];
            if members.is_empty() {
                continue;
            }
            // Empty buckets, a different one for each member, are as good as it gets.
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

    /// How bad it would be to put `members` where `displacement` says. Leaves `loads` as it found them.
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
                // One more than the room, so that even a bucket without any is closed only for a reason.
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
