//! The options of a scheme that a user chooses: from what was typed to what the registry takes.

use crate::arguments::{SchemeOptions, Typed};
use crate::display;
use privet_core::commit::pointproofs::ReferenceString;
use privet_core::{Error, Result, SecretRng, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, OptionKind, SchemeOption, Tuning, Value, check_options};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

impl<const POINTS: bool> SchemeOptions<POINTS> {
    /// Reads the files that are named. `scheme` is the scheme that the options are for, or `None`
    /// if it is not known or there is none.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if an option was typed that the scheme
    /// does not have, or a file cannot be read;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not hold what it should.
    pub(crate) fn read(&self, scheme: Option<SchemeId>) -> Result<Tuning> {
        // An option with an error text of its own is checked by the plan, whose error names the
        // table.
        let typed = self.0.iter().map(|(option, _)| *option);
        check_options(scheme, typed.filter(|option| option.elsewhere.is_none()))?;
        self.0.iter().try_fold(Tuning::default(), |tuning, (option, typed)| {
            let value = match typed {
                Typed::Given => Value::Given,
                Typed::Number(number) => (*number).into(),
                Typed::File(path) => read(option, path)?,
            };
            Ok(tuning.with(option, value))
        })
    }

    /// The same for a server, which needs every mandatory option of its scheme.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if such an option is missing.
    pub(crate) fn read_all(&self, scheme: Option<SchemeId>) -> Result<Tuning> {
        let options = scheme.map_or(&[][..], |scheme| scheme.about().options);
        let mut missing = options.iter().filter(|option| !self.has(option));
        match missing.find_map(|option| lacking(option)) {
            Some(error) => Err(error),
            None => self.read(scheme),
        }
    }
}

/// The error for a missing `option`, if a server cannot do without it.
fn lacking(option: &SchemeOption) -> Option<Error> {
    let error = Error::api_misuse(option.missing?);
    Some(match option.kind {
        OptionKind::File { needed, .. } => error.because(needed),
        _ => error,
    })
}

/// Reads and checks the file that an option names. Checking a reference string takes about a third
/// of a millisecond for each record of a partition.
fn read(option: &SchemeOption, path: &Path) -> Result<Value> {
    let OptionKind::File { what, needed, most_bytes, decode } = option.kind else {
        return Err(Error::api_misuse(format!("--{} names no file", option.name)));
    };
    let unreadable = |error: io::Error| {
        Error::api_misuse(format!("cannot read {what} {}: {error}; have one made", path.display()))
            .because(needed)
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than the maximum is enough to detect a file that is too long.
    file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let spinner = display::working(&format!("checking {what}"));
    let value = decode(&bytes).map_err(|error| error.within(path.display()));
    spinner.finish_and_clear();
    value
}

/// Whether the file begins with the magic bytes of reference strings. The rest is not checked.
pub(crate) fn is_reference_string(path: &Path) -> bool {
    let mut beginning = [0; ReferenceString::MAGIC.len()];
    let mut read = || File::open(path)?.read_exact(&mut beginning);
    path.is_file() && read().is_ok() && beginning == ReferenceString::MAGIC
}

/// Makes a reference string for partitions of up to `size` records in this process. Whoever reads
/// the memory of the process meanwhile can forge proofs.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are none of that size.
pub(crate) fn make_reference_string(size: u32) -> Result<Arc<ReferenceString>> {
    let spinner = display::working(&format!(
        "making a reference string for partitions of {} records",
        display::count(size.into())
    ));
    let string = ReferenceString::generate(size, &mut SecretRng::from_os()?);
    spinner.finish_and_clear();
    string.map(Arc::new)
}

/// Makes in this process whatever the scheme needs beside the table and nobody supplied. Only for
/// servers whose clients are in this process too.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn completed(
    tuning: Tuning,
    scheme: SchemeId,
    identity: &TableIdentity,
) -> Result<Tuning> {
    let Some(makeshift) = registry::makeshift(scheme, identity, &tuning) else {
        return Ok(tuning);
    };
    let spinner = display::working(&format!("making {}", makeshift.what));
    let made = (makeshift.make)();
    spinner.finish_and_clear();
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_schemes::finite_differences::ONE_BIT;
    use privet_schemes::registry::PARTITION_RECORDS;
    use privet_schemes::tapir::{PRECOMPUTE_OPENINGS, REFERENCE_STRING};

    #[test]
    fn choices_of_one_scheme_are_refused_for_others() {
        let cut = (&PARTITION_RECORDS, Typed::Number(64));
        let typed = |option| SchemeOptions::<false>(vec![cut.clone(), (option, Typed::Given)]);
        let precomputing = typed(&PRECOMPUTE_OPENINGS);
        for scheme in [None, Some(SchemeId::TapirMerkle), Some(SchemeId::Dpf)] {
            assert!(precomputing.read(scheme).is_err());
            let tuning = SchemeOptions::<false>(vec![cut.clone()]).read(scheme).unwrap();
            assert_eq!(tuning.number(&PARTITION_RECORDS), Some(64));
        }
        let tuning = precomputing.read(Some(SchemeId::TapirPointproofs)).unwrap();
        assert!(tuning.has(&PRECOMPUTE_OPENINGS) && !tuning.has(&REFERENCE_STRING));
        assert!(precomputing.read_all(Some(SchemeId::TapirPointproofs)).is_err());
        let one_bit = typed(&ONE_BIT);
        assert!(one_bit.read(Some(SchemeId::Dpf)).is_err());
        assert!(one_bit.read(Some(SchemeId::FiniteDifferences)).unwrap().has(&ONE_BIT));
    }
}
