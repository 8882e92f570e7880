//! Sums of selected records with AVX-512.

pub(crate) mod by_eight;
pub(crate) mod one_by_one;
