//! The table of all schemes.

use super::descriptor::{Descriptor, Of, Registered};
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
use crate::piano::{Piano, PianoAllParities};
use crate::simplepir::SimplePir;
use crate::singlepass::SinglePass;
use crate::tapir::{MerkleForm, Tapir};

/// Every scheme there is, in the order in which they are listed. A new scheme is its room, and a
/// line here.
const SCHEMES: &[Line] = &[
    of::<SimplePir>(),
    of::<DoublePir>(),
    of::<Dpf>(),
    of::<DummySubsets>(),
    of::<DummySubsetsTwo>(),
    of::<Piano>(),
    of::<PianoAllParities>(),
    of::<SinglePass>(),
    of::<Tapir<MerkleForm>>(),
    #[cfg(not(target_family = "wasm"))]
    of::<Tapir<crate::tapir::PointproofsForm>>(),
    #[cfg(target_family = "wasm")]
    Line { id: crate::tapir::POINTPROOFS, descriptor: &super::descriptor::TAPIR_PP_IS_ABSENT },
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
    descriptor: &'static dyn Descriptor,
}

const fn of<S: Registered>() -> Line {
    Line { id: S::ID, descriptor: Of::<S>::DESCRIPTOR }
}

impl SchemeId {
    /// Every scheme there is.
    pub const ALL: &'static [SchemeId] = &{
        let mut all = [SCHEMES[0].id; SCHEMES.len()];
        let mut place = 0;
        while place < all.len() {
            all[place] = SCHEMES[place].id;
            place += 1;
        }
        all
    };

    /// What its room says of it.
    pub(crate) fn descriptor(self) -> &'static dyn Descriptor {
        let line = SCHEMES.iter().find(|line| line.id == self);
        line.expect("a scheme has a line in the table, as a test checks").descriptor
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
            SchemeId::DoublePir,
            SchemeId::Dpf,
            SchemeId::DummySubsets,
            SchemeId::DummySubsetsTwo,
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
