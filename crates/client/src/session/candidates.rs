//! Lookups of keys that may lie in several records: all of them are fetched, always.
//!
//! A key map names as many *candidates* for every key, in the table or not: two for each part of a value, say, and as many parts as the longest value has. A lookup of a key with several of
//! them is as many fetches, each with queries of its own, that go out one right after the other; only together do they have an outcome. Which of the records held the key, how many of them held a piece of its
//! value, or that none did, shows neither in what is sent nor in when the
//! outcome is told: nothing is put together, and no length looked at, before the last fetch is over. And a lookup of which one fetch fails has failed, also if the others have the whole value: otherwise a server that
//! spoils one of the answers would learn, from a user who tries again, whether it was one that mattered.

use super::Session;
use super::hints::ended_before;
use super::interface::{Event, LookupId, Target};
use super::records::Piece;
use privet_core::{Error, Result};
use std::collections::BTreeMap;

/// Lookups that are several fetches. The first fetch goes by the lookup's own name, the others by names that only the session knows.
#[derive(Default)]
pub(super) struct Groups {
    /// Of each fetch its lookup, and which of the key's candidates it fetches.
    whole: BTreeMap<LookupId, (LookupId, usize)>,
    groups: BTreeMap<LookupId, Group>,
}

struct Group {
    left: usize,
    /// What each of the candidates holds, or the first failure.
    found: Result<Vec<Piece>>,
}

impl Groups {
    /// `fetches` together are the lookup that the first of them is named for.
    pub(super) fn begin(&mut self, fetches: &[LookupId]) {
        let Some(whole) = fetches.first() else { return };
        let nothing = fetches.iter().map(|_| None).collect();
        self.groups.insert(*whole, Group { left: fetches.len(), found: Ok(nothing) });
        let numbered = fetches.iter().enumerate();
        self.whole.extend(numbered.map(|(candidate, fetch)| (*fetch, (*whole, candidate))));
    }

    /// Which of the key's candidates a fetch fetches, until it is over.
    pub(super) fn candidate_of(&self, fetch: LookupId) -> usize {
        self.whole.get(&fetch).map_or(0, |(_, candidate)| *candidate)
    }

    /// The lookup that a fetch is a part of.
    pub(super) fn whole_of(&self, fetch: LookupId) -> LookupId {
        self.whole.get(&fetch).map_or(fetch, |(whole, _)| *whole)
    }

    /// Forgets all lookups that have begun: they begin again.
    pub(super) fn drop_all(&mut self) {
        *self = Self::default();
    }

    /// What came of one fetch. Returns what all fetches of its lookup came to, if they are over.
    fn end(
        &mut self,
        fetch: LookupId,
        found: Result<Piece>,
    ) -> Option<(LookupId, Result<Vec<Piece>>)> {
        let Some((whole, candidate)) = self.whole.remove(&fetch) else {
            return Some((fetch, found.map(|piece| vec![piece])));
        };
        let group = self.groups.get_mut(&whole)?;
        group.left -= 1;
        match (&mut group.found, found) {
            (Err(_), _) => {}
            (Ok(pieces), Ok(piece)) => pieces[candidate] = piece,
            (Ok(_), Err(error)) => group.found = Err(error),
        }
        if group.left > 0 {
            return None;
        }
        self.groups.remove(&whole).map(|group| (whole, group.found))
    }
}

impl Session {
    /// A fetch is over: tells what came of its lookup, for `target`, if that is over as well.
    pub(super) fn fetched_record(
        &mut self,
        fetch: LookupId,
        target: &Target,
        found: Result<Piece>,
    ) {
        let Some((lookup, found)) = self.groups.end(fetch, found) else { return };
        let value = found.and_then(|pieces| match &self.records {
            Some(records) => records.value(target, &pieces),
            None => Err(ended_before()),
        });
        #[cfg(test)]
        self.ask_again(target, &value);
        self.event(match value {
            Ok(Some(value)) => Event::Found { lookup, value },
            Ok(None) => Event::NotFound { lookup },
            Err(error) => Event::LookupFailed { lookup, error },
        });
    }

    /// The same of one that failed.
    pub(super) fn fetch_failed(&mut self, fetch: LookupId, error: Error) {
        if let Some((lookup, Err(error))) = self.groups.end(fetch, Err(error)) {
            self.event(Event::LookupFailed { lookup, error });
        }
    }
}
