//! Packed bytes taken apart for sums, with one symbol in each byte.
//!
//! Plane j holds symbol j of each byte. In a plane, the sum of two symbols is the sum of their
//! bytes, minus q if the result is not negative. As unsigned bytes, this is the smaller of the two
//! numbers. So it takes three instructions for as many symbols as a register has bytes. Symbols are
//! packed again only when they leave the cache. The compiler turns this into vector code, which is
//! several times faster than a table of the sums of packed bytes.

use crate::finite_differences::many_servers::field::Field;

/// How many bytes of each plane are added up at a time, so that they stay in the processor's
/// first-level cache.
const TILE: usize = 1 << 9;

/// Some packed bytes, taken apart.
pub(in crate::finite_differences::many_servers) struct Planes {
    field: Field,
    /// Bytes of a plane.
    len: usize,
    symbols: Vec<u8>,
}

impl Planes {
    /// Room for so many packed bytes.
    pub(in crate::finite_differences::many_servers) fn new(field: Field, len: usize) -> Self {
        Self { field, len, symbols: vec![0; len * field.per_byte()] }
    }

    /// Takes `bytes` apart, to the places from `at` on.
    pub(in crate::finite_differences::many_servers) fn load(&mut self, at: usize, bytes: &[u8]) {
        match self.field.order() {
            3 => self.load_in::<3>(at, bytes),
            5 => self.load_in::<5>(at, bytes),
            7 => self.load_in::<7>(at, bytes),
            11 => self.load_in::<11>(at, bytes),
            _ => self.load_in::<13>(at, bytes),
        }
    }

    fn load_in<const Q: u8>(&mut self, at: usize, bytes: &[u8]) {
        let mut left = [0; TILE];
        for (number, bytes) in bytes.chunks(TILE).enumerate() {
            let left = &mut left[..bytes.len()];
            left.copy_from_slice(bytes);
            for plane in self.symbols.chunks_exact_mut(self.len) {
                let symbols = &mut plane[at + number * TILE..][..bytes.len()];
                for (symbol, left) in symbols.iter_mut().zip(left.iter_mut()) {
                    let quotient = *left / Q;
                    *symbol = *left - quotient * Q;
                    *left = quotient;
                }
            }
        }
    }

    /// Puts together the bytes at the places from `at` on.
    pub(in crate::finite_differences::many_servers) fn store(&self, at: usize, bytes: &mut [u8]) {
        match self.field.order() {
            3 => self.store_in::<3, 5>(at, bytes),
            5 => self.store_in::<5, 3>(at, bytes),
            7 => self.store_in::<7, 2>(at, bytes),
            11 => self.store_in::<11, 2>(at, bytes),
            _ => self.store_in::<13, 2>(at, bytes),
        }
    }

    fn store_in<const Q: u8, const PER_BYTE: usize>(&self, at: usize, bytes: &mut [u8]) {
        let planes: [&[u8]; PER_BYTE] =
            std::array::from_fn(|plane| &self.symbols[plane * self.len + at..][..bytes.len()]);
        for (place, byte) in bytes.iter_mut().enumerate() {
            let symbols = planes.iter().rev().map(|plane| plane[place]);
            *byte = symbols.fold(0, |number, symbol| number * Q + symbol);
        }
    }

    /// Sets `len` bytes from `at` on to zero.
    pub(in crate::finite_differences::many_servers) fn clear(&mut self, at: usize, len: usize) {
        for plane in self.symbols.chunks_exact_mut(self.len) {
            plane[at..][..len].fill(0);
        }
    }

    /// Repeats the first `len` of `total` bytes.
    pub(in crate::finite_differences::many_servers) fn repeat(
        &mut self,
        at: usize,
        len: usize,
        total: usize,
    ) {
        for plane in self.symbols.chunks_exact_mut(self.len) {
            let (first, others) = plane[at..][..total].split_at_mut(len);
            others.chunks_exact_mut(len).for_each(|other| other.copy_from_slice(first));
        }
    }

    /// From `at` on there are q blocks of `len` bytes, and the first two are c₀ and c₁. Overwrites
    /// them with c₀, c₀ + c₁, c₀ + 2·c₁, and so on.
    pub(in crate::finite_differences::many_servers) fn add_up(&mut self, at: usize, len: usize) {
        let order = self.field.order() as usize;
        for plane in self.symbols.chunks_exact_mut(self.len) {
            add_up(order as u8, &mut plane[at..][..order * len], len);
        }
    }
}

fn add_up(order: u8, blocks: &mut [u8], len: usize) {
    let sum = |one: u8, other: u8| {
        let plain = one + other;
        plain.min(plain.wrapping_sub(order))
    };
    let mut addends = [0; TILE];
    for start in (0..len).step_by(TILE) {
        let tile = TILE.min(len - start);
        let mut blocks = blocks.chunks_exact_mut(len).map(|block| &mut block[start..][..tile]);
        // No field has fewer elements than three.
        let (Some(without), Some(first), Some(mut last)) =
            (blocks.next(), blocks.next(), blocks.next())
        else {
            return;
        };
        let addends = &mut addends[..tile];
        let firsts = first.iter_mut().zip(&*without);
        for ((first, without), (second, addend)) in firsts.zip(last.iter_mut().zip(&mut *addends)) {
            *addend = *first;
            *first = sum(*without, *addend);
            *second = sum(*first, *addend);
        }
        for next in blocks {
            for ((next, last), addend) in next.iter_mut().zip(&*last).zip(&*addends) {
                *next = sum(*last, *addend);
            }
            last = next;
        }
    }
}
