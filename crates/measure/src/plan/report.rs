//! The ranking: one recommendation with its commands, two runners-up, all costs, refusals.

use super::advice::{AUTHENTICATE, commands};
use super::candidate::{Candidate, Use};
use super::subject::Subject;
use crate::machine::Machine;
use crate::page::{Page, duration, some};
use crate::plot::{Axis, Look, Plot, Series};
use privet_core::quantities::{bytes, count};
use privet_schemes::registry::Choice;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// What stands where nothing is done, so that nothing takes time.
const NOTHING: &str = "–";

const NOT_BY_THE_RULE: &str =
    "None of the schemes that suit most people is left. The cheapest of the others:";

/// What each scheme costs, and which to take. `docs/plan.md` explains the fields.
#[derive(Serialize)]
pub struct PlanReport {
    records: u64,
    record_len: u64,
    records_per_lookup: u64,
    layout_bytes: u64,
    kernel: String,
    used: Use,
    /// What to take, or do; missing if every scheme is refused.
    recommendation: Option<String>,
    /// The questions of the rule, with their answers.
    because: Vec<Answered>,
    runners_up: Vec<String>,
    commands: Vec<String>,
    schemes: Vec<Candidate>,
    refused: Vec<Refused>,
}

/// A question of the rule.
#[derive(Serialize)]
struct Answered {
    question: &'static str,
    answer: bool,
}

/// A scheme that is not to be had, and why.
#[derive(Serialize)]
pub(super) struct Refused {
    pub(super) scheme: &'static str,
    #[serde(rename = "reason")]
    pub(super) why: Why,
}

/// Why a scheme is not to be had.
pub(super) struct Why {
    /// In words that may be true of several schemes.
    pub(super) reason: String,
    /// A figure that is this scheme's.
    pub(super) own: Option<String>,
}

impl Why {
    pub(super) fn of_all(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), own: None }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.own {
            Some(own) => serializer.collect_str(&format_args!("{}: {own}", self.reason)),
            None => serializer.serialize_str(&self.reason),
        }
    }
}

impl PlanReport {
    pub(super) fn new(
        subject: &Subject,
        how: &Use,
        machine: &Machine,
        choice: Choice,
        mut candidates: Vec<Candidate>,
        refused: Vec<Refused>,
    ) -> Self {
        candidates.sort_by(|one, other| one.money.sum().total_cmp(&other.money.sum()));
        let chosen = candidates.iter().find(|of| Some(of.scheme) == choice.scheme);
        let best = chosen.or(candidates.first());
        let recommendation = best.map(|best| recommendation(best, how));
        let recommendation = match (chosen, choice.authenticate) {
            (Some(_), _) => recommendation,
            (None, true) => Some(AUTHENTICATE.to_owned()),
            // What the rule names is refused, and what is left is for few people.
            (None, false) => recommendation.map(|cheapest| format!("{NOT_BY_THE_RULE} {cheapest}")),
        };
        let others =
            candidates.iter().filter(|other| Some(other.scheme) != best.map(|of| of.scheme));
        let runners_up = others.take(2).filter_map(|other| Some(runner_up(other, best?))).collect();
        let commands = best.map_or_else(Vec::new, |best| commands(best, subject));
        let answers = choice.answers.into_iter();
        let because = answers.map(|(question, answer)| Answered { question, answer }).collect();
        let shape = subject.identity.shape;
        Self {
            records: shape.records(),
            record_len: shape.record_len(),
            records_per_lookup: subject.records_per_lookup,
            layout_bytes: subject.layout_bytes,
            kernel: machine.kernel().to_owned(),
            used: *how,
            recommendation,
            because,
            runners_up,
            commands,
            schemes: candidates,
            refused,
        }
    }

    /// Says it all to people.
    pub fn put_on(&self, page: &mut impl Page) {
        let table = self.records * self.record_len;
        page.line(format!(
            "{} ({}); {} with {} a day each; prices {}",
            format_args!("{} of {}", count(self.records), bytes(self.record_len)),
            bytes(table),
            some(self.used.clients, "client", "clients"),
            some(self.used.lookups, "lookup", "lookups"),
            self.used.prices,
        ));
        match &self.recommendation {
            Some(recommendation) => page.paragraph(recommendation),
            None => page.paragraph("No scheme is left; the reasons are below."),
        };
        for Answered { question, answer } in &self.because {
            page.line(format!("    {:<3}  {question}", if *answer { "yes" } else { "no" }));
        }
        for runner_up in &self.runners_up {
            page.paragraph(runner_up);
        }
        for command in &self.commands {
            page.line(format!("    {command}"));
        }
        if self.layout_bytes > 0 {
            page.line(format!(
                "Every client receives {} once that say where keys lie; they are counted below.",
                bytes(self.layout_bytes)
            ));
        }
        if self.records_per_lookup > 1 {
            page.line(format!(
                "A lookup fetches {} records, as the key map says.",
                count(self.records_per_lookup)
            ));
        }
        let heading = [
            "",
            "first use",
            "",
            "a lookup",
            "takes",
            "server",
            "a day",
            "client keeps",
            "server memory",
            "at most",
            "cores",
            "a month",
        ];
        let row = |of: &Candidate| {
            [
                of.scheme.to_string(),
                bytes(of.first.sum()),
                match of.first_time.is_zero() && of.first.sum() > 0 {
                    // It comes beside the first query, and is there before its answer.
                    true => "with a lookup".to_owned(),
                    false => time(of.first_time),
                },
                bytes(of.lookup.sum()),
                time(of.lookup_time),
                time(of.answer),
                bytes(of.day_bytes as u64),
                bytes(of.kept_bytes),
                bytes(of.server_bytes),
                bytes(of.server_peak_bytes),
                format!("{:.3}", of.cores),
                money(of.month_sum),
            ]
        };
        let rows: Vec<_> = self.schemes.iter().map(row).collect();
        page.table(heading, &rows);
        if !self.refused.is_empty() {
            page.line("Not:");
        }
        for line in refusals(&self.refused) {
            page.paragraph(line);
        }
    }

    /// First use against a lookup, with the server's time beside the name.
    pub fn plot(&self) -> Plot {
        // Nothing has no place on a logarithmic axis, so it stands at the end.
        let at = |of: &Candidate| {
            (of.first.sum().max(1) as f64, (of.answer.as_secs_f64() * 1e6).max(0.1))
        };
        let series = self.schemes.iter().enumerate().map(|(hue, of)| Series {
            hue,
            label: format!("{}, {}", of.scheme, bytes(of.lookup.sum())),
            look: Look::Named,
            points: vec![at(of)],
        });
        Plot {
            title: format!(
                "{} records of {}: each scheme, and the bytes of a lookup",
                count(self.records),
                bytes(self.record_len)
            ),
            x: Axis::bytes(
                "bytes before the first lookup (none: at 1 B)",
                self.schemes.iter().map(|of| at(of).0),
            ),
            y: Axis::counts(
                "one server's microseconds for a lookup",
                self.schemes.iter().map(|of| at(of).1),
            ),
            right: None,
            series: series.collect(),
        }
    }
}

/// A line for each reason, with all schemes that are refused for it.
fn refusals(refused: &[Refused]) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for Refused { scheme, why } in refused {
        let named =
            why.own.as_ref().map_or_else(|| scheme.to_string(), |own| format!("{scheme} ({own})"));
        match lines.iter_mut().find(|(reason, _)| *reason == why.reason) {
            Some((_, schemes)) => schemes.push(named),
            None => lines.push((&why.reason, vec![named])),
        }
    }
    lines.iter().map(|(reason, schemes)| format!("{}: {reason}.", schemes.join(", "))).collect()
}

fn recommendation(best: &Candidate, how: &Use) -> String {
    let first = match best.first.sum() {
        0 => "Clients need nothing first".to_owned(),
        first => format!("Clients begin with {}", bytes(first)),
    };
    let lookup = match best.lookup.sum() {
        0 => "a lookup sends nothing".to_owned(),
        lookup => format!(
            "a lookup sends and receives {} and takes {}",
            bytes(lookup),
            duration(best.lookup_time)
        ),
    };
    format!(
        "Take {}. {first}, {lookup}; {} cost {} in the first month.",
        best.scheme,
        some(how.clients, "client", "clients"),
        money(best.money.sum())
    )
}

/// A scheme that is not the one to take, with the one part of its costs by which it loses most; or
/// wins most, if it costs less at these prices.
fn runner_up(other: &Candidate, best: &Candidate) -> String {
    let is_cheaper = other.money.sum() < best.money.sum();
    let pairs = other.money.parts().into_iter().zip(best.money.parts());
    let sign = if is_cheaper { -1.0 } else { 1.0 };
    let differences = pairs.map(|(other, best)| sign * (other - best)).enumerate();
    let most = differences.max_by(|(_, one), (_, next)| one.total_cmp(next));
    let in_bytes = |what: &str, of: &dyn Fn(&Candidate) -> f64| {
        let (other, best) = (of(other), of(best));
        format!("{what} {}, not {}", bytes(other as u64), bytes(best as u64))
    };
    let in_time = |what: &str, of: &dyn Fn(&Candidate) -> Duration| {
        let in_words = |of: Duration| match of.is_zero() {
            true => "no time".to_owned(),
            false => duration(of),
        };
        format!("{what} {}, not {}", in_words(of(other)), in_words(of(best)))
    };
    let reason = match most.map_or(0, |(part, _)| part) {
        0 => in_bytes("clients begin with", &|of| of.first.sum() as f64),
        1 => in_bytes("a client receives in a day", &|of| of.day_bytes),
        2 => in_time("a lookup takes the server", &|of| of.answer),
        3 => in_bytes("servers need memory of", &|of| of.servers as f64 * of.server_bytes as f64),
        4 => in_time("clients wait at first for", &|of| of.first_time),
        _ => in_time("a lookup takes", &|of| of.lookup_time),
    };
    let keeps = |of: &Candidate| bytes(of.kept_bytes);
    let but = match other.keeps_hints && !best.keeps_hints {
        true => format!("; its clients keep {} of secret single-use hints", keeps(other)),
        false if is_cheaper => format!("; a client keeps {}", keeps(other)),
        false => String::new(),
    };
    let less = if is_cheaper { "only " } else { "" };
    format!("{} would cost {less}{}: {reason}{but}.", other.scheme, money(other.money.sum()))
}

/// Time that something takes; none, if it is not done.
fn time(time: Duration) -> String {
    if time.is_zero() { NOTHING.to_owned() } else { duration(time) }
}

fn money(amount: f64) -> String {
    match amount {
        amount if amount < 10.0 => format!("{amount:.2}"),
        amount => count(amount.round() as u64),
    }
}
