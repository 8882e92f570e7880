//! Hints that take answers in, in the order of the queries: those of Harmony and SinglePass.
//!
//! There, a lookup moves records from hint to hint. So a hint's value belongs to one moment, and a
//! record follows from the value that its hint had when the query was made. Answers may come in
//! any order: the client keeps an answer that comes before its turn, and recovers its record when
//! the earlier answers are there.

use crate::contract::{Record, ReservationId};
use privet_core::codec::Reader;
use privet_core::hints::impossible;
use privet_core::{Error, Result, TableDelta};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// One state change, as it stands in the journal.
pub(crate) enum Change<'a, L> {
    /// A reservation.
    Lookup(L),
    /// What the answers to a reservation's queries bring.
    Answers {
        /// Which reservation.
        id: u64,
        /// The values of the scheme.
        values: &'a [u8],
    },
    /// Edits of the table.
    Edits(TableDelta),
}

const LOOKUP: u8 = 1;
const ANSWERS: u8 = 2;
const EDITS: u8 = 3;

/// `1 ‖ id (u64) ‖ the scheme's fields`, which `write` adds: at most `room` bytes.
pub(crate) fn encode_lookup(
    id: u64,
    room: usize,
    write: impl FnOnce(&mut Vec<u8>),
) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(LOOKUP, 8 + room);
    bytes.extend(id.to_le_bytes());
    write(&mut bytes);
    bytes
}

/// `2 ‖ id (u64) ‖ values`, which are so many bytes.
pub(crate) fn encode_answers(
    id: u64,
    len: usize,
    values: impl Iterator<Item = u8>,
) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(ANSWERS, 8 + len);
    bytes.extend(id.to_le_bytes());
    bytes.extend(values);
    bytes
}

/// `3 ‖ delta`, as [`TableDelta::write`] says.
pub(crate) fn encode_edits(delta: &TableDelta) -> Zeroizing<Vec<u8>> {
    let mut bytes = with_room(EDITS, delta.encoded_len());
    delta.write(&mut bytes);
    bytes
}

/// A change's first byte. Reserves room for the whole change: a vector that grows would leave
/// copies behind.
fn with_room(kind: u8, room: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(1 + room));
    bytes.push(kind);
    bytes
}

impl<'a, L> Change<'a, L> {
    /// Reads a change. `lookup` reads a reservation; answers bring `values_len` bytes.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not parse.
    pub(crate) fn decode(
        bytes: &'a [u8],
        values_len: usize,
        record_len: u64,
        lookup: impl FnOnce(&mut Reader<'a>) -> Result<L>,
    ) -> Result<Self> {
        let read = || {
            let mut reader = Reader::new("a change of hints", bytes);
            let change = match reader.u8()? {
                LOOKUP => Self::Lookup(lookup(&mut reader)?),
                ANSWERS => Self::Answers { id: reader.u64()?, values: reader.bytes(values_len)? },
                EDITS => Self::Edits(TableDelta::read(&mut reader, record_len)?),
                other => {
                    let unknown = format!("there is no change of kind {other}");
                    return Err(Error::invalid_message(unknown));
                }
            };
            reader.finish()?;
            Ok(change)
        };
        read().map_err(|error| {
            Error::corrupted("the journal of hints holds a change that does not parse")
                .caused_by(error)
        })
    }
}

/// Values that answers brought, encoded.
type Values = Zeroizing<Vec<u8>>;

/// The lookups of a generation whose records were not taken yet.
pub(crate) struct OpenLookups<L> {
    /// Those whose records are not known yet, with what came before its turn. That takes no more
    /// memory than the journal takes on disk.
    pending: BTreeMap<u64, (L, Option<Values>)>,
    /// There may be many, because one late answer can make any number of records known.
    records: BTreeMap<u64, Record>,
}

impl<L> Default for OpenLookups<L> {
    fn default() -> Self {
        Self { pending: BTreeMap::new(), records: BTreeMap::new() }
    }
}

impl<L> OpenLookups<L> {
    /// Adds a reservation.
    pub(crate) fn reserve(&mut self, id: u64, lookup: L) {
        self.pending.insert(id, (lookup, None));
    }

    /// The lookup that waits for answers, if it does.
    pub(crate) fn unanswered(&self, id: u64) -> Option<&L> {
        self.pending.get(&id).filter(|(_, kept)| kept.is_none()).map(|(lookup, _)| lookup)
    }

    /// The lookup for which answers are given now.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it does not wait for any.
    pub(crate) fn waiting_for(&self, id: u64) -> Result<&L> {
        self.unanswered(id).ok_or_else(|| {
            Error::api_misuse("answers were given for a lookup that does not wait for any")
        })
    }

    /// Takes in `values` if it is their turn, and then those that were kept for the turns after
    /// them. `take_in` gets them in order, and recovers the records.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the lookup is not open.
    pub(crate) fn answer(
        &mut self,
        id: u64,
        values: &[u8],
        mut take_in: impl FnMut(&L, &[u8]) -> Record,
    ) -> Result<()> {
        let first = self.pending.keys().next() == Some(&id);
        let Some((lookup, kept)) = self.pending.get_mut(&id).filter(|(_, kept)| kept.is_none())
        else {
            return Err(impossible("it answers a lookup that is not open"));
        };
        if !first {
            *kept = Some(Zeroizing::new(values.to_vec()));
            return Ok(());
        }
        self.records.insert(id, take_in(lookup, values));
        self.pending.remove(&id);
        while let Some(next) = self.pending.first_entry()
            && let (lookup, Some(values)) = next.get()
        {
            self.records.insert(*next.key(), take_in(lookup, values));
            next.remove();
        }
        Ok(())
    }

    /// As [`HintedClient::take_record`](crate::contract::HintedClient::take_record).
    pub(crate) fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.records.remove(&id.0).map(Ok)
    }

    /// As [`HintedClient::open`](crate::contract::HintedClient::open).
    pub(crate) fn open(&self) -> Vec<ReservationId> {
        let unanswered = self.pending.iter().filter(|(_, (_, kept))| kept.is_none());
        unanswered.map(|(id, _)| ReservationId(*id)).collect()
    }

    /// Whether no lookup waits for anything.
    pub(crate) fn are_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Checks that edits of the table may be given now.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) while a lookup waits for answers.
    pub(crate) fn check_settled(&self) -> Result<()> {
        if self.are_settled() {
            return Ok(());
        }
        Err(Error::api_misuse(
            "edits of the table were given while a lookup waits for answers, which belong to the table before the edits",
        ))
    }

    /// Checks that edits of the table may stand here in the journal.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) while a lookup waits for answers.
    pub(crate) fn check_journal(&self) -> Result<()> {
        self.check_settled().map_err(|_| impossible("the table was edited while a lookup was open"))
    }
}
