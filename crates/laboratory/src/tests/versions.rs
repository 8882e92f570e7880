//! The schemes go through versions of a table.

use super::{OWN, tuning};
use crate::tapir_pp::PRECOMPUTE_OPENINGS;
use crate::{FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY, TAPIR_PP, register};
use privet_schemes::conformance::versions::{
    a_scheme_that_asks_is_rehearsed, no_coins_of_a_lookup_can_be_computed_afterwards,
    successors_are_of_the_same_scheme_and_of_the_changed_table, through_versions,
};
use privet_schemes::registry::{PARTITION_RECORDS, Tuning, plan, plan_next};
use privet_schemes::test_tables::identity;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn finite_differences_go_through_versions(
        records in 1u64..150,
        record_len in 1u64..9,
        history in prop::collection::vec((0u64..9, 0u64..12), 1..4),
    ) {
        register();
        for scheme in [FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY] {
            let tuning = Tuning::default();
            through_versions(scheme, (records, record_len), &tuning, &history, true);
        }
    }
}

#[test]
fn tapir_with_pointproofs_goes_through_versions() {
    register();
    for precompute_openings in [false, true] {
        let tuning = tuning(TAPIR_PP).with(&PARTITION_RECORDS, 4u64);
        let tuning = tuning.with_flag(&PRECOMPUTE_OPENINGS, precompute_openings);
        through_versions(TAPIR_PP, (13, 5), &tuning, &[(2, 0), (1, 2), (0, 9)], true);
    }
}

#[test]
fn what_every_scheme_promises() {
    register();
    for scheme in OWN {
        no_coins_of_a_lookup_can_be_computed_afterwards(scheme, &tuning(scheme));
        a_scheme_that_asks_is_rehearsed(scheme, 13, &tuning(scheme));
    }
    for scheme in [FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY] {
        successors_are_of_the_same_scheme_and_of_the_changed_table(scheme, true);
    }
}

#[test]
fn a_plan_stays_as_long_as_it_suits() {
    register();
    let (small, large) = (identity(1000, 4), identity(1_000_000, 4));
    for scheme in OWN {
        let before = plan(scheme, &small, &tuning(scheme)).unwrap();
        let next = plan_next(&before, &identity(1001, 4), &tuning(scheme)).unwrap();
        assert_eq!(next.parameters, before.parameters, "{scheme}");
    }
    let tuning = Tuning::default();
    // Of 1000 records a polynomial has too few variables for a million.
    let before = plan(FINITE_DIFFERENCES, &small, &tuning).unwrap();
    let next = plan_next(&before, &large, &tuning).unwrap();
    assert_eq!(next, plan(FINITE_DIFFERENCES, &large, &tuning).unwrap());
}
