use super::{Numbers, all_kernels};
use crate::thresholds::Halves;

fn whole([high, low]: Halves) -> u128 {
    u128::from(high) << 63 | u128::from(low)
}

fn halves(number: u128) -> Halves {
    [(number >> 63) as u64, number as u64 & (u64::MAX >> 1)]
}

#[test]
fn thresholds_above_are_counted() {
    const END: u128 = 1 << 126;
    let mut numbers = Numbers(3);
    let mut thresholds: Vec<Halves> =
        (0..70).map(|_| [numbers.next() >> 1, numbers.next() >> 1]).collect();
    // Neighbours in the lower half, halves that are equal, and the ends.
    thresholds.extend([0, 1, END - 1, 1 << 63, (1 << 63) - 1, (1 << 63) + 1].map(halves));
    let near = |threshold: &Halves| {
        let threshold = whole(*threshold);
        [threshold.saturating_sub(1), threshold, (threshold + 1).min(END - 1)].map(halves)
    };
    let mut places: Vec<Halves> = thresholds.iter().flat_map(near).collect();
    places.extend((0..100).map(|_| [numbers.next() >> 1, numbers.next() >> 1]));
    for len in (0..50).chain([places.len()]) {
        let places = &places[..len];
        let [high, low] = [0, 1].map(|half| places.iter().map(|p| p[half]).collect::<Vec<_>>());
        let above = |place: &Halves| {
            thresholds.iter().filter(|threshold| whole(*place) < whole(**threshold)).count() as u64
        };
        let expected: Vec<u64> = places.iter().map(above).collect();
        for kernels in all_kernels() {
            let mut counts = vec![7; len];
            kernels.count_thresholds_above(&thresholds, &high, &low, &mut counts);
            assert_eq!(counts, expected, "{}: {len} places", kernels.arm());
        }
    }
}
