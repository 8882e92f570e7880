//! TAPIR over loopback, with two servers, one of which may lie: in the table that it streams, or in
//! its answers.

use crate::common::relay::Relay;
use crate::common::{any_port, config, connect, cut, options_of, record, records_by, refusal};
use privet_client::disk::Directory;
use privet_client::store::{self, HintsCondition};
use privet_client::{ClientOptions, Target};
use privet_core::{Blame, Error, Reason};
use privet_schemes::SchemeId;
use privet_server::{RunningServer, ServedTable, Server};
use privet_wire::proto;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_stream::StreamExt as _;

const RECORDS: u64 = 1024;
const TABLE_LEN: u64 = RECORDS * 32;
const PARTITION: u64 = 32;

fn table() -> ServedTable {
    cut(records_by(SchemeId::TapirMerkle, RECORDS), PARTITION)
}

/// What an attacker between the client and a true server changes.
#[derive(Clone, Copy)]
enum Lie {
    /// This byte of the table, when it is streamed.
    Stream(u64),
    /// A bit of this byte of every answer.
    Answer(usize),
}

struct Served {
    _servers: Vec<RunningServer>,
    urls: Vec<String>,
    queries: Arc<AtomicUsize>,
}

/// Two servers, one of them perhaps behind an attacker.
async fn serve(liar: Option<(usize, Lie)>) -> Served {
    let mut served = Served { _servers: Vec::new(), urls: Vec::new(), queries: Arc::default() };
    for number in 0..2 {
        let mut config = config(any_port(), None);
        let queries = Arc::clone(&served.queries);
        config.query_observer = Some(Arc::new(move |_| {
            queries.fetch_add(1, Ordering::Relaxed);
        }));
        let server = Server::start(config, vec![table()]).await.unwrap();
        let url = format!("http://{}", server.local_addr());
        served._servers.push(server);
        served.urls.push(match liar {
            Some((liar, lie)) if liar == number => relayed(&url, lie).await,
            _ => url,
        });
    }
    served
}

/// An attacker between clients and the server at `url`.
async fn relayed(url: &str, lie: Lie) -> String {
    let mut relay = Relay::to(url);
    match lie {
        Lie::Stream(at) => {
            relay.on_fetch = Box::new(move |request, chunks| {
                let is_table = request.part == proto::Part::Table as i32;
                Box::pin(chunks.map(move |chunk| {
                    chunk.map(|mut chunk| {
                        let end = chunk.offset + chunk.data.len() as u64;
                        if is_table && (chunk.offset..end).contains(&at) {
                            let mut data = chunk.data.to_vec();
                            data[(at - chunk.offset) as usize] ^= 4;
                            chunk.data = data.into();
                        }
                        chunk
                    })
                }))
            });
        }
        Lie::Answer(at) => {
            relay.on_answer = Box::new(move |response| {
                let mut answer = response.answer.to_vec();
                answer[at] ^= 0x10;
                response.answer = answer.into();
            });
        }
    }
    relay.start().await
}

impl Served {
    fn options(&self, state: &Path) -> ClientOptions {
        let mut options = options_of(&self.urls.iter().map(String::as_str).collect::<Vec<_>>());
        options.state_dir = Some(state.to_owned());
        options
    }

    fn queries(&self) -> usize {
        self.queries.load(Ordering::Relaxed)
    }
}

/// Why the hints have ended, once the client's own thread has released them.
async fn ended(state: &Path) -> Option<String> {
    for _ in 0..1000 {
        let report = store::report(&Directory::existing(state)).unwrap();
        match &report.tables[0].hints[0].condition {
            HintsCondition::Whole { ended, .. } => return ended.clone(),
            HintsCondition::InUse => tokio::time::sleep(Duration::from_millis(10)).await,
            other => panic!("{other:?}"),
        }
    }
    panic!("they stay in use")
}

#[tokio::test]
async fn a_wrong_answer_is_the_end_for_this_process_and_every_later_one() {
    // Of the records that came, or of their proof.
    for (liar, at, name) in [(1, 0, "second"), (0, 1100, "first")] {
        let served = serve(Some((liar, Lie::Answer(at)))).await;
        let state = tempfile::tempdir().unwrap();
        let client = connect(served.options(state.path())).await;
        let targets: Vec<_> = [900, 1, 100].map(Target::index).to_vec();
        for value in client.get_many(&targets).await {
            check_is_the_end(&value.unwrap_err(), name);
        }
        client.finish().await.unwrap();
        drop(client);
        assert_eq!(served.queries(), 2, "one to each, and no other");

        for _ in 0..2 {
            check_is_the_end(&refusal(served.options(state.path())).await, name);
            assert!(ended(state.path()).await.unwrap().contains(name));
            let verification = store::verify(&Directory::existing(state.path())).unwrap();
            assert_eq!((verification.damaged.len(), verification.ended.len()), (0, 1));
        }
        assert_eq!(served.queries(), 2);

        // Beginning anew means new hints.
        store::reset(&Directory::existing(state.path()), &store::Scope::Everything).unwrap();
        let honest = serve(None).await;
        let client = connect(honest.options(state.path())).await;
        assert_eq!(client.stats().hint_was_stored, Some(false));
        assert_eq!(client.get_index(100).await.unwrap()[..], record(100));
    }
}

fn check_is_the_end(error: &Error, liar: &str) {
    assert_eq!(error.blame(), Blame::Integrity);
    assert!(error.message().contains(&format!("the {liar} server")), "{error}");
    assert_eq!(error.reason(), Some(Reason::HintsEnded), "{error}");
}

#[tokio::test]
async fn a_wrong_byte_in_the_stream_is_noticed_with_and_without_comparison() {
    for (liar, at) in [(0, 0), (0, TABLE_LEN / 2 - 1), (1, TABLE_LEN / 2), (1, TABLE_LEN - 1)] {
        let served = serve(Some((liar, Lie::Stream(at)))).await;
        let state = tempfile::tempdir().unwrap();
        let error = refusal(served.options(state.path())).await;
        assert_eq!(error.blame(), Blame::Integrity);
        assert_eq!(error.reason(), Some(Reason::WrongHalf), "{error}");
        let mut comparing = served.options(state.path());
        comparing.session.compare_streams = true;
        let error = refusal(comparing).await;
        assert_eq!(error.blame(), Blame::Integrity);
        assert!(error.message().contains(&format!("from byte {at} ")), "{error}");
        assert_eq!(served.queries(), 0);
    }
}

#[tokio::test]
async fn each_server_streams_a_half_or_everything() {
    let served = serve(None).await;
    let mut received = Vec::new();
    for compare in [false, true] {
        let state = tempfile::tempdir().unwrap();
        let mut options = served.options(state.path());
        options.session.compare_streams = compare;
        let client = connect(options).await;
        assert_eq!(client.get_index(7).await.unwrap()[..], record(7));
        received.push(client.stats().prepare.down);
    }
    assert!((TABLE_LEN..TABLE_LEN + TABLE_LEN / 8).contains(&received[0]), "{received:?}");
    assert!((2 * TABLE_LEN..2 * TABLE_LEN + TABLE_LEN / 4).contains(&received[1]), "{received:?}");
}
