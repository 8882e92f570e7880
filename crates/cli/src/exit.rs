//! Exit codes: 0 found (or done); 1 not found, or an objective missed; 2 usage or bad input, also a
//! key that the table cannot have; 3 server or network (or a mistake of Privet's own); 4 do not try
//! again. Code 4 means that received data failed a check, that data is damaged, or that a lookup
//! failed for a reason that may depend on what it asked for.

use crate::advice;
use crate::display;
use privet_core::{Blame, Error};

/// How a command ended when nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done. For lookups: everything was found.
    Done,
    /// At least one key is not in the table. This is an answer and no error.
    NotFound,
    /// At least one key is none that the table can have, which was said where it stands.
    Malformed,
    /// A server did not meet the objective that it was measured against. This too is an answer.
    Missed,
}

/// Prints help, the version or a usage error, as clap words it. The code is 0 for what was asked
/// for and 2 for mistakes.
pub(crate) fn from_usage(error: &clap::Error) -> u8 {
    // A closed pipe while printing help can be ignored.
    let _ = error.print();
    if error.use_stderr() { 2 } else { 0 }
}

/// Prints an error with its causes and the way out, and chooses the exit code by who is to blame.
/// `command` is the one that failed.
pub(crate) fn from_outcome(outcome: Result<Outcome, Error>, command: &clap::Command) -> u8 {
    match outcome {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NotFound | Outcome::Missed) => 1,
        Ok(Outcome::Malformed) => 2,
        Err(error) => {
            display::say_lines(&advice::told(&error, command));
            code(error.blame())
        }
    }
}

fn code(blame: Blame) -> u8 {
    match blame {
        Blame::ApiMisuse => 2,
        grave if grave.is_final() => 4,
        _ => 3,
    }
}
