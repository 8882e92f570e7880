//! Lookups of keys that may lie in several records: they always fetch all of them.
//!
//! A key map names the same number of *candidates* for every key, in the table or not: two for each
//! part of a value, say, and as many parts as the longest value has. A lookup makes one fetch for
//! each candidate, each with queries of its own, which leave together. Only together do the
//! fetches have an outcome. A server cannot see which records held the key, how many of them held a
//! piece of its value, or whether none did. Neither the queries nor the moment of the outcome shows
//! it: the client puts nothing together, and looks at no length, before the last fetch is over. If
//! one fetch fails, the lookup fails, even if the others have the whole value. Otherwise a server
//! could spoil one of the answers, and learn from a user who tries again whether that answer
//! mattered.

use super::planted;
use super::records::Piece;
use privet_core::{Error, Result};

/// The results of a lookup's fetches so far.
pub(super) struct FetchResults {
    left: usize,
    /// What each of the candidates holds, or the gravest failure.
    pieces: Result<Vec<Piece>>,
}

impl FetchResults {
    pub(super) fn nothing_of(fetches: usize) -> Self {
        Self { left: planted::made(fetches), pieces: Ok(vec![None; fetches]) }
    }

    /// Adds the result of one fetch. Returns whether it was the last.
    pub(super) fn add(&mut self, candidate: usize, found: Result<Piece>) -> bool {
        self.left -= 1;
        match (&mut self.pieces, found) {
            (Err(_), Ok(_)) => {}
            (Err(told), Err(error)) => *told = told.clone().by_gravity(error).0,
            (Ok(pieces), Ok(piece)) => pieces[candidate] = piece,
            (Ok(_), Err(error)) => self.pieces = Err(error),
        }
        self.left == 0
    }

    pub(super) fn into_pieces(self) -> Result<Vec<Piece>> {
        self.pieces
    }

    /// Why the lookup has failed, if it has.
    pub(super) fn into_failure(self) -> Option<Error> {
        self.pieces.err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    #[test]
    fn the_gravest_failure_is_the_lookups() {
        let told = |results: [Result<Piece>; 3]| {
            let mut found = FetchResults::nothing_of(3);
            for (candidate, result) in results.into_iter().enumerate() {
                assert_eq!(found.add(candidate, result), candidate == 2);
            }
            found.into_failure().unwrap().blame()
        };
        let away = || Err(Error::unavailable("away"));
        for blame in [Blame::Integrity, Blame::Selective, Blame::Corrupted] {
            let grave = || Err(Error::new(blame, "grave"));
            assert_eq!(told([away(), grave(), Ok(None)]), blame);
            assert_eq!(told([grave(), Ok(None), away()]), blame);
        }
        assert_eq!(told([Ok(None), away(), Err(Error::api_misuse("no"))]), Blame::Unavailable);
    }
}
