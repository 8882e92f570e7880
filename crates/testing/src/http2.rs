//! The frames of HTTP/2 that a client sends, and the messages of gRPC in them.

use crate::record::{Connection, Frame, Message};
use std::collections::HashMap;

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length, kind, flags and stream stand before each payload.
const HEAD_LEN: usize = 9;

const DATA: u8 = 0;
/// The flag of a DATA frame whose payload is padded.
const PADDED: u8 = 8;

/// Reads what a client sends, piece by piece.
#[derive(Default)]
pub(crate) struct Parser {
    unread: Vec<u8>,
    /// Whether the preface came. `Some(false)`: this is not HTTP/2.
    begun: Option<bool>,
    streams: HashMap<u32, Vec<u8>>,
}

impl Parser {
    /// Takes the bytes that passed at a moment, and adds what they complete to `connection`.
    pub(crate) fn take(&mut self, bytes: &[u8], at: f64, connection: &mut Connection) {
        if self.begun == Some(false) {
            return;
        }
        self.unread.extend_from_slice(bytes);
        if self.begun.is_none() {
            let len = self.unread.len().min(PREFACE.len());
            if self.unread[..len] != PREFACE[..len] {
                self.begun = Some(false);
                self.unread.clear();
                return;
            }
            if len < PREFACE.len() {
                return;
            }
            self.begun = Some(true);
            self.unread.drain(..len);
        }
        let mut read = 0;
        while let Some((frame, flags, payload)) = frame(&self.unread[read..], at) {
            read += HEAD_LEN + payload.len();
            connection.frames.push(frame);
            if frame.kind == DATA {
                let data = match payload.split_first() {
                    Some((padding, rest)) if flags & PADDED != 0 => {
                        &rest[..rest.len().saturating_sub((*padding).into())]
                    }
                    _ => payload,
                };
                let stream = self.streams.entry(frame.stream).or_default();
                stream.extend_from_slice(data);
                while let Some(len) = message(stream) {
                    stream.drain(..5 + len as usize);
                    connection.messages.push(Message { at, stream: frame.stream, len });
                }
            }
        }
        self.unread.drain(..read);
    }
}

/// The frame at the beginning of `bytes` with its flags and payload, if it is there as a whole.
fn frame(bytes: &[u8], at: f64) -> Option<(Frame, u8, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_LEN)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let len = number(&head[..3]);
    let payload = rest.get(..len as usize)?;
    // The first bit is reserved.
    let stream = number(&head[5..]) & (u32::MAX >> 1);
    Some((Frame { at, kind: head[3], len, stream }, head[4], payload))
}

/// The length of the message at the beginning of `bytes`, if it is there as a whole.
fn message(bytes: &[u8]) -> Option<u32> {
    let head: [u8; 5] = bytes.get(..5)?.try_into().ok()?;
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    (bytes.len() - 5 >= len as usize).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn frames_and_messages_are_the_same_however_they_are_cut() {
        let message = [&[0, 0, 0, 0, 3][..], b"abc"].concat();
        let sent = [
            PREFACE.to_vec(),
            sent(4, 0, 0, b""),
            sent(1, 4, 1, b"headers"),
            sent(DATA, 0, 1, &message[..4]),
            sent(DATA, 0, 3, &[&message[..], &message[..]].concat()),
            sent(DATA, PADDED, 1, &[&[2][..], &message[4..], b"\0\0"].concat()),
        ]
        .concat();
        for cut in 1..sent.len() {
            let (mut parser, mut connection) = (Parser::default(), Connection::default());
            sent.chunks(cut).for_each(|bytes| parser.take(bytes, 1.5, &mut connection));
            let kinds: Vec<_> = connection.frames.iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, [4, 1, 0, 0, 0]);
            let messages: Vec<_> = connection.messages.iter().map(|m| (m.stream, m.len)).collect();
            assert_eq!(messages, [(3, 3), (3, 3), (1, 3)]);
        }
        let (mut parser, mut connection) = (Parser::default(), Connection::default());
        parser.take(b"\x16\x03\x01 and more of TLS", 0.0, &mut connection);
        assert!(connection.frames.is_empty());
    }
}
