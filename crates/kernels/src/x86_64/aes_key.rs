//! The AES-128 key schedule with AES-NI, for both vector arms.

use std::arch::x86_64::*;

/// The 11 round keys of AES-128 (FIPS 197, section 5.2).
#[inline]
#[target_feature(enable = "aes")]
pub(super) fn round_keys(key: &[u8; 16]) -> [__m128i; 11] {
    // SAFETY: the array has 16 bytes, and the load needs no alignment.
    let key = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    let mut keys = [key; 11];
    // The round constant is an immediate, so a loop cannot supply it.
    keys[1] = next_key::<0x01>(keys[0]);
    keys[2] = next_key::<0x02>(keys[1]);
    keys[3] = next_key::<0x04>(keys[2]);
    keys[4] = next_key::<0x08>(keys[3]);
    keys[5] = next_key::<0x10>(keys[4]);
    keys[6] = next_key::<0x20>(keys[5]);
    keys[7] = next_key::<0x40>(keys[6]);
    keys[8] = next_key::<0x80>(keys[7]);
    keys[9] = next_key::<0x1b>(keys[8]);
    keys[10] = next_key::<0x36>(keys[9]);
    keys
}

#[inline]
#[target_feature(enable = "aes")]
fn next_key<const ROUND_CONSTANT: i32>(key: __m128i) -> __m128i {
    let substituted = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<ROUND_CONSTANT>(key));
    // Word i of the next key is the XOR of words 0..=i of this one and the substituted word.
    let key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    let key = _mm_xor_si128(key, _mm_slli_si128::<8>(key));
    _mm_xor_si128(key, substituted)
}

#[cfg(test)]
mod tests {
    /// The example of FIPS 197, appendix A.1: its first and last expanded round keys.
    #[test]
    fn expansion_equals_the_example_of_the_standard() {
        if !is_x86_feature_detected!("aes") {
            return;
        }
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        // SAFETY: the check above found that the processor has AES-NI.
        let keys = unsafe { super::round_keys(&key) };
        let bytes = |round: usize| {
            // SAFETY: both types are 16 plain bytes.
            unsafe { std::mem::transmute::<_, [u8; 16]>(keys[round]) }
        };
        assert_eq!(bytes(1), 0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605_u128.to_be_bytes());
        assert_eq!(bytes(10), 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes());
    }
}
