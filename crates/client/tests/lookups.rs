//! Clients and servers over loopback, many at once and in bad moments: stored hints are used, and a
//! restart loses no lookup. What holds for every scheme is in `end_to_end.rs`.

use crate::common::{
    KEYS, check, connect, options, pair, refusal, restarted, serve, stored, table,
};
use privet_client::{Client, Progress, Target};
use privet_core::{Blame, Reason};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Notices = Arc<Mutex<Vec<String>>>;

fn noting(notices: &Notices) -> impl FnMut(Progress) + Send + 'static {
    let notices = Arc::clone(notices);
    move |progress| {
        if let Progress::Notice(notice) = progress {
            notices.lock().unwrap().push(notice);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_lookups_at_once() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let clients: Vec<_> = (0..20)
        .map(|client_number| {
            let mut eager = options(&url);
            eager.session.in_flight = 50;
            tokio::spawn(async move {
                let client = connect(eager).await;
                let keys: Vec<_> =
                    (0..50).map(|i| (client_number * 50 + i) % (KEYS + 10)).collect();
                let targets: Vec<_> = keys.iter().map(|k| Target::key(pair(*k, 0).0)).collect();
                for (k, value) in keys.into_iter().zip(client.get_many(&targets).await) {
                    assert_eq!(
                        value.unwrap().map(|value| value.to_vec()),
                        (k < KEYS).then(|| pair(k, 0).1)
                    );
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn a_stored_hint_is_used_and_a_damaged_one_fetched_again() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let stored = stored(&url, state.path());

    let first = connect(stored.clone()).await;
    assert_eq!(first.stats().hint_was_stored, Some(false));
    let second = connect(stored.clone()).await;
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare.down, 0);
    check(&second, 9, 0).await;

    let table_directory = state.path().join("tables").join(first.table().identity.id.to_string());
    for part in ["layout", "hint"] {
        let files = std::fs::read_dir(&table_directory).unwrap().map(|entry| entry.unwrap().path());
        let file = files
            .into_iter()
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(part))
            .unwrap();
        let mut bytes = std::fs::read(&file).unwrap();
        // The header of the hint, or the contents of the layout: both show before the first lookup.
        let at = if part == "hint" { 40 } else { bytes.len() - 20 };
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();

        let notices = Notices::default();
        let third = Client::connect(stored.clone(), noting(&notices)).await.unwrap();
        check(&third, 9, 0).await;
        let notices = notices.lock().unwrap();
        assert!(notices.len() == 1 && notices[0].contains("fetched again"), "{notices:?}");
    }
}

#[tokio::test]
async fn clients_that_start_at_once_share_one_download() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let stored = stored(&url, state.path());
    let clients: Vec<_> = (0..12)
        .map(|k| {
            let stored = stored.clone();
            tokio::spawn(async move {
                let client = connect(stored).await;
                check(&client, k, 0).await;
                client.stats()
            })
        })
        .collect();
    let mut fetched = 0;
    for client in clients {
        fetched += usize::from(client.await.unwrap().hint_was_stored == Some(false));
    }
    assert_eq!(fetched, 1, "one fetched the hint, eleven waited for it or found it");
}

#[tokio::test]
async fn a_changed_table_is_refused_until_accepted() {
    let (server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = stored(&url, state.path());
    let client = connect(stored.clone()).await;
    let old_files = state.path().join("tables").join(client.table().identity.id.to_string());
    assert!(old_files.is_dir());
    let _server = restarted(server, table("packages", 2, 7)).await;

    let error = client.get(&pair(1, 0).0).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity, "in the middle of a session: {error}");
    let error = refusal(stored.clone()).await;
    assert_eq!(error.blame(), Blame::Integrity);
    assert_eq!(error.reason(), Some(Reason::TableReplaced), "{error}");

    stored.session.accept_new_table = true;
    let client = connect(stored.clone()).await;
    check(&client, 1, 7).await;
    let left: Vec<_> =
        std::fs::read_dir(&old_files).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "the old table's files are gone");
    stored.session.accept_new_table = false;
    connect(stored).await;
}

#[tokio::test]
async fn one_server_has_several_tables() {
    let (_server, url) = serve(vec![table("one", 1, 0), table("two", 2, 9)]).await;
    let error = refusal(options(&url)).await;
    assert_eq!(error.message(), "the server has several tables: one, two; choose one by name");
    assert_eq!(error.reason(), Some(Reason::TableNotChosen));
    let mut chosen = options(&url);
    chosen.session.table = Some("two".to_owned());
    let client = connect(chosen).await;
    check(&client, 4, 9).await;
}

#[tokio::test]
async fn a_stalled_download_of_another_process_is_not_waited_for_for_ever() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = stored(&url, state.path());
    stored.busy_patience = Duration::from_millis(200);
    let table_directory =
        state.path().join("tables").join(format!("{:032x}", u128::from_be_bytes([1; 16])));
    std::fs::create_dir_all(&table_directory).unwrap();
    let lock = std::fs::File::create(table_directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let error = refusal(stored.clone()).await;
    assert_eq!(error.blame(), Blame::Unavailable);
    assert_eq!(error.reason(), Some(Reason::UsedByAnotherProcess), "{error}");
    drop(lock);
    connect(stored).await;
}
