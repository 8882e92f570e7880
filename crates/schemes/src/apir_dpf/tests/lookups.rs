//! Every record of any table comes back, from every arm, any number of threads and any cut of the table.

use super::*;
use privet_core::Blame;
use privet_kernels::Arm;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_table_returns_the_records_asked_for(
        records in 1u64..=3_000,
        record_len in 1u64..=300,
        picks in prop::collection::vec(any::<u64>(), 1..12),
    ) {
        let world = World::new(records, record_len);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        world.check(&wanted);
    }

    #[test]
    fn any_cut_of_a_table_gives_the_same_answers(
        records in 1u64..=5_000,
        record_len in 1u64..=40,
        chunk_records_log2 in 0u32..=12,
        pick in any::<u64>(),
    ) {
        let mut world = World::new(records, record_len);
        world.servers = world.servers.map(|server| server.cut_into(1 << chunk_records_log2));
        world.check(&[pick % records, 0, records - 1]);
    }
}

#[test]
fn every_record_of_small_tables_comes_back() {
    for records in (1..=9).chain([15, 16, 17, 33]) {
        for record_len in [1, 7, 15, 16, 17, 32, 33, 48, 64, 65, 100] {
            World::new(records, record_len).check(&(0..records).collect::<Vec<_>>());
        }
    }
}

#[test]
fn records_around_every_power_of_two_come_back() {
    for depth in 1u32..=12 {
        for records in [(1u64 << depth) - 1, 1 << depth, (1 << depth) + 1] {
            let middle = records / 2;
            let around = [middle.saturating_sub(1), middle, (middle + 1).min(records - 1)];
            World::new(records, 3).check(&[0, around[0], around[1], around[2], records - 1]);
        }
    }
}

#[test]
fn the_extreme_tables_come_back_too() {
    for byte in [0u8, 255] {
        let identity = identity(2_000, 20);
        let table = vec![byte; identity.shape.bytes() as usize];
        World::with_table(identity, table).check(&[0, 999, 1_999]);
    }
}

#[test]
fn records_longer_than_a_chunk_come_back() {
    // The fewest records of a chunk, 16, of which the last has some.
    World::new(37, 20_001).check(&[0, 15, 16, 36]);
}

#[test]
fn large_batches_and_empty_ones_are_answered() {
    let world = World::new(3_000, 24);
    world.check(&(0..70).map(|k| k * 43 % 3_000).collect::<Vec<_>>());
    world.check(&[7; 9]);
    world.check(&[]);
}

#[test]
fn every_arm_and_any_number_of_threads_gives_the_same_answers() {
    for (records, record_len) in [(3_001, 13), (2_000, 32), (700, 1_000)] {
        let identity = identity(records, record_len);
        let parameters = ApirDpfParameters::new(&identity);
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let len = ApirDpfQuery::encoded_len(&parameters);
        // Not keys that a client made, but any key expands to something.
        let queries: Vec<ApirDpfQuery> = (0..5)
            .map(|number| {
                let mut bytes = public_bytes(&format!("query {number}"), len);
                bytes[len - 17] = 0;
                ApirDpfQuery::decode(&parameters, &bytes).unwrap()
            })
            .collect();
        let run = |arm: Arm, threads: usize| {
            let view = TableView::new(identity, &table).unwrap();
            let kernels = Kernels::with_arm(arm).unwrap();
            // Small chunks, so that several threads have work.
            let server = ApirDpfServer::new(parameters.clone(), view, kernels, threads).unwrap();
            let answers = server.cut_into(64).answer(Role(0), &queries);
            answers.iter().map(Message::encode).collect::<Vec<_>>()
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
fn clients_of_every_arm_believe_each_others_servers() {
    let mut world = World::new(300, 37);
    for arm in Arm::available() {
        let kernels = Kernels::with_arm(arm).unwrap();
        world.client = ApirDpfClient::new(world.parameters().clone(), kernels);
        world.check(&[0, 150, 299]);
    }
}

#[test]
fn a_server_refuses_a_table_of_another_shape() {
    let world = World::new(100, 2);
    let other = identity(50, 4);
    let view = TableView::new(other, &world.table).unwrap();
    let parameters = world.parameters().clone();
    let refusal = ApirDpfServer::new(parameters, view, Kernels::detect(), 1).err();
    assert_eq!(refusal.unwrap().blame(), Blame::ApiMisuse);
}

#[test]
fn a_record_takes_one_answer_of_each_server() {
    let world = World::new(500, 9);
    let mut rng = SecretRng::from_os().unwrap();
    for count in [0, 1, 3] {
        let (queries, pending) = world.queries(3, &mut rng);
        let queries: Vec<_> = (0..count).map(|k| world.query(&queries[k % 2])).collect();
        let answers = world.answer(0, &queries);
        let refusal = world.client.recover(pending, &answers).err().unwrap();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}

#[test]
fn the_trees_belong_to_the_table_and_outlive_its_epochs() {
    let world = World::new(1_000, 10);
    let mut rng = SecretRng::from_os().unwrap();
    let mut looked_up_as = |identity: TableIdentity| {
        let client = ApirDpfClient::new(ApirDpfParameters::new(&identity), Kernels::detect());
        let (queries, pending) = client.query(&world.index(3), &mut rng).unwrap();
        let mut queries = queries.into_iter();
        let answers =
            [0, 1].map(|server| world.answer(server, &[queries.next().unwrap()]).remove(0));
        client.recover(pending, &answers)
    };
    let mut updated = identity(1_000, 10);
    updated.epoch = Epoch(5);
    updated.digest = TableDigest([1; 32]);
    assert_eq!(*looked_up_as(updated).unwrap(), world.record(3));
    // A key made for one table is noise for another.
    let mut other = identity(1_000, 10);
    other.id = TableId([8; 16]);
    assert_eq!(looked_up_as(other).err().unwrap().blame(), Blame::Integrity);
}

#[test]
#[should_panic(expected = "the index belongs to another table")]
fn the_index_of_a_larger_table_is_a_bug() {
    let index = World::new(2_000, 1).index(1_500);
    let _ = World::new(1_000, 1).client.query(&index, &mut SecretRng::from_os().unwrap());
}
