//! Permuted records: memory is the limit, and 32-byte vectors are fast enough for it. With longer
//! vectors, the compiler's loops over records of odd lengths are slower.

pub(crate) use crate::x86_64::avx2::permutations::xor_accumulate;
