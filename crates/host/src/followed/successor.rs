//! A table that lies where the served one lay, and continues it.
//!
//! Whoever serves a table for others must not be led to a stranger's by a wrong file. So the new
//! files count only if the successions in their log lead there from the served version, for whoever
//! knows the served table's keys: what clients check as well. If they do not, the served table goes
//! on, in memory or from the file that is still open.
//!
//! The new table is served as the old one was: by the same scheme, because clients follow to no
//! other.

use super::{Files, FollowedTable, Offered, Position, begin, follow_chain};
use privet_core::{Error, Result};
use privet_server::Next;
use privet_table::update_log::{TableKeys, UpdateLog};

impl FollowedTable {
    /// Offers the table in `files` in place of the served one.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it does not continue the served one.
    pub(super) fn successor(&mut self, files: Files) -> Result<Next> {
        let path = &self.table.path;
        let leads = match (&files.log, self.keys()) {
            (Some(log), Some(keys)) => {
                let leads = self.position.succeeded_in(log, keys);
                leads.map_err(|error| error.within(path.display()))?
            }
            _ => false,
        };
        if !leads {
            return Err(Error::integrity(format!(
                "{} is another table than the one that is served ({}, not {}), and its log has no \
                 signed succession that leads there: bring back the table that was there, or ask \
                 its publisher for a successor; or start the server again if clients are to see \
                 another table",
                path.display(),
                files.snapshot.identity().id,
                self.position.identity.id,
            )));
        }
        let (served, next) = begin(&self.table, files)?;
        self.offered = Some(Offered::Successor(Box::new(next)));
        Ok(Next::Successor(Box::new(served)))
    }

    /// The served table's keys, as far as they are known.
    fn keys(&self) -> Option<TableKeys> {
        self.position.keys.or(self.table.publisher.map(TableKeys::from))
    }
}

impl Position {
    /// Whether the successions in `log` lead from here, under these `keys`, to the table that it
    /// has.
    fn succeeded_in(&self, log: &UpdateLog, keys: TableKeys) -> Result<bool> {
        let here = Position { keys: Some(keys), ..self.clone() }.chain_in(log);
        let Some(walk) = log.lineage().walk(&here, &[])? else { return Ok(false) };
        let mut end = walk.end;
        if end.identity().id != log.current().id {
            return Ok(false);
        }
        if end.identity().epoch < log.base() {
            return Err(Error::integrity(format!(
                "its log begins after epoch {}, and clients of the served table need all epochs \
                 since the succession: take a copy of the log that has them",
                log.base().0
            )));
        }
        follow_chain(&mut end, log)?;
        if end.identity() != log.current() {
            return Err(Error::integrity(
                "it has another history than the succession begins: its publisher has signed two, \
                 or the files are mixed up",
            ));
        }
        Ok(true)
    }
}
