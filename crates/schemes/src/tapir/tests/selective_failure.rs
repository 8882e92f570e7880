//! Whether a client ends tells nothing about the wanted record, even if a server answers wrongly
//! only at some offsets.

use super::*;
use crate::tapir::planted::{Overlooking, overlook};
use crate::test_statistics::difference;

/// A server's lie: it alters its answer for one partition at some offsets, whenever it is asked for
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Spoiled {
    pub server: usize,
    pub partition: usize,
    pub offsets: Offsets,
    pub lie: Lie,
}

/// Which offsets.
pub type Offsets = fn(u16) -> bool;

/// How.
#[derive(Clone, Copy, Debug)]
pub enum Lie {
    /// A bit of the record.
    Record,
    /// A bit of the proof.
    Proof,
    /// The whole answer: other bytes of the right length.
    Everything,
}

impl Spoiled {
    /// The answers of a lookup after this server has altered its own.
    fn spoil(
        self,
        pass: &SinglePassParameters,
        queries: &[TapirQuery],
        honest: &[Vec<u8>; 2],
    ) -> [Vec<u8>; 2] {
        let mut answers = honest.clone();
        if (self.offsets)(queries[self.server].0.offsets[self.partition]) {
            let answer = &mut answers[self.server];
            let records = pass.answer_len();
            let proof = (answer.len() - records) / pass.partitions() as usize;
            match self.lie {
                Lie::Record => answer[self.partition * pass.record_len()] ^= 0x10,
                Lie::Proof => answer[records + self.partition * proof] ^= 0x10,
                Lie::Everything => answer.iter_mut().for_each(|byte| *byte ^= 0x55),
            }
        }
        answers
    }
}

/// How many of `coins` lookups of `wanted` end the client and how many do not, with such a server.
fn ends<F: TestForm>(
    world: &mut World<F>,
    generation: &Zeroizing<Vec<u8>>,
    wanted: u64,
    spoiled: Spoiled,
    coins: u64,
    planted: bool,
) -> [u64; 2] {
    let mut counts = [0; 2];
    let mut client = world.load(generation);
    for _ in 0..coins {
        if client.supply().left() == 0 {
            client = world.load(generation);
        }
        let reserved = world.reserve(&mut client, wanted).unwrap();
        let honest = world.answer_bytes(&reserved);
        let answers = spoiled.spoil(world.parameters.pass(), &reserved.queries, &honest);
        let truth = world.decoded(&honest).unwrap();
        let overlooking = || Overlooking {
            wanted: (wanted / u64::from(world.parameters.pass().partition_records())) as usize,
            honest: world.decoded(&honest).unwrap().try_into().ok().unwrap(),
        };
        overlook(planted.then(overlooking));
        let change = client.settle(reserved.id, &world.decoded(&answers).unwrap()).unwrap();
        counts[usize::from(change[0] == END)] += 1;
        // In any case, this lookup goes on with the true answers.
        let change = client.settle(reserved.id, &truth).unwrap();
        client.apply(&change).unwrap();
        let record = client.take_record(reserved.id).unwrap().unwrap();
        assert_eq!(&record[..], world.record(wanted));
    }
    counts
}

/// The first byte of the change that ends a client.
const END: u8 = 3;

/// The largest difference, in standard deviations, between how often lookups of any two records end
/// the client.
pub fn leak<F: TestForm>(
    world: &mut World<F>,
    wanted: &[u64],
    spoiled: Spoiled,
    coins: u64,
    planted: bool,
) -> f64 {
    // Permutations are random secrets too, so each count covers many of them.
    const GENERATIONS: u64 = 20;
    let counts: Vec<[u64; 2]> = wanted
        .iter()
        .map(|wanted| {
            let mut counts = [0; 2];
            for _ in 0..GENERATIONS {
                let generation = world.generation();
                let some = ends(world, &generation, *wanted, spoiled, coins / GENERATIONS, planted);
                counts = [counts[0] + some[0], counts[1] + some[1]];
            }
            counts
        })
        .collect();
    let pairs = counts.iter().enumerate().flat_map(|(i, one)| {
        counts[..i].iter().map(move |other| match one[1] + other[1] {
            // It never ended for either, or always for both.
            0 => 0.0,
            _ if one[0] + other[0] == 0 => 0.0,
            _ => difference(one, other),
        })
    });
    pairs.fold(0.0, f64::max)
}

/// The altered offsets, and the kind of change.
const TARGETS: [(Offsets, Lie); 5] = [
    (|offset| offset == 0, Lie::Record),
    (|offset| offset >= 2, Lie::Proof),
    (|offset| offset >= 2, Lie::Everything),
    (|offset| offset == 3, Lie::Everything),
    (|_| true, Lie::Record),
];

#[test]
fn the_rate_of_ends_does_not_depend_on_the_record_exhaustively_at_sixteen() {
    let mut world = World::<MerkleForm>::cut(16, 2, 4);
    let wanted: Vec<u64> = (0..16).collect();
    for server in 0..2 {
        for partition in 0..4 {
            for (offsets, lie) in TARGETS {
                let spoiled = Spoiled { server, partition, offsets, lie };
                let leak = leak(&mut world, &wanted, spoiled, 160, false);
                // The largest of 120 differences with one degree of freedom.
                assert!(leak < 12.0, "{spoiled:?}: {leak}");
            }
        }
    }
}

#[test]
fn the_rate_of_ends_does_not_depend_on_the_record_in_twenty_thousand_lookups() {
    let mut world = World::<MerkleForm>::cut(256, 4, 16);
    for server in 0..2 {
        let spoiled =
            Spoiled { server, partition: 3, offsets: |offset| offset < 8, lie: Lie::Record };
        // One record in the altered partition at an altered offset, one there at another offset,
        // and one elsewhere.
        let leak = leak(&mut world, &[3 * 16 + 2, 3 * 16 + 12, 9 * 16 + 2], spoiled, 20_000, false);
        assert!(leak < 9.0, "{spoiled:?}: {leak}");
    }
}

/// The planted verifier checks only what the record depends on. Then only lookups in other
/// partitions notice a second server that alters one partition's records, and no lookup notices the
/// first server's lies.
#[test]
fn a_verifier_that_checks_only_what_it_needs_is_caught() {
    let mut world = World::<MerkleForm>::cut(16, 2, 4);
    let spoiled = Spoiled { server: 1, partition: 2, offsets: |_| true, lie: Lie::Record };
    let leak_ = leak(&mut world, &[1, 9], spoiled, 200, true);
    assert!(leak_ > 50.0, "{leak_}");
    let mut world = World::<MerkleForm>::cut(256, 4, 16);
    let spoiled =
        Spoiled { server: 1, partition: 3, offsets: |offset| offset < 8, lie: Lie::Proof };
    let leak = leak(&mut world, &[3 * 16 + 2, 9 * 16 + 2], spoiled, 2_000, true);
    assert!(leak > 50.0, "{leak}");
}
