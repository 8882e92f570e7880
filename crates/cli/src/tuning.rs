//! What a user chooses about a scheme beyond its name: from what was typed to what the registry takes.

use crate::arguments::FiniteDifferences;
use crate::display;
use privet_core::commit::pointproofs::ReferenceString;
use privet_core::{Error, Result, SecretRng};
use privet_schemes::SchemeId;
use privet_schemes::finite_differences::costs::Choice;
use privet_schemes::registry::Tuning;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// What was typed.
pub(crate) struct Choices<'a> {
    pub(crate) partition_records: Option<u64>,
    pub(crate) reference_string: Option<&'a Path>,
    pub(crate) precompute_openings: bool,
    pub(crate) finite_differences: &'a FiniteDifferences,
}

impl Choices<'_> {
    /// Reads the reference string if one is named. `scheme` is the scheme that the choices are for; `None` if it is none or not known yet.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a choice was made that the scheme does not have, or the file cannot be read;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it holds no reference string.
    pub(crate) fn read(&self, scheme: Option<SchemeId>) -> Result<Tuning> {
        let FiniteDifferences {
            storage_limit,
            answer_limit,
            variables,
            degree,
            one_bit,
            digits,
            servers,
        } = *self.finite_differences;
        let pointproofs: &[_] = &[SchemeId::TapirPointproofs];
        let (two, many) = (SchemeId::FiniteDifferences, SchemeId::FiniteDifferencesMany);
        let differences: &[_] = &[two, many];
        let chosen = [
            ("--reference-string", pointproofs, self.reference_string.is_some()),
            ("--precompute-openings", pointproofs, self.precompute_openings),
            ("--storage-limit", differences, storage_limit.is_some()),
            ("--answer-limit", differences, answer_limit.is_some()),
            ("--variables", differences, variables.is_some()),
            ("--one-bit", &[two], one_bit),
            ("--servers", &[many], servers.is_some()),
        ];
        let refused = |schemes: &[SchemeId]| scheme.is_none_or(|scheme| !schemes.contains(&scheme));
        if let Some((option, schemes, _)) =
            chosen.iter().find(|(_, schemes, chosen)| *chosen && refused(schemes))
        {
            let names: Vec<&str> = schemes.iter().map(|scheme| scheme.name()).collect();
            return Err(Error::api_misuse(format!(
                "{option} is for {} alone: leave it away, or choose --scheme {}",
                names.join(" and "),
                names.join(" or ")
            )));
        }
        Ok(Tuning {
            partition_records: self.partition_records,
            reference_string: self.reference_string.map(read).transpose()?,
            precompute_openings: self.precompute_openings,
            finite_differences: Choice { variables, degree, storage_limit, answer_limit },
            one_bit,
            digits,
            servers,
        })
    }
}

/// More than any reference string has: they end at partitions of 2^16 records, with 192 bytes for each.
const MOST_BYTES: u64 = 16 << 20;

/// Reads a reference string and checks it, which takes about a third of a millisecond for each record of a partition.
fn read(path: &Path) -> Result<Arc<ReferenceString>> {
    let unreadable = |error: io::Error| {
        Error::api_misuse(format!(
            "cannot read the reference string {}: {error}; `privet setup pointproofs` makes one",
            path.display()
        ))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    // One byte more than there can be is enough to see that it is none.
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let spinner = display::working("checking the reference string");
    let string = ReferenceString::decode(&bytes).map_err(|error| error.within(path.display()));
    spinner.finish_and_clear();
    string.map(Arc::new)
}

/// Whether the file begins as reference strings do, whatever follows.
pub(crate) fn is_reference_string(path: &Path) -> bool {
    let mut beginning = [0; ReferenceString::MAGIC.len()];
    let mut read = || File::open(path)?.read_exact(&mut beginning);
    path.is_file() && read().is_ok() && beginning == ReferenceString::MAGIC
}

/// A reference string for partitions of up to `size` records, made in this process. Whoever reads its memory meanwhile can forge proofs.
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

/// How many records a partition of a table of `records` records should have under tapir-pp: a power of two next to 2·√n, and no more than there can be. Work per answer grows with the size of partitions, bytes
/// with their number.
pub(crate) fn partition_records_for(records: u64) -> u32 {
    const MOST: u64 = 1 << 16;
    let about = records.isqrt().saturating_mul(2).clamp(2, MOST);
    let above = about.next_power_of_two();
    let nearest = if about * 4 < above * 3 { above / 2 } else { above };
    // At most the limit, so it fits 32 bits.
    nearest as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_have_about_twice_the_square_root() {
        for (records, size) in
            [(1, 2), (4, 4), (1 << 14, 256), (1 << 20, 2048), (1 << 22, 4096), (u64::MAX, 1 << 16)]
        {
            assert_eq!(partition_records_for(records), size, "{records}");
        }
        // 2 · 707 = 1414 is nearer to 1024 than to 2048.
        assert_eq!(partition_records_for(500_000), 1024);
    }

    #[test]
    fn choices_of_one_scheme_are_refused_for_others() {
        let none = FiniteDifferences::default();
        let choices = |precompute_openings| Choices {
            partition_records: Some(64),
            reference_string: None,
            precompute_openings,
            finite_differences: &none,
        };
        for scheme in [None, Some(SchemeId::TapirMerkle), Some(SchemeId::Dpf)] {
            assert!(choices(true).read(scheme).is_err());
            assert_eq!(choices(false).read(scheme).unwrap().partition_records, Some(64));
        }
        let tuning = choices(true).read(Some(SchemeId::TapirPointproofs)).unwrap();
        assert!(tuning.precompute_openings && tuning.reference_string.is_none());
        let one_bit = FiniteDifferences { one_bit: true, ..FiniteDifferences::default() };
        let choices = Choices { finite_differences: &one_bit, ..choices(false) };
        assert!(choices.read(Some(SchemeId::Dpf)).is_err());
        assert!(choices.read(Some(SchemeId::FiniteDifferences)).unwrap().one_bit);
    }
}
