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
    let mut rest = bytes;
    let number = take(MAX_RECORD_LEN, || rest.split_off_first().copied())?;
    Ok((number as u64, rest))
}

/// The number whose bytes `next` gives, at most `most`. The error says what is wrong with it.
pub(crate) fn take(
    most: impl Into<u128>,
    mut next: impl FnMut() -> Option<u8>,
) -> Result<u128, &'static str> {
    let (most, mut number) = (most.into(), 0u128);
    for shift in (0..u128::BITS).step_by(7) {
        let byte = next().ok_or("a number ends too early")?;
        let bits = u128::from(byte & 0x7f);
        if bits.leading_zeros() < shift {
            break;
        }
        number |= bits << shift;
        match byte {
            _ if number > most => break,
            0 if shift > 0 => return Err("a number has needless bytes"),
            ..0x80 => return Ok(number),
            _ => {}
        }
    }
    Err("a number is impossible")
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
                assert_eq!(read(&bytes[..cut]), Err("a number ends too early"));
            }
        }
        for (bytes, why) in [
            (&[0x80, 0][..], "a number has needless bytes"),
            (&[0x81, 0x80, 0x80, 0x08], "a number is impossible"),
            (&[0x80, 0x80, 0x80, 0x80], "a number ends too early"),
            (&[0xff; 19], "a number is impossible"),
        ] {
            assert_eq!(read(bytes), Err(why));
        }
    }
}
