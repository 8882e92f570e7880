//! What a table does to keys before it looks them up, described for people.

use crate::display::{self, Page};
use privet_table::build::{KeyFormReport, RangesReport};
use privet_table::key_map::KeyFormat;

/// Prints nothing if keys are taken as they are.
pub(crate) fn describe(page: &mut Page, form: &KeyFormReport) {
    if let Some(RangesReport { count, points, nested, bytes }) = &form.ranges {
        let (count, bytes) = (display::count(*count), display::bytes(*bytes));
        let cut = if *nested { ", cut from nested ones" } else { "" };
        page.entry("ranges", format!("{count} of {points}{cut}, whose bounds take {bytes}"));
    }
    if let Some(format) = form.key_format.filter(|format| *format != KeyFormat::Text.name()) {
        page.entry("keys written in", format);
    }
    if !form.normalized.is_empty() {
        page.entry("keys normalised", form.normalized.join(", "));
    }
}
