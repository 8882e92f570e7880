//! What a scheme's room says of the scheme, typed as the room has it, and with its types erased.

use super::clients::{HintedHost, LocalHost, PreparationHost, StatelessHost};
use super::rehearsal::Rehearsed;
use super::room::{Downloaded, Generation, NewClient, NewHints, NewServer};
use super::servers::{FetchedHost, Ready, ServerHost, SetupHost};
use super::stored_setup::StoresSetup;
use super::versions::ErasedPatches;
use super::{SchemeOption, SchemePlan, ServerOptions, Tuning, Work};
use crate::SchemeId;
use crate::contract::{
    Answerer, Asked, AskingPreparation, Endless, LocalClient, Offline, Parameters, ParametersOf,
    Preparation, Role, Setup, StatelessClient, Updatable, Verifying,
};
use privet_core::{Error, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// What is the same of a scheme on every table.
#[derive(Clone, Debug)]
pub struct About {
    /// What it is, in one line without a full stop.
    pub summary: &'static str,
    /// How many servers take part in a query.
    pub servers: RangeInclusive<u32>,
    /// Whether each answer is verified against what two servers had agreed on, so that one of them
    /// that lies is found out before anything of its answer is used.
    pub verifies: bool,
    /// Whether servers commit to the table: they follow edits where they are, and tell clients with
    /// each epoch what these must know of the new commitments.
    pub commits: bool,
    /// What can be chosen of it, in the order in which it is explained.
    pub options: &'static [&'static SchemeOption],
    /// Its place in the order of preference of a client that lists no schemes: the lowest is taken.
    /// Those that verify answers come first (below 50), of these one without state before one with,
    /// and last the one that takes a trusted setup. Of the others, those that clients keep no
    /// secret state for come first, and those with a weaker promise last.
    pub preference: u8,
    /// What it promises less than others of its kind, if it does, in one sentence.
    pub weaker_promise: Option<&'static str>,
    /// What to warn of if lookups by key are weak by it: what can happen, and what to use instead.
    pub weaker_by_key: Option<&'static str>,
}

impl About {
    /// One server, no options, no reservations: what a room says differently, it says.
    pub(crate) const fn new(summary: &'static str, preference: u8) -> Self {
        Self {
            summary,
            servers: RangeInclusive::new(1, 1),
            verifies: false,
            commits: false,
            options: &[],
            preference,
            weaker_promise: None,
            weaker_by_key: None,
        }
    }

    /// Whether the scheme has an option of this name.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own.name == option)
    }
}

/// What a scheme needs beside the table and nobody chose, made here and now: where client and
/// servers are one process, there is nobody whom it had to be kept from.
pub struct Makeshift {
    /// What is made: `a reference string for partitions of 2,048 records`.
    pub what: String,
    /// Makes it, and chooses it.
    pub make: Box<dyn FnOnce() -> Result<Tuning>>,
}

/// A scheme as its room registers it, in `descriptor.rs`. Parameters come decoded.
pub(crate) trait Registered: Offline + Sized + 'static {
    /// What is the same on every table.
    const ABOUT: About;
    /// How clients bring what they downloaded up to date with edits, if they can.
    const PATCHES: Option<&'static dyn ErasedPatches> = None;
    /// How what servers answer from is computed apart from them, if it can be.
    const STORED_SETUP: Option<&'static dyn StoresSetup> = None;

    /// The parameters on a table, as far as they are not chosen.
    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters>;

    /// The parameters of a server that are fixed already, as they are announced.
    fn parameters_as(
        identity: &TableIdentity,
        announced: &[u8],
        _tuning: &Tuning,
    ) -> Result<Self::Parameters> {
        Self::Parameters::decode(identity, announced)
    }

    /// Starts a server.
    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer;

    /// Starts a client, with what it downloaded.
    fn client(
        _start: ClientStart,
        _parameters: Self::Parameters,
        _downloaded: Downloaded,
    ) -> NewClient {
        Err(other_kind(Self::ID))
    }

    /// Starts a client with a generation of hints of its own.
    fn hinted_client(
        _start: ClientStart,
        _parameters: Self::Parameters,
        _generation: Generation,
    ) -> NewClient {
        Err(other_kind(Self::ID))
    }

    /// Begins a generation of hints, or goes on from a checkpoint.
    fn preparation(_start: HintsStart<'_>, _parameters: Self::Parameters) -> NewHints {
        Err(other_kind(Self::ID))
    }

    /// What servers need beside the table and nobody chose, if it can be made on the spot.
    fn makeshift(_identity: &TableIdentity, _tuning: &Tuning) -> Option<Makeshift> {
        None
    }

    /// Bytes that a client keeps of one generation of single-use hints; 0 without such.
    fn hints_len(_parameters: &Self::Parameters) -> u64 {
        0
    }

    /// How many queries a generation serves, if that follows from the parameters.
    fn supply(_parameters: &Self::Parameters) -> Option<u64> {
        None
    }

    /// What a person may want to know of the parameters, if there is anything.
    fn words(_parameters: &Self::Parameters) -> Option<String> {
        None
    }

    /// The work of a query.
    fn work(_parameters: &Self::Parameters) -> Work {
        Work::WholeTable
    }

    /// What queries say to the server of role `role`, if that takes words.
    fn queries_say(_parameters: &Self::Parameters, _role: Role) -> Option<String> {
        None
    }

    /// Whether the bits of a query to the server of role `role` look like coins. Numbers that count
    /// up, and numbers with bits to spare, do not; nor does a point, which has too few bits.
    fn queries_look_random(_role: Role) -> bool {
        true
    }
}

/// With what a server starts.
pub(crate) struct ServerStart<'t> {
    plan: SchemePlan,
    pub(crate) table: TableView<'t>,
    pub(crate) kernels: Kernels,
    pub(crate) threads: usize,
}

impl ServerStart<'_> {
    /// Nothing is computed: the server is ready, and can do what `with` says beside answering.
    pub(crate) fn ready<A: Answerer + 'static>(
        self,
        server: A,
        with: fn(ServerHost<A>) -> ServerHost<A>,
    ) -> NewServer {
        Ok(Box::new(Ready::at_once(with(ServerHost::new(self.plan, server)))))
    }

    /// Nothing of what is computed is kept in a file: `make` makes the server while somebody waits.
    pub(crate) fn after<A: Answerer + 'static>(
        self,
        make: impl FnOnce(&(dyn Fn(f64) + Sync)) -> Result<A> + Send + Sync + 'static,
        with: fn(ServerHost<A>) -> ServerHost<A>,
    ) -> NewServer {
        Ok(Box::new(Ready::after(self.plan, move |plan, progress| {
            Ok(Box::new(with(ServerHost::new(plan, make(progress)?))))
        })))
    }

    /// Something is computed that may be kept in a file.
    pub(crate) fn precomputing<S>(
        self,
        setup: S,
        with: fn(ServerHost<S::Server>) -> ServerHost<S::Server>,
    ) -> NewServer
    where
        S: Setup<Server: 'static> + 'static,
    {
        Ok(Box::new(SetupHost::new(self.plan, setup).with(with)))
    }

    /// The table is fetched whole: there is nothing to ask the server.
    pub(crate) fn fetched(self) -> NewServer {
        Ok(Box::new(Ready::at_once(FetchedHost { plan: self.plan })))
    }
}

/// With what a client starts.
pub(crate) struct ClientStart {
    plan: SchemePlan,
    identity: TableIdentity,
    pub(crate) kernels: Kernels,
}

impl ClientStart {
    /// A client without state.
    pub(crate) fn stateless<C>(self, parameters: ParametersOf<C>, client: C) -> NewClient
    where
        C: StatelessClient + Send + 'static,
        ParametersOf<C>: 'static,
    {
        Ok(Box::new(StatelessHost { plan: self.plan, parameters, client }))
    }

    /// A client with hints that run out.
    pub(crate) fn hinted<C>(self, parameters: ParametersOf<C>, generation: Generation) -> NewClient
    where
        C: Updatable + Rehearsed + Send + 'static,
        C::Scheme: Offline,
    {
        let client = C::load(parameters, generation, self.kernels)?;
        Ok(Box::new(HintedHost::new(self.plan, self.identity, client)))
    }

    /// A client with hints that never run out.
    pub(crate) fn endless<C>(self, parameters: ParametersOf<C>, generation: Generation) -> NewClient
    where
        C: Updatable + Endless + Rehearsed + Send + 'static,
        C::Scheme: Offline,
    {
        let client = C::load(parameters, generation, self.kernels)?;
        Ok(Box::new(HintedHost::endless(self.plan, self.identity, client)))
    }

    /// The same, and its answers are verified.
    pub(crate) fn verifying<C>(
        self,
        parameters: ParametersOf<C>,
        generation: Generation,
    ) -> NewClient
    where
        C: Updatable + Endless + Verifying + Rehearsed + Send + 'static,
        C::Scheme: Offline,
    {
        let client = C::load(parameters, generation, self.kernels)?;
        Ok(Box::new(HintedHost::endless(self.plan, self.identity, client).verifying()))
    }

    /// A client that holds the table.
    pub(crate) fn local<C: LocalClient + Send + 'static>(self, client: C) -> NewClient {
        Ok(Box::new(LocalHost { plan: self.plan, client }))
    }
}

/// With what a generation of hints begins, or from where it goes on.
pub(crate) struct HintsStart<'c> {
    records_digest: [u8; 32],
    checkpoint: Option<&'c [u8]>,
    kernels: Kernels,
}

impl HintsStart<'_> {
    /// Hints that are made of the table as it streams past.
    pub(crate) fn streaming<P: Preparation + Send + 'static>(
        self,
        parameters: ParametersOf<P>,
    ) -> NewHints {
        Ok(Box::new(PreparationHost::streaming(self.begin::<P>(parameters)?)))
    }

    /// Hints that a server is asked for.
    pub(crate) fn asking<P: AskingPreparation + Send + 'static>(
        self,
        parameters: ParametersOf<P>,
    ) -> NewHints
    where
        P::Scheme: Asked,
    {
        let asked_len = P::Scheme::offline_phase(&parameters).len();
        Ok(Box::new(PreparationHost::asking(self.begin::<P>(parameters)?, asked_len)))
    }

    fn begin<P: Preparation>(&self, parameters: ParametersOf<P>) -> Result<P> {
        match self.checkpoint {
            Some(checkpoint) => {
                P::resume(parameters, self.records_digest, checkpoint, self.kernels)
            }
            None => {
                let mut rng = SecretRng::from_os()?;
                P::begin(parameters, self.records_digest, &mut rng, self.kernels)
            }
        }
    }
}

/// A scheme with its types erased. What each asks for is said where [`Registered`] or the
/// [registry](super) has it.
pub(crate) trait Descriptor: Sync {
    fn patches(&self) -> Option<&'static dyn ErasedPatches>;
    fn stored_setup(&self) -> Option<&'static dyn StoresSetup>;
    fn plan(&self, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan>;
    fn announced(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<SchemePlan>;
    fn setup(
        &self,
        plan: SchemePlan,
        table: TableView<'_>,
        tuning: &Tuning,
        options: ServerOptions,
    ) -> NewServer;
    fn client(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        downloaded: Downloaded,
        kernels: Kernels,
    ) -> NewClient;
    fn hinted_client(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        generation: Generation,
        kernels: Kernels,
    ) -> NewClient;
    fn preparation(
        &self,
        plan: &SchemePlan,
        identity: &TableIdentity,
        records_digest: [u8; 32],
        checkpoint: Option<&[u8]>,
        kernels: Kernels,
    ) -> NewHints;
    fn makeshift(&self, identity: &TableIdentity, tuning: &Tuning) -> Option<Makeshift>;
    fn told(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<Told>;
    fn queries_say(
        &self,
        identity: &TableIdentity,
        parameters: &[u8],
        role: Role,
    ) -> Option<String>;
    fn queries_look_random(&self, role: Role) -> bool;
}

/// What a scheme's parameters come to.
pub(crate) struct Told {
    pub(crate) words: Option<String>,
    pub(crate) work: Work,
    pub(crate) hints_len: u64,
    pub(crate) supply: Option<u64>,
}

/// A scheme's types, without any of its state.
pub(crate) struct Of<S>(PhantomData<fn() -> S>);

impl<S: Registered> Of<S> {
    pub(super) const DESCRIPTOR: &'static dyn Descriptor = &Self(PhantomData);
}

impl<S> Of<S> {
    /// The same as a value, for what a room has beside.
    pub(crate) const VALUE: Self = Self(PhantomData);
}

impl<S: Registered> Descriptor for Of<S> {
    fn patches(&self) -> Option<&'static dyn ErasedPatches> {
        S::PATCHES
    }

    fn stored_setup(&self) -> Option<&'static dyn StoresSetup> {
        S::STORED_SETUP
    }

    fn plan(&self, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan> {
        Ok(SchemePlan::of::<S>(&S::parameters(identity, tuning)?))
    }

    fn announced(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<SchemePlan> {
        Ok(SchemePlan::of::<S>(&S::Parameters::decode(identity, parameters)?))
    }

    fn setup(
        &self,
        plan: SchemePlan,
        table: TableView<'_>,
        tuning: &Tuning,
        ServerOptions { kernels, threads }: ServerOptions,
    ) -> NewServer {
        let parameters = S::parameters_as(&table.identity(), &plan.parameters, tuning)?;
        S::setup(ServerStart { plan, table, kernels, threads }, parameters)
    }

    fn client(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        downloaded: Downloaded,
        kernels: Kernels,
    ) -> NewClient {
        let parameters = S::Parameters::decode(identity, &plan.parameters)?;
        S::client(ClientStart { plan, identity: *identity, kernels }, parameters, downloaded)
    }

    fn hinted_client(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        generation: Generation,
        kernels: Kernels,
    ) -> NewClient {
        let parameters = S::Parameters::decode(identity, &plan.parameters)?;
        S::hinted_client(ClientStart { plan, identity: *identity, kernels }, parameters, generation)
    }

    fn preparation(
        &self,
        plan: &SchemePlan,
        identity: &TableIdentity,
        records_digest: [u8; 32],
        checkpoint: Option<&[u8]>,
        kernels: Kernels,
    ) -> NewHints {
        let parameters = S::Parameters::decode(identity, &plan.parameters)?;
        S::preparation(HintsStart { records_digest, checkpoint, kernels }, parameters)
    }

    fn makeshift(&self, identity: &TableIdentity, tuning: &Tuning) -> Option<Makeshift> {
        S::makeshift(identity, tuning)
    }

    fn told(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<Told> {
        let parameters = S::Parameters::decode(identity, parameters)?;
        Ok(Told {
            words: S::words(&parameters),
            work: S::work(&parameters),
            hints_len: S::hints_len(&parameters),
            supply: S::supply(&parameters),
        })
    }

    fn queries_say(
        &self,
        identity: &TableIdentity,
        parameters: &[u8],
        role: Role,
    ) -> Option<String> {
        S::queries_say(&S::Parameters::decode(identity, parameters).ok()?, role)
    }

    fn queries_look_random(&self, role: Role) -> bool {
        S::queries_look_random(role)
    }
}

fn other_kind(scheme: SchemeId) -> Error {
    Error::api_misuse(format!("{scheme} has another kind of offline phase"))
}
