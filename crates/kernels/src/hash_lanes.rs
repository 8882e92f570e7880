//! Keyed BLAKE3 of many inputs of equal length, one in each lane of the vectors (O'Connor,
//! Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere", 2020).
//!
//! Hash trees are built from very many hashes of very short inputs. Within 64 bytes, a vectorised
//! BLAKE3 has nothing to do in parallel. So this module hashes several inputs in parallel: word `w`
//! of sixteen inputs is one vector, and sixteen hashes take as many instructions as one. The
//! results are the same as with any BLAKE3.
//!
//! An input may begin with its number, so that records can be hashed with their numbers without a
//! copy.
//!
//! Inputs have at most one BLAKE3 chunk, [`MAX_INPUT_LEN`] bytes: for longer ones, BLAKE3's own
//! tree gives enough parallel work.

use crate::dispatch::Kernels;
use crate::dispatch::on_arm;

/// The longest input in bytes, its number included: one chunk of BLAKE3.
pub const MAX_INPUT_LEN: usize = 1024;

/// Bytes of a number at the beginning of an input.
pub(crate) const NUMBER_LEN: usize = 8;

/// Bytes of a block: what one compression takes in.
pub(crate) const BLOCK_LEN: usize = 64;

/// The initial value, the same as SHA-256's. Its first half is part of every compression's state.
pub(crate) const INITIAL: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];

/// The order of the message's words in each round: the paper's permutation, applied repeatedly.
pub(crate) const SCHEDULE: [[usize; 16]; 7] = {
    const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
    let mut schedule = [[0; 16]; 7];
    let mut word = 0;
    while word < 16 {
        schedule[0][word] = word;
        word += 1;
    }
    let mut round = 1;
    while round < 7 {
        let mut word = 0;
        while word < 16 {
            schedule[round][word] = schedule[round - 1][PERMUTATION[word]];
            word += 1;
        }
        round += 1;
    }
    schedule
};

/// The words of the state that the eight quarter-rounds of a round work on: the columns, then the
/// diagonals.
pub(crate) const QUARTERS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// The numbers that inputs begin with, each as eight bytes, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// This number and those that follow it.
    From(u64),
    /// Any numbers, one for each input.
    Each(&'a [u64]),
}

impl Kernels {
    /// `outputs[i]` becomes the BLAKE3 hash under `key` of input `i`. The inputs are `input_len`
    /// bytes each, one after the other.
    ///
    /// # Panics
    ///
    /// If `inputs` is not as long as all inputs together, or one is longer than [`MAX_INPUT_LEN`].
    pub fn blake3_keyed_many(
        self,
        key: &[u8; 32],
        inputs: &[u8],
        input_len: usize,
        outputs: &mut [[u8; 32]],
    ) {
        let inputs = Inputs { numbers: None, records: inputs, record_len: input_len };
        inputs.check(outputs.len());
        on_arm!(self, hash_lanes::blake3_keyed(key, &inputs, outputs));
    }

    /// `outputs[i]` becomes the BLAKE3 hash under `key` of `numbers[i]` and record `i`, one after
    /// the other. The records are `record_len` bytes each.
    ///
    /// # Panics
    ///
    /// If `records` is not as long as all records together, a number and a record are together
    /// longer than [`MAX_INPUT_LEN`], there are not as many numbers as outputs, or they do not end
    /// below 2⁶⁴.
    pub fn blake3_keyed_numbered(
        self,
        key: &[u8; 32],
        numbers: Numbers<'_>,
        records: &[u8],
        record_len: usize,
        outputs: &mut [[u8; 32]],
    ) {
        let inputs = Inputs { numbers: Some(numbers), records, record_len };
        inputs.check(outputs.len());
        on_arm!(self, hash_lanes::blake3_keyed(key, &inputs, outputs));
    }
}

/// The inputs, checked against the number of outputs: each has at least one block and at most
/// sixteen.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) numbers: Option<Numbers<'a>>,
    pub(crate) records: &'a [u8],
    pub(crate) record_len: usize,
}

impl Inputs<'_> {
    fn check(&self, count: usize) {
        let fits = self.record_len <= MAX_INPUT_LEN && self.len() <= MAX_INPUT_LEN;
        assert!(fits, "an input is of one chunk at most");
        assert_eq!(
            Some(self.records.len()),
            count.checked_mul(self.record_len),
            "an input is hashed for each output"
        );
        match self.numbers {
            None => {}
            Some(Numbers::Each(numbers)) => assert_eq!(numbers.len(), count, "a number each"),
            Some(Numbers::From(first)) => {
                assert!(first.checked_add(count as u64).is_some(), "numbers end below 2^64");
            }
        }
    }

    /// Bytes of an input that come before its record.
    #[inline(always)]
    pub(crate) fn prefix_len(&self) -> usize {
        if self.numbers.is_some() { NUMBER_LEN } else { 0 }
    }

    /// Bytes of an input.
    #[inline(always)]
    fn len(&self) -> usize {
        self.prefix_len() + self.record_len
    }

    /// Blocks of an input. The empty one has a block too.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> usize {
        self.len().div_ceil(BLOCK_LEN).max(1)
    }

    /// The last two words of a compression's state: how many bytes of the input the block holds,
    /// and its flags.
    #[inline(always)]
    pub(crate) fn length_and_flags(&self, block: usize) -> [u32; 2] {
        const CHUNK_START: u32 = 1 << 0;
        const CHUNK_END: u32 = 1 << 1;
        const ROOT: u32 = 1 << 3;
        const KEYED_HASH: u32 = 1 << 4;
        let len = (self.len() - block * BLOCK_LEN).min(BLOCK_LEN);
        let first = if block == 0 { CHUNK_START } else { 0 };
        let last = if block + 1 == self.blocks() { CHUNK_END | ROOT } else { 0 };
        [len as u32, KEYED_HASH | first | last]
    }

    /// The number that input `input` begins with.
    #[inline(always)]
    pub(crate) fn number(&self, input: usize) -> u64 {
        match self.numbers {
            None => 0,
            Some(Numbers::From(first)) => first + input as u64,
            Some(Numbers::Each(numbers)) => numbers[input],
        }
    }

    /// The part of block `block` of input `input` that is record: a range of places in the block,
    /// and its start in `records`. In the first block, the number comes before it. Zeros follow it.
    #[inline(always)]
    pub(crate) fn place(&self, input: usize, block: usize) -> (std::ops::Range<usize>, usize) {
        let from = if block == 0 { self.prefix_len() } else { 0 };
        let end = (self.len() - block * BLOCK_LEN).min(BLOCK_LEN);
        let start = block * BLOCK_LEN + from - self.prefix_len();
        (from..end, input * self.record_len + start)
    }

    /// Writes block `block` of input `input`.
    #[inline(always)]
    pub(crate) fn write_block(&self, input: usize, block: usize, out: &mut [u8; BLOCK_LEN]) {
        let (place, start) = self.place(input, block);
        *out = [0; BLOCK_LEN];
        if place.start > 0 {
            out[..NUMBER_LEN].copy_from_slice(&self.number(input).to_le_bytes());
        }
        let len = place.len();
        out[place].copy_from_slice(&self.records[start..start + len]);
    }
}

/// A key as words.
#[inline(always)]
pub(crate) fn key_words(key: &[u8; 32]) -> [u32; 8] {
    std::array::from_fn(|word| {
        u32::from_le_bytes([key[4 * word], key[4 * word + 1], key[4 * word + 2], key[4 * word + 3]])
    })
}
