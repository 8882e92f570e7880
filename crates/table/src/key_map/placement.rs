//! The shape of a table by key: how many records, how wide, and what goes to the stash.
//!
//! # What is chosen, and by which cost
//!
//! Let *E* be the bytes of all entries, *W* the width of a bucket and *n* their number; the table
//! has *N = n·W ≥ E* bytes. Three things cost something:
//!
//! - every query makes the server work through all *N* bytes, so padding is paid for in time,
//!   forever;
//! - a client of the single-server scheme downloads a hint of 4096 bytes for each byte of max(*W*,
//!   √*N*), once, and with it the key map: one byte per group for a bucket map, and the stash;
//! - an answer of the schemes that return one record takes *W* bytes, and a lookup takes *c*
//!   answers, one for each candidate of each part. Over 1 024 lookups that is 1 024·*c*·*W*.
//!
//! The first is what the table costs its server, the others what it costs a client; packing
//! minimises their product
//!
//! ```text
//! N · (4096·max(W, √N) + key map + 1024·c·W)
//! ```
//!
//! in which a tenth more padding weighs as much as a tenth more download. (All queries of a lookup
//! go out together, and a server can answer them in one pass.)
//!
//! The widths to try are √*E*, √*E*/2, √*E*/3, √*E*/4, √*E*/6 and so on, as long as four average
//! entries fit. A cuckoo map also tries the widths of two, three and four average entries, and a
//! map of several parts the widths of two and three of the longest pieces. A value wider than the
//! bucket goes to the stash. The stash holds at most one entry in 16, and at most 64 KiB or a
//! fiftieth of all values, whichever is more. A width under which more would have to go there is
//! raised until this holds.
//!
//! How full the buckets get is not computed but tried, on a sample of the keys. A *rehearsal* with
//! at most 4 096 keys and proportionally fewer buckets takes milliseconds, and what happens in a
//! bucket does not depend on how many others there are. For each width, loads are tried from the
//! highest down to the first at which everything finds its place. The plan with the lowest cost is
//! then carried out with all keys.
//!
//! A bucket map may be filled to the last byte: tables with one are mostly built anew when they
//! change. A cuckoo map is filled to nine tenths at most: a new entry then soon finds room, and the
//! stash is left to later ones.

use super::cuckoo::TwoChoices;
use super::displacement::{Grouped, KEYS_PER_GROUP};
use super::encoding::STASH_ENTRY_OVERHEAD;
use super::entry::entry_len;
use super::hash::KeyHash;
use super::{KeyMapKind, Rule};
use privet_core::table::MAX_RECORD_LEN;
use std::borrow::Borrow;
use std::cmp::Reverse;

/// The most keys a rehearsal works with, about.
const REHEARSAL_KEYS: usize = 4096;

/// The loads that are tried for buckets. Where few entries share a bucket, only a low load can be
/// reached: of 100 equal entries, three to a bucket, 34 buckets are likely to end up with four
/// somewhere, and 36 are not.
const HOPED_LOADS: [f64; 5] = [1.0, 0.98, 0.95, 0.9, 0.8];

/// The loads that are tried for the records of a cuckoo map. Where an entry fills a record alone,
/// hardly half of the records can be used.
const HOPED_CUCKOO_LOADS: [f64; 6] = [0.9, 0.85, 0.8, 0.7, 0.55, 0.4];

/// √E divided by each of these is a width to try.
const WIDTH_DIVISORS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];

/// A bucket narrower than √E should hold this many average entries: with fewer, little is won and
/// packing gets hard.
const ENTRIES_PER_BUCKET: f64 = 4.0;

/// A cuckoo map also tries records of this many average entries. With two it can be filled to five
/// sixths, with one only by half.
const CUCKOO_ENTRIES: [f64; 3] = [2.0, 3.0, 4.0];

/// Where values are cut, records of this many of the longest pieces are tried too.
const PIECES: [u64; 2] = [2, 3];

/// The stash may always take this much; a fiftieth of all values, if that is more.
pub(super) const STASH_BYTES: u64 = 64 << 10;

/// What the single-server scheme's hint takes for each byte of the matrix's height: 1 024 words of
/// 32 bits.
const HINT_BYTES_PER_ROW: f64 = 4096.0;

/// The number of lookups whose answers count in the cost.
const LOOKUPS: f64 = 1024.0;

/// A value, or a piece of one, as placement sees it.
pub(super) struct Item {
    pub(super) hash: KeyHash,
    /// The bytes that its entry takes in a bucket.
    pub(super) entry_len: u64,
    /// Its number among the items.
    pub(super) number: u32,
    /// The number of its key among the pairs.
    pub(super) pair: u32,
    /// Which piece of the key's value it is.
    pub(super) piece: u8,
}

/// Where an entry lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    Record(u32),
    Stash,
}

/// What the stash may hold.
pub(super) struct StashLimits {
    most_bytes: u64,
    most_entries: u64,
    /// The length of the longest value that the stash need not hold.
    pub(super) longest_in_buckets: usize,
}

impl StashLimits {
    /// Applies the limits that the module states to the lengths of the payloads of all entries.
    /// There is at least one entry.
    pub(super) fn of(lens: impl IntoIterator<Item = usize>) -> Self {
        let mut lens: Vec<usize> = lens.into_iter().collect();
        lens.sort_unstable_by_key(|&len| Reverse(len));
        let all_bytes: u64 = lens.iter().map(|&len| len as u64).sum();
        let most_bytes = STASH_BYTES.max(all_bytes / 50);
        let most_entries = lens.len() as u64 / 16;
        let mut bytes = 0;
        // Values of equal length go to the stash together or not at all, so the first that does not
        // fit decides for all of its length. There is always one that does not fit, because fewer
        // entries are allowed than there are.
        let mut longest_in_buckets = 0;
        for (number, &len) in (1..).zip(&lens) {
            bytes += len as u64 + STASH_ENTRY_OVERHEAD;
            if bytes > most_bytes || number > most_entries {
                longest_in_buckets = len;
                break;
            }
        }
        Self { most_bytes, most_entries, longest_in_buckets }
    }

    /// Buckets narrower than this would push more into the stash than it may hold.
    pub(super) fn narrowest_bucket(&self) -> u64 {
        entry_len(self.longest_in_buckets)
    }

    /// What the stash can still take after all entries too wide for a record of `width` bytes.
    pub(super) fn room_beside_wide(&self, items: &[&Item], width: u64) -> StashRoom {
        let mut room = StashRoom { bytes: self.most_bytes, entries: self.most_entries };
        for item in items.iter().filter(|item| item.entry_len > width) {
            room.bytes = room.bytes.saturating_sub(item.stash_len());
            room.entries = room.entries.saturating_sub(1);
        }
        room
    }
}

/// What may still go to the stash.
pub(super) struct StashRoom {
    bytes: u64,
    entries: u64,
}

impl StashRoom {
    pub(super) fn none() -> Self {
        Self { bytes: 0, entries: 0 }
    }

    /// Sets room aside for `item`, and says whether there was enough.
    pub(super) fn take(&mut self, item: &Item) -> bool {
        let fits = self.entries > 0 && item.stash_len() <= self.bytes;
        if fits {
            self.bytes -= item.stash_len();
            self.entries -= 1;
        }
        fits
    }
}

impl Item {
    /// What the entry takes in the stash, at most: its length has four bytes there, and one to four
    /// in a record.
    fn stash_len(&self) -> u64 {
        self.entry_len + 3
    }
}

/// The items of one rehearsal or of the play, made ready for records of one width.
enum Cast<'a> {
    Buckets(Grouped<'a>),
    Cuckoo(TwoChoices<'a>),
}

impl<'a> Cast<'a> {
    fn new(kind: KeyMapKind, items: &[&'a Item], width: u64) -> Self {
        match kind {
            KeyMapKind::Buckets => Self::Buckets(Grouped::new(items, width)),
            KeyMapKind::Cuckoo => Self::Cuckoo(TwoChoices::new(items, width)),
        }
    }

    /// How full the fullest of `records` records gets if no entry that fits into a record goes to
    /// the stash.
    fn rehearse(&self, records: u64) -> u64 {
        match self {
            Self::Buckets(grouped) => grouped.place(records).1,
            Self::Cuckoo(choices) => choices.place(records, &mut StashRoom::none()).1,
        }
    }
}

/// A decision about the shape of the table, to be played with all keys.
pub(super) struct Plan {
    kind: KeyMapKind,
    parts: u8,
    pub(super) buckets: u64,
    /// The intended width of a bucket.
    pub(super) width: u64,
    /// The width of a record in the rehearsal, in which the fullest bucket decided.
    pub(super) record_len: u64,
    hoped_cost: f64,
}

/// A placement of all keys, and its cost.
pub(super) struct Placement {
    pub(super) buckets: u64,
    pub(super) record_len: u64,
    pub(super) rule: Rule,
    /// Where each entry lies, by the item's number.
    pub(super) homes: Vec<Home>,
    pub(super) cost: f64,
}

impl Plan {
    /// Tries every width on a sample of the keys and keeps the plan with the lowest cost. If there
    /// are more keys than `items`, each of these stands for `each_stands_for` of them.
    pub(super) fn by_rehearsal(
        kind: KeyMapKind,
        parts: u8,
        items: &[Item],
        limits: &StashLimits,
        each_stands_for: f64,
    ) -> Self {
        let sample = sample(items);
        let (width, hoped_cost) = (MAX_RECORD_LEN, f64::INFINITY);
        let mut best = Plan { kind, parts, buckets: 1, width, record_len: width, hoped_cost };
        let hoped_loads = match kind {
            KeyMapKind::Buckets => &HOPED_LOADS[..],
            KeyMapKind::Cuckoo => &HOPED_CUCKOO_LOADS[..],
        };
        for width in candidate_widths(kind, parts, items, limits, each_stands_for) {
            let in_stash = |item: &Item| item.entry_len > width;
            let totals = Totals::of(kind, items, in_stash).times(each_stands_for);
            let sampled = Totals::of(kind, sample.iter().copied(), in_stash);
            let share = sampled.entry_bytes as f64 / totals.entry_bytes as f64;
            let cast = Cast::new(kind, &sample, width);
            for hoped_load in hoped_loads {
                let buckets = totals.entry_bytes as f64 / (width as f64 * hoped_load);
                let buckets = buckets.ceil().max(1.0);
                let rehearsed = (buckets * share).round().max(1.0) as u64;
                let fullest = cast.rehearse(rehearsed);
                let buckets = buckets as u64;
                let cost = totals.cost(kind, parts, buckets, fullest);
                if cost < best.hoped_cost {
                    best =
                        Plan { kind, parts, buckets, width, record_len: fullest, hoped_cost: cost };
                }
                if fullest <= width {
                    // Everything fits at this load; a lower one would only add padding.
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

    /// Places all keys. Each further attempt takes one bucket in 50 more, in case the buckets were
    /// too tight.
    pub(super) fn play(&self, items: &[Item], limits: &StashLimits, attempt: u32) -> Placement {
        let buckets = self.buckets + self.buckets * u64::from(attempt) / 50;
        let cast: Vec<&Item> = items.iter().collect();
        let mut homes = vec![Home::Stash; items.len()];
        let (rule, record_len) = match Cast::new(self.kind, &cast, self.width) {
            Cast::Buckets(grouped) => {
                let (displacements, fullest) = grouped.place(buckets);
                let groups = displacements.len() as u64;
                for item in items.iter().filter(|item| item.entry_len <= self.width) {
                    let displacement = displacements[item.hash.group(groups) as usize];
                    let bucket = item.hash.bucket(displacement, buckets) as u32;
                    homes[item.number as usize] = Home::Record(bucket);
                }
                (Rule::Displaced(displacements), fullest)
            }
            Cast::Cuckoo(choices) => {
                let mut room = limits.room_beside_wide(&cast, self.width);
                let (placed, fullest) = choices.place(buckets, &mut room);
                for (number, home) in placed {
                    homes[number as usize] = home;
                }
                (Rule::TwoCandidates, fullest)
            }
        };
        let totals =
            Totals::of(self.kind, items, |item| homes[item.number as usize] == Home::Stash);
        let cost = totals.cost(self.kind, self.parts, buckets, record_len);
        Placement { buckets, record_len, rule, homes, cost }
    }
}

/// The widths to try, in bytes. Each is at least the narrowest bucket that the stash allows. Where
/// all entries are of equal length, it holds whole entries.
fn candidate_widths(
    kind: KeyMapKind,
    parts: u8,
    items: &[Item],
    limits: &StashLimits,
    each_stands_for: f64,
) -> Vec<u64> {
    let all_bytes: u64 = items.iter().map(|item| item.entry_len).sum();
    let root = (all_bytes as f64 * each_stands_for).sqrt();
    let narrowest = limits.narrowest_bucket();
    let average = all_bytes as f64 / items.len() as f64;
    let mut widths: Vec<u64> = WIDTH_DIVISORS
        .iter()
        .map(|divisor| root / divisor)
        .filter(|&width| width == root || width >= ENTRIES_PER_BUCKET * average)
        .map(|width| width as u64)
        .collect();
    if kind == KeyMapKind::Cuckoo {
        widths.extend(CUCKOO_ENTRIES.map(|entries| (entries * average).ceil() as u64));
    }
    if parts > 1 {
        widths.extend(PIECES.map(|pieces| pieces * narrowest));
    }
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

pub(super) fn all_equal<I: Borrow<Item>>(items: &[I]) -> bool {
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

/// The bytes of the entries in records, and of the key map.
struct Totals {
    entry_bytes: u64,
    key_map_bytes: u64,
}

impl Totals {
    fn of<'a>(
        kind: KeyMapKind,
        items: impl IntoIterator<Item = &'a Item>,
        in_stash: impl Fn(&Item) -> bool,
    ) -> Self {
        let (mut entry_bytes, mut stash_bytes, mut entries) = (0, 0, 0);
        for item in items {
            entries += 1;
            if in_stash(item) {
                stash_bytes += item.entry_len;
            } else {
                entry_bytes += item.entry_len;
            }
        }
        let rule_bytes = match kind {
            KeyMapKind::Buckets => entries / KEYS_PER_GROUP as u64,
            KeyMapKind::Cuckoo => 0,
        };
        Self { entry_bytes, key_map_bytes: rule_bytes + stash_bytes }
    }

    /// The same for `number` times as many items.
    fn times(self, number: f64) -> Self {
        let times = |bytes: u64| (bytes as f64 * number) as u64;
        Self { entry_bytes: times(self.entry_bytes), key_map_bytes: times(self.key_map_bytes) }
    }

    /// The cost that the module states, for `buckets` buckets of `width` bytes.
    fn cost(&self, kind: KeyMapKind, parts: u8, buckets: u64, width: u64) -> f64 {
        if width > MAX_RECORD_LEN {
            return f64::INFINITY;
        }
        let width = width as f64;
        let table_bytes = buckets as f64 * width;
        let hint = HINT_BYTES_PER_ROW * width.max(table_bytes.sqrt());
        let candidates = kind.candidates() as f64 * f64::from(parts);
        table_bytes * (hint + self.key_map_bytes as f64 + LOOKUPS * candidates * width)
    }
}
