//! Arguments that can be repeated as they were typed.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsStr;
use std::ops::Deref;

/// Arguments, and the words that said them.
pub(crate) struct AsTyped<T> {
    arguments: T,
    words: Vec<String>,
}

impl<T> AsTyped<T> {
    /// What was said of these arguments, in the order in which the help lists them.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

impl<T> Deref for AsTyped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.arguments
    }
}

impl<T: Args> Args for AsTyped<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Args> FromArgMatches for AsTyped<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let known = T::augment_args(Command::new("privet"));
        let words = known.get_arguments().flat_map(|argument| words_of(argument, matches));
        Ok(Self { arguments: T::from_arg_matches(matches)?, words: words.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The words that said `argument`: none if nobody did, or only what holds without them.
fn words_of(argument: &Arg, matches: &ArgMatches) -> Vec<String> {
    let id = argument.get_id().as_str();
    let option = format!("--{}", argument.get_long().unwrap_or(id));
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return Vec::new();
    }
    if !argument.get_action().takes_values() {
        return vec![option];
    }
    let values: Vec<_> = matches.get_raw(id).into_iter().flatten().collect();
    if values == argument.get_default_values() {
        return Vec::new();
    }
    let values: Vec<_> = values.into_iter().map(OsStr::to_string_lossy).collect();
    match values.join(",") {
        value if value.starts_with('-') => vec![format!("{option}={value}")],
        value => vec![option, value],
    }
}
