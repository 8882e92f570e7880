//! How many keys a table still takes, about.
//!
//! Nobody can say it exactly: it depends on where new keys fall and on how long their values are.
//! So records are looked at here and there, and new keys are taken to be as long as those found
//! there.
//!
//! **Buckets.** A new key falls into one bucket, any with the same probability. What has no room
//! there goes to the stash. So each bucket gets a number of new keys by Poisson's law, and the
//! table is full when the keys without room fill the stash.
//!
//! **Cuckoo.** How much of the gaps moves make use of depends on how many entries a record has, and
//! on their lengths. So that is tried: a small table of such records is filled with such entries
//! until its stash is full.
//!
//! Keys that are deleted make room again.

use super::cuckoo::Shelf;
use super::edit::stash_limits;
use super::hash::KeyHash;
use super::placement::Item;
use super::{KeyMap, Rule, encoding, entry};
use privet_core::Result;

/// So many records are looked at, at most.
const SAMPLE: u64 = 2048;

/// A rehearsal has about the first number of entries, in at most the second of records.
const REHEARSED: (f64, f64) = (4096.0, 512.0);

/// The room of a table by key. All figures are estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// How many entries the table has: as many as keys, if values lie in one part each.
    pub entries: u64,
    /// How many more fit, if they are as long as these.
    pub more: u64,
}

impl Room {
    /// How full the table is: what it has, of all that it can have. From 0 to 1.
    pub fn fullness(&self) -> f64 {
        self.entries as f64 / ((self.entries + self.more).max(1)) as f64
    }

    /// Whether it is time to think of a larger table: fewer than one new key for 40 fits.
    pub fn is_short(&self) -> bool {
        self.more.saturating_mul(40) < self.entries
    }
}

/// What was found in some of the records.
struct Sample {
    /// The bytes that are free in each.
    free: Vec<u64>,
    /// The length of each entry.
    lens: Vec<u64>,
}

impl KeyMap {
    /// How much room the table has. `read` gives the record with a number in `[0, buckets())`; it
    /// is called for a few thousand of them at most.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if a record is not a bucket; whatever
    /// `read` fails with.
    pub fn room(&self, read: impl FnMut(u64) -> Result<Vec<u8>>) -> Result<Room> {
        let sample = self.sample(read)?;
        let (records, width) = (self.buckets() as f64, self.record_len() as f64);
        let seen = sample.free.len() as f64;
        let entry_len = match sample.lens.len() {
            0 => entry::entry_len(0) as f64,
            entries => sample.lens.iter().sum::<u64>() as f64 / entries as f64,
        };
        let in_records = sample.lens.len() as f64 / seen * records;
        let stash_room = self.stash_room(entry_len);
        let more = match self.rule {
            Rule::Displaced(_) => {
                let slots: Vec<u64> =
                    sample.free.iter().map(|free| (*free as f64 / entry_len) as u64).collect();
                until_the_stash_is_full(&slots, stash_room / records) * records
            }
            Rule::TwoCandidates => {
                let (entries, most) = REHEARSED;
                let few = (entries * entry_len / width).clamp(1.0, most.min(records)).floor();
                let stash = stash_room + self.stash_entries() as f64;
                let all = self.rehearse(&sample.lens, few as u64, stash / records * few);
                (all / few * records - in_records - self.stash_entries() as f64).max(0.0)
            }
        };
        Ok(Room {
            entries: in_records.round() as u64 + self.stash_entries(),
            more: more.round() as u64,
        })
    }

    fn sample(&self, mut read: impl FnMut(u64) -> Result<Vec<u8>>) -> Result<Sample> {
        let mut sample = Sample { free: Vec::new(), lens: Vec::new() };
        let count = self.buckets().min(SAMPLE);
        for number in 0..count {
            let number = u128::from(number) * u128::from(self.buckets()) / u128::from(count);
            let (record, mut load) = (read(number as u64)?, 0);
            entry::for_each_entry(&record, |_, value| {
                let len = entry::entry_len(value.len());
                sample.lens.push(len);
                load += len;
            })?;
            sample.free.push(self.record_len().saturating_sub(load));
        }
        Ok(sample)
    }

    /// How many entries of these lengths a cuckoo map of `records` takes until `stash` of
    /// them have no place.
    fn rehearse(&self, lens: &[u64], records: u64, stash: f64) -> f64 {
        let mut lens = lens.iter().cycle();
        let item = |number: u32| -> Option<Item> {
            let hash = KeyHash::of_pieces(self.seed, &number.to_le_bytes()).next()?;
            Some(Item { hash, entry_len: *lens.next()?, number, pair: number, piece: 0 })
        };
        // More than fit: no entry is shorter than this.
        let most = records * (self.record_len() / entry::entry_len(0) + 1) + stash as u64 + 1;
        let items: Vec<Item> =
            (0..most.min(4 * REHEARSED.0 as u64) as u32).map_while(item).collect();
        let items: Vec<&Item> = items.iter().collect();
        let mut shelf = Shelf::new(&items, records, self.record_len());
        let (mut taken, mut stashed) = (0, 0.0);
        while taken < items.len() && stashed <= stash {
            stashed += f64::from(u8::from(!shelf.put(taken as u32)));
            taken += 1;
        }
        taken as f64
    }

    /// How many more entries of that length the stash takes.
    fn stash_room(&self, entry_len: f64) -> f64 {
        let (most_entries, most_bytes) = stash_limits(self);
        let overhead = encoding::STASH_ENTRY_OVERHEAD;
        let bytes = self.stash_bytes() + self.stash_entries() * overhead;
        let each = entry_len + overhead as f64 - entry::entry_len(0) as f64;
        let by_bytes = most_bytes.saturating_sub(bytes) as f64 / each;
        (most_entries.saturating_sub(self.stash_entries()) as f64).min(by_bytes)
    }
}

/// How many new keys a bucket gets on average when `without_room` of them, for each, have none.
/// `slots` are the gaps of some buckets.
fn until_the_stash_is_full(slots: &[u64], without_room: f64) -> f64 {
    let most = slots.iter().copied().max().unwrap_or(0) as usize;
    let mut buckets_with = vec![0u64; most + 1];
    slots.iter().for_each(|slots| buckets_with[*slots as usize] += 1);
    // What a number of new keys, of which each bucket gets `mean` on average, leaves without room.
    let left = |mean: f64| -> f64 {
        // Of a bucket with `slots` gaps: the mean, less the probabilities that each gap is filled.
        let (mut filled, mut term, mut below) = (0.0, (-mean).exp(), 0.0);
        let mut sum = 0.0;
        for (slots, buckets) in buckets_with.iter().enumerate() {
            sum += (mean - filled).max(0.0) * *buckets as f64;
            below += term;
            term *= mean / (slots as f64 + 1.0);
            filled += 1.0 - below;
        }
        sum / slots.len().max(1) as f64
    };
    let (mut low, mut high) = (0.0, most as f64 + without_room + 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match left(middle) < without_room {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}
