//! Transforms modulo a prime with vectors: the algorithm, for each arm's width.
//!
//! While the halves of a block are whole vectors, a level is a loop over vectors with one factor.
//! The remaining levels, of blocks no longer than a vector, take as many vectors as one has words,
//! and transpose this square. Then a vector has the same word of neighbouring blocks, and a factor
//! for each of them.

use crate::portable::ring as portable;
use crate::ring::{Factor, Field, Roots};

/// A vector of 32-bit words.
///
/// # Safety
///
/// For all methods: the processor must have the instructions that they use.
pub(super) trait Words: Copy {
    /// How many words: a power of two.
    const COUNT: usize;

    /// The factors of the levels within a square, in the order of [`Roots::squares`].
    fn squares(roots: &Roots) -> &[u32];

    /// # Safety
    ///
    /// `COUNT` words may be read at `from`; no alignment needed.
    unsafe fn load(from: *const u32) -> Self;

    /// # Safety
    ///
    /// `COUNT` words may be written at `to`; no alignment needed.
    unsafe fn store(self, to: *mut u32);

    /// # Safety
    ///
    /// As for all methods, here and below.
    unsafe fn splat(word: u32) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn add(self, other: Self) -> Self;

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn sub(self, other: Self) -> Self;

    /// The lesser of each two words, without a sign.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn min(self, other: Self) -> Self;

    /// `self · word / 2³²` modulo the prime, where `quotient` is `word` times the prime's inverse.
    /// With a sign: below the prime in absolute value, if `word` is below the prime.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn montgomery(self, word: Self, quotient: Self, prime: Self) -> Self;

    /// The same for two factors, one of which is below the prime.
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn montgomery_product(self, other: Self, prime_inverse: Self, prime: Self) -> Self;

    /// Stores the numbers of three digits: the first, plus the second times the first prime, plus
    /// the third times the first two primes. Less all three primes' product where `negative` is
    /// negative. Modulo 2⁶⁴.
    ///
    /// # Safety
    ///
    /// `COUNT` 64-bit words may be written at `to`; no alignment needed.
    unsafe fn store_combined(garner: &Garner, digits: [Self; 3], negative: Self, to: *mut u64);

    /// Transposes the square of `COUNT` vectors from `square` on, in place.
    ///
    /// # Safety
    ///
    /// `COUNT²` words may be read and written at `square`; no alignment needed.
    unsafe fn transpose(square: *mut u32);
}

/// The constants that make a number of its digits to the bases of the primes.
pub(super) struct Garner {
    /// The first prime.
    pub(super) first: u32,
    /// The product of the first two.
    pub(super) pair: u64,
    /// The product of all three, modulo 2⁶⁴.
    pub(super) all: u64,
}

/// `word`, or `word - bound` if that is not negative.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn below<V: Words>(word: V, bound: V) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe { word.min(word.sub(bound)) }
}

/// `word · factor`, between 1 and twice the prime.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn times<V: Words>(word: V, factor: [V; 2], prime: V) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe { word.montgomery(factor[0], factor[1], prime).add(prime) }
}

/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn splat_factor<V: Words>(factor: Factor) -> [V; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe { [V::splat(factor.word), V::splat(factor.quotient)] }
}

/// A butterfly on the way to values: `a + factor · b` and `a - factor · b`. From words below `4p`
/// to words below `4p`.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn split<V: Words>([a, b]: [V; 2], factor: [V; 2], [prime, twice]: [V; 2]) -> [V; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let low = below(a, twice).add(prime);
        let high = b.montgomery(factor[0], factor[1], prime);
        [low.add(high), low.sub(high)]
    }
}

/// A butterfly on the way back: `a + b` and `factor · (a - b)`. From words below `2p` to words
/// below `2p`.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn join<V: Words>([a, b]: [V; 2], factor: [V; 2], [prime, twice]: [V; 2]) -> [V; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe { [below(a.add(b), twice), times(a.add(twice).sub(b), factor, prime)] }
}

/// See [`portable::forward`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn forward<V: Words>(field: &Field, words: &mut [u32]) {
    if words.len() < V::COUNT * V::COUNT {
        return portable::forward(field, words);
    }
    // SAFETY: the caller vouches for the instructions, here and below.
    let (prime, twice) = unsafe { (V::splat(field.prime), V::splat(2 * field.prime)) };
    let mut half = words.len() / 2;
    while half >= V::COUNT {
        let first = words.len() / (2 * half);
        for (block, pair) in words.chunks_exact_mut(2 * half).enumerate() {
            let root = field.roots.factor(first + block);
            let (a, b) = pair.split_at_mut(half);
            // SAFETY: as above; the chunks are vectors.
            unsafe {
                let factor = splat_factor::<V>(root);
                for (a, b) in a.chunks_exact_mut(V::COUNT).zip(b.chunks_exact_mut(V::COUNT)) {
                    let [low, high] =
                        split([V::load(a.as_ptr()), V::load(b.as_ptr())], factor, [prime, twice]);
                    low.store(a.as_mut_ptr());
                    high.store(b.as_mut_ptr());
                }
            }
        }
        half /= 2;
    }
    let factors = V::squares(&field.roots).chunks_exact(2 * V::COUNT * (V::COUNT - 1));
    for (square, factors) in words.chunks_exact_mut(V::COUNT * V::COUNT).zip(factors) {
        // SAFETY: as above; the square's vectors and the factors lie within the chunks.
        unsafe {
            let square = square.as_mut_ptr();
            V::transpose(square);
            let mut next = factors.as_ptr();
            let mut half = V::COUNT / 2;
            while half > 0 {
                for block in 0..V::COUNT / (2 * half) {
                    let factor = [V::load(next), V::load(next.add(V::COUNT))];
                    next = next.add(2 * V::COUNT);
                    for i in 0..half {
                        let a = square.add((2 * half * block + i) * V::COUNT);
                        let b = a.add(half * V::COUNT);
                        let [low, high] = split([V::load(a), V::load(b)], factor, [prime, twice]);
                        low.store(a);
                        high.store(b);
                    }
                }
                half /= 2;
            }
            for i in 0..V::COUNT {
                let vector = square.add(i * V::COUNT);
                below(below(V::load(vector), twice), prime).store(vector);
            }
            V::transpose(square);
        }
    }
}

/// See [`portable::inverse`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn inverse<V: Words>(field: &Field, words: &mut [u32]) {
    if words.len() < V::COUNT * V::COUNT {
        return portable::inverse(field, words);
    }
    // SAFETY: the caller vouches for the instructions, here and below.
    let (prime, twice) = unsafe { (V::splat(field.prime), V::splat(2 * field.prime)) };
    let factors = V::squares(&field.inverse_roots).chunks_exact(2 * V::COUNT * (V::COUNT - 1));
    for (square, factors) in words.chunks_exact_mut(V::COUNT * V::COUNT).zip(factors) {
        // SAFETY: as above; the square's vectors and the factors lie within the chunks.
        unsafe {
            let square = square.as_mut_ptr();
            V::transpose(square);
            let mut half = 1;
            while half < V::COUNT {
                let blocks = V::COUNT / (2 * half);
                for block in 0..blocks {
                    let factor = factors.as_ptr().add((blocks - 1 + block) * 2 * V::COUNT);
                    let factor = [V::load(factor), V::load(factor.add(V::COUNT))];
                    for i in 0..half {
                        let a = square.add((2 * half * block + i) * V::COUNT);
                        let b = a.add(half * V::COUNT);
                        let [low, high] = join([V::load(a), V::load(b)], factor, [prime, twice]);
                        low.store(a);
                        high.store(b);
                    }
                }
                half *= 2;
            }
            V::transpose(square);
        }
    }
    let mut half = V::COUNT;
    while half < words.len() {
        let first = words.len() / (2 * half);
        for (block, pair) in words.chunks_exact_mut(2 * half).enumerate() {
            let root = field.inverse_roots.factor(first + block);
            let (a, b) = pair.split_at_mut(half);
            // SAFETY: as above; the chunks are vectors.
            unsafe {
                let factor = splat_factor::<V>(root);
                for (a, b) in a.chunks_exact_mut(V::COUNT).zip(b.chunks_exact_mut(V::COUNT)) {
                    let [low, high] =
                        join([V::load(a.as_ptr()), V::load(b.as_ptr())], factor, [prime, twice]);
                    low.store(a.as_mut_ptr());
                    high.store(b.as_mut_ptr());
                }
            }
        }
        half *= 2;
    }
    // SAFETY: as above; the chunks are vectors.
    unsafe {
        let scale = splat_factor::<V>(field.scale);
        for words in words.chunks_exact_mut(V::COUNT) {
            below(times(V::load(words.as_ptr()), scale, prime), prime).store(words.as_mut_ptr());
        }
    }
}

/// See [`portable::multiply`], and with `ADD` [`portable::multiply_add`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn multiply<V: Words, const ADD: bool>(
    field: &Field,
    a: &[u32],
    b: &[u32],
    products: &mut [u32],
) {
    assert!(products.len().is_multiple_of(V::COUNT), "a degree is a multiple of a vector");
    // SAFETY: the caller vouches for the instructions; the chunks are vectors.
    unsafe {
        let [prime, prime_inverse] = [V::splat(field.prime), V::splat(field.prime_inverse)];
        let factors = a.chunks_exact(V::COUNT).zip(b.chunks_exact(V::COUNT));
        for ((a, b), to) in factors.zip(products.chunks_exact_mut(V::COUNT)) {
            let [a, b] = [V::load(a.as_ptr()), V::load(b.as_ptr())];
            let product = a.montgomery_product(b, prime_inverse, prime).add(prime);
            let mut result = below(product, prime);
            if ADD {
                result = below(result.add(V::load(to.as_ptr())), prime);
            }
            result.store(to.as_mut_ptr());
        }
    }
}

/// See [`portable::combine_residues`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn combine<V: Words>(
    fields: &[Field; 3],
    residues: &[u32],
    coefficients: &mut [u64],
) {
    let degree = coefficients.len();
    assert!(degree.is_multiple_of(V::COUNT), "a degree is a multiple of a vector");
    let [first, second, third] = [0, 1, 2].map(|i| &residues[i * degree..][..degree]);
    let [p1, p2, p3] = fields.each_ref().map(|field| field.prime);
    let pair = u64::from(p1) * u64::from(p2);
    let garner = Garner { first: p1, pair, all: pair.wrapping_mul(u64::from(p3)) };
    // SAFETY: the caller vouches for the instructions; all places are vectors of the polynomials.
    unsafe {
        let [p2, p3] = [V::splat(p2), V::splat(p3)];
        let [twice_p2, twice_p3] = [p2.add(p2), p3.add(p3)];
        let half = V::splat(fields[2].prime / 2);
        let first_in_second = splat_factor::<V>(fields[1].earlier_inverses[0]);
        let first_in_third = splat_factor::<V>(fields[2].earlier_inverses[0]);
        let second_in_third = splat_factor::<V>(fields[2].earlier_inverses[1]);
        for at in (0..degree).step_by(V::COUNT) {
            let v1 = V::load(first[at..].as_ptr());
            let v2 = V::load(second[at..].as_ptr()).add(twice_p2).sub(v1);
            let v2 = below(times(v2, first_in_second, p2), p2);
            let v3 = V::load(third[at..].as_ptr()).add(twice_p3).sub(v1);
            let v3 = times(v3, first_in_third, p3).add(twice_p3).sub(v2);
            let v3 = below(times(v3, second_in_third, p3), p3);
            let to = coefficients[at..].as_mut_ptr();
            V::store_combined(&garner, [v1, v2, v3], half.sub(v3), to);
        }
    }
}
