use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::Kernels;
use crate::permutations::MAX_PERMUTATION_LEN;

/// Permutations one after the other, and their inverses.
#[derive(Clone, PartialEq, Eq)]
struct Permutations {
    m: usize,
    forward: Vec<u16>,
    inverse: Vec<u16>,
}

impl Permutations {
    fn new(numbers: &mut Numbers, count: usize, m: usize) -> Permutations {
        let mut forward = Vec::with_capacity(count * m);
        for _ in 0..count {
            let mut permutation: Vec<u16> = (0..m).map(|x| x as u16).collect();
            for x in (1..m).rev() {
                permutation.swap(x, numbers.below(x + 1));
            }
            forward.extend(permutation);
        }
        let inverse = Permutations::inverse_of(&forward, m);
        Permutations { m, forward, inverse }
    }

    fn inverse_of(forward: &[u16], m: usize) -> Vec<u16> {
        let mut inverse = vec![0; forward.len()];
        for (forward, inverse) in forward.chunks(m).zip(inverse.chunks_mut(m)) {
            for (x, &y) in forward.iter().enumerate() {
                inverse[usize::from(y)] = x as u16;
            }
        }
        inverse
    }

    fn swap(&mut self, kernels: Kernels, a: u32, b: &[u32], skip: u32) -> [Vec<u16>; 2] {
        let [mut shown_a, mut shown_b] = [vec![9; b.len()], vec![9; b.len()]];
        kernels.swap_in_permutations(
            &mut self.forward,
            &mut self.inverse,
            self.m,
            a,
            b,
            &mut shown_a,
            &mut shown_b,
            skip,
        );
        [shown_a, shown_b]
    }

    /// The same, the plainest way: the inverse anew from the permutation.
    fn swap_plainly(&mut self, a: u32, b: &[u32], skip: u32) -> [Vec<u16>; 2] {
        let at = |x: &[u16], q: usize, place: u32| x[q * self.m + place as usize];
        let shown_a = (0..b.len()).map(|q| at(&self.forward, q, a)).collect();
        let shown_b = (0..b.len()).map(|q| at(&self.forward, q, b[q])).collect();
        for (q, &b) in b.iter().enumerate().filter(|&(q, _)| q != skip as usize) {
            self.forward.swap(q * self.m + a as usize, q * self.m + b as usize);
        }
        self.inverse = Permutations::inverse_of(&self.forward, self.m);
        [shown_a, shown_b]
    }
}

/// Several swaps one after the other, each skipping another permutation and one none; and in each some
/// numbers are exchanged with themselves.
fn check_swaps(seed: u64, count: usize, m: usize) {
    let mut numbers = Numbers(seed);
    let before = Permutations::new(&mut numbers, count, m);
    for kernels in all_kernels() {
        let mut found = before.clone();
        let mut expected = before.clone();
        for skip in [0, count / 2, count.saturating_sub(1), count, u32::MAX as usize] {
            let a = numbers.below(m) as u32;
            let place = |numbers: &mut Numbers| match numbers.below(4) {
                0 => a,
                1 => [0, m as u32 - 1][numbers.below(2)],
                _ => numbers.below(m) as u32,
            };
            let b: Vec<u32> = (0..count).map(|_| place(&mut numbers)).collect();
            let shown = found.swap(kernels, a, &b, skip as u32);
            let shape = format!("{}: {count} of {m}, {skip} skipped", kernels.arm());
            assert!(shown == expected.swap_plainly(a, &b, skip as u32), "{shape}: shown");
            assert!(found.forward == expected.forward, "{shape}: forward");
            assert!(found.inverse == expected.inverse, "{shape}: inverse");
        }
    }
}

/// Numbers are prefetched some permutations ahead, and inverses put right some behind.
#[test]
fn swaps_in_any_number_of_permutations() {
    for count in (0..=50).chain([100, 1000]) {
        check_swaps(count as u64, count, 37);
    }
}

#[test]
fn swaps_in_permutations_of_any_size() {
    for m in [1, 2, 3, 255, 256, 257, 32768, 32769, 65535, MAX_PERMUTATION_LEN] {
        check_swaps(m as u64, 3, m);
    }
}

#[test]
#[should_panic(expected = "below the number of elements")]
fn a_first_place_outside_panics() {
    Permutations::new(&mut Numbers(1), 2, 5).swap(Kernels::detect(), 5, &[0, 1], 0);
}

#[test]
#[should_panic(expected = "below the number of elements")]
fn a_second_place_outside_panics() {
    Permutations::new(&mut Numbers(1), 2, 5).swap(Kernels::detect(), 4, &[0, 5], 0);
}

#[test]
#[should_panic(expected = "one permutation, and one inverse")]
fn another_number_of_permutations_panics() {
    Permutations::new(&mut Numbers(1), 2, 5).swap(Kernels::detect(), 4, &[0, 1, 2], 0);
}

/// What is no permutation gives wrong results or a panic, never memory that is not its own.
#[test]
fn numbers_that_are_no_permutation_stay_within_bounds() {
    for kernels in all_kernels() {
        let mut constant = Permutations { m: 5, forward: vec![3; 10], inverse: vec![1000; 10] };
        constant.swap(kernels, 1, &[2, 1], 0);
        let caught = std::panic::catch_unwind(|| {
            let mut outside = Permutations { m: 5, forward: vec![5; 10], inverse: vec![0; 10] };
            outside.swap(kernels, 1, &[2, 1], 0)
        });
        assert!(caught.is_err(), "{}", kernels.arm());
    }
}

fn check_sums(seed: u64, record_len: usize, records: usize, len: usize) {
    let mut numbers = Numbers(seed);
    // One byte off any alignment, and the end of the partition is the end of its allocation.
    let partition = numbers.bytes(1 + records * record_len);
    let partition = &partition[1..];
    let permutation: Vec<u16> = (0..len).map(|_| numbers.below(records) as u16).collect();
    let before = numbers.bytes(len * record_len + 2);
    let mut expected = before.clone();
    for (x, &number) in permutation.iter().enumerate() {
        for i in 0..record_len {
            expected[1 + x * record_len + i] ^= partition[usize::from(number) * record_len + i];
        }
    }
    for kernels in all_kernels() {
        let mut found = before.clone();
        let inner = 1..found.len() - 1;
        let sums = &mut found[inner];
        kernels.xor_accumulate_permuted(partition, record_len, &permutation, sums);
        assert!(found == expected, "{}: {len} of {records} x {record_len}", kernels.arm());
    }
}

/// Records of 8, 16, 32 and 64 bytes have their own loops; others go in pieces of 64 bytes, words and bytes.
#[test]
fn permuted_records_of_any_length_are_added() {
    for record_len in (1..=130).chain([191, 192, 193, 511, 512, 513, 600, 4099]) {
        check_sums(record_len as u64, record_len, 20, 40);
    }
}

#[test]
fn permuted_partitions_of_any_size_are_added() {
    for record_len in [1, 8, 16, 32, 64, 20] {
        for len in (0..=20).chain([31, 32, 33]) {
            check_sums(len as u64, record_len, 1 + len, len);
        }
        check_sums(7, record_len, MAX_PERMUTATION_LEN, 1000);
    }
}

#[test]
fn numbers_of_no_record_panic() {
    for kernels in all_kernels() {
        for record_len in [1, 8, 20] {
            let caught = std::panic::catch_unwind(|| {
                let mut sums = vec![0; 2 * record_len];
                let partition = vec![0; 2 * record_len];
                kernels.xor_accumulate_permuted(&partition, record_len, &[1, 2], &mut sums);
            });
            assert!(caught.is_err(), "{}: {record_len}", kernels.arm());
        }
    }
}

#[test]
#[should_panic(expected = "one record for each element")]
fn sums_of_another_length_panic() {
    Kernels::detect().xor_accumulate_permuted(&[0; 20], 10, &[1, 0], &mut [0; 10]);
}

#[test]
#[should_panic(expected = "whole records")]
fn partitions_of_broken_records_panic() {
    Kernels::detect().xor_accumulate_permuted(&[0; 25], 10, &[1, 0], &mut [0; 20]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn swaps_on_any_shape(count in 0usize..70, m in 1usize..300, seed: u64) {
        check_swaps(seed, count, m);
    }

    #[test]
    fn sums_on_any_shape(
        record_len in 1usize..300,
        records in 1usize..100,
        len in 0usize..100,
        seed: u64,
    ) {
        check_sums(seed, record_len, records, len);
    }
}
