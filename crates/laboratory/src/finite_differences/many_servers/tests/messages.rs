//! Messages: only parameters, points and symbols that exist are accepted.

use super::*;
use proptest::prelude::*;

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
fn points_that_do_not_exist_are_refused() {
    let world = full(1, setting(3, 5, 4, 2));
    let points = world.parameters().points();
    assert_eq!(points, 625);
    let decode = |z: u64| ManyServersQuery::decode(world.parameters(), &z.to_le_bytes());
    for point in [0, 1, 312, points - 1] {
        assert_eq!(decode(point).unwrap().encode(), point.to_le_bytes());
        assert_eq!(world.answer(0, &point.to_le_bytes()).len(), world.parameters().entry_len());
    }
    for point in [points, points + 1, 2 * points, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(decode(point).err().unwrap().blame(), Blame::InvalidMessage);
    }
}

#[test]
fn bytes_that_hold_no_symbols_are_refused() {
    for (field, packings) in FIELDS.into_iter().zip([243, 125, 49, 121, 169]) {
        let world = full(5, setting(3, field, 2, 1));
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
