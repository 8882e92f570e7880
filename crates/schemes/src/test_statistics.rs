//! Whether counts are as they should be, by chi-square. What comes of it is in standard deviations; with few degrees of freedom the tail is heavy.

/// How far counts lie from what is expected of them, in standard deviations of the chi-square distribution.
pub(crate) fn excess(counts: &[u64], expected: &[f64]) -> f64 {
    let terms = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    let chi_square: f64 =
        terms.map(|(count, expected)| (*count as f64 - expected).powi(2) / expected).sum();
    let freedom = counts.len() as f64 - 1.0;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

/// How far two rows of counts are from having the same distribution.
pub(crate) fn difference(one: &[u64], other: &[u64]) -> f64 {
    let (ones, others) = (one.iter().sum::<u64>() as f64, other.iter().sum::<u64>() as f64);
    let (mut chi_square, mut freedom) = (0.0, -1.0);
    for (a, b) in one.iter().zip(other).filter(|(a, b)| **a + **b >= 10) {
        let (a, b) = (*a as f64, *b as f64);
        let difference = a * (others / ones).sqrt() - b * (ones / others).sqrt();
        chi_square += difference * difference / (a + b);
        freedom += 1.0;
    }
    assert!(freedom > 0.0, "{one:?} and {other:?} have nothing in which they could differ");
    (chi_square - freedom) / (2.0f64 * freedom).sqrt()
}
