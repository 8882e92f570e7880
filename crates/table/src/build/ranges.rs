//! Rows that answer for ranges of keys: their bounds are read, put in order, and named.

use super::rows::KeptRows;
use crate::key_map::{Bounds, Directory, Pairs as _, Points, Range};
use privet_core::{Error, Reason, Result};

impl KeptRows {
    /// Makes the key of each row the name of its range, and returns the directory of all ranges.
    /// If ranges may be `nested`, a row stands under the names of all pieces that narrower ranges
    /// leave of its own. `unit` is what positions count.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming a row, if it has no valid
    /// bounds, ends before it begins, or overlaps another in a way that is not allowed.
    pub(super) fn make_ranges(&mut self, unit: &str, nested: bool) -> Result<Directory> {
        let points = self.kind_of_points(unit)?;
        let ranges = self.ranges(points, unit, nested)?;
        let count = ranges.len();
        let pieces = cut(&ranges, nested).map_err(|clash| {
            let rows = [clash.rows.0.min(clash.rows.1), clash.rows.0.max(clash.rows.1)];
            let [one, other] = rows.map(|row| self.shown(row, unit));
            let error = Error::api_misuse(format!("{one} and {other}: {}", clash.why));
            if nested { error } else { error.because(Reason::RangesOverlap) }
        })?;
        drop(ranges);
        let mut is_hidden = vec![true; count];
        pieces.iter().for_each(|(_, row)| is_hidden[*row] = false);
        self.hide(is_hidden.iter().filter(|is_hidden| **is_hidden).count() as u64);
        self.rename(pieces.iter().map(|(range, row)| (*row, range.name())));
        let ranges: Vec<Range> = pieces.into_iter().map(|(range, _)| range).collect();
        Directory::new(points, &ranges, nested)
    }

    /// The range of each row with the row's number, by first points; those that begin at the same
    /// point by their last points, the widest first.
    fn ranges(&self, points: Points, unit: &str, nested: bool) -> Result<Vec<(Range, usize)>> {
        let mut bounds: Vec<(Bounds, usize)> = Vec::with_capacity(self.rows() as usize);
        for row in 0..self.rows() as usize {
            // `kind_of_points` has parsed the bounds of all rows, so no row is skipped here.
            let (from, until) = self.bounds_of(row);
            bounds.extend(points.parse_bounds(from, until).map(|bounds| (bounds, row)));
        }
        bounds.sort_unstable_by_key(|(Bounds { from, to }, row)| {
            (*from, std::cmp::Reverse(to.filter(|_| nested)), *row)
        });
        let mut ranges = Vec::with_capacity(bounds.len());
        for (number, &(Bounds { from, to }, row)) in bounds.iter().enumerate() {
            let to = match (to, bounds.get(number + 1)) {
                (Some(to), _) => to,
                (None, _) if nested => {
                    let row = self.shown(row, unit);
                    return Err(Error::api_misuse(format!(
                        "{row}: the row does not say where its range ends; ranges that may lie in one another have to"
                    )));
                }
                // Ranges with the same first point overlap, which is found later.
                (None, Some((next, _))) => next.from.saturating_sub(1).max(from),
                (None, None) => last(points, from),
            };
            if to < from {
                let row = self.shown(row, unit);
                return Err(Error::api_misuse(format!("{row}: the range ends before it begins")));
            }
            ranges.push((Range { from, to }, row));
        }
        Ok(ranges)
    }

    /// A row in a message: its place and its bounds.
    fn shown(&self, row: usize, unit: &str) -> String {
        format!("{} ({})", self.place_of(row, unit), self.shown_key(self.key(row)))
    }

    /// The first kind of points that fits the bounds of all rows.
    fn kind_of_points(&self, unit: &str) -> Result<Points> {
        let mut possible = Points::ALL.to_vec();
        for row in 0..self.rows() as usize {
            let (from, until) = self.bounds_of(row);
            let before = possible.clone();
            possible.retain(|points| points.parse_bounds(from, until).is_some());
            if possible.is_empty() {
                let shown = self.shown_key(self.key(row));
                let expected = match before[0] {
                    _ if before.len() == Points::ALL.len() => "whole numbers, or addresses",
                    points => points.name(),
                };
                return Err(Error::api_misuse(format!(
                    "{}: the bounds {shown} are not {expected}",
                    self.place_of(row, unit)
                )));
            }
        }
        Ok(possible[0])
    }

    fn bounds_of(&self, row: usize) -> (&str, Option<&str>) {
        self.bounds_in(self.key(row))
    }
}

/// The last point there is; if `from` is an IPv4 address, the last IPv4 address.
fn last(points: Points, from: u128) -> u128 {
    /// What IPv4 addresses begin with, as points.
    const IPV4: u128 = 0xffff;
    match points {
        Points::Addresses if from >> 32 == IPV4 => from | 0xffff_ffff,
        _ => u128::MAX,
    }
}

/// Two rows whose ranges may not overlap as they do.
#[derive(Debug)]
struct Clash {
    rows: (usize, usize),
    why: &'static str,
}

/// What narrower ranges leave of each, in pieces in ascending order, each with the number of its
/// row. `ranges` are in the order of [`KeptRows::ranges`]. Of n ranges there are at most 2n − 1
/// pieces. Unless they may be `nested`, ranges that overlap are an error.
fn cut(ranges: &[(Range, usize)], nested: bool) -> Result<Vec<(Range, usize)>, Clash> {
    let mut pieces = Vec::with_capacity(ranges.len());
    // Ranges that hold the present point, each within the one before; and the first point that is
    // in no piece yet, `None` after the last point of all.
    let mut open: Vec<(Range, usize)> = Vec::new();
    let mut free = Some(0);
    let mut close = |(range, row): (Range, usize), free: Option<u128>, to: u128| {
        let from = free.filter(|from| *from <= to);
        pieces.extend(from.map(|from| (Range { from, to }, row)));
        debug_assert!(range.to >= to, "a piece lies in its range");
    };
    for &(range, row) in ranges {
        while let Some(ended) = open.pop_if(|(open, _)| open.to < range.from) {
            close(ended, free, ended.0.to);
            free = ended.0.to.checked_add(1);
        }
        if let Some(&(around, other)) = open.last() {
            let why = match () {
                () if !nested => "the ranges overlap; a key lies in one range at most",
                () if around == range => "the ranges are the same; leave one of them out",
                () if around.to < range.to => "the ranges overlap, and neither lies in the other",
                () => "",
            };
            if !why.is_empty() {
                return Err(Clash { rows: (other, row), why });
            }
            if let Some(before) = range.from.checked_sub(1) {
                close((around, other), free, before);
            }
        }
        free = Some(range.from);
        open.push((range, row));
    }
    while let Some(ended) = open.pop() {
        close(ended, free, ended.0.to);
        free = ended.0.to.checked_add(1);
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The row of the narrowest range that holds each point; or whether the ranges may not be.
    fn by_trying(ranges: &[(Range, usize)], points: u128) -> Option<Vec<Option<usize>>> {
        for (number, (one, _)) in ranges.iter().enumerate() {
            for (other, _) in &ranges[number + 1..] {
                let apart = one.to < other.from || other.to < one.from;
                let within = |a: &Range, b: &Range| b.from <= a.from && a.to <= b.to;
                if one == other || !apart && !within(one, other) && !within(other, one) {
                    return None;
                }
            }
        }
        let narrowest = |point| {
            let holds = ranges.iter().filter(|(range, _)| range.from <= point && point <= range.to);
            holds.min_by_key(|(range, _)| range.to - range.from).map(|(_, row)| *row)
        };
        Some((0..points).map(narrowest).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_narrowest_range_has_each_point(
            mut drawn in proptest::collection::vec((0u128..32, 0u128..32), 0..9),
            at_the_end: bool,
        ) {
            // Ranges of 32 points, at the beginning or at the end of all.
            let shift = if at_the_end { u128::MAX - 31 } else { 0 };
            drawn.iter_mut().for_each(|(a, b)| (*a, *b) = (*a.min(b), *a.max(b)));
            let mut ranges: Vec<(Range, usize)> = drawn
                .iter()
                .enumerate()
                .map(|(row, (from, to))| (Range { from: from + shift, to: to + shift }, row))
                .collect();
            ranges.sort_by_key(|(range, row)| (range.from, std::cmp::Reverse(range.to), *row));
            let small: Vec<(Range, usize)> = ranges
                .iter()
                .map(|(range, row)| (Range { from: range.from - shift, to: range.to - shift }, *row))
                .collect();
            let expected = by_trying(&small, 32);
            let pieces = cut(&ranges, true);
            prop_assert_eq!(pieces.is_ok(), expected.is_some());
            if let (Ok(pieces), Some(expected)) = (pieces, expected) {
                prop_assert!(pieces.len() < 2 * ranges.len().max(1));
                prop_assert!(pieces.is_sorted_by(|(one, _), (other, _)| one.to < other.from));
                let found = |point: u128| {
                    let holds =
                        |(range, _): &&(Range, usize)| range.from <= point && point <= range.to;
                    pieces.iter().find(holds).map(|(_, row)| *row)
                };
                let found: Vec<_> = (0..32).map(|point| found(point + shift)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
