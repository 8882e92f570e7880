//! Two expansions are equal but for one bit; pieces of an expansion are the expansion; keys are what their encoding says.

use super::*;
use crate::{Blame, RecordIndex, SecretRng};
use privet_kernels::dispatch::Arm;
use privet_kernels::{Kernels, TreeKeys};
use proptest::prelude::*;

fn shape(records: u64) -> TableShape {
    TableShape::new(records, 1).unwrap()
}

fn keys() -> TreeKeys {
    TreeKeys::new(*b"left of the tree", *b"other side of it")
}

fn pair(records: u64, index: u64) -> [Key; 2] {
    let shape = shape(records);
    let index = RecordIndex::new(index, shape).unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    Key::pair(Kernels::detect(), &keys(), Domain::of_records(shape), &index, &mut rng)
}

/// All leaves that the table needs, in one go.
fn expand(records: u64, key: &Key) -> Vec<u128> {
    let mut leaves = vec![0; Domain::of_records(shape(records)).leaves() as usize];
    Evaluation::new(Kernels::detect(), &keys(), key).leaves(0, &[key.root], &mut leaves);
    leaves
}

/// One leaf on its own.
fn leaf(key: &Key, position: u64) -> u128 {
    let keys = keys();
    let evaluation = Evaluation::new(Kernels::detect(), &keys, key);
    let mut leaf = [0];
    let node = evaluation.node(evaluation.depth(), position);
    evaluation.leaves(evaluation.depth(), &[node], &mut leaf);
    leaf[0]
}

fn unit(records: u64, index: u64) -> Vec<u128> {
    let mut leaves = vec![0; records.div_ceil(128) as usize];
    leaves[(index / 128) as usize] = 1 << (index % 128);
    leaves
}

#[test]
fn the_depth_is_the_least_with_room_for_all_leaves() {
    let depth = |records| Domain::of_records(shape(records)).depth();
    for (records, expected) in [(1, 0), (128, 0), (129, 1), (256, 1), (257, 2), (512, 2), (513, 3)]
    {
        assert_eq!(depth(records), expected, "{records} records");
    }
    assert_eq!(depth(1 << 25), 18);
    assert_eq!(depth((1 << 25) + 1), 19);
    assert_eq!(depth(1 << 48), 41);
}

#[test]
fn the_two_expansions_differ_at_the_index_alone_for_every_index_of_small_domains() {
    for records in [1, 2, 127, 128, 129, 256, 257, 383, 385, 640, 1025] {
        for index in 0..records {
            let [one, other] = pair(records, index).map(|key| expand(records, &key));
            let difference: Vec<u128> = one.iter().zip(&other).map(|(a, b)| a ^ b).collect();
            assert_eq!(difference, unit(records, index), "record {index} of {records}");
            // And neither is the unit vector or zero itself: both are about half ones. 128 coins stray from 64 by 48 with probability 2^-55.
            for leaf in one.iter().chain(&other) {
                assert!((16..=112).contains(&leaf.count_ones()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn in_large_domains_too(
        records in 1u64..=1 << 48,
        index in any::<u64>(),
        elsewhere in prop::collection::vec(any::<u64>(), 8),
    ) {
        let index = index % records;
        let keys = pair(records, index);
        let wanted = index / 128;
        let last = (records - 1) / 128;
        let near = [wanted.saturating_sub(1), wanted, (wanted + 1).min(last), 0, last];
        for position in elsewhere.iter().map(|one| one % (last + 1)).chain(near) {
            let [one, other] = [&keys[0], &keys[1]].map(|key| leaf(key, position));
            let expected = if position == wanted { 1 << (index % 128) } else { 0 };
            prop_assert_eq!(one ^ other, expected);
            prop_assert_ne!(one, 0);
        }
    }

    #[test]
    fn any_piece_of_an_expansion_is_that_piece_of_the_whole(
        records in 1u64..=1 << 19,
        level in any::<u32>(),
        position in any::<u64>(),
        len in any::<usize>(),
    ) {
        let [key, _] = pair(records, 0);
        let keys = keys();
        let evaluation = Evaluation::new(Kernels::detect(), &keys, &key);
        let whole = expand(records, &key);
        let depth = evaluation.depth();
        let level = level % (depth + 1);
        let below = 1 << (depth - level);
        let position = position % whole.len().div_ceil(below) as u64;
        let top = evaluation.node(level, position);
        let rest = &whole[position as usize * below..];
        let len = 1 + len % rest.len().min(below);

        let mut leaves = vec![0; len];
        evaluation.leaves(level, &[top], &mut leaves);
        prop_assert_eq!(&leaves, &rest[..len]);

        // The same by way of the nodes of another level.
        let middle = (level + depth) / 2;
        let step = 1 << (depth - middle);
        let mut nodes = vec![0; len.div_ceil(step)];
        evaluation.nodes(level, &[top], middle, &mut nodes);
        let mut at_once = vec![0; len];
        evaluation.leaves(middle, &nodes, &mut at_once);
        prop_assert_eq!(&at_once, &leaves);
        for (node, expected) in nodes.iter().zip(leaves.chunks(step)) {
            let mut leaves = vec![0; expected.len()];
            evaluation.leaves(middle, &[*node], &mut leaves);
            prop_assert_eq!(&leaves, expected);
        }
    }

    #[test]
    fn whatever_is_accepted_is_what_would_be_encoded(
        records in 1u64..=1 << 20,
        bytes in prop::collection::vec(any::<u8>(), 250),
    ) {
        let domain = Domain::of_records(shape(records));
        let bytes = &bytes[..Key::encoded_len(domain)];
        match Key::decode(domain, bytes) {
            Ok(key) => {
                prop_assert_eq!(key.encode(), bytes);
                // Whatever a stranger sends expands to something.
                prop_assert_eq!(expand(records, &key).len() as u64, domain.leaves());
            }
            Err(error) => prop_assert_eq!(error.blame(), Blame::InvalidMessage),
        }
    }
}

#[test]
fn the_expansion_is_the_same_from_the_nodes_of_every_level() {
    // More leaves than are grown together, and some missing at the end.
    let records = 128 * 5_000 - 1;
    let [key, _] = pair(records, 77);
    let keys = keys();
    let evaluation = Evaluation::new(Kernels::detect(), &keys, &key);
    let leaf_by_leaf: Vec<u128> = (0..5_000).map(|position| leaf(&key, position)).collect();
    for level in 0..=evaluation.depth() {
        let mut nodes = vec![0; 5_000usize.div_ceil(1 << (evaluation.depth() - level))];
        evaluation.nodes(0, &[key.root], level, &mut nodes);
        let one_by_one = (0..nodes.len()).map(|position| evaluation.node(level, position as u64));
        assert!(one_by_one.eq(nodes.iter().copied()), "nodes of level {level}");
        for len in [1, 1_024, 1_025, 4_097, 5_000] {
            let mut leaves = vec![0; len];
            evaluation.leaves(level, &nodes, &mut leaves);
            assert!(leaves == leaf_by_leaf[..len], "{len} leaves from level {level}");
        }
    }
}

#[test]
fn off_the_path_the_trees_are_equal_and_on_it_they_are_not() {
    let shape = shape(128 * 29);
    let domain = Domain::of_records(shape);
    let (kernels, keys) = (Kernels::detect(), keys());
    let mut rng = SecretRng::from_os().unwrap();
    for leaf in 0..domain.leaves() {
        let trees = TreePair::generate(kernels, &keys, domain, leaf, &mut rng);
        let key = |party: usize| Key {
            root: trees.roots[party],
            corrections: trees.corrections.clone(),
            final_word: 0,
        };
        let (one, other) = (key(0), key(1));
        let [one, other] = [&one, &other].map(|key| Evaluation::new(kernels, &keys, key));
        for level in 0..=domain.depth() {
            let on_path = leaf >> (domain.depth() - level);
            for position in 0..1 << level {
                let nodes = [one.node(level, position), other.node(level, position)];
                if position == on_path {
                    assert_ne!(nodes[0] & CONTROL, nodes[1] & CONTROL, "exactly one is corrected");
                    assert_ne!(nodes[0] >> 1, nodes[1] >> 1, "the seeds are unrelated");
                } else {
                    assert_eq!(nodes[0], nodes[1], "level {level}, position {position}");
                }
            }
        }
        assert_eq!(trees.ends, [one, other].map(|tree| tree.node(domain.depth(), leaf)));
    }
}

#[test]
fn every_arm_makes_and_expands_the_same_keys() {
    let shape = shape(128 * 2100 + 5);
    let domain = Domain::of_records(shape);
    let index = RecordIndex::new(128 * 1500 + 77, shape).unwrap();
    let keys = keys();
    let mut rng = SecretRng::from_os().unwrap();
    for maker in Arm::available() {
        let kernels = Kernels::with_arm(maker).unwrap();
        let pair = Key::pair(kernels, &keys, domain, &index, &mut rng);
        for (reader, key) in Arm::available().into_iter().zip(pair.iter().cycle()) {
            let mut leaves = vec![0; domain.leaves() as usize];
            Evaluation::new(Kernels::with_arm(reader).unwrap(), &keys, key).leaves(
                0,
                &[key.root],
                &mut leaves,
            );
            let mut oracle = vec![0; domain.leaves() as usize];
            Evaluation::new(Kernels::with_arm(Arm::Portable).unwrap(), &keys, key).leaves(
                0,
                &[key.root],
                &mut oracle,
            );
            assert!(leaves == oracle, "{reader} differs from portable");
        }
        let [one, other] = [&pair[0], &pair[1]].map(|key| leaf(key, 1500));
        assert_eq!(one ^ other, 1 << 77, "made by {maker}");
    }
}

#[test]
fn sizes_follow_from_the_depth_alone() {
    for (records, len) in
        [(1, 32), (128, 32), (129, 49), (1 << 15, 32 + 8 * 16 + 1), (1 << 25, 323)]
    {
        let domain = Domain::of_records(shape(records));
        assert_eq!(Key::encoded_len(domain), len);
        for index in [0, records / 2, records - 1] {
            let pair = pair(records, index);
            assert!(pair.iter().all(|key| key.encode().len() == len), "{records} records");
        }
    }
    // The largest table there can be: 2^48 records.
    assert_eq!(Key::encoded_len(Domain::of_records(shape(1 << 48))), 694);
}

#[test]
fn a_key_of_any_other_length_is_refused() {
    for records in [1, 129, 1000, 1 << 17] {
        let domain = Domain::of_records(shape(records));
        let right = Key::encoded_len(domain);
        for len in (0..right).chain(right + 1..right + 40).chain([4 * right]) {
            let refusal = Key::decode(domain, &vec![0; len]).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes for {records} records");
        }
        assert!(Key::decode(domain, &vec![0; right]).is_ok());
    }
}

#[test]
fn bits_for_levels_that_are_not_there_are_refused() {
    for depth in 1..=17u32 {
        let domain = Domain::of_records(shape(128 << depth));
        assert_eq!(domain.depth(), depth);
        let controls = 16 + 16 * depth as usize;
        for bit in 0..depth.next_multiple_of(8) {
            let mut bytes = vec![0; Key::encoded_len(domain)];
            bytes[controls + bit as usize / 8] |= 1 << (bit % 8);
            match Key::decode(domain, &bytes) {
                Ok(key) => {
                    assert!(bit < depth);
                    let set = |level: usize| key.corrections[level] == [0, 1];
                    assert!((0..depth as usize).all(|level| set(level) == (level == bit as usize)));
                }
                Err(error) => {
                    assert!(bit >= depth, "bit {bit} of depth {depth}");
                    assert_eq!(error.blame(), Blame::InvalidMessage);
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "no 3 nodes of level 1")]
fn more_nodes_than_there_are_is_a_bug() {
    let [key, _] = pair(1000, 0);
    Evaluation::new(Kernels::detect(), &keys(), &key).nodes(0, &[key.root], 1, &mut [0; 3]);
}
