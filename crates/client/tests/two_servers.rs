//! Two servers of DPF-PIR over loopback: either may be restarted, and neither may contradict the
//! other.

use crate::common::{
    KEYS, any_port, check, config, connect, metrics, options, options_of, pair, refusal, restarted,
    serve, table_by,
};
use privet_client::{Client, Progress, Target};
use privet_core::{Blame, Reason};
use privet_schemes::SchemeId;
use privet_server::{RunningServer, ServedTable, Server};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

fn packages(version: u8) -> ServedTable {
    table_by(SchemeId::Dpf, "packages", 1, version)
}

fn url(server: &RunningServer) -> String {
    format!("http://{}", server.local_addr())
}

/// One server or two, each of which is restarted under load; every third time, requests under way
/// are cut off instead of finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_restarted_under_load_lose_no_client() {
    for (scheme, count) in [(SchemeId::SimplePir, 1), (SchemeId::Dpf, 2)] {
        let packages = || table_by(scheme, "packages", 1, 0);
        let (mut servers, mut urls) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (server, url) = serve(vec![packages()]).await;
            servers.push(server);
            urls.push(url);
        }
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let clients: Vec<_> = (0..5)
            .map(|client_number| {
                let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
                let options = options_of(&urls);
                tokio::spawn(async move {
                    let client = connect(options).await;
                    let mut k = client_number;
                    while !stop.load(Ordering::Relaxed) {
                        let keys = [0, 1, 2, 3].map(|more| (k + more) % (KEYS + 10));
                        let targets = keys.map(|k| Target::key(pair(k, 0).0));
                        for (k, value) in keys.into_iter().zip(client.get_many(&targets).await) {
                            let value = value.unwrap().map(|value| value.to_vec());
                            assert_eq!(value, (k < KEYS).then(|| pair(k, 0).1));
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        k += 4;
                    }
                })
            })
            .collect();
        let some_more = async || {
            let due = done.load(Ordering::Relaxed) + 40;
            // A client that has ended has failed: waiting for it shows that.
            while done.load(Ordering::Relaxed) < due && !clients.iter().any(JoinHandle::is_finished)
            {
                tokio::task::yield_now().await;
            }
        };
        for restart in 0..6 {
            some_more().await;
            let server = servers.remove(0);
            if restart % 3 == 2 {
                server.shutdown_handle().abort();
            }
            servers.push(restarted(server, packages()).await);
        }
        some_more().await;
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_table_that_is_updated_at_one_server_first_is_not_used_until_it_is_at_both() {
    let (one, one_url) = serve(vec![packages(0)]).await;
    let (other, other_url) = serve(vec![packages(0)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = options_of(&[&one_url, &other_url]);
    stored.state_dir = Some(state.path().to_owned());
    let client = connect(stored.clone()).await;
    check(&client, 1, 0).await;

    let other = restarted(other, packages(7)).await;
    let error = client.get(&pair(1, 0).0).await.unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity, "in the middle of a session: {error}");
    assert!(
        error.message().starts_with("the second server went from version 0 to version 7"),
        "{error}"
    );
    for accept_new_table in [false, true] {
        stored.session.accept_new_table = accept_new_table;
        let error = refusal(stored.clone()).await;
        assert_eq!(error.blame(), Blame::Integrity);
        assert_eq!(error.reason(), Some(Reason::VersionsDiffer), "{error}");
    }

    let one = restarted(one, packages(7)).await;
    stored.session.accept_new_table = false;
    let error = refusal(stored.clone()).await;
    assert_eq!(error.blame(), Blame::Integrity);
    assert_eq!(error.reason(), Some(Reason::TableReplaced), "{error}");
    stored.session.accept_new_table = true;
    let client = connect(stored.clone()).await;
    check(&client, 1, 7).await;

    stored.session.accept_new_table = false;
    stored.urls.reverse();
    connect(stored.clone()).await;

    // Each server is compared with its own pin, in either role. Beside a server that was never
    // seen, only the other one's pin can reveal the change.
    let (one, other) = (restarted(one, packages(0)).await, restarted(other, packages(0)).await);
    let (stranger, _) = serve(vec![packages(0)]).await;
    for known in [&one, &other] {
        for (urls, place) in [([known, &stranger], "first"), ([&stranger, known], "second")] {
            stored.urls = urls.map(url).to_vec();
            let error = refusal(stored.clone()).await;
            assert_eq!(error.blame(), Blame::Integrity);
            let said = format!(
                "table packages of the {place} server went back from version 7 to version 0"
            );
            assert!(error.message().starts_with(&said), "{error}");
        }
    }
}

/// Whether `server` has had any request, as its metrics say.
async fn was_asked(server: &RunningServer) -> bool {
    let page = metrics(server).await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("privet_connections "), "{page}");
    page.lines().any(|line| line.starts_with("privet_requests_total{"))
}

#[tokio::test]
async fn one_server_named_twice_is_refused_before_anything_is_sent() {
    let mut config = config(any_port(), None);
    config.metrics_listen = Some(any_port());
    let server = Server::start(config, vec![packages(0)]).await.unwrap();
    let (address, port) = (server.local_addr(), server.local_addr().port());
    let (one, again) = (format!("http://{address}"), format!("HTTP://{address}/"));
    let error = refusal(options_of(&[&one, &again])).await;
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().starts_with(&format!("{one} is named twice")), "{error}");
    let elsewhere = format!("http://localhost:{port}");
    let error = refusal(options_of(&[&one, &elsewhere])).await;
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().starts_with(&format!("{one} and {elsewhere} are one server")));
    assert!(!was_asked(&server).await);

    let error = refusal(options(&one)).await;
    assert_eq!(error.reason(), Some(Reason::NumberOfServers), "{error}");
    assert!(was_asked(&server).await, "what is sent can be seen");
}

#[tokio::test]
async fn two_servers_elsewhere_are_not_asked_in_plain_text_unless_that_is_allowed() {
    let mut plain = options_of(&["http://one.invalid:7700", "http://another.invalid:7700"]);
    let error = refusal(plain.clone()).await;
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert_eq!(error.reason(), Some(Reason::NotEncrypted), "{error}");
    plain.insecure = true;
    let error = refusal(plain).await;
    assert_ne!(error.blame(), Blame::ApiMisuse, "asked, but there is no such host: {error}");
}

#[tokio::test]
async fn two_servers_on_one_host_are_worth_a_word() {
    let notices: Arc<Mutex<Vec<String>>> = Arc::default();
    for (urls, expected) in [
        (["https://privet.invalid:1", "https://PRIVET.invalid:2"], 1),
        (["https://privet.invalid:1", "https://another.invalid:1"], 0),
        (["https://localhost:1", "https://localhost:2"], 0),
    ] {
        let mut options = options_of(&urls);
        // So that nothing is sent to hosts that do not exist.
        options.ca_file = Some("/nowhere/authorities.pem".into());
        let noting = Arc::clone(&notices);
        let refused = Client::connect(options, move |progress| match progress {
            Progress::Notice(notice) => noting.lock().unwrap().push(notice),
            other => panic!("{other:?}"),
        });
        assert_eq!(refused.await.err().unwrap().blame(), Blame::ApiMisuse);
        let told = std::mem::take(&mut *notices.lock().unwrap());
        assert_eq!(told.len(), expected, "{told:?}");
        assert!(told.iter().all(|notice| notice.contains("on one host")), "{told:?}");
    }
}
