//! HTTP/2 as no proper client speaks it: frames are put together by hand, in any order, and sent
//! whether or not the protocol allows them.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

/// The flag of SETTINGS and PING that acknowledges.
pub(crate) const ACK: u8 = 1;
/// The flag of HEADERS and DATA that says that no more follows on the stream.
pub(crate) const END_STREAM: u8 = 1;
/// The flag of HEADERS and CONTINUATION that says that the header block is whole.
pub(crate) const END_HEADERS: u8 = 4;

/// The error code of a client that does not want a response any more.
const CANCEL: u32 = 8;

/// What a stream may send before it is allowed more, unless SETTINGS say otherwise.
const USUAL_WINDOW: u32 = 65_535;

/// How long an attacker waits before it tries again what was refused. Otherwise it would mostly be
/// busy with trying, and take the processor from everybody on this machine.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that the receiver does not put into its table, without Huffman code. Both parts are
/// shorter than 127 bytes.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let part = |text: &str| {
        assert!(text.len() < 127, "longer lengths take more than one byte");
        [&[text.len() as u8], text.as_bytes()].concat()
    };
    [vec![0], part(name), part(value)].concat()
}

const GRPC: &str = "application/grpc";

/// The header block of a request to one of the server's methods.
pub(crate) fn head(method: &str) -> Vec<u8> {
    head_by(method, GRPC)
}

/// The same by another protocol.
fn head_by(method: &str, content_type: &str) -> Vec<u8> {
    [
        field(":method", "POST"),
        field(":scheme", "http"),
        field(":path", &format!("/privet.v1.Privet/{method}")),
        field(":authority", "attacked"),
        field("content-type", content_type),
        field("te", "trailers"),
    ]
    .concat()
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

pub(crate) fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

/// What a client says first, with the window that each response begins with.
fn beginning(window: u32) -> Vec<u8> {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let settings = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &settings)].concat()
}

/// Connects from one of this machine's loopback addresses.
pub(crate) async fn connect(to: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What an attack sent, and what the server did about it.
#[derive(Default)]
pub(crate) struct Treatment {
    /// Bytes.
    pub(crate) sent: AtomicU64,
    /// Pings that the server answered.
    pub(crate) pings_answered: AtomicU64,
    /// Streams that the server ended, in any way.
    pub(crate) streams_ended: AtomicU64,
    /// Connections that ended.
    pub(crate) connections_ended: AtomicU64,
}

/// How much of a request's body is sent.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    Nothing,
    /// These bytes, after which more could follow.
    Unfinished(&'a [u8]),
    Whole(&'a [u8]),
}

/// A connection on which any frame can be sent. It answers pings, so that nobody takes it for dead,
/// and otherwise only counts what it receives.
pub(crate) struct Raw {
    writer: Arc<Mutex<OwnedWriteHalf>>,
    reading: JoinHandle<()>,
    treatment: Arc<Treatment>,
    next_stream: u32,
    content_type: &'static str,
    /// Streams of this connection that the server has ended.
    ended: watch::Receiver<usize>,
}

impl Raw {
    /// With windows of `window` bytes for the server's responses; `None`: the usual ones.
    pub(crate) async fn open(
        to: SocketAddr,
        from: Ipv4Addr,
        window: Option<u32>,
        treatment: &Arc<Treatment>,
    ) -> io::Result<Self> {
        let (reader, mut writer) = connect(to, from).await?.into_split();
        // Before anything can be answered: these come first.
        writer.write_all(&beginning(window.unwrap_or(USUAL_WINDOW))).await?;
        let writer = Arc::new(Mutex::new(writer));
        let (ends, ended) = watch::channel(0);
        let treatment = Arc::clone(treatment);
        let reading =
            Reading { writer: Arc::clone(&writer), treatment: Arc::clone(&treatment), ends };
        let reading = tokio::spawn(reading.run(reader));
        Ok(Self { writer, reading, treatment, next_stream: 1, content_type: GRPC, ended })
    }

    /// The same connection, of a page: its requests are gRPC-Web.
    pub(crate) fn of_a_page(mut self) -> Self {
        self.content_type = "application/grpc-web+proto";
        self
    }

    /// As [`open`](Self::open), with windows for as much as there can be, but nothing is ever read,
    /// not even by this machine.
    pub(crate) async fn deaf(
        to: SocketAddr,
        from: Ipv4Addr,
        treatment: &Arc<Treatment>,
    ) -> io::Result<Self> {
        const LARGEST: u32 = (1 << 31) - 1;
        let (reader, mut writer) = connect(to, from).await?.into_split();
        writer.write_all(&beginning(LARGEST)).await?;
        writer.write_all(&window_update(0, LARGEST - USUAL_WINDOW)).await?;
        let reading = tokio::spawn(async move {
            let _kept = reader;
            std::future::pending().await
        });
        let (writer, treatment) = (Arc::new(Mutex::new(writer)), Arc::clone(treatment));
        let (_, ended) = watch::channel(0);
        Ok(Self { writer, reading, treatment, next_stream: 1, content_type: GRPC, ended })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.lock().await.write_all(bytes).await?;
        self.treatment.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The number of a new stream.
    pub(crate) fn stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Begins a request whose body does not end.
    pub(crate) async fn begin(&mut self, method: &str) -> io::Result<u32> {
        let stream = self.stream();
        let block = head_by(method, self.content_type);
        self.send(&frame(HEADERS, END_HEADERS, stream, &block)).await?;
        Ok(stream)
    }

    /// Begins a request, and sends so much of its body.
    pub(crate) async fn request(&mut self, method: &str, body: Body<'_>) -> io::Result<u32> {
        const LONGEST_FRAME: usize = 1 << 14;
        let stream = self.begin(method).await?;
        let (bytes, ends) = match body {
            Body::Nothing => return Ok(stream),
            Body::Unfinished(bytes) => (bytes, 0),
            Body::Whole(bytes) => (bytes, END_STREAM),
        };
        let mut pieces = bytes.chunks(LONGEST_FRAME).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { ends } else { 0 };
            self.send(&frame(DATA, flags, stream, piece)).await?;
        }
        Ok(stream)
    }

    /// Keeps `count` such requests open until the server closes the connection. For each that the
    /// server ends, another is begun after a pause. Calls `in_place` whenever all are open.
    pub(crate) async fn keep_open(
        &mut self,
        count: usize,
        method: &str,
        body: Body<'_>,
        in_place: impl Fn(),
    ) -> io::Result<()> {
        let mut begun = 0;
        loop {
            let ended = *self.ended.borrow_and_update();
            while begun - ended < count {
                self.request(method, body).await?;
                begun += 1;
            }
            in_place();
            if self.ended.changed().await.is_err() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn until_closed(&mut self) {
        // It never panics, and nobody else ends it.
        let _ = (&mut self.reading).await;
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The other half of a [`Raw`].
struct Reading {
    writer: Arc<Mutex<OwnedWriteHalf>>,
    treatment: Arc<Treatment>,
    ends: watch::Sender<usize>,
}

impl Reading {
    /// Until the connection ends.
    async fn run(self, mut reader: OwnedReadHalf) {
        let mut payload = Vec::new();
        // Streams whose end the server has sent. A reset may follow, which ends nothing more.
        let mut finished = HashSet::new();
        loop {
            let mut head = [0; 9];
            if reader.read_exact(&mut head).await.is_err() {
                return;
            }
            payload.resize(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize, 0);
            if reader.read_exact(&mut payload).await.is_err() {
                return;
            }
            let [kind, flags] = [head[3], head[4]];
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let reply = match kind {
                SETTINGS if flags & ACK == 0 => frame(SETTINGS, ACK, 0, &[]),
                PING if flags & ACK == 0 => frame(PING, ACK, 0, &payload),
                PING => {
                    self.treatment.pings_answered.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                RST_STREAM => {
                    self.ended(finished.insert(stream));
                    continue;
                }
                HEADERS | DATA if flags & END_STREAM != 0 => {
                    self.ended(finished.insert(stream));
                    continue;
                }
                _ => continue,
            };
            // If this fails, so does the next read.
            let _ = self.writer.lock().await.write_all(&reply).await;
        }
    }

    fn ended(&self, for_the_first_time: bool) {
        if for_the_first_time {
            self.treatment.streams_ended.fetch_add(1, Ordering::Relaxed);
            self.ends.send_modify(|ends| *ends += 1);
        }
    }
}
