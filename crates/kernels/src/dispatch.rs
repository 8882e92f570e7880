//! Which instruction sets there are, which this processor has, and the way from a kernel to its arm.
//!
//! [`Kernels`] is a proof that an arm may be used here: it can only be made by asking the processor.
//! That is what makes the calls below into code compiled for more than the baseline sound, and why
//! they all stand in this file and the one below it.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::authenticated_sum::Lanes;
use crate::byte_matrix::WideGroup;
use crate::ggm_tree::TreeKeys;
use crate::hash_lanes::Inputs;
use crate::keystream::GROUP_ROWS;
use crate::line_reads::{LineBits, LineBytes, LineQuery, LineReads};
use crate::portable;
use crate::selected_xor::{Ahead, Bits, EIGHT, LINE};
use crate::thresholds::Halves;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{self, avx2, avx512};

/// An implementation of all kernels for one instruction set. Ordered from slow to fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Arm {
    /// Plain Rust. Always available; the oracle for the others.
    Portable,
    /// x86-64 with AVX2, AES-NI, PCLMULQDQ and POPCNT.
    Avx2,
    /// x86-64 with AVX-512 (F, BW, VL, VBMI, VNNI), BMI2, GFNI, vector AES and VPCLMULQDQ.
    Avx512,
}

impl Arm {
    /// Every arm there is, best last, whether or not this processor has it.
    pub const ALL: [Arm; 3] = [Arm::Portable, Arm::Avx2, Arm::Avx512];

    /// The arms this processor can run, best last. Never empty.
    pub fn available() -> Vec<Arm> {
        Arm::ALL.into_iter().filter(|arm| arm.is_available()).collect()
    }

    /// Whether this processor can run the arm. Under Miri, which interprets no vector instructions,
    /// only the portable arm is.
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

/// A name that is no arm's.
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
}

impl Kernels {
    /// The best arm of this processor. Cheap: the standard library asks the processor once and
    /// remembers.
    pub fn detect() -> Kernels {
        let best = Arm::ALL.into_iter().rfind(|arm| arm.is_available());
        Kernels { arm: best.unwrap_or(Arm::Portable) }
    }

    /// A particular arm, for comparisons and tests.
    ///
    /// # Errors
    ///
    /// [`ArmUnavailable`] when this processor cannot run it.
    pub fn with_arm(arm: Arm) -> Result<Kernels, ArmUnavailable> {
        if arm.is_available() { Ok(Kernels { arm }) } else { Err(ArmUnavailable { arm }) }
    }

    /// The arm in use.
    pub fn arm(self) -> Arm {
        self.arm
    }
}

/// Calls the function of the same path in the module of the arm in use.
macro_rules! on_arm {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {
        match $kernels.arm {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the functions are safe but for the instructions they are compiled for, and by the
            // invariant of `Kernels` this processor has those of `arm`.
            Arm::Avx512 => unsafe { avx512::$($function)::+($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Arm::Avx2 => unsafe { avx2::$($function)::+($($argument),*) },
            _ => portable::$($function)::+($($argument),*),
        }
    };
}

/// The same for functions that only AVX-512 has instructions for; the AVX2 arm takes the portable one.
macro_rules! on_avx512 {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {
        match $kernels.arm {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Arm::Avx512 => unsafe { avx512::$($function)::+($($argument),*) },
            _ => portable::$($function)::+($($argument),*),
        }
    };
}

/// The same for functions that need only the baseline of x86-64, which has prefetching: one for both
/// vector arms.
macro_rules! on_x86_64 {
    ($kernels:expr, $($function:ident)::+ ( $($argument:expr),* $(,)? )) => {
        match $kernels.arm {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512 | Arm::Avx2 => x86_64::$($function)::+($($argument),*),
            _ => portable::$($function)::+($($argument),*),
        }
    };
}

mod subset_hints;

/// One method per kernel, for the modules of this crate. Shapes are the caller's duty, but a wrong one
/// panics in every arm; what each kernel computes is written at its portable form.
impl Kernels {
    pub(crate) fn tile_rows(
        self,
        columns: &[&[u8]],
        first_row: usize,
        panels: &mut [u8],
        stride: usize,
        offset: usize,
    ) {
        on_arm!(self, byte_matrix::tile_rows(columns, first_row, panels, stride, offset));
    }

    pub(crate) fn prepare_group(self, words: [u32; 4]) -> [u32; 4] {
        // Compiled for the baseline in every arm: a few scalar instructions.
        match self.arm {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512 => avx512::byte_matrix::prepare_group(words),
            #[cfg(target_arch = "x86_64")]
            Arm::Avx2 => avx2::byte_matrix::prepare_group(words),
            _ => portable::byte_matrix::prepare_group(words),
        }
    }

    pub(crate) fn multiply_chunk(
        self,
        chunk: &[[u8; 256]],
        prepared: &[[u32; 4]],
        sums: &mut [[u32; 64]],
        ahead: usize,
    ) {
        on_arm!(self, byte_matrix::multiply_chunk(chunk, prepared, sums, ahead));
    }

    pub(crate) fn prepare_wide(self, words: [u32; 4]) -> [u32; 4] {
        match self.arm {
            #[cfg(target_arch = "x86_64")]
            Arm::Avx512 | Arm::Avx2 => avx2::byte_matrix::prepare_group(words),
            _ => portable::strassen::prepare_wide(words),
        }
    }

    pub(crate) fn sum_groups(
        self,
        plus: &[&[[u8; 256]]],
        minus: &[&[[u8; 256]]],
        out: &mut [WideGroup],
    ) {
        on_arm!(self, strassen::sum_groups(plus, minus, out));
    }

    pub(crate) fn sum_words(self, words: &[u32], places: &[(usize, bool)], out: &mut [u32]) {
        on_arm!(self, strassen::sum_words(words, places, out));
    }

    pub(crate) fn accumulate_words(self, words: &[u32], minus: bool, out: &mut [u32]) {
        on_arm!(self, strassen::accumulate_words(words, minus, out));
    }

    pub(crate) fn multiply_wide(
        self,
        wide: &[WideGroup],
        prepared: &[[u32; 4]],
        sums: &mut [[u32; 64]],
    ) {
        on_arm!(self, strassen::multiply_wide(wide, prepared, sums));
    }

    pub(crate) fn aes128_ctr_words_dispatch(
        self,
        key: &[u8; 16],
        first_block: u64,
        out: &mut [u32],
    ) {
        on_arm!(self, keystream::aes128_ctr_words(key, first_block, out));
    }

    pub(crate) fn keystream_times_vector_dispatch(
        self,
        key: &[u8; 16],
        first_block: u64,
        vector: &[u32],
        out: &mut [u32],
    ) {
        on_arm!(self, keystream::keystream_times_vector(key, first_block, vector, out));
    }

    pub(crate) fn vectors_times_keystream_dispatch(
        self,
        key: &[u8; 16],
        first_block: u64,
        row_blocks: u64,
        vectors: &[[u32; GROUP_ROWS]],
        out: &mut [&mut [u32]],
    ) {
        on_arm!(
            self,
            keystream::vectors_times_keystream(key, first_block, row_blocks, vectors, out)
        );
    }

    pub(crate) fn words_times_vector_dispatch(
        self,
        matrix: &[u32],
        vector: &[u32],
        out: &mut [u32],
    ) {
        on_arm!(self, keystream::words_times_vector(matrix, vector, out));
    }

    pub(crate) fn ggm_expand_dispatch(
        self,
        keys: &TreeKeys,
        parents: &[u128],
        corrections: [u128; 2],
        children: &mut [u128],
    ) {
        on_arm!(self, ggm_tree::expand(keys, parents, corrections, children));
    }

    pub(crate) fn blake3_keyed_dispatch(
        self,
        key: &[u8; 32],
        inputs: &Inputs<'_>,
        outputs: &mut [[u8; 32]],
    ) {
        on_arm!(self, hash_lanes::blake3_keyed(key, inputs, outputs));
    }

    pub(crate) fn ggm_convert_dispatch(
        self,
        keys: &TreeKeys,
        nodes: &[u128],
        correction: u128,
        leaves: &mut [u128],
    ) {
        on_arm!(self, ggm_tree::convert(keys, nodes, correction, leaves));
    }

    pub(crate) fn accumulate_authenticated(
        self,
        nodes: &[u128],
        leaves: &[u128],
        records: &[u8],
        record_len: usize,
        sums: &mut [Lanes],
    ) {
        on_arm!(self, authenticated_sum::accumulate(nodes, leaves, records, record_len, sums));
    }

    pub(crate) fn xor_narrow(
        self,
        records: &[u8],
        pattern: &[[u8; LINE]],
        bits: Bits,
        sums: &mut [[u8; LINE]],
    ) {
        on_arm!(self, selected_xor::one_by_one::narrow(records, pattern, bits, sums));
    }

    pub(crate) fn xor_wide(
        self,
        records: &[u8],
        record_len: usize,
        columns: Range<usize>,
        bits: Bits,
        sums: &mut [[u8; LINE]],
    ) {
        on_arm!(self, selected_xor::one_by_one::wide(records, record_len, columns, bits, sums));
    }

    pub(crate) fn interleave_selections(self, bits: &[u128], transposed: bool, out: &mut [u64]) {
        on_avx512!(self, selected_xor::by_eight::interleave(bits, transposed, out));
    }

    pub(crate) fn stage_short(
        self,
        records: &[u8],
        tile_bytes: usize,
        order: &[u8; LINE],
        out: &mut [[u8; LINE]],
        ahead: Ahead,
    ) {
        on_avx512!(
            self,
            selected_xor::by_eight::stage_short(records, tile_bytes, order, out, ahead)
        );
    }

    pub(crate) fn stage_blocks(
        self,
        records: &[u8],
        record_len: usize,
        groups: usize,
        order: &[u8; LINE],
        out: &mut [[u8; LINE]],
        ahead: Ahead,
    ) {
        on_avx512!(
            self,
            selected_xor::by_eight::stage_blocks(records, record_len, groups, order, out, ahead)
        );
    }

    pub(crate) fn stage_rows(
        self,
        records: &[u8],
        record_len: usize,
        column: usize,
        out: &mut [[u8; LINE]],
        ahead: Ahead,
    ) {
        on_avx512!(
            self,
            selected_xor::by_eight::stage_rows(records, record_len, column, out, ahead)
        );
    }

    pub(crate) fn multiply_matrices(
        self,
        matrices: &[[u8; LINE]],
        words: &[u64],
        groups: usize,
        group_of_word: &[u64; EIGHT],
        sums: &mut [[u8; LINE]],
    ) {
        on_avx512!(
            self,
            selected_xor::by_eight::multiply(matrices, words, groups, group_of_word, sums)
        );
    }

    pub(crate) fn sum_block(self, block: &mut [u8], entry_len: usize) {
        on_arm!(self, subset_sums::sum_block(block, entry_len));
    }

    pub(crate) fn sum_tile(self, rows: &mut [&mut [u8]], stage: &mut Vec<u8>) {
        on_arm!(self, subset_sums::sum_tile(rows, stage));
    }

    pub(crate) fn line_bytes(
        self,
        lines: &[[u8; LINE]],
        reads: &LineReads<LineBytes>,
        queries: &mut [LineQuery<'_>],
    ) {
        on_arm!(self, line_reads::bytes(lines, reads, queries));
    }

    pub(crate) fn line_bits(
        self,
        lines: &[[u8; LINE]],
        reads: &LineReads<LineBits>,
        queries: &mut [LineQuery<'_>],
    ) {
        on_arm!(self, line_reads::bits(lines, reads, queries));
    }

    pub(crate) fn gather_records_dispatch(
        self,
        records: &[u8],
        record_len: usize,
        positions: &[u64],
        out: &mut [u8],
    ) {
        on_x86_64!(self, gather::records(records, record_len, positions, out));
    }

    pub(crate) fn xor_accumulate_permuted_dispatch(
        self,
        partition: &[u8],
        record_len: usize,
        permutation: &[u16],
        sums: &mut [u8],
    ) {
        on_arm!(self, permutations::xor_accumulate(partition, record_len, permutation, sums));
    }

    pub(crate) fn count_thresholds_above_dispatch(
        self,
        table: &[Halves],
        high: &[u64],
        low: &[u64],
        counts: &mut [u64],
    ) {
        on_arm!(self, thresholds::count_above(table, high, low, counts));
    }

    pub(crate) fn read_sum_dispatch(self, bytes: &[u8]) -> u64 {
        on_arm!(self, yardstick::read_sum(bytes))
    }

    pub(crate) fn gather_xor_dispatch(
        self,
        table: &[u8],
        record_len: usize,
        positions: &[u64],
        out: &mut [u8],
    ) {
        on_arm!(self, yardstick::gather_xor(table, record_len, positions, out));
    }

    pub(crate) fn aes_blocks_dispatch(self, key: &[u8; 16], blocks: u64) -> [u8; 16] {
        on_arm!(self, yardstick::aes_blocks(key, blocks))
    }

    pub(crate) fn multiply_accumulate_dispatch(self, rounds: u64) -> u64 {
        on_arm!(self, yardstick::multiply_accumulate(rounds))
    }
}
