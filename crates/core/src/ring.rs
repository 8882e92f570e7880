//! Ring learning with errors (ring LWE): encrypted unit vectors, and the packing of many answers
//! into one ring element, as InsPIRe has it.
//!
//! A client that wants column `c` of a byte matrix `D` (rows × columns) sends `a·s + e + Δ·u_c`, as
//! with [`lwe`](crate::lwe). But here `a·s` are products of polynomials, and the numbers are in
//! `ℤ[X]/(X^d + 1)`, `d` = 2048, modulo q = 2^50. The secret `s` is one polynomial with
//! coefficients −1, 0 and 1. The server multiplies by `D`. Each row then has an encryption of its
//! byte with a mask of its own, `d` words long. All these masks together would be a hint as large
//! as SimplePIR's. **Packing** turns the encryptions of `d` rows into one encryption of a
//! polynomial, whose coefficients are the `d` bytes, and which has a single mask of `d` words.
//!
//! | module | paper | what it does |
//! |---|---|---|
//! | [`Form`] | | the numbers that everything depends on |
//! | [`noise`] | | the proof that bytes come back right |
//! | [`PublicPolynomials`] | | the public polynomials, from a seed |
//! | [`encrypt_zero`] | InsPIRe §3: Query | the client's side: all of a query but the wanted column |
//! | [`PackingFactors::pack`] | InspiRING, Algorithms 1 to 3, offline | the server's side, once for each table |
//! | [`answers`](pass_words) | the same, online | the server's side, for each query |
//! | [`RingKey::decrypt`] | Extract | the client's side, on the answer |
//!
//! The papers: Mahdavi, Patel, Seo and Yeo, *InsPIRe: Communication-Efficient PIR with Server-side
//! Preprocessing* (ePrint 2025/1352), for InspiRING; Menon and Wu, *YPIR* (USENIX Security 2024),
//! for SimplePIR with ring LWE and packed answers.
//!
//! # Why packing is linear
//!
//! Write `τ_t` for the automorphism `X ↦ X^t`, `t` odd. The sum of `τ_t(f)` over all `d` of them is
//! `d` times the constant coefficient of `f`. So if row `k` is encrypted under the mask `ã_k`, in
//! the sense that the server's word is `[ã_k·s]_0` plus the message, then with `A_k = ã_k / d`
//!
//! ```text
//! Σ_k X^k · word_k  −  Σ_t Â_t · τ_t(s),      Â_t = Σ_k X^k · τ_t(A_k)
//! ```
//!
//! is a polynomial whose coefficient `k` is the message of row `k`. The `Â_t` follow from the table
//! and public numbers. A key switch turns a component under `τ_t(s)` into one under `τ_{t/5}(s)`:
//! the component is rounded to a multiple of `2^27` (its *digit* δ), and `2^27·τ_5(s)` is what the
//! client's key `y = w·s + e + 2^27·τ_5(s)` encrypts. After `d − 2` such switches two components
//! are left, under `s` and `τ_−1(s)`. One more switch, with a second key, joins these two (the
//! *fold*).
//!
//! All digits follow from the table alone. So all that the key does to an answer is linear in the
//! key: `word ↦ word − M·y`, for a matrix `M` of integers below 2^31. Its bytes are more columns of
//! the byte matrix, and the product with `y` is a part of the same pass ([`pass_words`]).
//!
//! # Different from the papers
//!
//! - q is a power of two. The division by `d` is done on numbers, not modulo q, and costs a noise
//!   of 2^-35. So no inverse of `d` is needed, and a word is a fraction of 1 that can be rounded.
//! - One digit is enough, because the digit's low bits are dropped: keys are 20 KiB.
//! - `M` is stored, as bytes. InsPIRe computes with transformed polynomials for each query.
//!
//! # Secrets
//!
//! A secret serves **one** query. All queries use the same public polynomials, so the difference of
//! two queries under one secret shows both columns. That is why [`Blank`] is consumed.
//!
//! One query may have vectors for several byte matrices, under one secret and with one pair of
//! keys. Each matrix has public polynomials of its own for its columns
//! ([`EncryptionFactors::with_vector`]), so these are samples of ring LWE like those of more
//! columns.

mod answers;
mod encryption;
mod form;
pub mod noise;
mod packing;
mod public;

pub use answers::{Folding, pass_words};
pub use encryption::{Blank, BlockSymbols, EncryptionFactors, PublicKeys, RingKey, encrypt_zero};
pub use form::Form;
pub use packing::{BlockOut, PackingFactors, PackingNorms, PackingScratch};
pub use public::{PublicCoefficients, PublicPolynomials};

/// log2 of the modulus q.
pub const MODULUS_BITS: u32 = 50;

/// log2 of Δ = q / 256.
pub const DELTA_BITS: u32 = MODULUS_BITS - 8;

/// The exponent of the automorphism that a key switch undoes: 5 generates the odd numbers modulo 2d
/// up to the sign.
const STEP: usize = 5;

/// Bytes of an entry of the packing matrix.
pub const PLANES: usize = 4;

/// A number of `from` bits, a fraction of 1, rounded to `to` bits. Wraps: what rounds up to 1 is 0.
/// (If it stayed below 1, failures would depend on what is encrypted.)
fn round(number: u64, from: u32, to: u32) -> u64 {
    let shift = from - to;
    let half = (1 << shift) >> 1;
    (((number & low_bits(from)) + half) >> shift) & low_bits(to)
}

/// The representative of a number modulo `2^bits` that is nearest to zero.
fn centred(number: u64, bits: u32) -> i64 {
    ((number << (64 - bits)) as i64) >> (64 - bits)
}

fn low_bits(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The number rounded to a multiple of `2^(MODULUS_BITS - bits)`, in that unit, from −2^(bits − 1)
/// to 2^(bits − 1) − 1. Wraps.
fn digit(number: u64, bits: u32) -> i32 {
    let shift = MODULUS_BITS - bits;
    let rounded = (centred(number, MODULUS_BITS) + (1 << (shift - 1))) >> shift;
    centred(rounded as u64, bits) as i32
}

#[cfg(test)]
mod tests;
