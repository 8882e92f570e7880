//! The schemes as the registry knows them.

mod stored_setup;
mod versions;

use privet_schemes::registry::{PARTITION_RECORDS, Tuning, plan};
use privet_schemes::test_tables::identity;

#[test]
fn what_a_scheme_says_of_itself_is_so() {
    let all: Vec<_> = crate::all().collect();
    for (place, scheme) in all.iter().enumerate() {
        assert!(!all[..place].contains(scheme), "{scheme} is there twice");
    }
    for scheme in [crate::FINITE_DIFFERENCES, crate::FINITE_DIFFERENCES_MANY] {
        assert_eq!(scheme.name().parse::<privet_schemes::SchemeId>().unwrap(), scheme);
        let about = scheme.about();
        assert!(about.summary.len() <= 80 && !about.summary.ends_with('.'), "{scheme}");
        let made = plan(scheme, &identity(1000, 4), &Tuning::default()).unwrap();
        assert!(about.servers.contains(&(made.servers as u32)), "{scheme}");
        let cut = Tuning::default().with(&PARTITION_RECORDS, 64u32);
        assert!(plan(scheme, &identity(1000, 4), &cut).is_err(), "{scheme}");
    }
}
