//! The settings for a table, exactly as they would be served.

use super::Tradeoff;
use crate::display::{self, Page};
use privet_core::{Error, Result, TableShape};
use privet_laboratory::finite_differences::costs::{Choice, Setting, settings};
use privet_laboratory::finite_differences::many_servers::{
    ManyServersParameters, ManyServersQuery, SERVERS, least_field,
};
use privet_laboratory::finite_differences::{
    FiniteDifferencesParameters, FiniteDifferencesQuery, ONE_BIT,
};
use privet_measure::identity_of;
use privet_measure::plot::{Axis, Look, Plot, Series};
use privet_schemes::SchemeId;
use privet_schemes::contract::{Message as _, Parameters as _};
use privet_schemes::registry::{self, Tuning};
use serde::Serialize;

/// The curve. `docs/laboratory/tradeoff.md` explains the fields.
#[derive(Serialize)]
pub(super) struct TradeoffReport {
    scheme: &'static str,
    servers: u32,
    field: u32,
    records: u64,
    record_len: u64,
    one_bit: bool,
    /// Single bits are counted as they are packed.
    table_bytes: u64,
    /// Ordered from the least storage to the fewest reads.
    curve: Vec<Offer>,
    /// The command that serves with the chosen setting.
    command: String,
    /// Why a server would take none of the settings.
    refusal: Option<String>,
}

/// One setting.
#[derive(Serialize)]
struct Offer {
    variables: u32,
    degree: u32,
    /// On each server.
    storage_bytes: u64,
    /// The multiple of the table's size.
    storage_factor: f64,
    /// Points that each server reads.
    reads: u64,
    cache_lines: u64,
    /// To each server.
    query_bytes: u64,
    /// From each server.
    answer_bytes: u64,
    /// Summed over all servers.
    download_bytes: u64,
    /// The degree divided by the number of variables.
    mean_degree: f64,
    storage_exponent: f64,
    reads_exponent: f64,
    /// Whether a server would take it. Answers may be too long for a message.
    served: bool,
    /// Whether a server takes this one under these limits.
    chosen: bool,
}

impl TradeoffReport {
    pub(super) fn new(arguments: &Tradeoff) -> Result<Self> {
        let Tradeoff { records, servers, .. } = *arguments;
        let shape = TableShape::new(records, arguments.record_len)?;
        let (scheme, field) = match (servers, least_field(servers)) {
            (2, _) => (privet_laboratory::FINITE_DIFFERENCES, 2),
            (_, Some(field)) => (privet_laboratory::FINITE_DIFFERENCES_MANY, field),
            (_, None) => {
                return Err(Error::api_misuse(format!(
                    "there are no finite differences with {servers} servers"
                )));
            }
        };
        if arguments.one_bit && servers > 2 {
            return Err(Error::api_misuse(
                "single bits are packed with two servers only: leave out --one-bit or --servers",
            ));
        }
        let wanted = ComparedTable { scheme, shape, servers, one_bit: arguments.one_bit };
        let limits = Choice {
            storage_limit: arguments.storage_limit,
            answer_limit: arguments.answer_limit,
            ..Choice::default()
        };
        let chosen = wanted.as_served(limits);
        let found = settings(records, servers, field);
        let mut curve: Vec<Offer> =
            found.into_iter().filter_map(|setting| wanted.offer(setting).ok()).collect();
        let refusal = match chosen {
            Ok((variables, degree)) => {
                for offer in &mut curve {
                    offer.chosen = (offer.variables, offer.degree) == (variables, degree);
                }
                None
            }
            // With no setting to show, the reason is the error.
            Err(error) if curve.is_empty() => return Err(error),
            Err(error) => Some(error.message().to_owned()),
        };
        Ok(Self {
            scheme: scheme.name(),
            servers,
            field,
            records,
            record_len: arguments.record_len,
            one_bit: arguments.one_bit,
            table_bytes: wanted.table_bytes(),
            curve,
            command: wanted.command(&limits),
            refusal,
        })
    }

    /// What a record is, in words.
    fn record(&self) -> String {
        match self.one_bit {
            true => "1 bit".to_owned(),
            false => display::bytes(self.record_len),
        }
    }

    pub(super) fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!(
            "{} records of {}, {} in all, with {} and {} servers. There is to choose from:",
            display::count(self.records),
            self.record(),
            display::bytes(self.table_bytes),
            self.scheme,
            self.servers
        ));
        let cells = |offer: &Offer| {
            let mark = match (offer.chosen, offer.served) {
                (true, _) => "*",
                (false, true) => "",
                (false, false) => "!",
            };
            [
                mark.to_owned(),
                offer.variables.to_string(),
                offer.degree.to_string(),
                display::bytes(offer.storage_bytes),
                times(offer.storage_factor),
                display::count(offer.reads),
                display::count(offer.cache_lines),
                display::bytes(offer.answer_bytes),
                display::bytes(offer.download_bytes),
            ]
        };
        let heading = [
            "",
            "variables",
            "degree",
            "storage",
            "× table",
            "reads",
            "cache lines",
            "answer",
            "download",
        ];
        let rows: Vec<_> = self.curve.iter().map(cells).collect();
        page.table(heading, &rows);
        if self.curve.iter().any(|offer| offer.chosen) {
            page.line(format!("* is what `{}` takes.", self.command));
        }
        if self.curve.iter().any(|offer| !offer.served) {
            page.line("! has answers that are too long to be sent in one message.");
        }
        if let Some(refusal) = &self.refusal {
            page.line(format!("`{}` takes none: {refusal}", self.command));
        }
        page.line(
            "Storage, reads, lines and answers are those of each server; the download is that of all. If the table grew to n records, and the variables and the degree in proportion:",
        );
        let cells = |offer: &Offer| {
            [
                offer.variables.to_string(),
                offer.degree.to_string(),
                format!("{:.3}", offer.mean_degree),
                format!("n^{:.3}", offer.storage_exponent),
                format!("n^{:.3}", offer.reads_exponent),
            ]
        };
        let heading = ["variables", "degree", "degree / variables", "storage", "reads"];
        let rows: Vec<_> = self.curve.iter().map(cells).collect();
        page.table(heading, &rows);
        page
    }

    /// Storage against reads, both logarithmic. The length of an answer is proportional to the
    /// reads. So it has an axis of its own on the right instead of a curve.
    pub(super) fn plot(&self) -> Plot {
        let with = |value: fn(&Offer) -> u64| -> Vec<(f64, f64)> {
            let point = |offer: &Offer| (offer.storage_bytes as f64, value(offer) as f64);
            self.curve.iter().map(point).collect()
        };
        let (reads, lines) = (with(|offer| offer.reads), with(|offer| offer.cache_lines));
        let chosen = self.curve.iter().filter(|offer| offer.chosen);
        let chosen = chosen.map(|offer| (offer.storage_bytes as f64, offer.reads as f64)).collect();
        let heights = reads.iter().chain(&lines).map(|point| point.1);
        let y = Axis::counts("points and cache lines read by each server", heights);
        let read_len = match self.one_bit {
            true => 1.0 / 8.0,
            false => self
                .curve
                .first()
                .map_or(1.0, |offer| offer.answer_bytes as f64 / offer.reads as f64),
        };
        Plot {
            title: format!(
                "{} records of {}: {}, {} servers",
                display::count(self.records),
                self.record(),
                self.scheme,
                self.servers
            ),
            x: Axis::bytes("bytes stored on each server", reads.iter().map(|point| point.0)),
            right: Some(y.as_bytes("bytes of each server's answer (to the points read)", read_len)),
            y,
            series: vec![
                Series { label: "points read".to_owned(), hue: 0, look: Look::Line, points: reads },
                Series {
                    label: "cache lines read".to_owned(),
                    hue: 1,
                    look: Look::Dashed,
                    points: lines,
                },
                Series {
                    label: "what serve takes".to_owned(),
                    hue: 2,
                    look: Look::Marks,
                    points: chosen,
                },
            ],
        }
    }
}

/// `1.3`, `32`, `1,024`
fn times(factor: f64) -> String {
    match factor {
        factor if factor < 9.95 => format!("{factor:.1}"),
        factor => display::count(factor.round() as u64),
    }
}

/// The table for which settings are compared.
struct ComparedTable {
    scheme: SchemeId,
    shape: TableShape,
    servers: u32,
    one_bit: bool,
}

impl ComparedTable {
    fn table_bytes(&self) -> u64 {
        match self.one_bit {
            true => self.shape.records().div_ceil(8),
            false => self.shape.bytes(),
        }
    }

    fn command(&self, limits: &Choice) -> String {
        let mut command = format!("privet serve --scheme {}", self.scheme);
        if self.servers > 2 {
            command += &format!(" --servers {}", self.servers);
        }
        if self.one_bit {
            command += " --one-bit";
        }
        for (option, limit) in
            [("--storage-limit", limits.storage_limit), ("--answer-limit", limits.answer_limit)]
        {
            if let Some(limit) = limit {
                command += &format!(" {option} {limit}");
            }
        }
        command
    }

    /// The variables and the degree that a server would take, or why it would not start.
    fn as_served(&self, choice: Choice) -> Result<(u32, u32)> {
        let tuning = Tuning::from(choice)
            .with_some(&SERVERS, (self.servers > 2).then_some(self.servers))
            .with_flag(&ONE_BIT, self.one_bit);
        let identity = identity_of(self.shape);
        let plan = registry::plan(self.scheme, &identity, &tuning)?;
        Ok(match self.servers {
            2 => {
                let parameters = FiniteDifferencesParameters::decode(&identity, &plan.parameters)?;
                (parameters.variables(), parameters.degree())
            }
            _ => {
                let parameters = ManyServersParameters::decode(&identity, &plan.parameters)?;
                (parameters.variables(), parameters.degree())
            }
        })
    }

    /// What a setting costs.
    ///
    /// # Errors
    /// If it does not suit the table.
    fn offer(&self, setting: Setting) -> Result<Offer> {
        let Setting { servers, variables, degree, .. } = setting;
        let (storage_bytes, reads, cache_lines, query_bytes, answer_bytes) = match servers {
            2 => {
                let one = FiniteDifferencesParameters::with(self.shape, self.one_bit, setting)?;
                let query = FiniteDifferencesQuery::encoded_len(&one);
                let reads = one.ball().count();
                (one.points_bytes(), reads, one.cache_lines(), query, one.answer_bytes())
            }
            _ => {
                let one = ManyServersParameters::with(self.shape, setting)?;
                let query = ManyServersQuery::encoded_len(&one);
                let reads = one.ball().count();
                (one.points_bytes(), reads, one.cache_lines(), query, one.answer_bytes())
            }
        };
        let exactly =
            Choice { variables: Some(variables), degree: Some(degree), ..Choice::default() };
        let exponents = setting.exponents();
        Ok(Offer {
            variables,
            degree,
            storage_bytes,
            storage_factor: storage_bytes as f64 / self.table_bytes() as f64,
            reads,
            cache_lines,
            query_bytes: query_bytes as u64,
            answer_bytes,
            download_bytes: answer_bytes.saturating_mul(servers.into()),
            mean_degree: f64::from(degree) / f64::from(variables),
            storage_exponent: exponents.storage,
            reads_exponent: exponents.reads,
            served: self.as_served(exactly).is_ok(),
            chosen: false,
        })
    }
}
