//! Switching over: no client notices, both versions are served, and a retired version leaves
//! nothing behind.

use super::*;
use privet_core::{Blame, ReadRecords};
use privet_wire::limits::MAX_EARLIER;
use privet_wire::{PartKind, proto};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Weak};
use std::time::Instant;
use tonic::Code;

const SCHEMES: [SchemeId; 3] =
    [SchemeId::SimplePir, SchemeId::Dpf, privet_laboratory::FINITE_DIFFERENCES];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_query_fails_while_versions_follow_each_other() {
    const CLIENTS: usize = 4;
    const VERSIONS: u64 = 3 * MAX_EARLIER as u64;
    privet_laboratory::register();
    for scheme in SCHEMES {
        let mut changing = Changing::new(scheme, 600, 5);
        let first = changing.last().0.epoch.0;
        let server = start(keeping(), vec![changing.served()]).await;
        let known = Arc::new(Mutex::new(changing.clone()));
        let done = Arc::new(AtomicBool::new(false));
        let reached: Vec<_> = (0..CLIENTS).map(|_| Arc::new(AtomicU64::new(0))).collect();
        let clients: Vec<_> = reached
            .iter()
            .cloned()
            .map(|reached| {
                let (known, done) = (Arc::clone(&known), Arc::clone(&done));
                let address = server.local_addr();
                tokio::spawn(async move {
                    let mut stub = stub_on(endpoint(address).connect().await.unwrap());
                    let mut queries = 0u64;
                    while !done.load(Ordering::SeqCst) {
                        let mut client = TableClient::new(&mut stub, "t").await;
                        let identity = client.description.identity;
                        // It stays with its version for a while, however the table changes.
                        for _ in 0..20 {
                            let index = queries * 31 % identity.shape.records();
                            let record = client.look_up(&mut stub, index).await.unwrap();
                            let expected =
                                known.lock().unwrap().record(identity.epoch, index).to_vec();
                            assert_eq!(record, expected, "{index} in {identity:?}");
                            queries += 1;
                        }
                        reached.store(identity.epoch.0, Ordering::SeqCst);
                    }
                    queries
                })
            })
            .collect();
        for epoch in first + 1..=first + VERSIONS {
            let next = changing.next(5, epoch % 3);
            *known.lock().unwrap() = changing.clone();
            server.update("t", next).await.unwrap();
            assert_eq!(versions_served(&server).await[0], epoch);
            // Only then are versions retired that no client uses any more.
            let follows = |client: &Arc<AtomicU64>| client.load(Ordering::SeqCst) + 1 >= epoch;
            let alive = |client: &tokio::task::JoinHandle<u64>| !client.is_finished();
            while !reached.iter().all(follows) && clients.iter().all(alive) {
                tokio::task::yield_now().await;
            }
        }
        done.store(true, Ordering::SeqCst);
        for client in clients {
            assert!(client.await.unwrap() > 0);
        }
        let refused = metric(&server, "privet_shed_total{what=\"queries\",why=\"total\"}").await;
        assert_eq!(refused, 0.0);
        assert_eq!(
            metric(&server, "privet_table_epoch{table=\"t\"}").await as u64,
            first + VERSIONS
        );
        assert_eq!(metric(&server, "privet_updates_total{table=\"t\"}").await as u64, VERSIONS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_are_served_side_by_side_and_others_are_refused() {
    privet_laboratory::register();
    for scheme in SCHEMES {
        let mut changing = Changing::new(scheme, 300, 4);
        let server = start(keeping(), vec![changing.served()]).await;
        let mut stub = stub(&server).await;
        let mut old = TableClient::new(&mut stub, "t").await;
        let ready = server.update("t", changing.next(9, 1)).await.unwrap();
        assert_eq!(ready.description.identity, changing.last().0);

        let described = describe(&mut stub).await.tables[0].clone();
        let served: Vec<_> = described.versions().map(|version| version.identity).collect();
        assert_eq!(served, [changing.versions[1].0, changing.versions[0].0]);
        let mut new = TableClient::of(&mut stub, described.clone()).await;
        for client in [&mut old, &mut new] {
            let identity = client.description.identity;
            for index in (0..identity.shape.records()).step_by(17) {
                let record = client.look_up(&mut stub, index).await.unwrap();
                assert_eq!(record, changing.record(identity.epoch, index));
            }
        }
        for (version, (_, records)) in described.versions().zip(changing.versions.iter().rev()) {
            let fetched = fetch(&mut stub, fetch_request(version, PartKind::Table, 0)).await;
            assert_eq!(fetched.unwrap(), *records);
        }
        // One version's epoch with the other's parameters, and a version that is not served.
        let mixed = fetch_request(&old.description, PartKind::Layout, 0);
        let mixed = privet_wire::FetchRequest { epoch: described.identity.epoch, ..mixed };
        let gone = privet_wire::FetchRequest { epoch: Epoch(4), ..mixed };
        for (request, what) in [(mixed, "other parameters"), (gone, "is at epoch 6 here, not 4")] {
            let refused = fetch(&mut stub, request).await.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition);
            assert!(refused.message().contains(what), "{}", refused.message());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_retired_after_its_grace_period_and_what_is_under_way_is_finished() {
    let grace = Duration::from_millis(300);
    let config = ServerConfig { grace, ..config() };
    let mut changing = Changing::new(SchemeId::SimplePir, 100, 4);
    let server = start(config, vec![changing.served()]).await;
    let mut stub = stub(&server).await;
    let mut old = TableClient::new(&mut stub, "t").await;
    let started = Instant::now();
    server.update("t", changing.next(3, 0)).await.unwrap();
    until_metric(&server, "privet_table_versions{table=\"t\"}", 1.0).await;
    assert!(started.elapsed() >= grace);
    let refused = old.look_up(&mut stub, 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("ask again what is served"), "{}", refused.message());

    // Even without a grace period, a query that waits for its pass is answered.
    let config = ServerConfig {
        grace: Duration::ZERO,
        batch_window: Duration::from_secs(2),
        ..super::config()
    };
    let mut changing = Changing::new(SchemeId::SimplePir, 100, 4);
    let server = start(config, vec![changing.served()]).await;
    let mut stub = super::stub(&server).await;
    let mut old = TableClient::new(&mut stub, "t").await;
    let (request, pending) = old.prepare(7);
    let mut asking = stub.clone();
    let under_way = tokio::spawn(async move { ask(&mut asking, request).await });
    until_metric(&server, "privet_queue_depth", 1.0).await;
    let epoch = old.description.identity.epoch;
    server.update("t", changing.next(100, 0)).await.unwrap();
    assert_eq!(versions_served(&server).await, [epoch.0 + 1]);
    let response = under_way.await.unwrap().unwrap();
    assert_eq!(old.recover(pending, &response), changing.record(epoch, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_earliest_version_gives_way_and_all_are_retired_on_request() {
    let mut changing = Changing::new(SchemeId::Dpf, 50, 4);
    let server = start(keeping(), vec![changing.served()]).await;
    for _ in 0..MAX_EARLIER + 2 {
        server.update("t", changing.next(2, 1)).await.unwrap();
    }
    let last = changing.last().0.epoch.0;
    let all: Vec<_> = (0..=MAX_EARLIER as u64).map(|back| last - back).collect();
    assert_eq!(versions_served(&server).await, all);
    let versions = "privet_table_versions{table=\"t\"}";
    assert_eq!(metric(&server, versions).await, 1.0 + MAX_EARLIER as f64);
    server.table_updates().retire_earlier("t").unwrap();
    assert_eq!(versions_served(&server).await, [last]);
    assert_eq!(metric(&server, versions).await, 1.0);
    let unknown = server.table_updates().retire_earlier("other").unwrap_err();
    assert_eq!(unknown.blame(), Blame::ApiMisuse);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_versions_of_all_tables_together_hold_no_more_memory_than_they_may() {
    // Each version holds its table twice: for the scheme, and as records.
    let table = |name, id| Changing::named(name, id, SchemeId::Dpf, 1 << 12, 16);
    let version = 2 << 16;
    // Room for two, whatever a scheme needs besides.
    let config = ServerConfig { max_version_memory: Some(2 * version + version / 2), ..keeping() };
    let (mut one, mut other) = (table("t", 1), table("u", 2));
    let server = start(config, vec![one.served(), other.served()]).await;
    let versions = async |name: &str| {
        metric(&server, &format!("privet_table_versions{{table=\"{name}\"}}")).await
    };
    for expected in [2.0, 3.0, 3.0, 3.0] {
        server.update("t", one.next(2, 1)).await.unwrap();
        assert_eq!(versions("t").await, expected);
    }
    // The other table finds no room, and takes none from the first.
    server.update("u", other.next(2, 1)).await.unwrap();
    assert_eq!((versions("t").await, versions("u").await), (3.0, 1.0));
    server.table_updates().retire_earlier("t").unwrap();
    server.update("u", other.next(2, 1)).await.unwrap();
    assert_eq!((versions("t").await, versions("u").await), (1.0, 2.0));
}

/// Records that say when they are freed.
struct Probed(Vec<u8>, #[expect(dead_code, reason = "it is what is counted")] Arc<()>);

impl ReadRecords for Probed {
    fn len(&self) -> u64 {
        ReadRecords::len(&self.0)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> privet_core::Result<()> {
        self.0.read(offset, into)
    }
}

impl RecordSource for Probed {
    fn memory(&self) -> u64 {
        self.0.memory()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_of_a_retired_version_is_freed() {
    privet_laboratory::register();
    for scheme in SCHEMES {
        let config = ServerConfig { grace: Duration::ZERO, ..config() };
        let mut changing = Changing::new(scheme, 100, 4);
        let held = Arc::new(());
        let freed = Arc::downgrade(&held);
        let records = Probed(changing.last().1.clone(), held);
        let table = ServedTable { records: Box::new(records), ..changing.served() };
        let server = start(config, vec![table]).await;
        let mut stub = stub(&server).await;
        let mut client = TableClient::new(&mut stub, "t").await;
        client.look_up(&mut stub, 3).await.unwrap();
        assert!(freed.upgrade().is_some());
        server.update("t", changing.next(3, 0)).await.unwrap();
        // The task that answered the lookup may hold its version a little longer than the client
        // waits for the answer.
        let is_freed = async {
            while freed.upgrade().is_some() {
                tokio::task::yield_now().await;
            }
        };
        let limit = Duration::from_secs(60);
        assert!(tokio::time::timeout(limit, is_freed).await.is_ok(), "{scheme}");
    }
}

/// Records of a next version that notes, whenever they are read, whether an earlier one is still in
/// memory.
struct Watching {
    records: Vec<u8>,
    earlier: Weak<()>,
    beside: Arc<AtomicBool>,
}

impl ReadRecords for Watching {
    fn len(&self) -> u64 {
        ReadRecords::len(&self.records)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> privet_core::Result<()> {
        self.beside.fetch_or(self.earlier.upgrade().is_some(), Ordering::SeqCst);
        self.records.read(offset, into)
    }
}

impl RecordSource for Watching {
    fn memory(&self) -> u64 {
        self.records.memory()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_version_is_freed_before_the_next_is_made_if_both_find_no_room() {
    // Each version holds its table twice: for the scheme, and as records.
    let version = 2 << 16;
    for (versions, stays) in [(1, false), (2, true)] {
        let max_version_memory = Some(versions * version + version / 2);
        let config = ServerConfig { max_version_memory, ..keeping() };
        let mut changing = Changing::new(SchemeId::Dpf, 1 << 12, 16);
        let held = Arc::new(());
        let earlier = Arc::downgrade(&held);
        let records = Box::new(Probed(changing.last().1.clone(), held));
        let server = start(config, vec![ServedTable { records, ..changing.served() }]).await;
        server.update("t", changing.next(2, 0)).await.unwrap();
        assert!(earlier.upgrade().is_some(), "alone, it finds room");
        let (next, beside) = (changing.next(2, 0), Arc::new(AtomicBool::new(false)));
        let records = next.records.to_vec().unwrap();
        let records = Watching { records, earlier, beside: Arc::clone(&beside) };
        let next = NextVersion { records: Box::new(records), ..next };
        server.update("t", next).await.unwrap();
        assert_eq!(beside.load(Ordering::SeqCst), stays);
        assert_eq!(versions_served(&server).await.len() as u64, 1 + versions);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_grow_with_the_table_and_no_request_is_longer_than_the_longest() {
    let mut changing = Changing::new(SchemeId::SimplePir, 50, 4);
    let server = start(keeping(), vec![changing.served()]).await;
    let mut stub = unlimited(&stub(&server).await);
    let mut old = TableClient::new(&mut stub, "t").await;
    let (short, _) = old.prepare(0);
    server.update("t", changing.next(0, 400_000)).await.unwrap();
    let mut new = TableClient::new(&mut stub, "t").await;
    let (long, _) = new.prepare(0);
    assert!(long.query.len() > short.query.len() + 500, "it grew to {}", long.query.len());
    let record = new.look_up(&mut stub, 399_999).await.unwrap();
    assert_eq!(record, changing.record(Epoch(6), 399_999));
    old.look_up(&mut stub, 3).await.unwrap();

    let too_long = |request: &privet_wire::AnswerRequest| {
        let mut request = proto::AnswerRequest::from(request.clone());
        request.query = vec![0; new.description.schemes[0].plan.longest_query() + 64].into();
        request
    };
    let refused = stub.answer(too_long(&long)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    // The version with long queries goes, and with it the limit.
    changing.versions.truncate(1);
    let mut other = changing.served();
    other.name = "u".into();
    drop(server);
    let server = start(keeping(), vec![other]).await;
    let mut stub = super::stub(&server).await;
    let refused = stub.answer(proto::AnswerRequest::from(long)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_next_version_is_announced_as_a_server_would_that_began_with_it() {
    for scheme in privet_laboratory::all() {
        if scheme == privet_laboratory::TAPIR_PP {
            continue;
        }
        let mut changing = Changing::new(scheme, 700, 6);
        let server = start(keeping(), vec![changing.served()]).await;
        server.update("t", changing.next(4, 0)).await.unwrap();
        changing.change(3, 0);
        changing.change(2, 0);
        // Two epochs together make one version.
        server.update("t", changing.steps(1)).await.unwrap();
        assert_eq!(versions_served(&server).await, [8, 6, 5]);
        let fresh = start(keeping(), vec![changing.served_as_it_is()]).await;
        let followed = describe(&mut stub(&server).await).await.tables[0].clone();
        let begun = describe(&mut stub(&fresh).await).await.tables[0].clone();
        assert_eq!(followed.identity, begun.identity);
        assert_eq!(followed.schemes, begun.schemes, "{scheme}");
        // Everything announced can be fetched.
        if let Some(kind) = followed.schemes[0].hint_kind() {
            let request = fetch_request(&followed, kind, 0);
            let fetched = fetch(&mut stub(&server).await, request).await.unwrap();
            assert_eq!(fetched, fetch(&mut stub(&fresh).await, request).await.unwrap());
        }
    }
}
