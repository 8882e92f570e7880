//! The LWE error: a discrete Gaussian of standard deviation 6.4 around zero, in constant time.
//!
//! Inversion of the cumulative distribution: a uniform 127-bit number `u` gives the magnitude, the count of thresholds
//! above it, and one more bit gives the sign. All thresholds are compared, always, without a branch, so the time does not
//! depend on the sample. With 127 bits the sampled distribution lies within 2^-119 of the exact one (statistical
//! distance: half an ulp for each of 84 thresholds), and the mass beyond the last threshold is below 2^-127.

use crate::SecretRng;
use zeroize::{Zeroize, Zeroizing};

/// `THRESHOLDS[k-1] = round(2^127 · P(|X| ≥ k))` for the discrete Gaussian X of σ = 6.4, k = 1..=84. Computed with
/// 80-digit arithmetic from P(X = x) ∝ exp(−x²/2σ²); the tests below recompute it in double precision.
const THRESHOLDS: [u128; 84] = [
    0x78056a5fcdaf06d3eb107d26fc5a6391,
    0x6841cfac6014173bec8ba48906eaf6cd,
    0x590f5262912d10b11b0c29f9d2a0a287,
    0x4ac330099d75b0887f4791f831d03992,
    0x3da2d1bf878ed361e49df49643771671,
    0x31e01338ca81285067264474cc192196,
    0x2797a365ee235caaf7a9733333a156ec,
    0x1ed17c78bd52c544e5a9ebcd6fc388f1,
    0x178328da6db786e093496e87565f0e81,
    0x1193564aba04319e11d6f9c4ac1d54dc,
    0x0cde1ea388334d985f20cb83c39ac5ad,
    0x09396f43a6a5a1e4d3b6a87d0a7b72be,
    0x0679102b5b136f6c0a31eddb59360f37,
    0x0471f21cab93027a1c86d552e18fcb99,
    0x02fc9639b8820aa7b76de4d3bc43c5bc,
    0x01f6895b9826186da3b0ab3b11ab010d,
    0x01430bf8412ce11035dd89c24d15f6e0,
    0x00cb12477ced3cffe83781acad98259c,
    0x007ccfa58b046e4cdb6496d876f0a47c,
    0x004afe30f36dc00ceacdfbcc8fcc0e6d,
    0x002c0b85ea9421897fbbf07c356ba62d,
    0x001948871cdd1df3f04ad0052ddf7095,
    0x000e2f033d660353aea31e516e75c042,
    0x0007c67adf12d115c7fea510d2ea80d4,
    0x00042a2bea1826e72c127fb23f0a78c2,
    0x00022df54e06266452a27bb2650f428c,
    0x00011d442be816cd4dfe547d16eab97d,
    0x00008e7a1d2b87ab60cf78d75e450002,
    0x000045830280366522ca29c8b1eadc50,
    0x0000212035511b0428ed55b23e5ae893,
    0x00000f6b2e7ec641f1a649f7ba0d546e,
    0x00000702664fbfd9091cc75b782b1336,
    0x0000031cadd80071773f1c046fe7e346,
    0x000001596e745750605bdbebe910ee8a,
    0x0000009243a0c3c90e208f39c449396b,
    0x0000003c7a5222fdf32b630620f766ad,
    0x000000186b2d6ceb87843899fff10c60,
    0x00000009a092bd7124ef6bb65c67844b,
    0x00000003b4c659b2cb0c5253fa86ebd7,
    0x0000000164a0874aeba91804b5c90d95,
    0x0000000082e21e0bcf3c460b9ffe8b47,
    0x000000002ee61bdb19bc4366b23af0c1,
    0x00000000106849ad1183f655fa6210b8,
    0x00000000059aa5d43078eab8bf0bb5f1,
    0x0000000001de66beaf64d2e7369f6031,
    0x00000000009bbe8d0e46cc5d9765fd8b,
    0x0000000000317fc4ed50aa6f4873e920,
    0x00000000000f5bb2d4adcbbd6ca9f7dd,
    0x000000000004a6e5b536d879264b3c51,
    0x00000000000160235fcd2fb6eaea0178,
    0x00000000000065a5643a4fa29e7d4aa0,
    0x0000000000001ca44f62645a00147130,
    0x00000000000007e0df7a8ad68c6579f9,
    0x000000000000021d8cc82cb383320aa5,
    0x000000000000008df18f36bcb9806bfe,
    0x0000000000000024510fbcbc4b9f588f,
    0x000000000000000911e6e666fabb4dd0,
    0x00000000000000023609e2acd2748247,
    0x000000000000000086b1a9b1899062f7,
    0x00000000000000001f4926f6f16df906,
    0x00000000000000000717d6de0960774c,
    0x00000000000000000191d8072c8e1707,
    0x00000000000000000056ccf78641df6a,
    0x000000000000000000124d0457aad966,
    0x00000000000000000003c4232b79d3be,
    0x00000000000000000000c1a958fc375f,
    0x0000000000000000000025f7e5190834,
    0x000000000000000000000743fdf5faf1,
    0x00000000000000000000015b664b5b7f,
    0x00000000000000000000003f54a3eeba,
    0x00000000000000000000000b44b5cb13,
    0x000000000000000000000001f4f87fae,
    0x00000000000000000000000054ea1f15,
    0x0000000000000000000000000e0c3eae,
    0x0000000000000000000000000244ac6e,
    0x000000000000000000000000005b828e,
    0x000000000000000000000000000e1345,
    0x00000000000000000000000000021cec,
    0x00000000000000000000000000004f41,
    0x00000000000000000000000000000b55,
    0x00000000000000000000000000000195,
    0x00000000000000000000000000000037,
    0x00000000000000000000000000000007,
    0x00000000000000000000000000000001,
];

/// Samples are drawn in chunks of this many, so that the randomness behind them is one small buffer, erased at once.
const CHUNK: usize = 256;

/// Fills `out` with independent errors, as words modulo 2^32.
pub fn sample_errors(rng: &mut SecretRng, out: &mut [u32]) {
    let mut coins = Zeroizing::new([0u8; CHUNK * 16]);
    for chunk in out.chunks_mut(CHUNK) {
        let coins = &mut coins[..chunk.len() * 16];
        rng.fill(coins);
        for (word, coins) in chunk.iter_mut().zip(coins.as_chunks::<16>().0) {
            *word = error_from_coins(u128::from_le_bytes(*coins));
        }
    }
}

/// The error that 128 uniform bits stand for: the lowest bit is the sign, the other 127 the place in the distribution.
fn error_from_coins(mut coins: u128) -> u32 {
    let mut place = coins >> 1;
    let mut negative = (coins & 1) as u32;
    let mut magnitude = 0u32;
    for threshold in THRESHOLDS {
        // The borrow of a subtraction, without a branch: 1 if place < threshold.
        magnitude += (place.wrapping_sub(threshold) >> 127) as u32;
    }
    let error = (magnitude ^ negative.wrapping_neg()).wrapping_add(negative);
    coins.zeroize();
    place.zeroize();
    negative.zeroize();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(|X| ≥ k) in double precision.
    fn tail(k: usize) -> f64 {
        let weight = |x: usize| (-((x * x) as f64) / (2.0 * 6.4 * 6.4)).exp();
        let total = weight(0) + 2.0 * (1..200).map(weight).sum::<f64>();
        2.0 * (k..200).map(weight).sum::<f64>() / total
    }

    #[test]
    fn thresholds_are_the_tails_of_the_gaussian() {
        let scale = 2f64.powi(127);
        for (place, threshold) in THRESHOLDS.iter().enumerate() {
            let expected = tail(place + 1) * scale;
            assert!(
                (*threshold as f64 - expected).abs() <= expected * 1e-9 + 1.0,
                "threshold {place}"
            );
        }
    }

    #[test]
    fn coins_at_the_edges_of_each_step_give_the_neighbouring_magnitudes() {
        for (place, threshold) in THRESHOLDS.iter().enumerate() {
            let below = error_from_coins((threshold - 1) << 1);
            let at = error_from_coins(threshold << 1);
            assert!(below as usize > place, "u just below threshold {place} counts it");
            assert_eq!(at as usize, place, "u at threshold {place} does not");
            assert_eq!(error_from_coins((threshold - 1) << 1 | 1), below.wrapping_neg());
        }
    }

    #[test]
    fn moments_and_tails_of_many_samples_match_theory() {
        const SAMPLES: usize = 1 << 20;
        let mut rng = SecretRng::from_os().unwrap();
        let mut errors = vec![0u32; SAMPLES];
        sample_errors(&mut rng, &mut errors);
        let errors: Vec<f64> = errors.iter().map(|e| f64::from(*e as i32)).collect();
        let mean = errors.iter().sum::<f64>() / SAMPLES as f64;
        let variance = errors.iter().map(|e| e * e).sum::<f64>() / SAMPLES as f64;
        // Six standard deviations of each estimator: a false alarm about once in 5·10^8 runs.
        assert!(mean.abs() < 6.0 * 6.4 / (SAMPLES as f64).sqrt(), "mean {mean}");
        let spread = 6.4f64.powi(2) * (2.0 / SAMPLES as f64).sqrt();
        assert!((variance - 6.4f64.powi(2)).abs() < 6.0 * spread, "variance {variance}");
        for k in [1, 3, 7, 13, 20] {
            let share =
                errors.iter().filter(|e| e.abs() >= k as f64).count() as f64 / SAMPLES as f64;
            let deviation = (tail(k) * (1.0 - tail(k)) / SAMPLES as f64).sqrt();
            assert!((share - tail(k)).abs() < 6.0 * deviation, "P(|X| >= {k}) = {share}");
        }
    }
}
