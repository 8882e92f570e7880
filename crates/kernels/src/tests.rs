//! One test function for each kernel. It runs every arm that this machine has, against an oracle
//! written here in the simplest way. A new arm is tested if it is listed in `Arm::ALL`.

mod authenticated_sum;
mod byte_matrix;
mod dispatch;
mod gather;
mod ggm_tree;
mod hash_lanes;
mod keystream;
mod memory;
mod permutations;
mod ring;
mod selected_xor;
mod strassen;
mod subset_hints;
mod swap_or_not;
mod thresholds;
mod yardstick;

use crate::{Arm, Kernels};

/// All kernels this machine can run, the portable ones first.
fn all_kernels() -> Vec<Kernels> {
    let kernels = Arm::available().into_iter().map(Kernels::with_arm);
    kernels.collect::<Result<_, _>>().expect("what is available can be had")
}

/// A fixed sequence of numbers (Steele, Lea and Flood's SplitMix64) with extreme values mixed in,
/// because mistakes in the digits of a word, and with saturating instructions, show there.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let byte = |n: u64| match n >> 62 {
            0 => [0, 255, 127, 128][n as usize % 4],
            _ => n as u8,
        };
        (0..len).map(|_| byte(self.next())).collect()
    }

    fn words(&mut self, len: usize) -> Vec<u32> {
        const EXTREME: [u32; 12] = [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0x7f7f_7f7f,
            0x8080_8080,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
        ];
        let word = |n: u64| match n >> 62 {
            0 => EXTREME[n as usize % EXTREME.len()],
            _ => n as u32,
        };
        (0..len).map(|_| word(self.next())).collect()
    }
}
