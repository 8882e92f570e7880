//! How costs grow with the number of records: power laws through what was measured, beside those of
//! the theory.

use super::metric::Metric;
use super::run::Run;

/// What grows, in the order of [`Grown::theory`].
pub(super) const GROWS: [Metric; 4] =
    [Metric::ServerTime, Metric::OnlineBytes, Metric::OfflineBytes, Metric::ClientStorage];

/// A scheme on ever larger tables.
pub(super) struct Grown {
    pub(super) scheme: &'static str,
    record_len: u64,
    /// Partitions of √n records, as in the paper. Otherwise the scheme's own choice.
    is_square: bool,
    /// The power of n by which a server's time, a lookup's bytes, those of the first use, and what
    /// a client keeps grow. `None` if there is nothing to grow. Factors of log n are left out.
    pub(super) theory: [Option<f64>; 4],
}

const NOTHING: Option<f64> = None;
const CONSTANT: Option<f64> = Some(0.0);
const ROOT: Option<f64> = Some(0.5);
const LINEAR: Option<f64> = Some(1.0);
/// Finite differences with nearly as much storage as table: H(1/4) (Henzinger and Ragavan).
const DIFFERENCES: Option<f64> = Some(0.811);

/// All schemes. Those whose hints or points are many times as large as records get short records.
pub(super) const GROWN: [Grown; 16] = [
    grown("simplepir", 32, [LINEAR, ROOT, ROOT, ROOT]),
    grown("doublepir", 1, [LINEAR, ROOT, CONSTANT, CONSTANT]),
    grown("simplepir-packed", 32, [LINEAR, ROOT, ROOT, ROOT]),
    grown("dummy-subsets", 32, [ROOT, ROOT, LINEAR, ROOT]),
    grown("harmony", 32, [ROOT, ROOT, LINEAR, ROOT]),
    grown("piano", 32, [ROOT, ROOT, LINEAR, ROOT]),
    grown("piano-all-parities", 32, [ROOT, ROOT, LINEAR, ROOT]),
    grown("dpf", 32, [LINEAR, CONSTANT, NOTHING, NOTHING]),
    grown("dummy-subsets-two", 32, [ROOT, ROOT, ROOT, ROOT]),
    square("singlepass", [ROOT, ROOT, ROOT, LINEAR]),
    square("tapir-mt", [ROOT, ROOT, LINEAR, LINEAR]),
    square("tapir-pp", [LINEAR, ROOT, LINEAR, LINEAR]),
    grown("apir-dpf", 32, [LINEAR, CONSTANT, NOTHING, NOTHING]),
    grown("apir-matrix-mt", 32, [LINEAR, ROOT, CONSTANT, CONSTANT]),
    grown("finite-differences", 1, [DIFFERENCES, DIFFERENCES, NOTHING, NOTHING]),
    grown("download", 32, [NOTHING, NOTHING, LINEAR, LINEAR]),
];

const fn grown(scheme: &'static str, record_len: u64, theory: [Option<f64>; 4]) -> Grown {
    Grown { scheme, record_len, is_square: false, theory }
}

const fn square(scheme: &'static str, theory: [Option<f64>; 4]) -> Grown {
    Grown { scheme, record_len: 32, is_square: true, theory }
}

impl Grown {
    /// The scheme on 2^14 to 2^`largest` records.
    pub(super) fn runs(&self, largest: u32) -> Vec<Run> {
        let sizes = (14..=largest).step_by(2).map(|power| 1u64 << power);
        let options = |records: u64| match self.is_square {
            true => vec!["--partition-records".to_owned(), records.isqrt().to_string()],
            false => Vec::new(),
        };
        sizes
            .map(|records| Run::new(self.scheme, records, self.record_len, &options(records)))
            .collect()
    }
}

/// factor · x^exponent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PowerLaw {
    pub(super) exponent: f64,
    factor: f64,
}

impl PowerLaw {
    pub(super) fn at(&self, x: f64) -> f64 {
        self.factor * x.powf(self.exponent)
    }

    /// The law of that exponent through a point.
    pub(super) fn through((x, y): (f64, f64), exponent: f64) -> Self {
        Self { exponent, factor: y / x.powf(exponent) }
    }
}

/// The least squares on logarithmic axes. `None` with fewer than two different places. Points that
/// are not positive do not count.
pub(super) fn power_law(points: &[(f64, f64)]) -> Option<PowerLaw> {
    let logarithms = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logarithms: Vec<_> = logarithms.map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logarithms.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|(x, _)| *x), mean(|(_, y)| *y));
    let spread: f64 = logarithms.iter().map(|(at, _)| (at - x).powi(2)).sum();
    let slope = logarithms.iter().map(|(at, value)| (at - x) * (value - y)).sum::<f64>() / spread;
    slope.is_finite().then(|| PowerLaw { exponent: slope, factor: (y - slope * x).exp() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found_again() {
        let points: Vec<_> =
            (10..20).map(|power| 2f64.powi(power)).map(|x| (x, 3.0 * x.sqrt())).collect();
        let law = power_law(&points).unwrap();
        assert!((law.exponent - 0.5).abs() < 1e-9);
        assert!((law.at(100.0) - 30.0).abs() < 1e-6);
        assert!((PowerLaw::through((100.0, 30.0), 0.5).at(400.0) - 60.0).abs() < 1e-9);
        assert!(power_law(&points[..1]).is_none());
        assert!(power_law(&[(4.0, 1.0), (4.0, 2.0)]).is_none());
        assert!(power_law(&[(4.0, 0.0), (8.0, 2.0)]).is_none());
    }

    #[test]
    fn every_scheme_grows_but_the_one_whose_points_are_too_many() {
        let grown: Vec<_> = GROWN.iter().map(|grown| grown.scheme).collect();
        let missing = privet_laboratory::all().map(|scheme| scheme.name());
        let missing: Vec<_> = missing.filter(|scheme| !grown.contains(scheme)).collect();
        assert_eq!(missing, ["finite-differences-many"]);
    }
}
