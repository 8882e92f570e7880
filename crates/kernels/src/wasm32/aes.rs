//! AES-128 of eight blocks at once, bit by bit (Käsper and Schwabe, "Faster and timing-attack
//! resistant AES-GCM", CHES 2009): bit `b` of byte `p` of slice `k` is bit `k` of byte `p` of block
//! `b`. No branch and no address depends on key or text.

use core::arch::wasm32::{
    i8x16_ne, i8x16_shuffle, u8x16_splat, u64x2, u64x2_extract_lane, u64x2_shl, u64x2_shr,
    u64x2_splat, v128, v128_and, v128_xor,
};
use std::ops::{BitAnd, BitXor};

/// Blocks that are encrypted at once.
pub(crate) const LANES: usize = 8;

/// A vector of bits.
#[derive(Clone, Copy)]
struct Bits(v128);

impl BitXor for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitxor(self, other: Self) -> Self {
        Self(v128_xor(self.0, other.0))
    }
}

impl BitAnd for Bits {
    type Output = Self;

    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self(v128_and(self.0, other.0))
    }
}

/// A key that is expanded. Erased when dropped.
pub(crate) struct Aes128 {
    round_keys: [[Bits; 8]; 11],
}

impl Aes128 {
    /// Expands a key (FIPS 197, section 5.2).
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        let mut words = u128::from_le_bytes(*key);
        let mut constant = 1u8;
        let round_keys = std::array::from_fn(|round| {
            if round == 0 {
                return key_slices(words);
            }
            // The last word is the high one.
            let rotated = ((substituted(words) >> 96) as u32).rotate_right(8);
            let first = rotated ^ u32::from(constant);
            constant = (constant << 1) ^ (0x1b * (constant >> 7));
            // Each word becomes the XOR of itself, those before it, and the first.
            words ^= words << 32;
            words ^= words << 64;
            words ^= u128::from(first) * 0x0000_0001_0000_0001_0000_0001_0000_0001;
            // `substitute` leaves out its constant, and no later step of a round changes that.
            key_slices(words ^ u128::from_le_bytes([CONSTANT; 16]))
        });
        Self { round_keys }
    }

    /// The ciphertexts of eight blocks.
    #[inline]
    pub(crate) fn encrypt(&self, blocks: [v128; LANES]) -> [v128; LANES] {
        let mut slices = transposed(blocks.map(Bits));
        let [first, middle @ .., last] = &self.round_keys;
        add(&mut slices, first);
        for round_key in middle {
            substitute(&mut slices);
            slices = slices.map(shift_rows);
            mix_columns(&mut slices);
            add(&mut slices, round_key);
        }
        substitute(&mut slices);
        slices = slices.map(shift_rows);
        add(&mut slices, last);
        transposed(slices).map(|bits| bits.0)
    }
}

impl Drop for Aes128 {
    fn drop(&mut self) {
        for slice in self.round_keys.as_flattened_mut() {
            // SAFETY: the pointer comes from a reference.
            unsafe { std::ptr::write_volatile(slice, Bits(u64x2_splat(0))) };
        }
    }
}

/// What the substitution adds to each byte (FIPS 197, section 5.1.1).
const CONSTANT: u8 = 0x63;

/// The same block eight times, in slices.
fn key_slices(block: u128) -> [Bits; 8] {
    let bytes = u64x2(block as u64, (block >> 64) as u64);
    std::array::from_fn(|bit| {
        Bits(i8x16_ne(v128_and(bytes, u8x16_splat(1 << bit)), u64x2_splat(0)))
    })
}

/// The substitution of each byte of a block.
fn substituted(block: u128) -> u128 {
    let mut blocks = [Bits(u64x2_splat(0)); LANES];
    blocks[0] = Bits(u64x2(block as u64, (block >> 64) as u64));
    let mut slices = transposed(blocks);
    substitute(&mut slices);
    let [Bits(block), ..] = transposed(slices);
    let halves = [u64x2_extract_lane::<0>(block), u64x2_extract_lane::<1>(block)];
    let all = u128::from(halves[0]) | u128::from(halves[1]) << 64;
    all ^ u128::from_le_bytes([CONSTANT; 16])
}

#[inline(always)]
fn add(slices: &mut [Bits; 8], round_key: &[Bits; 8]) {
    for (slice, key) in slices.iter_mut().zip(round_key) {
        *slice = *slice ^ *key;
    }
}

/// From blocks to slices, and back: in each byte, bit `b` of vector `k` becomes bit `k` of vector
/// `b`.
#[inline(always)]
fn transposed(mut vectors: [Bits; 8]) -> [Bits; 8] {
    for [one, other] in [[0, 1], [2, 3], [4, 5], [6, 7]] {
        exchange::<1>(&mut vectors, one, other, 0x5555_5555_5555_5555);
    }
    for [one, other] in [[0, 2], [1, 3], [4, 6], [5, 7]] {
        exchange::<2>(&mut vectors, one, other, 0x3333_3333_3333_3333);
    }
    for [one, other] in [[0, 4], [1, 5], [2, 6], [3, 7]] {
        exchange::<4>(&mut vectors, one, other, 0x0f0f_0f0f_0f0f_0f0f);
    }
    vectors
}

/// Exchanges the bits of one vector that are `SHIFT` above those of `mask` with those of the other
/// one that are in it.
#[inline(always)]
fn exchange<const SHIFT: u32>(vectors: &mut [Bits; 8], one: usize, other: usize, mask: u64) {
    let (a, b) = (vectors[one], vectors[other]);
    let differ = (Bits(u64x2_shr(a.0, SHIFT)) ^ b) & Bits(u64x2_splat(mask));
    vectors[other] = b ^ differ;
    vectors[one] = a ^ Bits(u64x2_shl(differ.0, SHIFT));
}

#[inline(always)]
fn shift_rows(Bits(slice): Bits) -> Bits {
    Bits(i8x16_shuffle::<0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11>(slice, slice))
}

/// Each byte becomes twice the sum of itself and the next of its column, and the sum of the three
/// others of the column.
#[inline(always)]
fn mix_columns(slices: &mut [Bits; 8]) {
    let next = slices.map(|Bits(slice)| {
        Bits(i8x16_shuffle::<1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12>(slice, slice))
    });
    let sums: [Bits; 8] = std::array::from_fn(|bit| slices[bit] ^ next[bit]);
    for (bit, slice) in slices.iter_mut().enumerate() {
        let Bits(sum) = sums[bit];
        let later = i8x16_shuffle::<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(sum, sum);
        let doubled = match bit {
            0 => sums[7],
            1 | 3 | 4 => sums[bit - 1] ^ sums[7],
            _ => sums[bit - 1],
        };
        *slice = doubled ^ next[bit] ^ Bits(later);
    }
}

/// The substitution without its constant: the circuit of 113 gates of Boyar, Peralta and Calik, in
/// its names (<http://www.cs.yale.edu/homes/peralta/CircuitStuff/SLP_AES_113.txt>).
#[inline(always)]
fn substitute(slices: &mut [Bits; 8]) {
    let [u7, u6, u5, u4, u3, u2, u1, u0] = *slices;
    let (y14, y13) = (u3 ^ u5, u0 ^ u6);
    let y12 = y13 ^ y14;
    let t1 = u4 ^ y12;
    let y15 = t1 ^ u5;
    let (t2, y6, y20, y9) = (y12 & y15, y15 ^ u7, t1 ^ u1, u0 ^ u3);
    let y11 = y20 ^ y9;
    let (t12, y7, y8, t0) = (y9 & y11, u7 ^ y11, u0 ^ u5, u1 ^ u2);
    let y10 = y15 ^ t0;
    let y17 = y10 ^ y11;
    let t13 = y14 & y17;
    let (t14, y19, t15) = (t13 ^ t12, y10 ^ y8, y8 & y10);
    let (t16, y16) = (t15 ^ t12, t0 ^ y11);
    let (y21, t7, y18, y1) = (y13 ^ y16, y13 & y16, u0 ^ y16, t0 ^ u7);
    let y4 = y1 ^ u3;
    let t5 = y4 & u7;
    let t6 = t5 ^ t2;
    let t18 = t6 ^ t16;
    let (t22, y2) = (t18 ^ y19, y1 ^ u0);
    let t10 = y2 & y7;
    let t11 = t10 ^ t7;
    let t20 = t11 ^ t16;
    let (t24, y5) = (t20 ^ y18, y1 ^ u6);
    let t8 = y5 & y1;
    let t9 = t8 ^ t7;
    let t19 = t9 ^ t14;
    let (t23, y3) = (t19 ^ y21, y5 ^ y8);
    let t3 = y3 & y6;
    let t4 = t3 ^ t2;
    let t17 = t4 ^ y20;
    let t21 = t17 ^ t14;
    let t26 = t21 & t23;
    let (t27, t31, t25) = (t24 ^ t26, t22 ^ t26, t21 ^ t22);
    let t28 = t25 & t27;
    let t29 = t28 ^ t22;
    let (z14, z5, t30) = (t29 & y2, t29 & y7, t23 ^ t24);
    let t32 = t31 & t30;
    let t33 = t32 ^ t24;
    let t35 = t27 ^ t33;
    let t36 = t24 & t35;
    let t38 = t27 ^ t36;
    let t39 = t29 & t38;
    let t40 = t25 ^ t39;
    let t43 = t29 ^ t40;
    let z3 = t43 & y16;
    let (tc12, z12, z13, z4) = (z3 ^ z5, t43 & y13, t40 & y5, t40 & y1);
    let (tc6, t34) = (z3 ^ z4, t23 ^ t33);
    let t37 = t36 ^ t34;
    let t41 = t40 ^ t37;
    let (z8, z17, t44) = (t41 & y10, t41 & y8, t33 ^ t37);
    let (z0, z9, z10, z1) = (t44 & y15, t44 & y12, t37 & y3, t37 & y6);
    let tc5 = z1 ^ z0;
    let (tc11, z11, t42) = (tc6 ^ tc5, t33 & y4, t29 ^ t33);
    let t45 = t42 ^ t41;
    let z7 = t45 & y17;
    let (tc8, z16, z6) = (z7 ^ tc6, t45 & y14, t42 & y11);
    let (tc16, z15) = (z6 ^ tc8, t42 & y9);
    let (tc20, tc1) = (z15 ^ tc16, z15 ^ z16);
    let tc2 = z10 ^ tc1;
    let (tc21, tc3) = (tc2 ^ z11, z9 ^ tc2);
    let (s0, s3) = (tc3 ^ tc16, tc3 ^ tc11);
    let (s1, tc13, z2) = (s3 ^ tc16, z13 ^ tc1, t33 & u7);
    let tc4 = z0 ^ z2;
    let tc7 = z12 ^ tc4;
    let tc9 = z8 ^ tc7;
    let tc10 = tc8 ^ tc9;
    let tc17 = z14 ^ tc10;
    let (s5, tc26) = (tc21 ^ tc17, tc17 ^ tc20);
    let (s2, tc14) = (tc26 ^ z17, tc4 ^ tc12);
    let tc18 = tc13 ^ tc14;
    let (s6, s7, s4) = (tc10 ^ tc18, z12 ^ tc18, tc14 ^ s3);
    *slices = [s7, s6, s5, s4, s3, s2, s1, s0];
}
