//! As the tests of `privet-kernels`: every arm that this machine has, against an oracle written in
//! the simplest way.

mod bls12_381;
mod line_reads;
mod subset_sums;

use privet_kernels::{Arm, Kernels};

/// All kernels this machine can run, the portable ones first.
fn all_kernels() -> Vec<Kernels> {
    let kernels = Arm::available().into_iter().map(Kernels::with_arm);
    kernels.collect::<Result<_, _>>().expect("what is available can be had")
}

/// A fixed sequence of numbers (Steele, Lea and Flood's SplitMix64). A quarter of its bytes are
/// extreme values.
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
}
