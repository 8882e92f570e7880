//! What was planned, beside what is measured.

use crate::bench::{BenchOptions, Run, Subject, run};
use crate::identity_of;
use crate::machine::Machine;
use crate::watch::unwatched;
use privet_core::{Result, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::{Tuning, plan};

/// A step of a scheme on a table: in seconds, by one core.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The name of its field in [`Costs`](privet_schemes::registry::Costs).
    pub name: &'static str,
    /// As the operations that the scheme counts take on the machine.
    pub planned: f64,
    /// As it took here: the median of several, where it is done for each query.
    pub measured: f64,
}

/// The steps that the scheme has, and what a client keeps: planned, and measured in bytes.
///
/// # Errors
/// As [`measure`](crate::bench::measure).
pub fn compare(
    scheme: SchemeId,
    shape: TableShape,
    machine: &Machine,
) -> Result<(Vec<Step>, (u64, u64))> {
    const EIGHT: u64 = 8;
    let identity = identity_of(shape);
    let plan = plan(scheme, &identity, &Tuning::default())?;
    let costs = plan.costs(&identity);
    let queries = plan.supply(&identity).unwrap_or(u64::MAX).min(16);
    let options = BenchOptions {
        queries,
        edits: 0,
        threads: Some(1),
        ..BenchOptions::new(Subject::Scheme(scheme), shape)
    };
    let alone = run(&options, &unwatched)?;
    // Answers that share nothing take as long together, and some clients have none together.
    let together = match costs.answer_of_eight == costs.answer {
        true => None,
        false => Some(run(&BenchOptions { batch: EIGHT, ..options }, &unwatched)?),
    };
    let (offline, online) = (&alone.offline, &alone.online);
    let answer_s = |run: &Run| {
        run.online.servers.iter().map(|server| server.answer_us / 1e6).fold(0.0, f64::max)
    };
    let steps = [
        ("setup", &costs.setup, offline.server_s),
        ("hints", &costs.hints, offline.prepare_s.unwrap_or_default()),
        ("prepare", &costs.prepare, offline.client_s),
        ("query", &costs.query, online.client_query_us / 1e6),
        ("answer", &costs.answer, answer_s(&alone)),
        ("answer_of_eight", &costs.answer_of_eight, together.as_ref().map_or(0.0, answer_s)),
        ("recover", &costs.recover, online.client_recover_us / 1e6),
    ];
    let steps = steps.map(|(name, operations, measured)| Step {
        name,
        planned: machine.time(operations).as_secs_f64(),
        measured,
    });
    let is_done = |step: &Step| step.planned > 0.0 && step.measured > 0.0;
    let kept = (crate::traffic::kept(&plan, &identity), alone.client_state_bytes);
    Ok((steps.into_iter().filter(is_done).collect(), kept))
}
