//! A table that is fetched whole, over loopback: once it is stored, no lookup sends anything, and
//! damage to it is found and repaired.

use crate::common::{KEYS, connect, options, pair, record, records_by, serve, stored, table_by};
use privet_client::{Client, Progress, Target, Traffic};
use privet_core::Blame;
use privet_schemes::SchemeId;
use privet_wire::PartKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Five chunks of the state directory, and two of the wire.
const RECORDS: u64 = 10_000;

#[tokio::test]
async fn lookups_send_nothing_and_the_server_is_not_missed() {
    let (server, url) = serve(vec![table_by(SchemeId::Download, "packages", 1, 0)]).await;
    let seen: Arc<Mutex<Vec<(PartKind, u64, u64)>>> = Arc::default();
    let noting = Arc::clone(&seen);
    let client = Client::connect(options(&url), move |progress| {
        if let Progress::Part { part, done, total, fetched: true } = progress {
            noting.lock().unwrap().push((part, done, total));
        }
    });
    let client = client.await.unwrap();
    let table_len = client.table().identity.shape.bytes();
    let last = *seen.lock().unwrap().last().unwrap();
    assert_eq!(last, (PartKind::Table, table_len, table_len), "downloading the table");
    let before = client.stats();
    assert_eq!(before.hint_was_stored, Some(false));
    assert!(before.prepare.down > table_len);

    server.shutdown();
    server.wait().await.unwrap();
    let targets: Vec<_> = (0..KEYS + 20).rev().map(|k| Target::key(pair(k, 0).0)).collect();
    for (k, value) in (0..KEYS + 20).rev().zip(client.get_many(&targets).await) {
        assert_eq!(value.unwrap().map(|value| value.to_vec()), (k < KEYS).then(|| pair(k, 0).1));
    }
    assert_eq!(client.get_index(0).await.unwrap_err().blame(), Blame::ApiMisuse);
    client.finish().await.unwrap();
    let after = client.stats();
    assert_eq!(after.lookups as usize, targets.len() + 1);
    assert_eq!(after.lookup, Traffic::default());
    assert_eq!(
        (after.describe, after.prepare, after.background),
        (before.describe, before.prepare, Traffic::default())
    );
}

/// The file of the stored table.
fn table_file(state: &Path, client: &Client) -> PathBuf {
    let directory = state.join("tables").join(client.table().identity.id.to_string());
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_table = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("table-") && name.ends_with(".part")
    };
    files.into_iter().find(is_table).unwrap()
}

/// Flips a byte in the third of the stored table's chunks, where records 4096 to 6143 lie. A
/// process that has the file open sees it.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[104 + 2 * (65_536 + 16) + 1000] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// A client of the stored table, and its messages for a person.
async fn noting(url: &str, state: &Path) -> (Client, Vec<String>) {
    let notices: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = Arc::clone(&notices);
    let client = Client::connect(stored(url, state), move |progress| {
        if let Progress::Notice(notice) = progress {
            noting.lock().unwrap().push(notice);
        }
    });
    let client = client.await.unwrap();
    (client, std::mem::take(&mut *notices.lock().unwrap()))
}

#[tokio::test]
async fn a_stored_table_is_not_fetched_again_unless_it_is_damaged() {
    let (_server, url) = serve(vec![records_by(SchemeId::Download, RECORDS)]).await;
    let state = tempfile::tempdir().unwrap();
    drop(connect(stored(&url, state.path())).await);

    let second = connect(stored(&url, state.path())).await;
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare, Traffic::default(), "not even asked for");
    for index in [0, 1, 5000, RECORDS - 1] {
        assert_eq!(second.get_index(index).await.unwrap().to_vec(), record(index));
    }
    let path = table_file(state.path(), &second);
    drop(second);

    // Damaged before it is opened: the damage is found without any lookup.
    damage(&path);
    let (third, notices) = noting(&url, state.path()).await;
    assert!(third.stats().prepare.down > RECORDS * 32);
    assert_eq!(
        notices,
        [format!("{}: it is damaged; the table will be fetched again", path.display())]
    );
    assert_eq!(third.get_index(5000).await.unwrap().to_vec(), record(5000));

    // Damaged while it is open.
    let before = third.stats();
    damage(&path);
    for index in [0, 4095, 4096, 5000, 6143, 6144, RECORDS - 1] {
        match third.get_index(index).await {
            Ok(value) => {
                assert!(!(4096..6144).contains(&index));
                assert_eq!(value.to_vec(), record(index));
            }
            Err(error) => {
                assert!((4096..6144).contains(&index), "{index}: {error}");
                assert_eq!(error.blame(), Blame::Corrupted);
                assert!(error.message().contains(path.to_str().unwrap()), "{error}");
            }
        }
    }
    let stats = third.stats();
    assert_eq!((stats.prepare, stats.lookup), (before.prepare, Traffic::default()));
    assert!(path.exists(), "no lookup moves it");
    drop(third);
    let (fourth, notices) = noting(&url, state.path()).await;
    assert!(fourth.stats().prepare.down > RECORDS * 32);
    assert_eq!(notices.len(), 1);
    assert_eq!(fourth.get_index(5000).await.unwrap().to_vec(), record(5000));
}

/// The traffic to the server in the session after one that looked `index` up, and in the next one.
async fn traffic_after(url: &str, index: u64, damaged_while_open: bool) -> [[Traffic; 4]; 3] {
    let state = tempfile::tempdir().unwrap();
    let first = connect(stored(url, state.path())).await;
    let path = table_file(state.path(), &first);
    if !damaged_while_open {
        drop(first);
        damage(&path);
    } else {
        damage(&path);
        let met = first.get_index(index).await.is_err();
        assert_eq!(met, (4096..6144).contains(&index), "the damage is where it was meant to be");
    }
    let mut traffic = [[Traffic::default(); 4]; 3];
    for session in &mut traffic {
        let client = connect(stored(url, state.path())).await;
        assert_eq!(client.get_index(index).await.unwrap().to_vec(), record(index));
        client.finish().await.unwrap();
        let stats = client.stats();
        *session = [stats.describe, stats.prepare, stats.background, stats.lookup];
    }
    traffic
}

#[tokio::test]
async fn whether_a_damaged_table_is_fetched_again_does_not_depend_on_what_was_looked_up() {
    let (_server, url) = serve(vec![records_by(SchemeId::Download, RECORDS)]).await;
    for damaged_while_open in [false, true] {
        let in_the_damaged_chunk = traffic_after(&url, 5000, damaged_while_open).await;
        let elsewhere = traffic_after(&url, 7, damaged_while_open).await;
        assert_eq!(in_the_damaged_chunk, elsewhere);
        let [again, stored, _] = elsewhere.map(|[_, prepare, ..]| prepare);
        assert!(again.down > RECORDS * 32 && stored == Traffic::default(), "{elsewhere:?}");
    }
}

#[tokio::test]
async fn the_state_directory_tells_of_a_stored_table() {
    let (_server, url) = serve(vec![records_by(SchemeId::Download, RECORDS)]).await;
    let state = tempfile::tempdir().unwrap();
    let client = connect(stored(&url, state.path())).await;
    let path = table_file(state.path(), &client);
    let root = privet_client::disk::Directory::existing(state.path());
    let report = privet_client::store::report(&root).unwrap();
    let parts: Vec<_> = report.tables[0].parts.iter().map(|part| part.kind.as_str()).collect();
    assert_eq!(parts, ["layout", "table"]);
    let verified = privet_client::store::verify(&root).unwrap();
    assert_eq!((verified.files, verified.damaged.len()), (3, 0), "layout, table and pins");

    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let verified = privet_client::store::verify(&root).unwrap();
    assert_eq!(verified.damaged.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&path]);
}
