//! Two expansions are equal except for one bit. Pieces of an expansion equal the whole. Keys equal
//! their decoded encodings.

use super::*;
use crate::{Blame, RecordIndex, SecretRng, TableId};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use proptest::prelude::*;

fn shape(records: u64) -> TableShape {
    TableShape::new(records, 1).unwrap()
}

const TABLE: TableId = TableId(*b"id of some table");

fn pair(records: u64, index: u64) -> [Key; 2] {
    let shape = shape(records);
    let index = RecordIndex::new(index, shape).unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    Key::pair(Kernels::detect(), &TABLE, Domain::of_records(shape), &index, &mut rng)
}

/// All leaves that the table needs, at once.
fn expand(records: u64, key: &Key) -> Vec<u128> {
    expand_on(Kernels::detect(), records, key)
}

fn expand_on(kernels: Kernels, records: u64, key: &Key) -> Vec<u128> {
    let mut leaves = vec![0; Domain::of_records(shape(records)).leaves() as usize];
    let evaluation = Evaluation::new(kernels, &TABLE, key);
    evaluation.leaves(evaluation.root(), &mut leaves);
    leaves
}

/// One leaf on its own.
fn leaf(key: &Key, position: u64) -> u128 {
    let evaluation = Evaluation::new(Kernels::detect(), &TABLE, key);
    let mut leaf = [0];
    let node = evaluation.descend(evaluation.root(), evaluation.depth(), position);
    evaluation.leaves(node, &mut leaf);
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
            // Neither is the unit vector or zero: both are about half ones. 128 coins deviate from
            // 64 by 48 with probability 2^-55.
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
        let evaluation = Evaluation::new(Kernels::detect(), &TABLE, &key);
        let whole = expand(records, &key);
        let depth = evaluation.depth();
        let level = level % (depth + 1);
        let below = 1 << (depth - level);
        let position = position % whole.len().div_ceil(below) as u64;
        let top = evaluation.descend(evaluation.root(), level, position);
        let rest = &whole[position as usize * below..];
        let len = 1 + len % rest.len().min(below);

        let mut leaves = vec![0; len];
        evaluation.leaves(top, &mut leaves);
        prop_assert_eq!(&leaves, &rest[..len]);

        // The same through the nodes of another level.
        let middle = (level + depth) / 2;
        let step = 1 << (depth - middle);
        let nodes = evaluation.nodes(top, middle, len.div_ceil(step));
        for (place, expected) in leaves.chunks(step).enumerate() {
            prop_assert_eq!(nodes.node(place), evaluation.descend(top, middle, place as u64));
            let mut leaves = vec![0; expected.len()];
            evaluation.leaves(nodes.node(place), &mut leaves);
            prop_assert_eq!(&leaves, expected);
        }
    }

    #[test]
    fn whatever_is_accepted_is_what_would_be_encoded(
        records in 1u64..=1 << 20,
        bytes in prop::collection::vec(any::<u8>(), 266),
    ) {
        let domain = Domain::of_records(shape(records));
        let bytes = &bytes[..Key::encoded_len(domain)];
        match Key::decode(domain, bytes) {
            Ok(key) => {
                prop_assert_eq!(key.encode(), bytes);
                // Any bytes from outside expand to something.
                prop_assert_eq!(expand(records, &key).len() as u64, domain.leaves());
            }
            Err(error) => prop_assert_eq!(error.blame(), Blame::InvalidMessage),
        }
    }
}

#[test]
fn the_expansion_is_the_same_from_the_nodes_of_every_level() {
    // More leaves than are grown together, and some missing at the end.
    const LEAVES: usize = 5_000;
    let [key, _] = pair(128 * LEAVES as u64 - 1, 77);
    let evaluation = Evaluation::new(Kernels::detect(), &TABLE, &key);
    let (root, depth) = (evaluation.root(), evaluation.depth());
    let leaf_by_leaf: Vec<u128> = (0..LEAVES as u64).map(|position| leaf(&key, position)).collect();
    for level in 0..=depth {
        let below = 1 << (depth - level);
        let count = LEAVES.div_ceil(below);
        let nodes = evaluation.nodes(root, level, count);
        for (place, expected) in leaf_by_leaf.chunks(below).enumerate() {
            let node = nodes.node(place);
            assert_eq!(node, evaluation.descend(root, level, place as u64), "of level {level}");
            let mut leaves = vec![0; expected.len()];
            evaluation.leaves(node, &mut leaves);
            assert!(leaves == expected, "below node {place} of level {level}");
        }
    }
    for len in [0, 1, 127, 128, 129, 1_024, 1_025, 2_048, 4_097, LEAVES] {
        let mut leaves = vec![0; len];
        evaluation.leaves(root, &mut leaves);
        assert!(leaves == leaf_by_leaf[..len], "{len} leaves");
    }
}

#[test]
fn off_the_path_the_trees_are_equal_and_on_it_they_are_not() {
    let shape = shape(128 * 29);
    let domain = Domain::of_records(shape);
    let kernels = Kernels::detect();
    let mut rng = SecretRng::from_os().unwrap();
    for leaf in 0..domain.leaves() {
        let nonce = Nonce::draw(&mut rng);
        let trees = TreePair::generate(kernels, &nonce.tree_keys(&TABLE), domain, leaf, &mut rng);
        let corrections = &trees.corrections;
        let keys = trees.roots.map(|root| Key {
            nonce,
            root,
            corrections: corrections.clone(),
            final_word: 0,
        });
        let both = keys.each_ref().map(|key| Evaluation::new(kernels, &TABLE, key));
        for level in 0..=domain.depth() {
            let on_path = leaf >> (domain.depth() - level);
            for position in 0..1 << level {
                let nodes =
                    both.each_ref().map(|tree| tree.descend(tree.root(), level, position).value());
                if position == on_path {
                    assert_ne!(nodes[0] & CONTROL, nodes[1] & CONTROL, "exactly one is corrected");
                    assert_ne!(nodes[0] >> 1, nodes[1] >> 1, "the seeds are unrelated");
                } else {
                    assert_eq!(nodes[0], nodes[1], "level {level}, position {position}");
                }
                if level == domain.depth() && position == on_path {
                    assert_eq!(nodes, trees.ends);
                }
            }
        }
    }
}

#[test]
fn every_arm_makes_and_expands_the_same_keys() {
    let records = 128 * 2100 + 5;
    let domain = Domain::of_records(shape(records));
    let index = RecordIndex::new(128 * 1500 + 77, shape(records)).unwrap();
    let on = |arm: Arm| Kernels::with_arm(arm).unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    for maker in Arm::available() {
        let pair = Key::pair(on(maker), &TABLE, domain, &index, &mut rng);
        for key in &pair {
            let oracle = expand_on(on(Arm::Portable), records, key);
            for reader in Arm::available() {
                assert!(
                    expand_on(on(reader), records, key) == oracle,
                    "{reader} differs from portable"
                );
            }
        }
        let [one, other] = pair.map(|key| expand(records, &key));
        let difference: Vec<u128> = one.iter().zip(&other).map(|(a, b)| a ^ b).collect();
        assert_eq!(difference, unit(records, index.expose()), "made by {maker}");
    }
}

#[test]
fn the_aes_keys_of_a_lookup_follow_from_table_and_nonce() {
    let records = 1_000;
    let [one, other] = pair(records, 3);
    assert_eq!(one.nonce(), other.nonce());
    let leaves = expand(records, &one);

    // With another table, or with another nonce, the same key expands to different bits.
    let far_apart = |others: &[u128]| {
        leaves.iter().zip(others).all(|(one, other)| (one ^ other).count_ones() > 16)
    };
    let mut of_another_table = vec![0; leaves.len()];
    let evaluation = Evaluation::new(Kernels::detect(), &TableId([1; 16]), &one);
    evaluation.leaves(evaluation.root(), &mut of_another_table);
    assert!(far_apart(&of_another_table));
    for bit in 0..128 {
        let mut bytes = one.encode();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let changed = Key::decode(Domain::of_records(shape(records)), &bytes).unwrap();
        assert!(far_apart(&expand(records, &changed)), "bit {bit} of the nonce");
    }
}

#[test]
fn the_index_of_a_larger_table_is_a_bug() {
    let domain = Domain::of_records(shape(1_000));
    let make = |index: u64| {
        let index = RecordIndex::new(index, shape(2_000)).unwrap();
        let mut rng = SecretRng::from_os().unwrap();
        Key::pair(Kernels::detect(), &TABLE, domain, &index, &mut rng)
    };
    make(999);
    // In the last leaf, but beyond the last record; in a leaf that exists only in the tree; beyond
    // the tree.
    for index in [1_000, 1_023, 1_024, 1_999] {
        let panic = std::panic::catch_unwind(|| make(index)).err().unwrap();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains("defined on 1000 records"), "{said}");
        assert!(index == 1_000 || !said.contains(&index.to_string()), "{said}");
    }
}

#[test]
#[should_panic(expected = "no such leaf among 29")]
fn a_leaf_beyond_the_domain_is_a_bug() {
    let domain = Domain::of_records(shape(128 * 29));
    let mut rng = SecretRng::from_os().unwrap();
    let keys = Nonce::draw(&mut rng).tree_keys(&TABLE);
    TreePair::generate(Kernels::detect(), &keys, domain, 29, &mut rng);
}

#[test]
fn sizes_follow_from_the_depth_alone() {
    for (records, len) in
        [(1, 48), (128, 48), (129, 65), (1 << 15, 48 + 8 * 16 + 1), (1 << 25, 339)]
    {
        let domain = Domain::of_records(shape(records));
        assert_eq!(Key::encoded_len(domain), len);
        for index in [0, records / 2, records - 1] {
            let pair = pair(records, index);
            assert!(pair.iter().all(|key| key.encode().len() == len), "{records} records");
        }
    }
    // The largest table there can be: 2^48 records.
    assert_eq!(Key::encoded_len(Domain::of_records(shape(1 << 48))), 710);
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
        let controls = 32 + 16 * depth as usize;
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
    let evaluation = Evaluation::new(Kernels::detect(), &TABLE, &key);
    evaluation.nodes(evaluation.root(), 1, 3);
}

#[test]
#[should_panic(expected = "no 1 nodes of level 1 below one of level 2")]
fn nodes_above_a_node_are_a_bug() {
    let [key, _] = pair(1000, 0);
    let evaluation = Evaluation::new(Kernels::detect(), &TABLE, &key);
    let low = evaluation.descend(evaluation.root(), 2, 3);
    evaluation.descend(low, 1, 0);
}

/// Nodes of the last level and leaves, all that the table needs.
fn ends(kernels: Kernels, records: u64, key: &Key) -> [Vec<u128>; 2] {
    let [mut nodes, mut leaves] = [vec![0; records as usize], vec![1; records as usize]];
    let evaluation = Evaluation::new(kernels, &TABLE, key);
    evaluation.ends(evaluation.root(), &mut nodes, &mut leaves);
    [nodes, leaves]
}

fn pair_with_payload(records: u64, index: u64, payload: u128) -> [Key; 2] {
    let shape = shape(records);
    let index = RecordIndex::new(index, shape).unwrap();
    let mut rng = SecretRng::from_os().unwrap();
    let domain = Domain::of_payloads(shape);
    Key::pair_with_payload(Kernels::detect(), &TABLE, domain, &index, &payload, &mut rng)
}

#[test]
fn a_payload_stands_at_the_index_alone_and_a_one_beside_it() {
    for records in [1, 2, 3, 16, 31, 130] {
        for index in 0..records {
            for payload in [0, 1, u128::MAX, 0x1234 << 90] {
                let keys = pair_with_payload(records, index, payload);
                let [one, other] = keys.each_ref().map(|key| ends(Kernels::detect(), records, key));
                for place in 0..records as usize {
                    let here = place as u64 == index;
                    let bits = (one[0][place] ^ other[0][place]) & CONTROL;
                    assert_eq!(bits, u128::from(here), "the bit at {place} of {records}");
                    let difference = one[1][place] ^ other[1][place];
                    assert_eq!(difference, if here { payload } else { 0 }, "at {place}");
                    assert_ne!(one[1][place], 0);
                }
            }
        }
    }
}

#[test]
fn pieces_of_nodes_and_leaves_are_those_of_the_whole_on_every_arm() {
    let records = 5_000;
    let [key, _] = pair_with_payload(records, 4_711, 9);
    let whole = ends(Kernels::with_arm(Arm::Portable).unwrap(), records, &key);
    for arm in Arm::available() {
        let kernels = Kernels::with_arm(arm).unwrap();
        assert!(ends(kernels, records, &key) == whole, "{arm}");
        let evaluation = Evaluation::new(kernels, &TABLE, &key);
        for level in [0, 3, 10, evaluation.depth()] {
            let below = 1 << (evaluation.depth() - level);
            let tops = evaluation.nodes(evaluation.root(), level, 5_000usize.div_ceil(below));
            let pieces = whole[0].chunks(below).zip(whole[1].chunks(below));
            for (place, (expected_nodes, expected_leaves)) in pieces.enumerate() {
                let len = expected_nodes.len();
                let [mut nodes, mut leaves] = [vec![3; len], vec![4; len]];
                evaluation.ends(tops.node(place), &mut nodes, &mut leaves);
                assert!(nodes == expected_nodes && leaves == expected_leaves, "{arm}: {place}");
            }
        }
    }
}

#[test]
fn a_key_with_a_payload_has_a_level_for_each_halving_of_the_records() {
    for (records, depth) in [(1, 0), (2, 1), (3, 2), (1 << 20, 20), (1 << 48, 48)] {
        let domain = Domain::of_payloads(shape(records));
        assert_eq!((domain.depth(), domain.leaves()), (depth, records));
        assert_eq!(
            Key::encoded_len(domain),
            16 * (depth as usize + 3) + depth.div_ceil(8) as usize
        );
    }
    for key in pair_with_payload(1_000, 999, 5) {
        let domain = Domain::of_payloads(shape(1_000));
        let again = Key::decode(domain, &key.encode()).unwrap();
        assert!(ends(Kernels::detect(), 1_000, &again) == ends(Kernels::detect(), 1_000, &key));
    }
}

#[test]
fn a_domain_for_bits_carries_no_payload_and_one_for_payloads_no_bits() {
    let shape = shape(1_000);
    let index = RecordIndex::new(3, shape).unwrap();
    let kernels = Kernels::detect();
    let (bits, payloads) = (Domain::of_records(shape), Domain::of_payloads(shape));
    let panics = |make: &dyn Fn(&mut SecretRng) -> [Key; 2]| {
        let mut rng = SecretRng::from_os().unwrap();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| make(&mut rng))).is_err()
    };
    assert!(panics(&|rng| Key::pair(kernels, &TABLE, payloads, &index, rng)));
    assert!(panics(&|rng| Key::pair_with_payload(kernels, &TABLE, bits, &index, &1, rng)));
    assert!(!panics(&|rng| Key::pair(kernels, &TABLE, bits, &index, rng)));
    assert!(!panics(&|rng| Key::pair_with_payload(kernels, &TABLE, payloads, &index, &1, rng)));
}
