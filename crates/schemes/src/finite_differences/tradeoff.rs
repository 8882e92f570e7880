//! The costs of finite differences as formulas: storage against reads, exactly for one polynomial,
//! and as exponents of the table's size when tables grow.
//!
//! This helps to choose and to compare. It covers more settings than Privet serves. A [`Family`]
//! says how many servers there are, over which field, and how high a single variable's power may
//! be; a [`Polynomial`] adds the number of variables and the degree of all products. Its
//! coefficients are the table, each a symbol of the field:
//!
//! | | symbols | here |
//! |---|---|---|
//! | table | count(D, d, m): the vectors in {0, …, d}^m with sum D | [`Polynomial::coefficients`] |
//! | storage on each server | q^m: the value at every point | [`Polynomial::points`] |
//! | answer of each server | Σ_{i ≤ K} C(m, i) · d^i, with K = ⌊D/s⌋: a value for each vector in {0, …, d}^m with at most K entries other than 0 | [`Polynomial::reads`] |
//!
//! A symbol is log₂ q bits. Privet serves d = 1, and q = 2 with two servers. Its costs in bytes,
//! with records packed as they are, are those of
//! [`FiniteDifferencesParameters`](super::FiniteDifferencesParameters) and
//! [`ManyServersParameters`](super::many_servers::ManyServersParameters).
//!
//! **Before finite differences** (Beimel, Ishai, Malkin: *Reducing the Servers' Computation in
//! Private Information Retrieval: PIR with Preprocessing*, CRYPTO 2000) a server kept at each point
//! not only the value but all derivatives that an answer needs. It made as many reads, and its
//! storage was larger by the number of derivatives ([`Polynomial::derivatives`], [`Precomputed`]).
//!
//! The formulas are those of Henzinger and Ragavan: *Two-Server Private Information Retrieval in
//! Sublinear Time and Quasilinear Space*, EUROCRYPT 2026, sections 3 to 5 and appendix A, for
//! servers that do not collude, not even two of them.

mod exponents;
mod polynomial;
#[cfg(test)]
mod tests;

pub use exponents::{Exponents, MeanDegree, entropy, growth};
pub use polynomial::{MOST_POINTS, Polynomial, Precomputed};

use super::many_servers::FIELDS;
use privet_core::{Error, Result};

/// Servers, field, and the highest power of a single variable: what does not change when a table
/// grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    servers: u32,
    field: u32,
    individual_degree: u32,
}

impl Family {
    /// `servers` servers, s, over the field of `field` elements, q. No variable has a power above
    /// `individual_degree`, d. 2 ≤ s ≤ q, because each server needs an element of the field. 1 ≤ d
    /// < q, because z^q = z in a field of q elements.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if q is not 2, 3, 5,
    /// 7, 11 or 13, or the others do not suit it.
    pub fn new(servers: u32, field: u32, individual_degree: u32) -> Result<Self> {
        if field != 2 && !FIELDS.contains(&field) {
            return Err(Error::api_misuse(format!(
                "there is no field of {field} elements here; there are fields of 2 and of {FIELDS:?}"
            )));
        }
        if !(2..=field).contains(&servers) {
            return Err(Error::api_misuse(format!(
                "over a field of {field} elements there are 2 to {field} servers, not {servers}"
            )));
        }
        if !(1..field).contains(&individual_degree) {
            return Err(Error::api_misuse(format!(
                "over a field of {field} elements a variable has powers of 1 to {}, not {individual_degree}",
                field - 1
            )));
        }
        Ok(Self { servers, field, individual_degree })
    }

    /// Servers that are asked, s.
    pub fn servers(self) -> u32 {
        self.servers
    }

    /// Elements of the field, q.
    pub fn field(self) -> u32 {
        self.field
    }

    /// The highest power of a single variable, d.
    pub fn individual_degree(self) -> u32 {
        self.individual_degree
    }
}
