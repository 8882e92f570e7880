//! What crosses the wire: exact sizes, nothing but canonical encodings, and no query like another.

use super::*;
use privet_core::{Blame, TableShape};
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn there_is_nothing_to_announce_but_the_root() {
    let identity = identity(1_000, 10);
    let parameters = ApirMatrixParameters::new(&identity);
    assert!(parameters.encode().is_empty());
    assert!(ApirMatrixParameters::decode(&identity, &[]).unwrap() == parameters);
    let refusal = ApirMatrixParameters::decode(&identity, &[0]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::InvalidMessage);
}

#[test]
fn sizes_are_as_promised() {
    let parameters = ApirMatrixParameters::new(&identity(1 << 20, 32));
    assert_eq!(parameters.row_records(), 64);
    assert_eq!(ApirMatrixQuery::encoded_len(&parameters), 2_048);
    assert_eq!(ApirMatrixAnswer::encoded_len(&parameters), 2_496);
    assert_eq!(parameters.rows() * parameters.row_len(), 40_894_464);
    let one_record = ApirMatrixParameters::new(&identity(1, 1));
    assert_eq!(ApirMatrixQuery::encoded_len(&one_record), 1);
    assert_eq!(ApirMatrixAnswer::encoded_len(&one_record), 1);
}

#[test]
fn the_table_of_choices_is_right() {
    let choices = [(32, 4_096, 1_504, 49.3, 32.0), (64, 2_048, 2_496, 40.9, 18.0)];
    for (row_records, query, answer, matrix, paths) in
        choices.into_iter().chain([(128, 1_024, 4_512, 37.0, 9.0)])
    {
        let parameters =
            ApirMatrixParameters::with_row_records(&identity(1 << 20, 32), row_records);
        assert_eq!((parameters.query_len(), parameters.row_len()), (query, answer));
        let bytes = parameters.rows() * parameters.row_len();
        assert!((bytes as f64 / 1e6 - matrix).abs() < 0.051, "{bytes}");
        let share = 1.0 - parameters.records_len() as f64 / parameters.row_len() as f64;
        assert!((share * 100.0 - paths).abs() < 0.51, "{share}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever a server announces as a table's shape, nothing overflows, and sizes stay reasonable.
    #[test]
    fn any_shape_has_a_layout(records_log2 in 0f64..=48.0, record_len_log2 in 0f64..=24.0) {
        let record_len = record_len_log2.exp2() as u64;
        let records = (records_log2.exp2() as u64).min((1 << 48) / record_len);
        let shape = TableShape::new(records, record_len).unwrap();
        let parameters = ApirMatrixParameters::new(&identity(records, record_len));
        prop_assert!(parameters.rows() * parameters.row_records() >= records);
        prop_assert!((parameters.rows() - 1) * parameters.row_records() < records);
        // The least possible is about 8·√(table bytes/8), or one record if that is more.
        let sent = 2 * (parameters.query_len() + parameters.row_len());
        let square_root = (shape.bytes() as f64 / 8.0).sqrt() as u64;
        prop_assert!(sent <= 6 * square_root + 4 * record_len + 4_000, "{sent}");
        if shape.bytes() >= 2_500_000 {
            prop_assert!(2 * parameters.records_len() > parameters.row_len());
        }
    }
}

#[test]
fn a_message_of_any_other_length_is_refused() {
    for records in [1, 200, 5_000] {
        let parameters = ApirMatrixParameters::new(&identity(records, 9));
        let right = ApirMatrixQuery::encoded_len(&parameters);
        for len in 0..2 * right + 2 {
            match ApirMatrixQuery::decode(&parameters, &vec![0; len]) {
                Ok(_) => assert_eq!(len, right),
                Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes"),
            }
        }
        assert!(ApirMatrixQuery::decode(&parameters, &vec![0; right]).is_ok());
        let right = ApirMatrixAnswer::encoded_len(&parameters);
        for len in 0..2 * right {
            match ApirMatrixAnswer::decode(&parameters, &vec![0; len]) {
                Ok(_) => assert_eq!(len, right),
                Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes"),
            }
        }
        assert!(ApirMatrixAnswer::decode(&parameters, &vec![0; right]).is_ok());
    }
}

#[test]
fn bits_for_rows_that_are_not_there_are_refused() {
    for rows in 1..=24 {
        let identity = identity(rows, 9);
        let parameters = ApirMatrixParameters::with_row_records(&identity, 1);
        let len = ApirMatrixQuery::encoded_len(&parameters);
        assert_eq!(len as u64, rows.div_ceil(8));
        for bit in 0..8 * len as u64 {
            let mut bytes = vec![0; len];
            bytes[bit as usize / 8] = 1 << (bit % 8);
            match ApirMatrixQuery::decode(&parameters, &bytes) {
                Ok(query) => {
                    assert!(bit < rows, "bit {bit} of {rows} rows");
                    assert_eq!(query.encode(), bytes);
                }
                Err(refusal) => {
                    assert!(bit >= rows, "bit {bit} of {rows} rows");
                    assert_eq!(refusal.blame(), Blame::InvalidMessage);
                }
            }
        }
    }
}

#[test]
fn no_two_queries_are_alike_and_lengths_never_depend_on_the_index() {
    let world = World::new(5_000, 5);
    let len = ApirMatrixQuery::encoded_len(world.parameters());
    assert!(len >= 16, "so few bits may be the same by chance");
    let mut rng = SecretRng::from_os().unwrap();
    let mut seen = HashSet::new();
    for of in (0..5_000).step_by(13) {
        for _ in 0..2 {
            for query in world.queries(of, &mut rng) {
                assert_eq!(query.len(), len);
                assert!(seen.insert(query), "a query for record {of} was sent before");
            }
        }
    }
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
    untouched.fill(&mut vec![0; world.parameters().query_len() as usize]);
    let expected = untouched.next_u64();
    assert!((0..5_000).all(|of| next(of) == expected));
}
