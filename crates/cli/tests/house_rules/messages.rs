//! What messages say, and to whom.

use super::{packages, sources};
use std::process::Command;

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
