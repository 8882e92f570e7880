//! Streams: from any offset, of any length, at the client's pace.

use crate::common::*;
use privet_core::ReadRecords;
use privet_server::{RecordSource, ServedTable};
use privet_table::digest::DigestParts;
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{FetchRequest, PartKind, proto};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test]
async fn a_stream_continues_from_every_interesting_offset() {
    const CHUNK: u64 = FETCH_CHUNK_LEN as u64;
    // A table of three chunks and a bit.
    let server = start(config(), vec![table("t", 3 * CHUNK / 64 + 1, 64, 1)]).await;
    let mut stub = stub(&server).await;
    let description = describe(&mut stub).await.tables[0].clone();
    for part in [PartKind::Layout, PartKind::Hint, PartKind::Table] {
        let whole = fetch(&mut stub, fetch_request(&description, part, 0)).await.unwrap();
        let len = whole.len() as u64;
        for boundary in [0, 1, 4096, CHUNK, 2 * CHUNK, 3 * CHUNK, len] {
            for offset in boundary.saturating_sub(1)..=boundary + 1 {
                let rest = fetch(&mut stub, fetch_request(&description, part, offset)).await;
                if offset <= len {
                    assert!(rest.unwrap() == whole[offset as usize..], "{part} from {offset}");
                } else {
                    assert_eq!(
                        rest.unwrap_err().code(),
                        tonic::Code::InvalidArgument,
                        "{part} from {offset}"
                    );
                }
            }
        }
        let beyond =
            fetch(&mut stub, fetch_request(&description, part, u64::MAX)).await.unwrap_err();
        assert_eq!(beyond.code(), tonic::Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_small_layout_comes_with_the_description_and_can_still_be_fetched() {
    for (len, told) in [(8, true), (4096, true), (4097, false)] {
        let mut table = table("t", 60, 5, 1);
        table.layout = vec![7; len].into();
        let parts = DigestParts {
            layout: *blake3::hash(&table.layout).as_bytes(),
            records: *blake3::hash(&records(60 * 5, 1)).as_bytes(),
        };
        table.identity.digest = parts.combine(table.identity.shape);
        let layout = table.layout.to_vec();
        let server = start(config(), vec![table]).await;
        let mut stub = stub(&server).await;
        let description = describe(&mut stub).await.tables[0].clone();
        assert_eq!(description.layout_bytes, told.then(|| layout.clone()), "{len} bytes");
        let fetched = fetch(&mut stub, fetch_request(&description, PartKind::Layout, 0)).await;
        assert_eq!(fetched.unwrap(), layout);
    }
}

#[tokio::test]
async fn a_stream_ends_where_it_was_asked_to() {
    const CHUNK: u64 = FETCH_CHUNK_LEN as u64;
    let server = start(config(), vec![table("t", 3 * CHUNK / 64 + 1, 64, 1)]).await;
    let mut stub = stub(&server).await;
    let description = describe(&mut stub).await.tables[0].clone();
    for part in [PartKind::Layout, PartKind::Hint, PartKind::Table] {
        let whole = fetch(&mut stub, fetch_request(&description, part, 0)).await.unwrap();
        let end = whole.len() as u64;
        for offset in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, end - 1, end] {
            for len in [1, 2, 4096, CHUNK - 1, CHUNK, CHUNK + 1, end, u64::MAX] {
                let request = FetchRequest { len, ..fetch_request(&description, part, offset) };
                let stretch = fetch(&mut stub, request).await;
                if offset > end {
                    // Layouts are short. A length does not make an offset beyond the end valid.
                    assert_eq!(stretch.unwrap_err().code(), tonic::Code::InvalidArgument);
                    continue;
                }
                let expected = &whole[offset as usize..][..len.min(end - offset) as usize];
                assert!(stretch.unwrap() == expected, "{len} bytes of {part} from {offset}");
            }
        }
    }
}

/// Counts its reads, one for each chunk. It says that it lies in a file.
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
    fn file(&self) -> Option<&Path> {
        Some("somewhere".as_ref())
    }

    fn memory(&self) -> u64 {
        0
    }
}

const CHUNKS: usize = 64;

/// A table of 64 chunks, and the count of its reads.
fn counted_table() -> (ServedTable, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let len = FETCH_CHUNK_LEN * CHUNKS;
    // Few columns: neither table nor hint is what matters here.
    let mut table = table("t", len as u64 / 4096, 4096, 1);
    let bytes = vec![5; len];
    table.identity.digest = digest(table.identity.shape, &bytes);
    let source = Counting { bytes, reads: Arc::clone(&reads) };
    table.records = Box::new(source);
    (table, reads)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_holds_little_memory_and_not_for_long() {
    let (table, reads) = counted_table();
    let mut config = config();
    config.limits.stall_limit = Duration::from_millis(300);
    config.limits.fetches.total = 1;
    let server = start(config, vec![table]).await;
    let endpoint = endpoint(server.local_addr()).initial_stream_window_size(1 << 16);
    let mut slow = stub_on(endpoint.connect().await.unwrap());
    let description = describe(&mut slow).await.tables[0].clone();
    let request = fetch_request(&description, PartKind::Table, 0);

    reads.store(0, Ordering::SeqCst);
    let mut stream = slow.fetch(proto::FetchRequest::from(request)).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    // While the stream is open, its slot is taken.
    let mut quick = stub(&server).await;
    let refused = fetch(&mut quick, request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
    // Nothing more is read. The server has the whole stall limit to read ahead, and does not.
    until_metric(&server, "privet_requests_total{method=\"Fetch\",status=\"CANCELLED\"}", 1.0)
        .await;
    let read = reads.load(Ordering::SeqCst);
    assert!(read < 12, "{read} reads for a client that took one chunk of {CHUNKS} and stopped");

    // The client finds its stream cut off, not ended as if it were whole.
    let mut chunks = 1;
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => chunks += 1,
            end => break end,
        }
    };
    assert!(end.is_err(), "cut off after {chunks} chunks");
    assert!(chunks < CHUNKS);
    // The slot is free, and the rest can be fetched.
    let rest = fetch_request(&description, PartKind::Table, (chunks * FETCH_CHUNK_LEN) as u64);
    assert_eq!(fetch(&mut quick, rest).await.unwrap().len(), (CHUNKS - chunks) * FETCH_CHUNK_LEN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_in_the_middle_frees_its_slot() {
    let (table, _) = counted_table();
    let mut config = config();
    config.limits.fetches.total = 1;
    let server = start(config, vec![table]).await;
    let mut stub = stub(&server).await;
    let description = describe(&mut stub).await.tables[0].clone();
    let request = fetch_request(&description, PartKind::Table, 0);
    let mut stream = stub.fetch(proto::FetchRequest::from(request)).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    drop(stream);
    until_metric(&server, "privet_requests_total{method=\"Fetch\",status=\"CANCELLED\"}", 1.0)
        .await;
    assert_eq!(fetch(&mut stub, request).await.unwrap().len(), CHUNKS * FETCH_CHUNK_LEN);
}
