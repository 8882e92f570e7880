//! When layers are merged, and when the merge must be done: functions of sizes and of the number of
//! changes, nothing else.
//!
//! Level *i* is for layers of at most B·2^*i* entries, where B is the length of the list. The list
//! is full every B changes and becomes a layer of level 0. Two layers of level *i* that are
//! neighbours in age are merged into one of level *i* + 1, so that a new layer comes to level *i*
//! every B·2^*i* changes. A merge must be done after half of that time, before the next layer
//! comes. So there are never more than two of one level. (With a list of one change, its half
//! counts as one, and there are three of level 0 for a moment.) In the amortized form of the paper,
//! which merges at once, there is at most one, and half of one on average. Two at most, and one on
//! average, are the price of merging in the background (Overmars and van Leeuwen, *Worst-case
//! optimal insertion and deletion methods for decomposable searching problems*, 1981).
//!
//! A merge with the oldest layer yields all older entries, without tombstones. Its level follows
//! from its size, at most one up and at most one down from where it was: this is how the paper's
//! bound *n* doubles and halves.

/// What the schedule needs to know of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Its level.
    pub(super) level: u32,
    /// Whether it is being merged.
    pub(super) merging: bool,
}

/// The level of an oldest layer of `entries` entries that is made from one of level `before`.
pub(super) fn level_of_oldest(entries: u64, list: u32, before: u32) -> u32 {
    smallest_level(entries, list).clamp(before.saturating_sub(1), before + 1)
}

/// The smallest level that holds `entries` entries.
pub(super) fn smallest_level(entries: u64, list: u32) -> u32 {
    entries.div_ceil(list.into()).max(1).next_power_of_two().ilog2()
}

/// How many changes a merge of two layers of level `level` may take: half of the changes until the
/// next layer comes, rounded down, and at least 1.
pub(super) fn merge_time(list: u32, level: u32) -> u64 {
    ((u64::from(list) << level) / 2).max(1)
}

/// How many changes may come while a layer is made from a full list.
pub(super) fn list_time(list: u32) -> u64 {
    u64::from(list).div_ceil(2)
}

/// The first two neighbours to merge, the oldest first: returns the position of the older one.
pub(super) fn next_merge(layers: &[Standing]) -> Option<usize> {
    layers
        .windows(2)
        .position(|pair| !pair[0].merging && !pair[1].merging && pair[1].level >= pair[0].level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A model of layers by their sizes alone, in which every change of the list has a key of its
    /// own.
    struct Sizes {
        list: u32,
        changes: u64,
        layers: VecDeque<(u64, Standing)>,
        /// When a merge is due and how many entries it will have, with the older layer's age.
        merges: Vec<(u64, u64)>,
        next_age: u64,
        ages: VecDeque<u64>,
        sealed: Option<u64>,
        work: u64,
    }

    impl Sizes {
        fn new(list: u32, entries: u64) -> Self {
            let level = smallest_level(entries, list);
            let standing = Standing { level, merging: false };
            Self {
                list,
                changes: 0,
                layers: [(entries, standing)].into(),
                merges: Vec::new(),
                next_age: 1,
                ages: [0].into(),
                sealed: None,
                work: 0,
            }
        }

        /// Makes one more change. `oldest` gives the size after everything is merged.
        fn change(&mut self, oldest: impl Fn(u64) -> u64) {
            self.changes += 1;
            let now = self.changes;
            let (due, later) = self.merges.drain(..).partition(|(due, _)| *due <= now);
            self.merges = later;
            let due: Vec<(u64, u64)> = due;
            for (_, age) in due {
                let at = self.ages.iter().position(|of| *of == age).unwrap();
                let ((older, above), (newer, below)) = (self.layers[at], self.layers[at + 1]);
                let merged = if at == 0 { oldest(older + newer) } else { older + newer };
                let level = match at {
                    0 => level_of_oldest(merged, self.list, above.level.max(below.level)),
                    _ => above.level.max(below.level) + 1,
                };
                self.layers[at] = (merged, Standing { level, merging: false });
                self.layers.remove(at + 1);
                self.ages.remove(at + 1);
                self.work += merged;
            }
            if self.sealed.take_if(|due| *due <= now).is_some() {
                self.work += u64::from(self.list);
                self.layers.push_back((self.list.into(), Standing { level: 0, merging: false }));
                self.ages.push_back(self.next_age);
                self.next_age += 1;
            }
            if now.is_multiple_of(self.list.into()) {
                assert_eq!(self.sealed, None, "the list before is a layer by now");
                self.sealed = Some(now + list_time(self.list));
            }
            loop {
                let standings: Vec<_> = self.layers.iter().map(|(_, standing)| *standing).collect();
                let Some(at) = next_merge(&standings) else { break };
                let level = standings[at].level.max(standings[at + 1].level);
                self.merges.push((now + merge_time(self.list, level), self.ages[at]));
                self.layers[at].1.merging = true;
                self.layers[at + 1].1.merging = true;
            }
        }

        fn check(&self) {
            let levels: Vec<u32> = self.layers.iter().map(|(_, of)| of.level).collect();
            // The oldest may have shrunk below its neighbour; then the two are merged at once.
            assert!(levels[1..].is_sorted_by(|a, b| a >= b), "{levels:?}");
            for level in 0..=levels.iter().copied().max().unwrap() {
                let of_level = levels.iter().filter(|of| **of == level).count();
                // Half of one change counts as one.
                let most = if (self.list, level) == (1, 0) { 3 } else { 2 };
                assert!(of_level <= most, "{levels:?} after {} changes", self.changes);
            }
            for ((entries, standing), number) in self.layers.iter().zip(0..) {
                let most = u64::from(self.list) << standing.level;
                // An oldest layer that shrinks fast goes down one level at a time; none holds more
                // than its level allows.
                assert!(*entries <= most, "{entries} in layer {number} of {levels:?}");
            }
        }
    }

    #[test]
    fn no_level_ever_has_more_than_two_layers() {
        for list in [1, 2, 3, 7, 8] {
            for first in [1, 5, 64, 1000] {
                let mut sizes = Sizes::new(list, first);
                for _ in 0..3000 {
                    sizes.change(|entries| entries);
                    sizes.check();
                }
                let size = first + 3000;
                let top = u64::from(smallest_level(size, list));
                assert!(u64::from(sizes.layers[0].1.level) <= top);
                // Every entry is merged once for each level that it goes up. The oldest layer is
                // merged at most once each time as many entries have come.
                assert!(sizes.work <= size * (top + 3), "{} of {size} · {top}", sizes.work);
            }
        }
    }

    #[test]
    fn a_table_that_shrinks_or_stays_as_it_is_needs_fewer_levels() {
        for list in [1, 2, 7] {
            for left in [1, 100] {
                let mut sizes = Sizes::new(list, 5000);
                let before = sizes.layers[0].1.level;
                for _ in 0..200_000 {
                    sizes.change(|entries| entries.min(left));
                    sizes.check();
                }
                let after = sizes.layers[0].1.level;
                assert!(after < before, "{after} of {before}");
                assert!(after <= smallest_level(left, list) + 1, "{after} for {left} entries");
            }
        }
    }

    #[test]
    fn a_level_holds_what_it_says() {
        assert_eq!(smallest_level(1, 1), 0);
        assert_eq!(smallest_level(7, 7), 0);
        assert_eq!(smallest_level(8, 7), 1);
        assert_eq!(smallest_level(1 << 20, 1 << 10), 10);
        assert_eq!(smallest_level((1 << 20) + 1, 1 << 10), 11);
        assert_eq!([merge_time(1, 0), merge_time(7, 0), merge_time(1, 3)], [1, 3, 4]);
        assert_eq!([list_time(1), list_time(7)], [1, 4]);
    }
}
