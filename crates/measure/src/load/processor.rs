//! Who used the processor of the machine that `privet load` runs on: this program, or anything.

use serde::Serialize;
use std::time::Duration;

/// What was used so far.
pub(super) struct Used {
    process: Option<Duration>,
    machine: Option<Ticks>,
}

/// What was used meanwhile. Missing where the system does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Usage {
    /// This program's processor time in each second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores_used: Option<f64>,
    /// The share of the time of all cores that anything used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) machine_busy: Option<f64>,
}

/// Time of all cores together, in a unit of the system's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Used {
    pub(super) fn now() -> Self {
        Self { process: process_time(), machine: machine_ticks() }
    }

    /// What was used after `earlier`, in `time`.
    pub(super) fn since(&self, earlier: &Self, time: Duration) -> Usage {
        let process = self.process.zip(earlier.process);
        let machine = self.machine.zip(earlier.machine);
        Usage {
            cores_used: process.map(|(now, before)| {
                now.saturating_sub(before).as_secs_f64() / time.as_secs_f64().max(1e-9)
            }),
            machine_busy: machine.and_then(|(now, before)| now.busy_since(&before)),
        }
    }
}

impl Ticks {
    /// Reads the first line of Linux' `/proc/stat`: time by kind, of which the fourth is idle and
    /// the fifth waits for disks. The first eight are all; the others are counted among them.
    fn parse(stat: &str) -> Option<Self> {
        let kinds = stat.lines().next()?.strip_prefix("cpu ")?;
        let kinds: Vec<u64> =
            kinds.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let idle = kinds.get(3)?.checked_add(*kinds.get(4)?)?;
        Some(Self { idle, all: kinds.iter().copied().fold(0, u64::saturating_add) })
    }

    /// The busy share since `earlier`. `None` if the clock of the counters has not moved.
    fn busy_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        // The counter of idle time may go back by a little.
        let idle = self.idle.saturating_sub(earlier.idle);
        Some(1.0 - (idle as f64 / all as f64).min(1.0))
    }
}

/// The processor time of this process so far.
#[cfg(unix)]
fn process_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn process_time() -> Option<Duration> {
    None
}

fn machine_ticks() -> Option<Ticks> {
    match cfg!(target_os = "linux") {
        true => Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_busy_when_it_is_not_idle() {
        let ticks = |stat| Ticks::parse(stat).unwrap();
        let before = ticks("cpu  100 0 100 700 100 0 0 0 50 50\ncpu0 1 2 3\n");
        assert_eq!(before, Ticks { idle: 800, all: 1000 });
        let after = ticks("cpu  150 0 120 720 110 0 0 0 90 50\n");
        let busy = after.busy_since(&before).unwrap();
        assert!((busy - 0.7).abs() < 1e-9, "{busy}");
        assert_eq!(before.busy_since(&before), None);
        for other in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 x 5", "intr 1 2 3 4 5 6"] {
            assert_eq!(Ticks::parse(other), None, "{other}");
        }
    }

    #[test]
    fn this_process_takes_time() {
        let Some(before) = process_time() else { return };
        let mut number = 1u64;
        while process_time().unwrap() == before {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        let usage =
            Used::now().since(&Used { process: Some(before), machine: None }, Duration::MAX);
        assert!(usage.cores_used.unwrap() >= 0.0 && usage.machine_busy.is_none());
    }
}
