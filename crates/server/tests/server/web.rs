//! Pages in browsers: gRPC-Web over both versions of HTTP, with and without TLS.

use crate::common::*;
use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use privet_server::{Cap, Limits, RunningServer, ServerConfig, TlsFiles};
use privet_wire::prost::Message;
use privet_wire::{AnswerResponse, PartKind, proto};
use rustls::pki_types::CertificateDer;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The origin whose pages are served.
const PAGE: &str = "https://page.example";
const BINARY: &str = "application/grpc-web+proto";

/// No test waits longer for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of pages.
fn web(mut config: ServerConfig) -> ServerConfig {
    config.web = Some(vec![PAGE.parse().unwrap()]);
    config
}

/// With TLS, and the certificate that clients have to trust.
fn with_tls(folder: &Path, mut config: ServerConfig) -> (ServerConfig, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files = TlsFiles { cert: folder.join("cert"), key: folder.join("key") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    write_secret(&files.key, made.signing_key.serialize_pem());
    config.tls = Some(files);
    (config, made.cert.der().clone())
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How a browser has connected.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn name(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }
}

/// A connection, over TLS that agrees on `version` if there is a certificate to trust.
async fn connect(
    server: &RunningServer,
    version: Version,
    trusted: Option<&CertificateDer<'static>>,
) -> Box<dyn Stream> {
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let Some(trusted) = trusted else { return Box::new(stream) };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![version.name().to_vec()];
    let name = "localhost".try_into().unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
    let stream = stream.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(version.name()));
    Box::new(stream)
}

/// A browser with one connection.
enum Browser {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Browser {
    async fn open(
        server: &RunningServer,
        version: Version,
        trusted: Option<&CertificateDer<'static>>,
    ) -> Self {
        let io = TokioIo::new(connect(server, version, trusted).await);
        match version {
            Version::One => {
                let (requests, connection) = http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Self::One(requests)
            }
            Version::Two => {
                let (requests, connection) =
                    http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                Self::Two(requests)
            }
        }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let sent = async {
            match self {
                Self::One(requests) => {
                    requests.ready().await?;
                    requests.send_request(request).await
                }
                Self::Two(requests) => {
                    requests.ready().await?;
                    requests.send_request(request).await
                }
            }
        };
        tokio::time::timeout(PATIENCE, sent).await.expect("a response").unwrap()
    }

    /// What a page of `origin` gets for a body of that type.
    async fn ask(&mut self, origin: &str, method: &str, kind: &str, body: Vec<u8>) -> Told {
        let request = Request::post(format!("http://localhost/privet.v1.Privet/{method}"))
            .header("host", "localhost")
            .header(ORIGIN, origin)
            .header(CONTENT_TYPE, kind)
            .header("x-grpc-web", "1")
            .body(Full::new(body.into()))
            .unwrap();
        Told::by(self.send(request).await).await
    }

    async fn call(&mut self, method: &str, message: &impl Message) -> Told {
        self.ask(PAGE, method, BINARY, framed(message)).await
    }
}

fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

/// A response.
#[derive(Debug)]
struct Told {
    http: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Told {
    async fn by(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.expect("an end").unwrap();
        Self { http: head.status, headers: head.headers, body: body.to_bytes().to_vec() }
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The message, and the status in words as they are at the end.
    fn parts(&self) -> (Vec<u8>, String) {
        if let Some(status) = self.headers.get("grpc-status") {
            return (Vec::new(), format!("grpc-status:{}\r\n", status.to_str().unwrap()));
        }
        let (mut rest, mut message) = (&self.body[..], Vec::new());
        while let [flags, a, b, c, d, after @ ..] = rest {
            let (frame, next) = after.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            if *flags == 0x80 {
                assert!(next.is_empty(), "something after the trailers");
                return (message, String::from_utf8(frame.to_vec()).unwrap());
            }
            message.extend_from_slice(frame);
            rest = next;
        }
        panic!("a response without a status")
    }

    fn message<M: Message + Default>(&self) -> M {
        let (message, status) = self.parts();
        assert!(status.contains("grpc-status:0\r\n"), "{status}");
        M::decode(&message[..]).unwrap()
    }

    #[track_caller]
    fn is_refused(&self, status: i32) {
        assert_eq!(self.header(ACCESS_CONTROL_ALLOW_ORIGIN), Some(PAGE), "{self:?}");
        let exposed = self.header(http::header::ACCESS_CONTROL_EXPOSE_HEADERS).unwrap();
        assert_eq!(exposed, "grpc-status,grpc-message");
        assert!(self.parts().1.contains(&format!("grpc-status:{status}\r\n")), "{self:?}");
    }
}

const DESCRIBE: proto::DescribeRequest = proto::DescribeRequest { protocol_version: 1 };

#[tokio::test]
async fn pages_look_up_by_either_version_with_and_without_tls_and_are_counted_as_others() {
    let folder = tempfile::tempdir().unwrap();
    let (secure, certificate) = with_tls(folder.path(), web(config()));
    for (config, trusted) in [(web(config()), None), (secure, Some(&certificate))] {
        let server = start(config, vec![table("t", 60, 5, 1)]).await;
        for (asked, version) in [(1.0, Version::One), (2.0, Version::Two)] {
            let mut browser = Browser::open(&server, version, trusted).await;
            let described = browser.call("Describe", &DESCRIBE).await;
            assert_eq!(described.header(ACCESS_CONTROL_ALLOW_ORIGIN), Some(PAGE));
            let description: proto::DescribeResponse = described.message();
            let description = privet_wire::ServerDescription::try_from(description).unwrap();
            let table = description.table("t").unwrap().clone();
            let hint = fetch_request(&table, PartKind::Hint, 0);
            let hint = browser.call("Fetch", &proto::FetchRequest::from(hint)).await;
            let hint: proto::FetchChunk = hint.message();
            let mut client = TableClient::with(table, hint.data.to_vec());
            let (request, pending) = client.prepare(7);
            let answer = browser.call("Answer", &proto::AnswerRequest::from(request)).await;
            let answer: proto::AnswerResponse = answer.message();
            let record = client.recover(pending, &AnswerResponse::try_from(answer).unwrap());
            assert_eq!(record, client.expected(7));
            for method in ["Describe", "Fetch", "Answer"] {
                let name = format!("privet_requests_total{{method=\"{method}\",status=\"OK\"}}");
                until_metric(&server, &name, asked).await;
            }
        }
        server.shutdown();
        server.wait().await.unwrap();
    }
}

#[tokio::test]
async fn whatever_is_refused_says_so_to_listed_pages_and_is_counted() {
    let server = start(web(config()), vec![table("t", 60, 5, 1)]).await;
    let text = "application/grpc-web-text+proto";
    let long = [&[0][..], &(1u32 << 30).to_be_bytes(), &[0; 9]].concat();
    for version in [Version::One, Version::Two] {
        let mut browser = Browser::open(&server, version, None).await;
        let nowhere = proto::FetchRequest::default();
        browser.call("Fetch", &nowhere).await.is_refused(3);
        browser.call("Nothing", &nowhere).await.is_refused(12);
        // Frames that are none: compressed, trailers, too long, cut off.
        for (body, status) in [
            (&[1, 0, 0, 0, 1, 0][..], 13),
            (&[0x80, 0, 0, 0, 0], 13),
            (&long, 11),
            (&[0, 0, 0, 0, 9, 1], 13),
            (&[], 13),
        ] {
            // After a body that it has not read to its end, the server may end the connection.
            let mut browser = Browser::open(&server, version, None).await;
            let told = browser.ask(PAGE, "Describe", BINARY, body.to_vec()).await;
            told.is_refused(status);
        }
        // Queries would lie about in base64. The words are those for all who speak something else.
        browser.ask(PAGE, "Describe", text, framed(&DESCRIBE)).await.is_refused(12);
        for kind in ["text/plain", BINARY] {
            let get = Request::get("http://localhost/").header(ORIGIN, PAGE).header("host", "a");
            let get = get.header(CONTENT_TYPE, kind).body(Full::default()).unwrap();
            let told = Told::by(Browser::open(&server, version, None).await.send(get).await).await;
            told.is_refused(12);
            assert_eq!(told.http, StatusCode::METHOD_NOT_ALLOWED);
            assert!(told.body.starts_with(b"This is a server of private lookups"));
        }
    }
    let status = |method, status| {
        format!("privet_requests_total{{method=\"{method}\",status=\"{status}\"}}")
    };
    until_metric(&server, &status("Fetch", "INVALID_ARGUMENT"), 2.0).await;
    until_metric(&server, &status("other", "UNIMPLEMENTED"), 6.0).await;
    until_metric(&server, &status("Describe", "UNIMPLEMENTED"), 2.0).await;
    server.shutdown();
    server.wait().await.unwrap();
}

fn preflight(origin: &str) -> Request<Full<Bytes>> {
    Request::options("http://localhost/privet.v1.Privet/Answer")
        .header("host", "localhost")
        .header(ORIGIN, origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type,grpc-timeout,x-grpc-web")
        .body(Full::default())
        .unwrap()
}

#[tokio::test]
async fn preflights_admit_listed_origins_for_a_day_and_are_counted() {
    let server = start(web(config()), vec![table("t", 60, 5, 1)]).await;
    for version in [Version::One, Version::Two] {
        let mut browser = Browser::open(&server, version, None).await;
        let told = Told::by(browser.send(preflight(PAGE)).await).await;
        assert_eq!(told.http, StatusCode::OK);
        for (name, value) in [
            ("access-control-allow-origin", PAGE),
            ("access-control-allow-methods", "POST"),
            ("access-control-allow-headers", "content-type,x-grpc-web,grpc-timeout"),
            ("access-control-max-age", "86400"),
        ] {
            assert_eq!(told.headers[name], value);
        }
        assert!(!told.headers.contains_key("access-control-allow-credentials"));
        for other in
            ["https://other.example", "http://page.example", "null", "https://page.example:8443"]
        {
            let told = Told::by(browser.send(preflight(other)).await).await;
            assert_eq!(told.header(ACCESS_CONTROL_ALLOW_ORIGIN), None, "{other}");
            let told = browser.ask(other, "Describe", BINARY, framed(&DESCRIBE)).await;
            assert_eq!(told.header(ACCESS_CONTROL_ALLOW_ORIGIN), None, "{other}");
        }
    }
    let counted = "privet_requests_total{method=\"preflight\",status=\"OK\"}";
    until_metric(&server, counted, 10.0).await;
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn without_web_pages_get_what_strays_get() {
    let server = start(config(), vec![table("t", 60, 5, 1)]).await;
    let mut browser = Browser::open(&server, Version::One, None).await;
    let told = Told::by(browser.send(preflight(PAGE)).await).await;
    assert_eq!(told.http, StatusCode::HTTP_VERSION_NOT_SUPPORTED);
    assert!(!told.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    let mut browser = Browser::open(&server, Version::Two, None).await;
    for told in [
        Told::by(browser.send(preflight(PAGE)).await).await,
        browser.call("Describe", &DESCRIBE).await,
    ] {
        assert!(!told.headers.keys().any(|name| name.as_str().starts_with("access-control")));
    }
    server.shutdown();
    server.wait().await.unwrap();
}

/// The head of a request over HTTP/1.1 whose body has `len` bytes.
fn head(method: &str, len: usize) -> Vec<u8> {
    format!(
        "POST /privet.v1.Privet/{method} HTTP/1.1\r\nHost: localhost\r\nOrigin: {PAGE}\r\n\
         Content-Type: {BINARY}\r\nContent-Length: {len}\r\n\r\n"
    )
    .into_bytes()
}

/// What comes until the server closes the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said)).await;
    let _ = end.expect("the connection is closed");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn who_finds_no_place_is_told_so_with_the_headers_that_a_page_needs() {
    let bodies = Cap { total: 8, per_peer: Some(1), per_connection: None };
    let limits = Limits { bodies, ..Limits::default() };
    let server = start(web(limited(limits)), vec![table("t", 60, 5, 1)]).await;
    let mut holds = TcpStream::connect(server.local_addr()).await.unwrap();
    holds.write_all(&head("Describe", 9)).await.unwrap();
    until_metric(&server, "privet_request_bytes_total{method=\"Describe\"}", 0.0).await;
    holds.write_all(&[0; 5]).await.unwrap();
    until_metric(&server, "privet_request_bytes_total{method=\"Describe\"}", 5.0).await;
    for version in [Version::One, Version::Two] {
        let mut browser = Browser::open(&server, version, None).await;
        browser.call("Describe", &DESCRIBE).await.is_refused(8);
    }
    until_metric(&server, "privet_shed_total{what=\"bodies\",why=\"peer\"}", 2.0).await;
    drop(holds);
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_and_an_answer_that_nobody_reads_cost_their_connection() {
    let limits = Limits {
        body_deadline: Duration::from_millis(300),
        stall_limit: Duration::from_millis(300),
        least_rate: 1 << 20,
        ..Limits::default()
    };
    let server = start(web(limited(limits)), vec![table("t", 1 << 16, 64, 1)]).await;
    let mut slow = TcpStream::connect(server.local_addr()).await.unwrap();
    slow.write_all(&[&head("Describe", 9)[..], &[0]].concat()).await.unwrap();
    let said = until_closed(&mut slow).await.to_lowercase();
    assert!(said.contains("grpc-status: 4\r\n"), "{said}");
    assert!(said.contains(&format!("access-control-allow-origin: {PAGE}\r\n")), "{said}");
    until_metric(&server, "privet_shed_total{what=\"bodies\",why=\"slow\"}", 1.0).await;

    let description = describe(&mut stub(&server).await).await;
    let hint = fetch_request(description.table("t").unwrap(), PartKind::Hint, 0);
    let hint = framed(&proto::FetchRequest::from(hint));
    let mut deaf = TcpStream::connect(server.local_addr()).await.unwrap();
    deaf.write_all(&[head("Fetch", hint.len()), hint].concat()).await.unwrap();
    until_metric(&server, "privet_shed_total{what=\"fetches\",why=\"slow\"}", 1.0).await;
    let said = until_closed(&mut deaf).await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn a_quiet_connection_ends_and_one_that_waits_for_its_answer_does_not() {
    let limits = Limits { keepalive: Duration::from_millis(100), ..Limits::default() };
    let mut config = web(limited(limits));
    config.batch_window = Duration::from_secs(2);
    let server = start(config, vec![table("t", 60, 5, 1)]).await;
    let mut native = stub(&server).await;
    let mut client = TableClient::new(&mut native, "t").await;
    let (request, pending) = client.prepare(7);
    let mut browser = Browser::open(&server, Version::One, None).await;
    let answer = browser.call("Answer", &proto::AnswerRequest::from(request)).await;
    let answer: proto::AnswerResponse = answer.message();
    let record = client.recover(pending, &AnswerResponse::try_from(answer).unwrap());
    assert_eq!(record, client.expected(7));

    let mut quiet = TcpStream::connect(server.local_addr()).await.unwrap();
    let asked = framed(&DESCRIBE);
    quiet.write_all(&[head("Describe", asked.len()), asked].concat()).await.unwrap();
    assert!(until_closed(&mut quiet).await.starts_with("HTTP/1.1 200 OK\r\n"));
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_turn() {
    let server = start(web(config()), vec![table("t", 60, 5, 1)]).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let asked = framed(&DESCRIBE);
    let asked = [head("Describe", asked.len()), asked].concat();
    let last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(&[&asked.repeat(20), &last[..]].concat()).await.unwrap();
    let said = until_closed(&mut stream).await;
    assert_eq!(said.matches("HTTP/1.1 200 OK\r\n").count(), 20);
    assert!(said.rfind("HTTP/1.1 200").unwrap() < said.find("HTTP/1.1 405").unwrap());
    server.shutdown();
    server.wait().await.unwrap();
}
