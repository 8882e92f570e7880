//! The table of all schemes.

use super::descriptor::{About, Descriptor, Of, Registered};
use crate::SchemeId;
use crate::apir_dpf::ApirDpf;
use crate::apir_matrix::ApirMatrix;
use crate::doublepir::DoublePir;
use crate::download::Download;
use crate::dpf::Dpf;
use crate::dummy_subsets::DummySubsets;
use crate::dummy_subsets::two_servers::DummySubsetsTwo;
use crate::finite_differences::FiniteDifferences;
use crate::finite_differences::many_servers::FiniteDifferencesMany;
use crate::harmony::Harmony;
use crate::piano::{Piano, PianoAllParities};
use crate::simplepir::SimplePir;
use crate::simplepir_packed::SimplePirPacked;
use crate::singlepass::SinglePass;
use crate::tapir::{MerkleForm, Tapir};
use privet_core::{Error, Result};

/// All schemes, in the order in which they are listed. A new scheme needs its folder, and a line
/// here.
const SCHEMES: &[Line] = &[
    of::<SimplePir>(),
    of::<SimplePirPacked>(),
    of::<DoublePir>(),
    of::<Dpf>(),
    of::<DummySubsets>(),
    of::<DummySubsetsTwo>(),
    of::<Harmony>(),
    of::<Piano>(),
    of::<PianoAllParities>(),
    of::<SinglePass>(),
    of::<Tapir<MerkleForm>>(),
    #[cfg(not(target_family = "wasm"))]
    of::<Tapir<crate::tapir::PointproofsForm>>(),
    // Its curve is not in the build for browsers. They know only the name.
    #[cfg(target_family = "wasm")]
    Line {
        id: crate::tapir::POINTPROOFS,
        about: &crate::tapir::POINTPROOFS_ABOUT,
        descriptor: None,
    },
    of::<ApirDpf>(),
    of::<ApirMatrix>(),
    of::<FiniteDifferences>(),
    of::<FiniteDifferencesMany>(),
    of::<Download>(),
    #[cfg(test)]
    of::<crate::toy::Toy>(),
];

/// A scheme by its name.
#[derive(Clone, Copy)]
struct Line {
    id: SchemeId,
    about: &'static About,
    /// `None`: it is not in this build.
    descriptor: Option<&'static dyn Descriptor>,
}

const fn of<S: Registered>() -> Line {
    Line { id: S::ID, about: &S::ABOUT, descriptor: Some(Of::<S>::DESCRIPTOR) }
}

impl SchemeId {
    /// All schemes.
    pub const ALL: &'static [SchemeId] = &{
        let mut all = [SCHEMES[0].id; SCHEMES.len()];
        let mut place = 0;
        while place < all.len() {
            all[place] = SCHEMES[place].id;
            place += 1;
        }
        all
    };

    /// The properties that are the same on every table.
    pub fn about(self) -> &'static About {
        self.line().about
    }

    /// The descriptor that its folder registers.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if this build has only its name.
    pub(super) fn descriptor(self) -> Result<&'static dyn Descriptor> {
        self.line().descriptor.ok_or_else(|| {
            Error::api_misuse(format!("{self} is not a part of Privet for browsers"))
        })
    }

    fn line(self) -> &'static Line {
        let line = SCHEMES.iter().find(|line| line.id == self);
        line.expect("only rooms make names, and each has a line, as a test checks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{PARTITION_RECORDS, Tuning, plan};
    use crate::test_tables::identity;

    #[test]
    fn what_a_scheme_says_of_itself_is_so() {
        for (place, scheme) in SchemeId::ALL.iter().enumerate() {
            assert!(!SchemeId::ALL[..place].contains(scheme), "{scheme} is there twice");
            assert_eq!(scheme.name().parse::<SchemeId>().unwrap(), *scheme);
            let about = scheme.about();
            assert!(about.summary.len() <= 80 && !about.summary.ends_with('.'), "{scheme}");
            if about.options.iter().any(|option| option.missing.is_some()) {
                continue;
            }
            let plan = plan(*scheme, &identity(1000, 4), &Tuning::default()).unwrap();
            assert_eq!(plan.scheme, *scheme);
            assert!(about.servers.contains(&(plan.servers as u32)), "{scheme}");
            let tuning = Tuning::default().with(&PARTITION_RECORDS, 64u32);
            let cut = crate::registry::plan(*scheme, &identity(1000, 4), &tuning);
            assert_eq!(cut.is_ok(), about.has("partition-records"), "{scheme}");
        }
    }

    #[test]
    fn every_scheme_that_has_a_constant_is_in_the_table() {
        let named = [
            SchemeId::SimplePir,
            SchemeId::SimplePirPacked,
            SchemeId::DoublePir,
            SchemeId::Dpf,
            SchemeId::DummySubsets,
            SchemeId::DummySubsetsTwo,
            SchemeId::Harmony,
            SchemeId::Piano,
            SchemeId::PianoAllParities,
            SchemeId::SinglePass,
            SchemeId::TapirMerkle,
            SchemeId::TapirPointproofs,
            SchemeId::ApirDpf,
            SchemeId::ApirMatrix,
            SchemeId::FiniteDifferences,
            SchemeId::FiniteDifferencesMany,
            SchemeId::Download,
        ];
        assert!(named.iter().all(|scheme| SchemeId::ALL.contains(scheme)));
    }
}
