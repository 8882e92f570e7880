//! Prefetching the lines of a pattern.
//!
//! Each line is prefetched twice. Measured on Zen 4, in a gigabyte and with the pattern of all
//! words of weight 5 and less, a line takes 9.5 ns if it is prefetched once, 48 steps ahead, and
//! 7.2 ns if it is prefetched 96 and again 48 steps ahead. Lines at random places take 6.6 ns.
//! Presumably requests are dropped while too many are waiting, and lines that differ in few bits
//! evict each other from the cache.

use super::{LINE, line_of};
use crate::prefetch_second_level;

/// How many lines should be in flight at a time.
const LINES_AHEAD: usize = 96;
/// How many steps ahead lines are prefetched, however many queries share the steps.
const FEWEST_STEPS_AHEAD: usize = 2;

/// Prefetches the lines that will be needed next.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a> {
    lines: &'a [[u8; LINE]],
    steps: &'a [u64],
    /// Lines are prefetched this many steps ahead, and again half as many.
    distance: usize,
}

impl<'a> Ahead<'a> {
    /// The distance for so many queries that go through the steps together.
    #[inline(always)]
    pub(super) fn new(lines: &'a [[u8; LINE]], steps: &'a [u64], queries: usize) -> Ahead<'a> {
        let distance = (LINES_AHEAD / queries.max(1)).max(FEWEST_STEPS_AHEAD);
        Ahead { lines, steps, distance }
    }

    /// Prefetches the first lines for a query that names line `first_line`.
    #[inline(always)]
    pub(super) fn begin(self, first_line: u64) {
        for &step in self.steps.iter().take(self.distance) {
            self.prefetch(step, first_line);
        }
    }

    /// Prefetches the lines that will be needed after step number `i`.
    #[inline(always)]
    pub(super) fn at_step(self, i: usize, first_line: u64) {
        for distance in [self.distance, self.distance / 2] {
            if let Some(&later) = self.steps.get(i + distance) {
                self.prefetch(later, first_line);
            }
        }
    }

    #[inline(always)]
    fn prefetch(self, step: u64, first_line: u64) {
        let line = line_of(step, first_line);
        prefetch_second_level(self.lines.as_ptr(), line.wrapping_mul(LINE));
    }
}
