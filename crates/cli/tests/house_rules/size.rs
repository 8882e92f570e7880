//! How large the house is. A bound falls when the house has shrunk. A change that needs more raises
//! it, in a commit that says what it took away for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines of Rust without blank lines and comments, outside tests and the laboratory.
const SOURCE_LINES: usize = 84_700;
/// Lines of Rust without blank lines, all in all.
const ALL_LINES: usize = 187_600;
/// Words of the documents, outside the laboratory.
const WORDS: usize = 26_400;
/// Names that four types or more bear.
const SHARED_NAMES: usize = 5;

#[test]
fn the_house_stays_within_its_bounds() {
    let root = root();
    let files = all_files(&root);
    assert!(files.len() > 500, "{files:?}");
    let (mut source_lines, mut all_lines, mut words) = (0, 0, 0);
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &files {
        let place = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let in_laboratory = place.split('/').any(|part| part.starts_with("laboratory"));
        let text = std::fs::read_to_string(file).unwrap();
        if place.ends_with(".md") {
            words += if in_laboratory { 0 } else { text.split_whitespace().count() };
            continue;
        }
        let lines = || text.lines().map(str::trim_start).filter(|line| !line.is_empty());
        let code = || lines().filter(|line| !line.starts_with("//"));
        all_lines += lines().count();
        if in_laboratory || is_test(&place) {
            continue;
        }
        source_lines += code().count();
        for name in code().filter_map(type_name) {
            names.entry(name.to_owned()).or_default().push(place.clone());
        }
    }
    names.retain(|_, places| places.len() >= 4);
    let mut beyond = Vec::new();
    for (what, now, bound) in [
        ("lines of source", source_lines, SOURCE_LINES),
        ("lines of Rust", all_lines, ALL_LINES),
        ("words of documents", words, WORDS),
        ("names of four types or more", names.len(), SHARED_NAMES),
    ] {
        let line = format!("{what}: {now} (at most {bound})");
        println!("{line}");
        beyond.extend((now > bound).then_some(line));
    }
    assert!(beyond.is_empty(), "{beyond:#?}\n{names:#?}");
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of Rust, and documents, but for what is built or fetched.
pub(crate) fn all_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_ours = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !name.starts_with('.') && !["target", "node_modules", "shared"].contains(&name)
    };
    let counts = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs" || end == "md");
    let below = directories.iter().filter(is_ours).flat_map(|path| all_files(path));
    below.chain(files.iter().filter(|path| counts(path)).cloned()).collect()
}

fn is_test(place: &str) -> bool {
    place.contains("/tests")
        || place.ends_with("tests.rs")
        || ["conformance", "/toy", "simulat", "/testing"].iter().any(|part| place.contains(part))
}

/// The name of the type that a line defines.
fn type_name(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let rest = line.strip_prefix("struct ").or_else(|| line.strip_prefix("enum "))?;
    rest.split(|char: char| !char.is_alphanumeric() && char != '_').next()
}

#[test]
fn types_are_found_by_their_definitions() {
    for (line, name) in [
        ("struct One;", Some("One")),
        ("pub struct Two<T>(T);", Some("Two")),
        ("pub(crate) enum Three {", Some("Three")),
        ("fn struct_of() {", None),
        ("structure = 1;", None),
    ] {
        assert_eq!(type_name(line), name, "{line}");
    }
}
