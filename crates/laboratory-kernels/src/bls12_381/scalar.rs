//! Exponents: numbers modulo the order of the groups.

use blst::{blst_fr, blst_scalar};
use zeroize::Zeroize;

/// A number below r = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001, the order
/// of both groups. Four 64-bit digits, the lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scalar([u64; 4]);

impl Scalar {
    /// Zero.
    pub const ZERO: Scalar = Scalar([0; 4]);
    /// One.
    pub const ONE: Scalar = Scalar([1, 0, 0, 0]);

    /// The little-endian number `bytes` modulo r. Uniform bytes give a scalar that is uniform up to
    /// a bias of 2^-129.
    pub fn from_uniform(bytes: &[u8; 48]) -> Self {
        Self::reduced(bytes)
    }

    /// The number itself if it is below r: what [`to_bytes`](Self::to_bytes) returns.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let scalar = blst_scalar { b: *bytes };
        // SAFETY: reads one initialised `blst_scalar`.
        unsafe { blst::blst_scalar_fr_check(&scalar) }.then(|| Self::from_digits(bytes))
    }

    /// Little-endian.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (out, digit) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *out = digit.to_le_bytes();
        }
        bytes
    }

    fn from_digits(bytes: &[u8; 32]) -> Self {
        let mut digits = [0; 4];
        for (digit, bytes) in digits.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *digit = u64::from_le_bytes(*bytes);
        }
        Self(digits)
    }

    fn reduced(bytes: &[u8]) -> Self {
        let mut scalar = blst_scalar { b: [0; 32] };
        // SAFETY: writes one `blst_scalar` and reads exactly the given slice. (The result says
        // whether it is zero, which is no error here.)
        unsafe { blst::blst_scalar_from_le_bytes(&mut scalar, bytes.as_ptr(), bytes.len()) };
        // `blst_scalar` erases itself.
        Self::from_digits(&scalar.b)
    }

    fn to_montgomery(self) -> blst_fr {
        let mut out = blst_fr::default();
        // SAFETY: reads four words, writes one `blst_fr`.
        unsafe { blst::blst_fr_from_uint64(&mut out, self.0.as_ptr()) };
        out
    }

    fn from_montgomery(scalar: &blst_fr) -> Self {
        let mut digits = [0; 4];
        // SAFETY: reads one `blst_fr`, writes four words.
        unsafe { blst::blst_uint64_from_fr(digits.as_mut_ptr(), scalar) };
        Self(digits)
    }

    fn combined(
        self,
        other: Self,
        combine: unsafe extern "C" fn(*mut blst_fr, *const blst_fr, *const blst_fr),
    ) -> Self {
        let mut left = self.to_montgomery();
        let mut right = other.to_montgomery();
        let mut out = blst_fr::default();
        // SAFETY: the arithmetic functions of `blst` read two initialised numbers and write one.
        unsafe { combine(&mut out, &left, &right) };
        let result = Self::from_montgomery(&out);
        for passed in [&mut left, &mut right, &mut out] {
            passed.l.zeroize();
        }
        result
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 4]
    }

    /// The inverse, or zero for zero.
    #[must_use]
    pub fn inverse(self) -> Self {
        let mut out = blst_fr::default();
        // SAFETY: reads one initialised number and writes one.
        unsafe { blst::blst_fr_inverse(&mut out, &self.to_montgomery()) };
        Self::from_montgomery(&out)
    }
}

impl From<u128> for Scalar {
    fn from(number: u128) -> Self {
        Self([number as u64, (number >> 64) as u64, 0, 0])
    }
}

impl std::ops::Add for Scalar {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combined(other, blst::blst_fr_add)
    }
}

impl std::ops::Sub for Scalar {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combined(other, blst::blst_fr_sub)
    }
}

impl std::ops::Mul for Scalar {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.combined(other, blst::blst_fr_mul)
    }
}

impl Zeroize for Scalar {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// A sum of up to 2^64 products of 128-bit weights and scalars: 448 bits, reduced only when it is
/// read. So a product is cheap: eight multiplications of words and no division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScalarSum([u64; 7]);

impl ScalarSum {
    /// Adds `weight`·`scalar`.
    #[inline]
    pub fn add_product(&mut self, weight: u128, scalar: &Scalar) {
        let [low, high] = [weight as u64, (weight >> 64) as u64];
        let mut product = [0u64; 6];
        let mut carry = 0;
        for (place, digit) in scalar.0.into_iter().enumerate() {
            (product[place], carry) = low.carrying_mul(digit, carry);
        }
        product[4] = carry;
        carry = 0;
        for (place, digit) in scalar.0.into_iter().enumerate() {
            (product[place + 1], carry) = high.carrying_mul_add(digit, product[place + 1], carry);
        }
        product[5] = carry;
        let mut over = false;
        for (sum, digit) in self.0.iter_mut().zip(product) {
            (*sum, over) = sum.carrying_add(digit, over);
        }
        self.0[6] += u64::from(over);
    }

    /// The sum modulo r.
    pub fn reduce(&self) -> Scalar {
        let mut bytes = [0; 56];
        for (out, digit) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *out = digit.to_le_bytes();
        }
        Scalar::reduced(&bytes)
    }
}

/// Adds `weight`·`scalars[k]` to `sums[k]`, for all `k`.
///
/// # Panics
/// If their numbers differ.
pub fn add_products(sums: &mut [ScalarSum], weight: u128, scalars: &[Scalar]) {
    assert_eq!(sums.len(), scalars.len(), "a sum for each scalar");
    for (sum, scalar) in sums.iter_mut().zip(scalars) {
        sum.add_product(weight, scalar);
    }
}
