//! What each of the two servers sees of three lookups, and how far that is from uniform. For
//! SinglePass, and for TAPIR, which looks records up in the same way.

use crate::planted::{Flaw, plant, set_queries_per_generation};
pub(crate) use crate::test_statistics::History;
use crate::test_statistics::Measured;

/// A table so small that all views can be counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) records: u64,
    pub(crate) partition_records: u64,
}

/// Two partitions of three records, …
pub(crate) const FULL: Cut = Cut { records: 6, partition_records: 3 };
/// … the same without the last record, …
pub(crate) const PADDED: Cut = Cut { records: 5, partition_records: 3 };
/// … and three partitions of two without the last record: the last has one.
pub(crate) const THREE: Cut = Cut { records: 5, partition_records: 2 };

impl Cut {
    fn partitions(self) -> u32 {
        self.records.div_ceil(self.partition_records) as u32
    }

    /// How many views there are of three lookups.
    pub(crate) fn cells(self) -> usize {
        self.partition_records.pow(3 * self.partitions()) as usize
    }
}

/// The table, servers and clients of one scheme.
pub(crate) trait Seen {
    type Client;

    /// A table and its servers.
    fn of(cut: Cut) -> Self;

    /// A client with permutations from the seed `known`, or from random numbers.
    fn client(&mut self, known: Option<[u8; 32]>) -> Self::Client;

    /// One lookup, answered or not: the offsets that both servers see.
    fn look_up(&mut self, client: &mut Self::Client, index: u64, answered: bool) -> [Vec<u16>; 2];

    /// The next generation of a client whose queries are used up.
    fn hand_over(&mut self, client: Self::Client) -> Self::Client;
}

/// A server, and the lookups that it compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    pub(crate) role: usize,
    pub(crate) at: [usize; 3],
}

/// The server that computes SinglePass's hints, which knows the first permutations.
pub(crate) const HINT_SERVER: Looks = Looks { role: 0, at: [0, 1, 2] };
pub(crate) const OTHER_SERVER: Looks = Looks { role: 1, at: [0, 1, 2] };

/// Always one record; two of one partition, two of different ones; the last; and three different
/// ones.
pub(crate) const HISTORIES: [[u64; 3]; 6] =
    [[0, 0, 0], [0, 1, 0], [0, 3, 0], [4, 4, 1], [1, 0, 4], [0, 2, 4]];

/// How far the views of three lookups of `history` are from occurring equally often: `expected`
/// times each. Permutations are fresh for each client, or always those of `known`, for a server
/// that knows them.
pub(crate) fn three_together<S: Seen>(
    cut: Cut,
    looks: Looks,
    history: History<'_>,
    known: Option<u8>,
    flaw: Option<Flaw>,
    expected: usize,
) -> Measured {
    let _planted = plant(flaw);
    set_queries_per_generation(history.hand_over.map(|lookups| lookups as u64));
    let mut world = S::of(cut);
    let mut counts = vec![0u64; cut.cells()];
    for _ in 0..cut.cells() * expected {
        let new = |world: &mut S| world.client(known.map(|byte| [byte; 32]));
        let views = history.views(&mut world, new, S::hand_over, S::look_up);
        let seen = views.iter().enumerate().filter(|(number, _)| looks.at.contains(number));
        let offsets = seen.flat_map(|(_, view)| &view[looks.role]);
        let each = cut.partition_records as usize;
        let cell = offsets.fold(0, |cell, offset| cell * each + usize::from(*offset));
        counts[cell] += 1;
    }
    set_queries_per_generation(None);
    Measured::uniform(&counts)
}
