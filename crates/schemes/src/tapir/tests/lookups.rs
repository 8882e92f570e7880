//! Lookups that the suite leaves out: slow forms, and records around the edges of hashes.

use super::*;
use crate::test_tables::Sequence;

pub fn look_up<F: TestForm>(
    records: u64,
    record_len: u64,
    partition_records: u64,
    count: u64,
    sequence: Sequence,
) {
    let mut world = World::<F>::cut(records, record_len, partition_records);
    let mut client = world.client();
    let wanted = sequence.indices(records, partition_records, count, &mut world.rng);
    for index in wanted {
        assert_eq!(&world.fetch(&mut client, index)[..], world.record(index));
    }
}

#[test]
fn records_longer_than_a_hash_block_or_a_chunk() {
    for record_len in [55, 56, 57, 64, 100, 1016, 1024, 1025, 3000] {
        look_up::<MerkleForm>(20, record_len, 5, 20, Sequence::Random);
    }
}

#[test]
fn queries_are_what_is_verified() {
    // The client computes its queries from its permutations after they have changed.
    let mut world = World::<MerkleForm>::cut(90, 4, 7);
    let mut client = world.client();
    for index in (0..90).chain([17; 90]) {
        world.refill(&mut client);
        let reserved = world.reserve(&mut client, index).unwrap();
        assert_eq!(client.shown(), reserved.queries);
        world.settle(&mut client, &reserved);
    }
}
