//! Clients and servers over loopback, many at once and in bad moments: stored hints are used, and a
//! restart loses no lookup. What holds for every scheme is in `end_to_end.rs`.

use crate::common::{KEYS, any_port, config, options, pair, serve, table};
use privet_client::{Client, Progress, Target};
use privet_core::{Blame, Reason};
use privet_server::Server;
use std::sync::atomic::{AtomicUsize, Ordering};
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
                let client = Client::connect(eager, |_| {}).await.unwrap();
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
    let mut stored = options(&url);
    stored.state_dir = Some(state.path().to_owned());

    let first = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_eq!(first.stats().hint_was_stored, Some(false));
    let second = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare.down, 0);
    assert_eq!(second.get(&pair(9, 0).0).await.unwrap().unwrap().to_vec(), pair(9, 0).1);

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
        assert_eq!(third.get(&pair(9, 0).0).await.unwrap().unwrap().to_vec(), pair(9, 0).1);
        let notices = notices.lock().unwrap();
        assert!(notices.len() == 1 && notices[0].contains("fetched again"), "{notices:?}");
    }
}

#[tokio::test]
async fn clients_that_start_at_once_share_one_download() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = options(&url);
    stored.state_dir = Some(state.path().to_owned());
    let clients: Vec<_> = (0..12)
        .map(|k| {
            let stored = stored.clone();
            tokio::spawn(async move {
                let client = Client::connect(stored, |_| {}).await.unwrap();
                assert_eq!(
                    client.get(&pair(k, 0).0).await.unwrap().unwrap().to_vec(),
                    pair(k, 0).1
                );
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_restarted_under_load_loses_no_client() {
    let mut server =
        Server::start(config(any_port(), None), vec![table("packages", 1, 0)]).await.unwrap();
    let address = server.local_addr();
    let url = format!("http://{address}");
    let done = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..6)
        .map(|client_number| {
            let (done, stop, url) = (Arc::clone(&done), Arc::clone(&stop), url.clone());
            tokio::spawn(async move {
                let client = Client::connect(options(&url), |_| {}).await.unwrap();
                let mut k = client_number;
                while stop.load(Ordering::Relaxed) == 0 {
                    let targets: Vec<_> =
                        (0..4).map(|i| Target::key(pair((k + i) % KEYS, 0).0)).collect();
                    for (i, value) in client.get_many(&targets).await.into_iter().enumerate() {
                        assert_eq!(value.unwrap().unwrap().to_vec(), pair((k + i) % KEYS, 0).1);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    k += 4;
                }
            })
        })
        .collect();
    for restart in 0..4 {
        let due = done.load(Ordering::Relaxed) + 40;
        while done.load(Ordering::Relaxed) < due {
            tokio::task::yield_now().await;
        }
        // Every other time requests under way are cut off instead of finished.
        if restart % 2 == 0 {
            server.shutdown()
        } else {
            server.shutdown_handle().abort()
        }
        server.wait().await.unwrap();
        server = Server::start(config(address, None), vec![table("packages", 1, 0)]).await.unwrap();
    }
    let due = done.load(Ordering::Relaxed) + 40;
    while done.load(Ordering::Relaxed) < due {
        tokio::task::yield_now().await;
    }
    stop.store(1, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn a_changed_table_is_refused_until_accepted() {
    let server =
        Server::start(config(any_port(), None), vec![table("packages", 1, 0)]).await.unwrap();
    let address = server.local_addr();
    let state = tempfile::tempdir().unwrap();
    let mut stored = options(&format!("http://{address}"));
    stored.state_dir = Some(state.path().to_owned());
    let client = Client::connect(stored.clone(), |_| {}).await.unwrap();
    let old_files = state.path().join("tables").join(client.table().identity.id.to_string());
    assert!(old_files.is_dir());
    server.shutdown();
    server.wait().await.unwrap();
    let _server =
        Server::start(config(address, None), vec![table("packages", 2, 7)]).await.unwrap();

    let error = client.get(&pair(1, 0).0).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity, "in the middle of a session: {error}");
    let error = Client::connect(stored.clone(), |_| {}).await.err().unwrap();
    assert_eq!(error.blame(), Blame::Integrity);
    assert_eq!(error.reason(), Some(Reason::TableReplaced), "{error}");

    stored.session.accept_new_table = true;
    let client = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_eq!(client.get(&pair(1, 7).0).await.unwrap().unwrap().to_vec(), pair(1, 7).1);
    let left: Vec<_> =
        std::fs::read_dir(&old_files).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "the old table's files are gone");
    stored.session.accept_new_table = false;
    Client::connect(stored, |_| {}).await.unwrap();
}

#[tokio::test]
async fn one_server_has_several_tables() {
    let (_server, url) = serve(vec![table("one", 1, 0), table("two", 2, 9)]).await;
    let error = Client::connect(options(&url), |_| {}).await.err().unwrap();
    assert_eq!(error.message(), "the server has several tables: one, two; choose one by name");
    assert_eq!(error.reason(), Some(Reason::TableNotChosen));
    let mut chosen = options(&url);
    chosen.session.table = Some("two".to_owned());
    let client = Client::connect(chosen, |_| {}).await.unwrap();
    assert_eq!(client.get(&pair(4, 9).0).await.unwrap().unwrap().to_vec(), pair(4, 9).1);
}

#[tokio::test]
async fn a_stalled_download_of_another_process_is_not_waited_for_for_ever() {
    let (_server, url) = serve(vec![table("packages", 1, 0)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = options(&url);
    stored.state_dir = Some(state.path().to_owned());
    stored.busy_patience = Duration::from_millis(200);
    let table_directory =
        state.path().join("tables").join(format!("{:032x}", u128::from_be_bytes([1; 16])));
    std::fs::create_dir_all(&table_directory).unwrap();
    let lock = std::fs::File::create(table_directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let error = Client::connect(stored.clone(), |_| {}).await.err().unwrap();
    assert_eq!(error.blame(), Blame::Unavailable);
    assert_eq!(error.reason(), Some(Reason::UsedByAnotherProcess), "{error}");
    drop(lock);
    Client::connect(stored, |_| {}).await.unwrap();
}
