//! What each choice of variables and degree costs, and which choice is best.
//!
//! With `m` variables and degree `D` there is a coefficient for each of the C(m, D) words of weight
//! D, and a point for each of the q^m words over the field. Each of s servers reads the points that
//! differ from the query's point in at most K = ⌊D/s⌋ variables. More variables allow a smaller
//! degree. That takes more storage and fewer reads.

use crate::combinations::{MOST_VARIABLES, binomial};
use privet_core::table::MAX_TABLE_BYTES;
use privet_core::{Error, Result};
use privet_schemes::registry::MAX_MESSAGE_LEN;

/// By default, all points together are at most so many times as large as the table.
const STORAGE_FACTOR: u64 = 32;

/// The operator's wishes for the variables and the degree. Anything that is not set follows from
/// the table's shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Exactly so many variables. Without a degree, the degree at which servers read the least.
    pub variables: Option<u32>,
    /// Exactly this degree.
    pub degree: Option<u32>,
    /// All points together have at most so many bytes.
    pub storage_limit: Option<u64>,
    /// One server's answer has at most so many bytes. If this is set, the choice is the least
    /// storage that achieves it; otherwise the fewest reads that the storage allows.
    pub answer_limit: Option<u64>,
}

/// Variables and degree, for a number of servers and a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Servers that are asked, s.
    pub servers: u32,
    /// Elements of the field, q: 2 for two servers.
    pub field: u32,
    /// Variables, m.
    pub variables: u32,
    /// Degree, D.
    pub degree: u32,
}

impl Setting {
    /// K: the most variables in which a point that a server reads differs from the query's point.
    pub fn radius(self) -> u32 {
        self.degree / self.servers
    }

    /// How many records there can be.
    pub fn capacity(self) -> u64 {
        binomial(self.variables, self.degree)
            .and_then(|count| u64::try_from(count).ok())
            .unwrap_or(u64::MAX)
    }

    /// How many points there are. `None` if they are too many for any table.
    pub fn points(self) -> Option<u64> {
        u64::from(self.field)
            .checked_pow(self.variables)
            .filter(|points| *points <= 1 << MOST_VARIABLES)
    }

    /// How many points a server reads for a query.
    pub fn reads(self) -> u64 {
        let reads = (0..=self.radius()).map(|weight| binomial(self.variables, weight).unwrap_or(0));
        u64::try_from(reads.sum::<u128>()).unwrap_or(u64::MAX)
    }

    /// What costs tend to if the table grows and the degree for each variable, θ = D/m, stays the
    /// same. Every count grows as 2^(c·m) with some rate c: records with H(θ), the entropy of a
    /// coin, storage with log₂ q, reads with H(θ/s). (Sections 3 to 5 of the paper.)
    pub fn exponents(self) -> Exponents {
        let mean = f64::from(self.degree) / f64::from(self.variables);
        let records = entropy(mean);
        Exponents {
            storage: f64::from(self.field).log2() / records,
            reads: entropy(mean / f64::from(self.servers)) / records,
        }
    }
}

/// n^`storage` points and n^`reads` reads, for n records. Infinite if there is one record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponents {
    /// The exponent of the storage on each server.
    pub storage: f64,
    /// The exponent of the number of records that each server reads and sends.
    pub reads: f64,
}

/// The entropy of a coin that shows heads with that probability, in bits.
fn entropy(probability: f64) -> f64 {
    let term = |share: f64| if share > 0.0 { -share * share.log2() } else { 0.0 };
    term(probability) + term(1.0 - probability)
}

/// The settings worth considering for `records` records, from the least storage to the fewest
/// reads. Each has fewer reads than all before it.
pub fn settings(records: u64, servers: u32, field: u32) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    for variables in 2..=MOST_VARIABLES {
        if let Some(setting) = fewest_reads(records, servers, field, variables)
            && found.last().is_none_or(|last| setting.radius() < last.radius())
        {
            found.push(setting);
        }
    }
    found
}

/// The degree at which servers read the least, for so many variables. `None` if they are too few,
/// or would make too many points.
fn fewest_reads(records: u64, servers: u32, field: u32, variables: u32) -> Option<Setting> {
    let at = |radius: u32| {
        // The largest degree that points within `radius` determine.
        let largest = servers * (radius + 1) - 1;
        let degree = match servers {
            2 => largest,
            _ => largest.min(variables / 2).max(1),
        };
        Setting { servers, field, variables, degree }
    };
    (0..=variables).map(at).find(|setting| {
        setting.degree <= variables / 2
            && setting.capacity() >= records
            && setting.points().is_some()
    })
}

/// The setting for a table of `records` records. `bytes` computes how many bytes a number of points
/// takes, stored or in an answer.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the possible choices, if no setting
/// fits.
pub fn choose(
    records: u64,
    servers: u32,
    field: u32,
    choice: &Choice,
    bytes: impl Fn(u64) -> Option<u64>,
) -> Result<Setting> {
    let storage = |setting: Setting| setting.points().and_then(&bytes);
    let answer = |setting: Setting| bytes(setting.reads()).unwrap_or(u64::MAX);
    if let (Some(variables), Some(degree)) = (choice.variables, choice.degree) {
        // The parameters check whether it suits the table.
        return Ok(Setting { servers, field, variables, degree });
    }
    let considered = match choice.variables {
        Some(variables) => fewest_reads(records, servers, field, variables).into_iter().collect(),
        None => settings(records, servers, field),
    };
    let fitting: Vec<Setting> = considered
        .into_iter()
        .filter(|setting| storage(*setting).is_some_and(|bytes| bytes <= MAX_TABLE_BYTES))
        .filter(|setting| answer(*setting) <= MAX_MESSAGE_LEN as u64)
        .collect();
    let Some(least) = fitting.first().copied() else {
        return Err(Error::api_misuse(match choice.variables {
            Some(variables) => format!(
                "{variables} variables do not suffice for {records} records with {servers} servers, or their points would take more than {MAX_TABLE_BYTES} bytes, or answers more than {MAX_MESSAGE_LEN}"
            ),
            None => format!(
                "finite differences with {servers} servers cannot hold {records} records: their points would take more than {MAX_TABLE_BYTES} bytes, or answers more than {MAX_MESSAGE_LEN}"
            ),
        }));
    };
    let allowed = |setting: &&Setting| {
        let bytes = storage(**setting).unwrap_or(u64::MAX);
        choice.degree.is_none_or(|degree| degree == setting.degree)
            && choice.storage_limit.is_none_or(|limit| bytes <= limit)
            && choice.answer_limit.is_none_or(|limit| answer(**setting) <= limit)
    };
    let mut suitable = fitting.iter().filter(allowed).copied();
    if *choice == Choice::default() {
        let limit = bytes(records).unwrap_or(u64::MAX).saturating_mul(STORAGE_FACTOR);
        let within = |setting: &Setting| storage(*setting).is_some_and(|bytes| bytes <= limit);
        return Ok(suitable.rfind(within).unwrap_or(least));
    }
    let chosen = match choice.answer_limit {
        Some(_) => suitable.next(),
        None => suitable.next_back(),
    };
    chosen.ok_or_else(|| {
        let curve: Vec<String> = fitting
            .iter()
            .map(|setting| {
                format!(
                    "{} variables of degree {} ({} bytes of storage, answers of {})",
                    setting.variables,
                    setting.degree,
                    storage(*setting).unwrap_or(u64::MAX),
                    answer(*setting)
                )
            })
            .collect();
        Error::api_misuse(format!(
            "no choice of variables and degree keeps these limits for {records} records; there is: {}",
            curve.join("; ")
        ))
    })
}
