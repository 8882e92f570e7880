//! All words of all messages; and tables around the edges of trees.

use super::*;
use std::collections::HashSet;

#[test]
fn sizes_are_as_promised() {
    let parameters = DpfParameters::new(&identity(1 << 25, 32));
    assert_eq!(DpfQuery::encoded_len(&parameters), 339);
    assert_eq!(DpfAnswer::encoded_len(&parameters), 32);
    let one_record = DpfParameters::new(&identity(1, 1));
    assert_eq!(DpfQuery::encoded_len(&one_record), 48);
}

#[test]
fn no_two_queries_have_anything_in_common_and_lengths_never_depend_on_the_index() {
    let world = World::new(5_000, 5);
    let len = DpfQuery::encoded_len(world.parameters());
    let mut seen = HashSet::new();
    for of in (0..5_000).step_by(13) {
        for _ in 0..2 {
            let mut rng = SecretRng::from_os().unwrap();
            let [one, other] = world.queries(of, &mut rng);
            assert_eq!((one.len(), other.len()), (len, len));
            // The two keys of one pair share everything except the root, including the nonce. Each
            // goes to its own server.
            assert_eq!((&one[..16], &one[32..]), (&other[..16], &other[32..]));
            let (words, _) = one[..len - 17].as_chunks::<16>();
            let last = [&one[len - 16..], &other[16..32]].map(|word| word.try_into().unwrap());
            for word in words.iter().chain(&last) {
                assert!(seen.insert(*word), "a word of a query for record {of} was sent before");
            }
        }
    }
}

#[test]
fn two_lookups_of_one_record_differ_in_everything_that_both_servers_see() {
    use privet_core::dpf::Evaluation;
    let world = World::new(5_000, 5);
    let mut rng = SecretRng::from_os().unwrap();
    let [lookup, again]: [[_; 2]; 2] = [(); 2].map(|()| world.queries(77, &mut rng));
    for (one, other) in lookup.iter().zip(&again) {
        assert_ne!(one[..16], other[..16], "the nonces");
        // Nonce, root, corrections and final word have equal bytes only by chance, one of 256: 14
        // of these 145 with probability below 10^-14.
        let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
        assert!(same < 14, "{same} bytes of {} are the same", one.len());
        let leaves = |bytes: &[u8]| {
            let query = world.query(bytes);
            let tree = Evaluation::new(Kernels::detect(), world.parameters().table(), &query.key);
            let mut leaves = vec![0u128; 40];
            tree.leaves(tree.root(), &mut leaves);
            leaves
        };
        // The expansions have nothing in common either: 5 120 coins deviate from their half by 400
        // with probability below 10^-27.
        let pairs = leaves(one).into_iter().zip(leaves(other));
        let differ: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
        assert!((2_160..=2_960).contains(&differ), "{differ} of 5120 bits differ");
    }
    // The nonce alone makes two trees differ: one lookup's key with the nonce of the other lookup
    // selects other records.
    let [mut mixed, _] = lookup.clone();
    mixed[..16].copy_from_slice(&again[0][..16]);
    assert_ne!(world.answer(0, &lookup[0]), world.answer(0, &mixed));
}

#[test]
fn records_around_every_power_of_two_come_back() {
    for depth in 1..=9 {
        for records in [(128 << depth) - 1, 128 << depth, (128 << depth) + 1] {
            let middle = records / 2;
            World::new(records, 3).check(&[
                0,
                127,
                128,
                middle - 1,
                middle,
                middle + 1,
                records - 1,
            ]);
        }
    }
}
