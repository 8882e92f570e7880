//! Addresses without a Privet server, or with one that cannot be trusted: the error says soon what
//! to do.

use crate::common::relay::Relay;
use crate::common::{
    any_port, check, config, connect, listener, options, pair, refusal, serve, table, table_by,
    write_certificate,
};
use privet_client::{Client, ClientOptions, Patience};
use privet_core::{Blame, Error, Reason};
use privet_schemes::SchemeId;
use privet_server::Server;
use privet_wire::proto::{DescribeResponse, FetchChunk};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tonic::Streaming;
use tonic::codegen::BoxStream;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

/// Answers any request with `bytes` and closes.
async fn something_that_says(bytes: &'static [u8]) -> String {
    let (listener, url) = listener().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(bytes).await;
            });
        }
    });
    url
}

#[tokio::test]
async fn nothing_listens() {
    let (listener, url) = listener().await;
    drop(listener);
    let error = refusal(options(&url)).await;
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.message().starts_with(&format!("nothing listens at {url}")), "{error}");
}

#[tokio::test]
async fn a_web_server_and_garbage() {
    let web: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for bytes in [web, &[0xff; 300], b"SSH-2.0-OpenSSH_9.2\r\n"] {
        let url = something_that_says(bytes).await;
        let error = refusal(options(&url)).await;
        assert_eq!(error.blame(), Blame::Unavailable);
        assert!(error.message().contains(&url), "{error}");
        assert!(error.message().contains("does not speak gRPC"), "{error}");
    }
    let closes = something_that_says(b"").await;
    let error = refusal(options(&closes)).await;
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.message().contains(&closes), "{error}");
}

#[tokio::test]
async fn someone_who_never_says_anything() {
    let (listener, url) = listener().await;
    let mut impatient = options(&url);
    let moment = Duration::from_millis(100);
    impatient.session.patience =
        Patience { describe: moment, first_contact: moment, ..impatient.session.patience };
    let error = refusal(impatient).await;
    assert_eq!(error.blame(), Blame::Unavailable);
    drop(listener);
}

#[tokio::test]
async fn another_grpc_service() {
    let (listener, url) = listener().await;
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let other = tonic::transport::Server::builder().add_routes(tonic::service::Routes::default());
    tokio::spawn(other.serve_with_incoming(incoming));
    let error = refusal(options(&url)).await;
    assert_eq!(error.blame(), Blame::PeerMisbehaved);
    assert!(error.message().contains("not as a Privet server does"), "{error}");
}

#[tokio::test]
async fn addresses_that_are_none() {
    for url in ["127.0.0.1:7700", "ftp://example.org", "http://", "http://a b"] {
        assert_eq!(refusal(options(url)).await.blame(), Blame::ApiMisuse, "{url}");
    }
}

/// Describes itself with `description`, whatever that is.
async fn liar(description: DescribeResponse) -> String {
    let mut relay = Relay::to("http://127.0.0.1:1");
    relay.description = Some(description);
    relay.start().await
}

#[tokio::test]
async fn another_version_of_the_protocol() {
    let url = liar(DescribeResponse { protocol_version: 2, ..DescribeResponse::default() }).await;
    let error = refusal(options(&url)).await;
    assert_eq!(error.blame(), Blame::PeerMisbehaved);
    assert!(error.message().contains("version 2 of the protocol"), "{error}");
    assert!(error.message().contains("install"), "{error}");
}

#[tokio::test]
async fn a_description_longer_than_any() {
    let software = "x".repeat(64 << 20);
    let url =
        liar(DescribeResponse { protocol_version: 1, software, ..DescribeResponse::default() })
            .await;
    assert_eq!(refusal(options(&url)).await.blame(), Blame::InvalidMessage);
}

#[tokio::test]
async fn parameters_out_of_proof() {
    let scheme = privet_wire::proto::Scheme {
        name: "simplepir".to_owned(),
        parameters: vec![0xff; 8],
        parameter_digest: vec![0; 32],
        hint: None,
    };
    let layout = privet_wire::proto::PartDescription { len: 4, digest: vec![0; 32] };
    let table = privet_wire::proto::Table {
        name: "table".to_owned(),
        table_id: vec![1; 16],
        epoch: 0,
        digest: vec![2; 32],
        records: 1 << 40,
        record_len: 1,
        layout: Some(layout),
        schemes: vec![scheme],
        earlier: Vec::new(),
        predecessors: Vec::new(),
        updates: None,
        layout_bytes: None,
    };
    let url = liar(DescribeResponse {
        protocol_version: 1,
        software: "liar".to_owned(),
        tables: vec![table],
        ..DescribeResponse::default()
    })
    .await;
    let error = refusal(options(&url)).await;
    assert!(matches!(error.blame(), Blame::PeerMisbehaved | Blame::InvalidMessage), "{error:?}");
}

#[tokio::test]
async fn tls_with_and_without_the_right_authority() {
    let directory = tempfile::tempdir().unwrap();
    write_certificate(directory.path(), "localhost");
    let config = config(any_port(), Some(directory.path()));
    let server = Server::start(config, vec![table("packages", 1, 0)]).await.unwrap();
    let port = server.local_addr().port();

    let mut trusting = options(&format!("https://localhost:{port}"));
    trusting.ca_file = Some(directory.path().join("cert.pem"));
    check(&connect(trusting.clone()).await, 1, 0).await;

    let error = refusal(options(&format!("https://localhost:{port}"))).await;
    assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error:?}");
    assert_eq!(error.reason(), Some(Reason::CertificateNotTrusted), "{error}");

    trusting.urls = vec![format!("https://127.0.0.1:{port}")];
    let error = refusal(trusting.clone()).await;
    assert_eq!(error.blame(), Blame::PeerMisbehaved, "a certificate for another name: {error:?}");
    assert!(error.message().contains("another name"), "{error}");

    let error = refusal(options(&format!("http://localhost:{port}"))).await;
    assert_eq!(error.blame(), Blame::Unavailable, "{error:?}");
    assert!(error.message().contains("https://"), "{error}");

    trusting.ca_file = Some(directory.path().join("key.pem"));
    let error = refusal(trusting.clone()).await;
    assert!(error.message().contains("holds no certificate"), "{error}");

    trusting.ca_file = Some(directory.path().join("missing.pem"));
    let error = refusal(trusting).await;
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().contains("missing.pem"), "{error}");
}

#[tokio::test]
async fn tls_to_a_server_without_it() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let error = refusal(options(&url.replace("http://", "https://"))).await;
    assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error:?}");
    assert!(error.message().contains("http:// instead of https://"), "{error}");
}

/// Waits for a short time, and no longer, for anything.
fn impatient(url: &str) -> ClientOptions {
    let moment = Duration::from_millis(250);
    let patience = Patience {
        describe: moment,
        chunk: moment,
        reply: moment,
        answer: moment,
        first_pause: Duration::from_millis(10),
        longest_pause: Duration::from_millis(50),
        first_contact: moment,
        give_up_after: moment,
        least_rate: 10_000,
        ..Patience::default()
    };
    let mut options = options(url);
    options.session.patience = patience;
    options
}

/// The value of the first key, as an impatient client gets it. Whatever servers do, the client has
/// an outcome within a few moments.
async fn look_up(url: &str) -> Result<Vec<u8>, Error> {
    let lookup = async {
        let client = Client::connect(impatient(url), |_| {}).await?;
        Ok(client.get(&pair(1, 0).0).await?.unwrap().to_vec())
    };
    // About two moments for each of four things: two seconds. Nothing is fast on a busy machine.
    // But clients with the usual patience wait that long for a chunk alone.
    let outcome = tokio::time::timeout(Duration::from_secs(30), lookup).await;
    outcome.expect("it waits for ever")
}

/// A proxy for `server`. It passes on the first `freely` bytes of the responses at once, and after
/// that a byte each `pause`. The receiver sees whether the pauses began.
async fn dripping(
    server: SocketAddr,
    freely: usize,
    pause: Duration,
) -> (String, watch::Receiver<bool>) {
    let (listener, url) = listener().await;
    let (tell, drips) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            client.set_nodelay(true).unwrap();
            let server = TcpStream::connect(server).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
            });
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut left = freely;
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = from_server.read(&mut bytes).await {
                    let free = read.min(left);
                    left -= free;
                    if to_client.write_all(&bytes[..free]).await.is_err() {
                        return;
                    }
                    for byte in &bytes[free..read] {
                        tell.send_replace(true);
                        tokio::time::sleep(pause).await;
                        if to_client.write_all(&[*byte]).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (url, drips)
}

/// Wherever the pauses begin: in the first frame, in headers, in a description, in a download, in
/// an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sends_a_byte_now_and_then_is_given_up() {
    let (server, _) = serve(vec![table("packages", 1, 0)]).await;
    let mut all = tokio::task::JoinSet::new();
    for freely in [0, 5, 9, 40, 80, 120, 200, 400, 1000, 2000, 5000, 20_000, 50_000] {
        let address = server.local_addr();
        all.spawn(async move {
            let (url, drips) = dripping(address, freely, Duration::from_millis(40)).await;
            let outcome = look_up(&url).await;
            assert!(*drips.borrow(), "all of it is no more than {freely} bytes");
            let error = outcome.expect_err("so much takes longer");
            assert_eq!(error.blame(), Blame::Unavailable, "after {freely} bytes: {error}");
            let told = error.message();
            assert!(told.contains(&url) || told.contains("the server"), "{freely}: {told}");
            error.reason()
        });
    }
    let reasons = all.join_all().await;
    assert!(reasons.contains(&Some(Reason::NoAnswerInTime)), "{reasons:?}");
    // Without the pauses, the same client is patient enough.
    let (url, _) = dripping(server.local_addr(), usize::MAX, Duration::ZERO).await;
    assert_eq!(look_up(&url).await.unwrap(), pair(1, 0).1);
}

/// How a server that has the table sends its parts.
#[derive(Clone, Copy)]
enum Manner {
    /// In chunks of one byte, each of them whole, and a pause after each.
    Crumbs(Duration),
    /// Correctly, and then the same bytes again and again.
    WithoutEnd,
    /// Correctly, but it never ends the stream.
    Unfinished,
}

/// A stream of the same chunks, sent in this manner.
fn sent_in(manner: Manner, mut stream: Streaming<FetchChunk>) -> BoxStream<FetchChunk> {
    let (chunks, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut last = None;
        while let Ok(Some(chunk)) = stream.message().await {
            let pause = if let Manner::Crumbs(pause) = manner { Some(pause) } else { None };
            let len = if pause.is_some() { 1 } else { chunk.data.len() };
            for (offset, data) in (chunk.offset..).step_by(len).zip(chunk.data.chunks(len)) {
                let piece = FetchChunk { offset, data: data.to_vec().into() };
                last = Some(piece.clone());
                if chunks.send(Ok(piece)).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause.unwrap_or_default()).await;
            }
        }
        if let Manner::Unfinished = manner {
            chunks.closed().await;
        }
        while let (Manner::WithoutEnd, Some(chunk)) = (manner, &last) {
            if chunks.send(Ok(chunk.clone())).await.is_err() {
                return;
            }
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_below_the_least_rate_and_one_without_an_end_end() {
    for scheme in [SchemeId::SimplePir, SchemeId::Download, SchemeId::DummySubsets] {
        let (_server, url) = serve(vec![table_by(scheme, "packages", 1, 0)]).await;
        let mannered = |manner| {
            let mut relay = Relay::to(&url);
            relay.on_fetch = Box::new(move |_, chunks| sent_in(manner, chunks));
            relay.start()
        };

        // Each chunk comes long before the client's patience ends.
        let url = mannered(Manner::Crumbs(Duration::from_millis(5))).await;
        let error = look_up(&url).await.expect_err("so much takes longer");
        assert_eq!(error.blame(), Blame::Unavailable, "{scheme}: {error}");
        assert!(error.message().starts_with("the server sends the "), "{scheme}: {error}");
        assert!(error.message().contains("slower than 10000 bytes a second"), "{scheme}: {error}");
        assert_eq!(error.reason(), Some(Reason::TooSlow), "{scheme}: {error}");

        for manner in [Manner::WithoutEnd, Manner::Unfinished] {
            let url = mannered(manner).await;
            match look_up(&url).await {
                // It had everything that it needs.
                Ok(value) => assert_eq!(value, pair(1, 0).1, "{scheme}"),
                Err(error) => {
                    let at_fault = [Blame::PeerMisbehaved, Blame::InvalidMessage];
                    assert!(at_fault.contains(&error.blame()), "{scheme}: {error}");
                }
            }
        }
    }
}
