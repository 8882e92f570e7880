//! Products of powers of many points, by Pippenger's method of buckets.

use super::{G1, G1Sum, G2, G2Sum, Scalar};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u128 {}
    impl Sealed for super::Scalar {}
}

/// An exponent: a [`Scalar`], or a weight of 128 bits, which takes half the time.
pub trait Exponent: sealed::Sealed + Copy {
    /// The number of bits that are used: 8 for each byte.
    const BITS: usize;

    /// Little-endian.
    fn append_to(&self, bytes: &mut Vec<u8>);
}

impl Exponent for u128 {
    const BITS: usize = 128;

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl Exponent for Scalar {
    const BITS: usize = 256;

    fn append_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_bytes());
    }
}

/// All exponents, one behind the other.
pub(super) fn exponent_bytes<E: Exponent>(exponents: &[E]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(exponents.len() * E::BITS / 8);
    for exponent in exponents {
        exponent.append_to(&mut bytes);
    }
    bytes
}

macro_rules! multi_exponentiation {
    ($(#[$doc:meta])* $name:ident, $affine:ident, $sum:ident, $scratch:ident, $compute:ident) => {
        $(#[$doc])*
        ///
        /// # Panics
        /// If their numbers differ.
        pub fn $name<E: Exponent>(points: &[$affine], exponents: &[E]) -> $sum {
            assert_eq!(points.len(), exponents.len(), "an exponent for each point");
            let mut out = $sum::default();
            if points.is_empty() {
                return out;
            }
            let bytes = exponent_bytes(exponents);
            let point_list = [points.as_ptr().cast(), std::ptr::null()];
            let exponent_list = [bytes.as_ptr(), std::ptr::null()];
            // SAFETY: a pure function of a number.
            let scratch_bytes = unsafe { blst::$scratch(points.len()) };
            let mut scratch = vec![0u64; scratch_bytes.div_ceil(8)];
            // SAFETY: the lists say, in the way of `blst`, that points and exponents lie one behind
            // the other. There are as many as is said, at least one; an exponent has BITS / 8
            // bytes; the point types are transparent; and the scratch memory has the size that was
            // asked for.
            unsafe {
                blst::$compute(
                    &mut out.0,
                    point_list.as_ptr(),
                    points.len(),
                    exponent_list.as_ptr(),
                    E::BITS,
                    scratch.as_mut_ptr(),
                );
            }
            out
        }
    };
}

multi_exponentiation! {
    /// The product of all `points[k]` to the power `exponents[k]`, in the first group.
    multi_exponentiation, G1, G1Sum, blst_p1s_mult_pippenger_scratch_sizeof, blst_p1s_mult_pippenger
}

multi_exponentiation! {
    /// The product of all `points[k]` to the power `exponents[k]`, in the second group.
    multi_exponentiation_g2, G2, G2Sum, blst_p2s_mult_pippenger_scratch_sizeof, blst_p2s_mult_pippenger
}
