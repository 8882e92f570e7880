//! The LWE error: samples a discrete Gaussian around zero, with the standard deviation of an
//! [`ErrorWidth`], in constant time.
//!
//! An error is `w₁·X₁ + w₂·X₂`, where `w₁` and `w₂` are the width's weights and `X₁`, `X₂` two
//! samples of one *base*, the discrete Gaussian of deviation [`BASE_DEVIATION`]. Such a sum is the
//! discrete Gaussian of deviation 8.45·√(w₁² + w₂²), up to a share of 2^-117 for the widest error.
//! For weights without a common divisor, the share is 2·exp(−2π²·8.45²/(w₁² + w₂²)), because a
//! Gaussian of deviation 8.45/√(w₁² + w₂²) is so far from smooth on the integers (Micciancio and
//! Walter, *Gaussian Sampling over the Integers*, CRYPTO 2017).
//!
//! The base is sampled by inversion of its cumulative distribution: a uniform 126-bit number gives
//! the magnitude, the count of thresholds above it, and one more bit gives the sign. The count
//! takes the same steps for every number, without a branch: see [`privet_kernels::thresholds`]. So
//! the time does not depend on the sample. Thresholds are rounded down, so no magnitude is reached
//! more often than by the Gaussian itself: proofs about the Gaussian's tails hold for the samples.
//! The largest magnitude is 110, and the mass beyond is below 2^-126. All in all the errors lie
//! within 2^-116 of the discrete Gaussian (statistical distance).

use super::ErrorWidth;
use crate::SecretRng;
use privet_kernels::Kernels;
use privet_kernels::thresholds::{Place, Thresholds};
use zeroize::{Zeroize, Zeroizing};

/// Standard deviation of the base.
pub(super) const BASE_DEVIATION: f64 = 8.45;

/// `THRESHOLDS[k-1] = ⌊2^126 · P(|X| ≥ k)⌋` for the discrete Gaussian X of deviation 8.45. Computed
/// with 100-digit arithmetic from P(X = x) ∝ exp(−x²/2σ²); the tests below recompute it in double
/// precision.
const THRESHOLDS: [u128; 110] = [
    0x3cfa7a1521f68aeac30dd17a506af0b0,
    0x36fa39e1147c8b8bfdef6b6dec3573cc,
    0x3119e9660d733902593e15c5acaa054d,
    0x2b6d5b2db72739c433e067dfee202a98,
    0x260648f12bb3f835ce8663494225a7dc,
    0x20f3b0684ba777d0927d90c220686605,
    0x1c415dbe475cda29f8a168bd028f69e7,
    0x17f7a919db7d7577be06c31307ac07b2,
    0x141b683a49e74235b07eafe04ef1fac9,
    0x10ae10f0c28034d65826a0c6304a694c,
    0x0dae05a744bad1bc4e308e3dd2599b89,
    0x0b1702847b8d865966ea288ff48b0d01,
    0x08e2a03dbcf537b0e3a521df2141d2c3,
    0x0708e15465a58c1af089c4c43ae65e76,
    0x0580bf360adc586e2d745961bdb7fbd3,
    0x0440ae47c3b217683595fbddf4eb7da7,
    0x033f1203c3a5e2c3fabc466a0477f31b,
    0x02729cb042a479ef948235d83397a522,
    0x01d2988f47ecfb08dd4c3da3ece2eb35,
    0x01571a7de778bb97e6041277fd543e8d,
    0x00f91fa6ae9a25beb47dfe5608762b11,
    0x00b29919df0af1241f9a9299ae56a66b,
    0x007e68cc5ee24a3748e6f64896c91b2a,
    0x005853b82ac7454a91f6861e2fc9669c,
    0x003cecb4a1d4b47b5d76407590a19259,
    0x00297b3508d0d3f26aefc5173237680b,
    0x001be08b6ef0a61cc0b173efe18abe3f,
    0x00127dae161b1f66c7ca70681b34947e,
    0x000c1ae10badd50b33f0bc01e6903b5c,
    0x0007d21a4786eadc69572e8b9bb182f0,
    0x0004fc84384863ad80b52e4bc46062f1,
    0x0003232bf870a07c20315f06ad742470,
    0x0001f2ac9bc28435a5c2af6848413848,
    0x00013184bdadc176c3fa2b92e5ba9340,
    0x0000b8b2169dbad22a146850467d77ba,
    0x00006e2b694b5f698a00f380514f9b7c,
    0x000040d6f28054ff2325f66651b2fb61,
    0x000025a6c819878c2aef6032fad3161c,
    0x000015923f5d585e78f09f39ec6a6179,
    0x00000c316ab9b94a941be2c93c3b7c2f,
    0x000006ccafaaa0b1b8416efc782d9dfb,
    0x000003bda9f91648f5056bd46ad97d23,
    0x00000207c83cfc9cf5c3b3a0dc46c132,
    0x0000011650c151a3b5d05387e9dc9441,
    0x000000930321387518ed9ce13a30b30b,
    0x0000004c9b220be5ed64ec0d497b3468,
    0x0000002760e0dda0b07046631c556179,
    0x00000013f7cda1d5d5659645f54eba12,
    0x00000009fcf5baac3fc32ba1d25997be,
    0x00000004eda8b5705f960c9170f1f1fd,
    0x000000026613bf9d4f3df7a6e77fea1d,
    0x0000000126d2b82ec437052b5184f9d6,
    0x000000008b9f273c3dc9300553010480,
    0x000000004138c339a3b0c04bd8a0ec91,
    0x000000001e0d5890796e0f1e3ab5c97c,
    0x000000000da8885202af877dffd4bb8b,
    0x00000000061f74855df3539f3449c49b,
    0x0000000002b514c217911bf25ffef89f,
    0x00000000012e461d2f67485502adaa43,
    0x0000000000820781e7d7ba32d01388a0,
    0x0000000000372b82e3600db583156d6b,
    0x0000000000171676b9030ac9852c1d4a,
    0x00000000000987941a89a56a7f5014c0,
    0x000000000003e12916315a238942d551,
    0x0000000000018ec7803c0ac4bda4dde7,
    0x0000000000009decdd59f93e8f10b4d3,
    0x0000000000003daf25d03b5f6d5038ec,
    0x00000000000017c343032dbe718cf3e9,
    0x00000000000009074e7b23ec20d81fb1,
    0x00000000000003621ce837f57308c363,
    0x00000000000001401980c4d794f96239,
    0x0000000000000074ad7486b03d36d0be,
    0x0000000000000029f1e3c84a16fbec9d,
    0x000000000000000edf2210f4b6b4ee45,
    0x0000000000000005334270e7f9e68094,
    0x0000000000000001cb1aa2b247121536,
    0x00000000000000009c265982e94e2dbd,
    0x00000000000000003460dce44a7c24b6,
    0x00000000000000001153e4985336acf9,
    0x000000000000000005a7430d15d0c482,
    0x000000000000000001d1ae5eb2446a6b,
    0x00000000000000000093c6ac142bc1db,
    0x0000000000000000002e3f7698a503bc,
    0x0000000000000000000e4630901e9eb4,
    0x00000000000000000004584b7d9e4fc7,
    0x000000000000000000014de691544ce5,
    0x0000000000000000000062d9e677aa37,
    0x000000000000000000001cdc6eeeb501,
    0x00000000000000000000084f64a729d1,
    0x00000000000000000000025c18e5d321,
    0x0000000000000000000000a92c0a3714,
    0x00000000000000000000002eb891147b,
    0x00000000000000000000000cb9953cb4,
    0x0000000000000000000000036afb2db1,
    0x000000000000000000000000e7c58f99,
    0x0000000000000000000000003c8b92b8,
    0x0000000000000000000000000f98f791,
    0x00000000000000000000000003f67151,
    0x00000000000000000000000000fe2a01,
    0x000000000000000000000000003ecca0,
    0x000000000000000000000000000f4d51,
    0x0000000000000000000000000003ad50,
    0x0000000000000000000000000000df10,
    0x00000000000000000000000000003421,
    0x00000000000000000000000000000c03,
    0x000000000000000000000000000002ba,
    0x0000000000000000000000000000009c,
    0x00000000000000000000000000000022,
    0x00000000000000000000000000000007,
    0x00000000000000000000000000000001,
];

/// The thresholds in the kernel's form.
static PREPARED: Thresholds = Thresholds::new(&THRESHOLDS);

/// Errors are drawn in chunks of this many, so that a few small buffers are enough.
const CHUNK: usize = 256;

/// All values between the uniform bytes and the errors. They are secret, and erased when dropped.
struct Buffers {
    places: [Place; 2 * CHUNK],
    samples: [i8; 2 * CHUNK],
}

impl Zeroize for Buffers {
    fn zeroize(&mut self) {
        self.places.zeroize();
        self.samples.zeroize();
    }
}

/// Fills `out` with independent errors of the given width, as words modulo 2^32.
///
/// Sixteen uniform bytes make a sample of the base. An error without a second weight takes one
/// sample.
pub fn sample_errors(kernels: Kernels, width: ErrorWidth, rng: &mut SecretRng, out: &mut [u32]) {
    let mut buffers =
        Zeroizing::new(Buffers { places: [[0; 16]; 2 * CHUNK], samples: [0; 2 * CHUNK] });
    let Buffers { places, samples } = &mut *buffers;
    for errors in out.chunks_mut(CHUNK) {
        let count = samples_of(width) * errors.len();
        let (places, samples) = (&mut places[..count], &mut samples[..count]);
        rng.fill(places.as_flattened_mut());
        errors_at(kernels, width, places, samples, errors);
    }
}

/// Samples of the base in an error.
fn samples_of(width: ErrorWidth) -> usize {
    if width.weights()[1] == 0 { 1 } else { 2 }
}

/// The errors of uniform places, as many for each as it has samples.
fn errors_at(
    kernels: Kernels,
    width: ErrorWidth,
    places: &[Place],
    samples: &mut [i8],
    errors: &mut [u32],
) {
    kernels.count_thresholds_above(&PREPARED, places, samples);
    match width.weights() {
        [weight, 0] => {
            for (error, sample) in errors.iter_mut().zip(samples) {
                *error = weight.wrapping_mul(i32::from(*sample) as u32);
            }
        }
        weights => {
            for (error, samples) in errors.iter_mut().zip(samples.as_chunks::<2>().0) {
                let [one, other] = samples.map(|sample| i32::from(sample) as u32);
                *error = weights[0].wrapping_mul(one).wrapping_add(weights[1].wrapping_mul(other));
            }
        }
    }
}

#[cfg(test)]
mod tests;
