//! Costs as powers of the table's size, when tables grow and the ratio of the degree to the number
//! of variables stays the same.
//!
//! Let D = θ·m, and let m grow. Then every count grows as 2^(c·m) with some rate c, up to factors
//! that are polynomials in m. So storage and reads are powers of the number of records, n; each
//! exponent is a quotient of two rates.
//!
//! **Records.** A vector in {0, …, d}^m has a *type*: the share of its entries that are 0, that are
//! 1, and so on. There are at most (m + 1)^(d + 1) types. Up to a polynomial factor, 2^(m·H(P))
//! vectors have the type P, where H is the entropy of P as a distribution (the method of types:
//! Cover, Thomas, *Elements of Information Theory*, theorem 11.1.3). The sum of the entries is θ·m
//! if the mean of P is θ. So count(θ·m, d, m) grows at the rate of the largest entropy that a
//! distribution on {0, …, d} with mean θ has: [`growth`]. By Lagrange multipliers (the same book,
//! theorem 12.1.1), that is the distribution with P(i) = p^i / Z, Z = Σ_i p^i, for the p that gives
//! it the mean θ. Its entropy is log₂ Z − θ·log₂ p. With d = 1, p is θ/(1 − θ), and the rate is the
//! binary entropy H(θ).
//!
//! **Reads.** C(m, i)·d^i with i = x·m grows at the rate H(x) + x·log₂ d, which rises up to x =
//! d/(d + 1). So their sum up to i = θ·m/s grows at the rate for x = min(θ/s, d/(d + 1)).
//!
//! **Storage** is q^m, with rate log₂ q.
//!
//! For two servers this gives storage n^(1/H(θ)) and n^(H(θ/2)/H(θ)) reads. With θ = 1/2 that is
//! storage of nearly n, and n^0.8113 reads.

use super::Family;

/// Storage n^`storage` and n^`reads` reads, for n records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponents {
    /// The exponent of the storage on each server.
    pub storage: f64,
    /// The exponent of the number of records that each server reads and sends.
    pub reads: f64,
}

/// The degree for each variable, θ = D/m: between 0 and d, both excluded, so that the table grows
/// with m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDegree(f64);

impl MeanDegree {
    /// `None` unless it is between 0 and the family's highest power of a variable.
    pub fn new(family: Family, mean: f64) -> Option<Self> {
        (mean > 0.0 && mean < f64::from(family.individual_degree())).then_some(Self(mean))
    }

    /// θ.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl Family {
    /// Storage and reads with finite differences.
    pub fn exponents(self, mean: MeanDegree) -> Exponents {
        let (highest, records) = (f64::from(self.individual_degree()), self.records(mean));
        let differing = (mean.0 / f64::from(self.servers())).min(highest / (highest + 1.0));
        Exponents {
            storage: f64::from(self.field()).log2() / records,
            reads: (entropy(differing) + differing * highest.log2()) / records,
        }
    }

    /// Storage and reads with precomputed derivatives up to order K. count(i, d, m) of them have
    /// order i.
    pub fn precomputed_exponents(self, mean: MeanDegree) -> Exponents {
        // The order is at most half of the highest degree, because there are at least two servers.
        // Up to there, the last order has the most derivatives.
        let order = mean.0 / f64::from(self.servers());
        let derivatives = growth(order, self.individual_degree());
        let records = self.records(mean);
        Exponents {
            storage: (f64::from(self.field()).log2() + derivatives) / records,
            reads: derivatives / records,
        }
    }

    /// The curve in `steps` equal steps, from the fewest reads to the least storage: θ up to d/2,
    /// because a larger degree takes more reads for fewer records.
    pub fn curve(self, steps: u32) -> impl Iterator<Item = MeanDegree> {
        let highest = f64::from(self.individual_degree());
        (1..=steps).map(move |step| MeanDegree(highest / 2.0 * f64::from(step) / f64::from(steps)))
    }

    fn records(self, mean: MeanDegree) -> f64 {
        growth(mean.0, self.individual_degree())
    }
}

/// H: the entropy of a coin that shows heads with that probability, in bits. 0 if the number is not
/// a probability.
pub fn entropy(probability: f64) -> f64 {
    let term = |share: f64| if share > 0.0 { -share * share.log2() } else { 0.0 };
    match probability {
        probability if (0.0..=1.0).contains(&probability) => {
            term(probability) + term(1.0 - probability)
        }
        _ => 0.0,
    }
}

/// The largest entropy of a distribution on {0, …, `highest`} with that mean, in bits. This is how
/// many bits count(D, d, m) gains with each additional variable. 0 if there is no such
/// distribution, or only one.
pub fn growth(mean: f64, highest: u32) -> f64 {
    let top = f64::from(highest);
    if !(mean > 0.0 && mean < top) {
        return 0.0;
    }
    // Counted from the other end, the entropy is the same. Then no power of p is above 1.
    let mean = mean.min(top - mean);
    // log₂ Z − mean·log₂ p is convex in log₂ p, and has its minimum where the distribution has that
    // mean. After the halvings the error is too small to matter. Without a highest value the mean
    // would be p/(1 − p). With one it is at most that, so p is at least mean/(1 + mean).
    let (mut low, mut high) = ((mean / (1.0 + mean)).log2(), 0.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let (sum, weighted) = powers(middle, highest);
        match weighted / sum < mean {
            true => low = middle,
            false => high = middle,
        }
    }
    powers(high, highest).0.log2() - mean * high
}

/// Σ p^i and Σ i·p^i for i from 0 to `highest`.
fn powers(logarithm: f64, highest: u32) -> (f64, f64) {
    let power = |i: u32| (logarithm * f64::from(i)).exp2();
    let terms = (0..=highest).map(|i| (power(i), f64::from(i) * power(i)));
    terms.fold((0.0, 0.0), |sums, terms| (sums.0 + terms.0, sums.1 + terms.1))
}
