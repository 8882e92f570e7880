//! The schemes as the registry knows them.

mod stored_setup;
mod versions;

use crate::pointproofs::ReferenceString;
use crate::tapir_pp::REFERENCE_STRING;
use privet_core::SecretRng;
use privet_schemes::SchemeId;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning, plan};
use privet_schemes::test_tables::identity;
use std::sync::{Arc, OnceLock};

const OWN: [SchemeId; 3] =
    [crate::TAPIR_PP, crate::FINITE_DIFFERENCES, crate::FINITE_DIFFERENCES_MANY];

/// For partitions of up to 16 records.
pub(crate) fn reference_string() -> Arc<ReferenceString> {
    static STRING: OnceLock<Arc<ReferenceString>> = OnceLock::new();
    let mut rng = SecretRng::from_fixed_seed([5; 32]);
    Arc::clone(STRING.get_or_init(|| ReferenceString::generate(16, &mut rng).unwrap().into()))
}

/// What a scheme needs besides a table of some 1000 records.
fn tuning(scheme: SchemeId) -> Tuning {
    let needs_one = scheme == crate::TAPIR_PP;
    let tuning = Tuning::default().with_some(&PARTITION_RECORDS, needs_one.then_some(16u64));
    tuning.with_some(&REFERENCE_STRING, needs_one.then(reference_string))
}

#[test]
fn what_a_scheme_says_of_itself_is_so() {
    let all: Vec<_> = crate::all().collect();
    for (place, scheme) in all.iter().enumerate() {
        assert!(!all[..place].contains(scheme), "{scheme} is there twice");
    }
    for scheme in OWN {
        assert_eq!(scheme.name().parse::<SchemeId>().unwrap(), scheme);
        let about = scheme.about();
        assert!(about.summary.len() <= 80 && !about.summary.ends_with('.'), "{scheme}");
        let made = plan(scheme, &identity(1000, 4), &tuning(scheme)).unwrap();
        assert!(about.servers.contains(&(made.servers as u32)), "{scheme}");
        let cut = Tuning::default().with(&PARTITION_RECORDS, 64u32);
        assert!(plan(scheme, &identity(1000, 4), &cut).is_err(), "{scheme}");
    }
}
