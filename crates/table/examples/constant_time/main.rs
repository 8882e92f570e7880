//! No branch and no address of the client depends on a secret before a query is sent. This is
//! checked on the compiled program, in its AVX2 arm.
//!
//! The program is meant to run under valgrind's memcheck, through `scripts/check-constant-time.sh`.
//! It marks secrets and runs the client's own code, and memcheck counts what it reports:
//! [`privet_kernels::taint`] says how that works, and where production code removes marks.
//!
//! Each case runs twice: with indices, coins and keys of hints marked, and with only indices
//! marked. Both times, what is sent must bear a mark. So a lost mark of an index is noticed, also
//! where coins mark everything anyway.
//!
//! # What it does not see
//!
//! - Instructions that take longer for some operands than for others: on most processors, division.
//!   None of these functions divides a secret. (Indices are divided by `RecordIndex::divide`.)
//! - Effects of a value that is *admitted* or *declassified*, such as the time of reading an
//!   admitted address: it is shorter if the address is in a cache.
//! - Code that another arm, compiler or option would make of the same source. The marks themselves
//!   are a few instructions that shipped programs do not have.

mod cases;
mod planted;

use privet_core::SecretRng;
use privet_kernels::taint;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// One check.
pub(crate) struct Case {
    name: &'static str,
    expected: Expected,
    run: fn(),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Nothing is reported.
    Nothing,
    /// A report: the mistake was planted.
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
        let count = || taint::errors() + UNMARKED.load(Relaxed);
        let before = count();
        for coins_are_marked in [true, false] {
            COINS_ARE_MARKED.store(coins_are_marked, Relaxed);
            (self.run)();
        }
        let found = if count() == before { Expected::Nothing } else { Expected::Report };
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

/// Whether coins, and keys of hints, are marked in this run of a case.
static COINS_ARE_MARKED: AtomicBool = AtomicBool::new(true);
/// How many messages were sent without a mark.
static UNMARKED: AtomicUsize = AtomicUsize::new(0);

/// A generator whose coins are secret, in the run in which they are marked.
pub(crate) fn secret_coins() -> SecretRng {
    let mut seed = [7; 32];
    mark_key(&mut seed);
    SecretRng::from_fixed_seed(seed)
}

/// Marks bytes that are as secret as coins.
pub(crate) fn mark_key(bytes: &mut [u8]) {
    if COINS_ARE_MARKED.load(Relaxed) {
        taint::mark_secret(bytes);
    }
}

/// Removes the mark of what a server is about to see. The bytes must depend on secrets: otherwise
/// the marks got lost on the way, and nothing was checked. That counts as a report.
pub(crate) fn send(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if !taint::is_marked(&mut bytes) {
        UNMARKED.fetch_add(1, Relaxed);
    }
}
