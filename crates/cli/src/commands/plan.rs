//! `privet plan`: which scheme suits a table, who is trusted, and how the table is used; with what
//! each would cost.
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
//! | [`subject`] | the table |
//! | [`means`] | connections, prices, assumptions, as they are typed |
//! | [`candidate`](mod@candidate) | what one scheme costs for the table and its use |
//! | [`report`] | ranking, recommendation, page, JSON, plot |

mod candidate;
mod means;
mod report;
mod subject;

pub(crate) use means::{Assumed, ClientKind, Link, Prices};

use crate::arguments::Plan;
use crate::display;
use crate::exit::Outcome;
use crate::laboratory::schemes;
use crate::machine::Machine;
use candidate::{Candidate, Machines, Use};
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{
    self, About, DAYS, SchemePlan, Situation, Tuning, choose, choose_for, plan,
};
use privet_table::import::Source;
use privet_table::snapshot::Snapshot;
use report::{PlanReport, Refused, Why};
use std::path::Path;
use subject::Subject;

/// Computes what each scheme costs, and prints the ranking.
pub(crate) fn run(arguments: &Plan) -> Result<Outcome> {
    let report = report(arguments, Vec::new())?;
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

/// Computes what each scheme costs, for a table of the `given` rows if there are any, and draws it
/// if that is asked for.
pub(crate) fn report(arguments: &Plan, given: Vec<Source>) -> Result<PlanReport> {
    let subject = Subject::of(arguments, given)?;
    let machine = Machine::of(arguments.machine.as_deref())?;
    if let Some(file) = &arguments.save_machine {
        machine.write(file)?;
    }
    let how = Use::of(arguments);
    let machines = Machines::new(machine, arguments.client)
        .ok_or_else(|| Error::internal("the yardsticks of browsers cannot be read"))?;
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for scheme in SchemeId::all() {
        match candidate(scheme, &subject, arguments, &how, &machines) {
            Ok(candidate) => candidates.push(candidate),
            Err(why) => refused.push(Refused { scheme: scheme.name(), why }),
        }
    }
    let choice = choice(&subject, arguments, &how, &candidates);
    let report = PlanReport::new(&subject, &how, &machines.server, choice, candidates, refused);
    if let Some(file) = &arguments.svg {
        report.plot().write(file)?;
    }
    Ok(report)
}

/// What the rule says of the table and its use. Of the schemes that are refused, it knows nothing.
fn choice(
    subject: &Subject,
    arguments: &Plan,
    how: &Use,
    candidates: &[Candidate],
) -> registry::Choice {
    let updates = (DAYS * how.updates) as f64;
    let table = subject.identity.shape.bytes() as f64;
    choose_for(
        &subject.first,
        &Situation {
            operators: arguments.servers,
            must_verify: arguments.may_lie && !subject.is_authenticated,
            keeps_hints: arguments.keep_hints && arguments.client != ClientKind::Browser,
            lookups: how.lookups.saturating_mul(DAYS),
            update_bytes: (updates * candidate::epoch_bytes(subject, how).min(table)) as u64,
            client_storage: arguments.client_storage.unwrap_or(u64::MAX),
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
pub(crate) fn cheaper(served: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    let how = Use::default();
    let machines = Machines::new(Machine::typical()?, how.client)?;
    let subject = Subject::of_identity(*identity);
    let cost = |plan: SchemePlan| Candidate::new(plan, &subject, &how, &machines).money.sum();
    let promised = served.scheme.about();
    let situation = Situation {
        operators: *promised.servers.start(),
        must_verify: promised.verifies,
        ..Situation::default()
    };
    let other = choose_for(identity, &situation).scheme?;
    let promises_as_much = other.about().assumes <= promised.assumes;
    let least = cost(plan(other, identity, &Tuning::default()).ok().filter(|_| promises_as_much)?);
    let cost = cost(served.clone());
    let times = cost / least;
    (times >= TIMES_WORTH_MENTIONING && cost - least >= MORE_WORTH_MENTIONING).then(|| {
        format!(
            "  for {} clients with {} lookups a day each, {} costs {times:.0} times as much as {other}: see `privet plan`",
            display::count(how.clients),
            how.lookups,
            served.scheme
        )
    })
}

/// A sentence about a table whose lookups ask for several records each, at a cost far higher
/// than if it asked for one, served as `privet serve` does by default.
pub(crate) fn many_records(table: &Path) -> Option<String> {
    let how = Use::default();
    let machines = Machines::new(Machine::typical()?, how.client)?;
    let subject = Subject::of_snapshot(&Snapshot::open(table).ok()?);
    let scheme = choose(&subject.identity);
    let plan = plan(scheme, &subject.identity, &Tuning::default()).ok()?;
    let cost =
        |subject: &Subject| Candidate::new(plan.clone(), subject, &how, &machines).money.sum();
    let (many, one) = (cost(&subject), cost(&Subject::of_identity(subject.identity)));
    let times = many / one;
    (times >= TIMES_WORTH_MENTIONING && many - one >= MORE_WORTH_MENTIONING).then(|| {
        format!(
            "  every lookup asks for {} records: for {} clients with {} lookups a day each, {scheme} costs {times:.0} times as much as with one: see `privet plan`",
            subject.records_per_lookup,
            display::count(how.clients),
            how.lookups,
        )
    })
}

/// The most that a client in a browser holds of one table.
const BROWSER_BYTES: u64 = 1 << 30;

/// What a scheme costs, or why it is not to be had.
fn candidate(
    scheme: SchemeId,
    subject: &Subject,
    arguments: &Plan,
    how: &Use,
    machines: &Machines,
) -> Result<Candidate, Why> {
    untrusted(scheme.about(), subject, arguments)?;
    if arguments.client == ClientKind::Browser && !schemes::is_in_browsers(scheme) {
        return Err(Why::of_all("it is not a part of Privet in browsers"));
    }
    let plan = plan(scheme, &subject.identity, &Tuning::default())
        .map_err(|error| Why::of_all(error.message()))?;
    let candidate = Candidate::new(plan, subject, how, machines);
    let beyond = |what: &str, has: u64, limit: Option<u64>| match limit {
        Some(limit) if has > limit => Err(Why {
            reason: format!("{what} more than {}", display::bytes(limit)),
            own: Some(display::bytes(has)),
        }),
        _ => Ok(()),
    };
    if arguments.client == ClientKind::Browser {
        beyond("a client would keep", candidate.kept_bytes, Some(BROWSER_BYTES))?;
    }
    beyond("a client would keep", candidate.kept_bytes, arguments.client_storage)?;
    let memory = candidate.server_peak_bytes;
    beyond("each server would need memory of", memory, arguments.server_memory)?;
    Ok(candidate)
}

/// Why a scheme's promise is too weak for who is trusted, if it is.
fn untrusted(about: &About, subject: &Subject, arguments: &Plan) -> Result<(), Why> {
    let needed = *about.servers.start();
    if needed > arguments.servers {
        return Err(Why::of_all(match arguments.servers {
            1 => format!(
                "{needed} servers are needed whose operators do not talk to each other; if there are, say so: --servers {needed}"
            ),
            operators => {
                format!("{needed} servers are needed, and there are {operators} operators")
            }
        }));
    }
    if arguments.may_lie && !about.verifies && !subject.is_authenticated {
        return Err(Why::of_all(
            "a wrong answer would not be noticed; with an authenticated table, any scheme does",
        ));
    }
    if about.assumes > arguments.assume.0 {
        let assumed = Assumed(about.assumes).in_words();
        return Err(Why::of_all(format!("privacy would rest on {assumed}")));
    }
    match about.weaker_by_key {
        Some(warning) if subject.is_by_key => Err(Why::of_all(warning)),
        _ => Ok(()),
    }
}
