use super::{Numbers, all_kernels};
use crate::thresholds::{MOST_THRESHOLDS, Place, Thresholds};

const END: u128 = 1 << 126;

/// The place of a number: `bits` are its sign, and the bit that is not used.
fn place(number: u128, bits: u64) -> Place {
    let [high, low] = [(number >> 63) as u64, number as u64 & (u64::MAX >> 1)];
    let halves = [high << 1 | bits >> 1 & 1, low << 1 | bits & 1];
    (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_le_bytes()
}

/// So many thresholds, the largest first: random ones of all lengths, neighbours in the lower half,
/// halves that are equal, and the ends.
fn some_thresholds(count: usize, numbers: &mut Numbers) -> Vec<u128> {
    let mut thresholds = vec![0, 1, END - 1, 1 << 63, (1 << 63) - 1, (1 << 63) + 1, 1 << 63];
    thresholds.extend((7..count).map(|_| {
        let number = u128::from(numbers.next()) << 62 | u128::from(numbers.next()) >> 2;
        number >> (numbers.next() % 126)
    }));
    thresholds.truncate(count);
    thresholds.sort_by(|a, b| b.cmp(a));
    thresholds
}

#[test]
fn thresholds_above_are_counted() {
    let mut numbers = Numbers(3);
    for count in [0, 1, 2, 63, 64, 65, 110, MOST_THRESHOLDS] {
        let thresholds = some_thresholds(count, &mut numbers);
        let prepared = Thresholds::new(&thresholds);
        let near = |threshold: &u128| {
            [threshold.saturating_sub(1), *threshold, (threshold + 1).min(END - 1)]
        };
        let mut wanted: Vec<u128> = thresholds.iter().flat_map(near).collect();
        wanted.extend(
            (0..150).map(|_| u128::from(numbers.next()) << 62 | u128::from(numbers.next()) >> 2),
        );
        let above = |number: &u128| thresholds.iter().filter(|t| number < t).count() as i8;
        let bits: Vec<u64> = wanted.iter().map(|_| numbers.next()).collect();
        let places: Vec<Place> =
            wanted.iter().zip(&bits).map(|(w, bits)| place(*w, *bits)).collect();
        let signed = |(count, bits): (i8, &u64)| if bits & 1 == 1 { -count } else { count };
        let expected: Vec<i8> = wanted.iter().map(above).zip(&bits).map(signed).collect();
        for len in [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, places.len()] {
            // The last ones, so that each place is in each position.
            let first = places.len() - len;
            for kernels in all_kernels() {
                let mut samples = vec![7; len];
                kernels.count_thresholds_above(&prepared, &places[first..], &mut samples);
                assert_eq!(samples, expected[first..], "{}: {count}, {len}", kernels.arm());
            }
        }
    }
}

#[test]
fn thresholds_out_of_order_are_refused() {
    for wrong in [&[1, 2][..], &[END], &[1; MOST_THRESHOLDS + 1]] {
        assert!(std::panic::catch_unwind(|| Thresholds::new(wrong)).is_err());
    }
}
