//! What the server speaks with its clients: gRPC over HTTP/2.
//!
//! How connections begin and are served is here. What the methods answer is in
//! [`service`](crate::service), their statuses also in [`admission`](crate::admission). Pages in
//! browsers reach the same methods by another way, which [`web`](crate::web) lays around
//! `admission`. Whatever carries them, each connection has a place and an allowance
//! ([`connections`](crate::connections)), and each request passes `admission`.

use crate::ServerConfig;
use crate::admission::AdmissionLayer;
use crate::connections::Connection;
use crate::observe::Probe;
use crate::service::LimitedService;
use crate::web;
use std::io;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Error;
use tonic_health::pb::health_server::HealthServer;
use tower::util::option_layer;

/// What is said to whoever asks for something that is not there, and wants to read the answer.
pub(crate) const WHAT_LISTENS_HERE: &str =
    "This is a server of private lookups (Privet). It speaks gRPC over HTTP/2 with its clients.\n";

/// The protocols that a handshake of TLS may agree on.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"h2"];

/// How HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many of a connection's first bytes tell what it speaks.
pub(crate) const BEGINNING: usize = PREFACE.len();

/// How many bytes one stream, and one connection, may send before they are read. Together with the
/// cap on connections this bounds the memory for requests that are not being read yet.
const STREAM_WINDOW: u32 = 1 << 18;
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Whether a connection without TLS whose first bytes are `first` may be a client's. `web`: pages
/// are clients, too.
pub(crate) fn may_begin(first: &[u8], web: bool) -> bool {
    web || PREFACE.starts_with(first)
}

/// Answers the requests on `connections` until stopped.
pub(crate) fn serve(
    config: &ServerConfig,
    (service, probe): (LimitedService, HealthServer<Probe>),
    connections: mpsc::Receiver<io::Result<Connection>>,
    admission: AdmissionLayer,
    stop: CancellationToken,
) -> impl Future<Output = Result<(), Error>> + use<> {
    let pages = config.web.as_ref().map(|origins| web::front(origins, admission.clone()));
    tonic::transport::Server::builder()
        .accept_http1(pages.is_some())
        .http2_keepalive_interval(Some(config.limits.keepalive))
        .http2_keepalive_timeout(Some(config.limits.keepalive))
        .max_concurrent_streams(config.limits.streams_per_connection)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_header_list_size(16 << 10)
        .layer(option_layer(pages))
        .layer(admission)
        .add_service(service)
        .add_service(probe)
        .serve_with_incoming_shutdown(ReceiverStream::new(connections), stop.cancelled_owned())
}
