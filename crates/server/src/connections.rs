//! Accepting connections: the cap, TLS, and limits for silent ones.
//!
//! What does not speak HTTP/2 gets a short answer that says so: see [`strays`].
//!
//! A connection that finds no [place](Places) is closed as soon as it is accepted. The client sees
//! that at once and can go elsewhere, instead of waiting in a queue without knowing it. TLS
//! handshakes run in parallel, each within a time limit and with a place. Afterwards a connection
//! is closed if nothing arrives on it for longer than the keepalive allows. Every live client
//! answers HTTP/2 pings, so this closes dead connections and those that never send anything.

mod allowance;
mod strays;
mod tls;

pub(crate) use allowance::Allowance;
pub(crate) use tls::Tls;

use crate::ServerConfig;
use crate::admission::{AdmissionPlace, Peer, Places};
use crate::descriptors::Spare;
use crate::grpc::PROTOCOLS;
use crate::observe::{Metrics, OpenGuard};
use crate::vital::Vital;
use allowance::Allowances;
use std::io;
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

/// Connections whose handshake is done, waiting to be served.
const ACCEPTED_AHEAD: usize = 64;

/// How long nothing is read at most from a peer that has used up its allowance, before another look
/// at it.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The settings and limits for accepting.
pub(crate) struct Acceptor {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether HTTP/1.1 is spoken as well, with pages.
    pub(crate) web: bool,
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
            web: config.web.is_some(),
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
        vital.spawn("accepts connections", Arc::new(self).accept_all(ready));
        connections
    }

    async fn accept_all(self: Arc<Self>, ready: mpsc::Sender<io::Result<Connection>>) {
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
            let held = ConnectionGuard { place, _open: OpenGuard::new(&self.metrics.connections) };
            tokio::spawn(Arc::clone(&self).prepare(stream, held, handle, ready.clone()));
        }
    }

    /// Makes a connection ready to be served: TLS is agreed on, and it speaks what clients do.
    async fn prepare(
        self: Arc<Self>,
        stream: TcpStream,
        held: ConnectionGuard,
        handle: ConnectionHandle,
        ready: mpsc::Sender<io::Result<Connection>>,
    ) {
        // Answers are written whole; waiting to fill a packet would only delay their ends. If this
        // call fails, they are delayed.
        let _ = stream.set_nodelay(true);
        let greeted = tokio::select! {
            () = handle.closed.cancelled() => return,
            // As a server that listens no more.
            () = self.stop.cancelled() => return,
            greeted = tokio::time::timeout(self.handshake_limit, self.greet(stream, &handle)) => {
                greeted
            }
        };
        let io = match greeted {
            Ok(Some(io)) => io,
            Ok(None) => return,
            Err(_) => return tracing::debug!("a handshake took too long"),
        };
        let connection = Connection {
            io,
            idle_limit: self.idle_limit,
            idle: Box::pin(tokio::time::sleep(self.handshake_limit)),
            pause: None,
            cancelled: Box::pin(handle.closed.clone().cancelled_owned()),
            handle,
            held,
        };
        // If the server takes no more connections, this drops the connection and so closes it.
        let _ = ready.send(Ok(connection)).await;
    }

    /// The connection, if it seems to speak what clients do. Anybody else learns what listens here.
    async fn greet(&self, stream: TcpStream, handle: &ConnectionHandle) -> Option<Io> {
        let stray = strays::speaks(&stream, self.tls.is_some(), self.web).await.ok()?;
        if let Some(answer) = stray {
            strays::tell(stream, answer, &handle.allowance).await;
            return None;
        }
        let Some(tls) = &self.tls else { return Some(Io::Plain(stream)) };
        let stream = match tls.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                return None;
            }
        };
        let agreed = stream.get_ref().1.alpn_protocol();
        if !self.web && agreed.is_some_and(|agreed| !PROTOCOLS.contains(&agreed)) {
            strays::tell(stream, strays::HTTP_1_ANSWER, &handle.allowance).await;
            return None;
        }
        Some(Io::Tls(Box::new(stream)))
    }
}

/// What a connection holds until it is closed.
struct ConnectionGuard {
    place: AdmissionPlace,
    _open: OpenGuard,
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
    held: ConnectionGuard,
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
        while self.idle.as_mut().poll(context).is_ready() {
            // Over HTTP/1.1 a client that waits for its answer says nothing. Such a wait has limits
            // of its own.
            if self.held.place.is_asked() {
                let deadline = Instant::now() + self.idle_limit;
                self.idle.as_mut().reset(deadline);
                continue;
            }
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
