//! Malformed, truncated, oversized, misdirected: each gets the right status, and the server goes on
//! serving.

use crate::common::*;
use bytes::Bytes;
use privet_core::{Epoch, TableId};
use privet_schemes::contract::Role;
use privet_server::RunningServer;
use privet_wire::{AnswerRequest, PartKind, limits, proto};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_about_something_else() {
    let server = start(config(), vec![table("t", 50, 4, 1), table("u", 50, 4, 2)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let (good, _) = client.prepare(0);
    let len = good.query.len();
    let other_digest = describe(&mut stub).await.table("u").unwrap().schemes[0].parameter_digest;
    let cases: Vec<(&str, Code, AnswerRequest)> = vec![
        ("no table", Code::NotFound, AnswerRequest { table: TableId([9; 16]), ..good.clone() }),
        (
            "epoch 5 here, not 4",
            Code::FailedPrecondition,
            AnswerRequest { epoch: Epoch(4), ..good.clone() },
        ),
        (
            "epoch 5 here, not 6",
            Code::FailedPrecondition,
            AnswerRequest { epoch: Epoch(6), ..good.clone() },
        ),
        (
            "other parameters",
            Code::FailedPrecondition,
            AnswerRequest { parameter_digest: [0; 32], ..good.clone() },
        ),
        (
            "other parameters",
            Code::FailedPrecondition,
            AnswerRequest { parameter_digest: other_digest, ..good.clone() },
        ),
        ("no role 7", Code::InvalidArgument, AnswerRequest { role: Role(7), ..good.clone() }),
        ("no role 1", Code::InvalidArgument, AnswerRequest { role: Role(1), ..good.clone() }),
        ("not 0", Code::InvalidArgument, AnswerRequest { query: Bytes::new(), ..good.clone() }),
        (
            "bytes, not",
            Code::InvalidArgument,
            AnswerRequest { query: good.query.slice(..len - 1), ..good.clone() },
        ),
        (
            "bytes, not",
            Code::InvalidArgument,
            AnswerRequest { query: good.query.slice(..len - 4), ..good.clone() },
        ),
    ];
    for (sentence, code, request) in cases {
        let status = ask(&mut stub, request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(
            status.message().contains(sentence),
            "{sentence:?} is not in {:?}",
            status.message()
        );
        client.check(&mut stub, 7).await;
    }

    let fetched = fetch_request(&client.description, PartKind::Hint, 0);
    for (code, request) in [
        (Code::NotFound, privet_wire::FetchRequest { table: TableId([9; 16]), ..fetched }),
        (Code::FailedPrecondition, privet_wire::FetchRequest { epoch: Epoch(0), ..fetched }),
        (
            Code::FailedPrecondition,
            privet_wire::FetchRequest { parameter_digest: other_digest, ..fetched },
        ),
    ] {
        assert_eq!(fetch(&mut stub, request).await.unwrap_err().code(), code);
    }
    // None of all this was computed: passes were only for the good queries.
    assert_eq!(metric(&server, "privet_batch_size_sum").await, 10.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_no_valid_ones() {
    let server = start(config(), vec![table("t", 50, 4, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let good = proto::AnswerRequest::from(client.prepare(0).0);
    for request in [
        proto::AnswerRequest { role: 256, ..good.clone() },
        proto::AnswerRequest { role: u32::MAX, ..good.clone() },
        proto::AnswerRequest { table_id: vec![1; 15], ..good.clone() },
        proto::AnswerRequest { parameter_digest: vec![], ..good.clone() },
        proto::AnswerRequest::default(),
    ] {
        assert_eq!(stub.answer(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let fetched = proto::FetchRequest::from(fetch_request(&client.description, PartKind::Hint, 0));
    for part in [0, 6, -1] {
        let status = stub.fetch(proto::FetchRequest { part, ..fetched.clone() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    let status = stub.describe(proto::DescribeRequest { protocol_version: 0 }).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    // A client of a later release is answered; it decides whether it can use that.
    stub.describe(proto::DescribeRequest { protocol_version: 9 }).await.unwrap();
    client.check(&mut stub, 7).await;
}

/// The server's answer to `body`, sent unchanged to a method: a gRPC status number, or the error of
/// HTTP/2.
async fn raw(server: &RunningServer, path: &str, body: &[u8]) -> Result<i32, h2::Error> {
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("http://{}{path}", server.local_addr()))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut upload) = requests.send_request(request, false)?;
    // A server that refuses a request for its first line may have answered before the body is sent.
    let _ = upload.send_data(Bytes::copy_from_slice(body), true);
    let response = response.await?;
    let number = |headers: &http::HeaderMap| {
        headers.get("grpc-status").map(|value| value.to_str().unwrap().parse().unwrap())
    };
    let status = match number(response.headers()) {
        Some(status) => status,
        None => {
            let mut body = response.into_body();
            while let Some(data) = body.data().await {
                body.flow_control().release_capacity(data?.len())?;
            }
            number(&body.trailers().await?.unwrap()).unwrap()
        }
    };
    connection.abort();
    Ok(status)
}

fn framed(announced: u32, payload: &[u8]) -> Vec<u8> {
    [&[0], &announced.to_be_bytes()[..], payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_are_no_messages() {
    let server = start(config(), vec![table("t", 50, 4, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let description = describe(&mut stub).await;
    let limit = limits::request_limit(description.plans());
    let answer = "/privet.v1.Privet/Answer";
    let code = |code: Code| code as i32;
    let junk = records(100, 9);

    // A frame that announces more than any valid request has, up to 4 GiB: refused at once, without
    // waiting for the rest.
    for announced in [limit as u32 + 1, 1 << 24, u32::MAX] {
        assert_eq!(
            raw(&server, answer, &framed(announced, &junk)).await.unwrap(),
            code(Code::OutOfRange),
            "{announced}"
        );
    }
    // The limit itself is exact: that many bytes are read, and found not to be a message.
    let longest = vec![0xff; limit];
    let not_protobuf = raw(&server, answer, &framed(limit as u32, &longest)).await.unwrap();
    assert_ne!(not_protobuf, code(Code::OutOfRange));
    for (what, body) in [
        ("nothing", Vec::new()),
        ("half a frame header", vec![0, 0, 0]),
        ("a frame cut off", framed(100, &junk[..50])),
        ("no protobuf", framed(100, &junk)),
        ("a length beyond the frame", framed(3, &[0x2a, 0xff, 0x7f])),
        ("an unknown compression", [&[1], &100u32.to_be_bytes()[..], &junk].concat()),
        ("an empty message", framed(0, &[])),
    ] {
        for method in ["Answer", "Fetch", "Describe"] {
            let status = raw(&server, &format!("/privet.v1.Privet/{method}"), &body).await.unwrap();
            assert_ne!(status, code(Code::Ok), "{what} to {method}");
        }
        client.check(&mut stub, 3).await;
    }
    assert_eq!(
        raw(&server, "/privet.v1.Privet/Nothing", &[]).await.unwrap(),
        code(Code::Unimplemented)
    );
    assert_eq!(raw(&server, "/", &[]).await.unwrap(), code(Code::Unimplemented));
    client.check(&mut stub, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_even_http() {
    let server = start(config(), vec![table("t", 50, 4, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for said in [
        &b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        &records(5000, 3),
        &preface[..10],
        &[&preface[..], &[0xff; 64]].concat(),
    ] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(said).await.unwrap();
        stream.shutdown().await.unwrap();
        // The server closes the connection, with or without a message.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        client.check(&mut stub, 11).await;
    }
    until_metric(&server, "privet_connections", 1.0).await;
}
