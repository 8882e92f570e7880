//! Permuted records: memory sets the pace, and 32-byte vectors keep up with it. With longer ones
//! the compiler's loops over records of odd lengths are slower.

pub(crate) use crate::x86_64::avx2::permutations::xor_accumulate;
