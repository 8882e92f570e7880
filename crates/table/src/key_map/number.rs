//! Variable-length numbers: seven bits to a byte, the lowest first, the top bit set on all bytes
//! but the last, and no needless bytes.

use privet_core::table::MAX_RECORD_LEN;

/// The bytes that `number` takes.
pub(super) fn len(number: u64) -> usize {
    number.checked_ilog2().map_or(1, |bits| bits as usize / 7 + 1)
}

/// Appends `number`.
pub(crate) fn write(out: &mut Vec<u8>, number: impl Into<u128>) {
    let mut number = number.into();
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number at the start of `bytes`, at most [`MAX_RECORD_LEN`], and what follows it. The error
/// says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let mut number = 0u64;
    for (position, &byte) in bytes.iter().take(4).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if number > MAX_RECORD_LEN {
            return Err("a length is impossible");
        }
        if byte & 0x80 == 0 {
            let is_needless = byte == 0 && position > 0;
            return if is_needless {
                Err("a length has needless bytes")
            } else {
                Ok((number, &bytes[position + 1..]))
            };
        }
    }
    Err(if bytes.len() < 4 { "a length is cut off" } else { "a length is impossible" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_take_what_was_said() {
        for number in [0, 1, 127, 128, 16_383, 16_384, (1 << 21) - 1, 1 << 21, MAX_RECORD_LEN] {
            let mut bytes = Vec::new();
            write(&mut bytes, number);
            assert_eq!(bytes.len(), len(number));
            bytes.push(7);
            assert_eq!(read(&bytes), Ok((number, &[7][..])));
            for cut in 0..bytes.len() - 1 {
                assert_eq!(read(&bytes[..cut]), Err("a length is cut off"));
            }
        }
        for (bytes, why) in [
            (&[0x80, 0][..], "a length has needless bytes"),
            (&[0x81, 0x80, 0x80, 0x08], "a length is impossible"),
            (&[0x80, 0x80, 0x80, 0x80], "a length is impossible"),
        ] {
            assert_eq!(read(bytes), Err(why));
        }
    }
}
