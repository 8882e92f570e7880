//! Lookups of keys that may lie in several records: all of them are fetched, always.
//!
//! A key map names as many *candidates* for every key, in the table or not. A lookup of a key with two of them is two fetches, each with queries of its own, that
//! go out one right after the other; only together do they have an outcome. Which of the records held the key, or that none did, shows neither in what is sent nor in when the
//! outcome is told. And a lookup of which one fetch fails has failed, also if the other found the value: otherwise a server that spoils one of the answers would learn, from a user
//! who tries again, whether it was the one that mattered.

use super::Session;
use super::interface::{Event, LookupId, Value};
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
    found: Result<Option<Value>>,
}

impl Groups {
    /// `fetches` together are the lookup that the first of them is named for.
    pub(super) fn begin(&mut self, fetches: &[LookupId]) {
        let Some(whole) = fetches.first() else { return };
        self.groups.insert(*whole, Group { left: fetches.len(), found: Ok(None) });
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

    /// What came of one fetch. Returns what came of its lookup, if that is over.
    fn end(
        &mut self,
        fetch: LookupId,
        found: Result<Option<Value>>,
    ) -> Option<(LookupId, Result<Option<Value>>)> {
        let Some((whole, _)) = self.whole.remove(&fetch) else { return Some((fetch, found)) };
        let group = self.groups.get_mut(&whole)?;
        group.left -= 1;
        match (&group.found, &found) {
            (Err(_), _) | (Ok(Some(_)), Ok(_)) => {}
            _ => group.found = found,
        }
        if group.left > 0 {
            return None;
        }
        self.groups.remove(&whole).map(|group| (whole, group.found))
    }
}

impl Session {
    /// A fetch is over: tells what came of its lookup, if that is over as well.
    pub(super) fn fetched_record(&mut self, fetch: LookupId, found: Result<Option<Value>>) {
        let Some((lookup, found)) = self.groups.end(fetch, found) else { return };
        self.event(match found {
            Ok(Some(value)) => Event::Found { lookup, value },
            Ok(None) => Event::NotFound { lookup },
            Err(error) => Event::LookupFailed { lookup, error },
        });
    }

    /// The same of one that failed.
    pub(super) fn fetch_failed(&mut self, fetch: LookupId, error: Error) {
        self.fetched_record(fetch, Err(error));
    }
}
