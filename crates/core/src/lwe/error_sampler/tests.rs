//! The base against its definition, and errors of every width against their Gaussian.

use super::*;
use crate::lwe::ERROR_WIDTHS;

/// P(|X| ≥ k) of the discrete Gaussian of `deviation`, in double precision.
fn tails(deviation: f64) -> impl Fn(usize) -> f64 {
    let weight = move |x: usize| (-((x * x) as f64) / (2.0 * deviation.powi(2))).exp();
    let end = (15.0 * deviation) as usize;
    let total = weight(0) + 2.0 * (1..end).map(weight).sum::<f64>();
    move |k| if k == 0 { 1.0 } else { 2.0 * (k..end).map(weight).sum::<f64>() / total }
}

#[test]
fn thresholds_are_the_tails_of_the_gaussian() {
    let (tail, scale) = (tails(BASE_DEVIATION), 2f64.powi(126));
    for (place, threshold) in THRESHOLDS.iter().enumerate() {
        let expected = tail(place + 1) * scale;
        let difference = *threshold as f64 - expected;
        assert!(difference.abs() <= expected * 1e-9 + 1.0, "threshold {place}");
    }
    // The next one would be zero: beyond the last magnitude, the mass is too small for 126 bits.
    assert!(tail(THRESHOLDS.len() + 1) * scale < 1.0);
}

/// The error of given places and signs, by the width's weights.
fn error(width: ErrorWidth, samples: [(u128, bool); 2]) -> i32 {
    let places = samples.map(|(place, negative)| {
        let [high, low] = [(place >> 63) as u64, place as u64 & (u64::MAX >> 1)];
        // The unused bit is set: it must not matter.
        (u128::from(high << 1 | 1) << 64 | u128::from(low << 1) | u128::from(negative))
            .to_le_bytes()
    });
    let (mut out, count) = ([0], samples_of(width));
    errors_at(Kernels::detect(), width, &places[..count], &mut [0; 2][..count], &mut out);
    out[0] as i32
}

#[test]
fn coins_at_the_edges_of_each_step_give_the_neighbouring_magnitudes() {
    let zero = (THRESHOLDS[0], false);
    for width in ERROR_WIDTHS {
        let [one, other] = width.weights().map(|weight| weight as i32);
        for (place, threshold) in THRESHOLDS.iter().enumerate() {
            let place = place as i32;
            let below = error(width, [(threshold - 1, false), zero]);
            assert!(below > place * one, "just below threshold {place} it counts");
            let at = error(width, [(*threshold, false), zero]);
            assert_eq!(at, place * one, "at threshold {place} it does not");
            assert_eq!(error(width, [(threshold - 1, true), zero]), -below);
            assert_eq!(error(width, [zero, (*threshold, true)]), -place * other);
        }
    }
}

const SAMPLES: usize = 1 << 20;

fn sampled(width: ErrorWidth) -> Vec<f64> {
    let mut rng = SecretRng::from_os().unwrap();
    let mut errors = vec![0u32; SAMPLES];
    sample_errors(Kernels::detect(), width, &mut rng, &mut errors);
    errors.iter().map(|e| f64::from(*e as i32)).collect()
}

/// Whether mean, variance and tails are those of the discrete Gaussian of `deviation`, each within
/// six standard deviations of its estimator: a false alarm about once in 10^7 runs.
fn follows(errors: &[f64], deviation: f64) -> Result<(), String> {
    let count = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / count;
    let variance = errors.iter().map(|e| e * e).sum::<f64>() / count;
    if mean.abs() > 6.0 * deviation / count.sqrt() {
        return Err(format!("mean {mean}"));
    }
    if (variance / deviation.powi(2) - 1.0).abs() > 6.0 * (2.0 / count).sqrt() {
        return Err(format!("variance {variance}"));
    }
    let tail = tails(deviation);
    for k in [0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0].map(|times| (times * deviation) as usize)
    {
        let share = errors.iter().filter(|e| e.abs() >= k as f64).count() as f64 / count;
        let spread = (tail(k) * (1.0 - tail(k)) / count).sqrt();
        if (share - tail(k)).abs() > 6.0 * spread {
            return Err(format!("P(|X| >= {k}) = {share}, not {}", tail(k)));
        }
    }
    // The most frequent values, one by one: a weight that leaves holes shows here.
    for value in 0..8 {
        let probability = (tail(value) - tail(value + 1)) / if value == 0 { 1.0 } else { 2.0 };
        let share = errors.iter().filter(|e| **e == value as f64).count() as f64 / count;
        let spread = (probability * (1.0 - probability) / count).sqrt();
        if (share - probability).abs() > 6.0 * spread {
            return Err(format!("P(X = {value}) = {share}, not {probability}"));
        }
    }
    Ok(())
}

#[test]
fn errors_follow_the_gaussian_of_their_width() {
    for width in ERROR_WIDTHS {
        follows(&sampled(width), width.deviation()).unwrap();
    }
}

#[test]
fn errors_of_a_wrong_width_are_caught() {
    let [widest, next] = [ERROR_WIDTHS[0], ERROR_WIDTHS[1]];
    assert!(follows(&sampled(widest), next.deviation()).is_err(), "another width");
    let errors = sampled(widest);
    assert!(follows(&errors, widest.deviation() * 1.01).is_err(), "1 % narrower than it should be");
    // The same variance, but only multiples of one weight.
    let holes = ErrorWidth::planted([4, 4]);
    assert!(follows(&sampled(holes), holes.deviation()).is_err(), "holes between the values");
    // One draw used for both samples: the sum is as wide as five.
    let twice: Vec<f64> = sampled(ErrorWidth::planted([1, 0])).iter().map(|e| e * 5.0).collect();
    assert!(follows(&twice, widest.deviation()).is_err(), "two samples from one draw");
}
