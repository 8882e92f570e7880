//! The live hints of a client: those from which it may choose.
//!
//! There is a fixed number of *rows*, one for each hint. The successor of a used hint gets its row.
//! Every hint has an *id*, from which its contents follow under a secret key. Ids are never used
//! twice. One block of the pseudorandom function yields the offsets of eight neighbouring ids. So
//! the table also keeps a list of those *groups* of eight ids that have a live one; a search takes
//! a block for each of these groups. Ids only count up, and a parity stays in its row. So hints can
//! be replaced for ever without new numbers.
//!
//! # Why queries reveal nothing
//!
//! The argument is that the set of live hints has the same distribution before every query:
//! independent samples. A query takes out one hint, chosen *uniformly among those that contain the
//! record*. It puts in one hint that is sampled *given that it contains the record*. For a given
//! number of hints that contain the record, these are independent samples of such hints. They stay
//! so when one of them is replaced by a fresh one; all other hints do not change. (The papers take
//! the first hint that contains the record, and put the new one exactly in its place. With a
//! uniform choice, the place does not matter.)
//!
//! All this holds for indices that do not depend on what the servers did before.
//!
//! # Time
//!
//! A search and an exchange happen before the query, so their time must not reveal the record.
//! There are two points:
//!
//! - **The steps are the same** for every record and every history of the same length. A search
//!   goes over every group and every row in their order, and then makes closer checks of a fixed
//!   number of candidates. An exchange also goes over every group, to find the place of an id.
//!   There is no map whose size or shape would show how lookups repeat. No branch depends on the
//!   record, on the hint or on the key: a script checks that on the compiled program
//!   (`scripts/check-constant-time.sh`).
//! - **Addresses are not the same.** The places of the candidates follow from the record, and so
//!   does the one place of each list that an exchange writes. The source says [`admit`] where that
//!   begins. The candidates of a record that was asked for recently may still be in the processor's
//!   caches. Surplus places, which fill up the number, lie anywhere. So the closer checks may take
//!   less time for such a record. For this reason, a session does not send a query at the moment at
//!   which this work is done.
//!
//! The length of the list of groups would show how queries repeat: the hints of a record that is
//! asked for again and again are all young, and the old groups stay as they are. So the list is
//! padded to a length that depends only on the number of queries: `search_len` of
//! [`HintTable::exchange`].

use super::search::{Candidates, places};
use super::{Partitions, impossible};
use crate::planted;
use crate::{Error, Result, Secret, SecretRng, TableShape};
use privet_kernels::Kernels;
use privet_kernels::taint::{admit, conceal, declassify};
use std::sync::atomic::{AtomicU32, Ordering};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use zeroize::{DefaultIsZeroes, Zeroize as _, Zeroizing};

/// Ids of a group share a block of the pseudorandom function.
const GROUP: u32 = 8;
/// The number of groups that are searched before their marks are combined with the live hints.
/// Their marks fit into the first-level cache. A multiple of 8.
const GROUPS_AT_ONCE: usize = 4096;
/// Stands for no group: ids end before.
const NO_GROUP: u32 = u32::MAX;
/// Stands for no place of an id, or for no row.
const NONE: u32 = u32::MAX;
/// The fingerprint of no record.
const NO_FINGERPRINT: u16 = u16::MAX;

/// A hint, without its parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveHint {
    /// The id from which its contents follow.
    pub id: u32,
    /// Selects the partitions whose select value is below it, or the others if `above` is set. It
    /// has no meaning in tables whose hints select every partition.
    pub cutoff: u32,
    /// See `cutoff`.
    pub above: bool,
    /// A record that it contains besides those that its id and cutoff select. It replaces any other
    /// record in the same partition. Secret.
    pub extra: Option<u64>,
}

/// The contents of a row.
#[derive(Clone, Copy, Default)]
struct HintRow {
    /// The extra record. All ones: none.
    extra: u64,
    cutoff: u32,
    /// The place of its id: eight times the place of its group, plus its place in the group. It
    /// includes the bit [`ABOVE`]. [`NO_LANE`]: there is no hint.
    lane: u32,
}

const ABOVE: u32 = 1 << 31;
const NO_LANE: u32 = ABOVE - 1;

impl DefaultIsZeroes for HintRow {}

impl HintRow {
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
    /// Makes the fingerprints of records unpredictable to others.
    salt: u64,
    /// Counts searches, so that they fill their surplus places differently.
    searches: AtomicU32,
    rows: Zeroizing<Vec<HintRow>>,
    /// For each row, a fingerprint of 16 bits of its extra record, for searches.
    fingerprints: Zeroizing<Vec<u16>>,
    /// The numbers of the groups, in no particular order; [`NO_GROUP`] in places that are free.
    groups: Zeroizing<Vec<u32>>,
    /// For each place of a group, a bit for each live id, …
    live: Zeroizing<Vec<u8>>,
    /// … and their rows.
    rows_of: Zeroizing<Vec<[u32; GROUP as usize]>>,
    /// Holds the parities of the rows from `parities` on, and other data around them.
    bytes: Zeroizing<Vec<u8>>,
    parities: usize,
}

/// The form of a table's hints.
pub struct HintForm {
    /// How the table is cut.
    pub partitions: Partitions,
    /// The key of the pseudorandom function.
    pub key: Secret<[u8; 16]>,
    /// Whether hints select some partitions, or have a record in every one.
    pub selects: bool,
    /// About how many hints contain a given record, such as λ_hint.
    pub security: u32,
}

impl HintTable {
    /// A table of `hints`, one for each row. `None`: a row that never has a hint. Their parities
    /// lie in `bytes`, a record for each row, from `parities` on.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if two have the same id, an extra record lies
    /// beyond the table or the parities beyond `bytes`.
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
        // The salt is fresh and does not follow from the key: a server may have the key, and must
        // not know which records have equal fingerprints.
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
            // Reserves room for everything at once: a vector that grows would leave copies behind.
            rows: Zeroizing::new(Vec::with_capacity(rows)),
            fingerprints: Zeroizing::new(vec![NO_FINGERPRINT; rows]),
            groups: Zeroizing::new(Vec::with_capacity(rows)),
            live: Zeroizing::new(Vec::with_capacity(rows)),
            rows_of: Zeroizing::new(Vec::with_capacity(rows)),
            bytes,
            parities,
        };
        let mut by_id = Zeroizing::new(Vec::with_capacity(rows));
        for (row, hint) in hints.enumerate() {
            table.rows.push(HintRow { extra: u64::MAX, cutoff: 0, lane: NO_LANE });
            if let Some(hint) = hint {
                if hint.extra.is_some_and(|extra| extra >= partitions.shape().records()) {
                    return Err(Error::corrupted("stored hints contradict each other"));
                }
                by_id.push(u64::from(hint.id) << 32 | row as u64);
                table.set_row(row as u32, hint, NO_LANE);
            }
        }
        // After sorting, the ids of one group are neighbours, so no search for a group is needed.
        by_id.sort_unstable();
        if by_id.is_sorted_by(|one, next| one >> 32 < next >> 32) {
            by_id.iter().for_each(|row| table.append((row >> 32) as u32, *row as u32));
        } else {
            return Err(Error::corrupted("stored hints contradict each other"));
        }
        Ok(table)
    }

    /// How the table is cut.
    pub fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// Follows the growth of a table that keeps its cut.
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
        let (hint, is_there) = self.hint_for(Some(row), u64::MAX);
        let extra = hint.extra.filter(|extra| *extra != u64::MAX);
        is_there.then_some(LiveHint { extra, ..hint })
    }

    /// The hint in a row, which contains `index`. If it has no extra record, `index` takes that
    /// place. Also returns whether there is a hint in the row; if not, the returned hint means
    /// nothing.
    ///
    /// No branch depends on the hint. (A check whether an `Option` is `None` would be one. It is
    /// secret here, because only hints that replaced others have an extra record.)
    pub fn hint_for(&self, row: Option<u32>, index: u64) -> (LiveHint, bool) {
        let none = HintRow { extra: u64::MAX, cutoff: 0, lane: NO_LANE };
        let row = row.and_then(|row| self.rows.get(admit(row) as usize));
        let row = conceal(row.copied().unwrap_or(none));
        let lane = row.lane();
        // Rows without a hint never get one, and searches do not find them.
        let is_there = declassify(lane != NO_LANE);
        let group = self.groups.get(admit(lane / GROUP) as usize).copied().unwrap_or(0);
        let extra = u64::conditional_select(&row.extra, &index, row.extra.ct_eq(&u64::MAX));
        let hint = LiveHint {
            id: conceal(group).wrapping_mul(GROUP) | (lane % GROUP),
            cutoff: row.cutoff,
            above: row.above(),
            extra: Some(extra),
        };
        (hint, is_there)
    }

    /// The bytes that hold the parities and other data around them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Like [`bytes`](Self::bytes), to change the data around the parities.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The parity of the hint in a row.
    pub fn parity(&self, row: u32) -> &[u8] {
        let len = self.partitions.record_len();
        let start = self.parities + admit(row) as usize * len;
        &self.bytes[start..start + len]
    }

    /// As [`parity`](Self::parity), to change it.
    pub fn parity_mut(&mut self, row: u32) -> &mut [u8] {
        let len = self.partitions.record_len();
        let start = self.parities + admit(row) as usize * len;
        &mut self.bytes[start..start + len]
    }

    /// Reads a row's parity and erases it.
    pub fn take_parity(&mut self, row: u32) -> Zeroizing<Vec<u8>> {
        let parity = self.parity_mut(row);
        let taken = Zeroizing::new(parity.to_vec());
        parity.zeroize();
        taken
    }

    /// Takes the hint in `row` out of use for good, and puts `successor` in its place. The caller
    /// must set the parity. `search_len` is the number of groups that searches check from now on,
    /// if there are not more live ones. It must depend only on public parameters and the number of
    /// queries. It must be so large that every live hint has its place, including the successor.
    ///
    /// No branch depends on which hint is used, nor does the memory that the table takes. Addresses
    /// do: one place of each list is written.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if there is no hint in that row, or another
    /// row has a hint with the successor's id. Then nothing changes.
    pub fn exchange(&mut self, row: u32, successor: LiveHint, search_len: usize) -> Result<()> {
        let lane = conceal(self.rows.get(admit(row) as usize).map_or(NO_LANE, |row| row.lane()));
        // Neither happens with this client's own journal.
        if declassify(lane == NO_LANE) || self.row_of(successor.id).is_some() {
            return Err(impossible("it uses a hint that is not there, or brings one that is"));
        }
        self.search_at_least(search_len);
        if planted::hint_stays() {
            return Ok(());
        }
        self.take_out(row, lane);
        self.put(row, successor);
        if planted::successor_goes() {
            self.take_out(row, self.rows[row as usize].lane());
        }
        Ok(())
    }

    /// Leaves `row`, whose hint has the place `lane`, without a hint.
    fn take_out(&mut self, row: u32, lane: u32) {
        let (place, bit) = (admit(lane / GROUP) as usize, lane % GROUP);
        self.live[place] &= !(1 << bit);
        self.rows_of[place][admit(bit) as usize] = NONE;
        let is_empty = conceal(self.live[place]).ct_eq(&0);
        self.groups[place].conditional_assign(&NO_GROUP, is_empty);
        let row = admit(row) as usize;
        self.rows[row] = HintRow { extra: u64::MAX, cutoff: 0, lane: NO_LANE };
        self.fingerprints[row] = NO_FINGERPRINT;
    }

    /// Makes searches check `search_len` groups from now on, if there are not more live ones.
    pub fn search_at_least(&mut self, search_len: usize) {
        while self.groups.len() < search_len {
            self.add_place(NO_GROUP);
        }
    }

    fn add_place(&mut self, group: u32) {
        self.groups.push(group);
        self.live.push(0);
        self.rows_of.push([NONE; GROUP as usize]);
    }

    /// Gives the hint `id` in `row` a place, after all hints with smaller ids.
    fn append(&mut self, id: u32, row: u32) {
        if self.groups.last() != Some(&(id / GROUP)) {
            self.add_place(id / GROUP);
        }
        self.set_place(self.groups.len() as u32 - 1, id, row);
    }

    /// Puts a hint into `row`. Its id gets the place of its group, or a free place if the group has
    /// none.
    fn put(&mut self, row: u32, hint: LiveHint) {
        let group = hint.id / GROUP;
        let (with_others, empty) = (self.place_of(group), self.place_of(NO_GROUP));
        let is_alone = with_others.ct_eq(&NONE);
        let mut place = u32::conditional_select(&with_others, &empty, is_alone);
        // Happens only if searches are shorter than `exchange` demands.
        if declassify(place == NONE) {
            place = self.groups.len() as u32;
            self.add_place(group);
        }
        self.groups[admit(place) as usize] = group;
        self.set_place(place, hint.id, row);
        self.set_row(row, hint, place * GROUP + hint.id % GROUP);
    }

    /// Sets the row of hint `id` to `row`. Its group has the place `place`.
    fn set_place(&mut self, place: u32, id: u32, row: u32) {
        let (at, bit) = (admit(place) as usize, id % GROUP);
        self.live[at] |= 1 << bit;
        self.rows_of[at][admit(bit) as usize] = row;
        let lane = &mut self.rows[admit(row) as usize].lane;
        *lane = (place * GROUP + bit) | (*lane & ABOVE);
    }

    /// Sets the contents of `row` to `hint`.
    fn set_row(&mut self, row: u32, hint: LiveHint, lane: u32) {
        // The fingerprint for no record is never compared.
        let extra = hint.extra.unwrap_or(u64::MAX);
        let fingerprint = self.fingerprint(extra);
        let at = admit(row) as usize;
        self.fingerprints[at] =
            u16::conditional_select(&fingerprint, &NO_FINGERPRINT, extra.ct_eq(&u64::MAX));
        let lane = lane | u32::from(hint.above) << ABOVE.trailing_zeros();
        self.rows[at] = HintRow { extra, cutoff: hint.cutoff, lane };
    }

    /// The row of a live hint. Checks all groups, whichever hint it is.
    pub fn row_of(&self, id: u32) -> Option<u32> {
        let place = self.place_of(id / GROUP);
        let there = !place.ct_eq(&NONE);
        let any_place = admit(u32::conditional_select(&0, &place, there)) as usize;
        let bit = id % GROUP;
        let live = conceal(*self.live.get(any_place)?) >> bit & 1;
        let row = conceal(self.rows_of[any_place][admit(bit) as usize]);
        // This is public: a hint that callers look for is there, and a successor's id is new.
        declassify(live & there.unwrap_u8() == 1).then_some(row)
    }

    /// The place of a group with a live id, or a free place if `group` is [`NO_GROUP`]; [`NONE`] if
    /// there is none. Checks all places. No branch and no address depends on the group.
    fn place_of(&self, group: u32) -> u32 {
        let mut marks = Zeroizing::new([0u64; GROUPS_AT_ONCE / 64]);
        let mut place = NONE;
        for (number, groups) in (0u32..).zip(self.groups.chunks(GROUPS_AT_ONCE)) {
            let marks = &mut marks[..groups.len().div_ceil(64)];
            self.kernels.subset_equal_words(groups, group, marks);
            for (word, marks) in (number * (GROUPS_AT_ONCE / 64) as u32..).zip(marks.iter()) {
                let found = word * 64 + marks.trailing_zeros() % 64;
                place.conditional_assign(&found, !marks.ct_eq(&0));
            }
        }
        place
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

    /// The same for a record that is not the extra record of any hint, because no successor was
    /// made for it.
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

        // From here on addresses are secret: those of the few places for closer checks.
        let rows = candidates.ids.iter().map(|lane| {
            let place = self.rows_of.get(admit(lane / GROUP) as usize);
            conceal(place.map_or(NONE, |rows| rows[admit(lane % GROUP) as usize]))
        });
        let rows = Zeroizing::new(rows.collect::<Vec<u32>>());
        let mut selects = Zeroizing::new(vec![0; rows.len()]);
        if self.selects {
            let ids = candidates.ids.iter().map(|lane| {
                let group = self.groups.get(admit(lane / GROUP) as usize).copied();
                conceal(group.unwrap_or(0)).wrapping_mul(GROUP) | (lane % GROUP)
            });
            let ids = Zeroizing::new(ids.collect::<Vec<u32>>());
            self.kernels.subset_selects_at(key, partition, &ids, &mut selects);
        }
        let looked_at = rows.iter().zip(candidates.taken.iter()).zip(selects.iter());
        let contains = looked_at.map(|((row, taken), select)| {
            let row = conceal(self.rows.get(admit(*row) as usize).copied().unwrap_or_default());
            let selected = !self.selects | ((*select < row.cutoff) != row.above());
            // A hint has one record in a partition. If its extra record lies there, it is that one.
            // (The mark for no extra record lies in no partition.)
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
        // Records with the same fingerprint by chance, and hints that replaced those used for this
        // record.
        let expected = self.rows.len() as f64 / f64::from(NO_FINGERPRINT);
        let mut candidates = Candidates::of(
            &marks,
            places(expected, self.security, marks.len() * 64),
            self.elsewhere(),
        );
        let looked_at = candidates.ids.iter().zip(candidates.taken.iter());
        let contains = looked_at.map(|(row, taken)| {
            let row = conceal(self.rows.get(admit(*row) as usize).copied().unwrap_or_default());
            taken & (row.extra == index)
        });
        let contains = Zeroizing::new(contains.collect());
        let rows = std::mem::take(&mut candidates.ids);
        Found { work: candidates.steps, rows, contains }
    }

    /// Patches the parities of all hints that contain record `index` with its change. Edits are
    /// public.
    pub fn patch(&mut self, index: u64, difference: &[u8]) {
        let found = self.find(index);
        for (row, contains) in found.rows.iter().zip(found.contains.iter()) {
            if *contains {
                super::xor(self.parity_mut(*row), difference);
            }
        }
    }
}

/// Up to eight bytes, padded with zeros.
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
        // Reserves room for everything at once: a vector that grows would leave copies behind.
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
        let none = count.ct_eq(&0);
        let chosen = rng.below(u64::conditional_select(&count, &1, none));
        let chosen = planted::choice(chosen);
        let (mut passed, mut row) = (0u64, 0u32);
        for (candidate, contains) in self.rows.iter().zip(self.contains.iter()) {
            let take = Choice::from(u8::from(*contains)) & passed.ct_eq(&chosen);
            row.conditional_assign(candidate, take);
            passed += u64::from(*contains);
        }
        // The probability that no hint contains a record is below e^-40, so this reveals nothing in
        // practice.
        (!declassify(bool::from(none))).then_some(row)
    }
}

#[cfg(test)]
mod tests;
