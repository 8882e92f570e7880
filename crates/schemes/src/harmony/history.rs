//! Where every record lies after every lookup: all of it follows from the permutation and from the
//! order in which segments were used.
//!
//! # Cells and contents
//!
//! The permutation puts value `v` into cell `P(v)`. Values below `N` are records. Value `N + j` is
//! the `j`-th *empty*: what lies in its cell is nothing, yet. When a segment is used as number `n`,
//! from 0, the content of its `i`-th cell moves to where empty number `nT + i` is. So each empty is
//! filled once, and the cells of a used segment are never looked into again. Two walks follow from
//! that, which are each other's inverse:
//!
//! - [`access`](History::access), from a cell to its content: if `P⁻¹` of the cell is a record,
//!   that is it. If it is an empty that has been filled, go on with the cell from which it was
//!   filled. If not, the cell is empty.
//! - [`follow`](History::follow), from a cell in which a record once was to where it is now, or
//!   will be after the next step: if the cell's segment has been used, go on with the cell of the
//!   empty to which it moved.
//!
//! Both end. The step from a used cell to the next leads from different cells to different ones,
//! and never to the cell `P(v)` of a record `v`. So a walk that begins with a record never comes to
//! a cell again. Nor does a walk backwards from an unused cell, from which no step leads on. But an
//! empty may lie in the very segment whose content fills it, and move onto itself. So empties are
//! never followed, and nothing is lost: their records are zero.
//!
//! # How long the walks are
//!
//! If a share `f` of all segments is used, a walk takes one step more with probability about `f`,
//! at most one half. Many walks go on together, so that the kernel permutes many values in one
//! call. But the walk of a record that is looked up again and again becomes longer by a step each
//! time. [`Shortcuts`] prevents that: a walk that meets a cell in which a wanted record was known
//! to be goes on from there.
//!
//! # Timing
//!
//! Walks branch on secrets and read at secret addresses, all marked `admit`. How long they take is
//! hidden by the session, which gives every lookup the same time.

use super::HarmonyParameters;
use super::change::NOWHERE;
use super::shortcuts::Shortcuts;
use crate::planted;
use privet_core::Secret;
use privet_kernels::taint::{admit, conceal, declassify};
use privet_kernels::{Kernels, SwapOrNot};
use zeroize::Zeroizing;

/// The step of a segment that has not been used.
const NEVER: u32 = u32::MAX;
/// No segment is being used.
const NO_SEGMENT: u32 = u32::MAX;

/// The permutation, and which segments were used when.
pub(super) struct History {
    kernels: Kernels,
    permutation: SwapOrNot,
    /// Records, `N`: also the value that stands for all empties.
    records: u32,
    /// The base-two logarithm of `T`.
    segment_log2: u32,
    /// Segments in the order in which they were used.
    used: Zeroizing<Vec<u32>>,
    /// For each segment, as which number it was used, or [`NEVER`].
    steps: Zeroizing<Vec<u32>>,
    shortcuts: Shortcuts,
}

/// How a walk goes on.
enum WalkStep {
    /// It has arrived.
    End(u32),
    /// It goes on from the image of this value.
    Permute(u32),
}

impl History {
    /// No segment is used yet.
    pub(super) fn new(
        parameters: &HarmonyParameters,
        key: &Secret<[u8; 32]>,
        kernels: Kernels,
    ) -> Self {
        Self {
            kernels,
            permutation: SwapOrNot::new(key.expose(), parameters.cells_log2()),
            records: parameters.records(),
            segment_log2: parameters.segment_log2(),
            // Reserves room for all: a vector that grows would leave copies behind.
            used: Zeroizing::new(Vec::with_capacity(parameters.lookups() as usize)),
            steps: Zeroizing::new(vec![NEVER; parameters.segments() as usize]),
            shortcuts: Shortcuts::new(parameters.shortcuts(), key),
        }
    }

    /// How many segments have been used.
    pub(super) fn steps(&self) -> u32 {
        self.used.len() as u32
    }

    /// Uses the segment of a cell, in which a wanted record is. Its contents move. Returns whether
    /// that is possible: a segment serves once.
    #[must_use]
    pub(super) fn use_segment(&mut self, cell: u32, wanted: u32) -> bool {
        let segment = self.segment_of(cell);
        let step = &mut self.steps[admit(segment) as usize];
        // So it always is.
        if declassify(*step != NEVER) {
            return false;
        }
        *step = self.used.len() as u32;
        self.used.push(segment);
        self.shortcuts.remember(wanted, cell);
        true
    }

    /// The segment of a cell.
    pub(super) fn segment_of(&self, cell: u32) -> u32 {
        cell >> self.segment_log2
    }

    /// The place of a cell within its segment.
    pub(super) fn place_of(&self, cell: u32) -> u32 {
        cell & self.segment_mask()
    }

    fn segment_mask(&self) -> u32 {
        (1 << self.segment_log2) - 1
    }

    /// Replaces records by the cells in which they are now.
    pub(super) fn locate(&self, records: &mut [u32]) {
        let begin = |_: usize, record| match self.shortcuts.cell_of(record) {
            Some(cell) => self.follow(cell, NO_SEGMENT),
            None => WalkStep::Permute(record),
        };
        self.walk_forward(records, begin, NO_SEGMENT);
    }

    /// For each of the contents of the segment of `cell`, the segment to which it moves when this
    /// one is used next; [`NOWHERE`] for an empty.
    pub(super) fn destinations(&self, cell: u32, contents: &[u32]) -> Zeroizing<Vec<u32>> {
        let (using, first) = (self.segment_of(cell), cell & !self.segment_mask());
        let cells = (0..=self.segment_mask()).map(|place| first | place);
        let mut walks = Zeroizing::new(cells.collect::<Vec<u32>>());
        let begin = |number: usize, cell| match admit(contents[number] != self.records) {
            true => self.follow(cell, using),
            false => WalkStep::End(NOWHERE),
        };
        self.walk_forward(&mut walks, begin, using);
        for walk in walks.iter_mut().filter(|walk| admit(**walk != NOWHERE)) {
            *walk = self.segment_of(*walk);
        }
        walks
    }

    fn walk_forward(&self, walks: &mut [u32], begin: impl Fn(usize, u32) -> WalkStep, using: u32) {
        let permute = |values: &mut [u32]| {
            planted::count_permuted(values);
            self.kernels.permute(&self.permutation, values);
        };
        walk_all(walks, begin, permute, |cell| self.follow(cell, using));
    }

    /// From a cell in which a record was to the next one, if the cell's segment has been used, or
    /// is the one that is `using`, as the next step.
    fn follow(&self, cell: u32, using: u32) -> WalkStep {
        let segment = self.segment_of(cell);
        let step = match admit(segment == using) {
            true => self.steps(),
            false => conceal(self.steps[admit(segment) as usize]),
        };
        if admit(step == NEVER) {
            return WalkStep::End(cell);
        }
        let empty = (step << self.segment_log2) + self.place_of(cell);
        WalkStep::Permute(self.records + empty)
    }

    /// What lies in the segment of `cell`, in the order of its cells: indices of records, and `N`
    /// for each cell that is empty. In `cell` itself is the record `wanted`, as is known.
    pub(super) fn contents(&self, cell: u32, wanted: u32) -> Zeroizing<Vec<u32>> {
        let first = cell & !self.segment_mask();
        // How many they are does not follow from the secret first one.
        let cells = (0..=self.segment_mask()).map(|place| first | place);
        let mut contents = Zeroizing::new(cells.collect::<Vec<u32>>());
        let wanted_place = self.place_of(cell);
        self.access(&mut contents, |number| {
            admit(number == wanted_place as usize).then_some(wanted)
        });
        contents
    }

    /// Replaces cells of unused segments by what they contain, unless that is `known`.
    fn access(&self, cells: &mut [u32], known: impl Fn(usize) -> Option<u32>) {
        let unpermute = |values: &mut [u32]| {
            planted::count_permuted(values);
            self.kernels.unpermute(&self.permutation, values);
        };
        let begin = |number, cell| match known(number) {
            Some(content) => WalkStep::End(content),
            None => self.look_into(cell),
        };
        walk_all(cells, begin, unpermute, |value| {
            if admit(value < self.records) {
                return WalkStep::End(value);
            }
            let empty = value - self.records;
            let step = admit(empty >> self.segment_log2) as usize;
            match planted::moved(self.used.get(step)) {
                None => WalkStep::End(self.records),
                Some(segment) => {
                    let segment = conceal(*segment);
                    self.look_into(segment << self.segment_log2 | self.place_of(empty))
                }
            }
        });
    }

    fn look_into(&self, cell: u32) -> WalkStep {
        match self.shortcuts.record_in(cell) {
            Some(record) => WalkStep::End(record),
            None => WalkStep::Permute(cell),
        }
    }
}

/// Takes all `walks` to their ends, a step of each at a time: `permute` gets the values of all
/// walks that have not arrived. `begin` gets the number of the walk, and its start; `look` where a
/// step led.
fn walk_all(
    walks: &mut [u32],
    begin: impl Fn(usize, u32) -> WalkStep,
    permute: impl Fn(&mut [u32]),
    look: impl Fn(u32) -> WalkStep,
) {
    let mut numbers = Zeroizing::new(Vec::with_capacity(walks.len()));
    let mut values = Zeroizing::new(Vec::with_capacity(walks.len()));
    for (number, walk) in walks.iter_mut().enumerate() {
        match begin(number, *walk) {
            WalkStep::End(end) => *walk = end,
            WalkStep::Permute(value) => {
                numbers.push(number);
                values.push(value);
            }
        }
    }
    while !values.is_empty() {
        permute(&mut values);
        let mut left = 0;
        for walk in 0..values.len() {
            match look(values[walk]) {
                WalkStep::End(end) => walks[numbers[walk]] = end,
                WalkStep::Permute(value) => {
                    (numbers[left], values[left]) = (numbers[walk], value);
                    left += 1;
                }
            }
        }
        numbers.truncate(left);
        values.truncate(left);
    }
}

#[cfg(test)]
impl History {
    pub(super) fn used(&self) -> &[u32] {
        &self.used
    }

    /// Whether a segment has been used.
    pub(super) fn is_used(&self, segment: u32) -> bool {
        self.steps[segment as usize] != NEVER
    }

    /// Forgets all shortcuts.
    pub(super) fn forget_shortcuts(&mut self) {
        self.shortcuts.forget();
    }

    /// What lies in every cell of all unused segments.
    pub(super) fn all_contents(&self) -> Vec<u32> {
        self.all_cells().into_iter().map(|(_, content)| content).collect()
    }

    /// All cells of unused segments, with their contents.
    pub(super) fn all_cells(&self) -> Vec<(u32, u32)> {
        let cells = 0..(self.steps.len() as u32) << self.segment_log2;
        let cells: Vec<u32> = cells.filter(|cell| !self.is_used(self.segment_of(*cell))).collect();
        let mut contents = cells.clone();
        self.access(&mut contents, |_| None);
        cells.into_iter().zip(contents).collect()
    }
}
