//! The server's side, for each query: what a query's words become in the pass, and what a pass's
//! sums become in the answer.

use super::{Form, PLANES, PublicKeys, centred, round};
use privet_kernels::Kernels;
use privet_kernels::ring::{Products, Residues, RingTransform};

/// The vector that the byte matrix `[table | zeros | planes]` is multiplied with: the query's
/// words, as fractions of 2^32; zeros up to `table_columns`, a number of columns; and for each of
/// the four planes of the packing matrix the packing key, times 1, 256, 256² and 256³.
///
/// The key's words have more than 32 bits. In the low planes the lowest are rounded off; in the
/// high planes the highest are whole numbers, and fall away modulo 1.
///
/// # Panics
/// If the query has more words than there are columns.
pub fn pass_words(
    form: Form,
    query_bits: u32,
    query: &[u32],
    keys: &PublicKeys,
    table_columns: usize,
) -> Vec<u32> {
    let mut words = Vec::with_capacity(table_columns + PLANES * form.degree);
    words.extend(query.iter().map(|word| word << (32 - query_bits)));
    assert!(words.len() <= table_columns, "there is a column for each word");
    words.resize(table_columns, 0);
    for plane in 0..PLANES {
        let weighted = |word: &u64| round(word << (8 * plane), form.key_bits, 32) as u32;
        words.extend(keys.packing.iter().map(weighted));
    }
    words
}

/// How the two last components of a packing are joined in an answer.
pub struct Folding {
    form: Form,
    transform: RingTransform,
}

impl Folding {
    /// Prepares the transform.
    pub fn new(form: Form) -> Self {
        Self { form, transform: RingTransform::new(form.degree) }
    }

    /// Transforms the digits of all blocks: d signed numbers for each, four little-endian bytes
    /// each.
    pub fn digits(&self, kernels: Kernels, digits: &[u8]) -> Vec<Residues> {
        let transformed = |digits: &[[u8; 4]]| {
            let digits: Vec<i32> = digits.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
            let mut residues = Residues::zeroed(self.form.degree);
            kernels.ring_forward_small(&self.transform, &digits, &mut residues);
            residues
        };
        digits.as_chunks().0.chunks_exact(self.form.degree).map(transformed).collect()
    }

    /// The symbols of an answer, one for each row, from the sums of the pass: takes off what the
    /// pass added because the planes hold `2^31 − M`, folds, and rounds. `digits` are those of all
    /// blocks, and `block_rows` says how many rows each has.
    pub fn symbols(
        &self,
        kernels: Kernels,
        digits: &[Residues],
        keys: &PublicKeys,
        sums: &[u32],
        block_rows: impl Iterator<Item = usize>,
    ) -> Vec<u16> {
        let Form { degree, key_bits, fold_key_bits, answer_bits, .. } = self.form;
        // 2^31 times the sum of the key's words, as a fraction of 2^32.
        let total = keys.packing.iter().fold(0u64, |total, word| total.wrapping_add(*word));
        let offset = (total << (63 - key_bits)) as u32;
        let centred_key: Vec<i64> =
            keys.fold.iter().map(|word| centred(*word, fold_key_bits)).collect();
        let mut of_key = Residues::zeroed(degree);
        kernels.ring_forward(&self.transform, &centred_key, &mut of_key);
        let (mut products, mut folded) = (Products::zeroed(degree), vec![0; degree]);
        let mut symbols = Vec::with_capacity(sums.len());
        let mut left = sums;
        for (rows, digits) in block_rows.zip(digits) {
            let (sums, others) = left.split_at(rows);
            left = others;
            kernels.ring_multiply(&self.transform, digits, &of_key, &mut products);
            kernels.ring_inverse(&self.transform, &mut products, &mut folded);
            symbols.extend(sums.iter().zip(&folded).map(|(sum, folded)| {
                // As a fraction of 2^64, and then of 2^32.
                let folded = folded << (64 - fold_key_bits) >> 32;
                let sum = sum.wrapping_sub(offset).wrapping_sub(folded as u32);
                round(u64::from(sum), 32, answer_bits) as u16
            }));
        }
        symbols
    }
}
