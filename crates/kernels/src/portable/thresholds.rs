//! Counting thresholds one by one. The loop works on arrays of lanes, so that a compiler can use
//! its vectors.

use crate::thresholds::{Place, Thresholds};

/// Places that are compared at once.
const LANES: usize = 16;

/// See [`Kernels::count_thresholds_above`](crate::Kernels::count_thresholds_above).
pub(crate) fn count_above(thresholds: &Thresholds, places: &[Place], samples: &mut [i8]) {
    let (places, last_places) = places.as_chunks::<LANES>();
    let (samples, last_samples) = samples.as_chunks_mut::<LANES>();
    for (places, samples) in places.iter().zip(samples) {
        count_in_lanes(thresholds, places, samples);
    }
    for (place, sample) in last_places.iter().zip(last_samples) {
        count_in_lanes(thresholds, std::array::from_ref(place), std::array::from_mut(sample));
    }
}

#[inline(always)]
fn count_in_lanes<const N: usize>(
    thresholds: &Thresholds,
    places: &[Place; N],
    samples: &mut [i8; N],
) {
    let (mut high, mut low, mut sums) = ([0u64; N], [0u64; N], [0u64; N]);
    for (lane, place) in places.iter().enumerate() {
        let place = u128::from_le_bytes(*place);
        (high[lane], low[lane]) = ((place >> 65) as u64, place as u64 >> 1);
    }
    for [high_threshold, low_threshold] in thresholds.halves() {
        for lane in 0..N {
            let borrow = low[lane].wrapping_sub(*low_threshold) >> 63;
            let difference = high[lane].wrapping_sub(*high_threshold).wrapping_sub(borrow);
            sums[lane] = sums[lane].wrapping_add(difference >> 63);
        }
    }
    for ((sample, sum), place) in samples.iter_mut().zip(sums).zip(places) {
        let sign = -((place[0] & 1) as i8);
        *sample = (sum as i8 ^ sign) - sign;
    }
}
