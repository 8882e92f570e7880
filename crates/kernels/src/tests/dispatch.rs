use crate::{Arm, Kernels};

#[test]
fn names_of_arms_are_read_back() {
    for arm in Arm::ALL {
        assert_eq!(arm.to_string().parse(), Ok(arm));
    }
    let error = "sse9".parse::<Arm>().expect_err("no such arm").to_string();
    for arm in Arm::ALL {
        assert!(error.contains(&arm.to_string()), "{error}");
    }
    assert!("AVX2".parse::<Arm>().is_err());
}

#[test]
fn the_best_available_arm_is_detected() {
    let available = Arm::available();
    assert_eq!(available.first(), Some(&Arm::Portable));
    assert_eq!(available.last(), Some(&Kernels::detect().arm()));
    assert!(available.is_sorted());
    for arm in Arm::ALL {
        match Kernels::with_arm(arm) {
            Ok(kernels) => assert!(available.contains(&arm) && kernels.arm() == arm),
            Err(error) => {
                assert!(!available.contains(&arm));
                assert!(error.to_string().contains(&arm.to_string()));
            }
        }
    }
}

/// `scripts/check-avx512.sh` names the arm for whose sake it runs the tests. Without it they would
/// also pass where that arm is not available.
#[test]
fn the_arm_asked_for_is_the_best() {
    if let Ok(name) = std::env::var("PRIVET_BEST_ARM") {
        assert_eq!(Kernels::detect().arm().to_string(), name);
    }
}
