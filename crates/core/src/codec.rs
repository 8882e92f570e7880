//! Little-endian encodings with exact sizes, and a reader that never allocates memory because a
//! peer claims a size.

use crate::{Error, Result};

/// Reads fields from bytes that came from outside. Every method fails with
/// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) rather than read beyond the end.
pub struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`. `what` names the thing that is read, for errors: "a SimplePIR query".
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes, len: bytes.len() }
    }

    /// All of `bytes`, which are `len`.
    pub fn all(what: &'static str, bytes: &'a [u8], len: usize) -> Result<&'a [u8]> {
        let mut reader = Self::new(what, bytes);
        let all = reader.bytes(len)?;
        reader.finish()?;
        Ok(all)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(count) else {
            return Err(Error::invalid_message(format!(
                "{} ends too early: {count} more bytes expected after byte {}, {} are there",
                self.what,
                self.len - self.rest.len(),
                self.rest.len()
            )));
        };
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes as a little-endian number.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// The next four bytes as a little-endian number.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes as a little-endian number.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The next `count` little-endian 32-bit words. Allocates only after the bytes are known to be
    /// there.
    pub fn words(&mut self, count: usize) -> Result<Vec<u32>> {
        let bytes = count.checked_mul(4).ok_or_else(|| {
            Error::invalid_message(format!("{} announces too many words", self.what))
        })?;
        Ok(words_from_bytes(self.bytes(bytes)?))
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Checks that nothing is left.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::invalid_message(format!(
            "{} is too long: {} bytes expected, {} received",
            self.what,
            self.len - self.rest.len(),
            self.len
        )))
    }
}

/// Bytes as little-endian words. Ignores a trailing piece that is shorter than a word: callers
/// check lengths first.
pub fn words_from_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect()
}

/// Numbers of at most 56 bits, one directly after another: a string of bits, the lowest bit of the
/// first number first. The last byte is filled up with zeros.
#[derive(Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not make eight bytes yet.
    rest: u64,
    rest_bits: u32,
}

impl BitWriter {
    /// An empty string with room for `bytes` bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Appends numbers of `bits` bits each, at most 56.
    pub fn push(&mut self, numbers: impl IntoIterator<Item = u64>, bits: u32) {
        debug_assert!(bits <= 56, "a reader finds no more in eight bytes");
        let (mut rest, mut rest_bits) = (self.rest, self.rest_bits);
        for number in numbers {
            let number = number & ((1 << bits) - 1);
            rest |= number << rest_bits;
            rest_bits += bits;
            if rest_bits >= 64 {
                self.bytes.extend_from_slice(&rest.to_le_bytes());
                rest_bits -= 64;
                rest = number >> (bits - rest_bits);
            }
        }
        (self.rest, self.rest_bits) = (rest, rest_bits);
    }

    /// The bytes.
    pub fn finish(mut self) -> Vec<u8> {
        let last = self.rest_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.rest.to_le_bytes()[..last]);
        self.bytes
    }
}

/// Reads what [`BitWriter`] wrote.
pub struct BitReader<'a> {
    what: &'static str,
    bytes: &'a [u8],
    /// In bits.
    place: usize,
}

impl<'a> BitReader<'a> {
    /// A reader of a string of `bits` bits. `what` names the thing that is read, for errors.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if there are more or fewer bytes
    /// than that takes, or a bit after the last is not zero.
    pub fn new(what: &'static str, bytes: &'a [u8], bits: usize) -> Result<Self> {
        let mut reader = Reader::new(what, bytes);
        let bytes = reader.bytes(bits.div_ceil(8))?;
        reader.finish()?;
        let spare = 8 * bytes.len() - bits;
        let last = bytes.last().copied().unwrap_or(0);
        if last.checked_shr(8 - spare as u32).unwrap_or(0) != 0 {
            return Err(Error::invalid_message(format!("{what} has bits that mean nothing")));
        }
        Ok(Self { what, bytes, place: 0 })
    }

    /// The next `count` numbers of `bits` bits each, at most 56.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) if there are too few bytes.
    pub fn numbers(
        &mut self,
        count: usize,
        bits: u32,
    ) -> Result<impl ExactSizeIterator<Item = u64> + use<'a>> {
        let (bytes, first) = (self.bytes, self.place);
        let end = count.checked_mul(bits as usize).and_then(|bits| bits.checked_add(first));
        let end = end.filter(|end| end.div_ceil(8) <= bytes.len());
        self.place =
            end.ok_or_else(|| Error::invalid_message(format!("{} ends too early", self.what)))?;
        Ok((0..count).map(move |i| number_at(bytes, first + i * bits as usize, bits)))
    }
}

/// The number of `bits` bits that begins at bit `place`.
#[inline]
fn number_at(bytes: &[u8], place: usize, bits: u32) -> u64 {
    let rest = &bytes[place / 8..];
    let word = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    word >> (place % 8) & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blame;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_of_bits_are_read_back(
            numbers in prop::collection::vec((any::<u64>(), 1u32..=56), 0..40),
        ) {
            let mut writer = BitWriter::with_capacity(0);
            let mut expected = Vec::new();
            for (number, bits) in &numbers {
                writer.push([*number], *bits);
                expected.extend((0..*bits).map(|bit| number >> bit & 1 == 1));
            }
            let bytes = writer.finish();
            prop_assert_eq!(bytes.len(), expected.len().div_ceil(8));
            for (place, bit) in expected.iter().enumerate() {
                prop_assert_eq!(bytes[place / 8] >> (place % 8) & 1 == 1, *bit);
            }
            let mut reader = BitReader::new("numbers", &bytes, expected.len()).unwrap();
            for (number, bits) in &numbers {
                let mut read = reader.numbers(1, *bits).unwrap();
                prop_assert_eq!(read.next(), Some(number & ((1 << bits) - 1)));
            }
            let refused = |bytes: &[u8]| {
                let refusal = BitReader::new("numbers", bytes, expected.len()).err().unwrap();
                assert_eq!(refusal.blame(), Blame::InvalidMessage);
            };
            refused(&[&bytes[..], &[0]].concat());
            if let [head @ .., last] = &bytes[..] {
                refused(head);
                for spare in expected.len() % 8..8 {
                    if expected.len() % 8 > 0 {
                        refused(&[head, &[last | 1 << spare]].concat());
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_of_one_length_are_read_together() {
        for (bits, count) in [(1, 70), (10, 9), (26, 5), (45, 20), (56, 3), (7, 0)] {
            let numbers: Vec<u64> =
                (0..count).map(|i| (i * 0x9e37_79b9 + 1) % (1 << bits)).collect();
            let mut writer = BitWriter::with_capacity(0);
            writer.push([5], bits.max(3));
            writer.push(numbers.iter().copied(), bits.max(3));
            let bytes = writer.finish();
            let mut reader =
                BitReader::new("numbers", &bytes, (1 + numbers.len()) * bits.max(3) as usize)
                    .unwrap();
            assert!(reader.numbers(1, bits.max(3)).unwrap().eq([5]));
            assert!(reader.numbers(numbers.len(), bits.max(3)).unwrap().eq(numbers));
        }
    }

    #[test]
    fn what_lies_beyond_a_string_of_bits_is_an_error() {
        let mut reader = BitReader::new("numbers", &[1, 2], 16).unwrap();
        assert!(reader.numbers(1, 12).unwrap().eq([0x201]));
        for (count, bits) in [(1, 5), (5, 1), (usize::MAX, 2), (usize::MAX, 1)] {
            let refusal = reader.numbers(count, bits).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage);
        }
    }
}
