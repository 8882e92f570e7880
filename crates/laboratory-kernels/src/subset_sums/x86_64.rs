//! Subset sums with vectors: the algorithm, for each arm's width.
//!
//! Three variables are summed at a time, between the loads and the stores of eight vectors. The
//! place of the bytes decides which eight; see [`crate::subset_sums`] for blocks and tiles.
//!
//! If an entry, or a few neighbouring entries, are shorter than a vector, a variable is summed
//! within vectors. If the length is a power of two, this uses shuffles ([`Vector::sum_within`]).
//! Otherwise it XORs the entries a few bytes before, under a mask of those entries that have the
//! variable ([`sum_masked`]).

use super::{LINE, portable};
use crate::prefetch_second_level;

/// How many bytes of a block are processed together: half a first-level cache.
const PIECE_BYTES: usize = 16 << 10;

/// How many columns ahead of the loads the rows of a tile are prefetched. All rows fall into the
/// same places of the caches, so bytes that are prefetched too early are evicted before use.
const AHEAD: usize = 8 * LINE;

/// The bytes that are XORed at a time: a vector register, or a machine word if rows do not end with
/// a whole vector.
///
/// # Safety
///
/// For all methods: the processor must have the instructions that they use.
pub(super) trait Vector: Copy {
    const BYTES: usize;

    /// # Safety
    ///
    /// The bytes at `from` may be read; no alignment needed.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    ///
    /// The bytes at `to` may be written; no alignment needed.
    unsafe fn store(self, to: *mut u8);

    /// Stores around the caches.
    ///
    /// # Safety
    ///
    /// The bytes at `to` may be written, and `to` is a multiple of [`BYTES`](Vector::BYTES).
    unsafe fn stream(self, to: *mut u8);

    /// # Safety
    ///
    /// As for all methods.
    unsafe fn xor(self, other: Self) -> Self;

    /// Sums all variables of the entries of one vector. `ENTRY_LEN` is a power of two and less than
    /// [`BYTES`](Vector::BYTES).
    ///
    /// # Safety
    ///
    /// As for all methods.
    unsafe fn sum_within<const ENTRY_LEN: usize>(self) -> Self;
}

macro_rules! word {
    ($word:ty) => {
        impl Vector for $word {
            const BYTES: usize = size_of::<$word>();

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller allows the reading, and no alignment is assumed.
                unsafe { from.cast::<$word>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller allows the writing, and no alignment is assumed.
                unsafe { to.cast::<$word>().write_unaligned(self) }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: as the caller says.
                unsafe { self.store(to) }
            }

            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            unsafe fn sum_within<const ENTRY_LEN: usize>(self) -> Self {
                unreachable!("only vectors are summed within")
            }
        }
    };
}
word!(u64);
word!(u8);

/// See [`portable::sum_block`].
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn sum_block<V: Vector>(block: &mut [u8], entry_len: usize) {
    if block.len() < LINE {
        return portable::sum_block(block, entry_len);
    }
    let mut piece_len = entry_len;
    while piece_len < block.len() && 2 * piece_len <= PIECE_BYTES {
        piece_len *= 2;
    }
    let masks = Masks::new(entry_len);
    for piece in block.chunks_exact_mut(piece_len) {
        // SAFETY: the caller vouches for the instructions of `V`, here and below.
        let summed = unsafe { sum_short::<V>(piece, entry_len, &masks) };
        // SAFETY: as above.
        unsafe { sum_halves::<V>(piece, summed) };
    }
    // SAFETY: as above.
    unsafe { sum_halves::<V>(block, piece_len) };
}

/// Sums the variables whose halves are shorter than a vector or a line. Returns the length of the
/// halves of the first other variable.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn sum_short<V: Vector>(piece: &mut [u8], entry_len: usize, masks: &Masks) -> usize {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        match entry_len {
            1 => sum_vectors::<V, 1>(piece),
            2 => sum_vectors::<V, 2>(piece),
            4 => sum_vectors::<V, 4>(piece),
            8 => sum_vectors::<V, 8>(piece),
            16 => sum_vectors::<V, 16>(piece),
            32 if V::BYTES > 32 => sum_vectors::<V, 32>(piece),
            _ => {
                for (i, masks) in masks.levels.iter().enumerate() {
                    sum_masked(piece, entry_len << i, masks);
                }
                return entry_len << masks.levels.len();
            }
        }
    }
    V::BYTES
}

/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn sum_vectors<V: Vector, const ENTRY_LEN: usize>(piece: &mut [u8]) {
    for vector in piece.chunks_exact_mut(V::BYTES) {
        let place = vector.as_mut_ptr();
        // SAFETY: the chunk is a vector's bytes; the caller vouches for the instructions.
        unsafe { V::load(place).sum_within::<ENTRY_LEN>().store(place) };
    }
}

/// For entries whose length is not a power of two: for each variable whose halves are shorter than
/// a line, the bytes that belong to entries with this variable. The pattern repeats after as many
/// lines as the odd part of an entry's length.
struct Masks {
    levels: Vec<Vec<[u8; LINE]>>,
}

impl Masks {
    fn new(entry_len: usize) -> Masks {
        let mut levels = Vec::new();
        let mut half = if entry_len.is_power_of_two() { LINE } else { entry_len };
        while half < LINE {
            let mut lines = vec![[0; LINE]; entry_len >> entry_len.trailing_zeros()];
            for run in lines.as_flattened_mut().chunks_mut(half).skip(1).step_by(2) {
                run.fill(0xff);
            }
            levels.push(lines);
            half *= 2;
        }
        Masks { levels }
    }
}

/// Sums one variable whose halves are shorter than a line. Goes from back to front, so that it
/// reads only bytes that have not been written yet, and no read waits for a store.
#[inline(always)]
fn sum_masked(piece: &mut [u8], half: usize, masks: &[[u8; LINE]]) {
    let lines = piece.len() / LINE;
    sum_bytes(piece, half, lines * LINE..piece.len());
    let mut mask = (lines.max(1) - 1) % masks.len();
    for line in (1..lines).rev() {
        let start = line * LINE;
        let mut without = [0; LINE];
        without.copy_from_slice(&piece[start - half..start - half + LINE]);
        xor_masked(&mut piece[start..start + LINE], &without, &masks[mask]);
        mask = if mask == 0 { masks.len() - 1 } else { mask - 1 };
    }
    sum_bytes(piece, half, 0..LINE.min(piece.len()));
}

/// XORs those bytes of `other` that the mask selects, word by word, which the compiler turns into
/// vectors.
#[inline(always)]
fn xor_masked(sum: &mut [u8], other: &[u8; LINE], mask: &[u8; LINE]) {
    let others = other.as_chunks::<8>().0.iter().zip(mask.as_chunks::<8>().0);
    for (sum, (other, mask)) in sum.as_chunks_mut::<8>().0.iter_mut().zip(others) {
        let selected = u64::from_ne_bytes(*other) & u64::from_ne_bytes(*mask);
        *sum = (u64::from_ne_bytes(*sum) ^ selected).to_ne_bytes();
    }
}

/// The same for single bytes.
#[inline(always)]
fn sum_bytes(piece: &mut [u8], half: usize, range: std::ops::Range<usize>) {
    for at in range.rev() {
        if (at / half) % 2 == 1 {
            piece[at] ^= piece[at - half];
        }
    }
}

/// Sums the variables whose halves are `half` bytes or longer. The block's length is a power of two
/// times `half`.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn sum_halves<V: Vector>(block: &mut [u8], mut half: usize) {
    while half < block.len() {
        // SAFETY: the caller vouches for the instructions.
        half *= unsafe {
            match block.len() / half {
                2 => sum_rows::<V, 2>(block, half),
                4 => sum_rows::<V, 4>(block, half),
                _ => sum_rows::<V, 8>(block, half),
            }
        };
    }
}

/// Sums the variables of each `ROWS` neighbouring rows, and returns `ROWS`.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn sum_rows<V: Vector, const ROWS: usize>(block: &mut [u8], row_len: usize) -> usize {
    for group in block.chunks_exact_mut(ROWS * row_len) {
        let start = group.as_mut_ptr();
        let rows: [*mut u8; ROWS] = std::array::from_fn(|row| start.wrapping_add(row * row_len));
        // SAFETY: the rows lie side by side in the group; the caller vouches for the instructions.
        unsafe {
            sum_columns::<V, ROWS, false>(rows.map(|row| row.cast_const()), rows, row_len, None)
        };
    }
    ROWS
}

/// See [`portable::sum_tile`]. The tile goes through `stage`: the lowest variables are
/// summed on the way in, and the highest on the way out. So it does not matter whether a row's
/// columns would have stayed in a cache.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn sum_tile<V: Vector>(rows: &mut [&mut [u8]], stage: &mut Vec<u8>) {
    let columns = rows.first().map_or(0, |row| row.len());
    assert!(rows.len().is_power_of_two() && rows.iter().all(|row| row.len() == columns));
    // Uses one line more than the columns need, so that not all rows fall into the same places of
    // the first-level cache.
    let pitch = columns.next_multiple_of(LINE) + LINE;
    if stage.len() < rows.len() * pitch + LINE {
        *stage = vec![0; rows.len() * pitch + LINE];
    }
    let skip = stage.as_ptr().addr().wrapping_neg() % LINE;
    let stage = &mut stage[skip..][..rows.len() * pitch];

    // SAFETY: the caller vouches for the instructions; the rows have one length, and the pitch is
    // enough for it.
    let first = unsafe {
        match rows.len() {
            1 => return,
            2 => load_tile::<V, 2>(rows, columns, stage, pitch),
            4 => load_tile::<V, 4>(rows, columns, stage, pitch),
            _ => load_tile::<V, 8>(rows, columns, stage, pitch),
        }
    };
    let last = (rows.len() / first).min(8);
    let middle = rows.len() / last;
    for part in stage.chunks_exact_mut(middle * pitch) {
        // SAFETY: as above.
        unsafe { sum_halves::<V>(part, first * pitch) };
    }
    // SAFETY: as above.
    unsafe {
        match last {
            1 => store_tile::<V, 1>(rows, columns, stage, pitch),
            2 => store_tile::<V, 2>(rows, columns, stage, pitch),
            4 => store_tile::<V, 4>(rows, columns, stage, pitch),
            _ => store_tile::<V, 8>(rows, columns, stage, pitch),
        }
    }
}

/// Copies rows into `stage`, and sums the lowest variables, those of `ROWS` neighbours. Returns
/// `ROWS`.
///
/// # Safety
///
/// The processor has the instructions of `V`; the number of rows is a multiple of `ROWS`, each row
/// has `columns` bytes, and `stage` has `pitch >= columns` for each.
#[inline(always)]
unsafe fn load_tile<V: Vector, const ROWS: usize>(
    rows: &[&mut [u8]],
    columns: usize,
    stage: &mut [u8],
    pitch: usize,
) -> usize {
    let groups = rows.as_chunks::<ROWS>().0;
    for (i, (group, stage)) in groups.iter().zip(stage.chunks_exact_mut(ROWS * pitch)).enumerate() {
        let start = stage.as_mut_ptr();
        let from = std::array::from_fn(|row| group[row].as_ptr());
        let to = std::array::from_fn(|row| start.wrapping_add(row * pitch));
        let next = groups.get(i + 1).unwrap_or(group);
        let next = std::array::from_fn(|row| next[row].as_ptr());
        // SAFETY: as the caller says.
        unsafe { sum_columns::<V, ROWS, false>(from, to, columns, Some(next)) };
    }
    ROWS
}

/// Copies rows back from `stage`, and sums the highest variables, those of `ROWS` rows at the
/// greatest distance.
///
/// # Safety
///
/// As for [`load_tile`].
#[inline(always)]
unsafe fn store_tile<V: Vector, const ROWS: usize>(
    rows: &mut [&mut [u8]],
    columns: usize,
    stage: &[u8],
    pitch: usize,
) {
    let apart = rows.len() / ROWS;
    let aligned = |row: &&mut [u8]| row.as_ptr().addr().is_multiple_of(LINE);
    let stream = columns.is_multiple_of(LINE) && rows.iter().all(aligned);
    for i in 0..apart {
        let from = std::array::from_fn(|row| stage[(i + row * apart) * pitch..].as_ptr());
        let to = std::array::from_fn(|row| rows[i + row * apart].as_mut_ptr());
        if stream {
            // SAFETY: as the caller says; rows begin and end with lines.
            unsafe { sum_columns::<V, ROWS, true>(from, to, columns, None) };
        } else {
            // SAFETY: as the caller says.
            unsafe { sum_columns::<V, ROWS, false>(from, to, columns, None) };
        }
    }
    if stream {
        // Another thread may read the rows next, and stores around the caches are not ordered by
        // themselves. SAFETY: the instruction is in the baseline.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
}

/// Sums all variables of `ROWS` rows on the way from one place to another, which may be the same.
/// Prefetches the rows, and then the rows `next`, if given.
///
/// # Safety
///
/// The processor has the instructions of `V`. Each row has `columns` bytes, readable at `from` and
/// writable at `to`; a row at `to` overlaps no row at `from`, except its own if both are in the
/// same place. With `STREAM`, places `to` and `columns` are multiples of [`LINE`].
#[inline(always)]
unsafe fn sum_columns<V: Vector, const ROWS: usize, const STREAM: bool>(
    from: [*const u8; ROWS],
    to: [*mut u8; ROWS],
    columns: usize,
    next: Option<[*const u8; ROWS]>,
) {
    let mut at = 0;
    while at + V::BYTES <= columns {
        if let Some(next) = next {
            let ahead = at + AHEAD;
            let (rows, ahead) =
                if ahead < columns { (from, ahead) } else { (next, ahead - columns) };
            for row in rows {
                prefetch_second_level(row, ahead);
            }
        }
        // SAFETY: the vectors lie within the rows; alignment and instructions are the caller's.
        unsafe { sum_column::<V, ROWS, STREAM>(from, to, at) };
        at += V::BYTES;
    }
    while at + u64::BYTES <= columns {
        // SAFETY: as above.
        unsafe { sum_column::<u64, ROWS, false>(from, to, at) };
        at += u64::BYTES;
    }
    while at < columns {
        // SAFETY: as above.
        unsafe { sum_column::<u8, ROWS, false>(from, to, at) };
        at += 1;
    }
}

/// The same for the vectors `at` bytes into the rows.
///
/// # Safety
///
/// As for [`sum_columns`], with `at` + [`Vector::BYTES`] at most the length of the rows and `at` a
/// multiple of it.
#[inline(always)]
unsafe fn sum_column<V: Vector, const ROWS: usize, const STREAM: bool>(
    from: [*const u8; ROWS],
    to: [*mut u8; ROWS],
    at: usize,
) {
    // SAFETY: the caller has checked places, lengths and instructions.
    unsafe {
        let mut rows = [V::load(from[0].add(at)); ROWS];
        for row in 1..ROWS {
            rows[row] = V::load(from[row].add(at));
        }
        let mut half = 1;
        while half < ROWS {
            for row in 0..ROWS {
                if row & half != 0 {
                    rows[row] = rows[row].xor(rows[row ^ half]);
                }
            }
            half *= 2;
        }
        for row in 0..ROWS {
            if STREAM {
                rows[row].stream(to[row].add(at));
            } else {
                rows[row].store(to[row].add(at));
            }
        }
    }
}
