//! Piano: clients stream the table in the scheme's own order, straight from the memory of the
//! server that answers them.

use crate::common::*;
use crate::hinted::*;
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_server::{HintOrigin, ServedTable, ServerConfig};
use privet_wire::{FetchRequest, PartKind, TableDescription};
use tonic::Code;

const FORMS: [SchemeId; 2] = [SchemeId::Piano, SchemeId::PianoAllParities];

/// One table for each form of answers, named after it.
fn both_forms(count: u64, record_len: u64) -> Vec<ServedTable> {
    let numbered = FORMS.iter().zip(1..);
    let table = |(scheme, id): (&SchemeId, u8)| {
        served_by(*scheme, table(scheme.name(), count, record_len, id))
    };
    numbered.map(table).collect()
}

/// A client that receives the table in stretches of `stretch` bytes, and what it received.
async fn streamed_from(
    server: &mut Stub,
    table: &TableDescription,
    stretch: u64,
) -> (HintedClient, Vec<u8>) {
    let announced = table.schemes[0].hint.unwrap();
    let mut preparation = begin_preparation(table, announced.digest);
    let mut received = Vec::new();
    while preparation.next_offset() < announced.len {
        let rest = fetch_request(table, PartKind::Hint, preparation.next_offset());
        let bytes = fetch(server, FetchRequest { len: stretch, ..rest }).await.unwrap();
        preparation.absorb(rest.offset, &bytes).unwrap();
        received.extend(bytes);
    }
    (HintedClient::new(table, preparation), received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_is_streamed_as_the_server_holds_it_and_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = dir.path().join("cache");
    let (count, record_len) = (257, 4);
    let config = ServerConfig { cache_dir: Some(cache_dir.clone()), ..config() };
    let server = start(config, both_forms(count, record_len)).await;
    let mut stubs = [stub(&server).await];
    for table in &describe(&mut stubs[0]).await.tables {
        let len = count * record_len;
        let scheme = &table.schemes[0];
        assert_eq!(scheme.plan.offline, OfflinePhase::StreamArranged { len });
        assert_eq!(scheme.hint_kind(), Some(PartKind::Hint));
        let (mut client, shuffled) = streamed_from(&mut stubs[0], table, 1000).await;
        let announced = scheme.hint.unwrap();
        assert_eq!(announced.len, shuffled.len() as u64);
        assert_eq!(announced.digest, *blake3::hash(&shuffled).as_bytes());

        // The same records in another order.
        let natural = records(len as usize, table.identity.id.0[0]);
        let sorted = |bytes: &[u8]| {
            let mut records: Vec<Vec<u8>> =
                bytes.chunks(record_len as usize).map(<[u8]>::to_vec).collect();
            records.sort();
            records
        };
        assert!(sorted(&shuffled) == sorted(&natural) && shuffled != natural);
        client.check(&mut stubs, count / 3).await;
    }
    // Nothing is computed for clients, and the cache does not hold the table again.
    assert!(server.tables().iter().all(|ready| ready.hint_origin == HintOrigin::None));
    assert_eq!(std::fs::read_dir(&cache_dir).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_streamed_order_is_the_same_after_a_restart_and_hints_go_on_being_of_use() {
    for scheme in FORMS {
        let tables = || vec![served_by(scheme, table("t", 1000, 7, 1))];
        let before = start(config(), tables()).await;
        let mut stubs = [stub(&before).await];
        let described = describe(&mut stubs[0]).await.tables[0].clone();
        let (mut client, shuffled) = streamed_from(&mut stubs[0], &described, 0).await;
        client.check(&mut stubs, 999).await;
        before.shutdown();
        before.wait().await.unwrap();

        let after = start(config(), tables()).await;
        let mut stubs = [stub(&after).await];
        assert_eq!(describe(&mut stubs[0]).await.tables[0], described);
        let again = fetch(&mut stubs[0], fetch_request(&described, PartKind::Hint, 0)).await;
        assert!(again.unwrap() == shuffled);
        client.check(&mut stubs, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lies_beyond_the_streamed_table_is_refused() {
    let server = start(config(), both_forms(100, 3)).await;
    let mut stub = stub(&server).await;
    for table in &describe(&mut stub).await.tables {
        let at = |offset| fetch_request(table, PartKind::Hint, offset);
        assert!(fetch(&mut stub, at(300)).await.unwrap().is_empty());
        for offset in [301, u64::MAX] {
            let status = fetch(&mut stub, at(offset)).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        }
    }
}
