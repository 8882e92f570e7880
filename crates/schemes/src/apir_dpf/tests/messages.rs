//! All words of all messages; and tables around the edges of trees and chunks.

use super::*;
use std::collections::HashSet;

#[test]
fn sizes_are_as_promised() {
    let parameters = ApirDpfParameters::new(&identity(1 << 20, 32));
    assert_eq!(ApirDpfQuery::encoded_len(&parameters), 371);
    assert_eq!(ApirDpfAnswer::encoded_len(&parameters), 32 + 32);
    let one_record = ApirDpfParameters::new(&identity(1, 1));
    assert_eq!(ApirDpfQuery::encoded_len(&one_record), 48);
    assert_eq!(ApirDpfAnswer::encoded_len(&one_record), 1 + 16);
    let odd = ApirDpfParameters::new(&identity(1, 33));
    assert_eq!((odd.elements(), ApirDpfAnswer::encoded_len(&odd)), (3, 33 + 48));
}

#[test]
fn no_two_queries_have_anything_in_common_and_lengths_never_depend_on_the_index() {
    let world = World::new(1_000, 5);
    let len = ApirDpfQuery::encoded_len(world.parameters());
    let mut seen = HashSet::new();
    for of in (0..1_000).step_by(3) {
        for _ in 0..2 {
            let mut rng = SecretRng::from_os().unwrap();
            let (queries, pending) = world.lookup(of, &mut rng);
            let [one, other] = &queries[..] else { panic!("two servers, two queries") };
            assert_eq!((one.len(), other.len()), (len, len));
            // The two keys of one pair share everything except the root, including the nonce. Each
            // goes to its own server.
            assert_eq!((&one[..16], &one[32..]), (&other[..16], &other[32..]));
            // Nonce, root and ten corrections; two bytes of control bits; the final word, the other
            // root, and α, which neither server sees.
            let (words, _) = one[..len - 18].as_chunks::<16>();
            let last = [&one[len - 16..], &other[16..32]].map(|word| word.try_into().unwrap());
            let alpha = pending.alpha.expose().to_le_bytes();
            for word in words.iter().chain(&last).chain([&alpha]) {
                assert!(seen.insert(*word), "a word of a query for record {of} was drawn before");
            }
        }
    }
}

#[test]
fn records_around_every_power_of_two_come_back() {
    for depth in 1u32..=12 {
        for records in [(1u64 << depth) - 1, 1 << depth, (1 << depth) + 1] {
            let middle = records / 2;
            let around = [middle.saturating_sub(1), middle, (middle + 1).min(records - 1)];
            World::new(records, 3).check(&[0, around[0], around[1], around[2], records - 1]);
        }
    }
}

#[test]
fn records_longer_than_a_chunk_come_back() {
    // The fewest records of a chunk, 16; the last chunk has only some.
    World::new(37, 20_001).check(&[0, 15, 16, 36]);
}
