//! One polynomial, exactly.

use super::{Exponents, Family, MeanDegree};
use privet_core::{Error, Result};

/// Polynomials have at most so many points, 2^100: no number here is larger than that times the
/// length of a record, so 128 bits hold them all.
pub const MOST_POINTS: u128 = 1 << 100;

/// The search for the precomputing scheme's parameters covers polynomials of up to so many
/// variables.
const MOST_VARIABLES: u32 = 64;

/// A polynomial in m variables. Every product has degree D.
#[derive(Clone, Debug)]
pub struct Polynomial {
    family: Family,
    variables: u32,
    degree: u32,
    points: u128,
    /// `count(i, d, m)` for i from 0 to D.
    counts: Vec<u128>,
    reads: u128,
}

/// The costs of precomputed derivatives, with the cut of the table that makes them least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precomputed {
    /// Variables of the polynomial.
    pub variables: u32,
    /// Its degree.
    pub degree: u32,
    /// Records that share one coefficient, and are always fetched together.
    pub joined: u128,
    /// Storage on each server, in records.
    pub storage: f64,
}

impl Polynomial {
    /// A polynomial of that family in `variables` variables, m, of degree `degree`, D, with 1 ≤ D ≤
    /// d·m.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if there is none, or
    /// it has more than [`MOST_POINTS`] points.
    pub fn new(family: Family, variables: u32, degree: u32) -> Result<Self> {
        let (field, individual_degree) = (family.field(), family.individual_degree());
        let points = u128::from(field).checked_pow(variables);
        let Some(points) = points.filter(|points| *points <= MOST_POINTS) else {
            return Err(Error::api_misuse(format!(
                "a polynomial in {variables} variables over a field of {field} elements has more than 2^100 points, which is as far as costs are computed here"
            )));
        };
        // No overflow: with at most 2^100 points there are at most 100 variables.
        let most = individual_degree * variables;
        if !(1..=most).contains(&degree) {
            return Err(Error::api_misuse(format!(
                "a polynomial in {variables} variables, each of degree {individual_degree} at most, has degree 1 to {most}, not {degree}"
            )));
        }
        let radius = degree / family.servers();
        // At most `radius` entries other than 0, with d ways to fill each.
        let mut weights = 1u128;
        let reads = counts(variables, 1, radius.min(variables)).into_iter().map(|places| {
            let words = places * weights;
            weights *= u128::from(individual_degree);
            words
        });
        let reads = reads.sum();
        let counts = counts(variables, individual_degree, degree);
        Ok(Self { family, variables, degree, points, counts, reads })
    }

    /// Servers, field, and the highest power of a single variable.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Variables, m.
    pub fn variables(&self) -> u32 {
        self.variables
    }

    /// Degree, D.
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// K = ⌊D/s⌋: the most variables in which a point that a server reads differs from the query's
    /// point, and the highest order of the derivatives that are needed.
    pub fn radius(&self) -> u32 {
        self.degree / self.family.servers()
    }

    /// How many records of one symbol the table has: a coefficient for each.
    pub fn coefficients(&self) -> u128 {
        self.counts[self.degree as usize]
    }

    /// How many symbols each server stores: q^m.
    pub fn points(&self) -> u128 {
        self.points
    }

    /// How many symbols each server reads and sends.
    pub fn reads(&self) -> u128 {
        self.reads
    }

    /// How many derivatives there are up to order K. If they are precomputed, each server sends so
    /// many, and stores so many for each point. With d = 1 they are as many as the reads with
    /// finite differences, otherwise fewer.
    pub fn derivatives(&self) -> u128 {
        self.counts[..=self.radius() as usize].iter().sum()
    }

    /// The largest table, in bits: ⌊count(D, d, m) · log₂ q⌋. Exact over two elements; over more,
    /// to fifteen digits.
    pub fn table_bits(&self) -> u128 {
        self.bits(self.coefficients(), f64::floor)
    }

    /// An answer of one server, in bits, rounded up. Exact over two elements; over more, to fifteen
    /// digits.
    pub fn answer_bits(&self) -> u128 {
        self.bits(self.reads, f64::ceil)
    }

    /// Storage on each server, in bits, rounded up. Exact over two elements; over more, to fifteen
    /// digits.
    pub fn storage_bits(&self) -> u128 {
        self.bits(self.points, f64::ceil)
    }

    fn bits(&self, symbols: u128, round: fn(f64) -> f64) -> u128 {
        match self.family.field() {
            2 => symbols,
            field => round(symbols as f64 * f64::from(field).log2()) as u128,
        }
    }

    /// Storage and reads of this polynomial as powers of the number of records: log q^m and log of
    /// the reads, each divided by log count(D, d, m). `None` with a single record, because all
    /// powers of 1 are 1.
    pub fn exact_exponents(&self) -> Option<Exponents> {
        let records = (self.coefficients() as f64).ln();
        (records > 0.0).then(|| Exponents {
            storage: (self.points as f64).ln() / records,
            reads: (self.reads as f64).ln() / records,
        })
    }

    /// The limits of these powers if the table grows, and the variables and the degree grow with it
    /// in this ratio. `None` if D = d·m, where the table does not grow.
    pub fn exponents(&self) -> Option<Exponents> {
        let mean = f64::from(self.degree) / f64::from(self.variables);
        Some(self.family.exponents(MeanDegree::new(self.family, mean)?))
    }

    /// The least storage for this table with precomputed derivatives, if answers must be no longer
    /// than this polynomial's. Several records may share a coefficient, which makes answers longer
    /// and the table's polynomial smaller. For each number of variables and each degree there is a
    /// least number r of such records. With B derivatives, answers have r·B records, and storage
    /// has r·B·2^m. `None` unless two servers compute over the field of two elements.
    pub fn precomputed(&self) -> Option<Precomputed> {
        if self.family.field() != 2 {
            return None;
        }
        let mut best: Option<Precomputed> = None;
        for variables in 2..=MOST_VARIABLES {
            let binomials = counts(variables, 1, variables);
            for degree in 1..=variables {
                let joined = self.coefficients().div_ceil(binomials[degree as usize]);
                let derivatives: u128 = binomials[..=degree as usize / 2].iter().sum();
                let Some(answer) = joined.checked_mul(derivatives) else { continue };
                let storage = answer as f64 * (variables as f64).exp2();
                if answer <= self.reads && best.is_none_or(|best| storage < best.storage) {
                    best = Some(Precomputed { variables, degree, joined, storage });
                }
            }
        }
        best
    }
}

/// `count(sum, d, m)` for all sums from 0 to `most`: how many vectors in {0, …, d}^m have that sum.
/// Counts variable by variable, in m·`most` steps. With one more variable, a sum is reached from
/// the d + 1 sums that lie 0 to d below it. The total of these d + 1 counts is updated from one sum
/// to the next. No number exceeds (d + 1)^m, so with d < q none exceeds q^m.
fn counts(variables: u32, individual_degree: u32, most: u32) -> Vec<u128> {
    let mut counts = vec![0u128; most as usize + 1];
    counts[0] = 1;
    for _ in 0..variables {
        let fewer = counts.clone();
        let mut together = 0;
        for (sum, count) in counts.iter_mut().enumerate() {
            together += fewer[sum];
            *count = together;
            // The count of the sum d below this one is not part of the next total.
            if let Some(leaves) = sum.checked_sub(individual_degree as usize) {
                together -= fewer[leaves];
            }
        }
    }
    counts
}
