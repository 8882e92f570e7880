//! Transforms modulo a prime with vectors: the algorithm, for each arm's width.
//!
//! While the halves of a block are whole vectors, a level is a loop over vectors with one factor.
//! The remaining levels, of blocks no longer than a vector, take as many vectors as one has words,
//! and transpose this square. Then a vector has the same word of neighbouring blocks, and a factor
//! for each of them.

use crate::portable::ring as portable;
use crate::ring::{Field, Roots};

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

    /// `first + low · second + (high · 2³² + higher_low) · third`, less `all` where the sign of
    /// `negative` is set, each word for itself, modulo 2⁶⁴. Stores `COUNT` 64-bit words.
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
    let butterfly = |a: V, b: V, word: V, quotient: V| {
        // SAFETY: as above.
        unsafe {
            let low = below(a, twice).add(prime);
            let high = b.montgomery(word, quotient, prime);
            (low.add(high), low.sub(high))
        }
    };
    let mut half = words.len() / 2;
    while half >= V::COUNT {
        let first = words.len() / (2 * half);
        for (block, pair) in words.chunks_exact_mut(2 * half).enumerate() {
            let root = field.roots.factor(first + block);
            let (a, b) = pair.split_at_mut(half);
            // SAFETY: as above; the chunks are vectors.
            unsafe {
                let [word, quotient] = [root.word, root.quotient].map(|word| V::splat(word));
                for (a, b) in a.chunks_exact_mut(V::COUNT).zip(b.chunks_exact_mut(V::COUNT)) {
                    let (low, high) =
                        butterfly(V::load(a.as_ptr()), V::load(b.as_ptr()), word, quotient);
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
            let mut factor = factors.as_ptr();
            let mut half = V::COUNT / 2;
            while half > 0 {
                for block in 0..V::COUNT / (2 * half) {
                    let [word, quotient] = [V::load(factor), V::load(factor.add(V::COUNT))];
                    factor = factor.add(2 * V::COUNT);
                    for i in 0..half {
                        let a = square.add((2 * half * block + i) * V::COUNT);
                        let b = a.add(half * V::COUNT);
                        let (low, high) = butterfly(V::load(a), V::load(b), word, quotient);
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
    let butterfly = |a: V, b: V, word: V, quotient: V| {
        // SAFETY: as above.
        unsafe {
            let difference = a.add(twice).sub(b);
            let high = difference.montgomery(word, quotient, prime);
            (below(a.add(b), twice), high.add(prime))
        }
    };
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
                    let [word, quotient] = [V::load(factor), V::load(factor.add(V::COUNT))];
                    for i in 0..half {
                        let a = square.add((2 * half * block + i) * V::COUNT);
                        let b = a.add(half * V::COUNT);
                        let (low, high) = butterfly(V::load(a), V::load(b), word, quotient);
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
                let [word, quotient] = [root.word, root.quotient].map(|word| V::splat(word));
                for (a, b) in a.chunks_exact_mut(V::COUNT).zip(b.chunks_exact_mut(V::COUNT)) {
                    let (low, high) =
                        butterfly(V::load(a.as_ptr()), V::load(b.as_ptr()), word, quotient);
                    low.store(a.as_mut_ptr());
                    high.store(b.as_mut_ptr());
                }
            }
        }
        half *= 2;
    }
    // SAFETY: as above; the chunks are vectors.
    unsafe {
        let scale = [field.scale.word, field.scale.quotient].map(|word| V::splat(word));
        for words in words.chunks_exact_mut(V::COUNT) {
            let scaled = V::load(words.as_ptr()).montgomery(scale[0], scale[1], prime);
            below(scaled.add(prime), prime).store(words.as_mut_ptr());
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
        let [prime, prime_inverse] = [field.prime, field.prime_inverse].map(|word| V::splat(word));
        let factors = a.chunks_exact(V::COUNT).zip(b.chunks_exact(V::COUNT));
        for ((a, b), to) in factors.zip(products.chunks_exact_mut(V::COUNT)) {
            let [a, b] = [a, b].map(|words| V::load(words.as_ptr()));
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
    let inverses = [
        fields[1].earlier_inverses[0],
        fields[2].earlier_inverses[0],
        fields[2].earlier_inverses[1],
    ];
    // SAFETY: the caller vouches for the instructions; all places are vectors of the polynomials.
    unsafe {
        let [p2, p3] = [p2, p3].map(|word| V::splat(word));
        let [twice_p2, twice_p3] = [p2.add(p2), p3.add(p3)];
        let half = V::splat(fields[2].prime / 2);
        let [first_in_second, first_in_third, second_in_third] =
            inverses.map(|factor| [V::splat(factor.word), V::splat(factor.quotient)]);
        let times = |word: V, factor: [V; 2], prime: V| {
            word.montgomery(factor[0], factor[1], prime).add(prime)
        };
        for at in (0..degree).step_by(V::COUNT) {
            let [v1, second, third] =
                [first, second, third].map(|words| V::load(words[at..].as_ptr()));
            let v2 = times(second.add(twice_p2).sub(v1), first_in_second, p2);
            let v2 = below(v2, p2);
            let v3 = times(third.add(twice_p3).sub(v1), first_in_third, p3);
            let v3 = times(v3.add(twice_p3).sub(v2), second_in_third, p3);
            let v3 = below(v3, p3);
            let to = coefficients[at..].as_mut_ptr();
            V::store_combined(&garner, [v1, v2, v3], half.sub(v3), to);
        }
    }
}
