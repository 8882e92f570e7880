//! How fast one core runs the loops of [`yardstick`](crate::yardstick) and some kernels, in
//! operations a second. Costs that are counted in operations become times by these rates.

use crate::byte_matrix::TiledBytes;
use crate::dispatch::Kernels;
use crate::memory::{HugeBuffer, MemoryError};
use std::hint::black_box;
use std::time::Instant;

/// What a processor reads at a time, in bytes.
pub const LINE: usize = 64;

/// Each rate is the best of this many runs: a shared machine can only make it worse.
const RUNS: usize = 4;

/// Units per second, the best of several runs. Each run does `units` of them.
pub fn best(units: u64, mut run: impl FnMut()) -> f64 {
    let rate = |start: Instant| units as f64 / start.elapsed().as_secs_f64();
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            rate(start)
        })
        .fold(0.0, f64::max)
}

/// Memory of `len` bytes with real pages behind it. Every page is written, since untouched pages
/// all map to one page of zeros.
///
/// # Errors
///
/// If there is no memory for it.
pub fn filled(len: usize) -> Result<HugeBuffer<u8>, MemoryError> {
    let mut buffer = HugeBuffer::new_zeroed(len)?;
    buffer.iter_mut().enumerate().step_by(LINE).for_each(|(place, byte)| {
        *byte = (place / LINE) as u8;
    });
    Ok(buffer)
}

/// Bytes of `memory` copied into memory that is asked for each time. From 2 MiB on, the system has
/// to find it. A server does that with its table when it starts.
///
/// # Errors
///
/// If there is no memory for the copy.
pub fn copy_rate(memory: &[u8]) -> Result<f64, MemoryError> {
    let mut failed = None;
    let rate = best(memory.len() as u64, || match HugeBuffer::new_zeroed(memory.len()) {
        Ok(mut copy) => {
            copy.copy_from_slice(black_box(memory));
            black_box(&copy);
        }
        Err(error) => failed = Some(error),
    });
    failed.map_or(Ok(rate), Err)
}

/// `count` places of `of`. A fixed generator chooses them: they are not secret, and choosing them
/// must not cost time.
pub fn random_places(count: u64, of: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let place = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state) * u128::from(of)) >> 64) as u64
    };
    (0..count).map(place).collect()
}

impl Kernels {
    /// Bytes of `memory` read in sequence. Small memory is read again and again.
    pub fn read_rate(self, memory: &[u8]) -> f64 {
        const READ_BYTES: usize = 1 << 29;
        let times = (READ_BYTES / memory.len().max(1)).max(1);
        best((times * memory.len()) as u64, || {
            for _ in 0..times {
                black_box(self.read_sum(black_box(memory)));
            }
        })
    }

    /// [Lines](LINE) read from random places of `memory`.
    ///
    /// # Panics
    ///
    /// If `memory` is shorter than a line.
    pub fn random_read_rate(self, memory: &[u8]) -> f64 {
        const READS: u64 = 1 << 20;
        let places = random_places(READS, (memory.len() / LINE) as u64);
        let mut sum = [0; LINE];
        best(READS, || {
            let read = self.gather_xor(memory, LINE, &places, black_box(&mut sum));
            assert!(read.is_ok(), "the places are within the memory");
        })
    }

    /// Blocks of AES-128.
    pub fn aes_rate(self) -> f64 {
        const BLOCKS: u64 = 1 << 24;
        best(BLOCKS, || {
            black_box(self.aes_blocks(BLOCKS));
        })
    }

    /// Products of a byte and a 32-bit word, for eight queries at once with a matrix that fits into
    /// a cache.
    ///
    /// # Errors
    ///
    /// If there is no memory for the matrix.
    pub fn byte_product_rate(self) -> Result<f64, MemoryError> {
        const SIDE: usize = 1024;
        const TIMES: usize = 16;
        let matrix = TiledBytes::zeroed(SIDE, SIDE)?;
        let query = vec![0x0102_0304; SIDE];
        let mut answers = vec![vec![0; SIDE]; 8];
        Ok(best((TIMES * 8 * SIDE * SIDE) as u64, || {
            for _ in 0..TIMES {
                let mut answers: Vec<&mut [u32]> =
                    answers.iter_mut().map(Vec::as_mut_slice).collect();
                self.multiply(&matrix, &[&query[..]; 8], black_box(&mut answers), 1);
            }
        }))
    }

    /// Bytes of `memory` of which half of the [lines](LINE) are XORed. It should fit into a cache.
    pub fn xor_rate(self, memory: &[u8]) -> f64 {
        const TIMES: usize = 64;
        let chunk = Kernels::selected_xor_chunk_records(LINE);
        let mut sum = [0; LINE];
        best((TIMES * memory.len()) as u64, || {
            for _ in 0..TIMES {
                let half = |_: usize, _: usize, select: &mut [u128]| select.fill(u128::MAX / 3);
                self.xor_selected(memory, LINE, chunk, half, black_box(&mut [&mut sum[..]]), 1);
            }
        })
    }

    /// Hashes of the [lines](LINE) of `memory` by BLAKE3, many at once.
    pub fn short_hash_rate(self, memory: &[u8]) -> f64 {
        let mut outputs = vec![[0; 32]; memory.len() / LINE];
        best(outputs.len() as u64, || {
            self.blake3_keyed_many(&[7; 32], black_box(memory), LINE, black_box(&mut outputs));
        })
    }
}

/// Steps of a multiplication and an addition, of which each waits for the one before.
pub fn step_rate() -> f64 {
    const STEPS: u64 = 1 << 24;
    let mut value = 1u64;
    best(STEPS, || {
        for _ in 0..STEPS {
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_run_counts_and_places_are_places() {
        let mut runs = 0;
        assert!(best(1 << 20, || runs += 1) > 0.0);
        assert_eq!(runs, RUNS);
        assert!(random_places(1000, 7).iter().all(|place| *place < 7));
        let memory = filled(1 << 12).unwrap();
        assert_eq!((memory[LINE], memory[2 * LINE], memory[1]), (1, 2, 0));
        assert!(copy_rate(&memory).unwrap() > 0.0);
    }
}
