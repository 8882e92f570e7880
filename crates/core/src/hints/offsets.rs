//! Rows of small numbers, packed into bytes: the offsets of a query, or the records that it names.
//!
//! Each number takes the same number of bits, one after the other, from the lowest bit of each byte
//! on. The last byte is padded with zeros.

use crate::{Error, Result};

/// How many bytes `count` numbers of `bits` bits take.
pub fn packed_len(count: usize, bits: u32) -> usize {
    (count as u64 * u64::from(bits)).div_ceil(8) as usize
}

/// Appends `numbers`, of `bits` bits each, at most 32, to `out`. Higher bits than those must be
/// zero.
pub fn pack<N: Copy + Into<u32>>(numbers: &[N], bits: u32, out: &mut Vec<u8>) {
    let (mut buffer, mut filled) = (0u64, 0);
    for number in numbers {
        buffer |= u64::from((*number).into()) << filled;
        filled += bits;
        if filled >= 32 {
            out.extend((buffer as u32).to_le_bytes());
            buffer >>= 32;
            filled -= 32;
        }
    }
    let last = buffer.to_le_bytes();
    out.extend_from_slice(&last[..filled.div_ceil(8) as usize]);
}

/// The `count` numbers of `bits` bits, at most as many as the type has, that `bytes` holds.
///
/// # Errors
/// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) unless it holds exactly these numbers,
/// padded with zeros.
pub fn unpack<N: TryFrom<u32> + Default>(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<N>> {
    let expected = packed_len(count, bits);
    if bytes.len() != expected {
        return Err(Error::invalid_message(format!(
            "{count} numbers of {bits} bits take {expected} bytes, not {}",
            bytes.len()
        )));
    }
    if !padding_is_zero(bytes, count as u64 * u64::from(bits)) {
        return Err(Error::invalid_message("a query's numbers must be padded with zeros"));
    }
    // Eight bytes from the byte in which a number begins hold all of it: at most 7 bits before it,
    // and its 32 bits. The last numbers need bytes beyond the end.
    let mut padded = Vec::with_capacity(bytes.len() + 8);
    padded.extend_from_slice(bytes);
    padded.extend([0; 8]);
    let mask = (1u64 << bits) - 1;
    let number = |place: usize| {
        let bit = place as u64 * u64::from(bits);
        let eight = *padded[(bit / 8) as usize..].first_chunk().unwrap_or(&[0; 8]);
        // Never too large for the type, which has as many bits.
        N::try_from((u64::from_le_bytes(eight) >> (bit % 8) & mask) as u32).unwrap_or_default()
    };
    Ok((0..count).map(number).collect())
}

/// Whether the bits of `bytes` from `bits` on, all in its last byte, are zero.
pub fn padding_is_zero(bytes: &[u8], bits: u64) -> bool {
    bits.is_multiple_of(8) || bytes.last().is_none_or(|last| last >> (bits % 8) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(numbers in prop::collection::vec(any::<u16>(), 0..50), bits in 0u32..=16) {
            let mask = ((1u32 << bits) - 1) as u16;
            let numbers: Vec<u16> = numbers.iter().map(|number| number & mask).collect();
            let mut bytes = vec![7];
            pack(&numbers, bits, &mut bytes);
            prop_assert_eq!(bytes.len(), 1 + packed_len(numbers.len(), bits));
            prop_assert_eq!(unpack::<u16>(&bytes[1..], numbers.len(), bits).unwrap(), numbers);
        }

        #[test]
        fn larger_numbers_come_back_too(numbers in prop::collection::vec(any::<u32>(), 0..50), bits in 0u32..=32) {
            let mask = ((1u64 << bits) - 1) as u32;
            let numbers: Vec<u32> = numbers.iter().map(|number| number & mask).collect();
            let mut bytes = Vec::new();
            pack(&numbers, bits, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_len(numbers.len(), bits));
            prop_assert_eq!(unpack::<u32>(&bytes, numbers.len(), bits).unwrap(), numbers);
        }

        #[test]
        fn whatever_is_accepted_is_what_would_be_packed(bytes in prop::collection::vec(any::<u8>(), 0..9), count in 0usize..12, bits in 0u32..=16) {
            if let Ok(numbers) = unpack::<u16>(&bytes, count, bits) {
                let mut again = Vec::new();
                pack(&numbers, bits, &mut again);
                prop_assert_eq!(again, bytes);
            } else {
                let whole = (count as u64 * u64::from(bits)).is_multiple_of(8);
                prop_assert!(bytes.len() != packed_len(count, bits) || !whole);
            }
        }
    }

    #[test]
    fn the_lowest_bits_come_first() {
        let mut bytes = Vec::new();
        pack(&[0b001u16, 0b110, 0b111], 3, &mut bytes);
        assert_eq!(bytes, [0b1111_0001, 0b1]);
        assert!(unpack::<u16>(&[0b1111_0001, 0b11], 3, 3).is_err());
        assert!(unpack::<u16>(&[0b1111_0001], 3, 3).is_err());
    }
}
