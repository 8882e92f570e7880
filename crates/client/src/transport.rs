//! Exchanges with one server over gRPC, and what their failures mean to a person.
//!
//! A transport sends what a session says and returns what arrives, validated by [`privet_wire`]. It
//! decides nothing: the session decides when to try again, and what to believe. The first exchange
//! makes the connection; a later one makes it again if it was lost.

mod certificates;
mod grpc_alone;
mod tunnel;
mod undecoded;

use crate::addresses::Address;
use crate::exchange::{FRAME_LEN, ResponseLimits, goes_on, measured};
use crate::proxies::Proxy;
use crate::session::{Query, Request, Response};
use grpc_alone::GrpcAlone;
use privet_core::{Blame, Error, Reason, Result};
use privet_wire::limits::{DESCRIBE_RESPONSE_LIMIT, FETCH_CHUNK_LIMIT};
use privet_wire::proto::privet_client::PrivetClient;
use privet_wire::{
    AnswerResponse, FetchChunk, PrepareResponse, ServerDescription, WireStatus, proto,
};
use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tonic::codegen::http::Uri;
use tonic::transport::{ClientTlsConfig, Endpoint};
use tunnel::Tunnels;

/// How long to wait for a host that does not answer at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for a proxy to make its way to a server: by Tor, that can take a while.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(30);

/// How often an idle connection is probed. If a router has forgotten the connection, this notices
/// it before the next query.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// The connection counts as lost if a probe is not answered within this time.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server is told to take at most the session's patience plus this.
const DEADLINE_GRACE: Duration = Duration::from_secs(1);

pub use crate::exchange::Delivery;

/// One server, over gRPC.
#[derive(Clone)]
pub struct Transport {
    url: String,
    /// The address as errors of the connection name it: with the proxy on the way, if there is one.
    way: String,
    channel: GrpcAlone,
    origin: Uri,
    client: PrivetClient<GrpcAlone>,
    limits: ResponseLimits,
    /// How many queries the server takes in a request, as it last said.
    max_queries: Arc<AtomicU32>,
    /// Whether gRPC has ever come from this address. If it has, a broken connection is only a
    /// broken connection.
    has_spoken: Arc<AtomicBool>,
}

impl Transport {
    /// A transport to the server at `url`, `http://host:port` or `https://host:port`, perhaps with
    /// a path behind. Certificates are checked against the system's authorities, or against those
    /// in the PEM file `ca_file` instead, which may also hold the server's own certificate. Sends
    /// nothing yet. Call it within a tokio runtime. It uses no proxy.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`] if `url` is not an address, or `ca_file` cannot be read or holds no
    /// certificate.
    pub fn new(url: &str, ca_file: Option<&Path>) -> Result<Self> {
        Self::by(&Address::parse(url)?, ca_file, None)
    }

    /// As [`new`](Self::new), through `proxy` if there is one.
    pub(crate) fn by(
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
        // The path of an address stands before each method's own.
        let client = PrivetClient::with_origin(channel.clone(), address.uri().clone());
        let limits = ResponseLimits::default();
        let max_queries = Arc::new(AtomicU32::new(1));
        let origin = address.uri().clone();
        Ok(Self { url, way, channel, origin, client, limits, max_queries, has_spoken })
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Refuses longer messages from here on, before they are received. Before the first call,
    /// refuses all answers and replies.
    pub fn expect_responses(&mut self, limits: ResponseLimits) {
        self.limits = limits;
    }

    /// How many queries may be sent together.
    pub(crate) fn queries_together(&self) -> usize {
        self.limits.queries.min(self.max_queries.load(Ordering::Relaxed) as usize)
    }

    /// Sends several queries in one request. Returns the outcome of each, with the size that its
    /// answer would have alone.
    pub(crate) async fn ask_together(
        &self,
        queries: &[Query],
        patience: Duration,
    ) -> Vec<Delivery> {
        let answered = match Query::together(queries) {
            Some(request) => self.answer(request, patience).await,
            None => Err(Error::internal("queries that do not belong together were put together")),
        };
        match answered {
            Ok((response, len)) => parted(response, len, queries.len()).map(Ok).collect(),
            Err(error) => vec![Err(error); queries.len()],
        }
    }

    async fn answer(&self, request: Query, patience: Duration) -> Result<(AnswerResponse, u64)> {
        let mut client = self.client.clone().max_decoding_message_size(self.limits.answer);
        let response = client.answer(with_deadline(request.into(), patience)).await;
        let response = response.map_err(|status| self.failure(&status))?;
        let (message, len) = measured(response.into_inner());
        let answer = AnswerResponse::try_from(message).map_err(|error| error.within(&self.url))?;
        Ok((answer, len))
    }

    /// Sends `request` and passes each response to `deliver`, in order, until `deliver` wants no
    /// more.
    pub async fn exchange<F>(
        &self,
        request: Request,
        patience: Duration,
        mut deliver: impl FnMut(Delivery) -> F,
    ) where
        F: Future<Output = bool>,
    {
        match request {
            Request::Describe(request) => {
                let request = with_deadline(request.into(), patience);
                let (channel, origin) = (self.channel.clone(), self.origin.clone());
                let response =
                    undecoded::description(channel, origin, request, DESCRIBE_RESPONSE_LIMIT).await;
                let described =
                    response.map_err(|status| self.no_description(&status)).and_then(|response| {
                        let message = response.into_inner();
                        let description = ServerDescription::decode(&message)
                            .map_err(|error| error.within(&self.url))?;
                        self.max_queries.store(description.max_queries, Ordering::Relaxed);
                        let len = message.len() as u64 + FRAME_LEN;
                        Ok((Response::Described(description), len))
                    });
                deliver(described).await;
            }
            Request::Answer(request) => {
                let answered = self.answer(request, patience).await;
                deliver(answered.map(|(answer, len)| (Response::Answered(answer), len))).await;
            }
            Request::Prepare(request) => {
                let mut client = self.client.clone().max_decoding_message_size(self.limits.reply);
                let response = client.prepare(with_deadline(request.into(), patience)).await;
                let replied =
                    response.map_err(|status| self.failure(&status)).and_then(|response| {
                        let (message, len) = measured(response.into_inner());
                        let reply = PrepareResponse::try_from(message)
                            .map_err(|error| error.within(&self.url))?;
                        Ok((Response::Prepared(reply), len))
                    });
                deliver(replied).await;
            }
            Request::Fetch(request) => {
                let mut client = self.client.clone().max_decoding_message_size(FETCH_CHUNK_LIMIT);
                let mut stream = match client.fetch(tonic::Request::new(request.into())).await {
                    Ok(response) => response.into_inner(),
                    Err(status) => {
                        deliver(Err(self.failure(&status))).await;
                        return;
                    }
                };
                loop {
                    let delivery = match stream.message().await {
                        Ok(Some(message)) => {
                            let (message, len) = measured(message);
                            FetchChunk::try_from(message)
                                .map(|chunk| (Response::Chunk(chunk), len))
                                .map_err(|error| error.within(&self.url))
                        }
                        Ok(None) => Ok((Response::End, 0)),
                        Err(status) => Err(self.failure(&status)),
                    };
                    let last = !goes_on(&delivery);
                    if !deliver(delivery).await || last {
                        return;
                    }
                }
            }
        }
    }

    /// What a failed exchange means.
    fn failure(&self, status: &tonic::Status) -> Error {
        // A status that was made here because no response came has a source.
        match status.source() {
            Some(source) => self.unreachable(source),
            None => Error::from(WireStatus::from(status)).within(&self.url),
        }
    }

    /// What it means if a server failed to describe itself: the program at that address may not be
    /// a Privet server.
    fn no_description(&self, status: &tonic::Status) -> Error {
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

/// The answers to `count` queries that were sent together, which came as one `response` of `len`
/// bytes. Each has the size that it would have alone.
fn parted(
    response: AnswerResponse,
    len: u64,
    count: usize,
) -> impl Iterator<Item = (Response, u64)> {
    let each = response.answer.len() / count;
    let is_whole = response.answer.len().is_multiple_of(count);
    (0..count).map(move |number| {
        let answer = match is_whole {
            true => response.answer.slice(number * each..(number + 1) * each),
            // Its length is wrong for each query, and the session says so.
            false => response.answer.clone(),
        };
        let answer = AnswerResponse { answer, ..response.clone() };
        let len = match count {
            1 => len,
            _ => measured(proto::AnswerResponse::from(answer.clone())).1,
        };
        (Response::Answered(answer), len)
    })
}

/// `message` with a deadline for its response. The channel enforces the deadline too, and knows
/// less of what it means than the session does. So the channel's deadline is the later of the two.
fn with_deadline<M>(message: M, patience: Duration) -> tonic::Request<M> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(patience + DEADLINE_GRACE);
    request
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
