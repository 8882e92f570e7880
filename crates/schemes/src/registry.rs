//! From a scheme's name to a server and a client whose types are erased. Generics end here: the layers above move bytes.

use crate::SchemeId;
use crate::contract::{
    AnswerOf, Answerer, HintedClient, Message, Offline, Parameters, ParametersOf, Preparation,
    QueryOf, Record, ReservationId, Role, Scheme, SchemeOf, StatelessClient, Supply,
};
use crate::dummy_subsets::{
    DummySubsets, DummySubsetsClient, DummySubsetsParameters, DummySubsetsPreparation,
    DummySubsetsServer,
};
use crate::offline::{HintSource, OfflinePhase, StreamConsumer};
use crate::reservation::{Lookup, Pending, Prepared, Reservation, Sendable};
use crate::simplepir::{
    SimplePir, SimplePirClient, SimplePirHint, SimplePirParameters, SimplePirServer,
};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use std::borrow::Cow;
use std::sync::Arc;
use zeroize::Zeroizing;

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
/// Dummy subsets, if clients then receive no more than SimplePIR's hint before their first query (they stream the whole table) and keep no more than the
/// table: their queries are shorter and cost the server little. That is so for tables up to 16 MiB of many short records. Otherwise SimplePIR,
/// whose clients never receive the table and keep nothing secret between queries.
pub fn choose(identity: &TableIdentity) -> SchemeId {
    let shape = identity.shape;
    let (simplepir, dummy_subsets) =
        (SimplePirParameters::new(identity), DummySubsetsParameters::new(shape));
    match (simplepir, dummy_subsets) {
        (Err(_), Ok(_)) => SchemeId::DummySubsets,
        (Ok(simplepir), Ok(dummy_subsets))
            if shape.bytes() <= simplepir.hint_bytes()
                && dummy_subsets.state_bytes() <= shape.bytes() =>
        {
            SchemeId::DummySubsets
        }
        _ => SchemeId::SimplePir,
    }
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

    /// Whether several queries cost less in one pass than one by one, so that it is worth a wait to collect some.
    fn shares_passes(&self) -> bool;

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

    /// What the answers to a lookup's queries, one of each server in order, come to.
    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered>;

    /// The single-use hints, if the client has such.
    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        None
    }
}

/// What came of one lookup.
pub enum Recovered {
    /// The record: of a scheme without state.
    Record(Record),
    /// The record and a state change, already applied in memory: of a scheme with single-use hints. The change belongs into the journal, but nothing waits for it: until
    /// it is there, a restart finds the lookup unfinished and sends the same queries again.
    Settled {
        /// The reservation that is settled.
        id: ReservationId,
        /// The state change. Secret.
        change: Zeroizing<Vec<u8>>,
        /// The record. `None`: it waits for the answer of another reservation; ask [`ErasedHints::take_record`] after each that is settled.
        record: Option<Result<Record>>,
    },
}

/// The state of a client with single-use hints. See [`HintedClient`] for what each does.
pub trait ErasedHints {
    /// Applies a change from the journal, in the order in which changes were written.
    fn apply(&mut self, change: &[u8]) -> Result<()>;

    /// Settles a reservation whose queries were sent by an earlier process: [`Recovered::Settled`], with the change applied in memory.
    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered>;

    /// The record of a settled reservation, once it can be told.
    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>>;

    /// Reservations that are not settled, oldest first.
    fn open(&self) -> Vec<ReservationId>;

    /// How far the generation is used up.
    fn supply(&self) -> Supply;
}

/// A generation of hints in the making. See [`Preparation`] for what each does.
pub trait ErasedPreparation: StreamConsumer + Send {
    /// What is needed to go on after a restart. Secret.
    fn checkpoint(&self) -> Zeroizing<Vec<u8>>;

    /// Where a checkpoint taken now would go on.
    fn checkpoint_offset(&self) -> u64;

    /// The generation, once [`finish`](StreamConsumer::finish) has succeeded. Secret.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>>;
}

impl<P: Preparation + Send> ErasedPreparation for P {
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        Preparation::checkpoint(self)
    }

    fn checkpoint_offset(&self) -> u64 {
        Preparation::checkpoint_offset(self)
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        Preparation::generation(self)
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
            SchemeId::DummySubsets => {
                Ok(Self::of::<DummySubsets>(&DummySubsetsParameters::decode(identity, parameters)?))
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
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::new(table.shape())?;
            let plan = SchemePlan::of::<DummySubsets>(&parameters);
            let server = DummySubsetsServer::new(parameters, table, options.kernels)?;
            Ok(Box::new(DummySubsetsHost { plan, table_bytes: table.shape().bytes(), server }))
        }
    }
}

/// Starts a client of the scheme that `plan` describes, with the hint it downloaded: for schemes whose offline phase is nothing or a download.
///
/// # Errors
/// If `plan` does not belong to the table, is of another kind of scheme, or the hint is not of the prescribed size.
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
        SchemeId::DummySubsets => Err(other_kind(plan.scheme)),
    }
}

/// Starts a client of the scheme that `plan` describes, with a generation of hints of its own: for schemes whose offline phase streams the table.
///
/// # Errors
/// If `plan` does not belong to the table or is of another kind of scheme, or the generation is not of the prescribed form.
pub fn hinted_client(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    match plan.scheme {
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            let client = DummySubsetsClient::load(parameters.clone(), generation, kernels)?;
            Ok(Box::new(HintedHost { plan, parameters, client }))
        }
        SchemeId::SimplePir => Err(other_kind(plan.scheme)),
    }
}

/// Begins a generation of hints, or goes on from a checkpoint: for schemes whose offline phase streams the table. `records_digest` is the BLAKE3 digest that the
/// streamed table must have.
///
/// # Errors
/// As [`hinted_client`]; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no entropy or no memory.
pub fn preparation(
    plan: &SchemePlan,
    identity: &TableIdentity,
    records_digest: [u8; 32],
    checkpoint: Option<&[u8]>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedPreparation>> {
    match plan.scheme {
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            begin_or_resume::<DummySubsetsPreparation>(
                parameters,
                records_digest,
                checkpoint,
                kernels,
            )
        }
        SchemeId::SimplePir => Err(other_kind(plan.scheme)),
    }
}

fn begin_or_resume<P: Preparation + Send + 'static>(
    parameters: ParametersOf<P>,
    records_digest: [u8; 32],
    checkpoint: Option<&[u8]>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedPreparation>> {
    Ok(Box::new(match checkpoint {
        Some(checkpoint) => P::resume(parameters, records_digest, checkpoint, kernels)?,
        None => P::begin(parameters, records_digest, &mut SecretRng::from_os()?, kernels)?,
    }))
}

fn other_kind(scheme: SchemeId) -> Error {
    Error::api_misuse(format!("{scheme} has another kind of offline phase"))
}

struct DummySubsetsHost {
    plan: SchemePlan,
    table_bytes: u64,
    server: DummySubsetsServer,
}

impl ErasedServer for DummySubsetsHost {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn precompute(&self, _progress: &(dyn Fn(f64) + Sync)) -> Result<Option<Precomputed>> {
        Ok(None)
    }

    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        answer_encoded(&self.server, role, queries)
    }

    fn shares_passes(&self) -> bool {
        false
    }

    fn extra_bytes(&self) -> u64 {
        self.server.resident_bytes().saturating_sub(self.table_bytes)
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.server.huge_page_bytes()
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

    fn shares_passes(&self) -> bool {
        true
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
        self.client.recover(pending, &answers).map(Recovered::Record)
    }
}

struct HintedHost<C: HintedClient> {
    plan: SchemePlan,
    parameters: ParametersOf<C>,
    client: C,
}

impl<C: HintedClient + Send> ErasedClient for HintedHost<C> {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        let reserved = self.client.reserve(index, rng)?;
        self.client.apply(&reserved.change)?;
        Ok(Prepared::Reserved(Reservation::new(reserved, Message::encode)))
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        let id = pending.into_inner::<ReservationId>()?;
        self.settle(id, answers)
    }

    fn hints(&mut self) -> Option<&mut dyn ErasedHints> {
        Some(self)
    }
}

impl<C: HintedClient> ErasedHints for HintedHost<C> {
    fn apply(&mut self, change: &[u8]) -> Result<()> {
        self.client.apply(change)
    }

    fn settle(&mut self, id: ReservationId, answers: &[&[u8]]) -> Result<Recovered> {
        let answers: Vec<AnswerOf<C>> = answers
            .iter()
            .map(|bytes| Message::decode(&self.parameters, bytes))
            .collect::<Result<_>>()?;
        let change = self.client.settle(id, &answers)?;
        self.client.apply(&change)?;
        let record = self.client.take_record(id);
        Ok(Recovered::Settled { id, change, record })
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        self.client.take_record(id)
    }

    fn open(&self) -> Vec<ReservationId> {
        self.client.open()
    }

    fn supply(&self) -> Supply {
        self.client.supply()
    }
}
