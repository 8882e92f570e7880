//! The instruction sets, which of them this processor has, and the dispatch from a kernel to its
//! arm.
//!
//! A value of [`Kernels`] proves that an arm can run here: the only way to make one is to ask the
//! processor. This makes calls into code for more than the baseline sound. So all such calls go
//! through the macros of this file.

use std::fmt;
use std::str::FromStr;

use crate::portable;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{avx2, avx512};

/// An implementation of all kernels for one instruction set. Ordered from slow to fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Arm {
    /// Plain Rust. Always available; the oracle for the others.
    Portable,
    /// x86-64 with AVX2, AES-NI, PCLMULQDQ and POPCNT. Some kernels also use vector AES of 256 bits
    /// where the processor has it.
    Avx2,
    /// x86-64 with AVX-512 (F, BW, VL, VBMI, VNNI), BMI2, GFNI, vector AES and VPCLMULQDQ.
    Avx512,
}

impl Arm {
    /// All arms, best last, whether or not this processor can run them.
    pub const ALL: [Arm; 3] = [Arm::Portable, Arm::Avx2, Arm::Avx512];

    /// The arms this processor can run, best last. Never empty.
    pub fn available() -> Vec<Arm> {
        Arm::ALL.into_iter().filter(|arm| arm.is_available()).collect()
    }

    /// Whether this processor can run the arm. Under Miri, which interprets no vector instructions,
    /// only the portable arm is available.
    pub fn is_available(self) -> bool {
        match self {
            Arm::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Arm::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("aes")
                    && is_x86_feature_detected!("pclmulqdq")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Arm::Avx512 => {
                Arm::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vnni")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("gfni")
                    && is_x86_feature_detected!("vaes")
                    && is_x86_feature_detected!("vpclmulqdq")
            }
            #[cfg(any(not(target_arch = "x86_64"), miri))]
            Arm::Avx2 | Arm::Avx512 => false,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Arm::Portable => "portable",
            Arm::Avx2 => "avx2",
            Arm::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that belongs to no arm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set {given:?}; valid are portable, avx2 and avx512")]
pub struct UnknownArm {
    given: String,
}

impl FromStr for Arm {
    type Err = UnknownArm;

    fn from_str(name: &str) -> Result<Arm, UnknownArm> {
        let known = Arm::ALL.into_iter().find(|arm| arm.name() == name);
        known.ok_or_else(|| UnknownArm { given: name.to_owned() })
    }
}

/// An arm that this processor cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this processor cannot run the {arm} kernels; it can run {}", available_names())]
pub struct ArmUnavailable {
    /// The arm asked for.
    pub arm: Arm,
}

fn available_names() -> String {
    Arm::available().into_iter().map(Arm::name).collect::<Vec<_>>().join(", ")
}

/// All kernels, in an arm that is known to run on this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    // Invariant: `arm.is_available()`. Private, so that only the constructors below set it.
    arm: Arm,
    // Invariant: if true, the processor has vector AES.
    #[cfg(target_arch = "x86_64")]
    vector_aes: bool,
}

impl Kernels {
    /// The best arm of this processor. Cheap: the standard library asks the processor once and
    /// remembers.
    pub fn detect() -> Kernels {
        let best = Arm::ALL.into_iter().rfind(|arm| arm.is_available());
        Kernels::of_available(best.unwrap_or(Arm::Portable))
    }

    /// A particular arm, for comparisons and tests.
    ///
    /// # Errors
    ///
    /// [`ArmUnavailable`] when this processor cannot run it.
    pub fn with_arm(arm: Arm) -> Result<Kernels, ArmUnavailable> {
        if arm.is_available() {
            Ok(Kernels::of_available(arm))
        } else {
            Err(ArmUnavailable { arm })
        }
    }

    fn of_available(arm: Arm) -> Kernels {
        Kernels {
            arm,
            #[cfg(target_arch = "x86_64")]
            vector_aes: !cfg!(miri) && is_x86_feature_detected!("vaes"),
        }
    }

    /// The same as on a processor without vector AES, which the AVX2 arm does not need.
    #[cfg(test)]
    pub(crate) fn without_vector_aes(self) -> Kernels {
        Kernels {
            #[cfg(target_arch = "x86_64")]
            vector_aes: false,
            ..self
        }
    }

    /// The arm in use.
    pub fn arm(self) -> Arm {
        self.arm
    }

    /// Whether the AVX2 arm may use vector AES.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_vector_aes(self) -> bool {
        self.vector_aes
    }
}

/// Calls the function of the same path in the module of the arm in use, as in
/// `on_arm!(kernels, gather::records(table, positions))`.
///
/// The caller must pass the right shapes; a wrong one panics in every arm. The portable form of
/// each function documents what it computes. Arguments must be plain values: they are evaluated
/// inside the unsafe block, so they must not contain unsafe code.
macro_rules! on_arm {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {{
        use $crate::portable;
        #[cfg(target_arch = "x86_64")]
        use $crate::x86_64::{avx2, avx512};
        match $kernels.arm() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the functions are safe except for the instructions they are compiled for, and
            // by the invariant of `Kernels` this processor has those of `arm`.
            $crate::dispatch::Arm::Avx512 => unsafe { avx512::$($function)::+($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::dispatch::Arm::Avx2 => unsafe { avx2::$($function)::+($($argument),*) },
            _ => portable::$($function)::+($($argument),*),
        }
    }};
}

/// The same for functions of which the AVX2 arm has a second form, for processors with vector AES:
/// the name after `or`.
macro_rules! on_arm_with_vector_aes {
    ($kernels:expr, $module:ident::$function:ident or $wide:ident ($($argument:expr),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        if $kernels.arm() == $crate::dispatch::Arm::Avx2 && $kernels.has_vector_aes() {
            // SAFETY: as above; by the other invariant of `Kernels` the processor has vector AES.
            unsafe { $crate::x86_64::avx2::$module::$wide($($argument),*) }
        } else {
            $crate::dispatch::on_arm!($kernels, $module::$function($($argument),*))
        }
        #[cfg(not(target_arch = "x86_64"))]
        $crate::dispatch::on_arm!($kernels, $module::$function($($argument),*))
    }};
}

/// The same for functions for which only AVX-512 has instructions. The AVX2 arm uses the portable
/// one.
macro_rules! on_avx512 {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {{
        use $crate::portable;
        #[cfg(target_arch = "x86_64")]
        use $crate::x86_64::avx512;
        match $kernels.arm() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::dispatch::Arm::Avx512 => unsafe { avx512::$($function)::+($($argument),*) },
            _ => portable::$($function)::+($($argument),*),
        }
    }};
}

/// The same for functions that need only the baseline of x86-64, which has prefetching: one for
/// both vector arms.
macro_rules! on_x86_64 {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {{
        use $crate::portable;
        #[cfg(target_arch = "x86_64")]
        use $crate::x86_64;
        match $kernels.arm() {
            #[cfg(target_arch = "x86_64")]
            $crate::dispatch::Arm::Avx512 | $crate::dispatch::Arm::Avx2 => {
                x86_64::$($function)::+($($argument),*)
            }
            _ => portable::$($function)::+($($argument),*),
        }
    }};
}

pub(crate) use {on_arm, on_arm_with_vector_aes, on_avx512, on_x86_64};

/// A few scalar instructions, compiled for the baseline in every arm.
impl Kernels {
    pub(crate) fn prepare_group(self, words: [u32; 4]) -> [u32; 4] {
        match self.arm {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512 => avx512::byte_matrix::prepare_group(words),
            #[cfg(target_arch = "x86_64")]
            Arm::Avx2 => avx2::byte_matrix::prepare_group(words),
            _ => portable::byte_matrix::prepare_group(words),
        }
    }

    pub(crate) fn prepare_wide(self, words: [u32; 4]) -> [u32; 4] {
        match self.arm {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512 | Arm::Avx2 => avx2::byte_matrix::prepare_group(words),
            _ => portable::strassen::prepare_wide(words),
        }
    }
}
