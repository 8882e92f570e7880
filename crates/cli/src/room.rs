//! How many keys a table still takes, and what is in its stash, in words.

use crate::display::{Page, bytes, count};
use privet_table::publish::KeysLeft;

/// What is said where little room is left.
pub(crate) const NEARLY_FULL: &str = "The table takes few new keys before it is full. Build a \
    larger one in time (--key-map cuckoo --room N).";

/// Adds the room of a table whose values lie in so many parts.
pub(crate) fn describe(page: &mut Page, left: &KeysLeft, parts: u64) {
    let what = if parts > 1 { "pieces of values" } else { "keys" };
    let (more, percent) = (count(left.keys_that_fit), 100.0 * left.fullness);
    page.entry("room", format!("for about {more} more {what}: {percent:.0} % full"));
}

/// Adds the stash of such a table.
pub(crate) fn describe_stash(page: &mut Page, entries: u64, bytes_there: u64, parts: u64) {
    let what = if parts > 1 { "pieces of values" } else { "values" };
    page.entry("stash", format!("{} {what}, {}", count(entries), bytes(bytes_there)));
}
