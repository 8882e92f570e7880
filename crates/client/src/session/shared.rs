//! The state that a session has in all of its phases.

use super::agreement::server_name;
use super::boundaries::Boundaries;
use super::calls::{Calls, Purpose};
use super::interface::{Errand, LookupId, Output, Progress, Request};
use super::lookups::Lookups;
use super::options::SessionOptions;
use super::preparation::Pace;
use super::timetable::{Measuring, Timetable};
use super::value::Value;
use crate::preparation::StartPreparation;
use crate::state::PartKey;
use privet_core::{Error, Result, SecretRng, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::offline::HintSource;
use privet_schemes::registry::{self, ErasedClient, SchemePlan};
use privet_wire::DescribeRequest;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Starts the scheme's client with what was downloaded: a hint, the table, or nothing.
pub(super) type StartClient =
    fn(SchemePlan, &TableIdentity, Arc<dyn HintSource>, Kernels) -> Result<Box<dyn ErasedClient>>;

/// Starts the scheme's client with single-use hints.
pub(super) type StartHinted =
    fn(SchemePlan, &TableIdentity, Zeroizing<Vec<u8>>, Kernels) -> Result<Box<dyn ErasedClient>>;

/// The same scheme with the same parameters in another version of the table.
pub(super) type PlanIn = fn(&SchemePlan, &TableIdentity) -> Result<SchemePlan>;

/// The parts of a session that tests replace.
pub(super) struct Parts {
    pub(super) plan_in: PlanIn,
    /// Whether clients can make queries before their hint has come.
    pub(super) queries_first: fn(&SchemePlan) -> bool,
    pub(super) start_client: StartClient,
    pub(super) start_hinted: StartHinted,
    pub(super) start_preparation: StartPreparation,
    pub(super) pace: Pace,
    pub(super) measuring: Measuring,
    pub(super) rng: SecretRng,
}

impl Parts {
    pub(super) fn of_the_registry() -> Result<Self> {
        Ok(Self {
            plan_in: as_announced,
            queries_first: |plan| plan.scheme.about().queries_first,
            start_client: registry::client,
            start_hinted: registry::hinted_client,
            start_preparation: registry::preparation,
            pace: Pace::default(),
            measuring: Measuring::default(),
            rng: SecretRng::from_os()?,
        })
    }
}

/// The state that a session has in all phases.
pub(super) struct Shared {
    pub(super) options: SessionOptions,
    pub(super) parts: Parts,
    pub(super) calls: Calls,
    pub(super) lookups: Lookups,
    pub(super) timetable: Timetable,
    /// Lookups have begun before: the session is opening again.
    pub(super) opened_before: bool,
    pub(super) outputs: VecDeque<Output>,
}

impl Shared {
    pub(super) fn tell(&mut self, progress: Progress) {
        self.outputs.push_back(Errand::Tell(progress).into());
    }

    /// A lookup is over.
    pub(super) fn reply(&mut self, lookup: LookupId, outcome: Result<Option<Value>>) {
        self.outputs.push_back(Errand::Reply { lookup, outcome }.into());
    }

    pub(super) fn progress(&mut self, part: &PartKey, done: u64, fetched: bool) {
        self.tell(Progress::Part { part: part.kind, done, total: part.len, fetched });
    }

    /// As [`Calls::start`].
    pub(super) fn start(
        &mut self,
        boundaries: Boundaries,
        server: usize,
        purpose: Purpose,
        request: Request,
        now: Duration,
    ) {
        self.calls.start(boundaries, server, purpose, request, now, &mut self.outputs);
    }

    /// Says which server caused `error`, if there are several.
    pub(super) fn caused_by(&self, server: usize, error: Error) -> Error {
        match self.options.servers {
            1 => error,
            servers => error.within(server_name(server, servers)),
        }
    }

    /// Asks all servers to describe themselves.
    pub(super) fn describe_all(&mut self, now: Duration) {
        for server in 0..self.options.servers {
            let request = Request::Describe(DescribeRequest::default());
            self.start(Boundaries::NONE, server, Purpose::Describe, request, now);
        }
    }

    /// The error if a message from `server` is not a response to the request.
    pub(super) fn does_not_belong(&self, server: usize) -> Fault {
        let name = server_name(server, self.options.servers);
        Fault::Exchange(Error::peer_misbehaved(format!(
            "the response of {name} does not belong to the request"
        )))
    }

    /// A server was given up. Lookups that wait for their turn would each wait as long for it as
    /// those that failed, so they fail too. Which lookups these are follows from what servers did
    /// and when.
    pub(super) fn server_given_up(&mut self, server: usize, error: &Error) {
        for lookup in self.lookups.drop_waiting() {
            self.reply(lookup, Err(error.clone()));
        }
        self.tell(Progress::GivenUp { server, error: error.clone() });
    }
}

/// The plan for another version of a table whose scheme and parameters were announced.
pub(super) fn as_announced(plan: &SchemePlan, table: &TableIdentity) -> Result<SchemePlan> {
    SchemePlan::from_announcement(plan.scheme, table, &plan.parameters)
}

/// Why a message cannot be used.
pub(super) enum Fault {
    /// The exchange has failed; another attempt may not.
    Exchange(Error),
    /// The session is over.
    Session(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Session(error)
    }
}
