//! What crosses the wire: exact sizes, nothing but canonical encodings, no query like another.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn parameters_are_four_bytes() {
    let identity = identity(1_000, 10);
    let setting = setting(4, 5, 13, 6);
    let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
    assert_eq!(parameters.encode(), [4, 5, 13, 6]);
    let again = ManyServersParameters::decode(&identity, &[4, 5, 13, 6]).unwrap();
    assert_eq!(again.encode(), parameters.encode());
    assert_eq!((again.shape(), again.entry_len()), (identity.shape, parameters.entry_len()));
    assert_eq!((again.points(), again.ball().count()), (5u64.pow(13), 14));
    assert_eq!(FiniteDifferencesMany::servers(&again), 4);
    assert!(FiniteDifferencesMany::offline_phase(&again).is_empty());
    for len in [0, 1, 2, 3, 5, 8] {
        let bytes = [4, 5, 13, 6, 0, 0, 0, 0];
        let refusal = ManyServersParameters::decode(&identity, &bytes[..len]).err().unwrap();
        assert_eq!(refusal.blame(), Blame::InvalidMessage);
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    // A table of 20 records of 10 bytes.
    let identity = identity(20, 10);
    assert!(ManyServersParameters::decode(&identity, &[3, 3, 6, 3]).is_ok());
    for nonsense in [
        [0, 3, 6, 3],      // no server
        [1, 3, 6, 3],      // one server
        [2, 3, 6, 3],      // two servers
        [4, 3, 6, 3],      // more servers than elements
        [255, 13, 6, 3],   // many more
        [3, 0, 6, 3],      // no field
        [3, 2, 6, 3],      // a field too small
        [3, 4, 6, 3],      // not a prime
        [3, 9, 6, 3],      // not a prime either
        [3, 17, 6, 3],     // a prime too large
        [3, 255, 6, 3],    // no prime, and too large
        [3, 3, 0, 0],      // no variables
        [3, 3, 6, 0],      // a constant
        [3, 3, 6, 7],      // more variables in a product than there are
        [3, 3, 5, 3],      // ten coefficients
        [3, 3, 6, 1],      // six coefficients
        [3, 3, 40, 20],    // too many points
        [3, 3, 29, 14],    // 3^29 points of eleven bytes
        [3, 13, 255, 100], // many more
    ] {
        let refusal = ManyServersParameters::decode(&identity, &nonsense).err();
        let refusal = refusal.unwrap_or_else(|| panic!("{nonsense:?} were taken"));
        assert_eq!(refusal.blame(), Blame::PeerMisbehaved, "{nonsense:?}");
        let [servers, field, variables, degree] = nonsense.map(u32::from);
        let setting = Setting { servers, field, variables, degree };
        let refusal = ManyServersParameters::with(identity.shape, setting).err().unwrap();
        assert_eq!(refusal.blame(), Blame::ApiMisuse, "{nonsense:?}");
    }
}

proptest! {
    #[test]
    fn any_four_bytes_are_parameters_that_are_kept_or_refused(
        bytes in any::<[u8; 4]>(),
        small in [0u8..15, 0u8..15, 0u8..30, 0u8..30],
        records in 1u64..=1_000_000,
        record_len in 1u64..=1_000,
    ) {
        let identity = identity(records, record_len);
        for bytes in [bytes, small] {
            match ManyServersParameters::decode(&identity, &bytes) {
                Ok(parameters) => {
                    prop_assert_eq!(parameters.encode(), bytes);
                    prop_assert!(parameters.points_bytes() <= 1 << 48);
                    prop_assert!(parameters.words().count() >= records);
                    let (servers, radius) = (parameters.servers(), parameters.ball().radius());
                    prop_assert!(servers * (radius + 1) > parameters.degree());
                }
                Err(refusal) => prop_assert_eq!(refusal.blame(), Blame::PeerMisbehaved),
            }
        }
    }
}

#[test]
fn every_number_of_servers_has_a_least_field() {
    let expected = [None, None, None, Some(3), Some(5), Some(5), Some(7), Some(7)];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(least_field), expected);
    let expected = [Some(11), Some(11), Some(11), Some(11), Some(13), Some(13), None, None];
    assert_eq!([8, 9, 10, 11, 12, 13, 14, 100].map(least_field), expected);
}

#[test]
fn messages_of_any_other_length_are_refused() {
    let world = World::full(9, setting(3, 3, 6, 4));
    let parameters = world.parameters();
    for len in (0..30).filter(|len| *len != 8) {
        let refusal = ManyServersQuery::decode(parameters, &vec![0; len]).err().unwrap();
        assert_eq!(refusal.blame(), Blame::InvalidMessage, "a query of {len} bytes");
    }
    let right = ManyServersAnswer::encoded_len(parameters);
    assert_eq!(right, 7 * parameters.entry_len());
    for len in 0..2 * right {
        match ManyServersAnswer::decode(parameters, &vec![0; len]) {
            Ok(answer) => assert_eq!((len, answer.encode()), (right, vec![0; right])),
            Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage),
        }
    }
}

#[test]
fn points_that_do_not_exist_are_refused() {
    let world = World::full(1, setting(3, 5, 4, 2));
    let points = world.parameters().points();
    assert_eq!(points, 625);
    let decode = |z: u64| ManyServersQuery::decode(world.parameters(), &z.to_le_bytes());
    for point in [0, 1, 312, points - 1] {
        assert_eq!(decode(point).unwrap().encode(), point.to_le_bytes());
        assert_eq!(world.answer(&point.to_le_bytes()).len(), world.parameters().entry_len());
    }
    for point in [points, points + 1, 2 * points, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(decode(point).err().unwrap().blame(), Blame::InvalidMessage);
    }
}

#[test]
fn bytes_that_hold_no_symbols_are_refused() {
    for (field, packings) in FIELDS.into_iter().zip([243, 125, 49, 121, 169]) {
        let world = World::full(5, setting(3, field, 2, 1));
        let len = ManyServersAnswer::encoded_len(world.parameters());
        for byte in 0..=255 {
            for place in 0..len {
                let mut bytes = vec![packings - 1; len];
                bytes[place] = byte;
                match ManyServersAnswer::decode(world.parameters(), &bytes) {
                    Ok(answer) => assert!(byte < packings && answer.encode() == bytes),
                    Err(refusal) => {
                        assert!(byte >= packings);
                        assert_eq!(refusal.blame(), Blame::InvalidMessage);
                    }
                }
            }
        }
    }
}

#[test]
fn lengths_never_depend_on_the_index_and_points_do_not_repeat() {
    // 5^20 points: that one of some ten thousand occurs twice has a probability below 10^-6.
    let setting = setting(4, 5, 20, 3);
    let identity = identity(setting.capacity(), 1);
    let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
    let client = ManyServersClient::new(parameters).unwrap();
    let mut seen = HashSet::new();
    for of in 0..identity.shape.records() {
        for _ in 0..2 {
            let mut rng = SecretRng::from_os().unwrap();
            let index = RecordIndex::new(of, identity.shape).unwrap();
            let (queries, _) = client.query(&index, &mut rng).unwrap();
            assert_eq!(queries.len(), 4);
            for query in queries {
                let bytes = query.encode();
                assert_eq!(bytes.len(), 8);
                assert!(seen.insert(bytes), "a point of a query for record {of} was sent before");
            }
        }
    }
}

#[test]
fn making_a_query_draws_as_much_for_every_index() {
    let world = World::full(2, setting(3, 3, 7, 3));
    let next = |of: u64| {
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        world.queries(of, &mut rng);
        rng.next_u64()
    };
    let mut untouched = SecretRng::from_fixed_seed([3; 32]);
    // Two words for each variable.
    untouched.fill(&mut [0; 7 * 16]);
    let expected = untouched.next_u64();
    assert!((0..world.records()).all(|of| next(of) == expected));
}
