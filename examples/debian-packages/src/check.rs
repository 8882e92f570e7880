//! Chooses names to look up, and compares what came back with the input, field by field. Shares no
//! code with Privet.

use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};

/// The column that is the key.
const KEY: &str = "Package";

/// How many of the longest entries are always chosen: their values are the ones most likely to be
/// cut or misplaced.
const LONGEST: usize = 20;

/// Writes `count` different names from JSON Lines, one to a line: the first, the last, the longest,
/// and others evenly spread.
pub(crate) fn choose(
    input: impl BufRead,
    count: usize,
    mut output: impl Write,
) -> Result<(), String> {
    let mut entries = Vec::new();
    for line in input.lines() {
        let line = line.map_err(|error| format!("cannot read the packages: {error}"))?;
        entries.push((name_of(&parse(&line)?)?.to_owned(), line.len()));
    }
    if entries.len() < count {
        return Err(format!("{count} names are wanted, {} packages are there", entries.len()));
    }
    let mut by_length: Vec<usize> = (0..entries.len()).collect();
    by_length.sort_by_key(|place| std::cmp::Reverse(entries[*place].1));
    let spread = (0..count).map(|number| number * entries.len() / count);
    let mut chosen = HashSet::new();
    let places =
        [0, entries.len() - 1].into_iter().chain(by_length.into_iter().take(LONGEST)).chain(spread);
    for place in places.filter(|place| chosen.insert(*place)).take(count).collect::<Vec<_>>() {
        writeln!(output, "{}", entries[place].0)
            .map_err(|error| format!("cannot write the names: {error}"))?;
    }
    output.flush().map_err(|error| format!("cannot write the names: {error}"))
}

/// Compares the output of `privet get --json` for `names`, in their order, with the packages.
/// Returns how many names came back exactly.
pub(crate) fn compare(
    packages: impl BufRead,
    names: impl BufRead,
    found: impl BufRead,
) -> Result<usize, String> {
    let names: Vec<String> = names
        .lines()
        .collect::<Result<_, _>>()
        .map_err(|error| format!("cannot read the names: {error}"))?;
    let wanted: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut expected = HashMap::new();
    for line in packages.lines() {
        let mut package =
            parse(&line.map_err(|error| format!("cannot read the packages: {error}"))?)?;
        let name = name_of(&package)?.to_owned();
        if wanted.contains(name.as_str()) {
            // `remove` would move the last field into the gap; the order of fields is compared too.
            package.shift_remove(KEY);
            expected.insert(name, package);
        }
    }
    let mut lines = found.lines();
    for name in &names {
        let line = lines.next().ok_or_else(|| format!("no answer for {name}"))?;
        let answer = parse(&line.map_err(|error| format!("cannot read the answers: {error}"))?)?;
        let expected = expected.get(name).ok_or_else(|| format!("{name} is no package"))?;
        if answer.get("key").and_then(Value::as_str) != Some(name)
            || answer.get("found") != Some(&Value::Bool(true))
        {
            return Err(format!("{name} was not found"));
        }
        let value = answer
            .get("value")
            .and_then(Value::as_object)
            .ok_or_else(|| format!("{name} has no fields"))?;
        if value != expected || !value.keys().eq(expected.keys()) {
            return Err(format!("{name} came back changed"));
        }
    }
    if lines.next().is_some() {
        return Err("there are more answers than names".to_owned());
    }
    Ok(names.len())
}

fn parse(line: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(line).map_err(|error| format!("a line is no JSON object: {error}"))
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
        compare(PACKAGES.as_bytes(), "a\n".as_bytes(), found.as_bytes())
    }

    #[test]
    fn choosing_takes_first_last_and_longest_without_repeats() {
        let mut names = Vec::new();
        choose(PACKAGES.as_bytes(), 3, &mut names).unwrap();
        assert_eq!(names, b"a\nc\nb\n");
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
