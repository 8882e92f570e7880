//! Rules that can be checked in the sources. For example, dependencies run in one direction, and
//! only crates at the top know the network.

#![allow(clippy::unwrap_used)]

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
            "privet-laboratory-kernels",
        ],
    ),
    (
        "privet-python",
        &[
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
    ("driver/shelf.rs", &["Instant::now", "SystemTime::now"]),
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
        let mut directories = vec![packages[name].manifest.with_file_name("src")];
        let mut files = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                // Tests read the number of coin tosses from the environment, and which process they
                // are.
                if path.ends_with("tests") || path.ends_with("test_statistics.rs") {
                    continue;
                }
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let source = std::fs::read_to_string(&path).unwrap();
                    assert!(
                        !source.contains("env::var"),
                        "{} reads the environment",
                        path.display()
                    );
                    files += 1;
                }
            }
        }
        assert!(files > 0, "{name} has no sources");
    }
}

/// The crates that have other users besides the command: in Rust, in other languages, in a browser.
const LIBRARIES: &[&str] = &[
    "privet-kernels",
    "privet-core",
    "privet-schemes",
    "privet-laboratory-kernels",
    "privet-laboratory",
    "privet-table",
    "privet-wire",
    "privet-client",
    "privet-server",
    "privet-host",
    "privet-measure",
];

/// Whoever asks which scheme suits wants to know what to type.
const ADVISES: &str = "measure/src/plan/advice.rs";

/// Literals that look like a command but are not one.
const NO_COMMANDS: &[&str] = &[
    // Contexts of hashes.
    "privet update log epoch v1",
    "privet bench table digest",
    "privet bench table",
    "privet bench queries",
];

/// A library's messages must fit all its users. Advice on flags and commands comes from the command
/// itself (`advice.rs`).
#[test]
fn no_library_speaks_of_the_commands_flags() {
    let packages = packages();
    let commands = commands();
    let mut found = Vec::new();
    let mut literals = 0;
    for name in LIBRARIES {
        for path in sources(&packages[*name].manifest.with_file_name("src")) {
            if path.ends_with(ADVISES) {
                continue;
            }
            for literal in literals_of(&std::fs::read_to_string(&path).unwrap()) {
                literals += 1;
                let command = names_a_command(&literal, &commands);
                let command = command && !NO_COMMANDS.contains(&literal.as_str());
                if command || names_a_flag(&literal) {
                    found.push(format!("{}: {literal}", path.display()));
                }
            }
        }
    }
    assert!(literals > 1000, "{literals} literals are not all there are");
    assert!(found.is_empty(), "{found:#?}");
}

/// The crates whose errors can come out of a lookup.
const LOOKS_UP: &[&str] =
    &["privet-core", "privet-schemes", "privet-laboratory", "privet-table", "privet-client"];

/// Files of these crates whose errors cannot, because only a server, or the owner of a table, uses
/// them.
const OF_SERVERS_AND_OWNERS: &[&str] = &[
    "pointproofs/prover.rs",
    "pointproofs/reference_string.rs",
    "snapshot",
    "stored_setup",
    "update_log",
];

/// What a message says that sends its reader back to a server.
const SENDS_BACK: &[&str] = &[
    " again",
    "accept",
    "erase",
    "retry",
    "reset",
    "start ",
    "delete",
    "fetch ",
    "prepare ",
    "reconnect",
    "take another",
];

/// What makes that harmless: no record is at stake, or it is what not to do.
const HARMLESS: &[&str] = &[
    "othing was asked",
    "othing more is asked",
    "never be used again",
    "before anything else is asked",
    "do not ask these two again",
];

/// An error may depend on what was looked up if it blames nobody who was away or busy. Its message
/// must not have its reader do what a server sees. The session says at its end what not to do
/// (`last_words`).
#[test]
fn no_message_that_may_depend_on_the_record_sends_its_reader_back() {
    let packages = packages();
    let (mut found, mut messages) = (Vec::new(), 0);
    for name in LOOKS_UP {
        let root = packages[*name].manifest.with_file_name("src");
        for path in sources(&root) {
            let at = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            if OF_SERVERS_AND_OWNERS.iter().any(|file| at.contains(file)) {
                continue;
            }
            for message in grave_messages(&std::fs::read_to_string(&path).unwrap()) {
                messages += 1;
                if sends_back(&message) {
                    found.push(format!("{name}/{at}: {message}"));
                }
            }
        }
    }
    assert!(messages > 100, "{messages} messages are not all there are");
    assert!(found.is_empty(), "{found:#?}");
    let planted = grave_messages(
        r#"fn one() { Error::integrity(format!("bad ({how}); fetch it (the map) again")) }
           fn two() { Error::unavailable("try again") }"#,
    );
    assert_eq!(planted, ["bad ({how}); fetch it (the map) again"]);
    assert!(sends_back(&planted[0]) && !sends_back("Nothing was asked. Accept it, or start anew"));
}

fn sends_back(message: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    has(SENDS_BACK) && !has(HARMLESS)
}

/// The literals in calls that make an error of such a blame.
fn grave_messages(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let calls = ["Error::integrity(", "Error::selective(", "Error::corrupted("];
    let after = calls.iter().flat_map(|call| code.split(call).skip(1));
    after.flat_map(|after| literals_of(argument(after))).collect()
}

/// The text before the parenthesis that closes a call.
fn argument(after: &str) -> &str {
    let (mut depth, mut is_text, mut escaped) = (1, false, false);
    let end = after.find(|next| {
        match next {
            _ if escaped => {}
            '"' => is_text = !is_text,
            '(' if !is_text => depth += 1,
            ')' if !is_text => depth -= 1,
            _ => {}
        }
        escaped = next == '\\' && !escaped;
        depth == 0
    });
    &after[..end.unwrap_or(after.len())]
}

/// The commands of `privet`, as its help lists them.
fn commands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_privet")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let begins_one = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let lines = list.lines().filter(begins_one);
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

fn names_a_flag(text: &str) -> bool {
    text.split("--").skip(1).any(|after| {
        let name = after.split(|next: char| !next.is_ascii_lowercase() && next != '-');
        name.into_iter().next().is_some_and(|name| name.len() > 1)
    })
}

fn names_a_command(text: &str, commands: &[String]) -> bool {
    text.split("privet ").skip(1).any(|after| {
        let word = after.split(|next: char| !next.is_ascii_lowercase()).next();
        word.is_some_and(|word| commands.iter().any(|command| command == word))
    })
}

/// The string literals of a source, outside comments and the tests at its end.
fn literals_of(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let token = &rest[at..];
        let len = match token.as_bytes() {
            [b'/', b'/', ..] => token.find('\n').unwrap_or(token.len()),
            // A character literal, as opposed to a lifetime.
            [b'\'', b'\\', _, ..] => 3,
            [b'\'', b'"', b'\'', ..] => 3,
            [b'"', ..] => {
                let mut escaped = false;
                let end = token[1..].find(|next| {
                    let ends = next == '"' && !escaped;
                    escaped = next == '\\' && !escaped;
                    ends
                });
                let end = end.map_or(token.len(), |end| end + 2);
                found.push(token[1..end - 1].to_owned());
                end
            }
            _ => 1,
        };
        rest = &token[len..];
    }
    found
}

#[test]
fn literals_are_told_from_comments_and_characters() {
    let source = "// \"no\"\nlet a = \"one \\\" `x`\"; let b = '\"'; let c = '\\''; // \"no\"\n\
                  fn d<'e>() { f(\"two\\\\\"); } /// \"no\"\n\
                  #[cfg(test)]\nmod tests {\n    \"no\"\n}\n";
    assert_eq!(literals_of(source), ["one \\\" `x`", "two\\\\"]);
    for flag in ["allow it (--max-download)", "--ca-file", "say --tls-cert,"] {
        assert!(names_a_flag(flag), "{flag}");
    }
    for none in ["a -- b", "x--", "--", "-l", "- - max"] {
        assert!(!names_a_flag(none), "{none}");
    }
    let commands = commands();
    assert!(commands.contains(&"state".to_owned()) && commands.len() > 10, "{commands:?}");
    assert!(names_a_command("(privet state reset)", &commands));
    assert!(names_a_command("use `privet build`", &commands));
    assert!(!names_a_command("privet update log v1", &["state".to_owned()]));
    assert!(!names_a_command("privet statement", &commands));
}

/// Longer comments cannot be read side by side. Lines that cannot be broken may be longer: rows of
/// tables, and text between fences.
#[test]
fn comments_end_within_100_columns() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["crates", "examples", "bindings/python/src"].map(|room| below(&root.join(room)));
    let files = files.concat();
    assert!(files.len() > 100, "{files:?}");
    let mut too_long = Vec::new();
    for file in files {
        // Generated code.
        if file.ends_with("wire/src/proto/privet.v1.rs") {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        let named = |line: &str| format!("{}: {line}", file.display());
        too_long.extend(long_comments(&source).into_iter().map(named));
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
}

/// All Rust sources below `directory`.
fn below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let sources = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    directories.iter().flat_map(|path| below(path)).chain(sources).collect()
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
