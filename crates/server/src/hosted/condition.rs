//! Whether a table is served, or damage was found in what its server answers from.

use privet_core::{Error, Result};
use std::sync::OnceLock;

/// One for each table, shared by all its versions and by everything under way about them. Once
/// damage is found, the table's service has ended, for as long as the server runs: the version that
/// is served may come from one that was damaged already.
pub(crate) struct Condition {
    table: String,
    damage: OnceLock<String>,
}

impl Condition {
    pub(crate) fn new(table: &str) -> Self {
        Self { table: table.to_owned(), damage: OnceLock::new() }
    }

    /// The table's name.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.damage.get().is_some()
    }

    /// That the table is served. Asked before anything is sent that comes from it.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable), in words for clients, once damage
    /// was found. A client may find the table at another server, or here after a new start.
    pub(crate) fn check(&self) -> Result<()> {
        match self.has_ended() {
            true => Err(Error::unavailable(format!(
                "table {} is not served here any more: this server has found its copy damaged; \
                 ask another server, or tell its operator",
                self.table
            ))),
            false => Ok(()),
        }
    }

    /// What is told to a client in place of an error of this server's own, which ends the service.
    pub(crate) fn or_end<T>(&self, outcome: Result<T>) -> Result<T> {
        match outcome {
            Err(error) if error.blame() == privet_core::Blame::Corrupted => {
                self.end(&error);
                self.check()?;
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// Ends the service of the table: `damage` says what was found, and where. Logged the first
    /// time.
    pub(crate) fn end(&self, damage: &Error) {
        if self.damage.set(damage.message().to_owned()).is_ok() {
            tracing::error!(
                table = self.table,
                damage = %damage.message(),
                "the table is damaged and is not served any more; put the file back from where it \
                 is whole, check the file there, check this machine's memory \
                 and disk, and start the server again"
            );
        }
    }
}
