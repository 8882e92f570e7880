//! What crosses the wire: exact sizes, nothing but canonical encodings, and no query like another.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn there_is_nothing_to_announce() {
    let identity = identity(1_000, 10);
    let parameters = ApirDpfParameters::new(&identity);
    assert!(parameters.encode().is_empty());
    let again = ApirDpfParameters::decode(&identity, &[]).unwrap();
    assert_eq!((again.table(), again.shape()), (parameters.table(), parameters.shape()));
    assert_eq!(again.domain(), parameters.domain());
    let refusal = ApirDpfParameters::decode(&identity, &[0]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::InvalidMessage);
    assert!(ApirDpf::offline_phase(&parameters).is_empty());
}

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
fn a_message_of_any_other_length_is_refused() {
    for records in [1, 200, 5_000] {
        let parameters = ApirDpfParameters::new(&identity(records, 9));
        let right = ApirDpfQuery::encoded_len(&parameters);
        for len in 0..2 * right {
            match ApirDpfQuery::decode(&parameters, &vec![0; len]) {
                Ok(_) => assert_eq!(len, right),
                Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes"),
            }
        }
        assert!(ApirDpfQuery::decode(&parameters, &vec![0; right]).is_ok());
        for len in (0..60).filter(|len| *len != 25) {
            let refusal = ApirDpfAnswer::decode(&parameters, &vec![0; len]).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "an answer of {len} bytes");
        }
        assert!(ApirDpfAnswer::decode(&parameters, &[0; 25]).is_ok());
    }
}

#[test]
fn bits_for_levels_that_are_not_there_are_refused() {
    // 50 records: depth 6, so two bits of the byte before the final word are unused.
    let parameters = ApirDpfParameters::new(&identity(50, 9));
    let len = ApirDpfQuery::encoded_len(&parameters);
    for bit in 0..8 {
        let mut bytes = vec![0xa5; len];
        bytes[len - 17] = 1 << bit;
        match ApirDpfQuery::decode(&parameters, &bytes) {
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
        records in 1u64..=1_000,
        record_len in 1u64..=70,
        bytes in prop::collection::vec(any::<u8>(), 300),
        plain in any::<u8>(),
    ) {
        let world = World::new(records, record_len);
        let len = ApirDpfQuery::encoded_len(world.parameters());
        for bytes in [&bytes[..len], &vec![plain; len]] {
            match ApirDpfQuery::decode(world.parameters(), bytes) {
                Ok(query) => {
                    prop_assert_eq!(query.encode(), bytes);
                    prop_assert_eq!(world.answer(1, &[query]).len(), 1);
                }
                Err(refusal) => prop_assert_eq!(refusal.blame(), Blame::InvalidMessage),
            }
        }
    }

    #[test]
    fn a_strangers_answer_is_what_would_be_encoded_and_never_believed(
        record_len in 1u64..=70,
        bytes in prop::collection::vec(any::<u8>(), 150),
    ) {
        let world = World::new(20, record_len);
        let bytes = &bytes[..ApirDpfAnswer::encoded_len(world.parameters())];
        let answer = ApirDpfAnswer::decode(world.parameters(), bytes).unwrap();
        prop_assert_eq!(answer.encode(), bytes);
        let mut rng = SecretRng::from_os().unwrap();
        let (queries, pending) = world.queries(7, &mut rng);
        let honest = world.read_answer(&world.answer_bytes(0, &queries[0]));
        let refusal = world.client.recover(pending, &[honest, answer]).err().unwrap();
        prop_assert_eq!(refusal.blame(), Blame::Integrity);
    }
}

#[test]
fn no_two_queries_have_anything_in_common_and_lengths_never_depend_on_the_index() {
    let world = World::new(1_000, 5);
    let len = ApirDpfQuery::encoded_len(world.parameters());
    let mut seen = HashSet::new();
    for of in (0..1_000).step_by(3) {
        for _ in 0..2 {
            let mut rng = SecretRng::from_os().unwrap();
            let ([one, other], pending) = world.queries(of, &mut rng);
            assert_eq!((one.len(), other.len()), (len, len));
            // The two keys of one pair share all but the root, nonce included, and each goes to its own server.
            assert_eq!((&one[..16], &one[32..]), (&other[..16], &other[32..]));
            // Nonce, root and ten corrections; two bytes of control bits; the final word, the other root, and α, which neither server sees.
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
fn making_a_query_draws_as_much_for_every_index() {
    // The generator of randomness is then at the same place: no draw was repeated or left out for some index.
    let world = World::new(1_000, 5);
    let next = |of: u64| {
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        world.queries(of, &mut rng);
        rng.next_u64()
    };
    let mut untouched = SecretRng::from_fixed_seed([3; 32]);
    untouched.fill(&mut [0; 64]);
    let expected = untouched.next_u64();
    assert!((0..1_000).all(|of| next(of) == expected));
}
