//! Accepting connections: the cap, TLS, and limits for silent ones.
//!
//! A connection that finds no [place](Places) is closed as soon as it is accepted. The client sees
//! that at once and can go elsewhere, instead of waiting in a queue without knowing it. TLS
//! handshakes run in parallel, each within a time limit and with a place. Afterwards a connection
//! is closed if nothing arrives on it for longer than the keepalive allows. Every live client
//! answers HTTP/2 pings, so this closes dead connections and those that never send anything.

mod allowance;

pub(crate) use allowance::Allowance;

use crate::admission::{Peer, Place, Places};
use crate::descriptors::Spare;
use crate::observe::{Metrics, Open};
use crate::vital::Vital;
use crate::{ServerConfig, TlsFiles};
use allowance::Allowances;
use privet_core::{Error, Result};
use privet_table::secret_file::{Others, is_open_to};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;
use zeroize::Zeroizing;

/// Connections whose handshake is done, waiting to be served.
const ACCEPTED_AHEAD: usize = 64;

/// How long nothing is read at most from a peer that has used up its allowance, before another look
/// at it.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The settings and limits for accepting.
pub(crate) struct Acceptor {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) places: Arc<Places>,
    pub(crate) handshake_limit: Duration,
    pub(crate) idle_limit: Duration,
    pub(crate) metrics: Arc<Metrics>,
    /// Ends accepting.
    pub(crate) stop: CancellationToken,
    /// Ends every connection at once.
    pub(crate) abort: CancellationToken,
}

impl Acceptor {
    pub(crate) fn new(
        config: &ServerConfig,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        places: Arc<Places>,
        metrics: Arc<Metrics>,
        stop: CancellationToken,
        abort: CancellationToken,
    ) -> Self {
        Self {
            listener,
            tls,
            places,
            handshake_limit: config.limits.handshake_limit,
            // A ping, the time to answer it, and a reserve.
            idle_limit: config.limits.keepalive.saturating_mul(3),
            metrics,
            stop,
            abort,
        }
    }

    /// Accepts until stopped. Then the listener is closed, so that the system refuses new clients.
    pub(crate) fn start(self, vital: &Vital) -> mpsc::Receiver<io::Result<Connection>> {
        let (ready, connections) = mpsc::channel(ACCEPTED_AHEAD);
        vital.spawn("accepts connections", self.accept_all(ready));
        connections
    }

    async fn accept_all(self, ready: mpsc::Sender<io::Result<Connection>>) {
        let mut spare = Spare::new();
        let mut allowances = Allowances::new();
        for id in 0.. {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Usually the limit of open files, which was enough at the start: something
                    // else in this process has opened many.
                    spare.refuse_one(&self.listener, &error).await;
                    continue;
                }
            };
            let peer = address.ip().into();
            let allowance = allowances.of(peer, std::time::Instant::now());
            let handle = ConnectionHandle { id, peer, allowance, closed: self.abort.child_token() };
            let Ok(place) = self.places.connection(&handle) else {
                tracing::debug!("a connection over the limit is closed");
                continue;
            };
            let held = Held { place, _open: Open::new(&self.metrics.connections) };
            tokio::spawn(prepare(
                stream,
                held,
                self.tls.clone(),
                self.handshake_limit,
                self.idle_limit,
                handle,
                ready.clone(),
            ));
        }
    }
}

/// What a connection holds until it is closed.
struct Held {
    place: Place,
    _open: Open,
}

async fn prepare(
    stream: TcpStream,
    held: Held,
    tls: Option<TlsAcceptor>,
    handshake_limit: Duration,
    idle_limit: Duration,
    handle: ConnectionHandle,
    ready: mpsc::Sender<io::Result<Connection>>,
) {
    // Answers are written whole; waiting to fill a packet would only delay their ends. If this call
    // fails, they are delayed.
    let _ = stream.set_nodelay(true);
    let io = match tls {
        None => Io::Plain(stream),
        Some(tls) => {
            let handshake = tokio::select! {
                () = handle.closed.cancelled() => return,
                handshake = tokio::time::timeout(handshake_limit, tls.accept(stream)) => handshake,
            };
            match handshake {
                Ok(Ok(stream)) => Io::Tls(Box::new(stream)),
                Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => return tracing::debug!("a TLS handshake took too long"),
            }
        }
    };
    let connection = Connection {
        io,
        idle_limit,
        idle: Box::pin(tokio::time::sleep(handshake_limit)),
        pause: None,
        cancelled: Box::pin(handle.closed.clone().cancelled_owned()),
        handle,
        held,
    };
    // If the server takes no more connections, this drops the connection and so closes it.
    let _ = ready.send(Ok(connection)).await;
}

/// Whose connection it is, and how to close it from outside. Every request carries the handle of
/// its connection.
#[derive(Clone)]
pub(crate) struct ConnectionHandle {
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    pub(crate) allowance: Arc<Allowance>,
    closed: CancellationToken,
}

impl ConnectionHandle {
    /// Without a connection; `closed` says when it would be closed.
    #[cfg(test)]
    pub(crate) fn new(id: u64, peer: Peer, closed: CancellationToken) -> Self {
        Self { id, peer, allowance: Arc::new(Allowance::new()), closed }
    }

    pub(crate) fn close(&self) {
        self.closed.cancel();
    }
}

/// A connection, encrypted or not, that ends when it is closed from outside or has been silent for
/// too long.
pub(crate) struct Connection {
    io: Io,
    idle_limit: Duration,
    idle: Pin<Box<Sleep>>,
    /// Until when nothing is read, because the peer has used up its allowance.
    pause: Option<Pin<Box<Sleep>>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    handle: ConnectionHandle,
    held: Held,
}

enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The same call on either kind of stream.
macro_rules! on_stream {
    ($connection:expr, $method:ident($($argument:expr),*)) => {
        match &mut $connection.io {
            Io::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Io::Tls(stream) => Pin::new(stream.as_mut()).$method($($argument),*),
        }
    };
}

impl Connection {
    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.cancelled.as_mut().poll(context).is_ready() {
            return Poll::Ready(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "closed by the server",
            ));
        }
        Poll::Pending
    }

    /// Waits until the peer may be read.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let Some(wait) = self.handle.allowance.wait(std::time::Instant::now()) else {
                return Poll::Ready(());
            };
            // A request on another connection of the peer may end the wait.
            self.pause = Some(Box::pin(tokio::time::sleep(wait.min(LONGEST_PAUSE))));
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_closed(context) {
            return Poll::Ready(Err(error));
        }
        ready!(self.poll_pause(context));
        let before = buffer.filled().len();
        let read = on_stream!(self, poll_read(context, buffer));
        if read.is_ready() {
            let len = buffer.filled().len() - before;
            self.held.place.heard(len);
            self.handle.allowance.spend(len);
            let deadline = Instant::now() + self.idle_limit;
            self.idle.as_mut().reset(deadline);
            return read;
        }
        if self.idle.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "nothing was received for too long",
            )));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.poll_closed(context) {
            return Poll::Ready(Err(error));
        }
        on_stream!(self, poll_write(context, buffer))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_closed(context) {
            return Poll::Ready(Err(error));
        }
        on_stream!(self, poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_closed(context) {
            return Poll::Ready(Err(error));
        }
        on_stream!(self, poll_shutdown(context))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(stream) => stream.is_write_vectored(),
            Io::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(error) = self.poll_closed(context) {
            return Poll::Ready(Err(error));
        }
        on_stream!(self, poll_write_vectored(context, buffers))
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionHandle;

    fn connect_info(&self) -> ConnectionHandle {
        self.handle.clone()
    }
}

/// TLS 1.2 and 1.3 with the certificate and key in `files`.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the file, if a file cannot be read
/// or holds nothing usable, if anybody can read the key, or if it does not belong to the
/// certificate.
pub(crate) fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor> {
    let chain = certificates(&files.cert)?;
    let key = private_key(&files.key)?;
    let mismatch = |error: rustls::Error| {
        Error::api_misuse(format!(
            "the key in {} cannot be used with the certificate in {}: {error}",
            files.key.display(),
            files.cert.display()
        ))
    };
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(mismatch)?
    .with_no_client_auth()
    .with_single_cert(chain, key)
    .map_err(mismatch)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read(path, "certificate")?;
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|error| {
            Error::api_misuse(format!(
                "the certificate file {} is damaged: {error}",
                path.display()
            ))
        })?;
    if chain.is_empty() {
        return Err(Error::api_misuse(format!(
            "{} holds no certificate in PEM form",
            path.display()
        )));
    }
    Ok(chain)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let cannot = |error| cannot_read(path, "private key", error);
    let mut file = File::open(path).map_err(cannot)?;
    let mut pem = Zeroizing::new(Vec::new());
    file.read_to_end(&mut pem).map_err(cannot)?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        Error::api_misuse(format!("{} holds no private key in PEM form", path.display()))
            .caused_by(error)
    })?;
    match is_open_to(&file, Others::OutsideGroup).map_err(cannot)? {
        false => Ok(key),
        true => Err(Error::api_misuse(format!(
            "{}: anybody on this machine can read this private key; if nobody has, let only its \
             owner read it (chmod 600); otherwise make another, with its certificate",
            path.display()
        ))),
    }
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| cannot_read(path, what, error))
}

fn cannot_read(path: &Path, what: &str, error: io::Error) -> Error {
    Error::api_misuse(format!("the {what} file {} cannot be read: {error}", path.display()))
}
