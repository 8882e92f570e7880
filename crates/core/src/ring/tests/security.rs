//! The numbers are those of the published estimate.

use super::*;

#[test]
fn the_estimate_is_for_these_numbers() {
    let file = include_str!("../../../../../vectors/ring_lwe_security.json");
    let security: serde_json::Value = serde_json::from_str(file).unwrap();
    assert_eq!(security["degree"], Form::STANDARD.degree());
    assert_eq!(security["modulus_bits"], MODULUS_BITS);
    let standard = &security["standard"];
    assert_eq!(standard["deviation"].as_f64().unwrap(), Form::ERROR.deviation());
    assert_eq!(standard["security_bits"], 141.3);
    let variance = security["secret_deviation"].as_f64().unwrap().powi(2);
    assert!((variance - 2.0 / 3.0).abs() < 1e-5, "of a number that is -1, 0 or 1");
}
