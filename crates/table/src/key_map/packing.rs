//! The builder: from pairs of keys and values to buckets, and the key map that finds them again.

use super::hash::KeyHash;
use super::parts::{self, Undivided};
use super::pieces::Parts;
use super::placement::{Home, Item, Placement, Plan, StashLimits};
use super::{KeyForm, KeyMap, KeyMapKind, MOST_PARTS, entry};
use privet_core::table::MAX_RECORD_LEN;
use privet_core::{Error, PublicSeed, Result, TableShape};

/// How many times the keys are hashed at most: again if two share a tag, or if the buckets turn out
/// worse than planned.
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

/// What kind of key map is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackOptions {
    /// How keys get to records.
    pub kind: KeyMapKind,
    /// How many parts each key has, from 1 to [`MOST_PARTS`]. With `None` the builder chooses: one,
    /// or more if some values are so long that this lowers the table's cost by enough.
    pub parts: Option<u8>,
    /// Whether the values are [lists](super::encode_list) of values.
    pub lists: bool,
    /// Room for so many more keys, with values as long as these: the table is packed with as many
    /// others, which are then left out.
    pub room: u64,
}

/// A finished assignment of pairs to buckets: the key map, and which pairs each bucket holds.
pub struct Packed {
    key_map: KeyMap,
    undivided: Option<Undivided>,
    // The pieces of values, bucket by bucket: tag, number of the pair, number of the piece. Bucket
    // b has members[starts[b]..starts[b + 1]].
    members: Vec<(u64, u32, u8)>,
    starts: Vec<u32>,
}

impl Packed {
    /// The key map that clients download.
    pub fn key_map(&self) -> &KeyMap {
        &self.key_map
    }

    /// The same map, with this key form. The keys that were packed must already have that form.
    pub fn with_key_form(mut self, key_form: KeyForm) -> Self {
        self.key_map.key_form = key_form;
        self
    }

    /// About how wide the records would be with one part; `None` if the number of parts was given,
    /// or is one.
    pub fn undivided_record_len(&self) -> Option<u64> {
        self.undivided.as_ref().map(|undivided| undivided.record_len)
    }

    /// The record of bucket number `bucket`, written over `record`: `key_map().record_len()` bytes.
    /// `pairs` must be those that were packed.
    ///
    /// # Panics
    /// If `bucket` is not below `key_map().buckets()`.
    pub fn write_record<P: Pairs + ?Sized>(&self, pairs: &P, bucket: u64, record: &mut Vec<u8>) {
        let bucket = bucket as usize;
        let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        record.clear();
        for &(tag, pair, piece) in &self.members[start..end] {
            let value = pairs.value(pair as usize);
            entry::write_entry(record, tag, &self.key_map.parts.payload(value, piece.into()));
        }
        record.resize(self.key_map.record_len() as usize, 0);
    }

    /// All records.
    #[cfg(test)]
    pub(crate) fn records<P: Pairs + ?Sized>(&self, pairs: &P) -> Vec<Vec<u8>> {
        let record = |bucket| {
            let mut record = Vec::new();
            self.write_record(pairs, bucket, &mut record);
            assert_eq!(record.len() as u64, self.key_map.record_len());
            record
        };
        (0..self.key_map.buckets()).map(record).collect()
    }
}

/// Distributes `pairs` over records, for a key map of kind `kind` in which each value lies in one
/// record, as [`pack_with`] does for one part.
///
/// # Errors
/// As [`pack_with`].
pub fn pack_as<P: Pairs + ?Sized>(kind: KeyMapKind, pairs: &P, seed: PublicSeed) -> Result<Packed> {
    pack_with(&PackOptions { kind, parts: Some(1), ..PackOptions::default() }, pairs, seed)
}

/// Distributes the pairs `real` over records, for a key map as `options` describe it. The result
/// depends only on the set of pairs, the options and `seed`, not on the order of the pairs.
///
/// `seed` must be drawn after the keys are known, and at random: see the [module](crate::key_map).
/// Takes about 130 bytes of memory for each piece of a value besides the pairs themselves.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are no pairs or more than 2^32 − 1,
/// if two keys are equal, if a value is longer than any record can be, if `options` ask for an
/// impossible number of parts, or if there is to be room in a bucket map, where gaps are of little
/// use to new keys.
pub fn pack_with<P: Pairs + ?Sized>(
    options: &PackOptions,
    real: &P,
    seed: PublicSeed,
) -> Result<Packed> {
    check(options, real)?;
    if options.room > 0 && options.kind != KeyMapKind::Cuckoo {
        return Err(Error::api_misuse(
            "keys that come later find room in a cuckoo map alone: choose that kind",
        ));
    }
    check_count((real.len() as u64).saturating_add(options.room))?;
    let pairs = &WithRoom::new(real, options.room, seed);
    let kind = options.kind;
    let (parts, undivided) = parts::choose(options, pairs, attempt_seed(seed, 0));
    let limits = StashLimits::of(payload_lens(pairs, parts));
    let mut plan = None;
    let mut best: Option<(PublicSeed, Vec<Item>, Placement)> = None;
    for attempt in 0..ATTEMPTS {
        let seed = attempt_seed(seed, attempt);
        let items = hash_all(pairs, parts, seed)?;
        if !tags_differ(pairs, &items)? {
            continue;
        }
        let plan = plan
            .get_or_insert_with(|| Plan::by_rehearsal(kind, parts.number(), &items, &limits, 1.0));
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
        // Under each of the seeds, two pieces of values got the same tag of 64 bits.
        return Err(Error::api_misuse(
            "the keys share tags under every seed; build the table again",
        ));
    };
    let Placement { buckets, record_len, rule, homes, .. } = outcome;
    let key_map = KeyMap {
        seed,
        keys: real.len() as u64,
        shape: TableShape::new(buckets, record_len)?,
        key_form: KeyForm::default(),
        entry_bytes: 0,
        rule,
        parts,
        lists: options.lists,
        stash: Vec::new(),
    };
    // Others that are left out come last.
    let items: Vec<Item> =
        items.into_iter().take_while(|item| (item.pair as usize) < real.len()).collect();
    Ok(assemble(real, key_map, undivided, &items, &homes))
}

/// Pairs, and made-up ones behind them in the place of those that may come later.
struct WithRoom<'p, P: ?Sized> {
    pairs: &'p P,
    later: Vec<[u8; 32]>,
}

impl<'p, P: Pairs + ?Sized> WithRoom<'p, P> {
    fn new(pairs: &'p P, room: u64, seed: PublicSeed) -> Self {
        let later = (0..room).map(|number| {
            let material = [&seed.as_bytes()[..], &number.to_le_bytes()].concat();
            *PublicSeed::derive("privet key map v1, a key that may come later", &material)
                .as_bytes()
        });
        Self { pairs, later: later.collect() }
    }
}

impl<P: Pairs + ?Sized> Pairs for WithRoom<'_, P> {
    fn len(&self) -> usize {
        self.pairs.len() + self.later.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        match number.checked_sub(self.pairs.len()) {
            Some(later) => &self.later[later],
            None => self.pairs.key(number),
        }
    }

    fn value(&self, number: usize) -> &[u8] {
        let len = self.pairs.len();
        let alike = match number.checked_sub(len) {
            // As long as values that lie evenly among all: rows may be sorted by their lengths.
            Some(later) => (later as u64 * len as u64 / self.later.len() as u64) as usize,
            None => number,
        };
        self.pairs.value(alike)
    }
}

pub(super) fn check_count(keys: u64) -> Result<()> {
    if keys == 0 {
        return Err(Error::api_misuse("a table by key needs at least one key"));
    }
    match u32::try_from(keys) {
        Ok(_) => Ok(()),
        Err(_) => Err(too_many(format!("{keys} keys"))),
    }
}

pub(super) fn check<P: Pairs + ?Sized>(options: &PackOptions, pairs: &P) -> Result<()> {
    check_count(pairs.len() as u64)?;
    if options.parts.is_some_and(|parts| !(1..=MOST_PARTS).contains(&parts)) {
        return Err(Error::api_misuse(format!("a key has between 1 and {MOST_PARTS} parts")));
    }
    let longest = (0..pairs.len()).map(|pair| pairs.value(pair).len()).max().unwrap_or(0);
    if longest as u64 > MAX_RECORD_LEN {
        return Err(Error::api_misuse(format!(
            "a value of {longest} bytes is too long for any table: the limit is {MAX_RECORD_LEN}"
        )));
    }
    Ok(())
}

fn too_many(what: String) -> Error {
    Error::api_misuse(format!(
        "{what} are too many for one table: the limit is {}; split it",
        u32::MAX
    ))
}

/// The lengths of what all entries hold, if values are cut into `parts`.
pub(super) fn payload_lens<P: Pairs + ?Sized>(
    pairs: &P,
    parts: Parts,
) -> impl Iterator<Item = usize> {
    (0..pairs.len()).flat_map(move |pair| {
        let len = pairs.value(pair).len();
        (0..parts.pieces(len)).map(move |piece| parts.payload_len(len, piece))
    })
}

/// The seed of attempt number `attempt`, derived from the one drawn for the build.
fn attempt_seed(seed: PublicSeed, attempt: u32) -> PublicSeed {
    let mut material = seed.as_bytes().to_vec();
    material.extend_from_slice(&attempt.to_le_bytes());
    PublicSeed::derive("privet key map v1, hash seed of an attempt", &material)
}

/// Hashes all pieces of all values.
pub(super) fn hash_all<P: Pairs + ?Sized>(
    pairs: &P,
    parts: Parts,
    seed: PublicSeed,
) -> Result<Vec<Item>> {
    let mut items = Vec::with_capacity(pairs.len());
    for pair in 0..pairs.len() {
        let value_len = pairs.value(pair).len();
        let hashes = KeyHash::of_pieces(seed, pairs.key(pair));
        for (piece, hash) in (0..parts.pieces(value_len)).zip(hashes) {
            items.push(Item {
                hash,
                entry_len: entry::entry_len(parts.payload_len(value_len, piece)),
                number: items.len() as u32,
                pair: pair as u32,
                piece: piece as u8,
            });
        }
    }
    match u32::try_from(items.len()) {
        Ok(_) => Ok(items),
        Err(_) => Err(too_many(format!("{} pieces of values", items.len()))),
    }
}

/// Whether all tags differ. They need only differ within a bucket and within the stash, but that
/// all of them do is hardly less likely.
fn tags_differ<P: Pairs + ?Sized>(pairs: &P, items: &[Item]) -> Result<bool> {
    let mut tags: Vec<(u64, u32)> = items.iter().map(|item| (item.hash.tag, item.pair)).collect();
    tags.sort_unstable();
    for neighbours in tags.windows(2) {
        let [(tag, pair), (next_tag, next_pair)] = neighbours else { continue };
        if tag == next_tag {
            if pair != next_pair && pairs.key(*pair as usize) == pairs.key(*next_pair as usize) {
                return Err(Error::api_misuse(
                    "two keys are equal; a table by key needs each key once",
                ));
            }
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sorts the pieces into their records and the stash. `key_map` still lacks the stash and the bytes
/// of the entries.
fn assemble<P: Pairs + ?Sized>(
    pairs: &P,
    mut key_map: KeyMap,
    undivided: Option<Undivided>,
    items: &[Item],
    homes: &[Home],
) -> Packed {
    let buckets = key_map.buckets() as usize;
    // A counting sort by record, then each record by tag.
    let mut starts = vec![0u32; buckets + 1];
    for (_, home) in items.iter().zip(homes) {
        if let Home::Record(record) = home {
            starts[*record as usize + 1] += 1;
        }
    }
    for record in 0..buckets {
        starts[record + 1] += starts[record];
    }
    let mut next = starts.clone();
    let mut members = vec![(0, 0, 0); starts[buckets] as usize];
    for (item, home) in items.iter().zip(homes) {
        match home {
            Home::Record(record) => {
                let slot = &mut next[*record as usize];
                members[*slot as usize] = (item.hash.tag, item.pair, item.piece);
                *slot += 1;
                key_map.entry_bytes += item.entry_len;
            }
            Home::Stash => {
                let value = pairs.value(item.pair as usize);
                let payload = key_map.parts.payload(value, item.piece.into());
                key_map.stash.push((item.hash.tag, payload.into_owned()));
            }
        }
    }
    for bounds in starts.windows(2) {
        members[bounds[0] as usize..bounds[1] as usize].sort_unstable();
    }
    key_map.stash.sort_unstable_by_key(|(tag, _)| *tag);
    Packed { key_map, undivided, members, starts }
}
