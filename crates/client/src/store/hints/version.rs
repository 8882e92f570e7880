//! The version of a table that hints belong to: the one that they were prepared for, or the one
//! where they stand after following its edits.

use crate::state::HintsKey;
use crate::store::identity::{IDENTITY_LEN, put_identity, read_identity};
use privet_core::codec::Reader;
use privet_core::{Result, TableIdentity};

/// A table in one version, and how it is served: every field of a [`HintsKey`] that changes with
/// the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) table: TableIdentity,
    /// See [`HintsKey::parameter_digest`].
    pub(crate) parameter_digest: [u8; 32],
}

impl Version {
    /// Bytes of an encoded version.
    pub(crate) const LEN: usize = IDENTITY_LEN + 32;

    pub(crate) fn of(key: &HintsKey) -> Self {
        let HintsKey { table, parameter_digest, .. } = *key;
        Self { table, parameter_digest }
    }

    /// The key of this version, with everything else as in `key`.
    pub(crate) fn as_key(&self, key: &HintsKey) -> HintsKey {
        let Self { table, parameter_digest } = *self;
        HintsKey { table, parameter_digest, ..key.clone() }
    }

    pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
        put_identity(bytes, &self.table);
        bytes.extend(self.parameter_digest);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { table: read_identity(reader)?, parameter_digest: reader.array()? })
    }
}
