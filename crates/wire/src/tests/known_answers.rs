//! The bytes of one message of each kind. They are the protocol: if this test fails, clients and
//! servers in the field no longer understand each other.

use super::*;
use crate::prost::Message;
use crate::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartKind,
    PrepareRequest, PrepareResponse,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check(message: impl Message, expected: &[&str]) {
    assert_eq!(hex(&message.encode_to_vec()), expected.concat());
}

#[rustfmt::skip]
#[test]
fn describe() {
    check(proto::DescribeRequest::from(DescribeRequest::default()), &["0801"]);
    let expected = [
        "0801", // protocol version 1
        "120c", "70726976657420302e312e30", // privet 0.1.0
        "1acc01", // a table of 204 bytes:
        "0a08", "7061636b61676573", // packages
        "1210", &"07".repeat(16), // table id
        "1803", // epoch 3
        "2220", &"08".repeat(32), // table digest
        "28e807", "3014", // 1000 records of 20 bytes
        "3a24", "0864", "1220", &"0a".repeat(32), // layout: 100 bytes, digest
        "425f", // a scheme of 95 bytes:
        "0a09", "73696d706c65706972", // simplepir
        "1208", "0700000000000000", // parameters: 7 records in a column
        "1a20", "dcbe71c0649264948d3eafd8f40e6032323a70edf4bde5c2d7258c198df5b4ed", // parameter digest
        "2226", "08808023", "1220", &"09".repeat(32), // hint: 573 440 bytes, digest
    ];
    check(announced(), &expected);
    // A request may carry 64 queries.
    let expected = [&expected[..], &["2040"]].concat();
    check(proto::DescribeResponse { max_queries: 64, ..announced() }, &expected);
    // A table with its layout, which readers of before pass over.
    let mut told = announced();
    told.tables[0].layout_bytes = Some(b"a layout".to_vec());
    let table = [&expected[4..expected.len() - 1], &["6208", "61206c61796f7574"]].concat();
    let expected = [&expected[..3], &["1ad601"], &table[..]].concat();
    check(told, &expected);
}

#[rustfmt::skip]
#[test]
fn schemes_whose_clients_stream_the_table() {
    let expected = [
        "0a0d", "64756d6d792d73756273657473", // dummy-subsets
        "1208", "1000000000000000", // parameters: 16 records in a partition
        "1a20", "c1ea5ee8d6478f994acd1f9c6010d2974c8a582a7240981c40cfcfe45fc23bf1", // parameter digest
        "2226", "08a09c01", "1220", &"0b".repeat(32), // the table: 20 000 bytes, digest
    ];
    check(proto::Scheme::from(streaming_scheme(&identity(1000, 20))), &expected);
    let expected = [
        "0a07", "6861726d6f6e79", // harmony
        "1208", "1000000000000000", // parameters: 16 records in a segment
        "1a20", "3e4b88a8d3354381b639e014ea72806343589e59f526ec2f8295e864fc39fd71", // parameter digest
        "2226", "08a09c01", "1220", &"0b".repeat(32), // the table: 20 000 bytes, digest
    ];
    let scheme = described_as(SchemeId::Harmony, &identity(1000, 20), 16);
    check(proto::Scheme::from(scheme), &expected);
}

#[rustfmt::skip]
#[test]
fn schemes_whose_clients_stream_the_table_in_an_order_of_the_schemes_own() {
    for (id, len, name, digest) in [
        (SchemeId::Piano, "0a05", "7069616e6f", // piano
            "98dee31eb4f8cbd2fbf4f8311871d86837569e80f04ecf1c0564694d12615837"),
        (SchemeId::PianoAllParities, "0a12", "7069616e6f2d616c6c2d7061726974696573", // piano-all-parities
            "2d8a6c346a7f05fe3278e013838768066d431f96279cb0b0ab85c3d837154c16"),
    ] {
        let expected = [
            len, name,
            "1208", "1000000000000000", // parameters: 16 records in a chunk
            "1a20", digest, // parameter digest
            "2226", "08a09c01", "1220", &"09".repeat(32), // the table: 20 000 bytes, digest
        ];
        check(proto::Scheme::from(described_as(id, &identity(1000, 20), 16)), &expected);
    }
}

#[rustfmt::skip]
#[test]
fn schemes_whose_clients_ask_for_hints() {
    for (id, len, name, digest) in [
        (SchemeId::DummySubsetsTwo, "0a11", "64756d6d792d737562736574732d74776f", // dummy-subsets-two
            "6d229b6480f0c9e4439e1c832e848e7bee1c635306795012439c115398a34686"),
        (SchemeId::SinglePass, "0a0a", "73696e676c6570617373", // singlepass
            "42cc9910f0f40bc93113e4a59aed16120b814c70d0515c6c932b7d94f9fa89c9"),
    ] {
        let expected = [
            len, name,
            "1208", "1000000000000000", // parameters: 16 records in a partition
            "1a20", digest, // parameter digest; no hint
        ];
        check(proto::Scheme::from(described_as(id, &identity(1000, 20), 16)), &expected);
    }
}

#[rustfmt::skip]
#[test]
fn a_scheme_whose_clients_keep_the_table() {
    let expected = [
        "0a08", "646f776e6c6f6164", // download; no parameters
        "1a20", "935f01d1d9ba9f1307be262e84877b29c29cbe1b903e19f389392e73b8bed88b", // parameter digest
        "2226", "08a09c01", "1220", &"0b".repeat(32), // the table: 20 000 bytes, digest
    ];
    let scheme = described_as(SchemeId::Download, &identity(1000, 20), 0);
    check(proto::Scheme::from(scheme), &expected);
}

#[rustfmt::skip]
#[test]
fn a_scheme_whose_clients_receive_nothing_first() {
    let expected = [
        "0a03", "647066", // dpf; no parameters
        "1a20", "17ca471d90e115397903e8c28bd2b6a0433dab018b9e96e7f9da3f79f52398aa", // parameter digest; no hint
    ];
    let scheme = described_as(SchemeId::Dpf, &identity(1000, 20), 0);
    check(proto::Scheme::from(scheme), &expected);
}

#[rustfmt::skip]
#[test]
fn a_scheme_with_a_hint_that_does_not_grow_with_the_table() {
    let expected = [
        "0a09", "646f75626c65706972", // doublepir
        "1208", "0700000000000000", // parameters: 7 records in a column
        "1a20", "4cf52251815b6b021b336424fa03c89f6f00e86a640bde9a86d3f7da41786245", // parameter digest
        "2228", "08808080a001", "1220", &"09".repeat(32), // hint: 20 · 2^24 bytes, digest
    ];
    let scheme = described_as(SchemeId::DoublePir, &identity(1000, 20), 7);
    check(proto::Scheme::from(scheme), &expected);
}

#[rustfmt::skip]
#[test]
fn fetch() {
    let request = FetchRequest {
        table: TableId([0x11; 16]),
        epoch: Epoch(300),
        parameter_digest: [0x22; 32],
        part: PartKind::Hint,
        offset: 262_144,
        len: 0,
    };
    let expected = [
        "0a10", &"11".repeat(16), // table id
        "10ac02", // epoch 300
        "1a20", &"22".repeat(32), // parameter digest
        "2002", // the hint
        "28808010", // from byte 262 144
    ];
    check(proto::FetchRequest::from(request), &expected);
    let some_of_the_table = FetchRequest { part: PartKind::Table, len: 1000, ..request };
    let expected = [&expected[..5], &["2003", "28808010", "30e807"]].concat();
    check(proto::FetchRequest::from(some_of_the_table), &expected);
    let chunk = FetchChunk { offset: 262_144, data: vec![1, 2, 3].into() };
    check(proto::FetchChunk::from(chunk), &["08808010", "1203010203"]);
}

#[test]
fn answer() {
    let request = AnswerRequest {
        table: TableId([0x11; 16]),
        epoch: Epoch(300),
        parameter_digest: [0x22; 32],
        role: Role(1),
        query: vec![4, 5, 6].into(),
    };
    let response = AnswerResponse {
        table: request.table,
        epoch: request.epoch,
        parameter_digest: request.parameter_digest,
        answer: vec![7, 8].into(),
    };
    let head = ["0a10", &"11".repeat(16), "10ac02", "1a20", &"22".repeat(32)].concat();
    check(proto::AnswerRequest::from(request), &[&head, "2001", "2a03040506"]);
    check(proto::AnswerResponse::from(response), &[&head, "22020708"]);
}

#[test]
fn prepare() {
    let request = PrepareRequest {
        table: TableId([0x11; 16]),
        epoch: Epoch(300),
        parameter_digest: [0x22; 32],
        role: Role(1),
        request: vec![4, 5, 6].into(),
    };
    let response = PrepareResponse {
        table: request.table,
        epoch: request.epoch,
        parameter_digest: request.parameter_digest,
        reply: vec![7, 8].into(),
    };
    let head = ["0a10", &"11".repeat(16), "10ac02", "1a20", &"22".repeat(32)].concat();
    check(proto::PrepareRequest::from(request), &[&head, "2001", "2a03040506"]);
    check(proto::PrepareResponse::from(response), &[&head, "22020708"]);
}
