//! How reports are put before people: they say it, and a program lays it out.

use indicatif::HumanDuration;
use privet_core::quantities::count;
use std::time::Duration;

/// What takes the words of a report. They may be of others: a table's name, a file's.
pub trait Page {
    /// A line of text.
    fn line(&mut self, text: impl AsRef<str>);

    /// One or more sentences, indented.
    fn paragraph(&mut self, text: impl AsRef<str>);

    /// A label and its value.
    fn entry(&mut self, label: &str, value: impl std::fmt::Display);

    /// A heading, then a line for each row.
    fn table<const COLUMNS: usize>(&mut self, heading: [&str; COLUMNS], rows: &[[String; COLUMNS]]);
}

/// `40 ns`, `0.4 µs`, `35 µs`, `1.20 ms`, `3.4 s`
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 1e-7 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-5 => format!("{:.1} µs", s * 1e6),
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        _ => HumanDuration(duration).to_string(),
    }
}

/// The same for a number of seconds. What no clock can count is the longest time.
pub(crate) fn seconds(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// `1 table`, `2,000 tables`
pub fn some(number: u64, one: &str, more: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { more })
}

/// A rate to three digits or to whole numbers: `0.125`, `12.5`, `1,250`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 99.95 => count(rate.round() as u64),
        rate if rate >= 9.995 => format!("{rate:.1}"),
        rate if rate >= 0.9995 => format!("{rate:.2}"),
        rate => format!("{rate:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(some(1, "lookup", "lookups"), "1 lookup");
        assert_eq!(some(0, "lookup", "lookups"), "0 lookups");
        assert_eq!(some(2000, "lookup", "lookups"), "2,000 lookups");
    }

    #[test]
    fn rates_have_three_digits_or_are_whole() {
        let rates = [0.1254, 0.9999, 1.5, 9.999, 12.34, 99.96, 1234.5, 0.0].map(rate);
        assert_eq!(rates, ["0.125", "1.00", "1.50", "10.0", "12.3", "100", "1,235", "0.000"]);
    }
}
