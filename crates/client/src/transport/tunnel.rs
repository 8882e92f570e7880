//! Connections through proxies: a tunnel, in which the server is spoken to as it is without one. So
//! TLS goes from end to end, and the proxy learns the server's name and no more.

use crate::proxies::{Proxy, Speech};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use privet_core::{Error, Reason, Result};
use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_socks::tcp::Socks5Stream;
use tonic::codegen::Service;
use tonic::codegen::http::header::{HOST, PROXY_AUTHORIZATION};
use tonic::codegen::http::{Request, StatusCode, Uri};

/// Connects to servers through one proxy.
#[derive(Clone)]
pub(super) struct Tunnels {
    proxy: Arc<Proxy>,
    connector: HttpConnector,
}

/// A tunnel's bytes.
pub(super) trait Io: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Io for T {}
type Tunnel = TokioIo<Pin<Box<dyn Io>>>;

impl Tunnels {
    pub(super) fn new(proxy: Proxy) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_keepalive(Some(super::KEEPALIVE_INTERVAL));
        connector.set_connect_timeout(Some(super::CONNECT_TIMEOUT));
        Self { proxy: Arc::new(proxy), connector }
    }

    /// A tunnel to the server at `url`. Its name goes to the proxy as it is.
    async fn open(mut self, url: Uri) -> Result<Tunnel> {
        let host = url.host().unwrap_or_default();
        let default_port = if url.scheme_str() == Some("https") { 443 } else { 80 };
        let port = url.port_u16().unwrap_or(default_port);
        let connected = self.connector.call(self.proxy.uri.clone()).await;
        let stream = connected.map_err(|error| {
            let why = super::chain(&error);
            self.refusal(format!("{} cannot be reached ({why})", self.proxy)).caused_by(error)
        })?;
        let stream: Pin<Box<dyn Io>> = match &self.proxy.speech {
            Speech::Http(_) => self.connect(stream, &format!("{host}:{port}")).await?,
            Speech::Socks { user, password } => {
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let asked = Socks5Stream::connect_with_password_and_socket(
                    stream.into_inner(),
                    (host, port),
                    user,
                    password,
                );
                let tunnel = asked.await.map_err(|error| self.socks_refusal(host, port, error))?;
                Box::pin(tunnel.into_inner())
            }
        };
        Ok(TokioIo::new(stream))
    }

    /// Has an HTTP proxy connect to `authority`.
    async fn connect(
        &self,
        stream: TokioIo<TcpStream>,
        authority: &str,
    ) -> Result<Pin<Box<dyn Io>>> {
        let broken = |error: hyper::Error| {
            let why = super::chain(&error);
            let what = format!("{} does not answer as an HTTP proxy does ({why})", self.proxy);
            self.refusal(what).caused_by(error)
        };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(broken)?;
        // Ends with the tunnel, or when nobody holds its other side any more.
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::connect(authority).header(HOST, authority);
        if let Speech::Http(Some(authorization)) = &self.proxy.speech {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        let request = request.body(String::new()).map_err(|error| {
            Error::internal(format!("no tunnel can be asked for: {error}")).caused_by(error)
        })?;
        let response = sender.send_request(request).await.map_err(broken)?;
        match response.status() {
            status if status.is_success() => {
                let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
                Ok(Box::pin(TokioIo::new(upgraded)))
            }
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(self.unknown_here()),
            status => Err(self.no_way(authority, &format!("it answers {status}"))),
        }
    }

    fn socks_refusal(&self, host: &str, port: u16, error: tokio_socks::Error) -> Error {
        use tokio_socks::Error as Socks;
        let refusal = match &error {
            Socks::PasswordAuthFailure(_)
            | Socks::NoAcceptableAuthMethods
            | Socks::AuthorizationRequired => self.unknown_here(),
            Socks::GeneralSocksServerFailure
            | Socks::ConnectionNotAllowedByRuleset
            | Socks::NetworkUnreachable
            | Socks::HostUnreachable
            | Socks::ConnectionRefused
            | Socks::TtlExpired
            | Socks::CommandNotSupported
            | Socks::AddressTypeNotSupported
            // A reason of its own, as Tor has them.
            | Socks::UnknownError => {
                self.no_way(&format!("{host}:{port}"), &format!("it answers {error}"))
            }
            Socks::InvalidTargetAddress(_) => {
                Error::api_misuse(format!("{} cannot be asked for {host}: {error}", self.proxy))
            }
            _ => self
                .refusal(format!("{} does not answer as a SOCKS proxy does ({error})", self.proxy)),
        };
        refusal.caused_by(error)
    }

    /// The proxy wants another name and password, or some at all.
    fn unknown_here(&self) -> Error {
        Error::api_misuse(format!(
            "the proxy {} wants a name and a password that it knows: write them before its host, as in http://name:password@host:port",
            self.proxy
        ))
        .because(Reason::ProxyUnusable)
    }

    fn no_way(&self, server: &str, why: &str) -> Error {
        Error::unavailable(format!(
            "the proxy {} does not lead to {server} ({why}): check the address, or ask whoever runs the proxy",
            self.proxy
        ))
        .because(Reason::ProxyUnusable)
    }

    fn refusal(&self, what: String) -> Error {
        Error::unavailable(format!("the proxy {what}; nothing goes around it"))
            .because(Reason::ProxyUnusable)
    }
}

impl Service<Uri> for Tunnels {
    type Response = Tunnel;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Tunnel, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Self::Error>> {
        // A connector that is cloned for each call needs no turn.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let opened = self.clone().open(url);
        Box::pin(async move { opened.await.map_err(Into::into) })
    }
}
