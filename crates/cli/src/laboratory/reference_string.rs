//! Reference strings: files that `tapir-pp` needs.

use crate::display;
use privet_core::{Result, SecretRng, TableIdentity};
use privet_laboratory::pointproofs::ReferenceString;
use privet_laboratory::tapir_pp::{REFERENCE_STRING, missing_string};
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// What a person types to have one.
pub(crate) const WAYS_TO_ONE: &[&str] = &[
    "--reference-string; `privet setup pointproofs` makes one",
    "`privet setup pointproofs` makes one",
];

/// Whether the file begins with the magic bytes of reference strings. The rest is not checked.
pub(crate) fn is_one(path: &Path) -> bool {
    let mut beginning = [0; ReferenceString::MAGIC.len()];
    let mut read = || File::open(path)?.read_exact(&mut beginning);
    path.is_file() && read().is_ok() && beginning == ReferenceString::MAGIC
}

/// Makes a reference string for partitions of up to `size` records in this process. Whoever reads
/// the memory of the process meanwhile can forge proofs.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are none of that size.
pub(crate) fn make(size: u32) -> Result<Arc<ReferenceString>> {
    let _making = display::working(&format!(
        "making a reference string for partitions of {} records",
        display::count(size.into())
    ));
    ReferenceString::generate(size, &mut SecretRng::from_os()?).map(Arc::new)
}

/// Whether the scheme needs a reference string and nobody supplied one.
pub(crate) fn is_missing(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> bool {
    missing_string(scheme, identity, tuning).is_some()
}

/// The tuning, with a reference string made in this process if one is missing. Only for servers
/// whose clients are in this process too.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn completed(
    tuning: Tuning,
    scheme: SchemeId,
    identity: &TableIdentity,
) -> Result<Tuning> {
    match missing_string(scheme, identity, &tuning) {
        Some(size) => Ok(tuning.with(&REFERENCE_STRING, make(size)?)),
        None => Ok(tuning),
    }
}
