//! The pairing-friendly curve BLS12-381: scalars, points of both groups, products of many powers,
//! pairings.
//!
//! The arithmetic is that of [`blst`](https://github.com/supranational/blst), in assembly language.
//! It detects by itself which instructions the processor has. This module has safe names for the
//! few functions that are needed, and a loop for sums of scalar products, which `blst` lacks. Code
//! writes groups additively, the literature multiplicatively; function names here follow the
//! literature.
//!
//! | type | what it is |
//! |---|---|
//! | [`Scalar`] | an exponent: a number below the order *r* of the groups, a prime of 255 bits |
//! | [`ScalarSum`] | a sum of products of weights and scalars, not yet reduced |
//! | [`G1`], [`G2`] | a point of either group in affine coordinates, as it is stored and sent: 48 and 96 bytes |
//! | [`G1Sum`], [`G2Sum`] | a point in projective coordinates, as it comes out of additions |
//! | [`PreparedG2`] | a point of the second group for many pairings |
//! | [`FixedBases`] | points with tables of their multiples, for products of powers of the same bases again and again |
//!
//! The time of functions for public values may depend on these values, at least for
//! [`multi_exponentiation`], [`FixedBases`] and [`pairings_cancel`]. Scalar arithmetic,
//! [`G1Sum::power`] and [`G2Sum::power`] take the same time for all values, so they may be used
//! with secrets.

mod exponentiation;
mod fixed_bases;
mod pairing;
mod points;
mod scalar;

pub use exponentiation::{Exponent, multi_exponentiation, multi_exponentiation_g2};
pub use fixed_bases::{FixedBases, TableLayout};
pub use pairing::{PreparedG2, pairings_cancel, prepared_pairings_cancel};
pub use points::{G1, G1Sum, G2, G2Sum};
pub use scalar::{Scalar, ScalarSum, add_products};
