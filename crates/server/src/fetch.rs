//! Streaming a part, as fast as the client reads and no faster.
//!
//! A producer copies chunk after chunk into a channel with room for [`READ_AHEAD`] of them. When
//! the channel is full, the producer waits. So for a client that stops reading, the server holds
//! those chunks, the one being sent and the transport's own bounded buffer: under a megabyte, for a
//! part of any length.
//!
//! A stream from memory does not hold what it sends: that belongs to a version, and a version that
//! is retired must be freed, however slowly somebody reads it. Such a stream then ends with an
//! error, and its client goes on with the version that is served. A stream from files goes on, and
//! keeps in memory what the log has changed of them.
//!
//! Chunks are copied on a thread that may block: parts lie in files, and reading one may have to
//! wait for a disk.

use crate::hosted::{Condition, Part, retired};
use crate::seldom::Seldom;
use bytes::Bytes;
use privet_core::Result;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{FetchChunk, WireStatus, proto};
use std::ops::Range;
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Chunks that are read before the client asks for them.
const READ_AHEAD: usize = 1;

pub(crate) type ChunkStream = ReceiverStream<std::result::Result<proto::FetchChunk, Status>>;
type Chunks = mpsc::Sender<std::result::Result<proto::FetchChunk, Status>>;

/// The bytes of `part` in `wanted`, in chunks. The end of `wanted` is at most that of the part.
///
/// # Errors
/// The stream ends with an error if a part cannot be read, damage is found in its table, or it
/// lies in the memory of a version that is not served any more.
pub(crate) fn stream(
    part: Arc<Part>,
    condition: Arc<Condition>,
    wanted: Range<u64>,
) -> ChunkStream {
    let (chunks, receiver) = mpsc::channel(READ_AHEAD);
    tokio::spawn(produce(PartSource::new(part), condition, wanted, chunks));
    ReceiverStream::new(receiver)
}

/// What a stream reads.
enum PartSource {
    /// In files.
    Held(Arc<Part>),
    /// In memory, of a version.
    Lent(Weak<Part>),
}

impl PartSource {
    fn new(part: Arc<Part>) -> Self {
        match part.is_in_memory() {
            true => Self::Lent(Arc::downgrade(&part)),
            false => Self::Held(part),
        }
    }

    /// # Errors
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if its version was retired, as
    /// for a request that comes later.
    fn get(&self) -> Result<Arc<Part>> {
        match self {
            Self::Held(part) => Ok(Arc::clone(part)),
            Self::Lent(part) => part.upgrade().ok_or_else(retired),
        }
    }
}

/// Ends when everything is sent, the client has gone, or there is nothing to send any more.
async fn produce(
    source: PartSource,
    condition: Arc<Condition>,
    wanted: Range<u64>,
    chunks: Chunks,
) {
    let mut offset = wanted.start;
    while offset < wanted.end {
        // Reserve room before reading, so that the chunk has a place to go.
        let Ok(room) = chunks.reserve().await else { return };
        let len = (wanted.end - offset).min(FETCH_CHUNK_LEN as u64) as usize;
        let data = match read(&source, &condition, offset, len).await {
            Ok(data) => data,
            Err(status) => return room.send(Err(status)),
        };
        let chunk = FetchChunk { offset, data };
        offset += chunk.data.len() as u64;
        room.send(Ok(chunk.into()));
    }
}

async fn read(
    source: &PartSource,
    condition: &Condition,
    offset: u64,
    len: usize,
) -> Result<Bytes, Status> {
    let part = source.get().map_err(|gone| WireStatus::from(&gone))?;
    let read = tokio::task::spawn_blocking(move || part.copy(offset, len)).await;
    let read = read.map_err(|_| Status::unavailable("the server is stopping; continue later"))?;
    let read = condition.or_end(read);
    condition.check().and(read).map_err(|error| {
        static LOGGED: Seldom = Seldom::new();
        if LOGGED.is_due() {
            tracing::error!(error = %error.message(), "a part cannot be read");
        }
        WireStatus::from(&error).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordSource;
    use privet_core::ReadRecords;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio_stream::StreamExt;

    fn condition() -> Arc<Condition> {
        Arc::new(Condition::new("t"))
    }

    /// Counts its reads, one for each chunk.
    struct Counting {
        bytes: Vec<u8>,
        reads: Arc<AtomicUsize>,
    }

    impl ReadRecords for Counting {
        fn len(&self) -> u64 {
            ReadRecords::len(&self.bytes)
        }

        fn read(&self, offset: u64, into: &mut [u8]) -> privet_core::Result<()> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
            Ok(())
        }
    }

    impl RecordSource for Counting {
        fn file(&self) -> Option<&std::path::Path> {
            Some("somewhere".as_ref())
        }

        fn memory(&self) -> u64 {
            0
        }
    }

    #[tokio::test]
    async fn a_reader_that_stops_stops_the_producer_too() {
        const CHUNKS: usize = 50;
        let reads = Arc::new(AtomicUsize::new(0));
        let bytes = vec![7; CHUNKS * FETCH_CHUNK_LEN];
        let source = Counting { bytes, reads: Arc::clone(&reads) };
        let end = (CHUNKS * FETCH_CHUNK_LEN) as u64;
        let mut stream = stream(Arc::new(Part::Records(Box::new(source))), condition(), 0..end);
        for taken in 1..=CHUNKS {
            stream.next().await.unwrap().unwrap();
            // However long the producer runs, it reads no further than its room.
            for _ in 0..20 {
                tokio::task::yield_now().await;
                tokio::task::spawn_blocking(|| ()).await.unwrap();
            }
            let read = reads.load(Ordering::SeqCst);
            assert!(read <= taken + READ_AHEAD, "{read} chunks read, {taken} taken");
        }
        assert!(stream.next().await.is_none());
        assert_eq!(reads.load(Ordering::SeqCst), CHUNKS);
    }

    #[tokio::test]
    async fn a_reader_that_goes_ends_the_producer() {
        let part = memory();
        let (chunks, receiver) = mpsc::channel(READ_AHEAD);
        let source = PartSource::new(Arc::clone(&part));
        let producer = tokio::spawn(produce(source, condition(), 0..part.len(), chunks));
        drop(receiver);
        producer.await.unwrap();
        assert_eq!(Arc::strong_count(&part), 1);
    }

    fn memory() -> Arc<Part> {
        Arc::new(Part::Memory(vec![1; 10 * FETCH_CHUNK_LEN].into()))
    }

    #[tokio::test]
    async fn a_slow_reader_does_not_keep_the_memory_of_a_retired_version() {
        let part = memory();
        let weak = Arc::downgrade(&part);
        let end = part.len();
        let mut stream = stream(Arc::clone(&part), condition(), 0..end);
        stream.next().await.unwrap().unwrap();
        drop(part);
        // A chunk may just be read.
        while weak.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        let mut last = stream.next().await.unwrap();
        while last.is_ok() {
            last = stream.next().await.unwrap();
        }
        let gone = last.unwrap_err();
        assert_eq!(gone.code(), tonic::Code::FailedPrecondition, "{gone}");
        assert!(stream.next().await.is_none());
    }
}
