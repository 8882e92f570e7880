//! Clients with single-use hints over loopback: one process at a time holds them, and they are
//! erased in time.

use crate::common::{connect, record, records_by, restarted, serve, stored};
use privet_client::state::{Pin, State};
use privet_client::store::Store;
use privet_client::{Client, Progress, Target};
use privet_core::{Blame, Epoch, Reason, TableIdentity};
use privet_schemes::SchemeId;
use privet_server::{RunningServer, ServedTable};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const RECORDS: u64 = 1024;

async fn served() -> (RunningServer, String) {
    serve(vec![table_by(SchemeId::DummySubsets)]).await
}

fn table_by(scheme: SchemeId) -> ServedTable {
    records_by(scheme, RECORDS)
}

async fn get_all(client: &Client, indices: impl Iterator<Item = u64>) {
    let indices: Vec<_> = indices.map(|index| index % RECORDS).collect();
    let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
    for (index, value) in indices.iter().zip(client.get_many(&targets).await) {
        assert_eq!(value.unwrap().unwrap().to_vec(), record(*index));
    }
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
    let first = connect(stored(&url, state.path())).await;
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
    let second = connect(stored(&url, state.path())).await;
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare.down, 0);
    get_all(&second, 0..20).await;
    assert_eq!(second.stats().lookups, 20);
}

/// The hints of a scheme hold the journal of what was looked up by it.
#[tokio::test]
async fn hints_are_erased_once_no_server_that_is_known_serves_the_table_by_their_scheme() {
    let ((one, one_url), (other, other_url)) = (served().await, served().await);
    let state = tempfile::tempdir().unwrap();
    let mut journals = Vec::new();
    for url in [&one_url, &other_url] {
        let client = connect(stored(url, state.path())).await;
        get_all(&client, 0..5).await;
        client.finish().await.unwrap();
        let directory = state.path().join("tables").join(client.table().identity.id.to_string());
        journals.push(directory.join("private-dummy-subsets"));
    }
    let hints = &journals[0];
    assert_eq!(*hints, journals[1], "one table, one set of hints");

    let accepting = |url: &str| {
        let mut options = stored(url, state.path());
        options.session.accept_new_table = true;
        options
    };
    let _one = restarted(one, table_by(SchemeId::Download)).await;
    let client = connect(accepting(&one_url)).await;
    get_all(&client, 0..5).await;
    assert!(hints.join("anchor").exists(), "the other server's pin calls for them");
    let client = connect(stored(&other_url, state.path())).await;
    assert_eq!(client.stats().hint_was_stored, Some(true));
    drop(client);

    let _other = restarted(other, table_by(SchemeId::Download)).await;
    let refused = Client::connect(stored(&other_url, state.path()), |_| {}).await;
    assert_eq!(refused.err().unwrap().blame(), Blame::Integrity);
    assert!(hints.join("anchor").exists(), "nobody has accepted anything");
    let client = connect(accepting(&other_url)).await;
    get_all(&client, 0..5).await;
    assert!(!hints.exists());
}

#[tokio::test]
async fn a_pin_kept_under_an_earlier_spelling_of_the_address_counts() {
    let (_server, url) = served().await;
    let state = tempfile::tempdir().unwrap();
    let client = connect(stored(&url, state.path())).await;
    let table = client.table().identity;
    drop(client);
    let mut store = Store::open(state.path()).unwrap();
    let pins = store.pins(&url).unwrap();
    let [(name, pin)] = &pins[..] else { panic!("one table") };
    assert_eq!(pin.table, table);

    // As an earlier release would have left it, from a table in another version.
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
