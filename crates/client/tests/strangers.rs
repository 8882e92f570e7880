//! Addresses at which there is no Privet server, or none that can be trusted: a sentence that says what to do, soon.

#![allow(clippy::unwrap_used)]

mod common;

use common::{any_port, config, options, pair, serve, table};
use privet_client::transport::Transport;
use privet_client::{Client, ClientOptions, Patience, session};
use privet_core::{Blame, Epoch, Error, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Reserved, Role};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;
use privet_schemes::reservation::{Journal, JournalEntry, Reservation};
use privet_server::Server;
use privet_wire::PartKind;
use privet_wire::proto::privet_server::{Privet, PrivetServer};
use privet_wire::proto::{
    AnswerRequest, AnswerResponse, DescribeRequest, DescribeResponse, FetchChunk, FetchRequest,
    PrepareRequest, PrepareResponse,
};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};

async fn refusal(options: ClientOptions) -> Error {
    Client::connect(options, |_| {}).await.err().expect("nobody to talk to")
}

/// Answers whatever comes with `bytes` and closes.
async fn something_that_says(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
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
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
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
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut impatient = options(&url);
    let moment = Duration::from_millis(100);
    impatient.patience = Patience { describe: moment, first_contact: moment, ..impatient.patience };
    let error = refusal(impatient).await;
    assert_eq!(error.blame(), Blame::Unavailable);
    drop(listener);
}

#[tokio::test]
async fn another_grpc_service() {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
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

/// Describes itself as `description` says, whatever that is.
struct Liar(DescribeResponse);

#[tonic::async_trait]
impl Privet for Liar {
    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        Ok(Response::new(self.0.clone()))
    }

    type FetchStream = tonic::codegen::BoxStream<FetchChunk>;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        Err(Status::unimplemented("it only talks"))
    }

    async fn answer(&self, _: Request<AnswerRequest>) -> Result<Response<AnswerResponse>, Status> {
        Err(Status::unimplemented("it only talks"))
    }

    async fn prepare(
        &self,
        _: Request<PrepareRequest>,
    ) -> Result<Response<PrepareResponse>, Status> {
        Err(Status::unimplemented("it only talks"))
    }
}

async fn speaking(service: impl Privet) -> String {
    let listener = TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tonic::transport::Server::builder().add_service(PrivetServer::new(service));
    tokio::spawn(server.serve_with_incoming(incoming));
    url
}

async fn liar(description: DescribeResponse) -> String {
    speaking(Liar(description)).await
}

/// Says things that cannot be meant.
struct Nonsense;

#[tonic::async_trait]
impl Privet for Nonsense {
    async fn describe(
        &self,
        _: Request<DescribeRequest>,
    ) -> Result<Response<DescribeResponse>, Status> {
        Ok(Response::new(DescribeResponse::default()))
    }

    type FetchStream = tonic::codegen::BoxStream<FetchChunk>;

    async fn fetch(&self, _: Request<FetchRequest>) -> Result<Response<Self::FetchStream>, Status> {
        let empty = tonic::codegen::tokio_stream::iter([Ok(FetchChunk::default())]);
        Ok(Response::new(Box::pin(empty)))
    }

    async fn answer(&self, _: Request<AnswerRequest>) -> Result<Response<AnswerResponse>, Status> {
        Ok(Response::new(AnswerResponse::default()))
    }

    async fn prepare(
        &self,
        _: Request<PrepareRequest>,
    ) -> Result<Response<PrepareResponse>, Status> {
        Ok(Response::new(PrepareResponse::default()))
    }
}

/// A query that means nothing, through a journal that keeps nothing.
fn query_to(id: TableId, epoch: Epoch, parameter_digest: [u8; 32]) -> session::Query {
    struct Nowhere;
    impl Journal for Nowhere {
        fn append_and_sync(&mut self, _: JournalEntry<'_>) -> privet_core::Result<()> {
            Ok(())
        }
    }
    let reserved = Reserved::new(ReservationId(0), Vec::new().into(), vec![vec![3; 10]]);
    let lookup = Reservation::new(reserved).commit(&mut Nowhere).unwrap();
    let shape = TableShape::new(3, 5).unwrap();
    let table = TableIdentity { id, epoch, digest: TableDigest([9; 32]), shape };
    session::Query::all(&lookup.sendable, &table, parameter_digest).remove(0)
}

#[tokio::test]
async fn what_cannot_be_valid_is_told_with_the_address_that_it_came_from() {
    let url = speaking(Nonsense).await;
    let mut transport = Transport::new(&url, None).unwrap();
    let (len, part) = (100, PartKind::Layout);
    transport.expect_responses(&SchemePlan {
        scheme: SchemeId::DummySubsetsTwo,
        parameters: Vec::new(),
        servers: 2,
        query_lens: vec![10; 2],
        answer_len: len,
        offline: OfflinePhase::Ask { role: Role(0), requests: 1, request_len: 10, reply_len: len },
    });
    let (table, epoch, parameter_digest) = (TableId([1; 16]), Epoch(0), [2; 32]);
    let (query, role) = (query_to(table, epoch, parameter_digest), Role(0));
    for request in [
        session::Request::Describe(privet_wire::DescribeRequest::default()),
        session::Request::Fetch(privet_wire::FetchRequest {
            table,
            epoch,
            parameter_digest,
            part,
            offset: 0,
            len: 0,
        }),
        session::Request::Prepare(privet_wire::PrepareRequest {
            table,
            epoch,
            parameter_digest,
            role,
            request: vec![3; 10].into(),
        }),
        session::Request::Answer(query),
    ] {
        let mut refused = None;
        transport
            .exchange(request.clone(), Duration::from_secs(10), |delivery| {
                refused = delivery.err();
                std::future::ready(false)
            })
            .await;
        let error = refused.unwrap_or_else(|| panic!("{request:?}"));
        assert!(matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved));
        assert!(error.message().starts_with(&format!("{url}: ")), "{request:?}: {error}");
    }
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
    let url = liar(DescribeResponse { protocol_version: 1, software, tables: Vec::new() }).await;
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
        updates: None,
    };
    let url = liar(DescribeResponse {
        protocol_version: 1,
        software: "liar".to_owned(),
        tables: vec![table],
    })
    .await;
    let error = refusal(options(&url)).await;
    assert!(matches!(error.blame(), Blame::PeerMisbehaved | Blame::InvalidMessage), "{error:?}");
}

/// A certificate for `localhost`, signed by itself, in `directory`.
fn write_certificate(directory: &Path) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
}

#[tokio::test]
async fn tls_with_and_without_the_right_authority() {
    let directory = tempfile::tempdir().unwrap();
    write_certificate(directory.path());
    let config = config(any_port(), Some(directory.path()));
    let server = Server::start(config, vec![table("packages", 1, 0)]).await.unwrap();
    let port = server.local_addr().port();

    let mut trusting = options(&format!("https://localhost:{port}"));
    trusting.ca_file = Some(directory.path().join("cert.pem"));
    let client = Client::connect(trusting.clone(), |_| {}).await.unwrap();
    assert_eq!(client.get(&pair(1, 0).0).await.unwrap().unwrap().to_vec(), pair(1, 0).1);

    let error = refusal(options(&format!("https://localhost:{port}"))).await;
    assert_eq!(error.blame(), Blame::Integrity, "{error:?}");
    assert!(error.message().contains("--ca-file"), "{error}");

    trusting.urls = vec![format!("https://127.0.0.1:{port}")];
    let error = refusal(trusting.clone()).await;
    assert_eq!(error.blame(), Blame::Integrity, "a certificate for another name: {error:?}");

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
