//! Dummy subsets: the table is announced and streamed, queries are answered by the records they
//! name, and malformed ones are refused.
//!
//! The test builds queries bit by bit, as the scheme's documentation says. So it checks the server
//! against the documentation rather than against some client.

use crate::common::*;
use bytes::Bytes;
use privet_core::{Blame, SecretRng};
use privet_schemes::SchemeId;
use privet_schemes::contract::{Parameters, Role};
use privet_schemes::dummy_subsets::DummySubsetsParameters;
use privet_schemes::offline::OfflinePhase;
use privet_server::{HintOrigin, RunningServer, ServedTable, Server, ServerConfig};
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{AnswerRequest, FetchRequest, PartKind, TableDescription};
use std::time::Duration;
use tonic::Code;

fn streamed(name: &str, count: u64, record_len: u64, id: u8) -> ServedTable {
    served_by(SchemeId::DummySubsets, table(name, count, record_len, id))
}

/// The contents of a query: for each partition its half, and for the k-th partition of either half
/// its offset.
#[derive(Clone)]
struct Query {
    halves: Vec<bool>,
    offsets: Vec<u64>,
    offset_bits: usize,
}

impl Query {
    /// Any query: a balanced split, and offsets below a partition's length.
    fn random(parameters: &DummySubsetsParameters, rng: &mut SecretRng) -> Self {
        let partitions = parameters.partitions() as usize;
        let mut below = |bound: u64| {
            let mut bytes = [0; 8];
            rng.fill(&mut bytes);
            u64::from_le_bytes(bytes) % bound
        };
        let mut halves: Vec<bool> = (0..partitions).map(|partition| partition % 2 == 1).collect();
        (1..partitions).for_each(|last| halves.swap(last, below(last as u64 + 1) as usize));
        let offsets =
            (0..partitions / 2).map(|_| below(u64::from(parameters.partition_records()))).collect();
        Self { halves, offsets, offset_bits: parameters.cut().offset_bits() as usize }
    }

    fn encode(&self) -> Vec<u8> {
        let offset_bits = |offset: &u64| -> Vec<bool> {
            (0..self.offset_bits).map(|bit| offset >> bit & 1 == 1).collect()
        };
        let offsets: Vec<bool> = self.offsets.iter().flat_map(offset_bits).collect();
        [packed(&self.halves), packed(&offsets)].concat()
    }

    /// The XOR of the records that half 0 names, then that of half 1.
    fn answer(&self, table: &[u8], record_len: usize) -> Vec<u8> {
        let mut sums = vec![0; 2 * record_len];
        let mut places = [self.offsets.iter(), self.offsets.iter()];
        for (partition, half) in self.halves.iter().enumerate() {
            let half = usize::from(*half);
            let record = (partition << self.offset_bits) + *places[half].next().unwrap() as usize;
            // What lies beyond the table counts as zero.
            let bytes = table.get(record * record_len..).unwrap_or_default();
            let sum = &mut sums[half * record_len..][..record_len];
            sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
        }
        sums
    }
}

/// Bits packed into bytes, from the lowest bit of each.
fn packed(bits: &[bool]) -> Vec<u8> {
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

fn parameters(table: &TableDescription) -> DummySubsetsParameters {
    DummySubsetsParameters::decode(&table.identity, &table.schemes[0].plan.parameters).unwrap()
}

fn request(table: &TableDescription, query: Vec<u8>) -> AnswerRequest {
    AnswerRequest {
        table: table.identity.id,
        epoch: table.identity.epoch,
        parameter_digest: table.schemes[0].parameter_digest,
        role: Role(0),
        query: query.into(),
    }
}

async fn described(server: &RunningServer) -> (Stub, TableDescription) {
    let mut stub = stub(server).await;
    let table = describe(&mut stub).await.tables[0].clone();
    (stub, table)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_is_announced_and_can_be_streamed_in_stretches() {
    const CHUNK: u64 = FETCH_CHUNK_LEN as u64;
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = dir.path().join("cache");
    let config = ServerConfig { cache_dir: Some(cache_dir.clone()), ..config() };
    let server = start(config, vec![streamed("t", 2 * CHUNK / 100 + 7, 100, 1)]).await;
    let (mut stub, table) = described(&server).await;
    let all = records(table.identity.shape.bytes() as usize, 1);
    let scheme = &table.schemes[0];
    assert_eq!(scheme.plan.scheme, SchemeId::DummySubsets);
    assert_eq!(scheme.plan.offline, OfflinePhase::StreamTable { len: all.len() as u64 });
    assert_eq!(scheme.hint_kind(), Some(PartKind::Table));
    let announced = scheme.hint.unwrap();
    assert_eq!(
        (announced.len, announced.digest),
        (all.len() as u64, *blake3::hash(&all).as_bytes())
    );
    // Nothing was computed, and nothing is kept for the next start.
    assert_eq!(server.tables()[0].hint_origin, HintOrigin::None);
    assert_eq!(metric(&server, "privet_hints_total{origin=\"none\"}").await, 1.0);
    assert_eq!(std::fs::read_dir(&cache_dir).unwrap().count(), 0);

    let part = |offset, len| FetchRequest { len, ..fetch_request(&table, PartKind::Table, offset) };
    assert!(fetch(&mut stub, part(0, 0)).await.unwrap() == all);
    // Stretches that are no multiple of anything, one after the other, are the table.
    for stretch in [100_003, CHUNK + 1] {
        let mut stretches = Vec::new();
        while stretches.len() < all.len() {
            let request = part(stretches.len() as u64, stretch);
            stretches.extend(fetch(&mut stub, request).await.unwrap());
        }
        assert!(stretches == all, "in stretches of {stretch}");
    }
    let no_hint = fetch(&mut stub, fetch_request(&table, PartKind::Hint, 0)).await.unwrap_err();
    assert_eq!(no_hint.code(), Code::NotFound);
    assert!(no_hint.message().contains("table t has no hint"), "{no_hint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_the_sums_of_the_records_that_queries_name() {
    // Tables that fill their partitions exactly, far from it, and all but one record; numbers of
    // partitions that do not fill a byte.
    let shapes = [(1, 1), (2, 300), (7, 3), (53, 20), (256, 4), (257, 4), (1000, 1), (4096, 2)];
    let named = |(count, len): (u64, u64)| format!("t{count}x{len}");
    let tables =
        shapes.iter().zip(1..).map(|(shape, id)| streamed(&named(*shape), shape.0, shape.1, id));
    let config = ServerConfig { batch_window: Duration::ZERO, ..config() };
    let server = start(config, tables.collect()).await;
    let mut stub = stub(&server).await;
    let mut rng = SecretRng::from_fixed_seed([7; 32]);
    for table in describe(&mut stub).await.tables {
        let record_len = table.identity.shape.record_len() as usize;
        let all = records(table.identity.shape.bytes() as usize, table.identity.id.0[0]);
        let parameters = parameters(&table);
        for _ in 0..20 {
            let query = Query::random(&parameters, &mut rng);
            assert_eq!(query.encode().len(), table.schemes[0].plan.query_lens[0]);
            let response = ask(&mut stub, request(&table, query.encode())).await.unwrap();
            assert_eq!(response.answer, query.answer(&all, record_len), "{}", table.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_queries_are_refused_and_the_others_of_their_batch_answered() {
    // 98 partitions, which is two bits more than 12 bytes hold, and 49 offsets of 6 bits, which is
    // two bits less than 37 bytes hold.
    let server = start(config(), vec![streamed("t", 98 * 64 - 1, 3, 1)]).await;
    let (mut stub, table) = described(&server).await;
    let parameters = parameters(&table);
    assert_eq!((parameters.partitions(), parameters.cut().offset_bits()), (98, 6));
    let all = records(table.identity.shape.bytes() as usize, 1);
    let good = Query::random(&parameters, &mut SecretRng::from_fixed_seed([8; 32]));
    let bytes = good.encode();
    assert_eq!(bytes.len(), 13 + 37);

    let changed = |place: usize, bits: u8| {
        let mut bytes = bytes.clone();
        bytes[place] ^= bits;
        bytes
    };
    // One partition is moved to the other half; all partitions to one; and to the halves, a
    // partition too many or too few.
    let unbalanced = [
        changed(0, 1),
        changed(12, 2),
        [&[0; 13][..], &bytes[13..]].concat(),
        [&[255; 12][..], &[3], &bytes[13..]].concat(),
    ];
    let moved_into_padding = {
        let mut halves = good.halves.clone();
        let taken = halves.iter().position(|half| *half).unwrap();
        halves[taken] = false;
        halves.extend([true]);
        [&packed(&halves), &bytes[13..]].concat()
    };
    let refused = unbalanced
        .into_iter()
        .chain([moved_into_padding])
        .map(|bytes| ("two halves of equal size", bytes))
        .chain((6..8).map(|bit| ("padded with zeros", changed(49, 1 << bit))));
    for (sentence, bytes) in refused {
        // Often both go through one pass.
        let (mut one, mut other) = (stub.clone(), stub.clone());
        let (bad, fine) = tokio::join!(
            ask(&mut one, request(&table, bytes)),
            ask(&mut other, request(&table, good.encode()))
        );
        let status = bad.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(sentence), "{sentence:?} is not in {status}");
        assert_eq!(fine.unwrap().answer, good.answer(&all, 3));
    }
    let passes = metric(&server, "privet_batch_size_count").await;
    for len in [0, 13, 49, 51, 1001, 10_000] {
        let query = Bytes::from(vec![0; len]);
        let long = AnswerRequest { query, ..request(&table, Vec::new()) };
        let status = ask(&mut stub, long).await.unwrap_err();
        // A message longer than every valid request is not even read.
        let code = if len == 10_000 { Code::OutOfRange } else { Code::InvalidArgument };
        assert_eq!(status.code(), code, "{len}: {status}");
    }
    assert_eq!(metric(&server, "privet_batch_size_count").await, passes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_the_same_whatever_is_asked() {
    const QUERIES: u64 = 5;
    let mut seen = Vec::new();
    for repeated in [true, false] {
        let server = start(config(), vec![streamed("t", 1000, 3, 1)]).await;
        let (mut stub, table) = described(&server).await;
        let parameters = parameters(&table);
        let mut rng = SecretRng::from_os().unwrap();
        let first = Query::random(&parameters, &mut rng);
        for _ in 0..QUERIES {
            let query = if repeated { first.clone() } else { Query::random(&parameters, &mut rng) };
            ask(&mut stub, request(&table, query.encode())).await.unwrap();
        }
        let answered = "privet_requests_total{method=\"Answer\",status=\"OK\"}";
        until_metric(&server, answered, QUERIES as f64).await;
        seen.push(counts(&server).await);
    }
    assert!(seen[0].iter().any(|line| line == "privet_queries_answered_total{table=\"t\"} 5"));
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_table_that_is_not_the_one_it_says_is_not_served() {
    let good = || streamed("t", 100, 4, 1);
    let mut damaged = records(400, 1);
    damaged[399] ^= 1;
    let records = ServedTable { records: Box::new(damaged), ..good() };
    let layout = ServedTable { layout: (*b"another layout").into(), ..good() };
    let mut digest = good();
    digest.identity.digest.0[31] ^= 1;
    for table in [records, layout, digest] {
        let error = Server::start(config(), vec![table]).await.err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted, "{error}");
        let text = error.to_string();
        assert!(text.contains("table t: damaged"), "{text}");
    }
    start(config(), vec![good()]).await;
}
