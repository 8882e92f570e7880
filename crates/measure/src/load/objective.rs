//! What a server must achieve, and how that is typed: `p99=250ms`.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// So many percent of all lookups are answered within a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Objective {
    /// Above 0, at most 100.
    pub(super) percent: f64,
    #[serde(rename = "limit_ms", serialize_with = "super::report::milliseconds")]
    pub(super) limit: Duration,
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "{text:?} is no objective such as p99=250ms: p, a share in percent, and the time within which that share must be answered"
            )
        };
        let (percent, limit) =
            text.strip_prefix('p').and_then(|rest| rest.split_once('=')).ok_or_else(expected)?;
        let percent = positive(percent).filter(|percent| *percent <= 100.0);
        let limit = parse_time(limit).ok();
        let (percent, limit) = percent.zip(limit).ok_or_else(expected)?;
        Ok(Self { percent, limit })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "p{} ≤ {}", self.percent, crate::page::duration(self.limit))
    }
}

/// The longest time that can be typed: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A time above zero, with its unit: `500ms`, `1.5s`, `2m`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [("µs", 1e-6), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let unit = units.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| seconds);
    let seconds = positive(number).zip(unit).map(|(number, unit)| number * unit);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| !time.is_zero() && *time <= LONGEST);
    time.ok_or_else(|| {
        format!("{text:?} is no time of up to a day with its unit, such as 500ms, 10s or 2m")
    })
}

/// The highest rate that can be typed. No generator of this kind keeps to a higher one.
pub(super) const HIGHEST_RATE: f64 = 1e6;

/// A number of lookups in a second, above zero.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    positive(text).filter(|rate| *rate <= HIGHEST_RATE).ok_or_else(|| {
        format!("{text:?} is no rate of up to a million in a second, such as 100 or 0.5")
    })
}

/// A number above zero in digits, with or without decimals. (`f64` also knows `inf` and `1e9`.)
fn positive(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse::<f64>().ok().filter(|number| digits && number.is_finite() && *number > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_a_share_and_a_time() {
        let objective: Objective = "p99.9=1.5s".parse().unwrap();
        assert_eq!((objective.percent, objective.limit), (99.9, Duration::from_millis(1500)));
        assert_eq!("p50=250ms".parse::<Objective>().unwrap().to_string(), "p50 ≤ 250.00 ms");
        for wrong in
            ["", "p", "99=1s", "p99", "p99=", "p99=1", "p0=1s", "p101=1s", "pNaN=1s", "p99=-1s"]
        {
            let error = wrong.parse::<Objective>().unwrap_err();
            assert!(error.contains("p99=250ms"), "{wrong}: {error}");
        }
    }

    #[test]
    fn times_have_units_and_ends() {
        let parsed = |text| parse_time(text).map(|time| time.as_secs_f64());
        assert_eq!(parsed("500ms"), Ok(0.5));
        assert_eq!(parsed("10s"), Ok(10.0));
        assert_eq!(parsed("2m"), Ok(120.0));
        assert_eq!(parsed("40us"), parsed("40µs"));
        for wrong in ["", "10", "s", "0s", "-1s", "infs", "1e9s", "25h", "10 s", "1.2.3s", "1d"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_positive_and_bounded() {
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        assert_eq!(parse_rate("1000000"), Ok(1e6));
        for wrong in ["", "0", "-1", "1000001", "inf", "NaN", "1e3", "10/s"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
