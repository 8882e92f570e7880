//! From what is looked up to a record's number, and from the record to the value.

use super::interface::{Target, Value};
use privet_core::{Error, RecordIndex, Result, TableShape};
use privet_table::RecordLayout;
use zeroize::Zeroizing;

/// How the records of one table are read.
pub(super) struct Records {
    layout: RecordLayout,
    shape: TableShape,
}

impl Records {
    /// Reads the layout that the server describes for a table of shape `shape`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it is none for such a table.
    pub(super) fn decode(bytes: &[u8], shape: TableShape) -> Result<Self> {
        let layout = RecordLayout::decode(bytes)?;
        layout.check_shape(shape)?;
        Ok(Self { layout, shape })
    }

    /// How many records each lookup fetches: the same for all.
    pub(super) fn fetches(&self) -> usize {
        match &self.layout {
            RecordLayout::Keyed(map) => map.candidates_per_key(),
            _ => 1,
        }
    }

    /// The record to ask for, or the one numbered `candidate` of several. Whether the table has the key plays no part in it.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table is not looked up that way, or has no such record.
    pub(super) fn locate(&self, target: &Target, candidate: usize) -> Result<RecordIndex> {
        let index = match (&self.layout, target) {
            (RecordLayout::Keyed(map), Target::Key(key)) => {
                let mut candidates = map.candidates(key);
                Zeroizing::new(candidates.nth(candidate).ok_or_else(no_such_candidate)?)
            }
            (RecordLayout::Index(_), Target::Index(index)) => index.clone(),
            _ => return Err(self.other_way()),
        };
        RecordIndex::new(*index, self.shape)
    }

    /// The value in `record`, which is one that [`locate`](Self::locate) named; `None` if the key does not lie there.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if `record` is none.
    pub(super) fn value(&self, target: &Target, record: &[u8]) -> Result<Option<Value>> {
        match (&self.layout, target) {
            (RecordLayout::Keyed(map), Target::Key(key)) => {
                Ok(map.find_in(key, record)?.map(Zeroizing::new))
            }
            (RecordLayout::Index(layout), Target::Index(_)) => {
                Ok(Some(Zeroizing::new(layout.value_in(record)?.to_vec())))
            }
            _ => Err(self.other_way()),
        }
    }

    fn other_way(&self) -> Error {
        Error::api_misuse(match self.layout {
            RecordLayout::Index(_) => "the table has no keys: look records up by number (--index)",
            _ => "the table is looked up by key (--key), not by number",
        })
    }
}

fn no_such_candidate() -> Error {
    Error::api_misuse("a key has fewer candidate records than were to be fetched")
}
