//! Those who do not speak gRPC, and probes that do.

use crate::common::*;
use bytes::Bytes;
use privet_server::{Server, TlsFiles};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// What comes on a connection that says `request`, until its end.
async fn told(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
    read.expect("an end").expect("no broken connection");
    String::from_utf8(answer).expect("no frames")
}

#[tokio::test]
async fn http_1_is_told_what_listens_here_and_lookups_go_on() {
    let server = start(config(), vec![table("t", 60, 5, 1)]).await;
    let address = server.local_addr();
    let long = [&b"POST /privet.v1.Privet/Describe HTTP/1.1\r\n\r\n"[..], &[b'x'; 9000]].concat();
    for request in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"HEAD / HTTP/1.0\r\n\r\n", &long] {
        let answer = told(address, request).await;
        assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
        assert!(
            answer.ends_with("(Privet). It speaks gRPC over HTTP/2 with its clients.\n"),
            "{answer}"
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    }
    let mut stub = stub(&server).await;
    TableClient::new(&mut stub, "t").await.check(&mut stub, 7).await;
    server.shutdown();
    server.wait().await.unwrap();
}

/// They hold places of connections no longer than a handshake may take.
#[tokio::test]
async fn strays_that_do_not_go_away_are_closed() {
    let mut config = config();
    config.limits.handshake_limit = Duration::from_millis(300);
    let server = start(config, vec![table("t", 2, 2, 1)]).await;
    for request in [&b""[..], b"GET / HTTP/1.1\r\n"] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let closed = async {
            // The answer has an end, and so has the connection.
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all).await;
            while stream.write_all(b"more").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let closed = tokio::time::timeout(Duration::from_secs(30), closed).await;
        assert!(closed.is_ok(), "still open: {request:?}");
    }
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn plain_text_on_a_port_of_tls_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = TlsFiles { cert: dir.path().join("cert"), key: dir.path().join("key") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    write_secret(&files.key, made.signing_key.serialize_pem());
    let mut config = config();
    config.tls = Some(files);
    let server = Server::start(config, vec![table("t", 2, 2, 1)]).await.unwrap();
    let answer = told(server.local_addr(), b"GET / HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.ends_with("It speaks TLS: write https://, not http://.\n"), "{answer}");

    // A client of TLS that knows HTTP/1 alone.
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(tls));
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // The server may close without TLS's own farewell.
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer}");
}

#[tokio::test]
async fn a_browser_that_speaks_http_2_gets_words() {
    let server = start(config(), vec![table("t", 2, 2, 1)]).await;
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("http://a/").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), http::StatusCode::METHOD_NOT_ALLOWED);
    let body: Bytes = response.into_body().data().await.unwrap().unwrap();
    assert!(body.starts_with(b"This is a server of private lookups (Privet)."), "{body:?}");
}

#[tokio::test]
async fn probes_by_grpc_learn_what_healthz_says() {
    let server = start(config(), vec![table("t", 2, 2, 1)]).await;
    for service in ["", "privet.v1.Privet", "t"] {
        assert_eq!(probe(&server, service).await, Ok(true), "{service}");
    }
    assert_eq!(probe(&server, "another").await, Err(tonic::Code::NotFound));
    assert!(probe(&server, &"x".repeat(1 << 20)).await.is_err());
    // A watch would hold a place for ever.
    let channel = endpoint(server.local_addr()).connect().await.unwrap();
    let watch =
        HealthClient::new(channel).watch(HealthCheckRequest { service: String::new() }).await;
    assert_eq!(watch.err().unwrap().code(), tonic::Code::Unimplemented);
}
