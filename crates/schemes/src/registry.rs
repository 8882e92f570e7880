//! From a scheme's name to a server and a client whose types are erased. Generics end here: the layers above move bytes.

use crate::SchemeId;
use crate::contract::{
    AnswerOf, Answerer, Message, Offline, Parameters, ParametersOf, QueryOf, Record, Role, Scheme,
    SchemeOf, StatelessClient,
};
use crate::offline::{HintSource, OfflinePhase};
use crate::reservation::{Lookup, Pending, Prepared, Sendable};
use crate::simplepir::{
    SimplePir, SimplePirClient, SimplePirHint, SimplePirParameters, SimplePirServer,
};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use std::borrow::Cow;
use std::sync::Arc;

/// What a server of any scheme may use of the machine.
#[derive(Clone, Copy)]
pub struct ServerOptions {
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// Threads that share each pass over the table, at least 1.
    pub threads: usize,
}

/// The scheme that suits a table when the user says `auto`.
///
/// There is one scheme so far. Each that is added states here when it is the better choice.
pub fn choose(_identity: &TableIdentity) -> SchemeId {
    SchemeId::SimplePir
}

/// A server of any scheme.
pub trait ErasedServer: Send + Sync {
    /// The scheme it answers.
    fn plan(&self) -> &SchemePlan;

    /// Computes what clients download before their first query, if the scheme has that. The long part of a server's start; its result may be kept
    /// in a file, because it follows from the table and [`SchemePlan::parameters`] alone. `progress` hears of the share done, from 0 to 1.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Option<Precomputed>>;

    /// Answers a batch in one pass: one result for each query, in order. A query that does not parse gets an error and does not disturb the others.
    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>>;

    /// Memory held beyond the bytes of the table itself, in bytes.
    fn extra_bytes(&self) -> u64;

    /// How much of the table's memory the system backs with huge pages, if it says.
    fn huge_page_bytes(&self) -> Option<u64>;
}

/// What a server computed for clients to download.
pub enum Precomputed {
    /// SimplePIR's hint.
    SimplePir(SimplePirHint),
}

impl Precomputed {
    /// The bytes as they are downloaded and stored.
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Precomputed::SimplePir(hint) => hint.as_bytes(),
        }
    }
}

/// A client of any scheme.
pub trait ErasedClient: Send {
    /// The scheme it queries.
    fn plan(&self) -> &SchemePlan;

    /// Prepares one lookup. A client with single-use hints takes its hint out of use in memory at once, so that two lookups under way never share one; the
    /// reservation's journal record makes that durable before anything is sent.
    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared>;

    /// The record, from one answer of each server in order.
    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered>;
}

/// What came of one lookup.
pub struct Recovered {
    /// The record.
    pub record: Record,
    /// For clients with single-use hints: the state change that completes the lookup (a hint refreshed by the answer, say). It belongs into the journal, but nothing
    /// waits for it: until it is there, a restart finds the lookup unfinished and sends the same queries again.
    pub completion: Option<Vec<u8>>,
}

impl Recovered {
    /// The record of a stateless scheme.
    pub fn record(record: Record) -> Self {
        Self { record, completion: None }
    }
}

/// What is known of a scheme on a table before any of its state exists: sizes of all messages, and what has to flow first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemePlan {
    /// The scheme.
    pub scheme: SchemeId,
    /// The scheme's parameters in their canonical encoding.
    pub parameters: Vec<u8>,
    /// How many servers take part in a query.
    pub servers: usize,
    /// Size of every query to one server, in bytes.
    pub query_len: usize,
    /// Size of every answer of one server, in bytes.
    pub answer_len: usize,
    /// What has to flow before the first query.
    pub offline: OfflinePhase,
}

impl SchemePlan {
    /// Reads what a server announced, refusing parameters that are malformed, inconsistent with the table or below the security target.
    ///
    /// # Errors
    /// As [`Parameters::decode`].
    pub fn from_announcement(
        scheme: SchemeId,
        identity: &TableIdentity,
        parameters: &[u8],
    ) -> Result<Self> {
        match scheme {
            SchemeId::SimplePir => {
                Ok(Self::of::<SimplePir>(&SimplePirParameters::decode(identity, parameters)?))
            }
        }
    }

    fn of<S: Offline>(parameters: &S::Parameters) -> Self {
        Self {
            scheme: S::ID,
            parameters: parameters.encode(),
            servers: S::SERVERS,
            query_len: S::Query::encoded_len(parameters),
            answer_len: S::Answer::encoded_len(parameters),
            offline: S::offline_phase(parameters),
        }
    }

    /// A digest of everything both sides must agree on: the scheme, its parameters and the table in its epoch. Every message carries it.
    pub fn digest(&self, identity: &TableIdentity) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 parameter digest");
        hasher.update(&identity.id.0);
        hasher.update(&identity.epoch.0.to_le_bytes());
        hasher.update(&identity.digest.0);
        hasher.update(&identity.shape.records().to_le_bytes());
        hasher.update(&identity.shape.record_len().to_le_bytes());
        hasher.update(&(self.scheme.name().len() as u64).to_le_bytes());
        hasher.update(self.scheme.name().as_bytes());
        hasher.update(&self.parameters);
        *hasher.finalize().as_bytes()
    }
}

/// Starts a server for `table` with the scheme's default parameters. The table's bytes are copied; `table` is not needed afterwards.
///
/// # Errors
/// If the scheme's proof does not cover the table's shape, or the memory cannot be had.
pub fn server(
    scheme: SchemeId,
    table: TableView<'_>,
    options: ServerOptions,
) -> Result<Box<dyn ErasedServer>> {
    match scheme {
        SchemeId::SimplePir => {
            let parameters = SimplePirParameters::new(&table.identity())?;
            let plan = SchemePlan::of::<SimplePir>(&parameters);
            let server = SimplePirServer::new(parameters, table, options.kernels, options.threads)?;
            Ok(Box::new(SimplePirHost { plan, table_bytes: table.shape().bytes(), server }))
        }
    }
}

/// Starts a client of the scheme that `plan` describes, with the hint it downloaded.
///
/// # Errors
/// If `plan` does not belong to the table, or the hint is not of the prescribed size.
pub fn client(
    plan: SchemePlan,
    identity: &TableIdentity,
    hint: Arc<dyn HintSource>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    match plan.scheme {
        SchemeId::SimplePir => {
            let parameters = SimplePirParameters::decode(identity, &plan.parameters)?;
            let client = SimplePirClient::new(parameters.clone(), hint, kernels)?;
            Ok(Box::new(StatelessHost { plan, parameters, client }))
        }
    }
}

struct SimplePirHost {
    plan: SchemePlan,
    table_bytes: u64,
    server: SimplePirServer,
}

impl ErasedServer for SimplePirHost {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Option<Precomputed>> {
        Ok(Some(Precomputed::SimplePir(self.server.hint(progress)?)))
    }

    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        answer_encoded(&self.server, role, queries)
    }

    fn extra_bytes(&self) -> u64 {
        self.server.resident_bytes().saturating_sub(self.table_bytes)
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.server.huge_page_bytes()
    }
}

/// Decodes each query, answers the valid ones in one pass, and puts the answers back in order.
fn answer_encoded<A: Answerer>(server: &A, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
    let servers = <A as SchemeOf>::Scheme::SERVERS;
    if usize::from(role.0) >= servers {
        let refusal = || {
            Err(Error::invalid_message(format!(
                "there is no role {} in a scheme of {servers} servers",
                role.0
            )))
        };
        return queries.iter().map(|_| refusal()).collect();
    }
    let mut valid = Vec::with_capacity(queries.len());
    let mut results: Vec<Result<Vec<u8>>> = Vec::with_capacity(queries.len());
    for bytes in queries {
        results.push(QueryOf::<A>::decode(server.parameters(), bytes).map(|query| {
            valid.push(query);
            Vec::new()
        }));
    }
    let mut answers =
        if valid.is_empty() { Vec::new() } else { server.answer(role, &valid) }.into_iter();
    for answer in results.iter_mut().flatten() {
        *answer = answers.next().map(|answer: AnswerOf<A>| answer.encode()).unwrap_or_default();
    }
    results
}

struct StatelessHost<C: StatelessClient> {
    plan: SchemePlan,
    parameters: ParametersOf<C>,
    client: C,
}

impl<C: StatelessClient + Send> ErasedClient for StatelessHost<C> {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        let (queries, pending) = self.client.query(index, rng)?;
        let queries = queries.iter().map(Message::encode).collect();
        Ok(Prepared::Ready(Lookup {
            sendable: Sendable::stateless(queries),
            pending: Pending::new(pending),
        }))
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        let pending = pending.into_inner::<C::Pending>()?;
        let answers: Vec<AnswerOf<C>> = answers
            .iter()
            .map(|bytes| Message::decode(&self.parameters, bytes))
            .collect::<Result<_>>()?;
        self.client.recover(pending, &answers).map(Recovered::record)
    }
}
