//! Clients with single-use hints over loopback: hints are prepared, stored, used up and followed by the next, and one process at a time has them.

#![allow(clippy::unwrap_used)]

mod common;

use common::{config, options, serve};
use privet_client::state::{Pin, State};
use privet_client::store::Store;
use privet_client::{Client, ClientOptions, Progress, Target};
use privet_core::{Blame, Epoch, Reason, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use privet_server::{RunningServer, ServedTable, Server};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::{IndexLayout, RecordLayout};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// 32 partitions of 32 records: a generation serves 1280 queries, so that the next begins to be prepared after 320.
const RECORDS: u64 = 1024;
const RECORD_LEN: u64 = 16;
const GENERATION: u64 = 1280;

fn record(index: u64) -> Vec<u8> {
    blake3::hash(&index.to_le_bytes()).as_bytes()[..RECORD_LEN as usize].to_vec()
}

async fn served() -> (RunningServer, String) {
    serve(vec![table_by(SchemeId::DummySubsets)]).await
}

fn table_by(scheme: SchemeId) -> ServedTable {
    let shape = TableShape::new(RECORDS, RECORD_LEN).unwrap();
    let records: Vec<u8> = (0..RECORDS).flat_map(record).collect();
    let layout = RecordLayout::Index(IndexLayout::for_lengths(RECORD_LEN, RECORD_LEN)).encode();
    let parts =
        DigestParts { layout: layout_digest(&layout), records: *blake3::hash(&records).as_bytes() };
    let identity = TableIdentity {
        id: TableId([5; 16]),
        epoch: Epoch(0),
        digest: parts.combine(shape),
        shape,
    };
    let (name, layout) = ("records".to_owned(), layout.into());
    ServedTable {
        name,
        identity,
        layout,
        records: Box::new(records),
        scheme,
        tuning: Tuning::default(),
        planned_for: None,
        points: None,
        updates: None,
    }
}

fn stored(url: &str, state: &Path) -> ClientOptions {
    let mut options = options(url);
    options.state_dir = Some(state.to_owned());
    options
}

async fn get_all(client: &Client, indices: impl Iterator<Item = u64>) {
    let indices: Vec<_> = indices.map(|index| index % RECORDS).collect();
    let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
    for (index, value) in indices.iter().zip(client.get_many(&targets).await) {
        assert_eq!(value.unwrap().unwrap().to_vec(), record(*index));
    }
}

#[tokio::test]
async fn a_long_lived_client_goes_from_generation_to_generation() {
    let (_server, url) = served().await;
    let client = Client::connect(options(&url), |_| {}).await.unwrap();
    assert_eq!(client.table().scheme.plan.scheme, SchemeId::DummySubsets);
    assert!(client.stats().prepare.down > RECORDS * RECORD_LEN);
    assert_eq!(client.stats().background.down, 0);
    for round in 0..30 {
        // Of one record alone, of a few, of all.
        get_all(&client, (0..100).map(|k| [7, k % 3, k * 11 + round][round as usize % 3])).await;
        client.finish().await.unwrap();
    }
    let stats = client.stats();
    assert_eq!(stats.lookups, 3000);
    let generations = stats.background.down / (RECORDS * RECORD_LEN);
    assert_eq!(
        generations,
        3000_u64.div_ceil(GENERATION) - 1 + u64::from(3000 % GENERATION > GENERATION / 4)
    );
}

#[tokio::test]
async fn stored_hints_are_used_by_the_next_process_and_only_by_one_at_a_time() {
    let (_server, url) = served().await;
    let state = tempfile::tempdir().unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = |seen: &Arc<Mutex<Vec<String>>>| {
        let seen = Arc::clone(seen);
        move |progress: Progress| seen.lock().unwrap().push(format!("{progress:?}"))
    };
    let first = Client::connect(stored(&url, state.path()), |_| {}).await.unwrap();
    assert_eq!(first.stats().hint_was_stored, Some(false));
    get_all(&first, 0..20).await;
    assert!(first.stats().journal_time > Duration::ZERO);
    first.finish().await.unwrap();

    let mut impatient = stored(&url, state.path());
    impatient.busy_patience = Duration::from_millis(200);
    let Err(error) = Client::connect(impatient, noting(&seen)).await else {
        panic!("two processes have the hints")
    };
    assert_eq!(error.blame(), Blame::Unavailable);
    assert_eq!(error.reason(), Some(Reason::UsedByAnotherProcess), "{error}");
    assert_eq!(seen.lock().unwrap().iter().filter(|said| said.starts_with("Waiting")).count(), 1);

    drop(first);
    let second = Client::connect(stored(&url, state.path()), |_| {}).await.unwrap();
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare.down, 0);
    get_all(&second, 0..20).await;
    assert_eq!(second.stats().lookups, 20);
}

#[tokio::test]
async fn short_lived_clients_prepare_by_the_share_and_never_wait() {
    let (_server, url) = served().await;
    let state = tempfile::tempdir().unwrap();
    let table = RECORDS * RECORD_LEN;
    let mut streamed = 0;
    for process in 0..20 {
        let client = Client::connect(stored(&url, state.path()), |_| {}).await.unwrap();
        let stats = client.stats();
        assert_eq!(stats.hint_was_stored, Some(process > 0), "process {process}");
        get_all(&client, (0..70).map(|k| k * 13 + process)).await;
        client.finish().await.unwrap();
        streamed += client.stats().background.down;
    }
    // 1400 lookups: the second generation is in use since the 1281st.
    assert!((table..2 * table).contains(&streamed), "{streamed} bytes streamed");
}

#[test]
fn programs_without_a_runtime_finish_too() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_server, url) = runtime.block_on(served());
    let client = Client::connect_blocking(options(&url), |_| {}).unwrap();
    let found = client.get_target_blocking(Target::index(3)).unwrap();
    assert_eq!(found.unwrap().to_vec(), record(3));
    client.finish_blocking().unwrap();
}

/// The same server, at the same address, with the same table by another scheme.
async fn restarted(server: RunningServer, scheme: SchemeId) -> RunningServer {
    let address = server.local_addr();
    server.shutdown();
    server.wait().await.unwrap();
    Server::start(config(address, None), vec![table_by(scheme)]).await.unwrap()
}

/// The hints of a scheme hold the journal of what was looked up by it.
#[tokio::test]
async fn hints_are_erased_once_no_server_that_is_known_serves_the_table_by_their_scheme() {
    let ((one, one_url), (other, other_url)) = (served().await, served().await);
    let state = tempfile::tempdir().unwrap();
    let mut journals = Vec::new();
    for url in [&one_url, &other_url] {
        let client = Client::connect(stored(url, state.path()), |_| {}).await.unwrap();
        get_all(&client, 0..5).await;
        client.finish().await.unwrap();
        let directory = state.path().join("tables").join(client.table().identity.id.to_string());
        journals.push(directory.join("private-dummy-subsets"));
    }
    let hints = &journals[0];
    assert_eq!(*hints, journals[1], "one table, one set of hints");

    let accepting = |url: &str| {
        let mut options = stored(url, state.path());
        options.accept_new_table = true;
        options
    };
    let _one = restarted(one, SchemeId::Download).await;
    let client = Client::connect(accepting(&one_url), |_| {}).await.unwrap();
    get_all(&client, 0..5).await;
    assert!(hints.join("anchor").exists(), "the other server's pin calls for them");
    let client = Client::connect(stored(&other_url, state.path()), |_| {}).await.unwrap();
    assert_eq!(client.stats().hint_was_stored, Some(true));
    drop(client);

    let _other = restarted(other, SchemeId::Download).await;
    let refused = Client::connect(stored(&other_url, state.path()), |_| {}).await;
    assert_eq!(refused.err().unwrap().blame(), Blame::Integrity);
    assert!(hints.join("anchor").exists(), "nobody has accepted anything");
    let client = Client::connect(accepting(&other_url), |_| {}).await.unwrap();
    get_all(&client, 0..5).await;
    assert!(!hints.exists());
}

#[tokio::test]
async fn a_pin_kept_under_an_earlier_spelling_of_the_address_counts() {
    let (_server, url) = served().await;
    let state = tempfile::tempdir().unwrap();
    let client = Client::connect(stored(&url, state.path()), |_| {}).await.unwrap();
    let table = client.table().identity;
    drop(client);
    let mut store = Store::open(state.path()).unwrap();
    let pins = store.pins(&url).unwrap();
    let [(name, pin)] = &pins[..] else { panic!("one table") };
    assert_eq!(pin.table, table);

    // As a former version would have left it, of a table in another version.
    let spelt = url.replace("http", "HTTP");
    let newer = Pin { table: TableIdentity { epoch: Epoch(9), ..table }, ..*pin };
    let state = tempfile::tempdir().unwrap();
    let mut store = Store::open(state.path()).unwrap();
    store.pin(&spelt, name, &newer).unwrap();
    for written in [format!("{spelt}/"), url.clone()] {
        let refused = Client::connect(stored(&written, state.path()), |_| {}).await;
        let error = refused.err().expect("another version was pinned");
        assert_eq!(error.blame(), Blame::Integrity);
        assert!(error.message().contains("went back from version 9"), "{error}");
    }
    assert_eq!(store.pins(&url).unwrap(), [(name.clone(), newer)]);
    assert_eq!(store.pins(&spelt).unwrap(), []);
}
