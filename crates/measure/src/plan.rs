//! Which scheme suits a table, who is trusted, and how the table is used; with what each would
//! cost.
//!
//! What is recommended follows from the [rule](privet_schemes::registry::choose_for) by which a
//! server chooses too. What each scheme costs stands beside it, in a ranking.
//!
//! Bytes are those of the real messages. Times are [counted
//! operations](privet_schemes::registry::Costs) over the yardsticks of a machine. Nothing is built,
//! and no scheme is run.
//!
//! | module | what it holds |
//! |---|---|
//! | `subject` | the table |
//! | `means` | connections, prices, assumptions, and how people name them |
//! | `candidate` | what one scheme costs for the table and its use |
//! | `report` | ranking, recommendation, page, JSON, plot |
//! | `advice` | what to type, and what to do otherwise |

mod advice;
mod candidate;
mod means;
mod report;
mod subject;

pub use candidate::Use;
pub use means::{ASSUMPTIONS, ClientKind, Link, Prices};
pub use report::PlanReport;
pub use subject::Subject;

use crate::machine::Machine;
use candidate::{Candidate, Machines};
use means::in_words;
use privet_core::quantities::{bytes, count};
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{
    About, Assumption, Choice, DAYS, SchemePlan, Situation, Tuning, choose, choose_for, plan,
};
use privet_table::snapshot::Snapshot;
use report::{Refused, Why};
use std::path::Path;

/// How the table is used, who is trusted with what, and what there is.
pub struct PlanOptions {
    /// Operators who do not talk to each other, each with a server.
    pub servers: u32,
    /// A server may answer wrongly.
    pub may_lie: bool,
    /// Clients can keep secret single-use hints.
    pub keep_hints: bool,
    /// The strongest assumption that privacy may rest on, besides servers that do not talk.
    pub assume: Assumption,
    /// How the table is used, by what clients.
    pub used: Use,
    /// The most that a client can keep, in bytes.
    pub client_storage: Option<u64>,
    /// Memory of each server, in bytes.
    pub server_memory: Option<u64>,
    /// Whether clients in browsers have a scheme.
    pub in_browsers: fn(SchemeId) -> bool,
}

impl PlanOptions {
    /// What is taken where nothing is said.
    pub fn new(in_browsers: fn(SchemeId) -> bool) -> Self {
        Self {
            servers: 1,
            may_lie: false,
            keep_hints: false,
            assume: Assumption::RingLwe,
            used: Use::default(),
            client_storage: None,
            server_memory: None,
            in_browsers,
        }
    }
}

/// Computes what each scheme costs on a server like `machine`.
///
/// # Errors
/// None is expected.
pub fn compare(subject: &Subject, machine: Machine, options: &PlanOptions) -> Result<PlanReport> {
    let machines = Machines::new(machine, options.used.client)
        .ok_or_else(|| Error::internal("the yardsticks of browsers cannot be read"))?;
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for scheme in SchemeId::all() {
        match candidate(scheme, subject, options, &machines) {
            Ok(candidate) => candidates.push(candidate),
            Err(why) => refused.push(Refused { scheme: scheme.name(), why }),
        }
    }
    let choice = choice(subject, options, &candidates);
    Ok(PlanReport::new(subject, &options.used, &machines.server, choice, candidates, refused))
}

/// What the rule says of the table and its use. Of the schemes that are refused, it knows nothing.
fn choice(subject: &Subject, options: &PlanOptions, candidates: &[Candidate]) -> Choice {
    let used = &options.used;
    let updates = (DAYS * used.updates) as f64;
    let table = subject.identity.shape.bytes() as f64;
    choose_for(
        &subject.first,
        &Situation {
            operators: options.servers,
            must_verify: options.may_lie && !subject.is_authenticated,
            keeps_hints: options.keep_hints && used.client != ClientKind::Browser,
            lookups: used.lookups.saturating_mul(DAYS),
            update_bytes: (updates * candidate::epoch_bytes(subject, used).min(table)) as u64,
            client_storage: options.client_storage.unwrap_or(u64::MAX),
            allows: &|scheme| candidates.iter().any(|candidate| candidate.scheme == scheme),
        },
    )
}

/// How many times as dear a scheme must be for another to be mentioned, …
const TIMES_WORTH_MENTIONING: f64 = 3.0;
/// … and how much dearer: small tables cost little by any scheme.
const MORE_WORTH_MENTIONING: f64 = 10.0;

/// A sentence about the scheme that the rule would choose among as many operators, if that promises
/// as much as the one of `served` and costs far less for a use that is neither rare nor heavy. The
/// machine is a typical one: nothing is measured.
pub fn cheaper(served: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    let promised = served.scheme.about();
    let situation = Situation {
        operators: *promised.servers.start(),
        must_verify: promised.verifies,
        ..Situation::default()
    };
    let other = choose_for(identity, &situation).scheme?;
    let promises_as_much = other.about().assumes <= promised.assumes;
    let least = plan(other, identity, &Tuning::default()).ok().filter(|_| promises_as_much)?;
    let subject = Subject::of_identity(*identity);
    let (times, use_) = times_as_dear((served.clone(), &subject), (least, &subject))?;
    Some(format!("{use_}, {} costs {times:.0} times as much as {other}", served.scheme))
}

/// A sentence about a table whose lookups ask for several records each, at a cost far higher
/// than if it asked for one, served as a server does that nobody tells a scheme.
pub fn many_records(table: &Path) -> Option<String> {
    let subject = Subject::of_snapshot(&Snapshot::open(table).ok()?);
    let one = Subject::of_identity(subject.identity);
    let scheme = choose(&subject.identity);
    let plan = plan(scheme, &subject.identity, &Tuning::default()).ok()?;
    let (times, use_) = times_as_dear((plan.clone(), &subject), (plan, &one))?;
    Some(format!(
        "every lookup asks for {} records: {use_}, {scheme} costs {times:.0} times as much as with one",
        subject.records_per_lookup
    ))
}

/// How many times as dear the first is as the second, if that is worth mentioning; and for what
/// use, in words.
fn times_as_dear(
    first: (SchemePlan, &Subject),
    second: (SchemePlan, &Subject),
) -> Option<(f64, String)> {
    let used = Use::default();
    let machines = Machines::new(Machine::typical()?, used.client)?;
    let cost = |(plan, subject)| Candidate::new(plan, subject, &used, &machines).money.sum();
    let (dear, least) = (cost(first), cost(second));
    let times = dear / least;
    let use_ =
        format!("for {} clients with {} lookups a day each", count(used.clients), used.lookups);
    (times >= TIMES_WORTH_MENTIONING && dear - least >= MORE_WORTH_MENTIONING)
        .then_some((times, use_))
}

/// The most that a client in a browser holds of one table.
const BROWSER_BYTES: u64 = 1 << 30;

/// What a scheme costs, or why it is not to be had.
fn candidate(
    scheme: SchemeId,
    subject: &Subject,
    options: &PlanOptions,
    machines: &Machines,
) -> Result<Candidate, Why> {
    untrusted(scheme.about(), subject, options)?;
    let is_browser = options.used.client == ClientKind::Browser;
    if is_browser && !(options.in_browsers)(scheme) {
        return Err(Why::of_all("it is not a part of Privet in browsers"));
    }
    let plan = plan(scheme, &subject.identity, &Tuning::default())
        .map_err(|error| Why::of_all(error.message()))?;
    let candidate = Candidate::new(plan, subject, &options.used, machines);
    let beyond = |what: &str, has: u64, limit: Option<u64>| match limit {
        Some(limit) if has > limit => {
            Err(Why { reason: format!("{what} more than {}", bytes(limit)), own: Some(bytes(has)) })
        }
        _ => Ok(()),
    };
    if is_browser {
        beyond("a client would keep", candidate.kept_bytes, Some(BROWSER_BYTES))?;
    }
    beyond("a client would keep", candidate.kept_bytes, options.client_storage)?;
    let memory = candidate.server_peak_bytes;
    beyond("each server would need memory of", memory, options.server_memory)?;
    Ok(candidate)
}

/// Why a scheme's promise is too weak for who is trusted, if it is.
fn untrusted(about: &About, subject: &Subject, options: &PlanOptions) -> Result<(), Why> {
    let needed = *about.servers.start();
    if needed > options.servers {
        return Err(Why::of_all(advice::too_few_operators(needed, options.servers)));
    }
    if options.may_lie && !about.verifies && !subject.is_authenticated {
        return Err(Why::of_all(
            "a wrong answer would not be noticed; with an authenticated table, any scheme does",
        ));
    }
    if about.assumes > options.assume {
        let assumed = in_words(about.assumes);
        return Err(Why::of_all(format!("privacy would rest on {assumed}")));
    }
    match about.weaker_by_key {
        Some(warning) if subject.is_by_key => Err(Why::of_all(warning)),
        _ => Ok(()),
    }
}
