//! Every record of any table comes back, with any number of servers over any field.

use super::*;
use privet_kernels::dispatch::Arm;
use proptest::prelude::*;

#[test]
fn every_record_comes_back_with_any_number_of_servers_over_every_field() {
    for (field, most_variables) in FIELDS.into_iter().zip([6, 4, 3, 3, 2]) {
        for servers in 3..=field {
            for variables in 1..=most_variables {
                for degree in 1..=variables {
                    let setting = setting(servers, field, variables, degree);
                    World::full(3, setting).check_all();
                }
            }
        }
    }
}

#[test]
fn every_record_comes_back_where_more_than_one_point_is_read() {
    for (servers, field, variables, degree) in [
        (3, 3, 9, 4),
        (3, 3, 8, 6),
        (3, 5, 6, 5),
        (4, 5, 6, 4),
        (5, 5, 6, 5),
        (3, 7, 5, 3),
        (5, 7, 6, 5),
        (6, 7, 6, 6),
        (3, 11, 4, 3),
        (3, 13, 4, 4),
    ] {
        let setting = setting(servers, field, variables, degree);
        assert!(setting.radius() > 0);
        World::full(2, setting).check_all();
    }
}

#[test]
fn every_record_comes_back_whatever_the_coins() {
    for (servers, field, variables, degree) in [(3, 3, 4, 2), (3, 3, 4, 3), (4, 5, 3, 2)] {
        let world = World::full(2, setting(servers, field, variables, degree));
        for of in 0..world.records() {
            let word = world.parameters().words().word(of);
            for origin in origins(field, variables) {
                let queries = world.client.points(word, &origin);
                let answers: Vec<_> = queries.iter().map(|q| world.answer(&q.encode())).collect();
                let rng = &mut SecretRng::from_os().unwrap();
                let (_, pending) = world.queries(of, rng);
                let record = world.client.recover(pending, &world.read(&answers)).unwrap();
                assert_eq!(*record, world.record(of));
            }
        }
    }
}

/// All points, as their coordinates.
pub(super) fn origins(field: u32, variables: u32) -> impl Iterator<Item = Vec<u8>> {
    let coordinate = move |point: u32, variable| (point / field.pow(variable) % field) as u8;
    (0..field.pow(variables))
        .map(move |point| (0..variables).map(|variable| coordinate(point, variable)).collect())
}

/// Fields and degrees whose truth table would be too large: the entries that are asked for are computed by the definition.
#[test]
fn records_of_polynomials_of_high_degree_come_back() {
    for (servers, field, variables, degree, records) in [
        (3, 3, 20, 9, 30),
        (4, 5, 14, 13, 14),
        (7, 7, 16, 15, 16),
        (9, 11, 11, 10, 11),
        (11, 11, 13, 12, 13),
        (13, 13, 12, 11, 12),
        (13, 13, 10, 5, 40),
        (3, 13, 12, 11, 12),
    ] {
        let setting = setting(servers, field, variables, degree);
        let identity = identity(records, 5);
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
        let client = ManyServersClient::new(parameters.clone()).unwrap();
        let mut rng = SecretRng::from_os().unwrap();
        for of in [0, records / 2, records - 1] {
            let index = RecordIndex::new(of, identity.shape).unwrap();
            let (queries, pending) = client.query(&index, &mut rng).unwrap();
            let answers: Vec<_> = queries
                .iter()
                .map(|query| {
                    let points = parameters
                        .ball()
                        .words()
                        .map(|set| moved(*query.point, set, u64::from(field)));
                    let entries: Vec<u8> =
                        points.flat_map(|point| evaluate(&parameters, &table, point)).collect();
                    ManyServersAnswer::decode(&parameters, &entries).unwrap()
                })
                .collect();
            let record = client.recover(pending, &answers).unwrap();
            assert_eq!(*record, table[of as usize * 5..][..5], "record {of} with {setting:?}");
        }
    }
}

/// `point + 1_set`, a coordinate at a time.
fn moved(mut point: u64, set: u64, field: u64) -> u64 {
    let (mut moved, mut stride) = (0, 1);
    for variable in 0..48 {
        moved += (point % field + (set >> variable & 1)) % field * stride;
        point /= field;
        if point == 0 && set >> variable < 2 {
            break;
        }
        stride *= field;
    }
    moved
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_table_returns_the_records_asked_for(
        field in prop::sample::select(&FIELDS[..]),
        servers in 3u32..=13,
        variables in 1u32..=9,
        degree in 1u32..=9,
        records in any::<u64>(),
        record_len in 1u64..=70,
        picks in prop::collection::vec(any::<u64>(), 1..8),
    ) {
        let servers = servers.min(field);
        // Some 20 000 points.
        let variables = variables.min(20_000f64.log(f64::from(field)) as u32);
        let setting = setting(servers, field, variables, degree.min(variables));
        let records = records % setting.capacity() + 1;
        let world = World::new(records, record_len, setting);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        world.check(&wanted);
    }

    #[test]
    fn a_server_reads_the_points_around_the_one_it_is_asked_about(
        field in prop::sample::select(&FIELDS[..]),
        variables in 3u32..=4,
        pick in any::<u64>(),
    ) {
        let world = World::full(1, setting(3, field, variables, 3));
        let (parameters, len) = (world.parameters(), world.parameters().entry_len());
        let point = pick % parameters.points();
        let answer = world.answer(&point.to_le_bytes());
        for (entry, set) in answer.chunks(len).zip(parameters.ball().words()) {
            let point = moved(point, set, field.into());
            prop_assert_eq!(entry, evaluate(parameters, &world.table, point));
        }
    }
}

#[test]
fn the_parameters_that_are_chosen_serve() {
    for servers in [3, 4, 6, 8, 13] {
        for (records, record_len) in [(1, 1), (2, 20), (30, 3)] {
            let identity = identity(records, record_len);
            let choice = Choice::default();
            let parameters = ManyServersParameters::new(identity.shape, servers, &choice).unwrap();
            let field = parameters.field();
            let setting = setting(servers, field, parameters.variables(), parameters.degree());
            World::new(records, record_len, setting).check_all();
        }
    }
}

#[test]
fn answers_of_more_points_than_are_read_at_a_time_are_complete() {
    let world = World::full(1, setting(3, 3, 15, 15));
    assert!(world.parameters().ball().count() > 4096);
    world.check(&[0]);
}

#[test]
fn records_longer_than_what_is_recovered_at_a_time_come_back() {
    for field in FIELDS {
        let piece = Encoding::new(World::full(1, setting(3, field, 1, 1)).parameters()).piece().0;
        for record_len in [piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 17] {
            let world = World::full(record_len as u64, setting(3, field, 4, 2));
            world.check(&[0, 3, 5]);
        }
    }
}

#[test]
fn batches_and_empty_ones_are_answered() {
    let world = World::full(7, setting(3, 3, 7, 3));
    world.check(&(0..35).chain(0..35).collect::<Vec<_>>());
    world.check(&[]);
}

#[test]
fn every_arm_gives_the_same_answers() {
    let world = World::full(30, setting(3, 3, 7, 3));
    let view = TableView::new(world.identity, &world.table).unwrap();
    let points = points(world.parameters(), view);
    let queries = || {
        let decode =
            |z: u64| ManyServersQuery::decode(world.parameters(), &z.to_le_bytes()).unwrap();
        (0..world.parameters().points()).step_by(31).map(decode).collect::<Vec<_>>()
    };
    let run = |arm: Arm| {
        let mut buffer = HugeBuffer::new_zeroed(points.len()).unwrap();
        buffer.copy_from_slice(&points);
        let kernels = Kernels::with_arm(arm).unwrap();
        let server =
            ManyServersServer::new(world.parameters().clone(), Points::from(buffer), kernels);
        let answers = server.unwrap().answer(Role(1), &queries());
        answers.iter().map(Message::encode).collect::<Vec<_>>()
    };
    let expected = run(Arm::Portable);
    for arm in Arm::available() {
        assert!(run(arm) == expected, "{arm} differs from portable");
    }
}

#[test]
fn a_server_refuses_points_of_another_size() {
    let world = World::full(2, setting(3, 3, 5, 2));
    let len = world.parameters().points_bytes() as usize;
    for len in [0, len - 1, len + 1, 3 * len] {
        let refusal = server(world.parameters(), &vec![0; len]).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Corrupted);
    }
}

#[test]
#[should_panic(expected = "there are no more words than their number")]
fn the_index_of_a_larger_table_is_a_bug() {
    let world = World::full(1, setting(3, 3, 4, 2));
    let index = RecordIndex::new(6, TableShape::new(7, 1).unwrap()).unwrap();
    let _ = world.client.query(&index, &mut SecretRng::from_os().unwrap());
}
