//! There is nothing to choose: everything follows from the table.

use crate::contract::Parameters;
use privet_core::codec::Reader;
use privet_core::dpf::Domain;
use privet_core::{Result, TableId, TableIdentity, TableShape};

/// The domain of the point functions, one bit for each record, and the table that they look up.
#[derive(Clone, Debug)]
pub struct DpfParameters {
    table: TableId,
    shape: TableShape,
    domain: Domain,
}

impl DpfParameters {
    /// The parameters for a table. They stay the same from epoch to epoch as long as the number of
    /// records does.
    pub fn new(identity: &TableIdentity) -> Self {
        let domain = Domain::of_records(identity.shape);
        Self { table: identity.id, shape: identity.shape, domain }
    }

    /// The table's id, from which a lookup's AES keys are derived, together with the lookup's
    /// nonce: [`privet_core::dpf`] says why.
    pub fn table(&self) -> &TableId {
        &self.table
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// What the point functions are defined on.
    pub fn domain(&self) -> Domain {
        self.domain
    }
}

impl Parameters for DpfParameters {
    /// No bytes.
    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        Reader::new("DPF-PIR's parameters", bytes).finish()?;
        Ok(Self::new(identity))
    }
}
