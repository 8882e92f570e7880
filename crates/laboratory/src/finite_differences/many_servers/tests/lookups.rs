//! Every record of any table comes back, with any number of servers over any field.

use super::*;
use proptest::prelude::*;

#[test]
fn every_record_comes_back_with_any_number_of_servers_over_every_field() {
    for (field, most_variables) in FIELDS.into_iter().zip([6, 4, 3, 3, 2]) {
        for servers in 3..=field {
            for variables in 1..=most_variables {
                for degree in 1..=variables {
                    let setting = setting(servers, field, variables, degree);
                    full(3, setting).check_all();
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
        full(2, setting).check_all();
    }
}

#[test]
fn every_record_comes_back_whatever_the_coins() {
    for (servers, field, variables, degree) in [(3, 3, 4, 2), (3, 3, 4, 3), (4, 5, 3, 2)] {
        let world = full(2, setting(servers, field, variables, degree));
        for of in 0..world.records() {
            let word = world.parameters().words().word(of);
            for origin in origins(field, variables) {
                let queries = world.client.points(word, &origin);
                let answers: Vec<_> =
                    queries.iter().map(|q| world.answer(0, &q.encode())).collect();
                let rng = &mut SecretRng::from_os().unwrap();
                let (_, pending) = world.lookup(of, rng);
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

/// Fields and degrees whose truth table would be too large: the entries that are asked for are
/// computed by the definition.
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
    fn a_server_reads_the_points_around_the_one_it_is_asked_about(
        field in prop::sample::select(&FIELDS[..]),
        variables in 3u32..=4,
        pick in any::<u64>(),
    ) {
        let world = full(1, setting(3, field, variables, 3));
        let (parameters, len) = (world.parameters(), world.parameters().entry_len());
        let point = pick % parameters.points();
        let answer = world.answer(0, &point.to_le_bytes());
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
            World::of(&(records, record_len, Some(setting))).check_all();
        }
    }
}

#[test]
fn answers_of_more_points_than_are_read_at_a_time_are_complete() {
    let world = full(1, setting(3, 3, 15, 15));
    assert!(world.parameters().ball().count() > 4096);
    world.check(&[0]);
}

#[test]
fn records_longer_than_what_is_recovered_at_a_time_come_back() {
    for field in FIELDS {
        let piece = Encoding::new(full(1, setting(3, field, 1, 1)).parameters()).piece().0;
        for record_len in [piece - 1, piece, piece + 1, 2 * piece, 3 * piece + 17] {
            let world = full(record_len as u64, setting(3, field, 4, 2));
            world.check(&[0, 3, 5]);
        }
    }
}

#[test]
fn a_server_refuses_points_of_another_size() {
    let world = full(2, setting(3, 3, 5, 2));
    let len = world.parameters().points_bytes() as usize;
    for len in [0, len - 1, len + 1, 3 * len] {
        let refusal = server(world.parameters(), &vec![0; len]).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Corrupted);
    }
}
