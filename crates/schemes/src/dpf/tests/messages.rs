//! What crosses the wire: exact sizes, nothing but canonical encodings, and no query like another.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn there_is_nothing_to_announce() {
    let identity = identity(1_000, 10);
    let parameters = DpfParameters::new(&identity);
    assert!(parameters.encode().is_empty());
    let again = DpfParameters::decode(&identity, &[]).unwrap();
    assert_eq!((again.table(), again.shape()), (parameters.table(), parameters.shape()));
    assert_eq!(again.domain(), parameters.domain());
    let refusal = DpfParameters::decode(&identity, &[0]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::InvalidMessage);
    assert!(Dpf::offline_phase(&parameters).is_empty());
}

#[test]
fn sizes_are_as_promised() {
    let parameters = DpfParameters::new(&identity(1 << 25, 32));
    assert_eq!(DpfQuery::encoded_len(&parameters), 339);
    assert_eq!(DpfAnswer::encoded_len(&parameters), 32);
    let one_record = DpfParameters::new(&identity(1, 1));
    assert_eq!(DpfQuery::encoded_len(&one_record), 48);
}

#[test]
fn a_message_of_any_other_length_is_refused() {
    for records in [1, 200, 5_000] {
        let parameters = DpfParameters::new(&identity(records, 9));
        let right = DpfQuery::encoded_len(&parameters);
        for len in 0..2 * right {
            let query = DpfQuery::decode(&parameters, &vec![0; len]);
            match query {
                Ok(_) => assert_eq!(len, right),
                Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes"),
            }
        }
        assert!(DpfQuery::decode(&parameters, &vec![0; right]).is_ok());
        for len in (0..20).filter(|len| *len != 9) {
            let refusal = DpfAnswer::decode(&parameters, &vec![0; len]).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "an answer of {len} bytes");
        }
    }
}

#[test]
fn bits_for_levels_that_are_not_there_are_refused() {
    // 40 leaves: depth 6, so two bits of the byte before the final word are unused.
    let parameters = DpfParameters::new(&identity(5_000, 9));
    let len = DpfQuery::encoded_len(&parameters);
    for bit in 0..8 {
        let mut bytes = vec![0xa5; len];
        bytes[len - 17] = 1 << bit;
        match DpfQuery::decode(&parameters, &bytes) {
            Ok(query) => {
                assert!(bit < 6);
                assert_eq!(query.encode(), bytes);
            }
            Err(refusal) => {
                assert!(bit >= 6);
                assert_eq!(refusal.blame(), Blame::InvalidMessage);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_strangers_key_is_answered_or_refused(
        records in 1u64..=3_000,
        record_len in 1u64..=70,
        bytes in prop::collection::vec(any::<u8>(), 200),
        plain in any::<u8>(),
    ) {
        let world = World::new(records, record_len);
        let len = DpfQuery::encoded_len(world.parameters());
        for bytes in [&bytes[..len], &vec![plain; len]] {
            match DpfQuery::decode(world.parameters(), bytes) {
                Ok(query) => {
                    prop_assert_eq!(query.encode(), bytes);
                    prop_assert_eq!(world.answer(1, &[query]).len(), 1);
                }
                Err(refusal) => prop_assert_eq!(refusal.blame(), Blame::InvalidMessage),
            }
        }
    }
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
            // The two keys of one pair share all but the root, nonce included, and each goes to its own server.
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
    let (lookup, again) = (world.queries(77, &mut rng), world.queries(77, &mut rng));
    for (one, other) in lookup.iter().zip(&again) {
        assert_ne!(one[..16], other[..16], "the nonces");
        // Nonce, root, corrections and final word have bytes in common by chance alone, one of 256: 14 of these 145 with probability below 10^-14.
        let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
        assert!(same < 14, "{same} bytes of {} are the same", one.len());
        let leaves = |bytes: &[u8]| {
            let query = world.query(bytes);
            let tree = Evaluation::new(Kernels::detect(), world.parameters().table(), &query.key);
            let mut leaves = vec![0u128; 40];
            tree.leaves(tree.root(), &mut leaves);
            leaves
        };
        // Nor do the expansions have anything in common: 5 120 coins stray from the half by 400 with probability below 10^-27.
        let pairs = leaves(one).into_iter().zip(leaves(other));
        let differ: u32 = pairs.map(|(one, other)| (one ^ other).count_ones()).sum();
        assert!((2_160..=2_960).contains(&differ), "{differ} of 5120 bits differ");
    }
    // The nonce alone makes two trees differ: the rest of one lookup's key under the nonce of the other selects other records.
    let [mut mixed, _] = lookup.clone();
    mixed[..16].copy_from_slice(&again[0][..16]);
    let answers = world.answer(0, &[world.query(&lookup[0]), world.query(&mixed)]);
    assert_ne!(answers[0].encode(), answers[1].encode());
}

#[test]
fn making_a_query_draws_as_much_for_every_index() {
    // The generator of randomness is then at the same place: no draw was repeated or left out for some index.
    let world = World::new(5_000, 5);
    let next = |of: u64| {
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        world.queries(of, &mut rng);
        rng.next_u64()
    };
    let mut untouched = SecretRng::from_fixed_seed([3; 32]);
    untouched.fill(&mut [0; 48]);
    let expected = untouched.next_u64();
    assert!((0..5_000).all(|of| next(of) == expected));
}
