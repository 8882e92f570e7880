//! How a table transforms keys before it looks them up, described for people.

use crate::display::{self, Page};
use privet_table::key_map::{KeyForm, KeyFormat};
use serde::Serialize;

/// The ranges of a table in which each row answers for a range of keys.
#[derive(Serialize)]
pub(crate) struct Ranges {
    count: u64,
    points: &'static str,
    /// Whether they were cut from ranges that may lie in one another.
    nested: bool,
    /// Bytes of the key map that the bounds take.
    bytes: u64,
}

impl Ranges {
    pub(crate) fn of(key_form: &KeyForm) -> Option<Self> {
        key_form.ranges.as_ref().map(|directory| Self {
            count: directory.ranges(),
            points: directory.points().name(),
            nested: directory.is_nested(),
            bytes: directory.bytes(),
        })
    }
}

/// Describes what a table does to keys. Prints nothing if it takes them as they are.
pub(crate) fn describe(
    page: &mut Page,
    ranges: Option<&Ranges>,
    format: Option<&str>,
    normalized: &[&str],
) {
    if let Some(Ranges { count, points, nested, bytes }) = ranges {
        let (count, bytes) = (display::count(*count), display::bytes(*bytes));
        let cut = if *nested { ", cut from nested ones" } else { "" };
        page.entry("ranges", format!("{count} of {points}{cut}, whose bounds take {bytes}"));
    }
    if let Some(format) = format.filter(|format| *format != KeyFormat::Text.name()) {
        page.entry("keys written in", format);
    }
    if !normalized.is_empty() {
        page.entry("keys normalised", normalized.join(", "));
    }
}
