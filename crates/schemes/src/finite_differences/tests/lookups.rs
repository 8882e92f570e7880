//! Every record of any table comes back, from every arm, with any variables and degree that suit.

use super::*;
use proptest::prelude::*;

#[test]
fn every_record_of_small_tables_comes_back() {
    for (records, record_len) in [
        (1, 1),
        (1, 300),
        (2, 1),
        (3, 7),
        (20, 2),
        (21, 64),
        (100, 4),
        (127, 8),
        (300, 33),
        (700, 1),
    ] {
        World::new(records, record_len).check(&(0..records).collect::<Vec<_>>());
    }
}

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
                let shape = identity(records, record_len).shape;
                let parameters =
                    FiniteDifferencesParameters::with(shape, one_bit, setting).unwrap();
                World::with(parameters.clone(), Kernels::detect(), 1).check(&wanted);
                if one_bit {
                    let digits = parameters.of_digits().unwrap();
                    World::with(digits, Kernels::detect(), 1).check(&wanted);
                }
            }
        }
    }
}

#[test]
fn arms_and_threads_give_the_same_points_and_answers() {
    let mut rng = SecretRng::from_os().unwrap();
    for (record_len, one_bit, variables) in
        [(1, true, 21), (1, false, 18), (16, false, 16), (24, false, 15), (100, false, 13)]
    {
        let shape = identity(400, record_len).shape;
        let parameters =
            FiniteDifferencesParameters::with(shape, one_bit, exactly(variables, 5)).unwrap();
        let points: Vec<u64> = (0..9).map(|_| rng.below(1 << variables)).collect();
        let ask = |world: &World| -> Vec<Vec<u8>> {
            let queries: Vec<_> = points
                .iter()
                .map(|point| {
                    FiniteDifferencesQuery::decode(
                        world.server.parameters(),
                        &point.to_le_bytes()[..variables.div_ceil(8) as usize],
                    )
                    .unwrap()
                })
                .collect();
            world.server.answer(Role(1), &queries).iter().map(Message::encode).collect()
        };
        let oracle =
            ask(&World::with(parameters.clone(), Kernels::with_arm(Arm::Portable).unwrap(), 1));
        for arm in Arm::available() {
            for threads in [1, 3] {
                let world =
                    World::with(parameters.clone(), Kernels::with_arm(arm).unwrap(), threads);
                assert!(ask(&world) == oracle, "{arm}, {threads} threads, records of {record_len}");
            }
        }
    }
}

#[test]
fn an_answer_is_the_polynomial_around_the_point() {
    let shape = identity(30, 3).shape;
    let parameters = FiniteDifferencesParameters::with(shape, false, exactly(7, 3)).unwrap();
    let world = World::with(parameters.clone(), Kernels::detect(), 1);
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
        let query = FiniteDifferencesQuery::decode(&parameters, &[point as u8]).unwrap();
        let answer = world.server.answer(Role(0), &[query]).remove(0).encode();
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
fn the_table_of_another_shape_is_refused() {
    let parameters =
        FiniteDifferencesParameters::new(identity(20, 2).shape, false, &Choice::default()).unwrap();
    let table = [0u8; 40];
    let view = TableView::new(identity(40, 1), &table).unwrap();
    let refused =
        FiniteDifferencesSetup::new(parameters, view, Kernels::detect(), 1).err().unwrap();
    assert_eq!(refused.blame(), Blame::ApiMisuse);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_table_returns_the_records_asked_for(
        records in 1u64..=5_000,
        record_len in 1u64..=150,
        picks in prop::collection::vec(any::<u64>(), 1..12),
    ) {
        let world = World::new(records, record_len);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        world.check(&wanted);
    }
}
