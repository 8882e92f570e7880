//! Mistakes that tests plant in the code that clients run: those of this crate.
//!
//! That code calls one function of this module for each mistake, which changes nothing unless the
//! mistake is planted. Mistakes can be planted in the tests of this crate, and of crates that turn
//! `planted-leaks` on. In all other builds nothing is left of these calls, and a release binary of
//! `privet` with that feature does not build.

use std::cell::Cell;

/// Whether tests can plant mistakes in this build. A binary that is shipped asserts that they
/// cannot.
pub const PLANTED_LEAKS: bool = cfg!(any(test, feature = "planted-leaks"));

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
    /// A generator of secrets never takes a new key.
    KeyStays,
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

/// Plants a mistake. Panics where none can be planted.
pub fn plant(flaw: Flaw) -> Planted {
    if !PLANTED_LEAKS {
        panic!("a test that plants a mistake needs the feature `planted-leaks`");
    }
    PLANTED.set(Some(flaw));
    Planted(())
}

#[inline]
fn is(flaw: Flaw) -> bool {
    PLANTED_LEAKS && PLANTED.get() == Some(flaw)
}

/// [`Flaw::SearchEndsEarly`], after so many marks.
#[inline]
pub(crate) fn ends_search(count: usize) -> bool {
    is(Flaw::SearchEndsEarly) && count > 0
}

/// [`Flaw::FirstSuitableHint`].
#[inline]
pub(crate) fn choice(drawn: u64) -> u64 {
    if is(Flaw::FirstSuitableHint) { 0 } else { drawn }
}

/// [`Flaw::UsedHintStays`].
#[inline]
pub(crate) fn hint_stays() -> bool {
    is(Flaw::UsedHintStays)
}

/// [`Flaw::NoSuccessor`].
#[inline]
pub(crate) fn successor_goes() -> bool {
    is(Flaw::NoSuccessor)
}

/// [`Flaw::KeyStays`].
#[inline]
pub(crate) fn key_stays() -> bool {
    is(Flaw::KeyStays)
}
