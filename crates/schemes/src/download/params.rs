//! There is nothing to choose.

use crate::contract::Parameters;
use privet_core::codec::Reader;
use privet_core::{Result, TableIdentity, TableShape};

/// The table's shape. Nothing else is needed.
#[derive(Clone, Debug)]
pub struct DownloadParameters {
    shape: TableShape,
}

impl DownloadParameters {
    /// The parameters for a table.
    pub fn new(identity: &TableIdentity) -> Self {
        Self { shape: identity.shape }
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }
}

impl Parameters for DownloadParameters {
    /// No bytes.
    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        Reader::new("the parameters of a download", bytes).finish()?;
        Ok(Self::new(identity))
    }
}
