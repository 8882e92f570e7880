//! Rules of the house that can be read off the workspace: dependencies run one way, and nobody below the network knows it.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate with the Privet crates it may use. An arrow that is not here runs back.
const MAY_USE: &[(&str, &[&str])] = &[
    ("privet-kernels", &[]),
    ("privet-core", &["privet-kernels"]),
    ("privet-schemes", &["privet-kernels", "privet-core"]),
    ("privet-table", &["privet-kernels", "privet-core"]),
    ("privet-layers", &["privet-kernels", "privet-core", "privet-schemes", "privet-table"]),
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
        "privet",
        &[
            "privet-kernels",
            "privet-core",
            "privet-schemes",
            "privet-table",
            "privet-wire",
            "privet-client",
            "privet-server",
            "privet-host",
        ],
    ),
    ("debian-packages", &[]),
];

/// What only client, server, host and command may know: sockets and the runtime below them.
const NETWORK: &[&str] = &["tokio", "tonic", "hyper", "rustls"];
const MAY_KNOW_THE_NETWORK: &[&str] = &["privet-client", "privet-server", "privet-host", "privet"];

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
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--format-version", "1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
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
fn unsafe_code_lives_in_the_kernels_alone() {
    for (name, package) in &packages() {
        let manifest = std::fs::read_to_string(&package.manifest).unwrap();
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert_eq!(
            inherits,
            name != "privet-kernels",
            "{name} must inherit the workspace's lints, which forbid unsafe code"
        );
    }
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    assert!(std::fs::read_to_string(workspace).unwrap().contains("unsafe_code = \"forbid\""));
}

/// The licences of everything that is linked in are among those that `deny.toml` allows. (`cargo deny check` also looks for advisories, which needs the network.)
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
        // Read as a choice of combinations, which is how the expressions of all our dependencies are built: a AND (b OR c) asks for a, and for b or c.
        let fine = licence.split(" AND ").all(|part| part.split(" OR ").any(one));
        assert!(fine, "{} is under {licence:?}, which deny.toml does not allow", package["name"]);
    }
}

/// What a kernel or a scheme does follows from its arguments: nothing in the environment of a process may steer it.
#[test]
fn no_kernel_and_no_scheme_reads_the_environment() {
    let packages = packages();
    for name in ["privet-kernels", "privet-core", "privet-schemes"] {
        let mut directories = vec![packages[name].manifest.with_file_name("src")];
        let mut files = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                // Tests read how many coins to toss, and which process they are.
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
