//! The AES-128 key schedule (FIPS 197, section 5.2) in plain Rust, so that keys can be expanded
//! before the arm is known. Only for public keys: it looks bytes up in a table.

/// The round keys in order, as the bytes that are XORed to a block.
pub(super) fn expand(key: [u8; 16]) -> [[u8; 16]; 11] {
    let mut round_keys = [key; 11];
    let mut words: [u32; 4] = std::array::from_fn(|i| u32::from_le_bytes(key.as_chunks().0[i]));
    let mut constant = 1;
    for round_key in &mut round_keys[1..] {
        let rotated = words[3].rotate_right(8).to_le_bytes();
        let substituted = rotated.map(|byte| S_BOX[usize::from(byte)]);
        words[0] ^= u32::from_le_bytes(substituted) ^ u32::from(constant);
        constant = doubled(constant);
        for i in 1..4 {
            words[i] ^= words[i - 1];
        }
        for (bytes, word) in round_key.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }
    round_keys
}

/// The cipher's substitution of bytes (FIPS 197, section 5.1.1): an affine map of the inverse in
/// the field of 256 elements, whose elements but 0 are the powers of 3.
const S_BOX: [u8; 256] = {
    let mut table = [0x63; 256];
    let (mut power, mut inverse) = (1u8, 1u8);
    loop {
        table[power as usize] = 0x63
            ^ inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4);
        power ^= doubled(power);
        // Divides by 3, which is the same as multiplying by 0xf6.
        inverse ^= inverse << 1;
        inverse ^= inverse << 2;
        inverse ^= inverse << 4;
        inverse ^= 9 * (inverse >> 7);
        if power == 1 {
            break table;
        }
    }
};

const fn doubled(element: u8) -> u8 {
    (element << 1) ^ (0x1b * (element >> 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 197, appendix A.1: three of its expanded round keys.
    #[test]
    fn expansion_equals_the_example_of_the_standard() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128;
        let keys = expand(key.to_be_bytes()).map(u128::from_be_bytes);
        assert_eq!(keys[0], key);
        assert_eq!(keys[1], 0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605);
        assert_eq!(keys[10], 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6);
    }

    /// A substitution is a permutation, and some of this one's values are known: FIPS 197, figure
    /// 7.
    #[test]
    fn the_substitution_is_the_standards() {
        let mut all = S_BOX;
        all.sort_unstable();
        assert!((0..=255).eq(all));
        assert_eq!([S_BOX[0], S_BOX[1], S_BOX[0x53], S_BOX[0xff]], [0x63, 0x7c, 0xed, 0x16]);
    }
}
