//! The attacked server, in a process of its own: what it holds can be read from the system.

use crate::common::http;
use privet_server::{ServedTable, Server, ServerConfig};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Set for the process that is the server: a folder that both processes know.
const FOLDER: &str = "PRIVET_ABUSE_FOLDER";

/// The word before the addresses that the server tells.
const SERVING: &str = "serving";

/// How long the server may take until it holds again what it held before an attack. What an
/// attacker sent before it closed is still read, and slowly: some megabytes at 64 KiB a second.
const RECOVERY: Duration = Duration::from_secs(120);

/// How a server is to run, and what it is to serve.
pub(crate) type Prepare = fn(&Path) -> (ServerConfig, Vec<ServedTable>);

/// A running server. Dropping it ends its process.
pub(crate) struct Attacked {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    /// Stays open: libtest ends a process that it cannot tell that a test takes long.
    _said: BufReader<ChildStdout>,
    test: String,
    folder: Arc<tempfile::TempDir>,
    /// Memory in use before the first attack, in bytes.
    memory_before: OnceLock<u64>,
}

/// What a server holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Holdings {
    /// All gauges of its metrics: connections, requests under way, the queue, versions of tables.
    gauges: BTreeMap<String, String>,
    descriptors: usize,
}

impl Holdings {
    /// How many connections of clients are open.
    pub(crate) fn connections(&self) -> Option<&str> {
        self.gauges.get("privet_connections").map(String::as_str)
    }
}

impl Attacked {
    /// Starts the server of the test with that name, by running this program once more. In that
    /// process the same call serves until the test's process ends, and never returns. `prepare`
    /// runs there, and is given a folder.
    pub(crate) async fn start(test: &str, prepare: Prepare) -> Self {
        Self::start_with(test, |_| (), prepare).await
    }

    /// The same after `fill` has put files into the folder.
    pub(crate) async fn start_with(test: &str, fill: impl FnOnce(&Path), prepare: Prepare) -> Self {
        if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
            let (config, tables) = prepare(&folder);
            serve(config, tables).await;
        }
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        Self::spawn(test, Arc::new(folder))
    }

    /// Another such server, of the same files.
    pub(crate) fn another(&self) -> Self {
        Self::spawn(&self.test, Arc::clone(&self.folder))
    }

    fn spawn(test: &str, folder: Arc<tempfile::TempDir>) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(FOLDER, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let told = said.by_ref().lines().map_while(Result::ok).find_map(|line| {
            // libtest begins the line with the name of the test.
            let (_, addresses) = line.split_once(SERVING)?;
            let addresses = addresses.split_whitespace().map(|address| address.parse().unwrap());
            Some(addresses.collect::<Vec<SocketAddr>>())
        });
        let Some(addresses) = told else {
            panic!("the server of {test} did not start: {:?}", process.wait())
        };
        let [address, metrics] = addresses[..] else { panic!("two addresses: {addresses:?}") };
        let (test, memory_before) = (test.to_owned(), OnceLock::new());
        Self { process, address, metrics, _said: said, test, folder, memory_before }
    }

    pub(crate) async fn holdings(&self) -> Holdings {
        let (_, text) = http(self.metrics, "GET", "/metrics").await;
        let is_gauge = |name: &str| text.contains(&format!("# TYPE {name} gauge\n"));
        let values = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let name = series.split('{').next()?;
            is_gauge(name).then(|| (series.to_owned(), value.to_owned()))
        });
        let descriptors = std::fs::read_dir(self.proc("fd")).unwrap().count();
        Holdings { gauges: values.collect(), descriptors }
    }

    /// What the server holds when nobody is connected, and twice in a row the same.
    pub(crate) async fn at_rest(&self) -> Holdings {
        let (began, mut before) = (Instant::now(), self.holdings().await);
        loop {
            let now = self.holdings().await;
            if now == before && now.connections() == Some("0") {
                return now;
            }
            assert!(began.elapsed() < RECOVERY, "the server is not at rest: {now:#?}");
            before = now;
        }
    }

    /// Waits until the server holds just what it held `before`.
    pub(crate) async fn until_it_holds(&self, before: &Holdings) {
        let began = Instant::now();
        loop {
            let now = self.holdings().await;
            if now == *before {
                return;
            }
            assert!(
                began.elapsed() < RECOVERY,
                "{} s after the attack, the server holds\n{now:#?}\nnot\n{before:#?}",
                RECOVERY.as_secs()
            );
        }
    }

    /// The sum of a counter over all its labels.
    pub(crate) async fn counted(&self, name: &str) -> f64 {
        let (_, text) = http(self.metrics, "GET", "/metrics").await;
        let series = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Memory in use when this was first called, in bytes: what earlier attacks left is growth,
    /// too. The peak begins again from here.
    pub(crate) fn begin_peak(&self) -> u64 {
        // Where the system does not offer that, the peak is that of the whole life.
        let _ = std::fs::write(self.proc("clear_refs"), "5");
        *self.memory_before.get_or_init(|| self.memory("VmRSS"))
    }

    /// The most memory that was in use, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(name));
        let line = line.expect("a server that still runs has memory");
        let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes << 10
    }

    /// The processor time that the server has used, in ticks of the system's clock.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(self.proc("stat")).unwrap();
        // The fields after the name, which may hold spaces: the 12th and 13th are user and system.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    }

    /// Suspends the process, with its connections open.
    pub(crate) fn freeze(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }

    fn proc(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.process.id()))
    }
}

impl Drop for Attacked {
    fn drop(&mut self) {
        // If it has ended by itself, there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn serve(config: ServerConfig, tables: Vec<ServedTable>) -> ! {
    let server = Server::start(config, tables).await.unwrap();
    println!("{SERVING} {} {}", server.local_addr(), server.metrics_addr().unwrap());
    let until_the_test_ends = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(until_the_test_ends).await.unwrap().unwrap();
    std::process::exit(0)
}
