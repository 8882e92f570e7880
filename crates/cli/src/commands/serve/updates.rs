//! A table as its update log has it.

use super::{chosen, served};
use crate::arguments::SchemeChoice;
use crate::display;
use privet_core::Result;
use privet_schemes::registry::Tuning;
use privet_server::ServedTable;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{UpdateLog, log_path};
use std::sync::Arc;

/// A table file with the epochs of its log, if it has any, to be served under `name`. The table with its changes is then made in memory, and compared with what its publisher has signed.
pub(super) fn served_with_updates(
    name: String,
    snapshot: Snapshot,
    scheme: SchemeChoice,
    tuning: Tuning,
) -> Result<ServedTable> {
    let path = log_path(snapshot.path());
    if !path.exists() {
        return served(name, snapshot, scheme, tuning);
    }
    let log = UpdateLog::open(&path, &snapshot)?;
    let identity = log.current();
    if identity == snapshot.identity() {
        return served(name, snapshot, scheme, tuning);
    }
    let spinner = display::working(&format!("applying the updates of {name}"));
    let table = log.table(&snapshot)?;
    let verified = table.verified_digest();
    spinner.finish_and_clear();
    verified?;
    Ok(ServedTable {
        name,
        identity,
        layout: Arc::from(log.layout().encode()),
        records: Box::new(table.to_vec()),
        scheme: chosen(scheme, &identity),
        tuning,
        points: None,
    })
}
