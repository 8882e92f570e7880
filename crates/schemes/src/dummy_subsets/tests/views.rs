//! What a server that reads subsets sees of a history of lookups, in either form of the scheme, and
//! how far that is from what it should see.

use super::super::{DummySubsetsParameters, DummySubsetsQuery};
use crate::planted::{Flaw, plant};
use crate::test_statistics::{History, Measured};
use privet_core::TableShape;

/// The table, servers and clients of one form of the scheme.
pub(in crate::dummy_subsets) trait Seen {
    type Client;

    /// A table and its servers.
    fn new(parameters: DummySubsetsParameters) -> Self;

    /// A client with fresh hints.
    fn client(&mut self) -> Self::Client;

    /// One lookup, answered or not, and the subsets that a server sees. The record does not matter
    /// here.
    fn look_up(
        &mut self,
        client: &mut Self::Client,
        index: u64,
        answered: bool,
    ) -> DummySubsetsQuery;

    /// The client that follows when this client's hints are used up.
    fn hand_over(&mut self, client: Self::Client) -> Self::Client;

    /// What the hints in use contain: for each partition the offset of a record, if any.
    fn hints(client: &Self::Client) -> Vec<Vec<Option<u16>>>;
}

/// A small table and how it is cut.
#[derive(Clone, Copy, Debug)]
pub(in crate::dummy_subsets) struct Cut {
    pub(in crate::dummy_subsets) records: u64,
    pub(in crate::dummy_subsets) partition: u64,
    hint_security: u32,
}

/// Every partition is full.
pub(in crate::dummy_subsets) const FULL: Cut =
    Cut { records: 128, partition: 8, hint_security: 20 };
/// The last partition but one has four of eight records, the last has none.
pub(in crate::dummy_subsets) const PADDED: Cut =
    Cut { records: 100, partition: 8, hint_security: 20 };
/// Four partitions of two records; the last has one. There are so few views that all combinations
/// of three queries can be counted. A lookup fails with a probability of 10^-13.
pub(in crate::dummy_subsets) const TINY: Cut = Cut { records: 7, partition: 2, hint_security: 20 };
/// So few hints that about every third lookup sends a cover.
pub(in crate::dummy_subsets) const SCARCE: Cut =
    Cut { records: 500, partition: 32, hint_security: 1 };

impl Cut {
    pub(in crate::dummy_subsets) fn parameters(self) -> DummySubsetsParameters {
        let shape = TableShape::new(self.records, 1).unwrap();
        let cut = DummySubsetsParameters::with_partition_records(shape, self.partition).unwrap();
        cut.with_hint_security(self.hint_security).unwrap()
    }

    pub(in crate::dummy_subsets) fn partitions(self) -> usize {
        self.parameters().partitions() as usize
    }
}

/// What a server sees of one query: for each partition its half, and the offset of the record that
/// is read there.
#[derive(Clone)]
pub(in crate::dummy_subsets) struct View {
    halves: Vec<bool>,
    offsets: Vec<u16>,
}

impl View {
    pub(in crate::dummy_subsets) fn of(query: &DummySubsetsQuery, partitions: usize) -> Self {
        let halves: Vec<bool> =
            (0..partitions).map(|k| query.halves[k / 8] >> (k % 8) & 1 == 1).collect();
        let mut filled = [0; 2];
        let offsets = halves.iter().map(|half| {
            let place = &mut filled[usize::from(*half)];
            *place += 1;
            query.offsets[*place - 1]
        });
        let offsets = offsets.collect();
        Self { halves, offsets }
    }
}

/// What a server sees of the last so many lookups of `rounds` histories, each of a fresh client.
pub(in crate::dummy_subsets) fn views<S: Seen>(
    cut: Cut,
    history: History<'_>,
    flaw: Option<Flaw>,
    rounds: usize,
) -> Vec<Vec<View>> {
    let _planted = plant(flaw);
    let mut world = S::new(cut.parameters());
    let partitions = cut.partitions();
    let of_one = |_| {
        let queries = history.views(&mut world, S::client, S::hand_over, S::look_up);
        queries.iter().map(|query| View::of(query, partitions)).collect()
    };
    (0..rounds).map(of_one).collect()
}

/// The last view of each history.
pub(in crate::dummy_subsets) fn last(histories: &[Vec<View>]) -> Vec<View> {
    histories.iter().map(|views| views.last().unwrap().clone()).collect()
}

/// Every half and every offset on its own.
pub(in crate::dummy_subsets) fn marginals(cut: Cut, views: &[View]) -> Measured {
    let places = (0..cut.partitions()).map(|k| {
        let ones = views.iter().filter(|view| view.halves[k]).count() as u64;
        let mut offsets = vec![0; cut.partition as usize];
        views.iter().for_each(|view| offsets[usize::from(view.offsets[k])] += 1);
        let halves = Measured::uniform(&[ones, views.len() as u64 - ones]);
        halves.worse(Measured::uniform(&offsets))
    });
    Measured::worst(places)
}

/// Neighbouring partitions: which halves they are in, and whether their offsets agree.
pub(in crate::dummy_subsets) fn adjacent_pairs(cut: Cut, views: &[View]) -> Measured {
    let (rounds, partitions) = (views.len() as f64, cut.partitions());
    let same_half = (partitions as f64 / 2.0 - 1.0) / (partitions as f64 - 1.0);
    let places = (1..partitions).map(|k| {
        let mut halves = [0; 4];
        for view in views {
            halves[usize::from(view.halves[k - 1]) * 2 + usize::from(view.halves[k])] += 1;
        }
        let (same, other) = (rounds * same_half / 2.0, rounds * (1.0 - same_half) / 2.0);
        let halves = Measured::of(&halves, &[same, other, other, same]);
        // Partitions of one half have independent offsets.
        let together = views.iter().filter(|view| view.halves[k] == view.halves[k - 1]);
        let mut agree = [0; 2];
        together.for_each(|view| {
            agree[usize::from(view.offsets[k] == view.offsets[k - 1])] += 1;
        });
        let (all, equal) = ((agree[0] + agree[1]) as f64, 1.0 / cut.partition as f64);
        halves.worse(Measured::of(&agree, &[all * (1.0 - equal), all * equal]))
    });
    Measured::worst(places)
}

/// The queried partition: its half and offset, together.
pub(in crate::dummy_subsets) fn queried_partition(
    cut: Cut,
    views: &[View],
    index: u64,
) -> Measured {
    let partition = (index / cut.partition) as usize;
    let mut counts = vec![0; 2 * cut.partition as usize];
    for view in views {
        let offset = usize::from(view.offsets[partition]);
        counts[offset * 2 + usize::from(view.halves[partition])] += 1;
    }
    Measured::uniform(&counts)
}

/// Counts of a feature of whole histories: how alike the splits of each two of its queries are, and
/// how many of their offsets agree.
pub(in crate::dummy_subsets) fn likenesses(cut: Cut, histories: &[Vec<View>]) -> Vec<u64> {
    let partitions = cut.partitions();
    let mut counts = vec![0; (partitions + 1) * (partitions + 1)];
    for views in histories {
        for (later, view) in views.iter().enumerate() {
            for earlier in &views[..later] {
                let alike = |k: &usize| view.halves[*k] == earlier.halves[*k];
                let equal = |k: &usize| view.offsets[*k] == earlier.offsets[*k];
                let halves = (0..partitions).filter(alike).count();
                let offsets = (0..partitions).filter(equal).count();
                counts[halves * (partitions + 1) + offsets] += 1;
            }
        }
    }
    counts
}

/// The views of a query in the [`TINY`] cut: six splits of four partitions, two offsets of a bit.
pub(in crate::dummy_subsets) const TINY_VIEWS: usize = 24;

/// How far the counts of the views of three queries together are from equal. There are 13824 such
/// views.
pub(in crate::dummy_subsets) fn three_together(histories: &[Vec<View>]) -> Measured {
    let mut counts = vec![0; TINY_VIEWS.pow(3)];
    for views in histories {
        let cell = views.iter().fold(0, |cell, view| cell * TINY_VIEWS + tiny_number(view));
        counts[cell] += 1;
    }
    Measured::uniform(&counts)
}

fn tiny_number(view: &View) -> usize {
    const SPLITS: [usize; 6] = [0b0011, 0b0101, 0b0110, 0b1001, 0b1010, 0b1100];
    let bits =
        |of: &dyn Fn(usize) -> bool| (0..4).fold(0, |bits, k| bits | usize::from(of(k)) << k);
    let split = bits(&|k| view.halves[k]);
    let split = SPLITS.iter().position(|one| *one == split).expect("halves are of equal size");
    // Both halves have the same two offsets.
    let of_one_half = (0..4).filter(|k| view.halves[*k]);
    of_one_half.fold(split, |number, k| number * 2 + usize::from(view.offsets[k]))
}
