//! What crosses the wire: exact sizes, nothing but canonical encodings.

use super::*;

#[test]
fn parameters_are_read_back_and_nothing_else_is() {
    let table = identity(700, 1);
    let of = |one_bit| {
        FiniteDifferencesParameters::new(table.shape, one_bit, &Choice::default()).unwrap()
    };
    for (form, parameters) in
        [of(false), of(true), of(true).of_digits().unwrap()].iter().enumerate()
    {
        let bytes = parameters.encode();
        assert_eq!(bytes[2], form as u8);
        let again = FiniteDifferencesParameters::decode(&table, &bytes).unwrap();
        assert_eq!(again.encode(), bytes);
        for len in [0, 2, 4] {
            let mut other = bytes.clone();
            other.resize(len, 0);
            let refused = FiniteDifferencesParameters::decode(&table, &other).err().unwrap();
            assert_eq!(refused.blame(), Blame::InvalidMessage);
        }
    }
    // Too few variables, even degrees, too high ones, too many points: whatever is accepted holds the table.
    for variables in 0..=255u8 {
        for degree in 0..=255u8 {
            let bytes = [variables, degree, 0];
            match FiniteDifferencesParameters::decode(&table, &bytes) {
                Ok(parameters) => {
                    assert!(parameters.words().count() >= 700 && degree % 2 == 1);
                    assert!(2 * degree <= variables && variables <= 48);
                }
                Err(refused) => assert_eq!(refused.blame(), Blame::PeerMisbehaved),
            }
        }
    }
    assert!(FiniteDifferencesParameters::decode(&table, &[13, 5, 3]).is_err());
    // Single bits are records of one byte.
    assert!(FiniteDifferencesParameters::decode(&identity(700, 2), &[13, 5, 1]).is_err());
    assert!(FiniteDifferencesParameters::decode(&identity(700, 2), &[13, 5, 2]).is_err());
}

#[test]
fn points_that_there_are_not_are_refused() {
    let shape = identity(700, 1).shape;
    let parameters = FiniteDifferencesParameters::with(shape, false, exactly(13, 5)).unwrap();
    assert_eq!(FiniteDifferencesQuery::encoded_len(&parameters), 2);
    for point in [0u16, 1, (1 << 13) - 1] {
        let bytes = point.to_le_bytes();
        assert_eq!(FiniteDifferencesQuery::decode(&parameters, &bytes).unwrap().encode(), bytes);
    }
    for point in [1u16 << 13, u16::MAX] {
        let refused =
            FiniteDifferencesQuery::decode(&parameters, &point.to_le_bytes()).err().unwrap();
        assert_eq!(refused.blame(), Blame::InvalidMessage);
    }
    for len in [0, 1, 3, 8] {
        let refused = FiniteDifferencesQuery::decode(&parameters, &vec![0; len]).err().unwrap();
        assert_eq!(refused.blame(), Blame::InvalidMessage);
    }
}

#[test]
fn answers_have_one_form() {
    let shape = identity(700, 1).shape;
    let parameters = FiniteDifferencesParameters::with(shape, true, exactly(13, 5)).unwrap();
    // 1 + 13 + 78 bits: four of the last byte are not used.
    let len = FiniteDifferencesAnswer::encoded_len(&parameters);
    assert_eq!((parameters.ball().count(), len), (92, 12));
    let mut bytes = vec![0xff; len];
    for bit in 0..8 {
        bytes[len - 1] = 1 << bit;
        assert_eq!(FiniteDifferencesAnswer::decode(&parameters, &bytes).is_ok(), bit < 4);
    }
    for wrong in [0, len - 1, len + 1] {
        let refused = FiniteDifferencesAnswer::decode(&parameters, &vec![0; wrong]).err().unwrap();
        assert_eq!(refused.blame(), Blame::InvalidMessage);
    }
}

#[test]
fn a_wrong_number_of_answers_is_refused() {
    let world = World::new(10, 1);
    let mut rng = SecretRng::from_os().unwrap();
    let (queries, pending) = world.client.query(&world.index(3), &mut rng).unwrap();
    let answers = world.server.answer(Role(0), &queries[..1]);
    assert_eq!(world.client.recover(pending, &answers).err().unwrap().blame(), Blame::ApiMisuse);
}
