//! Chooses packages to look up, and compares what came back with them, field by field. Shares no
//! code with Privet.

use serde_json::{Map, Value};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};

/// The column that is the key.
const KEY: &str = "Package";

/// How many of the longest entries are always chosen: their values are the ones most likely to be
/// cut or misplaced.
const LONGEST: usize = 20;

/// Writes `count` different lines of JSON Lines: the first, the last, the longest, and others
/// spread evenly.
pub(crate) fn choose(
    input: impl BufRead,
    count: usize,
    mut output: impl Write,
) -> Result<(), String> {
    let entries: Vec<String> = input
        .lines()
        .collect::<Result<_, _>>()
        .map_err(|error| format!("cannot read the packages: {error}"))?;
    if entries.len() < count {
        return Err(format!("{count} packages are wanted, {} are there", entries.len()));
    }
    let mut by_length: Vec<usize> = (0..entries.len()).collect();
    by_length.sort_by_key(|place| std::cmp::Reverse(entries[*place].len()));
    let spread = (0..count).map(|number| number * entries.len() / count);
    let mut chosen = HashSet::new();
    let places =
        [0, entries.len() - 1].into_iter().chain(by_length.into_iter().take(LONGEST)).chain(spread);
    for place in places.filter(|place| chosen.insert(*place)).take(count).collect::<Vec<_>>() {
        writeln!(output, "{}", entries[place]).map_err(cannot_write)?;
    }
    output.flush().map_err(cannot_write)
}

/// Writes the names of packages, one to a line.
pub(crate) fn names(packages: impl BufRead, mut output: impl Write) -> Result<(), String> {
    for line in packages.lines() {
        let package = parse(line)?;
        writeln!(output, "{}", name_of(&package)?).map_err(cannot_write)?;
    }
    output.flush().map_err(cannot_write)
}

/// Compares the output of `privet get --json` with the packages whose names it was given, in their
/// order. Returns how many came back exactly.
pub(crate) fn compare(packages: impl BufRead, found: impl BufRead) -> Result<usize, String> {
    let mut lines = found.lines();
    let mut count = 0;
    for package in packages.lines() {
        let mut package = parse(package)?;
        let name = name_of(&package)?.to_owned();
        // `remove` would move the last field into the gap; the order of fields is compared too.
        package.shift_remove(KEY);
        let answer = parse(lines.next().ok_or_else(|| format!("no answer for {name}"))?)?;
        if answer.get("key").and_then(Value::as_str) != Some(&name)
            || answer.get("found") != Some(&Value::Bool(true))
        {
            return Err(format!("{name} was not found"));
        }
        let value = answer
            .get("value")
            .and_then(Value::as_object)
            .ok_or_else(|| format!("{name} has no fields"))?;
        if *value != package || !value.keys().eq(package.keys()) {
            return Err(format!("{name} came back changed"));
        }
        count += 1;
    }
    if lines.next().is_some() {
        return Err("there are more answers than names".to_owned());
    }
    Ok(count)
}

fn parse(line: io::Result<String>) -> Result<Map<String, Value>, String> {
    let line = line.map_err(|error| format!("cannot read a line: {error}"))?;
    serde_json::from_str(&line).map_err(|error| format!("a line is no JSON object: {error}"))
}

fn cannot_write(error: io::Error) -> String {
    format!("cannot write the packages: {error}")
}

fn name_of(package: &Map<String, Value>) -> Result<&str, String> {
    package.get(KEY).and_then(Value::as_str).ok_or_else(|| format!("a package has no {KEY}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = "{\"Package\":\"a\",\"Version\":\"1\",\"Size\":\"10\"}\n{\"Package\":\"b\",\"Version\":\"2\"}\n{\"Package\":\"c\",\"Note\":\"long long long\"}\n";
    const FOUND: &str =
        "{\"key\":\"a\",\"found\":true,\"value\":{\"Version\":\"1\",\"Size\":\"10\"}}\n";

    fn compared(found: &str) -> Result<usize, String> {
        let first = PACKAGES.split_inclusive('\n').next().unwrap();
        compare(first.as_bytes(), found.as_bytes())
    }

    #[test]
    fn choosing_takes_first_last_and_longest_without_repeats() {
        let (mut chosen, mut chosen_names) = (Vec::new(), Vec::new());
        choose(PACKAGES.as_bytes(), 3, &mut chosen).unwrap();
        names(&chosen[..], &mut chosen_names).unwrap();
        assert_eq!(chosen_names, b"a\nc\nb\n");
        assert!(choose(PACKAGES.as_bytes(), 4, Vec::new()).is_err());
    }

    #[test]
    fn exact_answers_pass_and_every_difference_is_caught() {
        assert_eq!(compared(FOUND), Ok(1));
        for (from, to) in [
            ("\"1\"", "\"2\""),
            (",\"Size\":\"10\"", ""),
            ("\"Version\":\"1\",\"Size\":\"10\"", "\"Size\":\"10\",\"Version\":\"1\""),
            ("true", "false"),
            ("\"a\"", "\"b\""),
        ] {
            let changed = FOUND.replace(from, to);
            assert_ne!(changed, FOUND);
            assert!(compared(&changed).is_err(), "{changed}");
        }
        assert!(compared("").is_err());
        assert!(compared(&FOUND.repeat(2)).is_err());
    }
}
