//! Messages in gRPC-Web frames, for browsers, which cannot speak gRPC itself. No I/O.
//!
//! A body is a sequence of frames. Each has five bytes before its contents: a flag and the length,
//! big-endian. Messages come first, with the flag 0. A response ends with a frame of trailers, with
//! the flag 128: lines of text with the status. A server that refuses at once may send the status
//! in the response's headers instead, and no body; [`WireStatus::from_headers`] reads those.
//!
//! Source: the gRPC project, *gRPC Web* and *gRPC over HTTP2* (protocol descriptions).

use crate::status::{StatusCode, WireStatus};
use privet_core::{Error, Result};

/// The length of a frame's header, in bytes: the flag and the length.
pub const FRAME_HEADER_LEN: usize = 5;

/// Trailers have at most this many bytes: a status message of the greatest length, each byte
/// escaped, and room for other fields.
pub const MAX_TRAILERS_LEN: usize = 16 << 10;

const MESSAGE: u8 = 0;
const TRAILERS: u8 = 0x80;

/// The body of a request: one encoded message, of less than 4 GiB, in its frame.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_HEADER_LEN + message.len());
    bytes.push(MESSAGE);
    bytes.extend((message.len() as u32).to_be_bytes());
    bytes.extend(message);
    bytes
}

/// The parts of a response, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message, still encoded.
    Message(Vec<u8>),
    /// The end, with the status.
    Trailers(WireStatus),
}

/// Splits the body of a response into frames as it arrives, in pieces of any length.
///
/// It keeps at most one frame, and only the bytes of it that have arrived, whatever length the
/// frame claims.
#[derive(Debug)]
pub struct Frames {
    limit: usize,
    /// The bytes of the current frame that have arrived, its header first.
    partial: Vec<u8>,
    state: StreamState,
}

#[derive(Debug)]
enum StreamState {
    Open,
    /// The trailers have arrived.
    Ended,
    /// The frames after this cannot be told apart.
    Broken(Error),
}

impl Frames {
    /// For a response whose messages have at most `limit` bytes each: see
    /// [`limits`](crate::limits).
    pub fn new(limit: usize) -> Self {
        // With its header, a frame's length must fit into 32 bits.
        let limit = limit.min(u32::MAX as usize - FRAME_HEADER_LEN);
        Self { limit, partial: Vec::new(), state: StreamState::Open }
    }

    /// Takes from the front of `bytes` what the current frame still lacks. Returns the frame if it
    /// is complete, and `None` if it needs more bytes. Call it until it returns `None`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if this is not gRPC-Web, a
    /// frame is compressed or longer than its limit, or something follows the trailers. Every later
    /// call fails in the same way.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>> {
        match &self.state {
            StreamState::Open => {}
            StreamState::Ended if bytes.is_empty() => return Ok(None),
            StreamState::Ended => return self.broken("more bytes follow the end of the response"),
            StreamState::Broken(error) => return Err(error.clone()),
        }
        self.take(FRAME_HEADER_LEN, bytes);
        let Some((&[flag, ref len @ ..], _)) = self.partial.split_first_chunk::<FRAME_HEADER_LEN>()
        else {
            return Ok(None);
        };
        let len = u32::from_be_bytes(*len) as usize;
        let limit = match flag {
            MESSAGE => self.limit,
            TRAILERS => MAX_TRAILERS_LEN,
            _ => return self.broken("a frame is neither a plain message nor the end"),
        };
        if len > limit {
            return self.broken(&format!("a frame has {len} bytes, and at most {limit} are valid"));
        }
        self.take(FRAME_HEADER_LEN + len, bytes);
        if self.partial.len() < FRAME_HEADER_LEN + len {
            return Ok(None);
        }
        let mut contents = std::mem::take(&mut self.partial);
        contents.drain(..FRAME_HEADER_LEN);
        if flag == MESSAGE {
            return Ok(Some(Frame::Message(contents)));
        }
        self.state = StreamState::Ended;
        Ok(Some(Frame::Trailers(status_of(&contents))))
    }

    /// Call this when no more bytes will come.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the response broke off, otherwise
    /// as [`next`](Self::next).
    pub fn finish(self) -> Result<()> {
        match self.state {
            StreamState::Open => Err(Error::unavailable("the response broke off before its end")),
            StreamState::Ended => Ok(()),
            StreamState::Broken(error) => Err(error),
        }
    }

    /// Moves bytes over until the frame has `len` of them, or none are left.
    fn take(&mut self, len: usize, bytes: &mut &[u8]) {
        let lacking = len.saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(lacking.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        *bytes = rest;
    }

    fn broken<T>(&mut self, what: &str) -> Result<T> {
        let error = Error::invalid_message(format!(
            "{what}; check that a server that speaks gRPC-Web is at this address"
        ));
        self.partial = Vec::new();
        self.state = StreamState::Broken(error.clone());
        Err(error)
    }
}

impl WireStatus {
    /// The status in HTTP headers or trailers: the values of `grpc-status` and `grpc-message`.
    /// `None` if they hold no status.
    pub fn from_headers(code: Option<&str>, message: Option<&str>) -> Option<Self> {
        let number = code?.trim().parse().unwrap_or(-1);
        Some(Self::new(StatusCode::from_number(number), &unescaped(message.unwrap_or(""))))
    }
}

/// The status in a frame of trailers: lines of `name: value`, names in either case.
fn status_of(trailers: &[u8]) -> WireStatus {
    let text = String::from_utf8_lossy(trailers);
    let value = |wanted: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
    };
    let (code, message) = (value("grpc-status"), value("grpc-message"));
    WireStatus::from_headers(code.as_deref(), message.as_deref())
        .unwrap_or_else(|| WireStatus::new(StatusCode::Unknown, "the response has no status"))
}

/// Undoes the escapes of a status message: `%` and two hexadecimal digits for a byte. Anything else
/// stays as it is.
fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| first == b'%');
        let byte = digits.and_then(|&[high, low]| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            Some((digit(high)? * 16 + digit(low)?) as u8)
        });
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
