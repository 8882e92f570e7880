//! Every record of any table comes back, from every arm, any number of threads and rows of any number of records.

use super::*;
use privet_core::Blame;
use privet_kernels::dispatch::Arm;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_table_returns_the_records_asked_for(
        records in 1u64..=5_000,
        record_len in 1u64..=300,
        picks in prop::collection::vec(any::<u64>(), 1..12),
    ) {
        let world = World::new(records, record_len);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        world.check(&wanted);
    }

    #[test]
    fn rows_of_any_number_of_records_do(
        records in 1u64..=3_000,
        record_len in 1u64..=40,
        row_records_log2 in 0u32..=12,
        pick in any::<u64>(),
    ) {
        let world = World::in_rows(records, record_len, 1 << row_records_log2);
        world.check(&[pick % records, 0, records - 1]);
    }
}

#[test]
fn every_record_of_small_tables_comes_back() {
    for (records, record_len) in
        [(1, 1), (1, 300), (2, 1), (3, 7), (5, 2_000), (127, 2), (128, 1), (129, 5), (257, 33)]
    {
        World::new(records, record_len).check(&(0..records).collect::<Vec<_>>());
    }
    for row_records in [1, 2, 4, 8, 16, 32] {
        World::in_rows(16, 3, row_records).check(&(0..16).collect::<Vec<_>>());
        World::in_rows(17, 3, row_records).check(&(0..17).collect::<Vec<_>>());
    }
}

#[test]
fn the_extreme_tables_come_back_too() {
    for byte in [0u8, 255] {
        let parameters = ApirMatrixParameters::new(&identity(2_000, 16));
        let table = vec![byte; parameters.shape().bytes() as usize];
        World::with_table(parameters, table).check(&[0, 999, 1_999]);
    }
}

#[test]
fn large_batches_and_empty_ones_are_answered() {
    let world = World::new(3_000, 24);
    world.check(&(0..70).map(|k| k * 43 % 3_000).collect::<Vec<_>>());
    world.check(&[7; 9]);
    world.check(&[]);
}

#[test]
fn every_arm_and_any_number_of_threads_gives_the_same_roots_and_answers() {
    for (records, record_len, row_records) in [(3_001, 13, 8), (20_000, 1, 16), (700, 1_100, 1)] {
        let identity = identity(records, record_len);
        let parameters = ApirMatrixParameters::with_row_records(&identity, row_records);
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let queries: Vec<ApirMatrixQuery> = (0..9)
            .map(|number| {
                let len = parameters.query_len() as usize;
                let mut bytes = public_bytes(&format!("query {number}"), len);
                *bytes.last_mut().unwrap() &= ApirMatrixQuery::bits_of_last_byte(&parameters);
                ApirMatrixQuery::decode(&parameters, &bytes).unwrap()
            })
            .collect();
        let run = |arm: Arm, threads: usize| {
            let view = TableView::new(identity, &table).unwrap();
            let kernels = Kernels::with_arm(arm).unwrap();
            let setup = ApirMatrixSetup::new(parameters.clone(), view, kernels, threads).unwrap();
            let precomputed = setup.precompute(&|_| ()).unwrap();
            let server = setup.finish(&precomputed.kept.as_bytes()).unwrap();
            let answers = server.answer(Role(0), &queries);
            let answers: Vec<_> = answers.iter().map(Message::encode).collect();
            (precomputed.hint.as_bytes().into_owned(), answers)
        };
        let expected = run(Arm::Portable, 1);
        for arm in Arm::available() {
            for threads in [0, 1, 2, 3] {
                assert!(
                    run(arm, threads) == expected,
                    "{arm} with {threads} threads differs from portable"
                );
            }
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
fn a_server_refuses_a_table_of_another_shape() {
    let world = World::new(100, 2);
    let other = identity(50, 4);
    let view = TableView::new(other, &world.table).unwrap();
    let refusal =
        ApirMatrixSetup::new(world.parameters().clone(), view, Kernels::detect(), 1).err();
    assert_eq!(refusal.unwrap().blame(), Blame::ApiMisuse);
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

#[test]
fn a_client_needs_a_root_and_nothing_else() {
    let world = World::new(1_000, 20);
    for len in [0, NODE_LEN - 1, NODE_LEN + 1] {
        let parameters = world.parameters().clone();
        let refusal = ApirMatrixClient::new(parameters, &vec![0; len], Kernels::detect());
        assert_eq!(refusal.err().unwrap().blame(), Blame::Corrupted);
    }
    let download = crate::offline::OfflinePhase::Download { len: 32 };
    assert_eq!(ApirMatrix::offline_phase(world.parameters()), download);
    assert_eq!(world.root.len(), 32);
}

#[test]
fn a_record_takes_one_answer_of_each_server() {
    let world = World::new(500, 9);
    let mut rng = SecretRng::from_os().unwrap();
    for count in [0, 1, 3] {
        let (queries, pending) = world.client.query(&world.index(3), &mut rng).unwrap();
        let queries: Vec<_> = (0..count).map(|k| world.query(&queries[k % 2].encode())).collect();
        let answers = world.servers[0].answer(Role(0), &queries);
        let refusal = world.client.recover(pending, &answers).err().unwrap();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}

#[test]
#[should_panic(expected = "the index belongs to another table")]
fn the_index_of_a_larger_table_is_a_bug() {
    let index = World::new(2_000, 1).index(1_500);
    let _ = World::new(1_000, 1).client.query(&index, &mut SecretRng::from_os().unwrap());
}
