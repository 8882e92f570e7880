//! Queries, the journal of the client, answers, and recovered records.

use super::microseconds;
use super::table::BenchTable;
use privet_client::state::{HintStore, HintsKey, HintsOpened, State as _};
use privet_client::store::Store;
use privet_core::{Error, RecordIndex, Result, SecretRng, TableIdentity};
use privet_schemes::contract::{Record, ReservationId, Role};
use privet_schemes::registry::{ErasedClient, ErasedServer, Recovered, SchemePlan};
use privet_schemes::reservation::{Lookup, Prepared, Reservation};
use std::collections::VecDeque;
use std::time::Instant;

/// How many earlier queries a server that reads single records answers again before each batch.
const WARM_UP: usize = 16;

/// Microseconds of each step, one entry per query.
#[derive(Default)]
pub(super) struct Timings {
    pub(super) query: Vec<f64>,
    /// Only queries with a state change have an entry.
    pub(super) journal: Vec<f64>,
    /// For each server and each batch, one query's share of the pass. Empty for a scheme that asks
    /// no server.
    pub(super) answers: Vec<Vec<f64>>,
    pub(super) recover: Vec<f64>,
    /// For each role, the last queries before the batch.
    before: Vec<VecDeque<Vec<u8>>>,
}

/// A lookup under way, with one query for each server.
struct AskedLookup {
    index: u64,
    lookup: Lookup,
    /// Microseconds spent on its journal so far.
    journal_us: f64,
}

impl Timings {
    /// Looks up one batch of records, `wanted`: makes the queries, answers them in one pass,
    /// recovers the records and compares them.
    pub(super) fn run_batch(
        &mut self,
        table: &BenchTable,
        server: &dyn ErasedServer,
        client: &mut dyn ErasedClient,
        mut journal: Option<&mut HintJournal>,
        wanted: &[u64],
    ) -> Result<()> {
        let mut rng = SecretRng::from_os()?;
        // All queries of a batch are made before the first is synced to the journal, as in a client
        // with several lookups under way. A sync puts the processor to sleep, and it may lose what
        // it has cached.
        let mut all_prepared = Vec::new();
        for index in wanted.iter().copied() {
            let wanted = RecordIndex::new(index, table.shape())?;
            let start = Instant::now();
            let prepared = client.prepare(&wanted, &mut rng)?;
            all_prepared.push((index, prepared, microseconds(start)));
        }
        let mut asked = Vec::new();
        for (index, prepared, prepare_us) in all_prepared {
            let start = Instant::now();
            let lookup = match prepared {
                Prepared::Ready(lookup) => lookup,
                Prepared::Reserved(reservation) => open(&mut journal)?.commit(reservation)?,
                Prepared::Known(record) => {
                    self.query.push(0.0);
                    self.recover.push(prepare_us);
                    compare(table, index, &record)?;
                    continue;
                }
            };
            self.query.push(prepare_us);
            asked.push(AskedLookup { index, lookup, journal_us: microseconds(start) });
        }

        let mut answers = self.answer(server, &asked)?.into_iter();
        let mut waiting = Vec::new();
        for asked in asked {
            let answers: Vec<Vec<u8>> = answers.next().unwrap_or_default();
            let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
            let start = Instant::now();
            let recovered = client.recover(asked.lookup.pending, &answers)?;
            self.recover.push(microseconds(start));
            match recovered {
                Recovered::Record(record) => compare(table, asked.index, &record)?,
                Recovered::Settled { id, change, record } => {
                    let start = Instant::now();
                    open(&mut journal)?.hints.settle(id, &change)?;
                    self.journal.push(asked.journal_us + microseconds(start));
                    match record {
                        Some(record) => compare(table, asked.index, &record?)?,
                        None => waiting.push((id, asked.index)),
                    }
                }
            }
        }
        // A hint may have waited for another answer of this batch. By now its record can be
        // recovered.
        for (id, index) in waiting {
            compare(table, index, &take_record(client, id)?)?;
        }
        Ok(())
    }
}

impl Timings {
    /// The servers' part: each answers its queries in one pass. Returns, for each lookup, the
    /// answers of all servers.
    fn answer(
        &mut self,
        server: &dyn ErasedServer,
        asked: &[AskedLookup],
    ) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut answers = vec![Vec::new(); asked.len()];
        if asked.is_empty() {
            return Ok(answers);
        }
        let servers = server.plan().servers;
        self.answers.resize(servers, Vec::new());
        self.before.resize(servers, VecDeque::new());
        for role in 0..servers {
            let queries: Vec<&[u8]> = asked
                .iter()
                .map(|asked| asked.lookup.sendable.queries()[role].as_slice())
                .collect();
            // A real server is another machine, and busy. Here the journal's sync has just put the
            // processor to sleep, and its cached addresses are lost. So a server that reads single
            // records first answers its previous queries again. Those read other records.
            if !server.shares_passes() {
                let before: Vec<&[u8]> = self.before[role].iter().map(Vec::as_slice).collect();
                server.answer(Role(role as u8), &before);
                self.before[role].extend(queries.iter().map(|query| query.to_vec()));
                let surplus = self.before[role].len().saturating_sub(WARM_UP);
                self.before[role].drain(..surplus);
            }
            let start = Instant::now();
            let answered = server.answer(Role(role as u8), &queries);
            self.answers[role].push(microseconds(start) / asked.len() as f64);
            for (answers, answer) in answers.iter_mut().zip(answered) {
                answers.push(answer?);
            }
        }
        Ok(answers)
    }
}

fn take_record(client: &mut dyn ErasedClient, id: ReservationId) -> Result<Record> {
    client.hints().and_then(|hints| hints.take_record(id)).unwrap_or_else(|| {
        Err(Error::internal(
            "a record cannot be told although every query is answered; this is a bug",
        ))
    })
}

pub(super) fn compare(table: &BenchTable, index: u64, record: &[u8]) -> Result<()> {
    if record == table.record(index) {
        return Ok(());
    }
    Err(Error::integrity("a record came back wrong: this build of Privet must not be used"))
}

/// Where state changes are made durable: a state directory like that of `privet get`, deleted at
/// the end.
pub(super) struct HintJournal {
    hints: Box<dyn HintStore>,
    // Declared after the hints, which lie in it, so that it is dropped after them.
    _store: Store,
    _directory: tempfile::TempDir,
}

impl HintJournal {
    /// A state directory that holds `generation` as the one in use.
    pub(super) fn new(
        plan: &SchemePlan,
        identity: &TableIdentity,
        generation: &[u8],
    ) -> Result<Self> {
        let directory = tempfile::tempdir().map_err(|error| {
            Error::unavailable("there is no room for temporary files").caused_by(error)
        })?;
        let mut store = Store::open(directory.path())?;
        let key = HintsKey {
            table: *identity,
            scheme: plan.scheme,
            parameter_digest: plan.digest(identity),
            servers: [0; 32],
        };
        let HintsOpened::Have { mut hints, .. } = store.open_hints(&key, false)? else {
            return Err(Error::unavailable("another process uses the temporary directory"));
        };
        hints.preparation()?.save_generation(generation)?;
        hints.switch()?;
        Ok(Self { hints, _store: store, _directory: directory })
    }

    fn commit(&mut self, reservation: Reservation) -> Result<Lookup> {
        let receipt = self.hints.reserve_one(reservation.id(), reservation.record())?;
        reservation.commit_with(receipt)
    }
}

fn open<'a>(journal: &'a mut Option<&mut HintJournal>) -> Result<&'a mut HintJournal> {
    journal.as_deref_mut().ok_or_else(|| {
        Error::internal("a client has single-use hints and no journal; this is a bug")
    })
}
