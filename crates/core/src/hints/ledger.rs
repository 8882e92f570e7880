//! Open reservations.
//!
//! The choice of hints is complete with the reservation. The answer brings only the *parity* of the
//! successor, its value. The value of a hint may be unknown, because a query is open or its answer
//! never came. Such hints take part in the choice like all others. A record that is looked up
//! through one of them is known when both answers are there. If the choice left such hints out, a
//! client that waits for an answer would behave differently from one that has it.

use super::{HintTable, xor};
use crate::{Error, Result};
use privet_kernels::taint::admit;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Records that the caller has not taken are kept for this many reservations.
const RECORDS_KEPT: usize = 1024;

type Bytes = Zeroizing<Vec<u8>>;

/// The reservations of a generation: how many there were, which are not resolved yet, and the
/// records from the others.
#[derive(Default)]
pub struct Ledger {
    reservations: u64,
    open: BTreeMap<u64, OpenReservation>,
    records: BTreeMap<u64, Result<Bytes>>,
}

/// A reservation whose record is not known yet.
struct OpenReservation {
    /// The row of the used hint. `None`: a cover was sent.
    row: Option<u32>,
    /// The parity of that hint. `None`: it waits for another reservation.
    used: Option<Bytes>,
    /// The XOR of what the successor contains besides the record. `None`: it comes with the answer.
    rest: Option<Bytes>,
    /// The value from the answers: the XOR of what the used hint contained besides the record.
    sum: Option<Bytes>,
    /// The reservation that has already used the successor, if any. It waits for this one.
    next: Option<u64>,
    /// Data that the scheme wants to find again.
    note: u64,
}

impl Ledger {
    /// Reservations so far, which is the number of the next one.
    pub fn reservations(&self) -> u64 {
        self.reservations
    }

    /// Records the next reservation, which uses the hint in `row` (`None`: it sends a cover). Call
    /// this before the row is exchanged. `rest` is the XOR of what the successor contains besides
    /// the record, if that is known before the answer.
    pub fn reserve(
        &mut self,
        row: Option<u32>,
        rest: Option<Bytes>,
        note: u64,
        table: &mut HintTable,
    ) {
        let id = self.reservations;
        let mut used = None;
        if let Some(row) = row {
            let parity = table.take_parity(row);
            match self.waiting_for(row) {
                Some(before) => before.next = Some(id),
                None => used = Some(parity),
            }
        }
        self.open.insert(id, OpenReservation { row, used, rest, sum: None, next: None, note });
        self.reservations += 1;
    }

    /// The reservation for whose record the parity of `row` waits. Checks all open reservations, in
    /// a list whose length does not show how lookups repeat.
    fn waiting_for(&mut self, row: u32) -> Option<&mut OpenReservation> {
        let mut found = None;
        for (id, open) in &self.open {
            // The values here follow from how lookups repeat, and so does a branch.
            let is_last = admit(open.row == Some(row)) && open.next.is_none();
            found = if is_last { Some(*id) } else { found };
        }
        found.and_then(|id| self.open.get_mut(&id))
    }

    /// The note of a reservation that waits for an answer.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it does not wait for one.
    pub fn unanswered(&self, id: u64) -> Result<u64> {
        let open = self.open.get(&id).filter(|open| open.sum.is_none());
        open.map(|open| open.note).ok_or_else(|| {
            Error::api_misuse("an answer was given for a lookup that does not wait for one")
        })
    }

    /// Takes in the values from the answers to a reservation: the XOR of what the used hint
    /// contained besides the record; and `rest`, if [`reserve`](Self::reserve) did not get it.
    /// Returns the reservations that are resolved now: this one, and others that waited for it.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if it does not wait for answers. Then nothing
    /// changes.
    pub fn answer(
        &mut self,
        id: u64,
        sum: Bytes,
        rest: Option<Bytes>,
        table: &mut HintTable,
    ) -> Result<Vec<u64>> {
        let open = self.open.get_mut(&id).filter(|open| open.sum.is_none()).ok_or_else(|| {
            Error::corrupted("the journal of used hints answers a lookup that is not open")
        })?;
        open.sum = Some(sum);
        open.rest = open.rest.take().or(rest);
        let mut resolved = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let Some(open) = self.open.remove(&id) else { break };
            match open.row {
                None => {
                    self.keep_record(id, Err(no_hint()));
                    resolved.push(id);
                    break;
                }
                Some(row) => match (&open.used, &open.sum) {
                    (Some(used), Some(sum)) => {
                        let mut record = sum.clone();
                        xor(&mut record, used);
                        next = self.complete_successor(row, &open, &record, table);
                        self.keep_record(id, Ok(record));
                        resolved.push(id);
                    }
                    _ => {
                        self.open.insert(id, open);
                        break;
                    }
                },
            }
        }
        Ok(resolved)
    }

    /// Gives the successor its parity: in its row, or at the reservation that has already used it.
    /// Returns that reservation.
    fn complete_successor(
        &mut self,
        row: u32,
        open: &OpenReservation,
        record: &[u8],
        table: &mut HintTable,
    ) -> Option<u64> {
        let mut parity = Zeroizing::new(record.to_vec());
        if let Some(rest) = &open.rest {
            xor(&mut parity, rest);
        }
        match open.next.and_then(|next| self.open.get_mut(&next)) {
            Some(next) => next.used = Some(parity),
            None => table.parity_mut(row).copy_from_slice(&parity),
        }
        open.next
    }

    fn keep_record(&mut self, id: u64, record: Result<Bytes>) {
        self.records.insert(id, record);
        if self.records.len() > RECORDS_KEPT {
            self.records.pop_first();
        }
    }

    /// The record of a resolved reservation. Returns it once.
    pub fn take_record(&mut self, id: u64) -> Option<Result<Bytes>> {
        self.records.remove(&id)
    }

    /// The reservations that wait for answers, oldest first.
    pub fn open(&self) -> impl Iterator<Item = u64> {
        self.open.iter().filter(|(_, open)| open.sum.is_none()).map(|(id, _)| *id)
    }

    /// Checks that no reservation is open, so that every hint has its parity.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse), saying that `what` has to wait, otherwise.
    pub fn check_settled(&self, what: &str) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        Err(Error::api_misuse(format!("{what} while {} lookups wait for answers", self.open.len())))
    }
}

fn no_hint() -> Error {
    Error::selective(
        "no hint contains the record, which happens with a probability below e^-40; the query that was sent was a cover",
    )
}
