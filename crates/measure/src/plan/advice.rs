//! What to type, and what to do otherwise. It is the one place in the libraries that names commands
//! and their options: whoever plans wants them.

use super::candidate::Candidate;
use super::subject::Subject;
use std::borrow::Cow;
use std::path::Path;

/// For one operator whose answers may be wrong.
pub(super) const AUTHENTICATE: &str = "Build the table with --authenticate: then every scheme notices a wrong answer of the one server, and the choice is free.";

/// Why a scheme of `needed` servers is not for so many operators.
pub(super) fn too_few_operators(needed: u32, operators: u32) -> String {
    match operators {
        1 => format!(
            "{needed} servers are needed whose operators do not talk to each other; if there are, say so: --servers {needed}"
        ),
        _ => format!("{needed} servers are needed, and there are {operators} operators"),
    }
}

/// The lines that serve the table by the scheme and look something up.
pub(super) fn commands(best: &Candidate, subject: &Subject) -> Vec<String> {
    let Some(file) = &subject.file else {
        let shape = subject.identity.shape;
        return vec![format!(
            "privet bench --scheme {} --records {} --record-len {}",
            best.scheme,
            shape.records(),
            shape.record_len()
        )];
    };
    let serve = format!(
        "privet serve {} --scheme {} --listen 0.0.0.0:7700 --tls-cert CERT.pem --tls-key KEY.pem",
        shell_word(&file.to_string_lossy()),
        best.scheme
    );
    let addresses: Vec<String> = match best.servers {
        1 => vec!["https://server:7700".to_owned()],
        servers => (1..=servers).map(|number| format!("https://server{number}:7700")).collect(),
    };
    let wanted = if subject.is_by_key { "--key KEY" } else { "--index 0" };
    let get = format!("privet get {} {wanted}", addresses.join(" "));
    subject.build.iter().cloned().chain([serve, get]).collect()
}

/// The line that builds `table` of the file `input`, of which somebody said what is in `words`.
pub(super) fn build_command(input: &Path, words: &[String], table: &Path) -> String {
    let (input, table) = (input.to_string_lossy(), table.to_string_lossy());
    let before = ["privet", "build", &input].into_iter();
    let words = before.chain(words.iter().map(String::as_str)).chain(["-o", &table]);
    words.map(shell_word).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |of: char| of.is_alphanumeric() || "-_./=:@%+".contains(of);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}
