//! The ranking: one recommendation with its commands, two runners-up, all costs, refusals.

use super::candidate::{Bytes, Candidate, Money, Use};
use super::subject::Subject;
use crate::display::{self, Page};
use crate::machine::Machine;
use crate::plot::{Axis, Look, Plot, Series};
use privet_schemes::SchemeId;
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
pub(crate) struct Report {
    records: u64,
    record_len: u64,
    records_per_lookup: u64,
    layout_bytes: u64,
    kernel: String,
    used: Use,
    /// One sentence; missing if every scheme is refused.
    recommendation: Option<String>,
    runners_up: Vec<String>,
    commands: Vec<String>,
    schemes: Vec<Shown>,
    refused: Vec<Refused>,
}

/// A scheme and what it costs.
#[derive(Serialize)]
struct Shown {
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

/// A scheme that is not to be had, and why.
#[derive(Serialize)]
pub(crate) struct Refused {
    scheme: &'static str,
    reason: String,
}

impl Refused {
    pub(super) fn new(scheme: SchemeId, reason: String) -> Self {
        Self { scheme: scheme.name(), reason }
    }
}

impl From<Candidate> for Shown {
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

impl Report {
    pub(super) fn new(
        subject: &Subject,
        how: &Use,
        machine: &Machine,
        mut candidates: Vec<Candidate>,
        refused: Vec<Refused>,
    ) -> Self {
        candidates.sort_by(|one, other| one.money.sum().total_cmp(&other.money.sum()));
        let best = candidates.first();
        let recommendation = best.map(|best| recommendation(best, how));
        let runners_up = candidates.iter().skip(1).take(2);
        let runners_up = runners_up.filter_map(|other| Some(runner_up(other, best?))).collect();
        let commands = best.map_or_else(Vec::new, |best| commands(best, subject));
        let shape = subject.identity.shape;
        Self {
            records: shape.records(),
            record_len: shape.record_len(),
            records_per_lookup: subject.records_per_lookup,
            layout_bytes: subject.layout_bytes,
            kernel: machine.kernel().to_owned(),
            used: *how,
            recommendation,
            runners_up,
            commands,
            schemes: candidates.into_iter().map(Shown::from).collect(),
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
        for runner_up in &self.runners_up {
            page.paragraph(runner_up);
        }
        for command in &self.commands {
            page.line(format!("    {command}"));
        }
        if self.layout_bytes > 0 {
            page.line(format!(
                "Every client also receives {} once: where keys lie.",
                display::bytes(self.layout_bytes)
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
        let row = |of: &Shown| {
            [
                of.scheme.to_owned(),
                display::bytes(of.first.sum()),
                seconds(of.first_s),
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
        for Refused { scheme, reason } in &self.refused {
            page.paragraph(format!("{scheme}: {reason}."));
        }
        page
    }

    /// First use against a lookup, with the server's time beside the name.
    pub(super) fn plot(&self) -> Plot {
        // Nothing has no place on a logarithmic axis, so it stands at the end.
        let at = |of: &Shown| (of.first.sum().max(1) as f64, of.answer_us.max(0.1));
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

/// A scheme that is not the best, with the one part of its costs by which it loses most.
fn runner_up(other: &Candidate, best: &Candidate) -> String {
    let pairs = other.money.parts().into_iter().zip(best.money.parts());
    let losses = pairs.map(|(other, best)| other - best).enumerate();
    let worst = losses.max_by(|(_, one), (_, next)| one.total_cmp(next));
    let bytes = |what: &str, of: &dyn Fn(&Candidate) -> f64| {
        let (other, best) = (of(other), of(best));
        format!("{what} {}, not {}", display::bytes(other as u64), display::bytes(best as u64))
    };
    let time = |what: &str, of: &dyn Fn(&Candidate) -> Duration| {
        let (other, best) = (of(other), of(best));
        format!("{what} {}, not {}", display::duration(other), display::duration(best))
    };
    let reason = match worst.map_or(0, |(part, _)| part) {
        0 => bytes("clients begin with", &|of| of.first.sum() as f64),
        1 => bytes("a client receives in a day", &|of| of.day_bytes),
        2 => time("a lookup takes the server", &|of| of.answer),
        3 => bytes("servers need memory of", &|of| of.servers as f64 * of.server_bytes as f64),
        4 => time("clients wait at first for", &|of| of.first_time),
        _ => time("a lookup takes", &|of| of.lookup_time),
    };
    format!("{} would cost {}: {reason}.", other.scheme, money(other.money.sum()))
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
    let serve = format!("privet serve {file} --scheme {} --listen 0.0.0.0:7700", best.scheme);
    let addresses: Vec<String> = match best.servers {
        1 => vec!["http://server:7700".to_owned()],
        servers => (1..=servers).map(|number| format!("http://server{number}:7700")).collect(),
    };
    let wanted = if subject.is_by_key { "--key KEY" } else { "--index NUMBER" };
    vec![serve, format!("privet get {} {wanted}", addresses.join(" "))]
}

fn seconds(seconds: f64) -> String {
    display::duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn money(amount: f64) -> String {
    match amount {
        amount if amount < 10.0 => format!("{amount:.2}"),
        amount => display::count(amount.round() as u64),
    }
}
