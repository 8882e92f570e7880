//! Measures schemes on this machine, and has the numbers by which their times are forecast follow:
//! `cargo run --release -p privet-measure --example fit_factors [SCHEME…]` rewrites
//! `crates/schemes/src/registry/factors.rs`. Each line there, a step of a scheme, is multiplied by
//! how many times longer the step takes here than planned: the geometric mean over some tables.
//! Run it on an otherwise idle machine.
//!
//! The steps that tapir-mt shares with singlepass have their numbers there. What tapir-mt adds is
//! left alone: it cannot be measured apart. A query of dummy-subsets-two is planned as so many of
//! dummy-subsets, so its number follows what is left when that one's is right.

#![allow(clippy::print_stdout)]

use privet_core::{Result, TableShape};
use privet_measure::accuracy::{Step, compare};
use privet_measure::machine::Machine;
use privet_measure::watch::unwatched;
use privet_schemes::SchemeId;
use std::collections::BTreeMap;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemes/src/registry/factors.rs");
const LEFT_ALONE: SchemeId = SchemeId::TapirMerkle;
/// Records, and bytes of each.
const SHAPES: [(u64, u64); 4] = [(1 << 14, 32), (1 << 16, 64), (1 << 18, 32), (1 << 16, 1024)];
/// Shorter steps are lost in the clock.
const SHORTEST_S: f64 = 2e-6;

fn main() -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let machine = Machine::of(None, || 1.0, &unwatched)?;
    let is_asked = |scheme: &SchemeId| {
        *scheme != LEFT_ALONE
            && (asked.is_empty() || asked.iter().any(|name| name == scheme.name()))
    };
    let mut ratios: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for scheme in SchemeId::all().filter(is_asked) {
        let module = scheme.name().replace('-', "_");
        for (records, record_len) in SHAPES {
            let shape = TableShape::new(records, record_len)?;
            let (steps, _) = match compare(scheme, shape, &machine) {
                Ok(compared) => compared,
                Err(error) => {
                    println!("{scheme} on {records} records of {record_len} B: {error}");
                    continue;
                }
            };
            for Step { name, planned, measured } in steps {
                println!(
                    "{scheme:18} {records:>7} x {record_len:<5} {name:16} {:6.2} x",
                    measured / planned
                );
                if measured >= SHORTEST_S {
                    let step = (module.clone(), name.to_uppercase());
                    ratios.entry(step).or_default().push(measured / planned);
                }
            }
        }
    }
    let times = ratios.into_iter().map(|(step, ratios)| {
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        (step, (logarithms / ratios.len() as f64).exp())
    });
    let mut times: BTreeMap<_, f64> = times.collect();
    let query = |scheme: &str| (scheme.to_owned(), "QUERY".to_owned());
    if let Some(one) = times.get(&query("dummy_subsets")).copied() {
        times.entry(query("dummy_subsets_two")).and_modify(|two| *two /= one);
    }
    let failed = |error| privet_core::Error::unavailable("the table of factors").caused_by(error);
    let table = std::fs::read_to_string(TABLE).map_err(failed)?;
    std::fs::write(TABLE, multiplied(&table, &times)).map_err(failed)
}

/// The table with the numbers of each measured step multiplied, to three digits.
fn multiplied(table: &str, times: &BTreeMap<(String, String), f64>) -> String {
    let mut module = String::new();
    let lines = table.lines().map(|line| {
        if let Some(rest) = line.strip_prefix("pub(crate) mod ") {
            module = rest.trim_end_matches(" {").to_owned();
        }
        let step =
            line.strip_prefix("    pub(crate) const ").and_then(|line| line.split_once(": "));
        let times = step.and_then(|(name, _)| times.get(&(module.clone(), name.to_owned())));
        let (Some(times), Some((before, numbers))) = (times, line.split_once(" = ")) else {
            return format!("{line}\n");
        };
        let is_list = numbers.starts_with('[');
        let numbers = numbers.trim_matches(['[', ']', ';']).split(", ");
        let numbers = numbers.filter_map(|number| number.replace('_', "").parse::<f64>().ok());
        let numbers: Vec<String> = numbers.map(|number| three_digits(number * times)).collect();
        match is_list {
            true => format!("{before} = [{}];\n", numbers.join(", ")),
            false => format!("{before} = {};\n", numbers.concat()),
        }
    });
    lines.collect()
}

/// The number to three digits, as Rust writes it.
fn three_digits(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    format!("{rounded:?}")
}
