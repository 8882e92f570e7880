//! Carry-less products from the processor's ordinary multiplication, which takes the same time for
//! all numbers. There are no tables.

use crate::authenticated_sum::{ELEMENT_BYTES, LANES, Lanes};

/// Adds `records` to the sums, each selected by the lowest bit of its node for the values, and
/// times its leaf for the tags. There are as many nodes and leaves as records.
pub(crate) fn accumulate(
    nodes: &[u128],
    leaves: &[u128],
    records: &[u8],
    record_len: usize,
    sums: &mut [Lanes],
) {
    let records = records.chunks_exact(record_len);
    for ((record, node), leaf) in records.zip(nodes).zip(leaves) {
        let selected = (node & 1).wrapping_neg();
        for (place, bytes) in record.chunks(ELEMENT_BYTES).enumerate() {
            let element = element(bytes);
            let (sums, lane) = (&mut sums[place / LANES], place % LANES);
            let [low, middle, high] = product(*leaf, element);
            sums.values[lane] ^= selected & element;
            sums.lows[lane] ^= low;
            sums.middles[lane] ^= middle;
            sums.highs[lane] ^= high;
        }
    }
}

/// At most sixteen bytes, padded with zeros.
fn element(bytes: &[u8]) -> u128 {
    let mut padded = [0; ELEMENT_BYTES];
    padded[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(padded)
}

/// The three parts of a product: see [`Lanes`].
fn product(one: u128, other: u128) -> [u128; 3] {
    // Takes the halves of each; the casts truncate on purpose.
    let [(low, high), (other_low, other_high)] =
        [one, other].map(|number| (number as u64, (number >> 64) as u64));
    [
        carryless(low, other_low),
        carryless(low, other_high) ^ carryless(high, other_low),
        carryless(high, other_high),
    ]
}

/// The product of two polynomials over the field of two elements.
///
/// If only every fifth bit of the factors is set, at most 13 ones meet in one place of an ordinary
/// product. Their carry ends before the next place of the same kind. So the lowest of each five
/// bits is their sum without carries. Each factor is cut into five such numbers.
fn carryless(one: u64, other: u64) -> u128 {
    const STRIDE: usize = 5;
    const EVERY_FIFTH: u128 = 0x2108_4210_8421_0842_1084_2108_4210_8421;
    let cut = |number: u64| -> [u128; STRIDE] {
        std::array::from_fn(|place| u128::from(number) & EVERY_FIFTH << place)
    };
    let (ones, others) = (cut(one), cut(other));
    (0..STRIDE).fold(0, |product, place| {
        let meets = |i: usize| ones[i] * others[(place + STRIDE - i) % STRIDE];
        let met = (0..STRIDE).fold(0, |met, i| met ^ meets(i));
        product | (met & EVERY_FIFTH << place)
    })
}
