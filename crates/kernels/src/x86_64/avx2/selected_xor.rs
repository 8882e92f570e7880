//! Sums of selected records with AVX2, which has no instruction for eight selections at a time.

pub(crate) mod one_by_one;
