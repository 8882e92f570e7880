//! The fields: numbers modulo a small prime q, one symbol each, and several symbols in a byte.
//!
//! A byte holds as many symbols as fit, p of them, as the digits of a number in base q, the first
//! one lowest: `byte = Σ_i symbol_i · q^i < q^p ≤ 256`. A byte of q^p or more holds no symbols.

use privet_core::{Error, Result};

/// The orders of the fields: primes.
pub const FIELDS: [u32; 5] = [3, 5, 7, 11, 13];

/// The fewest servers. Two servers have a scheme of their own.
pub const FEWEST_SERVERS: u32 = 3;

/// At most so many symbols in a byte: with q = 3.
pub(super) const MOST_PER_BYTE: usize = 5;

/// The smallest field for a number of servers: each of them needs an element of its own. `None` if
/// there are fewer than three or more than thirteen.
pub fn least_field(servers: u32) -> Option<u32> {
    FIELDS.into_iter().find(|order| (FEWEST_SERVERS..=*order).contains(&servers))
}

/// The field of q elements, q one of [`FIELDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    order: u8,
    per_byte: u8,
}

impl Field {
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there is no such field here.
    pub(super) fn new(order: u32) -> Result<Self> {
        if !FIELDS.contains(&order) {
            return Err(Error::api_misuse(format!(
                "there is no field of {order} elements here; there are fields of {FIELDS:?}"
            )));
        }
        Ok(Self { order: order as u8, per_byte: 256u32.ilog(order) as u8 })
    }

    /// How many elements it has, q.
    pub(super) fn order(self) -> u32 {
        self.order.into()
    }

    /// How many symbols are in a byte, p.
    pub(super) fn per_byte(self) -> usize {
        self.per_byte.into()
    }

    /// The number of bytes that hold symbols: those below q^p.
    pub(super) fn packings(self) -> u32 {
        self.order().pow(self.per_byte.into())
    }

    pub(super) fn product(self, one: u32, other: u32) -> u32 {
        one * other % self.order()
    }

    /// `one − other`.
    pub(super) fn difference(self, one: u32, other: u32) -> u32 {
        (one + self.order() - other) % self.order()
    }

    /// The inverse of anything but zero, by Fermat's little theorem.
    pub(super) fn inverse(self, of: u32) -> u32 {
        (2..self.order()).fold(1, |power, _| self.product(power, of))
    }

    /// Puts symbols into bytes. The last byte is padded with zeros.
    pub(super) fn pack(self, symbols: &[u8], bytes: &mut [u8]) {
        debug_assert_eq!(symbols.len().div_ceil(self.per_byte()), bytes.len());
        for (byte, symbols) in bytes.iter_mut().zip(symbols.chunks(self.per_byte())) {
            *byte = symbols.iter().rev().fold(0, |number, symbol| number * self.order + symbol);
        }
    }

    /// The symbols of every byte: the first p of each row. They mean nothing for a byte of q^p or
    /// more.
    pub(super) fn unpacked(self) -> Vec<[u8; MOST_PER_BYTE]> {
        (0..=255u8)
            .map(|mut byte| {
                std::array::from_fn(|_| {
                    let symbol = byte % self.order;
                    byte /= self.order;
                    symbol
                })
            })
            .collect()
    }
}
