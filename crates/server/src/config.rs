//! All settings of a server, with their defaults.

use crate::limits::Limits;
use crate::web::WebOrigin;
use privet_core::{Error, Reason, Result};
use privet_kernels::Kernels;
use privet_wire::AnswerRequest;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The longest batch window: clients would not wait longer.
const MAX_BATCH_WINDOW: Duration = Duration::from_secs(10);

/// How a server listens, computes, and defends itself. [`ServerConfig::new`] gives the defaults.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where clients connect. With port 0 the system chooses the port, and
    /// [`RunningServer::local_addr`](crate::RunningServer::local_addr) returns it.
    pub listen: SocketAddr,
    /// Where `/metrics` and `/healthz` are served, over plain HTTP. Default: nowhere.
    pub metrics_listen: Option<SocketAddr>,
    /// Certificate and key for TLS. Default: none, and then `listen` must be a loopback address.
    pub tls: Option<TlsFiles>,
    /// Allows plaintext on any address. Then an attacker on the network sees which table is asked
    /// and when, and can change answers. Default: false.
    pub insecure: bool,
    /// Whether pages in browsers are served as well, by gRPC-Web, and those of which origins. With
    /// none, those that a proxy shows under its own origin together with this server. Default: not.
    pub web: Option<Vec<WebOrigin>>,
    /// The instruction set to compute with. Default: the best this processor has.
    pub kernels: Kernels,
    /// Threads that compute answers. They share each pass over a table; answers that read only a
    /// part of it are computed side by side. Default: one for each core.
    pub threads: usize,
    /// How long the first query of a batch waits for others. Default: zero. Queries that come while
    /// a pass runs are answered together by the next one in any case; a window makes batches larger
    /// where many clients ask, and every lookup slower.
    pub batch_window: Duration,
    /// Queries answered in one pass. Default: 16; more make a pass slower and save little memory
    /// traffic.
    pub max_batch: usize,
    /// What clients may make the server hold, and for how long.
    pub limits: Limits,
    /// How many requests for hints are computed at once, each on a thread of its own, beside the
    /// queries. Default: `threads`.
    pub preparations_at_once: Option<usize>,
    /// How long requests under way may take to finish when the server stops. Requests for hints are
    /// cut off as well, but a computation that has begun runs to its end. Default: 10 s.
    pub drain_limit: Duration,
    /// How long the earlier version of a table is still served after a new one came, so that
    /// clients can finish what they began with it. Zero: only requests under way are finished. Each
    /// version holds its own memory. Default: 10 min, in which clients prepare hints.
    pub grace: Duration,
    /// How many bytes of memory the versions beside the newest may hold, of all tables together.
    /// The version that is being made counts as well, and can always be made. Those that find no
    /// room are retired before their grace periods end, the earliest of the table first, and their
    /// clients move on at once. Versions of other tables do not give way to it: allow for one
    /// version of the largest table besides. Default: of each table, as much as its newest version,
    /// and a tenth more, so that a table that grows a little still fits; and at least 16 MiB. That
    /// is one earlier version of a large table while none is made, and none while one is.
    pub max_version_memory: Option<u64>,
    /// A directory for precomputed hints, and for what servers keep of the computation for
    /// themselves, so that a restart need not compute them again. No other program or user may
    /// write there. Default: none; hints then live in memory.
    pub cache_dir: Option<PathBuf>,
    /// Whether the records of every table are hashed at the start. A table whose records do not
    /// have its digest is refused. Default: true. Without this check a damaged table is served, and
    /// clients of most schemes get wrong records that they cannot recognise. Nor is what is
    /// computed then kept in the cache, nor is the memory that queries are answered from checked
    /// later.
    pub verify_records: bool,
    /// When no update of a table has come for so long, the hint that the last one led to goes into
    /// the cache, so that the next start finds it. When the server stops, it goes there at once.
    pub keep_hints_after: Duration,
    /// How many bytes a second are read again, to find out whether the data behind answers and
    /// downloads is still unchanged: see the module `scrub`. Default: 32 MiB; 0 reads nothing
    /// again.
    pub scrub_rate: u64,
    /// The shortest time from the beginning of one such pass to the beginning of the next. Default:
    /// 10 min.
    pub scrub_interval: Duration,
    /// Is called with the progress of precomputing hints; never if a scheme has none, or the cache
    /// has them. Default: none.
    pub progress: Option<ProgressListener>,
    /// How many lines of the log were lost so far, if whoever writes the log counts them.
    /// `/metrics` shows it. Default: nobody counts.
    pub log_lines_lost: Option<Arc<AtomicU64>>,
    /// Is called with every query that is about to be answered: for demonstrations and tests of
    /// what a server sees. Default: none.
    pub query_observer: Option<QueryObserver>,
}

/// Sees queries as they arrive. The server calls it on its own threads, so it should be quick.
pub type QueryObserver = Arc<dyn Fn(&AnswerRequest) + Send + Sync>;

/// Is called with progress, on any thread that computes.
pub type ProgressListener = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// The progress of precomputing one table's hint, with everything that the server keeps of it for
/// itself.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The table's name.
    pub table: &'a str,
    /// The share that is done, from 0 to 1.
    pub share: f64,
}

/// Certificate and key for TLS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// A PEM file with the server's certificate, followed by intermediate ones, if any.
    pub cert: PathBuf,
    /// A PEM file with the certificate's private key. It is refused if anybody but its owner and
    /// group can read it.
    pub key: PathBuf,
}

impl ServerConfig {
    /// The defaults, for a server at `listen`.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            metrics_listen: None,
            tls: None,
            insecure: false,
            web: None,
            kernels: Kernels::detect(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            batch_window: Duration::ZERO,
            max_batch: 16,
            limits: Limits::default(),
            preparations_at_once: None,
            drain_limit: Duration::from_secs(10),
            grace: Duration::from_secs(600),
            max_version_memory: None,
            cache_dir: None,
            verify_records: true,
            keep_hints_after: Duration::from_secs(60),
            scrub_rate: 32 << 20,
            scrub_interval: Duration::from_secs(600),
            progress: None,
            log_lines_lost: None,
            query_observer: None,
        }
    }

    /// Checks what can be checked before anything is started.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) with a sentence that says what to
    /// change.
    pub fn check(&self) -> Result<()> {
        if self.tls.is_none() && !self.insecure && !is_loopback(self.listen.ip()) {
            return Err(Error::api_misuse(format!(
                "{} can be reached from other machines, and without TLS anybody on the network path sees which table is asked and can change answers: give a \
                 certificate and key, listen on 127.0.0.1, or accept plaintext",
                self.listen
            ))
            .because(Reason::NotEncrypted));
        }
        let counts = [
            ("threads", self.threads),
            ("max_batch", self.max_batch),
            ("preparations_at_once", self.preparations_at_once.unwrap_or(1)),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(Error::api_misuse(format!(
                "{name} must be at least 1: with 0 nobody could be served"
            )));
        }
        // The largest number that the semaphores behind these settings can count.
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count > 1 << 24) {
            return Err(Error::api_misuse(format!("{name} can be at most {}", 1 << 24)));
        }
        self.limits.check()?;
        if self.batch_window > MAX_BATCH_WINDOW {
            return Err(Error::api_misuse(format!(
                "batch_window can be at most {} s: every query may have to wait that long",
                MAX_BATCH_WINDOW.as_secs()
            )));
        }
        if self.scrub_interval.is_zero() {
            return Err(Error::api_misuse("scrub_interval must be longer than nothing"));
        }
        Ok(())
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerConfig")
            .field("listen", &self.listen)
            .field("metrics_listen", &self.metrics_listen)
            .field("tls", &self.tls)
            .field("threads", &self.threads)
            .field("cache_dir", &self.cache_dir)
            .finish_non_exhaustive()
    }
}

pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    fn config(listen: &str) -> ServerConfig {
        ServerConfig::new(listen.parse().unwrap())
    }

    #[test]
    fn plaintext_is_for_loopback_unless_asked_for_by_name() {
        for loopback in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            config(loopback).check().unwrap();
        }
        for reachable in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            let error = config(reachable).check().unwrap_err();
            assert_eq!(error.blame(), Blame::ApiMisuse);
            assert_eq!(error.reason(), Some(Reason::NotEncrypted), "{error}");
            ServerConfig { insecure: true, ..config(reachable) }.check().unwrap();
            let tls = Some(TlsFiles { cert: "c".into(), key: "k".into() });
            ServerConfig { tls, ..config(reachable) }.check().unwrap();
        }
    }

    #[test]
    fn limits_that_would_serve_nobody_are_refused_by_name() {
        let refusal = |config: ServerConfig| config.check().unwrap_err().to_string();
        let base = config("127.0.0.1:0");
        assert!(refusal(ServerConfig { max_batch: 0, ..base.clone() }).contains("max_batch"));
        assert!(refusal(ServerConfig { threads: 0, ..base.clone() }).contains("threads"));
        let limits = Limits { stall_limit: Duration::ZERO, ..Limits::default() };
        assert!(refusal(ServerConfig { limits, ..base.clone() }).contains("stall-limit"));
        assert!(
            refusal(ServerConfig { batch_window: Duration::MAX, ..base.clone() })
                .contains("batch_window")
        );
        ServerConfig { batch_window: Duration::ZERO, ..base }.check().unwrap();
    }
}
