//! Sums of selected records in plain Rust.

pub(crate) mod by_eight;
pub(crate) mod one_by_one;
