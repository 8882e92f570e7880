//! Rows of a hint of LWE times the secret of a query, for the rooms whose clients hold such a hint.

use crate::offline::HintSource;
use privet_core::Result;
use privet_core::lwe::SECRET_DIMENSION;
use privet_kernels::Kernels;
use zeroize::Zeroizing;

const ROW_BYTES: usize = SECRET_DIMENSION * 4;

/// Rows that are read at a time: 64 KiB, as long as the pieces in which a client's files are
/// checked. They stay in a cache.
const ROWS_AT_ONCE: usize = 16;

/// Fills `masks` with the products of `secret` and the rows of `hint` from `first_row` on, modulo
/// 2^32. `secret` has [`SECRET_DIMENSION`] words. Which rows these are may be secret: the read is
/// local, and no server sees it.
///
/// # Errors
/// As [`HintSource::read_at`].
pub(crate) fn hint_times_secret(
    kernels: Kernels,
    hint: &dyn HintSource,
    first_row: usize,
    secret: &[u32],
    masks: &mut [u32],
) -> Result<()> {
    let most = masks.len().min(ROWS_AT_ONCE);
    // What was read shows where the record lies. It is erased once, because erasing takes longer
    // than reading.
    let mut bytes = Zeroizing::new(vec![0; most * ROW_BYTES]);
    let mut words = Zeroizing::new(vec![0; most * SECRET_DIMENSION]);
    let (mut row, mut rest) = (first_row, masks);
    while !rest.is_empty() {
        let up_to_the_next_piece = ROWS_AT_ONCE - row % ROWS_AT_ONCE;
        let (masks, after) = rest.split_at_mut(rest.len().min(up_to_the_next_piece));
        let bytes = &mut bytes[..masks.len() * ROW_BYTES];
        let words = &mut words[..masks.len() * SECRET_DIMENSION];
        hint.read_at((row * ROW_BYTES) as u64, bytes)?;
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        kernels.words_times_vector(words, secret, masks);
        row += masks.len();
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::codec::words_from_bytes;

    #[test]
    fn products_are_those_of_single_rows_wherever_they_begin() {
        const ROWS: usize = 3 * ROWS_AT_ONCE + 5;
        let hint: Vec<u8> = (0..ROWS * ROW_BYTES).map(|at| (at * at / 7) as u8).collect();
        let secret: Vec<u32> =
            (0..SECRET_DIMENSION as u32).map(|at| at.wrapping_mul(!at)).collect();
        let product = |row: usize| {
            let words = words_from_bytes(&hint[row * ROW_BYTES..][..ROW_BYTES]);
            let products = words.iter().zip(&secret).map(|(word, of)| word.wrapping_mul(*of));
            products.fold(0, u32::wrapping_add)
        };
        for (first, count) in [(0, 1), (0, ROWS), (15, 2), (16, 16), (17, 33), (ROWS - 1, 1)] {
            let mut masks = vec![1; count];
            hint_times_secret(Kernels::detect(), &hint, first, &secret, &mut masks).unwrap();
            let expected: Vec<u32> = (first..first + count).map(product).collect();
            assert_eq!(masks, expected, "{count} rows from row {first}");
        }
        let beyond = hint_times_secret(Kernels::detect(), &hint, ROWS - 1, &secret, &mut [0; 2]);
        assert!(beyond.is_err());
    }
}
