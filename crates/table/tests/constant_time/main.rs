//! No branch and no address of the client depends on a secret, before a query is sent: checked on the
//! compiled program, in its AVX2 arm.
//!
//! This runs under valgrind's memcheck alone, which `scripts/check-constant-time.sh` sees to. What is
//! secret is marked, the client's own code runs, and memcheck counts what it reports:
//! [`privet_kernels::taint`] says how that works, and which values production code lets go of.
//!
//! # What it does not see
//!
//! - Instructions that take longer for some operands than for others: on most processors, division.
//!   None of these functions divides a secret. (Indices are divided by `RecordIndex::divide`.)
//! - What follows from a value that is *admitted* or *declassified*, such as the time that reading
//!   an admitted address takes: less, if it is in a cache.
//! - Code that another arm, compiler or option would make of the same source. The marks themselves
//!   are a few instructions that shipped programs do not have.

mod cases;
mod planted;

use privet_core::SecretRng;
use privet_kernels::taint;
use std::process::ExitCode;

/// What is checked.
pub(crate) struct Case {
    name: &'static str,
    expected: Expected,
    run: fn(),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Nothing is reported.
    Nothing,
    /// Something is: it was planted.
    Report,
}

impl Case {
    pub(crate) const fn clean(name: &'static str, run: fn()) -> Self {
        Self { name, expected: Expected::Nothing, run }
    }

    pub(crate) const fn planted(name: &'static str, run: fn()) -> Self {
        Self { name, expected: Expected::Report, run }
    }

    /// Whether all is as expected.
    fn check(&self) -> bool {
        let before = taint::errors();
        (self.run)();
        let reports = taint::errors() - before;
        let found = if reports == 0 { Expected::Nothing } else { Expected::Report };
        let verdict = match (self.expected, found) {
            (Expected::Nothing, Expected::Nothing) => "ok",
            (Expected::Report, Expected::Report) => "ok: planted, and caught",
            (Expected::Nothing, Expected::Report) => "A SECRET DECIDES A BRANCH OR AN ADDRESS",
            (Expected::Report, Expected::Nothing) => "PLANTED, AND NOT CAUGHT",
        };
        println!("{:<60} {verdict}", self.name);
        self.expected == found
    }
}

fn main() -> ExitCode {
    if !taint::is_watched() {
        eprintln!("Run scripts/check-constant-time.sh: only valgrind sees what this is about.");
        return ExitCode::FAILURE;
    }
    let cases = planted::CASES.iter().chain(cases::CASES);
    let wrong = cases.filter(|case| !case.check()).count();
    println!("{wrong} cases are not as they should be");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same value, marked as secret.
pub(crate) fn secret<T>(mut value: T) -> T {
    taint::mark_secret(&mut value);
    value
}

/// A generator all of whose coins are secret.
pub(crate) fn secret_coins() -> SecretRng {
    SecretRng::from_fixed_seed(secret([7; 32]))
}

/// Lets go of what a server is about to see. It must have followed from secrets: otherwise the marks
/// got lost on the way, and nothing was checked.
pub(crate) fn send(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    assert!(taint::is_marked(&mut bytes), "what is sent does not follow from what was marked");
}
