//! What the steps of a scheme cost, in counted operations.
//!
//! A room counts what its code does: bytes that it reads, blocks of AES, products. How long an
//! operation takes is for the machine to say, by yardsticks. So no time stands in the rooms, and
//! costs can be computed for a machine that is not at hand.
//!
//! Counts follow from the scheme's parameters. Each has a factor, by which the code takes longer
//! than the operations that it is counted in. Those of the product stand in `factors.rs`, which a
//! program rewrites from measurements.

use std::ops::{Add, Mul};

/// What the steps of a scheme on one table cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// A server, once for each version of the table.
    pub setup: Operations,
    /// A server, for each client that asks it for hints.
    pub hints: Operations,
    /// A client, before its first lookup, and again for each generation of hints.
    pub prepare: Operations,
    /// A client, before a query leaves.
    pub query: Operations,
    /// Each server, for a query that comes alone.
    pub answer: Operations,
    /// Each server, for one of eight queries that come together.
    pub answer_of_eight: Operations,
    /// A client, from the answers to the record.
    pub recover: Operations,
    /// Memory of each server beyond the table's own bytes.
    pub server_bytes: u64,
    /// Memory of each thread of a server while it computes what is not the table's own.
    pub thread_bytes: u64,
}

/// Operations of one step. First comes what is copied. Then memory is read while arithmetic is
/// done, so the two together take as long as the slower of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operations {
    /// What is read in sequence.
    pub pass: Pass,
    /// What is copied into memory that is asked for.
    pub copied: f64,
    /// What is read from random places.
    pub random: RandomReads,
    /// Arithmetic.
    pub arithmetic: Arithmetic,
}

/// Bytes read in sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pass {
    /// How many are read.
    pub bytes: f64,
    /// How many there are. So many may fit into a cache.
    pub of: f64,
}

/// Reads from random places.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RandomReads {
    /// How many.
    pub count: f64,
    /// Bytes of each.
    pub len: f64,
    /// Bytes of what they are read from.
    pub of: f64,
}

/// How many operations of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arithmetic {
    /// Blocks of AES-128.
    pub aes_blocks: f64,
    /// Products of a byte and a 32-bit word, added up.
    pub byte_products: f64,
    /// Bytes XORed onto others that are in a cache.
    pub xored: f64,
    /// Bytes hashed by BLAKE3 in one long piece.
    pub hashed: f64,
    /// Hashes of 64 bytes by BLAKE3, many at once.
    pub short_hashes: f64,
    /// Points of BLS12-381 multiplied by a number.
    pub point_products: f64,
    /// Steps of a multiplication and an addition, of which each waits for the one before.
    pub steps: f64,
}

impl Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self.arithmetic, other.arithmetic);
        Self {
            pass: Pass {
                bytes: self.pass.bytes + other.pass.bytes,
                of: self.pass.of.max(other.pass.of),
            },
            copied: self.copied + other.copied,
            random: RandomReads {
                count: self.random.count + other.random.count,
                len: self.random.len.max(other.random.len),
                of: self.random.of.max(other.random.of),
            },
            arithmetic: Arithmetic {
                aes_blocks: a.aes_blocks + b.aes_blocks,
                byte_products: a.byte_products + b.byte_products,
                xored: a.xored + b.xored,
                hashed: a.hashed + b.hashed,
                short_hashes: a.short_hashes + b.short_hashes,
                point_products: a.point_products + b.point_products,
                steps: a.steps + b.steps,
            },
        }
    }
}

/// The same, repeated that often, or by code slower than the yardstick by that factor.
impl Mul<Operations> for f64 {
    type Output = Operations;

    fn mul(self, once: Operations) -> Operations {
        let of = once.arithmetic;
        Operations {
            pass: Pass { bytes: self * once.pass.bytes, ..once.pass },
            copied: self * once.copied,
            random: RandomReads { count: self * once.random.count, ..once.random },
            arithmetic: Arithmetic {
                aes_blocks: self * of.aes_blocks,
                byte_products: self * of.byte_products,
                xored: self * of.xored,
                hashed: self * of.hashed,
                short_hashes: self * of.short_hashes,
                point_products: self * of.point_products,
                steps: self * of.steps,
            },
        }
    }
}

/// One pass over `bytes` bytes.
pub fn pass(bytes: u64) -> Operations {
    let bytes = bytes as f64;
    Operations { pass: Pass { bytes, of: bytes }, ..Operations::default() }
}

/// A copy of `bytes` bytes into memory that is asked for.
pub fn copied(bytes: u64) -> Operations {
    const HUGE_PAGE: u64 = 2 << 20;
    let copied = Operations { copied: bytes as f64, ..Operations::default() };
    // The system finds smaller memory in small pages, one by one.
    if bytes < HUGE_PAGE { copied + 0.6 * steps(bytes) } else { copied }
}

/// What a client does to start: parameters, keys, memory.
pub fn started() -> Operations {
    steps(8_000)
}

/// `count` reads of `len` bytes from random places of `of` bytes.
pub fn random_reads(count: u64, len: u64, of: u64) -> Operations {
    let random = RandomReads { count: count as f64, len: len as f64, of: of as f64 };
    Operations { random, ..Operations::default() }
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $kind:ident;)*) => {
        $(
            $(#[$doc])*
            pub fn $kind(count: u64) -> Operations {
                let arithmetic = Arithmetic { $kind: count as f64, ..Arithmetic::default() };
                Operations { arithmetic, ..Operations::default() }
            }
        )*
    };
}

arithmetic! {
    /// So many [blocks](Arithmetic::aes_blocks).
    aes_blocks;
    /// So many [products](Arithmetic::byte_products).
    byte_products;
    /// So many [bytes](Arithmetic::xored).
    xored;
    /// So many [bytes](Arithmetic::hashed).
    hashed;
    /// So many [hashes](Arithmetic::short_hashes).
    short_hashes;
    /// So many [products](Arithmetic::point_products).
    #[cfg_attr(target_family = "wasm", allow(dead_code))]
    point_products;
    /// So many [steps](Arithmetic::steps).
    steps;
}
