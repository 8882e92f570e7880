//! Rules that can be checked in the sources. For example, dependencies run in one direction, and
//! only crates at the top know the network.

#![allow(clippy::unwrap_used)]

mod messages;
mod size;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate with the Privet crates that it may use. Any other dependency is refused.
const MAY_USE: &[(&str, &[&str])] = &[
    ("privet-kernels", &[]),
    ("privet-core", &["privet-kernels"]),
    ("privet-schemes", &["privet-kernels", "privet-core"]),
    ("privet-table", &["privet-kernels", "privet-core"]),
    ("privet-laboratory-kernels", &["privet-kernels"]),
    (
        "privet-laboratory",
        &["privet-kernels", "privet-core", "privet-schemes", "privet-laboratory-kernels"],
    ),
    ("privet-wire", &["privet-kernels", "privet-core", "privet-schemes"]),
    (
        "privet-client",
        &["privet-kernels", "privet-core", "privet-schemes", "privet-table", "privet-wire"],
    ),
    (
        "privet-server",
        &["privet-kernels", "privet-core", "privet-schemes", "privet-table", "privet-wire"],
    ),
    (
        "privet-host",
        &["privet-kernels", "privet-core", "privet-schemes", "privet-table", "privet-server"],
    ),
    (
        "privet-measure",
        &[
            "privet-kernels",
            "privet-core",
            "privet-schemes",
            "privet-table",
            "privet-wire",
            "privet-client",
        ],
    ),
    (
        "privet",
        &[
            "privet-measure",
            "privet-kernels",
            "privet-core",
            "privet-schemes",
            "privet-table",
            "privet-wire",
            "privet-client",
            "privet-server",
            "privet-host",
            "privet-laboratory",
        ],
    ),
    (
        "privet-python",
        &[
            "privet-measure",
            "privet-core",
            "privet-schemes",
            "privet-table",
            "privet-client",
            "privet-server",
            "privet-host",
            "privet",
            "privet-laboratory",
        ],
    ),
    (
        "privet-web",
        &[
            "privet-kernels",
            "privet-core",
            "privet-schemes",
            "privet-table",
            "privet-wire",
            "privet-client",
        ],
    ),
    // It watches clients from outside, of whatever program they are.
    ("privet-testing", &[]),
    ("debian-packages", &[]),
    ("key-transparency", &["privet-core", "privet-schemes", "privet-wire", "privet-client"]),
];

const ROOMS_OF_THE_LABORATORY: &[&str] =
    &["finite_differences", "FiniteDifferences", "FINITE_DIFFERENCES", "ointproofs", "bls12_381"];

/// Outside tests, two places name the schemes for study: their crates, which of the crates above
/// only the command may use, and the command's module of that name.
#[test]
fn only_the_laboratory_names_its_rooms() {
    let (mut outside, mut within) = (Vec::new(), 0);
    for package in packages().values() {
        // The workspace itself may lie in a folder of any name.
        let above = package.manifest.ancestors().nth(2).unwrap();
        for path in sources(&package.manifest.with_file_name("src")) {
            let source = std::fs::read_to_string(&path).unwrap();
            if !ROOMS_OF_THE_LABORATORY.iter().any(|name| source.contains(name)) {
                continue;
            }
            match path.strip_prefix(above).unwrap().iter().any(is_laboratory) {
                true => within += 1,
                false => outside.push(path),
            }
        }
    }
    assert!(outside.is_empty(), "{outside:#?}");
    assert!(within > 10, "{within} files are not all there are");
}

fn is_laboratory(part: &std::ffi::OsStr) -> bool {
    part.to_str().is_some_and(|part| part.starts_with("laboratory"))
}

/// What only client, server, host, command and an example with a server of its own may use:
/// sockets, and the runtime below them.
const NETWORK: &[&str] = &["tokio", "tonic", "hyper", "rustls"];
const MAY_KNOW_THE_NETWORK: &[&str] = &[
    "privet-client",
    "privet-server",
    "privet-host",
    "privet-measure",
    "privet",
    "privet-python",
    "key-transparency",
];

/// Calls that use the system's files or its clock, or that wait.
const SYSTEM: &[&str] = &[
    "std::fs",
    "OpenOptions",
    "File::open",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".metadata()",
    "read_dir",
    "Instant::now",
    "SystemTime::now",
    "UNIX_EPOCH",
    "thread::sleep",
    "tokio::time",
    "tokio::fs",
];

/// The files of the client that may use these calls, and which ones. All other files are given a
/// folder or a clock, so that a test can give them another.
const TOUCHES_THE_SYSTEM: &[(&str, &[&str])] = &[
    // The clock that all other files are given starts here.
    ("client.rs", &["Instant::now", "thread::sleep"]),
    // The disk and its clock.
    (
        "disk/system.rs",
        &[
            "std::fs",
            "OpenOptions",
            "File::open",
            ".is_dir()",
            ".is_file()",
            ".metadata()",
            "read_dir",
            "Instant::now",
            "SystemTime::now",
            "UNIX_EPOCH",
            "thread::sleep",
        ],
    ),
    // Wakes the conductor at the time that the conductor names.
    ("driver.rs", &["Instant::now", "tokio::time"]),
    ("driver/precise.rs", &["Instant::now", "thread::sleep"]),
    // How long queries that were made ahead have lain there.
    ("driver/shelf.rs", &["Instant::now", "SystemTime::now", "UNIX_EPOCH"]),
    // Certificates that the user names.
    ("transport/certificates.rs", &["std::fs"]),
];

struct Package {
    dependencies: BTreeSet<String>,
    manifest: std::path::PathBuf,
}

fn packages() -> BTreeMap<String, Package> {
    let metadata = metadata(&["--no-deps"]);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let package = |value: &serde_json::Value| {
        let shipped = |dependency: &&serde_json::Value| dependency["kind"].is_null();
        let dependencies = value["dependencies"].as_array().unwrap().iter().filter(shipped);
        let dependencies = dependencies.map(|dependency| text(&dependency["name"])).collect();
        (
            text(&value["name"]),
            Package { dependencies, manifest: text(&value["manifest_path"]).into() },
        )
    };
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn metadata(arguments: &[&str]) -> serde_json::Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version", "1", "--manifest-path", manifest])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn dependencies_run_one_way() {
    let packages = packages();
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let known: Vec<&String> = packages.keys().collect();
    assert_eq!(
        packages.len(),
        allowed.len(),
        "say in MAY_USE what a new crate may use; found {known:?}"
    );
    for (name, package) in &packages {
        let own =
            package.dependencies.iter().filter(|dependency| packages.contains_key(*dependency));
        for dependency in own {
            assert!(
                allowed[name.as_str()].contains(&dependency.as_str()),
                "{name} must not use {dependency}"
            );
        }
    }
}

#[test]
fn nobody_below_client_and_server_knows_the_network() {
    for (name, package) in &packages() {
        if MAY_KNOW_THE_NETWORK.contains(&name.as_str()) {
            continue;
        }
        let known: Vec<_> =
            package.dependencies.iter().filter(|name| NETWORK.contains(&name.as_str())).collect();
        // The wire crate may carry tonic's generated stubs, without its transport.
        assert!(
            known.is_empty() || (name == "privet-wire" && known == ["tonic"]),
            "{name} knows {known:?}"
        );
    }
}

#[test]
fn unsafe_code_lives_in_crates_of_kernels_alone() {
    for (name, package) in &packages() {
        let manifest = std::fs::read_to_string(&package.manifest).unwrap();
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert_eq!(
            inherits,
            !["privet-kernels", "privet-laboratory-kernels"].contains(&name.as_str()),
            "{name} must inherit the workspace's lints, which forbid unsafe code"
        );
    }
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    assert!(std::fs::read_to_string(workspace).unwrap().contains("unsafe_code = \"forbid\""));
}

/// What plants mistakes, fixes coins or marks secrets.
const FEATURES_OF_TESTS: &[&str] = &["known-answers", "planted-leaks", "taint", "testing"];

/// A build without tests has none of these features, whichever of the crates it builds. (A release
/// of the command that can plant mistakes does not compile, either.)
#[test]
fn what_is_shipped_has_no_feature_of_tests() {
    let found = |edges: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--workspace", "--prefix", "none", "--edges", edges])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.contains("privet-client feature \"net\""), "{tree}");
        let of_tests =
            |name: &&&str| tree.lines().any(|line| line.contains(&format!("feature \"{name}\"")));
        FEATURES_OF_TESTS.iter().filter(of_tests).copied().collect::<Vec<_>>()
    };
    assert_eq!(found("normal,build,features"), [""; 0]);
    assert_eq!(found("all,features"), ["known-answers", "planted-leaks", "testing"]);
}

#[test]
fn the_client_knows_one_disk_and_one_clock() {
    let root = packages()["privet-client"].manifest.with_file_name("src");
    let mut found = BTreeMap::new();
    for path in sources(&root) {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let used = touched(&std::fs::read_to_string(&path).unwrap());
        if !used.is_empty() {
            found.insert(name, used);
        }
    }
    // The sets must be equal, so that nothing stays allowed without need.
    let allowed = TOUCHES_THE_SYSTEM.iter().map(|(name, used)| ((*name).to_owned(), used.to_vec()));
    assert_eq!(found, allowed.collect());
    let code = "fn now() {\n    // std::fs\n    SystemTime::now()\n}\n#[cfg(test)]\nmod tests {\n";
    assert_eq!(touched(&[code, "    std::fs::read(\"\");\n}\n"].concat()), ["SystemTime::now"]);
}

/// What a file uses of [`SYSTEM`], outside comments and the tests at its end.
fn touched(source: &str) -> Vec<&'static str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines: Vec<_> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let is_used = |word: &&str| lines.iter().any(|line| line.contains(*word));
    SYSTEM.iter().copied().filter(is_used).collect()
}

/// The source files below `directory`, except files of tests.
fn sources(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("tests" | "tests.rs" | "simulated.rs") => {}
            _ if path.is_dir() => found.extend(sources(&path)),
            _ => found.push(path),
        }
    }
    found
}

/// Every crate that is linked in has a licence that `deny.toml` allows. (`cargo deny check` also
/// looks for advisories, which needs the network.)
#[test]
fn licences_are_allowed() {
    let deny =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deny.toml")).unwrap();
    let list = deny.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
    let allowed: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
    let one = |licence: &str| allowed.contains(licence.trim_matches(['(', ')', ' ']));
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none").replace('/', " OR ");
        // All dependencies have expressions of this form: a AND (b OR c) needs a, and one of b and
        // c.
        let fine = licence.split(" AND ").all(|part| part.split(" OR ").any(one));
        assert!(fine, "{} is under {licence:?}, which deny.toml does not allow", package["name"]);
    }
}

/// What only tests set, where a field or a statement says so: a disk that does not tell when files
/// were born, a panic in a task, a printer that waits for its reader, and a scheme that only tests
/// of its crate know. There may be fewer.
const ONLY_IN_TESTS: &[(&str, usize)] = &[
    ("disk/system.rs", 6),
    ("src/followed.rs", 4),
    ("commands/get.rs", 1),
    ("get/printer.rs", 3),
    ("registry/schemes.rs", 1),
];

/// Functions and imports that only tests use, outside their modules: mostly looks at private state.
/// There may be fewer.
const ITEMS_FOR_TESTS: usize = 39;

/// Code for tests stands in their modules. Where a test plants a mistake in the code that runs,
/// that code calls a function of `planted.rs`, which does nothing outside tests.
#[test]
fn code_for_tests_stands_apart() {
    let (mut items, mut others) = (0, Vec::new());
    for package in packages().values() {
        for path in sources(&package.manifest.with_file_name("src")) {
            let source = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<_> = source.lines().map(str::trim).collect();
            let is_marked = |line: &str| line == "#[cfg(test)]" || line.contains("cfg(not(test");
            for place in (0..lines.len()).filter(|place| is_marked(lines[*place])) {
                let code = lines[place + 1..].iter().find(|line| !line.starts_with(['#', '/']));
                let words = code.unwrap().split(' ').filter(|word| !word.starts_with("pub"));
                match words.clone().next().unwrap() {
                    "mod" => {}
                    _ if path.ends_with("planted.rs") => {}
                    "fn" | "use" => items += 1,
                    word if word.starts_with("impl") => items += 1,
                    _ => others.push(path.clone()),
                }
            }
        }
    }
    for (end, count) in ONLY_IN_TESTS {
        let (named, rest) = others.into_iter().partition::<Vec<_>, _>(|path| path.ends_with(end));
        assert!(named.len() <= *count, "{end}: {}", named.len());
        others = rest;
    }
    assert!(others.is_empty(), "{others:#?}");
    assert!(items <= ITEMS_FOR_TESTS, "{items} functions and imports are for tests alone");
}

/// Kernels and schemes depend only on their arguments. No environment variable may change what they
/// do.
#[test]
fn no_kernel_and_no_scheme_reads_the_environment() {
    let packages = packages();
    for name in [
        "privet-kernels",
        "privet-laboratory-kernels",
        "privet-core",
        "privet-schemes",
        "privet-laboratory",
    ] {
        let mut files = sources(&packages[name].manifest.with_file_name("src"));
        // Tests read the number of coin tosses from the environment.
        files.retain(|path| !path.ends_with("test_statistics.rs"));
        for path in &files {
            let source = std::fs::read_to_string(path).unwrap();
            assert!(!source.contains("env::var"), "{} reads the environment", path.display());
        }
        assert!(!files.is_empty(), "{name} has no sources");
    }
}

/// Longer comments cannot be read side by side. Lines that cannot be broken may be longer: rows of
/// tables, and text between fences.
#[test]
fn comments_end_within_100_columns() {
    let files = size::all_files(&size::root());
    let mut too_long = Vec::new();
    for file in files {
        let is_generated = file.ends_with("wire/src/proto/privet.v1.rs");
        if is_generated || file.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        let named = |line: &str| format!("{}: {line}", file.display());
        too_long.extend(long_comments(&source).into_iter().map(named));
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
}

/// The comments of more than 100 columns that could be broken.
fn long_comments(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in source.lines() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            fenced = false;
            continue;
        };
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        fenced ^= text.starts_with("```");
        if line.chars().count() > 100 && !fenced && !text.starts_with('|') {
            found.push(line);
        }
    }
    found
}

#[test]
fn long_comments_are_told_from_tables() {
    let words = "word ".repeat(20);
    let long = [format!("//! {words}"), format!("    /// {words}"), format!("// {words}")];
    let others = format!("//! | {words} |\n/// ```text\n/// {words}\n/// ```\nlet a = {words};\n");
    assert_eq!(long_comments(&(others + &long.join("\n"))), long);
}
