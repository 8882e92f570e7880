//! Too much of everything: refused with RESOURCE_EXHAUSTED, and normal again as soon as the load
//! ends.

use crate::common::*;
use privet_server::Limits;
use privet_wire::proto;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_sheds_and_recovers() {
    let mut config = config();
    config.limits.queries = all_for_one(4);
    config.batch_window = Duration::from_secs(2);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;

    let mut waiting = Vec::new();
    for index in 0..4 {
        let (request, pending) = client.prepare(index);
        let mut stub = stub.clone();
        waiting.push((index, pending, tokio::spawn(async move { ask(&mut stub, request).await })));
    }
    until_metric(&server, "privet_queue_depth", 4.0).await;
    let (request, _) = client.prepare(4);
    let refused = ask(&mut stub, request).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("4 queries are waiting"), "{}", refused.message());
    assert_eq!(metric(&server, "privet_shed_total{what=\"queries\",why=\"total\"}").await, 1.0);

    for (index, pending, answer) in waiting {
        let response = answer.await.unwrap().unwrap();
        assert_eq!(client.recover(pending, &response), client.expected(index));
    }
    client.check(&mut stub, 4).await;
    assert_eq!(metric(&server, "privet_batch_size_count").await, 2.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_cap_are_refused_before_they_are_read() {
    let mut config = config();
    config.limits.answers = all_for_one(2);
    config.batch_window = Duration::from_secs(2);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let mut waiting = Vec::new();
    for index in 0..2 {
        let (request, pending) = client.prepare(index);
        let mut stub = stub.clone();
        waiting.push((index, pending, tokio::spawn(async move { ask(&mut stub, request).await })));
    }
    until_metric(&server, "privet_queue_depth", 2.0).await;
    let before = metric(&server, "privet_request_bytes_total{method=\"Answer\"}").await;
    for _ in 0..5 {
        let (request, _) = client.prepare(0);
        assert_eq!(ask(&mut stub, request).await.unwrap_err().code(), Code::ResourceExhausted);
    }
    assert_eq!(metric(&server, "privet_request_bytes_total{method=\"Answer\"}").await, before);
    assert_eq!(metric(&server, "privet_shed_total{what=\"answers\",why=\"total\"}").await, 5.0);
    for (index, pending, answer) in waiting {
        let response = answer.await.unwrap().unwrap();
        assert_eq!(client.recover(pending, &response), client.expected(index));
    }
    client.check(&mut stub, 7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_takes_too_long_is_ended() {
    let mut config = config();
    config.batch_window = Duration::from_secs(10);
    config.limits.request_deadline = Duration::from_millis(100);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let (request, _) = client.prepare(0);
    assert_eq!(ask(&mut stub, request).await.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(
        metric(&server, "privet_requests_total{method=\"Answer\",status=\"DEADLINE_EXCEEDED\"}")
            .await,
        1.0
    );
    assert_eq!(metric(&server, "privet_batch_size_count").await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_cap_are_closed_at_once_and_a_free_place_is_taken_again() {
    let mut config = config();
    config.limits.connections = all_for_one(2);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut first = stub(&server).await;
    describe(&mut first).await;
    let idle = TcpStream::connect(server.local_addr()).await.unwrap();
    until_metric(&server, "privet_connections", 2.0).await;

    let mut refused = TcpStream::connect(server.local_addr()).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(20), refused.read_u8()).await.unwrap();
    assert!(closed.is_err());
    assert_eq!(metric(&server, "privet_shed_total{what=\"connections\",why=\"total\"}").await, 1.0);

    drop(idle);
    until_metric(&server, "privet_connections", 1.0).await;
    TableClient::new(&mut stub(&server).await, "t").await.check(&mut first, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_never_says_a_word_is_closed() {
    let mut config = config();
    config.limits.handshake_limit = Duration::from_millis(100);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut silent = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut said = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), silent.read_to_end(&mut said)).await;
    assert!(closed.is_ok(), "still open after 20 s");
    until_metric(&server, "privet_connections", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_alive_is_not_taken_for_a_dead_one() {
    let mut config = config();
    // Two seconds pass without a message, ten times as long as a connection may be silent.
    config.limits.keepalive = Duration::from_millis(70);
    config.batch_window = Duration::from_secs(2);
    let server = start(config, vec![table("t", 20, 3, 1)]).await;
    let mut stub = stub(&server).await;
    TableClient::new(&mut stub, "t").await.check(&mut stub, 3).await;

    // A connection that began well and then answers no ping is closed.
    let mut dead = TcpStream::connect(server.local_addr()).await.unwrap();
    let preface_and_settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    dead.write_all(preface_and_settings).await.unwrap();
    let mut said = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), dead.read_to_end(&mut said)).await;
    assert!(closed.is_ok(), "still open after 20 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_not_read_is_not_kept_for_ever() {
    let config = limited(Limits { stall_limit: Duration::from_millis(300), ..Limits::default() });
    let server = start(config, vec![table("t", 4, 100_000, 1)]).await;
    let mut stub = unlimited(&stub(&server).await);
    let mut client = TableClient::new(&mut stub, "t").await;
    // More than an unread connection takes.
    assert!(client.description.schemes[0].plan.answer_len >= 400_000);
    let (request, _) = client.prepare(2);
    let _unread = unread(&server, "Answer", proto::AnswerRequest::from(request)).await;
    until_metric(&server, "privet_requests_total{method=\"Answer\",status=\"CANCELLED\"}", 1.0)
        .await;
    // A client that reads is not closed.
    client.check(&mut stub, 3).await;
}
