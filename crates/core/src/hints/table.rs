//! The live hints of a client: those it may choose from.
//!
//! There is a fixed number of *rows*, one for each hint; a hint that is used gives its row to its successor. Every hint has an *id*, from which its contents follow under a secret
//! key, and ids are never used twice. The pseudorandom function yields the offsets of eight neighbouring ids from one block, so the table keeps, beside its rows, a list of the *groups*
//! of eight ids in which any is live; looking for a record takes a block for each of them.
//!
//! # Why queries teach nothing
//!
//! What a server may conclude from a sequence of queries rests on the set of live hints having the same distribution before every query: independent samples. A query
//! takes one hint out, chosen *uniformly among those that contain the record*, and puts one back that is sampled *given that it contains the record*.
//! Given how many hints contain the record, those are independent samples of the hints that do, and stay so when one is exchanged for a fresh one; the others are untouched. (The papers
//! take the first that contains the record and put the new one exactly in its place; with a uniform choice the place is of no consequence.)
//!
//! All this is for indices that do not depend on what the servers did before.
//!
//! # Time
//!
//! How long a search takes delays the query, so a server sees it. A search looks at every group and every row, always, and then has a closer look at a fixed number of candidates.
//! The length of the list of groups would tell how queries repeat (the hints of a record that is asked for again and again are all young, and leave the old groups alone), so it is padded to a length
//! that depends on the number of queries alone: `search_len` of [`HintTable::exchange`].

use super::Partitions;
#[cfg(any(test, feature = "planted-leaks"))]
use super::planted;
use super::search::{Candidates, places};
use crate::{Error, Result, Secret, SecretRng, TableShape};
use privet_kernels::Kernels;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use zeroize::{DefaultIsZeroes, Zeroize as _, Zeroizing};

/// Ids of a group share a block of the pseudorandom function.
const GROUP: u32 = 8;
/// Groups that are looked at between two looks at what is live: their marks fit the first-level cache. A multiple of 8.
const GROUPS_AT_ONCE: usize = 4096;
/// The number of no group: ids end before.
const NO_GROUP: u32 = u32::MAX;
/// A place of an id, or a row, that is not there.
const NONE: u32 = u32::MAX;
/// The fingerprint of no record.
const NO_FINGERPRINT: u16 = u16::MAX;

/// A hint, without its parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveHint {
    /// From which its contents follow.
    pub id: u32,
    /// Selects the partitions whose select value is below it; unless `above`, when it selects the others. Without meaning in tables whose hints select every partition.
    pub cutoff: u32,
    /// See `cutoff`.
    pub above: bool,
    /// A record that it contains beside the ones that its id and cutoff select, in place of any in the same partition. A secret.
    pub extra: Option<u64>,
}

/// What a row holds.
#[derive(Clone, Copy, Default)]
struct Row {
    /// All ones: none.
    extra: u64,
    cutoff: u32,
    /// The place of its id: eight times the place of the group, and the rest. [`NO_LANE`]: there is no hint. And the bit [`ABOVE`].
    lane: u32,
}

const ABOVE: u32 = 1 << 31;
const NO_LANE: u32 = ABOVE - 1;

impl DefaultIsZeroes for Row {}

impl Row {
    fn lane(self) -> u32 {
        self.lane & !ABOVE
    }

    fn above(self) -> bool {
        self.lane & ABOVE != 0
    }
}

/// The live hints. See the [module](self).
pub struct HintTable {
    partitions: Partitions,
    kernels: Kernels,
    key: Secret<[u8; 16]>,
    selects: bool,
    security: u32,
    /// Spreads records over fingerprints in a way that nobody outside can predict.
    salt: u64,
    /// Counts searches, so that no two fill their surplus places alike.
    searches: AtomicU32,
    rows: Zeroizing<Vec<Row>>,
    /// For each row 16 bits of its extra record, to search in.
    fingerprints: Zeroizing<Vec<u16>>,
    /// The numbers of the groups, in no particular order; [`NO_GROUP`] in places that are free.
    groups: Zeroizing<Vec<u32>>,
    /// For each place of a group a bit for each id that is live, …
    live: Zeroizing<Vec<u8>>,
    /// … and their rows.
    rows_of: Zeroizing<Vec<[u32; GROUP as usize]>>,
    place_of_group: HashMap<u32, u32>,
    free: Zeroizing<Vec<u32>>,
    /// Holds the parities of the rows from `parities` on, and other things around them.
    bytes: Zeroizing<Vec<u8>>,
    parities: usize,
}

/// How a table's hints are made.
pub struct HintForm {
    /// How the table is cut.
    pub partitions: Partitions,
    /// The key of the pseudorandom function.
    pub key: Secret<[u8; 16]>,
    /// Whether hints select some partitions, or have a record in every one.
    pub selects: bool,
    /// λ_hint or the like: about how many hints contain a given record.
    pub security: u32,
}

impl HintTable {
    /// A table of `hints`, one for each row; `None`: a row without a hint, for good. Their parities lie in `bytes`, a record for each row, from `parities` on.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if two have the same id, an extra record lies beyond the table or the parities beyond `bytes`.
    pub fn new(
        form: HintForm,
        hints: impl ExactSizeIterator<Item = Option<LiveHint>>,
        bytes: Zeroizing<Vec<u8>>,
        parities: usize,
        kernels: Kernels,
    ) -> Result<Self> {
        let HintForm { partitions, key, selects, security } = form;
        let rows = hints.len();
        if bytes.len() < parities + rows * partitions.record_len() {
            return Err(Error::corrupted("stored hints end before their parities"));
        }
        // Fresh: a server may have the key, and must not be able to tell which records look alike.
        let mut salt = [0; 2];
        SecretRng::from_os()?.fill_words(&mut salt);
        let mut table = Self {
            partitions,
            kernels,
            key,
            selects,
            security,
            salt: u64::from(salt[0]) << 32 | u64::from(salt[1]) | 1,
            searches: AtomicU32::new(salt[0]),
            // Room for all at once: growing would leave copies behind.
            rows: Zeroizing::new(Vec::with_capacity(rows)),
            fingerprints: Zeroizing::new(vec![NO_FINGERPRINT; rows]),
            groups: Zeroizing::new(Vec::with_capacity(rows)),
            live: Zeroizing::new(Vec::with_capacity(rows)),
            rows_of: Zeroizing::new(Vec::with_capacity(rows)),
            place_of_group: HashMap::new(),
            free: Zeroizing::new(Vec::with_capacity(rows)),
            bytes,
            parities,
        };
        for (row, hint) in hints.enumerate() {
            table.rows.push(Row { extra: u64::MAX, cutoff: 0, lane: NO_LANE });
            if let Some(hint) = hint {
                let beyond = hint.extra.is_some_and(|extra| extra >= partitions.shape().records());
                if beyond || hint.id / GROUP == NO_GROUP || table.row_of(hint.id).is_some() {
                    return Err(Error::corrupted("stored hints contradict each other"));
                }
                table.put(row as u32, hint);
            }
        }
        Ok(table)
    }

    /// How the table is cut.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The table has grown, and is cut as before.
    ///
    /// # Errors
    /// As [`Partitions::grown`].
    pub fn grow(&mut self, after: TableShape) -> Result<()> {
        self.partitions = self.partitions.grown(after)?;
        Ok(())
    }

    /// The key of the pseudorandom function.
    pub fn key(&self) -> &[u8; 16] {
        self.key.expose()
    }

    /// The number of rows.
    pub fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The hint in a row, if there is one.
    pub fn hint(&self, row: u32) -> Option<LiveHint> {
        let row = self.rows.get(row as usize)?;
        let lane = Some(row.lane()).filter(|lane| *lane != NO_LANE)?;
        Some(LiveHint {
            id: self.groups[(lane / GROUP) as usize] * GROUP + lane % GROUP,
            cutoff: row.cutoff,
            above: row.above(),
            extra: Some(row.extra).filter(|extra| *extra != u64::MAX),
        })
    }

    /// The bytes that hold the parities, and what lies around them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`bytes`](Self::bytes), to change what lies around the parities.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The parity of the hint in a row.
    pub fn parity(&self, row: u32) -> &[u8] {
        let len = self.partitions.record_len();
        let start = self.parities + row as usize * len;
        &self.bytes[start..start + len]
    }

    /// As [`parity`](Self::parity), to change it.
    pub fn parity_mut(&mut self, row: u32) -> &mut [u8] {
        let len = self.partitions.record_len();
        let start = self.parities + row as usize * len;
        &mut self.bytes[start..start + len]
    }

    /// Reads a row's parity and erases it.
    pub fn take_parity(&mut self, row: u32) -> Zeroizing<Vec<u8>> {
        let parity = self.parity_mut(row);
        let taken = Zeroizing::new(parity.to_vec());
        parity.zeroize();
        taken
    }

    /// Takes the hint in `row` out of use for good and puts `successor` in its place. The parity is the caller's to see to. `search_len` is how many groups
    /// searches shall look at from now on, if the live ones are not more: it must depend on nothing but public parameters and the number of queries.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if there is no hint in that row, or one of the successor's id in another. Nothing is changed then.
    pub fn exchange(&mut self, row: u32, successor: LiveHint, search_len: usize) -> Result<()> {
        let impossible = || Error::corrupted("the journal of used hints does not fit the hints");
        let used = self.hint(row).ok_or_else(impossible)?;
        if self.row_of(successor.id).is_some() || successor.id / GROUP == NO_GROUP {
            return Err(impossible());
        }
        #[cfg(any(test, feature = "planted-leaks"))]
        if planted::is(planted::Flaw::UsedHintStays) {
            self.search_at_least(search_len);
            return Ok(());
        }
        let lane = self.rows[row as usize].lane();
        let (place, bit) = ((lane / GROUP) as usize, lane % GROUP);
        self.live[place] &= !(1 << bit);
        self.rows_of[place][bit as usize] = NONE;
        if self.live[place] == 0 {
            self.place_of_group.remove(&(used.id / GROUP));
            self.groups[place] = NO_GROUP;
            self.free.push(place as u32);
        }
        #[cfg(any(test, feature = "planted-leaks"))]
        if planted::is(planted::Flaw::NoSuccessor) {
            self.leave_empty(row);
            self.search_at_least(search_len);
            return Ok(());
        }
        self.put(row, successor);
        self.search_at_least(search_len);
        Ok(())
    }

    /// Lets searches look at `search_len` groups from now on, if the live ones are not more.
    pub fn search_at_least(&mut self, search_len: usize) {
        while self.groups.len() < search_len {
            let place = self.add_place();
            self.free.push(place);
        }
    }

    fn add_place(&mut self) -> u32 {
        let place = self.groups.len() as u32;
        self.groups.push(NO_GROUP);
        self.live.push(0);
        self.rows_of.push([NONE; GROUP as usize]);
        place
    }

    fn put(&mut self, row: u32, hint: LiveHint) {
        let group = hint.id / GROUP;
        let place = match self.place_of_group.get(&group) {
            Some(place) => *place,
            None => {
                let free = self.free.pop();
                let place = free.unwrap_or_else(|| self.add_place());
                self.groups[place as usize] = group;
                self.place_of_group.insert(group, place);
                place
            }
        };
        let bit = hint.id % GROUP;
        self.live[place as usize] |= 1 << bit;
        self.rows_of[place as usize][bit as usize] = row;
        self.fingerprints[row as usize] =
            hint.extra.map_or(NO_FINGERPRINT, |extra| self.fingerprint(extra));
        self.rows[row as usize] = Row {
            extra: hint.extra.unwrap_or(u64::MAX),
            cutoff: hint.cutoff,
            lane: (place * GROUP + bit) | if hint.above { ABOVE } else { 0 },
        };
    }

    /// The row of a live hint.
    pub fn row_of(&self, id: u32) -> Option<u32> {
        let place = *self.place_of_group.get(&(id / GROUP))? as usize;
        let bit = id % GROUP;
        (self.live[place] >> bit & 1 == 1).then(|| self.rows_of[place][bit as usize])
    }

    /// Where a search's surplus places begin.
    fn elsewhere(&self) -> u32 {
        self.searches.fetch_add(0x85eb_ca6b, Ordering::Relaxed)
    }

    /// Below [`NO_FINGERPRINT`].
    fn fingerprint(&self, index: u64) -> u16 {
        let mixed = (index.wrapping_mul(self.salt) ^ self.salt.rotate_left(29))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (((mixed >> 48) * u64::from(NO_FINGERPRINT)) >> 16) as u16
    }

    /// The hints that contain record `index`, in a fixed number of places.
    pub fn find(&self, index: u64) -> Found {
        let mut found = self.find_fresh(index);
        found.append(self.find_by_extra(index));
        found
    }

    /// The same for a record that no successor was made for: none has it as its extra record.
    pub fn find_fresh(&self, index: u64) -> Found {
        let (partition, offset) = self.partitions.place(index);
        self.find_by_offset(partition, offset)
    }

    /// The hints whose pseudorandom record in `partition` is the one at `offset`.
    fn find_by_offset(&self, partition: u32, offset: u32) -> Found {
        let key = self.key.expose();
        let records = self.partitions.records();
        let mut marks = Zeroizing::new(Vec::with_capacity(self.groups.len().div_ceil(8)));
        let mut matches = Zeroizing::new([0; GROUPS_AT_ONCE]);
        let all = self.groups.chunks(GROUPS_AT_ONCE).zip(self.live.chunks(GROUPS_AT_ONCE));
        for (groups, live) in all {
            let matches = &mut matches[..groups.len()];
            self.kernels.subset_group_matches(key, partition, offset, records, groups, matches);
            let ((matches, last), (live, last_live)) = (matches.as_chunks(), live.as_chunks());
            let both = |(matches, live): (&[u8; 8], &[u8; 8])| {
                u64::from_le_bytes(*matches) & u64::from_le_bytes(*live)
            };
            marks.extend(matches.iter().zip(live).map(both));
            if !last.is_empty() {
                marks.push(both((&filled_up(last), &filled_up(last_live))));
            }
        }
        let expected = self.rows.len() as f64 / f64::from(self.partitions.records());
        let candidates =
            Candidates::of(&marks, places(expected, 0, marks.len() * 64), self.elsewhere());

        let rows = candidates.ids.iter().map(|lane| {
            let place = self.rows_of.get((lane / GROUP) as usize);
            place.map_or(NONE, |rows| rows[(lane % GROUP) as usize])
        });
        let rows = Zeroizing::new(rows.collect::<Vec<u32>>());
        let mut selects = Zeroizing::new(vec![0; rows.len()]);
        if self.selects {
            let ids = candidates.ids.iter().map(|lane| {
                let group = self.groups.get((lane / GROUP) as usize).copied().unwrap_or(0);
                group.wrapping_mul(GROUP) | (lane % GROUP)
            });
            let ids = Zeroizing::new(ids.collect::<Vec<u32>>());
            self.kernels.subset_selects_at(key, partition, &ids, &mut selects);
        }
        let looked_at = rows.iter().zip(candidates.taken.iter()).zip(selects.iter());
        let contains = looked_at.map(|((row, taken), select)| {
            let row = self.rows.get(*row as usize).copied().unwrap_or_default();
            let selected = !self.selects | ((*select < row.cutoff) != row.above());
            // A hint has one record in a partition, and an extra one is it. (No extra record at all lies in none.)
            let replaced = (row.extra >> self.partitions.offset_bits()) == u64::from(partition);
            *taken & selected & !replaced
        });
        let contains = Zeroizing::new(contains.collect());
        Found { work: candidates.steps, rows, contains }
    }

    /// The hints whose extra record is `index`.
    fn find_by_extra(&self, index: u64) -> Found {
        let mut marks = Zeroizing::new(vec![0u64; self.rows.len().div_ceil(64)]);
        let wanted = self.fingerprint(index);
        self.kernels.subset_equal_halfwords(&self.fingerprints, wanted, &mut marks);
        // Those that only look like it, and those that took the places of hints used for it.
        let expected = self.rows.len() as f64 / f64::from(NO_FINGERPRINT);
        let mut candidates = Candidates::of(
            &marks,
            places(expected, self.security, marks.len() * 64),
            self.elsewhere(),
        );
        let looked_at = candidates.ids.iter().zip(candidates.taken.iter());
        let contains = looked_at.map(|(row, taken)| {
            let row = self.rows.get(*row as usize).copied().unwrap_or_default();
            taken & (row.extra == index)
        });
        let contains = Zeroizing::new(contains.collect());
        let rows = std::mem::take(&mut candidates.ids);
        Found { work: candidates.steps, rows, contains }
    }

    /// Brings the parities of all hints that contain record `index` up to date with its change. For edits, which are public.
    pub fn patch(&mut self, index: u64, difference: &[u8]) {
        let found = self.find(index);
        for (row, contains) in found.rows.iter().zip(found.contains.iter()) {
            if *contains {
                super::xor(self.parity_mut(*row), difference);
            }
        }
    }
}

/// Up to eight bytes, and zeros behind them.
fn filled_up(bytes: &[u8]) -> [u8; 8] {
    let mut filled = [0; 8];
    filled[..bytes.len()].copy_from_slice(bytes);
    filled
}

/// Rows, and which of them hold hints that contain the wanted record.
pub struct Found {
    rows: Zeroizing<Vec<u32>>,
    contains: Zeroizing<Vec<bool>>,
    /// How many steps the search took: the same for every record.
    pub work: usize,
}

impl Found {
    fn append(&mut self, other: Found) {
        // Room for all at once: growing would leave copies behind.
        let room = self.rows.len() + other.rows.len();
        let mut rows = Zeroizing::new(Vec::with_capacity(room));
        rows.extend_from_slice(&self.rows);
        rows.extend_from_slice(&other.rows);
        let mut contains = Zeroizing::new(Vec::with_capacity(room));
        contains.extend_from_slice(&self.contains);
        contains.extend_from_slice(&other.contains);
        (self.rows, self.contains) = (rows, contains);
        self.work += other.work;
    }

    /// One of the hints that contain the record, each with the same probability: its row.
    pub fn choose(&self, rng: &mut SecretRng) -> Option<u32> {
        let count = self.contains.iter().map(|contains| u64::from(*contains)).sum::<u64>();
        let chosen = rng.below(count.max(1));
        #[cfg(any(test, feature = "planted-leaks"))]
        let chosen = if planted::is(planted::Flaw::FirstSuitableHint) { 0 } else { chosen };
        let (mut passed, mut row) = (0, 0);
        for (candidate, contains) in self.rows.iter().zip(self.contains.iter()) {
            let take = *contains & (passed == chosen);
            row = if take { *candidate } else { row };
            passed += u64::from(*contains);
        }
        (count > 0).then_some(row)
    }
}

#[cfg(any(test, feature = "planted-leaks"))]
impl HintTable {
    /// A row without a hint, as no client must leave behind.
    fn leave_empty(&mut self, row: u32) {
        self.rows[row as usize] = Row { extra: u64::MAX, cutoff: 0, lane: NO_LANE };
        self.fingerprints[row as usize] = NO_FINGERPRINT;
    }
}
