//! The lookups of the window. With them, the client asks for no record twice, and finds known
//! records again.
//!
//! The client does not ask again for a record that it asked for before in the window. Each query
//! would use up a spare of that chunk, and a client that looks up one record all the time would
//! soon run out of hints. Instead it asks for a *filler*, a uniformly chosen record that it has not
//! asked for yet, and takes the wanted record from here. The server sees no difference: the
//! query is made in the same way.
//!
//! **The work is the same for every record**, and depends on the number of queries made before: the
//! client compares all earlier lookups with the wanted record, and draws a filler whether it is
//! needed or not.

use privet_core::hints::xor;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::taint::declassify;
use zeroize::Zeroizing;

/// All records that were asked for in a window, by position in the shuffled table, in order. The
/// record of reservation `k` is *entry* `k`.
pub(super) struct Lookups {
    records: u64,
    window: u64,
    record_len: usize,
    kernels: Kernels,
    /// The lower halves of the positions; all ones if a cover was sent. And the upper halves, which
    /// only large tables need.
    lower: Zeroizing<Vec<u32>>,
    upper: Zeroizing<Vec<u32>>,
    /// For each reservation, the entry of the wanted record: the reservation's own if the record
    /// was not known before.
    wanted: Zeroizing<Vec<u64>>,
    outcomes: Vec<EntryState>,
    told: Vec<bool>,
    known: Zeroizing<Vec<u8>>,
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryState {
    Open,
    Known,
    Failed(Failure),
}

/// Why a cover was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No hint contains the record.
    NoHint,
    /// The chunk that it lies in has no spares left.
    NoSpares,
}

impl Lookups {
    /// Room for the `window` queries of a table of `records` records.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(super) fn new(
        records: u64,
        record_len: usize,
        window: u64,
        kernels: Kernels,
    ) -> Result<Self> {
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let room = window as usize;
        let mut known = Zeroizing::new(Vec::new());
        known.try_reserve_exact(room * record_len).map_err(|error| {
            Error::unavailable("no memory for the records of a window").caused_by(error)
        })?;
        Ok(Self {
            records,
            window,
            record_len,
            kernels,
            lower: Zeroizing::new(Vec::with_capacity(room)),
            upper: Zeroizing::new(Vec::with_capacity(room)),
            wanted: Zeroizing::new(Vec::with_capacity(room)),
            outcomes: Vec::with_capacity(room),
            told: Vec::with_capacity(room),
            known,
        })
    }

    /// Whether 32 bits are too few for positions and the mark for none.
    fn is_wide(&self) -> bool {
        self.records > u64::from(u32::MAX)
    }

    /// The first entry for `position`.
    pub(super) fn find(&self, position: u64) -> Option<u64> {
        let mut found = u64::MAX;
        for (number, word) in (0..).zip(self.entries(position).iter()) {
            let entry = 64 * number + u64::from(word.trailing_zeros());
            let first = (*word != 0) & (found == u64::MAX);
            found = if first { entry } else { found };
        }
        (found != u64::MAX).then_some(found)
    }

    /// A bit for each entry: whether it is for `position`.
    fn entries(&self, position: u64) -> Zeroizing<Vec<u64>> {
        let mut marks = Zeroizing::new(vec![0; self.lower.len().div_ceil(64)]);
        self.kernels.subset_equal_words(&self.lower, position as u32, &mut marks);
        if self.is_wide() {
            let mut upper = Zeroizing::new(vec![0; marks.len()]);
            self.kernels.subset_equal_words(&self.upper, (position >> 32) as u32, &mut upper);
            marks.iter_mut().zip(upper.iter()).for_each(|(mark, upper)| *mark &= upper);
        }
        marks
    }

    /// A position to ask for if the wanted record is known: uniform among those that were not asked
    /// for. If the table has fewer records than a window has queries, it is uniform among all:
    /// there, every chunk has spares for all queries.
    pub(super) fn filler(&self, rng: &mut SecretRng) -> u64 {
        loop {
            let position = rng.below(self.records);
            // Except in tables of less than a dozen records, a window asks for fewer than three
            // quarters of the records. The number of draws depends on how many records were asked
            // for, not on which.
            let is_new = || declassify(self.find(position).is_none());
            if self.records < self.window || is_new() {
                return position;
            }
        }
    }

    /// Records a reservation that asks for `position`, or sends a cover. The wanted record belongs
    /// to the entry `wanted`.
    pub(super) fn reserve(&mut self, asked: Result<u64, Failure>, wanted: u64) {
        let position = asked.unwrap_or(u64::MAX);
        self.lower.push(position as u32);
        self.upper.push((position >> 32) as u32);
        self.wanted.push(wanted);
        self.outcomes.push(asked.map_or_else(EntryState::Failed, |_| EntryState::Open));
        self.told.push(false);
        let len = self.known.len() + self.record_len;
        self.known.resize(len, 0);
    }

    /// The position that reservation `id` asked for.
    pub(super) fn position(&self, id: u64) -> Option<u64> {
        let at = id as usize;
        let failed = matches!(self.outcomes.get(at)?, EntryState::Failed(_));
        let upper = if self.is_wide() { u64::from(self.upper[at]) << 32 } else { 0 };
        (!failed).then_some(upper | u64::from(self.lower[at]))
    }

    /// Keeps the record that reservation `id` brought.
    pub(super) fn resolve(&mut self, id: u64, record: &[u8]) {
        self.outcomes[id as usize] = EntryState::Known;
        self.known_mut(id).copy_from_slice(record);
    }

    /// The record that reservation `id` was made for, if it is known. Returns it once.
    pub(super) fn take(&mut self, id: u64) -> Option<Result<Zeroizing<Vec<u8>>>> {
        let wanted = *self.wanted.get(id as usize)?;
        if self.told[id as usize] {
            return None;
        }
        let record = match self.outcomes[wanted as usize] {
            EntryState::Open => return None,
            EntryState::Known => Ok(Zeroizing::new(self.known_mut(wanted).to_vec())),
            EntryState::Failed(failure) => Err(failure.error()),
        };
        self.told[id as usize] = true;
        Some(record)
    }

    /// Follows an edit of the table.
    pub(super) fn patch(&mut self, position: u64, difference: &[u8]) {
        for (number, mut word) in self.entries(position).iter().copied().enumerate() {
            while word != 0 {
                let entry = 64 * number as u64 + u64::from(word.trailing_zeros());
                xor(self.known_mut(entry), difference);
                word &= word - 1;
            }
        }
    }

    fn known_mut(&mut self, entry: u64) -> &mut [u8] {
        let start = entry as usize * self.record_len;
        &mut self.known[start..start + self.record_len]
    }
}

#[cfg(test)]
impl Lookups {
    /// Plants a mistake: forgets what was asked for.
    pub(super) fn forget(&mut self) {
        self.lower.fill(u32::MAX);
    }
}

impl Failure {
    fn error(self) -> Error {
        Error::selective(match self {
            Failure::NoHint => {
                "no hint contains the record, which happens in less than one window of queries in 2^40; the query that was sent was a cover"
            }
            Failure::NoSpares => {
                "too many records of one part of the shuffled table were asked for, and its hints are used up; the query that was sent was a cover. This happens if records are chosen by where they lie in the shuffled table; by chance it happens in less than one window of queries in 2^40. The maker of the table may have chosen where its keys lie"
            }
        })
    }
}
