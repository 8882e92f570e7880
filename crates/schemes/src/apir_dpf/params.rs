//! There is nothing to choose: everything follows from the table.

use crate::contract::Parameters;
use privet_core::codec::Reader;
use privet_core::dpf::Domain;
use privet_core::{Result, TableId, TableIdentity, TableShape};
use privet_kernels::authenticated_sum;

/// The domain of the point functions, one leaf for each record, and the table that they look up.
#[derive(Clone, Debug)]
pub struct ApirDpfParameters {
    table: TableId,
    shape: TableShape,
    domain: Domain,
}

impl ApirDpfParameters {
    /// The parameters for a table. They stay the same from epoch to epoch as long as the number and
    /// the width of its records do.
    pub fn new(identity: &TableIdentity) -> Self {
        let domain = Domain::of_payloads(identity.shape);
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

    /// How many elements of the field a record is cut into.
    pub fn elements(&self) -> usize {
        authenticated_sum::elements(self.record_len())
    }

    pub(super) fn record_len(&self) -> usize {
        self.shape.record_len() as usize
    }
}

impl Parameters for ApirDpfParameters {
    /// No bytes.
    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        Reader::new("APIR-DPF's parameters", bytes).finish()?;
        Ok(Self::new(identity))
    }
}
