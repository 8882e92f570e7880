//! Streaming a part, as fast as the client reads and no faster.
//!
//! A producer copies chunk after chunk into a channel with room for [`READ_AHEAD`] of them. When
//! the channel is full, the producer waits. So for a client that stops reading, the server holds
//! those chunks, the one being sent and the transport's own bounded buffer: under a megabyte, for a
//! part of any length.
//!
//! Chunks are copied on a thread that may block: parts lie in files, and reading one may have to
//! wait for a disk.

use crate::hosted::{Condition, Part};
use crate::seldom::Seldom;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{FetchChunk, WireStatus, proto};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Chunks that are read before the client asks for them.
const READ_AHEAD: usize = 1;

pub(crate) type ChunkStream = ReceiverStream<Result<proto::FetchChunk, Status>>;
type Chunks = mpsc::Sender<Result<proto::FetchChunk, Status>>;

/// The bytes of `part` in `wanted`, in chunks. The end of `wanted` is at most that of the part.
///
/// # Errors
/// The stream ends with an error if a part cannot be read, or damage is found in its table.
pub(crate) fn stream(
    part: Arc<Part>,
    condition: Arc<Condition>,
    wanted: Range<u64>,
) -> ChunkStream {
    let (chunks, receiver) = mpsc::channel(READ_AHEAD);
    tokio::spawn(produce(part, condition, wanted, chunks));
    ReceiverStream::new(receiver)
}

/// Ends when everything is sent or the client has gone.
async fn produce(part: Arc<Part>, condition: Arc<Condition>, wanted: Range<u64>, chunks: Chunks) {
    send(&part, &condition, wanted, &chunks).await;
    part.release();
}

async fn send(part: &Arc<Part>, condition: &Condition, wanted: Range<u64>, chunks: &Chunks) {
    let mut offset = wanted.start;
    while offset < wanted.end {
        // Reserve room before reading, so that the chunk has a place to go.
        let Ok(room) = chunks.reserve().await else { return };
        let source = Arc::clone(part);
        let len = (wanted.end - offset).min(FETCH_CHUNK_LEN as u64) as usize;
        let read = tokio::task::spawn_blocking(move || source.copy(offset, len));
        let read = read.await.map(|read| condition.or_end(read));
        let data = match read.map(|read| condition.check().and(read)) {
            Ok(Ok(data)) => data,
            Ok(Err(error)) => {
                static LOGGED: Seldom = Seldom::new();
                if LOGGED.is_due() {
                    tracing::error!(error = %error.message(), "a part cannot be read");
                }
                room.send(Err(WireStatus::from(&error).into()));
                return;
            }
            Err(_) => {
                room.send(Err(Status::unavailable("the server is stopping; continue later")));
                return;
            }
        };
        let chunk = FetchChunk { offset, data };
        offset += chunk.data.len() as u64;
        room.send(Ok(chunk.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordSource;
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

    impl RecordSource for Counting {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }

        fn read(&self, offset: u64, into: &mut [u8]) -> privet_core::Result<()> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
            Ok(())
        }

        fn release(&self) {}
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
        let part = Arc::new(Part::Memory(vec![1; 10 * FETCH_CHUNK_LEN].into()));
        let weak = Arc::downgrade(&part);
        let (chunks, receiver) = mpsc::channel(READ_AHEAD);
        let end = part.len();
        let producer = tokio::spawn(produce(part, condition(), 0..end, chunks));
        drop(receiver);
        producer.await.unwrap();
        assert!(weak.upgrade().is_none());
    }
}
