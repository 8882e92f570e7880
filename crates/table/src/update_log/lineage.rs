//! All tables that one table continues: its *lineage*.
//!
//! Each log carries the successions that lead to its table, from the first on. So a client that
//! has not looked for long, and whose table's log is long gone, still finds the way from the table
//! that it has pinned to the one that is served.
//!
//! ```text
//! for each succession, in order: length u16 ‖ its encoding
//! ```
//!
//! Each must continue the one before, by ids, numbers and signatures. Nobody can check that of the
//! first one without a pin, and a lineage begins anywhere: after [`MAX_RECORDS`] successions the
//! oldest are left out. No id comes back: a table that was left is never led to again.

use super::Chain;
use super::succession::{MAX_SUCCESSION_LEN, Succession, malformed};
use super::{EpochHash, PublisherId, TableKeys};
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableId, TableIdentity};
use std::collections::HashMap;

/// The most successions in a lineage. With one each week they reach back nineteen years.
pub const MAX_RECORDS: usize = 1000;

/// The longest encoding of a lineage, in bytes.
pub const MAX_LINEAGE_LEN: usize = MAX_RECORDS * (2 + MAX_SUCCESSION_LEN);

const _: () = assert!(MAX_LINEAGE_LEN as u64 <= privet_core::table::MAX_LINEAGE_LEN);

/// The successions that lead to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    records: Vec<Succession>,
}

/// A table that a client has left for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The table.
    pub id: TableId,
    /// The hash of the succession that ended it.
    pub by: EpochHash,
}

/// Where a lineage leads from a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The position at its end.
    pub end: Chain,
    /// The tables that were left on the way, in order. None if only keys changed.
    pub left: Vec<Left>,
}

impl Lineage {
    /// Reads a lineage from any source, and checks that each record continues the one before.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it is none;
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if a record does not continue the one
    /// before, or leads back.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut lineage = Self::default();
        let mut reader = Reader::new("a lineage", bytes);
        while reader.remaining() > 0 {
            if lineage.records.len() == MAX_RECORDS {
                return Err(malformed("it has too many successions"));
            }
            let len = reader.u16()?;
            lineage.push(Succession::decode(reader.bytes(len.into())?)?)?;
        }
        Ok(lineage)
    }

    /// The lineage as bytes: at most [`MAX_LINEAGE_LEN`].
    pub fn encode(&self) -> Vec<u8> {
        let records = self.records.iter().map(Succession::as_bytes);
        // A succession has at most `MAX_SUCCESSION_LEN` bytes.
        records
            .flat_map(|record| [&(record.len() as u16).to_le_bytes()[..], record].concat())
            .collect()
    }

    /// Adds the next succession. Leaves out the oldest if there are too many.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it does not continue the last one,
    /// or leads back to a table of the lineage.
    pub(super) fn push(&mut self, next: Succession) -> Result<()> {
        if let Some(last) = self.records.last() {
            next.follow(&last.begin())?;
        }
        let leads_back = !next.is_rotation()
            && self.ids().chain([next.old()]).any(|id| id == next.new_table().id);
        if leads_back {
            return Err(Error::integrity(format!(
                "a succession leads back to the table {}, which was left before",
                next.new_table().id
            )));
        }
        if self.records.len() == MAX_RECORDS {
            self.records.remove(0);
        }
        self.records.push(next);
        Ok(())
    }

    /// The same with one more succession.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it does not continue the last one.
    #[cfg(feature = "files")]
    pub(crate) fn with(&self, next: &Succession) -> Result<Self> {
        let mut longer = self.clone();
        longer.push(next.clone())?;
        Ok(longer)
    }

    /// The ids of all tables that are succeeded in it.
    fn ids(&self) -> impl Iterator<Item = TableId> + '_ {
        self.records.iter().map(Succession::old)
    }

    /// The part that leads to the table `id` in its version `epoch`, if this one leads to a later
    /// version.
    #[cfg(feature = "files")]
    pub(super) fn until(&self, id: TableId, epoch: Epoch) -> Self {
        let comes_before = |record: &&Succession| record.old() != id || record.number() <= epoch;
        Self { records: self.records.iter().take_while(comes_before).cloned().collect() }
    }

    /// Whether the table continues no other, and its keys were never changed.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether `publisher` has signed, as a table's publisher, one of the successions that lead
    /// here. Nobody has checked that the table before it was that publisher's.
    pub fn is_signed_by(&self, publisher: PublisherId) -> bool {
        self.records.iter().any(|record| record.is_signed_by(publisher))
    }

    /// The successions, in order.
    pub fn records(&self) -> &[Succession] {
        &self.records
    }

    /// The table to which it leads, in the version with which that begins or in which its keys
    /// changed last, and its keys.
    pub fn end(&self) -> Option<(TableIdentity, TableKeys)> {
        self.records.last().map(|last| (last.new_table(), last.keys()))
    }

    /// Follows the successions from the position `from` on. A client calls this with what it has
    /// pinned, `tombstones` being the tables that it has left before. `None` if none of the
    /// successions is of this table, or all that are were followed before.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if a succession is not signed by those
    /// who must for *this* client, leaves out epochs that it knows, contradicts the pinned version,
    /// or leads a table elsewhere than this client was led before.
    pub fn walk(&self, from: &Chain, tombstones: &[Left]) -> Result<Option<Walk>> {
        self.check_against(tombstones)?;
        let mut walk = Walk { end: from.clone(), left: Vec::new() };
        let mut moved = false;
        for record in &self.records {
            let Epoch(known) = walk.end.identity().epoch;
            let passed = record.is_rotation() && record.number().0 <= known;
            if record.old() != walk.end.identity().id || passed {
                continue;
            }
            walk.end = record.follow(&walk.end)?;
            moved = true;
            if !record.is_rotation() {
                walk.left.push(Left { id: record.old(), by: record.hash() });
            }
        }
        if let Some(back) = tombstones.iter().find(|left| left.id == walk.end.identity().id) {
            return Err(Error::integrity(format!(
                "a succession leads back to the table {}, which this client has left before",
                back.id
            )));
        }
        Ok(moved.then_some(walk))
    }

    /// Checks that no table of this lineage goes elsewhere than a client was led before.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if one does: somebody has signed two
    /// successions of it.
    pub fn check_against(&self, tombstones: &[Left]) -> Result<()> {
        let known: HashMap<_, _> = tombstones.iter().map(|left| (left.id.0, left.by)).collect();
        let other = self.records.iter().find(|record| {
            let by = known.get(&record.old().0);
            !record.is_rotation() && by.is_some_and(|by| *by != record.hash())
        });
        match other {
            None => Ok(()),
            Some(record) => Err(Error::integrity(format!(
                "the table {} was left for another successor before (a fork): two successions of \
                 it were signed, and some clients see the wrong one; compare the table's digest \
                 with others before trusting either",
                record.old()
            ))),
        }
    }
}
