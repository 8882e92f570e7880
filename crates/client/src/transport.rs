//! A way to one server over gRPC, and what its failures mean to a person.
//!
//! The first exchange makes the connection; a later one makes it again if it was lost.

mod certificates;
mod grpc_alone;
mod tunnel;
mod undecoded;

use crate::addresses::Address;
use crate::exchange::{Call, Messages, Transport};
use crate::proxies::Proxy;
use grpc_alone::GrpcAlone;
use privet_core::{Blame, Error, Reason, Result};
use privet_wire::WireStatus;
use privet_wire::prost::bytes::Bytes;
use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tunnel::Tunnels;
use undecoded::Undecoded;

/// How long to wait for a host that does not answer at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for a proxy to make its way to a server: by Tor, that can take a while.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(30);

/// How often an idle connection is probed. If a router has forgotten the connection, this notices
/// it before the next query.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// The connection counts as lost if a probe is not answered within this time.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// One server, over gRPC.
#[derive(Clone)]
pub(crate) struct Grpc {
    url: String,
    /// The address as errors of the connection name it: with the proxy on the way, if there is one.
    way: String,
    channel: GrpcAlone,
    /// Its path stands before each method's own.
    origin: Uri,
    /// Whether gRPC has ever come from this address. If it has, a broken connection is only a
    /// broken connection.
    has_spoken: Arc<AtomicBool>,
}

impl Grpc {
    /// A way to the server at `address`, through `proxy` if there is one. Certificates are checked
    /// against the system's authorities, or against those in the PEM file `ca_file` instead, which
    /// may also hold the server's own certificate. Sends nothing yet. Call it within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`] if `ca_file` cannot be read or holds no certificate.
    pub(crate) fn new(
        address: &Address,
        ca_file: Option<&Path>,
        proxy: Option<Proxy>,
    ) -> Result<Self> {
        let url = address.url().to_owned();
        let misuse = |error: tonic::transport::Error| {
            Error::api_misuse(format!("{url} cannot be used as an address: {}", chain(&error)))
                .caused_by(error)
        };
        let mut endpoint = Endpoint::from_shared(url.clone())
            .map_err(misuse)?
            .user_agent(concat!("privet/", env!("CARGO_PKG_VERSION")))
            .map_err(misuse)?
            .connect_timeout(if proxy.is_some() { TUNNEL_TIMEOUT } else { CONNECT_TIMEOUT })
            .tcp_nodelay(true)
            .tcp_keepalive(Some(KEEPALIVE_INTERVAL))
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            // Hints are large. With the default window of 64 KiB, a line with a long delay would
            // wait for acknowledgements.
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(8 << 20);
        if url.starts_with("https://") {
            endpoint = with_tls(endpoint, ca_file)?;
        }
        let (way, channel) = match proxy {
            None => (url.clone(), endpoint.connect_lazy()),
            Some(proxy) => {
                let way = format!("{url}, through the proxy {proxy},");
                (way, endpoint.connect_with_connector_lazy(Tunnels::new(proxy)))
            }
        };
        let has_spoken = Arc::default();
        let channel = GrpcAlone::new(channel, Arc::clone(&has_spoken));
        let origin = address.uri().clone();
        Ok(Self { url, way, channel, origin, has_spoken })
    }

    /// What a failed exchange means.
    fn failure(&self, status: &Status) -> Error {
        // A status that was made here because no response came has a source.
        match status.source() {
            Some(source) => self.unreachable(source),
            None => Error::from(WireStatus::from(status)).within(&self.url),
        }
    }

    /// What it means if a server failed to describe itself: the program at that address may not be
    /// a Privet server.
    fn no_description(&self, status: &Status) -> Error {
        let error = self.failure(status);
        let refused_by_privet =
            matches!(status.code(), tonic::Code::FailedPrecondition | tonic::Code::InvalidArgument);
        let is_known = refused_by_privet || error.reason() == Some(Reason::NotAdmitted);
        match error.blame() {
            Blame::PeerMisbehaved | Blame::ApiMisuse if status.source().is_none() && !is_known => {
                Error::peer_misbehaved(format!(
                    "{} answers, but not as a Privet server does ({}); check the address, its port and its path",
                    self.url,
                    WireStatus::from(status).message
                ))
            }
            _ => error,
        }
    }

    /// What the failure of an exchange means if no server answered.
    fn unreachable(&self, error: &(dyn StdError + 'static)) -> Error {
        let url = &self.way;
        // Of a proxy.
        if let Some(own) = find::<Error>(error) {
            return own.clone();
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return match tls {
                rustls::Error::InvalidCertificate(why) => certificates::refused(url, why),
                _ => Error::peer_misbehaved(format!(
                    "{url} does not speak TLS as expected ({tls}); if the server is started without a certificate, write http:// instead of https://"
                )),
            };
        }
        let detail = chain(error);
        let message = match find::<io::Error>(error).map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => {
                format!(
                    "nothing listens at {url}; check the address and the port, and that the server is running"
                )
            }
            Some(
                io::ErrorKind::TimedOut
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable,
            ) => {
                format!("{url} cannot be reached ({detail}); check the address and the network")
            }
            _ if detail.contains("dns error") || detail.contains("lookup address") => {
                format!("there is no host of that name: {url}; check its spelling")
            }
            _ if !self.has_spoken.load(Ordering::Relaxed) => format!(
                "{url} does not speak gRPC ({detail}); check that the address and port are those of a Privet server, and whether it is http:// or https:// there; a server at its limit of connections looks the same"
            ),
            _ => format!("the connection to {url} was lost ({detail})"),
        };
        Error::unavailable(message)
    }
}

impl Transport for Grpc {
    type Messages = Incoming;

    fn address(&self) -> &str {
        &self.url
    }

    async fn call(&self, call: Call) -> Result<Incoming> {
        let failure = match call.path {
            Call::DESCRIBE => Self::no_description,
            _ => Self::failure,
        };
        let mut request = Request::new(call.message);
        if let Some(deadline) = call.deadline {
            request.set_timeout(deadline);
        }
        let grpc = tonic::client::Grpc::with_origin(self.channel.clone(), self.origin.clone());
        let mut grpc = grpc.max_decoding_message_size(call.limit);
        let called = match grpc.ready().await {
            Ok(()) => {
                let path = PathAndQuery::from_static(call.path);
                grpc.server_streaming(request, path, Undecoded).await
            }
            Err(error) => Err(Status::unavailable(error.to_string())),
        };
        let response = called.map_err(|status| failure(self, &status))?;
        let lacks_description = call.path == Call::DESCRIBE;
        let messages = response.into_inner();
        Ok(Incoming { from: self.clone(), messages, failure, lacks_description })
    }
}

/// What comes in return to a call.
pub(crate) struct Incoming {
    from: Grpc,
    messages: Streaming<Bytes>,
    failure: fn(&Grpc, &Status) -> Error,
    /// Whether this is to be a description, and nothing of it has come.
    lacks_description: bool,
}

impl Messages for Incoming {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let next = match self.messages.message().await {
            // Any program that speaks gRPC may say that all is well.
            Ok(None) if self.lacks_description => Err(Status::internal("it sent no message")),
            next => next,
        };
        self.lacks_description = false;
        next.map_err(|status| (self.failure)(&self.from, &status))
    }
}

/// `endpoint` over TLS. Certificates are believed that lead to the system's authorities; or, if
/// there is a `ca_file`, that lead to those in it or are in it themselves.
fn with_tls(endpoint: Endpoint, ca_file: Option<&Path>) -> Result<Endpoint> {
    let verifier = certificates::verifier(ca_file)?;
    endpoint.tls_config_with_verifier(ClientTlsConfig::new(), verifier).map_err(|error| {
        Error::api_misuse(format!("TLS cannot be set up: {}", chain(&error))).caused_by(error)
    })
}

/// The first cause of type `T`.
fn find<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        // The error that an `io::Error` wraps is not returned by its `source`.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && let Some(found) = find::<T>(inner)
        {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// An error with its causes, in one line.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
