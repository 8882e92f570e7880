//! Real formats, as docs/formats.md has them: each command of the page runs as it stands, on a
//! short file of its kind, and prints what the page shows.

use crate::place::Place;
use crate::served::Served;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SERVER: &str = "http://127.0.0.1:7700";

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What stands behind a `$` on the page, each with the lines that are shown below it.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for block in page.split("```").skip(1).step_by(2) {
        let typed = block.split("\n$ ").skip(1);
        commands.extend(typed.map(|typed| {
            let (command, shown) = typed.split_once('\n').unwrap_or((typed, ""));
            (command.to_owned(), shown.trim_end().to_owned())
        }));
    }
    commands
}

/// Has a shell run a command, and returns its standard output.
fn run(place: &Place, typed: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_privet")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let own = place.command("");
    let mut command = Command::new("sh");
    command.args(["-c", typed]).current_dir(own.get_current_dir().unwrap());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("PATH", format!("{}:{path}", program.display()));
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{typed}\n{errors}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn files_as_they_come_are_read_as_the_page_says() {
    let place = Place::new();
    let mut unused = BTreeSet::new();
    for entry in fs::read_dir(here("tests/formats")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        place.write(&name, fs::read(&path).unwrap());
        unused.insert(name);
    }
    let page = fs::read_to_string(here("../../docs/formats.md")).unwrap();
    let commands = commands(&page);
    let builds = |command: &&(String, String)| command.0.starts_with("privet build ");
    for (command, shown) in commands.iter().filter(builds) {
        run(&place, command);
        assert_eq!(shown, "", "{command}");
        unused.remove(command.split(' ').nth(2).unwrap());
    }
    assert!(unused.is_empty(), "the page reads no {unused:?}");

    let tables: Vec<String> =
        place.files().into_iter().filter(|name| name.ends_with(".privet")).collect();
    assert!(tables.len() >= 15, "{tables:?}");
    let served =
        Served::start(&place, &format!("--no-cache --scheme download {}", tables.join(" ")));
    let mut looked_up = BTreeSet::new();
    for (command, shown) in commands.iter().filter(|command| !builds(command)) {
        assert_eq!(&run(&place, &command.replace(SERVER, &served.url)), shown, "{command}");
        looked_up.extend(command.split(' ').skip_while(|word| *word != "--table").nth(1));
    }
    let built: BTreeSet<&str> =
        tables.iter().map(|name| name.strip_suffix(".privet").unwrap()).collect();
    assert_eq!(looked_up, built);
}
