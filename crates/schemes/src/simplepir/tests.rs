//! SimplePIR end to end without a network: any shape, known answers, malformed messages, what crosses the wire.

use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::lwe::LEAST_SECURITY_BITS;
use privet_core::{
    Blame, Epoch, PublicSeed, RecordIndex, SecretRng, TableDigest, TableId, TableIdentity,
    TableView,
};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use proptest::prelude::*;
use std::sync::Arc;

struct Pair {
    identity: TableIdentity,
    table: Vec<u8>,
    server: SimplePirServer,
    client: SimplePirClient,
}

fn pair(identity: TableIdentity, parameters: SimplePirParameters, kernels: Kernels) -> Pair {
    let table = public_bytes("a table", identity.shape.bytes() as usize);
    let view = TableView::new(identity, &table).unwrap();
    let server = SimplePirServer::new(parameters.clone(), view, kernels, 1).unwrap();
    let hint = server.hint(|_| ()).unwrap().as_bytes().into_owned();
    let client = SimplePirClient::new(parameters, Arc::new(hint), kernels).unwrap();
    Pair { identity, table, server, client }
}

fn default_pair(records: u64, record_len: u64) -> Pair {
    let identity = identity(records, record_len);
    pair(identity, SimplePirParameters::new(&identity).unwrap(), Kernels::detect())
}

impl Pair {
    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &[&self.server], table, wanted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_shape_returns_the_record_asked_for(
        records in 1u64..=5_000,
        record_len in 1u64..=300,
        picks in prop::collection::vec(any::<u64>(), 1..6),
    ) {
        let pair = default_pair(records, record_len);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        pair.check(&wanted);
    }

    #[test]
    fn any_layout_of_a_shape_returns_the_record_asked_for(
        records in 1u64..=600,
        record_len in 1u64..=40,
        layout in any::<u64>(),
        pick in any::<u64>(),
    ) {
        let identity = identity(records, record_len);
        let parameters = SimplePirParameters::with_records_per_column(&identity, 1 + layout % records).unwrap();
        pair(identity, parameters, Kernels::detect()).check(&[pick % records, records - 1]);
    }

    #[test]
    fn bytes_that_are_no_parameters_are_refused_or_valid(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let identity = identity(1_000, 10);
        match SimplePirParameters::decode(&identity, &bytes) {
            Ok(parameters) => prop_assert_eq!(parameters.encode(), bytes),
            Err(error) => prop_assert!(matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved)),
        }
    }
}

#[test]
fn every_record_of_small_tables_comes_back() {
    for (records, record_len) in [(1, 1), (1, 300), (2, 1), (3, 7), (64, 1), (65, 3), (257, 2)] {
        let pair = default_pair(records, record_len);
        pair.check(&(0..records).collect::<Vec<_>>());
    }
}

#[test]
fn the_extreme_tables_come_back_too() {
    let identity = identity(2_000, 16);
    let parameters = SimplePirParameters::new(&identity).unwrap();
    for byte in [0u8, 255] {
        let mut pair = pair(identity, parameters.clone(), Kernels::detect());
        pair.table.fill(byte);
        let view = TableView::new(identity, &pair.table).unwrap();
        pair.server = SimplePirServer::new(parameters.clone(), view, Kernels::detect(), 1).unwrap();
        let hint = pair.server.hint(|_| ()).unwrap().as_bytes().into_owned();
        pair.client =
            SimplePirClient::new(parameters.clone(), Arc::new(hint), Kernels::detect()).unwrap();
        pair.check(&[0, 999, 1_999]);
    }
}

#[test]
fn every_arm_and_any_number_of_threads_gives_the_same_hint_and_answer() {
    let identity = identity(3_001, 13);
    let parameters = SimplePirParameters::new(&identity).unwrap();
    let table = public_bytes("a table", identity.shape.bytes() as usize);
    let query = SimplePirQuery::decode(
        &parameters,
        &public_bytes("a query", 4 * parameters.columns() as usize),
    )
    .unwrap();
    let run = |arm: Arm, threads: usize| {
        let view = TableView::new(identity, &table).unwrap();
        let kernels = Kernels::with_arm(arm).unwrap();
        let server = SimplePirServer::new(parameters.clone(), view, kernels, threads).unwrap();
        let answer = server.answer(Role(0), std::slice::from_ref(&query)).remove(0).encode();
        (blake3::hash(&server.hint(|_| ()).unwrap().as_bytes()), answer)
    };
    let expected = run(Arm::Portable, 1);
    for arm in Arm::available() {
        for threads in [1, 2, 3] {
            assert!(
                run(arm, threads) == expected,
                "{arm} with {threads} threads differs from portable"
            );
        }
    }
}

/// `vectors/simplepir.json`: whoever implements SimplePIR again must get the same hint, query, answer and record.
#[test]
fn known_answers() {
    let file = include_str!("../../../../vectors/simplepir.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    for vector in vectors["cases"].as_array().unwrap() {
        let number = |name: &str| vector[name].as_u64().unwrap();
        let text = |name: &str| vector[name].as_str().unwrap().to_owned();
        let identity = identity(number("records"), number("record_len"));
        let parameters = SimplePirParameters::new(&identity).unwrap();
        let pair = pair(identity, parameters.clone(), Kernels::detect());
        assert_eq!((parameters.rows(), parameters.columns()), (number("rows"), number("columns")));
        assert_eq!(blake3::hash(&pair.table).to_hex().as_str(), text("table_blake3"));
        let hint = pair.server.hint(|_| ()).unwrap();
        assert_eq!(blake3::hash(&hint.as_bytes()).to_hex().as_str(), text("hint_blake3"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let (queries, pending) = pair.client.query(&pair.index(number("index")), &mut rng).unwrap();
        assert_eq!(blake3::hash(&queries[0].encode()).to_hex().as_str(), text("query_blake3"));
        let answers = pair.server.answer(Role(0), &queries);
        assert_eq!(blake3::hash(&answers[0].encode()).to_hex().as_str(), text("answer_blake3"));
        let record = pair.client.recover(pending, &answers).unwrap();
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, text("record"));
    }
}

#[test]
fn a_message_of_any_other_length_is_refused() {
    let pair = default_pair(500, 9);
    let parameters = pair.server.parameters();
    for (right, kind) in [
        (SimplePirQuery::encoded_len(parameters), "query"),
        (SimplePirAnswer::encoded_len(parameters), "answer"),
    ] {
        for len in [0, 1, 3, 4, right - 4, right - 1, right + 1, right + 4, right * 2] {
            let bytes = vec![0; len];
            let refusal = match kind {
                "query" => SimplePirQuery::decode(parameters, &bytes).err(),
                _ => SimplePirAnswer::decode(parameters, &bytes).err(),
            };
            assert_eq!(refusal.unwrap().blame(), Blame::InvalidMessage, "{kind} of {len} bytes");
        }
    }
}

#[test]
fn a_client_refuses_a_hint_of_another_size_and_the_wrong_number_of_answers() {
    let pair = default_pair(500, 9);
    let parameters = pair.server.parameters().clone();
    let short = vec![0u8; parameters.hint_bytes() as usize - 1];
    let refusal =
        SimplePirClient::new(parameters, Arc::new(short), Kernels::detect()).err().unwrap();
    assert_eq!(refusal.blame(), Blame::Corrupted);

    let mut rng = SecretRng::from_os().unwrap();
    let (_, pending) = pair.client.query(&pair.index(3), &mut rng).unwrap();
    assert_eq!(pair.client.recover(pending, &[]).err().unwrap().blame(), Blame::ApiMisuse);
}

#[test]
fn two_clients_never_send_equal_bytes_and_lengths_never_depend_on_the_index() {
    let pair = default_pair(700, 5);
    let mut sent = std::collections::HashSet::new();
    for of in 0..700 {
        for repeat in 0..2 {
            let mut rng = SecretRng::from_os().unwrap();
            let (queries, _) = pair.client.query(&pair.index(of), &mut rng).unwrap();
            let bytes = queries[0].encode();
            assert_eq!(bytes.len(), SimplePirQuery::encoded_len(pair.server.parameters()));
            assert!(sent.insert(bytes), "query {repeat} for record {of} was sent before");
        }
    }
}

#[test]
fn shapes_beyond_the_proof_are_refused_with_numbers() {
    // 2^48 bytes in square form would be 2^24 columns; with columns at their limit of 2^18 the hint
    // passes its own.
    let error = SimplePirParameters::new(&identity(1 << 40, 256)).unwrap_err().to_string();
    assert!(error.contains("1073741824 rows") && error.contains("16777216 rows"), "{error}");
    assert!(error.contains("cut the table"), "{error}");
    assert!(SimplePirParameters::with_records_per_column(&identity(10, 1), 11).is_err());
    assert!(SimplePirParameters::with_records_per_column(&identity(10, 1), 0).is_err());
}

#[test]
fn layouts_below_128_bits_are_refused() {
    let identity = identity((1 << 18) + 1, 4096);
    let refusal = SimplePirParameters::with_records_per_column(&identity, 1).unwrap_err();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    let said = refusal.to_string();
    for part in ["262145 columns", "1 to 262144", "128 bits", "more records into each column"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let announced = SimplePirParameters::decode(&identity, &1u64.to_le_bytes());
    assert_eq!(announced.err().unwrap().blame(), Blame::PeerMisbehaved);

    let widest = SimplePirParameters::with_records_per_column(&identity, 2).unwrap();
    assert!(widest.encryption().error().security_bits() >= LEAST_SECURITY_BITS);
    assert!(widest.failure_bound_log2() - 12.0 <= -64.0, "a byte of 4096");
}

#[test]
fn large_tables_get_a_safe_layout() {
    // (records, bytes of a record, columns, deviation): from 1 GiB to 4 TiB.
    for (records, record_len, columns, deviation) in [
        (1 << 25, 32, 1 << 15, 34.84),
        (1 << 30, 1, 1 << 15, 34.84),
        (1 << 29, 32, 1 << 17, 18.89),
        (1 << 31, 32, 1 << 18, 11.95),
        (1 << 35, 64, 1 << 18, 11.95),
        (1 << 37, 32, 1 << 18, 11.95),
        (1 << 20, 1 << 20, 1 << 18, 11.95),
        (300_000, 1 << 20, 150_000, 11.95),
        (1_000, 1 << 20, 1_000, 34.84),
    ] {
        let parameters = SimplePirParameters::new(&identity(records, record_len)).unwrap();
        assert_eq!(parameters.columns(), columns, "{records} x {record_len}");
        let error = parameters.encryption().error();
        assert!((error.deviation() - deviation).abs() < 0.01, "{records} x {record_len}");
        assert!(error.security_bits() >= LEAST_SECURITY_BITS);
        let of_byte = parameters.failure_bound_log2() - (record_len as f64).log2();
        assert!(of_byte <= -64.0, "{records} x {record_len}: 2^{of_byte}");
    }
}

#[test]
fn the_default_layout_is_near_square_and_whole_records_fit_a_column() {
    for (records, record_len) in
        [(1 << 25, 32), (1 << 30, 1), (1_000, 100_000), (12_345_678, 77), (1, 1)]
    {
        let parameters = SimplePirParameters::new(&identity(records, record_len)).unwrap();
        assert_eq!(parameters.rows() % record_len, 0);
        assert!(parameters.rows() * parameters.columns() >= records * record_len);
        let (longer, shorter) = (
            parameters.rows().max(parameters.columns()),
            parameters.rows().min(parameters.columns()),
        );
        assert!(
            longer <= 3 * shorter || record_len > parameters.columns(),
            "{} x {}",
            parameters.rows(),
            parameters.columns()
        );
    }
}

#[test]
fn the_public_matrix_follows_from_the_table_id_alone() {
    let seed = |identity: &TableIdentity| crate::contract::table_seed("test", identity);
    let mut other_epoch = identity(10, 10);
    other_epoch.epoch = Epoch(5);
    other_epoch.digest = TableDigest([1; 32]);
    assert_eq!(
        seed(&identity(10, 10)),
        seed(&other_epoch),
        "updates must not change the matrix, or hints could not be patched"
    );
    let mut other_table = identity(10, 10);
    other_table.id = TableId([8; 16]);
    assert_ne!(seed(&identity(10, 10)), seed(&other_table));
    let _: PublicSeed = seed(&other_table);
}
