//! How many keys a table still takes, in words and in JSON.

use crate::display::{Page, count};
use privet_table::key_map::Room;
use serde::Serialize;

/// What is said where little room is left.
pub(crate) const NEARLY_FULL: &str = "The table takes few new keys before it is full. Build a \
    larger one in time (--key-map cuckoo --room N).";

/// The room of a table by key. Estimates.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Left {
    /// How many more keys fit, about; of values in several parts, how many parts.
    keys_that_fit: u64,
    /// From 0 to 1.
    fullness: f64,
    #[serde(skip)]
    parts: u64,
    #[serde(skip)]
    is_short: bool,
}

impl Left {
    pub(crate) fn of(room: &Room, parts: u64) -> Self {
        Self {
            keys_that_fit: room.more,
            fullness: room.fullness(),
            parts,
            is_short: room.is_short(),
        }
    }

    /// Whether the table takes few new keys.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(crate) fn add_to(&self, page: &mut Page) {
        let what = if self.parts > 1 { "pieces of values" } else { "keys" };
        let (more, percent) = (count(self.keys_that_fit), 100.0 * self.fullness);
        page.entry("room", format!("for about {more} more {what}: {percent:.0} % full"));
    }
}
