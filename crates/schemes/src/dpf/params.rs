//! There is nothing to choose: everything follows from the table.

use crate::contract::{Parameters, table_seed};
use privet_core::codec::Reader;
use privet_core::dpf::Domain;
use privet_core::{Result, TableIdentity, TableShape};
use privet_kernels::TreeKeys;

/// The domain of the point functions, one bit for each record, and the AES keys of their trees.
#[derive(Clone, Debug)]
pub struct DpfParameters {
    shape: TableShape,
    domain: Domain,
    tree_keys: TreeKeys,
}

impl DpfParameters {
    /// The parameters for a table. They stay the same through its epochs while the number of records does.
    pub fn new(identity: &TableIdentity) -> Self {
        let left = table_seed("privet 2026-11 dpf left", identity);
        let right = table_seed("privet 2026-11 dpf right", identity);
        Self {
            shape: identity.shape,
            domain: Domain::of_records(identity.shape),
            tree_keys: TreeKeys::new(left.aes_key(), right.aes_key()),
        }
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// What the point functions are defined on.
    pub fn domain(&self) -> Domain {
        self.domain
    }

    /// The AES keys under which left and right children grow: public, but of this table alone. [`privet_core::dpf`] says why.
    pub(crate) fn tree_keys(&self) -> &TreeKeys {
        &self.tree_keys
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
