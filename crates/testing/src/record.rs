//! What a client sent.

use std::time::Duration;

/// Everything that clients sent through one relay.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In the order in which they were opened.
    pub connections: Vec<Connection>,
}

/// One connection. All moments are seconds since the relay started.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// When the client connected.
    pub opened: f64,
    /// When the client closed its end, if it has.
    pub closed: Option<f64>,
    /// How many bytes it sent.
    pub bytes: u64,
    /// The frames of HTTP/2. Empty if the client speaks something else, such as TLS.
    pub frames: Vec<Frame>,
    /// The messages of gRPC in these frames: requests, among them queries.
    pub messages: Vec<Message>,
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// When its last byte passed.
    pub at: f64,
    /// 0 for DATA, 1 for HEADERS, 3 for RST_STREAM, and so on.
    pub kind: u8,
    /// Of its payload, in bytes.
    pub len: u32,
    /// The stream, or 0 for the connection.
    pub stream: u32,
}

/// A message of gRPC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// When its last byte passed.
    pub at: f64,
    /// The stream that it is on.
    pub stream: u32,
    /// In bytes.
    pub len: u32,
}

impl Record {
    /// Bytes on all connections.
    pub fn bytes(&self) -> u64 {
        self.connections.iter().map(|connection| connection.bytes).sum()
    }

    /// The messages of all connections, in the order in which they passed.
    pub fn messages(&self) -> Vec<Message> {
        let all = self.connections.iter().flat_map(|connection| &connection.messages);
        let mut all: Vec<_> = all.copied().collect();
        all.sort_by(|one, other| one.at.total_cmp(&other.at));
        all
    }

    /// How many frames of this kind there are.
    pub fn frames(&self, kind: u8) -> usize {
        let all = self.connections.iter().flat_map(|connection| &connection.frames);
        all.filter(|frame| frame.kind == kind).count()
    }

    /// The longest time between two messages that follow each other, and the number of the second,
    /// from 0.
    pub fn longest_pause(&self) -> (Duration, usize) {
        let messages = self.messages();
        let pauses = messages.windows(2).map(|pair| pair[1].at - pair[0].at);
        let longest = pauses.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        let (before, pause) = longest.unwrap_or((0, 0.0));
        (Duration::from_secs_f64(pause.max(0.0)), before + 1)
    }

    /// From the first message to the last.
    pub fn duration(&self) -> Duration {
        let messages = self.messages();
        let moment = |message: Option<&Message>| message.map_or(0.0, |message| message.at);
        Duration::from_secs_f64((moment(messages.last()) - moment(messages.first())).max(0.0))
    }

    /// From the last message to the end of the last connection. `None` before the client has closed
    /// all of them.
    pub fn silence_at_the_end(&self) -> Option<Duration> {
        let closed = self.connections.iter().map(|connection| connection.closed);
        let closed = closed.collect::<Option<Vec<_>>>()?.into_iter().max_by(f64::total_cmp)?;
        let last = self.messages().last().map_or(0.0, |message| message.at);
        Some(Duration::from_secs_f64((closed - last).max(0.0)))
    }

    /// Whether there are connections, and the client has closed all of them.
    pub fn is_closed(&self) -> bool {
        !self.connections.is_empty()
            && self.connections.iter().all(|connection| connection.closed.is_some())
    }
}
