//! Finite differences: servers that answer from points, computed at the start or in advance.

use crate::common::*;
use privet_core::{Blame, Epoch, Error, Result, TableIdentity, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_laboratory::stored_setup::{self, SetupStore, StoredSetup};
use privet_laboratory::{FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY};
use privet_schemes::SchemeId;
use privet_schemes::registry::{self, ErasedServer, SchemePlan, ServerOptions, Tuning};
use privet_server::{HintOrigin, ServedTable, Server, SetupSource};
use std::sync::Mutex;

/// Points in memory, as a file would hold them.
struct Held {
    identity: TableIdentity,
    parameters: Vec<u8>,
    points: Vec<u8>,
    /// The announced length.
    len: u64,
}

impl SetupSource for Held {
    fn plan(&self, scheme: SchemeId, table: &TableIdentity) -> Result<SchemePlan> {
        match self.identity == *table {
            true => stored_setup::plan_of_setup(scheme, table, &self.parameters, self.len),
            false => Err(Error::api_misuse("of another table")),
        }
    }

    fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.points).as_bytes()
    }

    fn server(
        &self,
        plan: SchemePlan,
        table: &TableIdentity,
        options: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        assert!(self.len < 1 << 40, "so many are refused before there is memory for them");
        let mut buffer = HugeBuffer::new_zeroed(self.points.len()).unwrap();
        buffer.copy_from_slice(&self.points);
        progress(1.0);
        stored_setup::server_of_setup(plan, table, StoredSetup::from(buffer), options)
    }
}

struct Store(Mutex<Vec<u8>>);

impl SetupStore for Store {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.lock().unwrap()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.0.lock().unwrap()[offset as usize..][..bytes.len()]);
        Ok(())
    }
}

fn served(scheme: SchemeId) -> ServedTable {
    served_by(scheme, table("t", 300, 7, 1))
}

/// The points of the same table.
fn held(scheme: SchemeId) -> Held {
    let table = served(scheme);
    let plan = registry::plan(scheme, &table.identity, &Tuning::default()).unwrap();
    let len = stored_setup::setup_bytes(&plan, &table.identity).unwrap();
    let store = Store(Mutex::new(vec![0; len as usize]));
    let records = table.records.to_vec().unwrap();
    let view = TableView::new(table.identity, &records).unwrap();
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    stored_setup::write_setup(&plan, view, options, 1 << 20, &store, &|_| {}).unwrap();
    Held {
        identity: table.identity,
        parameters: plan.parameters,
        points: store.0.into_inner().unwrap(),
        len,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_points_agree_with_those_that_compute_them() {
    privet_laboratory::register();
    for (scheme, count) in [(FINITE_DIFFERENCES, 2), (FINITE_DIFFERENCES_MANY, 3)] {
        let (mut servers, mut stubs) = (Vec::new(), Vec::new());
        for number in 0..count {
            let points = (number == 0).then(|| Box::new(held(scheme)) as Box<dyn SetupSource>);
            let (computed, extra) = (points.is_none(), held(scheme).points.len() as u64 - 2100);
            let server =
                start(config(), vec![ServedTable { setup: points, ..served(scheme) }]).await;
            let [ready] = server.tables() else { panic!("one table") };
            let origin = if computed { HintOrigin::Computed } else { HintOrigin::File };
            assert_eq!(ready.hint_origin, origin);
            assert_eq!(ready.setup_bytes, Some(extra + 2100));
            assert!(ready.extra_bytes >= extra, "{ready:?}");
            stubs.push(stub(&server).await);
            servers.push(server);
        }
        let mut client = TableClient::new(&mut stubs[0], "t").await;
        for index in [0, 1, 150, 299] {
            let (requests, pending) = client.prepare_all(index);
            assert_eq!(requests.len(), count);
            let mut responses = Vec::new();
            for (stub, request) in stubs.iter_mut().zip(requests) {
                responses.push(ask(stub, request).await.unwrap());
            }
            assert_eq!(client.recover_all(pending, &responses), client.expected(index), "{index}");
            // Each server plays another role the next time.
            stubs.rotate_left(1);
        }
    }
}

#[tokio::test]
async fn points_that_do_not_belong_to_the_table_are_refused() {
    privet_laboratory::register();
    let good = || held(FINITE_DIFFERENCES);
    let identity = good().identity;
    let another = TableIdentity { epoch: Epoch(identity.epoch.0 + 1), ..identity };
    let mut more = good();
    more.points.push(0);
    let mut fewer = good();
    fewer.points.truncate(fewer.points.len() - 64);
    let mut more_parameters = good();
    more_parameters.parameters.push(0);
    let cases = [
        (Held { identity: another, ..good() }, FINITE_DIFFERENCES, Blame::ApiMisuse),
        (Held { len: 1 << 40, ..good() }, FINITE_DIFFERENCES, Blame::Corrupted),
        (more, FINITE_DIFFERENCES, Blame::Corrupted),
        (fewer, FINITE_DIFFERENCES, Blame::Corrupted),
        (more_parameters, FINITE_DIFFERENCES, Blame::Corrupted),
        (Held { parameters: Vec::new(), ..good() }, FINITE_DIFFERENCES, Blame::Corrupted),
        (good(), FINITE_DIFFERENCES_MANY, Blame::Corrupted),
        // The parameters of this scheme are empty, so it is not its parameters that are wrong.
        (Held { parameters: Vec::new(), ..good() }, SchemeId::Dpf, Blame::ApiMisuse),
    ];
    for (number, (points, scheme, blame)) in cases.into_iter().enumerate() {
        let table = ServedTable { setup: Some(Box::new(points)), ..served(scheme) };
        let refused = Server::start(config(), vec![table]).await.err().unwrap();
        assert_eq!(refused.blame(), blame, "case {number}: {refused}");
        assert!(refused.message().starts_with("table t: "), "case {number}: {refused}");
    }
}
