//! Running servers take a successor of their table, while a client looks up over loopback.

use crate::common::{any_port, config, find_metric, metric, options_of};
use privet_client::store::Store;
use privet_client::{Client, ClientOptions, state::State as _};
use privet_core::TableId;
use privet_host::TableFile;
use privet_host::watch::{Hangups, Watching};
use privet_schemes::SchemeId;
use privet_server::{RunningServer, Server};
use privet_table::build::{BuildOptions, build_table};
use privet_table::import::Source;
use privet_table::snapshot::Snapshot;
use privet_table::update_log::{LogWriter, PublisherKey, Signers, TableKeys, UpdateLog, log_path};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

const KEYS: usize = 200;
const MINUTE: Duration = Duration::from_secs(60);

/// A table whose value of key number `k` is `VALUE k`, in a folder of its own.
fn build(folder: &Path, value: &str) -> Snapshot {
    let (csv, path) = (folder.join("rows.csv"), folder.join(format!("{value}.privet")));
    let rows: String = (0..KEYS).map(|k| format!("key-{k},{value} {k}\n")).collect();
    fs::write(&csv, format!("key,value\n{rows}")).unwrap();
    let options = BuildOptions {
        key: Some("key".to_owned()),
        raw_value: Some("value".to_owned()),
        ..BuildOptions::default()
    };
    build_table(&options, Source::path(&csv), &path, &mut |_| Ok(())).unwrap();
    Snapshot::open(&path).unwrap()
}

/// A table, its successor, and a stranger's table.
struct Tables {
    _folder: TempDir,
    old: Snapshot,
    new: Snapshot,
    strange: Snapshot,
}

impl Tables {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [old, new, strange] = ["old", "new", "strange"].map(|what| build(folder.path(), what));
        let key = || PublisherKey::generate().unwrap();
        let (publisher, next, stranger) = (key(), key(), key());
        let keys = TableKeys { publisher: publisher.id(), next: Some(next.id().as_next_key()) };
        UpdateLog::create(&log_path(old.path()), &old, keys).unwrap();
        UpdateLog::create(&log_path(strange.path()), &strange, stranger.id()).unwrap();
        Self { _folder: folder, old, new, strange }.signed(&publisher, &next)
    }

    fn signed(self, publisher: &PublisherKey, next: &PublisherKey) -> Self {
        let ended = tempfile::tempdir().unwrap();
        // The server's copy of the log need not have the last record.
        let path = ended.path().join("old.privet");
        put(&self.old, &path);
        let copy = Snapshot::open(&path).unwrap();
        let mut writer = LogWriter::open(&log_path(&path), &copy).unwrap();
        let signers = Signers { publisher: Some(publisher), next: Some(next) };
        let keys = TableKeys::from(next.id());
        let (_, lineage) = writer.succeed(signers, &self.new, keys).unwrap();
        let log = log_path(self.new.path());
        UpdateLog::create_after(&log, &self.new, keys, &lineage).unwrap();
        self
    }
}

/// Puts a table with its log where `to` is, each as a new file.
fn put(table: &Snapshot, to: &Path) {
    for (from, to) in [(table.path(), to), (&log_path(table.path()), &log_path(to))] {
        let mut moving = to.as_os_str().to_owned();
        moving.push(".moving");
        fs::copy(from, &moving).unwrap();
        fs::rename(&moving, to).unwrap();
    }
}

/// A server that follows its table file.
struct Followed {
    _folder: TempDir,
    path: PathBuf,
    server: RunningServer,
    _watching: Watching,
}

impl Followed {
    async fn serving(table: &Snapshot, scheme: SchemeId) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.privet");
        put(table, &path);
        let file = TableFile { scheme: Some(scheme), ..TableFile::new("t", &path) };
        let (table, followed) = file.open().unwrap();
        let mut config = config(any_port(), None);
        config.metrics_listen = Some(any_port());
        // Ends when a test says so.
        config.grace = Duration::from_secs(3600);
        let server = Server::start(config, vec![table]).await.unwrap();
        let (updates, often) = (server.table_updates(), Duration::from_millis(20));
        let watching = Watching::start(vec![followed], updates, often, Hangups::ignored());
        Self { _folder: folder, path, server, _watching: watching }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.local_addr())
    }

    /// Whether it serves the table as the current one.
    async fn serves(&self, id: TableId, scheme: SchemeId) -> bool {
        let name = format!("privet_table{{table=\"t\",id=\"{id}\",scheme=\"{scheme}\"}}");
        find_metric(&self.server, &name).await == Some(1.0)
    }
}

/// What a client that looks up all the time has found.
#[derive(Default)]
struct Seen {
    old: AtomicUsize,
    new: AtomicUsize,
    stop: AtomicBool,
}

/// Looks up without a pause, until it is told to stop. Each lookup must find the value of the old
/// table, or, from some moment on, that of the new one.
fn look_up(client: Arc<Client>, seen: Arc<Seen>, refresh: bool) -> JoinHandle<()> {
    tokio::spawn(async move {
        for k in (0..KEYS).cycle() {
            if seen.stop.load(Ordering::SeqCst) {
                return;
            }
            if refresh {
                client.refresh().await.expect("no refresh fails");
            }
            let value = client.get(format!("key-{k}").as_bytes()).await;
            let value = value.expect("no lookup fails").expect("it is there").to_vec();
            if value == format!("new {k}").as_bytes() {
                seen.new.fetch_add(1, Ordering::SeqCst);
            } else {
                assert_eq!(value, format!("old {k}").as_bytes());
                assert_eq!(seen.new.load(Ordering::SeqCst), 0, "nobody goes back");
                seen.old.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
}

/// Waits until the count has grown by `more`.
async fn grows(count: &AtomicUsize, more: usize, looking: &JoinHandle<()>) {
    let until = count.load(Ordering::SeqCst) + more;
    let growing = async {
        while count.load(Ordering::SeqCst) < until {
            assert!(!looking.is_finished(), "the client has ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(MINUTE, growing).await.expect("lookups go on");
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(MINUTE, waiting).await.expect(what);
}

/// Files that have to do with single-use hints.
fn journals(state: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![state.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.display().to_string().contains("journal-") => found.push(path),
                false => {}
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_look_up_while_servers_take_a_successor_and_no_lookup_fails() {
    let schemes = [
        (SchemeId::SimplePir, 1),
        (SchemeId::Harmony, 1),
        (SchemeId::SinglePass, 2),
        (SchemeId::Download, 1),
    ];
    for (scheme, servers) in schemes {
        let tables = Tables::new();
        let [old, new, strange] =
            [&tables.old, &tables.new, &tables.strange].map(|table| table.identity().id);
        let mut running = Vec::new();
        for _ in 0..servers {
            running.push(Followed::serving(&tables.old, scheme).await);
        }
        let urls: Vec<_> = running.iter().map(Followed::url).collect();
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut options: ClientOptions = options_of(&urls);
        options.state_dir = Some(folder.path().to_owned());
        options.session.patience.description = Duration::from_millis(50);
        let client = Arc::new(Client::connect(options.clone(), |_| {}).await.unwrap());
        let seen = Arc::new(Seen::default());
        let refresh = scheme == SchemeId::Download;
        let looking = look_up(Arc::clone(&client), Arc::clone(&seen), refresh);
        // A client that does not hear of anything, as its last description is new enough.
        options.state_dir = None;
        options.session.patience.description = Duration::from_secs(3600);
        let deaf = Arc::new(Client::connect(options, |_| {}).await.unwrap());
        let heard = Arc::new(Seen::default());
        let not_hearing = look_up(Arc::clone(&deaf), Arc::clone(&heard), false);
        grows(&seen.old, 10, &looking).await;
        let journals_before = journals(folder.path());

        for followed in &running {
            // A stranger's table takes nobody's place.
            put(&tables.strange, &followed.path);
            let failed = "privet_updates_failed_total{table=\"t\"}";
            until("refused", async || metric(&followed.server, failed).await >= 1.0).await;
            grows(&seen.old, 10, &looking).await;
            assert!(followed.serves(old, scheme).await && !followed.serves(strange, scheme).await);

            put(&tables.new, &followed.path);
            until("taken", async || followed.serves(new, scheme).await).await;
            assert!(!followed.serves(old, scheme).await);
            assert_eq!(metric(&followed.server, "privet_table_versions{table=\"t\"}").await, 2.0);
            if followed.path != running[servers - 1].path {
                // The other server has only the table before: everybody goes on with that.
                grows(&seen.old, 10, &looking).await;
            }
        }
        grows(&seen.new, 20, &looking).await;

        // The table before is answered for the grace time, and then not any more.
        grows(&heard.old, 5, &not_hearing).await;
        for followed in &running {
            followed.server.table_updates().retire_earlier("t").unwrap();
            assert_eq!(metric(&followed.server, "privet_table_versions{table=\"t\"}").await, 1.0);
        }
        if !refresh {
            grows(&heard.new, 5, &not_hearing).await;
        }
        for (seen, looking) in [(seen, looking), (heard, not_hearing)] {
            seen.stop.store(true, Ordering::SeqCst);
            looking.await.expect("no lookup failed");
        }

        assert_eq!(client.refresh().await.unwrap().id, new);
        let mut store = Store::open(folder.path()).unwrap();
        for url in urls {
            let pins = store.pins(url).unwrap();
            assert_eq!(pins.iter().map(|(_, pin)| pin.table.id).collect::<Vec<_>>(), [new]);
        }
        let after = journals(folder.path());
        assert_eq!(after.is_empty(), journals_before.is_empty(), "{scheme}");
        assert!(after.iter().all(|journal| !journals_before.contains(journal)), "{after:?}");
    }
}
