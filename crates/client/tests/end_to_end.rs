//! Every scheme, end to end: a table is built, servers serve its file on loopback, a client looks
//! records up.
//!
//! Each case is a scheme of the registry and a [`Form`] of table, and the same must hold for all of
//! them. So a new scheme gets its cases by its line in the registry. Cases that cannot be tried are
//! in [`LEFT_OUT`], which is checked.

use crate::common::{
    any_port, config, cut, generation_in, indexed_by, options_of, record, records_by,
};
use privet_client::{Client, ClientOptions, TableRoot, Target};
use privet_core::{Blame, TableIdentity, TableShape};
use privet_host::TableFile;
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, SchemePlan, Tuning};
use privet_schemes::simplepir_packed::MASKS_ON_DEMAND;
use privet_server::{RunningServer, ServedTable, Server};
use privet_table::build::{BuildOptions, OnDuplicate, RangeColumns, build_table};
use privet_table::import::{Format, Source};
use privet_table::key_map::KeyMapKind;
use privet_table::values::{ValueColumn, ValueType, Values};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How a table is made, and so how it is looked up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    name: &'static str,
    key_map: Option<KeyMapKind>,
    parts: u8,
    /// Keys are points in ranges.
    ranges: bool,
    several_values: bool,
    authenticated: bool,
}

const BY_NUMBER: Form = Form {
    name: "by number",
    key_map: None,
    parts: 1,
    ranges: false,
    several_values: false,
    authenticated: false,
};
const BUCKETS: Form =
    Form { name: "keys in buckets", key_map: Some(KeyMapKind::Buckets), ..BY_NUMBER };
const CUCKOO: Form =
    Form { name: "keys in cuckoo tables", key_map: Some(KeyMapKind::Cuckoo), ..BY_NUMBER };
const RANGES: Form = Form { name: "ranges", ranges: true, ..BUCKETS };
const AUTHENTICATED: Form = Form { name: "authenticated", authenticated: true, ..BUCKETS };
/// Several values of a key, with everything else at once.
const SEVERAL_VALUES: Form = Form {
    name: "several values",
    key_map: Some(KeyMapKind::Cuckoo),
    parts: 3,
    ranges: false,
    several_values: true,
    authenticated: true,
};

/// No client, and no test, would wait for hints of more bytes than this.
const LONGEST_HINT: u64 = 16 << 20;

/// The cases that are not tried, because the scheme's hint for such a table has more than
/// [`LONGEST_HINT`] bytes, or is refused for its length.
const LEFT_OUT: [(SchemeId, &[Form]); 1] =
    [(SchemeId::DoublePir, &[BUCKETS, CUCKOO, RANGES, AUTHENTICATED, SEVERAL_VALUES])];

const ROWS: usize = 120;

/// The values of row or key `k`, in their order.
fn values(form: Form, k: usize) -> Vec<String> {
    if form == BY_NUMBER {
        // All of the same length, so that a record holds nothing else; every scheme can serve one
        // byte.
        return vec![char::from(b'0' + (k * 7 % 75) as u8).to_string()];
    }
    let count = if form.several_values { 1 + k % 3 } else { 1 };
    // With parts, some values lie in several of them.
    let long = if form.parts > 1 && k.is_multiple_of(7) { 60 } else { k % 5 };
    (0..count).map(|number| format!("{k}.{number}{}", "x".repeat(long))).collect()
}

/// A table that was built.
struct Built {
    directory: tempfile::TempDir,
    form: Form,
    root: Option<TableRoot>,
    records_per_lookup: u64,
}

impl Built {
    fn new(form: Form) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut rows = "key,to,value\n".to_owned();
        for number in 0..3 {
            for k in 0..ROWS {
                if let Some(value) = values(form, k).get(number) {
                    match form.ranges {
                        // Of ten points, the first five.
                        true => rows += &format!("{},{},{value}\n", 10 * k, 10 * k + 4),
                        false => rows += &format!("key {k},,{value}\n"),
                    }
                }
            }
        }
        let options = BuildOptions {
            key: form.key_map.filter(|_| !form.ranges).map(|_| "key".to_owned()),
            ranges: form.ranges.then(|| RangeColumns {
                from: "key".to_owned(),
                to: Some("to".to_owned()),
                nested: false,
            }),
            key_map: form.key_map.unwrap_or_default(),
            parts: form.key_map.map(|_| form.parts),
            raw_value: Some("value".to_owned()),
            on_duplicate: if form.several_values { OnDuplicate::All } else { OnDuplicate::Error },
            authenticate: form.authenticated,
            ..BuildOptions::default()
        };
        let source = Source::reader("rows", std::io::Cursor::new(rows)).format(Format::Csv);
        let file = directory.path().join("t.privet");
        let report = build_table(&options, source, &file, &mut |_| Ok(())).unwrap();
        let records_per_lookup = match form.key_map {
            None => 1,
            Some(KeyMapKind::Cuckoo) => 2 * u64::from(form.parts),
            Some(_) => form.parts.into(),
        };
        Self { directory, form, root: report.root, records_per_lookup }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("t.privet")
    }

    fn target(&self, k: usize) -> Target {
        match self.form.key_map {
            Some(_) if self.form.ranges => Target::key((10 * k + k % 5).to_string()),
            Some(_) => Target::key(format!("key {k}")),
            None => Target::index(k as u64),
        }
    }

    /// Looks `k` up, and checks the outcome.
    async fn look_up(&self, client: &Client, k: usize) {
        self.check(k, client.get_target(self.target(k)).await);
        // So that the next single-use hints are ready before these are used up.
        client.finish().await.unwrap();
    }

    fn check(&self, k: usize, found: privet_core::Result<Option<privet_client::Value>>) {
        match (found, k < ROWS) {
            (Ok(Some(value)), true) => {
                let found: Vec<_> = value.values().map(<[u8]>::to_vec).collect();
                let expected: Vec<_> =
                    values(self.form, k).into_iter().map(String::into_bytes).collect();
                assert_eq!(found, expected, "{k}");
                assert_eq!(value.is_list(), self.form.several_values);
            }
            (Ok(None), false) if self.form.key_map.is_some() => {}
            (Err(error), false) if self.form.key_map.is_none() => {
                assert_eq!(error.blame(), Blame::ApiMisuse, "{error}");
            }
            (found, _) => panic!("{k}: {found:?}"),
        }
    }
}

/// What a scheme needs beside the table, made on the spot. All servers get the same.
fn tuned(scheme: SchemeId, identity: &TableIdentity, tuning: Tuning) -> Tuning {
    privet_laboratory::completed(scheme, identity, tuning).unwrap()
}

/// Servers of one table, as many as its scheme takes, and every query that each of them saw.
struct Servers {
    running: Vec<RunningServer>,
    seen: Vec<Arc<Mutex<Vec<Vec<u8>>>>>,
    plan: SchemePlan,
}

impl Servers {
    async fn start(table: impl Fn() -> ServedTable) -> Self {
        let first = table();
        let plan = registry::plan(first.scheme, &first.identity, &first.tuning).unwrap();
        let mut servers = Self { running: Vec::new(), seen: Vec::new(), plan };
        for _ in 0..servers.plan.servers {
            servers.seen.push(Arc::default());
            servers.start_one(any_port(), &table).await;
        }
        servers
    }

    async fn start_one(&mut self, address: SocketAddr, table: &impl Fn() -> ServedTable) {
        let mut config = config(address, None);
        let seen = Arc::clone(&self.seen[self.running.len()]);
        config.query_observer =
            Some(Arc::new(move |request| seen.lock().unwrap().push(request.query.to_vec())));
        // While no server listens at an address, the system may lend its port to a connection of
        // another case. That ends with the case.
        let patience = Instant::now() + Duration::from_secs(60);
        let server = loop {
            match Server::start(config.clone(), vec![table()]).await {
                Ok(server) => break server,
                Err(error) if error.blame() == Blame::Unavailable && Instant::now() < patience => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.running.push(server);
    }

    /// Stops each server, and starts it again at its address.
    async fn restart(&mut self, table: impl Fn() -> ServedTable) {
        for server in std::mem::take(&mut self.running) {
            let address = server.local_addr();
            server.shutdown();
            server.wait().await.unwrap();
            self.start_one(address, &table).await;
        }
    }

    fn options(&self, state: Option<&Path>) -> ClientOptions {
        let urls = self.running.iter().map(|server| format!("http://{}", server.local_addr()));
        let urls: Vec<_> = urls.collect();
        let mut options = options_of(&urls.iter().map(String::as_str).collect::<Vec<_>>());
        options.state_dir = state.map(Path::to_owned);
        options
    }

    /// How many queries each server has received since the last call.
    fn queries(&self) -> Vec<usize> {
        let taken = |seen: &Arc<Mutex<Vec<_>>>| std::mem::take(&mut *seen.lock().unwrap()).len();
        self.seen.iter().map(taken).collect()
    }

    /// Whether clients send queries; otherwise they hold the table.
    fn are_asked(&self) -> bool {
        !matches!(self.plan.offline, OfflinePhase::KeepTable { .. })
    }
}

/// Tries `case` with every scheme, all at once, as they mostly wait. Says at the end with which it
/// failed.
fn with_every_scheme(case: impl AsyncFn(SchemeId) + Sync) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (runtime, case) = (&runtime, &case);
    let failed: Vec<_> = std::thread::scope(|scope| {
        let tried = privet_laboratory::all().map(|scheme| {
            let case = AssertUnwindSafe(move || runtime.block_on(case(scheme)));
            (scheme, scope.spawn(|| catch_unwind(case)))
        });
        let tried: Vec<_> = tried.collect();
        let ended = tried.into_iter().map(|(scheme, thread)| (scheme, thread.join().unwrap()));
        ended.filter(|(_, ended)| ended.is_err()).map(|(scheme, _)| scheme.name()).collect()
    });
    assert!(failed.is_empty(), "with {failed:?}, as said above");
}

/// What must hold for every scheme on a table of this form.
fn holds(form: Form) {
    let built = Built::new(form);
    with_every_scheme(async |scheme| {
        let identity = TableFile::new("t", built.file()).open().unwrap().0.identity;
        let tuning = tuned(scheme, &identity, Tuning::default());
        let plan = registry::plan(scheme, &identity, &tuning);
        let is_tried = plan.is_ok_and(|plan| match plan.offline {
            OfflinePhase::Download { len } => len <= LONGEST_HINT,
            _ => true,
        });
        let left_out = LEFT_OUT.iter().any(|(out, forms)| *out == scheme && forms.contains(&form));
        assert_eq!(is_tried, !left_out, "{scheme}, {}: LEFT_OUT says otherwise", form.name);
        if is_tried {
            holds_of(scheme, &tuning, &built).await;
        }
    });
}

async fn holds_of(scheme: SchemeId, tuning: &Tuning, built: &Built) {
    let table = || {
        let mut file = TableFile::new("t", built.file());
        (file.scheme, file.tuning) = (Some(scheme), tuning.clone());
        file.open().unwrap().0
    };
    let mut servers = Servers::start(table).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = servers.options(Some(state.path()));
    stored.session.root = built.root;

    // Records are those of the table, a missing key says so, and either costs the same.
    let client = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_eq!(client.table().scheme.plan, servers.plan);
    assert_ne!(client.stats().hint_was_stored, Some(true));
    assert_eq!(client.is_by_key(), built.form.key_map.is_some());
    let value = ValueColumn { name: "value".to_owned(), of: ValueType::Text };
    assert_eq!(client.values(), Some(&Values { is_raw: true, columns: vec![value] }));
    let (mut before, mut costs) = (client.stats().lookup, Vec::new());
    for k in [0, 7, 7, ROWS - 1, ROWS / 2, ROWS, ROWS + 3] {
        built.look_up(&client, k).await;
        let after = client.stats().lookup;
        // An index that does not exist is refused without a query: the caller knew that before.
        if k < ROWS || built.form.key_map.is_some() {
            costs.push((after.up - before.up, after.down - before.down));
        }
        before = after;
    }
    assert!(costs.windows(2).all(|pair| pair[0] == pair[1]), "{costs:?}");
    let least = servers.plan.query_lens.iter().sum::<usize>() as u64 * built.records_per_lookup;
    assert_eq!(costs[0].0 > least, servers.are_asked(), "{costs:?}");
    let asked = costs.len() as u64 * built.records_per_lookup;
    let expected = if servers.are_asked() { asked as usize } else { 0 };
    assert!(servers.queries().iter().all(|seen| *seen == expected), "each sees each lookup");

    // Many at once come back in their order: as many as one generation of hints is for.
    let step = 17 * built.records_per_lookup.min(3) as usize;
    let many: Vec<_> = (0..ROWS + 3).rev().step_by(step).collect();
    let targets: Vec<_> = many.iter().map(|k| built.target(*k)).collect();
    let found = client.get_many(&targets).await;
    assert_eq!(found.len(), many.len());
    many.iter().zip(found).for_each(|(k, found)| built.check(*k, found));

    // Whoever wants to be called back is.
    let (sender, receiver) = tokio::sync::oneshot::channel();
    client.begin_with(built.target(7), move |outcome| sender.send(outcome).err());
    built.check(7, receiver.await.unwrap());

    // A caller who asks in a way that such a table does not support gets an error.
    let other = if built.form.key_map.is_some() { Target::index(0) } else { Target::key("key 0") };
    assert_eq!(client.get_target(other).await.unwrap_err().blame(), Blame::ApiMisuse);
    assert_eq!(client.stats().lookups as usize, 7 + many.len() + 2);

    // A client goes on when its servers restart, and so does the next process, with the stored
    // state.
    servers.restart(table).await;
    for k in [7, 2, ROWS + 2] {
        built.look_up(&client, k).await;
    }
    drop(client);
    let client = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_ne!(client.stats().hint_was_stored, Some(false));
    assert_eq!(client.stats().prepare.down, 0);
    for k in [7, 1, ROWS + 1] {
        built.look_up(&client, k).await;
    }
    drop(client);

    // Either server may play either role, and none is asked alone.
    if servers.plan.servers > 1 {
        let mut reversed = stored.clone();
        (reversed.state_dir, reversed.urls) = (None, stored.urls.iter().rev().cloned().collect());
        let client = Client::connect(reversed.clone(), |_| {}).await.unwrap();
        for k in [5, ROWS + 1] {
            built.look_up(&client, k).await;
        }
        drop(client);
        servers.queries();
        reversed.urls.pop();
        let refused = Client::connect(reversed, |_| {}).await.err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse, "{refused}");
        assert!(refused.message().contains(" servers, run by parties"), "{refused}");
        assert!(servers.queries().iter().all(|seen| *seen == 0));
    }
}

#[test]
fn tables_by_number() {
    holds(BY_NUMBER);
}

#[test]
fn tables_by_key_in_buckets() {
    holds(BUCKETS);
}

#[test]
fn tables_by_key_in_cuckoo_tables() {
    holds(CUCKOO);
}

#[test]
fn tables_of_ranges() {
    holds(RANGES);
}

#[test]
fn authenticated_tables() {
    holds(AUTHENTICATED);
}

#[test]
fn several_values_of_a_key() {
    holds(SEVERAL_VALUES);
}

/// Records of one byte and of many; one record, and as many as fill the partitions of a scheme, or
/// one less.
#[test]
fn tables_of_all_shapes() {
    with_every_scheme(async |scheme| {
        for (count, len) in [(1, 1), (2, 300), (53, 20), (256, 4), (257, 3), (1025, 1)] {
            let shape = TableShape::new(count, len).unwrap();
            let mut records = blake3::Hasher::new().finalize_xof();
            let mut all = vec![0; shape.bytes() as usize];
            records.fill(&mut all);
            let identity = indexed_by(scheme, all.clone(), shape).identity;
            let tuning = tuned(scheme, &identity, Tuning::default());
            let plan = registry::plan(scheme, &identity, &tuning);
            let is_long = plan.map_or(
                true,
                |plan| matches!(plan.offline, OfflinePhase::Download { len } if len > LONGEST_HINT),
            );
            assert_eq!(is_long, scheme == SchemeId::DoublePir && len > 1, "{scheme}");
            if is_long {
                continue;
            }
            let table =
                || ServedTable { tuning: tuning.clone(), ..indexed_by(scheme, all.clone(), shape) };
            let servers = Servers::start(table).await;
            let client = Client::connect(servers.options(None), |_| {}).await.unwrap();
            let last = count - 1;
            for index in [0, last, last / 2, last / 3, last / 2] {
                let record = &all[(index * len) as usize..][..len as usize];
                let found = client.get_index(index).await.unwrap();
                assert_eq!(found.to_vec(), record, "{index} of {count}");
            }
        }
    });
}

/// A client of packed SimplePIR that has nothing receives the masks of the masks, however many
/// blocks the table has, and the mask of each record with its answer.
#[tokio::test(flavor = "multi_thread")]
async fn masks_on_demand_come_with_the_answers() {
    // Seven blocks, each a unit of two records.
    let (count, len) = (14, 1000);
    let all: Vec<u8> = (0..count * len).map(|place| (place * 7 % 251) as u8).collect();
    let shape = TableShape::new(count, len).unwrap();
    let scheme = SchemeId::SimplePirPacked;
    let tuning = Tuning::default().with_flag(&MASKS_ON_DEMAND, true);
    let table = || ServedTable { tuning: tuning.clone(), ..indexed_by(scheme, all.clone(), shape) };
    let servers = Servers::start(table).await;
    assert_eq!(servers.plan.offline, OfflinePhase::Download { len: 3 * 4352 });
    let state = tempfile::tempdir().unwrap();
    let connect =
        async || Client::connect(servers.options(Some(state.path())), |_| {}).await.unwrap();
    for was_stored in [false, true] {
        let client = connect().await;
        for index in [0, 13, 6, 7, 13] {
            let record = &all[(index * len) as usize..][..len as usize];
            assert_eq!(client.get_index(index).await.unwrap().to_vec(), record);
        }
        assert_eq!(client.stats().hint_was_stored, Some(was_stored));
    }
}

/// Clients with single-use hints go from generation to generation, first in one process and then in
/// a process for every few lookups, and no query is ever repeated.
#[test]
fn generations_of_single_use_hints() {
    let tried = AtomicUsize::new(0);
    with_every_scheme(async |scheme| {
        // Few, and in small partitions, so that generations are short. But queries of harmony must
        // name so many records that no two are equal by chance.
        let (records, piece) = if scheme == SchemeId::Harmony { (8192, 64) } else { (256, 8) };
        let identity = records_by(scheme, records).identity;
        let tuning = tuned(scheme, &identity, Tuning::default());
        if registry::plan(scheme, &identity, &tuning).unwrap().hints_len(&identity) > 0 {
            tried.fetch_add(1, Ordering::Relaxed);
            let tuning = cut(records_by(scheme, records), piece).tuning;
            let tuning = tuned(scheme, &identity, tuning);
            hands_over(|| ServedTable { tuning: tuning.clone(), ..records_by(scheme, records) })
                .await;
        }
    });
    assert!(tried.into_inner() >= 8);
}

async fn hands_over(table: impl Fn() -> ServedTable) {
    const AT_ONCE: u64 = 20;
    let identity = table().identity;
    let servers = Servers::start(table).await;
    let state = tempfile::tempdir().unwrap();
    let connect =
        async || Client::connect(servers.options(Some(state.path())), |_| {}).await.unwrap();
    let (mut round, mut streamed) = (0, 0);
    for (last, many_processes) in [(2, false), (3, true)] {
        let mut client = connect().await;
        assert_eq!(client.stats().hint_was_stored, Some(round > 0));
        assert_eq!(client.stats().prepare.down > 0, round == 0);
        while generation_in(state.path()) < last {
            // A few records again and again, others in any order.
            let index =
                |k| [k % 3, k * 389 + round * 7][round as usize % 2] % identity.shape.records();
            let indices: Vec<_> = (0..AT_ONCE).map(index).collect();
            let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
            for (index, value) in indices.iter().zip(client.get_many(&targets).await) {
                assert_eq!(value.unwrap().unwrap().to_vec(), record(*index), "record {index}");
            }
            client.finish().await.unwrap();
            round += 1;
            if many_processes {
                streamed += client.stats().background.down;
                drop(client);
                client = connect().await;
                assert_eq!(client.stats().hint_was_stored, Some(true));
                assert_eq!(client.stats().prepare.down, 0);
            }
            assert!(round < 100, "generation {last} never comes");
        }
        streamed += client.stats().background.down;
    }
    let lookups = round * AT_ONCE;
    for seen in &servers.seen {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len() as u64, lookups);
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "a query was repeated");
    }
    // Hints that run out are prepared anew for each generation, which serves as many queries as it
    // says. The other hints never run out.
    match servers.plan.supply(&identity) {
        None => assert_eq!(streamed, 0),
        Some(supply) => {
            assert!((2 * supply..2 * supply + AT_ONCE).contains(&lookups), "{lookups} of {supply}");
            let len = servers.plan.offline.len();
            assert!((2 * len..3 * len).contains(&streamed), "{streamed} of {len}");
        }
    }
}
