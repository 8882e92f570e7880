//! `privet plan`: which scheme suits a table, who is trusted, and how the table is used; with what
//! each would cost.
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
use crate::machine::Machine;
use candidate::{Candidate, Machines, Use};
use privet_core::{Error, Result, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::registry::{About, SchemePlan, Tuning, choose, plan};
use privet_table::import::Source;
use privet_table::snapshot::Snapshot;
use report::{Refused, Report};
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
pub(crate) fn report(arguments: &Plan, given: Vec<Source>) -> Result<Report> {
    let subject = Subject::of(arguments, given)?;
    let machine = Machine::of(arguments.machine.as_deref())?;
    if let Some(file) = &arguments.save_machine {
        machine.write(file)?;
    }
    let how = Use::of(arguments);
    let machines = Machines::new(machine, arguments.client)
        .ok_or_else(|| Error::internal("the yardsticks of browsers cannot be read"))?;
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for scheme in SchemeId::ALL {
        match candidate(*scheme, &subject, arguments, &how, &machines) {
            Ok(candidate) => candidates.push(candidate),
            Err(reason) => refused.push(Refused::new(*scheme, reason)),
        }
    }
    let report = Report::new(&subject, &how, &machines.server, candidates, refused);
    if let Some(file) = &arguments.svg {
        report.plot().write(file)?;
    }
    Ok(report)
}

/// How many times as dear a scheme must be for another to be mentioned, …
const TIMES_WORTH_MENTIONING: f64 = 3.0;
/// … and how much dearer: small tables cost little by any scheme.
const MORE_WORTH_MENTIONING: f64 = 10.0;

/// A sentence about a scheme that promises as much as the one of `served`, if that is far dearer
/// for a use that is neither rare nor heavy. The machine is a typical one: nothing is measured.
pub(crate) fn cheaper(served: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    let how = Use::default();
    let machines = Machines::new(Machine::typical()?, how.client)?;
    let subject = Subject::of_identity(*identity);
    let cost = |plan: SchemePlan| Candidate::new(plan, &subject, &how, &machines).money.sum();
    let promised = served.scheme.about();
    let promises_as_much = |other: &About| {
        other.servers.start() <= promised.servers.start()
            && (other.verifies || !promised.verifies)
            && other.assumes <= promised.assumes
            && other.weaker_promise.is_none()
    };
    let others = SchemeId::ALL.iter().filter(|other| promises_as_much(other.about()));
    let plans = others.filter_map(|other| plan(*other, identity, &Tuning::default()).ok());
    let costs = plans.map(|plan| (plan.scheme, cost(plan)));
    let (cheapest, least) = costs.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let cost = cost(served.clone());
    let times = cost / least;
    (times >= TIMES_WORTH_MENTIONING && cost - least >= MORE_WORTH_MENTIONING).then(|| {
        format!(
            "  for {} clients with {} lookups a day each, {} costs {times:.0} times as much as {cheapest}: see `privet plan`",
            display::count(how.clients),
            how.lookups,
            served.scheme
        )
    })
}

/// A sentence about a table of whose records every lookup asks for so many that it costs far more
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
) -> Result<Candidate, String> {
    untrusted(scheme.about(), subject, arguments)?;
    if arguments.client == ClientKind::Browser && scheme == SchemeId::TapirPointproofs {
        return Err("it is not a part of Privet in browsers".to_owned());
    }
    let plan = plan(scheme, &subject.identity, &Tuning::default())
        .map_err(|error| error.message().to_owned())?;
    let candidate = Candidate::new(plan, subject, how, machines);
    let beyond = |what: &str, has: u64, limit: Option<u64>| match limit {
        Some(limit) if has > limit => {
            let (has, limit) = (display::bytes(has), display::bytes(limit));
            Err(format!("{what} {has}, more than {limit}"))
        }
        _ => Ok(()),
    };
    if arguments.client == ClientKind::Browser {
        beyond("a client keeps", candidate.kept_bytes, Some(BROWSER_BYTES))?;
    }
    beyond("a client keeps", candidate.kept_bytes, arguments.client_storage)?;
    beyond("each server needs memory of", candidate.server_peak_bytes, arguments.server_memory)?;
    Ok(candidate)
}

/// Why a scheme's promise is too weak for who is trusted, if it is.
fn untrusted(about: &About, subject: &Subject, arguments: &Plan) -> Result<(), String> {
    let needed = *about.servers.start();
    if needed > arguments.servers {
        return Err(match arguments.servers {
            1 => format!(
                "it takes {needed} servers whose operators do not talk to each other; if there are, say so: --servers {needed}"
            ),
            operators => format!("it takes {needed} servers, and there are {operators} operators"),
        });
    }
    if arguments.may_lie && !about.verifies && !subject.is_authenticated {
        return Err(
            "it does not notice a wrong answer; with an authenticated table, any scheme does"
                .to_owned(),
        );
    }
    if about.assumes > arguments.assume.0 {
        return Err(format!("its privacy rests on {}", Assumed(about.assumes).in_words()));
    }
    match about.weaker_by_key {
        Some(warning) if subject.is_by_key => Err(warning.to_owned()),
        _ => Ok(()),
    }
}
