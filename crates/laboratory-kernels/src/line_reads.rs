//! Reads a few bytes, or bits, of each of many scattered cache lines. A server does this if its
//! answer is a part of a table around the place that a query names.
//!
//! Reading one byte from memory costs as much as reading its line, so such an answer is put
//! together line by line. All queries read the same pattern at different places: for a query that
//! names `first`, position `p` of the pattern is position `first ^ p` of the table. The number of
//! the table's lines is a power of two, so this position is always inside. The pattern can be
//! prepared once: a list of *steps*, one for each line. Each step has a *class* that says what to
//! take from the line. Lines are prefetched some steps ahead, as in
//! [`gather`](privet_kernels::gather).
//!
//! # Queries together
//!
//! With AVX-512, up to 32 queries of one call go through the steps side by side. Measured on Zen 4
//! in a gigabyte, a line takes 7.2 ns for one query, 6.5 ns for each of four and 5.8 ns for each
//! of 32. So a call with several queries is a little faster than several calls, but that is not
//! worth a wait.
//!
//! Addresses follow `first`, which the server is meant to know.

use crate::on_arm;
use privet_kernels::{Kernels, PositionOutOfRange};

#[cfg(target_arch = "x86_64")]
mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Bits of a line.
pub(crate) const LINE_BITS: usize = 8 * LINE;

/// The most queries that are answered together.
const MOST_TOGETHER: usize = 32;

/// The number of bits of a stored step that hold its class.
const CLASS_BITS: u32 = 8;

/// One line of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStep {
    /// The line's number in the pattern, below 2⁵⁶. For a query, the line in the table is this
    /// number XOR the number of the query's line.
    pub difference: u64,
    /// The number of the pattern's class that says what to take.
    pub class: u8,
}

/// The bytes to take from a line: at most 64, each from any place in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct LineBytes {
    // Beyond `len`, anything below 64.
    order: [u8; LINE],
    len: usize,
}

impl LineBytes {
    /// The bytes at `places` of the pattern's line, in this order.
    ///
    /// # Panics
    ///
    /// If there are more than 64 places or one is not below 64.
    pub fn new(places: &[u8]) -> LineBytes {
        assert!(places.len() <= LINE, "no more bytes are taken from a line than it has");
        let inside = places.iter().all(|&place| usize::from(place) < LINE);
        assert!(inside, "a line has 64 places");
        let mut order = [0; LINE];
        order[..places.len()].copy_from_slice(places);
        LineBytes { order, len: places.len() }
    }

    /// The places, padded with arbitrary ones.
    pub(crate) fn order(&self) -> &[u8; LINE] {
        &self.order
    }
}

/// The bits to take from a line of 512 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineBits {
    words: [u64; 8],
    len: usize,
}

impl LineBits {
    /// The bits of the pattern's line whose bit is set in `words`, in ascending order; bit `i` is
    /// bit `i % 64` of word `i / 64`.
    pub fn new(words: [u64; 8]) -> LineBits {
        let len = words.iter().map(|word| word.count_ones() as usize).sum();
        LineBits { words, len }
    }

    pub(crate) fn words(&self) -> &[u64; 8] {
        &self.words
    }
}

/// The description of a class: [`LineBytes`] or [`LineBits`].
pub trait LineClass: sealed::Sealed {
    /// How many bytes, or bits, are taken.
    fn count(&self) -> usize;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::LineBytes {}
    impl Sealed for super::LineBits {}
}

impl LineClass for LineBytes {
    fn count(&self) -> usize {
        self.len
    }
}

impl LineClass for LineBits {
    fn count(&self) -> usize {
        self.len
    }
}

/// A pattern of reads, prepared for many queries.
#[derive(Clone, Debug)]
pub struct LineReads<C> {
    /// Each step: its difference in the upper bits, its class in the lower ones. That is half the
    /// memory of a [`LineStep`], and every query reads all of it.
    steps: Vec<u64>,
    classes: Vec<C>,
    /// The OR of all differences: if this is below a power of two of lines, so are all differences.
    reach: u64,
    /// Bytes, or bits, of an answer.
    count: usize,
}

impl<C: LineClass> LineReads<C> {
    /// The pattern that takes what the class of each step says from its line, in order.
    ///
    /// # Panics
    ///
    /// If a difference is 2⁵⁶ or more, or there are too few classes for a step.
    pub fn new(steps: impl IntoIterator<Item = LineStep>, classes: Vec<C>) -> LineReads<C> {
        let mut reads = LineReads { steps: Vec::new(), classes, reach: 0, count: 0 };
        for LineStep { difference, class } in steps {
            assert!(difference < 1 << (64 - CLASS_BITS), "differences are below 2^56");
            let taken = reads.classes.get(usize::from(class)).map(LineClass::count);
            reads.count += taken.expect("each step's class is among the classes");
            reads.reach |= difference;
            reads.steps.push(difference << CLASS_BITS | u64::from(class));
        }
        reads
    }

    /// How many lines a query reads.
    pub fn lines(&self) -> usize {
        self.steps.len()
    }

    /// How many bytes, or bits, of the table are in an answer.
    pub fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn steps(&self) -> &[u64] {
        &self.steps
    }

    pub(crate) fn classes(&self) -> &[C] {
        &self.classes
    }

    /// Checks shapes, and returns the lines of a table in which all steps of all queries stay.
    /// `per_line` positions make a line, and `answer_len` bytes an answer.
    fn check<'a>(
        &self,
        table: &'a [u8],
        queries: &[LineQuery<'_>],
        per_line: u64,
        answer_len: usize,
    ) -> Result<&'a [[u8; LINE]], PositionOutOfRange> {
        let (lines, rest) = table.as_chunks::<LINE>();
        assert!(
            lines.len().is_power_of_two() && rest.is_empty(),
            "a table has a power of two of lines"
        );
        assert!(self.reach < lines.len() as u64, "the pattern is no wider than the table");
        let records = lines.len() as u64 * per_line;
        for query in queries {
            assert_eq!(query.out.len(), answer_len, "there is room for just the answer");
            if query.first >= records {
                return Err(PositionOutOfRange { position: query.first, records });
            }
        }
        Ok(lines)
    }
}

/// The line of a step, in a table and for a query that names line `first`.
#[inline(always)]
pub(crate) fn line_of(step: u64, first: u64) -> usize {
    ((step >> CLASS_BITS) ^ first) as usize
}

/// The class of a step.
#[inline(always)]
pub(crate) fn class_of(step: u64) -> usize {
    (step & ((1 << CLASS_BITS) - 1)) as usize
}

/// One query, and the place for its answer.
#[derive(Debug)]
pub struct LineQuery<'a> {
    /// The position in the table that the query names: in bytes, or in bits for a table of bits.
    /// Byte `i` of the pattern is byte `first ^ i` of the table.
    pub first: u64,
    /// Overwritten with the answer.
    pub out: &'a mut [u8],
}

impl LineReads<LineBytes> {
    /// Answers queries from a table of bytes. Several in one call may be faster than as many calls;
    /// see the [module](self).
    ///
    /// # Errors
    ///
    /// [`PositionOutOfRange`] for the first query that names a byte outside the table; the answers
    /// are then unchanged.
    ///
    /// # Panics
    ///
    /// If the table's lines of 64 bytes are not a power of two or are fewer than the pattern's, or
    /// if an answer does not have [`count`](LineReads::count) bytes.
    pub fn gather(
        &self,
        kernels: Kernels,
        table: &[u8],
        queries: &mut [LineQuery<'_>],
    ) -> Result<(), PositionOutOfRange> {
        let lines = self.check(table, queries, LINE as u64, self.count)?;
        for queries in queries.chunks_mut(MOST_TOGETHER) {
            on_arm!(kernels, bytes(lines, self, queries));
        }
        Ok(())
    }
}

impl LineReads<LineBits> {
    /// Answers queries from a table of bits. Bit `i` is bit `i % 8` of byte `i / 8`, counted from
    /// the least significant. Answers have the same form, padded with zeros.
    ///
    /// # Errors
    ///
    /// [`PositionOutOfRange`] for the first query that names a bit outside the table; the answers
    /// are then unchanged.
    ///
    /// # Panics
    ///
    /// As for a table of bytes, with answers of [`count`](LineReads::count) bits, rounded up to
    /// bytes.
    pub fn gather(
        &self,
        kernels: Kernels,
        table: &[u8],
        queries: &mut [LineQuery<'_>],
    ) -> Result<(), PositionOutOfRange> {
        let lines = self.check(table, queries, LINE_BITS as u64, self.count.div_ceil(8))?;
        for queries in queries.chunks_mut(MOST_TOGETHER) {
            on_arm!(kernels, bits(lines, self, queries));
        }
        Ok(())
    }
}
