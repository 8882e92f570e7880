//! Vectors of both lengths under the same names. So a kernel that is alike in AVX2 and AVX-512 is
//! written once, for any [`Vectors`]. What differs is in a small trait of the kernel.
//!
//! [`Avx2`] and [`Avx512`] stand for the arms' instructions. Only a function that is compiled for
//! these can make a value, and it runs only where the processor has them. So a value proves that
//! they are there. This is the safety argument of all calls of intrinsics by its methods, which are
//! safe therefore.
//!
//! Bodies are `#[inline(always)]`, so that they are compiled for the instructions of the entry that
//! calls them: [`entries!`] makes one for each arm. No vector passes through a closure, because
//! compilers inline those too late.

use std::arch::x86_64::*;

/// The instructions of [`Arm::Avx2`](crate::Arm::Avx2).
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// The instructions of [`Arm::Avx512`](crate::Arm::Avx512).
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Makes a kernel's entries from its functions' signatures: for each, one function in a module
/// `avx2` and one in a module `avx512`. They hand their arm to the function of this name, as its
/// first argument.
macro_rules! entries {
    ($(
        $(#[$attribute:meta])*
        fn $name:ident($($value:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )*) => {
        /// The kernel, compiled for AVX2.
        pub(crate) mod avx2 {
            #[allow(unused_imports, reason = "some signatures name no types")]
            use super::*;
            $(
                $(#[$attribute])*
                #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
                pub(crate) fn $name($($value: $type),*) $(-> $result)? {
                    super::$name($crate::x86_64::vectors::Avx2::new(), $($value),*)
                }
            )*
        }
        /// The kernel, compiled for AVX-512.
        pub(crate) mod avx512 {
            #[allow(unused_imports, reason = "some signatures name no types")]
            use super::*;
            $(
                $(#[$attribute])*
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni")]
                #[target_feature(enable = "vaes,vpclmulqdq,aes,pclmulqdq,popcnt")]
                pub(crate) fn $name($($value: $type),*) $(-> $result)? {
                    super::$name($crate::x86_64::vectors::Avx512::new(), $($value),*)
                }
            )*
        }
    };
}

pub(crate) use entries;

impl Avx2 {
    #[inline]
    #[target_feature(enable = "avx2,aes,pclmulqdq,popcnt")]
    pub(crate) fn new() -> Avx2 {
        Avx2(())
    }
}

impl Avx512 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,gfni")]
    #[target_feature(enable = "vaes,vpclmulqdq,aes,pclmulqdq,popcnt")]
    pub(crate) fn new() -> Avx512 {
        Avx512(())
    }
}

/// Makes the trait of the operations that are one instruction in both arms, each with its name, its
/// instruction in AVX2 and that in AVX-512: from `vectors` to a vector; from a number to a vector
/// of equal numbers; and `shifts` of all numbers by as many bits.
macro_rules! operations {
    (
        vectors { $($(#[$doc:meta])* $name:ident($($of:ident),+) = $avx2:ident, $avx512:ident;)* }
        splats { $($splat:ident($number:ident as $signed:ident) = $set2:ident, $set512:ident;)* }
        shifts { $($shift:ident = $shift2:ident, $shift512:ident;)* }
    ) => {
        /// Operations on vectors of bytes or of words, which wrap around.
        pub(crate) trait Operations: Copy {
            /// A vector of whatever an operation takes it for.
            type Vector: Copy;

            $($(#[$doc])* fn $name(self, $($of: Self::Vector),+) -> Self::Vector;)*
            $(fn $splat(self, number: $number) -> Self::Vector;)*
            $(fn $shift(self, numbers: Self::Vector, bits: i32) -> Self::Vector;)*
        }

        operations! {
            impl for Avx2, __m256i
            vectors { $($name($($of),+) = $avx2;)* }
            splats { $($splat($number as $signed) = $set2;)* }
            shifts { $($shift = $shift2;)* }
        }
        operations! {
            impl for Avx512, __m512i
            vectors { $($name($($of),+) = $avx512;)* }
            splats { $($splat($number as $signed) = $set512;)* }
            shifts { $($shift = $shift512;)* }
        }
    };
    (
        impl for $arm:ident, $vector:ident
        vectors { $($name:ident($($value:ident),+) = $instruction:ident;)* }
        splats { $($splat:ident($number:ident as $signed:ident) = $set:ident;)* }
        shifts { $($shift:ident = $shifted:ident;)* }
    ) => {
        impl Operations for $arm {
            type Vector = $vector;

            $(
                #[inline(always)]
                fn $name(self, $($value: $vector),+) -> $vector {
                    // SAFETY: the arm's value proves that the processor has the instruction, here
                    // and below.
                    unsafe { $instruction($($value),+) }
                }
            )*
            $(
                #[inline(always)]
                fn $splat(self, number: $number) -> $vector {
                    // SAFETY: as above.
                    unsafe { $set(number as $signed) }
                }
            )*
            $(
                #[inline(always)]
                fn $shift(self, numbers: $vector, bits: i32) -> $vector {
                    // SAFETY: as above.
                    unsafe { $shifted(numbers, _mm_cvtsi32_si128(bits)) }
                }
            )*
        }
    };
}

operations! {
    vectors {
        and(a, b) = _mm256_and_si256, _mm512_and_si512;
        or(a, b) = _mm256_or_si256, _mm512_or_si512;
        xor(a, b) = _mm256_xor_si256, _mm512_xor_si512;
        add_u8(a, b) = _mm256_add_epi8, _mm512_add_epi8;
        add_u32(a, b) = _mm256_add_epi32, _mm512_add_epi32;
        add_u64(a, b) = _mm256_add_epi64, _mm512_add_epi64;
        sub_u8(a, b) = _mm256_sub_epi8, _mm512_sub_epi8;
        sub_u32(a, b) = _mm256_sub_epi32, _mm512_sub_epi32;
        sub_u64(a, b) = _mm256_sub_epi64, _mm512_sub_epi64;
        /// The sum, or 255 where it is larger.
        add_up_to_255(a, b) = _mm256_adds_epu8, _mm512_adds_epu8;
        /// The lower halves of the products.
        mul_u32(a, b) = _mm256_mullo_epi32, _mm512_mullo_epi32;
        /// The products, of 64 bits, of the words at even places.
        mul_even_u32(a, b) = _mm256_mul_epu32, _mm512_mul_epu32;
        /// The lesser of each two words.
        min_u32(a, b) = _mm256_min_epu32, _mm512_min_epu32;
        /// Of each block of 16 bytes: those at the places in the lowest four bits of `places`, and
        /// 0 where a place's highest bit is set.
        shuffle_blocks(bytes, places) = _mm256_shuffle_epi8, _mm512_shuffle_epi8;
        /// The lower halves of each two blocks of 16 bytes, a byte of each in turn.
        zip_low_u8(a, b) = _mm256_unpacklo_epi8, _mm512_unpacklo_epi8;
        /// The upper halves.
        zip_high_u8(a, b) = _mm256_unpackhi_epi8, _mm512_unpackhi_epi8;
        /// The same with two bytes in turn.
        zip_low_u16(a, b) = _mm256_unpacklo_epi16, _mm512_unpacklo_epi16;
        /// The upper halves.
        zip_high_u16(a, b) = _mm256_unpackhi_epi16, _mm512_unpackhi_epi16;
        /// The same with words.
        zip_low_u32(a, b) = _mm256_unpacklo_epi32, _mm512_unpacklo_epi32;
        /// The upper halves.
        zip_high_u32(a, b) = _mm256_unpackhi_epi32, _mm512_unpackhi_epi32;
        /// The same with two words.
        zip_low_u64(a, b) = _mm256_unpacklo_epi64, _mm512_unpacklo_epi64;
        /// The upper halves.
        zip_high_u64(a, b) = _mm256_unpackhi_epi64, _mm512_unpackhi_epi64;
    }

    splats {
        splat_u8(u8 as i8) = _mm256_set1_epi8, _mm512_set1_epi8;
        splat_u16(u16 as i16) = _mm256_set1_epi16, _mm512_set1_epi16;
        splat_u32(u32 as i32) = _mm256_set1_epi32, _mm512_set1_epi32;
        splat_u64(u64 as i64) = _mm256_set1_epi64x, _mm512_set1_epi64;
    }

    shifts {
        shift_right_u32 = _mm256_srl_epi32, _mm512_srl_epi32;
        shift_left_u32 = _mm256_sll_epi32, _mm512_sll_epi32;
        shift_right_u64 = _mm256_srl_epi64, _mm512_srl_epi64;
        shift_left_u64 = _mm256_sll_epi64, _mm512_sll_epi64;
    }
}

/// What can be loaded and stored.
///
/// # Safety
///
/// All bits of a value have a meaning, and all bits have a value.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: numbers, and arrays of numbers, have neither gaps nor forbidden values.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(u8, i8, u16, i16, u32, u64, u128, [u8; 16], [u32; 4]);

/// The most words that any vector has.
pub(crate) const MOST_WORDS: usize = 16;

/// The vectors of an arm.
pub(crate) trait Vectors: Operations {
    /// Bytes of a vector.
    const BYTES: usize;
    /// Words of a vector.
    const WORDS: usize = Self::BYTES / 4;

    /// One block in all places.
    fn splat_block(self, block: &[u8; 16]) -> Self::Vector;

    /// The first values of a slice.
    ///
    /// # Panics
    ///
    /// If the slice is shorter than a vector, here and below.
    fn load<T: Plain>(self, from: &[T]) -> Self::Vector;

    /// Writes the first values of a slice.
    fn store<T: Plain>(self, vector: Self::Vector, to: &mut [T]);

    fn rotate_right_u32<const BITS: i32>(self, words: Self::Vector) -> Self::Vector;

    /// The highest bit of each word in all of its bits.
    fn signs(self, words: Self::Vector) -> Self::Vector;

    /// The words of `even` at even places, and those of `odd` at odd places.
    fn blend(self, even: Self::Vector, odd: Self::Vector) -> Self::Vector;

    /// The sum of the words.
    fn sum_u32(self, words: Self::Vector) -> u32;

    /// Transposes the square that so many vectors as a vector has words are.
    fn transpose(self, square: &mut [Self::Vector]);

    #[inline(always)]
    fn zero(self) -> Self::Vector {
        self.splat_u32(0)
    }

    /// The squares of 4 × 4 words that stand side by side in four vectors, each transposed.
    #[inline(always)]
    fn transpose_blocks(self, [a, b, c, d]: [Self::Vector; 4]) -> [Self::Vector; 4] {
        let [ab_low, ab_high] = [self.zip_low_u32(a, b), self.zip_high_u32(a, b)];
        let [cd_low, cd_high] = [self.zip_low_u32(c, d), self.zip_high_u32(c, d)];
        [
            self.zip_low_u64(ab_low, cd_low),
            self.zip_high_u64(ab_low, cd_low),
            self.zip_low_u64(ab_high, cd_high),
            self.zip_high_u64(ab_high, cd_high),
        ]
    }
}

impl Vectors for Avx2 {
    const BYTES: usize = 32;

    #[inline(always)]
    fn splat_block(self, block: &[u8; 16]) -> __m256i {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        // The block has 16 bytes, and the load needs no alignment.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load<T: Plain>(self, from: &[T]) -> __m256i {
        assert!(size_of_val(from) >= Self::BYTES, "a slice holds a vector");
        // SAFETY: as above; there are so many bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store<T: Plain>(self, vector: __m256i, to: &mut [T]) {
        assert!(size_of_val(to) >= Self::BYTES, "a slice holds a vector");
        // SAFETY: as above; there are so many bytes, which may have any value, and the store needs
        // no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn rotate_right_u32<const BITS: i32>(self, words: __m256i) -> __m256i {
        /// For each byte of a block the one that comes to its place: from one word's `bytes` on.
        const fn rotated(bytes: usize) -> [u8; 16] {
            let mut places = [0; 16];
            let mut i = 0;
            while i < 16 {
                places[i] = (i / 4 * 4 + (i + bytes) % 4) as u8;
                i += 1;
            }
            places
        }
        if BITS % 8 == 0 {
            // One instruction instead of three.
            return self
                .shuffle_blocks(words, self.splat_block(&const { rotated(BITS as usize / 8) }));
        }
        self.or(self.shift_right_u32(words, BITS), self.shift_left_u32(words, 32 - BITS))
    }

    #[inline(always)]
    fn signs(self, words: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_srai_epi32::<31>(words) }
    }

    #[inline(always)]
    fn blend(self, even: __m256i, odd: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_blend_epi32::<0b1010_1010>(even, odd) }
    }

    #[inline(always)]
    fn sum_u32(self, words: __m256i) -> u32 {
        let mut array = [0u32; 8];
        self.store(words, &mut array);
        array.into_iter().fold(0, u32::wrapping_add)
    }

    #[inline(always)]
    fn transpose(self, square: &mut [__m256i]) {
        let [a, b, c, d, e, f, g, h] = square else { unreachable!("eight vectors of eight") };
        let above = self.transpose_blocks([*a, *b, *c, *d]);
        let below = self.transpose_blocks([*e, *f, *g, *h]);
        for j in 0..4 {
            // SAFETY: as above.
            unsafe {
                square[j] = _mm256_permute2x128_si256::<0x20>(above[j], below[j]);
                square[4 + j] = _mm256_permute2x128_si256::<0x31>(above[j], below[j]);
            }
        }
    }
}

impl Vectors for Avx512 {
    const BYTES: usize = 64;

    #[inline(always)]
    fn splat_block(self, block: &[u8; 16]) -> __m512i {
        // SAFETY: the arm's value proves that the processor has the instructions, here and below.
        // The block has 16 bytes, and the load needs no alignment.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(block.as_ptr().cast())) }
    }

    #[inline(always)]
    fn load<T: Plain>(self, from: &[T]) -> __m512i {
        assert!(size_of_val(from) >= Self::BYTES, "a slice holds a vector");
        // SAFETY: as above; there are so many bytes, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store<T: Plain>(self, vector: __m512i, to: &mut [T]) {
        assert!(size_of_val(to) >= Self::BYTES, "a slice holds a vector");
        // SAFETY: as above; there are so many bytes, which may have any value, and the store needs
        // no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn rotate_right_u32<const BITS: i32>(self, words: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_ror_epi32::<BITS>(words) }
    }

    #[inline(always)]
    fn signs(self, words: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_srai_epi32::<31>(words) }
    }

    #[inline(always)]
    fn blend(self, even: __m512i, odd: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_mask_blend_epi32(0b1010_1010_1010_1010, even, odd) }
    }

    #[inline(always)]
    fn sum_u32(self, words: __m512i) -> u32 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_add_epi32(words) as u32 }
    }

    #[inline(always)]
    fn transpose(self, square: &mut [__m512i]) {
        assert_eq!(square.len(), 16, "sixteen vectors of sixteen");
        let mut quarters = [[self.zero(); 4]; 4];
        for (quarters, rows) in quarters.iter_mut().zip(square.as_chunks::<4>().0) {
            *quarters = self.transpose_blocks(*rows);
        }
        for j in 0..4 {
            let [a, b, c, d] = [quarters[0][j], quarters[1][j], quarters[2][j], quarters[3][j]];
            // SAFETY: as above.
            unsafe {
                let low_ab = _mm512_shuffle_i32x4::<0x44>(a, b);
                let low_cd = _mm512_shuffle_i32x4::<0x44>(c, d);
                let high_ab = _mm512_shuffle_i32x4::<0xee>(a, b);
                let high_cd = _mm512_shuffle_i32x4::<0xee>(c, d);
                square[j] = _mm512_shuffle_i32x4::<0x88>(low_ab, low_cd);
                square[4 + j] = _mm512_shuffle_i32x4::<0xdd>(low_ab, low_cd);
                square[8 + j] = _mm512_shuffle_i32x4::<0x88>(high_ab, high_cd);
                square[12 + j] = _mm512_shuffle_i32x4::<0xdd>(high_ab, high_cd);
            }
        }
    }
}
