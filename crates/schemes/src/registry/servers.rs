//! Servers of any scheme: starting, and ready.
//!
//! A server starts in stages. [`setup`](super::setup) copies the table into place.
//! [`ErasedSetup::precompute`] does the long work, whose result may be cached.
//! [`ErasedSetup::finish`] takes the part that the server itself needs, and returns a server that
//! answers. So nobody can query a server that was not set up, and a restart from the cache computes
//! nothing.

use super::{SchemePlan, ServerOptions};
use crate::contract::{
    AnswerOf, Answerer, Message, Parameters, ParametersOf, QueryMessage, QueryOf, Role, Scheme,
    SchemeOf, Setup, nothing_to_ask,
};
use crate::offline::{Precomputed, PublicWords};
use privet_core::{Error, Result, TableChanges, TableSource};

/// A server of any scheme that is starting. [`Setup`] explains the methods.
pub trait ErasedSetup: Send + Sync {
    /// The scheme it will answer.
    fn plan(&self) -> &SchemePlan;

    /// Size in bytes of the precomputed data that the server itself needs.
    fn kept_len(&self) -> u64;

    /// The long part of a server's start. Its result may be kept in a file, because it follows from
    /// the table and [`SchemePlan::parameters`] alone. `progress` is called with the share done,
    /// from 0 to 1.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed>;

    /// The server, from [`Precomputed::kept`], just computed or read back. Some schemes keep
    /// nothing in a file although they transform the table: their result exists only in memory.
    /// They transform it now, and report to `progress`.
    fn finish(
        self: Box<Self>,
        kept: &[u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>>;
}

/// A server of any scheme.
pub trait ErasedServer: Send + Sync {
    /// The scheme it answers.
    fn plan(&self) -> &SchemePlan;

    /// Answers a batch in one pass: one result for each query, in order. A query that does not
    /// parse gets an error and does not disturb the others. If [`check_held`](Self::check_held)
    /// fails afterwards, all queries get its error, so that no answer comes from a file that has
    /// changed.
    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>>;

    /// The reply to a request of the offline phase, if clients of this scheme ask for their hints.
    /// May take a long time.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if the scheme has no such
    /// requests, or not for this role, or the request does not parse.
    fn prepare(&self, role: Role, request: &[u8]) -> Result<Vec<u8>>;

    /// The table in the order in which clients stream it, if that is not the natural one.
    fn streamed(&self) -> Option<&[u8]>;

    /// What clients download, if the server holds it. A [successor](Self::successor) whose clients
    /// download something does.
    fn announced(&self) -> Option<&[u8]> {
        None
    }

    /// What the server keeps of its setup, as [`ErasedSetup::precompute`] had it. `None`: it cannot
    /// be had from the server.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn kept(&self) -> Result<Option<PublicWords>> {
        Ok(None)
    }

    /// The server for `table`, which has all records of the version after `changes`. It is made
    /// from this server, which goes on answering for its own version. `plan` is [that of the next
    /// version](super::plan_next). `None`: start one from the table, with
    /// [`setup_as`](super::setup_as). See [`Answerer::successor`].
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the changes do not lead from this
    /// server's table to `table`, or the plan is of another scheme or table; and the scheme's
    /// errors.
    fn successor(
        &self,
        _plan: &SchemePlan,
        _table: TableSource<'_>,
        _changes: &TableChanges,
        _options: ServerOptions,
    ) -> Result<Option<Successor>> {
        Ok(None)
    }

    /// Whether several queries cost less in one pass than one by one. If so, it pays to wait for
    /// more queries.
    fn shares_passes(&self) -> bool;

    /// Memory held for answering, in bytes: the table's own bytes, if the scheme holds a copy, and
    /// its additional memory.
    fn resident_bytes(&self) -> u64;

    /// How much of the table's memory the system backs with huge pages, if it says.
    fn huge_page_bytes(&self) -> Option<u64>;

    /// All bytes that answers come from. See [`Answerer::held`].
    fn held(&self) -> Vec<&[u8]>;

    /// Checks that the files that answers come from are unchanged.
    ///
    /// # Errors
    /// As [`Answerer::check_held`].
    fn check_held(&self) -> Result<()>;
}

/// The server of a table's next version.
pub struct Successor {
    /// The server.
    pub server: Box<dyn ErasedServer>,
    /// What clients that verify answers must know of the new commitments, for
    /// [`TableDelta::with_commitments`](privet_core::TableDelta::with_commitments): the same on
    /// every server that has the same table. Empty for schemes without verification.
    pub commitments: Vec<u8>,
}

/// A server that precomputes something.
pub(crate) struct SetupHost<S: Setup> {
    pub(crate) plan: SchemePlan,
    pub(crate) setup: S,
}

impl<S: Setup> ErasedSetup for SetupHost<S>
where
    S::Server: 'static,
{
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn kept_len(&self) -> u64 {
        self.setup.kept_len()
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        self.setup.precompute(progress)
    }

    fn finish(
        self: Box<Self>,
        kept: &[u8],
        _progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        let Self { plan, setup } = *self;
        Ok(Box::new(ServerHost { plan, server: setup.finish(kept)? }))
    }
}

/// A server that keeps nothing in a file.
pub(crate) struct Ready {
    plan: SchemePlan,
    make: Box<MakeServer>,
}

type MakeServer =
    dyn FnOnce(SchemePlan, &(dyn Fn(f64) + Sync)) -> Result<Box<dyn ErasedServer>> + Send + Sync;

impl Ready {
    /// A server that is ready at once.
    pub(crate) fn at_once(server: impl ErasedServer + 'static) -> Self {
        Self::after(server.plan().clone(), |_, _| Ok(Box::new(server)))
    }

    /// A server that `make` makes at the last stage, with reports of the progress.
    pub(crate) fn after(
        plan: SchemePlan,
        make: impl FnOnce(SchemePlan, &(dyn Fn(f64) + Sync)) -> Result<Box<dyn ErasedServer>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { plan, make: Box::new(make) }
    }
}

impl ErasedSetup for Ready {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn kept_len(&self) -> u64 {
        0
    }

    fn precompute(&self, _progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        Ok(Precomputed::default())
    }

    fn finish(
        self: Box<Self>,
        kept: &[u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        if !kept.is_empty() {
            return Err(Error::corrupted("this scheme's server keeps nothing besides the table"));
        }
        (self.make)(self.plan, progress)
    }
}

/// A server that answers.
pub struct ServerHost<A> {
    /// The scheme it answers.
    pub plan: SchemePlan,
    /// The scheme's server.
    pub server: A,
}

impl<A: Answerer + 'static> ErasedServer for ServerHost<A> {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        let answers = answer_encoded(&self.server, role, queries);
        match self.server.check_held() {
            Ok(()) => answers,
            Err(damage) => queries.iter().map(|_| Err(damage.clone())).collect(),
        }
    }

    fn prepare(&self, role: Role, request: &[u8]) -> Result<Vec<u8>> {
        self.server.reply(role, request)
    }

    fn streamed(&self) -> Option<&[u8]> {
        self.server.streamed()
    }

    fn announced(&self) -> Option<&[u8]> {
        self.server.announced()
    }

    fn kept(&self) -> Result<Option<PublicWords>> {
        self.server.kept()
    }

    fn successor(
        &self,
        plan: &SchemePlan,
        table: TableSource<'_>,
        changes: &TableChanges,
        options: ServerOptions,
    ) -> Result<Option<Successor>> {
        check_succession(&self.plan, plan, &table, changes)?;
        let parameters = ParametersOf::<A>::decode(&table.identity(), &plan.parameters)?;
        let made = self.server.successor(parameters, table, changes, options.threads)?;
        Ok(made.map(|(server, commitments)| {
            let server = Box::new(Self { plan: plan.clone(), server });
            Successor { server, commitments }
        }))
    }

    fn shares_passes(&self) -> bool {
        A::SHARES_PASSES
    }

    fn resident_bytes(&self) -> u64 {
        self.server.resident_bytes()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.server.huge_page_bytes()
    }

    fn held(&self) -> Vec<&[u8]> {
        self.server.held()
    }

    fn check_held(&self) -> Result<()> {
        self.server.check_held()
    }
}

/// The server of a table that clients fetch whole: it answers no queries.
pub(crate) struct FetchedHost {
    pub(crate) plan: SchemePlan,
}

impl ErasedServer for FetchedHost {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, _role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        let refusal = || {
            Err(Error::invalid_message(
                "this table is fetched whole; its server answers no queries, and a client that sends one gives away what it looks for",
            ))
        };
        queries.iter().map(|_| refusal()).collect()
    }

    fn prepare(&self, _role: Role, _request: &[u8]) -> Result<Vec<u8>> {
        Err(nothing_to_ask())
    }

    fn streamed(&self) -> Option<&[u8]> {
        None
    }

    fn successor(
        &self,
        plan: &SchemePlan,
        table: TableSource<'_>,
        changes: &TableChanges,
        _options: ServerOptions,
    ) -> Result<Option<Successor>> {
        check_succession(&self.plan, plan, &table, changes)?;
        let server = Box::new(Self { plan: plan.clone() });
        Ok(Some(Successor { server, commitments: Vec::new() }))
    }

    fn shares_passes(&self) -> bool {
        false
    }

    fn resident_bytes(&self) -> u64 {
        0
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        Vec::new()
    }

    fn check_held(&self) -> Result<()> {
        Ok(())
    }
}

/// Checks that a server of `before` can be asked for one of `after`.
fn check_succession(
    before: &SchemePlan,
    after: &SchemePlan,
    table: &TableSource<'_>,
    changes: &TableChanges,
) -> Result<()> {
    if before.scheme != after.scheme {
        return Err(Error::api_misuse(format!(
            "a server of {} has no successor that answers {}",
            before.scheme, after.scheme
        )));
    }
    if changes.shape_after() != table.shape() {
        return Err(Error::api_misuse("the changes lead to a table of another shape"));
    }
    Ok(())
}

/// Decodes each query, answers the valid ones in one pass, and puts the answers back in order.
fn answer_encoded<A: Answerer>(server: &A, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
    let servers = <A as SchemeOf>::Scheme::servers(server.parameters());
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
        results.push(QueryOf::<A>::decode_query(server.parameters(), role, bytes).map(|query| {
            valid.push(query);
            Vec::new()
        }));
    }
    let answers = if valid.is_empty() { Vec::new() } else { server.answer(role, &valid) };
    // With a missing answer, some client would get the answer for another one.
    assert_eq!(answers.len(), valid.len(), "one answer for each query");
    for (result, answer) in results.iter_mut().flatten().zip(answers) {
        *result = AnswerOf::<A>::encode(&answer);
    }
    results
}
