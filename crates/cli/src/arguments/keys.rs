//! Keys that begin with a hyphen.
//!
//! Options that take a key take it as it is typed, also `-Abc_9`. Where somebody forgets the key,
//! they would take the next option for it: `--key --json`. So a word that is an option of the
//! command is no key, unless it is tied to its option, as in `--key=--json`.

use clap::Command;
use clap::error::ErrorKind;
use std::ffi::OsString;

/// Refuses an option of the command behind one that takes a key.
pub(super) fn refuse_options(command: &Command, typed: &[OsString]) -> Result<(), clap::Error> {
    let words: Vec<&str> = typed.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let Some(position) = words.iter().skip(1).position(|word| !word.starts_with('-')) else {
        return Ok(());
    };
    let name = words[position + 1];
    let Some(running) = command.find_subcommand(name) else { return Ok(()) };
    let is_option = |word: &str, only_for_keys: bool| {
        let mut arguments = running.get_arguments();
        arguments.any(|argument| {
            let is_it = argument.get_long().is_some_and(|long| {
                word.strip_prefix("--").is_some_and(|word| word.split('=').next() == Some(long))
            }) || argument.get_short().is_some_and(|short| word == format!("-{short}"));
            is_it && (!only_for_keys || argument.is_allow_hyphen_values_set())
        }) || (!only_for_keys && matches!(word, "--help" | "-h"))
    };
    let mistake = words.windows(2).find(|words| {
        !words[0].contains('=') && is_option(words[0], true) && is_option(words[1], false)
    });
    let Some([option, key]) = mistake else { return Ok(()) };
    let words = format!("{option} is followed by an option, {key}; if that is the key, write");
    let tied = match option.starts_with("--") {
        true => format!("{option}={key}"),
        false => format!("{option}{key}"),
    };
    let words = format!("{words} {tied}");
    let mut command = command.clone();
    command.build();
    let running = command.find_subcommand_mut(name);
    Err(running.map_or_else(
        || clap::Error::raw(ErrorKind::InvalidValue, &words),
        |running| running.error(ErrorKind::InvalidValue, &words),
    ))
}
