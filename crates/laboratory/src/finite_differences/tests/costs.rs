//! The choice of variables and degree, and that their costs are those of the literature.

use super::*;
use crate::finite_differences::costs::Exponents;

/// These variables and this degree, for two servers.
pub(super) fn exactly(variables: u32, degree: u32) -> Setting {
    Setting { servers: 2, field: 2, variables, degree }
}

#[test]
fn published_points_are_reproduced() {
    let small = exactly(35, 9);
    assert_eq!((small.capacity(), small.reads()), (70_607_460, 59_536));
    assert_eq!(small.points(), Some(32 << 30));
    let large = exactly(40, 13);
    assert_eq!((large.capacity(), large.reads()), (12_033_222_880, 4_598_479));
    assert_eq!(large.points(), Some(1 << 40));
    assert_eq!(exactly(40, 11).capacity(), 2_311_801_440);
    assert_eq!(exactly(33, 9).reads(), 46_938);
    assert_eq!(exactly(30, 11).reads(), 174_437);
}

#[test]
fn exponents_are_those_of_the_paper() {
    let close = |one: f64, other: f64| (one - other).abs() < 5e-5;
    let little = exactly(2, 1).exponents();
    assert!(close(little.storage, 1.0) && close(little.reads, 2.0 - 0.75 * 3f64.log2()));
    // The second point that the paper's figure marks, θ = 1/5.
    let few = exactly(5, 1).exponents();
    assert!(close(few.storage, 1.3852) && close(few.reads, 0.6496), "{few:?}");
}

/// Along the diagonal, exact costs approach their exponents, about as log m / m.
#[test]
fn exact_costs_approach_their_exponents() {
    let off = [8, 16, 30].map(|degree| {
        let setting = exactly(2 * degree, degree);
        let power = |count: u64| (count as f64).log2() / (setting.capacity() as f64).log2();
        let Exponents { storage, reads } = setting.exponents();
        let points = f64::from(setting.variables) / (setting.capacity() as f64).log2();
        (points - storage).abs().max((power(setting.reads()) - reads).abs())
    });
    assert!(off[2] < off[1] && off[1] < off[0] && off[2] < 0.06, "{off:?}");
}

#[test]
fn settings_trade_storage_for_reads() {
    for records in [1, 2, 3, 1_000, 1 << 20, 1 << 30] {
        let found = costs_of(records);
        assert!(!found.is_empty());
        for setting in &found {
            assert!(setting.capacity() >= records);
            assert!(setting.degree % 2 == 1 && 2 * setting.degree <= setting.variables);
        }
        for pair in found.windows(2) {
            assert!(pair[0].variables < pair[1].variables && pair[0].reads() > pair[1].reads());
        }
        // Nothing cheaper was overlooked: fewer variables hold fewer records.
        let least = found[0].variables;
        for variables in 2..least {
            for degree in (1..=variables / 2).step_by(2) {
                assert!(exactly(variables, degree).capacity() < records);
            }
        }
    }
}

fn costs_of(records: u64) -> Vec<Setting> {
    super::super::costs::settings(records, 2, 2)
}

#[test]
fn limits_are_kept_or_refused() {
    let shape = identity(1 << 20, 1).shape;
    let choose = |choice: Choice| FiniteDifferencesParameters::new(shape, false, &choice);
    let default = choose(Choice::default()).unwrap();
    assert!(default.points_bytes() <= 32 << 20);
    let large = choose(Choice { storage_limit: Some(1 << 30), ..Choice::default() }).unwrap();
    assert!(large.points_bytes() <= 1 << 30 && large.answer_bytes() < default.answer_bytes());
    let short = choose(Choice { answer_limit: Some(5_000), ..Choice::default() }).unwrap();
    assert!(short.answer_bytes() <= 5_000);
    let exact = Choice { variables: Some(26), degree: Some(11), ..Choice::default() };
    let exact = choose(exact).unwrap();
    assert_eq!((exact.variables(), exact.degree()), (26, 11));
    // Other variables than the best choices have.
    let alone = choose(Choice { variables: Some(30), ..Choice::default() }).unwrap();
    assert_eq!((alone.variables(), alone.degree()), (30, 7));
    for refused in [
        Choice { variables: Some(20), ..Choice::default() },
        Choice { variables: Some(30), storage_limit: Some(1 << 29), ..Choice::default() },
        Choice { storage_limit: Some(1 << 20), ..Choice::default() },
        Choice { answer_limit: Some(100), storage_limit: Some(1 << 24), ..Choice::default() },
        Choice { variables: Some(26), degree: Some(10), ..Choice::default() },
        Choice { variables: Some(20), degree: Some(11), ..Choice::default() },
        Choice { variables: Some(30), degree: Some(3), ..Choice::default() },
    ] {
        assert_eq!(choose(refused).err().unwrap().blame(), Blame::ApiMisuse, "{refused:?}");
    }
}
