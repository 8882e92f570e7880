//! Servers on loopback that record the queries they receive.

use privet_client::ClientOptions;
use privet_core::Result;
use privet_host::TableFile;
use privet_schemes::SchemeId;
use privet_schemes::registry::Tuning;
use privet_server::{RunningServer, ServedTable, Server, ServerConfig};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The servers of one table.
pub(super) struct Servers(Vec<Started>);

struct Started {
    running: RunningServer,
    elapsed: Duration,
    seen: Seen,
}

/// The queries as they reached the server.
type Seen = Arc<Mutex<Vec<Vec<u8>>>>;

impl Servers {
    /// As many servers as the scheme takes, each with a copy of the table.
    pub(super) async fn start(path: &Path, scheme: SchemeId, tuning: &Tuning) -> Result<Self> {
        let first = start_one(copy(path, scheme, tuning)?, true).await?;
        let tables = first.running.tables();
        let plan = tables.iter().flat_map(|table| &table.description.schemes).next();
        let servers = plan.map_or(1, |scheme| scheme.plan.servers);
        let mut started = vec![first];
        while started.len() < servers {
            started.push(start_one(copy(path, scheme, tuning)?, true).await?);
        }
        Ok(Self(started))
    }

    /// Two servers that announce the same table. In the second one's copy, one bit of the last
    /// record is flipped.
    pub(super) async fn start_with_a_liar(path: &Path) -> Result<Self> {
        let table = || copy(path, SchemeId::ApirDpf, &Tuning::default());
        let (honest, mut liar) = (table()?, table()?);
        let mut records = liar.records.to_vec()?;
        if let Some(last) = records.last_mut() {
            *last ^= 1;
        }
        liar.records = Box::new(records);
        Ok(Self(vec![start_one(honest, true).await?, start_one(liar, false).await?]))
    }

    pub(super) async fn stop(self) -> Result<()> {
        for server in self.0 {
            server.running.shutdown();
            server.running.wait().await?;
        }
        Ok(())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// For a client of theirs, which finds them on this machine whatever proxy is set.
    pub(super) fn client_options(&self) -> ClientOptions {
        let urls = self.0.iter().map(|server| format!("http://{}", server.running.local_addr()));
        ClientOptions { proxies: vec!["none".to_owned()], ..ClientOptions::new(urls) }
    }

    /// How long the slowest server took to start.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.iter().map(|server| server.elapsed).max().unwrap_or_default()
    }

    /// The queries that each server received since the last call.
    pub(super) fn take_seen(&self) -> Vec<Vec<Vec<u8>>> {
        let take = |server: &Started| {
            std::mem::take(&mut *server.seen.lock().unwrap_or_else(PoisonError::into_inner))
        };
        self.0.iter().map(take).collect()
    }
}

pub(super) fn copy(path: &Path, scheme: SchemeId, tuning: &Tuning) -> Result<ServedTable> {
    let file = TableFile::new("phone-book", path);
    TableFile { scheme: Some(scheme), tuning: tuning.clone(), ..file }
        .open()
        .map(|(table, _)| table)
}

/// `verified`: whether the server checks its table at the start. The lying one must not.
async fn start_one(table: ServedTable, verified: bool) -> Result<Started> {
    let start = Instant::now();
    let mut config = ServerConfig::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    config.verify_records = verified;
    let seen = Seen::default();
    let sees = Arc::clone(&seen);
    config.query_observer = Some(Arc::new(move |request| {
        sees.lock().unwrap_or_else(PoisonError::into_inner).push(request.query.to_vec());
    }));
    let running = Server::start(config, vec![table]).await?;
    Ok(Started { running, elapsed: start.elapsed(), seen })
}
