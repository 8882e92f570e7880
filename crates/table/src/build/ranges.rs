//! Rows that answer for ranges of keys: their bounds are read, put in order, and named.

use super::rows::KeptRows;
use crate::import::quoted;
use crate::key_map::{BETWEEN_BOUNDS, Bounds, Directory, Points, Range};
use privet_core::{Error, Result};

impl KeptRows {
    /// Makes the key of each row the name of its range, and returns the directory of all ranges.
    /// `unit` is what positions count.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming a row, if it has no valid
    /// bounds, ends before it begins, or overlaps another.
    pub(super) fn make_ranges(&mut self, unit: &str) -> Result<Directory> {
        let points = self.kind_of_points(unit)?;
        let mut bounds: Vec<(Bounds, usize)> = Vec::with_capacity(self.rows() as usize);
        for row in 0..self.rows() as usize {
            // `kind_of_points` has parsed the bounds of all rows, so no row is skipped here.
            bounds.extend(points.parse_bounds(self.bounds_of(row)).map(|bounds| (bounds, row)));
        }
        bounds.sort_unstable_by_key(|(bounds, row)| (bounds.from, *row));
        let mut ranges: Vec<Range> = Vec::with_capacity(bounds.len());
        for (number, &(Bounds { from, to }, row)) in bounds.iter().enumerate() {
            let next = bounds.get(number + 1);
            let to = to.unwrap_or_else(|| match next {
                // Ranges with the same first point overlap. The check below finds them.
                Some((next, _)) => next.from.saturating_sub(1).max(from),
                None => last(points, from),
            });
            let of_row = |row: usize| {
                let bounds = self.bounds_of(row).replace(BETWEEN_BOUNDS, " to ");
                format!("{} ({})", self.place_of(row, unit), quoted(&bounds))
            };
            if to < from {
                let row = of_row(row);
                return Err(Error::api_misuse(format!("{row}: the range ends before it begins")));
            }
            if let Some((_, other)) = next.filter(|(next, _)| next.from <= to) {
                return Err(Error::api_misuse(format!(
                    "{} and {}: the ranges overlap; a key lies in one range at most",
                    of_row(row.min(*other)),
                    of_row(row.max(*other))
                )));
            }
            ranges.push(Range { from, to });
        }
        for (range, (_, row)) in ranges.iter().zip(&bounds) {
            self.rename(*row, &range.name());
        }
        Directory::new(points, &ranges)
    }

    /// The first kind of points that fits the bounds of all rows.
    fn kind_of_points(&self, unit: &str) -> Result<Points> {
        let mut possible = Points::ALL.to_vec();
        for row in 0..self.rows() as usize {
            let bounds = self.bounds_of(row);
            let before = possible.clone();
            possible.retain(|points| points.parse_bounds(bounds).is_some());
            if possible.is_empty() {
                let shown = quoted(&bounds.replace(BETWEEN_BOUNDS, " to "));
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

    fn bounds_of(&self, row: usize) -> &str {
        std::str::from_utf8(self.key_of(row)).unwrap_or_default()
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
