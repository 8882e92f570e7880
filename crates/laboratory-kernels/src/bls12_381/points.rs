//! Points of both groups.

use super::Scalar;
use blst::{BLST_ERROR, blst_p1, blst_p1_affine, blst_p2, blst_p2_affine};
use zeroize::Zeroize;

/// Defines the two types of one group. Both groups have the same functions in `blst`, under names
/// that differ in one digit.
macro_rules! group {
    (
        $(#[$doc:meta])* $affine:ident($blst_affine:ident, $compressed:literal, $uncompressed:literal), $(#[$sum_doc:meta])* $sum:ident($blst_sum:ident),
        $generator:ident, $compress:ident, $uncompress:ident, $serialize:ident, $deserialize:ident, $in_group:ident, $is_infinity:ident,
        $to_affine:ident, $all_to_affine:ident, $from_affine:ident, $add:ident, $add_affine:ident, $double:ident, $negate:ident, $power:ident,
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        pub struct $affine(pub(super) $blst_affine);

        impl $affine {
            /// Bytes of a compressed point.
            pub const COMPRESSED_LEN: usize = $compressed;
            /// Bytes of an uncompressed point.
            pub const UNCOMPRESSED_LEN: usize = $uncompressed;

            /// The neutral element, *infinity*.
            pub fn infinity() -> Self {
                Self($blst_affine::default())
            }

            /// The standard generator.
            pub fn generator() -> Self {
                // SAFETY: the function returns the address of a constant.
                Self(unsafe { *blst::$generator() })
            }

            /// Whether it is the neutral element.
            pub fn is_infinity(&self) -> bool {
                // SAFETY: reads one initialised point.
                unsafe { blst::$is_infinity(&self.0) }
            }

            /// The standard encoding: the first coordinate and a bit for the other.
            pub fn compress(&self) -> [u8; $compressed] {
                let mut bytes = [0; $compressed];
                // SAFETY: reads one initialised point and writes as many bytes as the array has.
                unsafe { blst::$compress(bytes.as_mut_ptr(), &self.0) };
                bytes
            }

            /// Reads [`compress`](Self::compress)ed bytes from anywhere: `None` unless they are the
            /// one encoding of an element of the group. (The curve also has points outside the
            /// group. Proofs about the group do not hold for them.)
            pub fn from_compressed(bytes: &[u8; $compressed]) -> Option<Self> {
                let mut point = Self::infinity();
                // SAFETY: reads as many bytes as the array has and writes one point.
                let outcome = unsafe { blst::$uncompress(&mut point.0, bytes.as_ptr()) };
                // SAFETY: reads one initialised point.
                (outcome == BLST_ERROR::BLST_SUCCESS && unsafe { blst::$in_group(&point.0) })
                    .then_some(point)
            }

            /// Both coordinates: twice as long, but a hundred times faster to read.
            pub fn to_uncompressed(&self) -> [u8; $uncompressed] {
                let mut bytes = [0; $uncompressed];
                // SAFETY: reads one initialised point and writes as many bytes as the array has.
                unsafe { blst::$serialize(bytes.as_mut_ptr(), &self.0) };
                bytes
            }

            /// Reads [`to_uncompressed`](Self::to_uncompressed) bytes from a file of our own:
            /// `None` unless they are a point of the curve. Whether it belongs to the *group* is
            /// not checked.
            pub fn from_uncompressed_of_our_own(bytes: &[u8; $uncompressed]) -> Option<Self> {
                // The function would read a compressed point as well.
                if bytes[0] & 0x80 != 0 {
                    return None;
                }
                let mut point = Self::infinity();
                // SAFETY: reads as many bytes as the array has and writes one point.
                let outcome = unsafe { blst::$deserialize(&mut point.0, bytes.as_ptr()) };
                (outcome == BLST_ERROR::BLST_SUCCESS).then_some(point)
            }

            /// The same point in projective coordinates.
            pub fn to_sum(&self) -> $sum {
                let mut sum = $sum::default();
                // SAFETY: reads one initialised point and writes one.
                unsafe { blst::$from_affine(&mut sum.0, &self.0) };
                sum
            }

            /// The inverse element.
            #[must_use]
            pub fn negated(&self) -> Self {
                self.to_sum().negated().to_affine()
            }
        }

        impl std::fmt::Debug for $affine {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(concat!(stringify!($affine), "("))?;
                self.compress().iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
                formatter.write_str(")")
            }
        }

        $(#[$sum_doc])*
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $sum(pub(super) $blst_sum);

        impl $sum {
            /// Adds another point.
            pub fn add(&mut self, other: &Self) {
                let before = self.0;
                // SAFETY: reads two initialised points and writes one.
                unsafe { blst::$add(&mut self.0, &before, &other.0) };
            }

            /// Adds another point, a little faster.
            pub fn add_affine(&mut self, other: &$affine) {
                let before = self.0;
                // SAFETY: reads two initialised points and writes one.
                unsafe { blst::$add_affine(&mut self.0, &before, &other.0) };
            }

            /// Doubles it.
            pub fn double(&mut self) {
                let before = self.0;
                // SAFETY: reads one initialised point and writes one.
                unsafe { blst::$double(&mut self.0, &before) };
            }

            /// The inverse element.
            #[must_use]
            pub fn negated(mut self) -> Self {
                // SAFETY: changes one initialised point.
                unsafe { blst::$negate(&mut self.0, true) };
                self
            }

            /// This point to the power `exponent`. The time depends on neither.
            #[must_use]
            pub fn power(&self, exponent: &Scalar) -> Self {
                let mut bytes = exponent.to_bytes();
                let mut out = Self::default();
                // SAFETY: reads one initialised point and 255 bits of 32 bytes, and writes one
                // point.
                unsafe { blst::$power(&mut out.0, &self.0, bytes.as_ptr(), 255) };
                bytes.zeroize();
                out
            }

            /// The point in affine coordinates.
            pub fn to_affine(&self) -> $affine {
                let mut out = $affine::infinity();
                // SAFETY: reads one initialised point and writes one.
                unsafe { blst::$to_affine(&mut out.0, &self.0) };
                out
            }

            /// All points in affine coordinates, with a common division.
            pub fn all_to_affine(points: &[Self]) -> Vec<$affine> {
                let mut out = vec![$affine::infinity(); points.len()];
                if !points.is_empty() {
                    let list = [points.as_ptr().cast::<$blst_sum>(), std::ptr::null()];
                    // SAFETY: `list` says, in the way of `blst`, that the points lie one behind the
                    // other; the types are transparent, and both slices have the given length, not
                    // zero.
                    unsafe {
                        blst::$all_to_affine(out.as_mut_ptr().cast(), list.as_ptr(), points.len());
                    }
                }
                out
            }
        }
    };
}

group! {
    /// A point of the first group.
    G1(blst_p1_affine, 48, 96),
    /// A point of the first group that is being computed. The default is infinity.
    G1Sum(blst_p1),
    blst_p1_affine_generator, blst_p1_affine_compress, blst_p1_uncompress, blst_p1_affine_serialize, blst_p1_deserialize, blst_p1_affine_in_g1, blst_p1_affine_is_inf,
    blst_p1_to_affine, blst_p1s_to_affine, blst_p1_from_affine, blst_p1_add_or_double, blst_p1_add_or_double_affine, blst_p1_double, blst_p1_cneg, blst_p1_mult,
}

group! {
    /// A point of the second group.
    G2(blst_p2_affine, 96, 192),
    /// A point of the second group that is being computed. The default is infinity.
    G2Sum(blst_p2),
    blst_p2_affine_generator, blst_p2_affine_compress, blst_p2_uncompress, blst_p2_affine_serialize, blst_p2_deserialize, blst_p2_affine_in_g2, blst_p2_affine_is_inf,
    blst_p2_to_affine, blst_p2s_to_affine, blst_p2_from_affine, blst_p2_add_or_double, blst_p2_add_or_double_affine, blst_p2_double, blst_p2_cneg, blst_p2_mult,
}
