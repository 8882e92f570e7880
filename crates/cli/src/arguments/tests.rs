use super::*;

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

/// All commands with what one types for them, as they print their help.
fn commands() -> Vec<(String, clap::Command)> {
    fn below(path: &str, command: &clap::Command, all: &mut Vec<(String, clap::Command)>) {
        all.push((path.to_owned(), command.clone().term_width(100)));
        let helpful = command.get_subcommands().filter(|below| below.get_name() != "help");
        helpful.for_each(|next| below(&format!("{path} {}", next.get_name()), next, all));
    }
    let mut root = Arguments::command();
    root.build();
    let mut all = Vec::new();
    below("privet", &root, &mut all);
    all
}

/// The words of a line, as a shell splits it: what stands between single quotes is one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (place, part) in line.split('\'').enumerate() {
        for (next, word) in part.split(if place % 2 == 0 { " " } else { "\0" }).enumerate() {
            if next > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(word);
        }
    }
    words
}

/// Parses lines as the program does. The definition is built once: that takes longest.
fn parser() -> impl FnMut(&str) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    move |line| {
        let mut matches = command.try_get_matches_from_mut(words(line))?;
        Arguments::from_arg_matches_mut(&mut matches)
    }
}

#[test]
fn every_command_has_examples_that_can_be_typed() {
    let mut parse = parser();
    assert_eq!(words("a 'b c=' d"), ["a", "b c=", "d"]);
    for (name, mut command) in commands() {
        let help = command.render_long_help().to_string();
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| {
            panic!("{name} --help has no examples");
        });
        let of_privet = |line: &&str| line.starts_with("privet");
        let lines: Vec<&str> = examples
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .map(|line| line.split(" | ").find(of_privet).unwrap_or(line))
            .map(|line| line.split(" > ").next().unwrap_or(line))
            .collect();
        assert!((2..=8).contains(&lines.len()), "{name}: {lines:?}");
        assert!(lines.iter().any(|line| line.starts_with(&name)), "{name}: {lines:?}");
        for line in lines {
            assert!(line.starts_with("privet "), "{name}: {line}");
            assert!(line.len() <= 96, "{name}: {line}");
            if let Err(error) = parse(line) {
                assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{line}: {error}");
            }
        }
    }
}

/// Commands in documents that a test does not run, such as those that take minutes, can be typed
/// at least.
#[test]
fn commands_in_documents_can_be_typed() {
    let (mut checked, mut parse) = (0, parser());
    for document in files(&["README.md", "docs", "examples"], ".md") {
        let text = std::fs::read_to_string(&document).unwrap();
        let (text, document) = (text.replace("\\\n", " "), document.display());
        let mut in_block = false;
        for line in text.lines() {
            if line.starts_with("```") {
                in_block = !in_block;
            }
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let (true, true) = (in_block, line.starts_with("privet ")) else { continue };
            let line = line.split(" #").next().unwrap_or(line);
            let line = line.split("; ").next().unwrap_or(line);
            let line = line.split(" | ").next().unwrap_or(line);
            let line = line.split(" > ").next().unwrap_or(line).trim();
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if let Err(error) = parse(&line) {
                panic!("{document}: {line}: {error}");
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}

/// The files that end so in these places of the repository, and below.
fn files(places: &[&str], end: &str) -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut left: Vec<_> = places.iter().map(|place| root.join(place)).collect();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found
}

/// Errors, advice, help texts and documents mention commands between backquotes, often with less
/// than it takes to run them. All flags and commands that they name are there.
#[test]
fn commands_that_are_mentioned_exist() {
    let sources = ["cli", "client", "host", "schemes", "server", "table", "wire"];
    let sources = sources.map(|name| format!("crates/{name}/src"));
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut mentioned = Vec::new();
    for file in files(&sources, ".rs") {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| {
            let line = line.trim_start();
            !line.starts_with("//") || line.starts_with("///")
        });
        mentioned.extend(code.map(|line| (file.clone(), line.to_owned())));
    }
    for file in files(&["README.md", "SECURITY.md", "CONTRIBUTING.md", "docs", "examples"], ".md") {
        let text = std::fs::read_to_string(&file).unwrap();
        mentioned.extend(text.lines().map(|line| (file.clone(), line.to_owned())));
    }
    let (mut checked, mut parse) = (0, parser());
    for (file, line) in mentioned {
        for command in line.split('`').skip(1).step_by(2) {
            // Some are names of protocols, and some stand for any command.
            let is_none = command.contains(" v1") || command.contains(['{', '[']);
            if !command.starts_with("privet ") || is_none || command.contains("COMMAND") {
                continue;
            }
            checked += 1;
            if let Err(error) = parse(command) {
                use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
                let is_there = ![InvalidSubcommand, UnknownArgument].contains(&error.kind());
                assert!(is_there, "{}: {command}: {error}", file.display());
            }
        }
    }
    assert!(checked > 100, "{checked}");
    for wrong in ["privet planet", "privet plan --rows 5", "privet state forget"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_short_help_is_short() {
    for (name, mut command) in commands() {
        let lines = |help: clap::builder::StyledStr| help.to_string().lines().count();
        let (short, long) = (lines(command.render_help()), lines(command.render_long_help()));
        let most = if name == "privet serve" { 45 } else { 50 };
        assert!(short <= most, "{name} -h has {short} lines");
        assert!(short < long, "{name}: -h has {short} lines, --help {long}");
    }
}

#[test]
fn a_port_alone_is_of_this_machine() {
    for (typed, address) in [
        ("7720", "127.0.0.1:7720"),
        ("localhost:7720", "127.0.0.1:7720"),
        ("0", "127.0.0.1:0"),
        ("0.0.0.0:7720", "0.0.0.0:7720"),
        ("[::1]:7720", "[::1]:7720"),
    ] {
        assert_eq!(parse_address(typed).unwrap().to_string(), address);
    }
    for wrong in ["", "localhost", "+7720", "65536", ":7720", "example.org:7720", "7720 "] {
        assert!(parse_address(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn numbers_may_be_powers_or_have_suffixes_and_overflow_is_refused() {
    assert_eq!(parse_number("2^25"), Ok(1 << 25));
    assert_eq!(parse_number("1_000"), Ok(1000));
    assert_eq!(parse_number("5M"), Ok(5_000_000));
    assert_eq!(parse_bytes("1.5 KiB"), Ok(1536));
    assert_eq!(parse_bytes_or_none("0 B"), Ok(0));
    for wrong in ["0", "", "2^64", "-1", "x", "2^", "^3", "1.5"] {
        assert!(parse_number(wrong).is_err(), "{wrong}");
        assert!(parse_bytes(wrong).is_err(), "{wrong}");
    }
    assert!(parse_number("5 B").is_err());
}
