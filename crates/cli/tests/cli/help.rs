//! Help and version.

use crate::place::Place;
use insta::assert_snapshot;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_command_says_its_version() {
    assert_snapshot!(Place::new().run("--version").printed(), @r#"
    privet [VERSION]
    "#);
}

/// The folder `help` holds the help of each command of the manual, and nothing else.
/// `INSTA_UPDATE=always cargo test -p privet --test cli every_command` writes it anew.
#[test]
fn every_command_explains_itself() {
    let place = Place::new();
    assert_eq!(place.run("man pages").code(), 0);
    let commands = stems(&place.path("pages"), ".1");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("help");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for command in &commands {
            let words = command["privet".len()..].replace('-', " ");
            let help = place.run(&format!("{words} --help"));
            assert_eq!((help.code(), help.stderr()), (0, ""), "{help}");
            assert_snapshot!(command.as_str(), help.stdout());
        }
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/help");
    assert_eq!(stems(&folder, ".snap"), commands, "remove the help of what is no command");
}

/// The names of the folder's files with this ending, without it.
fn stems(folder: &Path, ending: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
}

/// A scheme's options have a heading of their own in the help.
#[test]
fn a_schemes_own_options_are_explained_with_the_scheme() {
    let place = Place::new();
    let lines = |arguments: &str| place.run(arguments).stdout().lines().count();
    assert!(lines("serve -h") <= 45 && lines("bench -h") <= 40);
    for scheme in privet_laboratory::all() {
        let own: Vec<_> = scheme.about().options.iter().map(|option| option.name).collect();
        for arguments in ["serve --help --scheme", "bench --help --scheme"] {
            let help = place.run(&format!("{arguments} {scheme}"));
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(help.stdout()).contains(&words(scheme.about().summary)), "{help}");
            let (_, explained) = help.stdout().split_once("Scheme options:").unwrap_or_default();
            let explained = explained.split_whitespace().filter_map(|word| word.strip_prefix("--"));
            let explained: Vec<&str> = explained.filter(|word| own.contains(word)).collect();
            assert!(own.iter().all(|option| explained.contains(option)), "{help}");
            assert_eq!(own.is_empty(), !help.stdout().contains("Scheme options:"), "{help}");
        }
    }
}

#[test]
fn masks_on_demand_are_explained_with_their_scheme() {
    let help = Place::new().run("serve --scheme simplepir-packed --help");
    let (_, after) = help.stdout().split_once("Scheme options:\n").unwrap();
    let own = after.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    assert_snapshot!(own.collect::<Vec<_>>().join("\n"), @r"
          --masks-on-demand
              Send the mask of its record with each answer, instead of all masks to each client beside
              its first lookup: for clients that keep nothing. A first lookup then moves fewer bytes on
              tables of 64 MiB and more (167 KiB instead of 232 for 1 GiB), and every lookup is more
              work (a seventh for 1 GiB, a third for 128 MiB)
    ");
}
