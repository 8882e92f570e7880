use crate::arguments::{SchemeOptions, Typed};
use privet_laboratory::finite_differences::ONE_BIT;
use privet_laboratory::tapir_pp::{PRECOMPUTE_OPENINGS, REFERENCE_STRING};
use privet_schemes::SchemeId;
use privet_schemes::registry::PARTITION_RECORDS;

#[test]
fn choices_of_one_scheme_are_refused_for_others() {
    privet_laboratory::register();
    let cut = (&PARTITION_RECORDS, Typed::Number(64));
    let typed = |option| SchemeOptions::<false>(vec![cut.clone(), (option, Typed::Given)]);
    let precomputing = typed(&PRECOMPUTE_OPENINGS);
    for scheme in [None, Some(SchemeId::TapirMerkle), Some(SchemeId::Dpf)] {
        assert!(precomputing.read(scheme).is_err());
        let tuning = SchemeOptions::<false>(vec![cut.clone()]).read(scheme).unwrap();
        assert_eq!(tuning.number(&PARTITION_RECORDS), Some(64));
    }
    let tuning = precomputing.read(Some(privet_laboratory::TAPIR_PP)).unwrap();
    assert!(tuning.has(&PRECOMPUTE_OPENINGS) && !tuning.has(&REFERENCE_STRING));
    assert!(precomputing.read_all(Some(privet_laboratory::TAPIR_PP)).is_err());
    let one_bit = typed(&ONE_BIT);
    assert!(one_bit.read(Some(SchemeId::Dpf)).is_err());
    assert!(one_bit.read(Some(privet_laboratory::FINITE_DIFFERENCES)).unwrap().has(&ONE_BIT));
}
