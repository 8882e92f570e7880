//! Which servers send a stream: each a share of it, or each all of it, compared byte for byte.
//!
//! If a scheme has two servers and streams the table, both have announced its digest, and an honest
//! one has announced the true digest. So it does not matter for the result which server sends what:
//! at the end all bytes together must have that digest. By default each server sends its *share*:
//! the first server sends the first half, and so on. That halves the traffic of each. The price: a
//! wrong byte shows only at the end, so it costs the whole stream.
//!
//! With [`compare_streams`](super::SessionOptions::compare_streams) every stretch comes from *all*
//! servers, and the client takes it only as far as they agree. That costs twice the traffic, and
//! the first difference ends the session. A server that is ahead waits for the others at the end of
//! the stretch that is under way, so the bytes held are bounded.

use privet_core::{Error, Reason, Result};
use privet_wire::prost::bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// Which servers send a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sources {
    /// The first sends all of it.
    First,
    /// Each of so many servers sends an equal share.
    Shares(u64),
    /// Each of so many servers sends all of it.
    All(u64),
}

/// A stream of `len` bytes, in which a download can go on after each `step`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) len: u64,
    pub(super) step: u64,
}

impl Sources {
    /// The servers to ask for the stretch that begins at `offset` of a stream.
    pub(super) fn servers(self, offset: u64, stream: Stream) -> Range<usize> {
        match self {
            Sources::First => 0..1,
            Sources::All(servers) => 0..servers as usize,
            Sources::Shares(servers) => {
                let last = servers.saturating_sub(1);
                let server = (0..last).find(|server| offset < stream.share_end(*server, servers));
                let server = server.unwrap_or(last) as usize;
                server..server + 1
            }
        }
    }

    /// The stretch around `offset` that only those servers send.
    pub(super) fn share(self, offset: u64, stream: Stream) -> Range<u64> {
        match self {
            Sources::First | Sources::All(_) => 0..stream.len,
            Sources::Shares(servers) => {
                let server = self.servers(offset, stream).start as u64;
                let begin = server.checked_sub(1).map(|before| stream.share_end(before, servers));
                begin.unwrap_or(0)..stream.share_end(server, servers)
            }
        }
    }
}

impl Stream {
    /// Where the share of a server ends: after whole steps, if the share has any.
    fn share_end(self, server: u64, servers: u64) -> u64 {
        let Self { len, step } = self;
        // No larger than `len`, because there is no server beyond the last.
        let end = (u128::from(len) * u128::from(server + 1) / u128::from(servers)) as u64;
        match end < len && end >= step {
            true => end - end % step,
            false => end,
        }
    }
}

/// What servers sent of one stretch before the others did.
#[derive(Default)]
pub(super) struct Leads(Vec<Lead>);

#[derive(Default)]
struct Lead {
    chunks: VecDeque<Bytes>,
    len: u64,
}

impl Leads {
    /// Begins a stretch to compare between `servers`; with one server, nothing is compared.
    pub(super) fn begin(&mut self, servers: usize) {
        self.0.clear();
        self.0.resize_with(if servers > 1 { servers } else { 0 }, Lead::default);
    }

    /// How many bytes `server` is ahead of what all have sent.
    pub(super) fn ahead(&self, server: usize) -> u64 {
        self.0.get(server).map_or(0, |lead| lead.len)
    }

    /// Takes the next bytes from `server`, and returns those that all servers have sent now, in
    /// order. The bytes returned before end at `offset`.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if they did not send the same.
    pub(super) fn take(&mut self, server: usize, bytes: Bytes, offset: u64) -> Result<Vec<Bytes>> {
        let Some(lead) = self.0.get_mut(server) else { return Ok(vec![bytes]) };
        lead.len += bytes.len() as u64;
        lead.chunks.push_back(bytes);
        let (mut agreed, mut at) = (Vec::new(), offset);
        while let Some(same) = self.next_agreed(at)? {
            at += same.len() as u64;
            agreed.push(same);
        }
        Ok(agreed)
    }

    /// The next bytes that all servers have sent, which begin at `offset`.
    fn next_agreed(&mut self, offset: u64) -> Result<Option<Bytes>> {
        self.0.iter_mut().for_each(Lead::drop_empty);
        let shortest = self.0.iter().map(|lead| lead.chunks.front().map_or(0, Bytes::len)).min();
        let Some(len) = shortest.filter(|len| *len > 0) else { return Ok(None) };
        let mut agreed: Option<Bytes> = None;
        for lead in &mut self.0 {
            let Some(front) = lead.chunks.front_mut() else { return Ok(None) };
            let bytes = front.split_to(len);
            lead.len -= len as u64;
            match &agreed {
                None => agreed = Some(bytes),
                Some(first) if *first == bytes => {}
                Some(first) => {
                    let same = first.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
                    return Err(differ(offset + same as u64));
                }
            }
        }
        Ok(agreed)
    }
}

impl Lead {
    fn drop_empty(&mut self) {
        while self.chunks.front().is_some_and(Bytes::is_empty) {
            self.chunks.pop_front();
        }
    }
}

fn differ(at: u64) -> Error {
    Error::integrity(format!(
        "the two servers sent different bytes of the table, from byte {at} of the stream on; at least one of them lies, or has a damaged file. Nothing was asked. Ask those who run them to find out which one it is"
    ))
}

/// The error if a stream of shares does not have the digest that all servers announced.
pub(super) fn wrong_shares(error: &Error) -> Error {
    Error::integrity(format!(
        "{}. Each of the two servers sent a half, and one of them sent wrong bytes; it is unknown which one. To stop at the first byte in which they differ, have both send everything",
        error.message().trim_end_matches('.')
    ))
    .because(Reason::WrongHalf)
}
