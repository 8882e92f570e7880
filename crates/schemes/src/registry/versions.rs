//! From one version of a table to the next: parameters, and what clients downloaded.
//!
//! A server makes its successor ([`ErasedServer::successor`](super::ErasedServer::successor)), or
//! one is started from the table ([`setup_as`](super::setup_as)). Clients patch what they
//! downloaded, and servers what they announce; the result is the same bytes that a start would
//! compute. Clients with single-use hints apply the difference
//! ([`ErasedHints::apply_deltas`](super::ErasedHints::apply_deltas)).
//!
//! | what follows edits | how | when the table grows |
//! |---|---|---|
//! | SimplePIR's hint | `H' = H + ΔD·A` in the rows that change | new columns, as long as a column keeps its rows |
//! | packed SimplePIR's masks | downloaded again; the server packs the touched blocks again, and masks on demand | packed anew, if there are more columns |
//! | DoublePIR's and APIR-Matrix' hint | downloaded again | |
//! | a downloaded table | written over | it follows |
//! | dummy subsets, SinglePass | the hints that contain a record are XORed with its change | it follows while its partitions have room: records beyond the table count as zero |
//! | Harmony | the hint of the segment in which a record lies is XORed with its change | new hints: which cells are empty follows from the number of records |
//! | Piano | the same as dummy subsets | new hints: the order of records is a permutation of exactly that many |
//! | TAPIR | the same, and the verifier takes in the commitments | partitions are added |

use super::SchemePlan;
use super::descriptor::Of;
#[cfg(feature = "servers")]
use super::{Tuning, plan};
use crate::contract::{Parameters as _, PatchedDownload};
use crate::offline::HintSource;
use privet_core::{Error, Result, TableChanges, TableIdentity};
use privet_kernels::Kernels;

/// The plan for the next version of a table whose last version was served with the plan `before`.
/// It has the same parameters if they suit the new version, so that hints and other data of clients
/// stay good. Otherwise it has those of [`plan`].
///
/// # Errors
/// As [`plan`].
#[cfg(feature = "servers")]
pub fn plan_next(
    before: &SchemePlan,
    after: &TableIdentity,
    tuning: &Tuning,
) -> Result<SchemePlan> {
    SchemePlan::from_announcement(before.scheme, after, &before.parameters)
        .or_else(|_| plan(before.scheme, after, tuning))
}

/// Whether a download under `before` can be [patched](patch_downloaded) to what `after` prescribes.
/// If not, clients download it again. `false` for schemes without a download.
pub fn patches_downloads(before: Version<'_>, after: Version<'_>) -> bool {
    let same = before.0.scheme == after.0.scheme && before.1.id == after.1.id;
    same && patches_of(before).is_some_and(|patches| patches.suits(before, after))
}

/// Writes what a client of the table `after` would download to `sink`, whole and in order, in
/// pieces of at most about a MiB. It makes this from the download for `before` and the changes
/// since. Takes memory for the changes and a piece. Servers patch what they announce in the same
/// way.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) unless this is
/// [possible](patches_downloads), or if the changes are not those between the two;
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `part` is not of the size that `before`
/// prescribes; and the errors of `part` and `sink`.
pub fn patch_downloaded(
    before: Version<'_>,
    after: Version<'_>,
    changes: &TableChanges,
    part: &dyn HintSource,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    kernels: Kernels,
) -> Result<()> {
    if (before.1.shape, after.1.shape) != (changes.shape(), changes.shape_after()) {
        return Err(Error::api_misuse("the changes are between tables of other shapes"));
    }
    match patches_of(before) {
        Some(patches) if patches_downloads(before, after) => {
            patches.patch(before, after, changes, part, sink, kernels)
        }
        _ => Err(Error::api_misuse(format!(
            "what clients of {} downloaded cannot be patched for this version of the table, and has to be downloaded again",
            before.0.scheme
        ))),
    }
}

fn patches_of(version: Version<'_>) -> Option<&'static dyn ErasedPatches> {
    version.0.scheme.descriptor().patches()
}

/// A version of a table, with the plan with which it is served.
pub type Version<'a> = (&'a SchemePlan, &'a TableIdentity);

/// [`PatchedDownload`] with its types erased. Both versions are of this scheme.
pub trait ErasedPatches: Sync {
    /// As [`patches_downloads`].
    fn suits(&self, before: Version<'_>, after: Version<'_>) -> bool;

    /// As [`patch_downloaded`].
    ///
    /// # Errors
    /// As there.
    fn patch(
        &self,
        before: Version<'_>,
        after: Version<'_>,
        changes: &TableChanges,
        part: &dyn HintSource,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
        kernels: Kernels,
    ) -> Result<()>;
}

fn parameters<S: PatchedDownload>((plan, identity): Version<'_>) -> Result<S::Parameters> {
    S::Parameters::decode(identity, &plan.parameters)
}

impl<S: PatchedDownload> ErasedPatches for Of<S> {
    fn suits(&self, before: Version<'_>, after: Version<'_>) -> bool {
        match (parameters::<S>(before), parameters::<S>(after)) {
            (Ok(before), Ok(after)) => S::patches(&before, &after),
            _ => false,
        }
    }

    fn patch(
        &self,
        before: Version<'_>,
        after: Version<'_>,
        changes: &TableChanges,
        part: &dyn HintSource,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
        kernels: Kernels,
    ) -> Result<()> {
        let (before, after) = (parameters::<S>(before)?, parameters::<S>(after)?);
        S::patch(&before, &after, changes, part, kernels, sink)
    }
}

#[cfg(not(target_family = "wasm"))]
#[cfg(test)]
mod tests;
