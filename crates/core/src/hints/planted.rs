//! Mistakes that tests plant in the code that clients run.
//!
//! A statistical test is worth as much as it catches. So the leaks are not invented in the test.
//! They are planted here, in the code that makes queries, and the test must notice them in what a
//! server sees.
//!
//! Compiled for this crate's tests, and for those of crates that turn `planted-leaks` on. A release
//! binary of `privet` with that feature does not build: see
//! [`PLANTED_LEAKS`](super::PLANTED_LEAKS).

use std::cell::Cell;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A search ends with the first word that has a mark.
    SearchEndsEarly,
    /// The choice among the hints that contain the record is always the first, not a random one.
    FirstSuitableHint,
    /// A used hint stays in use, and its successor does not come into use.
    UsedHintStays,
    /// A used hint goes out of use, and its successor does not come into use.
    NoSuccessor,
}

thread_local! {
    static PLANTED: Cell<Option<Flaw>> = const { Cell::new(None) };
}

/// While this exists, a mistake is planted in this thread.
#[must_use]
#[derive(Debug)]
pub struct Planted(());

impl Drop for Planted {
    fn drop(&mut self) {
        PLANTED.set(None);
    }
}

/// Plants a mistake.
pub fn plant(flaw: Flaw) -> Planted {
    PLANTED.set(Some(flaw));
    Planted(())
}

/// Whether a mistake is planted.
pub fn is(flaw: Flaw) -> bool {
    PLANTED.get() == Some(flaw)
}
