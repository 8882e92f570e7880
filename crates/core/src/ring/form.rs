//! The numbers of the ring encryption. All lengths in bits are precisions of fractions of 1.

use super::MODULUS_BITS;
use crate::lwe::{ERROR_WIDTHS, ErrorWidth};

/// The numbers that an encryption and its packing depend on. There is one form for bytes,
/// [`STANDARD`]. Where plaintexts are bits, less precision is enough. Tests have forms of low
/// degree, which protect nothing.
///
/// [`STANDARD`]: Form::STANDARD
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub(super) degree: usize,
    /// Words of the packing key, as they are sent.
    pub(super) key_bits: u32,
    /// Digits for that key.
    pub(super) digit_bits: u32,
    /// Words of the fold key, as they are sent.
    pub(super) fold_key_bits: u32,
    /// Digits for that key.
    pub(super) fold_digit_bits: u32,
    pub(super) mask_bits: u32,
    pub(super) answer_bits: u32,
}

impl Form {
    /// Degree 2048; see `docs/security/ring-lwe.md` for the estimate.
    pub const STANDARD: Form = Form {
        degree: 2048,
        key_bits: 45,
        digit_bits: 23,
        fold_key_bits: 35,
        fold_digit_bits: 18,
        mask_bits: 17,
        answer_bits: 10,
    };

    /// The width of the error: standard deviation 8.45. This width is too narrow for plain LWE of
    /// dimension 1024, and wide enough here.
    pub const ERROR: ErrorWidth = ERROR_WIDTHS[ERROR_WIDTHS.len() - 1];

    /// A form of a low degree for tests. **It protects nothing.**
    #[cfg(any(test, feature = "known-answers"))]
    pub fn insecure(degree: usize) -> Form {
        Form { degree, key_bits: 44, digit_bits: 19, fold_digit_bits: 17, ..Self::STANDARD }
    }

    /// The same with other precisions of both keys' words, of masks and of answers. They decide how
    /// often plaintexts come back right ([`noise`](super::noise)), and nothing else. For
    /// [`pass_words`](super::pass_words), a word of the packing key has at least 32 bits.
    pub fn with_precisions(self, keys: [u32; 2], mask_bits: u32, answer_bits: u32) -> Form {
        let [key_bits, fold_key_bits] = keys;
        Form { key_bits, fold_key_bits, mask_bits, answer_bits, ..self }
    }

    /// The degree d of the ring: how many rows are packed together, and how many columns share a
    /// polynomial.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Bits of a word of the packing key, and of the fold key.
    pub fn key_bits(&self) -> [u32; 2] {
        [self.key_bits, self.fold_key_bits]
    }

    /// Bits of a mask's coefficient.
    pub fn mask_bits(&self) -> u32 {
        self.mask_bits
    }

    /// Bits of an answer's symbol, of which there is one for each row.
    pub fn answer_bits(&self) -> u32 {
        self.answer_bits
    }

    /// Bytes of the mask of one block.
    pub fn mask_bytes(&self) -> u64 {
        self.degree as u64 * u64::from(self.mask_bits) / 8
    }

    /// log2 of the weight of a digit, for the two keys.
    pub(super) fn digit_weight(bits: u32) -> u32 {
        MODULUS_BITS - bits
    }
}
