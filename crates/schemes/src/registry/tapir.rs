//! The parameters of TAPIR, as far as a user chooses them.

use super::Tuning;
use crate::singlepass::SinglePassParameters;
use crate::tapir::{MerkleForm, TapirParameters, vectors_of};
use privet_core::{Result, TableShape};

#[cfg(not(target_family = "wasm"))]
pub(super) use pointproofs::{with_pointproofs, with_pointproofs_as};

/// TAPIR-MT: cut as SinglePass would be, unless chosen otherwise.
pub(super) fn with_merkle(
    shape: TableShape,
    tuning: &Tuning,
) -> Result<TapirParameters<MerkleForm>> {
    let pass = match tuning.partition_records {
        Some(records) => SinglePassParameters::with_partition_records(shape, records)?,
        None => SinglePassParameters::new(shape)?,
    };
    let commitment = MerkleForm::commitment(vectors_of(&pass)?, pass.state_bytes())?;
    TapirParameters::new(pass, commitment)
}

#[cfg(not(target_family = "wasm"))]
mod pointproofs {
    use super::super::SchemePlan;
    use super::{SinglePassParameters, TableShape, TapirParameters, Tuning, vectors_of};
    use crate::contract::Parameters as _;
    use crate::tapir::PointproofsForm;
    use privet_core::codec::Reader;
    use privet_core::commit::pointproofs::{Openings, Pointproofs};
    use privet_core::{Error, Result};
    use std::sync::Arc;

    /// TAPIR-PP: partitions as large as the reference string allows, unless chosen otherwise.
    pub(in super::super) fn with_pointproofs(
        shape: TableShape,
        tuning: &Tuning,
    ) -> Result<TapirParameters<PointproofsForm>> {
        let reference = tuning.reference_string.as_ref().ok_or_else(|| {
            Error::api_misuse(
                "tapir-pp needs a reference string, which somebody must make whom all clients trust; none was given",
            )
        })?;
        let largest = u64::from(reference.size());
        let pass = SinglePassParameters::with_partition_records(
            shape,
            tuning.partition_records.unwrap_or(largest),
        )?;
        let openings = match tuning.precompute_openings {
            true => Openings::Precomputed,
            false => Openings::OnDemand,
        };
        let commitment = Pointproofs::new(vectors_of(&pass)?, Arc::clone(reference), openings)?;
        TapirParameters::new(pass, commitment)
    }

    /// The same with the cut that `plan` says, and with the reference string that it says.
    pub(in super::super) fn with_pointproofs_as(
        plan: &SchemePlan,
        shape: TableShape,
        tuning: &Tuning,
    ) -> Result<TapirParameters<PointproofsForm>> {
        let records = Reader::new("the parameters of TAPIR", &plan.parameters).u64()?;
        let tuning = Tuning { partition_records: Some(records), ..tuning.clone() };
        let parameters = with_pointproofs(shape, &tuning)?;
        match parameters.encode() == plan.parameters {
            true => Ok(parameters),
            false => Err(Error::api_misuse(
                "another reference string was given than the one that clients of this table have seen",
            )),
        }
    }
}
