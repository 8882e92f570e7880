//! The phase before the first query: what a client must receive, and how it checks what it
//! received.

use crate::contract::Role;
use privet_core::{Error, Result};
use privet_kernels::memory::{HugeBuffer, little_endian_bytes};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The data that a server must send before the first query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OfflinePhase {
    /// Nothing.
    Nothing,
    /// A public hint of `len` bytes, the same for every client. The client stores it, and reads it
    /// in pieces later.
    Download {
        /// Size in bytes.
        len: u64,
    },
    /// The whole table, `len` bytes in natural order, from which the client derives its own secret
    /// hints. It does not store the table itself.
    StreamTable {
        /// Size in bytes.
        len: u64,
    },
    /// The table as the scheme arranges it: in its own order, or with other data after it. The
    /// server announces the digest.
    StreamArranged {
        /// Size in bytes.
        len: u64,
    },
    /// Hints that one server computes for this client only, in reply to requests. No other server
    /// may learn the secrets in these requests.
    Ask {
        /// The server.
        role: Role,
        /// How many requests.
        requests: u64,
        /// Size of every request in bytes.
        request_len: usize,
        /// Size of every reply in bytes.
        reply_len: usize,
    },
    /// The whole table, `len` bytes in natural order. The client stores it, and needs nothing else.
    KeepTable {
        /// Size in bytes.
        len: u64,
    },
}

impl OfflinePhase {
    /// Bytes that a client receives.
    pub fn len(self) -> u64 {
        match self {
            OfflinePhase::Nothing => 0,
            OfflinePhase::Download { len }
            | OfflinePhase::StreamTable { len }
            | OfflinePhase::StreamArranged { len }
            | OfflinePhase::KeepTable { len } => len,
            OfflinePhase::Ask { requests, reply_len, .. } => {
                requests.saturating_mul(reply_len as u64)
            }
        }
    }

    /// Whether a client receives nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Consumes a stream chunk by chunk, in order. It can continue from where it stopped.
pub trait StreamConsumer {
    /// The offset of the next byte it wants.
    fn next_offset(&self) -> u64;

    /// Takes the bytes at `offset`.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if they are not the next ones
    /// or reach beyond the end.
    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()>;

    /// Checks that everything arrived and is as announced.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the digest does not match,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if bytes are missing.
    fn finish(&mut self) -> Result<()>;
}

/// The consumer for bytes that the client stores unchanged: checks order, length and BLAKE3 digest.
pub struct Download {
    len: u64,
    digest: [u8; 32],
    received: u64,
    hasher: blake3::Hasher,
}

impl Download {
    /// A download of `len` bytes whose BLAKE3 digest is announced as `digest`.
    pub fn new(len: u64, digest: [u8; 32]) -> Self {
        Self { len, digest, received: 0, hasher: blake3::Hasher::new() }
    }

    /// Size of the whole in bytes.
    pub fn total(&self) -> u64 {
        self.len
    }
}

impl StreamConsumer for Download {
    fn next_offset(&self) -> u64 {
        self.received
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        if offset != self.received {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {offset} of a download when byte {} was due",
                self.received
            )));
        }
        if chunk.len() as u64 > self.len - self.received {
            return Err(Error::peer_misbehaved(format!(
                "the server sent more than the {} bytes it had announced for a download",
                self.len
            )));
        }
        self.hasher.update(chunk);
        self.received += chunk.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.received != self.len {
            return Err(Error::peer_misbehaved(format!(
                "a download ended after {} of {} bytes",
                self.received, self.len
            )));
        }
        if self.hasher.finalize() != blake3::Hash::from_bytes(self.digest) {
            return Err(Error::integrity(
                "a download does not have the digest that the server announced; it was damaged on the way or the server is at fault",
            ));
        }
        Ok(())
    }
}

/// What a server computes from its table once, before it can answer.
#[derive(Default)]
pub struct Precomputed {
    /// What clients download; empty if they download nothing.
    pub hint: PublicWords,
    /// What the server itself needs to answer; empty if it needs only the table.
    pub kept: PublicWords,
}

/// Words that are public.
#[derive(Default)]
pub struct PublicWords(Option<HugeBuffer<u32>>);

impl PublicWords {
    /// These words.
    pub fn new(words: HugeBuffer<u32>) -> Self {
        Self(Some(words))
    }

    /// These bytes, whose number must make whole words.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they do not,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (chunks, []) = bytes.as_chunks::<4>() else {
            return Err(Error::api_misuse("these bytes do not make whole words"));
        };
        let mut words = HugeBuffer::new_zeroed(chunks.len()).map_err(|error| {
            Error::unavailable("no memory for what is precomputed").caused_by(error)
        })?;
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u32::from_le_bytes(*chunk);
        }
        Ok(Self::new(words))
    }

    /// The words as they are downloaded and stored: little-endian, one after the other.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.0.as_deref().map_or(Cow::Borrowed(&[]), little_endian_bytes)
    }
}

/// Checks that stored data is as long as the parameters say.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with both lengths, if it is not.
pub(crate) fn check_len(what: &str, found: u64, prescribed: u64) -> Result<()> {
    if found == prescribed {
        return Ok(());
    }
    Err(Error::corrupted(format!(
        "{what} has {found} bytes, its parameters prescribe {prescribed}"
    )))
}

/// Where a downloaded hint lies: in memory, in a file, in a browser's storage. It is read in
/// pieces, because a query needs few of its rows.
pub trait HintSource: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the bytes from `offset`, after checking that they are still those that were
    /// stored.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are damaged or missing.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;
}

/// A download that is still on its way. A client that needs it only to read answers can begin with
/// this, and make queries: see [`About::queries_first`](crate::registry::About::queries_first).
pub struct LateHint {
    len: u64,
    come: OnceLock<Arc<dyn HintSource>>,
}

impl LateHint {
    /// A download that will have `len` bytes.
    pub fn new(len: u64) -> Self {
        Self { len, come: OnceLock::new() }
    }

    /// The download has come, and is verified.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it has another length,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it had come before.
    pub fn set(&self, hint: Arc<dyn HintSource>) -> Result<()> {
        check_len("the hint", hint.len(), self.len)?;
        self.come.set(hint).map_err(|_| Error::api_misuse("a download comes once"))
    }

    /// Whether the download has come.
    pub fn has_come(&self) -> bool {
        self.come.get().is_some()
    }
}

impl HintSource for LateHint {
    fn len(&self) -> u64 {
        self.len
    }

    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) before the download has come.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let not_yet = || Error::unavailable("what an answer is read with is still on its way");
        self.come.get().ok_or_else(not_yet)?.read_at(offset, out)
    }
}

impl HintSource for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let found = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..start.checked_add(out.len())?))
            .ok_or_else(|| Error::corrupted("a hint is shorter than its parameters prescribe"))?;
        out.copy_from_slice(found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    #[test]
    fn a_download_accepts_exactly_the_announced_bytes_in_order() {
        let bytes = b"some hint".to_vec();
        let digest = *blake3::hash(&bytes).as_bytes();
        let fresh = || Download::new(bytes.len() as u64, digest);

        let mut good = fresh();
        good.absorb(0, &bytes[..4]).unwrap();
        assert_eq!(good.next_offset(), 4);
        good.absorb(4, &bytes[4..]).unwrap();
        good.finish().unwrap();

        let blame = |result: Result<()>| result.unwrap_err().blame();
        let mut gap = fresh();
        assert_eq!(blame(gap.absorb(1, &bytes[1..])), Blame::PeerMisbehaved);
        let mut long = fresh();
        assert_eq!(blame(long.absorb(0, b"some hint and more")), Blame::PeerMisbehaved);
        let mut short = fresh();
        short.absorb(0, &bytes[..8]).unwrap();
        assert_eq!(blame(short.finish()), Blame::PeerMisbehaved);
        let mut changed = fresh();
        changed.absorb(0, b"some hist").unwrap();
        assert_eq!(blame(changed.finish()), Blame::Integrity);
    }

    #[test]
    fn a_late_hint_is_read_once_it_has_come() {
        let late = LateHint::new(4);
        let mut out = [0; 2];
        assert_eq!(late.len(), 4);
        assert_eq!(late.read_at(0, &mut out).unwrap_err().blame(), Blame::Unavailable);
        let refused = late.set(Arc::new(vec![1u8; 5]));
        assert_eq!(refused.unwrap_err().blame(), Blame::Corrupted);
        assert!(!late.has_come());
        late.set(Arc::new(vec![1u8, 2, 3, 4])).unwrap();
        late.read_at(2, &mut out).unwrap();
        assert!(late.has_come() && out == [3, 4]);
        assert_eq!(late.set(Arc::new(vec![0u8; 4])).unwrap_err().blame(), Blame::ApiMisuse);
    }

    #[test]
    fn a_hint_in_memory_refuses_reads_beyond_its_end() {
        let hint = vec![1u8, 2, 3, 4];
        let mut out = [0; 2];
        hint.read_at(2, &mut out).unwrap();
        assert_eq!(out, [3, 4]);
        assert!(hint.read_at(3, &mut out).is_err());
        assert!(hint.read_at(u64::MAX, &mut out).is_err());
    }
}
