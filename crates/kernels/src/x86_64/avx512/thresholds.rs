//! Counting thresholds: the compiler's loop over 32-byte vectors is as fast as over longer ones.

pub(crate) use crate::x86_64::avx2::thresholds::count_above;
