//! The highest rate at which a server holds its objectives: the *knee* of its latencies, beyond
//! which they rise without end.

use privet_core::Result;
use serde::Serialize;

/// The search ends when the lowest rate that was too high is at most this many times the highest
/// that was not.
const CLOSE: f64 = 1.05;

/// What was found. Rates are in lookups a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Knee {
    /// The highest rate that was held. `None`: not even the first was.
    pub(super) held: Option<f64>,
    /// The lowest rate that was too high. `None`: the highest that can be offered was held.
    pub(super) missed: Option<f64>,
}

/// How often the search goes on above a rate that was missed at first and held later.
const MOST_RESUMED: usize = 3;

/// Doubles the rate, from `first`, until it is too high or would exceed `highest`, and then halves
/// the interval, in proportion.
///
/// Whatever else runs on the machines may disturb a step. So a rate that was missed is tried again
/// before it counts as too high. And if every rate below it was held, it is tried once more at the
/// end: if it is held then, the search goes on above it.
///
/// # Errors
/// Those of `is_held`, which measures.
pub(super) fn search(
    first: f64,
    highest: f64,
    mut is_held: impl FnMut(f64) -> Result<bool>,
) -> Result<Knee> {
    let mut holds = |rate| -> Result<bool> { Ok(is_held(rate)? || is_held(rate)?) };
    let mut knee = Knee { held: None, missed: None };
    let mut rate = first.min(highest);
    let mut resumed = 0;
    loop {
        while knee.missed.is_none() {
            match holds(rate)? {
                true if rate >= highest => return Ok(Knee { held: Some(rate), ..knee }),
                true => knee.held = Some(rate),
                false => knee.missed = Some(rate),
            }
            rate = (2.0 * rate).min(highest);
        }
        let mut is_doubtful = true;
        while let (Some(held), Some(missed)) = (knee.held, knee.missed)
            && missed > held * CLOSE
        {
            let middle = (held * missed).sqrt();
            match holds(middle)? {
                true => knee.held = Some(middle),
                false => (knee.missed, is_doubtful) = (Some(middle), false),
            }
        }
        match (knee.held, knee.missed) {
            (Some(_), Some(missed)) if is_doubtful && resumed < MOST_RESUMED && holds(missed)? => {
                resumed += 1;
                knee = Knee { held: Some(missed), missed: None };
                rate = (2.0 * missed).min(highest);
            }
            _ => return Ok(knee),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers one lookup after the other, each in `service` seconds: its mean
    /// latency at a rate, if lookups come at random (M/D/1).
    fn latency(service: f64, rate: f64) -> Option<f64> {
        let load = rate * service;
        (load < 1.0).then(|| service * (1.0 + load / (2.0 * (1.0 - load))))
    }

    fn meets(service: f64, rate: f64, limit: f64) -> bool {
        latency(service, rate).is_some_and(|latency| latency <= limit)
    }

    #[test]
    fn the_knee_of_a_queue_is_found_to_five_percent() {
        for (service, first) in [(0.01, 1.0), (0.01, 70.0), (3e-5, 0.1), (2.0, 0.001)] {
            // Ten times the latency of an empty server: at a load of 18/19.
            let expected = 18.0 / 19.0 / service;
            let mut steps = 0;
            let knee = search(first, 1e6, |rate| {
                steps += 1;
                Ok(meets(service, rate, 10.0 * service))
            });
            let Knee { held, missed } = knee.unwrap();
            let (held, missed) = (held.unwrap(), missed.unwrap());
            assert!(held <= expected && expected < missed, "{held} {expected} {missed}");
            assert!(missed <= held * CLOSE && steps < 60, "{held} {missed} in {steps}");
        }
    }

    #[test]
    fn one_disturbed_step_does_not_end_the_search() {
        let mut rates = Vec::new();
        let knee = search(1.0, 1e6, |rate| {
            let is_disturbed = rate == 8.0 && !rates.contains(&rate);
            rates.push(rate);
            Ok(!is_disturbed && meets(0.01, rate, 0.1))
        });
        assert!(knee.unwrap().held.unwrap() > 85.0, "{rates:?}");
        assert_eq!(rates.iter().filter(|rate| **rate == 8.0).count(), 2);
    }

    #[test]
    fn the_search_goes_on_above_a_rate_that_was_missed_for_another_reason() {
        // Something else takes the machine while the rate is 8 for the first two times.
        let mut disturbances = 2;
        let knee = search(1.0, 1e6, |rate| {
            if rate == 8.0 && disturbances > 0 {
                disturbances -= 1;
                return Ok(false);
            }
            Ok(meets(0.01, rate, 0.1))
        });
        let held = knee.unwrap().held.unwrap();
        assert!((89.0..95.0).contains(&held), "{held}");
        // A rate that is missed whenever it is new does not keep the search going for ever.
        let mut tried: Vec<f64> = Vec::new();
        let knee = search(1.0, 1e9, |rate| {
            tried.push(rate);
            Ok(rate <= 3.0 || tried.iter().filter(|other| **other == rate).count() > 2)
        });
        assert!(knee.unwrap().missed.is_some() && tried.len() < 100, "{tried:?}");
    }

    #[test]
    fn the_search_ends_where_nothing_holds_and_where_everything_does() {
        let nothing = search(4.0, 100.0, |_| Ok(false)).unwrap();
        assert_eq!(nothing, Knee { held: None, missed: Some(4.0) });
        let everything = search(4.0, 100.0, |_| Ok(true)).unwrap();
        assert_eq!(everything, Knee { held: Some(100.0), missed: None });
        let low = search(4.0, 1.0, |_| Ok(true)).unwrap();
        assert_eq!(low.held, Some(1.0));
    }
}
