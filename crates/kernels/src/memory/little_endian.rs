//! Words as little-endian bytes, as in files and messages. Makes no copy if the machine is
//! little-endian.

use std::borrow::Cow;

/// `words` as little-endian bytes, four for each.
#[cfg(target_endian = "little")]
pub fn little_endian_bytes(words: &[u32]) -> Cow<'_, [u8]> {
    // SAFETY: the pointer and length describe exactly the memory of `words`, borrowed for as long;
    // any byte is a valid `u8`, and `u8` needs no alignment.
    let bytes =
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
    Cow::Borrowed(bytes)
}

/// `words` as little-endian bytes, four for each.
#[cfg(target_endian = "big")]
pub fn little_endian_bytes(words: &[u32]) -> Cow<'_, [u8]> {
    Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::little_endian_bytes;

    #[test]
    fn words_become_their_little_endian_bytes() {
        let words = [0x0403_0201, u32::MAX, 0x8000_0000];
        assert_eq!(*little_endian_bytes(&words), [1, 2, 3, 4, 255, 255, 255, 255, 0, 0, 0, 128]);
        assert!(little_endian_bytes(&[]).is_empty());
    }
}
