//! The ranking: one recommendation with its commands, two runners-up, all costs, refusals.

use super::candidate::{Bytes, Candidate, Money, Use};
use super::subject::Subject;
use crate::display::{self, Page};
use crate::machine::Machine;
use crate::plot::{Axis, Look, Plot, Series};
use privet_schemes::registry::Choice;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::time::Duration;

/// What stands where nothing is done, so that nothing takes time.
const NOTHING: &str = "–";

const AUTHENTICATE: &str = "Build the table with --authenticate: then every scheme notices a wrong answer of the one server, and the choice is free.";
const NOT_BY_THE_RULE: &str =
    "None of the schemes that suit most people is left. The cheapest of the others:";

#[derive(Serialize)]
pub(crate) struct PlanReport {
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
    schemes: Vec<SchemeCosts>,
    refused: Vec<Refused>,
}

/// A scheme and what it costs.
#[derive(Serialize)]
struct SchemeCosts {
    scheme: &'static str,
    servers: usize,
    first: Bytes,
    first_s: f64,
    lookup: Bytes,
    round_trips: u32,
    client_query_us: f64,
    answer_us: f64,
    answer_of_eight_us: f64,
    client_recover_us: f64,
    lookup_s: f64,
    received_per_day_bytes: f64,
    client_keeps_bytes: u64,
    server_setup_s: f64,
    server_prepare_s: f64,
    client_prepare_s: f64,
    server_bytes: u64,
    server_peak_bytes: u64,
    cores: f64,
    month: Money,
    month_sum: f64,
}

/// A question of the rule.
#[derive(Serialize)]
struct Answered {
    question: &'static str,
    answer: bool,
}

/// A scheme that is not to be had, and why.
#[derive(Serialize)]
pub(crate) struct Refused {
    pub(super) scheme: &'static str,
    #[serde(rename = "reason")]
    pub(super) why: Why,
}

/// Why a scheme is not to be had.
pub(crate) struct Why {
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

impl From<Candidate> for SchemeCosts {
    fn from(of: Candidate) -> Self {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        Self {
            scheme: of.scheme.name(),
            servers: of.servers,
            first: of.first,
            first_s: of.first_time.as_secs_f64(),
            lookup: of.lookup,
            round_trips: of.round_trips,
            client_query_us: us(of.client_query),
            answer_us: us(of.answer),
            answer_of_eight_us: us(of.answer_of_eight),
            client_recover_us: us(of.client_recover),
            lookup_s: of.lookup_time.as_secs_f64(),
            received_per_day_bytes: of.day_bytes,
            client_keeps_bytes: of.kept_bytes,
            server_setup_s: of.setup.as_secs_f64(),
            server_prepare_s: of.server_prepare.as_secs_f64(),
            client_prepare_s: of.client_prepare.as_secs_f64(),
            server_bytes: of.server_bytes,
            server_peak_bytes: of.server_peak_bytes,
            cores: of.cores,
            month_sum: of.money.sum(),
            month: of.money,
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
            schemes: candidates.into_iter().map(SchemeCosts::from).collect(),
            refused,
        }
    }

    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        let table = self.records * self.record_len;
        page.line(format!(
            "{} ({}); {} with {} a day each; prices {}",
            display::records(self.records, self.record_len, None),
            display::bytes(table),
            display::some(self.used.clients, "client", "clients"),
            display::some(self.used.lookups, "lookup", "lookups"),
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
                display::bytes(self.layout_bytes)
            ));
        }
        if self.records_per_lookup > 1 {
            page.line(format!(
                "A lookup fetches {} records, as the key map says.",
                display::count(self.records_per_lookup)
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
        let row = |of: &SchemeCosts| {
            [
                of.scheme.to_owned(),
                display::bytes(of.first.sum()),
                match of.first_s {
                    // It comes beside the first query, and is there before its answer.
                    0.0 if of.first.sum() > 0 => "with a lookup".to_owned(),
                    first => seconds(first),
                },
                display::bytes(of.lookup.sum()),
                seconds(of.lookup_s),
                seconds(of.answer_us / 1e6),
                display::bytes(of.received_per_day_bytes as u64),
                display::bytes(of.client_keeps_bytes),
                display::bytes(of.server_bytes),
                display::bytes(of.server_peak_bytes),
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
        page
    }

    /// First use against a lookup, with the server's time beside the name.
    pub(super) fn plot(&self) -> Plot {
        // Nothing has no place on a logarithmic axis, so it stands at the end.
        let at = |of: &SchemeCosts| (of.first.sum().max(1) as f64, of.answer_us.max(0.1));
        let series = self.schemes.iter().enumerate().map(|(hue, of)| Series {
            hue,
            label: format!("{}, {}", of.scheme, display::bytes(of.lookup.sum())),
            look: Look::Named,
            points: vec![at(of)],
        });
        Plot {
            title: format!(
                "{} records of {}: each scheme, and the bytes of a lookup",
                display::count(self.records),
                display::bytes(self.record_len)
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
        bytes => format!("Clients begin with {}", display::bytes(bytes)),
    };
    let lookup = match best.lookup.sum() {
        0 => "a lookup sends nothing".to_owned(),
        bytes => format!(
            "a lookup sends and receives {} and takes {}",
            display::bytes(bytes),
            display::duration(best.lookup_time)
        ),
    };
    format!(
        "Take {}. {first}, {lookup}; {} cost {} in the first month.",
        best.scheme,
        display::some(how.clients, "client", "clients"),
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
    let bytes = |what: &str, of: &dyn Fn(&Candidate) -> f64| {
        let (other, best) = (of(other), of(best));
        format!("{what} {}, not {}", display::bytes(other as u64), display::bytes(best as u64))
    };
    let time = |what: &str, of: &dyn Fn(&Candidate) -> Duration| {
        let in_words = |of: Duration| match of.is_zero() {
            true => "no time".to_owned(),
            false => display::duration(of),
        };
        format!("{what} {}, not {}", in_words(of(other)), in_words(of(best)))
    };
    let reason = match most.map_or(0, |(part, _)| part) {
        0 => bytes("clients begin with", &|of| of.first.sum() as f64),
        1 => bytes("a client receives in a day", &|of| of.day_bytes),
        2 => time("a lookup takes the server", &|of| of.answer),
        3 => bytes("servers need memory of", &|of| of.servers as f64 * of.server_bytes as f64),
        4 => time("clients wait at first for", &|of| of.first_time),
        _ => time("a lookup takes", &|of| of.lookup_time),
    };
    let keeps = |of: &Candidate| display::bytes(of.kept_bytes);
    let but = match other.keeps_hints && !best.keeps_hints {
        true => format!("; its clients keep {} of secret single-use hints", keeps(other)),
        false if is_cheaper => format!("; a client keeps {}", keeps(other)),
        false => String::new(),
    };
    let less = if is_cheaper { "only " } else { "" };
    format!("{} would cost {less}{}: {reason}{but}.", other.scheme, money(other.money.sum()))
}

/// The lines that serve the table by the scheme and look something up.
fn commands(best: &Candidate, subject: &Subject) -> Vec<String> {
    let Some(file) = &subject.file else {
        let shape = subject.identity.shape;
        return vec![format!(
            "privet bench --scheme {} --records {} --record-len {}",
            best.scheme,
            shape.records(),
            shape.record_len()
        )];
    };
    let serve = format!(
        "privet serve {} --scheme {} --listen 0.0.0.0:7700 --tls-cert CERT.pem --tls-key KEY.pem",
        shell_word(&file.to_string_lossy()),
        best.scheme
    );
    let addresses: Vec<String> = match best.servers {
        1 => vec!["https://server:7700".to_owned()],
        servers => (1..=servers).map(|number| format!("https://server{number}:7700")).collect(),
    };
    let wanted = if subject.is_by_key { "--key KEY" } else { "--index 0" };
    let get = format!("privet get {} {wanted}", addresses.join(" "));
    subject.build.iter().cloned().chain([serve, get]).collect()
}

/// A word as a shell takes it.
pub(super) fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |of: char| of.is_alphanumeric() || "-_./=:@%+".contains(of);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Time that something takes; none, if it is not done.
fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => NOTHING.to_owned(),
        _ => display::duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
    }
}

fn money(amount: f64) -> String {
    match amount {
        amount if amount < 10.0 => format!("{amount:.2}"),
        amount => display::count(amount.round() as u64),
    }
}
