//! Attackers, and whether a server withstands them.

use crate::common::*;
use crate::frames::{PAUSE, Raw, Treatment};
use crate::honest::{Client, Errand, Honest, Outcome, ROUND, crowd, request_for_hints};
use crate::process::Attacked;
use privet_schemes::SchemeId;
use privet_server::{ServedTable, ServerConfig};
use privet_wire::prost::Message;
use privet_wire::{DescribeRequest, PartKind, limits, proto};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

/// The table that the honest client looks records up in.
pub(crate) const TABLE: &str = "table";
/// The table whose clients ask for hints.
pub(crate) const HINTS: &str = "hints";

/// How many errands of the honest client are looked at while an attack is going on: this many, or
/// those of some seconds, but never fewer than a few.
const ERRANDS: usize = 160;
const SECONDS: Duration = Duration::from_secs(6);
const FEWEST: usize = 2 * ROUND.len();

/// How much more memory a server may take than before the first attack, in bytes: 64 MiB of bodies
/// that do not end, in buffers that may have twice the room, and 32 MiB for connections, for the
/// other requests and for what the system's allocator keeps.
const MEMORY: u64 = 160 << 20;

/// With this variable set, each attack goes on for that many seconds, and what it does is printed.
const MEASURE: &str = "PRIVET_ABUSE_MEASURE";

fn measured() -> Option<Duration> {
    let seconds = std::env::var(MEASURE).ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap_or(10)))
}

/// The defaults, open to pages, and a small table of each kind.
pub(crate) fn defaults(_: &Path) -> (ServerConfig, Vec<ServedTable>) {
    let mut config = ServerConfig::new((Ipv4Addr::LOCALHOST, 0).into());
    config.metrics_listen = Some((Ipv4Addr::LOCALHOST, 0).into());
    config.web = Some(Vec::new());
    let hints = served_by(SchemeId::SinglePass, table(HINTS, 4096, 32, 2));
    (config, vec![table(TABLE, 4096, 64, 1), hints])
}

/// What attackers know: where the server is, and requests that it takes for valid.
pub(crate) struct Aim {
    pub(crate) address: SocketAddr,
    pub(crate) describe: Vec<u8>,
    pub(crate) fetch: Vec<u8>,
    pub(crate) answer: Vec<u8>,
    pub(crate) prepare: Vec<u8>,
    pub(crate) prepare_request: proto::PrepareRequest,
    /// The length of the longest message that the server reads, in bytes.
    pub(crate) longest_request: usize,
    pub(crate) treatment: Arc<Treatment>,
}

impl Aim {
    async fn at(address: SocketAddr, endpoint: &Endpoint) -> Self {
        let mut stub = stub_on(endpoint.connect().await.unwrap());
        let mut table = TableClient::new(&mut stub, TABLE).await;
        let description = describe(&mut stub).await;
        let hints = description.table(HINTS).unwrap().clone();
        let fetch = fetch_request(&table.description, PartKind::Hint, 0);
        let (mut queries, _) = table.prepare_all(0);
        let prepare_request = proto::PrepareRequest::from(request_for_hints(&hints));
        Self {
            address,
            describe: framed(&proto::DescribeRequest::from(DescribeRequest::default())),
            fetch: framed(&proto::FetchRequest::from(fetch)),
            answer: framed(&proto::AnswerRequest::from(queries.remove(0))),
            prepare: framed(&prepare_request),
            prepare_request,
            longest_request: limits::request_limit(description.plans()),
            treatment: Arc::default(),
        }
    }
}

/// A message as gRPC puts it into a body.
pub(crate) fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

/// One of the attackers: it holds one connection at a time.
#[derive(Clone)]
pub(crate) struct Attacker {
    pub(crate) number: usize,
    pub(crate) aim: Arc<Aim>,
    pub(crate) from: Ipv4Addr,
    place: watch::Sender<bool>,
}

impl Attacker {
    /// Says that the attack has reached its full strength. If an attacker never says so, it does
    /// with the end of its first connection.
    pub(crate) fn in_place(&self) {
        self.place.send_replace(true);
    }

    /// A connection with windows of `window` bytes for the server's responses; `None`: the usual
    /// ones.
    pub(crate) async fn open(&self, window: Option<u32>) -> io::Result<Raw> {
        let raw = Raw::open(self.aim.address, self.from, window, &self.aim.treatment).await?;
        Ok(if self.is_a_page() { raw.of_a_page() } else { raw })
    }

    /// Every second attacker asks by gRPC-Web.
    fn is_a_page(&self) -> bool {
        !self.number.is_multiple_of(2)
    }

    /// A connection from which nothing is read.
    pub(crate) async fn deaf(&self) -> io::Result<Raw> {
        let raw = Raw::deaf(self.aim.address, self.from, &self.aim.treatment).await?;
        Ok(if self.is_a_page() { raw.of_a_page() } else { raw })
    }
}

/// How many connections an attack has, and from how many addresses they come.
#[derive(Clone, Copy)]
pub(crate) struct Strength {
    pub(crate) connections: usize,
    pub(crate) addresses: u8,
}

impl Strength {
    pub(crate) fn from_one_address(connections: usize) -> Self {
        Self { connections, addresses: 1 }
    }
}

/// The address of an attacker: never that of the honest client.
fn address(number: usize, addresses: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + (number % usize::from(addresses)) as u8)
}

/// The server of a test, as it is by [`defaults`], withstands an attack on eight connections from
/// one address.
pub(crate) async fn withstands<Ended>(
    test: &str,
    attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
) where
    Ended: Future<Output = io::Result<()>> + Send,
{
    let attacked = Attacked::start(test, defaults).await;
    attacked.withstands(test, Strength::from_one_address(8), attack).await;
}

impl Attacked {
    /// Checks that the honest client at `endpoint` is served while `attack` is going on, and that
    /// nothing of the attack remains. `attack` is one connection of an attacker. Whoever is thrown
    /// out comes back.
    pub(crate) async fn withstands<Ended>(
        &self,
        what: &str,
        strength: Strength,
        attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
    ) where
        Ended: Future<Output = io::Result<()>> + Send,
    {
        let endpoint = endpoint(self.address);
        self.withstands_before(&endpoint, what, strength, attack).await;
    }

    /// The same with another way to the server for the honest client.
    pub(crate) async fn withstands_before<Ended>(
        &self,
        endpoint: &Endpoint,
        what: &str,
        strength: Strength,
        attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
    ) where
        Ended: Future<Output = io::Result<()>> + Send,
    {
        let aim = Arc::new(Aim::at(self.address, endpoint).await);
        let before = self.at_rest().await;
        let crowd = crowd();
        let mut honest = Honest::start(endpoint.clone(), TABLE, HINTS, crowd);
        honest.until_done(ROUND.len()).await;
        if let Some(time) = measured() {
            tokio::time::sleep(time).await;
            let quiet = honest.outcomes();
            let elsewhere = during_attack_on_another(self, time, &honest, strength, attack.clone());
            let elsewhere = elsewhere.await;
            println!("\n{what}\n  before: {}", summary(&quiet, &[]));
            println!("  another server attacked: {}", summary(&elsewhere, &[("before", &quiet)]));
            let attack = send_attackers(&aim, strength, attack);
            self.measure(time, &honest, &quiet, &elsewhere, &aim, attack).await;
            return;
        }

        let memory = self.begin_peak();
        let mut attackers = send_attackers(&aim, strength, attack).await;
        let begun = honest.outcomes().len();
        let _ = tokio::time::timeout(SECONDS, honest.until_done(begun + ERRANDS)).await;
        honest.until_done(begun + FEWEST).await;
        let under_attack = honest.outcomes().split_off(begun);
        let grown = self.peak().saturating_sub(memory);
        attackers.shutdown().await;
        honest.end();

        let failed = failures(&under_attack);
        // One may fail where a machine that was busy before does fewer than a hundred.
        let fewest = if crowd > 1.0 { 100 } else { 0 };
        assert!(
            failed.len() * 100 <= under_attack.len().max(fewest),
            "{what}: of {} errands {} failed, such as {:?}",
            under_attack.len(),
            failed.len(),
            &failed[..failed.len().min(3)]
        );
        assert!(grown <= MEMORY, "{what}: the server took {grown} bytes more than before");
        self.until_it_holds(&before).await;
        // The attackers' address is served like any other as soon as the attack is over.
        let theirs = endpoint.clone().local_address(Some(address(0, 1).into()));
        let mut honest = Honest::start(theirs, TABLE, HINTS, crowd);
        honest.until_done(ROUND.len()).await;
        assert!(failures(&honest.outcomes()).is_empty(), "{:?}", honest.outcomes());
        honest.end();
    }

    /// Checks that the honest client, which tries again whenever it is refused, gets its errand
    /// done again and again while `attack` is going on.
    pub(crate) async fn lets_through<Ended>(
        &self,
        errand: Errand,
        strength: Strength,
        attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
    ) where
        Ended: Future<Output = io::Result<()>> + Send,
    {
        const TIMES: usize = 5;
        let endpoint = endpoint(self.address);
        let aim = Arc::new(Aim::at(self.address, &endpoint).await);
        let mut honest = Client::new(endpoint, TABLE, HINTS, crowd()).await;
        let mut attackers = send_attackers(&aim, strength, attack).await;
        let done = async {
            for _ in 0..TIMES {
                while honest.run(errand).await.failure.is_some() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(120), done).await;
        assert!(done.is_ok(), "{errand:?} is refused for as long as the attack goes on");
        attackers.shutdown().await;
    }

    /// Prints how the honest client fares for a while during an attack, compared with the time
    /// before and with an attack on another server, and what the attack costs both sides.
    async fn measure(
        &self,
        time: Duration,
        honest: &Honest,
        quiet: &[Outcome],
        elsewhere: &[Outcome],
        aim: &Aim,
        attack: impl Future<Output = JoinSet<()>>,
    ) {
        let memory = self.begin_peak();
        let (ticks, shed) = (self.processor_ticks(), self.counted("privet_shed_total").await);
        let mut attackers = attack.await;
        let begun = honest.outcomes().len();
        tokio::time::sleep(time).await;
        let under_attack = honest.outcomes().split_off(begun);
        let Treatment { sent, streams_ended, connections_ended, .. } = &*aim.treatment;
        let others = [("before", quiet), ("with the other server attacked", elsewhere)];
        println!("  during: {}", summary(&under_attack, &others));
        println!(
            "  sent {} KB, lost {} streams and {} connections",
            sent.load(Ordering::Relaxed) >> 10,
            streams_ended.load(Ordering::Relaxed),
            connections_ended.load(Ordering::Relaxed)
        );
        println!(
            "  the server used {:.1} s of processor and {:.1} MiB more memory, and shed {}",
            (self.processor_ticks() - ticks) as f64 / 100.0,
            self.peak().saturating_sub(memory) as f64 / f64::from(1 << 20),
            self.counted("privet_shed_total").await - shed
        );
        attackers.shutdown().await;
    }
}

/// How the honest client fares while the same attackers are at work on another server of this
/// machine: what their processor time alone does to it.
async fn during_attack_on_another<Ended>(
    attacked: &Attacked,
    time: Duration,
    honest: &Honest,
    strength: Strength,
    attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
) -> Vec<Outcome>
where
    Ended: Future<Output = io::Result<()>> + Send,
{
    let another = attacked.another();
    let aim = Arc::new(Aim::at(another.address, &endpoint(another.address)).await);
    let mut attackers = send_attackers(&aim, strength, attack).await;
    let begun = honest.outcomes().len();
    tokio::time::sleep(time).await;
    let outcomes = honest.outcomes().split_off(begun);
    attackers.shutdown().await;
    outcomes
}

fn failures(outcomes: &[Outcome]) -> Vec<&Outcome> {
    outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect()
}

/// Starts the attackers, and returns when all of them are in place. Dropping them ends the attack.
async fn send_attackers<Ended>(
    aim: &Arc<Aim>,
    strength: Strength,
    attack: impl Fn(Attacker) -> Ended + Clone + Send + Sync + 'static,
) -> JoinSet<()>
where
    Ended: Future<Output = io::Result<()>> + Send,
{
    let mut attackers = JoinSet::new();
    let mut places = Vec::new();
    for number in 0..strength.connections {
        let (place, taken) = watch::channel(false);
        let from = address(number, strength.addresses);
        let attacker = Attacker { number, aim: Arc::clone(aim), from, place };
        let attack = attack.clone();
        places.push(taken);
        attackers.spawn(async move {
            loop {
                // A server that throws attackers out does what it should.
                let _ = attack(attacker.clone()).await;
                attacker.in_place();
                attacker.aim.treatment.connections_ended.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    for mut taken in places {
        taken.wait_for(|taken| *taken).await.expect("attackers do not end by themselves");
    }
    attackers
}

/// How errands went, for people, compared with how others went.
fn summary(outcomes: &[Outcome], others: &[(&str, &[Outcome])]) -> String {
    let failures = failures(outcomes);
    let mut text = format!("{} of {} errands failed", failures.len(), outcomes.len());
    if let Some(outcome) = failures.first() {
        text += &format!(", such as {outcome:?}");
    }
    for kind in BTreeSet::from(ROUND) {
        let of_kind = failures.iter().filter(|outcome| outcome.errand == kind);
        let failed = of_kind.count();
        let Some([half, most, all]) = percentiles(outcomes, kind) else { continue };
        text += &format!(
            "\n    {kind:?}: {failed} failed, {half:.1} ms p50, {most:.1} p99, {all:.1} at most"
        );
        for (name, others) in others {
            if let Some([_, other, _]) = percentiles(others, kind) {
                text += &format!("; p99 {:.1} times that {name}", most / other);
            }
        }
    }
    text
}

/// In milliseconds: the time within which half, 99 % and all errands of a kind ended.
fn percentiles(outcomes: &[Outcome], kind: Errand) -> Option<[f64; 3]> {
    let of_kind = outcomes.iter().filter(|outcome| outcome.errand == kind);
    let mut took: Vec<Duration> = of_kind.map(|outcome| outcome.took).collect();
    took.sort();
    let last = took.len().checked_sub(1)?;
    Some([50, 99, 100].map(|percent| took[last * percent / 100].as_secs_f64() * 1e3))
}
