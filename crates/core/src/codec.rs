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
