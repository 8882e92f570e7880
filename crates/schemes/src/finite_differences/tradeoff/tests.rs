//! The formulas count what they claim, and agree with the served scheme and with published figures.

use super::*;
use crate::finite_differences::FiniteDifferencesParameters;
use crate::finite_differences::costs::Setting;
use crate::finite_differences::many_servers::{ManyServersParameters, least_field};
use privet_core::{Blame, TableShape};
use proptest::prelude::*;

fn two_servers() -> Family {
    Family::new(2, 2, 1).unwrap()
}

fn polynomial(variables: u32, degree: u32) -> Polynomial {
    Polynomial::new(two_servers(), variables, degree).unwrap()
}

/// All vectors of so many entries from 0 to `highest`.
fn vectors(highest: u32, entries: u32) -> impl Iterator<Item = Vec<u32>> {
    let base = highest + 1;
    (0..base.pow(entries))
        .map(move |number| (0..entries).map(|entry| number / base.pow(entry) % base).collect())
}

#[test]
fn counts_are_those_of_all_vectors() {
    for (servers, field) in [(2, 2), (2, 3), (3, 3), (2, 5), (3, 5), (5, 5), (4, 7)] {
        for highest in 1..field {
            let family = Family::new(servers, field, highest).unwrap();
            for variables in 1..=4 {
                let all: Vec<Vec<u32>> = vectors(highest, variables).collect();
                let with = |holds: &dyn Fn(&[u32]) -> bool| {
                    all.iter().filter(|vector| holds(vector)).count() as u128
                };
                let sum = |vector: &[u32]| vector.iter().sum::<u32>();
                let weight =
                    |vector: &[u32]| vector.iter().filter(|entry| **entry > 0).count() as u32;
                for degree in 1..=highest * variables {
                    let polynomial = Polynomial::new(family, variables, degree).unwrap();
                    let radius = degree / servers;
                    assert_eq!(polynomial.radius(), radius);
                    assert_eq!(polynomial.coefficients(), with(&|vector| sum(vector) == degree));
                    assert_eq!(polynomial.derivatives(), with(&|vector| sum(vector) <= radius));
                    assert_eq!(polynomial.reads(), with(&|vector| weight(vector) <= radius));
                    assert_eq!(polynomial.points(), u128::from(field).pow(variables));
                }
                assert!(Polynomial::new(family, variables, highest * variables + 1).is_err());
            }
        }
    }
}

#[test]
fn what_is_served_costs_as_the_formulas_say() {
    let shape = TableShape::new(1, 1).unwrap();
    for variables in 2..=30 {
        for degree in (1..=variables / 2).step_by(2) {
            let setting = Setting { servers: 2, field: 2, variables, degree };
            let exact = polynomial(variables, degree);
            let served = FiniteDifferencesParameters::with(shape, false, setting).unwrap();
            assert_eq!(exact.coefficients(), setting.capacity().into());
            assert_eq!(exact.points(), served.points_bytes().into());
            assert_eq!(exact.reads(), served.answer_bytes().into());
        }
    }
    for servers in 3..=13 {
        let field = least_field(servers).unwrap();
        let family = Family::new(servers, field, 1).unwrap();
        for (variables, degree) in [(6, 3), (9, 4), (10, 10), (7, 1)] {
            let setting = Setting { servers, field, variables, degree };
            let exact = Polynomial::new(family, variables, degree).unwrap();
            let served = ManyServersParameters::with(shape, setting).unwrap();
            assert_eq!(exact.coefficients(), served.words().count().into());
            assert_eq!(exact.points(), served.points().into());
            assert_eq!(exact.reads(), served.ball().count().into());
        }
    }
}

/// Table 2 of the full version of the paper, for records of one byte, as the authors' benchmark
/// prints it.
#[test]
fn the_published_costs_of_two_servers_are_reproduced() {
    let exact = polynomial(35, 9);
    assert_eq!((exact.coefficients(), exact.reads()), (70_607_460, 59_536));
    assert_eq!(exact.points(), 32 << 30);
    let bytes = |records: u128| records as f64;
    let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-4;
    assert!(close(bytes(exact.coefficients()) / (1u64 << 30) as f64, 0.065_758));
    assert!(close(bytes(exact.reads()) / 1024.0, 58.140_625));
    // "BIM storage would be 1860.5 TB, worse by 59536".
    let precomputed = bytes(exact.derivatives()) * bytes(exact.points());
    assert_eq!(precomputed / (1u64 << 40) as f64, 1_860.5);

    // 11 GB and 2 GB that become 1 TiB.
    let (large, small) = (polynomial(40, 13), polynomial(40, 11));
    assert_eq!((large.points(), small.points()), (1 << 40, 1 << 40));
    assert_eq!((large.coefficients(), large.reads()), (12_033_222_880, 4_598_479));
    assert_eq!((small.coefficients(), small.reads()), (2_311_801_440, 760_099));
    assert_eq!((large.coefficients() >> 30, small.coefficients() >> 30), (11, 2));
    // 4.4 MB, in units of 2^20.
    assert_eq!((bytes(large.reads()) / (1 << 20) as f64 * 10.0).round(), 44.0);
}

/// Table 1 of the full version: the storage that precomputed derivatives take for the same answers,
/// with the table cut to need the least.
#[test]
fn the_published_comparison_with_precomputed_derivatives_is_reproduced() {
    let exact = polynomial(40, 17);
    let precomputed = exact.precomputed().unwrap();
    let Precomputed { variables, degree, joined, storage } = precomputed;
    assert_eq!((variables, degree, joined), (34, 9, 1_692));
    assert_eq!(storage / exact.points() as f64, 1_400_024.25);
    // "4,500,000 times smaller", of the table of 11 GB.
    let exact = polynomial(40, 13);
    let times = exact.precomputed().unwrap().storage / exact.points() as f64;
    assert_eq!(times, 4_560_594.0);
    // Nothing is gained by joining records here.
    let exact = polynomial(35, 9);
    let precomputed = exact.precomputed().unwrap();
    assert_eq!((precomputed.variables, precomputed.degree, precomputed.joined), (35, 9, 1));
    let three = Polynomial::new(Family::new(3, 3, 1).unwrap(), 10, 3).unwrap();
    assert_eq!(three.precomputed(), None);
}

/// "For n > 10^6, 1.5·√(log n)·n bits of storage, and 12·n^0.82 bits read."
#[test]
fn the_bound_for_little_storage_holds() {
    let mut checked = 0;
    for degree in (1..=49).step_by(2) {
        let exact = polynomial(2 * degree, degree);
        let records = exact.coefficients() as f64;
        if records < 1e6 {
            continue;
        }
        assert!(exact.points() as f64 <= 1.5 * records.log2().sqrt() * records, "{degree}");
        assert!(exact.reads() as f64 <= 12.0 * records.powf(0.82), "{degree}");
        checked += 1;
    }
    assert!(checked > 15);
}

#[test]
fn one_power_of_each_variable_is_a_choice_of_variables() {
    for variables in [1, 2, 17, 64, 100] {
        for degree in [1, 2, 9, 31, 50] {
            if degree <= variables {
                let exact = polynomial(variables, degree);
                let binomial = privet_core::combinations::binomial(variables, degree);
                assert_eq!(Some(exact.coefficients()), binomial);
                assert_eq!(exact.table_bits(), exact.coefficients());
            }
        }
    }
}

#[test]
fn bits_are_symbols_times_the_logarithm_of_the_field() {
    let three = Polynomial::new(Family::new(3, 3, 1).unwrap(), 4, 2).unwrap();
    // 6 · 1.58496 = 9.5, 5 · 1.58496 = 7.9 (the radius is 0, so an answer is one symbol: 1.58), 81
    // · 1.58496 = 128.4.
    assert_eq!((three.coefficients(), three.table_bits()), (6, 9));
    assert_eq!((three.reads(), three.answer_bits()), (1, 2));
    assert_eq!((three.points(), three.storage_bits()), (81, 129));
}

#[test]
fn exponents_are_those_of_the_paper() {
    let family = two_servers();
    let at = |mean: f64| family.exponents(MeanDegree::new(family, mean).unwrap());
    let little = at(0.5);
    assert!((little.storage - 1.0).abs() < 1e-12);
    // H(1/4) = 2 − 3/4 · log₂ 3.
    assert!((little.reads - (2.0 - 0.75 * 3f64.log2())).abs() < 1e-12);
    assert!((little.reads - 0.8113).abs() < 5e-5);
    // The second point that the paper's figure marks, θ = 1/5: H(1/10)/H(1/5) and 1/H(1/5).
    let few = at(0.2);
    assert!((few.reads - entropy(0.1) / entropy(0.2)).abs() < 1e-12);
    assert!((few.storage - 1.0 / entropy(0.2)).abs() < 1e-12);
    assert!((few.reads - 0.6496).abs() < 5e-5 && (few.storage - 1.3852).abs() < 5e-5);
}

#[test]
fn more_storage_is_fewer_reads_along_every_curve() {
    for (servers, field) in [(2, 2), (3, 3), (5, 5), (4, 7), (11, 11), (13, 13)] {
        for highest in [1, field - 1] {
            let family = Family::new(servers, field, highest).unwrap();
            let curve: Vec<_> = family.curve(50).collect();
            assert_eq!(curve.len(), 50);
            assert!((curve[49].value() - f64::from(highest) / 2.0).abs() < 1e-12);
            for pair in curve.windows(2) {
                let (one, other) = (family.exponents(pair[0]), family.exponents(pair[1]));
                assert!(one.storage > other.storage && one.reads < other.reads, "{family:?}");
                // With precomputed derivatives, more is stored, and no more is read.
                let kept = family.precomputed_exponents(pair[0]);
                assert!(kept.storage > one.storage && kept.reads <= one.reads + 1e-9);
                if highest == 1 {
                    assert!((kept.reads - one.reads).abs() < 1e-9);
                }
            }
            let last = family.exponents(curve[49]);
            assert!(last.reads < 1.0 && last.reads > 1.0 / f64::from(servers));
        }
    }
}

#[test]
fn the_growth_of_coins_is_their_entropy() {
    for step in 1..200 {
        let mean = f64::from(step) / 200.0;
        assert!((growth(mean, 1) - entropy(mean)).abs() < 1e-12, "{mean}");
    }
    // The entropy is greatest if all values are equally likely, and it is symmetric.
    for highest in 1..=12u32 {
        let top = f64::from(highest);
        assert!((growth(top / 2.0, highest) - (top + 1.0).log2()).abs() < 1e-12);
        for mean in [1e-9, 0.01, 0.3, 0.49] {
            let (one, other) = (growth(mean * top, highest), growth((1.0 - mean) * top, highest));
            assert!((one - other).abs() < 1e-6 && one > 0.0);
        }
    }
    for nothing in [f64::NAN, -1.0, 0.0, 1.0, 2.0, f64::INFINITY] {
        assert_eq!((growth(nothing, 1), entropy(nothing)), (0.0, 0.0));
        assert_eq!(MeanDegree::new(two_servers(), nothing), None);
    }
}

/// No distribution with that mean has more entropy: here of those on {0, 1, 2}, which one number
/// parametrises.
#[test]
fn the_growth_is_the_largest_entropy() {
    for mean in [0.1, 0.5, 0.9, 1.0, 1.3, 1.9] {
        let largest = (0..=100_000)
            .filter_map(|step| {
                let two = f64::from(step) / 100_000.0;
                let one = mean - 2.0 * two;
                let shares = [1.0 - one - two, one, two];
                let term = |share: &f64| if *share > 0.0 { -share * share.log2() } else { 0.0 };
                shares
                    .iter()
                    .all(|share| *share >= 0.0)
                    .then(|| shares.iter().map(term).sum::<f64>())
            })
            .fold(0.0, f64::max);
        assert!((growth(mean, 2) - largest).abs() < 1e-8, "{mean}");
    }
}

/// At a fixed degree for each variable the exact powers approach the asymptotic ones, about as log
/// m / m.
#[test]
fn exact_costs_approach_their_exponents() {
    for (servers, field, highest, of_variables, degree, sizes) in [
        (2, 2, 1, 2, 1, [12, 24, 48]),
        (2, 2, 1, 4, 1, [6, 12, 24]),
        (3, 3, 1, 2, 1, [6, 12, 30]),
        (3, 3, 2, 1, 1, [12, 24, 60]),
        (3, 5, 4, 1, 2, [12, 24, 42]),
        // A radius so large that all points are read.
        (2, 5, 4, 1, 2, [12, 24, 42]),
        (7, 13, 12, 1, 5, [7, 14, 21]),
    ] {
        let family = Family::new(servers, field, highest).unwrap();
        let off = sizes.map(|size| {
            let exact = Polynomial::new(family, of_variables * size, degree * size).unwrap();
            let (limit, power) = (exact.exponents().unwrap(), exact.exact_exponents().unwrap());
            (power.storage - limit.storage).abs().max((power.reads - limit.reads).abs())
        });
        assert!(off[2] < off[1] && off[1] < off[0], "{family:?}: {off:?}");
        assert!(off[2] < 0.12, "{family:?}: {off:?}");
    }
}

#[test]
fn what_has_no_exponents_says_so() {
    let product = polynomial(5, 5);
    assert_eq!((product.coefficients(), product.exponents()), (1, None));
    assert_eq!(product.exact_exponents(), None);
}

#[test]
fn families_and_polynomials_that_do_not_exist_are_refused() {
    for (servers, field, highest) in [
        (0, 2, 1),
        (1, 2, 1),
        (3, 2, 1),
        (14, 13, 1),
        (2, 0, 1),
        (2, 4, 1),
        (2, 17, 1),
        (2, 2, 0),
        (2, 2, 2),
        (3, 3, 3),
    ] {
        let refused = Family::new(servers, field, highest).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse, "{servers} {field} {highest}");
    }
    assert!(Polynomial::new(two_servers(), 100, 50).is_ok());
    for (variables, degree) in
        [(101, 50), (u32::MAX, 1), (0, 0), (0, 1), (10, 0), (10, 11), (10, u32::MAX)]
    {
        let refused = Polynomial::new(two_servers(), variables, degree).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse, "{variables} {degree}");
    }
}

proptest! {
    /// Every request gets an answer or a refusal at once: the work is bounded by that for a
    /// polynomial of 2^100 points.
    #[test]
    fn any_numbers_have_costs_or_are_refused(
        servers in 0..20u32,
        field in prop_oneof![0..20u32, any::<u32>()],
        highest in prop_oneof![0..14u32, any::<u32>()],
        variables in prop_oneof![0..130u32, any::<u32>()],
        degree in prop_oneof![0..1400u32, any::<u32>()],
    ) {
        let Ok(family) = Family::new(servers, field, highest) else { return Ok(()) };
        let Ok(exact) = Polynomial::new(family, variables, degree) else { return Ok(()) };
        prop_assert!(exact.coefficients() >= 1 && exact.coefficients() <= exact.points());
        prop_assert!(exact.reads() >= exact.derivatives() && exact.reads() <= exact.points());
        prop_assert!(exact.table_bits() <= exact.storage_bits());
        for exponents in [exact.exponents(), exact.exact_exponents()].into_iter().flatten() {
            prop_assert!(exponents.storage.is_finite() && exponents.reads.is_finite());
            prop_assert!(exponents.reads >= 0.0 && exponents.reads <= exponents.storage);
        }
        if let Some(precomputed) = exact.precomputed() {
            prop_assert!(precomputed.storage.is_finite() && precomputed.storage > 0.0);
        }
    }
}
