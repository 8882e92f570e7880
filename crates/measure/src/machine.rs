//! How fast one core of a machine does what schemes [count](privet_schemes::registry::Costs): a
//! yardstick for each kind of operation, measured here or read from a file.

use crate::watch::{Amount, Watch};
use privet_core::{Error, Reason, Result};
use privet_kernels::Kernels;
use privet_kernels::rates::{LINE, best, copy_rate, filled, step_rate};
use privet_schemes::registry::{Operations, Pass, RandomReads};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Reads are measured from memory of these sizes, because small tables lie in caches.
const SIZES: [usize; 5] = [1 << 18, 1 << 22, 1 << 24, 1 << 26, 1 << 29];

/// Operations a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// `portable`, `avx2` or `avx512`.
    kernel: String,
    /// Bytes read in sequence, from memory of each size.
    reads: Vec<Speed>,
    /// Cache lines of 64 bytes read from random places, in memory of each size.
    random_reads: Vec<Speed>,
    /// Bytes copied into memory that is asked for, for copies of each size.
    copies: Vec<Speed>,
    aes_blocks_per_s: f64,
    byte_products_per_s: f64,
    xored_bytes_per_s: f64,
    hashed_bytes_per_s: f64,
    short_hashes_per_s: f64,
    point_products_per_s: f64,
    steps_per_s: f64,
}

/// A speed in memory of a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Speed {
    of_bytes: u64,
    per_s: f64,
}

/// The threads with which a server would compute here.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Machine {
    /// The machine that a file describes; without a file, this one, which is measured in some
    /// seconds. `point_products` measures what the schemes for study need besides: how many points
    /// one core multiplies by a number in a second.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the file cannot be read, or does not
    /// describe a machine; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no
    /// memory to measure this one.
    pub fn of(file: Option<&Path>, point_products: fn() -> f64, watch: Watch<'_>) -> Result<Self> {
        if let Some(file) = file {
            return Self::read(file);
        }
        let _measuring = watch("measuring this machine", Amount::Unknown);
        let kernels = Kernels::detect();
        let no_memory = |error| Error::unavailable("no memory for the yardsticks").caused_by(error);
        let buffer = filled(SIZES[SIZES.len() - 1]).map_err(no_memory)?;
        let speeds = |rate: fn(Kernels, &[u8]) -> f64| {
            SIZES.map(|size| Speed { of_bytes: size as u64, per_s: rate(kernels, &buffer[..size]) })
        };
        let copies = SIZES.iter().map(|size| {
            let per_s = copy_rate(&buffer[..*size]).map_err(no_memory)?;
            Ok(Speed { of_bytes: *size as u64, per_s })
        });
        Ok(Self {
            kernel: kernels.arm().to_string(),
            reads: speeds(Kernels::read_rate).into(),
            random_reads: speeds(Kernels::random_read_rate).into(),
            copies: copies.collect::<Result<_>>()?,
            aes_blocks_per_s: kernels.aes_rate(),
            byte_products_per_s: kernels.byte_product_rate().map_err(no_memory)?,
            xored_bytes_per_s: kernels.xor_rate(&buffer[..1 << 18]),
            hashed_bytes_per_s: best(1 << 24, || {
                black_box(blake3::hash(&buffer[..1 << 24]));
            }),
            short_hashes_per_s: kernels.short_hash_rate(&buffer[..1 << 20]),
            point_products_per_s: point_products(),
            steps_per_s: step_rate(),
        })
    }

    /// A core of a server of 2021 (AMD Zen 3), for advice that must not take time.
    pub(crate) fn typical() -> Option<Self> {
        serde_json::from_str(include_str!("machine/typical.json")).ok()
    }

    /// The same core in WebAssembly, as `scripts/measure-wasm.sh` measured it under Node.
    pub(crate) fn browser() -> Option<Self> {
        serde_json::from_str(include_str!("machine/browser.json")).ok()
    }

    /// Reads what [`write`](Self::write) wrote.
    fn read(file: &Path) -> Result<Self> {
        let wrong = |what: &str, why: String| {
            Error::api_misuse(format!("{}: {what}: {why}", file.display()))
        };
        let bytes = std::fs::read(file)
            .map_err(|error| wrong("the machine's yardsticks cannot be read", error.to_string()))?;
        let machine: Self = serde_json::from_slice(&bytes).map_err(|error| {
            wrong("these are not a machine's yardsticks", error.to_string())
                .because(Reason::NoMachine)
        })?;
        let rates = [
            machine.aes_blocks_per_s,
            machine.byte_products_per_s,
            machine.xored_bytes_per_s,
            machine.hashed_bytes_per_s,
            machine.short_hashes_per_s,
            machine.point_products_per_s,
            machine.steps_per_s,
        ];
        let speeds = [&machine.reads, &machine.random_reads, &machine.copies];
        let of_speeds = speeds.into_iter().flatten().map(|speed| speed.per_s);
        let all_positive = rates.into_iter().chain(of_speeds).all(|rate| rate > 0.0);
        let all_sizes = speeds.iter().all(|speeds| {
            !speeds.is_empty() && speeds.is_sorted_by(|one, next| one.of_bytes < next.of_bytes)
        });
        if all_positive && all_sizes {
            return Ok(machine);
        }
        Err(wrong("no machine is like that", "speeds are positive, sizes increase".to_owned()))
    }

    /// Writes the yardsticks as JSON.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let written = serde_json::to_vec_pretty(self).map_err(|error| error.to_string());
        written
            .and_then(|json| std::fs::write(file, json).map_err(|error| error.to_string()))
            .map_err(|error| {
                Error::unavailable(format!("cannot write {}: {error}", file.display()))
            })
    }

    /// How long one core takes.
    pub fn time(&self, step: &Operations) -> Duration {
        let Pass { bytes, of } = step.pass;
        let RandomReads { count, len, of: of_random } = step.random;
        // The rest of a record comes in sequence, but in pieces too short to be read at full speed.
        let rest = 1.4 * (len - LINE as f64).max(0.0);
        let random = count / speed(&self.random_reads, of_random)
            + count * rest / speed(&self.reads, of_random);
        let arithmetic = &step.arithmetic;
        let copied = step.copied / speed(&self.copies, step.copied);
        let memory = bytes / speed(&self.reads, of) + random;
        let arithmetic = arithmetic.aes_blocks / self.aes_blocks_per_s
            + arithmetic.byte_products / self.byte_products_per_s
            + arithmetic.xored / self.xored_bytes_per_s
            + arithmetic.hashed / self.hashed_bytes_per_s
            + arithmetic.short_hashes / self.short_hashes_per_s
            + arithmetic.point_products / self.point_products_per_s
            + arithmetic.steps / self.steps_per_s;
        Duration::try_from_secs_f64(copied + memory.max(arithmetic)).unwrap_or(Duration::MAX)
    }

    /// The instructions that the yardsticks were taken with.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }
}

/// The speed in memory of `bytes` bytes: between two sizes that were measured, on the line between
/// them over the logarithm of the size.
fn speed(speeds: &[Speed], bytes: f64) -> f64 {
    let above = speeds.iter().position(|speed| speed.of_bytes as f64 >= bytes);
    match above {
        Some(0) => speeds[0].per_s,
        Some(above) => {
            let (low, high) = (speeds[above - 1], speeds[above]);
            let place = |bytes: f64| bytes.log2();
            let (from, to) = (place(low.of_bytes as f64), place(high.of_bytes as f64));
            let share = (place(bytes) - from) / (to - from);
            // Times, not speeds, add up.
            1.0 / ((1.0 - share) / low.per_s + share / high.per_s)
        }
        None => speeds.last().map_or(f64::INFINITY, |speed| speed.per_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let speeds = |first: f64| {
            let sizes = SIZES.iter().zip(0..);
            sizes.map(move |(size, halved)| Speed {
                of_bytes: *size as u64,
                per_s: first / f64::from(1 << halved),
            })
        };
        Machine {
            kernel: "portable".to_owned(),
            reads: speeds(64e9).collect(),
            random_reads: speeds(1e9).collect(),
            copies: speeds(32e9).collect(),
            aes_blocks_per_s: 1e9,
            byte_products_per_s: 2e9,
            xored_bytes_per_s: 4e9,
            hashed_bytes_per_s: 1e9,
            short_hashes_per_s: 1e7,
            point_products_per_s: 1e4,
            steps_per_s: 1e9,
        }
    }

    #[test]
    fn a_step_takes_as_long_as_memory_or_arithmetic_whichever_is_slower() {
        let machine = machine();
        let large = (1u64 << 32) as f64;
        let mut step = Operations::default();
        assert_eq!(machine.time(&step), Duration::ZERO);
        step.pass = Pass { bytes: 4e9, of: large };
        assert_eq!(machine.time(&step), Duration::from_secs(1));
        step.arithmetic.aes_blocks = 5e8;
        assert_eq!(machine.time(&step), Duration::from_secs(1));
        step.arithmetic.byte_products = 5e9;
        assert_eq!(machine.time(&step), Duration::from_secs(3));
        step.random = RandomReads { count: 250e6, len: 64.0, of: large };
        assert_eq!(machine.time(&step), Duration::from_secs(5));
        step.copied = 4e9;
        assert_eq!(machine.time(&step), Duration::from_secs(7));
        // What exceeds a line is not read as fast as in sequence.
        step.random.len = 1024.0;
        assert!(machine.time(&step).as_secs_f64() - 7.0 > 250e6 * 960.0 / 4e9);
    }

    #[test]
    fn there_is_a_typical_machine() {
        assert_eq!(Machine::typical().unwrap().kernel(), "avx2");
        assert_eq!(Machine::browser().unwrap().kernel(), "portable");
    }

    #[test]
    fn speeds_between_two_sizes_lie_between_their_speeds() {
        let machine = machine();
        let at = |bytes: u64| speed(&machine.reads, bytes as f64);
        assert_eq!((at(1), at(1 << 18)), (64e9, 64e9));
        assert!((at(1 << 29) / 4e9 - 1.0).abs() < 1e-9);
        assert_eq!(at(1 << 40), 4e9);
        assert!(at(1 << 20) < 64e9 && at(1 << 20) > 32e9);
        assert!((1.0 / at(1 << 20) - 0.5 * (1.0 / 64e9 + 1.0 / 32e9)).abs() < 1e-14);
    }

    #[test]
    fn a_machine_is_read_as_it_was_written_and_nonsense_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("machine.json");
        machine().write(&file).unwrap();
        assert_eq!(Machine::read(&file).unwrap(), machine());
        let slow = Machine { steps_per_s: 0.0, ..machine() };
        let backwards = Machine { reads: machine().reads.into_iter().rev().collect(), ..machine() };
        let blind = Machine { random_reads: Vec::new(), ..machine() };
        for wrong in [slow, backwards, blind] {
            wrong.write(&file).unwrap();
            assert!(Machine::read(&file).unwrap_err().to_string().contains("no machine"));
        }
        std::fs::write(&file, "{}").unwrap();
        assert!(Machine::read(&file).unwrap_err().to_string().contains("not a machine's"));
        assert!(Machine::read(&directory.path().join("none")).is_err());
    }
}
