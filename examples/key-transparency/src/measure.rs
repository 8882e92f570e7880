//! The sizes of the TAPIR paper, measured with `privet bench`, beside the paper's own figures.
//!
//! The paper (section 6.5) takes 32 bytes for a key and goes up to 2^24 keys. Its figures are those
//! of table 1, rows TAPIR-MT: a program in Go on two Xeon Gold 6258R at 2.7 GHz. It cuts a
//! directory of N keys into partitions of √N. Privet is measured cut like that, and cut as it cuts
//! by itself.

use clap::Args;
use privet_core::{Error, Result};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The program to measure; default: `privet` beside this program
    #[arg(long, value_name = "FILE")]
    privet: Option<PathBuf>,
    /// Numbers of keys, as exponents of two
    #[arg(long, value_name = "K,…", value_delimiter = ',', default_value = "20,22,24")]
    #[arg(value_parser = clap::value_parser!(u32).range(4..=28))]
    sizes: Vec<u32>,
    /// Lookups for each size
    #[arg(long, default_value_t = 50)]
    queries: u32,
}

/// Keys that change in one epoch: the batch that the paper measures.
const EDITS: u32 = 500;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// KiB that a client sends and receives before its first lookup.
    first_kib: f64,
    /// Seconds that a server computes, once for all clients.
    server_s: f64,
    /// Seconds that a client computes before its first lookup.
    client_s: f64,
    /// KiB that a lookup sends and receives, both servers together.
    lookup_kib: f64,
    /// Milliseconds of a lookup: making the query, the slower server, and verifying.
    lookup_ms: f64,
    /// Milliseconds of a server and of a client for an epoch of [`EDITS`] changed keys.
    epoch_ms: Option<[f64; 2]>,
}

/// Table 1 of the paper, by exponent. (It gives the time of a lookup in hundredths of a second.)
const PAPER: [(u32, Figures); 4] = [
    (18, paper(18_982.05, 0.33, 0.08, 354.00, 10.0)),
    (20, paper(75_852.05, 1.45, 0.39, 776.98, 20.0)),
    (22, paper(303_256.05, 5.51, 1.86, 1_690.98, 50.0)),
    (24, paper(1_212_720.05, 22.14, 7.65, 3_662.97, 120.0)),
];

const fn paper(
    first_kib: f64,
    server_s: f64,
    client_s: f64,
    lookup_kib: f64,
    lookup_ms: f64,
) -> Figures {
    Figures { first_kib, server_s, client_s, lookup_kib, lookup_ms, epoch_ms: None }
}

const HEAD: &str = "\
| keys | | first, KiB | server, once, s | client, once, s | lookup, KiB | lookup, ms | epoch: server, client, ms |
|---|---|---|---|---|---|---|---|
";

const NOTES: &str = "
Keys of 32 bytes, one thread, without network and disk. *First* is what a client sends and receives
before its first lookup. A lookup's bytes are those of both servers together. Its time is that of
making the query, of the slower server, and of verifying. An epoch changes 500 keys. The paper gives
the time of a lookup in hundredths of a second, and an epoch only as text (section 6.4): a client
takes at most 0.005 ms for each of 500 keys, 2.5 ms together, up to 2^22 keys. Its client has both
servers stream the whole directory; that of Privet has each stream a half, and compares digests.
";

/// Measures all sizes, and returns the table in Markdown. What is being measured is said on
/// standard error.
pub(crate) fn run(arguments: &Arguments) -> Result<String> {
    let privet = match &arguments.privet {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map(|program| program.with_file_name("privet"))
            .map_err(|error| Error::unavailable("where is this program?").caused_by(error))?,
    };
    let mut table = HEAD.to_owned();
    for &exponent in &arguments.sizes {
        let paper = PAPER.iter().find(|(known, _)| *known == exponent);
        table.extend(paper.map(|(_, figures)| row(exponent, "the paper", figures)));
        for (cut, words) in
            [(Some(root(exponent)), "Privet, cut as in the paper"), (None, "Privet")]
        {
            let _ = writeln!(std::io::stderr(), "measuring 2^{exponent} keys: {words}");
            let mut command = Command::new(&privet);
            command.args(["bench", "--scheme", "tapir-mt", "--record-len", "32", "--json"]);
            command.args(["--threads", "1", "--records", &(1_u64 << exponent).to_string()]);
            command.args(["--edits", &EDITS.to_string()]);
            command.args(["--queries", &arguments.queries.to_string()]);
            if let Some(cut) = cut {
                command.args(["--partition-records", &cut.to_string()]);
            }
            let output = command.output().map_err(|error| {
                Error::api_misuse(format!("cannot run {}", privet.display())).caused_by(error)
            })?;
            if !output.status.success() {
                let told = String::from_utf8_lossy(&output.stderr);
                return Err(Error::unavailable(format!("{command:?} failed: {told}")));
            }
            table.push_str(&row(exponent, words, &Figures::of(&output.stdout)?));
        }
    }
    Ok(table + NOTES)
}

/// √N records, the paper's partition: the next power of two if there is no whole root.
fn root(exponent: u32) -> u64 {
    1 << exponent.div_ceil(2)
}

impl Figures {
    /// Reads what `privet bench --json` prints (docs/bench.md).
    fn of(json: &[u8]) -> Result<Self> {
        let report: Value = serde_json::from_slice(json).map_err(|error| {
            Error::invalid_message("`privet bench` printed no JSON").caused_by(error)
        })?;
        let number = |path: &str| {
            report.pointer(path).and_then(Value::as_f64).ok_or_else(|| {
                Error::invalid_message(format!("the report of `privet bench` has no {path}"))
            })
        };
        let servers =
            [number("/online/servers/0/answer_us")?, number("/online/servers/1/answer_us")?];
        let client = number("/online/client_query_us")? + number("/online/client_recover_us")?;
        Ok(Self {
            first_kib: (number("/offline/up_bytes")? + number("/offline/down_bytes")?) / 1024.0,
            server_s: number("/offline/server_s")?,
            client_s: number("/offline/client_s")?,
            lookup_kib: (number("/online/up_bytes")? + number("/online/down_bytes")?) / 1024.0,
            lookup_ms: (client + servers[0].max(servers[1])) / 1e3,
            epoch_ms: Some([
                number("/edits/server_update_ms")?,
                number("/edits/client_update_ms")?,
            ]),
        })
    }
}

fn row(exponent: u32, words: &str, figures: &Figures) -> String {
    let Figures { first_kib, server_s, client_s, lookup_kib, lookup_ms, epoch_ms } = *figures;
    let numbers = [first_kib, server_s, client_s, lookup_kib, lookup_ms].map(short).join(" | ");
    let epoch = epoch_ms.map_or("–".to_owned(), |both| both.map(short).join(", "));
    format!("| 2^{exponent} | {words} | {numbers} | {epoch} |\n")
}

/// A number with two or more digits that count.
fn short(number: f64) -> String {
    match number {
        _ if number >= 100.0 => format!("{number:.0}"),
        _ if number >= 10.0 => format!("{number:.1}"),
        _ if number >= 0.1 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
        "scheme": "tapir-mt",
        "offline": {"server_s": 0.0416, "client_s": 1.26, "up_bytes": 1024, "down_bytes": 35651584},
        "online": {
            "client_query_us": 32.5, "journal_us": 900.0, "client_recover_us": 330.0,
            "servers": [{"answer_us": 90.0}, {"answer_us": 137.5}],
            "up_bytes": 4096, "down_bytes": 327680
        },
        "edits": {"records": 500, "server_update_ms": 0.14, "client_update_ms": 12.24}
    }"#;

    #[test]
    fn a_row_has_the_figures_of_the_report_in_the_units_of_the_head() {
        let figures = Figures::of(REPORT.as_bytes()).expect("a report");
        let expected = "| 2^20 | Privet | 34817 | 0.042 | 1.26 | 324 | 0.50 | 0.14, 12.2 |\n";
        assert_eq!(row(20, "Privet", &figures), expected);
        let columns = |line: &str| line.matches('|').count();
        assert!(HEAD.lines().all(|line| columns(line) == columns(expected)), "{HEAD}");
    }

    #[test]
    fn a_report_without_a_figure_is_refused_by_its_name() {
        for name in ["server_s", "down_bytes", "client_recover_us", "client_update_ms"] {
            let error = Figures::of(REPORT.replace(name, "other").as_bytes()).expect_err("missing");
            assert!(error.message().contains(name), "{error}");
        }
        assert!(Figures::of(b"no JSON").is_err());
    }

    #[test]
    fn the_papers_rows_stand_as_it_prints_them() {
        let (_, largest) = &PAPER[3];
        let expected = "| 2^24 | the paper | 1212720 | 22.1 | 7.65 | 3663 | 120 | – |\n";
        assert_eq!(row(24, "the paper", largest), expected);
        assert_eq!([20, 22, 23, 24].map(root), [1024, 2048, 4096, 4096]);
    }
}
