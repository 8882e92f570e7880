//! A scheme's description of itself, with the types of its folder and with erased types.

use super::clients::{HintedHost, LocalHost, StatelessHost};
use super::room::{Downloaded, Generation, NewClient, NewHints, NewServer};
use super::servers::{FetchedHost, Ready, ServerHost, SetupHost};
use super::versions::ErasedPatches;
use super::{Costs, SchemeOption, SchemePlan, Tuning, Work};
use crate::SchemeId;
use crate::contract::{
    Ahead, Answerer, HintedClient, LocalClient, Offline, Parameters, ParametersOf, Preparation,
    Role, Setup, StatelessClient,
};
use privet_core::{Error, Result, SecretRng, TableIdentity, TableSource};
use privet_kernels::Kernels;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// What a scheme's privacy rests on, besides servers that do not talk. Each assumes more than the
/// one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    /// Nothing.
    Nothing,
    /// That AES is a pseudorandom permutation.
    Aes,
    /// Learning with errors.
    Lwe,
    /// Learning with errors over a ring, with keys that depend on the secret.
    RingLwe,
}

/// The properties of a scheme that are the same on every table.
#[derive(Clone, Debug)]
pub struct About {
    /// A description in one line, without a full stop.
    pub summary: &'static str,
    /// How many servers take part in a query.
    pub servers: RangeInclusive<u32>,
    /// Whether the client verifies each answer against what two servers had agreed on. If one of
    /// them lies, the client notices before it uses anything of the answer.
    pub verifies: bool,
    /// What privacy rests on, besides servers that do not talk.
    pub assumes: Assumption,
    /// Whether servers commit to the table. If so, they follow edits in place, and send clients
    /// with each epoch what they must know of the new commitments.
    pub commits: bool,
    /// Whether a client can make queries before its
    /// [download](crate::offline::OfflinePhase::Download) has come: only reading an answer needs
    /// it. See [`LateHint`](crate::offline::LateHint).
    pub queries_first: bool,
    /// Its options, in the order in which they are explained.
    pub options: &'static [&'static SchemeOption],
    /// Its place in the order of preference of a client that lists no schemes. The client takes the
    /// lowest. Schemes that verify answers come first (below 50): among them, those without state
    /// before those with state, and last the one with a trusted setup. Among the others, schemes
    /// without secret state on the client come first, and those with a weaker promise last.
    pub preference: u8,
    /// If it promises less than others of its kind: what it does not promise, in one sentence.
    pub weaker_promise: Option<&'static str>,
    /// The warning if it is weak for lookups by key: what can happen, and what to use instead.
    pub weaker_by_key: Option<&'static str>,
}

impl About {
    /// The defaults: one server, AES, no options, no weaker promise. A scheme overrides what is
    /// different.
    pub const fn new(summary: &'static str, preference: u8) -> Self {
        Self {
            summary,
            servers: RangeInclusive::new(1, 1),
            verifies: false,
            assumes: Assumption::Aes,
            commits: false,
            queries_first: false,
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

/// A scheme as its folder registers it, in `descriptor.rs`. Parameters come decoded.
pub trait Registered: Offline + Sized + 'static {
    /// The properties that are the same on every table.
    const ABOUT: About;
    /// How clients patch their download when the table is edited, if they can.
    const PATCHES: Option<&'static dyn ErasedPatches> = None;
    /// The hints of its clients, if they have some of their own.
    const HINTS: Option<Hints<Self::Parameters>> = None;

    /// The parameters on a table. What `tuning` does not choose follows from the table.
    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters>;

    /// The parameters of a server from their announced encoding.
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

    /// Bytes that a client keeps of one generation of single-use hints; 0 if it has none.
    fn hints_len(_parameters: &Self::Parameters) -> u64 {
        0
    }

    /// How many queries a generation serves, if that follows from the parameters.
    fn supply(_parameters: &Self::Parameters) -> Option<u64> {
        None
    }

    /// A description of the parameters for people, if there is anything to say.
    fn words(_parameters: &Self::Parameters) -> Option<String> {
        None
    }

    /// What each step costs, in counted operations.
    fn costs(parameters: &Self::Parameters) -> Costs;

    /// The work of a query.
    fn work(_parameters: &Self::Parameters) -> Work {
        Work::WholeTable
    }

    /// What queries reveal to the server of role `role`, in words, if words are needed.
    fn queries_say(_parameters: &Self::Parameters, _role: Role) -> Option<String> {
        None
    }

    /// Whether the bits of a query to the server of role `role` look random. Numbers that count up
    /// do not, nor do numbers with unused bits, nor does a point, which has too few bits.
    fn queries_look_random(_role: Role) -> bool {
        true
    }
}

/// How a client with hints of its own starts, and how it prepares them.
pub struct Hints<P> {
    client: fn(ClientStart, P, Generation) -> NewClient,
    preparation: fn(HintsStart<'_>, P) -> NewHints,
}

impl<P: Parameters + 'static> Hints<P> {
    /// Those of a scheme's client `C`, which are prepared by `H`.
    pub const fn of<C, H>() -> Self
    where
        C: HintedClient<Scheme: Offline<Parameters = P>> + Send + 'static,
        H: Preparation<Scheme = C::Scheme> + Send + 'static,
    {
        Self {
            client: ClientStart::hinted::<C>,
            preparation: |start, parameters| start.hints::<H>(parameters),
        }
    }
}

/// The arguments with which a server starts.
pub struct ServerStart<'t> {
    plan: SchemePlan,
    /// The records.
    pub table: TableSource<'t>,
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// Threads to compute with.
    pub threads: usize,
}

impl ServerStart<'_> {
    /// A server that computes nothing: it is ready.
    pub fn ready<A: Answerer + 'static>(self, server: A) -> NewServer {
        Ok(Box::new(Ready::at_once(ServerHost { plan: self.plan, server })))
    }

    /// A server that computes something, but keeps nothing of it in a file: `make` makes the server
    /// at each start.
    pub fn after<A: Answerer + 'static>(
        self,
        make: impl FnOnce(&(dyn Fn(f64) + Sync)) -> Result<A> + Send + Sync + 'static,
    ) -> NewServer {
        Ok(Box::new(Ready::after(self.plan, move |plan, progress| {
            Ok(Box::new(ServerHost { plan, server: make(progress)? }))
        })))
    }

    /// A server that computes something that may be kept in a file.
    pub fn precomputing<S: Setup<Server: 'static> + 'static>(self, setup: S) -> NewServer {
        Ok(Box::new(SetupHost { plan: self.plan, setup }))
    }

    /// A server of a table that clients fetch whole: it answers no queries.
    pub fn fetched(self) -> NewServer {
        Ok(Box::new(Ready::at_once(FetchedHost { plan: self.plan })))
    }
}

/// The arguments with which a client starts.
pub struct ClientStart {
    plan: SchemePlan,
    identity: TableIdentity,
    /// The instruction set to compute with.
    pub kernels: Kernels,
}

impl ClientStart {
    /// A client without state.
    pub fn stateless<C>(self, parameters: ParametersOf<C>, client: C) -> NewClient
    where
        C: StatelessClient + Send + 'static,
        ParametersOf<C>: 'static,
    {
        Ok(Box::new(StatelessHost::new(self.plan, parameters, client)))
    }

    /// A client without state whose queries are made ahead.
    pub fn ahead<C>(self, parameters: ParametersOf<C>, client: C) -> NewClient
    where
        C: Ahead + Send + 'static,
        ParametersOf<C>: 'static,
    {
        Ok(Box::new(StatelessHost::new(self.plan, parameters, client).ahead()))
    }

    /// A client with a generation of hints.
    fn hinted<C>(self, parameters: ParametersOf<C>, generation: Generation) -> NewClient
    where
        C: HintedClient<Scheme: Offline> + Send + 'static,
    {
        let client = C::load(parameters, generation, self.kernels)?;
        Ok(Box::new(HintedHost { plan: self.plan, table: self.identity, client }))
    }

    /// A client that holds the table.
    pub fn local<C: LocalClient + Send + 'static>(self, client: C) -> NewClient {
        Ok(Box::new(LocalHost { plan: self.plan, client }))
    }
}

/// The arguments with which a generation of hints begins or goes on.
struct HintsStart<'c> {
    records_digest: [u8; 32],
    checkpoint: Option<&'c [u8]>,
    kernels: Kernels,
}

impl HintsStart<'_> {
    fn hints<P: Preparation + Send + 'static>(self, parameters: ParametersOf<P>) -> NewHints {
        Ok(Box::new(match self.checkpoint {
            Some(checkpoint) => {
                P::resume(parameters, self.records_digest, checkpoint, self.kernels)?
            }
            None => {
                let mut rng = SecretRng::from_os()?;
                P::begin(parameters, self.records_digest, &mut rng, self.kernels)?
            }
        }))
    }
}

/// A scheme with erased types. [`Registered`] and the [registry](super) explain the methods.
pub(crate) trait Descriptor: Sync {
    fn patches(&self) -> Option<&'static dyn ErasedPatches>;
    #[cfg(feature = "servers")]
    fn plan(&self, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan>;
    fn announced(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<SchemePlan>;
    #[cfg(feature = "servers")]
    fn setup(
        &self,
        plan: SchemePlan,
        table: TableSource<'_>,
        tuning: &Tuning,
        options: super::ServerOptions,
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
    fn hints_len(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<u64>;
    #[cfg(feature = "servers")]
    fn told(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<Told>;
    #[cfg(feature = "servers")]
    fn queries_say(
        &self,
        identity: &TableIdentity,
        parameters: &[u8],
        role: Role,
    ) -> Option<String>;
    #[cfg(feature = "servers")]
    fn queries_look_random(&self, role: Role) -> bool;
}

/// The facts that follow from a scheme's parameters.
#[cfg(feature = "servers")]
pub(crate) struct Told {
    pub(crate) words: Option<String>,
    pub(crate) work: Work,
    pub(crate) costs: Costs,
    pub(crate) supply: Option<u64>,
}

/// A scheme's types, without any of its state.
pub struct Of<S>(PhantomData<fn() -> S>);

impl<S: Registered> Of<S> {
    pub(super) const DESCRIPTOR: &'static dyn Descriptor = &Self(PhantomData);
}

impl<S> Of<S> {
    /// The same as a value, for the other traits that a scheme may implement.
    pub const VALUE: Self = Self(PhantomData);
}

impl<S: Registered> Descriptor for Of<S> {
    fn patches(&self) -> Option<&'static dyn ErasedPatches> {
        S::PATCHES
    }

    #[cfg(feature = "servers")]
    fn plan(&self, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan> {
        Ok(SchemePlan::of::<S>(&S::parameters(identity, tuning)?))
    }

    fn announced(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<SchemePlan> {
        Ok(SchemePlan::of::<S>(&S::Parameters::decode(identity, parameters)?))
    }

    #[cfg(feature = "servers")]
    fn setup(
        &self,
        plan: SchemePlan,
        table: TableSource<'_>,
        tuning: &Tuning,
        super::ServerOptions { kernels, threads }: super::ServerOptions,
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
        let hints = S::HINTS.ok_or_else(|| other_kind(S::ID))?;
        (hints.client)(ClientStart { plan, identity: *identity, kernels }, parameters, generation)
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
        let hints = S::HINTS.ok_or_else(|| other_kind(S::ID))?;
        (hints.preparation)(HintsStart { records_digest, checkpoint, kernels }, parameters)
    }

    fn hints_len(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<u64> {
        Ok(S::hints_len(&S::Parameters::decode(identity, parameters)?))
    }

    #[cfg(feature = "servers")]
    fn told(&self, identity: &TableIdentity, parameters: &[u8]) -> Result<Told> {
        let parameters = S::Parameters::decode(identity, parameters)?;
        Ok(Told {
            words: S::words(&parameters),
            work: S::work(&parameters),
            costs: S::costs(&parameters),
            supply: S::supply(&parameters),
        })
    }

    #[cfg(feature = "servers")]
    fn queries_say(
        &self,
        identity: &TableIdentity,
        parameters: &[u8],
        role: Role,
    ) -> Option<String> {
        S::queries_say(&S::Parameters::decode(identity, parameters).ok()?, role)
    }

    #[cfg(feature = "servers")]
    fn queries_look_random(&self, role: Role) -> bool {
        S::queries_look_random(role)
    }
}

fn other_kind(scheme: SchemeId) -> Error {
    Error::api_misuse(format!("{scheme} has another kind of offline phase"))
}
