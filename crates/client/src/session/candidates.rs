//! Lookups of keys that may lie in several records: all of them are fetched, always.
//!
//! A key map names as many *candidates* for every key, in the table or not: two for each part of a
//! value, say, and as many parts as the longest value has. A lookup of a key with several of them
//! is as many fetches, each with queries of its own, that go out one right after the other; only
//! together do they have an outcome. Which of the records held the key, how many of them held a
//! piece of its value, or that none did, shows neither in what is sent nor in when the outcome is
//! told: nothing is put together, and no length looked at, before the last fetch is over. And a
//! lookup of which one fetch fails has failed, also if the others have the whole value: otherwise a
//! server that spoils one of the answers would learn, from a user who tries again, whether it was
//! one that mattered.

use super::records::Piece;
use privet_core::{Error, Result};

/// What a lookup's fetches have come to.
pub(super) struct Found {
    left: usize,
    /// What each of the candidates holds, or the first failure.
    pieces: Result<Vec<Piece>>,
}

impl Found {
    pub(super) fn nothing_of(fetches: usize) -> Self {
        Self { left: fetches, pieces: Ok(vec![None; fetches]) }
    }

    /// Notes what one fetch came to. Returns whether it was the last.
    pub(super) fn add(&mut self, candidate: usize, found: Result<Piece>) -> bool {
        self.left -= 1;
        match (&mut self.pieces, found) {
            (Err(_), _) => {}
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
