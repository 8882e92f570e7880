//! What other commands need of the laboratory's schemes.

use crate::arguments::SchemeOptions;
use privet_kernels::rates::best;
use privet_laboratory::finite_differences::{DIGITS, ONE_BIT};
use privet_laboratory_kernels::bls12_381::{G1, Scalar};
use privet_schemes::SchemeId;
use std::hint::black_box;

/// If records are single bits, stored as bytes: the byte that stands for 0.
pub(crate) fn zero_bit(options: &SchemeOptions<false>) -> Option<u8> {
    let digits = options.has(&DIGITS);
    options.has(&ONE_BIT).then_some(if digits { b'0' } else { 0 })
}

/// Whether Privet for browsers has the scheme: it leaves out the laboratory.
pub(crate) fn is_in_browsers(scheme: SchemeId) -> bool {
    let left_out = [
        privet_laboratory::TAPIR_PP,
        privet_laboratory::FINITE_DIFFERENCES,
        privet_laboratory::FINITE_DIFFERENCES_MANY,
    ];
    !left_out.contains(&scheme)
}

/// Products of a point and a number that one core computes in a second.
pub(crate) fn point_products() -> f64 {
    const PRODUCTS: u64 = 64;
    let exponent = Scalar::from_uniform(&[0x5a; 48]);
    let mut point = G1::generator().to_sum();
    best(PRODUCTS, || {
        for _ in 0..PRODUCTS {
            point = point.power(&exponent);
        }
        black_box(&point);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Typed;
    use privet_laboratory::tapir_pp::{PRECOMPUTE_OPENINGS, REFERENCE_STRING};
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
}
