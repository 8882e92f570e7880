//! Sizes of messages and matrices, and what servers compute first.

use super::*;
use privet_core::{Blame, TableShape};
use proptest::prelude::*;

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

    /// Whatever a server announces as a table's shape, nothing overflows, and sizes stay
    /// reasonable.
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
fn progress_grows_to_the_whole() {
    let world = World::in_rows(50_000, 2, 2);
    let view = TableView::new(world.identity, &world.table).unwrap();
    let setup =
        ApirMatrixSetup::new(world.parameters().clone(), view, Kernels::detect(), 1).unwrap();
    let shares = std::sync::Mutex::new(Vec::new());
    setup.precompute(&|share| shares.lock().unwrap().push(share)).unwrap();
    let shares = shares.into_inner().unwrap();
    assert!(shares.len() > 5 && shares.is_sorted());
    assert_eq!(shares.last(), Some(&1.0));
}

#[test]
fn what_was_kept_has_one_length() {
    let world = World::new(1_000, 20);
    let view = TableView::new(world.identity, &world.table).unwrap();
    let right = world.parameters().rows() as usize * NODE_LEN;
    for len in [0, right - 1, right + 1, right + NODE_LEN] {
        let setup =
            ApirMatrixSetup::new(world.parameters().clone(), view, Kernels::detect(), 1).unwrap();
        let refusal = setup.finish(&vec![0; len]).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Corrupted);
    }
}
