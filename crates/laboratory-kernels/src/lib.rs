//! Hot loops that only the laboratory's schemes use.
//!
//! | module | what it holds |
//! |---|---|
//! | [`subset_sums`](mod@subset_sums) | the subset-sum transform over XOR: from a polynomial's coefficients to its values at all points |
//! | [`line_reads`] | a few bytes or bits of each of many scattered cache lines, in one pattern for all queries |
//! | [`bls12_381`] | the curve of that name: scalars, points, products of powers, pairings |
//!
//! What [`privet_kernels`] says of arms, of shapes and of `unsafe` holds here too: a kernel runs on
//! an arm only if there is a [`Kernels`](privet_kernels::Kernels) for it, and a test compares all
//! arms. Besides, this crate calls `blst`, a library in C and assembly language, with pointers that
//! come from Rust references and slices.

pub mod bls12_381;
pub mod line_reads;
pub mod subset_sums;

#[cfg(test)]
mod tests;

/// Calls the function of this name in the module of the arm in use: `portable`, `avx2` or `avx512`
/// below the kernel's module. Arguments must be plain values: they are evaluated inside the unsafe
/// block.
macro_rules! on_arm {
    ($kernels:expr, $function:ident ( $($argument:expr),* )) => {
        match $kernels.arm() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the functions are safe except for the instructions they are compiled for, and
            // there are `Kernels` of an arm only if this processor has those of the arm.
            privet_kernels::Arm::Avx512 => unsafe { avx512::$function($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            privet_kernels::Arm::Avx2 => unsafe { avx2::$function($($argument),*) },
            _ => portable::$function($($argument),*),
        }
    };
}
use on_arm;

/// Asks for the cache line `distance` bytes after `from`, into the second-level cache. An address
/// that is not mapped does nothing.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_second_level<T>(from: *const T, distance: usize) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: prefetch is a hint, which never faults, and the address is never used to form a
    // reference.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast::<i8>().wrapping_add(distance)) }
}
