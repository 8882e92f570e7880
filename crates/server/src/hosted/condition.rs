//! Whether a table is served, or damage was found in the data behind its answers.

use privet_core::{Error, Result};
use std::sync::OnceLock;

/// One for each table, shared by all its versions and by all work on them. Once damage is found,
/// the service of the table has ended for as long as the server runs: the current version may have
/// been made from one that was already damaged.
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

    /// Checks that the table is served. Call it before anything is sent that comes from the table.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable), in words for clients, once damage
    /// was found. A client may find the table at another server, or here after a restart.
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

    /// Ends the service if `outcome` is an error of this server's own, and replaces the error by
    /// one for clients.
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

    /// Ends the service of the table. `damage` says what was found, and where; it is logged the
    /// first time.
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
