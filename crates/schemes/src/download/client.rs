//! The client: reads the record where the table is kept.

use super::{Download, DownloadParameters};
use crate::contract::{LocalClient, Record, SchemeOf};
use crate::offline::{HintSource, check_len};
use privet_core::{RecordIndex, Result};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A client of one table in one epoch, with the whole table.
pub struct DownloadClient {
    parameters: DownloadParameters,
    table: Arc<dyn HintSource>,
}

impl DownloadClient {
    /// A client that reads its table from `table`.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `table` does not have the table's
    /// size.
    pub fn new(parameters: DownloadParameters, table: Arc<dyn HintSource>) -> Result<Self> {
        check_len("the table", table.len(), parameters.shape().bytes())?;
        Ok(Self { parameters, table })
    }
}

impl LocalClient for DownloadClient {
    /// Which bytes are read is secret, but the read is local: no server sees it.
    fn record(&self, index: &RecordIndex) -> Result<Record> {
        let record_len = self.parameters.shape().record_len();
        let mut record = Zeroizing::new(vec![0; record_len as usize]);
        self.table.read_at(index.expose() * record_len, &mut record)?;
        Ok(record)
    }
}

impl SchemeOf for DownloadClient {
    type Scheme = Download;
}
