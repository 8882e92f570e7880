//! The builder: from pairs of keys and values to buckets, and the key map that finds them again.

use super::hash::KeyHash;
use super::placement::{Home, Item, Outcome, Plan, StashLimits};
use super::{KeyMap, KeyMapKind, entry};
use privet_core::{Error, PublicSeed, Result, TableShape};

/// How often the keys are hashed anew when two share a tag, or when the buckets turn out worse than planned.
const ATTEMPTS: u32 = 6;

/// Keys and values to be packed, by number. Keys must differ from each other.
pub trait Pairs {
    /// How many pairs there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of pair `number`, in `[0, len())`.
    fn key(&self, number: usize) -> &[u8];

    /// The value of pair `number`, in `[0, len())`.
    fn value(&self, number: usize) -> &[u8];
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> Pairs for [(K, V)] {
    fn len(&self) -> usize {
        <[(K, V)]>::len(self)
    }

    fn key(&self, number: usize) -> &[u8] {
        self[number].0.as_ref()
    }

    fn value(&self, number: usize) -> &[u8] {
        self[number].1.as_ref()
    }
}

/// A finished assignment of pairs to buckets: the key map, and which pairs each bucket holds.
pub struct Packed {
    key_map: KeyMap,
    // The numbers of the pairs, bucket by bucket, each with its tag; bucket b has starts[b]..starts[b + 1].
    members: Vec<(u64, u32)>,
    starts: Vec<u32>,
}

impl Packed {
    /// The key map that clients download.
    pub fn key_map(&self) -> &KeyMap {
        &self.key_map
    }

    /// The record of bucket number `bucket`, written over `record`: `key_map().record_len()` bytes. `pairs` must be those
    /// that were packed.
    ///
    /// # Panics
    /// If `bucket` is not below `key_map().buckets()`.
    pub fn write_record<P: Pairs + ?Sized>(&self, pairs: &P, bucket: u64, record: &mut Vec<u8>) {
        let bucket = bucket as usize;
        let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        record.clear();
        for &(tag, pair) in &self.members[start..end] {
            entry::write_entry(record, tag, pairs.value(pair as usize));
        }
        record.resize(self.key_map.record_len() as usize, 0);
    }
}

/// Distributes `pairs` over the buckets of a [bucket map](KeyMapKind::Buckets): [`pack_as`] for the usual kind.
///
/// # Errors
/// As [`pack_as`].
pub fn pack<P: Pairs + ?Sized>(pairs: &P, seed: PublicSeed) -> Result<Packed> {
    pack_as(KeyMapKind::Buckets, pairs, seed)
}

/// Distributes `pairs` over records, for a key map of kind `kind`. The result depends on the set of pairs and on `seed` alone,
/// not on their order.
///
/// `seed` must be drawn after the keys are known, and at random: see the [module](crate::key_map). Takes about 120 bytes
/// of memory per key besides the pairs themselves.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are no pairs or 2^32 and more, if two keys are equal, or if values are too
/// long for any bucket.
pub fn pack_as<P: Pairs + ?Sized>(kind: KeyMapKind, pairs: &P, seed: PublicSeed) -> Result<Packed> {
    if pairs.is_empty() {
        return Err(Error::api_misuse("a table by key needs at least one key"));
    }
    if u32::try_from(pairs.len()).is_err() {
        return Err(Error::api_misuse(format!(
            "{} keys are too many for one table: the limit is {}; split it",
            pairs.len(),
            u32::MAX
        )));
    }
    let limits = StashLimits::of(pairs);
    let mut plan = None;
    let mut best: Option<(PublicSeed, Vec<Item>, Outcome)> = None;
    for attempt in 0..ATTEMPTS {
        let seed = attempt_seed(seed, attempt);
        let items = hash_all(pairs, seed);
        if !tags_differ(pairs, &items)? {
            continue;
        }
        let plan = plan.get_or_insert_with(|| Plan::by_rehearsal(kind, &items, &limits));
        let outcome = plan.play(&items, &limits, attempt);
        let good_enough = outcome.cost <= plan.hoped_cost() * 1.05;
        if best.as_ref().is_none_or(|(_, _, best)| outcome.cost < best.cost) {
            best = Some((seed, items, outcome));
        }
        if good_enough {
            break;
        }
    }
    let Some((seed, items, outcome)) = best else {
        // Six seeds under each of which two different keys share 64 bits.
        return Err(Error::api_misuse(
            "the keys share tags under every seed; build the table again",
        ));
    };
    assemble(pairs, seed, &items, outcome)
}

/// The seed of attempt number `attempt`, derived from the one drawn for the build.
fn attempt_seed(seed: PublicSeed, attempt: u32) -> PublicSeed {
    let mut material = seed.as_bytes().to_vec();
    material.extend_from_slice(&attempt.to_le_bytes());
    PublicSeed::derive("privet key map v1, hash seed of an attempt", &material)
}

fn hash_all<P: Pairs + ?Sized>(pairs: &P, seed: PublicSeed) -> Vec<Item> {
    let item = |pair: usize| Item {
        hash: KeyHash::new(seed, pairs.key(pair)),
        entry_len: entry::entry_len(pairs.value(pair).len()),
        pair: pair as u32,
    };
    (0..pairs.len()).map(item).collect()
}

/// Whether all tags differ. Tags must differ in a bucket and in the stash; that they all do is hardly more to ask.
fn tags_differ<P: Pairs + ?Sized>(pairs: &P, items: &[Item]) -> Result<bool> {
    let mut tags: Vec<(u64, u32)> = items.iter().map(|item| (item.hash.tag, item.pair)).collect();
    tags.sort_unstable();
    for neighbours in tags.windows(2) {
        let [(tag, pair), (next_tag, next_pair)] = neighbours else { continue };
        if tag == next_tag {
            if pairs.key(*pair as usize) == pairs.key(*next_pair as usize) {
                return Err(Error::api_misuse(
                    "two keys are equal; a table by key needs each key once",
                ));
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sorts the pairs into their records and the stash.
fn assemble<P: Pairs + ?Sized>(
    pairs: &P,
    seed: PublicSeed,
    items: &[Item],
    outcome: Outcome,
) -> Result<Packed> {
    let Outcome { buckets, record_len, rule, homes, .. } = outcome;
    let shape = TableShape::new(buckets, record_len)?;

    // A counting sort by record, then each record by tag.
    let mut starts = vec![0u32; buckets as usize + 1];
    for home in &homes {
        if let Home::Record(record) = home {
            starts[*record as usize + 1] += 1;
        }
    }
    for record in 0..buckets as usize {
        starts[record + 1] += starts[record];
    }
    let mut next = starts.clone();
    let mut members = vec![(0, 0); starts[buckets as usize] as usize];
    let mut stash = Vec::new();
    let mut entry_bytes = 0;
    for item in items {
        match homes[item.pair as usize] {
            Home::Record(record) => {
                let slot = &mut next[record as usize];
                members[*slot as usize] = (item.hash.tag, item.pair);
                *slot += 1;
                entry_bytes += item.entry_len;
            }
            Home::Stash => stash.push((item.hash.tag, pairs.value(item.pair as usize).to_vec())),
        }
    }
    for bounds in starts.windows(2) {
        members[bounds[0] as usize..bounds[1] as usize].sort_unstable();
    }

    stash.sort_unstable_by_key(|(tag, _)| *tag);
    let keys = items.len() as u64;
    let key_map = KeyMap { seed, keys, shape, entry_bytes, rule, stash };
    Ok(Packed { key_map, members, starts })
}
