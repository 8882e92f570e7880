//! Every record comes back, with all suitable variables and degrees; others are refused.

use super::*;

#[test]
fn every_setting_gives_every_record() {
    // Tables of fewer bytes than a cache line, of one, and of several.
    for variables in 2..=13 {
        for degree in (1..=variables / 2).step_by(2) {
            let setting = exactly(variables, degree);
            let records = setting.capacity().min(40);
            let wanted: Vec<u64> = (0..records).collect();
            for (record_len, one_bit) in
                [(1, true), (1, false), (2, false), (3, false), (32, false)]
            {
                let kinds: &[_] =
                    if one_bit { &[Kind::Bits, Kind::Digits] } else { &[Kind::Bytes] };
                for kind in kinds {
                    World::of(&(records, record_len, (*kind, Some(setting)))).check(&wanted);
                }
            }
        }
    }
}

#[test]
fn an_answer_is_the_polynomial_around_the_point() {
    let world = World::of(&(30, 3, (Kind::Bytes, Some(exactly(7, 3)))));
    let parameters = world.parameters();
    let value = |point: u64| {
        let mut sum = [0u8; 3];
        for (index, record) in world.table.chunks(3).enumerate() {
            let word = parameters.words().word(index as u64);
            if word & point == word {
                sum.iter_mut().zip(record).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        sum
    };
    for point in 0..1u64 << 7 {
        let answer = world.answer(0, &[point as u8]);
        let around = (0..1u64 << 7).filter(|difference| difference.count_ones() <= 1);
        let expected: Vec<u8> = around.flat_map(|difference| value(point ^ difference)).collect();
        assert_eq!(answer, expected, "around {point}");
    }
}

#[test]
fn bits_that_are_none_are_refused() {
    let identity = identity(20, 1);
    let parameters =
        FiniteDifferencesParameters::new(identity.shape, true, &Choice::default()).unwrap();
    let digits = parameters.clone().of_digits().unwrap();
    for (parameters, good, bad) in
        [(&parameters, 1, 2), (&parameters, 0, b'0'), (&digits, b'1', 1), (&digits, b'0', b'2')]
    {
        let mut table = vec![good; 20];
        let refused = |table: &[u8]| {
            let view = TableView::new(identity, table).unwrap();
            let setup = FiniteDifferencesSetup::new(parameters.clone(), view, Kernels::detect(), 1)
                .unwrap();
            setup.finish(&|_| {}).err().map(|error| error.blame())
        };
        assert_eq!(refused(&table), None);
        table[19] = bad;
        assert_eq!(refused(&table), Some(Blame::ApiMisuse));
    }
    let whole = FiniteDifferencesParameters::new(identity.shape, false, &Choice::default());
    assert_eq!(whole.unwrap().of_digits().err().unwrap().blame(), Blame::ApiMisuse);
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let table = identity(700, 1);
    let of = |one_bit| {
        FiniteDifferencesParameters::new(table.shape, one_bit, &Choice::default()).unwrap()
    };
    for (form, parameters) in
        [of(false), of(true), of(true).of_digits().unwrap()].iter().enumerate()
    {
        let bytes = parameters.encode();
        assert_eq!(bytes[2], form as u8);
    }
    // Too few variables, even degrees, too high ones, too many points: every accepted setting holds
    // the table.
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
