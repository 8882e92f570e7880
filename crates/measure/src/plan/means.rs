//! Connections, prices and assumptions, and how people name them.

use crate::load::parse_time;
use privet_schemes::registry::Assumption;
use privet_table::Choice;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What clients run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    /// A program of its own.
    Native,
    /// A module of Python, which calls the same code.
    Python,
    /// WebAssembly.
    Browser,
}

impl ClientKind {
    /// What there is to choose from; the first is the default.
    pub const CHOICES: [Choice<Self>; 3] = [
        Choice::new(Self::Native, "native", "A program of its own"),
        Choice::new(Self::Python, "python", "A module of Python, which calls the same code"),
        Choice::new(Self::Browser, "browser", "WebAssembly"),
    ];
}

/// What privacy may rest on, the strongest assumption last.
pub const ASSUMPTIONS: [Choice<Assumption>; 4] = [
    Choice::new(Assumption::Nothing, "none", "nothing but servers that do not talk"),
    Choice::new(Assumption::Aes, "aes", "AES"),
    Choice::new(Assumption::Lwe, "lwe", "learning with errors (LWE)"),
    Choice::new(Assumption::RingLwe, "ring-lwe", "learning with errors over a ring (ring LWE)"),
];

/// What an assumption is called in a sentence.
pub(super) fn in_words(assumption: Assumption) -> &'static str {
    ASSUMPTIONS.iter().find(|one| one.value == assumption).map_or("", |one| one.words)
}

/// A client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bits in a second.
    pub bits_per_s: f64,
    /// How long a reply to nothing takes.
    pub round_trip: Duration,
}

impl Link {
    /// How long it takes to send and receive `bytes` in all, without waiting for a reply.
    pub fn time(&self, bytes: u64) -> Duration {
        let seconds = bytes as f64 * 8.0 / self.bits_per_s;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no connection such as 20Mbit,40ms: a rate in kbit, Mbit or Gbit, and the time of a round trip"
            )
        };
        let (rate, time) = text.split_once(',').ok_or_else(wrong)?;
        let units = [("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)];
        let rate = units.iter().find_map(|(unit, bits)| {
            let number: f64 = rate.strip_suffix(unit)?.parse().ok()?;
            (number.is_finite() && number > 0.0).then_some(number * bits)
        });
        let round_trip = parse_time(time).map_err(|_| wrong())?;
        Ok(Self { bits_per_s: rate.ok_or_else(wrong)?, round_trip })
    }
}

/// What things cost, in any currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// A gigabyte that a server sends.
    pub traffic: f64,
    /// A core for a month.
    pub core: f64,
    /// A gibibyte of memory for a month.
    pub memory: f64,
    /// An hour that somebody waits.
    pub waiting: f64,
}

impl Default for Prices {
    /// About what large clouds ask for, in dollars, and little for the time of people.
    fn default() -> Self {
        Self { traffic: 0.09, core: 25.0, memory: 3.0, waiting: 1.0 }
    }
}

impl fmt::Display for Prices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { traffic, core, memory, waiting } = self;
        write!(formatter, "traffic={traffic},core={core},memory={memory},waiting={waiting}")
    }
}

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut prices = Self::default();
        for part in text.split(',') {
            let wrong = || {
                format!("{part:?} is no price such as core=25, of traffic, core, memory or waiting")
            };
            let (name, price) = part.split_once('=').ok_or_else(wrong)?;
            let price: f64 = price.parse().map_err(|_| wrong())?;
            if !(price.is_finite() && price >= 0.0) {
                return Err(wrong());
            }
            match name {
                "traffic" => prices.traffic = price,
                "core" => prices.core = price,
                "memory" => prices.memory = price,
                "waiting" => prices.waiting = price,
                _ => return Err(wrong()),
            }
        }
        Ok(prices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_a_rate_and_a_round_trip() {
        let link: Link = "20Mbit,40ms".parse().unwrap();
        assert_eq!(link.round_trip, Duration::from_millis(40));
        assert_eq!(link.time(2_500_000), Duration::from_secs(1));
        assert_eq!("1.5Gbit,1s".parse::<Link>().unwrap().bits_per_s, 1.5e9);
        for wrong in
            ["", "20Mbit", "20,40ms", "0Mbit,40ms", "-1Mbit,40ms", "20Mbit,40", "infMbit,1s"]
        {
            assert!(wrong.parse::<Link>().unwrap_err().contains("no connection"), "{wrong}");
        }
    }

    #[test]
    fn prices_that_are_not_named_keep_their_default() {
        let prices: Prices = "core=7.5,waiting=0".parse().unwrap();
        assert_eq!(prices, Prices { core: 7.5, waiting: 0.0, ..Prices::default() });
        assert_eq!(prices.to_string().parse::<Prices>().unwrap(), prices);
        for wrong in ["", "core", "core=", "core=-1", "core=inf", "cores=1", "core=1,"] {
            assert!(wrong.parse::<Prices>().unwrap_err().contains("no price"), "{wrong}");
        }
    }
}
