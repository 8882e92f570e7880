//! The errors of failed lookups, reported at the end.

use crate::display::some;
use privet_core::{Error, Result};

/// The errors of failed lookups. A failure does not end the other lookups, since the server must
/// not learn whether the client accepted its answer.
#[derive(Default)]
pub(super) struct Failures {
    /// The first error, unless only a later one says not to try again.
    told: Option<Error>,
    is_first: bool,
    count: usize,
    /// Lookups that did not begin because a server was given up.
    pub(super) not_begun: usize,
}

impl Failures {
    pub(super) fn note(&mut self, error: Error) {
        self.count += 1;
        (self.told, self.is_first) = match self.told.take() {
            None => (Some(error), true),
            Some(told) => {
                let was = told.blame();
                let told = told.by_gravity(error).0;
                let is_first = self.is_first && told.blame() == was;
                (Some(told), is_first)
            }
        };
    }

    /// # Errors
    /// If a lookup failed, or did not begin.
    pub(super) fn into_result(self) -> Result<()> {
        let which = if self.is_first { "the first" } else { "one of them" };
        match (self.told, self.count, self.not_begun) {
            (None, _, 0) => Ok(()),
            (None, _, left) => Err(Error::unavailable(format!(
                "a server was given up, and {} not begun",
                were(left)
            ))),
            (Some(error), 1, 0) => Err(error),
            (Some(error), count, 0) => {
                Err(error.within(format!("{count} lookups failed; {which}")))
            }
            (Some(error), count, left) => {
                let failed = some(count as u64, "lookup failed", "lookups failed");
                Err(error.within(format!("{failed} and {} not begun; {which}", were(left))))
            }
        }
    }
}

/// `1 lookup was`, `7 lookups were`
fn were(count: usize) -> String {
    some(count as u64, "lookup was", "lookups were")
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    /// The error of lookups that failed one after the other.
    fn told(blames: &[Blame]) -> Error {
        let mut failures = Failures::default();
        for blame in blames {
            failures.note(Error::new(*blame, blame.name()));
        }
        failures.into_result().unwrap_err()
    }

    #[test]
    fn a_failure_that_forbids_another_try_is_told_wherever_it_stands() {
        for grave in [Blame::Integrity, Blame::Selective, Blame::Corrupted] {
            let error = told(&[Blame::Unavailable, grave, Blame::Unavailable]);
            assert_eq!(error.blame(), grave);
            assert_eq!(error.message(), format!("3 lookups failed; one of them: {grave}"));
            let error = told(&[grave, Blame::Unavailable]);
            assert_eq!(error.message(), format!("2 lookups failed; the first: {grave}"));
        }
        assert_eq!(told(&[Blame::Unavailable, Blame::ApiMisuse]).blame(), Blame::Unavailable);
        assert_eq!(told(&[Blame::Selective]).message(), "selective");
    }
}
