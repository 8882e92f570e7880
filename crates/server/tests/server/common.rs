//! Tables, servers and a bare client.

use bytes::Bytes;
use privet_core::{Epoch, RecordIndex, SecretRng, TableDigest, TableId, TableIdentity, TableShape};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::registry::{self, ErasedClient, Recovered};
use privet_schemes::reservation::{Lookup, Pending, Prepared};
use privet_server::{Cap, Limits, RunningServer, ServedTable, Server, ServerConfig};
use privet_table::digest::DigestParts;
use privet_wire::prost::Message;
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartKind,
    ServerDescription, TableDescription, limits, proto,
};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

pub(crate) type Stub = PrivetClient<Channel>;

/// Random records: no structure can hide a mistake.
pub(crate) fn records(len: usize, seed: u8) -> Vec<u8> {
    let mut out = vec![0; len];
    SecretRng::from_fixed_seed([seed; 32]).fill(&mut out);
    out
}

pub(crate) const LAYOUT: [u8; 8] = *b"a layout";

/// The digest of a table with these records.
pub(crate) fn digest(shape: TableShape, records: &[u8]) -> TableDigest {
    let parts = DigestParts {
        layout: *blake3::hash(&LAYOUT).as_bytes(),
        records: *blake3::hash(records).as_bytes(),
    };
    parts.combine(shape)
}

/// The identity of the [`table`] with that id.
pub(crate) fn identity(count: u64, record_len: u64, id: u8) -> TableIdentity {
    let shape = TableShape::new(count, record_len).unwrap();
    TableIdentity {
        id: TableId([id; 16]),
        epoch: Epoch(5),
        digest: digest(shape, &records(shape.bytes() as usize, id)),
        shape,
    }
}

/// A table whose id and contents follow from `id`, served by SimplePIR.
pub(crate) fn table(name: &str, count: u64, record_len: u64, id: u8) -> ServedTable {
    let identity = identity(count, record_len, id);
    let records = records(identity.shape.bytes() as usize, id);
    ServedTable::new(name, identity, LAYOUT, records, SchemeId::SimplePir)
}

/// The same table, served by another scheme.
pub(crate) fn served_by(scheme: SchemeId, table: ServedTable) -> ServedTable {
    ServedTable { scheme, ..table }
}

pub(crate) fn config() -> ServerConfig {
    let mut config = ServerConfig::new("127.0.0.1:0".parse().unwrap());
    config.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    config.threads = 1;
    config
}

/// A server with these limits.
pub(crate) fn limited(limits: Limits) -> ServerConfig {
    ServerConfig { limits, ..config() }
}

/// So many, which one client may have all.
pub(crate) fn all_for_one(total: usize) -> Cap {
    Cap { total, per_peer: Some(total), per_connection: None }
}

pub(crate) async fn start(config: ServerConfig, tables: Vec<ServedTable>) -> RunningServer {
    Server::start(config, tables).await.unwrap()
}

pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect_timeout(Duration::from_secs(10))
}

pub(crate) async fn stub(server: &RunningServer) -> Stub {
    stub_on(endpoint(server.local_addr()).connect().await.unwrap())
}

/// What a probe by gRPC learns of a service or a table: whether it serves.
pub(crate) async fn probe(server: &RunningServer, service: &str) -> Result<bool, tonic::Code> {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;
    let channel = endpoint(server.local_addr()).connect().await.unwrap();
    let asked = HealthCheckRequest { service: service.to_owned() };
    let answer = HealthClient::new(channel).check(asked).await.map_err(|status| status.code())?;
    Ok(answer.into_inner().status() == ServingStatus::Serving)
}

/// Writes a secret, which only the owner of the file may read.
pub(crate) fn write_secret(path: &Path, secret: impl AsRef<[u8]>) {
    std::fs::write(path, secret).unwrap();
    #[cfg(unix)]
    allow(path, 0o600);
}

/// Gives a file these permissions.
#[cfg(unix)]
pub(crate) fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn stub_on(channel: Channel) -> Stub {
    PrivetClient::new(channel).max_decoding_message_size(limits::DESCRIBE_RESPONSE_LIMIT)
}

/// The same connection, for responses of any length.
pub(crate) fn unlimited(stub: &Stub) -> Stub {
    stub.clone().max_decoding_message_size(usize::MAX)
}

pub(crate) async fn describe(stub: &mut Stub) -> ServerDescription {
    let response =
        stub.describe(proto::DescribeRequest::from(DescribeRequest::default())).await.unwrap();
    response.into_inner().try_into().unwrap()
}

pub(crate) fn fetch_request(table: &TableDescription, part: PartKind, offset: u64) -> FetchRequest {
    FetchRequest {
        table: table.identity.id,
        epoch: table.identity.epoch,
        parameter_digest: table.schemes[0].parameter_digest,
        part,
        offset,
        len: 0,
    }
}

/// The bytes of a part from `offset` on, however many chunks they come in.
pub(crate) async fn fetch(stub: &mut Stub, request: FetchRequest) -> Result<Vec<u8>, Status> {
    let mut stream = stub.fetch(proto::FetchRequest::from(request)).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.message().await? {
        let chunk = FetchChunk::try_from(chunk).unwrap();
        assert_eq!(chunk.offset, request.offset + bytes.len() as u64);
        bytes.extend_from_slice(&chunk.data);
    }
    Ok(bytes)
}

/// A client of a table, with what it receives before its first query.
pub(crate) struct TableClient {
    pub(crate) description: TableDescription,
    pub(crate) scheme: Box<dyn ErasedClient>,
    pub(crate) rng: SecretRng,
}

impl TableClient {
    pub(crate) async fn new(stub: &mut Stub, name: &str) -> Self {
        let description = describe(stub).await.table(name).unwrap().clone();
        Self::of(stub, description).await
    }

    /// A client of one version of a table, the current one or another.
    pub(crate) async fn of(stub: &mut Stub, description: TableDescription) -> Self {
        let scheme = &description.schemes[0];
        let mut received = Vec::new();
        if let Some(kind) = scheme.hint_kind() {
            received = fetch(stub, fetch_request(&description, kind, 0)).await.unwrap();
            let announced = scheme.hint.unwrap();
            assert_eq!(announced.len, received.len() as u64);
            assert_eq!(announced.digest, *blake3::hash(&received).as_bytes());
        }
        Self::with(description, received)
    }

    /// A client that has received its hint.
    pub(crate) fn with(description: TableDescription, received: Vec<u8>) -> Self {
        let plan = description.schemes[0].plan.clone();
        let scheme =
            registry::client(plan, &description.identity, Arc::new(received), Kernels::detect())
                .unwrap();
        Self { description, scheme, rng: SecretRng::from_os().unwrap() }
    }

    /// One request for each server, in the order of their roles.
    pub(crate) fn prepare_all(&mut self, index: u64) -> (Vec<AnswerRequest>, Pending) {
        let index = RecordIndex::new(index, self.description.identity.shape).unwrap();
        let Prepared::Ready(Lookup { sendable, pending }) =
            self.scheme.prepare(&index, &mut self.rng).unwrap()
        else {
            panic!("this scheme has no queries, or queries that have to be reserved");
        };
        let request = |(role, query): (u8, &Vec<u8>)| AnswerRequest {
            table: self.description.identity.id,
            epoch: self.description.identity.epoch,
            parameter_digest: self.description.schemes[0].parameter_digest,
            role: Role(role),
            query: query.clone().into(),
        };
        ((0..).zip(sendable.queries()).map(request).collect(), pending)
    }

    /// The request for the only server.
    pub(crate) fn prepare(&mut self, index: u64) -> (AnswerRequest, Pending) {
        let (mut requests, pending) = self.prepare_all(index);
        assert_eq!(requests.len(), 1, "this scheme has several servers");
        (requests.remove(0), pending)
    }

    pub(crate) fn recover_all(
        &mut self,
        pending: Pending,
        responses: &[AnswerResponse],
    ) -> Vec<u8> {
        let answers: Vec<&[u8]> = responses.iter().map(|response| &*response.answer).collect();
        let Recovered::Record(record) = self.scheme.recover(pending, &answers).unwrap() else {
            panic!("this scheme has state");
        };
        record.to_vec()
    }

    pub(crate) fn recover(&mut self, pending: Pending, response: &AnswerResponse) -> Vec<u8> {
        self.recover_all(pending, std::slice::from_ref(response))
    }

    /// Looks one record up and compares it with what `table` with the same id put there.
    pub(crate) async fn check(&mut self, stub: &mut Stub, index: u64) {
        let (request, pending) = self.prepare(index);
        let response = ask(stub, request).await.unwrap();
        let record = self.recover(pending, &response);
        assert_eq!(record, self.expected(index), "record {index}");
    }

    /// Looks one record up at a server that plays all roles.
    pub(crate) async fn look_up(&mut self, stub: &mut Stub, index: u64) -> Result<Vec<u8>, Status> {
        let (requests, pending) = self.prepare_all(index);
        let mut responses = Vec::new();
        for request in requests {
            responses.push(ask(stub, request).await?);
        }
        Ok(self.recover_all(pending, &responses))
    }

    pub(crate) fn expected(&self, index: u64) -> Vec<u8> {
        let shape = self.description.identity.shape;
        let len = shape.record_len() as usize;
        let all = records(shape.bytes() as usize, self.description.identity.id.0[0]);
        all[index as usize * len..][..len].to_vec()
    }
}

pub(crate) async fn ask(stub: &mut Stub, request: AnswerRequest) -> Result<AnswerResponse, Status> {
    let response = stub.answer(proto::AnswerRequest::from(request.clone())).await?;
    let response = AnswerResponse::try_from(response.into_inner()).unwrap();
    response.check_belongs_to(&request).unwrap();
    Ok(response)
}

/// A response of which only the head is read. Dropping it ends its connection.
pub(crate) struct Unread {
    _body: h2::RecvStream,
    _requests: h2::client::SendRequest<Bytes>,
    connection: AbortHandle,
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Sends `message` to a method over a connection of its own, and returns when the response has
/// begun.
pub(crate) async fn unread(server: &RunningServer, method: &str, message: impl Message) -> Unread {
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection).abort_handle();
    let path = format!("http://{}/privet.v1.Privet/{method}", server.local_addr());
    let head = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut upload) = requests.send_request(head, false).unwrap();
    let message = message.encode_to_vec();
    let frame = [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat();
    upload.send_data(frame.into(), true).unwrap();
    let response = response.await.unwrap();
    assert!(!response.headers().contains_key("grpc-status"), "a refusal: {response:?}");
    Unread { _body: response.into_body(), _requests: requests, connection }
}

/// Status code and body of a plain HTTP request.
pub(crate) async fn http(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The metric whose name and labels are exactly `name`; 0 if it is not there.
pub(crate) async fn metric(server: &RunningServer, name: &str) -> f64 {
    let (status, text) = http(server.metrics_addr().unwrap(), "GET", "/metrics").await;
    assert_eq!(status, 200);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// Waits until the metric has the value.
pub(crate) async fn until_metric(server: &RunningServer, name: &str, value: f64) {
    until_metric_is(server, name, |now| now == value).await;
}

/// Waits until `wanted` is true for the metric.
pub(crate) async fn until_metric_is(
    server: &RunningServer,
    name: &str,
    wanted: impl Fn(f64) -> bool,
) {
    let reached = async {
        while !wanted(metric(server, name).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached)
        .await
        .unwrap_or_else(|_| panic!("{name} never was as it should be"));
}

/// The lines of the metrics, in one order, without what goes by the clock: how long anything took,
/// and how far the scrub is.
pub(crate) async fn counts(server: &RunningServer) -> Vec<String> {
    let (_, text) = http(server.metrics_addr().unwrap(), "GET", "/metrics").await;
    let by_the_clock = |line: &str| line.contains("_seconds") || line.contains("privet_scrub_");
    let mut lines: Vec<String> =
        text.lines().filter(|line| !by_the_clock(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}
