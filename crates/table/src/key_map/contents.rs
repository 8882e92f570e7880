//! All that records hold, under any key: for the owner of a table.

use super::{KeyMap, entry};
use privet_core::{Error, Result};

impl KeyMap {
    /// The values in a record, in the order of their tags.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if values lie in several parts.
    /// - [`Blame::Integrity`](privet_core::Blame::Integrity) if `record` is not a bucket.
    pub(crate) fn values_in<'r>(&self, record: &'r [u8]) -> Result<Vec<&'r [u8]>> {
        self.check_whole()?;
        let mut values = Vec::new();
        entry::for_each_entry(record, |_, value| values.push(value))?;
        Ok(values)
    }

    /// The values in the stash, in the order of their tags.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if values lie in several parts.
    pub(crate) fn stashed_values(&self) -> Result<impl Iterator<Item = &[u8]>> {
        self.check_whole()?;
        Ok(self.stash.iter().map(|(_, value)| value.as_slice()))
    }

    fn check_whole(&self) -> Result<()> {
        match self.parts() {
            1 => Ok(()),
            parts => Err(Error::api_misuse(format!(
                "values of this table lie in up to {parts} records, and only their keys say in which: look a key up instead"
            ))),
        }
    }
}
